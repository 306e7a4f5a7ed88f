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
from reprise.datalog.changes import Changes
from reprise.datalog.demand import on_demand, renamed_relations
from reprise.facts.facts import Fact, value_of
from reprise.lang.core import Program, Row
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.synth.following import Following
from reprise.synth.triggers import Alarm, Triggers
from reprise.uir.graph import Node, Scalar, Tensor

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
        self.database = Following(self.program, cache_folder())
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
        self._watched = frozenset(roots)
        self._takers: dict[tuple[str, int], list[Row]] = {}
        for row in self.database.rows("takes"):
            self._takers.setdefault((str(row[1]), int(row[2])), []).append(row)
        self._kinds = 1 + max((int(row[0]) for row in self.database.rows("takes")), default=-1)
        self._triggers = Triggers(
            {name: [row for of, row in facts if of == name] for name in ("env", "opset")}
        )
        self._to_learn = [(rules.program, frozenset(roots) - {"accepts"})]
        self._begun = 0
        self._forget()

    @property
    def triggers(self) -> Triggers:
        """What says of a node whether to ask the engine; made when first needed."""
        for program, roots in self._to_learn:
            self._triggers.learn(program, roots)
        self._to_learn.clear()
        return self._triggers

    def learn(self, rules: RuleSet, patterns: Sequence[Pattern]) -> None:
        """Watch for these patterns too; the program that is being built is forgotten. What their
        rules derive has names of its own: what is derived on demand for others is not enough."""
        names = [p.name for p in patterns]
        self._learned += 1
        asked = on_demand(rules.program, names)
        derived = asked.derived() - set(names)
        more = renamed_relations(asked, {name: f"{name}~{self._learned}" for name in derived})
        self._forget()
        self.database.extend(more)
        fresh = more.relations.keys() - self._wanted
        self._wanted |= fresh
        self.database.commit([fact for fact in self._given if fact[0] in fresh])
        self._by_name.update({p.name: p for p in patterns})
        self._watched |= frozenset(names)
        self._to_learn.append((rules.program, frozenset(names)))
        self._forget()

    def begin(self) -> None:
        """Forget the last program. Now and then, keep the rules that were compiled meanwhile."""
        self._forget()
        self._begun += 1
        if self._begun in _KEEP_AFTER:
            self.database.save()

    def _forget(self) -> None:
        self.database.restart()
        self._members: dict[Row, list[int]] = {}
        self._accepted: list[list[list[int]]] = [[] for _ in range(self._kinds)]
        self._present: set[str] = set()
        self._alert = self._alert_before = False
        self._fresh: set[Row] = set()
        self._fresh_ops: list[str] = []

    def try_out(self) -> None:
        """What is added from here on can be taken back, until it is kept."""
        self.database.try_out()
        self._fresh = set()
        self._fresh_ops = []
        self._alert_before = self._alert

    def take_back(self) -> None:
        """Forget what was added since :meth:`try_out`."""
        self.database.take_back()
        self._fresh = set()
        self._present.difference_update(self._fresh_ops)
        self._alert = self._alert_before

    def add_source(self, tensor: Tensor) -> list[Row]:
        """Add a source of the next node; the new rows of ``accepts``."""
        self.database.append(tensor)
        return self._newly_accepted((tensor,))

    def add(self, node: Node) -> Effect:
        """Add a node, whose sources were added since :meth:`try_out`."""
        self.database.append(node)
        if node.op not in self._present:
            self._present.add(node.op)
            self._fresh_ops.append(node.op)
        accepts = self._newly_accepted(node.outputs)
        alarm = self.triggers.alarm(node, self._present)
        if alarm is Alarm.LASTS:
            self._alert = True
        elif not (alarm or self._alert):
            return Effect(accepts, [], False)
        effects = [self._effect(changes) for changes in self.database.catch_up()]
        return Effect(
            accepts,
            [completed for effect in effects for completed in effect.completed],
            any(effect.forbidden for effect in effects),
        )

    def finish(self, outputs: Sequence[Tensor]) -> list[Completed]:
        """Add the outputs of the graph; the patterns that they complete."""
        facts: list[Fact] = [("graph_output", (tensor.id,)) for tensor in outputs]
        if self._alert:
            return self.commit(facts).completed
        self.database.append(facts)
        return []

    def commit(self, facts: Iterable[Fact]) -> Effect:
        """Add the facts of one entity (or facts about the finished graph), and look at once."""
        wanted = self._wanted
        return self._effect(self.database.commit([fact for fact in facts if fact[0] in wanted]))

    def _effect(self, changes: Changes) -> Effect:
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

    def _newly_accepted(self, tensors: Sequence[Tensor | None]) -> list[Row]:
        """The rows of ``accepts`` that tensors bring, without asking the engine again: they depend
        on element type and rank alone."""
        rows: list[Row] = []
        for tensor in tensors:
            if tensor is None or tensor.type.dtype is None or tensor.type.elements is None:
                continue
            assert tensor.type.shape is not None
            type = tensor.type.dtype, len(tensor.type.shape)
            if type not in self._members and type not in self._fresh:
                self._fresh.add(type)
                rows += self._takers.get(type, ())
        return sorted(rows) if len(tensors) > 1 and rows else rows

    def keep(self, accepts: Iterable[Row], tensors: Iterable[Tensor]) -> None:
        """Note that tensors are there to stay, and what they changed in ``accepts``."""
        self.database.accept()
        members, accepted = self._members, self._accepted
        for row in accepts:
            kind: int = row[0]  # type: ignore[assignment]
            accepted[kind].append(members.setdefault(row[1:], []))
        for tensor in tensors:
            shape = tensor.type.shape
            known = tensor.type.elements is not None
            if tensor.type.dtype is not None and shape is not None and known:
                members.setdefault((tensor.type.dtype, len(shape)), []).append(tensor.id)

    def accepted(self, kind: int) -> list[list[int]]:
        """The tensors that operand positions of a kind accept, oldest first: one list for each
        element type and rank."""
        return self._accepted[kind]
