"""What every specification is read into, whatever its notation: named values in nested sections.

JSON objects, YAML mappings, the lines of a C header and the dictionaries of a Python tag registry
all become :class:`Section`; the rest of this package knows no notation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from reprise.lang.diagnostics import Diagnostic, Severity, Span

Value: TypeAlias = "bool | int | Fraction | str | tuple[Value, ...] | None"
"""What a specification gives a name: numbers are exact, lists are tuples."""

MAX_DEPTH = 60
"""How deep sections may nest; real specifications stay below ten."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a file as the user named it, a 1-based line and column."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def span(self, width: int = 1) -> Span:
        """The place for a message, ``width`` columns wide."""
        return Span(self.file, self.line, self.column, self.line, self.column + max(width, 1))


@dataclass(frozen=True, slots=True)
class Entry:
    """``name = value``, and where the name is written."""

    name: str
    value: Value
    place: Place


@dataclass(frozen=True, slots=True)
class Section:
    """A group of entries and further sections. ``name`` is empty where it has none; ``tag`` is a
    YAML tag without its ``!``."""

    name: str
    tag: str
    entries: tuple[Entry, ...]
    sections: tuple[Section, ...]
    place: Place

    def walk(self) -> Iterator[Section]:
        """This section, and those below it."""
        yield self
        for section in self.sections:
            yield from section.walk()


def problem(code: str, message: str, place: Place, word: str = "", hint: str = "") -> Diagnostic:
    """An error about a specification, shown under ``word``."""
    return Diagnostic(code, message, place.span(len(word)), hint or None)


def remark(code: str, message: str, place: Place, word: str = "", hint: str = "") -> Diagnostic:
    """A warning about a specification, shown under ``word``."""
    return Diagnostic(code, message, place.span(len(word)), hint or None, Severity.WARNING)
