"""What a session shows while it runs: a table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.campaign.progress import clock, out_of
from reprise.lang.display import counted, printable, shortened, tell
from reprise.xcheck.run import Tally
from reprise.xcheck.store import ModelRow, SetAside
from reprise.xcheck.verdict import Verdict

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""
_TEXT = 140


def row_line(row: ModelRow) -> str:
    """A finding in one line."""
    said = f": {shortened(row.message, _TEXT)}" if row.message else ""
    program = shortened(row.program, _TEXT)
    return printable(
        f"model {row.number}: {row.constraint}: {row.words}, {row.stage}{said}: {program}"
    )


def summary_line(tally: Tally) -> str:
    """A run so far in one line."""
    parts = [
        counted(tally.models, "model") + out_of(tally.budget.models),
        ", ".join(f"{n} {v.value}" for v, n in _verdicts(tally)) or "no verdict yet",
        f"{len(tally.negated)} of {counted(tally.constraints, 'constraint')} violated",
    ]
    if tally.aside:
        parts.append(f"{tally.aside} set aside")
    return "; ".join(parts)


def _verdicts(tally: Tally) -> list[tuple[Verdict, int]]:
    found = dict(tally.verdicts)
    return [(v, found[v]) for v in Verdict if v in found]


def aside_line(*asides: SetAside) -> str:
    """In one line, that there is no model of a constraint, and of which kind; with one reason if it
    is the same for both kinds."""
    words = {True: "no valid model", False: "no model violates it"}
    if len(asides) > 1 and len({a.reason for a in asides}) == 1:
        told = [f"no model, valid or not: {shortened(asides[0].reason, 4 * _TEXT)}"]
    else:
        told = [f"{words[a.valid]}: {shortened(a.reason, 4 * _TEXT)}" for a in asides]
    return printable(f"{asides[0].constraint}: {'; '.join(told)}")


class _Asides:
    """What was set aside, a line for each constraint: that it has no valid model is kept until it
    is known whether a model violates it."""

    def __init__(self) -> None:
        self._kept: SetAside | None = None

    def took(self, aside: SetAside) -> Iterator[str]:
        """What is to be told now that a constraint was set aside."""
        if self._kept is not None and self._kept.constraint == aside.constraint:
            kept, self._kept = self._kept, None
            yield aside_line(kept, aside)
            return
        yield from self.rest()
        if aside.valid:
            self._kept = aside
        else:
            yield aside_line(aside)

    def rest(self) -> Iterator[str]:
        """What was kept."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            yield aside_line(kept)


class _News:
    """Which findings have been told: the first of each constraint and verdict."""

    def __init__(self) -> None:
        self._told: set[tuple[str, Verdict]] = set()

    def is_new(self, row: ModelRow) -> bool:
        """Whether a row should be told."""
        key = (row.constraint, row.verdict)
        if not row.verdict.is_finding or key in self._told:
            return False
        self._told.add(key)
        return True


class PlainWatch:
    """Lines, to standard error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = 0.0
        self._news = _News()
        self._asides = _Asides()

    def began(self, tally: Tally) -> None:
        self._last = time.monotonic()
        start = f"from model {tally.models}" if tally.models else "from the start"
        tell(f"{self._path}: {start}; {counted(tally.constraints, 'constraint')}")

    def chose(self, tally: Tally, constraint: str) -> None: ...

    def compiled(self, tally: Tally, row: ModelRow) -> None:
        self._tell(self._asides.rest())
        if self._news.is_new(row):
            tell(row_line(row))
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            tell(summary_line(tally))

    def set_aside(self, tally: Tally, aside: SetAside) -> None:
        self._tell(self._asides.took(aside))

    def ended(self) -> None:
        self._tell(self._asides.rest())

    def _tell(self, lines: Iterator[str]) -> None:
        for line in lines:
            tell(line)


class LiveWatch:
    """A table that is kept up to date at the bottom of a terminal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._news = _News()
        self._asides = _Asides()
        self._tally: Tally | None = None
        self._chosen = ""
        self._live: Live | None = None

    def began(self, tally: Tally) -> None:
        from rich.console import Console
        from rich.live import Live

        self._tally = tally
        self._live = Live(
            get_renderable=self._table,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        )
        self._live.start()

    def chose(self, tally: Tally, constraint: str) -> None:
        self._chosen = constraint

    def compiled(self, tally: Tally, row: ModelRow) -> None:
        self._print(*self._asides.rest())
        if self._news.is_new(row):
            self._print(row_line(row))

    def set_aside(self, tally: Tally, aside: SetAside) -> None:
        self._print(*self._asides.took(aside))

    def ended(self) -> None:
        self._print(*self._asides.rest())
        if self._live is not None:
            self._live.stop()

    def _print(self, *lines: str) -> None:
        if self._live is None:
            return
        for line in lines:
            self._live.console.print(line, markup=False, highlight=False)

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        tally = self._tally
        if tally is None:
            return table

        def row(name: str, text: str) -> None:
            table.add_row(Text(name, style="bold"), Text(printable(text)))

        limit = tally.budget.seconds
        row("run", str(self._path))
        row("models", f"{tally.models}{out_of(tally.budget.models)}")
        row("time", clock(tally.seconds) + ("" if limit is None else f" of {clock(limit)}"))
        row("violating", self._chosen)
        row("verdicts", ", ".join(f"{n} {v.value}" for v, n in _verdicts(tally)) or "none yet")
        done = f"{len(tally.negated)} of {tally.constraints}"
        row("constraints", f"{done} violated, {tally.aside} set aside")
        row("passes", f"{tally.deepest} completed, {tally.stage}")
        return table
