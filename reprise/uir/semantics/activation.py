"""Non-linearities of neural networks.

Formulas are those of ONNX, arranged so that nothing overflows on the way to a finite result; where
a formula gives infinity times zero (``gelu``, ``mish``, ``swish``, ``hard_swish`` of -inf), the
kernel too gives NaN. Comparisons with NaN: ``relu``, ``relu6``, ``hard_tanh``, ``hard_sigmoid``
keep NaN; ``thresholded_relu`` and ``shrink`` give 0 for it, as ONNX's formula says (torch keeps
NaN).
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

import numpy as np

from reprise.uir.semantics.elementwise import complementary_error_function
from reprise.uir.semantics.registry import FLOAT64, Values, kernel

_SQRT_HALF = 0.7071067811865476
_SQRT_2_OVER_PI = 0.7978845608028654

kernel("tanh")(np.tanh)


@kernel("relu")
def relu(x: Values) -> Values:
    return np.maximum(x, 0)


@kernel("relu6")
def relu6(x: Values) -> Values:
    return np.minimum(np.maximum(x, 0), 6)


@kernel("leaky_relu")
def leaky_relu(x: Values, *, alpha: float = 0.01) -> Values:
    return np.where(x >= 0, x, alpha * x)


@kernel("prelu")
def prelu(x: Values, slope: Values) -> Values:
    return np.where(x < 0, slope * x, x)


@kernel("thresholded_relu")
def thresholded_relu(x: Values, *, alpha: float = 1.0) -> Values:
    return np.where(x > alpha, x, x.dtype.type(0))


@kernel("elu")
def elu(x: Values, *, alpha: float = 1.0) -> Values:
    return np.where(x < 0, alpha * np.expm1(x), x)


@kernel("selu")
def selu(
    x: Values, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323
) -> Values:
    return gamma * np.where(x > 0, x, alpha * np.expm1(x))


@kernel("celu")
def celu(x: Values, *, alpha: float = 1.0) -> Values:
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)


@kernel("gelu")
def gelu(x: Values, *, approximate: str = "none") -> Values:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))
    return x * (0.5 * complementary_error_function(-_SQRT_HALF * x))


@kernel("sigmoid")
def sigmoid(x: Values) -> Values:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


@kernel("log_sigmoid")
def log_sigmoid(x: Values) -> Values:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


@kernel("hard_sigmoid")
def hard_sigmoid(x: Values, *, alpha: float = 0.2, beta: float = 0.5) -> Values:
    return np.maximum(np.minimum(alpha * x + beta, 1), 0)


@kernel("hard_swish")
def hard_swish(x: Values) -> Values:
    return x * hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@kernel("hard_tanh")
def hard_tanh(x: Values, *, low: float = -1.0, high: float = 1.0) -> Values:
    return np.maximum(np.minimum(x, high), low)


@kernel("swish")
def swish(x: Values, *, alpha: float = 1.0) -> Values:
    return x * sigmoid(alpha * x)


@kernel("mish")
def mish(x: Values) -> Values:
    return x * np.tanh(softplus(x))


@kernel("softplus")
def softplus(x: Values) -> Values:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@kernel("softsign")
def softsign(x: Values) -> Values:
    return x / (1 + np.abs(x))


@kernel("shrink", mixed=True)
def shrink(x: Values, *, lambd: float = 0.5, bias: float = 0.0) -> Values:
    """Integers are shrunk as numbers (in double precision) and rounded towards 0."""
    wide = x if x.dtype.kind == "f" else x.astype(FLOAT64)
    return np.where(x < -lambd, wide + bias, np.where(x > lambd, wide - bias, 0))


@kernel("glu")
def glu(x: Values, *, axis: int = -1) -> Values:
    value, gate = np.split(x, 2, axis)
    return value * sigmoid(gate)
