"""ONNX Runtime, unoptimised, loads every lowered model, or says which kernel it lacks."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from reprise.lower.onnx import DEFAULT_OPSET
from reprise.lower.onnx.tables import FORMS
from tests.lower.onnx_models import lowered, session

NO_KERNEL = re.compile(r"NOT_IMPLEMENTED|MLDataType for: tensor\(complex")

NARROWER = {
    # Windows, of opset 25; values or a mask of another type than queries: its expansion mixes them.
    "attention": r"attribute: (left|right)_window_size|\((MatMul|Add)\) bound to different types",
    "clip": r"operator \(Where\)",  # by which it replaces Clip, also before Where took bfloat16
    "hard_tanh": r"operator \(Where\)",
    "relu6": r"operator \(Where\)",
    "gru": "clip_ > 0",
    "lstm": "clip_ > 0",
    "rnn": "clip_ > 0",
    "lrn": "(alpha|beta)_ > 0|size_ % 2 == 1",
    "layer_norm": "Incompatible dimensions",  # without a kernel, a scale that broadcasts
    "lp_pool": "PoolAttributes",  # pads smaller than the kernel
    "max_unpool": "pads_",
    "resize": "UpsampleBase",  # what scales and modes go together
}
"""What ONNX and the signatures allow and ONNX Runtime refuses, kernels apart."""

ALWAYS_REFUSED = {"bitcast"}
"""Operators of which nothing is loaded at the default opset."""


def load(op: str, count: int, opset: int) -> Counter[str]:
    """How many models were loaded, and how often a kernel was missing."""
    tally: Counter[str] = Counter()
    for instance, _, model in lowered(op, count, opset, "loaded "):
        try:
            session(model)
        except Exception as error:  # ONNX Runtime raises a class of its own for each status
            text = str(error)
            if op in NARROWER and re.search(NARROWER[op], text):
                tally["narrower"] += 1
            else:
                assert NO_KERNEL.search(text), f"{op}: {text}\n{instance}"
                tally["no kernel"] += 1
        else:
            tally["loaded"] += 1
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(FORMS))
def test_every_operator_is_loaded_or_lacks_a_kernel(op):
    tally = load(op, 15, DEFAULT_OPSET)
    if not tally["loaded"] and op not in ALWAYS_REFUSED:  # it takes many element types
        tally = load(op, 150, DEFAULT_OPSET)
    assert bool(tally["loaded"]) is (op not in ALWAYS_REFUSED), tally


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 18, 26])
def test_other_opsets(opset):
    for op in sorted(FORMS):
        load(op, 15, opset)
