"""The small interface that every engine has: ours, and the ones that check it.

Invariant: two engines that run the same core program on the same facts return equal ``rows``.
"""

from __future__ import annotations

from typing import Any, Protocol

from reprise.datalog.facts import Facts
from reprise.lang.core import Row


class Engine(Protocol):
    """A store of facts that can say what a program derives from them."""

    def add(self, relation: str, *row: Any) -> object:
        """Add one base fact."""

    def commit(self, adds: Facts = (), deletes: Facts = ()) -> object:
        """Delete, then add base facts."""

    def rows(self, relation: str) -> list[Row]:
        """All rows of a base or derived relation, sorted."""

    def count(self, relation: str) -> int:
        """How many rows a relation has."""
