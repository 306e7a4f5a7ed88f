"""Finding known bugs in a graph: certain matches, possible ones, and near misses.

Comes in: a rule set and graphs. Goes out: :class:`Finding` values. Certain matches are derived by
the engine. What a model leaves open is looked at place by place: wherever a pattern's *structure*
(nodes and flow) occurs, its conditions are read three-valued (``reprise.patterns.truth``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reprise.datalog import Database, Limits
from reprise.facts.facts import facts_of
from reprise.lang import core
from reprise.lang.declared import Alternative, Pattern
from reprise.lang.ruleset import RuleSet
from reprise.patterns.truth import Answer, Bindings, Solver, Truth, Unknown
from reprise.uir.graph import Graph, Node, Scalar

MAX_NEAR_PER_RULE = 3
"""Near misses shown for one rule: the ones that got furthest."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern and a place in a graph. ``certainty`` NO is a near miss; its answer says which
    condition failed. ``nodes`` maps the pattern's names to node ids."""

    pattern: Pattern
    certainty: Truth
    nodes: dict[str, int]
    answer: Answer

    @property
    def values(self) -> dict[str, core.Value]:
        """The pattern's value variables, as bound at this place."""
        names = {v for a in self.pattern.alternatives for v in a.variables}
        bound = self.answer.bindings
        return {
            name: value
            for name in sorted(names)
            if (value := bound.get(name)) is not None and not isinstance(value, Unknown)
        }


@dataclass(slots=True)
class Match:
    """A graph loaded for matching: its findings and the means to explain them."""

    graph: Graph
    findings: list[Finding]
    near: list[Finding]
    database: Database
    solver: Solver
    hidden_near: int = 0


class Matcher:
    """Runs a set of patterns over graphs; the program is compiled once.

    A :class:`Match` lives until the next run: its database is used again.
    """

    def __init__(
        self,
        rules: RuleSet,
        patterns: Iterable[Pattern] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.rules = rules
        self._limits = limits
        self.patterns = list(rules.patterns.values() if patterns is None else patterns)
        self.program = rules.program.restricted_to(
            [*(p.name for p in self.patterns), *_guards(rules.program)]
        )
        self._reusable: dict[tuple[str, ...], tuple[Database, int]] = {}

    def run(
        self,
        graph: Graph,
        environment: Mapping[str, Scalar] | None = None,
        *,
        near: bool = False,
        given: Iterable[tuple[str, core.Row]] = (),
    ) -> Match:
        """All findings in ``graph``. ``environment`` answers ``env(name)``; ``given`` are further
        facts."""
        facts = [
            fact
            for fact in (*facts_of(graph, environment=environment or {}), *given)
            if fact[0] in self.program.relations
        ]
        database = self._empty_database((), self.program)
        database.commit(facts)
        solver = Solver(self.program, database)
        found = Match(graph, [], [], database, solver)
        for pattern in self.patterns:
            rows = database.rows(pattern.name)
            found.findings += [self._certain(pattern, row, solver) for row in rows]
        asked = self.patterns if near else [p for p in self.patterns if self._is_open(p, database)]
        if asked:
            self._look_closer(asked, facts, found, near)
        return found

    def _empty_database(self, key: tuple[str, ...], program: core.Program) -> Database:
        """A database without facts; what the last graph left in it is taken back."""
        if key not in self._reusable:
            database = Database(program, limits=self._limits)
            self._reusable[key] = database, database.mark()
        database, start = self._reusable[key]
        database.undo(start)
        return database

    def _certain(self, pattern: Pattern, row: core.Row, solver: Solver) -> Finding:
        nodes = {name: int(value) for name, value in zip(pattern.nodes, row, strict=True)}
        bindings: Bindings = {f"N_{name}": value for name, value in nodes.items()}
        answers = (
            solver.ask((*a.structure, *a.conditions), bindings) for a in pattern.alternatives
        )
        answer = next((a for a in answers if a.truth is Truth.YES), None)
        if answer is None:
            raise AssertionError(f"{pattern.name}{row}: the engine and the solver disagree")
        return Finding(pattern, Truth.YES, nodes, answer)

    def _is_open(self, pattern: Pattern, database: Database) -> bool:
        """Whether this model leaves something open that the pattern's conditions ask about."""
        relations = {r for a in pattern.alternatives for r in core.relations_in(a.conditions)}
        part = self.program.restricted_to(relations)
        guards = {g for r in part.relations.values() for g in r.unknown}
        return any(g == "always" or database.count(g) for g in guards)

    def _look_closer(
        self,
        patterns: Sequence[Pattern],
        facts: Sequence[tuple[str, core.Row]],
        found: Match,
        near: bool,
    ) -> None:
        shapes = {
            (p.name, i): shape_rule(p, i, a) for p in patterns for i, a in enumerate(p.alternatives)
        }
        program = core.Program(
            {**self.program.relations, **{r.name: r for r, _ in shapes.values()}},
            (*self.program.rules, *(rule for _, rule in shapes.values())),
        ).restricted_to([r.name for r, _ in shapes.values()])
        database = self._empty_database(tuple(p.name for p in patterns), program)
        database.commit([f for f in facts if f[0] in program.relations])
        for pattern in patterns:
            self._places(pattern, shapes, database, found, near)

    def _places(
        self,
        pattern: Pattern,
        shapes: Mapping[tuple[str, int], tuple[core.Relation, core.Rule]],
        database: Database,
        found: Match,
        near: bool,
    ) -> None:
        certain = {tuple(f.nodes.values()) for f in found.findings if f.pattern is pattern}
        best: dict[tuple[int, ...], Finding] = {}
        for i, alternative in enumerate(pattern.alternatives):
            relation, rule = shapes[(pattern.name, i)]
            names = [t.name for t in rule.head.terms if isinstance(t, core.Var)]
            for row in database.rows(relation.name):
                bindings: Bindings = dict(zip(names, row, strict=True))
                nodes = {n: _as_id(bindings[f"N_{n}"]) for n in pattern.nodes}
                place = tuple(nodes.values())
                if place in certain:
                    continue
                answer = found.solver.ask(
                    (*alternative.structure, *alternative.conditions), bindings
                )
                finding = Finding(pattern, answer.truth, nodes, answer)
                if place not in best or _closer(finding, best[place]):
                    best[place] = finding
        open_ones = [f for f in best.values() if f.certainty is not Truth.NO]
        found.findings += sorted(open_ones, key=lambda f: tuple(f.nodes.values()))
        if near:
            missed = sorted(
                (f for f in best.values() if f.certainty is Truth.NO),
                key=lambda f: (-_progress(f), tuple(f.nodes.values())),
            )
            found.near += missed[:MAX_NEAR_PER_RULE]
            found.hidden_near += len(missed[MAX_NEAR_PER_RULE:])


def shape_rule(
    pattern: Pattern, number: int, alternative: Alternative
) -> tuple[core.Relation, core.Rule]:
    """The relation of the places where an alternative's nodes and flow occur."""
    names = [f"N_{n}" for n in pattern.nodes]
    names += sorted(
        {
            v
            for literal in alternative.structure
            if isinstance(literal, core.Atom) and not literal.negated
            for v in core.variables(literal)
            if v.startswith(("N_", "T_"))
        }
        - set(names)
    )
    name = f"{pattern.name}__shape_{number}"
    columns = tuple(
        core.Column(f"c{i}", "node" if v.startswith("N_") else "tensor")
        for i, v in enumerate(names)
    )
    head = core.Atom(name, tuple(core.Var(v) for v in names))
    return core.Relation(name, columns), core.Rule(head, alternative.structure, name, pattern.span)


def node_name(graph: Graph, node: Node) -> str:
    """What a node is called in messages: its own name, or its operator and id."""
    return node.name or f"{node.op}#{node.id}"


def _as_id(value: object) -> int:
    assert isinstance(value, int)
    return value


def _progress(finding: Finding) -> int:
    return len(finding.answer.steps)


def _closer(a: Finding, b: Finding) -> bool:
    rank = {Truth.YES: 2, Truth.UNKNOWN: 1, Truth.NO: 0}
    return (rank[a.certainty], _progress(a)) > (rank[b.certainty], _progress(b))


def _guards(program: core.Program) -> list[str]:
    """Relations that say what a model leaves open; the solver asks for them."""
    return [g for r in program.relations.values() for g in r.unknown if g != "always"]
