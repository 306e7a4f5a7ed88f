"""Numbers as small integers (or small floats) times a scale, and arithmetic on them.

Quotients round halves to even and saturate at the ends of the integer type; NaN becomes 0. Whether
a quotient that is close to a half rounds up or down depends on the last bit: such elements may
differ by one step. Scales and zero points are one, one for each position of ``axis``, or one for
each block of ``block_size`` positions.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from reprise.uir.semantics.convolution import along_channels, convolve
from reprise.uir.semantics.creation import eight_bits
from reprise.uir.semantics.registry import (
    FLOAT32,
    FLOAT64,
    Cause,
    Causes,
    Values,
    judge,
    kernel,
)
from reprise.uir.semantics.windows import Ints
from reprise.uir.types import numpy_dtype

INT32 = np.dtype(np.int32)
_limits: Any = ml_dtypes.iinfo
_SMALLEST_FLOAT = np.dtype(ml_dtypes.float4_e2m1fn)
_INTEGERS = {
    np.dtype(t): (int(_limits(t).min), int(_limits(t).max))
    for t in (
        np.int8, np.uint8, np.int16, np.uint16,
        ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2,
    )
}  # fmt: skip


def _laid_out(value: Values, x: Values, axis: int, block_size: int) -> Values:
    """A scale or zero point, to be broadcast against x."""
    if value.size == 1 and not (block_size and value.ndim):
        return value.reshape(())
    if block_size:
        repeated = np.repeat(value, block_size, axis)
        return np.take(repeated, range(x.shape[axis]), axis)
    shape = [1] * x.ndim
    shape[axis] = value.size
    return value.reshape(shape)


def _saturated(x: Values, zero: Values | int, to: np.dtype[Any]) -> Values:
    """A quotient rounded, its zero point added, as an integer of the type."""
    low, high = _INTEGERS[to]
    made = np.clip(np.rint(x) + zero, low, high)
    return np.where(np.isnan(made), 0, made).astype(np.int32).astype(to)


@kernel("quantize_linear")
def quantize_linear(
    x: Values,
    scale: Values,
    zero_point: Values | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    saturate: bool = True,
    precision: str | None = None,
    dtypes: Any,
) -> Values:
    to = dtypes[0]
    scale = _laid_out(scale, x, axis, block_size)
    if precision is not None:
        wide = numpy_dtype(precision)
        x, scale = x.astype(wide), scale.astype(wide)
    elif x.dtype.kind != "f":
        x = x.astype(scale.dtype if scale.dtype.kind == "f" else FLOAT32)
    quotient = x / scale.astype(x.dtype)
    if to in _INTEGERS:
        zero: Any = 0
        if zero_point is not None:
            zero = _laid_out(zero_point, x, axis, block_size).astype(INT32)
        return _saturated(quotient.astype(FLOAT64), zero, to)
    if to == _SMALLEST_FLOAT:
        return quotient.astype(FLOAT32).astype(to)
    return eight_bits(quotient, to, saturate)


@kernel("dequantize_linear", mixed=True)
def dequantize_linear(
    x: Values,
    scale: Values,
    zero_point: Values | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
) -> Values:
    wide = scale.dtype if scale.dtype.kind == "f" else FLOAT32
    made = x.astype(FLOAT64) if x.dtype.kind in "iu" else x.astype(wide)
    if zero_point is not None:
        made = made - _laid_out(zero_point, x, axis, block_size).astype(made.dtype)
    return made.astype(wide) * _laid_out(scale, x, axis, block_size)


@kernel("dynamic_quantize_linear", mixed=True)
def dynamic_quantize_linear(x: Values) -> tuple[Values, Values, Values]:
    """An empty or constantly zero operand has scale 1 / 255, as ONNX's formula gives it."""
    low = np.minimum(np.min(x, initial=np.inf), 0)
    high = np.maximum(np.max(x, initial=-np.inf), 0)
    span = high - low
    scale = (span if span != 0 else x.dtype.type(1)) / x.dtype.type(255)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    zero = np.where(np.isnan(zero), 0, zero)
    y = _saturated(x / scale, zero, np.dtype(np.uint8))
    return y, np.asarray(scale), zero.astype(np.uint8)


def _less_zero(x: Values, zero: Values | None, axis: int) -> Values:
    """An operand in 32 bits, less its zero point (one, or one for each position of ``axis``)."""
    made = x.astype(INT32)
    if zero is None:
        return made
    wide = zero.astype(INT32)
    return made - _per_axis(wide, x, axis)


def _per_axis(value: Values, x: Values, axis: int) -> Values:
    if value.size == 1:
        return value.reshape(())
    if value.ndim != 1:
        return value
    shape = [1] * x.ndim
    shape[axis] = value.size
    return value.reshape(shape)


@kernel("matmul_integer")
def matmul_integer(
    a: Values, b: Values, a_zero: Values | None = None, b_zero: Values | None = None
) -> Values:
    """Zero points hold for each row of a and each column of b."""
    return np.matmul(_less_zero(a, a_zero, max(a.ndim - 2, 0)), _less_zero(b, b_zero, b.ndim - 1))


@kernel("qlinear_matmul")
def qlinear_matmul(
    a: Values,
    a_scale: Values,
    a_zero: Values,
    b: Values,
    b_scale: Values,
    b_zero: Values,
    y_scale: Values,
    y_zero: Values,
    *,
    dtypes: Any,
) -> Values:
    product = matmul_integer(a, b, a_zero, b_zero)
    columns = product.ndim - 1
    rows = max(columns - 1, 0)
    factor = _per_axis(a_scale.astype(FLOAT64), product, rows)
    factor = factor * _per_axis(b_scale.astype(FLOAT64), product, columns)
    factor = factor / _per_axis(y_scale.astype(FLOAT64), product, rows)
    zero = _per_axis(y_zero.astype(INT32), product, rows)
    return _saturated(product * factor, zero, dtypes[0])


@kernel("conv_integer")
def conv_integer(
    x: Values,
    w: Values,
    x_zero: Values | None = None,
    w_zero: Values | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    groups: int = 1,
) -> Values:
    """The padding holds x's zero point: 0 once that is taken off."""
    rank = x.ndim - 2
    return convolve(
        _less_zero(x, x_zero, 1),
        _less_zero(w, w_zero, 0),
        strides or (1,) * rank,
        pads or (0,) * 2 * rank,
        dilations or (1,) * rank,
        groups,
    )


@kernel("qlinear_conv")
def qlinear_conv(
    x: Values,
    x_scale: Values,
    x_zero: Values,
    w: Values,
    w_scale: Values,
    w_zero: Values,
    y_scale: Values,
    y_zero: Values,
    b: Values | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    groups: int = 1,
    dtypes: Any,
) -> Values:
    total = conv_integer(
        x, w, x_zero, w_zero, strides=strides, pads=pads, dilations=dilations, groups=groups
    )
    if b is not None:
        total = total + along_channels(b, x.ndim - 2)
    factor = _per_axis(w_scale.astype(FLOAT64), total, 1) * x_scale.astype(FLOAT64).reshape(())
    factor = factor / _per_axis(y_scale.astype(FLOAT64), total, 1)
    return _saturated(total * factor, _per_axis(y_zero.astype(INT32), total, 1), dtypes[0])


# --- what is implementation-defined --------------------------------------------------------------


_LAST_BIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}


@judge("quantize_linear")
def judge_quantization(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """Quotients that are no numbers, or so close to a half that their last bit decides."""
    x, scale = operands[0], operands[1]
    if x.dtype.kind in "fV" and not np.isfinite(x.astype(FLOAT32)).all():
        return {0: Cause.CONVERSION}
    laid_out = _laid_out(scale, x, attributes.get("axis", 1), attributes.get("block_size", 0))
    quotient = x.astype(FLOAT64) / laid_out.astype(FLOAT64)
    if not np.isfinite(quotient).all():
        return {0: Cause.CONVERSION}
    names = {str(x.dtype), str(scale.dtype), attributes.get("precision")}
    last_bit = max(_LAST_BIT.get(str(name), 2.0**-23) for name in names)
    return {0: Cause.ROUNDING} if near_half(quotient, last_bit) else None


@judge("dynamic_quantize_linear")
def judge_dynamic(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x = operands[0]
    if not np.isfinite(x).all():
        return dict.fromkeys(range(3), Cause.CONVERSION)
    _, scale, _ = dynamic_quantize_linear(x.astype(FLOAT64))
    low = min(float(np.min(x, initial=0)), 0.0)
    if near_half(np.asarray(low / scale), 2.0**-22):
        return {0: Cause.ROUNDING, 2: Cause.ROUNDING}
    return {0: Cause.ROUNDING} if near_half(x / scale, 2.0**-22) else None


def near_half(quotient: Values, last_bit: float) -> bool:
    """Whether a rounding error may decide how some quotient is rounded; exact halves count."""
    off = np.abs(np.abs(quotient - np.rint(quotient)) - 0.5)
    return bool((off <= 2 * last_bit * np.maximum(np.abs(quotient), 1)).any())


@judge("qlinear_matmul", "qlinear_conv")
def judge_requantization(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """Requantised sums close to a half. (Exact ones are common: scales are often powers of 2.)"""
    if len(operands) == 8 and "groups" not in attributes:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, _ = operands
        total = matmul_integer(a, b, a_zero, b_zero)
        factor = _per_axis(a_scale.astype(FLOAT64), total, max(total.ndim - 2, 0))
        factor = factor * _per_axis(b_scale.astype(FLOAT64), total, total.ndim - 1)
        scales = (a_scale, y_scale)
    else:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale = operands[:7]
        names = ("strides", "pads", "dilations", "groups")
        given = {name: attributes[name] for name in names if name in attributes}
        total = conv_integer(x, w, x_zero, w_zero, **given)
        if len(operands) > 8 and operands[8] is not None:
            total = total + along_channels(operands[8], x.ndim - 2)
        factor = _per_axis(w_scale.astype(FLOAT64), total, 1)
        factor = factor * x_scale.astype(FLOAT64).reshape(())
        scales = (x_scale, y_scale)
    factor = factor / y_scale.astype(FLOAT64).reshape(())
    last_bit = max(_LAST_BIT.get(str(scale.dtype), 2.0**-23) for scale in scales)
    return {0: Cause.ROUNDING} if near_half(total * factor, 4 * last_bit) else None
