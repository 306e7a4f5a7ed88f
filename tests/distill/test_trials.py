"""Whether a program shows a defect, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprise.distill.memory import Memory
from reprise.distill.trials import Aim, Shown, Trials
from reprise.oracle.verdict import Judgement, Severity, Verdict
from tests.distill.toys import program, toy

RELU_CLIP = "x: float64[3]\nr = relu(x)\nc = clip(r, min=0.0, max=6.0)\n"
NEG_NEG = "x: float32[2, 3]\na = neg(x)\nb = neg(a)\n"
EXP = "x: float32[2, 3]\na = exp(x)\n"
FINE = "x: float32[2]\na = abs(x)\n"
UNKNOWN = "x: float32[2]\na = sinh(x)\n"


def aim(text: str) -> Aim:
    with Trials(toy(), None) as trials:
        return Aim.of(trials.judge(program(text)))


def shown(text: str, wanted: Aim, *, exact: bool = False) -> Shown:
    with Trials(toy(), wanted, exact=exact) as trials:
        return trials.try_one(program(text)).shown


@pytest.mark.slow
def test_the_passes_that_cure_a_finding_are_its_aim() -> None:
    found = aim(RELU_CLIP)
    assert found.verdict is Verdict.CRASH
    assert found.cures == ("fuse_relu_clip",)
    assert found.symptom.startswith("crash | compile | slip")
    assert aim(NEG_NEG).cures == ("fuse_neg_neg",)


@pytest.mark.slow
def test_a_finding_without_a_pass_is_known_by_its_symptom() -> None:
    found = aim(EXP)
    assert found.cures == ()
    assert found.kind == "wrong | values"


@pytest.mark.slow
@pytest.mark.parametrize("text", [RELU_CLIP, NEG_NEG, EXP])
def test_a_finding_shows_its_own_defect(text: str) -> None:
    assert shown(text, aim(text)) is Shown.SAME
    assert shown(text, aim(text), exact=True) is Shown.SAME


@pytest.mark.slow
def test_another_defect_is_told_apart() -> None:
    assert shown(EXP, aim(NEG_NEG)) is Shown.OTHER
    assert shown(RELU_CLIP, aim(NEG_NEG)) is Shown.OTHER
    assert shown(FINE, aim(NEG_NEG)) is Shown.NOTHING
    assert shown(UNKNOWN, aim(NEG_NEG)) is Shown.INVALID


@pytest.mark.slow
def test_the_same_pass_with_another_symptom_is_another_defect_if_asked_exactly() -> None:
    found = replace(aim(RELU_CLIP), symptom="crash | compile | Fail |  | something else altogether")
    assert shown(RELU_CLIP, found) is Shown.SAME
    assert shown(RELU_CLIP, found, exact=True) is Shown.OTHER


@pytest.mark.slow
def test_a_rounding_error_is_no_normal_finding() -> None:
    found = replace(aim(EXP), severity=Severity.LOW)
    assert shown(EXP, found, exact=True) is Shown.OTHER


def test_crashes_look_alike_by_call_site_and_words() -> None:
    def crash(message: str, cures: tuple[str, ...] = ()) -> Aim:
        symptom = f"crash | compile | Fail |  | {message}"
        return Aim(Verdict.CRASH, symptom, symptom, cures)

    long = "no kernel for this operator in any of the providers that were asked for it"
    assert crash(long).looks_like(crash(long))
    assert not crash(long).looks_like(crash(long.replace("kernel", "schema")))
    assert crash(long, ("p",)).looks_like(crash(long.replace("kernel", "schema"), ("p",)))
    assert not crash(long, ("p",)).looks_like(crash("something else", ("p",)))


def test_kinds_of_wrong_results_are_told_apart() -> None:
    def wrong(kind: str) -> Aim:
        return Aim.of(Judgement(Verdict.WRONG_RESULT, f"wrong | {kind} | float32: exp(input)"))

    assert wrong("values").looks_like(wrong("one-sided rounding"))
    assert not wrong("values").looks_like(wrong("shape"))
    assert not wrong("sign of zero").looks_like(wrong("values"))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
def test_trials_are_told_in_the_order_of_the_programs(jobs: int) -> None:
    texts = [FINE, RELU_CLIP, EXP, NEG_NEG, FINE, UNKNOWN]
    with Trials(toy(), aim(NEG_NEG), jobs=jobs) as trials:
        seen = [trial.shown for trial in trials.try_all(map(program, texts))]
        found = trials.first(map(program, texts))
    assert seen == [
        Shown.NOTHING,
        Shown.OTHER,
        Shown.OTHER,
        Shown.SAME,
        Shown.NOTHING,
        Shown.INVALID,
    ]
    assert found is not None
    assert [node.op for node in found.graph.nodes] == ["neg", "neg"]


@pytest.mark.slow
def test_a_program_is_run_once() -> None:
    with Trials(toy(), aim(EXP)) as trials:
        first = trials.try_one(program(EXP))
        runs = trials.count.runs
        assert trials.try_one(program(EXP)) is first
        assert trials.count.runs == runs == first.runs
        assert trials.count.known == 1


@pytest.mark.slow
def test_answers_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    question = {"about": "exp"}
    wanted = aim(EXP)
    runs = []
    for _ in range(2):
        with Trials(toy(), wanted) as trials:
            trials.memory = Memory(path, question)
            answers = [trials.try_one(program(text)) for text in (EXP, FINE)]
            assert [a.shown for a in answers] == [Shown.SAME, Shown.NOTHING]
            assert all(a.runs > 0 for a in answers)
            runs.append(trials.count.runs)
    assert runs[0] > 0
    assert runs[1] == 0


def test_answers_to_another_question_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    first = Memory(path, {"about": "exp"})
    first.put("key", "same", 3)
    first.close()
    assert Memory(path, {"about": "exp"}).get("key") == ("same", 3)
    assert Memory(path, {"about": "neg"}).get("key") is None
    assert Memory(path, {"about": "exp"}).get("key") is None
