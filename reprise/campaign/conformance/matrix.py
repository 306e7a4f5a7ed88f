"""The matrix as data: what a target made of each operator in each element type, and its file.

A :class:`Cell` has a mark for each case. Files are JSON with one line for each operator, in a
stable order, so that versions of one can be compared line by line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from reprise.oracle.compare import number

VERSION = 1

ORDINARY, FINITE, NON_FINITE, EMPTY = range(4)
KINDS = 4
"""Kinds of cases, which take turns: case ``n`` is of kind ``n % KINDS``."""


class MatrixError(Exception):
    """A file that is no matrix, and why. For people."""


class State(Enum):
    """What became of one case, or of a cell's cases together; the values are a file's marks."""

    AGREE = "a"
    FRAGILE = "f"  # implementation-defined values only
    UNSUPPORTED = "u"  # our lowering or the target's declared tables say that it has no such thing
    DECLINED = "n"  # the target says so itself
    DIFFER = "d"
    FAILS = "x"

    @property
    def is_bad(self) -> bool:
        """Whether somebody should explain it."""
        return self in (State.DIFFER, State.FAILS)


_SUMMARY = (
    *(State.FAILS, State.DIFFER, State.AGREE),
    *(State.FRAGILE, State.DECLINED, State.UNSUPPORTED),
)
"""A cell's state is the first of these that some case has."""

ZERO = "sign of zero"
FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Cell:
    """One operator in one element type on one target.

    ``marks``: of each case, in order. ``kind``: in which respect it differs (the gravest; of
    :class:`reprise.oracle.compare.Kind`), or ``failure``; ``example``: the smallest case that does,
    and what came of it; ``absolute`` and ``relative``: the greatest errors; ``reason``: the
    lowering's or target's words where it has no such thing; ``drawn``: a checksum of the cases, by
    which it is known whether two cells answer the same questions.
    """

    marks: tuple[State, ...]
    kind: str = ""
    example: str = ""
    absolute: float = 0.0
    relative: float = 0.0
    reason: str = ""
    drawn: str = ""

    @property
    def state(self) -> State:
        """What to say of the cell in one word."""
        return next((s for s in _SUMMARY if s in self.marks), State.UNSUPPORTED)

    @property
    def only_empty(self) -> bool:
        """Whether it is good but for its empty tensors."""
        bad = [i for i, mark in enumerate(self.marks) if mark.is_bad]
        return bool(bad) and all(i % KINDS == EMPTY for i in bad)

    @property
    def rank(self) -> int:
        """How bad: a cell is worse than another if its rank is greater."""
        order = (State.AGREE, State.FRAGILE, State.UNSUPPORTED, State.DECLINED)
        if self.state in order:
            return order.index(self.state)
        return len(order) + (self.kind != ZERO)

    def data(self) -> Any:
        """As JSON: the marks alone if nothing else is known."""
        marks = "".join(mark.value for mark in self.marks)
        marks += f" {self.drawn}" if self.drawn else ""
        found: dict[str, Any] = {"marks": marks}
        found |= {k: getattr(self, k) for k in ("kind", "example", "reason") if getattr(self, k)}
        if self.absolute or self.relative:
            found |= {k: number(_digits(getattr(self, k))) for k in ("absolute", "relative")}
        return found if len(found) > 1 else marks

    @classmethod
    def read(cls, data: Any) -> Cell:
        """The inverse of :meth:`data`. Raises ValueError, TypeError, KeyError."""
        if isinstance(data, str):
            data = {"marks": data}
        marks, _, drawn = data["marks"].partition(" ")
        return cls(
            tuple(State(mark) for mark in marks),
            str(data.get("kind", "")),
            str(data.get("example", "")),
            float(data.get("absolute", 0.0)),
            float(data.get("relative", 0.0)),
            str(data.get("reason", "")),
            drawn,
        )


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


Row = dict[str, Cell]
"""An operator's cells by main element type."""


@dataclass(slots=True)
class Column:
    """What one target made of all of it; ``rows`` by operator."""

    versions: dict[str, str]
    mode: str
    rows: dict[str, Row] = field(default_factory=dict)

    def cells(self) -> Iterator[tuple[str, str, Cell]]:
        """Operator, element type, cell: in order."""
        for op, row in sorted(self.rows.items()):
            for dtype, cell in row.items():
                yield op, dtype, cell

    @property
    def totals(self) -> Counter[State]:
        """How many cells are in each state."""
        return Counter(cell.state for _, _, cell in self.cells())

    @property
    def version(self) -> str:
        """The compiler and its version."""
        return next((f"{name} {version}" for name, version in self.versions.items()), "")


@dataclass(slots=True)
class Matrix:
    """Columns by name; ``seed`` and ``instances`` say which cases."""

    seed: int
    instances: int
    columns: dict[str, Column] = field(default_factory=dict)

    @property
    def operators(self) -> list[str]:
        """All operators of any column, sorted."""
        return sorted({op for column in self.columns.values() for op in column.rows})

    def text(self) -> str:
        """As a file."""
        head = {"version": VERSION, "seed": self.seed, "instances": self.instances}
        lines = [f"{json.dumps(head)[:-1]}, {json.dumps('targets')}: {{"]
        for i, (name, column) in enumerate(self.columns.items()):
            known = {"versions": column.versions, "mode": column.mode}
            lines.append(f" {_json(name)}: {_json(known)[:-1]}, {_json('cells')}: {{")
            ordered = sorted(column.rows.items())
            rows = [f"  {_json(op)}: {_json(row_data(row))}" for op, row in ordered]
            lines.append(",\n".join(rows))
            lines.append(" }}" + ("," if i + 1 < len(self.columns) else ""))
        return "\n".join([*lines, "}}"]) + "\n"

    @classmethod
    def load(cls, path: Path) -> Matrix:
        """Read a file. Raises MatrixError, OSError."""
        try:
            data = json.loads(path.read_text("utf-8"))
            if data["version"] != VERSION:
                raise MatrixError(f"{path}: version {data['version']}; this Reprise has {VERSION}")
            matrix = cls(int(data["seed"]), int(data["instances"]))
            for name, column in data["targets"].items():
                rows = {op: read_row(row) for op, row in column["cells"].items()}
                matrix.columns[name] = Column(dict(column["versions"]), str(column["mode"]), rows)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MatrixError(f"{path} is no conformance matrix: {error}") from error
        return matrix


def read_row(data: Mapping[str, Any]) -> Row:
    """An operator's cells out of JSON. Raises ValueError, TypeError, KeyError."""
    return {dtype: Cell.read(cell) for dtype, cell in data.items()}


def row_data(row: Row) -> dict[str, Any]:
    """The inverse of :func:`read_row`."""
    return {dtype: cell.data() for dtype, cell in row.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Regression:
    """A cell that is worse than it was recorded (``before`` is None if it was not).
    ``same_cases``: what was asked is the same; else it may have been so before, unseen."""

    column: str
    op: str
    dtype: str
    before: Cell | None
    after: Cell

    @property
    def same_cases(self) -> bool:
        """Whether both cells answer the same questions."""
        return self.before is not None and self.before.drawn == self.after.drawn


def regressions(recorded: Matrix, found: Matrix) -> list[Regression]:
    """Where ``found`` is worse than ``recorded``, as far as both have it."""
    worse = []
    for name, column in found.columns.items():
        old = recorded.columns.get(name)
        if old is None:
            continue
        for op, dtype, cell in column.cells():
            before = old.rows.get(op, {}).get(dtype)
            if cell.state.is_bad if before is None else cell.rank > before.rank:
                worse.append(Regression(name, op, dtype, before, cell))
    return worse
