"""What an author is told about a malformed file.

Each file in ``bad/`` ends with what must be said of it, in comments that start with ``//~``. To
accept what is said now, set ``REPRISE_ACCEPT=1`` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprise.lang.diagnostics import Diagnostic, RulesError, Severity, Span
from reprise.lang.parse import parse_program, parse_text
from reprise.lang.render import WIDTH, render, to_json

BAD = sorted((Path(__file__).parent / "bad").glob("*.*"))


def found_in(text: str, name: str) -> list[Diagnostic]:
    parse = parse_program if name.endswith(".uir") else parse_text
    with pytest.raises(RulesError) as error:
        parse(text, name)
    return error.value.diagnostics


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_malformed(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    said = render(found_in(text, path.name), {path.name: text})
    source = "".join(line for line in text.splitlines(True) if not line.startswith("//~"))
    expected = "".join(f"//~ {line}".rstrip() + "\n" for line in said.splitlines())
    if os.environ.get("REPRISE_ACCEPT"):
        path.write_bytes((source + expected).encode())
    assert text == source + expected


# --- rendering -------------------------------------------------------------------------------


def rendered(source: str, column: int, end: int, line: int = 1, end_line: int = 1) -> list[str]:
    """The source line and the carets, without the margin."""
    span = Span("f", line, column, end_line, end)
    text = render([Diagnostic("code", "message", span)], {"f": source})
    return [row.split("|", 1)[1].removeprefix(" ") for row in text.splitlines()[1:3]]


def test_the_text_form() -> None:
    problem = Diagnostic("some-code", "what", Span("a.rules", 10, 3, 10, 5), "do this")
    source = "\n" * 9 + "p(XY).\n"
    assert render([problem], {"a.rules": source}) == (
        "a.rules:10:3: error[some-code]: what\n 10 | p(XY).\n    |   ^^\n    = hint: do this\n"
    )


def test_without_the_source_only_the_message_is_shown() -> None:
    warning = Diagnostic("c", "m", Span("a", 3, 1, 3, 2), "h", Severity.WARNING)
    assert render([warning], {}) == "a:3:1: warning[c]: m\n   = hint: h\n"
    assert render([warning], {"a": "one line"}) == render([warning], {})
    assert render([], {}) == ""


@pytest.mark.parametrize(
    ("source", "column", "end", "shown", "carets"),
    [
        ("\tab\tc", 5, 6, "    ab  c", "        ^"),
        ("\tab\tc", 1, 3, "    ab  c", "^^^^^"),
        ("日本 x", 4, 5, "日本 x", "     ^"),
        ("日本 x", 1, 3, "日本 x", "^^^^"),
        ("e\u0301 x", 4, 5, "e\u0301 x", "  ^"),
        ("\ufeffab", 2, 3, "ab", " ^"),
        ("ab\r", 3, 3, "ab", "  ^"),
        ("ab", 9, 9, "ab", "  ^"),
        ("a\x1b[31mb", 7, 8, "a␛[31mb", "      ^"),
        ("a\u202eb", 3, 4, "a\ufffdb", "  ^"),
        ("", 1, 1, "", "^"),
    ],
)
def test_carets_stand_under_what_they_mean(
    source: str, column: int, end: int, shown: str, carets: str
) -> None:
    assert rendered(source, column, end) == [shown, carets]


def test_a_span_of_several_lines_is_marked_on_the_first() -> None:
    assert rendered("p(X) :-\n  q.", 3, 2, end_line=2) == ["p(X) :-", "  ^^^^^"]


@pytest.mark.parametrize("wide", ["x", "語"])
@pytest.mark.parametrize("column", [1, 50, 120, 400, 5000, 9990, 10_001])
def test_long_lines_are_clipped_around_the_caret(wide: str, column: int) -> None:
    source = list(wide * 10_000)
    if column <= len(source):
        source[column - 1] = "!"
    shown, carets = rendered("".join(source), column, column + 1)
    assert len(shown) <= WIDTH + 2
    assert carets.strip() == "^"
    columns = [
        cell for character in shown for cell in (character, "")[: 2 if character == "語" else 1]
    ]
    under = columns[len(carets) - 1 : len(carets)]
    assert under == (["!"] if column <= len(source) else [])


def test_a_long_span_is_cut_with_its_line() -> None:
    shown, carets = rendered("x" * 500, 90, 400)
    assert len(carets) <= len(shown) <= WIDTH + 2


def test_colour_changes_nothing_but_colour() -> None:
    import re

    problem = Diagnostic("c", "m", Span("a", 1, 1, 1, 2), "h")
    coloured = render([problem], {"a": "x"}, color=True)
    assert "\033[1;31m" in coloured
    assert re.sub(r"\033\[[0-9;]*m", "", coloured) == render([problem], {"a": "x"})


def test_the_json_form() -> None:
    problem = Diagnostic("c", "m", Span("a", 1, 2, 3, 4), None, Severity.WARNING)
    assert to_json([problem]) == [
        {
            "code": "c",
            "severity": "warning",
            "message": "m",
            "hint": None,
            "file": "a",
            "line": 1,
            "column": 2,
            "end_line": 3,
            "end_column": 4,
        }
    ]
