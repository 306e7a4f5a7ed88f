"""Measure a matrix: column after column, operator after operator, and go on after an interruption.

Every finished row is appended to a file of parts, if there is one; whoever measures again with the
same settings and versions takes rows from there. Rows follow from seed and settings alone, so
neither the order nor the number of threads shows in the result.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from reprise.campaign.conformance.cases import MAIN, Cases
from reprise.campaign.conformance.columns import Examiner, resolve
from reprise.campaign.conformance.matrix import KINDS, Column, Matrix, Row, read_row, row_data
from reprise.targets.discover import Target, TargetError
from reprise.targets.process import Limits, WorkerPool

_SECONDS = 30.0
_SECONDS_ON_A_BUDGET = 10.0
"""What a target may take for one case."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure. ``ops``: operators or categories, all if there are none. ``budget``: seconds
    for all columns together, in which as many operators as possible are measured, in random order;
    None: everything."""

    targets: tuple[str, ...]
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = MAIN
    instances: int = KINDS
    seed: int = 0
    jobs: int = 1
    budget: float | None = None

    @property
    def key(self) -> dict[str, Any]:
        """What parts of a result must have in common. (Which operators does not matter.)"""
        return {"seed": self.seed, "instances": self.instances, "dtypes": list(self.dtypes)}


class Watch(Protocol):
    """Sees a measurement go on."""

    def began(self, column: str, version: str, rows: int) -> None:
        """A column: how many rows are to be measured."""

    def row(self, column: str, op: str) -> None:
        """A row is done."""

    def skipped(self, column: str, reason: str) -> None:
        """A target that does not work."""


def measure(settings: Settings, watch: Watch, parts: Path | None = None) -> Matrix:
    """The matrix. Targets that do not work are skipped. Raises OptionsError for unknown operators,
    TargetError for targets that are none and if no target works, OSError."""
    cases = Cases(settings.seed)
    ops = cases.chosen(settings.ops)
    targets = [(text, resolve(text)) for text in settings.targets]
    matrix = Matrix(settings.seed, settings.instances)
    kept = _Parts(parts, settings.key)
    end = None if settings.budget is None else time.monotonic() + settings.budget
    for left, (text, target) in zip(range(len(targets), 0, -1), targets, strict=True):
        seconds = _SECONDS if end is None else _SECONDS_ON_A_BUDGET
        with WorkerPool(target, settings.jobs, Limits(seconds=seconds)) as pool:
            try:
                versions = pool.start()
            except TargetError as error:
                watch.skipped(text, str(error))
                continue
            name = _name(matrix, target, versions)
            column = matrix.columns[name] = Column(versions, target.modes[-1])
            column.rows = {op: row for op, row in kept.rows(name, column).items() if op in ops}
            rest = [op for op in ops if op not in column.rows]
            if settings.budget is not None:
                Random(f"{settings.seed}/order").shuffle(rest)
            watch.began(name, column.version, len(rest))
            examiner = Examiner(target, pool)
            for op, row in _rows(examiner, cases, rest, settings, _share(end, left)):
                column.rows[op] = row
                kept.keep(name, column, op)
                watch.row(name, op)
            column.rows = {op: row for op, row in column.rows.items() if row}
    if not matrix.columns:
        raise TargetError("no target works here: there is nothing to compare with")
    return matrix


def _name(matrix: Matrix, target: Target, versions: dict[str, str]) -> str:
    """A column's name: the target's, with its version if there are several."""
    if target.name not in matrix.columns:
        return target.name
    name = f"{target.name} {next(iter(versions.values()), target.python)}"
    return name if name not in matrix.columns else str(target)


def _share(end: float | None, columns: int) -> float | None:
    """When a column must be done: what is left until ``end`` is shared equally."""
    now = time.monotonic()
    return None if end is None else now + max(0.0, end - now) / columns


def _rows(
    examiner: Examiner, cases: Cases, ops: Sequence[str], settings: Settings, deadline: float | None
) -> Iterator[tuple[str, Row]]:
    """Rows as they are done, until the deadline; one at least."""
    over = threading.Event()

    def examine(op: str) -> Row:
        row: Row = {}
        for dtype, drawing in cases.of(op, settings.dtypes).items():
            if over.is_set():
                break
            cell = examiner.cell(drawing, settings.instances)
            if cell is not None:
                row[dtype] = cell
        return row

    executor = ThreadPoolExecutor(settings.jobs)
    try:
        todo, started = iter(ops), False
        running: dict[Future[Row], str] = {}
        while True:
            while len(running) < settings.jobs:
                late = deadline is not None and time.monotonic() > deadline
                op = None if late and started else next(todo, None)
                if op is None:
                    break
                running[executor.submit(examine, op)] = op
                started = True
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda f: running[f]):
                yield running.pop(future), future.result()
    finally:
        over.set()
        executor.shutdown(wait=True, cancel_futures=True)


class _Parts:
    """Rows that were finished before an interruption, in a file with one line for each."""

    def __init__(self, path: Path | None, key: dict[str, Any]) -> None:
        self._path = path
        self._key = key
        self._found: list[dict[str, Any]] = []
        if path is not None:
            self._read(path)

    def _read(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text("utf-8").splitlines():
                with contextlib.suppress(ValueError):  # the last line may be half written
                    part = json.loads(line)
                    if isinstance(part, dict) and part.get("key") == self._key:
                        self._found.append(part)

    def rows(self, name: str, column: Column) -> dict[str, Row]:
        """What is there of a column, measured with the same versions."""
        rows = {}
        for part in self._found:
            if part.get("column") == name and part.get("versions") == column.versions:
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    rows[str(part["op"])] = read_row(part["cells"])
        return rows

    def keep(self, name: str, column: Column, op: str) -> None:
        """Write a row down."""
        if self._path is None:
            return
        part = {"key": self._key, "column": name, "versions": column.versions, "op": op}
        part["cells"] = row_data(column.rows[op])
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(part, ensure_ascii=False) + "\n")
