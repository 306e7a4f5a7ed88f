"""Signatures against ONNX's strict shape inference, on random one-node models."""

from __future__ import annotations

import pytest

from tests.solve import onnx_forms
from tests.solve.crosscheck import tally_refusals, verify

ROUNDS = 12
SHAPES = frozenset({"rank", "extent", "shape"})

WIDER_THAN_ONNX = {"argmax", "argmin", "cumsum", "cumprod", "sum", "prod", "max", "min", "dropout"}
"""Operators that torch has for element types that ONNX refuses."""

UNTYPED_IN_ONNX = {"random_normal_like", "random_uniform_like", "resize", "grid_sample"}
"""Where ONNX accepts element types that its own kernels do not have."""

LENIENT = {
    "conv1d": "the bias and, with groups, channels are not looked at",
    "conv2d": "as conv1d",
    "conv3d": "as conv1d",
    "conv_transpose1d": "as conv1d",
    "conv_transpose2d": "as conv1d",
    "conv_transpose3d": "as conv1d",
    "conv_integer": "as conv1d",
    "qlinear_conv": "as conv1d; scales and zero points are not looked at",
    "qlinear_matmul": "scales and zero points are not looked at",
    "matmul_integer": "zero points are not looked at",
    "prelu": "the slope is not looked at",
    "attention": "the mask is not looked at",
    "rotary_embedding": "the caches are not looked at",
    "range": "the bounds' ranks are not looked at",
    "gather_elements": "the indices' rank is looked at only for some element types",
    "scatter_elements": "indices and updates are not looked at",
    "scatter_nd": "updates are not looked at",
    "one_hot": "the values are not looked at",
    "compress": "the condition is not looked at",
    "non_max_suppression": "scores are not looked at",
    "reverse_sequence": "lengths are not looked at",
    "split": "the sizes' sum is not looked at",
    "layer_norm": "scale and bias are not looked at",
    "rms_norm": "the scale is not looked at",
    "instance_norm": "scale and bias are not looked at",
    "group_norm": "scale and bias are not looked at",
    "batch_norm": "nothing but the first operand is looked at in full",
    "max_unpool": "the indices are not looked at",
    "quantize_linear": "scales and zero points are not looked at",
    "dequantize_linear": "scales and zero points are not looked at",
    "rnn": "only the first operand is looked at",
    "gru": "as rnn",
    "lstm": "as rnn",
    "einsum": "extents of shared indices are not compared",
    "reshape": "strings are not counted",
    "resize": "lists that do not fit the rank are let through",
    "gemm": "c is not looked at",
    "gather_nd": "batch extents that differ are let through",
    "transpose": "an empty list of axes counts as none",
}
"""Operators whose ONNX inference lets wrong operands through: what a signature refuses there is
not confirmed by it."""


def oracle(op, instance, typing):
    try:
        return onnx_forms.apply(onnx_forms.FORMS[op], instance, typing)
    except onnx_forms.NotExpressible:
        return None
    except Exception as error:
        if "unsupported type" in str(error) and op in WIDER_THAN_ONNX:
            return None
        raise


@pytest.mark.parametrize("op", sorted(onnx_forms.FORMS))
def test_result_types_are_onnxs(signatures, op):
    verify(signatures, oracle, op, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(onnx_forms.FORMS))
def test_result_types_are_onnxs_on_many_more(signatures, op):
    verify(signatures, oracle, op, 200)


@pytest.mark.parametrize("op", sorted(onnx_forms.FORMS.keys() - UNTYPED_IN_ONNX))
def test_onnx_refuses_the_same_element_types(signatures, op):
    tally, example = tally_refusals(signatures, oracle, op, ROUNDS, frozenset({"dtype"}))
    assert not tally["accepts"], example


@pytest.mark.parametrize("op", sorted(onnx_forms.FORMS.keys() - LENIENT.keys()))
def test_onnx_refuses_the_same_shapes(signatures, op):
    tally, example = tally_refusals(signatures, oracle, op, ROUNDS, SHAPES)
    assert not tally["accepts"], example
