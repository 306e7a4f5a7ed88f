"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reprise.lower.onnx.call import Call, Form, Ref, array_of
from reprise.lower.onnx.forms import reduce, same

_WINDOW = ("strides", "pads", "auto_pad")


def _window(c: Call, *names: str) -> dict[str, object]:
    """Kernel, strides, pads and dilations; dilations of 1 are left out, for some opsets of the
    pooling operators have none."""
    attributes = {name: c[name] for name in (*_WINDOW, *names)}
    dilations = c["dilations"]
    if dilations is not None and any(dilation != 1 for dilation in dilations):
        attributes["dilations"] = dilations
    attributes["kernel_shape"] = c["kernel"]
    return attributes


def _convolution(op: str, *names: str) -> Form:
    def form(c: Call) -> Ref:
        return c.add(op, *c.operands, group=c["groups"], **_window(c, *names))

    return form


def _pooling(op: str, *names: str, results: int = 1) -> Form:
    def form(c: Call) -> Sequence[Ref]:
        return c.add_many(op, results, c.x, **_window(c, *names))

    return form


def _max_unpool(c: Call) -> Ref:
    shape = c.get(2)
    if shape is None and c["output_shape"] is not None:
        shape = c.ints("output_shape", c["output_shape"])
    names = {name: c[name] for name in ("strides", "pads")}
    return c.add("MaxUnpool", c.x, c.operand(1), shape, kernel_shape=c["kernel"], **names)


def _adaptive(pool: str, everything: str, reduction: str) -> Form:
    """One pooling node where every extent is a multiple of its output; else axis by axis: the
    windows of an axis are gathered, so that they become two axes, and the second is reduced."""

    def form(c: Call) -> Ref:
        extents, wanted = c.shape()[2:], c["output_size"]
        if all(size == 1 for size in wanted):
            return c.add(everything, c.x)
        if all(extent % size == 0 for extent, size in zip(extents, wanted, strict=True)):
            kernel = tuple(e // size for e, size in zip(extents, wanted, strict=True))
            return c.add(pool, c.x, kernel_shape=kernel, strides=kernel)
        x = c.x
        for axis, (extent, size) in enumerate(zip(extents, wanted, strict=True), 2):
            if extent != size:
                x = _axis_windows(c, x, axis, extent, size, reduction)
        return x

    return form


def _axis_windows(c: Call, x: Ref, axis: int, extent: int, size: int, reduction: str) -> Ref:
    """Windows of unequal sizes repeat their first element, which a maximum does not notice; for a
    mean, repeated elements are set to 0 and the sum is divided by the window's size."""
    starts = [i * extent // size for i in range(size)]
    ends = [-(-(i + 1) * extent // size) for i in range(size)]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    rows = np.array(
        [
            [start + j if start + j < end else start for j in range(longest)]
            for start, end in zip(starts, ends, strict=True)
        ],
        np.int64,
    )
    windows = c.add("Gather", x, c.constant("windows", rows, "int64"), axis=axis)
    counts = np.array([end - start for start, end in zip(starts, ends, strict=True)])
    if reduction == "ReduceMax" or (counts == longest).all():
        return reduce(c, reduction, windows, (axis + 1,), False)
    after = (1,) * (c.rank() - axis - 1)
    kept = (np.arange(longest)[None, :] < counts[:, None]).reshape(size, longest, *after)
    dtype = c.dtype()
    zero = c.number(0.0, label="zero")
    masked = c.add("Where", c.constant("kept", kept, "bool"), windows, zero)
    total = reduce(c, "ReduceSum", masked, (axis + 1,), False)
    divisor = counts.astype(array_of(0.0, dtype).dtype).reshape(size, *after)
    return c.add("Div", total, c.constant("counts", divisor, dtype))


_AVERAGE = _adaptive("AveragePool", "GlobalAveragePool", "ReduceMean")
_MAXIMUM = _adaptive("MaxPool", "GlobalMaxPool", "ReduceMax")
_DIMENSIONS = (1, 2, 3)

FORMS: dict[str, Form] = {
    **{f"conv{n}d": _convolution("Conv") for n in _DIMENSIONS},
    **{f"conv_transpose{n}d": _convolution("ConvTranspose", "output_padding") for n in _DIMENSIONS},
    **{f"max_pool{n}d": _pooling("MaxPool", "ceil_mode", results=2) for n in _DIMENSIONS},
    **{
        f"avg_pool{n}d": _pooling("AveragePool", "ceil_mode", "count_include_pad")
        for n in _DIMENSIONS
    },
    **{f"adaptive_avg_pool{n}d": _AVERAGE for n in _DIMENSIONS},
    **{f"adaptive_max_pool{n}d": _MAXIMUM for n in _DIMENSIONS},
    "lp_pool": _pooling("LpPool", "ceil_mode", "p"),
    "max_unpool": _max_unpool,
    "global_avg_pool": same("GlobalAveragePool"),
    "global_max_pool": same("GlobalMaxPool"),
    "global_lp_pool": same("GlobalLpPool", "p"),
    "conv_integer": _convolution("ConvInteger"),
    "qlinear_conv": _convolution("QLinearConv"),
}
"""The form of each of these operators."""
