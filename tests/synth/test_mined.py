"""Programs with operators that only have a mined signature are valid, by ONNX's own checker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import shape_inference
from onnx.reference import ReferenceEvaluator

from reprise.campaign.reach import Reaching
from reprise.campaign.source import SourceRequest, open_source
from reprise.data import data_path
from reprise.facts.onnx_apply import OnnxResults, is_foreign
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering, refusal
from reprise.lower.onnx import LOWERING, to_onnx
from reprise.solve.signatures import Signatures
from reprise.synth.generator import Generator
from reprise.synth.options import ON_REQUEST, Options
from reprise.uir.text import parse_uir, print_uir

MINED = data_path("rules") / "mining" / "onnx.rules"
CROP = """
op onnx.CenterCropPad(input_data: T[*D], shape?: I[L]) -> T[...] {
    category mined
    attr shape as S: ints in 1..8
    where T in {float32, int32}, I in {int64}, rank(D) >= 1, len(S) == rank(D)
}
"""


def source(*files: Path, target: str | None = None, nodes: int = 5) -> Generator:
    options = Options(
        nodes=nodes,
        include=frozenset({"mined", "activation", "arithmetic"}),
        signatures=tuple(map(str, files)),
    )
    return open_source(SourceRequest(3, options, target=target, lowerings=("onnx",)))


def operators(generator: Generator, count: int) -> set[str]:
    programs = [generator.program(index).program for index in range(count)]
    return {node.op for program in programs for node in program.graph.nodes}


@pytest.fixture
def crop(tmp_path: Path) -> Path:
    path = tmp_path / "crop.rules"
    path.write_text(CROP)
    return path


@pytest.mark.slow
def test_a_result_whose_shape_is_left_open_is_asked_of_onnx(crop: Path) -> None:
    generator = source(crop)
    seen = 0
    for index in range(40):
        for node in generator.program(index).program.graph.nodes:
            if node.op == "onnx.CenterCropPad":
                seen += 1
                (result,) = node.outputs
                assert result is not None and result.type.shape == node.attributes["shape"]
    assert seen > 2


@pytest.mark.slow
def test_an_operator_of_a_file_is_not_generated_without_it(crop: Path) -> None:
    options = Options(nodes=5, include=frozenset({"activation"}))
    without = open_source(SourceRequest(3, options, lowerings=("onnx",)))
    assert "onnx.CenterCropPad" not in operators(without, 20)
    assert "onnx.CenterCropPad" in operators(source(crop), 20)


@pytest.mark.slow
def test_same_seed_same_programs(crop: Path) -> None:
    first = [print_uir(source(crop).program(i).program.graph) for i in range(6)]
    generator = source(crop)
    again = [print_uir(generator.program(i).program.graph) for i in reversed(range(6))]
    assert first == again[::-1]


@pytest.mark.slow
def test_the_text_of_a_program_is_read_without_the_signature(crop: Path) -> None:
    graph = source(crop).program(1).program.graph
    text = print_uir(graph)
    assert print_uir(parse_uir(text, "program.uir", Signatures.load())) == text


@pytest.mark.slow
def test_other_targets_decline_it_without_an_exception(crop: Path) -> None:
    generator = source(crop)
    graphs = [generator.program(index).program.graph for index in range(20)]
    graph = next(g for g in graphs if any(is_foreign(node.op) for node in g.nodes))
    for language in ("torch", "relax"):
        assert refusal(lowering(language), graph) is not None


@pytest.mark.slow
def test_text_goes_only_where_nothing_else_can(tmp_path: Path) -> None:
    path = tmp_path / "text.rules"
    path.write_text(
        "op onnx.RegexFullMatch(x: string[*D]) -> bool[*D] {\n    category mined\n"
        '    attr pattern: sym in {"[a-z]*"}\n}\n'
    )
    names = frozenset({"onnx.RegexFullMatch", "identity", "concat", "cast"})
    options = Options(nodes=6, include=names, signatures=(str(path),))
    generator = open_source(SourceRequest(3, options, lowerings=("onnx",)))
    words: set[str] = set()
    for index in range(20):
        program = generator.program(index).program
        for node in program.graph.nodes:
            taken = {t.type.dtype for t in node.inputs if t is not None}
            assert (taken == {"string"}) == (node.op == "onnx.RegexFullMatch")
        for value in program.inputs.values():
            words |= {w for w in value.flat if isinstance(w, str)}
    assert len(words) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "onnxruntime"])
def test_shipped_mined_operators_make_valid_models(target: str | None) -> None:
    generator = source(MINED, target=target)
    mined: set[str] = set()
    for index in range(150):
        graph = generator.program(index).program.graph
        mined |= {node.op for node in graph.nodes if is_foreign(node.op)}
        model = onnx.load_from_string(lowering("onnx").lower(graph))
        onnx.checker.check_model(model, full_check=True)
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert len(mined) >= 8


@pytest.mark.slow
def test_programs_have_all_of_onnx_operators_but_four() -> None:
    files = [MINED, MINED.with_name("onnx_more.rules")]
    found = Reaching(files, also=ON_REQUEST).count(programs=6)
    assert found.of_domain("")[0] == found.of_domain("")[1] >= 201
    gradient = ("ai.onnx.preview.training", "Gradient")
    maps = {("ai.onnx.ml", name) for name in ("CastMap", "DictVectorizer", "ZipMap")}
    assert found.missing.keys() == {gradient, *maps}
    every = {(s.domain, s.name) for s in onnx.defs.get_all_schemas() if not s.deprecated}
    assert {*found.reached, *found.missing} == every
    assert "no signature" not in found.missing.values()


@pytest.mark.slow
@pytest.mark.parametrize("file", ["onnx.rules", "onnx_more.rules"])
def test_what_the_reference_can_run_has_the_types_that_programs_declare(file: str) -> None:
    """Each operator of a shipped file alone: ONNX's checker and strict inference accept the model;
    where the reference evaluator runs it, results have the declared shapes."""
    path = MINED.with_name(file)
    rules, signatures = load_rules([path]), Signatures.load([path], OnnxResults())
    run = 0
    for name in sorted(op for op in signatures if is_foreign(op)):
        options = Options(nodes=1, include=frozenset({name}), also=ON_REQUEST)
        generator = Generator(rules, signatures, options, 1, unsupported=LOWERING.unsupported)
        programs = [generator.program(index).program for index in range(4)]
        drawn = [program for program in programs if program.graph.nodes]
        assert drawn, name
        for index, program in enumerate(drawn):
            model = to_onnx(program.graph, value_info=True)
            onnx.checker.check_model(model, full_check=True)
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
            if "Optional" in name or "SequenceEmpty" in name:
                continue  # the reference keeps an optional as a list, and divides by a length of 0
            try:
                with np.errstate(all="ignore"):
                    results = ReferenceEvaluator(model).run(None, program.inputs)
            except Exception:  # it lacks an operator or an element type, in classes of its own
                continue
            run += 1
            for tensor, result in zip(program.graph.outputs, results, strict=True):
                shape, declared = np.asarray(result).shape, tensor.type.shape
                assert declared is not None and len(shape) == len(declared), (name, index)
                assert all(d in (None, e) for e, d in zip(shape, declared, strict=True)), name
    assert run >= 30
