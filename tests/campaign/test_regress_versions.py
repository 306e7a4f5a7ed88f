"""What measurements say of a rule's ``affects``: ranges, updates, and edits in rule files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from reprise.campaign.regress.affects import includes, public, read_range, updated
from reprise.campaign.regress.cell import Cell, State, Tried
from reprise.campaign.regress.edit import Edit, apply, edited, edits
from reprise.campaign.regress.probe import Effect, Observation
from reprise.lang.diagnostics import RulesError
from reprise.lang.format import format_text
from reprise.lang.ruleset import load_rules
from reprise.patterns.check import UsageError


def versions(text: str) -> set[Version]:
    return {Version(word) for word in text.split()}


@pytest.mark.parametrize(
    ("affects", "fires", "silent", "wanted"),
    [
        # a newer version still fires
        (">=1.19,<=1.27", "1.30", "", ">=1.19,<=1.30"),
        ("==1.27", "1.27 1.28 1.32", "", ">=1.27,<=1.32"),
        ("==1.27", "1.30", "1.31", ">=1.27,<=1.30"),
        # an older one too
        (">=1.26,<1.30", "1.25", "", ">=1.25,<1.30"),
        # the newest is fixed: what was not measured keeps what the rule says
        (">=1.19,<=1.32", "1.31", "1.32", ">=1.19,<1.32"),
        (">=1.19,<=1.32", "1.27", "1.31 1.32", ">=1.19,<1.31"),
        ("<=1.32", "1.27", "1.32", "<1.32"),
        (">=1.19", "1.27", "1.30", ">=1.19,<1.30"),
        # the oldest is not affected
        (">=1.19,<=1.32", "1.27", "1.19", ">1.19,<=1.32"),
        # nothing new
        (">=1.19,<=1.32", "1.27 1.32", "1.33", ">=1.19,<=1.32"),
        (">=1.19,<1.30", "1.27", "1.30 1.32", ">=1.19,<1.30"),
    ],
)
def test_a_measurement_moves_a_bound_only_as_far_as_it_must(affects, fires, silent, wanted) -> None:
    found = updated(affects, versions(fires), versions(silent))
    assert found.text == wanted
    assert bool(found.reason) == (found.text != affects)


@pytest.mark.parametrize(
    ("affects", "fires", "silent", "reason"),
    [
        (">=1.19,<=1.32", "1.27", "1.31", "does not fire at 1.31"),  # 1.32 was not measured
        (">=1.19,<=1.32", "1.27 1.32", "1.30", "does not fire at 1.30"),
        (">=1.19,<1.30", "1.31", "", "<1.30 says"),  # somebody saw it fixed in 1.30
        ("==1.27", "", "1.27", "fires at none"),
        (">=1.19,<=1.32", "", "1.32", "fires at none"),
        (">=1.19,!=1.22", "1.33", "", "no plain range"),
        ("==1.27.*", "1.33", "", "no plain range"),
        ("==1.27", "1.30", "1.28", "does not fire at 1.28"),
        (">=1.19,<=1.32", "1.27", "1.27", "both fires and does not"),
    ],
)
def test_what_is_for_a_person_is_left_alone(affects, fires, silent, reason) -> None:
    found = updated(affects, versions(fires), versions(silent))
    assert found.text == affects
    assert reason in found.reason


@pytest.mark.parametrize("text", ["==1.27.0", ">=1.19.2,<1.30", "<=2.13.0", ">1.0", ">=0.25.0"])
def test_a_range_holds_what_its_specifier_holds(text: str) -> None:
    found = read_range(text)
    assert found is not None
    spread = "0.1 0.25.0 1.0 1.0.1 1.19.2 1.27.0 1.29.9 1.30 2.13.0 2.14"
    for version in versions(spread):
        assert (version in found) == (version in SpecifierSet(text))
        assert (version in found) == (version in SpecifierSet(str(found)))


def test_a_build_of_a_version_is_that_version() -> None:
    assert public("2.13.0+cpu") == Version("2.13.0")
    assert includes("==2.13.0", "2.13.0+cpu") is True
    assert includes("<=0.27", "0.27.0.post1") is False
    assert includes(None, "1.0") is None


RULES = """\
// A comment that stays.

/// Documentation with affects: "<9" in it.
pattern first "one" {
    bug: "a/b#1"  // affects: "==0"
    target: toy
    affects: ">=1.0,<=2.0"
    symptom: wrong_result
    a = relu(x)
}

pattern second "two" {
    target: toy
    affects: "==1.0"
    a = exp(x)
}
"""


def cell(rule: str, version: str, affects: str, effect: Effect) -> Cell:
    seen = Observation(effect, ("wrong_result",) if effect is Effect.FIRES else ())
    tried = (Tried("match", "match 1", seen),)
    return Cell(rule, f"toy@{version}", version, affects, (), tried)


def test_an_edit_changes_that_value_and_nothing_else() -> None:
    new = edited(RULES, "rules", {"first": ">=1.0,<1.9"})
    assert new == RULES.replace('">=1.0,<=2.0"', '">=1.0,<1.9"')
    assert format_text(new, "rules") == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("// ", "// \x0b\x0c\u2028\x85 "),
        ('affects: ">=1.0,<=2.0"', 'affects: // ">=1.0,<=2.0"\n      ">=1.0,<=2.0" // >=1.0,<=2.0'),
        ("pattern first", "// affects: >=1.0,<=2.0\npattern first"),
    ],
)
def test_the_rest_of_a_file_stays_whatever_it_holds(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "a.rules"
    text = ("// a remark\n" + RULES).replace(old, new)
    file.write_bytes(text.encode())
    file.chmod(0o640)
    link = tmp_path / "link.rules"
    link.symlink_to(file)
    apply([Edit("first", str(link), ">=1.0,<=2.0", "==1.0", "measured")])
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    changed = file.read_bytes().decode()
    assert load_rules([file]).patterns["first"].get("affects") == "==1.0"
    assert changed.replace('"==1.0"', "X", 1) == text.replace('">=1.0,<=2.0"', "X", 2).replace(
        "X", '">=1.0,<=2.0"', text.count('">=1.0,<=2.0"') - 1
    )


def test_a_value_written_with_escapes_is_left_to_a_person(tmp_path: Path) -> None:
    text = RULES.replace(">=1.0,<=2.0", "\\u{3e}=1.0,<=2.0")
    with pytest.raises((UsageError, RulesError)):
        edited(text, "rules", {"first": "==1.0"})


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.rules"
    file.write_text(RULES)
    monkeypatch.setattr(os, "access", lambda path, how: False)  # tests may run as root
    with pytest.raises(PermissionError, match="Permission denied"):
        apply([Edit("first", str(file), ">=1.0,<=2.0", "==1.0", "measured")])
    assert file.read_text() == RULES


def test_a_rule_file_gets_what_was_measured(tmp_path) -> None:
    file = tmp_path / "a.rules"
    file.write_text(RULES)
    rules = load_rules([file])
    cells = [
        cell("first", "1.9", ">=1.0,<=2.0", Effect.FIRES),
        cell("first", "2.0", ">=1.0,<=2.0", Effect.SILENT),
        cell("second", "1.0", "==1.0", Effect.FIRES),
        cell("second", "1.9", "==1.0", Effect.UNDECIDED),
    ]
    found = list(edits(rules, cells))
    assert [(e.rule, e.after) for e in found] == [("first", ">=1.0,<2.0")]
    apply(found)
    assert load_rules([file]).patterns["first"].get("affects") == ">=1.0,<2.0"
    assert load_rules([file]).patterns["second"].get("affects") == "==1.0"


@pytest.mark.parametrize(
    ("effects", "state"),
    [
        ([Effect.SILENT, Effect.FIRES], State.FIRES),
        ([Effect.SILENT, Effect.OTHER], State.DIFFERS),
        ([Effect.SILENT, Effect.UNDECIDED, Effect.REFUSED], State.UNDECIDED),
        ([Effect.SILENT, Effect.REFUSED], State.FIXED),
        ([Effect.REFUSED, Effect.UNDECIDED], State.UNDECIDED),
        ([Effect.REFUSED], State.UNSUPPORTED),
        ([], State.NO_WITNESS),
    ],
)
def test_one_witness_that_fires_is_enough(effects: list[Effect], state: State) -> None:
    tried = tuple(Tried("match", str(e), Observation(e)) for e in effects)
    near = Tried("no_match", "near", Observation(Effect.FIRES))
    found = Cell("r", "toy", "1.0", "==1.0", (), (*tried, near))
    assert found.state is state
    assert found.contradicts == (state in (State.FIXED, State.DIFFERS))
    assert Cell.of(found.data()) == found


def test_a_near_miss_that_fires_says_that_the_rule_is_narrow() -> None:
    fires = Observation(Effect.FIRES, ("wrong_result",), cures=("P",))
    witness = Tried("match", "match 1", fires)
    near = Tried("no_match", "near", fires)
    elsewhere = Tried("no_match", "other pass", replace(fires, cures=("Q",)))
    known = Tried("no_match", "known", fires, others=("another_rule",))
    found = Cell("r", "toy", "1.0", None, ("P",), (witness, near, elsewhere, known))
    assert found.too_narrow == ("near",)
    assert not found.other_pass
    assert Cell("r", "toy", "1.0", None, ("Z",), (witness,)).other_pass
