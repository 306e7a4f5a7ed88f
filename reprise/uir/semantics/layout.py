"""Operators that move elements, or only rename their positions; of any element type.

``pad`` cuts where an amount is negative, before anything is added. ``reflect`` mirrors without
repeating the edge, again and again where one mirror image is not enough; ``wrap`` repeats.
(Resampling, which ``rules/ops/layout.rules`` declares too, is in ``resampling``.)
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from typing import Any

import numpy as np

from reprise.uir.semantics.registry import Values, kernel
from reprise.uir.slices import slice_of

Ints = tuple[int, ...]


@kernel("identity", moves=True)
def identity(x: Values) -> Values:
    return x


@kernel("reshape", moves=True, runtime={1: "shape"})
def reshape(x: Values, *, shape: Ints, allowzero: bool = False) -> Values:
    if not allowzero:
        shape = tuple(x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape))
    if -1 in shape and x.size == 0:
        known = int(np.prod([extent for extent in shape if extent != -1]))
        shape = tuple((0 if known else 1) if e == -1 else e for e in shape)
    return x.reshape(shape)


@kernel("flatten", moves=True)
def flatten(x: Values, *, axis: int = 1) -> Values:
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))


@kernel("squeeze", moves=True, runtime={1: "axes"})
def squeeze(x: Values, *, axes: Ints | None = None) -> Values:
    return np.squeeze(x, axes)


@kernel("unsqueeze", moves=True, runtime={1: "axes"})
def unsqueeze(x: Values, *, axes: Ints) -> Values:
    return np.expand_dims(x, axes)


@kernel("transpose", moves=True)
def transpose(x: Values, *, perm: Ints | None = None) -> Values:
    return np.transpose(x, perm)


@kernel("depth_to_space", moves=True)
def depth_to_space(x: Values, *, block: int, mode: str = "DCR") -> Values:
    n, c, h, w = x.shape
    depth = c // (block * block)
    if mode == "DCR":
        parts = x.reshape(n, block, block, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, depth, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, depth, h * block, w * block)


@kernel("space_to_depth", moves=True)
def space_to_depth(x: Values, *, block: int, mode: str = "DCR") -> Values:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape(n, c * block * block, h // block, w // block)


@kernel("flip", moves=True)
def flip(x: Values, *, axes: Ints) -> Values:
    return np.flip(x, axes)


@kernel("roll", moves=True)
def roll(x: Values, *, axes: Ints, shifts: Ints) -> Values:
    return np.roll(x, shifts, axes)


@kernel("reverse_sequence", moves=True)
def reverse_sequence(
    x: Values, lengths: Values, *, batch_axis: int = 1, time_axis: int = 0
) -> Values:
    """A length is taken for 0 if negative, for the whole axis if greater."""
    extent = x.shape[time_axis]
    length = np.clip(lengths, 0, extent)[:, None]
    step = np.arange(extent)[None, :]
    source = np.where(step < length, length - 1 - step, step)  # [batch, time]
    if batch_axis > time_axis:
        source = source.T
    return np.take_along_axis(x, source.reshape(source.shape + (1,) * (x.ndim - 2)), time_axis)


@kernel("expand", moves=True, runtime={1: "shape"})
def expand(x: Values, *, shape: Ints) -> Values:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, shape)).copy()


@kernel("tile", moves=True, runtime={1: "repeats"})
def tile(x: Values, *, repeats: Ints) -> Values:
    return np.tile(x, repeats)


@kernel("concat", moves=True)
def concat(*xs: Values, axis: int) -> Values:
    return np.concatenate(xs, axis)


@kernel("stack", moves=True)
def stack(*xs: Values, axis: int = 0) -> Values:
    return np.stack(xs, axis)


@kernel("split", moves=True, runtime={1: "sizes"})
def split(x: Values, *, sizes: Ints, axis: int = 0) -> tuple[Values, ...]:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@kernel("chunk", moves=True)
def chunk(x: Values, *, chunks: int, axis: int = 0) -> tuple[Values, ...]:
    extent = x.shape[axis]
    size = -(-extent // chunks)
    return tuple(np.split(x, range(size, extent, size), axis))


@kernel("slice", moves=True, runtime={1: "starts", 2: "ends", 3: "axes", 4: "steps"})
def slice_(
    x: Values, *, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None
) -> Values:
    index = [slice(None)] * x.ndim
    for i, start in enumerate(starts):
        axis = i if axes is None else axes[i]
        index[axis] = slice_of(x.shape[axis], start, ends[i], 1 if steps is None else steps[i])
    return x[tuple(index)]


@kernel("narrow", moves=True)
def narrow(x: Values, *, axis: int, start: int, length: int) -> Values:
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, start + length)
    return x[tuple(index)]


@kernel("select", moves=True)
def select(x: Values, *, axis: int, index: int) -> Values:
    return np.take(x, index, axis)


_PAD_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@kernel("pad", moves=True, runtime={1: "pads", 2: "value", 3: "axes"})
def pad(
    x: Values,
    *,
    pads: Ints,
    axes: Ints | None = None,
    mode: str = "constant",
    value: Any = 0.0,
) -> Values:
    width = [(0, 0)] * x.ndim
    half = len(pads) // 2
    for i, axis in enumerate(range(x.ndim) if axes is None else axes):
        width[axis] = (pads[i], pads[half + i])
    cut = tuple(
        slice(max(-before, 0), extent - max(-after, 0))
        for (before, after), extent in zip(width, x.shape, strict=True)
    )
    if x.ndim:
        x = x[cut]
    added = [(max(before, 0), max(after, 0)) for before, after in width]
    if mode == "constant":
        return _surrounded(x, added, value)
    for axis, pair in enumerate(added):
        if pair != (0, 0):
            x = np.take(x, _source_positions(x.shape[axis], pair, mode), axis)
    return x


def _surrounded(x: Values, added: list[tuple[int, int]], value: Any) -> Values:
    """x in the midst of a larger array full of one value."""
    shape = [
        before + extent + after for (before, after), extent in zip(added, x.shape, strict=True)
    ]
    if x.dtype == object:
        made = np.full(shape, value if isinstance(value, str) else "", object)
    else:
        made = np.full(shape, np.array(value).astype(x.dtype), x.dtype)
    inner = [
        slice(before, before + extent) for (before, _), extent in zip(added, x.shape, strict=True)
    ]
    made[tuple(inner) or ...] = x
    return made


def _source_positions(extent: int, added: tuple[int, int], mode: str) -> Values:
    """For each position of a padded axis, which element is there."""
    if extent == 0:
        return np.zeros(0, np.int64)
    position = np.arange(-added[0], extent + added[1])
    match mode:
        case "edge":
            return np.clip(position, 0, extent - 1)
        case "wrap":
            return position % extent
    if extent == 1:
        return np.zeros_like(position)
    period = 2 * (extent - 1)
    position = position % period
    return np.where(position < extent, position, period - position)


@kernel("trilu", moves=True, runtime={1: "k"})
def trilu(x: Values, *, upper: bool = True, k: int = 0) -> Values:
    kept = np.tri(x.shape[-2], x.shape[-1], k - 1 if upper else k, dtype=bool)
    nothing: Any = "" if x.dtype == object else x.dtype.type(0)
    return np.where(kept, nothing, x) if upper else np.where(kept, x, nothing)
