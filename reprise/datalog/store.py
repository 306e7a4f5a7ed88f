"""The rows of one relation: a primary dictionary and the indexes that rules turned out to need.

A row is *derived* when it enters the primary, and *published* when the indexes have it, too. Rules
append what they derive to ``new`` and to the primary only; the evaluator publishes it before the
next round or, where rounds do not join with each other, at the level's end. Invariants: between
levels ``new`` is empty and every index holds exactly the primary's rows, each in one bucket,
and no bucket is empty; ``dead`` is empty outside a deletion. Buckets are dictionaries used as
ordered sets, so that removal is constant-time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

from reprise.datalog.layout import Layout, Shape
from reprise.lang.core import Row, Value

Bucket = dict[Row, None]


class Index:
    """Rows by the values of some columns."""

    def __init__(self, columns: tuple[int, ...], rows: Iterable[Row]) -> None:
        self.columns = columns
        self.buckets: dict[Hashable, Bucket] = {}
        self._key: Callable[[Row], Hashable] = itemgetter(*columns)
        self.insert(rows)

    def insert(self, rows: Iterable[Row]) -> None:
        key, buckets = self._key, self.buckets
        for row in rows:
            k = key(row)
            bucket = buckets.get(k)
            if bucket is None:
                buckets[k] = {row: None}
            else:
                bucket[row] = None

    def remove(self, rows: Iterable[Row]) -> None:
        key, buckets = self._key, self.buckets
        for row in rows:
            k = key(row)
            bucket = buckets[k]
            del bucket[row]
            if not bucket:
                del buckets[k]

    def discard(self, rows: Iterable[Row]) -> None:
        """Remove those of some rows that are there."""
        self.remove([row for row in rows if row in self.buckets.get(self._key(row), ())])


class Store:
    """A relation without enforced keys: the primary maps rows to ``None``."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.name = layout.relation.name
        self.new_name = layout.new
        self.rows: dict[Any, Any] = {}
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.published = False
        self.new: list[Row] = []
        self.dead: Bucket = {}
        self.dying: list[Row] = []

    def __contains__(self, row: Row) -> bool:
        return row in self.rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def size(self) -> int:
        """About how many rows there are, at no cost: owners, where rows are kept by owner."""
        return len(self.rows)

    def build(self, columns: tuple[int, ...]) -> Index:
        """The index on ``columns``, created now if there is none."""
        index = self.indexes.get(columns)
        if index is None:
            index = self.indexes[columns] = Index(columns, self)
        return index

    def publish(self, rows: list[Row]) -> None:
        """Enter rows that the primary already has into the indexes."""
        self.published = True
        for index in self.indexes.values():
            index.insert(rows)

    def insert(self, rows: list[Row]) -> None:
        """Add rows that are not there yet."""
        self._insert(rows)
        self.publish(rows)

    def remove(self, rows: list[Row]) -> None:
        """Take published rows out again."""
        if self.indexes:
            for index in self.indexes.values():
                index.remove(rows)
        self._remove(rows)

    def withdraw(self) -> None:
        """Forget what the current level derived, and any deletion under way."""
        for index in self.indexes.values():
            index.discard(self.new)
        self._remove(self.new)
        self.new.clear()
        self.dead.clear()
        self.dying.clear()

    def _insert(self, rows: list[Row]) -> None:
        primary = self.rows
        for row in rows:
            primary[row] = None

    def _remove(self, rows: list[Row]) -> None:
        primary = self.rows
        for row in rows:
            del primary[row]


class KeyedStore(Store):
    """A base relation with one key column: the primary maps it to the row."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        (self._key,) = layout.key

    def __contains__(self, row: Row) -> bool:
        return bool(self.rows.get(row[self._key]) == row)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows.values())

    def _insert(self, rows: list[Row]) -> None:
        primary, key = self.rows, self._key
        for row in rows:
            primary[row[key]] = row

    def _remove(self, rows: list[Row]) -> None:
        primary, key = self.rows, self._key
        for row in rows:
            del primary[row[key]]


class NestedStore(Store):
    """A base relation with several key columns: first one → the others → row."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._first = layout.key[0]
        self._rest: Callable[[Row], Value | tuple[Value, ...]] = itemgetter(*layout.key[1:])

    def __contains__(self, row: Row) -> bool:
        inner = self.rows.get(row[self._first])
        return inner is not None and inner.get(self._rest(row)) == row

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(inner.values() for inner in self.rows.values())

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def _insert(self, rows: list[Row]) -> None:
        primary, first, rest = self.rows, self._first, self._rest
        for row in rows:
            inner = primary.get(row[first])
            if inner is None:
                primary[row[first]] = {rest(row): row}
            else:
                inner[rest(row)] = row

    def _remove(self, rows: list[Row]) -> None:
        primary, first, rest = self.rows, self._first, self._rest
        for row in rows:
            owner = row[first]
            inner = primary[owner]
            if len(inner) == 1:
                del primary[owner]
            else:
                del inner[rest(row)]


def make_store(layout: Layout) -> Store:
    """An empty store of the layout's shape."""
    match layout.shape:
        case Shape.KEYED:
            return KeyedStore(layout)
        case Shape.NESTED:
            return NestedStore(layout)
        case _:
            return Store(layout)
