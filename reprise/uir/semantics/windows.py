"""Windows over spatial axes: what convolutions and pooling share.

``pads`` holds what is added before each spatial axis, then after each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reprise.uir.semantics.registry import Values

Ints = tuple[int, ...]


def padded(x: Values, pads: Ints, value: Any = 0) -> Values:
    """x with ``value`` around its spatial axes (all but the first two)."""
    if not any(pads):
        return x
    rank = len(pads) // 2
    shape = list(x.shape)
    inner: list[Any] = [slice(None), slice(None)]
    for i in range(rank):
        extent = shape[i + 2]
        inner.append(slice(pads[i], pads[i] + extent))
        shape[i + 2] = pads[i] + extent + pads[rank + i]
    made = np.full(shape, value, x.dtype)
    made[tuple(inner)] = x
    return made


def windows(x: Values, kernel: Ints, strides: Ints, dilations: Ints) -> Values:
    """A read-only view ``[N, C, *positions, *kernel]`` of the windows of a padded x.

    Where a window does not fit, or the kernel is empty, the view has no elements.
    """
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    positions = [
        max((extent - r) // s + 1, 0)
        for extent, r, s in zip(x.shape[2:], reach, strides, strict=True)
    ]
    if 0 in kernel or 0 in positions:
        return np.zeros((*x.shape[:2], *positions, *kernel), x.dtype)
    view = sliding_window_view(x, reach, tuple(range(2, x.ndim)))
    steps = [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    return view[(slice(None), slice(None), *steps)]


def positions_along(
    extent: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int, ceil: bool
) -> int:
    """How many windows an axis holds; with ``ceil``, a last one that hangs over the end counts if
    it starts inside the (left-padded) input."""
    room = extent + sum(pads) - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= extent + pads[0]:
        count -= 1
    return max(count, 0)


def ceiling_pads(
    extents: Ints, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints
) -> tuple[int, ...]:
    """For each axis, what is added at the end so that the last window of ``ceil_mode`` fits; less
    than 0 where that window would start in the padding at the end and does not count."""
    rank = len(kernel)
    extra = []
    for i, extent in enumerate(extents):
        ends = (pads[i], pads[rank + i])
        count = positions_along(extent, kernel[i], strides[i], ends, dilations[i], True)
        reach = (count - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1
        floor = positions_along(extent, kernel[i], strides[i], ends, dilations[i], False)
        missing = reach - extent - sum(ends)
        extra.append(missing if count < floor else max(missing, 0))
    return tuple(extra)
