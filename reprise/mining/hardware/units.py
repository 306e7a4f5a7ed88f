"""Quantities with units, and the one place where units are converted.

Sizes are kept in bits as exact integers or fractions; counts (elements, words, lanes, threads) have
no unit. Adding or comparing a size and a count is an error, not a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_BITS = {"bits": 1, "bit": 1, "b": 1, "bytes": 8, "byte": 8, "B": 8}
_SIZES = _BITS | {
    prefix + letter: factor * bits
    for prefix, factor in (
        *((p, 1000**i) for i, p in enumerate(("k", "M", "G", "T"), 1)),
        ("K", 1000),
        *((p + "i", 1024**i) for i, p in enumerate(("K", "M", "G", "T"), 1)),
    )
    for letter, bits in (("B", 8), ("b", 1))
}
_COUNTS = frozenset({"elements", "words", "lanes", "threads", "count"})

_WRITTEN = re.compile(
    r"\s*(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?))"
    r"\s*(?P<unit>[A-Za-z]*)\s*"
)


MOST_DIGITS = 1000
"""Of a number that are read: no device has so much of anything."""


class UnitError(ValueError):
    """A unit that is not known, or units that do not go together."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """``value`` in bits to the power ``bits``: 0 for a count, 1 for a size."""

    value: Fraction
    bits: int = 0

    def __str__(self) -> str:
        return f"{self.value} bits" if self.bits == 1 else str(self.value)


def is_unit(unit: str) -> bool:
    """Whether ``unit`` is one that :func:`quantity` knows."""
    return unit in _SIZES or unit in _COUNTS


def quantity(value: int | Fraction, unit: str) -> Quantity:
    """``value`` of ``unit``. Raises UnitError for a unit that is not known."""
    if unit in _COUNTS:
        return Quantity(Fraction(value))
    if unit not in _SIZES:
        raise UnitError(f"`{unit}` is no unit: write bits, bytes, KiB, MiB, GiB, kB or elements")
    return Quantity(Fraction(value) * _SIZES[unit], 1)


def written(text: str) -> tuple[Fraction, str] | None:
    """The number and the unit (perhaps empty) of ``"16 KiB"``; None if ``text`` is no number."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    number = found["number"][:MOST_DIGITS]  # more digits say as little
    value = Fraction(int(number, 16)) if "x" in number.lower() else Fraction(number)
    return value, found["unit"]


def unit_of_key(key: str) -> str:
    """The unit that a canonical key carries in its name: bits, bytes, or elements."""
    parts = key.split("_")
    return next((unit for unit in ("bits", "bytes") if unit in parts), "elements")


def in_unit(amount: Quantity, unit: str) -> int:
    """``amount`` as a whole number of ``unit``.

    Raises:
        UnitError: it is not whole, or a size is wanted and a count is given, or the reverse.
    """
    wanted = quantity(1, unit)
    if amount.bits != wanted.bits:
        given = {0: "a count", 1: "a size"}.get(amount.bits, "a size to some power")
        raise UnitError(f"{given} was found where {unit} are expected")
    value = amount.value / wanted.value
    if value.denominator != 1:
        raise UnitError(f"{float(value):g} is not a whole number of {unit}")
    return value.numerator
