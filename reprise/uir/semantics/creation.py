"""Tensors out of nothing or out of shapes; changes of element type.

``cast`` of a float to an integer cuts the fraction off; outside the integer's range (and for NaN)
the value is implementation-defined. To bool, everything but 0 is true, NaN too. To 8-bit floats,
``saturate`` gives the greatest finite number where the cast would overflow. Text is numpy's
shortest form. ``dropout`` is defined where it does not train: it returns its operand.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from reprise.uir.semantics.reduction import outside
from reprise.uir.semantics.registry import (
    FLOAT32,
    FLOAT64,
    Cause,
    Causes,
    UndefinedError,
    Values,
    judge,
    kernel,
)
from reprise.uir.types import numpy_dtype

_EIGHT_BITS = frozenset(
    np.dtype(t)
    for t in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)
_SMALL_INTEGERS = frozenset(
    np.dtype(t) for t in (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4)
)
_limits: Any = ml_dtypes.finfo
_SCALES = np.dtype(ml_dtypes.float8_e8m0fnu)
_TEXT = np.dtype(object)


def filled(shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> Values:
    """An array full of one value, converted as ``cast`` does."""
    return np.full(shape, np.array(value).astype(dtype), dtype)


@kernel("full", moves=True)
def full(*, shape: tuple[int, ...], value: float = 0.0, dtypes: Any) -> Values:
    return filled(shape, value, dtypes[0])


@kernel("constant_of_shape", moves=True)
def constant_of_shape(shape: Values, *, value: float = 0.0, dtypes: Any) -> Values:
    return filled(tuple(shape.tolist()), value, dtypes[0])


@kernel("arange", moves=True)
def arange(*, start: float = 0.0, end: float, step: float = 1.0, dtypes: Any) -> Values:
    """Computed as start + i * step in double precision, then rounded."""
    return _steps(start, end, step).astype(dtypes[0])


@kernel("range", moves=True)
def range_(start: Values, limit: Values, delta: Values) -> Values:
    first, last, step = start.item(), limit.item(), delta.item()
    if start.dtype.kind not in "iu":
        return _steps(first, last, step).astype(start.dtype)
    return np.array(range(first, last, step) if step else [], start.dtype)


def _steps(start: float, end: float, step: float) -> Values:
    length = np.ceil((end - start) / step) if step else 0
    if not np.isfinite(length):
        length = 0
    return start + np.arange(max(int(length), 0), dtype=FLOAT64) * step


@kernel("eye_like", moves=True)
def eye_like(x: Values, *, k: int = 0, dtypes: Any) -> Values:
    rows, columns = x.shape
    return np.eye(rows, columns, k).astype(dtypes[0])


@kernel("shape", moves=True)
def shape(x: Values, *, start: int = 0, end: int | None = None) -> Values:
    return np.array(x.shape[start:end], np.int64)


@kernel("size", moves=True)
def size(x: Values) -> Values:
    return np.array(x.size, np.int64)


@kernel("dropout", moves=True, runtime={1: "ratio", 2: "training"})
def dropout(x: Values, *, ratio: float = 0.5, training: bool = False) -> tuple[Values, Values]:
    if training and ratio:
        raise UndefinedError("dropout", "random: no generator is prescribed")
    return x, np.ones(x.shape, bool)


@kernel("cast", moves=True)
def cast(x: Values, *, saturate: bool = True, round_mode: str | None = None, dtypes: Any) -> Values:
    to = dtypes[0]
    if to == x.dtype:
        return x
    if to == _TEXT:
        return _written(x)
    if x.dtype == _TEXT:
        return _read(x, to)
    if to in _EIGHT_BITS:
        return eight_bits(x, to, saturate)
    if to == _SCALES:
        return _power_of_two(x, saturate, round_mode or "up")
    if x.dtype in _SMALL_INTEGERS:
        x = x.astype(np.int32)
    elif x.dtype.kind == "V":
        x = x.astype(FLOAT64)
    return x.astype(to)


def eight_bits(x: Values, to: np.dtype[Any], saturate: bool) -> Values:
    """Numbers as 8-bit floats; infinities saturate too."""
    x = x.astype(FLOAT64 if x.dtype.kind in "iufb" else FLOAT32)
    if saturate:
        limit = float(_limits(to).max)
        x = np.clip(x, -limit, limit)
    return x.astype(FLOAT32).astype(to)


def _power_of_two(x: Values, saturate: bool, round_mode: str) -> Values:
    """Scales: powers of two, rounded up, down or to the nearest; of 0, the least."""
    exact = np.log2(np.abs(x.astype(FLOAT64)))
    lower = np.floor(exact)
    match round_mode:
        case "up":
            exponent = np.ceil(exact)
        case "down":
            exponent = lower
        case _:
            exponent = lower + (np.abs(x.astype(FLOAT64)) / np.exp2(lower) >= 1.5)
    bits = np.where(np.isnan(exact), 255, np.clip(exponent + 127, 0, 254 if saturate else 255))
    return bits.astype(np.uint8).view(_SCALES)


def _written(x: Values) -> Values:
    narrow = x
    if x.dtype in _SMALL_INTEGERS:
        narrow = x.astype(np.int32)
    elif x.dtype.kind in "fV" and x.dtype != FLOAT64:
        narrow = x.astype(FLOAT32)
    made = np.empty(x.shape, object)
    made[...] = narrow.astype(np.str_).astype(object)
    return made


def _read(x: Values, to: np.dtype[Any]) -> Values:
    kind = int if to.kind in "iu" else float
    made = np.empty(x.shape, object)
    for place, text in np.ndenumerate(x):
        text = text.decode() if isinstance(text, bytes) else text
        try:
            made[place] = kind(text)
        except ValueError:
            made[place] = kind(float("nan") if kind is float else 0)
    return made.astype(FLOAT64 if kind is float else np.int64).astype(to)


@kernel("bitcast", moves=True)
def bitcast(x: Values, *, dtypes: Any) -> Values:
    return np.ascontiguousarray(x).view(dtypes[0]).reshape(x.shape)


# --- what is implementation-defined --------------------------------------------------------------


@judge("cast")
def judge_cast(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x, to = operands[0], numpy_dtype(attributes["to"])
    if to == x.dtype:
        return None
    if to == _TEXT or x.dtype == _TEXT:
        return {0: Cause.TEXT} if x.dtype.kind not in "iu" else None
    if x.dtype.kind in "fV" and to.kind in "iu":
        return {0: Cause.CONVERSION} if outside(x, to) else None
    return None
