"""``reprise check`` as its user meets it: exit codes, formats, and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run, environment

RULE = """\
/// A value multiplied by itself.
pattern squared "a value multiplied by itself" {
    bug: "example/compiler#7"   target: tvm   affects: "<0.26"   advice: "use square"
    m = mul(x, x)
    where x.dim[0] >= 2
}
"""
MATCHING = "x: float32[4]\nm = mul(x, x)\n"
OTHER = "x: float32[4]\ny: float32[4]\nm = mul(x, y)\n"
OPEN = "x: float32[N]\nm = mul(x, x)\n"
NARROW = "x: float32[1]\nm = mul(x, x)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "r.rules": RULE,
        "matching.uir": MATCHING,
        "other.uir": OTHER,
        "open.uir": OPEN,
        "narrow.uir": NARROW,
        "broken.onnx": "this is no protobuf",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_match(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "matching.uir")
    assert done.returncode == 1
    for text in (
        "squared",
        "a value multiplied by itself",
        "<0.26",
        "use square",
        "example/compiler#7",
    ):
        assert text in done.stdout


def test_no_match(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "other.uir")
    assert done.returncode == 0
    assert done.stdout.startswith("1 model checked against 1 rule")
    assert done.stdout.endswith("no match.\n")


def test_a_possible_match_says_what_is_open(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "open.uir")
    assert done.returncode == 1
    assert "possible" in done.stdout
    assert "x.dim[0]" in done.stdout


def test_a_near_miss_says_what_failed(reprise: Run, folder: Path) -> None:
    assert "near miss" not in reprise("check", "--rules", "r.rules", "narrow.uir").stdout
    done = reprise("check", "--rules", "r.rules", "--near", "narrow.uir")
    assert done.returncode == 0
    assert "near miss" in done.stdout
    assert "x.dim[0] >= 2" in done.stdout


def test_many_places_of_a_rule_are_told_together(reprise: Run, folder: Path) -> None:
    lines = ["x: float32[4]", "y: float32[5]", *(f"m{i} = mul(x, x)" for i in range(8))]
    (folder / "many.uir").write_text("\n".join([*lines, "m8 = mul(y, y)"]))
    few = reprise("check", "--rules", "r.rules", "many.uir").stdout
    assert few.startswith("many.uir: 1 known bug in 9 places\n")
    assert "a value multiplied by itself, in 9 places" in few
    assert few.count("use square") == 1
    assert [f"m = m{i}" in few for i in range(9)] == [True] * 3 + [False] * 6
    assert "and 6 more (--all shows them)" in few
    assert few.endswith("9 matches in 1.\n")
    every = reprise("check", "--rules", "r.rules", "--all", "many.uir").stdout
    assert all(f"m = m{i}\n" in every for i in range(9))
    assert every.count("use square") == 1
    assert "more" not in every
    done = reprise("check", "--rules", "r.rules", "--format", "json", "many.uir")
    assert len(json.loads(done.stdout)["models"][0]["matches"]) == 9


def test_places_that_differ_say_how(reprise: Run, folder: Path) -> None:
    (folder / "v.rules").write_text(RULE.replace("where x.dim[0] >= 2", "where x.dim[0] == N"))
    (folder / "two.uir").write_text(
        "x: float32[4]\ny: float32[5]\nz: float32[K]\nw: float32[L]\n"
        "a = mul(x, x)\nb = mul(y, y)\nc = mul(z, z)\nd = mul(w, w)\n"
    )
    told = reprise("check", "--rules", "v.rules", "two.uir").stdout
    assert "two.uir: 1 known bug in 2 places, 1 possible in 2 places" in told
    assert "m = a (N = 4)" in told
    assert "m = b (N = 5)" in told
    for tensor in ("z", "w"):
        assert f"because `x.dim[0]`: dim({tensor}, 0) is not known" in told


def test_explain_shows_the_rule_s_lines(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "--explain", "matching.uir")
    assert "m = mul(x, x)" in done.stdout
    assert "where x.dim[0] >= 2" in done.stdout


def test_json(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "--format", "json", "matching.uir", "open.uir")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["version"] == 1
    certain, possible = report["models"]
    assert certain["path"] == "matching.uir"
    assert certain["matches"][0]["rule"] == "squared"
    assert certain["matches"][0]["certainty"] == "yes"
    assert set(certain["matches"][0]["nodes"]) == {"m"}
    assert possible["matches"][0]["certainty"] == "possible"
    assert certain["errors"] == report["rule_errors"] == report["errors"] == []


def test_a_target_s_version_selects_rules(reprise: Run, folder: Path) -> None:
    def code(target: str) -> int:
        return reprise("check", "--rules", "r.rules", "--target", target, "matching.uir").returncode

    assert code("tvm") == 1
    assert code("tvm==0.25.0") == 1
    assert code("tvm==0.27.0") == 0
    assert code("glow") == 2
    assert code("tvm==new") == 2


# --- bad input -------------------------------------------------------------------------------


def test_a_broken_model_does_not_stop_the_others(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", ".")
    assert done.returncode == 2
    assert "squared" in done.stdout
    assert "broken.onnx" in done.stdout
    report = json.loads(reprise("check", "--rules", "r.rules", "--format", "json", ".").stdout)
    errors = {model["path"]: model["errors"] for model in report["models"]}
    assert len(errors) == 5
    (message,) = errors["broken.onnx"]
    assert "\n" not in message["message"]


def test_many_models_at_a_time_give_the_same_report(reprise: Run, folder: Path) -> None:
    one = reprise("check", "--rules", "r.rules", "--format", "json", ".")
    two = reprise("check", "--rules", "r.rules", "--format", "json", "--jobs", "2", ".")
    assert one.stdout == two.stdout


def test_a_time_that_is_none_is_refused(reprise: Run, folder: Path) -> None:
    for seconds in ("nan", "inf", "-1"):
        done = reprise("check", "--rules", "r.rules", "--max-seconds", seconds, "other.uir")
        assert done.returncode == 2
        assert "'--max-seconds'" in done.stderr


def test_a_misspelt_environment_is_warned_of(reprise: Run, folder: Path) -> None:
    done = reprise("check", "--rules", "r.rules", "--env", "prvider=cpu", "other.uir")
    assert done.returncode == 0
    assert "warning: --env prvider: " in done.stderr
    assert "`provider`" in done.stderr


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_a_rule_error_is_never_hidden(reprise: Run, folder: Path, form: str) -> None:
    (folder / "bad.rules").write_text(RULE.replace("mul(", "mull("))
    done = reprise("check", "--rules", "bad.rules", "--format", form, "matching.uir")
    assert done.returncode == 2
    assert "mull" in done.stdout + done.stderr
    if form == "json":
        assert json.loads(done.stdout)["rule_errors"][0]["code"] == "unknown-operator"
    if form == "sarif":
        (invocation,) = json.loads(done.stdout)["runs"][0]["invocations"]
        assert invocation["executionSuccessful"] is False


@pytest.mark.parametrize("arguments", [["missing.onnx"], ["*.nothing"], []])
def test_a_model_that_is_not_there(reprise: Run, folder: Path, arguments: list[str]) -> None:
    done = reprise("check", "--rules", "r.rules", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 4


def test_a_uir_file_with_a_mistake(reprise: Run, folder: Path) -> None:
    (folder / "bad.uir").write_text("x: float32[4]\ny = mull(x, x)\n")
    done = reprise("check", "--rules", "r.rules", "bad.uir")
    assert done.returncode == 2
    assert "mull" in done.stdout + done.stderr
    assert "internal fault" not in done.stderr


# --- speed -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_check_starts_without_heavy_imports(folder: Path) -> None:
    code = (
        "import sys; from reprise.cli.main import run;"
        "run(['check', '--rules', 'r.rules', 'other.uir']); print(sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    for module in ("torch", "tvm", "z3", "onnxruntime", "matplotlib"):
        assert f"'{module}'" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "sarif"])
def test_an_interrupt_leaves_a_whole_document_of_what_was_checked(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    from reprise.cli.main import run
    from reprise.patterns.check import Checker, ModelReport

    look = Checker.check

    def interrupted(self: Checker, path: Path) -> ModelReport:
        if path.name == "other.uir":
            raise KeyboardInterrupt
        return look(self, path)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Checker, "check", interrupted)
    arguments = ["check", "--rules", "r.rules", "--format", form, "matching.uir", "other.uir"]
    assert run(arguments) == 130
    document = json.loads(capsys.readouterr().out)
    if form == "json":
        assert [m["path"] for m in document["models"]] == ["matching.uir"]
        assert document["errors"] == ["interrupted: 1 model checked"]
    else:
        (ran,) = document["runs"]
        assert [result["ruleId"] for result in ran["results"]] == ["squared"]
        assert ran["invocations"][0]["executionSuccessful"] is False


def test_rules_that_run_away_before_any_model_are_told_as_such(
    reprise: Run, tmp_path: Path
) -> None:
    (tmp_path / "r.rules").write_text(
        'up(0).\nup(M) :- up(N), M == N + 1.\ndeny endless(N) "n {N}" :- up(N).\n'
    )
    (tmp_path / "m.uir").write_text("x: float32[2]\ny = relu(x)\n")
    rules, model = tmp_path / "r.rules", tmp_path / "m.uir"
    options = ("--max-rows", "1000", "--format", "json")
    done = reprise("check", "--rules", rules, *options, model)
    assert done.returncode == 2
    (error,) = json.loads(done.stdout)["errors"]
    assert error.startswith("stopped, because the rules derived more than 1,000 facts")
    done = reprise("check", "--rules", rules, "--max-rows", "1000", model)
    assert "most of it was `up`; raise --max-rows" in done.stderr
