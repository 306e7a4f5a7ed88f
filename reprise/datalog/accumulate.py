"""Aggregates that follow their solutions both ways: each added or removed solution is one update.

A :class:`View` keeps an accumulator per non-empty group and reports, per commit, which groups'
values changed. Invariant: an accumulator's value depends only on the multiset of solutions that it
holds, never on their order or on what was there before — so undo is exact. Float sums and products
are therefore kept as exact fractions and rounded once; minima and maxima keep a count per value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from reprise.datalog.clauses import DEFAULTS, AggregateView
from reprise.datalog.layout import Layout
from reprise.datalog.values import NAN, box, plain
from reprise.lang.core import Row, Value

if TYPE_CHECKING:
    from fractions import Fraction


class Accumulator(Protocol):
    """The value of one group. ``change`` adds (+1) or removes (−1) one solution."""

    def change(self, value: Value, sign: int) -> None: ...

    def result(self) -> Value | None:
        """The group's value, or ``None`` if no solution counts."""


class Count:
    """How many solutions there are."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 0

    def change(self, value: Value, sign: int) -> None:
        self._number += sign

    def result(self) -> Value | None:
        return self._number or None


class _Numeric:
    """Bookkeeping that sums and products share: the special floats are counted apart."""

    __slots__ = ("_floats", "_infinite", "_nan", "_negative", "_number", "_total", "_zeros")
    _start = 0

    def __init__(self) -> None:
        self._total: int | Fraction = self._start
        self._number = self._floats = self._zeros = 0
        self._infinite = self._negative = self._nan = 0

    def change(self, value: Value, sign: int) -> None:
        if isinstance(value, str):
            return
        self._number += sign
        if isinstance(value, float):
            self._floats += sign
            if not math.isfinite(value):
                self._special(value, sign)
                return
        self._combine(_fraction(value) if isinstance(value, float) else value, sign)

    def _special(self, value: float, sign: int) -> None:
        if value != value:
            self._nan += sign
        else:
            self._infinite += sign
            self._negative += sign if value < 0 else 0

    def _combine(self, value: int | Fraction, sign: int) -> None:
        raise NotImplementedError

    def _finish(self, total: int | Fraction) -> Value:
        if not self._floats:
            return int(total)
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf


def _fraction(value: float | Fraction) -> Fraction:
    from fractions import Fraction  # Slow to load, and only needed with floats.

    return Fraction(value)


class Sum(_Numeric):
    """The sum of the numbers among the values."""

    __slots__ = ()

    def _combine(self, value: int | Fraction, sign: int) -> None:
        self._total += value * sign

    def result(self) -> Value | None:
        if not self._number:
            return None
        if self._nan or 0 < self._negative < self._infinite:
            return NAN
        if self._infinite:
            return -math.inf if self._negative else math.inf
        return self._finish(self._total)


class Product(_Numeric):
    """The product of the numbers among the values; zeros are counted, so that they can leave."""

    __slots__ = ()
    _start = 1

    def _combine(self, value: int | Fraction, sign: int) -> None:
        if value == 0:
            self._zeros += sign
        elif sign > 0:
            self._total *= value
        elif isinstance(self._total, int) and isinstance(value, int):
            self._total //= value
        else:
            self._total = _fraction(self._total) / value

    def result(self) -> Value | None:
        if not self._number:
            return None
        if self._nan or (self._infinite and self._zeros):
            return NAN
        if self._infinite:
            return -math.inf if (self._total < 0) != (self._negative % 2 == 1) else math.inf
        return self._finish(0 if self._zeros else self._total)


class Extreme:
    """The smallest or largest number among the values."""

    __slots__ = ("_best", "_choose", "_counts")

    def __init__(self, choose: Any) -> None:
        self._choose = choose
        self._counts: dict[tuple[type, Value], int] = {}
        self._best: Value | None = None

    def change(self, value: Value, sign: int) -> None:
        if isinstance(value, str) or value != value:
            return
        value = plain(value)
        key = (type(value), value)
        count = self._counts.get(key, 0) + sign
        if count:
            self._counts[key] = count
            if sign > 0:
                self._best = value if self._best is None else self._pick((self._best, value))
        else:
            del self._counts[key]
            if value == self._best:
                self._best = self._pick(v for _, v in self._counts) if self._counts else None

    def _pick(self, values: Iterable[Value]) -> Value:
        """The extreme value; of an int and a float that are equal, always the int."""
        best: Value = self._choose(values, key=self._rank)
        return best

    def _rank(self, value: Value) -> tuple[Value, bool]:
        return (value, isinstance(value, float) == (self._choose is min))

    def result(self) -> Value | None:
        return self._best


def total(kind: str, values: Iterable[Value]) -> Value | None:
    """The aggregate of some values, one for each solution; of none, as the rule language says."""
    accumulator = _accumulator(kind)
    for value in values:
        accumulator.change(value, 1)
    result = accumulator.result()
    return DEFAULTS.get(kind) if result is None else result


def _accumulator(kind: str) -> Accumulator:
    match kind:
        case "count":
            return Count()
        case "sum":
            return Sum()
        case "prod":
            return Product()
        case "min":
            return Extreme(min)
        case _:
            return Extreme(max)


class View:
    """The values of one aggregate, by group: what a clause's lookup reads.

    ``values`` maps a group (the bare value if it has one column) to its value, and never holds the
    default. Rows of a view are group columns followed by the value; a group without solutions
    counts as having a row with the default.
    """

    def __init__(self, spec: AggregateView, layout: Layout) -> None:
        self.spec = spec
        self.layout = layout
        self.name = spec.name
        self.values: dict[Any, Value] = {}
        self._groups: dict[tuple[Value, ...], Accumulator] = {}
        self._mixed = spec.relation.columns[-1].type == "any"

    def change(self, plus: list[Row], minus: list[Row]) -> tuple[list[Row], list[Row]]:
        """Account for new and lost solutions; the view's rows that appear and disappear."""
        size = self.spec.group
        touched: dict[tuple[Value, ...], Value | None] = {}
        for rows, sign in ((plus, 1), (minus, -1)):
            for row in rows:
                group = row[:size]
                accumulator = self._groups.get(group)
                if accumulator is None:
                    accumulator = self._groups[group] = _accumulator(self.spec.kind)
                if group not in touched:
                    touched[group] = self._value(accumulator)
                accumulator.change(row[size] if len(row) > size else 0, sign)
        appeared = []
        gone = []
        for group, old in touched.items():
            accumulator = self._groups[group]
            new = self._value(accumulator)
            if accumulator.result() is None:
                del self._groups[group]
            if new == old and type(new) is type(old):
                continue
            if old is not None:
                gone.append((*group, old))
            if new is not None:
                appeared.append((*group, new))
        self.remove(gone)
        self.insert(appeared)
        return appeared, gone

    def value(self, group: tuple[Value, ...]) -> Value | None:
        """A group's value, or ``None`` if it has none."""
        return self.values.get(self._key((*group, 0)), self.spec.default)

    def revert(self, solutions: tuple[list[Row], list[Row]]) -> None:
        """Undo :meth:`change` of the same rows."""
        plus, minus = solutions
        self.change(minus, plus)

    def _value(self, accumulator: Accumulator) -> Value | None:
        result = accumulator.result()
        if result is None:
            return self.spec.default
        return box(result) if self._mixed else result

    def _key(self, row: Row) -> Any:
        return row[0] if self.spec.group == 1 else row[:-1]

    def insert(self, rows: list[Row]) -> None:
        """Enter values by group."""
        default = self.spec.default
        for row in rows:
            if row[-1] != default or type(row[-1]) is not type(default):
                self.values[self._key(row)] = row[-1]

    def remove(self, rows: list[Row]) -> None:
        """Let groups have the default again."""
        for row in rows:
            self.values.pop(self._key(row), None)
