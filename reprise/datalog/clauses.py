"""Rules in the form that the engine compiles: flat clauses over relations that it can index.

A rule's aggregates are split off: ``N == count{ W : edge(V, W, _) }`` becomes a hidden relation of
the aggregate's distinct solutions, an accumulator over it (:class:`AggregateView`), and a
:class:`Lookup` of the group's value in the clause. A rule without a positive atom gets the atom
``unit()``, which holds from the start. Invariants: a clause has at least one positive atom; its
body holds no :class:`~reprise.lang.core.Aggregate`; every variable has a type; hidden relations'
names contain ``$``, which no name of the rule language does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Column,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Rule,
    Value,
    Var,
    variables,
)
from reprise.lang.coretext import format_rule
from reprise.lang.safety import bound_by, expression_type, group_variables, variable_types

UNIT = Relation("$unit", ())
"""The relation of one empty row: what a rule without positive atoms waits for."""

DEFAULTS: dict[str, Value] = {"count": 0, "sum": 0, "prod": 1}
"""The value of an aggregate without solutions; the others have none."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """``result`` is the value of aggregate ``view`` for the group ``group``.

    ``source`` is the aggregate as it was written.
    """

    view: str
    group: tuple[Var, ...]
    result: Var
    source: Aggregate = field(compare=False)


BodyLiteral = Atom | Compare | Member | Lookup


@dataclass(frozen=True, slots=True)
class AggregateView:
    """An accumulator over the distinct rows of ``solutions``: group columns, value, the rest.

    As a relation it has the group's columns and the result. ``default`` is the value of a group
    without solutions, ``None`` where such a group has no value (``min`` and ``max``).
    """

    name: str
    kind: str
    solutions: str
    group: int
    relation: Relation
    default: Value | None


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule, ready to be planned. ``rule`` is what the author wrote, for messages."""

    head: Atom
    body: tuple[BodyLiteral, ...]
    types: Mapping[str, str]
    rule: Rule

    def reads(self) -> Iterator[tuple[str, bool]]:
        """The relations and views read, each with whether it must be complete beforehand."""
        for literal in self.body:
            if isinstance(literal, Atom):
                yield literal.relation, literal.negated
            elif isinstance(literal, Lookup):
                yield literal.view, True


@dataclass
class Clauses:
    """A growing set of clauses with their relations and views; :func:`add` extends it."""

    relations: dict[str, Relation] = field(default_factory=lambda: {UNIT.name: UNIT})
    views: dict[str, AggregateView] = field(default_factory=dict)
    clauses: list[Clause] = field(default_factory=list)
    _view_of: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Clauses:
        """An independent set with the same clauses."""
        return Clauses(
            dict(self.relations), dict(self.views), list(self.clauses), dict(self._view_of)
        )

    def derived(self) -> frozenset[str]:
        """Names of the relations that some clause defines, hidden ones included."""
        return frozenset(clause.head.relation for clause in self.clauses)

    def schema(self, name: str) -> Relation:
        """The columns of a relation or view."""
        view = self.views.get(name)
        return view.relation if view is not None else self.relations[name]

    def add(self, program: Program) -> list[Clause]:
        """Flatten the rules of ``program``, and return the clauses that are new."""
        before = len(self.clauses)
        self.relations.update(program.relations)
        for rule in program.rules:
            self._add_rule(rule)
        return self.clauses[before:]

    def _add_rule(self, rule: Rule) -> None:
        types = variable_types(rule, self.relations)
        waiting = {i: lit for i, lit in enumerate(rule.body) if isinstance(lit, Aggregate)}
        flat: dict[int, BodyLiteral] = {
            i: lit for i, lit in enumerate(rule.body) if not isinstance(lit, Aggregate)
        }
        while waiting:
            known = _bound(flat.values())
            ready = (i for i, lit in waiting.items() if self._group_known(rule, lit, known))
            i = next(ready, min(waiting))
            flat[i] = self._lookup(rule, waiting.pop(i), tuple(flat.values()), types)
        self._append(rule.head, [flat[i] for i in sorted(flat)], types, rule)

    def _append(
        self, head: Atom, body: Iterable[BodyLiteral], types: Mapping[str, str], rule: Rule
    ) -> None:
        literals = tuple(body)
        if not any(isinstance(lit, Atom) and not lit.negated for lit in literals):
            literals = (Atom(UNIT.name, ()), *literals)
        self.clauses.append(Clause(head, literals, types, rule))

    @staticmethod
    def _group_known(rule: Rule, aggregate: Aggregate, known: set[str]) -> bool:
        return known.issuperset(group_variables(aggregate, _elsewhere(rule, aggregate)))

    def _lookup(
        self,
        rule: Rule,
        aggregate: Aggregate,
        around: tuple[BodyLiteral, ...],
        types: Mapping[str, str],
    ) -> Lookup:
        """The literal that replaces ``aggregate``; shares the view of an equal aggregate."""
        group = tuple(Var(name) for name in group_variables(aggregate, _elsewhere(rule, aggregate)))
        inner = set(bound_by(aggregate.body))
        free = [var for var in group if var.name not in inner]
        key = _canonical(aggregate, group, types) if not free else ""
        if key not in self._view_of or free:
            name = f"{aggregate.kind}${len(self.views) + 1}"
            self._view_of[key] = name
            self._define_view(name, rule, aggregate, group, free, around, types)
        return Lookup(self._view_of[key], group, aggregate.result, aggregate)

    def _define_view(
        self,
        name: str,
        rule: Rule,
        aggregate: Aggregate,
        group: tuple[Var, ...],
        free: list[Var],
        around: tuple[BodyLiteral, ...],
        types: Mapping[str, str],
    ) -> None:
        body: list[Literal] = list(aggregate.body)
        if free:
            seed = f"{name}$groups"
            self.relations[seed] = _hidden(seed, free, types)
            self._append(Atom(seed, tuple(free)), _independent(around, free), types, rule)
            body.insert(0, Atom(seed, tuple(free)))
        value: tuple[Expr, ...] = () if aggregate.value is None else (aggregate.value,)
        rest: tuple[Var, ...] = ()
        if aggregate.kind != "count" or aggregate.value is None:
            names = dict.fromkeys(n for literal in aggregate.body for n in _outer(literal))
            rest = tuple(Var(n) for n in names if n not in {var.name for var in group})
        solutions = f"{name}$solutions"
        terms = (*group, *value, *rest)
        self.relations[solutions] = _hidden(solutions, terms, types)
        self._add_rule(Rule(Atom(solutions, terms), tuple(body), rule.name, rule.span))
        result = Column("result", _result_type(aggregate, types))
        columns = (*_hidden(name, group, types).columns, result)
        default = DEFAULTS.get(aggregate.kind)
        if default is not None and result.type == "float":
            default = float(default)
        self.views[name] = AggregateView(
            name, aggregate.kind, solutions, len(group), Relation(name, columns), default
        )


def _elsewhere(rule: Rule, aggregate: Aggregate) -> set[str]:
    names = set(variables(rule.head))
    for literal in rule.body:
        if literal is not aggregate:
            names.update(variables(literal))
    return names


def _outer(literal: Literal) -> Iterator[str]:
    """The variables of a solution: those that the literal binds or reads, inner ones excluded."""
    match literal:
        case Atom(negated=True):
            return
        case Aggregate():
            yield literal.result.name
        case _:
            yield from variables(literal)


def body_variables(literal: BodyLiteral) -> Iterator[str]:
    """Every variable name of a clause's literal, with repeats."""
    if isinstance(literal, Lookup):
        yield from (var.name for var in literal.group)
        yield literal.result.name
    else:
        yield from variables(literal)


def _bound(body: Iterable[BodyLiteral]) -> set[str]:
    """What a partial body binds; lookups count as binding their results."""
    literals = tuple(body)
    results = {lit.result.name for lit in literals if isinstance(lit, Lookup)}
    return bound_by([lit for lit in literals if not isinstance(lit, Lookup)], results)


def _independent(around: tuple[BodyLiteral, ...], wanted: list[Var]) -> list[BodyLiteral]:
    """The literals around an aggregate that can be evaluated without its result."""
    known = _bound(around)
    kept = [lit for lit in around if known.issuperset(_needed(lit))]
    missing = {var.name for var in wanted} - _bound(kept)
    assert not missing, f"unsafe aggregate group: {missing}"
    return kept


def _needed(literal: BodyLiteral) -> Iterator[str]:
    if isinstance(literal, Atom) and literal.negated:
        return iter(())
    return body_variables(literal)


def _hidden(name: str, terms: Iterable[Expr], types: Mapping[str, str]) -> Relation:
    columns = (
        Column(f"c{number}", expression_type(term, types)) for number, term in enumerate(terms)
    )
    return Relation(name, tuple(columns))


def _result_type(aggregate: Aggregate, types: Mapping[str, str]) -> str:
    if aggregate.kind == "count" or aggregate.value is None:
        return "int"
    return expression_type(aggregate.value, types)


def _canonical(aggregate: Aggregate, group: tuple[Var, ...], types: Mapping[str, str]) -> str:
    """A text that two aggregates share exactly if they differ in variable names alone."""
    names: dict[str, Var] = {}
    for var in group:
        names[var.name] = Var(f"G{len(names)}")
    inside = [name for literal in aggregate.body for name in variables(literal)]
    for name in inside:
        names.setdefault(name, Var(f"X{len(names)}"))
    body = tuple(renamed(literal, names) for literal in aggregate.body)
    value = None if aggregate.value is None else renamed_expr(aggregate.value, names)
    head = Atom("", tuple(names.values()))
    text = format_rule(Rule(head, (Aggregate(Var("R"), aggregate.kind, value, body),)))
    return text + " ".join(types.get(name, "any") for name in names)


def renamed(literal: Literal, names: Mapping[str, Expr]) -> Literal:
    """``literal`` with its variables replaced."""
    match literal:
        case Atom(relation, terms, negated):
            return Atom(relation, tuple(renamed_expr(t, names) for t in terms), negated)
        case Compare(op, left, right):
            return Compare(op, renamed_expr(left, names), renamed_expr(right, names))
        case Member(expr, values, negated):
            return Member(renamed_expr(expr, names), values, negated)
        case Aggregate(result, kind, value, body):
            inner = tuple(renamed(item, names) for item in body)
            shown = None if value is None else renamed_expr(value, names)
            known = names.get(result.name, result)
            return Aggregate(known if isinstance(known, Var) else result, kind, shown, inner)


def renamed_expr(expr: Expr, names: Mapping[str, Expr]) -> Expr:
    """``expr`` with its variables replaced."""
    match expr:
        case Var(name):
            return names.get(name, expr)
        case Const():
            return expr
        case Arith(op, args):
            return Arith(op, tuple(renamed_expr(arg, names) for arg in args))
