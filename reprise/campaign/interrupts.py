"""Ends a loop from outside, but only where the loop allows it.

Ctrl-C, SIGTERM, a terminal that closes and the end of the time budget raise in the parts that wait
(``with interrupts.heeded()``) and are remembered in the parts that record, so that recording is
never cut in two. Durations are by a clock that does not jump.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """Somebody asked us to end. Not an Exception: nothing that handles failures may handle this."""


class TimeIsUp(BaseException):
    """The time budget is spent."""


class Interrupts:
    """In force while entered, which only the main thread can do. ``seconds``: the time budget."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._heeded = False
        self._pending: BaseException | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        assert threading.current_thread() is threading.main_thread()
        asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = dict.fromkeys(asked, self._asked)
        if self._seconds is not None:
            handlers[signal.SIGALRM] = self._rang
        for number, handler in handlers.items():
            self._before[number] = signal.signal(number, handler)
        if self._seconds is not None:
            # the timer follows a monotonic clock; 0 would disarm it
            signal.setitimer(signal.ITIMER_REAL, max(self._seconds, 1e-6))
        return self

    def __exit__(self, *_: object) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """A part that may be cut short. Raises Interrupted or TimeIsUp."""
        self._heeded = True
        try:
            if self._pending is not None:
                raise self._pending
            yield
        finally:
            self._heeded = False

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self._note(Interrupted())

    def _rang(self, _number: int, _frame: FrameType | None) -> None:
        self._note(TimeIsUp())

    def _note(self, what: BaseException) -> None:
        if not isinstance(self._pending, Interrupted):
            self._pending = what
        if self._heeded:
            self._heeded = False  # once: what is raised must be able to clean up
            raise self._pending
