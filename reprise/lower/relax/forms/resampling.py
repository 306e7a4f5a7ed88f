"""Resampling.

``resize`` of the last two of four axes goes to Relax's own where it reads attributes as ONNX does.
Any other is linear along each axis, so it becomes a product with a matrix of weights (or, for
nearest neighbours, a gathering of positions) that is computed beforehand, from what the reference
semantics make of the unit vectors (or of positions).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from reprise.lower.relax.application import Application, Form, widened
from reprise.uir.graph import TensorType
from reprise.uir.semantics import apply

_OWN_MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def _own(n: Application) -> str | None:
    """``R.image.resize2d``, or None where ONNX means something else: TVM takes the scale to be the
    ratio of the extents, and can neither anti-alias nor leave out the outside."""
    old, new = n.shape, n.result_shape()
    if len(old) != 4 or new[:2] != old[:2] or "float" not in n.dtype or 0 in old:
        return None
    transform, mode = n.attr("coordinate_transformation_mode"), n.attr("mode")
    scales = n.attr("scales")
    exact = scales is None or all(s * a == b for s, a, b in zip(scales, old, new, strict=True))
    if not exact or transform not in _OWN_MODES or n.attr("antialias"):
        return None
    if n.attr("exclude_outside") or 1 in new[2:]:
        return None
    method = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}[mode]
    rounding = n.attr("nearest_mode") if mode == "nearest" else ""
    options = [f'layout="NCHW", method="{method}"']
    options.append(f'coordinate_transformation_mode="{transform}", rounding_method="{rounding}"')
    if mode == "cubic":
        options.append(f"cubic_alpha={n.attr('cubic_coeff_a')}")
    return f"R.image.resize2d({n[0]}, {tuple(new[2:])}, {', '.join(options)})"


def _along(n: Application, axis: int, unit: Any) -> Any:
    """What ``resize`` makes of ``unit`` along one axis: all others are left alone."""
    wanted, rank = n.result_shape()[axis], unit.ndim
    attributes = {k: v for k, v in n.attributes.items() if k not in ("scales", "sizes", "roi")}
    shape = (wanted, *unit.shape[1:])
    scales = n.attr("scales")
    if scales is not None:
        attributes["scales"] = (scales[axis], *(1.0 for _ in range(rank - 1)))
    else:
        attributes["sizes"] = shape
    (made,) = apply("resize", [unit], attributes, [TensorType("float64", shape)])
    return made


def _resize(n: Application) -> str:
    own = _own(n)
    if own is not None:
        return own
    text, nearest = n[0], n.attr("mode") == "nearest"
    wide = n.dtype if nearest or n.dtype in ("float32", "float64") else "float64"
    if wide != n.dtype:
        text = n.cast(text, wide)
    rank = len(n.shape)
    for axis, (old, new) in enumerate(zip(n.shape, n.result_shape(), strict=True)):
        scales = n.attr("scales")
        if old == new and (scales is None or scales[axis] == 1.0):
            continue
        if nearest:
            positions = _along(n, axis, np.arange(old, dtype=np.float64))
            at = n.array(np.rint(positions).astype(np.int64), f"positions{axis}")
            text = f"R.take({text}, {at}, axis={axis})"
            continue
        weights = n.array(_along(n, axis, np.eye(old)), f"weights{axis}", wide)
        order = [*(i for i in range(rank) if i != axis), axis]
        back = [order.index(i) for i in range(rank)]
        moved = f"R.permute_dims({text}, {order})"
        product = f"R.matmul({moved}, R.permute_dims({weights}, [1, 0]))"
        text = n.let(f"R.permute_dims({product}, {back})", f"axis{axis}")
    if wide == n.dtype:
        return text
    if "int" in n.dtype:
        text = f"R.round({text})"
        if n.dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
            limits = np.iinfo(n.dtype)
            text = f"R.clip({text}, {float(limits.min)}, {float(limits.max)})"
    return n.cast(text, n.dtype)


# --- grid_sample ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of a ``grid_sample``: coordinates [batch, points] in elements of x."""

    extent: int
    at: str
    floor: str


def _grid_sample(n: Application) -> str:
    """Written out: the weighted sum of the elements around each coordinate. (Relax's own operator
    infers another shape than it computes, in TVM 0.25.)"""
    extents = n.shape[2:]
    spatial, batch, channels = len(extents), n.shape[0], n.shape[1]
    points = prod(n.result_shape()[2:])
    grid = n[1] if n.type(1).dtype == n.dtype else n.cast(n[1], n.dtype)
    flat = n.let(f"R.reshape({grid}, {(batch, points, spatial)})", "grid")
    axes = []
    for i, extent in enumerate(extents):
        column = spatial - 1 - i  # the last axis comes first
        cut = f"R.strided_slice({flat}, [2], [{column}], [{column + 1}])"
        at = n.let(_coordinate(n, f"R.squeeze({cut}, [2])", extent), f"at{i}")
        floor = at if n.attr("mode") == "nearest" else n.let(f"R.floor({at})", f"floor{i}")
        axes.append(_Axis(extent, at, floor))
    x = n.let(f"R.reshape({n[0]}, {(batch, channels, prod(extents))})", "flat")
    offsets = (0,) if n.attr("mode") == "nearest" else (0, 1)
    taps = [[_tap(n, axis, offset) for offset in offsets] for axis in axes]
    total = ""
    for chosen in product(*taps):
        position, weight = "", ""
        for (index, share), axis in zip(chosen, axes, strict=True):
            step = n.const(axis.extent, "int64")
            position = f"R.add(R.multiply({position}, {step}), {index})" if position else index
            weight = f"R.multiply({weight}, {share})" if weight else share
        where = n.let(
            f"R.broadcast_to(R.expand_dims({position}, [1]), {(batch, channels, points)})", "where"
        )
        picked = f"R.gather_elements({x}, {where}, axis=2)"
        share = n.let(f"R.expand_dims({weight}, [1])", "share")
        counts = f"R.not_equal({share}, {n.const(0.0)})"
        term = f"R.where({counts}, R.multiply({picked}, {share}), {n.const(0.0)})"
        total = n.let(f"R.add({total}, {term})" if total else term, "total")
    return f"R.reshape({total}, {n.result_shape()})"


def _coordinate(n: Application, x: str, extent: int) -> str:
    """A coordinate from -1 to 1 in elements; where padding says so, brought inside."""
    one, half = n.const(1.0), n.const(0.5)
    if n.attr("align_corners"):
        at = f"R.multiply(R.multiply(R.add({x}, {one}), {half}), {n.const(extent - 1.0)})"
    else:
        wide = f"R.multiply(R.add({x}, {one}), {n.const(float(extent))})"
        at = f"R.multiply(R.subtract({wide}, {one}), {half})"
    if n.attr("mode") == "nearest":
        at = f"R.round({at})"
    return _inside(n, at, extent)


def _inside(n: Application, at: str, extent: int) -> str:
    """Clamped (border) or mirrored at both ends (reflection); as it is, if zeros are around."""
    padding = n.attr("padding_mode")
    if padding == "zeros":
        return at
    low, high = (0.0, extent - 1.0) if n.attr("align_corners") else (-0.5, extent - 0.5)
    at = n.let(at, "at")
    under, over = f"R.less({at}, {n.const(low)})", f"R.greater({at}, {n.const(high)})"
    if padding == "border":
        moved = f"R.clip({at}, 0.0, {extent - 1.0})"
    elif high <= low:
        moved = f"R.full_like({at}, {n.const(low)})"
    else:
        span = high - low
        turn = f"R.floor_mod(R.subtract({at}, {n.const(low)}), {n.const(2 * span)})"
        period = n.let(turn, "period")
        back = f"R.subtract({n.const(2 * span)}, {period})"
        near = f"R.where(R.less_equal({period}, {n.const(span)}), {period}, {back})"
        moved = f"R.add({n.const(low)}, {near})"
    return f"R.where(R.logical_or({under}, {over}), {moved}, {at})"


def _tap(n: Application, axis: _Axis, offset: int) -> tuple[str, str]:
    """A neighbour of each coordinate: its index (int64, inside) and its weight, 0 if outside."""
    mode = n.attr("mode")
    tap = f"R.add({axis.floor}, {n.const(float(offset))})" if offset else axis.floor
    tap = n.let(tap, "tap") if offset else tap
    weight = n.const(1.0)
    distance = f"R.abs(R.subtract({tap}, {axis.at}))"
    if mode == "linear":
        weight = f"R.maximum(R.subtract({n.const(1.0)}, {distance}), {n.const(0.0)})"
    if mode != "nearest" and n.attr("padding_mode") == "border":
        tap = n.let(f"R.clip({tap}, 0.0, {axis.extent - 1.0})", "tap")
    elif mode != "nearest" and n.attr("padding_mode") == "reflection":
        tap = n.let(f"R.trunc({_inside(n, tap, axis.extent)})", "tap")
    first = f"R.greater_equal({tap}, {n.const(0.0)})"
    last = f"R.less_equal({tap}, {n.const(axis.extent - 1.0)})"
    inside = f"R.logical_and({first}, {last})"
    share = n.let(f"R.where({inside}, {weight}, {n.const(0.0)})", "weight")
    index = n.let(n.cast(f"R.clip({tap}, 0.0, {axis.extent - 1.0})", "int64"), "index")
    return index, share


# --- roi_align -----------------------------------------------------------------------------------


def _roi_align(n: Application) -> str:
    """Relax takes each region's image as its first column; its ``aligned`` leaves small regions
    small, but moves none by half an element."""
    images = f"R.expand_dims({n.cast(n[2], n.dtype)}, [1])"
    aligned = n.attr("coordinate_transformation_mode") == "half_pixel"
    corners = n[1]
    if aligned:
        corners = f"R.subtract({corners}, {n.const(0.5 / n.attr('spatial_scale'))})"
    rois = f"R.concat([{images}, {corners}], axis=1)"
    size = (n.attr("output_height"), n.attr("output_width"))
    options = f"spatial_scale={n.attr('spatial_scale')}, sample_ratio={n.attr('sampling_ratio')}"
    options += f', aligned={aligned}, layout="NCHW", mode="{n.attr("mode")}"'
    return f"R.vision.roi_align({n[0]}, {rois}, {size}, {options})"


FORMS: dict[str, Form] = {
    "resize": _resize,
    "grid_sample": widened(_grid_sample, "float16", "bfloat16"),
    "roi_align": widened(_roi_align, "float16", "bfloat16"),
}
