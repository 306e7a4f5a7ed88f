"""Conditions in negation normal form, and as a disjunction of conjunctions.

A core rule is a conjunction, so ``or`` becomes several rules and ``not`` is pushed down to what it
can negate: comparisons flip, memberships and atoms carry the negation themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprise.lang import ast

MAX_ALTERNATIVES = 256
"""Rules that one declaration may become; beyond this it is refused (``too-many-alternatives``)."""

MAX_LITERALS = 96
"""Literals that one rule's body may have after lowering (some thirty lines of a pattern): each may
become a level of nesting in the generated code, and Python has a limit of its own."""

FLIP = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class TooManyAlternatives(Exception):
    """A declaration would expand to more than :data:`MAX_ALTERNATIVES` rules."""


def negation_normal(condition: ast.Condition, negated: bool = False) -> ast.Condition:
    """Push negation down to literals and split comparison chains into single comparisons."""
    match condition:
        case ast.Not(inner):
            return negation_normal(inner, not negated)
        case ast.And(parts) | ast.Or(parts):
            is_and = isinstance(condition, ast.And) != negated
            normal = tuple(negation_normal(p, negated) for p in parts)
            return ast.And(normal, condition.span) if is_and else ast.Or(normal, condition.span)
        case ast.Comparison(operands, ops) if len(ops) > 1:
            links = tuple(
                ast.Comparison(operands[i : i + 2], (op,), condition.span)
                for i, op in enumerate(ops)
            )
            return negation_normal(ast.And(links, condition.span), negated)
        case ast.Comparison(operands, (op,)) if negated:
            return ast.Comparison(operands, (FLIP[op],), condition.span)
        case ast.Membership(expr, domain, already) if negated:
            return ast.Membership(expr, domain, not already, condition.span)
        case _:
            return ast.Not(condition, condition.span) if negated else condition


def disjuncts(conditions: Sequence[ast.Condition]) -> list[list[ast.Condition]]:
    """All ways to make ``conditions`` (joined by *and*) true: a list of conjunctions of literals.

    Raises TooManyAlternatives.
    """
    ways: list[list[ast.Condition]] = [[]]
    for condition in conditions:
        options = _ways(negation_normal(condition))
        if len(ways) * len(options) > MAX_ALTERNATIVES:
            raise TooManyAlternatives
        ways = [[*way, *option] for way in ways for option in options]
    return ways


def _ways(condition: ast.Condition) -> list[list[ast.Condition]]:
    match condition:
        case ast.And(parts):
            ways: list[list[ast.Condition]] = [[]]
            for part in parts:
                options = _ways(part)
                if len(ways) * len(options) > MAX_ALTERNATIVES:
                    raise TooManyAlternatives
                ways = [[*way, *option] for way in ways for option in options]
            return ways
        case ast.Or(parts):
            union = [way for part in parts for way in _ways(part)]
            if len(union) > MAX_ALTERNATIVES:
                raise TooManyAlternatives
            return union
        case _:
            return [[condition]]
