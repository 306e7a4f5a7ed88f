"""Kernels agree with ONNX or torch in every element type that their signatures allow."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from reprise.solve.sampling import Sampler
from reprise.uir.semantics import KERNELS
from tests.uir.semantics import onnx_values
from tests.uir.semantics.crosscheck import compare
from tests.uir.semantics.differences import ONNX, TORCH
from tests.uir.semantics.test_against_onnx import reference

pytest.importorskip("torch")

from tests.uir.semantics import torch_values
from tests.uir.semantics.test_against_torch import eager

TYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
)  # fmt: skip

NEITHER_HAS_IT = {
    ("det", "float16"),
    ("mean_variance_norm", "float16"),
    ("mean_variance_norm", "float64"),
    *(("global_lp_pool", name) for name in TYPES),
}
"""Operators and types that neither ONNX's reference nor torch computes."""


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(KERNELS))
def test_an_operator_agrees_in_every_element_type(signatures, op):
    allowed = {name for types in Sampler(signatures[op]).dtypes.values() for name in types}
    for dtype in TYPES:
        tally: Counter[str] = Counter()
        if allowed and dtype not in allowed:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if op in onnx_values.FORMS:
                tally += compare(signatures, op, reference, ONNX, 2, 200, dtype)
            if op in torch_values.FORMS:
                tally += compare(signatures, op, eager, TORCH, 2, 200, dtype)
        enough = sum(tally.values()) > 10
        assert tally["agree"] or not enough or (op, dtype) in NEITHER_HAS_IT, (dtype, tally)
