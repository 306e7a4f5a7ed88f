"""Loading rules twice: the kept set says the same, and a changed file is noticed."""

from pathlib import Path

import pytest

from reprise.cache import cache_folder
from reprise.lang import ruleset
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet, load_rules

RULE = 'pattern p "one" {\n    a = abs(x)\n    where x.rank == 2\n}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.rules").write_text(RULE)
    return rules


def test_a_kept_set_equals_a_fresh_one(folder: Path) -> None:
    fresh = load_rules([folder])
    kept = load_rules([folder])
    assert fresh.loaded is not None
    assert kept.loaded is None
    assert kept.program == fresh.program
    assert kept.patterns == fresh.patterns
    assert kept.files == fresh.files


def test_a_changed_file_is_read_again(folder: Path) -> None:
    load_rules([folder])
    (folder / "a.rules").write_text(RULE.replace('"one"', '"two"'))
    assert load_rules([folder]).patterns["p"].title == "two"


def test_a_new_file_in_a_folder_is_found(folder: Path) -> None:
    load_rules([folder])
    (folder / "b.rules").write_text(RULE.replace("pattern p", "pattern q").replace("2", "3"))
    assert set(load_rules([folder]).patterns) == {"p", "q"}


def test_what_changes_while_rules_are_loaded_is_noticed_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ruleset._load

    def slow(paths: tuple[Path, ...], library: bool) -> RuleSet:
        loaded = load(paths, library)
        (folder / "a.rules").write_text(RULE.replace('"one"', '"two"'))
        (folder / "b.rules").write_text(RULE.replace("pattern p", "pattern q").replace("2", "3"))
        return loaded

    monkeypatch.setattr(ruleset, "_load", slow)
    assert set(load_rules([folder]).patterns) == {"p"}
    monkeypatch.setattr(ruleset, "_load", load)
    again = load_rules([folder]).patterns
    assert (set(again), again["p"].title) == ({"p", "q"}, "two")


def test_a_file_that_breaks_is_noticed(folder: Path) -> None:
    load_rules([folder])
    (folder / "a.rules").write_text("pattern {")
    with pytest.raises(RulesError):
        load_rules([folder])


def test_damaged_and_unwritable_caches_do_no_harm(folder: Path, tmp_path: Path) -> None:
    load_rules([folder])
    for entry in cache_folder().glob("rules-*.pickle"):
        entry.write_bytes(b"\x80\x05garbage")
    assert set(load_rules([folder]).patterns) == {"p"}
    for entry in [*cache_folder().iterdir()]:
        entry.unlink()
    cache_folder().rmdir()
    cache_folder().write_text("a file where the folder should be")
    assert set(load_rules([folder]).patterns) == {"p"}


def test_the_cache_does_not_grow_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruleset, "_MOST_KEPT", 2)
    for name in ("b", "c", "d"):
        (folder / f"{name}.rules").write_text(f"pattern {name} {{ n = abs(x) }}")
        load_rules([folder / f"{name}.rules"])
    assert len(list(cache_folder().glob("rules-*.pickle"))) == 2


def test_a_kept_set_knows_its_names_without_reading_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = load_rules([folder])
    kept = load_rules([folder])
    monkeypatch.setattr(ruleset, "_load", None)
    assert kept.symbols.operators == fresh.symbols.operators
    assert kept.symbols.relations == fresh.symbols.relations
