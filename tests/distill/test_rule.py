"""A rule's metadata, in words that a person reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.distill.distilling import known_as
from reprise.distill.rule import metadata
from reprise.distill.subject import open_trials, read_subject
from reprise.distill.trials import Aim
from reprise.oracle.verdict import Verdict
from reprise.solve.signatures import Signatures

CRASH = Aim(Verdict.CRASH, "pass:X", "crash | compile | Fail |  | no kernel\n for Clip")
WRONG = Aim(Verdict.WRONG_RESULT, "wrong | values | relu", "wrong | values | relu")


@pytest.mark.parametrize(
    ("aim", "words"),
    [
        (CRASH, "not reported: compile: Fail: no kernel for Clip"),
        (WRONG, "not reported: wrong: values: relu"),
    ],
)
def test_an_unreported_bug_is_told_in_words(aim: Aim, words: str) -> None:
    assert dict(metadata("onnxruntime", "1.27.0", aim))["bug"] == f'"{words}"'


def test_bugs_that_a_rule_knows_are_taken_over() -> None:
    pairs = metadata("onnxruntime", None, CRASH, ("a/b#1", "a/b#2"))
    assert [value for key, value in pairs if key == "bug"] == ['"a/b#1"', '"a/b#2"']


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "rule"), [("y = swish(x)", "ort_quick_gelu_swish"), ("y = sqrt(x)", "")]
)
def test_the_shipped_rule_that_a_program_is_filed_under(
    tmp_path: Path, line: str, rule: str
) -> None:
    pytest.importorskip("onnxruntime", "1.27")
    signatures = Signatures.load()
    swish, asked = tmp_path / "swish.uir", tmp_path / "asked.uir"
    swish.write_text("x: float64[2, 3]\ny = swish(x)\n")
    asked.write_text(f"x: float64[2, 3]\n{line}\n")
    trials, _ = open_trials(read_subject(swish, "onnxruntime", signatures))
    with trials:
        program = read_subject(asked, "onnxruntime", signatures).forms[0]
        name, bugs = known_as(program, trials)
    assert name == rule and bool(bugs) == bool(rule)


def test_a_failure_before_the_run_is_named_as_the_rules_about_the_target_do() -> None:
    aim = Aim(Verdict.CRASH, "pass:A", "crash | compile | Fail |  | no kernel", ("A",))
    assert dict(metadata("onnxruntime", None, aim))["symptom"] == "crash_at_load"
    assert dict(metadata("tvm", None, aim))["symptom"] == "crash_at_compile"


def test_a_rule_names_its_target_as_rules_do() -> None:
    assert dict(metadata("tvm-cuda-compile", None, CRASH))["target"] == "tvm_cuda"
