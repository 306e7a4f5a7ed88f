"""``reprise regress`` on a target whose bug is known: what fires, what is fixed, what differs, what
a near miss says of its rule, and that it goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run, environment

TARGET = ROOT / "tests" / "campaign" / "regress_target.py"
RULES = """\
/// The optimiser adds one to a relu.
pattern adds_one "relu of float32" {
    target: faulty
    affects: "<=1.0"
    symptom: wrong_result
    pass: "AddOne"
    r = relu(x)
    where x.dtype == float32, graph_input(x)
}
test adds_one {
    match { x: float32[2, 3]; r = relu(x) }
    match "elsewhere" { env(provider, cuda); x: float32[2]; r = relu(x) }
    no_match { x: float64[2, 3]; r = relu(x) }
    no_match "a sigmoid" { x: float32[2]; r = sigmoid(x) }
}

/// Too narrow: rank 1 only; its second near miss fires.
pattern adds_one_rank_1 "relu of a vector" {
    target: faulty
    affects: "<=3.0"
    symptom: wrong_result
    pass: "RemoveNothing"
    r = relu(x)
    where x.rank == 1, x.dtype == float32, graph_input(x)
}
test adds_one_rank_1 {
    match { x: float32[3]; r = relu(x) }
    no_match { x: float64[3]; r = relu(x) }
}

/// Nothing of the kind.
pattern no_bug "sigmoid" {
    target: faulty
    affects: "==1.0"
    symptom: wrong_result
    r = sigmoid(_)
}
test no_bug {
    match { x: float32[3]; r = sigmoid(x) }
}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "a.rules"
    file.write_text(RULES)
    return file


def measured(
    reprise: Run, rules: Path, *options: str, version: str = "1"
) -> tuple[int, dict[str, dict[str, object]]]:
    done = reprise(
        "regress", "--target", str(TARGET), "--rules", str(rules), "--format", "json", "--fresh",
        "1", *options, env={**environment(), "DEFECT_VERSION": version},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    cells = json.loads(done.stdout)["cells"]
    return done.returncode, {cell["rule"]: cell for cell in cells}


@pytest.mark.slow
def test_the_matrix_says_what_the_target_does(reprise: Run, rules: Path) -> None:
    code, cells = measured(reprise, rules)
    assert {name: cell["state"] for name, cell in cells.items()} == {
        "adds_one": "fires",
        "adds_one_rank_1": "fires",
        "no_bug": "fixed",
    }
    assert code == 1  # no_bug is fixed in a version that its affects includes
    assert [name for name, cell in cells.items() if cell["contradicts"]] == ["no_bug"]
    first = cells["adds_one"]
    assert first["cures"] == ["AddOne"]
    assert first["left_out"] == ["needs provider = cuda"]
    fresh = [t for t in first["tried"] if t["kind"] == "fresh"]  # type: ignore[attr-defined]
    assert len(fresh) == 1 and "relu(" in fresh[0]["program"]


@pytest.mark.slow
def test_another_symptom_is_said_to_be_another(reprise: Run, rules: Path) -> None:
    code, cells = measured(reprise, rules, "--rule", "adds_one_rank_1", version="2")
    assert code == 1
    assert list(cells) == ["adds_one_rank_1"]
    assert cells["adds_one_rank_1"]["state"] == "fires differently"


@pytest.mark.slow
def test_update_writes_what_was_measured_and_formatted(reprise: Run, rules: Path) -> None:
    only = ("--rule", "adds_one_rank_1", "--update")
    code, _ = measured(reprise, rules, *only, version="3")
    assert code == 1
    assert rules.read_text() == RULES  # nowhere did it fire: perhaps the witnesses are at fault
    rules.write_text(RULES.replace('"<=3.0"', '"==0.5"'))
    code, _ = measured(reprise, rules, *only, version="1")
    assert code == 1
    assert rules.read_text() == RULES.replace('"<=3.0"', '">=0.5,<=1.0"')
    code, cells = measured(reprise, rules, *only, version="1")
    assert code == 0 and cells["adds_one_rank_1"]["state"] == "fires"


@pytest.mark.slow
def test_a_near_miss_that_fires_is_a_hint(reprise: Run, rules: Path) -> None:
    rules.write_text(RULES.replace("no_match { x: float64[3];", "no_match { x: float32[3, 1];"))
    done = reprise(
        "regress", "--target", str(TARGET), "--rules", str(rules), "--rule", "adds_one_rank_1",
        env={**environment(), "DEFECT_VERSION": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ablation blames AddOne, the rule RemoveNothing" in done.stdout
    assert "too narrow" not in done.stdout  # the other rule explains it
    alone = rules.read_text().partition("/// Too narrow")[2]
    rules.write_text(f"/// Too narrow{alone}".replace("RemoveNothing", "AddOne"))
    done = reprise("regress", "--target", str(TARGET), "--rules", str(rules))
    assert "adds_one_rank_1, faulty 1.0: the rule may be too narrow: no_match 2" in done.stdout


@pytest.mark.slow
def test_it_goes_on_where_it_was(reprise: Run, rules: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    first = measured(reprise, rules, *out)
    kept = tmp_path / "out" / "cells.jsonl"
    lines = kept.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    kept.write_text("".join(lines[:2]) + lines[2][:50])  # killed while it wrote the third
    assert measured(reprise, rules, *out) == first
    again = reprise("regress", "--target", str(TARGET), "--rules", str(rules), "--fresh", "1", *out)
    assert again.stderr.count("(kept)") == 3
    rules.write_text(RULES.replace("float32[2, 3]", "float32[3, 3]"))
    again = reprise("regress", "--target", str(TARGET), "--rules", str(rules), "--fresh", "1", *out)
    assert "(kept)" not in again.stderr  # its rules have changed


@pytest.mark.slow
def test_the_answers_do_not_depend_on_the_number_of_processes(reprise: Run, rules: Path) -> None:
    assert measured(reprise, rules) == measured(reprise, rules, "-j", "2")


def test_mistakes_are_said(reprise: Run, rules: Path) -> None:
    done = reprise("regress", "--rules", str(rules), "--rule", "ads_one")
    assert done.returncode == 2 and "adds_one" in done.stderr
    done = reprise("regress", "--target", "nothing", "--rules", str(rules))
    assert done.returncode == 2 and "there is no target" in done.stderr


@pytest.mark.slow
def test_a_matrix_in_markdown(reprise: Run, rules: Path) -> None:
    done = reprise(
        "regress", "--target", str(TARGET), "--rules", str(rules), "--format", "markdown"
    )
    assert done.stdout.splitlines()[0] == "| rule | faulty 1.0 |"
    assert "| `no_bug` | **fixed** |" in done.stdout
