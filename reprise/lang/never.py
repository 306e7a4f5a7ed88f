"""Rules that can never match: contradictions that show without any graph.

Two looks. :func:`contradictions` is cheap and runs on every load: per variable, an interval and a
set of allowed and excluded constants. :func:`unsatisfiable` asks z3 about all arithmetic conditions
of a body together; it runs in ``reprise rules lint``, where 5 ms a rule do not matter, but only for
bodies that the first look cannot decide (:func:`clash`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf, isfinite
from typing import Any

from reprise.lang import core
from reprise.lang.ast import NOWHERE
from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.z3_solver import limit

NON_NEGATIVE = {
    "dim": 2,
    "rank": 1,
    "elems": 1,
    "arity": 1,
    "results": 1,
    "attr_len": 2,
    "fanout": 1,
}
"""Relation -> the column that holds a count or an extent, never negative."""

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(slots=True)
class _Range:
    """What a body says of one variable so far. ``above`` and ``below``: the bound itself is
    excluded; ``whole``: only whole numbers can be there, as in a column of counts."""

    low: float = -inf
    high: float = inf
    above: bool = False
    below: bool = False
    whole: bool = False
    allowed: set[core.Value] | None = None
    excluded: set[core.Value] = field(default_factory=set)

    def raise_to(self, bound: float, open: bool) -> None:
        """Nothing below ``bound``; nor the bound itself, if ``open``."""
        self.low, self.above = max((self.low, self.above), (bound, open))

    def lower_to(self, bound: float, open: bool) -> None:
        """Nothing above ``bound``; nor the bound itself, if ``open``."""
        self.high, reached = min((self.high, not self.below), (bound, not open))
        self.below = not reached

    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value that are left; for other than whole numbers, as far as
        two numbers can say."""
        low, high = self.low, self.high
        if self.whole and isfinite(low):
            low = floor(low) + 1 if self.above else ceil(low)
        if self.whole and isfinite(high):
            high = ceil(high) - 1 if self.below else floor(high)
        return low, high

    def empty(self) -> bool:
        """Whether no value is left."""
        if self.allowed is not None:
            return not any(self._holds(v) for v in self.allowed)
        low, high = self.bounds()
        if low != high:
            return low > high
        return not self._holds(low)

    def _holds(self, value: core.Value) -> bool:
        if value in self.excluded:
            return False
        if isinstance(value, str):
            return self.low == -inf and self.high == inf
        low, high = self.bounds()
        if not self.whole and ((value == low and self.above) or (value == high and self.below)):
            return False
        return low <= value <= high and not (self.whole and value % 1 != 0)


_NOTHING = _Range(1, 0)


def contradictions(rules: Iterable[core.Rule]) -> list[Diagnostic]:
    """Diagnostics (``never-matches``) for rules that some variable's conditions rule out.

    A declaration that has several alternatives is reported only if *all* of them are impossible.
    """
    broken: dict[str, list[Diagnostic | None]] = {}
    for rule in rules:
        broken.setdefault(rule.name or rule.head.relation, []).append(_contradiction(rule))
    return [found[0] for found in broken.values() if found[0] is not None and all(found)]


def _contradiction(rule: core.Rule) -> Diagnostic | None:
    same = _equal_variables(rule)
    ranges: dict[str, _Range] = {}
    for literal in rule.body:
        for name, reach in _restrictions(literal, ranges, same):
            if reach.empty():
                return _never(
                    rule,
                    literal.span,
                    f"nothing satisfies this together with the rest "
                    f"(the conditions on {_shown(name)} contradict)",
                )
    return _bad_axis(rule, ranges, same)


def _restrictions(
    literal: core.Literal, ranges: dict[str, _Range], same: _Classes
) -> list[tuple[str, _Range]]:
    """Apply a literal to the ranges; returns the ones that it changed."""

    def reach(var: core.Var) -> tuple[str, _Range]:
        name = same.find(var.name)
        return var.name, ranges.setdefault(name, _Range())

    match literal:
        case core.Atom(relation, terms, False) if relation in NON_NEGATIVE:
            term = terms[NON_NEGATIVE[relation]] if len(terms) > NON_NEGATIVE[relation] else None
            if isinstance(term, core.Var):
                name, held = reach(term)
                held.whole = True
                held.raise_to(0, False)
                return [(name, held)]
        case core.Compare(op, core.Var() as var, core.Const(value)):
            return [_bounded(reach(var), op, value)]
        case core.Compare(op, core.Const(value), core.Var() as var):
            return [_bounded(reach(var), FLIPPED[op], value)]
        case core.Compare(op, left, right) if left == right and op in ("!=", "<", ">"):
            return [("it", _NOTHING)]
        case core.Compare(op, core.Const(a), core.Const(b)):
            if not _constant_holds(op, a, b):
                return [("it", _NOTHING)]
        case core.Member(core.Var() as var, values, negated):
            name, held = reach(var)
            if negated:
                held.excluded |= set(values)
            else:
                held.allowed = set(values) if held.allowed is None else held.allowed & set(values)
            return [(name, held)]
    return []


def _bounded(found: tuple[str, _Range], op: str, value: core.Value) -> tuple[str, _Range]:
    name, held = found
    if op == "==":
        held.allowed = {value} if held.allowed is None else held.allowed & {value}
        if not isinstance(value, str):
            held.raise_to(value, False)
            held.lower_to(value, False)
    elif op == "!=":
        held.excluded.add(value)
    elif not isinstance(value, str):
        if op in (">", ">="):
            held.raise_to(value, op == ">")
        else:
            held.lower_to(value, op == "<")
    return name, held


def _constant_holds(op: str, a: core.Value, b: core.Value) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return (a == b) == (op == "==") if op in ("==", "!=") else False
    return bool(COMPARE[op](a, b))


def _bad_axis(rule: core.Rule, ranges: dict[str, _Range], same: _Classes) -> Diagnostic | None:
    """An axis that the tensor's own rank excludes."""
    ranks = {
        literal.terms[0]: literal.terms[1]
        for literal in rule.body
        if isinstance(literal, core.Atom) and literal.relation == "rank" and not literal.negated
    }
    for literal in rule.body:
        if not (isinstance(literal, core.Atom) and literal.relation == "dim"):
            continue
        rank, axis = ranks.get(literal.terms[0]), literal.terms[1]
        if not isinstance(axis, core.Const) or not isinstance(axis.value, int):
            continue
        held = ranges.get(same.find(rank.name)) if isinstance(rank, core.Var) else None
        high = held.bounds()[1] if held is not None else inf
        if axis.value < 0 or axis.value >= high:
            return _never(rule, literal.span, f"there is no axis {axis.value} at that rank")
    return None


def _never(rule: core.Rule, span: Span | None, message: str) -> Diagnostic:
    where = span or rule.span or NOWHERE
    return Diagnostic(
        "never-matches",
        f"`{rule.name or rule.head.relation}` can never match: {message}",
        where,
        "remove or correct one of the conditions",
    )


def _shown(name: str) -> str:
    return f"`{name}`" if name[:1].isalpha() and not any(c.isdigit() for c in name) else "one value"


def _equal_variables(rule: core.Rule) -> _Classes:
    """Which variables the body equates."""
    same = _Classes()
    for literal in rule.body:
        match literal:
            case core.Compare("==", core.Var(a), core.Var(b)):
                same.join(a, b)
    return same


class _Classes:
    """Union-find over variable names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self.names: set[str] = set()

    def find(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            name = parent
        return name

    def join(self, a: str, b: str) -> None:
        self.names |= {a, b}
        self._parent[self.find(a)] = self.find(b)


def clash(rule: core.Rule) -> Diagnostic | None:
    """What makes a body impossible, or None: from intervals where they decide, else from z3."""
    return unsatisfiable(rule) if _relates_values(rule) else _contradiction(rule)


def _relates_values(rule: core.Rule) -> bool:
    """Whether a body says more than intervals and sets of values can hold: arithmetic, an order
    between variables, values that are excluded."""
    for literal in rule.body:
        match literal:
            case core.Compare("==", core.Var(), core.Var()):
                pass
            case core.Compare("!=") | core.Compare(_, core.Var(), core.Var()):
                return True
            case core.Compare(_, core.Var() | core.Const(), core.Var() | core.Const()):
                pass
            case core.Member(core.Var(), _, _):
                pass
            case core.Compare() | core.Member():
                return True
    return False


def unsatisfiable(rule: core.Rule, milliseconds: int = 500) -> Diagnostic | None:
    """Ask z3 whether the arithmetic of a body has any solution; None if it has, or z3 cannot say.

    The diagnostic names the conditions that clash (an unsatisfiable core), by line.
    """
    import z3

    solver = z3.Solver()
    limit(solver, milliseconds)
    encode = _Encoder(_counts(rule))
    tracked: dict[str, Span | None] = {}
    for number, literal in enumerate(rule.body):
        for constraint in encode.literal(literal):
            tag = f"c{number}"
            if tag not in tracked:
                tracked[tag] = literal.span
            solver.assert_and_track(constraint, f"{tag}_{len(tracked)}_{constraint.get_id()}")
    if not tracked or solver.check() != z3.unsat:
        return None
    clashing = {str(c).split("_")[0] for c in solver.unsat_core()}
    spans = [s for t in clashing if (s := tracked[t]) is not None]
    spans.sort(key=lambda s: (s.line, s.column))
    lines = ", ".join(str(line) for line in sorted({s.line for s in spans}))
    place = f"the conditions on line{'s' if ',' in lines else ''} {lines} clash"
    return _never(rule, spans[-1] if spans else rule.span, place)


def _counts(rule: core.Rule) -> frozenset[str]:
    """The variables that stand for counts or extents somewhere, and so are whole numbers."""
    same = _equal_variables(rule)
    counted = {
        same.find(term.name)
        for literal in rule.body
        if isinstance(literal, core.Atom) and not literal.negated
        for column, term in enumerate(literal.terms)
        if isinstance(term, core.Var) and NON_NEGATIVE.get(literal.relation) == column
    }
    return frozenset(name for name in same.names | counted if same.find(name) in counted)


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Core literals as z3 constraints; what is not arithmetic is left out (so that
    "unsatisfiable" is always right, and "satisfiable" only means that nothing was found).
    Variables are real numbers (an attribute may be), but for those that are known as counts."""

    counts: frozenset[str]

    def literal(self, literal: core.Literal) -> list[Any]:
        import z3

        match literal:
            case core.Compare(op, left, right):
                a, b = self.expr(left), self.expr(right)
                if a is None or b is None:
                    return []
                return [COMPARE[op](a, b), *self._divisors(left), *self._divisors(right)]
            case core.Member(expr, values, False):
                value = self.expr(expr)
                if value is None or not all(isinstance(v, int | float) for v in values):
                    return []
                return [z3.Or([value == v for v in values])]
            case core.Atom(relation, terms, False) if relation in NON_NEGATIVE:
                counted = self.expr(terms[NON_NEGATIVE[relation]])
                return [] if counted is None else [counted >= 0]
        return []

    def _divisors(self, expr: core.Expr) -> list[Any]:
        """Native arithmetic has no value at a zero divisor, so such a literal is false there."""
        if not isinstance(expr, core.Arith):
            return []
        inner = [d for a in expr.args for d in self._divisors(a)]
        if expr.op in ("/", "%"):
            divisor = self.expr(expr.args[1])
            if divisor is not None:
                inner.append(divisor != 0)
        return inner

    def expr(self, expr: core.Expr) -> Any:
        """The z3 term, or None for what is not arithmetic."""
        import z3

        match expr:
            case core.Const(value):
                if isinstance(value, float) and isfinite(value):
                    return z3.Q(*value.as_integer_ratio())
                return z3.IntVal(value) if isinstance(value, int) else None
            case core.Var(name):
                return z3.Int(name) if name in self.counts else z3.Real(name)
            case core.Arith(op, args):
                parts = [self.expr(a) for a in args]
                return None if any(p is None for p in parts) else self._arith(op, args, parts)

    def _arith(self, op: str, args: Sequence[core.Expr], parts: Sequence[Any]) -> Any:
        import z3

        x, y = parts[0], parts[-1]
        match op:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case "/" | "%":
                # Of whole numbers, z3's div and mod agree with Python's for positive divisors only.
                if not x.is_int():
                    return None
                match args[1]:
                    case core.Const(int() as divisor) if divisor > 0:
                        return x / y if op == "/" else x % y
                return None
            case "neg":
                return -x
            case "abs":
                return z3.If(x >= 0, x, -x)
            case "min" | "max" if len(parts) == 2:
                return z3.If(x <= y, x, y) if op == "min" else z3.If(x <= y, y, x)
        return None
