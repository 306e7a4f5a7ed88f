"""Which files of a checkout are read, and as what bytes.

Folders are walked in order of their names, each real folder once, so that symbolic links cannot
lead round in circles. What is left out is told: :class:`Skipped`."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections import Counter
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

_MOST_ENDINGS = 5
"""Suffixes of files that are told where none is asked for."""


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
    """The files that an extractor asks for, by path; and what is not read: files that are too
    large or no plain files, files and folders that are unreadable."""
    found: list[Source] = []
    skipped: list[Skipped] = []
    languages = {end: name for name in extractor.languages for end in SUFFIXES[name]}
    for path, absolute in _walk(checkout, skipped):
        language = languages.get(os.path.splitext(path)[1])
        if language is None or not _wanted(path, extractor):
            continue
        try:
            status = os.stat(absolute)
        except OSError as error:
            skipped.append(Skipped(path, error.strerror or "cannot be read"))
            continue
        if not stat.S_ISREG(status.st_mode):  # to read a pipe may wait for ever
            skipped.append(Skipped(path, "no plain file"))
        elif status.st_size > most_bytes:
            why = f"{status.st_size:,} bytes; --max-bytes sets the limit"
            skipped.append(Skipped(path, why))
        else:
            found.append(Source(path, language, absolute, status.st_size))
    return found, skipped


def nothing_asked_for(checkout: Path, extractor: Extractor) -> str:
    """What to tell of a checkout without a file that the extractor asks for: what it asks for, and
    what files there are."""
    endings = Counter(
        os.path.splitext(path)[1] or "without a suffix" for path, _ in _walk(checkout, [])
    )
    there = ", ".join(f"{end} ({n})" for end, n in endings.most_common(_MOST_ENDINGS))
    asked = [f"include = {', '.join(extractor.include)}"]
    if extractor.exclude:
        asked.append(f"exclude = {', '.join(extractor.exclude)}")
    asked.append(f"languages = {', '.join(extractor.languages)}")
    return f"no file of {checkout} is one that {extractor.path} asks for ({'; '.join(asked)}); " + (
        f"the files there: {there}" if there else "there is no file"
    )


def _walk(checkout: Path, skipped: list[Skipped]) -> Iterator[tuple[str, str]]:
    """Every file, as its path in the checkout and its whole path; adds folders that cannot be
    read to ``skipped``."""
    seen: set[tuple[int, int]] = set()
    left = [("", str(checkout), True)]
    while left:  # no recursion: folders may be nested deeper than Python's stack
        path, absolute, is_folder = left.pop()
        if not is_folder:
            yield path, absolute
            continue
        try:
            status = os.stat(absolute)
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                continue
            seen.add(identity)
            entries = sorted(os.scandir(absolute), key=lambda e: e.name, reverse=True)
        except OSError as error:
            skipped.append(Skipped(f"{path}/", error.strerror or "cannot be read"))
            continue
        for entry in entries:
            if not entry.name.startswith("."):
                inside = f"{path}/{entry.name}" if path else entry.name
                left.append((_as_text(inside), entry.path, _is_folder(entry)))


def _as_text(path: str) -> str:
    """``path`` with bytes that are no UTF-8 written as ``\\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


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
    return re.compile("".join(out), re.DOTALL)


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""How texts begin that are not bytes of ASCII and more; the longer marks first."""


def decoded(data: bytes) -> bytes:
    """The text as UTF-8, which the parsers read; what is not UTF-8, nor marked as UTF-16 or
    UTF-32, is taken for Latin-1."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace").encode("utf-8")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1").encode("utf-8")
    return data.removeprefix(codecs.BOM_UTF8)
