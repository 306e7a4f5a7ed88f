"""Values as the engine stores them: which Python objects a column holds, and how rows are ordered.

Python finds ``1``, ``1.0`` and ``True`` equal, Datalog must not. Typed columns settle this by
holding one Python type each. ``any`` columns hold mixed values, so there a float with an integral
value is stored as an :class:`AnyFloat`, which equals no int. Invariant: within one column, two
stored values are equal in Python exactly if they are the same Datalog value; NaN is one object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from reprise.lang.core import SCALAR_TYPES, Relation, Row, Value

NAN = math.nan
"""The one NaN that is stored: tuples and dictionaries find it by identity."""


class AnyFloat(float):
    """A float with an integral value in an ``any`` column: equal to floats only, never to ints."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("float", float.__hash__(self)))


def box(value: Value) -> Value:
    """``value`` as an ``any`` column stores it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value.is_integer():
            return AnyFloat(value)
        return value if value == value else NAN
    return value


def identical(left: Value, right: Value) -> bool:
    """Whether two stored values are the same; NaN is the same as itself."""
    return left is right or left == right


def plain(value: Value) -> Value:
    """The ordinary Python value of a stored one."""
    return float(value) if type(value) is AnyFloat else value


def _sym(value: object) -> Value | None:
    return value if type(value) is str else None


def _bool(value: object) -> Value | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and value in ("true", "false") else None


def _int(value: object) -> Value | None:
    return value if type(value) is int else None


def _float(value: object) -> Value | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = float(value)
    return number if number == number else NAN


def _any(value: object) -> Value | None:
    return box(value) if isinstance(value, (int, float, str)) else None


def _entity(value: object) -> Value | None:
    return value if type(value) is int and value >= 0 else None


_COERCIONS: dict[str, Callable[[object], Value | None]] = {
    "sym": _sym,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "any": _any,
}


def coerce(value: object, type_: str) -> Value | None:
    """``value`` as a column of this type stores it, or ``None`` if it does not belong there.

    Bool columns accept Python's booleans, float columns ints; nothing else is converted.
    """
    return _COERCIONS.get(type_, _entity)(value)


def constant(value: Value, type_: str) -> Value:
    """A rule's constant as it is compared with a column of this type."""
    stored = coerce(value, type_)
    return value if stored is None else stored


def as_float(value: object) -> Value | None:
    """A value of any type as a float variable holds it: ints do not count as floats here."""
    return _float(value) if isinstance(value, float) else None


def is_entity(type_: str) -> bool:
    """Whether a column type is an entity sort rather than a plain value type."""
    return type_ not in SCALAR_TYPES


def plain_rows(relation: Relation, rows: Iterable[Row]) -> list[Row]:
    """Stored rows as they leave the engine: ordinary values, in the engine's order."""
    if all(column.type not in ("any", "float") for column in relation.columns):
        return sorted(rows)
    return sorted((tuple(map(plain, row)) for row in rows), key=row_order)


def row_order(row: Row) -> tuple[tuple[int, float | str, str], ...]:
    """A sort key that never compares a number with a symbol: numbers, NaN, symbols."""
    return tuple(_value_order(value) for value in row)


def _value_order(value: Value) -> tuple[int, float | str, str]:
    if isinstance(value, str):
        return (2, value, "")
    if value != value:
        return (1, 0.0, "")
    return (0, value, "float" if isinstance(value, float) else "int")
