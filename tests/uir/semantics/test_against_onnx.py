"""Kernels against ONNX's reference evaluator, on random applications of their signatures."""

from __future__ import annotations

import pytest

from reprise.uir.semantics import UNDEFINED
from tests.uir.semantics import onnx_values
from tests.uir.semantics.crosscheck import compare
from tests.uir.semantics.differences import ONNX

NOT_IN_THE_REFERENCE = {
    "global_lp_pool": "has no implementation; see test_conventions",
    "lrn": "refuses most shapes; see test_against_torch and the node tests",
}
"""Operators of which too few applications can be compared."""

OPERATORS = sorted(onnx_values.FORMS.keys() - UNDEFINED.keys() - NOT_IN_THE_REFERENCE.keys())


def reference(op, operands, instance, typing):
    try:
        return onnx_values.apply(op, operands, instance, typing)
    except onnx_values.NotExpressible:
        return None
    except Exception:  # it raises on many types and shapes; enough applications remain
        return None


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_values_are_onnxs(signatures, op):
    tally = compare(signatures, op, reference, ONNX, wanted=6, tries=120)
    assert tally["agree"] == 6, tally


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_values_are_onnxs_on_many_more(signatures, op):
    tally = compare(signatures, op, reference, ONNX, wanted=40, tries=200)
    assert tally["agree"] >= 20, tally
