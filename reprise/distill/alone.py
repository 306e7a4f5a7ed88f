"""One process at a time in a folder that is gone on from: two would mix their answers.

The folder itself is locked (``flock``), so nothing is left behind when its holder is killed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprise.patterns.check import UsageError

_PATIENCE = 5.0
"""Seconds: what a process that was just told to end may take for it."""


@contextmanager
def alone_in(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """While entered, no other process is in ``folder``. Raises UsageError if one stays longer than
    ``patience``, OSError if there is no such folder. A file system without locks gives none."""
    number = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + patience
        while not _locked(number):
            if time.monotonic() >= end:
                raise UsageError(
                    f"{folder}: another process is working in this folder; wait for it, or give "
                    "another --out"
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(number)


@contextmanager
def made_for(folder: Path) -> Iterator[None]:
    """Make a folder, and be :func:`alone_in` it. One that was not there before is taken away again
    if nothing was put into it. Raises UsageError, OSError."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        try:
            yield
        finally:
            if new and not any(folder.iterdir()):
                folder.rmdir()


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
