"""``reprise report`` and ``reprise compare`` as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprise.campaign.records import Record
from reprise.oracle.verdict import Verdict
from tests.campaign.reported import counted, run
from tests.conftest import Run
from tests.docs.test_formats import documented, keys


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run(tmp_path / "run", counted({"a": 4, "rule:ort_32228": 6}, 50))


@pytest.mark.slow
def test_by_default_a_summary_and_a_page(reprise: Run, folder: Path) -> None:
    done = reprise("report", "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ort_32228" in done.stdout
    assert done.stdout.endswith("page: run/report.html\n")
    assert (folder / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_json_for_tools(reprise: Run, folder: Path) -> None:
    done = reprise("report", "run", "--format", "json")
    found = json.loads(done.stdout)
    assert (found["version"], found["tests"], len(found["defects"])) == (1, 50, 2)
    assert not (folder / "report.html").exists()
    assert reprise("report", "run", "--format", "json", "-o", "r.json").stdout == ""
    assert json.loads((folder.parent / "r.json").read_text("utf-8")) == found


@pytest.mark.slow
def test_the_page_to_a_file_or_to_standard_output(reprise: Run, folder: Path) -> None:
    assert reprise("report", "run", "--format", "html", "-o", "p.html").returncode == 0
    text = (folder.parent / "p.html").read_text("utf-8")
    assert reprise("report", "run", "--format", "html", "-o", "-").stdout == text
    assert reprise("report", "run", "-o", "q.html").stdout.endswith("page: q.html\n")
    assert (folder.parent / "q.html").read_text("utf-8") == text


@pytest.mark.slow
def test_a_page_that_is_in_the_way_costs_the_page_only(reprise: Run, folder: Path) -> None:
    (folder / "report.html").mkdir()
    done = reprise("report", "run")
    assert (done.returncode, "no page was written" in done.stderr) == (0, True)
    assert reprise("report", "run", "-o", "none/p.html").returncode == 2


@pytest.mark.parametrize("command", ["report", "compare"])
def test_what_is_no_run_is_refused(reprise: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    for given in ("empty", "missing"):
        done = reprise(command, given)
        assert done.returncode == 2
        assert done.stderr == f"reprise: {given}: there is no run in this folder\n"


def test_compare(reprise: Run, tmp_path: Path) -> None:
    run(tmp_path / "u", counted({"rule:ort_32228": 216, "b": 36, "c": 2}, 300), guided=False)
    run(tmp_path / "g", counted({"b": 25}, 300))
    done = reprise("compare", "u", "g")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("90.2%", "254", "188.8", "LOST: only by the baseline: 1"):
        assert part in done.stdout
    found = json.loads(reprise("compare", "u", "g", "--format", "json").stdout)
    assert found["comparisons"][0]["lost"] == ["signature of c"]
    assert reprise("compare", "u").returncode == 2


METRICS = {
    "reports", "defects", "repeats", "repeat_share", "effective_defects", "weighted_redundancy",
    "duplicate_pairs", "largest_share",
}  # fmt: skip
OPEN = frozenset({"options", "versions", "verdicts", "suppressed", "completed"})


def ours(index: int) -> Record:
    return Record(index, Verdict.INVALID, "bad", "our fault")


def test_every_key_is_documented(reprise: Run, tmp_path: Path) -> None:
    run(tmp_path / "u", [*counted({"a": 4}, 9, r=1), ours(9)], guided=False)
    run(tmp_path / "g", counted({"b": 25}, 30))
    for command, given, free in (("report", ["u"], OPEN), ("compare", ["u", "g"], frozenset())):
        found = keys(json.loads(reprise(command, *given, "--format", "json").stdout), free)
        told = documented(f"reprise {command}") | METRICS
        users = {v.value for v in Verdict} | {"onnxruntime", "ort_32228"}
        assert told - users == found - users
