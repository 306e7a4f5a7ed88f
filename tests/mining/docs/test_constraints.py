"""Mined constraints: their form, and whether they are true, by models that we did not write."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, shape_inference

from reprise.facts.onnx_import import Limits, ModelError, import_model
from reprise.lang.lint import lint
from reprise.lang.ruleset import load_text
from reprise.mining.docs.constraints import constraints
from reprise.mining.docs.mining import CONSTRAINTS, Mined, choose, mine
from reprise.mining.docs.model import Documentation
from reprise.mining.docs.naming import dtype_of, slug
from reprise.mining.docs.reading import read_documents, read_texts
from reprise.mining.docs.vocabulary import Vocabulary
from reprise.patterns.denials import violation_pattern
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from tests.mining.docs.conftest import DATA


def texts(documentation: Documentation, title: str) -> dict[str, str]:
    """The constraints of one entry, by the end of their names."""
    chosen = choose(documentation.entries)
    entry = next(e for e in documentation.entries if e.title == title)
    made = constraints(entry, Vocabulary(chosen), documentation.cite)
    return {c.name.removeprefix(f"onnx_{slug(entry)}_"): c.text for c in made}


# --- their form ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_mined_rules_have_nothing_that_lint_reports(mined: Mined, tmp_path: Path) -> None:
    for name, text in mined.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert lint([tmp_path]) == []


def test_a_constraint_says_where_it_comes_from() -> None:
    documentation = read_documents([DATA])
    rules = load_text(mine(documentation).files()[CONSTRAINTS])
    types = rules.constraints["onnx_concat_13_inputs_type"]
    assert types.meta["template"] == ("docs",)
    (place,) = types.meta["from"]
    file, _, line = place.rpartition(":")
    lines = (DATA.parent / file).read_text(encoding="utf-8").split("\n")
    assert lines[int(line) - 1].startswith("<dt><tt>T</tt> : tensor(uint8)")


@pytest.mark.slow
def test_what_two_documents_say_is_one_constraint_with_both_places(mined: Mined) -> None:
    constraint = next(c for c in mined.constraints if c.name == "onnx_abs_13_inputs")
    assert 'from: "onnx-' in constraint.text
    assert "Changelog.md" in constraint.text.partition("agrees:")[0]
    assert "Operators.md" in constraint.text.partition("agrees:")[2]


def test_versions_have_names_of_their_own(markdown: Documentation) -> None:
    names = [
        {c.name for c in mine(markdown, opset).constraints if "onnx_abs_" in c.name}
        for opset in (5, 6, 13)
    ]
    assert not names[0] & names[1]
    assert not names[1] & names[2]


def test_an_opset_takes_the_version_that_it_has(markdown: Documentation) -> None:
    chosen = {e.name: e.since for e in choose(markdown.entries, 12) if not e.domain}
    assert chosen["Abs"] == 6
    assert "HardSwish" not in chosen  # since 14


def test_an_operand_that_the_importer_makes_an_attribute_may_be_absent(
    markdown: Documentation,
) -> None:
    reshape = texts(markdown, "Reshape-25")
    assert "require arity(n) in 1..2" in reshape["inputs"]
    assert "n = reshape|onnx.Reshape(_, shape, ...)" in reshape["shape_type"]
    assert (
        "onnx.BitwiseAnd(...)\n} require arity(n) == 2"
        in texts(markdown, "BitwiseAnd-18")["inputs"]
    )


def test_a_uir_operator_belongs_to_the_one_that_becomes_nothing_else(
    markdown: Documentation,
) -> None:
    assert "n = add|onnx.Add(" in texts(markdown, "Add-14")["inputs"]
    assert "n = sum_n|onnx.Sum(" in texts(markdown, "Sum-13")["inputs"]


def test_resizing_of_old_opsets_is_only_known_by_its_onnx_name(markdown: Documentation) -> None:
    assert "n = onnx.Upsample(" in texts(markdown, "Upsample-9")["inputs"]
    assert "n = resize|onnx.Resize(" in texts(markdown, "Resize-19")["inputs"]


def test_what_could_not_be_read_gives_no_constraint() -> None:
    whole = (DATA / "Changelog.md").read_text(encoding="utf-8")
    broken = whole.replace("<dt><tt>X</tt> : T</dt>", "<dt><tt>X</tt> : T", 1)
    assert set(texts(read_texts({"x.md": whole}), "Abs-1")) == {
        "inputs",
        "outputs",
        "x_type",
        "y_same",
    }
    assert set(texts(read_texts({"x.md": broken}), "Abs-1")) == {"outputs"}


def test_deprecated_operators_have_none() -> None:
    assert texts(read_documents([DATA / "Changelog.md"]), "Upsample-10") == {}


# --- whether they are true -----------------------------------------------------------------------


class _Judge:
    """The mined constraints of one opset, about some operators."""

    def __init__(self, documentation: Documentation, opset: int, names: Iterable[str]) -> None:
        wanted = set(names)
        chosen = choose(documentation.entries, opset)
        vocabulary = Vocabulary(chosen)
        made = [c.text for e in chosen if e.name in wanted for c in constraints(e, vocabulary)]
        self.rules = load_text("\n".join(made))
        patterns = [violation_pattern(c) for c in self.rules.constraints.values()]
        self.matcher = Matcher(self.rules, patterns)

    def violated(self, model: onnx.ModelProto) -> tuple[set[str], set[str]]:
        """Names of the constraints that the model violates: for certain, and perhaps."""
        found = self.matcher.run(import_model(model, Path("m.onnx"), Limits())).findings
        certain = {f.pattern.name for f in found if f.certainty is Truth.YES}
        return certain, {f.pattern.name for f in found} - certain


ELEMENT_TYPES = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.INT4,
    TensorProto.INT8,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.BOOL,
    TensorProto.STRING,
    TensorProto.COMPLEX64,
    TensorProto.FLOAT8E4M3FN,
)


def _model(op: str, types: Sequence[int], result: int, opset: int) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(types))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"])],
        "g",
        [helper.make_tensor_value_info(n, t, [2, 2]) for n, t in zip(names, types, strict=True)],
        [helper.make_tensor_value_info("y", result, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _onnx_accepts(model: onnx.ModelProto) -> bool:
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError:
        return False
    return True


UNARY = ("Abs", "Acos", "BitwiseNot", "Erf", "HardSwish", "Identity", "Neg", "Not", "Relu", "Sign")
# Not Sum, of which facts know no more than that it is an addition: its types are Add's.
BINARY = ("Add", "And", "BitwiseAnd", "Equal", "Less", "MatMul", "Max", "Mod", "PRelu", "Pow")


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 22])
def test_an_element_type_violates_exactly_where_onnx_refuses_it(
    markdown: Documentation, opset: int
) -> None:
    judge = _Judge(markdown, opset, (*UNARY, *BINARY))
    refused = accepted = 0
    for op, types in _cases(opset):
        # The result has the first operand's type, or the one that ONNX wants of a predicate.
        result = TensorProto.BOOL if op in ("Equal", "Less", "And") else types[0]
        model = _model(op, types, result, opset)
        certain, possible = judge.violated(model)
        assert not possible, (op, types)
        assert _onnx_accepts(model) is not bool(certain), (op, types, certain)
        refused += bool(certain)
        accepted += not certain
    assert refused > 200
    assert accepted > 100


def _cases(opset: int) -> Iterator[tuple[str, Sequence[int]]]:
    for op in UNARY:
        if _exists(op, opset):
            yield from ((op, [t]) for t in ELEMENT_TYPES)
    for op in BINARY:
        if _exists(op, opset):
            yield from ((op, [t, t]) for t in ELEMENT_TYPES)
            yield from ((op, [t, TensorProto.FLOAT]) for t in ELEMENT_TYPES)


def _exists(op: str, opset: int) -> bool:
    try:
        onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return False
    return True


@pytest.mark.parametrize(
    ("op", "count", "wrong"),
    [("Abs", 1, False), ("Abs", 2, True), ("BitwiseAnd", 1, True), ("Where", 2, True)],
)
def test_a_wrong_number_of_operands_violates(
    markdown: Documentation, op: str, count: int, wrong: bool
) -> None:
    judge = _Judge(markdown, 22, [op])
    model = _model(op, [TensorProto.INT32] * count, TensorProto.INT32, 22)
    certain, _ = judge.violated(model)
    assert any(name.endswith("_inputs") for name in certain) is wrong


@pytest.mark.slow
def test_no_node_test_of_onnx_violates_a_constraint(markdown: Documentation) -> None:
    """Up to three tests of each operator and opset."""
    by_opset = defaultdict(list)
    seen: dict[tuple[str, int], int] = defaultdict(int)
    for name, model in _node_tests():
        versions = {o.domain: o.version for o in model.opset_import}
        opset = versions.get("", versions.get("ai.onnx", 0)) or 28
        key = model.graph.node[0].op_type, opset
        seen[key] += 1
        if seen[key] <= 3:
            by_opset[opset].append((name, model))
    checked = 0
    for opset, models in sorted(by_opset.items()):
        names = {node.op_type for _, model in models for node in model.graph.node}
        judge = _Judge(markdown, opset, names)
        for name, model in models:
            try:
                certain, possible = judge.violated(model)
            except ModelError:
                continue  # what Reprise does not import, it does not check
            assert not certain, (name, certain)
            assert not possible, (name, possible)
            checked += 1
    assert checked > 400


def _node_tests() -> Iterator[tuple[str, onnx.ModelProto]]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in collect_testcases(None):
            if case.model is not None:
                yield case.name, case.model


def test_every_element_type_of_the_documents_is_known_or_named(mined: Mined) -> None:
    """A type that the rule language lacks is said in the constraint's documentation."""
    types = {t for e in mined.chosen for c in e.types for t in c.types if t.startswith("tensor(")}
    unknown = {t for t in types if dtype_of(t) is None}
    assert all("float6" in t for t in unknown)
    for type_ in unknown:
        assert any(type_ in c.text for c in mined.constraints)
