"""Strata: an order in which a program's rules can be run, or the cycle that forbids one.

In comes a program, out go its strongly connected components of relations, each after those that
it reads. Invariant: within a stratum no relation depends on another through ``not`` or an
aggregate, so when a stratum runs, everything it negates or aggregates is complete (Apt, Blair &
Walker 1988, "Towards a theory of declarative knowledge").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from reprise.lang.core import Aggregate, Atom, Literal, Program, Rule
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.safety import NOWHERE

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that are computed together, with the rules that define them."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class Dependency:
    """A rule's head reads ``source``; ``how`` is ``""``, ``"not "`` or an aggregate's kind."""

    source: str
    how: str
    rule: Rule

    @property
    def strict(self) -> bool:
        """Whether ``source`` has to be complete before the rule runs."""
        return self.how != ""


def stratify(program: Program) -> list[Stratum]:
    """The derived relations of ``program`` as strata, in an order in which they can be computed.

    Raises :class:`RulesError` with one ``not-stratified`` diagnostic per component whose relations
    depend on themselves through ``not`` or an aggregate; it spells out the cycle.
    """
    rules: dict[str, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).append(rule)
    reads = {
        head: [dependency for rule in own for dependency in dependencies(rule)]
        for head, own in rules.items()
    }
    graph = {head: [d.source for d in found if d.source in rules] for head, found in reads.items()}
    strata = []
    problems = []
    for component in components(graph):
        members = frozenset(component)
        inside = [d for head in component for d in reads[head] if d.source in members]
        strict = next((d for d in inside if d.strict), None)
        if strict is not None:
            problems.append(_cycle_diagnostic(strict, reads, members))
        own = tuple(rule for head in component for rule in rules[head])
        strata.append(Stratum(tuple(component), own, bool(inside)))
    if problems:
        raise RulesError(problems)
    return strata


def dependencies(rule: Rule) -> Iterator[Dependency]:
    """The relations that a rule reads, with how it reads them."""
    yield from _reads(rule.body, "", rule)


def _reads(literals: Iterable[Literal], around: str, rule: Rule) -> Iterator[Dependency]:
    for literal in literals:
        if isinstance(literal, Atom):
            how = around or ("not " if literal.negated else "")
            yield Dependency(literal.relation, how, rule)
        elif isinstance(literal, Aggregate):
            yield from _reads(literal.body, around or f"{literal.kind} of ", rule)


def components(graph: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """Strongly connected components, successors first (Tarjan 1972), without recursion.

    Every successor must itself be a node. Nodes of a component are in order of discovery.
    """
    number: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    on_stack: set[T] = set()
    found: list[list[T]] = []
    for root in graph:
        if root in number:
            continue
        work: list[tuple[T, Iterator[T]]] = [(root, iter(graph[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    start = stack.index(node)
                    found.append(stack[start:])
                    on_stack.difference_update(stack[start:])
                    del stack[start:]
    return found


def _cycle_diagnostic(
    strict: Dependency, reads: Mapping[str, list[Dependency]], members: frozenset[str]
) -> Diagnostic:
    """The shortest cycle through one strict dependency, each step with its rule and place."""
    head = strict.rule.head.relation
    steps = [strict, *_shortest(strict.source, head, reads, members)]
    path = head + "".join(f" -> {step.how}{step.source}" for step in steps)
    places = "; ".join(
        f"`{step.rule.head.relation}` reads `{step.how}{step.source}`"
        f"{f' in {step.rule.name}' if step.rule.name else ''}"
        f"{f' at {step.rule.span}' if step.rule.span else ''}"
        for step in steps
    )
    through = "`not`" if strict.how == "not " else "an aggregate"
    message = f"`{head}` depends on itself through {through}: {path}"
    return Diagnostic("not-stratified", message, strict.rule.span or NOWHERE, places)


def _shortest(
    start: str, goal: str, reads: Mapping[str, list[Dependency]], members: frozenset[str]
) -> list[Dependency]:
    """The fewest dependencies that lead from ``start`` to ``goal``, by breadth-first search."""
    paths: dict[str, list[Dependency]] = {start: []}
    queue = [start]
    for node in queue:
        if node == goal:
            return paths[node]
        for dependency in reads[node]:
            if dependency.source in members and dependency.source not in paths:
                paths[dependency.source] = [*paths[node], dependency]
                queue.append(dependency.source)
    return paths[goal]
