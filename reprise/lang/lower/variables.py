"""The value variables that a declaration is written with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reprise.lang import ast
from reprise.lang.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Variables:
    """``written``: every name of a value variable in a declaration, which no invented variable may
    have. ``shared``: those that are the same throughout; the others live inside an aggregate or a
    ``not exists``."""

    written: frozenset[str]
    shared: frozenset[str]

    @classmethod
    def of(cls, parts: Sequence[object]) -> Variables:
        return cls(frozenset(_variables(parts, inside=True)), frozenset(value_variables(parts)))


def value_variables(parts: Sequence[object]) -> Iterator[str]:
    """Names of value variables that a rule shares among its parts: all but those that live only
    inside an aggregate or a ``not exists``."""
    return _variables(parts, inside=False)


def _variables(parts: Sequence[object], inside: bool) -> Iterator[str]:
    for part in parts:
        match part:
            case ast.Variable(name):
                yield name
            case ast.AggregateExpr() | ast.Not(ast.Exists()) if not inside:
                continue
            case str() | int() | float() | None:
                continue
            case tuple():
                yield from _variables(part, inside)
            case _ if dataclasses.is_dataclass(part) and not isinstance(part, Span):
                fields = [f.name for f in dataclasses.fields(part) if f.name != "span"]
                yield from _variables([getattr(part, f) for f in fields], inside)
            case _:
                continue
