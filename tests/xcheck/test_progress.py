"""What a session tells while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprise.xcheck.progress import PlainWatch, row_line
from reprise.xcheck.run import Budget, Tally
from reprise.xcheck.store import ModelRow, SetAside
from reprise.xcheck.verdict import Verdict

TALLY = Tally(Budget(), 3)


def told(capsys: pytest.CaptureFixture[str], *asides: SetAside) -> list[str]:
    watch = PlainWatch(Path("run"))
    for aside in asides:
        watch.set_aside(TALLY, aside)
    watch.ended()
    return capsys.readouterr().err.splitlines()


def test_a_constraint_that_is_set_aside_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert told(
        capsys,
        SetAside("a", True, 0, "no signature"),
        SetAside("a", False, 0, "no signature"),
        SetAside("b", True, 0, "these clash"),
        SetAside("b", False, 0, "it always holds"),
        SetAside("c", False, 0, "it always holds"),
    ) == [
        "a: no model, valid or not: no signature",
        "b: no valid model: these clash; no model violates it: it always holds",
        "c: no model violates it: it always holds",
    ]


def test_that_there_is_only_no_valid_model_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(
        capsys, SetAside("a", True, 0, "these clash"), SetAside("b", True, 0, "these clash")
    ) == ["a: no valid model: these clash", "b: no valid model: these clash"]


def test_a_finding_is_not_called_silent_if_the_compiler_warned() -> None:
    row = ModelRow(
        *(1, "fits", 1, False, "typed", "digest", "relu(x)", Verdict.ACCEPTED, 3, "at the end"),
        *("", "", True, 5, None),
    )
    assert "accepted with a warning" in row_line(row)
    assert "accepted silently" in row_line(replace(row, warned=False))
