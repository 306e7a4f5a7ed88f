"""Insertions into a file's bytes: the only change that instrumenting makes, and how it is undone.

Offsets count bytes of the file without insertions. Insertions at one offset keep their order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Insertion:
    """Bytes to put at an offset."""

    offset: int
    data: bytes


def insert(source: bytes, insertions: Iterable[Insertion]) -> tuple[bytes, list[tuple[int, int]]]:
    """The file with its insertions, and where they are in it: offsets and lengths, ascending."""
    pieces: list[bytes] = []
    spans: list[tuple[int, int]] = []
    at = length = 0
    for insertion in sorted(insertions, key=lambda i: i.offset):
        pieces += [source[at : insertion.offset], insertion.data]
        length += insertion.offset - at
        spans.append((length, len(insertion.data)))
        length += len(insertion.data)
        at = insertion.offset
    pieces.append(source[at:])
    return b"".join(pieces), spans


def remove(text: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """The inverse of :func:`insert`."""
    pieces = []
    at = 0
    for offset, length in spans:
        pieces.append(text[at:offset])
        at = offset + length
    pieces.append(text[at:])
    return b"".join(pieces)


class Lines:
    """Where lines start and end in bytes. Lines end with LF or CRLF; a lone CR ends one too, as
    Python reads it (tree-sitter counts line feeds only: never mix its rows with these)."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0  # nothing goes before it
        self.starts = [bom, *(end.end() for end in _LINE_END.finditer(source))]

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """The line, from 1, that an offset is on."""
        return max(1, bisect_right(self.starts, offset))

    def start(self, line: int) -> int:
        """The offset of a line's first byte."""
        return self.starts[line - 1]

    def end(self, line: int) -> int:
        """The offset behind a line's last byte, its end of line included."""
        return self.starts[line] if line < len(self.starts) else len(self.source)

    def text(self, line: int) -> bytes:
        """A line without its end of line."""
        return self.source[self.start(line) : self.end(line)].rstrip(b"\r\n")

    def ending(self, line: int) -> bytes:
        """The line's end of line: nothing for a last line without one."""
        return self.source[self.start(line) + len(self.text(line)) : self.end(line)]

    def indentation(self, line: int) -> bytes:
        """The blanks that a line starts with (a byte-order mark is none)."""
        text = self.text(line)
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def new_line(self, line: int) -> bytes:
        """The end of line to write near a line: its own, else the one before's, else LF."""
        return self.ending(line) or (self.ending(line - 1) if line > 1 else b"") or b"\n"

    def before(self, line: int, text: bytes) -> Insertion:
        """A new line before a line."""
        return Insertion(self.start(line), text + self.new_line(line))

    def after(self, line: int, text: bytes) -> Insertion:
        """A new line after a line; a missing final end of line stays missing."""
        if self.ending(line):
            return Insertion(self.end(line), text + self.ending(line))
        return Insertion(self.end(line), self.new_line(line) + text)
