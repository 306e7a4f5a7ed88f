"""Answers of trials, kept in a file, so that what was interrupted can go on where it was.

One line of JSON for each trial, after a line that says what was asked: on which target, which
version of it, about which defect. If that differs, the answers are somebody else's, and the file
is begun anew. A line that was cut off is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO


class Memory:
    """The answers in a file. ``question``: what they are answers to, as JSON values. ``allowed``:
    what an answer may be (None: anything); a line that says something else is ignored."""

    def __init__(
        self,
        path: Path,
        question: Mapping[str, object],
        allowed: Collection[str] | None = None,
    ) -> None:
        self.path = path
        self._answers: dict[str, tuple[str, int]] = {}
        head = json.dumps(question, sort_keys=True)
        lines = self._lines()
        same = bool(lines) and lines[0] == head
        for line in lines[1:] if same else ():
            try:
                key, shown, runs = json.loads(line)
                if allowed is None or shown in allowed:
                    self._answers[key] = (str(shown), int(runs))
            except (ValueError, TypeError, OverflowError, RecursionError):
                continue
        self._file: IO[str] = path.open("a" if same else "w", encoding="utf-8")
        if same:
            self._file.write("\n")  # whatever the last line was, it ends here
        else:
            self._file.write(head + "\n")
        self._file.flush()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> tuple[str, int] | None:
        """What a program showed, and how many runs it took to find out."""
        return self._answers.get(key)

    def put(self, key: str, shown: str, runs: int) -> None:
        """Remember an answer. Raises OSError."""
        self._answers[key] = (shown, runs)
        self._file.write(json.dumps([key, shown, runs]) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
