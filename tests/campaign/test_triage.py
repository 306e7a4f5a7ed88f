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
from reprise.campaign.records import Record, StoreError
from reprise.campaign.report.summary import Report
from reprise.campaign.store import Run
from reprise.campaign.triage.bugreport import bug_report
from reprise.campaign.triage.decisions import FILE, Decided, Decision, Decisions
from reprise.campaign.triage.novelty import Item, Listing
from reprise.campaign.triage.session import Triage, report_all_new, shown
from reprise.campaign.writer import RunWriter
from reprise.lang.ruleset import load_rules, load_text
from reprise.oracle.verdict import Verdict
from reprise.patterns.truth import Truth
from reprise.targets.discover import parse_target
from tests.campaign.reported import run as reported
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
TARGET = parse_target("onnxruntime")
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
            confirmation, _ = bench.confirm(tested, 1)
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
    return listing(run, rules).items


def listing(run: Path, rules: Path) -> Listing:
    return Listing(Run.open(run), load_rules([rules]), "onnxruntime")


@pytest.mark.slow
def test_the_newest_comes_first_and_the_known_last(kept: Path, rules: Path) -> None:
    found = listed(kept, rules)
    assert [item.finding.index for item in found] == [3, 1, 0]
    assert [item.is_new for item in found] == [True, True, False]
    assert [item.defect.count for item in found] == [1, 1, 3]


@pytest.mark.slow
def test_a_near_rule_says_which_condition_fails(kept: Path, rules: Path) -> None:
    far, near, known = listed(kept, rules)
    assert far.nearest == ()
    (rule,) = near.nearest
    assert rule.rule == "clip_of_float32" and rule.certainty is Truth.NO
    assert "float32" in rule.why and 0 < rule.distance < 1
    assert known.nearest[0].certainty is Truth.YES


@pytest.mark.parametrize("asked", ["²", "9" * 5000, "-1", "", "D"])
def test_what_names_no_finding_picks_none(kept: Path, rules: Path, asked: str) -> None:
    assert listing(kept, rules).pick(asked) is None


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["4", "00000002"])
def test_any_finding_of_a_defect_is_written_up(kept: Path, rules: Path, asked: str) -> None:
    """Not only the one that stands for the defect."""
    assert [item.finding.index for item in listed(kept, rules)] == [3, 1, 0]
    one = listing(kept, rules).pick(asked)
    assert one is not None and one.finding.index == int(asked)
    assert one.folder.name == f"{one.finding.index:08d}" and one.defect.id == "D1"


@pytest.mark.parametrize("asked", ["D2", "00000001", "1"])
def test_a_finding_is_picked_by_any_of_its_names(kept: Path, rules: Path, asked: str) -> None:
    one = listing(kept, rules).pick(asked)
    assert one is not None and one.finding.index == 1


def test_a_report_says_what_a_maintainer_needs(kept: Path, rules: Path) -> None:
    known = listed(kept, rules)[2]
    report = bug_report(known, TARGET)
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
    report = bug_report(listed(kept, rules)[1], replace(TARGET, name=target))
    assert f"### {heading}\n" in report.text
    assert report.title.startswith(prefix)
    assert report.text.startswith(f"# {report.title}\n")


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_reduced_version_is_what_is_reported(run: Path, rules: Path) -> None:
    finding = run / "findings" / "00000001"
    small = finding / "reduced"
    shutil.copytree(finding, small)
    (small / "program.uir").write_text(CLIPPED.replace("[4]", "[1]"))
    item = listing(run, rules).pick("1")
    assert item is not None and item.is_reduced
    report = bug_report(item, TARGET)
    assert "float64[1]" in report.text and "was not reduced" not in report.text
    assert item.is_new
    described = json.loads((small / "finding.json").read_text())
    (small / "finding.json").write_text(json.dumps({**described, "rule": "clip_of_float64"}))
    item = listing(run, rules).pick("1")
    assert item is not None and not item.is_new  # a rule matches what is left of it
    assert "known: clip_of_float64" in next(shown(item))
    assert [r.known_as for r in Report(Run.open(run)).defects].count("clip_of_float64") == 1
    (small / "finding.json").write_text("{")
    item = listing(run, rules).pick("1")
    assert item is not None and not item.is_reduced  # a damaged one is not used


def test_decisions_are_kept_and_skipping_is_none(run: Path) -> None:
    decisions = Decisions(run)
    decisions.decide("pass:A", Decided(Decision.KNOWN, "00000001", "a/b#1"))
    decisions.decide("pass:B", Decided(Decision.SKIP, "00000002"))
    again = Decisions(run)
    assert again["pass:A"].note == "a/b#1" and again["pass:A"].when
    assert not again.is_open("pass:A")
    assert again.is_open("pass:B") and again.is_open("pass:C")


@pytest.mark.slow
def test_a_report_that_was_asked_for_is_a_decision(
    reprise: Command, run: Path, rules: Path
) -> None:
    done = reprise("triage", run, "--rules", rules, "--finding", "D2", stdin=subprocess.DEVNULL)
    assert "1 report written; 1 new defect left" in done.stdout
    (made,) = Decisions(run).values()
    assert made.decision is Decision.REPORT
    assert made.report == "reports/00000001/report.md"  # wherever the run is moved to


def test_a_report_elsewhere_is_kept_whole(tmp_path: Path) -> None:
    decisions = Decisions(tmp_path / "run")
    assert decisions.as_kept(tmp_path / "b" / "report.md") == str(tmp_path / "b" / "report.md")


def described(item: Item, evidence: dict[str, object], **raw: object) -> Item:
    """The item with another description."""
    detail = replace(item.detail, evidence=evidence, raw={**item.detail.raw, **raw})
    return replace(item, detail=detail)


ANSWERED = {"ended": "answered", "failures": {}}
DIED = {"ended": "died", "failures": {}}


@pytest.mark.parametrize(
    ("evidence", "outcome", "where", "expected"),
    [
        ({"mode": "optimised"}, ANSWERED, "with optimisation, not without", "without"),
        ({"mode": "unoptimised"}, ANSWERED, "without optimisation, not with it", "with"),
        (
            {"mode": "unoptimised", "also_fails_in": ["optimised"]},
            ANSWERED, "with optimisation and without", "",
        ),
        ({"mode": "optimised", "passes_in": ["unoptimised"]}, DIED, "not without", "without"),
        ({"mode": "unoptimised", "passes_in": ["optimised"]}, DIED, "not with it", "with"),
        ({"mode": "optimised"}, DIED, "(without it, it was not run)", ""),
    ],
)  # fmt: skip
def test_a_report_says_in_which_mode_it_fails(
    kept: Path, rules: Path, evidence: dict[str, object], outcome: object, where: str, expected: str
) -> None:
    crash = listed(kept, rules)[1]
    text = bug_report(described(crash, evidence, outcome=outcome), TARGET).text
    assert where in text
    said = f"It compiles and runs, as it does {expected} optimisation."
    assert said in text if expected else "It compiles and runs.\n" in text


@pytest.mark.slow
def test_nothing_is_said_of_modes_that_a_target_does_not_have(kept: Path, rules: Path) -> None:
    one_mode = replace(TARGET, name="tvm-cuda-compile", modes=("compiled",))
    text = bug_report(listed(kept, rules)[1], one_mode).text
    assert "optimisation" not in text


def test_only_outputs_that_differ_have_a_tolerance_that_is_exceeded(
    kept: Path, rules: Path
) -> None:
    wrong = listed(kept, rules)[2]
    (difference,) = wrong.detail.evidence["differences"]
    bounds = [{"absolute": 0.5 * n, "relative": 0.01, "strict_zero": False} for n in range(4)]
    for kind, rows in [("values", ["output 2"]), ("shape", [])]:
        other = {**difference, "output": 2, "kind": kind}
        item = described(wrong, {"differences": [other]}, tolerances=bounds)
        text = bug_report(item, TARGET).text
        assert [line[12:20] for line in text.splitlines() if "- tolerance" in line] == [
            f"of {row}"[:8] for row in rows
        ]
        assert ("1 absolute" in text) == bool(rows)


def flaky(run: Path, number: str, agreed: int) -> None:
    """Make a run's finding one that did not fail every time that it was run again."""
    path = run / "findings" / number / "finding.json"
    made = json.loads(path.read_text())
    made["confirmation"] = {"runs": 3, "agreed": agreed, "flaky": True}
    path.write_text(json.dumps(made))


@pytest.mark.parametrize("agreed", [0, 2])
def test_no_pass_is_blamed_for_what_comes_and_goes(run: Path, rules: Path, agreed: int) -> None:
    assert "FuseReluClip" in bug_report(listed(run, rules)[1], TARGET).title
    flaky(run, "00000001", agreed)
    item = listed(run, rules)[1]
    report = bug_report(item, TARGET)
    assert "FuseReluClip" not in report.title and "not every time" in report.title
    assert "is to blame" not in report.text and "cured without" not in report.text
    assert f"of 3 more runs, {agreed} came to the same" in report.text
    assert "FLAKY" in "".join(shown(item)) and "cured without" not in "".join(shown(item))


@pytest.mark.slow
def test_what_comes_and_goes_is_written_up_only_if_asked_for(
    reprise: Command, run: Path, rules: Path
) -> None:
    flaky(run, "00000001", 0)
    done = reprise("triage", run, "--rules", rules, "--yes", stdin=subprocess.DEVNULL)
    assert "1 report written; 1 new defect left (1 flaky: " in done.stdout
    assert done.returncode == 1 and not (run / "reports" / "00000001").exists()
    item = listing(run, rules).pick("1")
    assert item is not None
    path = Triage(Decisions(run), TARGET, run / "reports").report(item)
    assert path.parent.name == "00000001" and path.is_file()


@pytest.mark.parametrize(
    "evidence", [{"ablation": 5}, {"differences": [[]]}, {"ablation": {"cures": 7}}]
)
def test_evidence_of_other_types_is_damage(
    run: Path, rules: Path, evidence: dict[str, object]
) -> None:
    path = run / "findings" / "00000001" / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "evidence": evidence}))
    triage = Triage(Decisions(run), TARGET, run / "reports")
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


@pytest.mark.slow
def test_a_damaged_decision_file_is_said(reprise: Command, run: Path) -> None:
    (run / FILE).write_text('{"version": 1, "decisions": {"x": {"decision": "perhaps"}}}')
    done = reprise("triage", run)
    assert done.returncode == 2 and "triage.json: damaged" in done.stderr


@pytest.mark.slow
def test_mistakes_are_said(reprise: Command, run: Path, tmp_path: Path) -> None:
    done = reprise("triage", run, "--finding", "77")
    assert done.returncode == 2 and "D1" in done.stderr
    done = reprise("triage", tmp_path)
    assert done.returncode == 2 and "no run" in done.stderr


@pytest.mark.slow
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


def test_a_disagreement_with_the_reference_is_written_up_if_asked_for(tmp_path: Path) -> None:
    title = "all modes, output 0: 1 of 4 elements differ"
    record = Record(0, Verdict.REFERENCE_DISAGREEMENT, "reference | float32: relu(x)", title)
    found = Listing(Run.open(reported(tmp_path / "run", [record])), load_text(""), "onnxruntime")
    assert found.items == []
    item = found.pick("0")
    assert item is not None
    report = bug_report(item, TARGET)
    assert report.title.startswith("Result unlike numpy's: ")
    assert "THE REFERENCE MAY BE WRONG" in report.text
    assert "Expected (evaluated with numpy):" in report.text
