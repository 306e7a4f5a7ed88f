"""Windows of elements, gathered by a table of positions: for what Relax's pooling does not do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from reprise.lower.relax.application import Application, Shape


@dataclass(frozen=True, slots=True)
class Windows:
    """``positions`` has, for each window (first axis), the flat positions of its elements among
    the spatial axes, and the number of elements where there is none (padding)."""

    positions: npt.NDArray[np.int64]
    elements: int

    @property
    def size(self) -> int:
        """How many elements a window has."""
        return int(self.positions.shape[1])

    def gathered(self, n: Application, x: str, padding: str) -> str:
        """A variable of shape [batch, channels, windows, elements]; ``x`` is of the operand's
        shape, ``padding`` an expression of rank 0 of its type."""
        batch, channels = n.shape[:2]
        count, size = self.positions.shape
        flat = f"R.reshape({x}, {(batch, channels, self.elements)})"
        if (self.positions == self.elements).any():
            edge = f"R.broadcast_to({padding}, {(batch, channels, 1)})"
            flat = f"R.concat([{flat}, {edge}], axis=2)"
        at = n.array(self.positions.reshape(-1), "positions")
        taken = f"R.take({n.let(flat, 'flat')}, {at}, axis=2)"
        return n.let(f"R.reshape({taken}, {(batch, channels, count, size)})", "windows")


def sliding(n: Application, outputs: Shape) -> Windows:
    """The windows of a pooling operator with spatial extents ``outputs``."""
    extents = n.shape[2:]
    spatial = len(extents)
    starts, strides, dilations = n.attr("pads")[:spatial], n.attr("strides"), n.attr("dilations")
    rows = []
    for place in product(*map(range, outputs)):
        along = [
            [
                place[i] * strides[i] - starts[i] + k * dilations[i]
                for k in range(n.attr("kernel")[i])
            ]
            for i in range(spatial)
        ]
        rows.append(_flat(along, extents))
    return _table(rows, extents)


def adaptive(n: Application, outputs: Shape) -> Windows:
    """The windows of adaptive pooling; short ones repeat an element (so, for extremes only)."""
    extents = n.shape[2:]
    rows = []
    for place in product(*map(range, outputs)):
        along = [
            list(range(i * extent // count, -(-(i + 1) * extent // count)))
            for i, extent, count in zip(place, extents, outputs, strict=True)
        ]
        rows.append(_flat(along, extents))
    longest = max((len(row) for row in rows), default=1)
    return _table([row + row[:1] * (longest - len(row)) for row in rows], extents)


def _flat(along: list[list[int]], extents: Shape) -> list[int]:
    """Flat positions of the product of positions along each axis; the total for what is outside."""
    outside = prod(extents)
    row = []
    for point in product(*along):
        at = 0
        for position, extent in zip(point, extents, strict=True):
            inside = 0 <= position < extent
            at = at * extent + position if inside and at >= 0 else -1
            if not inside:
                break
        row.append(at if at >= 0 else outside)
    return row


def _table(rows: list[list[int]], extents: Shape) -> Windows:
    size = len(rows[0]) if rows else 1
    table: Any = np.array(rows, np.int64).reshape(len(rows), size)
    return Windows(table, prod(extents))
