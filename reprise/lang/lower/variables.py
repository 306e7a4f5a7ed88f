"""The value variables that a declaration is written with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

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
        found = list(_variables(parts, False))
        return cls(
            frozenset(name for name, _ in found),
            frozenset(name for name, inside in found if not inside),
        )


def value_variables(parts: Sequence[object]) -> Iterator[str]:
    """Names of value variables that a rule shares among its parts: all but those that live only
    inside an aggregate or a ``not exists``."""
    return (name for name, inside in _variables(parts, False) if not inside)


def _variables(parts: Sequence[object], inside: bool) -> Iterator[tuple[str, bool]]:
    """Names with whether they stand inside an aggregate or a ``not exists``."""
    for part in parts:
        match part:
            case ast.Variable(name):
                yield name, inside
            case None | str() | int() | float() | Span():
                continue
            case tuple():
                yield from _variables(part, inside)
            case ast.AggregateExpr() | ast.Not(ast.Exists()):
                yield from _variables(_values(part), True)
            case _:
                yield from _variables(_values(part), inside)


def _values(part: object) -> list[object]:
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return []
    return [getattr(part, name) for name in _fields(type(part))]


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.name != "span")
