"""What declarations become for those who run them: plain values over core Datalog.

Nothing here depends on the syntax tree, so a checked rule set can be kept and loaded without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reprise.lang import core
from reprise.lang.diagnostics import Span
from reprise.lang.restoring import restored_quickly

PLACEHOLDER = re.compile(r"\{([A-Z]\w*)\}")
"""Where the message of a deny rule has the value of a variable."""


@restored_quickly
@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to match a graph pattern: nodes and flow first, then the conditions on them.

    ``variables`` are the pattern's value variables that this alternative binds.
    """

    structure: tuple[core.Literal, ...]
    conditions: tuple[core.Literal, ...]
    variables: tuple[str, ...]


@restored_quickly
@dataclass(frozen=True, slots=True)
class Pattern:
    """A known bug: ``relation(nodes…)`` holds exactly for its matches."""

    name: str
    title: str
    meta: dict[str, tuple[str, ...]]
    nodes: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    doc: str
    span: Span

    def get(self, key: str) -> str | None:
        """The first value of a meta entry, or None."""
        values = self.meta.get(key)
        return values[0] if values else None


@restored_quickly
@dataclass(frozen=True, slots=True)
class Constraint:
    """A full-stack constraint (XCheck). Its relation holds the violations; ``guard`` is the
    relation of the places that it applies to, violated or not. ``meta`` as a pattern's."""

    name: str
    klass: str
    nodes: tuple[str, ...]
    guard: str
    alternatives: tuple[Alternative, ...]
    doc: str
    span: Span
    meta: dict[str, tuple[str, ...]]


@restored_quickly
@dataclass(frozen=True, slots=True)
class Deny:
    """A deny rule: each row of its relation is a violation, told by ``message``."""

    name: str
    message: str
    columns: tuple[str, ...]
    span: Span
    doc: str = ""


@restored_quickly
@dataclass(frozen=True, slots=True)
class Monitor:
    """Assertions around a compiler pass; the relation's rows are the numbers of the failed ones."""

    name: str
    klass: str
    pass_name: str
    messages: tuple[str | None, ...]
    doc: str
    span: Span
    meta: dict[str, tuple[str, ...]]
