"""What an expression or condition of the rule language *means*, once per reading.

The syntax tree is walked here and nowhere else; what the walk does with numbers is up to a
:class:`Reading`. The native reading (:class:`Native`) computes with known, symbolic and unknown
extents in three-valued logic. A solver's reading implements the same few methods over its own
terms. Law: on known values the native reading, the code that ``reprise.solve.emit`` writes, and a
solver with every variable pinned agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reprise.lang import ast
from reprise.solve import arithmetic
from reprise.solve.arithmetic import Truth, Value
from reprise.solve.shapes import FUNCTIONS, ShapeError
from reprise.uir.graph import TensorType


class Absent(Exception):
    """A variable or operand that this instance does not have; what mentions it is void."""


class Reading(Protocol):
    """How to compute: a reading's values are its own affair, its truths too."""

    def number(self, value: int | float) -> Any: ...
    def binary(self, op: str, left: Any, right: Any) -> Any: ...
    def call(self, function: str, args: list[Any]) -> Any: ...
    def item(self, items: tuple[Any, ...] | None, index: Any) -> Any: ...
    def compare(self, op: str, left: Any, right: Any, symbols: bool) -> Any: ...
    def negation(self, truth: Any) -> Any: ...
    def every(self, truths: Iterable[Any]) -> Any: ...
    def some(self, truths: Iterable[Any]) -> Any: ...


class Native:
    """The native reading: three-valued arithmetic (see :mod:`reprise.solve.arithmetic`)."""

    _BINARY: Mapping[str, Callable[[Value, Value], Value]] = {
        "+": arithmetic.plus,
        "-": arithmetic.minus,
        "*": arithmetic.times,
        "/": arithmetic.quotient,
        "%": arithmetic.remainder,
    }

    def number(self, value: int | float) -> Value:
        return value

    def binary(self, op: str, left: Value, right: Value) -> Value:
        return self._BINARY[op](left, right)

    def call(self, function: str, args: list[Value]) -> Value:
        return FUNCTIONS[function].evaluate(*args)  # type: ignore[no-any-return]

    def item(self, items: tuple[Value, ...] | None, index: Any) -> Value:
        if items is None or index is None:
            return None
        if not -len(items) <= index < len(items):
            raise IndexError(f"item {index} of a list of {len(items)}")
        return items[index]  # type: ignore[no-any-return]

    def compare(self, op: str, left: Value, right: Value, symbols: bool) -> Truth:
        if symbols:
            equal: Truth = None if left is None or right is None else left == right
            return equal if op == "==" else arithmetic.negation(equal)
        match op:
            case "==":
                return arithmetic.same(left, right)
            case "!=":
                return arithmetic.negation(arithmetic.same(left, right))
            case "<=":
                return arithmetic.at_most(left, right)
            case ">=":
                return arithmetic.at_most(right, left)
            case "<":
                return arithmetic.negation(arithmetic.at_most(right, left))
            case _:
                return arithmetic.negation(arithmetic.at_most(left, right))

    def negation(self, truth: Truth) -> Truth:
        return arithmetic.negation(truth)

    def every(self, truths: Iterable[Truth]) -> Truth:
        return arithmetic.every(truths)

    def some(self, truths: Iterable[Truth]) -> Truth:
        return arithmetic.some(truths)


NATIVE = Native()


@dataclass(slots=True)
class Scope:
    """What names stand for while a signature is evaluated.

    ``operands`` holds the declared operands (None: absent; a variadic one: its first); ``sets``
    the members of each named set; ``symbols`` the variables whose values are dtypes or other
    words, which compare by spelling, unlike symbolic extents.
    """

    variables: dict[str, Any]
    operands: dict[str, TensorType | None]
    sets: Mapping[str, frozenset[Value]]
    symbols: frozenset[str]


def evaluate(expr: ast.Expr, scope: Scope, reading: Reading) -> Any:
    """The value of ``expr``. Raises :class:`Absent` if it mentions what is not there."""
    match expr:
        case ast.Variable(name):
            if name not in scope.variables:
                raise Absent(name)
            return scope.variables[name]
        case ast.Number(value):
            return reading.number(value)
        case ast.String(value) | ast.Boolean(value) | ast.Name(value):
            return value
        case ast.Wildcard():
            return None
        case ast.ListExpr(items):
            return tuple(evaluate(item, scope, reading) for item in items)
        case ast.Negate(ast.Number(value)):
            return reading.number(-value)
        case ast.Negate(operand):
            return reading.binary("-", reading.number(0), evaluate(operand, scope, reading))
        case ast.Binary(op, left, right):
            return reading.binary(
                op, evaluate(left, scope, reading), evaluate(right, scope, reading)
            )
        case ast.CallExpr(ast.Ident("or_else"), (preferred, fallback)):
            try:
                return evaluate(preferred, scope, reading)
            except Absent:
                return evaluate(fallback, scope, reading)
        case ast.CallExpr(function, args):
            return reading.call(function.text, [evaluate(a, scope, reading) for a in args])
        case ast.Member(ast.Name(operand), name):
            return _property(_operand(operand, scope), name.text, reading)
        case ast.Index(ast.Member(ast.Name(operand), ast.Ident("dim")), index):
            return reading.item(_operand(operand, scope).shape, evaluate(index, scope, reading))
        case ast.Index(base, index):
            return reading.item(evaluate(base, scope, reading), evaluate(index, scope, reading))
        case _:
            raise TypeError(f"no meaning in a signature: {expr!r}")


def holds(condition: ast.Condition, scope: Scope, reading: Reading) -> Any:
    """Whether ``condition`` holds. Raises :class:`Absent` if it mentions what is not there."""
    match condition:
        case ast.Comparison(operands, ops):
            values = [evaluate(operand, scope, reading) for operand in operands]
            words = [is_symbol(operand, scope.symbols) for operand in operands]
            return reading.every(
                reading.compare(op, values[i], values[i + 1], words[i] or words[i + 1])
                for i, op in enumerate(ops)
            )
        case ast.Membership(expr, domain, negated):
            value = evaluate(expr, scope, reading)
            inside = belongs(value, domain, scope, reading, is_symbol(expr, scope.symbols))
            return reading.negation(inside) if negated else inside
        case ast.AtomCond(ast.Ident("present"), (subject,)):
            return _is_present(subject, scope)
        case ast.Not(inner):
            return reading.negation(holds(inner, scope, reading))
        case ast.And(parts):
            return reading.every(_guarded(parts, scope, reading))
        case ast.Or(parts):
            return reading.some(_guarded(parts, scope, reading))
        case _:
            raise TypeError(f"no meaning in a signature: {condition!r}")


def _guarded(parts: tuple[ast.Condition, ...], scope: Scope, reading: Reading) -> Iterator[Any]:
    """The truths of ``parts``, in order. An earlier part often guards a later one
    (``rank(P) == 0 or P[0] == n``): where it cannot be told, a later one that fails is not told
    either."""
    told = True
    for part in parts:
        try:
            truth = holds(part, scope, reading)
        except (ShapeError, IndexError, ZeroDivisionError):
            if told:
                raise
            truth = None
        told = told and truth is not None
        yield truth


def belongs(value: Any, domain: ast.Domain, scope: Scope, reading: Reading, symbol: bool) -> Any:
    """Whether ``value`` (of a list: every item) lies in ``domain``."""
    if isinstance(value, tuple):
        return reading.every([belongs(v, domain, scope, reading, symbol) for v in value])
    match domain:
        case ast.RangeDomain(low, high):
            lowest = evaluate(low, scope, reading)
            highest = evaluate(high, scope, reading)
            return reading.every(
                [
                    reading.compare("<=", lowest, value, False),
                    reading.compare("<=", value, highest, False),
                ]
            )
        case ast.SetDomain(items):
            members = [evaluate(item, scope, reading) for item in items]
        case ast.NamedDomain(name):
            members = sorted(scope.sets[name.text], key=str)
    return reading.some(
        [reading.compare("==", value, m, symbol or isinstance(m, str)) for m in members]
    )


def is_symbol(expr: ast.Expr, symbols: frozenset[str]) -> bool:
    """Whether ``expr`` stands for a word (a dtype, a mode) rather than for a number."""
    match expr:
        case ast.String() | ast.Name():
            return True
        case ast.Variable(name):
            return name in symbols
        case ast.Member(_, name):
            return name.text == "dtype"
        case _:
            return False


def _operand(name: str, scope: Scope) -> TensorType:
    operand = scope.operands.get(name)
    if operand is None:
        raise Absent(name)
    return operand


def _property(operand: TensorType, name: str, reading: Reading) -> Any:
    match name:
        case "rank":
            return operand.rank
        case "dtype":
            return operand.dtype
        case "numel":
            return reading.call("prod", [operand.shape])
        case _:
            return operand.shape


def _is_present(subject: ast.Expr, scope: Scope) -> bool:
    match subject:
        case ast.Variable(name):
            return name in scope.variables
        case ast.Name(text):
            return scope.operands.get(text) is not None
        case _:
            raise TypeError(f"`present` takes an operand or a variable, not {subject!r}")
