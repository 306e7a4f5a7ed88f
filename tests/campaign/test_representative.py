"""Which finding stands for a defect: the same in every command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reprise.campaign.records import Confirmation, Finding
from reprise.campaign.report.summary import Report, relative
from reprise.campaign.representative import representative
from reprise.campaign.store import Run
from reprise.campaign.triage.novelty import Listing
from reprise.lang.ruleset import load_rules
from reprise.oracle.verdict import Verdict
from tests.campaign.reported import PROGRAM, defect, files
from tests.campaign.reported import run as made
from tests.conftest import ROOT

LONG = PROGRAM.replace("relu(w)", "relu(relu(relu(w)))")
WIDE = "const c: float32[400] = [" + ", ".join(["0.25"] * 400) + "]\nv: float32[400] = relu(c)\n"


def finding(folder: Path, index: int, program: str = PROGRAM, agreed: int = 3) -> Finding:
    """A finding with a folder."""
    record = defect(index, "boom")
    own = folder / f"{index:08d}"
    own.mkdir()
    for name, data in files(record, program=program).items():
        (own / name).write_bytes(data)
    confirmation = Confirmation(3, agreed)
    return Finding(own.name, index, Verdict.CRASH, "boom", None, 0.0, own, confirmation)


def reduce(one: Finding) -> None:
    assert one.folder is not None
    shutil.copytree(one.folder, one.folder.parent / "copy")
    (one.folder.parent / "copy").rename(one.folder / "reduced")


def chosen(*findings: Finding) -> int:
    found = representative(findings)
    assert found is not None
    return found.finding.index


def test_a_program_of_few_bytes_stands_for_one_of_few_lines(tmp_path: Path) -> None:
    """One line may hold thousands of numbers."""
    assert chosen(finding(tmp_path, 1, WIDE), finding(tmp_path, 2, LONG)) == 2


def test_a_reduced_finding_stands_for_smaller_ones_that_are_not(tmp_path: Path) -> None:
    small, large = finding(tmp_path, 1), finding(tmp_path, 2, LONG)
    assert chosen(large, small) == 1
    reduce(large)
    found = representative([large, small])
    assert found is not None and found.finding is large
    assert large.folder is not None and found.folder == large.folder / "reduced"
    (found.folder / "finding.json").write_text("{")  # not whole any more
    assert chosen(large, small) == 1


def test_one_that_fails_every_time_stands_for_flaky_ones(tmp_path: Path) -> None:
    small, large = finding(tmp_path, 1, agreed=2), finding(tmp_path, 2, LONG)
    reduce(small)
    assert chosen(small, large) == 2


def test_a_damaged_finding_gives_way(tmp_path: Path) -> None:
    small, large = finding(tmp_path, 1), finding(tmp_path, 2, LONG)
    assert small.folder is not None and large.folder is not None
    (small.folder / "finding.json").write_text("[")
    assert chosen(small, large) == 2
    (large.folder / "finding.json").unlink()
    found = representative([small, large])
    assert found is not None and found.detail is None and "damaged" in found.problem
    assert representative([]) is None


@pytest.mark.parametrize("reduced", [None, "00000000", "00000001", "00000002"])
def test_reports_and_triage_show_the_same_finding(tmp_path: Path, reduced: str | None) -> None:
    run = made(tmp_path / "run", [defect(index, "boom") for index in range(3)])
    for number, program in enumerate((WIDE, LONG, PROGRAM)):
        (run / "findings" / f"{number:08d}" / "program.uir").write_text(program)
    if reduced is not None:
        folder = run / "findings" / reduced
        shutil.copytree(folder, tmp_path / "copy")
        (tmp_path / "copy").rename(folder / "reduced")
    opened = Run.open(run)
    (ranked,) = Report(opened).defects
    rules = load_rules([ROOT / "rules" / "bugs" / "onnxruntime" / "gemm_transpose.rules"])
    (item,) = Listing(opened, rules, "onnxruntime").items
    assert ranked.folder == item.folder and ranked.finding == item.finding
    assert item.is_reduced == (reduced is not None)
    here = "findings/00000002" if reduced is None else f"findings/{reduced}/reduced"
    assert relative(item.folder, opened) == here
