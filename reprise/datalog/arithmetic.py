"""Arithmetic and comparisons over Datalog values, as functions and as Python text.

Statically typed integer expressions compile to plain Python operators. Everything else (floats,
which may overflow or be NaN; ``any`` values, which may not be numbers) compiles to calls of the
functions here. Invariant: an expression without a value — division by zero, arithmetic on a
symbol, overflow — is ``None``, and a comparison with ``None`` on either side is false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reprise.datalog.values import NAN, AnyFloat, is_entity, plain
from reprise.lang.core import Arith, Const, Expr, Value, Var
from reprise.lang.dtypes import DTYPES
from reprise.lang.safety import expression_type

Number = int | float
Maybe = Value | None


def _number(value: Maybe) -> Number | None:
    return value if isinstance(value, (int, float)) else None


def _finish(value: Number) -> Number:
    return value if value == value else NAN


def _binary(function: Callable[[Number, Number], Number]) -> Callable[[Maybe, Maybe], Maybe]:
    def apply(left: Maybe, right: Maybe) -> Maybe:
        a, b = _number(left), _number(right)
        if a is None or b is None:
            return None
        try:
            return _finish(function(a, b))
        except ArithmeticError:
            return None

    return apply


def _quotient(a: Number, b: Number) -> Number:
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b


add = _binary(operator.add)
subtract = _binary(operator.sub)
multiply = _binary(operator.mul)
divide = _binary(_quotient)
modulo = _binary(operator.mod)


def negate(value: Maybe) -> Maybe:
    """``-value``, or ``None`` for what is not a number."""
    number = _number(value)
    return None if number is None else _finish(-number)


def absolute(value: Maybe) -> Maybe:
    """``abs(value)``, or ``None`` for what is not a number."""
    number = _number(value)
    return None if number is None else _finish(abs(number))


def least(*values: Maybe) -> Maybe:
    """The smallest of some numbers, or ``None`` if one of them is none."""
    return _extreme(min, values)


def greatest(*values: Maybe) -> Maybe:
    """The largest of some numbers, or ``None`` if one of them is none."""
    return _extreme(max, values)


def _extreme(choose: Callable[[list[Number]], Number], values: tuple[Maybe, ...]) -> Maybe:
    numbers = [number for value in values if (number := _number(value)) is not None]
    if len(numbers) != len(values):
        return None
    if any(number != number for number in numbers):
        return NAN
    return plain(choose(numbers))


def bits(dtype: Maybe) -> Maybe:
    """The width in bits of a dtype symbol, or ``None`` for any other value."""
    found = DTYPES.get(dtype) if isinstance(dtype, str) else None
    return None if found is None else found.bits


def compare(op: str, left: Maybe, right: Maybe) -> bool:
    """``left op right`` by value; order holds between numbers only, nothing holds of ``None``."""
    if left is None or right is None:
        return False
    a, b = plain(left), plain(right)
    if op == "==":
        return a == b
    if op == "!=":
        return a != b
    if isinstance(a, str) or isinstance(b, str):
        return False
    return _ORDER[op](a, b)


_ORDER: dict[str, Callable[[Number, Number], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_FUNCTIONS: dict[str, Callable[..., Maybe]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "neg": negate,
    "abs": absolute,
    "min": least,
    "max": greatest,
    "bits": bits,
}


def apply(op: str, args: Iterable[Maybe]) -> Maybe:
    """The value of ``op``, as :class:`~reprise.lang.core.Arith` names it, for some arguments."""
    return _FUNCTIONS[op](*args)


def evaluate(expr: Expr, values: Mapping[str, Value]) -> Maybe:
    """The value of ``expr`` under a binding of all its variables."""
    match expr:
        case Var(name):
            return values[name]
        case Const(value):
            return value
        case Arith(op, args):
            return apply(op, [evaluate(arg, values) for arg in args])


# --- text --------------------------------------------------------------------------------------

_INLINE = {"+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "neg": "(-{})", "abs": "abs({})"}
_DIVISION = {"/": "//", "%": "%"}
_NAMES = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
    "neg": "negate",
    "abs": "absolute",
    "min": "least",
    "max": "greatest",
    "bits": "bits",
}
ENVIRONMENT: dict[str, object] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "modulo": modulo,
    "negate": negate,
    "absolute": absolute,
    "least": least,
    "greatest": greatest,
    "bits": bits,
    "compare": compare,
    "plain": plain,
    "inf": math.inf,
    "nan": NAN,
}
"""The names that generated expressions use."""


@dataclass(frozen=True, slots=True)
class Code:
    """An expression as Python text: its column type, and whether it always has a value."""

    text: str
    type: str
    total: bool = True


def constant_text(value: Value) -> str:
    """A constant as Python text; ``inf`` and ``nan`` are names of the environment."""
    return repr(plain(value) if isinstance(value, AnyFloat) else value)


def expression_code(expr: Expr, where: Mapping[str, str], types: Mapping[str, str]) -> Code:
    """Python text that computes ``expr``, its variables replaced by the texts in ``where``."""
    match expr:
        case Var(name):
            return Code(where[name], types[name])
        case Const(value):
            return Code(constant_text(value), expression_type(expr, types))
        case Arith(op, args):
            codes = [expression_code(arg, where, types) for arg in args]
            type_ = expression_type(expr, types)
            texts = [code.text for code in codes]
            if all(code.type == "int" and code.total for code in codes):
                return _integer_code(op, texts, args)
            return Code(f"{_NAMES[op]}({', '.join(texts)})", type_, total=False)


def _integer_code(op: str, texts: list[str], args: tuple[Expr, ...]) -> Code:
    if op in _INLINE:
        return Code(_INLINE[op].format(*texts), "int")
    if op in ("min", "max"):
        return Code(f"{op}({', '.join(texts)})", "int")
    if op in _DIVISION:
        quotient = f"{texts[0]} {_DIVISION[op]} {texts[1]}"
        divisor = args[1]
        if isinstance(divisor, Const) and divisor.value != 0:
            return Code(f"({quotient})", "int")
        return Code(f"({quotient} if {texts[1]} else None)", "int", total=False)
    return Code(f"{_NAMES[op]}({', '.join(texts)})", "int", total=False)


def comparison_text(op: str, left: Code, right: Code) -> str:
    """A Python condition that holds exactly if ``left op right`` does."""
    kinds = {_kind(left.type), _kind(right.type)}
    if left.total and right.total and "any" not in kinds:
        if kinds == {"number"} or (kinds == {"symbol"} and op in ("==", "!=")):
            return f"{left.text} {op} {right.text}"
        return "True" if op == "!=" else "False"
    return f"compare({op!r}, {left.text}, {right.text})"


def _kind(type_: str) -> str:
    if type_ in ("int", "float") or is_entity(type_):
        return "number"
    return "any" if type_ == "any" else "symbol"
