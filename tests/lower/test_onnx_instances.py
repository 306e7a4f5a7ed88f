"""Every random application of every operator, at several opsets, before ONNX's own checks."""

from __future__ import annotations

import onnx
import pytest

from reprise.lower.lowering import lowering
from reprise.lower.onnx import DEFAULT_OPSET, OnnxLowering, to_onnx
from reprise.lower.onnx.spec import NEWEST, OLDEST
from reprise.lower.onnx.tables import CONTROL, FORMS
from reprise.uir.graph import TensorType
from tests.lower.onnx_models import check, graph_of, inferred, instances, lowered, signatures
from tests.solve.crosscheck import agree

OPSETS = (13, 15, 18, 21, NEWEST)

NEEDS_NEWER = {
    13: {"bernoulli", "grid_sample"},
    15: {"grid_sample"},
    18: set(),
    21: set(),
}
for _opset in (13, 15):
    NEEDS_NEWER[_opset] |= {"bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"}
for _opset in (13, 15, 18, 21):
    NEEDS_NEWER[_opset] |= {"bitcast"}
"""Operators that an opset has no way to write at all."""


def verify(op: str, count: int, opset: int) -> int:
    """Check ``count`` random applications that can be lowered (or as many as there are)."""
    done = 0
    for instance, typing, model in lowered(op, count, opset, "checked "):
        where = f"{op} at opset {opset}: {instance}"
        check(model)
        for ours, theirs in zip(typing.outputs, inferred(model), strict=True):
            assert agree(ours, theirs), f"{where}: {ours} here, {theirs} there"
        done += 1
    return done


@pytest.mark.slow
def test_every_operator_has_a_form():
    assert FORMS.keys() | CONTROL.keys() == set(signatures())
    assert not FORMS.keys() & CONTROL.keys()


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(FORMS))
def test_onnx_accepts_every_instance_with_our_types(op):
    assert verify(op, 10, DEFAULT_OPSET) or op in NEEDS_NEWER[DEFAULT_OPSET]
    assert verify(op, 10, NEWEST)


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
def test_onnx_accepts_thousands_of_instances(opset):
    for op in sorted(FORMS):
        assert verify(op, 60, opset) or op in NEEDS_NEWER[opset], op


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 15, 18])
def test_older_opsets_have_the_operators_that_they_can_have(opset):
    assert {op for op in FORMS if not verify(op, 5, opset)} == NEEDS_NEWER[opset]


def test_reasons_name_what_is_missing():
    lowering = OnnxLowering(13)
    reasons = {
        op: {
            lowering.unsupported(op, instance.operands, typing.attributes)
            for instance, typing in instances(op, 40)
        }
        for op in ("bitwise_and", "bernoulli", "elu", "batch_norm")
    }
    assert reasons["bitwise_and"] == {"ONNX has BitwiseAnd from opset 18 on"}
    assert reasons["bernoulli"] == {"ONNX has Bernoulli from opset 15 on"}
    assert "Elu takes no bfloat16 as X before opset 22" in reasons["elu"]
    assert "BatchNormalization has training_mode from opset 14 on" in reasons["batch_norm"]
    reason = OnnxLowering().unsupported("frobnicate", (), {})
    assert reason == "frobnicate is no operator that can be written in ONNX"


def test_what_is_not_known_is_a_reason_only_where_it_is_needed():
    attributes = {"axes": (0,), "axis": 0, "keepdims": False, "correction": 1}
    reasons = [
        OnnxLowering().unsupported(op, [type], attributes)
        for op in ("relu", "var")
        for type in (TensorType("float32", ("n",)), TensorType("float32", None))
    ]
    assert reasons == [None, None, *["an operand's extents are not known"] * 2]
    reason = OnnxLowering().unsupported("relu", [TensorType(None, (2,))], {})
    assert reason == "an operand's element type is not known"


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 18, 21])
def test_onnx_too_refuses_element_types_that_are_called_unsupported(opset):
    lowering, refused = OnnxLowering(opset), 0
    for op in sorted(FORMS):
        for instance, typing in instances(op, 12):
            reason = lowering.unsupported(op, instance.operands, typing.attributes)
            if reason is None or " takes no " not in reason:
                continue
            model = to_onnx(graph_of(op, instance.operands, typing), opset=opset)
            with pytest.raises((onnx.shape_inference.InferenceError, onnx.checker.ValidationError)):
                check(model)
            refused += 1
    assert refused > 20


def test_only_opsets_that_exist_can_be_asked_for():
    (instance, typing), *_ = instances("relu", 1)
    graph = graph_of("relu", instance.operands, typing)
    for opset in (OLDEST - 1, NEWEST + 1):
        with pytest.raises(ValueError, match="opset"):
            to_onnx(graph, opset=opset)
    assert onnx.defs.onnx_opset_version() == NEWEST


@pytest.mark.parametrize("op", ["var", "std"])
def test_axes_that_are_not_known_are_a_reason_not_a_fault(op):
    operands = [TensorType("float32", (2, 3)), TensorType("int64", (1,))]
    attributes = {"axes": (1,), "correction": 1, "keepdims": 1}
    unsupported = lowering("onnx").unsupported
    assert unsupported(op, operands, attributes) is None
    assert "not known" in unsupported(op, operands, {**attributes, "axes": None})
