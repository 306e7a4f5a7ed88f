"""Source files as text, and what is wrong with those that are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from reprise.lang.diagnostics import Diagnostic, RulesError, Span

MAX_BYTES = 16_000_000
"""What a source file may hold at most: devices have no end."""


def read_source(path: str | Path) -> str:
    """The text of a source file.

    Raises:
        RulesError: there is no such file, it cannot be read, or it is not UTF-8.
    """
    name = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
    except (OSError, ValueError) as error:
        raise _unreadable(name, "file", error) from None
    return decode_source(data, name)


def files_below(folder: Path, suffix: str) -> list[Path]:
    """The files in a folder and those below it whose names end in ``suffix``, in order.

    Raises:
        RulesError: one of the folders cannot be read; what is in it must not go missing unsaid.
    """

    def refuse(error: OSError) -> NoReturn:
        raise _unreadable(str(error.filename), "folder", error) from None

    found = (
        Path(place, name)
        for place, _, names in os.walk(folder, onerror=refuse)
        for name in names
        if name.endswith(suffix)
    )
    return sorted(path for path in found if path.is_file())


def _unreadable(name: str, what: str, error: Exception) -> RulesError:
    reason = getattr(error, "strerror", None) or str(error)
    span = Span(name, 1, 1, 1, 1)
    return RulesError(
        [Diagnostic(f"unreadable-{what}", f"cannot read this {what}: {reason}", span)]
    )


def decode_source(data: bytes, name: str) -> str:
    """Bytes as text; ``name`` is what messages call them.

    Raises:
        RulesError: they are not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        problem = Diagnostic(
            "not-utf-8",
            f"byte 0x{data[error.start]:02X} is not UTF-8 text",
            Span(name, line, column, line, column + 1),
            "save the file as UTF-8",
        )
        raise RulesError([problem]) from None


def source_for_messages(path: str | Path) -> str:
    """The text of a file to quote from, whatever is wrong with it; empty if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
