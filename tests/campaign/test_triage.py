"""``reprise triage`` on a run with real findings: their order, what is said of each, the reports,
and what is remembered."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reprise.campaign.bench import FuzzBench, Fuzzing
from reprise.campaign.filing import Known
from reprise.campaign.findings import finding_files
from reprise.campaign.judging import Judging
from reprise.campaign.records import StoreError
from reprise.campaign.store import Run
from reprise.campaign.triage.bugreport import bug_report
from reprise.campaign.triage.decisions import FILE, Decided, Decision, Decisions
from reprise.campaign.triage.novelty import Item, items, pick
from reprise.campaign.triage.session import Triage, report_all_new
from reprise.campaign.writer import RunWriter
from reprise.lang.ruleset import load_rules
from reprise.patterns.truth import Truth
from reprise.targets.discover import parse_target
from tests.campaign.runs import info
from tests.campaign.test_findings import CLIPPED, TRANSPOSED, Texts, alone
from tests.conftest import ROOT, environment
from tests.conftest import Run as Command

pytest.importorskip("onnxruntime")
FAR = "x: float64[2, 3]\ns = swish(x)\nn = neg(s)\n"
KNOWN = ROOT / "rules" / "bugs" / "onnxruntime" / "gemm_transpose.rules"
NARROW = """\
/// The clip's rule, but for float32, so that it is only near.
pattern clip_of_float32 "relu, clip in float32" {
    bug: "a/b#1"
    target: onnxruntime
    symptom: crash_at_load
    r = relu(x)
    c = clip(r, ...)
    where x.dtype == float32
}
"""
TEXTS = (TRANSPOSED, CLIPPED, TRANSPOSED, FAR, TRANSPOSED)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    shutil.copy(KNOWN, folder)
    (folder / "narrow.rules").write_text(NARROW)
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, rules: Path) -> Path:
    """A run that found a known defect three times and two new ones."""
    path = tmp_path_factory.mktemp("run") / "run"
    target = parse_target("onnxruntime")
    known = Known("onnxruntime", "1.27.0", (rules,), (("provider", "cpu"),))
    bench = FuzzBench(Fuzzing(target, Texts(TEXTS), Judging(0), known))
    run_info = info(versions={"onnxruntime": "1.27.0", "machine": "Linux x86_64"})
    writer = RunWriter.create(path, run_info)
    try:
        for tested in bench.run(range(len(TEXTS))):
            confirmation = bench.confirm(tested, 1)
            files = finding_files(tested, run_info, target, confirmation)
            writer.add(tested.record, files, confirmation)
        writer.commit()
    finally:
        writer.close()
        bench.close()
    return path


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Iterator[Path]:
    copy = tmp_path / "run"
    shutil.copytree(kept, copy)
    yield copy


def listed(run: Path, rules: Path) -> list[Item]:
    return items(Run.open(run), load_rules([rules]), "onnxruntime")


def test_the_newest_comes_first_and_the_known_last(kept: Path, rules: Path) -> None:
    found = listed(kept, rules)
    assert [item.finding.index for item in found] == [3, 1, 0]
    assert [item.is_new for item in found] == [True, True, False]
    assert [item.defect.count for item in found] == [1, 1, 3]


def test_a_near_rule_says_which_condition_fails(kept: Path, rules: Path) -> None:
    far, near, known = listed(kept, rules)
    assert far.nearest == ()
    (rule,) = near.nearest
    assert rule.rule == "clip_of_float32" and rule.certainty is Truth.NO
    assert "float32" in rule.why and 0 < rule.distance < 1
    assert known.nearest[0].certainty is Truth.YES


@pytest.mark.parametrize("asked", ["²", "9" * 5000, "-1", "", "D"])
def test_what_names_no_finding_picks_none(kept: Path, rules: Path, asked: str) -> None:
    assert pick(listed(kept, rules), asked) is None


@pytest.mark.parametrize("asked", ["D2", "00000001", "1"])
def test_a_finding_is_picked_by_any_of_its_names(kept: Path, rules: Path, asked: str) -> None:
    one = pick(listed(kept, rules), asked)
    assert one is not None and one.finding.index == 1


def test_a_report_says_what_a_maintainer_needs(kept: Path, rules: Path) -> None:
    known = listed(kept, rules)[2]
    report = bug_report(known, "onnxruntime")
    assert report.project == "microsoft/onnxruntime"
    for heading in ("Describe the issue", "To reproduce", "Urgency", "Platform", "Architecture"):
        assert f"### {heading}\n" in report.text
    assert "disabled_optimizers=['GemmTransposeFusion']" in report.text
    assert "tolerance of output 0" in report.text and "error against float64" in report.text
    assert "1.27.0" in report.text and "import onnxruntime as ort" in report.text
    difference = known.detail.evidence["differences"][0]
    assert f"`{difference['expected']}`" in report.text
    assert f"`{difference['actual']}`" in report.text


@pytest.mark.parametrize(
    ("target", "heading", "prefix"),
    [
        ("inductor", "🐛 Describe the bug", "[Inductor] "),
        ("tvm", "Expected behavior", "[Bug] "),
        ("tvm-cuda-compile", "Steps to reproduce", "[Bug] "),
        ("elsewhere", "What should happen", ""),
    ],
)
def test_each_project_gets_its_own_form(
    kept: Path, rules: Path, target: str, heading: str, prefix: str
) -> None:
    report = bug_report(listed(kept, rules)[1], target)
    assert f"### {heading}\n" in report.text
    assert report.title.startswith(prefix)
    assert report.text.startswith(f"# {report.title}\n")


def test_without_a_terminal_every_new_defect_gets_a_report(
    reprise: Command, run: Path, rules: Path
) -> None:
    done = reprise("triage", run, "--rules", rules, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "2 reports written; 0 new defects left" in done.stdout
    folder = run / "reports" / "00000001"
    text = (folder / "report.md").read_text()
    assert "FuseReluClip" in text
    assert alone(folder / "repro.py").returncode == 1  # what is attached shows it
    again = reprise("triage", run, "--rules", rules, stdin=subprocess.DEVNULL)
    assert "0 reports written" in again.stdout and "D2" not in again.stdout
    # the store is as it was, and can still be read
    assert len(Run.open(run).defects) == 3


def test_a_reduced_version_is_what_is_reported(run: Path, rules: Path) -> None:
    finding = run / "findings" / "00000001"
    small = finding / "reduced"
    shutil.copytree(finding, small)
    (small / "program.uir").write_text(CLIPPED.replace("[4]", "[1]"))
    item = pick(listed(run, rules), "1")
    assert item is not None and item.is_reduced
    report = bug_report(item, "onnxruntime")
    assert "float64[1]" in report.text and "was not reduced" not in report.text
    (small / "finding.json").write_text("{")
    item = pick(listed(run, rules), "1")
    assert item is not None and not item.is_reduced  # a damaged one is not used


def test_decisions_are_kept_and_skipping_is_none(run: Path) -> None:
    decisions = Decisions(run)
    decisions.decide("pass:A", Decided(Decision.KNOWN, "00000001", "a/b#1"))
    decisions.decide("pass:B", Decided(Decision.SKIP, "00000002"))
    again = Decisions(run)
    assert again["pass:A"].note == "a/b#1" and again["pass:A"].when
    assert not again.is_open("pass:A")
    assert again.is_open("pass:B") and again.is_open("pass:C")


def test_a_report_that_was_asked_for_is_a_decision(
    reprise: Command, run: Path, rules: Path
) -> None:
    done = reprise("triage", run, "--rules", rules, "--finding", "D2", stdin=subprocess.DEVNULL)
    assert "1 report written; 1 new defect left" in done.stdout
    assert [one.decision for one in Decisions(run).values()] == [Decision.REPORT]


@pytest.mark.parametrize(
    "evidence", [{"ablation": 5}, {"differences": [[]]}, {"ablation": {"cures": 7}}]
)
def test_evidence_of_other_types_is_damage(
    run: Path, rules: Path, evidence: dict[str, object]
) -> None:
    path = run / "findings" / "00000001" / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "evidence": evidence}))
    triage = Triage(Decisions(run), "onnxruntime", run / "reports")
    with pytest.raises(StoreError, match="damaged"):
        triage.go(listed(run, rules), report_all_new, Quiet())


class Quiet:
    """Shows nothing."""

    def show(self, lines: Sequence[str], /) -> None: ...


@pytest.mark.parametrize("text", ["[" * 99999, "[]", "", "9" * 5000])
def test_what_is_no_decision_file_is_damage(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreError, match="damaged"):
        Decisions(tmp_path)


def test_a_damaged_decision_file_is_said(reprise: Command, run: Path) -> None:
    (run / FILE).write_text('{"version": 1, "decisions": {"x": {"decision": "perhaps"}}}')
    done = reprise("triage", run)
    assert done.returncode == 2 and "triage.json: damaged" in done.stderr


def test_mistakes_are_said(reprise: Command, run: Path, tmp_path: Path) -> None:
    done = reprise("triage", run, "--finding", "77")
    assert done.returncode == 2 and "D1" in done.stderr
    done = reprise("triage", tmp_path)
    assert done.returncode == 2 and "no run" in done.stderr


def test_a_person_is_asked_at_a_terminal(run: Path, rules: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "reprise", "triage", str(run), "--rules", str(rules)]
    asked = {**environment(), "TERM": "dumb"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=asked, cwd=run
    ) as process:
        os.close(theirs)
        os.write(ours, b"n\nrounding\ns\nq\n")
        said = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            said += data
        assert process.wait(60) == 1  # one new defect was skipped
    os.close(ours)
    assert b"not a bug" in said and b"1 new defect left" in said
    made = json.loads((run / FILE).read_text())["decisions"]
    assert [(d["decision"], d["note"]) for d in made.values()] == [("not_a_bug", "rounding")]


def test_a_severe_defect_comes_before_a_minor_one(kept: Path, rules: Path) -> None:
    from reprise.oracle.verdict import Severity

    far, near, _ = listed(kept, rules)
    minor = replace(
        far,
        defect=replace(
            far.defect,
            signatures=tuple(replace(s, severity=Severity.LOW) for s in far.defect.signatures),
        ),
    )
    assert min([minor, near], key=lambda item: item.novelty) is near
