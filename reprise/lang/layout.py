"""A small pretty-printer: documents that know where they may break, laid out in a given width.

After Wadler ("A prettier printer") and Oppen. A :class:`Group` is printed on one line if it fits,
else every :class:`Break` directly in it becomes a line end; a :class:`Fill` breaks only before
items that no longer fit. Layout runs on an explicit stack: a document may be long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 100
INDENT = 4


@dataclass(frozen=True, slots=True)
class Break:
    """A place to break; ``flat`` is what stands there otherwise."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """``doc``, with the lines that start in it indented one level deeper."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """``doc`` on one line if it fits."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Fill:
    """Items with spaces (or ``gap``) between them, as many on a line as fit."""

    items: tuple[Doc, ...]
    gap: str = " "


@dataclass(frozen=True, slots=True)
class _FillBreak:
    """The gap of a fill before ``item``."""

    item: Doc
    gap: str


Doc = str | Break | Nest | Group | Fill | _FillBreak | tuple["Doc", ...]

SPACE = Break()
SOFT = Break("")

_Entry = tuple[Doc, int, bool]
"""A document on the stack, its indentation, and whether its breaks are flat."""


def layout(doc: Doc, indent: int = 0, reserved: int = 0, width: int = WIDTH) -> list[str]:
    """The lines of ``doc``, the first one without its indentation.

    ``reserved`` columns after the document are kept free for what will follow it.
    """
    lines: list[str] = []
    line: list[str] = []
    column = indent
    stack: list[_Entry] = [(doc, indent, False)]
    while stack:
        top, level, flat = stack.pop()
        match top:
            case str():
                line.append(top)
                column += len(top)
            case tuple():
                stack.extend((part, level, flat) for part in reversed(top))
            case Nest(inner):
                stack.append((inner, level + INDENT, flat))
            case Group(inner):
                fits = flat or _fits(inner, stack, len(stack), width - column, reserved)
                stack.append((inner, level, fits))
            case Fill(items, gap):
                for item in reversed(items[1:]):
                    stack.append((item, level, flat))
                    stack.append((_FillBreak(item, gap), level, flat))
                if items:
                    stack.append((items[0], level, flat))
            case Break(text) if flat:
                line.append(text)
                column += len(text)
            case _FillBreak(item, gap) if flat or _fits(
                item, stack, len(stack) - 1, width - column - len(gap), reserved
            ):
                line.append(gap)
                column += len(gap)
            case _:
                lines.append("".join(line).rstrip())
                line = [" " * level]
                column = level
    lines.append("".join(line).rstrip())
    return lines


def flat(doc: Doc) -> str:
    """``doc`` on one line, however long."""
    return layout(Group(doc), width=1 << 60)[0]


def _fits(doc: Doc, stack: Sequence[_Entry], below: int, room: int, reserved: int) -> bool:
    """Whether ``doc`` on one line, and what follows it up to the next possible break, fit.

    What follows are the lowest ``below`` entries of ``stack``, the last of them first.
    """
    work: list[tuple[Doc, bool]] = [(doc, True)]
    while room >= 0:
        if not work:
            if below == 0:
                return room >= reserved
            below -= 1
            after, _, after_flat = stack[below]
            work.append((after, after_flat))
        top, flat = work.pop()
        match top:
            case str():
                room -= len(top)
            case tuple():
                work.extend((part, flat) for part in reversed(top))
            case Nest(inner) | Group(inner):
                work.append((inner, flat))
            case Fill(items, gap):
                for item in reversed(items[1:]):
                    work.append((item, flat))
                    work.append((Break(gap), flat))
                if items:
                    work.append((items[0], flat))
            case Break(text) if flat:
                room -= len(text)
            case _FillBreak(_, gap) if flat:
                room -= len(gap)
            case _:
                return True
    return False
