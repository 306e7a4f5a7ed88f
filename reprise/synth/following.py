"""A database that follows a growing graph, and catches up with it when it is asked.

Invariant: whoever reads a :class:`Following`, or commits to it, finds the facts of every entity
that was added to it and not taken back, each committed by itself, in the order of arrival. Until
then their facts are not even made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reprise.datalog.changes import Changes, Proposal
from reprise.datalog.database import Database
from reprise.datalog.facts import Facts
from reprise.facts.facts import Fact, entity_facts
from reprise.lang.core import Program, Row, Value
from reprise.uir.graph import Node, Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from reprise.datalog.explain import Derivation, NearMiss

Addition = Tensor | Node | list[Fact]
"""A source, a node with its results, or facts about the finished graph."""


class Following(Database):
    """A database of a graph's facts. What is added after :meth:`try_out` can be taken back."""

    def __init__(self, program: Program, cache: Path | None) -> None:
        super().__init__(program, cache=cache, checked=True)
        self._wanted = frozenset(program.relations)
        self._origin: int | None = None
        self._added: list[Addition] = []
        self._known = 0
        self._trial: int | None = None
        self._trial_mark: int | None = None

    def restart(self) -> None:
        """Forget the graph, and begin another. What is there the first time stays."""
        if self._origin is None:
            self._origin = super().mark()
        super().undo(self._origin)
        self._added = []
        self._known = 0
        self._trial = self._trial_mark = None

    def append(self, addition: Addition) -> None:
        """Note what has been added to the graph."""
        self._added.append(addition)

    def try_out(self) -> None:
        """From here on, additions are on trial."""
        self._trial = len(self._added)
        self._trial_mark = None

    def accept(self) -> None:
        """Keep what was on trial."""
        if self._trial_mark is not None:
            super().release(self._trial_mark)
        self._trial = self._trial_mark = None

    def take_back(self) -> None:
        """Forget what was on trial."""
        assert self._trial is not None
        if self._trial_mark is not None:
            super().undo(self._trial_mark)
            super().release(self._trial_mark)
        del self._added[self._trial :]
        self._known = min(self._known, self._trial)
        self._trial = self._trial_mark = None

    def catch_up(self) -> list[Changes]:
        """Commit what was added meanwhile; what the additions on trial among it have changed."""
        changes = []
        added, wanted = self._added, self._wanted
        while self._known < len(added):
            addition = added[self._known]
            on_trial = self._trial is not None and self._known >= self._trial
            if on_trial and self._trial_mark is None:
                self._trial_mark = super().mark()
            facts = addition if isinstance(addition, list) else entity_facts(addition)
            self._known += 1
            changed = super().commit([fact for fact in facts if fact[0] in wanted])
            if on_trial:
                changes.append(changed)
        return changes

    def extend(self, program: Program) -> Changes:
        """Add relations and rules; what is there at the next restart is what stays from then on."""
        self.catch_up()
        changes = super().extend(program)
        self._wanted = frozenset(self.program.relations)
        self._origin = None
        return changes

    # --- what others ask -------------------------------------------------------------------------

    def commit(self, adds: Facts = (), deletes: Facts = ()) -> Changes:
        self.catch_up()
        return super().commit(adds, deletes)

    def propose(self, adds: Facts, deletes: Facts = ()) -> Proposal:
        self.catch_up()
        return super().propose(adds, deletes)

    def rows(self, relation: str) -> list[Row]:
        self.catch_up()
        return super().rows(relation)

    def count(self, relation: str) -> int:
        self.catch_up()
        return super().count(relation)

    def contains(self, relation: str, *row: Any) -> bool:
        self.catch_up()
        return super().contains(relation, *row)

    def match(self, relation: str, pattern: Sequence[Value | None]) -> list[Row]:
        self.catch_up()
        return super().match(relation, pattern)

    def why(self, relation: str, *row: Any) -> Derivation:
        self.catch_up()
        return super().why(relation, *row)

    def why_not(self, relation: str, *row: Any) -> list[NearMiss]:
        self.catch_up()
        return super().why_not(relation, *row)
