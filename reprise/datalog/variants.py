"""What the planner is asked and what it answers: variants of clauses, and steps of plans.

Data only. Invariant: everything here is immutable and compares by value, so that equal steps of
different plans are found to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from reprise.datalog.clauses import AggregateView, Clause
from reprise.datalog.layout import Layout
from reprise.lang.core import Value

ANCHOR = "r0"
"""The name of the row that a variant starts from."""


class Purpose(Enum):
    """What is done with a head row that a variant finds.

    ``INSERT`` adds it. ``DELETE`` marks it as possibly underivable; negated literals are left out
    of such a variant, because it may find too much but never too little. ``CHECK`` starts from
    the head row and reports that the clause derives it.
    """

    INSERT = "insert"
    DELETE = "delete"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Variant:
    """A clause evaluated from one place: a body position, or ``None`` for the head."""

    clause: Clause
    position: int | None
    purpose: Purpose


class StepKind(Enum):
    """``TEST``: a condition. ``EACH``: a loop header. ``DO``: statements, always the last step."""

    TEST = "if"
    EACH = "for"
    DO = "do"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a plan, as Python text without its indentation and colon."""

    kind: StepKind
    text: str


@dataclass(frozen=True)
class Catalog:
    """What the planner knows of the database: layouts, views, and sizes to break ties with.

    ``index`` names the index of a relation on some columns, and so announces its use.
    """

    layouts: Mapping[str, Layout]
    views: Mapping[str, AggregateView]
    size: Callable[[str], int]
    index: Callable[[str, tuple[int, ...]], str]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The anchor's column that selected this variant, and the constant that it selected."""

    column: int
    value: Value


@dataclass(frozen=True, slots=True)
class Growing:
    """Relations that may gain rows while a plan runs, and those of them that are recursive.

    Scans of the former copy first; the latter are expected to gain many.
    """

    relations: frozenset[str] = frozenset()
    recursive: frozenset[str] = frozenset()
