"""What a stage report means depends on whether the model is valid."""

from __future__ import annotations

import pytest

from reprise.lang.declared import Constraint
from reprise.lang.ruleset import load_text
from reprise.targets.interface import Failure, Stage
from reprise.xcheck.passes.interface import Ending, StageReport
from reprise.xcheck.verdict import Verdict, outcome


def constraint(meta: str = "") -> Constraint:
    text = f"constraint c : algebraic on {{ {meta} a = abs(x) }} require x.rank == 2"
    return load_text(text).constraints["c"]


def rejected(type: str, message: str = "no", *, unsupported: bool = False) -> StageReport:
    failure = Failure(Stage.COMPILE, type, message, (), unsupported)
    return StageReport(Ending.REJECTED, ("import", "fold"), ("import",), "fold", failure)


@pytest.mark.parametrize(
    "report, valid, violating",
    [
        (StageReport(Ending.ACCEPTED), Verdict.COMPILED, Verdict.ACCEPTED),
        (rejected("ValueError"), Verdict.VALID_REJECTED, Verdict.REJECTED),
        (rejected("tvm.error.InternalError"), Verdict.VALID_REJECTED, Verdict.INTERNAL),
        (rejected("Fail", unsupported=True), Verdict.UNSUPPORTED, Verdict.UNSUPPORTED),
        (rejected("KeyError", unsupported=True), Verdict.UNSUPPORTED, Verdict.UNSUPPORTED),
        (StageReport(Ending.CRASHED, signal="SIGSEGV"), Verdict.CRASHED, Verdict.CRASHED),
        (StageReport(Ending.HANG), Verdict.HANG, Verdict.HANG),
        (StageReport(Ending.MEMORY), Verdict.MEMORY, Verdict.MEMORY),
        (StageReport(Ending.UNASKED), Verdict.UNASKED, Verdict.UNASKED),
    ],
)
def test_verdicts(report: StageReport, valid: Verdict, violating: Verdict) -> None:
    assert outcome(report, valid=True).verdict is valid
    assert outcome(report, valid=False, violated=[constraint()]).verdict is violating


def test_not_supported_is_the_rejection_that_a_constraint_about_one_compiler_asks_for() -> None:
    report, own = rejected("Fail", unsupported=True), constraint("target: tvm")
    assert outcome(report, valid=False, violated=[own]).verdict is Verdict.REJECTED
    assert outcome(report, valid=False, violated=[constraint(), own]).verdict is Verdict.REJECTED


def test_only_what_is_violated_for_certain_is_accepted_silently() -> None:
    accepted, unsure = StageReport(Ending.ACCEPTED), constraint("confidence: low")
    assert outcome(accepted, valid=False).verdict is Verdict.COMPILED
    assert outcome(accepted, valid=False, violated=[unsure]).verdict is Verdict.ALLOWED
    assert outcome(accepted, valid=False, violated=[unsure, constraint()]).verdict is (
        Verdict.ACCEPTED
    )


def test_what_varies_in_a_message_does_not_separate_findings() -> None:
    first = rejected("ValueError", "Literal value 27304461837142484352 exceeds range of int64")
    other = rejected("ValueError", "Literal value 9223372036854775808 exceeds range of int64")
    assert outcome(first, valid=False).signature == outcome(other, valid=False).signature
    assert outcome(first, valid=False).signature.startswith("in fold")


def test_a_warning_about_a_size_is_noted() -> None:
    quiet = StageReport(Ending.ACCEPTED, log="Warning: unable to detect the CUDA version")
    warned = StageReport(Ending.ACCEPTED, log="buffer exceeds the device's memory")
    assert not outcome(quiet, valid=False).warned and outcome(warned, valid=False).warned


def test_an_error_without_a_message_is_told_by_its_type() -> None:
    assert outcome(rejected("AssertionError", ""), valid=False).message == "AssertionError"
