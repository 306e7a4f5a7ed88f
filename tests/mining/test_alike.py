"""Of many diagnostics that are alike, a few are shown, and each of the others is counted."""

from __future__ import annotations

from reprise.lang.diagnostics import Diagnostic, Span
from reprise.mining.alike import few


def said(code: str, message: str, *lines: int, file: str = "a.yaml") -> list[Diagnostic]:
    return [Diagnostic(code, message, Span(file, line, 1, line, 2)) for line in lines]


def test_of_one_message_at_many_lines_three_are_shown_and_the_other_lines_named() -> None:
    negative = said("value", "a negative number", 3, 5, 8, 13, 21)
    between = said("unknown", "no word", 4)
    shown = few([negative[0], *between, *negative[1:]])
    assert [s.diagnostic.span.line for s in shown] == [3, 4, 5, 8]
    assert [s.after for s in shown] == [(), (), (), ("… and 2 more like it (lines 13, 21)",)]


def test_a_line_never_stands_for_a_single_diagnostic_of_four() -> None:
    assert [s.after for s in few(said("value", "negative", 1, 2, 3, 4))] == [()] * 4


def test_what_differs_in_a_name_only_is_of_one_kind() -> None:
    each = [d for n in range(20) for d in said("unknown", f"`k{n}`", n + 1)]
    shown = few([*each, *said("other", "x", 50)])
    assert [s.diagnostic.span.line for s in shown] == [1, 2, 3, 4, 5, 6, 7, 8, 50]
    assert shown[7].after == (
        "… and 12 more of the kind unknown (lines 9, 10, 11, 12, 13, 14, 15, 16, …)",
    )


def test_places_in_other_files_are_named_with_the_file() -> None:
    first = said("value", "negative", 1, 2, 3)
    shown = few([*first, *said("value", "negative", 7, 9, file="b.yaml")])
    assert shown[-1].after == ("… and 2 more like it (b.yaml:7, b.yaml:9)",)
