"""What an importer says about a model that it cannot use.

Every problem with a model file leaves this package as one :class:`ModelError` whose message is a
single line; nothing else escapes an importer.
"""

from __future__ import annotations

from pathlib import Path


class ModelError(Exception):
    """A model that cannot be imported: the file, what is wrong in one line, and what to do."""

    def __init__(self, path: str | Path, message: str, hint: str | None = None) -> None:
        self.path = str(path)
        self.message = one_line(message)
        self.hint = None if hint is None else one_line(hint)
        super().__init__(f"{self.path}: {self.message}")


def one_line(text: str, limit: int = 300) -> str:
    """``text`` with control characters escaped and cut to ``limit`` characters.

    Names in a model file may hold anything, and messages from parsers may span lines.
    """
    text = text[: 10 * limit]  # a name may have any length
    clean = "".join(
        c if c.isprintable() else " " if c in "\n\r\t" else ascii(c)[1:-1] for c in text
    )
    clean = " ".join(clean.split())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
