"""Element-wise functions of one operand: exponentials, roots, trigonometry, rounding, predicates.

``round`` rounds halves to even. ``sign`` of NaN is NaN (torch: 0). ``clip`` applies the lower
bound, then the upper one, so that the upper one wins where they cross; NaN stays NaN. The magnitude
and the negative of the least integer are itself.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf, erfc
from typing import Any

import numpy as np

from reprise.uir.semantics.registry import FLOAT64, Cause, Causes, Values, judge, kernel

kernel("exp")(np.exp)
kernel("exp2")(np.exp2)
kernel("expm1")(np.expm1)
kernel("log")(np.log)
kernel("log2")(np.log2)
kernel("log10")(np.log10)
kernel("log1p")(np.log1p)
kernel("sqrt")(np.sqrt)
kernel("sin")(np.sin)
kernel("cos")(np.cos)
kernel("tan")(np.tan)
kernel("asin")(np.arcsin)
kernel("acos")(np.arccos)
kernel("atan")(np.arctan)
kernel("sinh")(np.sinh)
kernel("cosh")(np.cosh)
kernel("asinh")(np.arcsinh)
kernel("acosh")(np.arccosh)
kernel("atanh")(np.arctanh)
kernel("ceil")(np.ceil)
kernel("floor")(np.floor)
kernel("round")(np.rint)
kernel("trunc")(np.trunc)
kernel("reciprocal")(np.reciprocal)
kernel("abs")(np.absolute)
kernel("neg")(np.negative)
kernel("sign")(np.sign)
kernel("square")(np.square)
kernel("is_nan")(np.isnan)
kernel("is_finite")(np.isfinite)


@kernel("rsqrt")
def rsqrt(x: Values) -> Values:
    return np.reciprocal(np.sqrt(x))


@kernel("erf")
def error_function(x: Values) -> Values:
    """Computed in double precision by the C library, then rounded."""
    return _each(erf, x)


def complementary_error_function(x: Values) -> Values:
    """1 - erf(x), without cancellation."""
    return _each(erfc, x)


def _each(function: Any, x: Values) -> Values:
    values = [function(value) for value in x.ravel().tolist()]
    return np.array(values, FLOAT64).reshape(x.shape).astype(x.dtype)


@kernel("clip", runtime={1: "min", 2: "max"})
def clip(x: Values, *, min: float | None = None, max: float | None = None) -> Values:
    if min is not None:
        x = np.maximum(x, _bound(min, x))
    if max is not None:
        x = np.minimum(x, _bound(max, x))
    return x


def _bound(bound: float, x: Values) -> Values:
    """A bound in the type of x; for integers a fraction is cut and the range saturates."""
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        if bound != bound:
            bound = 0
        bound = min(max(bound, limits.min), limits.max)
        return np.array(int(bound), x.dtype)
    return np.array(bound, x.dtype)


@kernel("is_inf")
def is_inf(x: Values, *, detect_negative: bool = True, detect_positive: bool = True) -> Values:
    if detect_negative and detect_positive:
        return np.isinf(x)
    if detect_positive:
        return np.isposinf(x)
    if detect_negative:
        return np.isneginf(x)
    return np.zeros(x.shape, bool)


# --- what is implementation-defined --------------------------------------------------------------


def has_nan(x: Values | None) -> bool:
    """Whether a NaN is among the elements."""
    return (
        x is not None and (x.dtype.kind in "fc" or x.dtype.kind == "V") and bool(np.isnan(x).any())
    )


@judge(
    "sign", "clip", "relu", "relu6", "hard_tanh", "hard_sigmoid", "hard_swish", "thresholded_relu",
    "shrink", "max", "min", "global_max_pool", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip
def compares_nan(operands: Sequence[Values | None], attributes: Mapping[str, Any]) -> Causes | None:
    """ONNX does not say what a comparison with NaN chooses."""
    return {0: Cause.NAN} if has_nan(operands[0]) else None
