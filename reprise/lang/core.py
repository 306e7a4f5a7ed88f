"""Core Datalog: what every declaration of the rule language lowers to, and what an engine runs.

A :class:`Program` is a set of :class:`Relation` schemas and :class:`Rule` clauses. Bodies are
conjunctions of literals over typed columns; there are no function symbols. Values are Python
``int``, ``float`` and ``str``; booleans are the symbols ``"true"`` and ``"false"``, so that
``1``, ``1.0`` and ``true`` never meet in one column.

Invariants (established by the checker, relied on by engines): every relation named in a rule is
declared; arities agree; every rule is safe (see ``reprise.lang.safety``); the program is
stratified (see ``reprise.lang.stratify``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from reprise.lang.diagnostics import Span
from reprise.lang.restoring import restored_quickly

Value = int | float | str
Row = tuple[Value, ...]

SCALAR_TYPES = frozenset({"int", "float", "bool", "sym", "any"})
"""Column types that hold plain values. Any other type name is an *entity sort* (``node``,
``tensor``, ``graph``, …) whose values are small non-negative integers, numbered in one sequence
so that a larger id is a younger entity. ``any`` columns hold any value and may appear only as
the non-key columns of a base relation."""


@restored_quickly
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation. ``key`` columns together determine the others."""

    name: str
    type: str
    key: bool = False


@restored_quickly
@dataclass(frozen=True, slots=True)
class Relation:
    """The schema of a relation.

    ``entity``: every row is a fact *about* its owner — the entity in the first key column of an
    entity sort (or the first entity column, if there is no key) — which arrives in the same commit
    as the owner itself and is never changed afterwards. ``older`` names entity columns whose value
    is always strictly older than the owner; ``same`` names entity columns whose value arrives in
    the same commit as the owner (a node's outputs). ``unknown`` (``@unknown(g, …)``) names
    relations over the leading key columns: where no row is present but one of them holds, the
    value is *unknown* rather than absent (three-valued conditions, design §5); the name ``always``
    stands for itself.
    """

    name: str
    columns: tuple[Column, ...]
    entity: bool = False
    older: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)
    doc: str = field(default="", compare=False)

    @property
    def arity(self) -> int:
        return len(self.columns)


# --- terms and expressions -----------------------------------------------------------------


@restored_quickly
@dataclass(frozen=True, slots=True)
class Var:
    """A logical variable. The lowering gives every ``_`` a fresh name that starts with ``_``."""

    name: str


@restored_quickly
@dataclass(frozen=True, slots=True)
class Const:
    """A constant value."""

    value: Value


@restored_quickly
@dataclass(frozen=True, slots=True)
class Arith:
    """Arithmetic over bound expressions.

    ``op`` is one of ``+ - * / %`` (two operands; ``/`` is floor division on integers, true division
    when an operand is a float; ``%`` takes the divisor's sign, as Python's), ``neg``, ``abs``,
    ``min``, ``max`` (two or more), or ``bits`` (a dtype symbol to its width in bits). Division or
    remainder by zero, and arithmetic on a value that is not a number, make the literal that
    contains it false.
    """

    op: str
    args: tuple[Expr, ...]


Term = Var | Const
Expr = Var | Const | Arith

# --- literals --------------------------------------------------------------------------------


@restored_quickly
@dataclass(frozen=True, slots=True)
class Atom:
    """``relation(terms…)``, possibly negated. In a rule's head the terms may be expressions;
    in a body they are variables or constants (the lowering flattens expressions)."""

    relation: str
    terms: tuple[Expr, ...]
    negated: bool = False
    span: Span | None = field(default=None, compare=False)


@restored_quickly
@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right`` with op in ``== != < <= > >=``. An ``==`` with one side an unbound
    variable and the other side bound is an assignment. Ordering is between numbers only: an
    order comparison of a symbol is false. ``==``/``!=`` compare numbers by value and never find a
    number equal to a symbol."""

    op: str
    left: Expr
    right: Expr
    span: Span | None = field(default=None, compare=False)


@restored_quickly
@dataclass(frozen=True, slots=True)
class Member:
    """``expr in values`` (or ``not in``): ``values`` is a finite set of constants. If ``expr`` is
    a variable that nothing else binds, the literal enumerates the set."""

    expr: Expr
    values: tuple[Value, ...]
    negated: bool = False
    span: Span | None = field(default=None, compare=False)


@restored_quickly
@dataclass(frozen=True, slots=True)
class Aggregate:
    """``result == kind{ value : body }``; kind in ``count sum prod min max``.

    The group is given by the body's variables that also occur elsewhere in the rule (outside this
    literal); those must be bound by the rest of the rule. ``count`` with a ``value`` counts its
    *distinct values*; ``count`` without one, and the others, range over all distinct solutions of
    the body (as Soufflé does: two axes of the same extent both count). An empty group gives 0
    for ``count`` and ``sum``, 1 for ``prod``, and makes the literal false for ``min`` and ``max``.
    """

    result: Var
    kind: str
    value: Expr | None
    body: tuple[Literal, ...]
    span: Span | None = field(default=None, compare=False)


Literal = Atom | Compare | Member | Aggregate


@restored_quickly
@dataclass(frozen=True, slots=True)
class Rule:
    """``head :- body.`` An empty body is a fact. ``name`` says which declaration it came from."""

    head: Atom
    body: tuple[Literal, ...]
    name: str = ""
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Program:
    """Relations and rules. A relation that no rule's head names is a *base* (input) relation.
    A derived relation may also receive base facts."""

    relations: dict[str, Relation]
    rules: tuple[Rule, ...]

    def derived(self) -> frozenset[str]:
        """Names of the relations that some rule defines."""
        return frozenset(rule.head.relation for rule in self.rules)

    @cached_property
    def by_head(self) -> dict[str, list[Rule]]:
        """The rules of each derived relation, in order."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault(rule.head.relation, []).append(rule)
        return found

    def restricted_to(self, roots: Iterable[str]) -> Program:
        """The part of the program that the relations ``roots`` depend on."""
        needed: set[str] = set()
        pending = [name for name in roots if name in self.relations]
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            needed.add(name)
            for rule in self.by_head.get(name, ()):
                pending += relations_in(rule.body)
        return Program(
            {name: r for name, r in self.relations.items() if name in needed},
            tuple(rule for rule in self.rules if rule.head.relation in needed),
        )


# --- traversal and text ----------------------------------------------------------------------


def relations_in(body: Iterable[Literal]) -> Iterator[str]:
    """Names of the relations that literals read, aggregates' bodies included, with repeats."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal.relation
        elif isinstance(literal, Aggregate):
            yield from relations_in(literal.body)


def variables(part: Expr | Literal) -> Iterator[str]:
    """Variable names in an expression or literal, with repeats, aggregates' bodies included."""
    match part:
        case Var(name):
            yield name
        case Const():
            return
        case Arith(_, args):
            for arg in args:
                yield from variables(arg)
        case Atom():
            for term in part.terms:
                yield from variables(term)
        case Compare():
            yield from variables(part.left)
            yield from variables(part.right)
        case Member():
            yield from variables(part.expr)
        case Aggregate():
            yield part.result.name
            if part.value is not None:
                yield from variables(part.value)
            for literal in part.body:
                yield from variables(literal)
