"""What a commit changed, and commits that are on trial.

Invariant: a :class:`Changes` is a record of its commit and stays as it is, also when the commit is
taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from types import TracebackType
from typing import Self

from reprise.datalog.facts import Delta
from reprise.datalog.values import plain_rows
from reprise.lang.core import Relation, Row

Schema = Callable[[str], Relation]
"""The schema of a relation by name; raises ``RowError`` for an unknown one."""


class Changes:
    """What a commit changed, derived relations included."""

    __slots__ = ("_minus", "_plus", "_schema")

    def __init__(self, schema: Schema, plus: Delta, minus: Delta) -> None:
        self._schema = schema
        self._plus = plus
        self._minus = minus

    def new(self, relation: str) -> list[Row]:
        """The rows that ``relation`` gained, sorted."""
        return self._rows(relation, self._plus)

    def gone(self, relation: str) -> list[Row]:
        """The rows that ``relation`` lost, sorted."""
        return self._rows(relation, self._minus)

    def _rows(self, relation: str, delta: Delta) -> list[Row]:
        schema = self._schema(relation)
        rows = delta.get(relation)
        return [] if rows is None else plain_rows(schema, rows)

    def relations(self, among: Set[str] | None = None) -> list[str]:
        """The relations (``among`` some) that gained or lost rows, sorted by name."""
        if among is not None:
            return sorted({name for d in (self._plus, self._minus) for name in d if name in among})
        return sorted(name for name in {*self._plus, *self._minus} if "$" not in name)


class Proposal(Changes):
    """A commit that is taken back when its ``with`` block ends, unless it is accepted."""

    __slots__ = ("_accepted", "_end", "_mark")

    def __init__(
        self,
        schema: Schema,
        plus: Delta,
        minus: Delta,
        mark: int,
        end: Callable[[int, bool], None],
    ) -> None:
        self._schema = schema
        self._plus = plus
        self._minus = minus
        self._mark = mark
        self._end = end
        self._accepted = False

    def accept(self) -> None:
        """Keep the facts when the block ends."""
        self._accepted = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(self._mark, self._accepted and kind is None)
