"""Signatures against torch's own shape inference, on tensors without data."""

from __future__ import annotations

import warnings

import pytest

from tests.solve.crosscheck import tally_refusals, verify

pytest.importorskip("torch")

from tests.solve import torch_forms

ROUNDS = 12
SHAPES = frozenset({"rank", "extent", "shape"})

LENIENT = {
    "conv1d": "without data, the bias is not looked at",
    "conv2d": "as conv1d",
    "conv3d": "as conv1d",
    "conv_transpose1d": "as conv1d",
    "conv_transpose2d": "as conv1d",
    "conv_transpose3d": "as conv1d",
    "rnn": "the layer makes its own weights",
    "gru": "as rnn",
    "lstm": "as rnn",
    "gather_elements": "a scalar counts as one axis",
    "scatter_elements": "as gather_elements; updates may be larger",
    "einsum": "an extent of 1 stretches",
    "linear": "the bias broadcasts",
    "gemm": "c broadcasts from more axes",
    "max_pool1d": "the batch axis may be missing",
    "max_pool2d": "as max_pool1d",
    "max_pool3d": "as max_pool1d",
    "avg_pool1d": "as max_pool1d",
    "avg_pool2d": "as max_pool1d",
    "avg_pool3d": "as max_pool1d",
    "adaptive_avg_pool1d": "any rank from 2 on",
    "adaptive_avg_pool2d": "any rank from 3 on",
    "adaptive_avg_pool3d": "any rank from 4 on",
    "adaptive_max_pool1d": "as max_pool1d",
    "adaptive_max_pool2d": "as max_pool1d",
    "adaptive_max_pool3d": "as max_pool1d",
    "depth_to_space": "any number of batch axes",
    "space_to_depth": "as depth_to_space",
    "instance_norm": "the bias is not looked at",
    "multinomial": "one distribution may have no batch axis",
    "attention": "batch axes broadcast",
}
"""Operators that torch has for more shapes, or whose operands it looks at only with data."""


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def oracle(op, instance, typing):
    try:
        return torch_forms.apply(torch_forms.FORMS[op], instance, typing)
    except torch_forms.NotExpressible:
        return None


@pytest.mark.parametrize("op", sorted(torch_forms.FORMS))
def test_result_types_are_torchs(signatures, op):
    verify(signatures, oracle, op, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(torch_forms.FORMS))
def test_result_types_are_torchs_on_many_more(signatures, op):
    verify(signatures, oracle, op, 200)


@pytest.mark.parametrize("op", sorted(torch_forms.FORMS.keys() - LENIENT.keys()))
def test_torch_refuses_the_same_shapes(signatures, op):
    tally, example = tally_refusals(signatures, oracle, op, ROUNDS, SHAPES)
    assert not tally["accepts"], example


def test_every_operator_is_verified_by_one_of_the_two(signatures):
    from tests.solve import onnx_forms

    unverified = {"if", "loop", "scan"}  # their results are what their bodies return
    covered = onnx_forms.FORMS.keys() | torch_forms.FORMS.keys()
    assert set(signatures) - covered == unverified
    assert covered <= set(signatures)
