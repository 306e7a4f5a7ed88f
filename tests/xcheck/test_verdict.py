"""What a stage report means depends on whether the model is valid."""

from __future__ import annotations

import pytest

from reprise.targets.interface import Failure, Stage
from reprise.xcheck.passes.interface import Ending, StageReport
from reprise.xcheck.verdict import Verdict, outcome


def rejected(type: str, message: str = "no", *, unsupported: bool = False) -> StageReport:
    failure = Failure(Stage.COMPILE, type, message, (), unsupported)
    return StageReport(Ending.REJECTED, ("import", "fold"), ("import",), "fold", failure)


@pytest.mark.parametrize(
    "report, valid, violating",
    [
        (StageReport(Ending.ACCEPTED), Verdict.COMPILED, Verdict.ACCEPTED),
        (rejected("ValueError"), Verdict.VALID_REJECTED, Verdict.REJECTED),
        (rejected("tvm.error.InternalError"), Verdict.VALID_REJECTED, Verdict.INTERNAL),
        (rejected("Fail", unsupported=True), Verdict.UNSUPPORTED, Verdict.REJECTED),
        (StageReport(Ending.CRASHED, signal="SIGSEGV"), Verdict.CRASHED, Verdict.CRASHED),
        (StageReport(Ending.HANG), Verdict.HANG, Verdict.HANG),
        (StageReport(Ending.MEMORY), Verdict.MEMORY, Verdict.MEMORY),
        (StageReport(Ending.UNASKED), Verdict.UNASKED, Verdict.UNASKED),
    ],
)
def test_verdicts(report: StageReport, valid: Verdict, violating: Verdict) -> None:
    assert outcome(report, valid=True).verdict is valid
    assert outcome(report, valid=False).verdict is violating


def test_what_varies_in_a_message_does_not_separate_findings() -> None:
    first = rejected("ValueError", "Literal value 27304461837142484352 exceeds range of int64")
    other = rejected("ValueError", "Literal value 9223372036854775808 exceeds range of int64")
    assert outcome(first, valid=False).signature == outcome(other, valid=False).signature
    assert outcome(first, valid=False).signature.startswith("in fold")


def test_a_warning_about_a_size_is_noted() -> None:
    quiet = StageReport(Ending.ACCEPTED, log="Warning: unable to detect the CUDA version")
    warned = StageReport(Ending.ACCEPTED, log="buffer exceeds the device's memory")
    assert not outcome(quiet, valid=False).warned and outcome(warned, valid=False).warned
