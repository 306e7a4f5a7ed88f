"""What of a rule set a graph violates: the last word on every model, by the engine alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reprise.lang import core
from reprise.lang.declared import Constraint
from reprise.lang.ruleset import RuleSet
from reprise.patterns.denials import violation_pattern
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.uir.graph import Graph


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
        self._matcher = Matcher(rules, [violation_pattern(c) for c in constraints])
        self._given = tuple(given)

    def judge(self, graph: Graph) -> Judgement:
        """What the graph violates."""
        found = self._matcher.run(graph, given=self._given).findings
        sure = frozenset(f.pattern.name for f in found if f.certainty is Truth.YES)
        possible = frozenset(f.pattern.name for f in found if f.certainty is Truth.UNKNOWN)
        return Judgement(sure, possible - sure)
