"""Replaying the alternatives of a declaration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from reprise.lang.normal import MAX_ALTERNATIVES, TooManyAlternatives


class Choices:
    """Replays one alternative of a declaration after another.

    Lowering asks ``pick(n)`` wherever the text allows several readings (``or``, operands in any
    order, optional steps); :meth:`runs` lowers again until every combination has been taken.
    """

    def __init__(self) -> None:
        self._script: list[list[int]] = []
        self._at = 0

    def pick(self, options: int) -> int:
        """Which of ``options`` readings to take this time."""
        if self._at == len(self._script):
            self._script.append([0, options])
        taken = self._script[self._at][0]
        self._at += 1
        return taken

    def runs(self) -> Iterator[int]:
        """Yield once per combination. Raises TooManyAlternatives beyond the limit."""
        for run in itertools.count():
            if run == MAX_ALTERNATIVES:
                raise TooManyAlternatives
            self._at = 0
            yield run
            while self._script and self._script[-1][0] + 1 == self._script[-1][1]:
                self._script.pop()
            if not self._script:
                return
            self._script[-1][0] += 1
