"""Bounds of slices as ONNX reads them, once for shapes, values and lowerings alike."""

from __future__ import annotations


def slice_of(extent: int, start: int, end: int, step: int) -> slice:
    """The slice of an axis that the bounds mean. Bounds below 0 count from the end, once, and are
    then clamped: a start to the axis's positions, unlike Python, where a slice that starts before
    the first element and goes backwards is empty (here it has that element).

    Source: ``Slice`` in ONNX's ``defs/tensor/defs.cc``, whose shape inference does as ONNX Runtime
    does; its numpy reference goes Python's way.
    """
    start += extent if start < 0 else 0
    end += extent if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), extent), min(max(end, 0), extent), step)
    first = min(max(start, 0), extent - 1)
    last = min(max(end, -1), extent - 1)
    if first <= last:
        return slice(0, 0, 1)
    return slice(first, None if last < 0 else last, step)
