"""What distilling says while it runs, and at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprise.campaign.metrics import rate
from reprise.distill.conditions import Among, Term
from reprise.distill.draft import Draft, DraftNode
from reprise.distill.folder import record_text
from reprise.distill.record import Distilled, Record
from reprise.distill.telling import PlainProgress, summary_lines
from reprise.distill.tighten import Score, Tightened
from reprise.einsum.distill.distilling import KernelDistilled
from reprise.einsum.distill.draft import draft_of
from reprise.einsum.distill.view import View
from reprise.einsum.text import parse

DRAFT = Draft((DraftNode("n1", ("relu",), ("x1",)),), (Among(Term("dtype", "n1"), ("float64",)),))
RULE = "pattern found {\n    n1 = relu(x1)\n}\n\ntest found {\n}\n"
SCORE = Score(rate(20, 21), rate(1, 2), rate(1, 100))


def done(**changes: object) -> Distilled:
    record = Record(fresh=(40, 38), complete=True, asked=1, runs=2, seconds=3.0)
    return Distilled(DRAFT, RULE, replace(record, **changes), ())  # type: ignore[arg-type]


def test_a_step_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    PlainProgress()("leaving out n1", 1, DRAFT)
    said = capsys.readouterr().err
    assert said == "leaving out n1: 1 program so far, 1 node and 1 condition left\n"


def test_the_end_is_the_rule_without_its_tests_and_what_it_cost() -> None:
    assert summary_lines(done(), False) == [
        *("pattern found {", "    n1 = relu(x1)", "}"),
        "1 program, 2 runs, 3.0 s; of 40 fresh programs 38 trigger",
    ]


def test_fresh_programs_that_were_not_tried_are_not_counted() -> None:
    lines = summary_lines(done(fresh=(0, 0), complete=False, interrupted="ranks"), False)
    assert lines[3:] == [
        "1 program, 2 runs, 3.0 s",
        "not complete, at “ranks”: the budget is spent; the same command goes on",
    ]


def test_ctrl_c_says_what_is_left_to_do() -> None:
    lines = summary_lines(done(complete=False, interrupted="ranks"), True)
    assert lines[-1] == "not complete, at “ranks”: stopped; the same command goes on"
    assert summary_lines(done(), True)[-1] == (
        "stopped before it was held against other programs; the same command does so"
    )


def test_a_rule_that_knows_the_program_already_is_named() -> None:
    known = replace(done(), known="ort_topk_empty")
    assert summary_lines(known, False)[-1] == (
        "known already: ort_topk_empty (reprise rules show ort_topk_empty)"
    )


def test_what_is_about_kernels_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    draft = draft_of(View(parse("A(i) = B(i) where B: s").kernel()))
    nothing = Score(rate(0, 0), rate(0, 0), rate(0, 0))
    held = Tightened(draft, (), nothing, nothing, hidden=2)
    kernels = KernelDistilled(draft, RULE, replace(done().record, complete=True), held)
    PlainProgress()("reducing", 3, draft)
    said = capsys.readouterr().err + "\n".join(
        [*summary_lines(kernels, True), record_text(kernels, "run/1")]
    )
    assert "3 kernels so far" in said and "1 kernel, 2 runs" in said
    assert "fresh kernels" in said and "stands around the operands" in said
    assert "program" not in said and "node" not in said


def test_findings_that_the_rule_misses_are_named() -> None:
    missed = (Path("run/findings/00002153"),)
    lines = summary_lines(
        replace(done(), tightened=Tightened(DRAFT, (), SCORE, SCORE, missed=missed)), False
    )
    assert (
        "does not match run/findings/00002153, a finding of the same defect: distill it as well"
        in lines
    )
    assert lines[-2].startswith("recall: 50.0 %")
