"""pyDatalog behind the engine interface: goal-directed, for one-off questions and second opinions.

Needs the ``pyDatalog`` package, which is imported with this module and not before. pyDatalog keeps
one global set of predicates, so every engine gives its own a prefix. Invariant: what pyDatalog
would answer differently — aggregates, type tests of ``any`` values, floats beside ints in one
column — raises :class:`~reprise.datalog.errors.UnsupportedError` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from pyDatalog import pyDatalog

from reprise.datalog.arithmetic import compare, evaluate
from reprise.datalog.errors import UnsupportedError
from reprise.datalog.facts import Facts
from reprise.datalog.load import adapt
from reprise.datalog.values import constant, plain_rows
from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Row,
    Rule,
    Value,
    Var,
    variables,
)
from reprise.lang.coretext import format_rule
from reprise.lang.safety import bound_by, expression_type, variable_types

_serial = count(1)
_NOTHING = "'u'"
"""The argument of relations without columns, which pyDatalog does not have."""


class PyDatalogEngine:
    """Base facts and a program, answered by pyDatalog's tabled top-down search."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._prefix = f"r{next(_serial)}"
        self._facts: dict[str, dict[Row, None]] = {name: {} for name in program.relations}
        writer = _Writer(program, self._prefix)
        self._names = writer.names
        _define(f"{self._prefix}_never", 1)
        clauses = [clause for rule in program.rules for clause in writer.rule(rule)]
        for name, relation in program.relations.items():
            _define(self._names[name], max(relation.arity, 1))
        if clauses:
            pyDatalog.load("\n".join(clauses))

    def add(self, relation: str, *row: Any) -> None:
        """Add one base fact."""
        self.commit([(relation, row)])

    def commit(self, adds: Facts = (), deletes: Facts = ()) -> None:
        """Delete, then add base facts."""
        for relation, row in _pairs(deletes):
            stored = self._adapted(relation, row)
            if self._facts[relation].pop(stored, 0) is None:
                pyDatalog.retract_fact(self._names[relation], *(stored or ("u",)))
        for relation, row in _pairs(adds):
            stored = self._adapted(relation, row)
            if stored not in self._facts[relation]:
                self._facts[relation][stored] = None
                pyDatalog.assert_fact(self._names[relation], *(stored or ("u",)))

    def _adapted(self, relation: str, row: Sequence[Any]) -> Row:
        schema = self._program.relations[relation]
        stored = adapt(schema, row)
        for value, column in zip(stored, schema.columns, strict=True):
            if column.type == "any" and isinstance(value, float):
                raise UnsupportedError("pyDatalog does not tell floats from ints in one column")
        return stored

    def rows(self, relation: str) -> list[Row]:
        """All rows of a relation, sorted."""
        return self.ask(relation, *(None for _ in self._program.relations[relation].columns))

    def count(self, relation: str) -> int:
        """How many rows a relation has."""
        return len(self.rows(relation))

    def ask(self, relation: str, *pattern: Value | None) -> list[Row]:
        """The rows that agree with ``pattern`` where it is not ``None``, sorted; goal-directed."""
        free = [i for i, value in enumerate(pattern) if value is None]
        terms = [f"X{i}" if value is None else repr(value) for i, value in enumerate(pattern)]
        answer = pyDatalog.ask(f"{self._names[relation]}({', '.join(terms) or _NOTHING})")
        found = []
        for values in answer.answers if answer is not None else ():
            row = list(pattern)
            for i, value in zip(free, values, strict=False):
                row[i] = value
            found.append(tuple(value for value in row if value is not None))
        return plain_rows(self._program.relations[relation], found)


def _define(predicate: str, arity: int) -> None:
    """Let a predicate exist without facts: it does once it has had one."""
    pyDatalog.assert_fact(predicate, *(0,) * arity)
    pyDatalog.retract_fact(predicate, *(0,) * arity)


class _Writer:
    """Rules as pyDatalog clauses."""

    def __init__(self, program: Program, prefix: str) -> None:
        self._relations = program.relations
        self._prefix = prefix
        self._helpers = count(1)
        self._never = f"{prefix}_never({_NOTHING})"
        self.names = {
            name: f"{prefix}_{i}_{re.sub('[^A-Za-z0-9]', '_', name)}"
            for i, name in enumerate(program.relations)
        }

    def rule(self, rule: Rule) -> Iterator[str]:
        """The clauses of one rule: helpers for negations with ``_``, then the rule itself."""
        self._rule = rule
        self._types = variable_types(rule, self._relations)
        self._variables = _variable_names(rule)
        literals = []
        for literal in _ordered(rule):
            if isinstance(literal, Atom) and literal.negated:
                helper, negation = self._negation(literal)
                yield from helper
                literals.append(negation)
            else:
                literals += self._literal(literal)
        head, computed = self._head(rule.head)
        literals += computed
        yield f"{head} <= {' & '.join(literals)}" if literals else f"+ {head}"

    def _head(self, head: Atom) -> tuple[str, list[str]]:
        """The head with variables for its expressions, and the literals that compute them."""
        terms: list[Expr] = []
        computed: list[str] = []
        for i, term in enumerate(head.terms):
            if isinstance(term, Arith):
                name = f"head {i}"
                self._variables[name] = f"H{i}"
                computed += [*self._guards(term), f"(H{i} == {self._expr(term)})"]
                self._types[name] = expression_type(term, self._types)
                term = Var(name)
            terms.append(term)
        return self._atom(Atom(head.relation, tuple(terms))), computed

    def _negation(self, atom: Atom) -> tuple[list[str], str]:
        known = bound_by(self._rule.body)
        outer = [name for name in dict.fromkeys(variables(atom)) if name in known]
        helper = f"{self._prefix}_not_{next(self._helpers)}"
        arguments = ", ".join(self._variables[name] for name in outer) or _NOTHING
        positive = self._atom(Atom(atom.relation, atom.terms))
        return [f"{helper}({arguments}) <= {positive}"], f"~{helper}({arguments})"

    def _literal(self, literal: Literal) -> list[str]:
        match literal:
            case Atom():
                return [self._atom(literal)]
            case Compare():
                return self._compare(literal)
            case Member(expr, values, negated):
                type_ = expression_type(expr, self._types)
                listed = [constant(value, type_) for value in values]
                text = f"({self._expr(expr)}._in({listed!r}))"
                return [*self._guards(expr), f"~{text}" if negated else text]
            case Aggregate():
                raise self._unsupported("aggregates with our meaning")

    def _compare(self, literal: Compare) -> list[str]:
        kinds = {expression_type(side, self._types) for side in (literal.left, literal.right)}
        if literal.op not in ("==", "!=") and not kinds.isdisjoint({"sym", "bool"}):
            return [self._never]
        if "any" in kinds and literal.op not in ("==", "!="):
            raise self._unsupported("order on values of any type")
        left, right = literal.left, literal.right
        if not [*variables(literal)]:  # Python would compute it to a bool, no literal.
            holds = compare(literal.op, evaluate(left, {}), evaluate(right, {}))
            return [] if holds else [self._never]
        if literal.op == "==" and isinstance(right, Var) and not isinstance(left, Var):
            left, right = right, left  # pyDatalog assigns to the left.
        guards = [*self._guards(left), *self._guards(right)]
        return [*guards, f"({self._expr(left)} {literal.op} {self._expr(right)})"]

    def _guards(self, expr: Expr) -> Iterator[str]:
        """Conditions under which ``expr`` has a value."""
        if isinstance(expr, Arith):
            for arg in expr.args:
                yield from self._guards(arg)
            if expr.op in ("/", "%"):
                yield from self._compare(Compare("!=", expr.args[1], Const(0)))

    def _atom(self, atom: Atom) -> str:
        columns = self._relations[atom.relation].columns
        terms = []
        for term, column in zip(atom.terms, columns, strict=True):
            if isinstance(term, Const):
                terms.append(repr(constant(term.value, column.type)))
            elif isinstance(term, Var):
                if column.type == "any" and self._types[term.name] != "any":
                    raise self._unsupported("type tests")
                terms.append(self._variables[term.name])
        return f"{self.names[atom.relation]}({', '.join(terms) or _NOTHING})"

    def _expr(self, expr: Expr) -> str:
        match expr:
            case Var(name):
                return self._variables[name]
            case Const(value):
                return repr(value)
            case Arith("neg", (arg,)):
                return f"(0 - {self._expr(arg)})"
            case Arith(("+" | "-" | "*" | "/" | "%") as op, (left, right)):
                if expression_type(expr, self._types) != "int":
                    raise self._unsupported("arithmetic on anything but integers")
                sign = "//" if op == "/" else op
                return f"({self._expr(left)} {sign} {self._expr(right)})"
            case _:
                raise self._unsupported("functions")

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"pyDatalog has no {what}: {format_rule(self._rule)}")


def _variable_names(rule: Rule) -> dict[str, str]:
    names = [*variables(rule.head), *(n for literal in rule.body for n in variables(literal))]
    return {name: f"V{i}" for i, name in enumerate(dict.fromkeys(names))}


def _ordered(rule: Rule) -> list[Literal]:
    """The body in an order in which every test finds its variables bound."""
    ordered: list[Literal] = [
        literal for literal in rule.body if isinstance(literal, Atom) and not literal.negated
    ]
    left = [literal for literal in rule.body if literal not in ordered]
    while left:
        known = bound_by(ordered)
        binding = bound_by([*ordered, *left])
        ready = next(
            (
                literal
                for literal in left
                if all(n in known or n not in binding for n in variables(literal))
            ),
            None,
        )
        if ready is None:  # An assignment or an enumeration whose variable is not bound yet.
            ready = next(literal for literal in left if bound_by([*ordered, literal]) > known)
        ordered.append(ready)
        left.remove(ready)
    return ordered


def _pairs(facts: Facts) -> list[tuple[str, Sequence[Any]]]:
    if isinstance(facts, Mapping):
        return [(name, row) for name, rows in facts.items() for row in rows]
    return list(facts)
