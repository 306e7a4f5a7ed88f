"""Violations in a model: of deny rules, whose rows are reported, and of constraints.

A constraint's violations are matched as a pattern is, unknown extents and all. A deny rule is plain
Datalog over anything, not only over nodes: its rows are derived, and each is asked about once more,
three-valued, so that a row that rests on what the model leaves open is *possible* only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reprise.cache import cache_folder
from reprise.datalog import Database, Limits
from reprise.facts.facts import facts_of
from reprise.lang import core
from reprise.lang.declared import PLACEHOLDER, Constraint, Deny, Pattern
from reprise.lang.display import shown
from reprise.lang.ruleset import RuleSet
from reprise.lang.safety import variable_types
from reprise.patterns.explain import entity_names
from reprise.patterns.match import Finding, Match, open_guards
from reprise.patterns.truth import Answer, Bindings, Solver, Truth
from reprise.uir.graph import Graph, Scalar


def violation_pattern(constraint: Constraint) -> Pattern:
    """The places where a constraint is violated, as a pattern."""
    title = constraint.doc.partition("\n")[0].strip() or constraint.klass
    meta = {"class": (constraint.klass,), **constraint.meta}
    nodes, alternatives = constraint.nodes, constraint.alternatives
    return Pattern(
        constraint.name, title, meta, nodes, alternatives, constraint.doc, constraint.span
    )


@dataclass(frozen=True, slots=True)
class Denied:
    """A row of a deny rule: its message, filled in, and the values of the rule's variables."""

    finding: Finding
    message: str
    values: dict[str, core.Value]


class Denials:
    """A set of deny rules, compiled once, ready for graphs."""

    def __init__(self, rules: RuleSet, denies: Sequence[Deny], limits: Limits | None) -> None:
        self.denies = tuple(denies)
        names = dict.fromkeys(deny.name for deny in denies)
        self.program = rules.program.restricted_to([*names, *open_guards(rules.program)])
        self._database = Database(self.program, limits=limits, cache=cache_folder(), checked=True)
        self._start = self._database.mark()

    def run(self, graph: Graph, environment: Mapping[str, Scalar]) -> tuple[list[Denied], Match]:
        """The rows in ``graph``, by rule, and what explains them (until the next run)."""
        facts = facts_of(graph, environment=environment)
        self._database.undo(self._start)
        self._database.commit([fact for fact in facts if fact[0] in self.program.relations])
        self._database.save()
        solver = Solver(self.program, self._database)
        match = Match(graph, [], [], self._database, self._database, solver)
        names = entity_names(graph)
        by_name: dict[str, list[Deny]] = {}
        for deny in self.denies:
            by_name.setdefault(deny.name, []).append(deny)
        found = [
            self._denied(denies, row, solver, names)
            for denies in by_name.values()
            for row in self._database.rows(denies[0].name)
        ]
        return found, match

    def _denied(
        self, denies: Sequence[Deny], row: core.Row, solver: Solver, names: Mapping[int, str]
    ) -> Denied:
        """The row as told by the deny rule that it comes from, the surest if there are several."""
        rank = {Truth.YES: 2, Truth.UNKNOWN: 1, Truth.NO: 0}
        told = [one for deny in denies for one in self._answers(deny, row, solver)]
        deny, rule, answer = max(told, key=lambda one: rank[one[2].truth])
        nodes: dict[str, int] = {}
        values: dict[str, core.Value] = {}
        in_words: dict[str, core.Value] = {}
        for name, column, value in zip(
            deny.columns, self.program.relations[deny.name].columns, row, strict=True
        ):
            entity = column.type in ("node", "tensor") and isinstance(value, int)
            word = names.get(int(value), f"#{value}") if entity else value
            in_words[name] = word
            if column.type == "node" and isinstance(value, int):
                nodes[name.lower()] = value
            elif name != "_":
                values[name] = word
        # the row was derived, so it is possible whatever the solver makes of it
        truth = Truth.YES if answer.truth is Truth.YES else Truth.UNKNOWN
        pattern = Pattern(deny.name, deny.message, {}, tuple(nodes), (), "", deny.span)
        types = variable_types(rule, self.program.relations)
        for name in PLACEHOLDER.findall(deny.message):  # one that only the body has
            found = answer.bindings.get(name)
            if name not in in_words and isinstance(found, int | float | str):
                entity = types.get(name) in ("node", "tensor") and isinstance(found, int)
                in_words[name] = names.get(int(found), f"#{found}") if entity else found
        message = _filled(deny.message, in_words)
        return Denied(Finding(pattern, truth, nodes, answer), message, values)

    def _answers(
        self, deny: Deny, row: core.Row, solver: Solver
    ) -> list[tuple[Deny, core.Rule, Answer]]:
        """What the solver says of each body that the deny rule became."""
        answers = []
        for rule in self.program.rules:
            if rule.head.relation == deny.name and rule.span == deny.span:
                bindings: Bindings = {
                    term.name: value
                    for term, value in zip(rule.head.terms, row, strict=True)
                    if isinstance(term, core.Var)
                }
                answers.append((deny, rule, solver.ask(rule.body, bindings)))
        return answers


def _filled(message: str, values: Mapping[str, core.Value]) -> str:
    """A message with the values of its ``{Variables}``."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        return shown(values[name]) if name in values else found.group(0)

    return PLACEHOLDER.sub(value, message)
