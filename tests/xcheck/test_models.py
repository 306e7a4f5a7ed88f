"""Models violate one constraint and no other; ONNX's own checker says which are valid."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

import onnx
import pytest

from reprise.data import data_path
from reprise.lang.ruleset import load_rules, load_text
from reprise.xcheck.device import device
from reprise.xcheck.models import Kind, Made, Modeller, NotMade
from reprise.xcheck.write import read_model

BOARD = 'hw("board", dram_bytes, 4_294_967_296).\n'


def modeller(text: str) -> Modeller:
    rules = load_text(text)
    return Modeller(rules, rules.constraints, device(rules, None))


def made(text: str, name: str, turn: int = 0, seed: int = 0) -> Made:
    found = modeller(text).violating(name, Random(seed), turn)
    assert isinstance(found, Made), str(found)
    return found


def not_made(text: str, name: str) -> NotMade:
    found = modeller(text).violating(name, Random(0))
    assert isinstance(found, NotMade)
    return found


def proto(found: Made) -> onnx.ModelProto:
    return onnx.load_from_string(found.model)


def is_valid(found: Made) -> bool:
    """What ONNX's checker and shape inference say."""
    try:
        onnx.checker.check_model(proto(found), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def shapes(found: Made) -> dict[str, Sequence[int]]:
    """Extents of a model's inputs, as ONNX reads them."""
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in proto(found).graph.input
    }


SUB = (
    BOARD
    + "constraint fits : resource on { n = sub(x, y) }"
    + " require x.bytes + y.bytes + n.bytes <= device(dram_bytes)\n"
)


@pytest.mark.parametrize("seed", range(6))
def test_a_model_too_large_for_the_device_is_valid_onnx_of_a_few_bytes(seed: int) -> None:
    found = made(SUB, "fits", seed=seed)
    assert found.kind is Kind.TYPED and is_valid(found)
    assert len(found.model) < 1000
    inferred = onnx.shape_inference.infer_shapes(proto(found), strict_mode=True)
    total = 0
    for value in (*inferred.graph.input, *inferred.graph.output):
        kind = value.type.tensor_type
        width = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize
        total += width * prod(dim.dim_value for dim in kind.shape.dim)
    assert total > 4_294_967_296


def test_extents_go_up_to_the_greatest_that_onnx_can_state() -> None:
    text = "constraint c : parameter_bound on { n = relu(x) where x.rank == 1 }"
    found = made(f"{text} require x.dim[0] < 9_223_372_036_854_775_807", "c")
    assert list(shapes(found).values()) == [[2**63 - 1]]
    assert is_valid(found)


def test_what_no_extent_can_violate_is_told_with_what_allows_none() -> None:
    text = "constraint c : parameter_bound on { n = relu(x) where x.rank == 1 }"
    told = not_made(f"{text} require x.dim[0] <= 9_223_372_036_854_775_807", "c")
    assert str(told) == "it always holds in what the signature of relu allows and ONNX can state"


def test_a_negation_that_a_signature_rules_out_needs_a_model_without_it() -> None:
    text = "constraint same : data_representation on { n = add(a, b) } require a.dtype == b.dtype"
    found = made(text, "same")
    assert found.kind is Kind.UNTYPED and not is_valid(found)
    assert any("add: b: T" in str(clash) for clash in found.given_up)
    types = {v.type.tensor_type.elem_type for v in proto(found).graph.input}
    assert len(types) == 2


@pytest.mark.parametrize("turn", range(4))
def test_element_types_outside_the_documented_set_are_written(turn: int) -> None:
    text = "constraint t : data_representation on { n = softmax(x) } require x.dtype in floats"
    found = made(text, "t", turn, seed=turn)
    (value,) = proto(found).graph.input
    floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE}
    floats |= {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    assert value.type.tensor_type.elem_type not in floats
    assert not is_valid(found)


def test_extents_that_do_not_match_are_written() -> None:
    text = "constraint k : algebraic on { n = matmul(a, b) where a.rank == 2, b.rank == 2 }"
    found = made(f"{text} require a.dim[1] == b.dim[0]", "k")
    (_, k), (other, _) = shapes(found).values()
    assert k != other and not is_valid(found)
    assert [node.op_type for node in proto(found).graph.node] == ["MatMul"]


@pytest.mark.parametrize("turn", range(4))
def test_operands_too_few_and_too_many_are_written(turn: int) -> None:
    text = "constraint n : cardinality on { n = add(...) } require arity(n) == 2"
    found = made(text, "n", turn)
    (node,) = proto(found).graph.node
    assert len(node.input) != 2 and found.kind is Kind.RESHAPED and not is_valid(found)


def test_the_number_of_operands_varies_with_turns() -> None:
    text = "constraint n : cardinality on { n = add(...) } require arity(n) == 2"
    counts = {len(proto(made(text, "n", turn)).graph.node[0].input) for turn in range(4)}
    assert len(counts) >= 3


def test_results_too_many_are_written() -> None:
    text = "constraint n : cardinality on { n = add(...) } require results(n) == 1"
    (node,) = proto(made(text, "n")).graph.node
    assert len(node.output) > 1


def test_attributes_out_of_range_are_written() -> None:
    text = "constraint p : parameter_bound on { n = conv2d(_, _, ...) } require n.pads[0] >= 0"
    found = made(text, "p")
    (node,) = proto(found).graph.node
    pads = next(list(a.ints) for a in node.attribute if a.name == "pads")
    assert pads[0] < 0 and not is_valid(found)


def test_a_result_that_contradicts_its_operator_is_declared() -> None:
    text = "constraint s : topology on { r = reshape(_, ...) n = relu(r) }"
    found = made(f"{text} require n.shape == r.shape", "s")
    (output,) = proto(found).graph.output
    inner = next(t for t in found.graph.tensors if t.name == proto(found).graph.node[-1].input[0])
    declared = tuple(d.dim_value for d in output.type.tensor_type.shape.dim)
    assert declared != inner.type.shape


TWO = """
constraint low : parameter_bound on { n = relu(x) where x.rank == 1 } require x.dim[0] >= 10
constraint high : parameter_bound on { n = relu(x) where x.rank == 1 } require x.dim[0] <= 20
"""


@pytest.mark.parametrize("name, fits", [("low", range(10)), ("high", range(21, 10**6))])
def test_the_other_constraints_hold(name: str, fits: range) -> None:
    for seed in range(5):
        found = made(TWO, name, seed=seed)
        assert found.violated == {name}
        ((extent,),) = shapes(found).values()
        assert extent in fits


def test_constraints_that_imply_each_other_are_violated_together() -> None:
    text = BOARD + (
        "constraint reads : resource on { n = abs(x) } require x.bytes <= device(dram_bytes)\n"
        "constraint makes : resource on { n = abs(x) } require n.bytes <= device(dram_bytes)\n"
    )
    assert made(text, "reads").violated == {"reads", "makes"}


def test_contradictory_constraints_can_be_violated_but_not_kept() -> None:
    text = TWO.replace(">= 10", ">= 30")
    told = modeller(text).valid("low", Random(0))
    assert isinstance(told, NotMade)
    assert {clash.text for clash in told.clashes} == {"`low` holds", "`high` holds"}
    assert made(text, "low").violated == {"low"}


@pytest.mark.slow
def test_a_guard_that_matches_nothing_is_told() -> None:
    text = "constraint g : algebraic on { n = relu(x) where x.dtype == string }"
    assert "guard matches" in not_made(f"{text} require x.rank == 1", "g").reason


def test_an_operator_without_a_signature_is_told() -> None:
    text = "constraint g : cardinality on { n = onnx.Foo(...) } require arity(n) == 1"
    assert "onnx.Foo" in not_made(text, "g").reason


def test_an_operator_that_is_left_out_is_not_said_to_have_no_signature() -> None:
    text = "constraint g : parameter_bound on { n = dropout(...) } require n.rank == 1"
    assert "random" in not_made(text, "g").reason


@pytest.mark.slow
def test_an_attribute_that_no_signature_has_is_told() -> None:
    text = "constraint g : parameter_bound on { n = max_pool1d|onnx.MaxPool(storage_order=A, ...) }"
    reason = not_made(f"{text} require A == 0", "g").reason
    assert reason == "no signature of max_pool1d has the attribute storage_order"


def test_what_a_sum_over_operands_says_is_read() -> None:
    text = BOARD + (
        "constraint all : resource on { n = concat(...) }"
        " require sum{ T.bytes : input(n, _, T) } + n.bytes <= device(dram_bytes)\n"
    )
    found = made(text, "all")
    assert sum(prod(extents) * 16 for extents in shapes(found).values()) * 2 > 4_294_967_296


@pytest.mark.parametrize("name", ["low", "high"])
def test_valid_models_match_the_guard_and_are_valid(name: str) -> None:
    found = modeller(TWO).valid(name, Random(1))
    assert isinstance(found, Made) and is_valid(found)
    ((extent,),) = shapes(found).values()
    assert 10 <= extent <= 20


def test_the_same_generator_state_gives_the_same_model() -> None:
    first, second = modeller(SUB), modeller(SUB)
    for seed in range(3):
        a, b = (m.violating("fits", Random(seed), seed) for m in (first, second))
        assert isinstance(a, Made) and isinstance(b, Made) and a.model == b.model


def test_a_model_is_judged_as_it_is_read_again() -> None:
    """ONNX has no Relu of integers before opset 14; a model that says it otherwise is none."""
    text = "constraint t : data_representation on { n = relu(x) } require x.dtype != int64"
    for seed in range(4):
        found = made(text, "t", seed=seed)
        assert "relu" in {node.op for node in read_model(found.model).nodes}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_constraint_that_ships_can_be_violated_and_kept() -> None:
    rules = load_rules([data_path("rules/constraints"), data_path("rules/hardware")])
    board = device(rules, "board_4gib")
    anyones = {n: c for n, c in rules.constraints.items() if not c.meta.get("target")}
    for number, (name, constraint) in enumerate(rules.constraints.items()):
        maker = Modeller(rules, {**anyones, name: constraint}, board)
        violating = maker.violating(name, Random(number))
        assert isinstance(violating, Made), f"{name}: {violating}"
        assert name in violating.violated
        valid = maker.valid(name, Random(number))
        assert isinstance(valid, Made) and is_valid(valid), f"{name}: {valid}"


def test_what_onnx_itself_refuses_is_no_valid_model() -> None:
    text = (
        "op onnx.BitShift(x: T[...], y: T[...]) -> T[...] {\n"
        '    category bits\n    attr direction: sym in {"SIDEWAYS"}\n    where T in {uint8}\n}\n'
        "constraint c : cardinality on { n = onnx.BitShift(...) } require arity(n) == 2\n"
    )
    told = modeller(text).valid("c", Random(0))
    assert isinstance(told, NotMade)


@pytest.mark.slow
def test_a_compiler_of_another_language_is_given_models_that_signatures_accept() -> None:
    text = BOARD + (
        "constraint two : cardinality on { n = add(...) } require arity(n) == 2\n"
        "constraint fits : resource on { n = add(x, _) } require x.bytes <= device(dram_bytes)\n"
    )
    rules = load_text(text)
    maker = Modeller(rules, rules.constraints, device(rules, None), typed_only=True)
    assert isinstance(maker.violating("two", Random(0)), NotMade)
    found = maker.violating("fits", Random(0))
    assert isinstance(found, Made) and found.kind is Kind.TYPED


WORDS = {
    "detect_negative": "n = is_inf(x) } require n.detect_negative == true",
    "detect_positive": "n = is_inf(x) } require n.detect_positive == true",
    "mode": "n = resize(x, ...) } require n.mode == linear",
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("seed", range(3))
def test_attributes_that_are_no_numbers_are_violated_and_kept_too(name: str, seed: int) -> None:
    text = "".join(
        f"constraint c_{key} : parameter_bound on {{ {rule}\n" for key, rule in WORDS.items()
    )
    maker = modeller(text)
    bad, good = (
        maker.violating(f"c_{name}", Random(seed)),
        maker.valid(f"c_{name}", Random(seed)),
    )
    assert isinstance(bad, Made) and bad.violated == {f"c_{name}"}
    assert isinstance(good, Made) and good.violated == frozenset()


@pytest.mark.parametrize("operator, most", [("topk", 2), ("split", 3), ("relu", 1)])
def test_too_many_results_are_that_many_in_the_file(operator: str, most: int) -> None:
    text = f"constraint c : cardinality on {{ n = {operator}(...) }} require results(n) <= {most}\n"
    maker = modeller(text)
    seen = 0
    for seed in range(4):
        found = maker.violating("c", Random(seed), seed)
        if isinstance(found, Made):
            seen += 1
            assert len(proto(found).graph.node[0].output) > most
    assert seen


@pytest.mark.parametrize("turn", range(6))
def test_operands_and_results_in_the_file_are_those_that_were_judged(turn: int) -> None:
    for operator in ("add", "topk", "split", "conv2d"):
        text = f"constraint c : cardinality on {{ n = {operator}(...) }} require arity(n) == 9\n"
        found = modeller(text).violating("c", Random(turn), turn)
        if isinstance(found, Made) and found.kind is Kind.RESHAPED:
            (node,) = (n for n in found.graph.nodes if n.op == operator)
            (written,) = (n for n in proto(found).graph.node if n.name == node.name)
            assert len(written.output) >= len(node.outputs)
            for name, tensor in zip(written.output, node.outputs, strict=False):
                assert tensor is None or name == tensor.name


def test_a_declared_type_that_contradicts_the_operator_is_found() -> None:
    found = made(
        "constraint c : data_representation on { n = abs(x) } require n.dtype == x.dtype\n", "c"
    )
    (result,) = proto(found).graph.output
    (source,) = proto(found).graph.input
    assert result.type.tensor_type.elem_type != source.type.tensor_type.elem_type


@pytest.mark.parametrize("seed", range(3))
def test_a_results_type_is_found_though_its_shape_is_not_known(seed: int) -> None:
    text = (
        "op onnx.AffineGrid(theta: T1[...], size: T2[...]) -> T1[...] {\n"
        "  category mined\n  where T1 in {float32, float64}, T2 in {int64}\n}\n"
        "constraint known : data_representation on { n = onnx.AffineGrid(x, ...) }"
        " require x.dtype in {float32, float64}\n"
        "constraint equal : data_representation on { n = onnx.AffineGrid(x, ...) }"
        " require n.dtype == x.dtype\n"
    )
    found = made(text, "known", 1, seed)
    assert found.violated == {"known"}
