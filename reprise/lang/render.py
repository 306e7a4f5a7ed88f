"""Diagnostics for people (with the source line and a caret) and for tools (JSON).

The text form, one per diagnostic::

    bugs.rules:4:20: error[assignment-in-condition]: `=` does not compare
     4 |     where s.dim[A] = 2
       |                    ^
       = hint: write `==`

Carets stand under what they mean whatever the line holds: tabs are expanded, wide characters take
two columns, combining ones none, control characters are shown as symbols. Of a long line only the
surroundings of the caret are shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from reprise.lang.diagnostics import Diagnostic, Severity
from reprise.lang.tokens import BOM

TAB = 4
"""Columns between tab stops in shown source lines."""

WIDTH = 100
"""Columns of a source line that are shown at most."""

_BEFORE_CARET = 60
"""Of those, columns that are shown before the caret at most."""

_RESET = "\033[0m"
_STYLES = {
    "error": "\033[1;31m",
    "warning": "\033[1;33m",
    "gutter": "\033[34m",
    "hint": "\033[36m",
    "bold": "\033[1m",
}


def render(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], color: bool = False
) -> str:
    """Diagnostics as text, in the order given; ``sources`` holds the files' texts by path.

    A diagnostic whose file is not in ``sources`` is shown without its source line.
    """
    lines_of = {path: _source_lines(text) for path, text in sources.items()}
    return "".join(_render(d, lines_of.get(d.span.file), color) for d in diagnostics)


def to_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as JSON-able data, in the order given."""
    return [
        {
            "code": d.code,
            "severity": d.severity.value,
            "message": d.message,
            "hint": d.hint,
            "file": d.span.file,
            "line": d.span.line,
            "column": d.span.column,
            "end_line": d.span.end_line,
            "end_column": d.span.end_column,
        }
        for d in diagnostics
    ]


def _source_lines(text: str) -> list[str]:
    """Lines as the scanner counts them: split at line feeds only."""
    return text.removeprefix(BOM).split("\n")


def _render(diagnostic: Diagnostic, lines: list[str] | None, color: bool) -> str:
    def styled(text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if color else text

    span, severity = diagnostic.span, diagnostic.severity
    level = "error" if severity is Severity.ERROR else "warning"
    head = styled(f"{level}[{diagnostic.code}]", level)
    out = [f"{_visible(str(span))}: {head}: {styled(_visible(diagnostic.message), 'bold')}"]
    gutter = len(str(span.line)) + 1
    if lines is not None and 1 <= span.line <= len(lines):
        source = lines[span.line - 1].removesuffix("\r")
        stop = span.end_column if span.end_line == span.line else len(source) + 1
        shown, caret, length = excerpt(source, span.column, stop)
        number = styled(f"{span.line:>{gutter}} |", "gutter")
        empty = styled(f"{'':>{gutter}} |", "gutter")
        out.append(f"{number} {shown}".rstrip())
        out.append(f"{empty} {' ' * caret}{styled('^' * length, level)}")
    if diagnostic.hint:
        mark = styled(f"{'':>{gutter}} =", "gutter")
        out.append(f"{mark} {styled('hint', 'hint')}: {_visible(diagnostic.hint)}")
    return "\n".join(out) + "\n"


def excerpt(source: str, column: int, stop: int) -> tuple[str, int, int]:
    """A source line as shown, and where in it carets begin and how many there are.

    ``column`` and ``stop`` count code points from 1, ``stop`` exclusive; there is always at least
    one caret.
    """
    if len(source) > 8 * WIDTH:  # far more than will be shown
        away = max(0, min(column, len(source)) - 4 * WIDTH)
        source = source[away : away + 8 * WIDTH]
        column, stop = column - away, stop - away
        shown, caret, length = excerpt(source, column, min(stop, len(source) + 1))
        if away and not shown.startswith("…"):
            return "…" + shown, caret + 1, length
        return shown, caret, length
    cells: list[str] = []  # what each display column shows; "" continues a wide character
    starts: list[int] = []  # code point → display column
    for character in source:
        starts.append(len(cells))
        if character == "\t":
            cells.extend(" " * (TAB - len(cells) % TAB))
            continue
        width = _width(character)
        if width == 0 and cells:
            cells[-1] += character
        else:
            cells.append(_visible(character))
            cells.extend([""] * (width - 1))
    starts.append(len(cells))
    column = max(column, 1)
    first = starts[column - 1] if column <= len(source) else len(cells)
    last = starts[stop - 1] if column < stop <= len(source) + 1 else first + 1
    length = max(last - first, 1)
    begin = max(0, first - _BEFORE_CARET) if len(cells) > WIDTH else 0
    end = begin + WIDTH
    while begin > 0 and begin < len(cells) and cells[begin] == "":
        begin -= 1  # do not cut a wide character in two
    while end < len(cells) and cells[end] == "":
        end -= 1
    shown = "".join(cells[begin:end])
    if end < len(cells):
        shown += "…"
        length = min(length, end - first)
    if begin:
        shown = "…" + shown
        first += 1
    return shown, first - begin, max(length, 1)


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 1 if ord(character) in _STEERING else 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _visible(text: str) -> str:
    """Control characters as symbols, so that no source text can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(map(_symbol, text))


def _symbol(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or code in _STEERING:
        return "\ufffd"
    return character


_STEERING = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Bidirectional controls, which would reorder what a reader sees."""
