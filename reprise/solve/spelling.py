"""Expressions and conditions of the rule language as text, for messages.

Comes in: syntax trees. Goes out: one line that reads as it was written, spacing aside.
"""

from __future__ import annotations

from reprise.lang import ast
from reprise.solve.arithmetic import Shifted, Value

_TIGHTNESS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def spell(expr: ast.Expr) -> str:
    """An expression as text."""
    match expr:
        case ast.Variable(name):
            return name
        case ast.Wildcard():
            return "?"
        case ast.Number(value):
            return str(value)
        case ast.String(value):
            return f'"{value}"'
        case ast.Boolean(value):
            return "true" if value else "false"
        case ast.Name(text):
            return text
        case ast.Member(base, name):
            return f"{spell(base)}.{name}"
        case ast.Index(base, index):
            return f"{spell(base)}[{spell(index)}]"
        case ast.CallExpr(function, args):
            return f"{function}({', '.join(map(spell, args))})"
        case ast.Binary(op, left, right):
            level = _TIGHTNESS[op]
            return f"{_operand(left, level)} {op} {_operand(right, level + 1)}"
        case ast.Negate(operand):
            return f"-{_operand(operand, 3)}"
        case ast.ListExpr(items):
            return f"[{', '.join(map(spell, items))}]"
        case ast.AggregateExpr(kind):
            return f"{kind}{{…}}"


def spell_domain(domain: ast.Domain) -> str:
    """A domain as text."""
    match domain:
        case ast.SetDomain(items):
            return "{" + ", ".join(map(spell, items)) + "}"
        case ast.RangeDomain(low, high):
            return f"{spell(low)}..{spell(high)}"
        case ast.NamedDomain(name):
            return name.text


def spell_condition(condition: ast.Condition) -> str:
    """A condition as text."""
    match condition:
        case ast.Comparison(operands, ops):
            words = [spell(operands[0])]
            for op, operand in zip(ops, operands[1:], strict=True):
                words += [op, spell(operand)]
            return " ".join(words)
        case ast.Membership(expr, domain, negated):
            return f"{spell(expr)} {'not in' if negated else 'in'} {spell_domain(domain)}"
        case ast.AtomCond(relation, args):
            return f"{relation}({', '.join(map(spell, args))})"
        case ast.Not(inner):
            return f"not {spell_condition(inner)}"
        case ast.And(parts):
            return " and ".join(map(_conjunct, parts))
        case ast.Or(parts):
            return " or ".join(map(spell_condition, parts))
        case ast.Context() | ast.Exists():
            return "…"


def show(value: Value) -> str:
    """A value as the language writes it; what is unknown is ``?``."""
    match value:
        case None:
            return "?"
        case bool():
            return "true" if value else "false"
        case Shifted(symbol, by):
            return f"{symbol} {'+' if by > 0 else '-'} {abs(by)}"
        case tuple():
            return "[" + ", ".join(map(show, value)) + "]"
        case _:
            return str(value)


def _operand(expr: ast.Expr, level: int) -> str:
    text = spell(expr)
    loose = isinstance(expr, ast.Binary) and _TIGHTNESS[expr.op] < level
    return f"({text})" if loose else text


def _conjunct(condition: ast.Condition) -> str:
    text = spell_condition(condition)
    return f"({text})" if isinstance(condition, ast.Or) else text
