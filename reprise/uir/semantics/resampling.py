"""Resampling: ``resize``, ``grid_sample`` and ``roi_align`` of ``rules/ops/layout.rules``.

``resize`` goes axis by axis: each axis has a matrix of weights, [new positions, old positions],
computed in double precision. Integers are rounded to the nearest even and saturate.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from reprise.uir.semantics.indexing import positions
from reprise.uir.semantics.registry import (
    FLOAT64,
    Cause,
    Causes,
    SemanticsError,
    Values,
    judge,
    kernel,
)

Ints = tuple[int, ...]
Floats = tuple[float, ...]


# --- resize --------------------------------------------------------------------------------------


def _for_all_axes(
    shape: Ints, axes: Ints, roi: Floats | None, scales: Floats | None, sizes: Ints | None
) -> tuple[Floats | None, Floats | None, Ints | None]:
    """What an imported node says of some axes, said of all."""
    place = {axis % len(shape): i for i, axis in enumerate(axes)}
    every = range(len(shape))
    if scales:
        scales = tuple(scales[place[i]] if i in place else 1.0 for i in every)
    if sizes:
        sizes = tuple(sizes[place[i]] if i in place else shape[i] for i in every)
    if roi:
        starts = tuple(roi[place[i]] if i in place else 0.0 for i in every)
        ends = tuple(roi[len(axes) + place[i]] if i in place else 1.0 for i in every)
        roi = starts + ends
    return roi, scales, sizes


def _sizes(
    shape: Ints, scales: Floats | None, sizes: Ints | None, policy: str, axes: Ints
) -> tuple[list[int], list[float]]:
    """The new extents, and by which factor each axis grows."""
    if scales:
        return [int(np.floor(e * s)) for e, s in zip(shape, scales, strict=True)], list(scales)
    if not sizes:
        raise SemanticsError("resize", "neither factors nor sizes")
    factors = [size / extent if extent else 1.0 for size, extent in zip(sizes, shape, strict=True)]
    if policy == "stretch":
        return list(sizes), factors
    chosen = [factors[axis] for axis in axes]
    one = min(chosen) if policy == "not_larger" else max(chosen)
    factors = [one if i in axes else 1.0 for i in range(len(shape))]
    return [int(f * e + 0.5) for f, e in zip(factors, shape, strict=True)], factors


def _coordinates(
    mode: str, extent: int, wanted: int, factor: float, region: tuple[float, float]
) -> Values:
    """Where each new position lies on the old axis."""
    y = np.arange(wanted, dtype=FLOAT64)
    length = factor * extent
    match mode:
        case "align_corners":
            return y * ((extent - 1) / (length - 1)) if length != 1 else y * 0
        case "asymmetric":
            return y / factor
        case "tf_half_pixel_for_nn":
            return (y + 0.5) / factor
        case "tf_crop_and_resize":
            start, end = region
            if length == 1:
                return y * 0 + 0.5 * (start + end) * (extent - 1)
            return start * (extent - 1) + y * ((end - start) * (extent - 1) / (length - 1))
        case "pytorch_half_pixel":
            return (y + 0.5) / factor - 0.5 if length != 1 else y * 0 - 0.5
        case "half_pixel_symmetric":
            middle = extent / 2 * (1 - wanted / length)
            return middle + (y + 0.5) / factor - 0.5
    return (y + 0.5) / factor - 0.5


def _nearest(x: Values, mode: str) -> Values:
    match mode:
        case "floor":
            return np.floor(x)
        case "ceil":
            return np.ceil(x)
        case "round_prefer_ceil":
            return np.floor(x + 0.5)
    return np.ceil(x - 0.5)


def _linear(x: Values, a: float) -> Values:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: Values, a: float) -> Values:
    """Keys' kernel, which reaches two positions to either side."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


_KERNELS = {"linear": (_linear, 1), "cubic": (_cubic, 2)}


def _weights(
    x: Values, extent: int, mode: str, factor: float, a: float, outside: bool, antialias: bool
) -> Values:
    """How much each old position counts at each coordinate. Those beyond the ends count for the
    nearest end, or (``outside``: exclude them) not at all. ``antialias`` widens the kernel where an
    axis shrinks."""
    function, reach = _KERNELS[mode]
    shrink = min(factor, 1.0) if antialias else 1.0
    span = int(np.ceil(reach / shrink)) + 1
    steps = np.arange(-span, span + 2)
    taps = np.floor(x)[:, None] + steps
    amounts = function((taps - x[:, None]) * shrink, a)
    if outside:
        amounts = np.where((taps < 0) | (taps > extent - 1), 0, amounts)
    if outside or antialias:
        total = amounts.sum(1, keepdims=True)
        amounts = amounts / np.where(total == 0, 1, total)
    made = np.zeros((len(x), extent))
    rows = np.broadcast_to(np.arange(len(x))[:, None], taps.shape)
    np.add.at(made, (rows, np.clip(taps, 0, extent - 1).astype(np.int64)), amounts)
    return made


@kernel("resize", mixed=True, runtime={1: "roi", 2: "scales", 3: "sizes"})
def resize(
    x: Values,
    *,
    roi: Floats | None = None,
    scales: Floats | None = None,
    sizes: Ints | None = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    antialias: bool = False,
    keep_aspect_ratio_policy: str = "stretch",
    axes: Ints | None = None,
) -> Values:
    """An axis that keeps its extent under a factor of 1 is left alone, unless a region cuts it."""
    rank = x.ndim
    if axes is not None:
        roi, scales, sizes = _for_all_axes(x.shape, axes, roi, scales, sizes)
    chosen = tuple(range(rank)) if axes is None else axes
    new, factors = _sizes(x.shape, scales, sizes, keep_aspect_ratio_policy, chosen)
    made = x
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    for axis, (wanted, factor) in enumerate(zip(new, factors, strict=True)):
        extent = x.shape[axis]
        region = (roi[axis], roi[rank + axis]) if cropped and roi else (0.0, 1.0)
        if wanted == extent and factor == 1 and region == (0.0, 1.0):
            continue
        if not extent or not wanted:
            made = np.zeros((*made.shape[:axis], wanted, *made.shape[axis + 1 :]), made.dtype)
            continue
        at = _coordinates(coordinate_transformation_mode, extent, wanted, factor, region)
        if mode == "nearest":
            near = np.clip(_nearest(at, nearest_mode), 0, extent - 1)
            made = np.take(made, near.astype(np.int64), axis)
        else:
            weights = _weights(at, extent, mode, factor, cubic_coeff_a, exclude_outside, antialias)
            made = _along(weights, made, axis)
        if cropped:
            beyond = (at < 0) | (at > extent - 1)
            shape = [-1 if i == axis else 1 for i in range(rank)]
            fill = np.array(extrapolation_value).astype(made.dtype)
            made = np.where(beyond.reshape(shape), fill, made)
    if x.dtype.kind in "iu" and made.dtype != x.dtype:
        limits = np.iinfo(x.dtype)
        made = np.clip(np.rint(made), float(limits.min), float(limits.max))
    return made


def _along(weights: Values, x: Values, axis: int) -> Values:
    """The weighted sums along an axis. What has no weight does not count, be it infinite."""
    moved = np.moveaxis(x.astype(FLOAT64), axis, 0)
    flat = moved.reshape(len(moved), -1)
    if np.isfinite(flat).all():
        made = weights @ flat
    else:
        terms = np.where(weights[:, :, None] == 0, 0, weights[:, :, None] * flat[None])
        made = terms.sum(1)
    return np.moveaxis(made.reshape(len(weights), *moved.shape[1:]), 0, axis)


@judge("resize")
def judge_resize(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """Nearest neighbours of coordinates that a rounding error may push over a half."""
    x = operands[0]
    scales, sizes = attributes.get("scales"), attributes.get("sizes")
    if len(operands) > 2 and operands[2] is not None and operands[2].size:
        scales = tuple(operands[2].tolist())
    if len(operands) > 3 and operands[3] is not None and operands[3].size:
        sizes = tuple(operands[3].tolist())
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    transform = attributes.get("coordinate_transformation_mode", "half_pixel")
    if scales and transform in _COUNTING:
        exact = [extent * factor for extent, factor in zip(x.shape, scales, strict=True)]
        if any(extent != int(extent) for extent in exact):
            return {0: Cause.FRACTION}
    if attributes.get("mode", "nearest") != "nearest":
        return {0: Cause.ROUNDING} if x.dtype.kind in "iu" else None
    if transform == "tf_crop_and_resize":
        return {0: Cause.ROUNDING}
    new, factors = _sizes(x.shape, scales, sizes, policy, tuple(range(x.ndim)))
    half = 0.0 if attributes.get("nearest_mode", "") in ("floor", "ceil") else 0.5
    for extent, wanted, factor in zip(x.shape, new, factors, strict=True):
        if not extent or not wanted:
            continue
        at = _coordinates(transform, extent, wanted, factor, (0.0, 1.0)) - half
        off = np.abs(at - np.rint(at))
        near = (off < 1e-5 * np.maximum(np.abs(at), 1)) & (at + half != 0)
        if (near & (off > 0)).any() or (near.any() and not _divides_exactly(factor, transform)):
            return {0: Cause.ROUNDING}
    return None


_COUNTING = frozenset(
    ("align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize")
)
"""Modes that ask for the new extent: ONNX's reference takes extent times factor, compilers the
whole number that it is rounded down to."""


def _divides_exactly(factor: float, transform: str) -> bool:
    """Whether dividing by a factor, and multiplying by its inverse, are the same and exact."""
    numerator = float(factor).as_integer_ratio()[0]
    return transform != "align_corners" and numerator & (numerator - 1) == 0


# --- grid_sample ---------------------------------------------------------------------------------


def _mirrored(x: Values, low: float, high: float) -> Values:
    """Coordinates reflected at both ends until they are inside."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    period = np.mod(x - low, 2 * span)
    return low + np.where(period <= span, period, 2 * span - period)


@kernel("grid_sample", mixed=True)
def grid_sample(
    x: Values,
    grid: Values,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Values:
    """Coordinates run from -1 to 1, the last axis first. Those that are no numbers read 0."""
    extents = x.shape[2:]
    rank = len(extents)
    at = []
    for i, extent in enumerate(extents):
        n = grid[..., rank - 1 - i].astype(FLOAT64)
        place = (n + 1) / 2 * (extent - 1) if align_corners else ((n + 1) * extent - 1) / 2
        low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
        if mode == "nearest":
            place = np.rint(place)
        if padding_mode == "border":
            place = np.where((place < low) | (place > high), np.clip(place, 0, extent - 1), place)
        elif padding_mode == "reflection":
            place = np.where((place < low) | (place > high), _mirrored(place, low, high), place)
        at.append(place)
    taps = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[mode]
    made: Values = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]), FLOAT64)
    for offsets in product(taps, repeat=rank):
        weight: Any = np.ones(grid.shape[:-1])
        index, inside = [], np.ones(grid.shape[:-1], bool)
        for place, offset, extent in zip(at, offsets, extents, strict=True):
            known = np.where(np.isfinite(place), place, -9.0)
            base = known if mode == "nearest" else np.floor(known)
            tap = base + offset
            if mode == "linear":
                weight = weight * _linear(tap - known, 0)
            elif mode == "cubic":
                weight = weight * _cubic(tap - known, -0.75)
            if padding_mode == "reflection":
                low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
                beyond = (tap < low) | (tap > high)
                tap = np.where(beyond, np.trunc(_mirrored(tap, low, high)), tap)
            elif padding_mode == "border":
                tap = np.clip(tap, 0, extent - 1)
            inside &= (tap >= 0) & (tap <= extent - 1) & np.isfinite(place)
            index.append(np.clip(tap, 0, extent - 1).astype(np.int64))
        batch = np.arange(x.shape[0]).reshape((-1,) + (1,) * (grid.ndim - 2))
        picked = np.moveaxis(x, 1, -1)[(batch, *index)]  # [N, *E, C]
        share = np.where((inside & (weight != 0))[..., None], picked * weight[..., None], 0)
        made += np.moveaxis(share, -1, 1)
    return made


@judge("grid_sample")
def judge_grid_sample(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x, grid = operands
    if not np.isfinite(grid).all():
        return {0: Cause.NAN}
    if attributes.get("mode", "linear") != "nearest":
        return None
    extents = np.array(x.shape[2:][::-1])
    n = grid.astype(FLOAT64)
    if attributes.get("align_corners"):
        place = (n + 1) / 2 * (extents - 1)
    else:
        place = ((n + 1) * extents - 1) / 2
    off = np.abs(place - np.floor(place) - 0.5)
    error = {"float16": 4e-3, "bfloat16": 3e-2}.get(str(grid.dtype), 1e-5)
    return {0: Cause.ROUNDING} if (off < error * np.maximum(np.abs(place), 1)).any() else None


# --- roi_align -----------------------------------------------------------------------------------


@kernel("roi_align", mixed=True)
def roi_align(
    x: Values,
    rois: Values,
    batch: Values,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Values:
    """Each bin is sampled on a grid; ``max`` takes the greatest *weighted corner* of the samples,
    as ONNX's reference does. Regions without samples are 0."""
    made: Values = np.zeros((len(rois), x.shape[1], output_height, output_width), FLOAT64)
    if not x.size:
        return made
    half = coordinate_transformation_mode == "half_pixel"
    corners = rois.astype(FLOAT64) * spatial_scale - (0.5 if half else 0.0)
    images = positions(batch, x.shape[0])
    for number, (x1, y1, x2, y2) in enumerate(corners.tolist()):
        image = x[images[number]].astype(FLOAT64)
        rows = _samples(y1, y2, output_height, sampling_ratio, half, x.shape[2])
        columns = _samples(x1, x2, output_width, sampling_ratio, half, x.shape[3])
        if rows is None or columns is None:
            continue
        corner_values = []
        for (row, row_weight), (column, column_weight) in product(rows, columns):
            values = image[:, row[:, :, None, None], column[None, None]]
            weight = row_weight[:, :, None, None] * column_weight[None, None]
            corner_values.append(np.where(weight == 0, 0, values * weight))
        if mode == "avg":
            made[number] = np.add.reduce(corner_values).mean((2, 4))
        else:
            made[number] = np.maximum.reduce(corner_values).max((2, 4))
    return made


def _samples(
    start: float, end: float, bins: int, ratio: int, half: bool, extent: int
) -> list[tuple[Values, Values]] | None:
    """The lower and upper neighbours [bins, samples] of an axis' sample points, with weights; None
    where there are no samples."""
    length = end - start if half else max(end - start, 1.0)
    if not np.isfinite(length) or not np.isfinite(start):
        return None
    size = length / bins
    count = ratio if ratio > 0 else int(np.ceil(size))
    if count <= 0 or count > 10_000:
        return None
    at = start + (np.arange(bins)[:, None] + (np.arange(count)[None, :] + 0.5) / count) * size
    valid = (at >= -1.0) & (at <= extent)
    at = np.clip(at, 0, extent - 1)
    low = np.minimum(np.floor(at), max(extent - 1, 0)).astype(np.int64)
    high = np.minimum(low + 1, extent - 1)
    upper = at - low
    return [(low, np.where(valid, 1 - upper, 0)), (high, np.where(valid, upper, 0))]


@judge("roi_align")
def judge_roi_align(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    x, rois, batch = operands
    if ((batch < 0) | (batch >= x.shape[0])).any():
        return {0: Cause.INDEX}
    return None if np.isfinite(rois).all() else {0: Cause.NAN}
