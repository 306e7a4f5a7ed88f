"""``reprise distill`` against ONNX Runtime, with a defect that ships in 1.27."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reprise.cli.main import run
from tests.conftest import ROOT, environment

pytest.importorskip("onnxruntime", "1.27")

PROGRAM = "x: float64[2, 3]\ny = swish(x)\n"


def reprise(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprise", *map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def distill(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    program = folder / "swish.uir"
    program.write_text(PROGRAM)
    out = folder / "out"
    return reprise(
        "distill", program, "--target", "onnxruntime", "--out", out, "--name", "found",
        "--neighbours", "0", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("distill")
    done = distill(path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
def test_the_rule_says_what_a_person_said(folder: Path) -> None:
    text = (folder / "out" / "found.rules").read_text()
    assert "n1 = swish(x1)" in text
    assert "where not constant(x1), x1.dtype == float64" in text
    assert 'pass: "QuickGeluFusion"' in text
    assert "symptom: crash_at_load" in text


@pytest.mark.slow
def test_the_rule_passes_what_shipped_rules_must_pass(folder: Path) -> None:
    rule = folder / "out" / "found.rules"
    for command in (["lint"], ["fmt", "--check"], ["test"]):
        done = reprise("rules", *command, rule)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "untested" not in reprise("rules", "lint", rule).stderr


@pytest.mark.slow
def test_every_experiment_is_on_record(folder: Path) -> None:
    data = json.loads((folder / "out" / "distillation.json").read_text())
    assert data["complete"]
    assert data["fresh"]["tried"] >= 20
    assert data["fresh"]["triggered"] >= 0.95 * data["fresh"]["tried"]
    dtype = next(e for e in data["experiments"] if e["dimension"].startswith("element type"))
    assert not dtype["kept"]
    assert "not in float16, float32" in dtype["why"]
    assert dtype["samples"] == len(dtype["programs"])
    assert {c["condition"] for c in data["conditions"]} >= {"x1.dtype == float64"}
    assert "| element type of x1 |" in (folder / "out" / "distillation.md").read_text()


@pytest.mark.slow
def test_the_same_command_again_runs_nothing_twice(folder: Path) -> None:
    before = (folder / "out" / "found.rules").read_text()
    done = distill(folder)
    assert done.returncode == 0, done.stderr
    assert "0 programs, 0 runs" in done.stdout
    assert (folder / "out" / "found.rules").read_text() == before


@pytest.mark.slow
def test_a_spent_budget_keeps_a_rule_and_says_so(tmp_path: Path) -> None:
    done = distill(tmp_path, "--runs", "40", "--no-reduce")
    assert done.returncode == 0, done.stderr
    assert "not complete" in done.stdout
    assert reprise("rules", "test", tmp_path / "out" / "found.rules").returncode == 0
    assert "**Not complete**" in (tmp_path / "out" / "distillation.md").read_text()


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_before_there_is_a_rule_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kept: bool
) -> None:
    out = tmp_path / "out"

    def stopped(*_: object, **__: object) -> None:
        if kept:
            out.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("reprise.distill.distilling.distill_subject", stopped)
    program = tmp_path / "swish.uir"
    program.write_text(PROGRAM)
    assert run(["distill", str(program), "--target", "onnxruntime", "--out", str(out)]) == 130
    going_on = f"stopped before there was a rule; the same command goes on from {out}\n"
    assert capsys.readouterr().err == (going_on if kept else "reprise: interrupted\n")


@pytest.mark.slow
def test_a_program_that_does_not_fail_is_an_error_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "fine.uir"
    program.write_text("x: float32[2]\ny = abs(x)\n")
    done = reprise("distill", program, "--target", "onnxruntime", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "does not fail" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
