"""The arithmetic in format files and in specifications: integers, units, names, nothing else.

Python's own parser reads the text; only the nodes listed here are evaluated, so that a
specification cannot run code, and numbers stay below a limit.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from reprise.mining.hardware.units import Quantity, UnitError

MAX_BITS = 256
"""No number of a specification needs more; `2**10**9` would not end."""

_COMPARE: dict[type[ast.cmpop], Callable[[Fraction, Fraction], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(ValueError):
    """An expression that is not arithmetic, or that has no value."""


class MissingName(ExpressionError):
    """A name in an expression that nothing gives a value."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` has no value")
        self.name = name


Lookup: TypeAlias = Callable[[str], Quantity]
"""The quantity of a name; raises MissingName."""


def parse(text: str) -> ast.expr:
    """``text`` as an expression. Raises ExpressionError."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"`{text[:60]}` is not an expression") from None


def names_in(node: ast.expr) -> tuple[str, ...]:
    """The names that an expression reads, each once, in order."""
    found = (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return tuple(dict.fromkeys(name for name in found if name != "lcm"))


def evaluate(node: ast.expr, lookup: Lookup) -> Quantity:
    """The value of an arithmetic expression. Raises ExpressionError, MissingName or UnitError."""
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return Quantity(Fraction(str(value)) if isinstance(value, float) else Fraction(value))
        case ast.Name(name):
            return lookup(name)
        case ast.UnaryOp(ast.USub(), operand):
            inner = evaluate(operand, lookup)
            return Quantity(-inner.value, inner.bits)
        case ast.BinOp(left, op, right):
            return _bounded(_binary(op, evaluate(left, lookup), evaluate(right, lookup)))
        case ast.Call(ast.Name("lcm"), [left, right], []):
            first, second = evaluate(left, lookup), evaluate(right, lookup)
            _alike(first, second)
            if first.value.denominator != 1 or second.value.denominator != 1:
                raise ExpressionError("lcm needs whole numbers")
            return Quantity(
                Fraction(math.lcm(first.value.numerator, second.value.numerator)), first.bits
            )
    raise ExpressionError(f"`{ast.unparse(node)[:60]}` is not arithmetic")


def holds(node: ast.expr, lookup: Lookup) -> bool:
    """Whether a comparison is true. Raises like :func:`evaluate`."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
            first, second = evaluate(left, lookup), evaluate(right, lookup)
            _alike(first, second)
            return _COMPARE[type(op)](first.value, second.value)
    raise ExpressionError(f"`{ast.unparse(node)[:60]}` is not a comparison")


def _binary(op: ast.operator, left: Quantity, right: Quantity) -> Quantity:
    match op:
        case ast.Mult():
            return Quantity(left.value * right.value, left.bits + right.bits)
        case ast.Div() | ast.FloorDiv():
            if right.value == 0:
                raise ExpressionError("division by zero")
            quotient = left.value / right.value
            whole = Fraction(math.floor(quotient)) if isinstance(op, ast.FloorDiv) else quotient
            return Quantity(whole, left.bits - right.bits)
        case ast.Add() | ast.Sub() | ast.Mod():
            _alike(left, right)
            if isinstance(op, ast.Mod):
                if right.value == 0:
                    raise ExpressionError("division by zero")
                return Quantity(left.value % right.value, left.bits)
            sign = 1 if isinstance(op, ast.Add) else -1
            return Quantity(left.value + sign * right.value, left.bits)
        case ast.LShift() | ast.Pow() if right.bits == 0 and left.bits == 0:
            exponent = right.value
            if exponent.denominator != 1 or not 0 <= exponent <= MAX_BITS:
                raise ExpressionError("an exponent must be between 0 and 256")
            base = Fraction(2) if isinstance(op, ast.LShift) else left.value
            power = _bounded(Quantity(base)).value ** exponent.numerator
            return Quantity(left.value * power if isinstance(op, ast.LShift) else power)
    raise ExpressionError("only + - * / // % << and ** are arithmetic here")


def _alike(left: Quantity, right: Quantity) -> None:
    if left.bits != right.bits:
        raise UnitError(f"a size and a count do not go together ({left}; {right})")


def _bounded(amount: Quantity) -> Quantity:
    if max(amount.value.numerator.bit_length(), amount.value.denominator.bit_length()) > MAX_BITS:
        raise ExpressionError(f"a number of more than {MAX_BITS} bits")
    return amount
