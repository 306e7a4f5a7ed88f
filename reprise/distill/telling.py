"""What distilling shows while it runs: one line that changes on a terminal, a line for each step
elsewhere. All of it goes to standard error."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from reprise.distill.draft import Draft

if TYPE_CHECKING:
    from rich.status import Status


class PlainProgress:
    """A line for each step."""

    def __call__(self, step: str, asked: int, draft: Draft) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads: no reason to stop
            print(_line(step, asked, draft), file=sys.stderr, flush=True)


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

    def __call__(self, step: str, asked: int, draft: Draft) -> None:
        if self._status is not None:
            self._status.update(_line(step, asked, draft))


def _line(step: str, asked: int, draft: Draft) -> str:
    nodes, conditions = len(draft.nodes), len(draft.conditions)
    return f"{step}: {asked} programs so far, {nodes} nodes and {conditions} conditions left"
