"""Rules read over a graph whose numbers are still open.

A *structure* is a graph whose nodes, flow and ranks are fixed while extents, element types and
some attributes are z3 terms. :class:`Reader` says what a rule's body means there: every way to
satisfy it, with the z3 condition under which it does. So "the constraint is violated somewhere" is
one z3 formula, exact for unbounded integers, and its negation says that the constraint holds.

Values are Python values, z3 numbers, :class:`Word` (a name that is open: an element type, a mode)
or :class:`Items` (a shape, a list). The meaning follows ``reprise.patterns.truth``; what is found
is checked natively afterwards in any case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from reprise.datalog.arithmetic import apply, compare
from reprise.lang import core
from reprise.lang.dtypes import DTYPES
from reprise.patterns.truth import order
from reprise.solve.z3_reading import Symbolic, Unread

_DEPTH = 6
"""How often a derived relation is unfolded within another."""
_MOST = 2_000
"""Ways to satisfy a body that are followed."""


class TooMuch(Exception):
    """A body that has no reading here: it recurses too deeply, or branches too often."""


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A name that z3 chooses: the term is its number in the reading's table."""

    term: Any


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A shape, or a list attribute: numbers or terms."""

    items: tuple[Any, ...]


Rows = Mapping[str, Sequence[tuple[Any, ...]]]
Bound = dict[str, Any]
Way = tuple[tuple[Any, ...], Bound]
"""z3 conditions that must hold together, and what the variables stand for then."""


class Reader:
    """Reads bodies against the rows of one structure."""

    def __init__(
        self, rules: Mapping[str, Sequence[core.Rule]], rows: Rows, words: Symbolic
    ) -> None:
        self.rules = rules
        self.rows = rows
        self.words = words
        self._fresh = itertools.count()
        self._followed = 0

    def holds_somewhere(self, bodies: Sequence[Sequence[core.Literal]]) -> Any:
        """The condition under which one of the bodies can be satisfied: a z3 term, or a bool.
        Raises TooMuch."""
        self._followed = 0
        return self._any(way for body in bodies for way in self._ways(body, {}, 0))

    # --- bodies ----------------------------------------------------------------------------------

    def _any(self, ways: Iterator[Way]) -> Any:
        options = []
        for conditions, _ in ways:
            if not conditions:
                return True
            options.append(z3.And(*conditions) if len(conditions) > 1 else conditions[0])
        if not options:
            return False
        return z3.Or(*options) if len(options) > 1 else options[0]

    def _ways(self, body: Sequence[core.Literal], bound: Bound, depth: int) -> Iterator[Way]:
        yield from self._follow(order(body, bound), bound, (), depth)

    def _follow(
        self, body: Sequence[core.Literal], bound: Bound, conditions: tuple[Any, ...], depth: int
    ) -> Iterator[Way]:
        self._followed += 1
        if self._followed > _MOST:
            raise TooMuch("too many ways to satisfy a rule's body")
        if not body:
            yield conditions, bound
            return
        for more, names in self._literal(body[0], bound, depth):
            yield from self._follow(body[1:], {**bound, **names}, (*conditions, *more), depth)

    def _literal(self, literal: core.Literal, bound: Bound, depth: int) -> Iterator[Way]:
        match literal:
            case core.Atom(negated=False):
                yield from self._atom(literal, bound, depth)
            case core.Atom():
                found = self._any(self._atom(literal, bound, depth))
                yield from _if(_not(found))
            case core.Compare():
                yield from self._compare(literal, bound)
            case core.Member():
                yield from self._member(literal, bound)
            case core.Aggregate():
                yield from self._aggregate(literal, bound, depth)

    # --- atoms -----------------------------------------------------------------------------------

    def _atom(self, atom: core.Atom, bound: Bound, depth: int) -> Iterator[Way]:
        demands: list[Any] = []
        wanted = [self._value(term, bound, demands) for term in atom.terms]
        for row in self.rows.get(atom.relation, ()):
            yield from self._met(atom.terms, wanted, row, demands)
        rules = self.rules.get(atom.relation, ())
        if depth >= _DEPTH and rules:
            raise TooMuch(f"`{atom.relation}` goes too deep")
        for rule in rules:
            suffix = f"~{next(self._fresh)}"
            body = [_renamed(part, suffix) for part in rule.body]
            head = [_renamed_expr(term, suffix) for term in rule.head.terms]
            given: Bound = {
                term.name: value
                for term, value in zip(head, wanted, strict=True)
                if isinstance(term, core.Var) and value is not None
            }
            for conditions, names in self._ways(body, given, depth + 1):
                row = tuple(self._value(term, names, demands) for term in head)
                for more, result in self._met(atom.terms, wanted, row, demands):
                    yield (*conditions, *more), result

    def _met(
        self,
        terms: Sequence[core.Expr],
        wanted: Sequence[Any],
        row: Sequence[Any],
        demands: Sequence[Any],
    ) -> Iterator[Way]:
        """A row that meets the terms, under conditions where either side is open."""
        conditions: list[Any] = list(demands)
        names: Bound = {}
        for term, value, found in zip(terms, wanted, row, strict=True):
            if value is None:
                if not isinstance(term, core.Var):
                    return
                if term.name not in names:
                    names[term.name] = found
                    continue
                value = names[term.name]
            same = self.same(value, found)
            if same is False:
                return
            if same is not True:
                conditions.append(same)
        yield tuple(conditions), names

    # --- tests -----------------------------------------------------------------------------------

    def _compare(self, literal: core.Compare, bound: Bound) -> Iterator[Way]:
        demands: list[Any] = []
        left = self._value(literal.left, bound, demands)
        right = self._value(literal.right, bound, demands)
        if literal.op == "==":
            for name, value in ((literal.left, right), (literal.right, left)):
                if isinstance(name, core.Var) and name.name not in bound and value is not None:
                    yield tuple(demands), {name.name: value}
                    return
        if left is None or right is None:
            return
        yield from _if(self.compared(literal.op, left, right), demands)

    def _member(self, literal: core.Member, bound: Bound) -> Iterator[Way]:
        demands: list[Any] = []
        value = self._value(literal.expr, bound, demands)
        if value is None:
            if isinstance(literal.expr, core.Var) and not literal.negated:
                for option in literal.values:
                    yield (), {literal.expr.name: option}
            return
        inside = _some([self.same(value, option) for option in literal.values])
        yield from _if(_not(inside) if literal.negated else inside, demands)

    def _aggregate(self, literal: core.Aggregate, bound: Bound, depth: int) -> Iterator[Way]:
        found: list[tuple[Any, Any]] = []  # a condition and a value
        for conditions, names in self._ways(literal.body, bound, depth):
            demands: list[Any] = []
            value = 1 if literal.value is None else self._value(literal.value, names, demands)
            if value is not None:
                found.append((_every([*conditions, *demands]), value))
        if literal.kind == "count" and literal.value is not None:
            found = self._distinct(found)
            total = _sum([self._choose(c, 1, 0) for c, _ in found])
        elif literal.kind in ("count", "sum"):
            total = _sum([self._choose(c, v, 0) for c, v in found])
        elif literal.kind == "prod":
            total = _product([self._choose(c, v, 1) for c, v in found])
        else:
            yield from self._extreme(literal, found, bound)
            return
        yield from self._result(literal.result.name, total, bound, ())

    def _extreme(
        self, literal: core.Aggregate, found: list[tuple[Any, Any]], bound: Bound
    ) -> Iterator[Way]:
        """``min`` and ``max``: each value that can be the one, if no other is beyond it."""
        beyond = "<" if literal.kind == "min" else ">"
        for i, (condition, value) in enumerate(found):
            others = [
                _not(_every([c, self.compared(beyond, v, value)]))
                for j, (c, v) in enumerate(found)
                if j != i
            ]
            chosen = _every([condition, *others])
            if chosen is not False:
                more = () if chosen is True else (chosen,)
                yield from self._result(literal.result.name, value, bound, more)

    def _result(self, name: str, value: Any, bound: Bound, more: tuple[Any, ...]) -> Iterator[Way]:
        if name not in bound:
            yield more, {name: value}
        else:
            yield from _if(self.compared("==", bound[name], value), more)

    def _distinct(self, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Each value with the condition that it occurs and none before it is the same."""
        kept: list[tuple[Any, Any]] = []
        for condition, value in found:
            before = [_not(_every([c, self.same(v, value)])) for c, v in kept]
            kept.append((_every([condition, *before]), value))
        return kept

    # --- values ----------------------------------------------------------------------------------

    def _value(self, expr: core.Expr, bound: Bound, demands: list[Any]) -> Any:
        """The value; None if a variable is free or the arithmetic has none. ``demands`` gets what
        must hold for it to have one."""
        match expr:
            case core.Const(value):
                return value
            case core.Var(name):
                return bound.get(name)
            case core.Arith(op, args):
                values = [self._value(arg, bound, demands) for arg in args]
                if any(v is None for v in values):
                    return None
                return self._apply(op, values, demands)

    def _apply(self, op: str, values: list[Any], demands: list[Any]) -> Any:
        if op == "bits" and isinstance(values[0], Word):
            result: Any = z3.IntVal(0, self.words.context)
            for name, known in DTYPES.items():
                result = z3.If(values[0].term == self.words.word(name), known.bits, result)
            return result
        if not any(isinstance(v, z3.ExprRef) for v in values):
            return None if any(isinstance(v, Word | Items) for v in values) else apply(op, values)
        if any(isinstance(v, str | Word | Items) for v in values):
            return None
        values = [self._exact(v) for v in values]
        if op == "neg":
            return -values[0]
        if op == "abs":
            return z3.If(values[0] >= 0, values[0], -values[0])
        if op in ("min", "max"):
            best = values[0]
            for value in values[1:]:
                best = z3.If((best <= value) if op == "min" else (best >= value), best, value)
            return best
        try:
            result = self.words.binary(op, *values)
        except (ZeroDivisionError, Unread):
            return None
        demands += self.words.taken()
        return result

    def same(self, left: Any, right: Any) -> Any:
        """Whether two values are one."""
        return self.compared("==", left, right)

    def compared(self, op: str, left: Any, right: Any) -> Any:
        """``left op right``: a bool, or a z3 condition."""
        if op == "!=":
            return _not(self.compared("==", left, right))
        left, right = self._listed(left, right), self._listed(right, left)
        if isinstance(left, Items) and isinstance(right, Items):
            if op != "==" or len(left.items) != len(right.items):
                return False
            pairs = zip(left.items, right.items, strict=True)
            return _every([self.compared("==", a, b) for a, b in pairs])
        if isinstance(left, Items) or isinstance(right, Items):
            return False
        if isinstance(left, Word) or isinstance(right, Word):
            a, b = self._coded(left), self._coded(right)
            return False if op != "==" or a is None or b is None else a == b
        if isinstance(left, z3.ExprRef) or isinstance(right, z3.ExprRef):
            if isinstance(left, str) or isinstance(right, str):
                return False
            a, b = self._exact(left), self._exact(right)
            match op:
                case "==":
                    return a == b
                case "<":
                    return a < b
                case "<=":
                    return a <= b
                case ">":
                    return a > b
                case _:
                    return a >= b
        return compare(op, left, right)

    def _exact(self, value: Any) -> Any:
        """A floating-point number as the fraction that it is."""
        if not isinstance(value, float):
            return value
        if not math.isfinite(value):
            raise TooMuch("a comparison with infinity")
        return z3.RealVal(Fraction(value), self.words.context)

    def _choose(self, condition: Any, value: Any, otherwise: int) -> Any:
        if isinstance(condition, bool):
            return value if condition else otherwise
        return z3.If(condition, self._exact(value), otherwise)

    def _coded(self, value: Any) -> Any:
        if isinstance(value, Word):
            return value.term
        return self.words.word(value) if isinstance(value, str) else None

    def _listed(self, value: Any, other: Any) -> Any:
        """A list that is spelled (``[1, 0]``, ``4x17``), where it meets an open one."""
        if not isinstance(other, Items) or not isinstance(value, str):
            return value
        text = value[1:-1].split(", ") if value.startswith("[") else value.split("x")
        text = [] if value in ("[]", "scalar") else text
        try:
            return Items(tuple(int(item) for item in text))
        except ValueError:
            return value


# --- conditions --------------------------------------------------------------------------------


def _if(truth: Any, more: Sequence[Any] = ()) -> Iterator[Way]:
    """The one way of a test, unless it is certainly false."""
    if truth is not False:
        yield (*more, *(() if truth is True else (truth,))), {}


def _not(truth: Any) -> Any:
    return (not truth) if isinstance(truth, bool) else z3.Not(truth)


def _every(truths: Sequence[Any]) -> Any:
    open_ones = [t for t in truths if not isinstance(t, bool)]
    if any(t is False for t in truths):
        return False
    if not open_ones:
        return True
    return open_ones[0] if len(open_ones) == 1 else z3.And(*open_ones)


def _some(truths: Sequence[Any]) -> Any:
    return _not(_every([_not(t) for t in truths]))


def _sum(values: Sequence[Any]) -> Any:
    total: Any = 0
    for value in values:
        total = total + value
    return total


def _product(values: Sequence[Any]) -> Any:
    total: Any = 1
    for value in values:
        total = total * value
    return total


# --- renaming ----------------------------------------------------------------------------------


def _renamed_expr(expr: core.Expr, suffix: str) -> core.Expr:
    match expr:
        case core.Var(name):
            return core.Var(name + suffix)
        case core.Arith(op, args):
            return core.Arith(op, tuple(_renamed_expr(arg, suffix) for arg in args))
        case _:
            return expr


def _renamed(literal: core.Literal, suffix: str) -> core.Literal:
    match literal:
        case core.Atom():
            terms = tuple(_renamed_expr(term, suffix) for term in literal.terms)
            return core.Atom(literal.relation, terms, literal.negated)
        case core.Compare():
            left, right = (_renamed_expr(e, suffix) for e in (literal.left, literal.right))
            return core.Compare(literal.op, left, right)
        case core.Member():
            return core.Member(_renamed_expr(literal.expr, suffix), literal.values, literal.negated)
        case core.Aggregate():
            value = None if literal.value is None else _renamed_expr(literal.value, suffix)
            body = tuple(_renamed(part, suffix) for part in literal.body)
            return core.Aggregate(core.Var(literal.result.name + suffix), literal.kind, value, body)
