"""Convolutions over one, two and three axes, and their transposes.

Sums are over windows that are gathered first (an im2col); 16-bit floats accumulate in ``float32``.
``output_shape`` of a transposed convolution is already in its ``pads``.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from reprise.uir.semantics.registry import Values, kernel
from reprise.uir.semantics.windows import Ints, padded, windows


def convolve(
    x: Values, w: Values, strides: Ints, pads: Ints, dilations: Ints, groups: int
) -> Values:
    """The convolution without bias, in the type of the operands."""
    rank = w.ndim - 2
    view = windows(padded(x, pads), w.shape[2:], strides, dilations)
    if groups == 1:
        return _contract(view, w, rank)
    parts = zip(np.split(view, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([_contract(part, filters, rank) for part, filters in parts], 1)


def _contract(view: Values, w: Values, rank: int) -> Values:
    """Windows [N, C, *P, *R] and filters [K, C, *R] to [N, K, *P]."""
    of_view = [1, *range(2 + rank, 2 + 2 * rank)]
    made = np.tensordot(view, w, (of_view, [1, *range(2, 2 + rank)]))
    return np.moveaxis(made, -1, 1)


def along_channels(b: Values, rank: int) -> Values:
    """A vector of channels, to be broadcast against [N, C, ...]."""
    return b.reshape((-1,) + (1,) * rank)


@kernel("conv1d", "conv2d", "conv3d")
def convolution(
    x: Values,
    w: Values,
    b: Values | None = None,
    *,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    groups: int = 1,
) -> Values:
    made = convolve(x, w, strides, pads, dilations, groups)
    return made if b is None else made + along_channels(b, w.ndim - 2)


@kernel("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(
    x: Values,
    w: Values,
    b: Values | None = None,
    *,
    strides: Ints,
    pads: Ints,
    output_padding: Ints | None = None,
    dilations: Ints,
    groups: int = 1,
) -> Values:
    rank = w.ndim - 2
    output_padding = output_padding or (0,) * rank
    taps = w.shape[2:]
    extents = x.shape[2:]
    ends = [
        (extent - 1) * s + d * (k - 1) + 1 + o
        for extent, s, d, k, o in zip(
            extents, strides, dilations, taps, output_padding, strict=True
        )
    ]
    # room for every tap, even where an empty axis would make the formula negative
    room = [
        max(end, max(extent - 1, 0) * s + d * max(k - 1, 0) + 1)
        for end, extent, s, d, k in zip(ends, extents, strides, dilations, taps, strict=True)
    ]
    per_group = w.shape[1]
    full = np.zeros((x.shape[0], groups * per_group, *room), x.dtype)
    for g, (part, filters) in enumerate(
        zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)
    ):
        target = full[:, g * per_group : (g + 1) * per_group]
        for tap in product(*map(range, taps)):
            places = tuple(
                slice(t * d, t * d + extent * s, s)
                for t, d, extent, s in zip(tap, dilations, extents, strides, strict=True)
            )
            at: Any = (slice(None), slice(None), *tap)
            share = np.tensordot(part, filters[at], ([1], [0]))
            spot = target[(slice(None), slice(None), *places)]
            spot += np.moveaxis(share, -1, 1)[
                (slice(None), slice(None), *(slice(0, e) for e in spot.shape[2:]))
            ]
    kept = tuple(
        slice(pads[i], pads[i] + max(ends[i] - pads[i] - pads[rank + i], 0)) for i in range(rank)
    )
    made = full[(slice(None), slice(None), *kept)]
    return made if b is None else made + along_channels(b, rank)
