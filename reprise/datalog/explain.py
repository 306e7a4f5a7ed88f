"""Why a row is there, and why another is not.

No provenance is stored: :func:`why` derives the row again. It explores backwards from the row,
layer by layer, every clause instance that could have derived what is needed, and marks forwards
what is proved by marked rows (Dowling & Gallier 1984), until the row itself is marked. Invariant:
each step of a :class:`Derivation` is an instance of its rule whose premises hold and were marked
earlier, so a derivation is finite and has no cycle, also through recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from reprise.datalog.clauses import (
    UNIT,
    BodyLiteral,
    Clause,
    Clauses,
    Lookup,
    renamed,
)
from reprise.datalog.runtime import Runtime
from reprise.datalog.search import Bindings, head_row, solve, unify_head
from reprise.datalog.values import constant, plain
from reprise.lang.core import Aggregate, Atom, Const, Expr, Literal, Relation, Row, Rule, Value, Var
from reprise.lang.coretext import format_literal, format_rule, format_value

_FIRST_TRY = 32
"""Instances per row that are looked at first; only rows with more alternatives need a second."""

_MAX_STEPS = 200_000
"""Literals that :func:`why_not` tries before it settles for the best it has seen."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A row with the rule that derives it, and what that rule needed; a fact has no rule.

    ``premises`` are the derivations of the positive atoms, in body order; ``conditions`` the other
    literals, with the values that made them hold; an aggregate's result is among ``bindings``.
    """

    relation: str
    row: Row
    rule: Rule | None = None
    premises: tuple[Derivation, ...] = ()
    conditions: tuple[Literal, ...] = ()
    bindings: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    @property
    def fact(self) -> str:
        """The row as text: ``edge(1, 2, 0)``."""
        return _fact(self.relation, self.row)


def _lines(derivation: Derivation) -> Iterator[str]:
    """A derivation as indented lines; what was shown before is not shown again."""
    shown: set[tuple[str, Row]] = set()
    stack: list[tuple[int, Derivation | str]] = [(0, derivation)]
    while stack:
        depth, item = stack.pop()
        indent = "  " * depth
        if isinstance(item, str) or item.rule is None:
            yield f"{indent}{item if isinstance(item, str) else item.fact}"
            continue
        known = (item.relation, item.row) in shown
        origin = item.rule.name or format_rule(item.rule)
        yield f"{indent}{item.fact}  {'as above' if known else f'by {origin}'}"
        if not known:
            shown.add((item.relation, item.row))
            conditions = [_condition(condition, item.bindings) for condition in item.conditions]
            below: list[Derivation | str] = [*item.premises, *conditions]
            stack += [(depth + 1, part) for part in reversed(below)]


@dataclass(frozen=True, slots=True)
class NearMiss:
    """How far a rule got towards a row: literals that hold, and the first that does not.

    Both carry the values of ``bindings``; variables without a value are still variables.
    """

    rule: Rule
    held: tuple[Literal, ...]
    failed: Literal | None
    bindings: Mapping[str, Value]

    def __str__(self) -> str:
        lines = [f"{self.rule.name or format_rule(self.rule)}:"]
        lines += [f"  holds   {_condition(literal, self.bindings)}" for literal in self.held]
        if self.failed is None:
            lines.append(f"  its head is never this row: {format_rule(self.rule)}")
        else:
            lines.append(f"  fails   {_condition(self.failed, self.bindings)}")
        return "\n".join(lines)


# --- why ---------------------------------------------------------------------------------------

_Fact = tuple[str, Row]


@dataclass(slots=True)
class _Instance:
    """A clause with values for its variables, waiting for derived premises to be marked."""

    head: _Fact
    clause: Clause
    bindings: Bindings
    missing: set[_Fact]


@dataclass
class _Proofs:
    """The part of the proof graph that has been explored."""

    clauses: Clauses
    runtime: Runtime
    limit: int
    proof: dict[_Fact, _Instance | None] = field(default_factory=dict)
    waiting: dict[_Fact, list[_Instance]] = field(default_factory=dict)
    cut: bool = False

    def explore(self, goal: _Fact) -> bool:
        """Explore backwards from ``goal`` until it is proved, or nothing is left."""
        by_head: dict[str, list[Clause]] = {}
        for clause in self.clauses.clauses:
            by_head.setdefault(clause.head.relation, []).append(clause)
        layer = [goal]
        seen = {goal}
        while layer and goal not in self.proof:
            following: list[_Fact] = []
            for fact in layer:
                for instance in self._instances(fact, by_head.get(fact[0], [])):
                    instance.missing = {
                        premise
                        for premise in _premises(instance, self.clauses.relations)
                        if premise[0] in by_head and premise not in self.proof
                    }
                    new = instance.missing - seen
                    seen |= new
                    following += sorted(new, key=repr)
                    self._wait(instance)
            layer = following
        return goal in self.proof

    def _instances(self, fact: _Fact, clauses: list[Clause]) -> Iterator[_Instance]:
        for clause in clauses:
            start = unify_head(clause, self.runtime, fact[1])
            if start is None:
                continue
            number = 0
            for bindings in islice(solve(clause, self.runtime, start), self.limit):
                number += 1
                if head_row(clause, self.runtime, bindings) == fact[1]:
                    yield _Instance(fact, clause, bindings, set())
            self.cut |= number == self.limit

    def _wait(self, instance: _Instance) -> None:
        if not instance.missing:
            self._mark(instance)
        for fact in instance.missing:
            self.waiting.setdefault(fact, []).append(instance)

    def _mark(self, instance: _Instance) -> None:
        """Mark a row as proved by ``instance``, and everything that was waiting for it."""
        ready = [instance]
        while ready:
            proved = ready.pop()
            if proved.head in self.proof:
                continue
            self.proof[proved.head] = proved
            for other in self.waiting.pop(proved.head, []):
                other.missing.discard(proved.head)
                if not other.missing:
                    ready.append(other)


def why(clauses: Clauses, runtime: Runtime, relation: str, row: Row) -> Derivation:
    """A derivation of a row that is present."""
    limit = _FIRST_TRY
    while True:
        proofs = _Proofs(clauses, runtime, limit)
        if proofs.explore((relation, row)) or not proofs.cut:
            return _build(proofs, (relation, row), {})
        limit *= 100


def _premises(instance: _Instance, relations: Mapping[str, Relation]) -> list[_Fact]:
    """The rows, as stored, that the clause's positive atoms stand for."""
    found = []
    for literal in instance.clause.body:
        if isinstance(literal, Atom) and not literal.negated:
            columns = relations[literal.relation].columns
            values = (
                constant(_value(term, instance.bindings), column.type)
                for term, column in zip(literal.terms, columns, strict=True)
            )
            found.append((literal.relation, tuple(values)))
    return found


def _build(proofs: _Proofs, goal: _Fact, built: dict[_Fact, Derivation]) -> Derivation:
    """The derivation tree, shared where rows recur; without recursion, for it may be deep."""
    stack = [goal]
    while stack:
        fact = stack[-1]
        instance = proofs.proof.get(fact)
        if fact in built or instance is None:
            built.setdefault(fact, Derivation(_shown(fact[0]), tuple(map(plain, fact[1]))))
            stack.pop()
            continue
        premises = _premises(instance, proofs.clauses.relations)
        pending = [premise for premise in premises if premise not in built]
        if pending:
            stack += pending
            continue
        built[fact] = _step(instance, [built[p] for p in premises if p[0] != UNIT.name])
        stack.pop()
    return built[goal]


def _step(instance: _Instance, premises: list[Derivation]) -> Derivation:
    relation, row = instance.head
    if len(premises) == 1 and instance.clause.body[0] == _given_atom(instance.clause):
        return Derivation(relation, tuple(map(plain, row)))
    conditions = tuple(
        _with_values(literal, instance.bindings)
        for literal in instance.clause.body
        if not isinstance(literal, Atom) or literal.negated
    )
    values = {name: plain(value) for name, value in instance.bindings.items()}
    rule = instance.clause.rule
    return Derivation(relation, tuple(map(plain, row)), rule, tuple(premises), conditions, values)


def _given_atom(clause: Clause) -> BodyLiteral | None:
    """The only body atom of a clause that copies given facts."""
    literal = clause.body[0]
    is_copy = isinstance(literal, Atom) and literal.relation == f"{clause.head.relation}$given"
    return literal if is_copy else None


def _shown(relation: str) -> str:
    return relation.removesuffix("$given")


def _value(term: Expr, bindings: Bindings) -> Value:
    if isinstance(term, Const):
        return term.value
    assert isinstance(term, Var)
    return bindings[term.name]


# --- why not -----------------------------------------------------------------------------------


class _Enough(Exception):
    """The search for the best near miss has taken enough steps."""


@dataclass
class _Furthest:
    """Keeps the attempt in which most literals held."""

    held: Sequence[BodyLiteral] = ()
    failed: BodyLiteral | None = None
    bindings: Bindings = field(default_factory=dict)
    steps: int = 0

    def note(
        self, done: Sequence[BodyLiteral], left: Sequence[BodyLiteral], bindings: Bindings
    ) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise _Enough
        if self.failed is None or len(done) > len(self.held):
            self.held, self.failed, self.bindings = done, left[0], bindings


def why_not(
    clauses: Clauses, runtime: Runtime, relation: str, row: Sequence[Value | None]
) -> list[NearMiss]:
    """For each rule of ``relation``, the attempt at ``row`` that got furthest; the best first."""
    misses = []
    for clause in clauses.clauses:
        if clause.head.relation == relation and _given_atom(clause) is None:
            misses.append(_near_miss(clause, runtime, row))
    return sorted(misses, key=lambda miss: (miss.failed is None, -len(miss.held)))


def _near_miss(clause: Clause, runtime: Runtime, row: Sequence[Value | None]) -> NearMiss:
    start = unify_head(clause, runtime, row)
    furthest = _Furthest()
    if start is not None:
        try:
            for _ in solve(clause, runtime, start, furthest.note):
                pass
        except _Enough:
            pass
    held = tuple(
        _with_values(literal, furthest.bindings)
        for literal in furthest.held
        if not (isinstance(literal, Atom) and literal.relation == UNIT.name)
    )
    failed = furthest.failed
    shown = None if failed is None else _with_values(failed, furthest.bindings)
    values = {name: plain(value) for name, value in furthest.bindings.items()}
    return NearMiss(clause.rule, held, shown, values)


def _with_values(literal: BodyLiteral, bindings: Bindings) -> Literal:
    """The literal as written, with the variables that have values replaced by them."""
    values = {name: Const(plain(value)) for name, value in bindings.items()}
    if not isinstance(literal, Lookup):
        return renamed(literal, values)
    return renamed(literal.source, values)


def _condition(literal: Literal, bindings: Mapping[str, Value]) -> str:
    """A literal as text; an aggregate with its result's value, if it has one."""
    text = format_literal(literal)
    if isinstance(literal, Aggregate) and literal.result.name in bindings:
        return f"{format_value(bindings[literal.result.name])} =={text.partition('==')[2]}"
    return text


def _fact(relation: str, row: Row) -> str:
    return format_literal(Atom(relation, tuple(Const(value) for value in row)))
