"""``reprise reduce`` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.distill import planted_target
from tests.distill.toys import FILE

PROGRAM = """
x: float64[6, 5]
a = abs(x)
r = relu(a)
e = exp(x)
c = clip(r, min=0.0, max=6.0)
s = add(c, e)
t = neg(s)
"""


def start(*arguments: object, seconds: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reprise", "reduce", *map(str, arguments)],
        env={**os.environ, "TOY_SECONDS": str(seconds)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: object) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.uir"
    path.write_text(PROGRAM)
    return path


def reduction(folder: Path) -> dict[str, object]:
    described: dict[str, object] = json.loads((folder / "reduction.json").read_text())
    return described


@pytest.mark.slow
def test_a_program_is_reduced_and_shown(file: Path) -> None:
    out = file.parent / "out"
    code, text, errors = run(file, "--target", FILE, "--out", out)
    assert code == 0, errors
    assert "= relu(" in text
    assert "= clip(" in text
    assert "6 nodes -> 2, 210 elements -> 3, in " in text
    assert "crash: fuse_relu_clip: optimised, compile: TypeError" in text
    described = reduction(out)
    assert described["minimal"] is True
    assert described["before"] == {"nodes": 6, "elements": 210}
    assert described["after"] == {"nodes": 2, "elements": 3}
    assert len((out / "trials.jsonl").read_text().splitlines()) > 3


@pytest.mark.slow
def test_the_folder_is_a_finding_with_a_script_that_runs_alone(file: Path) -> None:
    out = file.parent / "out"
    assert run(file, "--target", FILE, "--out", out)[0] == 0
    script = subprocess.run([sys.executable, "repro.py"], cwd=out, capture_output=True, timeout=60)
    assert script.returncode == 1, script.stderr
    code, text, errors = run(out)
    assert code == 0, errors
    assert "small already: 2 nodes, 3 elements" in text
    assert (out / "reduced" / "program.uir").read_text() == (out / "program.uir").read_text()


@pytest.mark.slow
def test_a_disagreement_with_the_reference_is_reduced_and_its_script_shows_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The planted target gives zeros in every mode.
    rule = 'pattern never "never" { symptom: crash_at_load; s = sinh(_) }'
    monkeypatch.setenv("PLANTED", rule)
    target = Path(planted_target.__file__)
    out = file.parent / "out"
    code, text, errors = run(file, "--target", target, "--out", out)
    assert code == 0, errors
    assert "reference disagreement: all modes, output 0: " in text
    with np.load(out / "expected.npz") as expected:
        assert np.count_nonzero(expected["0"]) > 0
    assert "6 nodes -> 1, " in text
    again = run(out, "--out", file.parent / "again")
    assert again[0] == 0, again[2]
    shown = subprocess.run([sys.executable, out / "repro.py"], capture_output=True, text=True)
    assert shown.returncode == 1, shown.stderr
    assert "optimised, output 0: " in shown.stdout


@pytest.mark.slow
def test_what_does_not_fail_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "fine.uir"
    path.write_text("x: float32[2]\ny = abs(x)\n")
    code, _, errors = run(path, "--target", FILE, "--out", tmp_path / "out")
    assert code == 2
    assert "does not fail on toy-compiler" in errors


@pytest.mark.slow
def test_a_folder_of_somebody_else_is_left_alone(file: Path) -> None:
    out = file.parent / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    code, _, errors = run(file, "--target", FILE, "--out", out)
    assert code == 2
    assert "is not empty and holds no reduction" in errors
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_bad_usage_is_exit_code_2(file: Path, tmp_path: Path) -> None:
    assert run(file, "--target", "nobody")[0] == 2
    assert run(file)[0] == 2
    assert run(tmp_path / "nothing.uir", "--target", FILE)[0] == 2


@pytest.mark.slow
def test_a_budget_leaves_a_program_that_is_not_minimal(file: Path) -> None:
    out = file.parent / "out"
    code, text, _ = run(file, "--target", FILE, "--out", out, "--runs", 4)
    assert code == 0
    assert "not minimal: the budget is spent" in text
    described = reduction(out)
    assert (described["minimal"], described["stop"]) == (False, "budget")
    code, text, _ = run(file, "--target", FILE, "--out", out)
    assert code == 0
    assert "not minimal" not in text
    assert reduction(out)["minimal"] is True


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far_and_the_same_command_goes_on(file: Path) -> None:
    straight, out = file.parent / "straight", file.parent / "out"
    assert run(file, "--target", FILE, "--out", straight)[0] == 0
    process = start(file, "--target", FILE, "--out", out, seconds=0.15)
    trials = out / "trials.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if trials.exists() and len(trials.read_text().splitlines()) >= 6:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "not minimal: stopped; the same command goes on from here" in text
    assert reduction(out)["stop"] == "interrupted"
    assert (out / "program.uir").exists()
    assert run(file, "--target", FILE, "--out", out)[0] == 0
    assert (out / "program.uir").read_text() == (straight / "program.uir").read_text()
    whole, resumed = reduction(straight), reduction(out)
    assert {**whole, "seconds": 0} == {**resumed, "seconds": 0}


@pytest.mark.slow
def test_operators_of_the_mined_signatures_that_ship_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", 'pattern planted "planted" { y = scan(...) }')
    file = tmp_path / "program.uir"
    file.write_text(
        "x: float32[6, 5]\na = abs(x)\ns: float32[5]\n"
        "y: float32[5], z: float32[6, 5] = onnx.Scan(s, a, s, num_scan_inputs=1, "
        'body="(s, e) => (t, o) { t = Add(s, e) o = Mul(t, x2) }")\nr = relu(z)\n'
    )
    code, text, errors = run(file, "--target", planted_target.__file__, "--out", tmp_path / "out")
    assert code == 0, errors
    assert "= onnx.Scan(" in text and "3 nodes -> 1" in text
