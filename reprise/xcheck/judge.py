"""What of a rule set a graph violates: the last word on every model, by the engine alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reprise.datalog import Database
from reprise.facts.facts import facts_of
from reprise.lang import core
from reprise.lang.declared import Constraint
from reprise.lang.ruleset import RuleSet
from reprise.patterns.denials import violation_pattern
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.uir.graph import Graph
from reprise.xcheck.behaviour import Seen, Vector


@dataclass(frozen=True, slots=True)
class Judgement:
    """Names of the constraints that a graph violates: for certain, and perhaps."""

    violated: frozenset[str]
    possible: frozenset[str]


class Judge:
    """Judges graphs by some constraints. ``given``: further facts, as of the device."""

    def __init__(
        self,
        rules: RuleSet,
        constraints: Iterable[Constraint],
        given: Sequence[tuple[str, core.Row]],
    ) -> None:
        self._constraints = tuple(constraints)
        self._matcher = Matcher(
            rules, [violation_pattern(c) for c in self._constraints], keep=False
        )
        self._given = tuple(given)
        guards = rules.program.restricted_to([c.guard for c in self._constraints])
        self._guards = Database(guards, checked=True)
        self._start = self._guards.mark()

    def judge(self, graph: Graph) -> Judgement:
        """What the graph violates."""
        found = self._matcher.run(graph, given=self._given).findings
        sure = frozenset(f.pattern.name for f in found if f.certainty is Truth.YES)
        possible = frozenset(f.pattern.name for f in found if f.certainty is Truth.UNKNOWN)
        return Judgement(sure, possible - sure)

    def vector(self, graph: Graph, judgement: Judgement) -> Vector:
        """What holds in the graph of each constraint whose guard matches somewhere."""
        guards = self._guards
        guards.undo(self._start)
        relations = guards.program.relations
        guards.commit([f for f in (*facts_of(graph), *self._given) if f[0] in relations])
        seen = {c.name: Seen.SATISFIED for c in self._constraints if guards.count(c.guard)}
        seen |= dict.fromkeys(judgement.possible, Seen.UNKNOWN)
        seen |= dict.fromkeys(judgement.violated, Seen.VIOLATED)
        return tuple(sorted(seen.items()))
