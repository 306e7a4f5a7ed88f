"""Conditions inside texts of a Python source: the text is a language of its own within the source.

``f"size % {bandwidth} == 0"``: what stands in braces is an expression of the source; the rest is
Python that is evaluated later, somewhere else. So ``bandwidth`` becomes ``value("bandwidth")``, a
variable of the compiler at this place, and ``size`` becomes ``tensor(size)``. A variable in braces
that was assigned a text before stands for that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from tree_sitter import Node, Parser

from reprise.lang import ast
from reprise.mining.source.expressions import (
    Reader,
    Translation,
    Untranslatable,
    conjuncts,
    flat,
    negated,
    shown,
    text,
)
from reprise.mining.source.queries import language

Find = Callable[[str], Node | None]
"""What a variable was assigned before the text, if that is known."""

_MOST_NESTING = 4
"""Texts within texts within texts; GeneSys has three."""

_HOLE = re.compile(r"hole_(\d+)_")


def conditions(
    string: Node, reader: Reader, find: Find
) -> Iterator[tuple[ast.Condition, Translation]]:
    """The conditions that a text says must all hold; none if it is no condition.

    ``reader`` translates what stands in braces. Parts that have no counterpart are left out.
    """
    holes: list[Node] = []
    inner = _text(string, holes, find, 0)
    if inner is None:
        return
    root = _parser().parse(inner.encode()).root_node
    if root.has_error or root.named_child_count != 1:
        return
    statement = root.named_children[0]
    if statement.type != "expression_statement" or statement.named_child_count != 1:
        return
    for part, positive in conjuncts(statement.named_children[0], True):
        if part.type not in ("comparison_operator", "boolean_operator", "parenthesized_expression"):
            continue  # a text within the text, which is a site itself, or a call
        notes = Translation()
        try:
            condition = Reader("python").condition(part, notes)
            found = _Holes(holes, reader, notes).condition(condition)
        except Untranslatable:
            continue
        yield (found if positive else negated(found)), notes


@cache
def _parser() -> Parser:
    return Parser(language("python"))


def _text(string: Node, holes: list[Node], find: Find, depth: int) -> str | None:
    """The text with a name for each hole; None if it holds escapes, or is no text."""
    if string.type != "string" or depth > _MOST_NESTING:
        return None
    out = []
    for child in string.named_children:
        match child.type:
            case "string_content":
                if b"\\" in (child.text or b""):
                    return None
                out.append(text(child))
            case "interpolation":
                expression = child.named_children[0]
                known = find(text(expression)) if expression.type == "identifier" else None
                within = None if known is None else _text(known, holes, find, depth + 1)
                if within is not None:
                    out.append(f"({within})" if re.search(r"\bor\b|\band\b", within) else within)
                else:
                    out.append(f"hole_{len(holes)}_")
                    holes.append(expression)
    return "".join(out)


class _Holes:
    """Puts the source's expressions back into a condition, and ``tensor(…)`` for other values."""

    def __init__(self, holes: list[Node], reader: Reader, notes: Translation) -> None:
        self.holes = holes
        self.reader = reader
        self.notes = notes
        self.inner: Mapping[str, str] = dict(notes.values)
        notes.values.clear()

    def condition(self, node: ast.Condition) -> ast.Condition:
        match node:
            case ast.Comparison(operands):
                return replace(node, operands=tuple(self.expression(o) for o in operands))
            case ast.And(parts) | ast.Or(parts):
                return replace(node, parts=tuple(self.condition(p) for p in parts))
            case ast.Not(inner):
                return ast.Not(self.condition(inner))
        raise Untranslatable("a condition in a text that is not understood")

    def expression(self, node: ast.Expr) -> ast.Expr:
        match node:
            case ast.Number():
                return node
            case ast.Binary(op, left, right):
                return ast.Binary(op, self.expression(left), self.expression(right))
            case ast.Negate(operand):
                return ast.Negate(self.expression(operand))
            case ast.CallExpr(ast.Ident("value"), (ast.String(source),)):
                return self._value(source)
        raise Untranslatable("an expression in a text that is not understood")

    def _value(self, source: str) -> ast.Expr:
        whole = _HOLE.fullmatch(source)
        if whole is not None:
            return self.reader.expression(self.holes[int(whole[1])], self.notes)
        if "(" in source:
            raise Untranslatable("a call in a text")
        named = _HOLE.sub(lambda m: flat(self.holes[int(m[1])]), source)
        name = re.sub(r"\W+", "_", named).strip("_").lower()
        expr = ast.CallExpr(ast.Ident("tensor"), (ast.Name(name),))
        self.notes.values[shown(expr)] = name
        return expr
