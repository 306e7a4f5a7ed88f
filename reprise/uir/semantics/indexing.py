"""Reading and writing at positions that are themselves data.

A negative index counts from the end. An index outside its axis is no valid program; since computed
indices may be, it has a value all the same: the nearest position when reading (0 from an empty
axis), nothing when writing, ``off_value`` in ``one_hot``. Where two updates meet one element, the
later wins, and reductions combine them all in order.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.registry import (
    FLOAT64,
    Cause,
    Causes,
    UndefinedError,
    Values,
    judge,
    kernel,
)

_COMBINE = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def positions(indices: Values, extent: int) -> Values:
    """Indices with negative ones resolved and those outside brought to the nearest end."""
    return np.clip(np.where(indices < 0, indices + extent, indices), 0, extent - 1)


def inside(indices: Values, extent: int) -> Values:
    """Which indices are on the axis."""
    return (indices >= -extent) & (indices < extent)


def nothing(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Values:
    """Zeros, or empty strings."""
    return np.full(shape, "", object) if dtype.kind == "O" else np.zeros(shape, dtype)


@kernel("gather", moves=True)
def gather(data: Values, indices: Values, *, axis: int = 0) -> Values:
    extent = data.shape[axis]
    if not extent:
        return nothing((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)
    return np.take(data, positions(indices, extent), axis)


@kernel("embedding", moves=True)
def embedding(table: Values, indices: Values) -> Values:
    return gather(table, indices, axis=0)


@kernel("gather_elements", moves=True)
def gather_elements(data: Values, indices: Values, *, axis: int = 0) -> Values:
    if not data.size or not indices.size:
        return nothing(indices.shape, data.dtype)
    return data[_elements(data, positions(indices, data.shape[axis]), axis)]


def _elements(data: Values, indices: Values, axis: int) -> tuple[Values, ...]:
    """An index of every axis: of ``axis`` as given, of the others each element's own position."""
    grid = list(np.ogrid[tuple(slice(extent) for extent in indices.shape)])
    grid[axis] = indices
    return tuple(grid)


@kernel("gather_nd", moves=True)
def gather_nd(data: Values, indices: Values, *, batch_dims: int = 0) -> Values:
    depth = indices.shape[-1]
    kept = data.shape[batch_dims + depth :]
    addressed = data.shape[batch_dims : batch_dims + depth]
    if not all(addressed) or not data.size or not indices.size:
        made = nothing((*indices.shape[:-1], *kept), data.dtype)
        if depth or not data.size or not made.size:
            return made
    batch = np.ogrid[tuple(slice(extent) for extent in indices.shape[:batch_dims])]
    apart = (1,) * (indices.ndim - 1 - batch_dims)
    index = [axis.reshape(axis.shape + apart) for axis in batch]
    index += [positions(indices[..., i], extent) for i, extent in enumerate(addressed)]
    if not index:
        return np.broadcast_to(data, (*indices.shape[:-1], *data.shape)).copy()
    picked = np.asarray(data[tuple(index)], data.dtype)
    return np.broadcast_to(picked, (*indices.shape[:-1], *kept)).copy()


@kernel("scatter_elements", moves=True)
def scatter_elements(
    data: Values, indices: Values, updates: Values, *, axis: int = 0, reduction: str = "none"
) -> Values:
    extent = data.shape[axis]
    made = data.copy()
    if not extent or not indices.size:
        return made
    valid = inside(indices, extent)
    index = np.broadcast_arrays(*_elements(data, positions(indices, extent), axis))
    _write(made, tuple(i[valid] for i in index), updates[valid], reduction)
    return made


@kernel("scatter_nd", moves=True)
def scatter_nd(
    data: Values, indices: Values, updates: Values, *, reduction: str = "none"
) -> Values:
    made = data.copy()
    depth = indices.shape[-1]
    addressed = data.shape[:depth]
    tuples = indices.reshape(-1, depth)
    if not data.size or not len(tuples):
        return made
    rows = updates.reshape(len(tuples), *data.shape[depth:])
    if not depth:
        for row in rows:
            _write(made, (), row, reduction)
        return made
    valid = np.logical_and.reduce([inside(tuples[:, i], e) for i, e in enumerate(addressed)])
    index = tuple(positions(tuples[valid, i], extent) for i, extent in enumerate(addressed))
    _write(made, index, rows[valid], reduction)
    return made


def _write(made: Values, index: tuple[Values, ...], updates: Values, reduction: str) -> None:
    """Combine updates into ``made``, one after the other where they meet."""
    if reduction == "none":
        made[index] = updates
    elif made.dtype == bool and reduction in ("add", "max"):
        np.logical_or.at(made, index, updates)
    elif made.dtype == bool:
        np.logical_and.at(made, index, updates)
    elif made.dtype == object:
        raise UndefinedError("scatter", f"no standard says what `{reduction}` makes of strings")
    elif made.dtype.kind in "iufc":
        _COMBINE[reduction].at(made, index, updates)
    else:  # types that numpy does not know: one by one
        combine = _COMBINE[reduction]
        for number, place in enumerate(zip(*index, strict=True)):
            made[place] = combine(made[place], updates[number]).astype(made.dtype)


@kernel("one_hot", mixed=True, runtime={1: "depth"})
def one_hot(
    indices: Values,
    values: Values | None = None,
    *,
    depth: int,
    axis: int = -1,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtypes: Any,
) -> Values:
    """A fractional index is cut to an integer; the values of the operand are (off, on)."""
    off, on = (off_value, on_value) if values is None else values.tolist()
    whole = np.trunc(indices) if indices.dtype.kind == "f" else indices
    wide = whole.astype(FLOAT64 if indices.dtype.kind == "f" else np.int64)
    wide = np.expand_dims(np.where(wide < 0, wide + depth, wide), axis)
    steps = np.arange(depth).reshape([-1 if i == axis % wide.ndim else 1 for i in range(wide.ndim)])
    dtype = dtypes[0]
    return np.where(wide == steps, np.array(on).astype(dtype), np.array(off).astype(dtype))


@kernel("non_zero", moves=True)
def non_zero(x: Values) -> Values:
    found = np.array([bool(v) for v in x.ravel()]).reshape(x.shape) if x.dtype == object else x
    return np.array(np.nonzero(found), np.int64).reshape(x.ndim, -1)


@kernel("compress", moves=True)
def compress(x: Values, condition: Values, *, axis: int | None = None) -> Values:
    return np.compress(condition, x, axis)


@kernel("unique")
def unique(
    x: Values, *, axis: int | None = None, sorted: bool = True
) -> tuple[Values, Values, Values, Values]:
    """Unsorted means in the order of first appearance. Every NaN is different from the others."""
    text = x.dtype == object
    made, first, inverse, counts = np.unique(
        x.astype(np.str_) if text else x,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        equal_nan=False,
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        made = np.take(made, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    if text:
        made = made.astype(object)
    return made, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


@kernel("non_max_suppression")
def non_max_suppression(
    boxes: Values,
    scores: Values,
    max_boxes: Values | None = None,
    iou_threshold: Values | None = None,
    score_threshold: Values | None = None,
    *,
    center_point_box: int = 0,
) -> Values:
    """Without ``max_boxes`` nothing is chosen; equal scores are taken in order of their boxes."""
    most = 0 if max_boxes is None else int(max_boxes.item())
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.item())
    least = None if score_threshold is None else float(score_threshold.item())
    chosen: list[tuple[int, int, int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch].astype(FLOAT64), center_point_box)
        for group in range(scores.shape[1]):
            score = scores[batch, group]
            kept: list[int] = []
            for box in np.argsort(-score, kind="stable").tolist():
                if len(kept) >= most:
                    break
                if least is not None and not score[box] > least:
                    continue
                if all(_overlap(corners[box], corners[other]) <= overlap for other in kept):
                    kept.append(box)
            chosen += [(batch, group, box) for box in kept]
    return np.array(chosen, np.int64).reshape(-1, 3)


def _corners(boxes: Values, center_point_box: int) -> Values:
    """Boxes as (low, low, high, high), from any two opposite corners or from centre and size."""
    if center_point_box:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    one, other = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(one, other), np.maximum(one, other)], 1)


def _overlap(a: Values, b: Values) -> float:
    """Intersection over union; 0 for boxes without area."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    areas = [np.prod(box[2:] - box[:2]) for box in (a, b)]
    common = np.prod(sides) if (sides > 0).all() else 0.0
    union = sum(areas) - common
    return float(common / union) if min(*areas, union) > 0 and common > 0 else 0.0


# --- what is implementation-defined --------------------------------------------------------------


@judge("gather", "gather_elements", "scatter_elements")
def judge_indices(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    data, indices = operands[0], operands[1]
    axis = attributes.get("axis", 0)
    if not inside(indices, data.shape[axis]).all():
        return {0: Cause.INDEX}
    if len(operands) == 3 and attributes.get("reduction", "none") == "none" and indices.size:
        index = np.broadcast_arrays(*_elements(data, positions(indices, data.shape[axis]), axis))
        flat = np.ravel_multi_index(index, data.shape)
        return {0: Cause.DUPLICATE} if len(np.unique(flat)) < flat.size else None
    return None


@judge("embedding")
def judge_embedding(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    return {0: Cause.INDEX} if not inside(operands[1], operands[0].shape[0]).all() else None


@judge("gather_nd", "scatter_nd")
def judge_tuples(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    data, indices = operands[0], operands[1]
    batch, depth = attributes.get("batch_dims", 0), indices.shape[-1]
    addressed = data.shape[batch : batch + depth]
    if not all(inside(indices[..., i], e).all() for i, e in enumerate(addressed)):
        return {0: Cause.INDEX}
    if len(operands) == 3 and attributes.get("reduction", "none") == "none" and indices.size:
        tuples = np.where(indices < 0, indices + np.array(addressed, np.int64), indices)
        tuples = tuples.reshape(-1, depth)
        return {0: Cause.DUPLICATE} if len(np.unique(tuples, axis=0)) < len(tuples) else None
    return None


@judge("one_hot")
def judge_one_hot(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    depth = attributes.get("depth")
    if depth is None:
        depth = operands[1].item()
    indices = operands[0].astype(FLOAT64)
    return None if inside(indices, depth).all() else {0: Cause.INDEX}


@judge("unique")
def judge_unique(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x = operands[0]
    if x.dtype.kind in "fcV" and np.isnan(x).any():
        return dict.fromkeys(range(4), Cause.NAN)
    return None


@judge("non_max_suppression")
def judge_boxes(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    boxes, scores = operands[:2]
    if np.isnan(boxes).any() or np.isnan(scores).any():
        return {0: Cause.NAN}
    ordered = np.sort(scores, -1)
    return {0: Cause.TIE} if (ordered[..., 1:] == ordered[..., :-1]).any() else None
