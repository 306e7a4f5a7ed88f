"""ONNX's own operators are written as they are, at an opset that has them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from reprise.facts.onnx_apply import (
    BEFORE,
    OnnxResults,
    is_foreign,
    links,
    opset_of,
    parts,
    steps_of,
    versions_of,
)
from reprise.lower.onnx import LOWERING, to_onnx
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import SignatureError
from reprise.uir.text import parse_uir


def model(text: str) -> onnx.ModelProto:
    made = to_onnx(parse_uir(text, "test.uir", Signatures.load()))
    onnx.checker.check_model(made, full_check=True)
    return made


def test_a_name_has_its_domain() -> None:
    assert parts("onnx.Col2Im") == ("", "Col2Im")
    assert parts("ai.onnx.ml.Binarizer") == ("ai.onnx.ml", "Binarizer")
    assert is_foreign("onnx.Col2Im") and not is_foreign("relu")


@pytest.mark.slow
def test_an_attribute_with_the_name_of_an_operand_is_stored() -> None:
    made = model(
        "x: float32[2, 6]\ny: float32[4, 4] = onnx.CenterCropPad(x, shape=[4, 4])\noutput y\n"
    )
    (node,) = made.graph.node
    (stored,) = made.graph.initializer
    assert node.op_type == "CenterCropPad" and list(node.input) == ["x", stored.name]
    assert onnx.numpy_helper.to_array(stored).tolist() == [4, 4]
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    (y,) = ReferenceEvaluator(made).run(None, {"x": x})
    assert y[1:3].tolist() == x[:, 1:5].tolist() and not y[[0, 3]].any()


def test_an_operator_of_another_domain_has_its_import() -> None:
    made = model(
        "x: float32[3]\ny: float32[3] = ai.onnx.ml.Binarizer(x, threshold=0.5)\noutput y\n"
    )
    assert {entry.domain for entry in made.opset_import} == {"", "ai.onnx.ml"}
    x = np.array([0.0, 0.5, 1.0], np.float32)
    assert ReferenceEvaluator(made).run(None, {"x": x})[0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.slow
def test_a_younger_operator_raises_the_opset_of_its_model_alone() -> None:
    text = "x: float32[3]\ny = relu(x)\nz: float32[3] = onnx.SwiGLU(y, x, alpha=1.0)\noutput z\n"
    assert model(text).opset_import[0].version == 28 == opset_of(["onnx.SwiGLU"])
    assert model("x: float32[3]\ny = relu(x)\n").opset_import[0].version == 21


def test_an_element_type_is_written_by_its_number() -> None:
    made = model("w: float64[4] = onnx.HannWindow(size=4, output_datatype=float64)\noutput w\n")
    written = {a.name: a.i for a in made.graph.node[0].attribute}
    assert written["output_datatype"] == onnx.TensorProto.DOUBLE


def test_what_onnx_does_not_have_is_declined() -> None:
    x = TensorType("float32", (3,))
    assert LOWERING.unsupported("onnx.NoSuchOperator", [x], {}) is not None
    assert LOWERING.unsupported("onnx.Upsample", [x], {}) is not None  # deprecated
    assert LOWERING.unsupported("onnx.SwiGLU", [x, x], {"alpha": 1.0}) is None
    integers = TensorType("int8", (3,))
    reason = LOWERING.unsupported("onnx.SwiGLU", [integers, integers], {})
    assert reason is not None and "int8" in reason


def test_results_hold_at_every_later_version_of_an_operator() -> None:
    assert len(versions_of("onnx.NegativeLogLikelihoodLoss")) == 2  # opset 22 defines it anew
    scores, labels = TensorType("float32", (2, 3)), TensorType("int64", (2,))
    answer = OnnxResults()(
        "onnx.NegativeLogLikelihoodLoss", [scores, labels], {"reduction": "none"}
    )
    assert answer == [TensorType("float32", (2,))]


def test_a_chain_is_several_nodes_of_which_the_last_has_the_result() -> None:
    made = model(
        "x: float32[2, 3]\ny: float32[2, 3]\n"
        "z: float32[2, 3] = onnx.SequenceConstruct_SequenceAt(x, y, position=1)\noutput z\n"
    )
    assert [node.op_type for node in made.graph.node] == ["SequenceConstruct", "SequenceAt"]
    first, last = made.graph.node
    assert list(first.input) == ["x", "y"] and last.input[0] == first.output[0]
    values = [np.full((2, 3), number, np.float32) for number in (1, 2)]
    (z,) = ReferenceEvaluator(made).run(None, {"x": values[0], "y": values[1]})
    assert (z == 2).all()


def test_the_last_operands_of_a_chain_are_those_of_its_later_nodes() -> None:
    x = TensorType("float32", (2,))
    steps = steps_of("onnx.SequenceConstruct_SequenceInsert", 3, {"position": 0}, 21)
    assert steps is not None
    construct, insert = steps
    assert construct.operands == (0, 1)
    assert insert.operands[:2] == (BEFORE, 2)
    op = "onnx.SplitToSequence_SequenceAt"
    answer = OnnxResults()(op, [TensorType("float32", (4, 3))], {"split": 2, "position": 1})
    assert answer == [TensorType("float32", (2, 3))]
    assert LOWERING.unsupported("onnx.SequenceConstruct_NoSuchOperator", [x], {}) is not None
    assert links("onnx.Relu") == ("onnx.Relu",)
    assert links("com.example.Foo_Bar") == ("com.example.Foo_Bar",)


def test_a_graph_is_text_and_reads_operands_from_outside() -> None:
    made = model(
        "c: bool[]\nx: float32[2]\ny: float32[2]\n"
        'z: float32[2] = onnx.If(c, x, y, then_branch="() => (t) { u = Neg(x1) t = Add(u, x2) }", '
        'else_branch="() => (t) { t = Mul(x1, x2) }")\noutput z\n'
    )
    (node,) = made.graph.node
    assert list(node.input) == ["c"] and {a.name for a in node.attribute} == {
        "then_branch",
        "else_branch",
    }
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 5.0], np.float32)
    for condition, expected in ((True, [2.0, 3.0]), (False, [3.0, 10.0])):
        (z,) = ReferenceEvaluator(made).run(None, {"c": np.array(condition), "x": x, "y": y})
        assert z.tolist() == expected


def test_names_inside_a_graph_are_different_in_every_node() -> None:
    scan = (
        "{0}: float32[2], {1}: float32[3, 2] = onnx.Scan(s, xs, num_scan_inputs=1, "
        'body="(a, b) => (t, o) {{ t = Add(a, b) o = Neg(t) }}")\n'
    )
    made = model(
        "s: float32[2]\nxs: float32[3, 2]\n"
        + scan.format("p", "q")
        + scan.format("t", "o")
        + "output q\noutput o\n"
    )
    xs = np.arange(6, dtype=np.float32).reshape(3, 2)
    given = {"s": np.ones(2, np.float32), "xs": xs}
    results = ReferenceEvaluator(made).run(["q", "o"], given)
    assert all((r == -(1 + xs.cumsum(0))).all() for r in results)


def test_a_tensor_attribute_is_text_too() -> None:
    made = model(
        "x: int64[4]\ny: float32[4] = ai.onnx.ml.LabelEncoder(x, "
        'keys_tensor="int64[2] {1, 3}", values_tensor="float[2] {0.5, 2.0}", '
        'default_tensor="float[1] {-1.0}")\noutput y\n'
    )
    (y,) = ReferenceEvaluator(made).run(None, {"x": np.array([3, 1, 0, 3])})
    assert y.tolist() == [2.0, 0.5, -1.0, 2.0]


def test_a_text_that_cannot_be_read_is_declined_with_a_reason() -> None:
    types = [TensorType("bool", ()), TensorType("float32", (3,))]

    def reason(then_branch: str) -> str:
        words = {"then_branch": then_branch, "else_branch": "() => (t) { t = Neg(x1) }"}
        declined = LOWERING.unsupported("onnx.If", types, words)
        assert declined is not None
        return declined

    assert "then_branch is no graph" in reason("() => (t) { t = }")
    assert "then_branch is no graph" in reason("() => (t) { t = Neg(x1) }, other: int = 3")
    assert "no operand x5, which its then_branch reads" in reason("() => (t) { t = Neg(x5) }")
    scan = {"num_scan_inputs": 1, "body": "(a, b) => (t) { t = Pow(a) }"}
    operands = [TensorType("float32", (2,)), TensorType("float32", (3, 2))]
    with pytest.raises(SignatureError):
        OnnxResults()("onnx.Scan", operands, scan)


def test_an_operator_of_any_number_of_results_has_those_that_are_asked_for() -> None:
    made = model(
        "r: float32[]\nt: int64[]\nx: float64[2]\n"
        "a: float64[2], b: float64[2] = ai.onnx.preview.training.Momentum("
        'r, t, x, x, x, alpha=0.5, beta=0.5, mode="standard", norm_coefficient=0.0)\n'
        "output a\noutput b\n"
    )
    (node,) = made.graph.node
    assert list(node.output) == ["a", "b"]


def test_operators_of_machine_learning_make_chains_too() -> None:
    made = model(
        "x: int64[3]\ny: int64[3] = ai.onnx.ml.CategoryMapper_CategoryMapper("
        'x, cats_int64s=[1, 2], cats_strings=["a", "b"], default_int64=-1, default_string="c")\n'
        "output y\n"
    )
    assert [n.op_type for n in made.graph.node] == ["CategoryMapper"] * 2
