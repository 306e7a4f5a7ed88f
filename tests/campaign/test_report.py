"""What a report says of a run: ranking and figures, whatever texts the run holds."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from reprise.campaign.learned import LearnedRules, Lesson
from reprise.campaign.records import Confirmation, End, Record
from reprise.campaign.report.document import document
from reprise.campaign.report.figures import EXPLAINED, figures
from reprise.campaign.report.page import page
from reprise.campaign.report.summary import Report, in_line, plain
from reprise.campaign.report.text import console, show
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Severity, Verdict
from tests.campaign.reported import counted, defect, files, run
from tests.campaign.runs import info
from tests.conftest import ROOT


def report(path: Path) -> Report:
    return Report(Run.open(path))


def text(path: Path, monkeypatch: pytest.MonkeyPatch, columns: int = 120) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    show(report(path), console(stream))
    return stream.getvalue()


def test_the_most_reported_defect_comes_first(tmp_path: Path) -> None:
    path = run(tmp_path / "r", counted({"few": 2, "many": 9, "some": 5}, 100))
    found = document(report(path))
    assert [d["count"] for d in found["defects"]] == [9, 5, 2]
    assert [d["id"] for d in found["defects"]] == ["D2", "D3", "D1"]  # ids: in order of meeting


@pytest.mark.slow
def test_what_to_look_at_first_is_new_and_matters(tmp_path: Path) -> None:
    low = Record(7, Verdict.WRONG_RESULT, "zero", "sign of zero", severity=Severity.LOW)
    records = [defect(i, "known", "ort_32228") for i in range(7)] + [low, defect(8, "new")]
    found = report(run(tmp_path / "r", records)).top(3)
    assert [r.defect.title for r in found] == ["crash new", "sign of zero", "crash known"]


def test_the_json_adds_up(tmp_path: Path) -> None:
    path = run(tmp_path / "r", counted({"a": 4, "rule:ort_32228": 6}, 50, ort_24158=3))
    found = json.loads(json.dumps(document(report(path))))
    assert sum(found["verdicts"].values()) == found["tests"] == 50
    assert found["verdicts"]["crash"] == sum(d["count"] for d in found["defects"]) == 10
    assert set(found["verdicts"]) == {v.value for v in Verdict}
    assert found["suppressed"] == {"ort_24158": 3}
    known = found["defects"][0]
    assert (known["known_rule"], known["bugs"][0]) == ("ort_32228", "microsoft/onnxruntime#32228")
    assert found["metrics"]["reports"] == 10
    assert found["metrics"]["repeats"] == 8
    assert found["metrics"]["weighted_redundancy"] == pytest.approx((16 + 36) / 10)
    assert (path / known["folder"] / "finding.json").is_file()
    assert known["command"] == f"python {path / known['folder'] / 'repro.py'}"


def test_a_run_without_findings_or_tests_can_be_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(tmp_path / "r", [])
    assert document(report(path))["metrics"]["weighted_redundancy"] is None
    assert "No finding." in text(path, monkeypatch)


def test_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    path = run(tmp_path / "r", [Record(0, Verdict.OK)], end=End.RUNNING)
    assert report(path).state == "running, or killed"


def test_the_text_has_the_figures_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(tmp_path / "r", counted({"rule:ort_32228": 216, "b": 36, "c": 2}, 300, ort_24158=7))
    said = text(path, monkeypatch)
    for part in ("254", "188.8", "1.35", "74.2%", "85.0%", "ort_32228", "ort_24158", "repro.py"):
        assert part in said


def test_a_narrow_terminal_loses_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run(tmp_path / "r", counted({"a": 216, "b": 36, "c": 2}, 300))
    said = text(path, monkeypatch, columns=40)
    for part in ("254", "251", "188.8", "74.2%", "216"):
        assert part in said


def test_hostile_texts_cannot_steer_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "\x1b]0;owned\x07 \u202e[red]markup[/red]\r\n x"
    path = run(tmp_path / "r", [defect(0, hostile, title=hostile), defect(1, "b", "ru\x1ble")])
    said = text(path, monkeypatch)
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(said)
    assert "[red]" in said  # shown, not obeyed


@pytest.mark.parametrize("damage", ["gone", "cut", "odd", "evidence"])
def test_a_damaged_finding_is_told_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    path = run(tmp_path / "r", [defect(0, "a"), defect(1, "b")])
    folder = path / "findings" / "00000000"
    if damage == "gone":
        shutil.rmtree(folder)
    else:
        whole = json.loads((folder / "finding.json").read_text())
        texts = {
            "cut": '{"id": ',
            "odd": '{"id": 1}',
            "evidence": json.dumps({**whole, "evidence": [1]}),
        }
        (folder / "finding.json").write_text(texts[damage])
    found = document(report(path))
    assert [d["count"] for d in found["defects"]] == [1, 1]
    assert "repro.py" in text(path, monkeypatch)
    assert page(report(path)).count("<article") == 2


def test_of_several_findings_a_sure_one_is_shown(tmp_path: Path) -> None:
    path = run(tmp_path / "r", [defect(i, "a") for i in range(3)])
    (path / "findings" / "00000001" / "program.uir").write_text("x: float32[1]\n")
    (shown,) = report(path).defects
    assert shown.finding is not None
    assert shown.finding.index == 1  # the shortest


def test_a_crash_is_told_without_folders_and_codes() -> None:
    said = (
        "compile: Fail: [ONNXRuntimeError] : 1 : FAIL : Exception during initialization: "
        "/onnxruntime_src/core/lrn.h:23 size_ % 2 == 1 was false. https://a.b/c/d"
    )
    assert plain(said) == "compile: Fail: lrn.h:23 size_ % 2 == 1 was false. https://a.b/c/d"


def test_a_line_is_cut_at_its_end() -> None:
    assert in_line("what\nfailed " + "x" * 100, 30) == "what failed " + "x" * 17 + "…"
    assert in_line("y" * 50, 50) == "y" * 50


@pytest.mark.parametrize(
    ("said", "plainly"),
    [
        (
            "Non-zero status code returned while running Resize node. Name:'n3' Status Message: "
            "/onnxruntime_src/include/onnxruntime/core/framework/tensor.h:210 T* "
            "onnxruntime::Tensor::MutableData() [with T = float] utils::IsPrimitiveDataType<T>"
            "(dtype_) was false. T !=N11onnxruntime17PrimitiveDataTypeIiEE",
            "Resize: tensor.h:210 utils::IsPrimitiveDataType<T>(dtype_) was false. "
            "T !=PrimitiveDataType",
        ),
        (
            "/onnxruntime_src/core/optimizer/relu_clip_fusion.cc:83 virtual "
            "onnxruntime::common::Status onnxruntime::FuseReluClip::Apply(onnxruntime::Graph&, "
            "const onnxruntime::logging::Logger&) const Unexpected data type for Clip 'min' of 6",
            "relu_clip_fusion.cc:83 Unexpected data type for Clip 'min' of 6",
        ),
        ("NCHW (N1E, NONE) fails at a.cc:3 (x) y", "NCHW (N1E, NONE) fails at a.cc:3 (x) y"),
    ],
)  # fmt: skip
def test_declarations_and_mangled_names_are_left_out(said: str, plainly: str) -> None:
    assert plain(said) == plainly


@pytest.mark.slow
def test_a_defect_that_the_run_learned_is_named_after_its_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(tmp_path / "r", [defect(0, "pass:X"), defect(1, "boom")])
    for since in (1, 2):
        LearnedRules.of(path).add(Lesson(f"rule_{since}", "pass:X", "set nothing = {}\n"), since)
    found = document(report(path))
    assert [d["learned_rules"] for d in found["defects"]] == [["rule_1", "rule_2"], []]
    rows = [line for line in text(path, monkeypatch).splitlines() if line.startswith("D")]
    assert "new, rule_1 and 1 more" in rows[0] and "rule_1" not in rows[1]
    assert "new, rule_1 and 1 more" in page(report(path))


def test_a_headline_blames_no_pass_for_what_comes_and_goes(tmp_path: Path) -> None:
    for agreed in (3, 0):
        path = tmp_path / str(agreed)
        writer = RunWriter.create(path, info())
        record = Record(0, Verdict.WRONG_RESULT, "pass:A+B", "A + B: output 0 differs")
        writer.add(record, files(record), Confirmation(3, agreed))
        writer.commit()
        writer.close()
        (ranked,) = report(path).defects
        assert ranked.headline == ("output 0 differs" if agreed == 0 else record.title)


def test_every_symbol_of_a_table_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(tmp_path / "r", [defect(0, "boom")])
    (line,) = [line for line in text(path, monkeypatch).splitlines() if EXPLAINED in line]
    explained = (ROOT / EXPLAINED).read_text("utf-8")
    for figure in figures(Run.open(path).redundancy):
        assert (figure.symbol in line) == (figure.symbol in ("B", "U", "B−U"))
        assert f"| {figure.symbol} |" in explained
