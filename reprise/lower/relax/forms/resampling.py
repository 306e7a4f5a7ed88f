"""Resampling.

``resize`` of the last two of four axes goes to Relax's own where it reads attributes as ONNX does.
Any other is linear along each axis, so it becomes a product with a matrix of weights (or, for
nearest neighbours, a gathering of positions) that is computed beforehand, from what the reference
semantics make of the unit vectors (or of positions).
"""

from __future__ import annotations

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


def _grid_sample(n: Application) -> str:
    """Relax wants the coordinates before the positions."""
    spatial = len(n.shape) - 2
    order = [0, spatial + 1, *range(1, spatial + 1)]
    grid = n[1] if n.type(1).dtype == n.dtype else n.cast(n[1], n.dtype)
    method = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[n.attr("mode")]
    layout = "NCHW" if spatial == 2 else "NCDHW"
    options = f'method="{method}", layout="{layout}", padding_mode="{n.attr("padding_mode")}"'
    options += f", align_corners={bool(n.attr('align_corners'))}"
    return f"R.image.grid_sample({n[0]}, R.permute_dims({grid}, {order}), {options})"


def _roi_align(n: Application) -> str:
    """Relax takes each region's image as its first column."""
    images = f"R.expand_dims({n.cast(n[2], n.dtype)}, [1])"
    rois = f"R.concat([{images}, {n[1]}], axis=1)"
    size = (n.attr("output_height"), n.attr("output_width"))
    aligned = n.attr("coordinate_transformation_mode") == "half_pixel"
    options = f"spatial_scale={n.attr('spatial_scale')}, sample_ratio={n.attr('sampling_ratio')}"
    options += f', aligned={aligned}, layout="NCHW", mode="{n.attr("mode")}"'
    return f"R.vision.roi_align({n[0]}, {rois}, {size}, {options})"


FORMS: dict[str, Form] = {
    "resize": _resize,
    "grid_sample": widened(_grid_sample, "float16", "bfloat16"),
    "roi_align": widened(_roi_align, "float16", "bfloat16"),
}
