"""Running totals, softmax and orders along one axis.

``softmax`` subtracts the greatest element first; a row of -inf alone gives NaN. Orders put NaN
after everything else (before, if descending), as numpy and torch do. Equal elements keep their
order in both directions, whether or not ``stable`` asks for it; ``topk`` is sorted in any case.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.elementwise import has_nan
from reprise.uir.semantics.reduction import accumulator, add_up, convert, greatest, has_ties
from reprise.uir.semantics.registry import Cause, Causes, Values, judge, kernel

_AXIS = {1: "axis"}


def softmax_along(x: Values, axis: int) -> Values:
    """exp(x) divided by its sum, along an axis."""
    powers = np.exp(x - greatest(x, axis, None, None, True, -np.inf))
    return powers / add_up(powers, axis, None, None, True)


@kernel("softmax")
def softmax(x: Values, *, axis: int = -1) -> Values:
    return softmax_along(x, axis)


@kernel("log_softmax")
def log_softmax(x: Values, *, axis: int = -1) -> Values:
    shifted = x - greatest(x, axis, None, None, True, -np.inf)
    return shifted - np.log(add_up(np.exp(shifted), axis, None, None, True))


@kernel("hardmax")
def hardmax(x: Values, *, axis: int = -1) -> Values:
    made = np.zeros_like(x)
    if x.size:
        np.put_along_axis(made, np.argmax(x, axis, keepdims=True), 1, axis)
    return made


@kernel("cumsum", mixed=True, runtime=_AXIS)
def cumsum(
    x: Values, *, axis: int, exclusive: bool = False, reverse: bool = False, dtypes: Any
) -> Values:
    return _running(np.add, x, axis, exclusive, reverse, dtypes[0])


@kernel("cumprod", mixed=True, runtime=_AXIS)
def cumprod(
    x: Values, *, axis: int, exclusive: bool = False, reverse: bool = False, dtypes: Any
) -> Values:
    return _running(np.multiply, x, axis, exclusive, reverse, dtypes[0])


def _running(
    operation: np.ufunc, x: Values, axis: int, exclusive: bool, reverse: bool, dtype: Any
) -> Values:
    """Totals along an axis; ``exclusive`` ones start with the neutral element and lack the last
    operand. A scalar is an axis of extent 1."""
    shape = x.shape
    x = convert(x, accumulator(dtype)).reshape(shape or (1,))
    if reverse:
        x = np.flip(x, axis)
    if exclusive and x.shape[axis]:
        first = np.full_like(np.take(x, [0], axis), operation.identity)
        x = np.concatenate([first, np.delete(x, -1, axis)], axis)
    made = operation.accumulate(x, axis, x.dtype)
    return (np.flip(made, axis) if reverse else made).reshape(shape)


def order_along(x: Values, axis: int, descending: bool) -> Values:
    """Where the elements in order are; equal ones stay in order."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


@kernel("topk", runtime={1: "k"})
def topk(x: Values, *, k: int, axis: int = -1, largest: bool = True) -> tuple[Values, Values]:
    indices = np.take(order_along(x, axis, largest), range(k), axis)
    return np.take_along_axis(x, indices, axis), indices


@kernel("sort")
def sort(x: Values, *, axis: int = -1, descending: bool = False) -> tuple[Values, Values]:
    indices = order_along(x, axis, descending)
    return np.take_along_axis(x, indices, axis), indices


@kernel("argsort")
def argsort(x: Values, *, axis: int = -1, descending: bool = False) -> Values:
    return order_along(x, axis, descending)


# --- what is implementation-defined --------------------------------------------------------------


@judge("hardmax")
def judge_hardmax(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    return {0: Cause.NAN} if has_nan(operands[0]) else None


@judge("sort", "topk")
def judge_order(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x = operands[0]
    if has_nan(x):
        return {0: Cause.NAN, 1: Cause.NAN}
    if attributes.get("sorted") is False:
        return {0: Cause.TIE, 1: Cause.TIE}
    tied = not attributes.get("stable") and has_ties(x, attributes.get("axis", -1))
    return {1: Cause.TIE} if tied else None


@judge("argsort")
def judge_argsort(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x = operands[0]
    if has_nan(x):
        return {0: Cause.NAN}
    tied = not attributes.get("stable") and has_ties(x, attributes.get("axis", -1))
    return {0: Cause.TIE} if tied else None
