"""Which files of a checkout are read, and as what bytes.

Folders are walked in order of their names, each real folder once, so that symbolic links cannot
lead round in circles. What is left out is told: :class:`Skipped`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from reprise.mining.source.extractor import Extractor

SUFFIXES = {
    "python": (".py", ".pyi"),
    "cpp": (".c", ".cc", ".cpp", ".cu", ".cxx", ".h", ".hpp", ".hxx", ".inc"),
}
MOST_BYTES = 2_000_000
"""Larger files are generated, by experience: the largest one written by hand in TVM has 0.3 MB."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. ``path`` is relative to the checkout, with ``/``."""

    path: str
    language: str
    absolute: str
    size: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that an extractor asks for and that is not read, and why."""

    path: str
    why: str


def sources(
    checkout: Path, extractor: Extractor, most_bytes: int
) -> tuple[list[Source], list[Skipped]]:
    """The files that an extractor asks for, by path; and those that are too large or unreadable."""
    found: list[Source] = []
    skipped: list[Skipped] = []
    languages = {end: name for name in extractor.languages for end in SUFFIXES[name]}
    for path, entry in _walk(checkout, ""):
        language = languages.get(os.path.splitext(path)[1])
        if language is None or not _wanted(path, extractor):
            continue
        try:
            size = entry.stat().st_size
        except OSError as error:
            skipped.append(Skipped(path, error.strerror or "cannot be read"))
            continue
        if size > most_bytes:
            skipped.append(Skipped(path, f"{size:,} bytes; --max-bytes sets the limit"))
        else:
            found.append(Source(path, language, entry.path, size))
    return found, skipped


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    seen: set[tuple[int, int]] = set()

    def walk(folder: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        try:
            status = os.stat(folder)
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError:
            return
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            return
        seen.add(identity)
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if is_folder:
                yield from walk(entry.path, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry

    yield from walk(str(folder), prefix)


def _wanted(path: str, extractor: Extractor) -> bool:
    return any(_glob(g).fullmatch(path) for g in extractor.include) and not any(
        _glob(g).fullmatch(path) for g in extractor.exclude
    )


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """``**`` stands for any folders, also none; ``*`` and ``?`` do not cross a ``/``."""
    out = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        out.append(
            {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
        )
    return re.compile("".join(out))


def decoded(data: bytes) -> bytes:
    """The text as UTF-8, which the parsers read; what is not UTF-8 is taken for Latin-1."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1").encode("utf-8")
    return data.removeprefix(b"\xef\xbb\xbf")
