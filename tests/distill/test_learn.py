"""The background learner, on real findings of ONNX Runtime: a queue, one process at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprise.campaign.learned import Lesson
from reprise.campaign.open import Request, begin
from reprise.campaign.run import Budget
from reprise.campaign.store import Run
from reprise.distill.learn import BackgroundLearner, Teaching
from reprise.lang.ruleset import load_text
from reprise.patterns.match import Matcher
from reprise.solve.signatures import Signatures
from reprise.uir.text import parse_uir
from tests.campaign.toy import Silent

TEACHING = Teaching(seconds=60, neighbours=30)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    generation = {"nodes": 4, "ops": ("sigmoid,mul",), "dtypes": ("float64",)}
    asked = Request("onnxruntime", seed=2, guided=False, generation=generation, budget=Budget(40))
    path = tmp_path_factory.mktemp("run") / "run"
    campaign = begin(asked, path, Silent(), 1)
    campaign.run()
    campaign.writer.close()
    return Run.open(path)


def lessons(learner: BackgroundLearner, seconds: float = 240) -> Sequence[Lesson]:
    end = time.monotonic() + seconds
    found: list[Lesson] = []
    while learner.busy and time.monotonic() < end:
        found += learner.lessons()
        time.sleep(0.05)
    return found


def folder(run: Run) -> Path:
    first = next(f for f in run.findings if f.verdict.is_finding)
    assert first.folder is not None
    return first.folder


@pytest.mark.slow
def test_a_finding_becomes_a_rule_that_matches_it(run: Run) -> None:
    learner = BackgroundLearner(TEACHING)
    signature = run.defects[0].signatures[0].signature
    learner.found(signature, folder(run))
    learner.found(signature, folder(run))  # once is enough
    (lesson,) = lessons(learner)
    learner.close()
    assert lesson.signature == signature and learner.failed == []
    rules = load_text(lesson.text)
    graph = parse_uir((folder(run) / "program.uir").read_text(), "p", Signatures.load())
    assert [f.pattern.name for f in Matcher(rules).run(graph).findings] != []
    assert (run.path / "learned" / folder(run).name / "distillation.md").exists()


@pytest.mark.slow
def test_a_finding_that_cannot_be_read_is_no_lesson_and_says_why(tmp_path: Path) -> None:
    place = tmp_path / "run" / "findings" / "00000003"
    place.mkdir(parents=True)
    learner = BackgroundLearner(TEACHING)
    learner.found("pass:X", place)
    assert lessons(learner) == []
    learner.close()
    (failed,) = learner.failed
    assert failed.signature == "pass:X" and failed.reason
    assert (tmp_path / "run" / "learned" / place.name / "failed.txt").read_text().strip()


@pytest.mark.slow
def test_a_lesson_whose_process_dies_is_lost_and_the_next_is_begun(tmp_path: Path) -> None:
    learner = BackgroundLearner(TEACHING)
    for number in (1, 2):
        learner.found(f"pass:{number}", tmp_path / "run" / "findings" / f"0000000{number}")
    learner._process.kill()
    assert lessons(learner) == []
    learner.close()
    first, second = learner.failed
    assert [each.reason for each in learner.unlearned()] == [first.reason, second.reason]
    assert "died" in first.reason and "died" not in second.reason


@pytest.mark.slow
def test_closing_ends_a_lesson_at_once(run: Run, tmp_path: Path) -> None:
    learner = BackgroundLearner(TEACHING)
    learner.found("pass:QuickGeluFusion", folder(run))
    later = tmp_path / "run" / "findings" / "00000003"
    learner.found("pass:Other", later)
    process = learner._process
    began = time.monotonic()
    learner.close()
    assert time.monotonic() - began < 10
    assert list(learner.begun()) == [folder(run)]
    assert [each.folder for each in learner.unlearned()] == [folder(run), later]
    assert not any(each.reason for each in learner.unlearned())
    with pytest.raises(ValueError, match="closed"):
        process.is_alive()
    assert not learner.busy
