"""``reprise fuzz`` on a target for kernels, from the command line to the report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reprise.einsum.json_form import loads

pytest.importorskip("torch")


def reprise(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reprise", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_campaign_finds_what_torch_does_wrongly_and_shows_it_alone(tmp_path: Path) -> None:
    done = reprise(
        *("fuzz", "--target", "torch-sparse", "--tests", "130", "--seed", "1"),
        *("--no-guidance", "--keep", "1", "--out", "run"),
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    assert re.match(r"130 tests in .*: \d+ ok", done.stdout) and "unsupported" not in done.stdout
    assert "known: torch_sum_of_blocks" in done.stdout
    assert "invalid" not in done.stdout
    folders = sorted((tmp_path / "run" / "findings").iterdir())
    for folder in folders:
        files = {path.name for path in folder.iterdir()}
        assert {"kernel.json", "variants.json", "repro.py", "model.py", "finding.json"} <= files
        assert loads((folder / "kernel.json").read_text().splitlines()[-1])
        script = (folder / "repro.py").read_text()
        imported = set(re.findall(r"^import (\w+)|^from (\w+)", script, re.M))
        assert {a or b for a, b in imported} <= {"numpy", "torch", *sys.stdlib_module_names}
        again = subprocess.run([sys.executable, folder / "repro.py"], capture_output=True)
        assert again.returncode == 1
        (folder / "elsewhere.py").write_text(script.replace("import torch", "import no_compiler"))
        missing = subprocess.run([sys.executable, folder / "elsewhere.py"], capture_output=True)
        assert missing.returncode == 2 and b"no_compiler" in missing.stderr
        relation = json.loads((folder / "finding.json").read_text())["evidence"]["relation"]
        assert relation in {"reference", *_relations(folder)}
    report = reprise("report", "run", cwd=tmp_path)
    assert report.returncode == 0
    assert "torch_sum_of_blocks" in report.stdout
    for folder in folders:
        written = reprise("triage", "run", "--finding", folder.name, "--yes", cwd=tmp_path)
        assert "1 report written" in written.stdout, written.stderr
        text = (tmp_path / "run" / "reports" / folder.name / "report.md").read_text()
        kernel = loads((folder / "kernel.json").read_text().splitlines()[-1])
        evidence = json.loads((folder / "finding.json").read_text())["evidence"]
        assert kernel.statement in text.splitlines()[0]
        says = evidence.get("says") or f"{evidence['type']}: {evidence['message']}"
        assert says.strip() in text and f"found by: {evidence['relation']}" in text
        assert "def kernel():" in text and "optimised" not in text


def _relations(folder: Path) -> set[str]:
    return {variant["relation"] for variant in json.loads((folder / "variants.json").read_text())}


@pytest.mark.slow
def test_options_about_graphs_are_refused(tmp_path: Path) -> None:
    done = reprise("fuzz", "--target", "torch-sparse", "--nodes", "3", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "--nodes is about graphs" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_that_is_resumed_has_the_tests_of_one_that_was_not(tmp_path: Path) -> None:
    asked = ("fuzz", "--target", "torch-sparse", "--seed", "2", "--no-guidance")
    reprise(*asked, "--tests", "20", "--out", "one", cwd=tmp_path)
    reprise(*asked, "--tests", "10", "--out", "two", cwd=tmp_path)
    reprise("fuzz", "--resume", "two", "--tests", "20", cwd=tmp_path)
    assert _verdicts(tmp_path / "one") == _verdicts(tmp_path / "two")


def _verdicts(run: Path) -> object:
    from reprise.campaign.store import Run

    opened = Run.open(run)
    return opened.tests, opened.verdicts
