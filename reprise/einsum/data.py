"""The data of a kernel: stored coordinates and values, from descriptions and seeds.

What comes out is a :class:`Stored` for every operand, as a list of entries: what a tensor's format
makes of them is a target's business. Entries follow from the description and the shape alone, so
that any process can make them again.

Integers are drawn from -4 to 4 without 0, so that sums and products of a kernel's size are exact in
its float type (:func:`reprise.einsum.reference.is_exact` says whether they are).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from reprise.einsum.fitting import LARGEST_HELD, expect_fit, shape_before
from reprise.einsum.kernel import (
    REALS,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Kept,
    Kernel,
    KernelError,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Structure,
    Transposed,
    Zeros,
)

Array = np.ndarray[Any, Any]

LARGEST = 4
"""Drawn integers are at most this, in magnitude."""
_MOST_PLACES = 1 << 22
"""Up to so many places each is drawn for by itself; in larger tensors entries are drawn."""
MOST_ELEMENTS = 1 << 27
"""Elements of an array that is made: a gigabyte of float64."""
MOST_AXES = 32
"""Indices of an array, and of a term that is computed: what every numpy since 1.0 holds."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Entries of a tensor: ``coordinates`` (int64, count x rank) and ``values`` (count).

    Coordinates may repeat, which means that the values add up, and need not be sorted.
    """

    shape: tuple[int, ...]
    coordinates: Array
    values: Array

    def dense(self) -> Array:
        """The tensor as an array. Raises KernelError if it is too large to be one."""
        if prod(self.shape) > MOST_ELEMENTS or len(self.shape) > MOST_AXES:
            raise KernelError(f"a tensor of shape {_brief(self.shape)} is too large to be dense")
        if not self.shape:
            return np.asarray(self.values.sum(dtype=self.values.dtype))
        array = np.zeros(self.shape, self.values.dtype)
        np.add.at(array, tuple(self.coordinates.T), self.values)
        return array

    def canonical(self) -> Stored:
        """The same with sorted coordinates, each once; zeros stay where they are stored."""
        if not len(self.values):
            return self
        flat = _flat(self.coordinates, self.shape)
        places, inverse = np.unique(flat, return_inverse=True)
        values = np.zeros(len(places), self.values.dtype)
        np.add.at(values, inverse.reshape(-1), self.values)
        return Stored(self.shape, _unflat(places, self.shape), values)


def materialise(kernel: Kernel, computed: Mapping[str, Array] | None = None) -> dict[str, Stored]:
    """The entries of every operand. ``computed`` holds the outputs that it reads, if it reads any.

    Raises KernelError for data that do not fit their tensor, and for outputs that are not given.
    """
    shapes = kernel.shapes
    found = {}
    for tensor in kernel.operands:
        assert tensor.data is not None
        try:
            found[tensor.name] = entries(
                tensor.data, shapes[tensor.name], np.dtype(kernel.dtype), computed or {}
            )
        except KernelError as error:
            raise KernelError(f"tensor {tensor.name}: {error}") from error
    return found


def entries(
    data: Data,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    computed: Mapping[str, Array] | None = None,
) -> Stored:
    """The entries of a tensor of this shape. Raises KernelError."""
    expect_fit(data, shape, dtype.name)
    match data:
        case Computed(output):
            array = (computed or {}).get(output)
            if array is None:
                raise KernelError(f"reads {output}, which nothing has computed")
            return of_array(np.asarray(array, dtype), shape)
        case Drawn():
            stored = _draw(data, shape_before(shape, data.edits), dtype)
        case Entries(coordinates, values):
            stored = _written(coordinates, values, shape_before(shape, data.edits), dtype)
    for edit in data.edits:
        stored = _edited(stored, edit)
    return stored


def of_array(array: Array, shape: tuple[int, ...] | None = None) -> Stored:
    """The entries of an array: what is not zero. Raises KernelError if it has another shape."""
    if shape is not None and array.shape != shape:
        raise KernelError(f"has shape {array.shape}, not {shape}")
    places = np.flatnonzero(array)
    return Stored(array.shape, _unflat(places, array.shape), array.reshape(-1)[places])


def permutation(seed: int, extent: int) -> Array:
    """The permutation of the coordinates of an axis that a seed stands for."""
    return np.random.default_rng(seed).permutation(extent)


# --- drawing -------------------------------------------------------------------------------------


def _draw(data: Drawn, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Stored:
    rng = np.random.default_rng(data.seed)
    places = _places(data, shape, rng)
    values = _values(data.values, len(places), dtype, rng)
    stored = Stored(shape, _unflat(places, shape), values)
    if data.duplicates and len(places):
        stored = _split(stored, data.duplicates, data.values, rng)
    if data.zeros:
        stored = _with_zeros(stored, data.zeros, rng)
    if data.unsorted:
        return _taken(stored, rng.permutation(len(stored.values)))
    # A stable sort: the halves of a duplicate stay in their order.
    return _taken(stored, np.argsort(_flat(stored.coordinates, shape), kind="stable"))


def _places(data: Drawn, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """The places that have an entry, as sorted numbers in row-major order."""
    count = prod(shape)
    if count == 0 or data.structure is Structure.EMPTY:
        return np.zeros(0, np.int64)
    if count > _MOST_PLACES:
        return _scattered(data, shape, rng)
    if data.structure is Structure.FULL:
        return np.arange(count, dtype=np.int64)
    chosen = rng.random(count) < data.density
    places = np.arange(count, dtype=np.int64)
    return places[chosen & _inside(data.structure, _unflat(places, shape), shape, rng)]


def _inside(
    structure: Structure, coordinates: Array, shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """Which coordinates a structure leaves room for."""
    rank = len(shape)
    if structure is Structure.BANDED and rank >= 2:
        return np.asarray(np.abs(coordinates[:, 0] - coordinates[:, 1]) <= 1)
    if structure is Structure.ROW and rank >= 1:
        axis = int(rng.integers(rank))
        return np.asarray(coordinates[:, axis] == rng.integers(shape[axis]))
    return np.ones(len(coordinates), bool)


def _scattered(data: Drawn, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """The same for a tensor whose places are too many to be asked one by one."""
    share = 1.0 if data.structure is Structure.FULL else data.density
    wanted = prod(shape) * share
    if wanted > _MOST_PLACES:
        raise KernelError(f"{wanted:.3g} entries are more than {_MOST_PLACES} to be drawn")
    coordinates = np.stack([rng.integers(extent, size=int(wanted)) for extent in shape], axis=1)
    if data.structure is Structure.BANDED:
        near = coordinates[:, 0] + rng.integers(-1, 2, size=len(coordinates))
        coordinates[:, 1] = np.clip(near, 0, shape[1] - 1)
    coordinates = coordinates[_inside(data.structure, coordinates, shape, rng)]
    return np.unique(_flat(coordinates, shape))


def _values(kind: str, count: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Values, none of them zero."""
    if kind == REALS:
        return np.asarray((1.0 - rng.random(count)) * rng.choice([-1.0, 1.0], count), dtype)
    return np.asarray(rng.integers(1, LARGEST + 1, count) * rng.choice([-1, 1], count), dtype)


def _split(stored: Stored, most: int, kind: str, rng: np.random.Generator) -> Stored:
    """Some entries as two, whose values add up to theirs exactly."""
    chosen = rng.permutation(len(stored.values))[:most]
    values = stored.values.copy()
    if kind == REALS:  # half and half: the only parts that surely add up
        first = values[chosen] / 2
    else:
        first = _values(kind, len(chosen), stored.values.dtype, rng)
    values[chosen] -= first
    return Stored(
        stored.shape,
        np.concatenate([stored.coordinates, stored.coordinates[chosen]]),
        np.concatenate([values, first]),
    )


def _with_zeros(stored: Stored, count: int, rng: np.random.Generator) -> Stored:
    """Zeros stored at up to ``count`` places that have no entry."""
    total = prod(stored.shape)
    if total <= _MOST_PLACES:
        free = np.setdiff1d(np.arange(total), _flat(stored.coordinates, stored.shape))
        chosen = rng.permutation(free)[:count]
    else:
        drawn = np.unique(rng.integers(total, size=count))
        chosen = np.setdiff1d(drawn, _flat(stored.coordinates, stored.shape))
    return Stored(
        stored.shape,
        np.concatenate([stored.coordinates, _unflat(chosen.astype(np.int64), stored.shape)]),
        np.concatenate([stored.values, np.zeros(len(chosen), stored.values.dtype)]),
    )


def _written(
    coordinates: tuple[tuple[int, ...], ...],
    values: tuple[float, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Stored:
    array = np.array(coordinates, np.int64).reshape(len(coordinates), len(shape))
    return Stored(shape, array, np.asarray(values, dtype))


# --- edits ---------------------------------------------------------------------------------------


def _edited(stored: Stored, edit: Edit) -> Stored:
    shape, coordinates, values = stored.shape, stored.coordinates, stored.values
    match edit:
        case Transposed(axes):
            return Stored(tuple(shape[a] for a in axes), coordinates[:, list(axes)], values)
        case Scaled(exponent):
            return Stored(shape, coordinates, _scaled(values, exponent))
        case Permuted(axis, seed):
            moved = coordinates.copy()
            moved[:, axis] = permutation(seed, shape[axis])[moved[:, axis]]
            return Stored(shape, moved, values)
        case Zeros(count, seed):
            return _with_zeros(stored, count, np.random.default_rng(seed))
        case Part(number, of):
            return _taken(stored, np.arange(len(values)) % of == number)
        case Kept(axis, start, stop):
            along = coordinates[:, axis]
            return _taken(stored, (start <= along) & (along < stop))
        case Reordered(seed):
            return _taken(stored, np.random.default_rng(seed).permutation(len(values)))


def _scaled(values: Array, exponent: int) -> Array:
    with np.errstate(over="ignore"):
        wide = np.ldexp(values, exponent)
    if np.any(np.abs(wide) > LARGEST_HELD[values.dtype.name]):
        raise KernelError(f"{values.dtype.name} does not hold the values times 2^{exponent}")
    return wide.astype(values.dtype)


def _taken(stored: Stored, which: Array) -> Stored:
    return Stored(stored.shape, stored.coordinates[which], stored.values[which])


def _brief(shape: tuple[int, ...]) -> str:
    return str(shape) if len(shape) <= 8 else f"({', '.join(map(str, shape[:6]))}, ...)"


def _flat(coordinates: Array, shape: tuple[int, ...]) -> Array:
    """Coordinates as numbers in row-major order."""
    flat = np.zeros(len(coordinates), np.int64)
    for axis, extent in enumerate(shape):
        flat = flat * extent + coordinates[:, axis]
    return flat


def _unflat(places: Array, shape: tuple[int, ...]) -> Array:
    """The inverse of :func:`_flat`."""
    coordinates = np.empty((len(places), len(shape)), np.int64)
    for axis in reversed(range(len(shape))):
        places, coordinates[:, axis] = np.divmod(places, max(shape[axis], 1))
    return coordinates
