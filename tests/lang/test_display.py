"""Words that people are shown."""

from __future__ import annotations

import pytest

from reprise.lang.display import counted, shortened


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "test", "0 tests"), (1, "test", "1 test"), (2, "match", "2 matches")],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_what_is_cut_says_so() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("too long", 5) == "too…"
