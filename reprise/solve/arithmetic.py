"""Three-valued arithmetic: integers, symbolic extents and the unknown.

A value is an ``int`` (or ``float``), a ``str`` that names a symbolic extent, a symbol plus a number
(:class:`Shifted`), a tuple of values, or ``None`` for what is not known. Every function answers
exactly when it can and ``None`` when it cannot; it never guesses. Extents are non-negative, and
that is the only fact about a symbol that is used. Truth is ``True``, ``False`` or ``None`` (cannot
tell).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shifted:
    """A symbolic extent plus a number other than 0: ``H - 1`` on its way to ``H - 1 + 1``."""

    symbol: str
    by: int


Value = int | float | str | bool | Shifted | tuple["Value", ...] | None
Truth = bool | None


def known(value: Value) -> bool:
    """Whether ``value`` is a number or a tuple of numbers: nothing symbolic, nothing unknown."""
    if isinstance(value, tuple):
        return all(known(item) for item in value)
    return isinstance(value, int | float)


def plus(a: Value, b: Value) -> Value:
    """``a + b``."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a + b
    if a == 0:
        return b
    if b == 0:
        return a
    if isinstance(b, int):
        return _shift(a, b)
    return _shift(b, a) if isinstance(a, int) else None


def minus(a: Value, b: Value) -> Value:
    """``a - b``; a symbol minus itself is 0."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a - b
    if b == 0:
        return a
    if isinstance(b, int):
        return _shift(a, -b)
    left, right = _parts(a), _parts(b)
    return left[1] - right[1] if left and right and left[0] == right[0] else None


def times(a: Value, b: Value) -> Value:
    """``a * b``; nothing is known of a factor that meets 0."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    return a if b == 1 else None


def quotient(a: Value, b: Value) -> Value:
    """``a / b``, rounded down. Raises ZeroDivisionError where ``b`` is 0."""
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a // b
    return a if b == 1 else None


def remainder(a: Value, b: Value) -> Value:
    """``a % b``, with the sign of ``b``. Raises ZeroDivisionError where ``b`` is 0."""
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a % b
    return 0 if b == 1 else None


def same(a: Value, b: Value) -> Truth:
    """``a == b`` for extents, numbers and lists of them."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return False
        return every(same(x, y) for x, y in zip(a, b, strict=True))
    if known(a) and known(b):
        return a == b
    left, right = _parts(a), _parts(b)
    if left and right and left[0] == right[0]:
        return left[1] == right[1]
    if (_negative(a) and isinstance(b, str)) or (_negative(b) and isinstance(a, str)):
        return False
    return None


def at_most(a: Value, b: Value) -> Truth:
    """``a <= b``."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a <= b
    left, right = _parts(a), _parts(b)
    if left and right and left[0] == right[0]:
        return left[1] <= right[1]
    if isinstance(a, int | float) and a <= 0 and isinstance(b, str):
        return True
    if isinstance(b, int | float) and b < 0 and isinstance(a, str):
        return False
    return None


def negation(truth: Truth) -> Truth:
    """Not, with cannot-tell staying so."""
    return None if truth is None else not truth


def every(truths: Iterable[Truth]) -> Truth:
    """Conjunction: false if any is false, else cannot-tell if any is."""
    result: Truth = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def some(truths: Iterable[Truth]) -> Truth:
    """Disjunction: true if any is true, else cannot-tell if any is."""
    result: Truth = False
    for truth in truths:
        if truth is True:
            return True
        if truth is None:
            result = None
    return result


def product(values: Sequence[Value]) -> Value:
    """The product; 1 for no values, 0 as soon as any is 0."""
    if any(value == 0 for value in values):
        return 0
    result: Value = 1
    for value in values:
        result = times(result, value)
        if result is None:
            return None
    return result


def _parts(value: Value) -> tuple[str, int] | None:
    """A symbol and what is added to it."""
    match value:
        case str():
            return value, 0
        case Shifted(symbol, by):
            return symbol, by
        case _:
            return None


def _shift(value: Value, by: int) -> Value:
    parts = _parts(value)
    if parts is None:
        return None
    symbol, before = parts
    return Shifted(symbol, before + by) if before + by else symbol


def _negative(value: Value) -> bool:
    return isinstance(value, int | float) and value < 0
