"""Rules that a run learns hold from a test on, for good, whoever does the tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprise.campaign.bench import FuzzBench, Fuzzing
from reprise.campaign.filing import Known
from reprise.campaign.judging import Judging
from reprise.campaign.learned import LearnedRules, Lesson, Unlearned
from reprise.campaign.open import Programs, Request, begin, go_on
from reprise.campaign.records import End
from reprise.campaign.run import Budget
from reprise.campaign.source import SourceRequest
from reprise.campaign.store import Run
from reprise.lang.diagnostics import RulesError
from reprise.synth.options import Options
from reprise.targets.discover import parse_target
from reprise.uir.text import print_uir
from tests.campaign.toy import Silent

RULE = """
/// A lesson.
pattern lesson "x * sigmoid(x) in float64" {
    target: onnxruntime   symptom: crash_at_load   pass: "QuickGeluFusion"
    s = sigmoid(x)
    y = mul{x, via {identity}(s)}
    where x.dtype == float64
}
"""
OPTIONS = {"nodes": 4, "ops": ("sigmoid,mul",), "dtypes": ("float64",)}
NARROW = Options(nodes=4, include=frozenset({"sigmoid", "mul"}), dtypes={"float64": 1})


class Pupil:
    """A learner that knows the answer to everything at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Path]] = []
        self.closed = False

    def wants(self, signature: str) -> bool:
        return not self.asked

    def found(self, signature: str, folder: Path) -> None:
        self.asked.append((signature, folder))

    def lessons(self) -> Sequence[Lesson]:
        known = [Lesson("lesson", self.asked[0][0], RULE)] if len(self.asked) == 1 else []
        if known:
            self.asked.append(("", Path()))
        return known

    def begun(self) -> Sequence[Path]:
        return []

    def close(self) -> Sequence[Lesson]:
        self.closed = True
        return []

    def unlearned(self) -> Sequence[Unlearned]:
        return []


class SlowPupil(Pupil):
    """A learner that knows one answer when the run ends, and has not come to another."""

    def begun(self) -> Sequence[Path]:
        return [self.asked[-1][1]] if len(self.asked) == 1 else []

    def lessons(self) -> Sequence[Lesson]:
        return []

    def close(self) -> Sequence[Lesson]:
        self.closed = True
        return [Lesson("lesson", self.asked[0][0], RULE)]

    def unlearned(self) -> Sequence[Unlearned]:
        assert self.closed
        return [Unlearned(self.asked[0][1].with_name("00000099"))]


def request(**changes: object) -> Request:
    asked = Request(
        "onnxruntime", seed=2, guided=False, learn=True, generation=OPTIONS, budget=Budget(120)
    )
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Pupil]:
    pupil = Pupil()
    path = tmp_path_factory.mktemp("learned") / "run"
    campaign = begin(request(), path, Silent(), 1, lambda asked: pupil)
    assert campaign.run() is End.DONE
    campaign.writer.close()
    return path, pupil


@pytest.mark.slow
def test_a_finding_goes_to_the_learner_with_its_folder(learned: tuple[Path, Pupil]) -> None:
    path, pupil = learned
    signature, folder = pupil.asked[0]
    assert signature == "pass:QuickGeluFusion"
    assert folder.parent == path / "findings" and (folder / "program.uir").exists()
    assert pupil.closed


@pytest.mark.slow
def test_the_rule_is_kept_with_the_test_that_it_holds_from(learned: tuple[Path, Pupil]) -> None:
    path, _ = learned
    (rule,) = LearnedRules.of(path).all()
    assert rule.name == "lesson" and rule.is_about("pass:QuickGeluFusion")
    assert list(rule.load().patterns) == ["lesson"]
    first = Run.open(path).defects[0].first_index
    assert first < rule.since < 120


def test_the_defect_is_gone_from_then_on(learned: tuple[Path, Pupil]) -> None:
    path, _ = learned
    (rule,) = LearnedRules.of(path).all()
    run = Run.open(path)
    assert [f.index for f in run.findings if f.index >= rule.since] == []
    assert run.suppressed["lesson"].rejected > 0


@pytest.mark.slow
def test_a_lesson_that_is_ready_when_the_run_ends_is_kept(tmp_path: Path) -> None:
    pupil, watch = SlowPupil(), Silent()
    campaign = begin(request(budget=Budget(60)), tmp_path / "run", watch, 1, lambda asked: pupil)
    assert campaign.run() is End.DONE
    campaign.writer.close()
    (rule,) = LearnedRules.of(tmp_path / "run").all()
    assert (rule.name, rule.since) == ("lesson", 60)
    assert watch.lessons == [int(pupil.asked[0][1].name)]
    assert [int(each.folder.name) for each in campaign.unlearned] == [99]


@pytest.mark.slow
def test_a_run_without_a_learner_learns_nothing(tmp_path: Path) -> None:
    pupil = Pupil()
    asked = request(learn=False, budget=Budget(60))
    campaign = begin(asked, tmp_path / "run", Silent(), 1, lambda asked: pupil)
    campaign.run()
    campaign.writer.close()
    assert pupil.asked == [] and not (tmp_path / "run" / "learned").exists()


@pytest.mark.slow
def test_what_was_found_before_is_learned_after_resuming(tmp_path: Path) -> None:
    path = tmp_path / "run"
    campaign = begin(request(learn=False, budget=Budget(60)), path, Silent(), 1)
    campaign.run()
    campaign.writer.close()
    pupil = Pupil()
    campaign = go_on(path, Budget(61), Silent(), 1, lambda asked: pupil)
    campaign.run()
    campaign.writer.close()
    assert pupil.asked == []  # the run began without learning, and goes on so


@pytest.mark.slow
@pytest.mark.parametrize("guided", [True, False])
def test_known_bugs_are_learned_only_where_nothing_avoids_them(
    tmp_path: Path, guided: bool
) -> None:
    pupil = Pupil()
    asked = request(guided=guided, budget=Budget(60))
    campaign = begin(asked, tmp_path / "run", Silent(), 1, lambda asked: pupil)
    campaign.run()
    campaign.writer.close()
    assert bool(pupil.asked) is not guided


@pytest.mark.slow
def test_programs_depend_on_their_number_and_the_folder_alone(tmp_path: Path) -> None:
    """Whatever order tests are done in: a process that starts over makes the same programs."""
    rules = LearnedRules.of(tmp_path)
    target = parse_target("onnxruntime")
    source = SourceRequest(2, NARROW, target=target.name, guided=False, lowerings=("onnx",))
    work = Fuzzing(target, Programs(source), Judging(2), Known("onnxruntime", None), learned=rules)

    def programs(indices: Sequence[int]) -> dict[int, str]:
        bench = FuzzBench(work)
        made = {}
        for index in indices:
            bench._learn(index)
            made[index] = print_uir(bench.source.program(index).program.graph)
        bench.close()
        return made

    before = programs(range(60))
    rules.add(Lesson("lesson", "pass:X", RULE), 30)
    after = programs(range(60))
    assert {i: t for i, t in after.items() if i < 30} == {i: before[i] for i in range(30)}
    assert any(after[i] != before[i] for i in range(30, 60))
    assert programs(range(59, -1, -1)) == after
    assert programs([45, 3, 31]) == {i: after[i] for i in (45, 3, 31)}


@pytest.mark.slow
def test_other_reports_of_a_learned_defect_are_of_that_defect(tmp_path: Path) -> None:
    """The last attempt is accepted, so a program may match a rule all the same."""
    pupil = Pupil()
    hopeless = {**OPTIONS, "attempts": 1}
    asked = request(generation=hopeless, rules=(_no_rules(tmp_path),))
    campaign = begin(asked, tmp_path / "run", Silent(), 1, lambda asked: pupil)
    campaign.run()
    campaign.writer.close()
    run = Run.open(tmp_path / "run")
    (rule,) = LearnedRules.of(tmp_path / "run").all()
    assert any(f.index >= rule.since for f in run.findings if f.verdict.is_finding)
    assert len(run.defects) == 1


def _no_rules(folder: Path) -> Path:
    path = folder / "none.rules"
    path.write_text("set nothing = {}\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [b"\xff\xfe", RULE[:100].encode()])
def test_a_damaged_learned_rule_is_said_before_the_run_goes_on(
    tmp_path: Path, damaged: bytes
) -> None:
    path = tmp_path / "run"
    campaign = begin(request(budget=Budget(2)), path, Silent(), 1)
    campaign.run()
    campaign.writer.close()
    rule = LearnedRules.of(path).add(Lesson("lesson", "pass:X", RULE), 1)
    rule.path.write_bytes(damaged)
    with pytest.raises(RulesError):
        go_on(path, Budget(4), Silent(), 2)
    assert not rule.is_about("pass:X") or damaged.startswith(b"//")
    rule.path.write_text(RULE)
    campaign = go_on(path, Budget(4), Silent(), 1)  # nothing holds the folder
    assert campaign.run() is End.DONE
    campaign.writer.close()
