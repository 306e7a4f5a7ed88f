"""The engine's side of the generator: what fits where, and which candidates complete a known bug.

A :class:`Guide` holds one incremental database for all programs of a generator. Invariant: between
two calls it holds the facts of the program that is being built, and nothing else; a candidate that
is not kept is taken back exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reprise.cache import cache_folder
from reprise.datalog import Database
from reprise.datalog.demand import on_demand, renamed_relations
from reprise.facts.facts import Fact, value_of
from reprise.lang.core import Program, Row
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.uir.graph import Scalar, Tensor

_KEEP_AFTER = frozenset({2, 100, 2_000, 20_000})
"""After how many programs what was compiled is kept for the next start: most rules are needed for
the first time in the first few programs, the others hardly ever."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A pattern that a candidate completes, and the nodes that it matches, in its order."""

    pattern: Pattern
    nodes: tuple[int, ...]


class Effect(NamedTuple):
    """What a commit brought: new rows of ``accepts``, the patterns that are complete now, and
    whether something is there that must not be."""

    accepts: list[Row]
    completed: list[Completed]
    forbidden: bool


class Guide:
    """Follows a graph as it grows.

    ``patterns`` are the known bugs to steer away from; ``forbidden`` names further relations whose
    rows make a program invalid (a target's constraints). ``environment`` answers ``env(name)``,
    ``opset`` is what the program will be lowered to.
    """

    def __init__(
        self,
        rules: RuleSet,
        patterns: Sequence[Pattern],
        takes: Iterable[Row],
        *,
        forbidden: Sequence[str] = (),
        environment: Mapping[str, Scalar] | None = None,
        opset: int | None = None,
    ) -> None:
        self._forbidden = frozenset(forbidden)
        self._by_name = {p.name: p for p in patterns}
        roots = [*(p.name for p in patterns), *forbidden, "accepts"]
        self.program: Program = on_demand(rules.program, roots)
        self.database = Database(self.program, cache=cache_folder(), checked=True)
        self._wanted = frozenset(self.program.relations)
        self._learned = 0
        facts: list[Fact] = [("takes", row) for row in takes]
        for name, given in sorted((environment or {}).items()):
            if (value := value_of(given)) is not None:
                facts.append(("env", (name, value)))
        if opset is not None:
            facts += [("opset", (domain, opset)) for domain in ("", "ai.onnx")]
        self._given = facts
        self.database.commit([fact for fact in facts if fact[0] in self._wanted])
        self._start = self.database.mark()
        self._watched = frozenset(roots)
        self._begun = 0
        self._members: dict[Row, list[int]] = {}
        self._accepted: list[list[list[int]]] = []
        self._kinds = 1 + max((int(row[0]) for row in self.database.rows("takes")), default=-1)

    def learn(self, rules: RuleSet, patterns: Sequence[Pattern]) -> None:
        """Watch for these patterns too; the program that is being built is forgotten. What their
        rules derive has names of its own: what is derived on demand for others is not enough."""
        names = [p.name for p in patterns]
        self._learned += 1
        asked = on_demand(rules.program, names)
        derived = asked.derived() - set(names)
        more = renamed_relations(asked, {name: f"{name}~{self._learned}" for name in derived})
        self.database.undo(self._start)
        self.database.extend(more)
        fresh = more.relations.keys() - self._wanted
        self._wanted |= fresh
        self.database.commit([fact for fact in self._given if fact[0] in fresh])
        self._start = self.database.mark()
        self._by_name.update({p.name: p for p in patterns})
        self._watched |= frozenset(names)

    def begin(self) -> None:
        """Forget the last program. Now and then, keep the rules that were compiled meanwhile."""
        self.database.undo(self._start)
        self._begun += 1
        if self._begun in _KEEP_AFTER:
            self.database.save()
        self._members = {}
        self._accepted = [[] for _ in range(self._kinds)]

    def mark(self) -> int:
        """A point to return to with :meth:`take_back`."""
        return self.database.mark()

    def take_back(self, mark: int) -> None:
        """Forget what was committed since ``mark``, and the mark."""
        self.database.undo(mark)
        self.database.release(mark)

    def commit(self, facts: Iterable[Fact]) -> Effect:
        """Add the facts of one entity (or facts about the finished graph)."""
        wanted = self._wanted
        changes = self.database.commit([fact for fact in facts if fact[0] in wanted])
        accepts: list[Row] = []
        completed: list[Completed] = []
        forbidden = False
        for name in changes.relations(self._watched):
            if name == "accepts":
                accepts = changes.new(name)
            elif name in self._by_name:
                pattern = self._by_name[name]
                for row in changes.new(name):
                    completed.append(Completed(pattern, tuple([int(n) for n in row])))
            elif name in self._forbidden:
                forbidden = forbidden or bool(changes.new(name))
        return Effect(accepts, completed, forbidden)

    def keep(self, accepts: Iterable[Row], tensors: Iterable[Tensor]) -> None:
        """Note that tensors are there to stay, and what the commits that brought them changed in
        ``accepts``."""
        members = self._members
        for kind, *type in accepts:
            self._accepted[int(kind)].append(members.setdefault(tuple(type), []))
        for tensor in tensors:
            shape = tensor.type.shape
            if tensor.type.dtype is not None and shape is not None:
                members.setdefault((tensor.type.dtype, len(shape)), []).append(tensor.id)

    def accepted(self, kind: int) -> list[list[int]]:
        """The tensors that operand positions of a kind accept, oldest first: one list for each
        element type and rank."""
        return self._accepted[kind]
