"""`reprise gen`: files that are the same whoever writes them, and witnesses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest

from reprise.cli.output import counting
from tests.conftest import ROOT, environment
from tests.forking import forked


def reprise(*arguments, cwd=ROOT):
    return forked(list(map(str, arguments)), cwd, environment(), 300)


def fresh(*arguments):
    """In an interpreter of its own, where strings hash in another way."""
    return subprocess.run(
        [sys.executable, "-m", "reprise", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_the_programs_do_not_depend_on_the_number_of_processes(tmp_path):
    common = ("gen", "--tests", 24, "--seed", 5, "--no-guidance", "--emit", "onnx")
    one = reprise(*common, "--out", tmp_path / "one")
    two = fresh(*common, "--jobs", 2, "--out", tmp_path / "two")
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    files = contents(tmp_path / "one")
    assert files == contents(tmp_path / "two")
    assert len([name for name in files if name.endswith(".onnx")]) == 24
    model = onnx.load_from_string(files["s5-000003.onnx"])
    onnx.checker.check_model(model, full_check=True)
    inputs = np.load(tmp_path / "one" / "s5-000003.npz")
    assert {i.name for i in model.graph.input} == set(inputs)


@pytest.mark.slow
def test_a_folder_is_completed(tmp_path):
    common = ("gen", "--seed", 5, "--no-guidance", "--nodes", 3)
    fresh(*common, "--tests", 6, "--out", tmp_path / "whole")
    reprise(*common, "--tests", 3, "--out", tmp_path / "part")
    again = reprise(*common, "--tests", 6, "--out", tmp_path / "part")
    assert "3 programs written" in again.stdout
    assert "(3 were there)" in again.stdout
    assert contents(tmp_path / "whole") == contents(tmp_path / "part")


def test_a_slow_step_says_how_far_it_is_where_there_is_no_terminal(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("reprise.cli.output.time.monotonic", lambda: clock[0])
    with counting(30, "test") as done:
        for number in (1, 2, 3):
            clock[0] += 6
            done(number)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "2 tests of 30\n")


@pytest.mark.slow
def test_a_folder_of_another_request_is_left_alone(tmp_path):
    reprise("gen", "--tests", 2, "--no-guidance", "--out", tmp_path / "x")
    other = reprise("gen", "--tests", 2, "--seed", 9, "--no-guidance", "--out", tmp_path / "x")
    assert other.returncode == 2
    assert "another request" in other.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    other = reprise("gen", "--tests", 2, "--out", tmp_path / "mine")
    assert other.returncode == 2
    assert "other files" in other.stderr


def test_a_witness_matches_its_rule(tmp_path):
    made = reprise("gen", "--witness", "ort_24158", "--emit", "onnx", "--out", tmp_path)
    assert made.returncode == 0, made.stderr
    checked = reprise("check", tmp_path / "ort_24158.onnx", "--target", "onnxruntime")
    assert checked.returncode == 1
    assert "ort_24158" in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--witness", "ort_2415"], "did you mean"),
        (["--tests", "3"], "--out"),
        (["--out", "x", "--ops", "softmacks"], "softmacks"),
        (["--out", "x", "--dtypes", "float31"], "float31"),
        (["--out", "x", "--nodes", "0"], "nodes"),
        (["--out", "/dev/null/x", "--tests", "1"], "/dev/null"),
    ],
)
def test_bad_requests_are_told(tmp_path, arguments, message):
    told = reprise("gen", *arguments, cwd=tmp_path)
    assert told.returncode == 2
    assert message in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.slow
def test_a_rule_without_a_witness_says_where_it_fails(tmp_path):
    rules = tmp_path / "mine.rules"
    rules.write_text(
        'pattern p "seven times the extent and three more" {\n'
        "    target: test\n    r = relu(_)\n"
        "    where r.rank == 1, r.numel == 7 * r.dim[0] + 3\n}\n"
    )
    told = reprise("gen", "--witness", "p", "--rules", rules)
    assert told.returncode == 1
    assert "no program matches `p`" in told.stderr


@pytest.mark.slow
def test_the_opset_is_that_of_the_models(tmp_path):
    common = ("gen", "--tests", 6, "--nodes", 3, "--no-guidance", "--emit", "onnx")
    new = reprise(*common, "--ops", "bitcast,swish", "--opset", 26, "--out", tmp_path / "new")
    assert new.returncode == 0, new.stderr
    models = [onnx.load(path) for path in sorted((tmp_path / "new").glob("*.onnx"))]
    assert [model.opset_import[0].version for model in models] == [26] * 6
    for model in models:
        onnx.checker.check_model(model, full_check=True)
    made = {node.op_type for model in models for node in model.graph.node}
    assert {"BitCast", "Swish"} <= made  # ONNX has them from opsets 26 and 24 on
    old = reprise(*common, "--ops", "swish,relu", "--opset", 13, "--out", tmp_path / "old")
    assert old.returncode == 0, old.stderr
    for path in (tmp_path / "old").glob("*.onnx"):
        model = onnx.load(path)
        assert model.opset_import[0].version == 13
        assert "Swish" not in {node.op_type for node in model.graph.node}
