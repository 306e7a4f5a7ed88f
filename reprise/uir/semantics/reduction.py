"""Reductions over a list of axes, and over one axis.

Sums accumulate in the result's type, of 16-bit floats in ``float32``; integers wrap around. Over
no elements a sum is 0, a product 1, any false, all true; ``mean``, ``var`` and ``std`` are 0 / 0,
NaN; ``log_sum`` and ``log_sum_exp`` are -inf. ``max`` and ``min`` propagate NaN; their signatures
ask for one element, but over none they are the least and the greatest value of the type. Over no
*axes* every element is reduced by itself. ``mean`` and ``l2_norm`` of integers round towards 0.
``argmax`` and ``argmin`` take a NaN for the extreme, and the first (or last) of equal elements.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.elementwise import has_nan
from reprise.uir.semantics.registry import (
    FLOAT32,
    FLOAT64,
    HALVES,
    Cause,
    Causes,
    Values,
    judge,
    kernel,
)
from reprise.uir.types import numpy_dtype

add_up: Any = np.add.reduce
multiply_up: Any = np.multiply.reduce
greatest: Any = np.maximum.reduce
least: Any = np.minimum.reduce
any_of: Any = np.logical_or.reduce
all_of: Any = np.logical_and.reduce
"""``(x, axes, dtype, out, keepdims, initial)``, by position: faster, and not in the stubs."""

Axes = tuple[int, ...] | None
AXES = {1: "axes"}


def axes_of(axes: Axes, noop_with_empty_axes: bool | None) -> Axes:
    """What numpy calls them: None is all axes. An empty list that is known only at run time means
    all axes, unless the flag says otherwise."""
    if axes == () and noop_with_empty_axes is False:
        return None
    return axes


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What a result of this type is accumulated in."""
    return FLOAT32 if dtype.num in HALVES else dtype


def count(x: Values, axes: Axes) -> int:
    """How many elements are reduced into one."""
    extents = x.shape if axes is None else [x.shape[axis] for axis in axes]
    return int(np.prod(extents, dtype=np.int64))


def convert(x: Values, dtype: np.dtype[Any]) -> Values:
    """Cast, without a copy where nothing changes."""
    return x if x.dtype == dtype else x.astype(dtype)


@kernel("sum", mixed=True, runtime=AXES)
def sum_(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
    dtypes: Any,
) -> Values:
    x = convert(x, accumulator(dtypes[0]))
    return add_up(x, axes_of(axes, noop_with_empty_axes), x.dtype, None, keepdims)


@kernel("prod", mixed=True, runtime=AXES)
def prod(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
    dtypes: Any,
) -> Values:
    x = convert(x, accumulator(dtypes[0]))
    return multiply_up(x, axes_of(axes, noop_with_empty_axes), x.dtype, None, keepdims)


@kernel("mean", mixed=True, runtime=AXES)
def mean(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
    dtypes: Any,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    dtype = accumulator(dtypes[0])
    x = convert(x, FLOAT64 if dtype.kind in "iu" else dtype)
    return add_up(x, axes, x.dtype, None, keepdims) / x.dtype.type(count(x, axes))


@kernel("max", runtime=AXES)
def max_(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    if x.size:
        return greatest(x, axes, None, None, keepdims)
    return greatest(x, axes, None, None, keepdims, _end(x.dtype, -1))


@kernel("min", runtime=AXES)
def min_(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    if x.size:
        return least(x, axes, None, None, keepdims)
    return least(x, axes, None, None, keepdims, _end(x.dtype, 1))


def _end(dtype: np.dtype[Any], sign: int) -> Any:
    """The least (or greatest) value of a type."""
    if dtype.kind == "f":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    limits = np.iinfo(dtype)
    return limits.max if sign > 0 else limits.min


@kernel("l1_norm", runtime=AXES)
def l1_norm(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    return add_up(np.abs(x), axes, x.dtype, None, keepdims)


@kernel("l2_norm", mixed=True, runtime=AXES)
def l2_norm(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    x = x if x.dtype.kind == "f" else x.astype(FLOAT64)
    axes = axes_of(axes, noop_with_empty_axes)
    return np.sqrt(add_up(x * x, axes, x.dtype, None, keepdims))


@kernel("sum_square", runtime=AXES)
def sum_square(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    return add_up(x * x, axes, x.dtype, None, keepdims)


@kernel("log_sum", runtime=AXES)
def log_sum(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    axes = axes_of(axes, noop_with_empty_axes)
    return np.log(add_up(x, axes, x.dtype, None, keepdims))


@kernel("log_sum_exp", runtime=AXES)
def log_sum_exp(
    x: Values,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    noop_with_empty_axes: bool | None = None,
) -> Values:
    """The greatest element is taken out first, if it is finite."""
    axes = axes_of(axes, noop_with_empty_axes)
    top = greatest(x, axes, None, None, True, -np.inf)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(add_up(np.exp(x - top), axes, x.dtype, None, keepdims))
    return total + top.reshape(total.shape)


@kernel("var", runtime=AXES)
def var(x: Values, *, axes: Axes = None, keepdims: bool = False, correction: int = 1) -> Values:
    """A correction that exceeds the number of elements leaves 0 to divide by, as in torch."""
    elements = count(x, axes)
    middle = add_up(x, axes, x.dtype, None, True) / x.dtype.type(elements)
    squares = add_up(np.square(x - middle), axes, x.dtype, None, keepdims)
    return squares / x.dtype.type(max(elements - correction, 0))


@kernel("std", runtime=AXES)
def std(x: Values, *, axes: Axes = None, keepdims: bool = False, correction: int = 1) -> Values:
    return np.sqrt(var(x, axes=axes, keepdims=keepdims, correction=correction))


@kernel("reduce_any", runtime=AXES)
def reduce_any(x: Values, *, axes: Axes = None, keepdims: bool = False) -> Values:
    return any_of(x, axes, None, None, keepdims)


@kernel("reduce_all", runtime=AXES)
def reduce_all(x: Values, *, axes: Axes = None, keepdims: bool = False) -> Values:
    return all_of(x, axes, None, None, keepdims)


@kernel("argmax")
def argmax(
    x: Values, *, axis: int = 0, keepdims: bool = False, select_last_index: bool = False
) -> Values:
    return _position(np.argmax, x, axis, keepdims, select_last_index)


@kernel("argmin")
def argmin(
    x: Values, *, axis: int = 0, keepdims: bool = False, select_last_index: bool = False
) -> Values:
    return _position(np.argmin, x, axis, keepdims, select_last_index)


def _position(find: Any, x: Values, axis: int, keepdims: bool, last: bool) -> Values:
    if last:
        return x.shape[axis] - 1 - find(np.flip(x, axis), axis, keepdims=keepdims)
    return find(x, axis, keepdims=keepdims)


# --- what is implementation-defined --------------------------------------------------------------


@judge("argmax", "argmin")
def judge_position(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x, axis = operands[0], attributes.get("axis", 0)
    if has_nan(x):
        return {0: Cause.NAN}
    return {0: Cause.TIE} if has_ties(x, axis) else None


def has_ties(x: Values, axis: int) -> bool:
    """Whether two elements along an axis are equal."""
    ordered = np.sort(x, axis)
    before = [slice(None)] * x.ndim
    after = list(before)
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    return bool((ordered[tuple(before)] == ordered[tuple(after)]).any())


@judge("mean", "sum", "prod", "cumsum", "cumprod")
def judge_accumulation(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """A float that is summed as an integer is converted first."""
    dtype = attributes.get("dtype")
    if dtype is None or operands[0].dtype.kind not in "fV":
        return None
    return {0: Cause.CONVERSION} if outside(operands[0], numpy_dtype(dtype)) else None


def outside(x: Values, dtype: np.dtype[Any]) -> bool:
    """Whether a float, its fraction cut off, does not fit an integer type."""
    if dtype.kind not in "iu":
        return False
    limits = np.iinfo(dtype)
    low, high = float(limits.min) - 1.0, float(limits.max) + 1.0
    wide = x.astype(FLOAT64)
    if float(limits.min) - 1.0 == float(limits.min):  # 64 bits: the bound itself is a float
        return not bool(((wide >= float(limits.min)) & (wide < high)).all())
    return not bool(((wide > low) & (wide < high)).all())
