"""What distilling shows while it runs: one line that changes on a terminal, a line now and then
elsewhere, on standard error; and what it came to in the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from reprise.distill.record import Result
from reprise.distill.tighten import tightened_text
from reprise.lang.display import counted, printable, tell

if TYPE_CHECKING:
    from rich.status import Status


_EVERY = 10.0
"""Seconds between lines where there is no terminal."""


class Shrinking(Protocol):
    """A draft of any kind: ``left`` says what there is still in it, ``noun`` what it is about."""

    @property
    def noun(self) -> str: ...

    @property
    def left(self) -> str: ...


class PlainProgress:
    """A line for the first step, then not more than one every ten seconds."""

    def __init__(self) -> None:
        self._last: float | None = None

    def __call__(self, step: str, asked: int, draft: Shrinking) -> None:
        now = time.monotonic()
        if self._last is not None and now - self._last < _EVERY:
            return
        self._last = now
        tell(_line(step, asked, draft))


class LiveProgress:
    """A line at the bottom of a terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None

    def __enter__(self) -> LiveProgress:
        from rich.console import Console

        self._status = Console(stderr=True).status("distilling")
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, step: str, asked: int, draft: Shrinking) -> None:
        if self._status is not None:
            self._status.update(_line(step, asked, draft))


def _line(step: str, asked: int, draft: Shrinking) -> str:
    return f"{step}: {counted(asked, draft.noun)} so far, {draft.left} left"


def summary_lines(done: Result, interrupted: bool) -> list[str]:
    """What distilling came to, and how to go on where it is not complete."""
    record, noun = done.record, done.draft.noun
    tried, triggered = record.fresh
    lines = done.text.partition("\ntest ")[0].rstrip().splitlines()
    spent = f"{counted(record.asked, noun)}, {counted(record.runs, 'run')}"
    fresh = f"; of {counted(tried, f'fresh {noun}')} {triggered} trigger" if tried else ""
    lines.append(f"{spent}, {record.seconds:.1f} s{fresh}")
    why = "stopped" if interrupted else "the budget is spent"
    if not record.complete:
        lines.append(f"not complete, at “{record.interrupted}”: {why}; the same command goes on")
    elif interrupted:
        lines.append(f"stopped before it was held against other {noun}s; the same command does so")
    if done.known:
        lines.append(f"known already: {done.known} (reprise rules show {done.known})")
    held = done.tightened
    for line in tightened_text(held, noun, done.draft.parts) if held else ():
        lines.append(line.removeprefix("- ").replace("**", "").replace("`", ""))
    return [printable(line) for line in lines]
