"""What values the sources of a generated program have: ordinary, of a demanded kind, or special.

Comes in: the type of a source, the kind of values that ``rules/std/values.rules`` asks for where
it is used, a random generator. Goes out: an array. Everything is drawn from one ``Random`` (as
bytes, which numpy then spreads), so that a program's values follow from its seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Array, Attribute, TensorType
from reprise.uir.types import numpy_dtype

SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 6e-8, 1.0, -1.0, 3e9, -3e9)
"""Floats that kernels and rewrites get wrong (``facts.md``): zeros, infinities, NaN, denormals,
what disappears beside 1, what overflows 32 bits."""


WORDS = ("", "a", "b", "ab", "A", "x y", "a::b", " a ", "1", "-2", "0.5", "\u00e4\u00df", "\u6f22")
"""Texts: none, words that operators look for, blanks and separators, numerals, letters of two and
three bytes."""


class NoValue(Exception):
    """There are no values of the kind: an index into nothing."""


@dataclass(frozen=True, slots=True)
class Use:
    """Where a source is used: what its operator's operand 0 and attributes are. ``result`` is the
    type of the operator's first result."""

    first: TensorType
    attributes: Mapping[str, Attribute]
    result: TensorType
    second: TensorType | None = None


Bytes = npt.NDArray[np.uint8]
Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Draw = Callable[[Random, TensorType, Use], Array]


def ordinary(rng: Random, type: TensorType) -> Array:
    """Values of no particular kind: floats within ±1, ±2 or ±8, whole now and then, or all the
    same; integers within ±8; either bool; words and numerals as text."""
    shape, dtype, count = _known(type)
    kind = DTYPES[type.dtype or ""].kind
    if kind == "string":
        return np.array([rng.choice(WORDS) for _ in range(count)], dtype).reshape(shape)
    if kind == "bool":
        return (_bytes(rng, count) & 1).astype(np.bool_).reshape(shape)
    if kind in ("int", "uint"):
        values = (_bytes(rng, count) % 17).astype(np.int64) - (8 if kind == "int" else 0)
        return values.astype(dtype).reshape(shape)
    style = rng.random()
    if style < 0.1:
        return np.full(shape, rng.choice((0.0, 1.0, -1.0, 0.5, 2.0)), np.float64).astype(dtype)
    scale = 1.0 if style < 0.6 else 2.0 if style < 0.9 else 8.0
    spread = _fractions(rng, count) * (2 * scale) - scale
    if style > 0.85:
        spread = np.round(spread)
    return spread.astype(dtype).reshape(shape)


def special(rng: Random, type: TensorType) -> Array:
    """Ordinary floats with some special ones among them, or nothing but one special value."""
    values = ordinary(rng, type)
    if DTYPES[type.dtype or ""].kind != "float" or values.size == 0:
        return values
    flat = values.reshape(-1)
    if rng.random() < 0.2:
        flat[:] = _as(rng.choice(SPECIAL), flat.dtype)
    else:
        for _ in range(rng.randint(1, min(4, flat.size))):
            flat[rng.randrange(flat.size)] = _as(rng.choice(SPECIAL), flat.dtype)
    return values


def of_kind(kind: str, rng: Random, type: TensorType, use: Use) -> Array:
    """Values of a kind of ``rules/std/values.rules``. Raises NoValue, and KeyError for a kind that
    is none."""
    return KINDS[kind](rng, type, use)


# --- drawing -------------------------------------------------------------------------------------


def _known(type: TensorType) -> tuple[tuple[int, ...], np.dtype[np.generic], int]:
    assert type.shape is not None and type.dtype is not None
    shape: tuple[int, ...] = type.shape  # type: ignore[assignment]
    return shape, numpy_dtype(type.dtype), math.prod(shape)


def _bytes(rng: Random, count: int) -> Bytes:
    return np.frombuffer(rng.randbytes(count), np.uint8)


def _fractions(rng: Random, count: int) -> Doubles:
    """Numbers in [0, 1)."""
    return np.frombuffer(rng.randbytes(4 * count), np.uint32).astype(np.float64) * 2.0**-32


def _below(rng: Random, count: int, bound: int) -> Indices:
    if bound <= 0 and count:
        raise NoValue
    return (_fractions(rng, count) * bound).astype(np.int64)


def _as(value: float, dtype: np.dtype[np.generic]) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(value, np.float64).astype(dtype)


def _between(low: float, high: float) -> Draw:
    """Numbers in [low, high); integers from the first whole one."""

    def draw(rng: Random, type: TensorType, use: Use) -> Array:
        shape, dtype, count = _known(type)
        spread = _fractions(rng, count)
        if DTYPES[type.dtype or ""].kind == "float":
            return (low + spread * (high - low)).astype(dtype).reshape(shape)
        first = math.ceil(low)
        return (first + spread * (math.ceil(high) - first)).astype(dtype).reshape(shape)

    return draw


def _nonzero(rng: Random, type: TensorType, use: Use) -> Array:
    values = _between(0.125, 3.0)(rng, type, use)
    if DTYPES[type.dtype or ""].kind == "uint":
        return values
    minus = (_bytes(rng, values.size) & 1).astype(np.bool_).reshape(values.shape)
    np.negative(values, out=values, where=minus)
    return values


def _axis(use: Use, name: str = "axis") -> int:
    axis = use.attributes.get(name, 0)
    assert isinstance(axis, int)
    return axis


def _extent(type: TensorType, axis: int) -> int:
    assert type.shape is not None
    extent = type.shape[axis]
    assert isinstance(extent, int)
    return extent


def _indices(bound: Callable[[Use], int]) -> Draw:
    def draw(rng: Random, type: TensorType, use: Use) -> Array:
        shape, dtype, count = _known(type)
        return _below(rng, count, bound(use)).astype(dtype).reshape(shape)

    return draw


def _second_rows(use: Use) -> int:
    assert use.second is not None
    return _extent(use.second, 0)


def _distinct(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    axis = _axis(use)
    bound = _extent(use.first, axis)
    length = shape[axis]
    if length > bound:
        raise NoValue
    lanes = [rng.sample(range(bound), length) for _ in range(count // length if length else 0)]
    moved = (*shape[:axis], *shape[axis + 1 :], length)
    return np.moveaxis(np.array(lanes, dtype).reshape(moved), -1, axis).copy()


def _tuples(distinct: bool) -> Draw:
    def draw(rng: Random, type: TensorType, use: Use) -> Array:
        shape, dtype, _ = _known(type)
        batch = use.attributes.get("batch_dims", 0)
        assert isinstance(batch, int) and use.first.shape is not None
        extents = [_extent(use.first, batch + i) for i in range(shape[-1])]
        rows = math.prod(shape[:-1])
        places = math.prod(extents)
        if rows and (places == 0 or (distinct and rows > places)):
            raise NoValue
        if distinct:
            flat = np.array(rng.sample(range(places), rows), np.int64)
        else:
            flat = _below(rng, rows, places)
        if not extents:
            return np.zeros(shape, dtype)
        return np.stack(np.unravel_index(flat, extents), -1).astype(dtype).reshape(shape)

    return draw


def _classes(use: Use) -> int:
    depth = use.attributes["depth"]
    assert isinstance(depth, int)
    return depth


def _lengths(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    longest = _extent(use.first, _axis(use, "time_axis"))
    return (1 + _below(rng, count, longest)).astype(dtype).reshape(shape)


def _key_lengths(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    assert use.second is not None
    return (1 + _below(rng, count, _extent(use.second, -2))).astype(dtype).reshape(shape)


def _planes(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, _ = _known(type)
    if use.result.shape is None:  # a signature may leave it open
        raise NoValue
    places = math.prod(e for e in use.result.shape[2:] if isinstance(e, int))
    each = math.prod(shape[2:])
    if each > places:
        raise NoValue
    plane = shape[0] * shape[1]
    return np.array([rng.sample(range(places), each) for _ in range(plane)], dtype).reshape(shape)


def _corners(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    values = (_fractions(rng, count) * 2).reshape(shape)
    half = shape[-1] // 2
    values[..., half:] += values[..., :half] + 0.25
    return values.astype(dtype)


def _region(rng: Random, type: TensorType, use: Use) -> Array:
    """Rows of five: an index into the first axis of operand 0, the corners of a box."""
    shape, dtype, count = _known(type)
    rows = count // 5
    index = _below(rng, rows, _extent(use.first, 0)).astype(dtype).reshape(-1, 1)
    near = _below(rng, 2 * rows, 4).reshape(-1, 2)
    far = near + _below(rng, 2 * rows, 4).reshape(-1, 2)
    return np.concatenate([index, near.astype(dtype), far.astype(dtype)], 1).reshape(shape)


def _shift(rng: Random, type: TensorType, use: Use) -> Array:
    return _indices(lambda _: DTYPES[type.dtype or ""].bits)(rng, type, use)


def _word(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    words = [word for word in WORDS if word.strip()]
    return np.array([rng.choice(words) for _ in range(count)], dtype).reshape(shape)


def _zero(rng: Random, type: TensorType, use: Use) -> Array:
    shape, dtype, count = _known(type)
    info = DTYPES[type.dtype or ""]
    if info.kind == "float" or info.bits != 8:
        return np.zeros(shape, dtype)
    return _below(rng, count, 16).astype(dtype).reshape(shape)


KINDS: dict[str, Draw] = {
    "positive": _between(0.125, 3.0),
    "non_negative": _between(0.0, 3.0),
    "nonzero": _nonzero,
    "fraction": _between(0.0, 1.0),
    "unit": _between(-0.95, 0.95),
    "above_one": _between(1.0, 4.0),
    "increasing": _corners,
    "index": _indices(lambda use: _extent(use.first, _axis(use))),
    "distinct_index": _distinct,
    "index_tuple": _tuples(distinct=False),
    "distinct_tuple": _tuples(distinct=True),
    "class_index": _indices(_classes),
    "channel_index": _indices(lambda use: _extent(use.first, 1)),
    "last_index": _indices(lambda use: _extent(use.first, -1)),
    "batch_index": _indices(lambda use: _extent(use.first, 0)),
    "row_index": _indices(_second_rows),
    "key_length": _key_lengths,
    "length": _lengths,
    "plane_index": _planes,
    "region": _region,
    "shift": _shift,
    "word": _word,
    "zero": _zero,
}
