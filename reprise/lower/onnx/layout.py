"""Operators that move elements: shapes, slices, padding, resampling."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from reprise.lang.dtypes import DTYPES
from reprise.lower.onnx.call import Call, Form, Ref, array_of
from reprise.lower.onnx.forms import either, same
from reprise.solve.shapes import chunk_sizes

_LEAST, _MOST = -(2**63), 2**63 - 1


def _with_ints(op: str, name: str, *attributes: str) -> Form:
    """A list that ONNX takes as its second operand."""

    def form(c: Call) -> Ref:
        runtime = c.get(1)
        given = runtime if runtime is not None else c.ints(name, c[name])
        return c.add(op, c.x, given, **{a: c[a] for a in attributes})

    return form


def _unless_empty(form: Callable[[Call], Ref], name: str = "axes") -> Form:
    """``form``, or x itself for an empty list: to ONNX that may mean every axis."""

    def guarded(c: Call) -> Ref:
        if c.get(1) is None and not c[name]:
            return c.add("Identity", c.x)
        return form(c)

    return guarded


def _reshape(c: Call) -> Ref:
    """``allowzero`` came with opset 14; without a 0 it means nothing."""
    runtime, shape = c.get(1), c["shape"]
    allowzero = c["allowzero"]
    if runtime is None and 0 not in shape and not c.has("Reshape", "allowzero"):
        allowzero = None
    given = runtime if runtime is not None else c.ints("shape", shape)
    return c.add("Reshape", c.x, given, allowzero=allowzero)


def _transpose(c: Call) -> Ref:
    return c.add("Transpose", c.x, perm=c["perm"] or None)


def _space_to_depth(c: Call) -> Ref:
    """``mode`` came with opset 28; before, CRD is a transposition of blocks."""
    if c["mode"] == "DCR" or c.has("SpaceToDepth", "mode"):
        return c.add("SpaceToDepth", c.x, blocksize=c["block"], mode=c["mode"])
    (n, channels, height, width), block = c.shape(), c["block"]
    rows, columns = height // block, width // block
    blocks = c.ints("blocks", (n, channels, rows, block, columns, block))
    apart = c.add("Reshape", c.x, blocks, **_zeros(c))
    apart = c.add("Transpose", apart, perm=(0, 1, 3, 5, 2, 4))
    shape = (n, channels * block * block, rows, columns)
    return c.add("Reshape", apart, c.ints("shape", shape), **_zeros(c))


def _zeros(c: Call) -> dict[str, int]:
    """What makes Reshape read an extent of 0 as 0, where there may be one."""
    return {"allowzero": 1} if 0 in c.shape() else {}


def _flip(c: Call) -> Ref:
    axes = c["axes"]
    if not axes:
        return c.add("Identity", c.x)
    return _slice_of(c, c.x, [-1] * len(axes), [_LEAST] * len(axes), axes, [-1] * len(axes))


def _slice_of(
    c: Call,
    x: Ref,
    starts: Iterable[int],
    ends: Iterable[int],
    axes: Iterable[int],
    steps: Iterable[int] | None = None,
) -> Ref:
    lists = [c.ints(n, v) for n, v in (("starts", starts), ("ends", ends), ("axes", axes))]
    return c.add("Slice", x, *lists, None if steps is None else c.ints("steps", steps))


def _roll(c: Call) -> Ref:
    x: Ref | None = None
    for axis, shift in zip(c["axes"], c["shifts"], strict=True):
        extent = c.shape()[axis]
        if not extent or not shift % extent:
            continue
        cut = extent - shift % extent
        source = x or c.x
        head = _slice_of(c, source, (cut,), (extent,), (axis,))
        tail = _slice_of(c, source, (0,), (cut,), (axis,))
        x = c.add("Concat", head, tail, axis=axis)
    return x or c.add("Identity", c.x)


def _stack(c: Call) -> Ref:
    axes = c.ints("axes", (c["axis"],))
    slices = [c.add("Unsqueeze", ref, axes) for ref in c.operands]
    return c.add("Concat", *slices, axis=c["axis"])


def _split(c: Call) -> list[Ref]:
    runtime = c.get(1)
    sizes = c["sizes"]
    given = runtime if runtime is not None else c.ints("sizes", sizes)
    return c.add_many("Split", len(sizes), c.x, given, axis=c["axis"])


def _chunk(c: Call) -> list[Ref]:
    sizes = chunk_sizes(c.shape()[c["axis"]], c["chunks"])
    assert sizes is not None
    return c.add_many("Split", len(sizes), c.x, c.ints("sizes", sizes), axis=c["axis"])


def _slice(c: Call) -> Ref:
    lists: list[Ref] = []
    for i, name in enumerate(("starts", "ends", "axes", "steps"), 1):
        runtime = c.get(i)
        if runtime is None and not c[name] and not lists:
            return c.add("Identity", c.x)
        lists.append(runtime if runtime is not None else _bounds(c, name))
    return c.add("Slice", c.x, *lists)


def _bounds(c: Call, name: str) -> Ref:
    """A list of the type that the lists known at run time have: all must have the same."""
    dtype = next((t.dtype for t in c.types[1:5] if t is not None and t.dtype), "int64")
    low, high = (_LEAST, _MOST) if dtype == "int64" else (-(2**31), 2**31 - 1)
    values = [min(max(value, low), high) for value in c[name]]
    return c.constant(name, np.array(values, dtype), dtype)


def _narrow(c: Call) -> Ref:
    start, length = c["start"], c["length"]
    return _slice_of(c, c.x, (start,), (start + length,), (c["axis"],))


def _select(c: Call) -> Ref:
    return c.add("Gather", c.x, c.int("index", c["index"]), axis=c["axis"])


def _pad(c: Call) -> Ref:
    """``axes`` came with opset 18: before, pads for every axis."""
    pads, value, axes = c.get(1), c.get(2), c.get(3)
    mode = c["mode"]
    if value is not None and c.rank(2):
        value = c.add("Squeeze", value)
    elif value is None and mode == "constant" and DTYPES[c.dtype()].kind != "string":
        value = c.constant("value", _number(c["value"], c.dtype()), c.dtype())
    listed = c["axes"]
    if pads is None and axes is None and listed is not None and c.opset < 18:
        rank, count = c.rank(), len(listed)
        every = [0] * (2 * rank)
        for i, axis in enumerate(listed):
            every[axis], every[rank + axis] = c["pads"][i], c["pads"][count + i]
        pads, listed = c.ints("pads", every), None
    if pads is None:
        pads = c.ints("pads", c["pads"])
    if axes is None and listed is not None:
        axes = c.ints("axes", listed)
    return c.add("Pad", c.x, pads, value, axes, mode=mode)


def _number(value: float, dtype: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return array_of(value, dtype)


def _trilu(c: Call) -> Ref:
    k = c.get(1)
    if k is not None and c.rank(1):
        k = c.add("Squeeze", k)
    return c.add("Trilu", c.x, k or c.int("k", c["k"]), upper=c["upper"])


def _masked(c: Call) -> Ref:
    """Trilu came with opset 14."""
    if c.get(1) is not None:
        return _trilu(c)
    rows, columns = c.shape()[-2:]
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    kept = distance >= c["k"] if c["upper"] else distance <= c["k"]
    text = DTYPES[c.dtype()].kind == "string"
    zero = c.constant("zero", array_of("" if text else 0.0, c.dtype()), c.dtype())
    return c.add("Where", c.constant("kept", kept, "bool"), c.x, zero)


# --- resampling ------------------------------------------------------------------------------

_RESIZE = (
    "mode",
    "coordinate_transformation_mode",
    "nearest_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "antialias",
)


def _resize(c: Call) -> Ref:
    roi, scales, sizes = c.get(1), c.get(2), c.get(3)
    if roi is None and c["roi"] is not None:
        dtype = c.dtype() if c.dtype() in ("float16", "float32", "float64") else "float32"
        roi = c.constant("roi", np.array(c["roi"], dtype), dtype)
    if scales is None and c["scales"] is not None:
        scales = c.constant("scales", np.array(c["scales"], np.float32), "float32")
    if sizes is None and c["sizes"] is not None:
        sizes = c.ints("sizes", c["sizes"])
    attributes = {name: c[name] for name in _RESIZE}
    if sizes is not None:
        attributes["keep_aspect_ratio_policy"] = c["keep_aspect_ratio_policy"]
    return c.add("Resize", c.x, roi, scales, sizes, axes=c["axes"], **attributes)


_MODE_BEFORE_20 = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


def _grid_sample(c: Call) -> Ref:
    """Opset 16 named the modes after images."""
    mode = c["mode"] if c.opset >= 20 else _MODE_BEFORE_20[c["mode"]]
    return c.add(
        "GridSample",
        c.x,
        c.operand(1),
        mode=mode,
        padding_mode=c["padding_mode"],
        align_corners=c["align_corners"],
    )


FORMS: dict[str, Form] = {
    "reshape": _reshape,
    "flatten": same("Flatten", "axis"),
    "squeeze": _unless_empty(_with_ints("Squeeze", "axes")),  # type: ignore[arg-type]
    "unsqueeze": _unless_empty(_with_ints("Unsqueeze", "axes")),  # type: ignore[arg-type]
    "transpose": _transpose,
    "depth_to_space": same("DepthToSpace", "mode", block="blocksize"),
    "space_to_depth": _space_to_depth,
    "flip": _flip,
    "roll": _roll,
    "reverse_sequence": same("ReverseSequence", "batch_axis", "time_axis"),
    "expand": _with_ints("Expand", "shape"),
    "tile": _with_ints("Tile", "repeats"),
    "concat": same("Concat", "axis"),
    "stack": _stack,
    "split": _split,
    "chunk": _chunk,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    "pad": _pad,
    "trilu": either("Trilu", _trilu, _masked),
    "resize": _resize,
    "grid_sample": _grid_sample,
    "roi_align": same(
        "RoiAlign",
        "coordinate_transformation_mode",
        "mode",
        "output_height",
        "output_width",
        "sampling_ratio",
        "spatial_scale",
    ),
}
"""The form of each of these operators."""
