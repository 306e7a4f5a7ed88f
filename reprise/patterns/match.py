"""Finding known bugs in a graph: certain matches, possible ones, and near misses.

Comes in: a rule set and graphs. Goes out: :class:`Finding` values. Certain matches are derived by
the engine. What a model leaves open is looked at place by place: wherever a pattern's *structure*
(nodes and flow) occurs, its conditions are read three-valued (``reprise.patterns.truth``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from reprise.cache import cache_folder
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
    """A graph loaded for matching: its findings and the means to explain them.

    ``database`` holds the matches, ``grounds`` how what they rest on was derived.
    """

    graph: Graph
    findings: list[Finding]
    near: list[Finding]
    database: Database
    grounds: Database
    solver: Solver
    hidden_near: int = 0


class Matcher:
    """Runs a set of patterns over graphs, in two layers.

    The first derives what patterns ask about a graph (constants, reachability, fan-out, …). The
    second takes those rows as given facts and matches the patterns: all that it reads is then
    known when it starts, so each pattern needs one join plan and not one per condition. In both,
    only rules that can fire at all are compiled: those whose operators and relations have been
    seen in some graph so far. A database is kept for the next graph, and built anew when one
    brings something new; so a :class:`Match` lives until the next run. ``keep``: compiled rules are
    kept on disk for the next process too. Not for one of many sets of patterns: there is room for a
    few dozen programs, and those of `reprise check` must find it.
    """

    def __init__(
        self,
        rules: RuleSet,
        patterns: Iterable[Pattern] | None = None,
        limits: Limits | None = None,
        *,
        keep: bool = True,
    ) -> None:
        self.rules = rules
        self.patterns = list(rules.patterns.values() if patterns is None else patterns)
        self.program = rules.program.restricted_to(
            [*(p.name for p in self.patterns), *open_guards(rules.program)]
        )
        self._limits = limits
        self._cache = cache_folder() if keep else None
        self._guards = {p.name: self._guards_of(p) for p in self.patterns}
        self._shapes = {
            p.name: [shape_rule(p, i, a) for i, a in enumerate(p.alternatives)]
            for p in self.patterns
        }
        names = {p.name for p in self.patterns}
        asked = [
            r
            for rule in self.program.rules
            if rule.head.relation in names
            for r in core.relations_in(rule.body)
        ]
        derived = self.program.derived()
        first = self.program.restricted_to([*asked, *open_guards(self.program)])
        self._derived = sorted(derived & first.relations.keys())
        self._first_rules = first.rules
        self._pattern_rules = [r for r in self.program.rules if r.head.relation in names]
        self._operators: set[core.Value] = set()
        self._kept: dict[str, tuple[Database, int, tuple[core.Rule, ...]]] = {}

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
        self._operators.update(row[1] for relation, row in facts if relation == "node")
        grounds = self._fill("grounds", self.program.relations, self._first_rules, facts)
        known = [*facts, *((name, row) for name in self._derived for row in grounds.rows(name))]
        database = self._match(near, known)
        solver = Solver(self.program, database)
        found = Match(graph, [], [], database, grounds, solver)
        for pattern in self.patterns:
            rows = database.rows(pattern.name)
            found.findings += [self._certain(pattern, row, solver) for row in rows]
            if near or any(g == "always" or database.count(g) for g in self._guards[pattern.name]):
                self._places(pattern, database, found, near)
        return found

    def _guards_of(self, pattern: Pattern) -> set[str]:
        """Relations that say whether a model leaves open what the pattern's conditions ask."""
        asked = {r for a in pattern.alternatives for r in core.relations_in(a.conditions)}
        part = self.program.restricted_to(asked)
        return {g for r in part.relations.values() for g in r.unknown}

    def _match(self, near: bool, facts: Sequence[tuple[str, core.Row]]) -> Database:
        """The second layer: pattern matches, and the places that must be looked at closely."""
        shapes = [
            shape
            for p in self.patterns
            if near or self._guards[p.name]
            for shape in self._shapes[p.name]
        ]
        relations = {name: _as_given(r) for name, r in self.program.relations.items()}
        relations |= {p.name: self.program.relations[p.name] for p in self.patterns}
        relations |= {r.name: r for r, _ in shapes}
        rules = [*self._pattern_rules, *(rule for _, rule in shapes)]
        return self._fill("near" if near else "matches", relations, rules, facts)

    def _fill(
        self,
        layer: str,
        relations: Mapping[str, core.Relation],
        rules: Iterable[core.Rule],
        facts: Sequence[tuple[str, core.Row]],
    ) -> Database:
        """A database with ``facts``; the last graph's are taken back, the compiled rules kept."""
        filled = {relation for relation, _ in facts}
        kept = self._kept.get(layer)
        needed = can_fire(rules, self._operators, filled)
        if kept is None or not set(needed) <= set(kept[2]):
            union = tuple(dict.fromkeys([*(kept[2] if kept else ()), *needed]))
            program = core.Program(dict(relations), union)
            database = Database(program, limits=self._limits, cache=self._cache, checked=True)
            kept = self._kept[layer] = database, database.mark(), union
        database, start, _ = kept
        database.undo(start)
        database.commit(facts)
        database.save()
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

    def _places(
        self,
        pattern: Pattern,
        database: Database,
        found: Match,
        near: bool,
    ) -> None:
        """Look at each place where the pattern's structure occurs but which is no sure match."""
        certain = {tuple(f.nodes.values()) for f in found.findings if f.pattern is pattern}
        best: dict[tuple[int, ...], Finding] = {}
        shapes = self._shapes[pattern.name]
        for alternative, (relation, rule) in zip(pattern.alternatives, shapes, strict=True):
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


def can_fire(
    rules: Iterable[core.Rule], operators: Set[core.Value], filled: Set[str]
) -> tuple[core.Rule, ...]:
    """The rules that can derive anything where nodes have ``operators`` only and facts are of the
    relations ``filled`` only. Leaving out the others changes no result."""
    alive = [rule for rule in rules if _has_operators(rule, operators)]
    while True:
        possible = filled | {rule.head.relation for rule in alive}
        kept = [
            rule
            for rule in alive
            if all(
                x.relation in possible
                for x in rule.body
                if isinstance(x, core.Atom) and not x.negated
            )
        ]
        if len(kept) == len(alive):
            return tuple(kept)
        alive = kept


def _has_operators(rule: core.Rule, operators: Set[core.Value]) -> bool:
    """Whether each node that the rule asks for has an operator that occurs."""
    sets = {x.expr: x.values for x in rule.body if isinstance(x, core.Member) and not x.negated}
    for literal in rule.body:
        if isinstance(literal, core.Atom) and literal.relation == "node" and not literal.negated:
            wanted = literal.terms[1]
            values = (wanted.value,) if isinstance(wanted, core.Const) else sets.get(wanted)
            if values is not None and not any(v in operators for v in values):
                return False
    return True


def _as_given(relation: core.Relation) -> core.Relation:
    """A relation of the first layer as the second reads it: facts about their first entity."""
    about = relation.columns and relation.columns[0].type not in core.SCALAR_TYPES
    return replace(relation, entity=True) if about else relation


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


def open_guards(program: core.Program) -> list[str]:
    """Relations that say what a model leaves open; the solver asks for them."""
    return [g for r in program.relations.values() for g in r.unknown if g != "always"]
