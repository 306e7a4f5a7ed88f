"""Element-wise operators of two operands and more, which broadcast as in numpy.

Integers wrap around. ``div`` of integers rounds towards 0 (ONNX, torch's ``trunc`` mode),
``floor_div`` rounds down; ``mod`` and ``remainder`` have the sign of the divisor, ``mod`` with
``fmod`` that of the dividend. An integer divided by 0 gives 0, and leaves the remainder 0; the
least integer divided by -1 is itself: hardware and compilers differ, so this is
implementation-defined (:class:`Cause`), as are shifts by the width or more (here: 0, or -1 for a
negative number shifted right) and integer powers that overflow (here: they wrap; 0 to a negative
power is 0). ``maximum`` and ``minimum`` propagate NaN. ``floor_div`` and ``remainder`` of floats
are exact (C's ``fmod``, then corrected), as in numpy and torch; ``floor(a / b)``, which exporters
write, may differ by one.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from reprise.uir.semantics.elementwise import has_nan
from reprise.uir.semantics.registry import FLOAT64, Cause, Causes, Values, judge, kernel

kernel("add")(np.add)
kernel("sub")(np.subtract)
kernel("mul")(np.multiply)
kernel("floor_div")(np.floor_divide)
kernel("remainder")(np.remainder)
kernel("atan2")(np.arctan2)
kernel("hypot")(np.hypot)
kernel("logaddexp")(np.logaddexp)
kernel("maximum")(np.maximum)
kernel("minimum")(np.minimum)
kernel("equal")(np.equal)
kernel("not_equal")(np.not_equal)
kernel("less")(np.less)
kernel("less_equal")(np.less_equal)
kernel("greater")(np.greater)
kernel("greater_equal")(np.greater_equal)
kernel("logical_and")(np.logical_and)
kernel("logical_or")(np.logical_or)
kernel("logical_xor")(np.logical_xor)
kernel("logical_not")(np.logical_not)
kernel("bitwise_and")(np.bitwise_and)
kernel("bitwise_or")(np.bitwise_or)
kernel("bitwise_xor")(np.bitwise_xor)
kernel("bitwise_not")(np.invert)


@kernel("div")
def div(a: Values, b: Values) -> Values:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    return np.floor_divide(a - np.fmod(a, b), b)


@kernel("mod")
def mod(a: Values, b: Values, *, fmod: bool = False) -> Values:
    return np.fmod(a, b) if fmod else np.remainder(a, b)


@kernel("pow", mixed=True)
def power(a: Values, b: Values) -> Values:
    """The result has the type of a. Integers to integer powers are exact (modulo 2 to the width);
    to a negative power, the inverse rounded towards 0; an integer to a float power is computed in
    double precision and rounded towards 0."""
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.power(a, b)
    base, exponent = np.broadcast_arrays(a, b)
    if exponent.dtype.kind == "u":
        return np.power(base, exponent.astype(np.uint64).astype(a.dtype))
    whole = np.power(base, np.maximum(exponent, 0).astype(a.dtype))
    if not (exponent < 0).any():
        return whole
    odd = np.where(exponent & 1, base, 1)
    inverse = np.where(np.abs(base) == 1, odd, 0)
    return np.where(exponent < 0, inverse, whole)


@kernel("max_n")
def max_n(*xs: Values) -> Values:
    return reduce(np.maximum, xs)


@kernel("min_n")
def min_n(*xs: Values) -> Values:
    return reduce(np.minimum, xs)


@kernel("sum_n")
def sum_n(*xs: Values) -> Values:
    return reduce(np.add, xs)


@kernel("mean_n")
def mean_n(*xs: Values) -> Values:
    return reduce(np.add, xs) / len(xs)


@kernel("bit_shift")
def bit_shift(a: Values, b: Values, *, direction: str) -> Values:
    return np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)


@kernel("where", moves=True)
def where(condition: Values, x: Values, y: Values) -> Values:
    return np.where(condition, x, y)


@kernel("masked_fill", moves=True)
def masked_fill(x: Values, mask: Values, *, value: float = 0.0) -> Values:
    return np.where(mask, np.array(value).astype(x.dtype), x)


# --- what is implementation-defined --------------------------------------------------------------


def divides_badly(a: Values, b: Values) -> bool:
    """Whether integers are divided by 0, or the least by -1."""
    if (b == 0).any():
        return bool(np.broadcast(a, b).size)
    if a.dtype.kind != "i" or not (b == -1).any():
        return False
    return bool(((a == np.iinfo(a.dtype).min) & (b == -1)).any())


@judge("div", "mod")
def judge_division(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    a, b = operands
    if a.dtype.kind in "iu":
        return {0: Cause.DIVISION} if divides_badly(a, b) else None
    if not attributes.get("fmod"):
        return None
    return {0: Cause.ROUNDING} if _loses_quotient(a, b) else None


def _loses_quotient(a: Values, b: Values) -> bool:
    """Whether a quotient is finite but so large that its whole part is not exact: C's fmod is, what
    vector units compute is not."""
    size = np.abs(np.divide(a.astype(FLOAT64), b.astype(FLOAT64)))
    limit = {2: 2.0**8, 4: 2.0**22}.get(a.dtype.itemsize, 2.0**50)
    return bool(((size > limit) & np.isfinite(a) & (b != 0)).any())


@judge("floor_div", "remainder")
def judge_floor(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    a, b = operands
    if a.dtype.kind in "iu":
        return {0: Cause.DIVISION} if divides_badly(a, b) else None
    if _loses_quotient(a, b):
        return {0: Cause.ROUNDING}
    exact, rounded = np.floor_divide(a, b), np.floor(np.divide(a, b))
    differ = (exact != rounded) & ~(np.isnan(exact) & np.isnan(rounded))
    return {0: Cause.ROUNDING} if differ.any() else None


@judge("pow")
def judge_power(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    a, b = operands
    if a.dtype.kind not in "iu":
        return None
    exact = np.power(a.astype(FLOAT64), b.astype(FLOAT64))
    limit = 2.0 ** (8 * a.dtype.itemsize - 1)
    whole = b.dtype.kind in "iu"
    if whole and a.dtype.itemsize == 8 and (np.abs(exact) > 2.0**53).any():
        return {0: Cause.OVERFLOW}  # beyond what a detour through double precision keeps
    if not (np.abs(exact) < limit).all():
        return {0: Cause.OVERFLOW}
    near = np.rint(exact)
    close = (exact != near) & (np.abs(exact - near) < 1e-6 * np.maximum(np.abs(near), 1))
    return {0: Cause.ROUNDING} if not whole and close.any() else None


@judge("bit_shift")
def judge_shift(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    a, b = operands
    wide = (b >= 8 * a.dtype.itemsize) | (b < 0)
    return {0: Cause.SHIFT} if wide.any() and np.broadcast(a, b).size else None


@judge("maximum", "minimum", "max_n", "min_n")
def judge_extremes(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    if operands[0].dtype.kind in "iu":
        return None
    if any(map(has_nan, operands)):
        return {0: Cause.NAN}
    zeros = (
        [(x == 0) & np.signbit(x) for x in operands],
        [(x == 0) & ~np.signbit(x) for x in operands],
    )
    negative, positive = (reduce(np.logical_or, each) for each in zeros)
    return {0: Cause.SIGNED_ZERO} if (negative & positive).any() else None
