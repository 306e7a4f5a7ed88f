"""ONNX's own operators are written as they are, at an opset that has them."""

from __future__ import annotations

import numpy as np
import onnx
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
from reprise.uir.text import parse_uir


def model(text: str) -> onnx.ModelProto:
    made = to_onnx(parse_uir(text, "test.uir", Signatures.load()))
    onnx.checker.check_model(made, full_check=True)
    return made


def test_a_name_has_its_domain() -> None:
    assert parts("onnx.Col2Im") == ("", "Col2Im")
    assert parts("ai.onnx.ml.Binarizer") == ("ai.onnx.ml", "Binarizer")
    assert is_foreign("onnx.Col2Im") and not is_foreign("relu")


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
