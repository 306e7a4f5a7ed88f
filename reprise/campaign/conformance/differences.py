"""Explanations: why a target differs from our semantics where it does.

They are data, ``rules/conformance/differences.toml``: each names a target, operators, element types
and the kind of difference, and says whose doing it is. A cell that differs and that no entry
explains is something to look at.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from reprise.campaign.conformance.matrix import FAILURE, Cell, Matrix, MatrixError
from reprise.data import data_path
from reprise.oracle.compare import Kind

FILE = "rules/conformance/differences.toml"

_KINDS = {FAILURE, *(kind.value for kind in Kind)}
_FIELDS = {"target", "ops", "dtypes", "kinds", "verdict", "example", "reason", "issue"}
_FLAGS = {"unstable", "empty"}


class Verdict(Enum):
    """Whose doing a difference is."""

    BUG = "bug"  # of the target
    LIMIT = "limit"  # the target does not do this, though it does not say so in so many words
    CHOICE = "choice"  # both are right: the operator's definition leaves it open
    LOWERING = "lowering"  # the target's language has no such operator; what is written out differs


@dataclass(frozen=True, slots=True)
class Explanation:
    """One entry. ``ops``: ``*`` is every one; ``dtypes`` and ``kinds``: none means all; ``empty``:
    cells that are good but for empty tensors only; ``example``: a regular expression that
    the cell's example must contain; ``issue``: where it was reported; ``unstable``: it comes and
    goes."""

    target: str
    ops: tuple[str, ...]
    verdict: Verdict
    reason: str
    dtypes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    example: str = ""
    issue: str = ""
    unstable: bool = False
    empty: bool = False

    def explains(self, column: str, op: str, dtype: str, cell: Cell) -> bool:
        """Whether it is about this cell of this column (``tvm`` means ``tvm 0.27`` too)."""
        return (
            column.split(" ")[0] == self.target
            and (op in self.ops or self.ops == ("*",))
            and (cell.only_empty or not self.empty)
            and (not self.dtypes or dtype in self.dtypes)
            and (not self.kinds or cell.kind in self.kinds)
            and re.search(self.example, cell.example) is not None
        )


def load_explanations(path: Path | None = None) -> list[Explanation]:
    """The entries of a file, or of the one that ships. Raises MatrixError, OSError."""
    path = path or data_path(FILE)
    try:
        entries = tomllib.loads(path.read_text("utf-8")).get("difference", [])
        return [_read(entry) for entry in entries]
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise MatrixError(f"{path}: {error}") from error


def _read(entry: dict[str, object]) -> Explanation:
    unknown = entry.keys() - _FIELDS - _FLAGS
    if unknown:
        raise ValueError(f"unknown field {', '.join(sorted(unknown))}")
    kinds = _words(entry.get("kinds"))
    if not set(kinds) <= _KINDS:
        raise ValueError(f"kinds are {', '.join(sorted(_KINDS))}")
    example = str(entry.get("example", ""))
    re.compile(example)
    return Explanation(
        str(entry["target"]),
        _words(entry["ops"]),
        Verdict(entry["verdict"]),
        str(entry["reason"]),
        _words(entry.get("dtypes")),
        kinds,
        example,
        str(entry.get("issue", "")),
        entry.get("unstable") is True,
        entry.get("empty") is True,
    )


def _words(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError(f"not a list: {value!r}")
    return tuple(str(word) for word in value)


@dataclass(frozen=True, slots=True)
class Explained:
    """A cell that differs or fails, and the explanation; None if there is none."""

    column: str
    op: str
    dtype: str
    cell: Cell
    explanation: Explanation | None


def explained(matrix: Matrix, explanations: list[Explanation]) -> Iterator[Explained]:
    """Every cell that differs or fails, in order."""
    for name, column in matrix.columns.items():
        for op, dtype, cell in column.cells():
            if cell.state.is_bad:
                found = (e for e in explanations if e.explains(name, op, dtype, cell))
                yield Explained(name, op, dtype, cell, next(found, None))
