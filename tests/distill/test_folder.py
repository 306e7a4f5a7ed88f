"""The folder of a distillation: what is taken for one, and what is left alone in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprise.distill.draft import Draft
from reprise.distill.folder import check_folder, write_folder
from reprise.distill.record import Distilled, Record
from reprise.distill.rule import check_name
from reprise.patterns.check import UsageError


def distilled(name: str) -> Distilled:
    return Distilled(Draft(nodes=(), name=name), f"// {name}\n", Record(), ())


def rules(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.rules"))


def test_an_earlier_rule_makes_way_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.rules").write_text("// mine\n")
    write_folder(tmp_path, distilled("first"), "", 0)
    write_folder(tmp_path, distilled("second"), "", 0)
    assert rules(tmp_path) == ["mine.rules", "second.rules"]


@pytest.mark.parametrize("record", ["", "[" * 99999, "[]", '{"rule": 5}', '{"rule": "../mine"}'])
def test_a_damaged_record_costs_nobody_a_rule(tmp_path: Path, record: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "mine.rules").write_text("// mine\n")
    (folder / "mine.rules").write_text("// mine\n")
    (folder / "distillation.json").write_text(record)
    write_folder(folder, distilled("found"), "", 0)
    assert rules(folder) == ["found.rules", "mine.rules"] and rules(tmp_path) == ["mine.rules"]
    assert json.loads((folder / "distillation.json").read_text())["rule"] == "found"


def test_a_finding_that_was_reduced_is_no_folder_of_a_distillation(tmp_path: Path) -> None:
    (tmp_path / "finding.json").write_text("{}")
    (tmp_path / "reduced").mkdir()
    with pytest.raises(UsageError, match="holds no distillation"):
        check_folder(tmp_path)
    (tmp_path / "finding.json").unlink()
    check_folder(tmp_path)


@pytest.mark.parametrize("name", ["9x", "a b", "../x", "x" * 101, "é", "X", "x\n", "_"])
def test_what_is_no_name_of_a_rule_is_said_at_once(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a rule's name"):
        check_name(name)


@pytest.mark.parametrize("name", ["", "x", "ort_24158", "x" * 100])
def test_names_of_rules_are_taken(name: str) -> None:
    check_name(name)
