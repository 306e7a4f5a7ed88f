"""Blueprints and compiled rules on disk: used again as they are, and never a reason to fail."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks import workload
from reprise import cache
from reprise.datalog import Database, Limits, codecache, schedule
from reprise.datalog import blueprint as blueprints
from reprise.lang.core import Program
from reprise.lang.diagnostics import RulesError
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import Fact
from tests.datalog.test_growth import SHARED
from tests.datalog.test_incremental import contents

EXTRA = """
relation total(v: node, n: int)
relation loud(v: node)
total(V, N) :- node(V, _), N == sum{ P : edge(_, V, P) }.
loud(V) :- node(V, O), O in {a, b, c}, not tag(V, b).
"""
FACTS: list[Fact] = [
    ("node", (0, "a")), ("node", (2, "b")), ("edge", (0, 2, 0)), ("edge", (0, 2, 1)),
    ("node", (4, "c")), ("edge", (2, 4, 0)), ("out", (4, 0, 5)), ("dim", (5, 0, 7)),
    ("tag", (2, "a")),
]  # fmt: skip


@pytest.fixture
def program() -> Program:
    return read(SHARED + EXTRA)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test as in a new process."""
    monkeypatch.setattr(codecache, "_MEMORY", {})


def run(program: Program, folder: Path | None) -> tuple[Database, list[Any]]:
    """A history with growth, a batch, deletions and undo; what there was after each step."""
    database = Database(program, cache=folder)
    seen = []
    for fact in FACTS[:4]:
        database.commit([fact])
        seen.append(contents(database, program))
    mark = database.mark()
    database.commit(FACTS[4:])
    seen.append(contents(database, program))
    database.delete([FACTS[0], FACTS[3]])
    seen.append(contents(database, program))
    database.undo(mark)
    seen.append(contents(database, program))
    database.save()
    return database, seen


def test_what_was_kept_is_neither_planned_nor_compiled_again(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, seen = run(program, tmp_path)
    source = first.source()
    first.save()
    monkeypatch.setattr(codecache, "_MEMORY", {})
    for module, name in (
        (schedule, "plan"), (schedule, "function_source"), (schedule, "compiled"),
        (blueprints, "Growth"), (blueprints, "levels_of"), (blueprints, "Clauses.add"),
    ):  # fmt: skip
        monkeypatch.setattr(f"{module.__name__}.{name}", None)
    second, again = run(program, tmp_path)
    assert again == seen
    assert sorted(second.source().split("\n\n")) == sorted(source.split("\n\n"))


def test_it_derives_what_a_database_without_a_cache_derives(
    program: Program, tmp_path: Path
) -> None:
    _, expected = run(program, None)
    assert run(program, tmp_path)[1] == run(program, tmp_path)[1] == expected


def test_a_database_from_the_cache_explains_itself_and_takes_more_rules(
    program: Program, tmp_path: Path
) -> None:
    run(program, tmp_path)
    database, _ = run(program, tmp_path)
    assert "edge" in str(database.why("varies", 2))
    assert database.why_not("loud", 17)
    database.extend(read("relation loud(v: node)\nrelation big(v: node)\nbig(V) :- loud(V)."))
    database.commit([("big", (99,))])
    assert database.rows("big") == [*database.rows("loud"), (99,)]
    database.save()  # of the program as it was: nothing
    assert Database(program, cache=tmp_path).commit(FACTS).new("loud")


def test_other_programs_and_other_limits_have_their_own_files(tmp_path: Path) -> None:
    texts = ["p(X) :- e(X), X == 1.", "p(X) :- e(X), X == 1.0.", "p(X) :- e(X), X == 2."]
    for text in texts:
        whole = read(f"relation e(a: any)\nrelation p(a: any)\n{text}")
        for limits in (None, Limits(max_seconds=9.0)):
            database = Database(whole, cache=tmp_path, limits=limits)
            database.commit({"e": [(1,), (2,)]})
            database.save()
    assert len(list(tmp_path.iterdir())) == 2 * len(texts)


def test_rules_that_are_wrong_are_refused_with_a_cache_too(tmp_path: Path) -> None:
    wrong = read("relation e(a: int)\nrelation p(a: int)\np(X) :- not e(X).")
    for _ in range(2):
        with pytest.raises(RulesError):
            Database(wrong, cache=tmp_path)


def test_a_damaged_file_is_as_good_as_none(program: Program, tmp_path: Path) -> None:
    _, expected = run(program, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    random = Random(0)
    damaged = [b"", b"\0" * 64, whole[:-1], whole + b"x", whole[: len(whole) // 2]]
    for _ in range(15):
        at = random.randrange(len(whole))
        damaged.append(
            whole[:at] + bytes([whole[at] ^ (1 << random.randrange(8))]) + whole[at + 1 :]
        )
    for content in damaged:
        path.write_bytes(content)
        assert run(program, tmp_path)[1] == expected
        assert path.read_bytes() != content  # and it is mended


def test_a_folder_that_cannot_be_written_or_read_does_no_harm(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(program, None)[1]
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    assert run(program, blocked)[1] == expected
    assert run(program, blocked / "below")[1] == expected

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "full"
    monkeypatch.setattr("os.replace", full)
    assert run(program, folder)[1] == expected
    assert list(folder.iterdir()) == []  # nothing half-written stays
    (folder / "plans-x").mkdir()
    assert run(program, folder)[1] == expected


def test_old_programs_make_room(tmp_path: Path) -> None:
    for i in range(5):
        path = tmp_path / f"plans-{i}"
        cache.write_cache(path, b"x", 3, "plans-")
        os.utime(path, (i, i))
    (tmp_path / "other").write_bytes(b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "plans-2", "plans-3", "plans-4"]


def test_many_patterns_start_at_once_with_a_warm_cache(tmp_path: Path) -> None:
    program = workload.program(workload.patterns(40))
    graph = workload.graph(50)
    found = []
    for _ in range(2):
        database = Database(program, cache=tmp_path)
        for facts in graph:
            with database.propose(facts) as proposal:
                proposal.accept()
        database.save()
        found.append(contents(database, program))
    assert found[0] == found[1]
