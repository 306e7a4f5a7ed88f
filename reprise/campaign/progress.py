"""What a session shows while it runs: a live display on a terminal, a line now and then elsewhere.

The figures are of the whole run, also where it goes on; only the rate is the session's. New
signatures are told when they are committed, each once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.campaign.learned import LearnedRule, Unlearned
from reprise.campaign.records import Confirmation, Record
from reprise.campaign.run import Budget, Tally
from reprise.lang.display import counted, printable, shortened, tell
from reprise.oracle.verdict import Verdict

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""
_TITLE = 160
"""Characters of a finding's title that are shown."""
_RULES = 8
"""Rules shown with what they suppressed: those that suppressed most."""

NAMES = {verdict: verdict.value.replace("_", " ") for verdict in Verdict}


def news(record: Record, confirmation: Confirmation | None) -> str:
    """A new signature in one line."""
    what = NAMES[record.verdict]
    flaky = ", flaky" if confirmation is not None and confirmation.flaky else ""
    known = f", known: {record.rule}" if record.rule is not None else ""
    title = shortened(" ".join(record.title.split()), _TITLE)
    return printable(f"test {record.index}: {what}{known}{flaky}: {title}")


def lesson(rule: LearnedRule) -> str:
    """A learned rule in one line."""
    return printable(f"learned {rule.name}, in force from test {rule.since}: {rule.path}")


def unlearned_lines(unlearned: Sequence[Unlearned], run: Path) -> list[str]:
    """What no rule was made of, and the command that makes one."""
    if not unlearned:
        return []
    lines = ["no rule was made of:"]
    for each in unlearned:
        number, reason = int(each.folder.name), " ".join(each.reason.split())
        why = f": {reason}" if reason else ", not finished"
        lines.append(
            printable(f"  test {number}{why}; to do it: reprise distill {run / str(number)}")
        )
    return lines


def summary_line(tally: Tally) -> str:
    """A run so far in one line."""
    verdicts = ", ".join(f"{count} {NAMES[v]}" for v, count in _verdicts(tally))
    rejected = sum(tally.rejected.values())
    parts = [
        f"{counted(tally.tests, 'test')}{out_of(tally.budget.tests)}",
        f"{tally.rate:.0f}/s",
        verdicts or "no verdict yet",
        counted(len(tally.defects), "defect"),
        f"{counted(rejected, 'candidate')} suppressed",
    ]
    return "; ".join(parts)


def out_of(budget: int | None) -> str:
    """What follows a number that is to reach ``budget``, if anything does."""
    return "" if budget is None else f" of {budget}"


def _verdicts(tally: Tally) -> list[tuple[Verdict, int]]:
    """The verdicts that occurred, in the order of the enumeration."""
    return [(v, tally.verdicts[v]) for v in Verdict if tally.verdicts[v]]


class PlainWatch:
    """Lines, to standard error unless told otherwise."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self._say = say or tell
        self._last = 0.0

    def began(self, tally: Tally, path: Path) -> None:
        self._last = time.monotonic()
        self._say(f"{path}: {'from the start' if not tally.tests else f'from test {tally.tests}'}")

    def tested(self, tally: Tally) -> None:
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            self._say(summary_line(tally))

    def found(self, record: Record, confirmation: Confirmation | None) -> None:
        self._say(news(record, confirmation))

    def learning(self, index: int) -> None:
        self._say(f"learning from test {index}")

    def learned(self, rule: LearnedRule) -> None:
        self._say(lesson(rule))

    def ended(self) -> None: ...


class LiveWatch:
    """A table that is kept up to date at the bottom of a terminal (by a thread of rich's)."""

    def __init__(self) -> None:
        self._tally: Tally | None = None
        self._live: Live | None = None
        self._path = Path()

    def began(self, tally: Tally, path: Path) -> None:
        from rich.console import Console
        from rich.live import Live

        self._tally, self._path = tally, path
        self._live = Live(
            get_renderable=self._table,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        )
        self._live.start()

    def tested(self, tally: Tally) -> None: ...

    def found(self, record: Record, confirmation: Confirmation | None) -> None:
        self._print(news(record, confirmation))

    def learning(self, index: int) -> None:
        self._print(f"learning from test {index}")

    def learned(self, rule: LearnedRule) -> None:
        self._print(lesson(rule))

    def ended(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _print(self, line: str) -> None:
        assert self._live is not None
        self._live.console.print(line, markup=False, highlight=False)

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        tally = self._tally
        if tally is None:
            return table
        budget: Budget = tally.budget
        # snapshots: the loop goes on while this thread looks
        verdicts, rejected = _verdicts(tally), tally.rejected.copy()

        def row(name: str, text: str) -> None:
            table.add_row(Text(name, style="bold"), Text(text))

        row("run", str(self._path))
        row("tests", f"{tally.tests}{out_of(budget.tests)}, {tally.rate:.1f} a second")
        limit = "" if budget.seconds is None else f" (the run may take {clock(budget.seconds)})"
        row("time", clock(tally.before + tally.seconds) + limit)
        row("verdicts", ", ".join(f"{n} {NAMES[v]}" for v, n in verdicts) or "none yet")
        row("defects", str(len(tally.defects)))
        shown = rejected.most_common(_RULES)
        more = len(rejected) - len(shown)
        row(
            "suppressed",
            ", ".join(f"{n} {rule}" for rule, n in shown)
            + (f" and {counted(more, 'more rule')}" if more > 0 else "")
            or "nothing yet",
        )
        return table


def clock(seconds: float) -> str:
    """``1:02:03``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
