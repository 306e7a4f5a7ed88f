"""What a reduction shows while it runs: one line that changes on a terminal, a line for each edit
that made the graph smaller elsewhere. All of it goes to standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from reprise.distill.flow import Flow
from reprise.distill.reduce import Taken
from reprise.lang.display import tell

if TYPE_CHECKING:
    from rich.status import Status


class PlainWatch:
    """A line when there are fewer nodes, but not more than one a second."""

    def __init__(self) -> None:
        self._nodes = sys.maxsize
        self._last = 0.0

    def tried(self, edit: str, trials: int, runs: int, flow: Flow) -> None: ...

    def took(self, taken: Taken, flow: Flow) -> None:
        now = time.monotonic()
        if taken.nodes < self._nodes and now - self._last >= 1:
            self._nodes, self._last = taken.nodes, now
            tell(_line(taken.nodes, taken.elements, taken.trials))


class LiveWatch:
    """A line at the bottom of a terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._elements = 0

    def __enter__(self) -> LiveWatch:
        from rich.console import Console

        self._status = Console(stderr=True).status("reducing")
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def tried(self, edit: str, trials: int, runs: int, flow: Flow) -> None:
        if self._status is not None:
            now = f" ({edit.replace('_', ' ')})"
            self._status.update(_line(len(flow.steps), self._elements, trials) + now)

    def took(self, taken: Taken, flow: Flow) -> None:
        self._elements = taken.elements


def _line(nodes: int, elements: int, trials: int) -> str:
    size = f", {elements} elements" if elements else ""
    return f"{_counted(nodes, 'node')}{size} after {_counted(trials, 'trial')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
