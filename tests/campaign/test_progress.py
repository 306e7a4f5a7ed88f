"""What a session says while it runs."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from reprise.campaign.learned import Unlearned
from reprise.campaign.progress import LiveWatch, PlainWatch, clock, news, unlearned_lines
from reprise.campaign.records import Confirmation, Record
from reprise.campaign.run import Budget, Tally
from reprise.oracle.verdict import Verdict


def tally() -> Tally:
    made = Tally(0, Budget(tests=10, seconds=3700))
    made.count(Record(0, Verdict.OK, rejected=Counter({"rule_a": 2, "rule_b": 1})))
    made.count(Record(1, Verdict.CRASH, "s", "breaks"))
    made.count(Record(2, Verdict.CRASH, "s", "breaks"))
    made.count(Record(3, Verdict.WRONG_RESULT, "t", "is off"))
    return made


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("reprise.campaign.progress.time.monotonic", lambda: clock[0])
    said: list[str] = []
    watch = PlainWatch(said.append)
    watch.began(Tally(), Path("run"))
    watch.tested(tally())
    clock[0] = 11
    watch.tested(tally())
    watch.tested(tally())
    watch.found(Record(1, Verdict.CRASH, "s", "breaks"), None)
    watch.learning(1)
    watch.ended()
    assert said[0] == "run: from the start"
    assert said[2] == "test 1: crash: breaks"
    assert said[3] == "learning from test 1"
    assert len(said) == 4
    for part in ("4 tests of 10", "1 ok, 2 crash, 1 wrong result", "2 defects", "3 candidates"):
        assert part in said[1]


def test_news_in_one_line_that_steers_no_terminal() -> None:
    record = Record(7, Verdict.CRASH, "s", "two\nlines \x1b[31mred " + "x" * 500, "rule_a")
    line = news(record, Confirmation(3, 1))
    assert line.startswith("test 7: crash, known: rule_a, flaky: two lines \\x1b[31mred xxx")
    assert "\n" not in line and "\x1b" not in line
    assert len(line) < 250


def test_a_table_on_a_terminal() -> None:
    watch = LiveWatch()
    watch.began(tally(), Path("run"))
    try:
        screen = io.StringIO()
        Console(file=screen, width=100).print(watch._table())
    finally:
        watch.ended()
    shown = screen.getvalue()
    for part in ("4 of 10", "1:01:40", "1 ok, 2 crash, 1 wrong result", "2 rule_a, 1 rule_b"):
        assert part in shown


def test_what_was_not_learned_is_said_with_the_command_that_does_it() -> None:
    unlearned = [
        Unlearned(Path("run/findings/00000005"), "the rule was\ndiscarded"),
        Unlearned(Path("run/findings/00000076")),
    ]
    assert unlearned_lines(unlearned, Path("run")) == [
        "no rule was made of:",
        "  test 5: the rule was discarded; to do it: reprise distill run/5",
        "  test 76, not finished; to do it: reprise distill run/76",
    ]
    assert unlearned_lines([], Path("run")) == []


def test_durations() -> None:
    assert [clock(s) for s in (0, 59.9, 61, 3723)] == ["0:00:00", "0:00:59", "0:01:01", "1:02:03"]
