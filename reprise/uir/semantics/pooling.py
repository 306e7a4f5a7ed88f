"""Pooling over spatial axes.

``max_pool``'s indices count through the whole operand, as ONNX's do (torch's start anew in each
channel), and never point into the padding; of equal elements the first is taken; NaN is greatest.
``avg_pool`` divides by the number of elements that a window has inside the operand, or, with
``count_include_pad``, inside the padded operand: what hangs over the end in ``ceil_mode`` never
counts. ``adaptive`` windows go from floor(i n / m) up to ceil((i + 1) n / m).
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.elementwise import has_nan
from reprise.uir.semantics.registry import Cause, Causes, Values, judge, kernel
from reprise.uir.semantics.windows import Ints, ceiling_pads, padded, windows


def _room(
    x: Values, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints, ceil_mode: bool
) -> tuple[Ints, Ints]:
    """``pads`` with what ``ceil_mode`` adds at the ends, and that alone (as pads)."""
    if not ceil_mode:
        return pads, ()
    extra = ceiling_pads(x.shape[2:], kernel, strides, pads, dilations)
    rank = len(kernel)
    ends = tuple(max(after + more, 0) for after, more in zip(pads[rank:], extra, strict=True))
    return (*pads[:rank], *ends), (*(0,) * rank, *(max(more, 0) for more in extra))


def _least(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@kernel("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    x: Values,
    *,
    kernel: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    ceil_mode: bool = False,
    storage_order: int = 0,
    dtypes: Any = (None, None),
) -> tuple[Values, ...]:
    """Indices are computed if they are asked for. ``storage_order`` 1, which only imported models
    have, counts the last axis slowest."""
    rank = len(kernel)
    pads, _ = _room(x, kernel, strides, pads, dilations, ceil_mode)
    view = windows(padded(x, pads, _least(x.dtype)), kernel, strides, dilations)
    shape = view.shape[: 2 + rank]
    if len(dtypes) == 1 and view.size:
        return (view.max(tuple(range(-rank, 0))),)
    number = np.arange(x.size).reshape(x.shape)
    if storage_order:
        spatial = tuple(range(2, x.ndim))
        backwards = (*x.shape[:2], *reversed(x.shape[2:]))
        number = number.reshape(backwards).transpose(0, 1, *reversed(spatial))
    if not view.size:
        return np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    places = windows(padded(number, pads, -1), kernel, strides, dilations).reshape(*shape, -1)
    elements = view.reshape(*shape, -1)
    best = np.argmax(elements, -1, keepdims=True)
    indices = np.take_along_axis(places, best, -1)
    if (indices < 0).any():  # an element as low as the padding: take the first one that is real
        lowest = (elements == _least(x.dtype)) & (places >= 0)
        best = np.where(indices < 0, np.argmax(lowest, -1, keepdims=True), best)
        indices = np.take_along_axis(places, best, -1)
    made = np.take_along_axis(elements, best, -1)
    return made[..., 0], indices[..., 0].astype(np.int64)


@kernel("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    x: Values,
    *,
    kernel: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Values:
    over = tuple(range(-len(kernel), 0))
    room, extra = _room(x, kernel, strides, pads, dilations, ceil_mode)
    total = windows(padded(x, room), kernel, strides, dilations).sum(over)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    counted = padded(padded(ones, pads, 1), extra) if count_include_pad else padded(ones, room)
    return total / windows(counted, kernel, strides, dilations).sum(over)


@kernel("lp_pool")
def lp_pool(
    x: Values,
    *,
    kernel: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    p: int = 2,
    ceil_mode: bool = False,
) -> Values:
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    pads, _ = _room(x, kernel, strides, pads or (0,) * 2 * rank, dilations, ceil_mode)
    view = windows(padded(np.abs(x), pads), kernel, strides, dilations)
    return _norm(view, tuple(range(-rank, 0)), p, False)


def _norm(x: Values, axes: Ints, p: int, keepdims: bool) -> Values:
    """The p-norm of magnitudes."""
    if p == 1:
        return x.sum(axes, keepdims=keepdims)
    if p == 2:
        return np.sqrt((x * x).sum(axes, keepdims=keepdims))
    return np.power(np.power(x, p).sum(axes, keepdims=keepdims), x.dtype.type(1 / p))


@kernel("global_avg_pool")
def global_avg_pool(x: Values) -> Values:
    axes = tuple(range(2, x.ndim))
    elements = int(np.prod(x.shape[2:]))
    return x.sum(axes, keepdims=True) / x.dtype.type(elements)


@kernel("global_max_pool")
def global_max_pool(x: Values) -> Values:
    return np.max(x, tuple(range(2, x.ndim)), keepdims=True, initial=_least(x.dtype))


@kernel("global_lp_pool")
def global_lp_pool(x: Values, *, p: int = 2) -> Values:
    return _norm(np.abs(x), tuple(range(2, x.ndim)), p, True)


@kernel("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(x: Values, *, output_size: Ints) -> Values:
    return _adaptive(np.mean, x, output_size)


@kernel("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(x: Values, *, output_size: Ints) -> Values:
    return _adaptive(np.max, x, output_size)


def _adaptive(reduce: Any, x: Values, output_size: Ints) -> Values:
    """Axis by axis: a window is a product of intervals."""
    for axis, wanted in enumerate(output_size, 2):
        extent = x.shape[axis]
        pieces = []
        for i in range(wanted):
            window = range(i * extent // wanted, -(-(i + 1) * extent // wanted))
            pieces.append(reduce(np.take(x, window, axis), axis, keepdims=True))
        x = np.concatenate(pieces, axis)
    return x


@kernel("max_unpool", runtime={2: "output_shape"})
def max_unpool(
    x: Values,
    indices: Values,
    *,
    kernel: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    output_shape: Ints | None = None,
) -> Values:
    """Indices count through the result that kernel, strides and pads imply; if ``output_shape`` is
    greater, that result is its beginning. Indices outside are ignored."""
    rank = len(kernel)
    strides, pads = strides or (1,) * rank, pads or (0,) * 2 * rank
    implied = [
        max((extent - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i], 0)
        for i, extent in enumerate(x.shape[2:])
    ]
    shape = (*x.shape[:2], *implied)
    flat = np.zeros(int(np.prod(shape)), x.dtype)
    valid = (indices >= 0) & (indices < flat.size)
    flat[indices[valid]] = x[valid]
    made = flat.reshape(shape)
    if output_shape is None or tuple(output_shape) == shape:
        return made
    wanted = (*shape[:2], *output_shape[2:])
    larger = np.zeros(wanted, x.dtype)
    shared = tuple(slice(0, min(a, b)) for a, b in zip(shape, wanted, strict=True))
    larger[shared] = made[shared]
    return larger


# --- what is implementation-defined --------------------------------------------------------------


@judge("max_pool1d", "max_pool2d", "max_pool3d")
def judge_max_pool(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x = operands[0]
    if has_nan(x):
        return {0: Cause.NAN, 1: Cause.NAN}
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    made, *_ = max_pool(x, **_window_attributes(attributes))
    if (made == _least(x.dtype)).any():
        return {0: Cause.EMPTY, 1: Cause.EMPTY}
    return {1: Cause.TIE} if len(np.unique(x)) < x.size else None


@judge("avg_pool1d", "avg_pool2d", "avg_pool3d")
def judge_avg_pool(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """A window may lie in the padding altogether: 0 / 0."""
    if not any(attributes.get("pads", ())) and not attributes.get("ceil_mode"):
        return None
    ones = np.ones((1, 1, *operands[0].shape[2:]), np.float32)
    made = avg_pool(ones, **_window_attributes(attributes), count_include_pad=False)
    return {0: Cause.EMPTY} if np.isnan(made).any() else None


def _window_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kernel", "strides", "pads", "dilations", "ceil_mode")
    return {name: attributes[name] for name in names if name in attributes}


@judge("max_unpool")
def judge_max_unpool(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x, indices = operands[:2]
    if (indices < 0).any():
        return {0: Cause.INDEX}
    wanted = attributes.get("output_shape")
    strides = attributes.get("strides") or (1,) * (x.ndim - 2)
    pads = attributes.get("pads") or (0,) * 2 * (x.ndim - 2)
    kernel, rank = attributes["kernel"], x.ndim - 2
    size = x.shape[0] * x.shape[1]
    for i, extent in enumerate(x.shape[2:]):
        size *= (extent - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i]
    if (indices >= size).any() or wanted is not None:
        return {0: Cause.INDEX}
    return {0: Cause.DUPLICATE} if len(np.unique(indices)) < indices.size else None
