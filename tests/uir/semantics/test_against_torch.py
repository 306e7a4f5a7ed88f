"""Kernels against torch eager, on random applications of their signatures."""

from __future__ import annotations

import warnings

import pytest

from reprise.uir.semantics import UNDEFINED
from tests.uir.semantics.crosscheck import compare
from tests.uir.semantics.differences import TORCH

pytest.importorskip("torch")

from tests.uir.semantics import torch_values

OPERATORS = sorted(torch_values.FORMS.keys() - UNDEFINED.keys())


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def eager(op, operands, instance, typing):
    try:
        return torch_values.apply(op, operands, dict(typing.attributes))
    except (torch_values.NotExpressible, NotImplementedError):
        return None
    except (RuntimeError, IndexError, TypeError):  # types and shapes that torch refuses
        return None


@pytest.mark.parametrize("op", OPERATORS)
def test_values_are_torchs(signatures, op):
    tally = compare(signatures, op, eager, TORCH, wanted=6, tries=200)
    assert tally["agree"] >= 5, tally


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_values_are_torchs_on_many_more(signatures, op):
    tally = compare(signatures, op, eager, TORCH, wanted=100, tries=600)
    assert tally["agree"] >= 10, tally
