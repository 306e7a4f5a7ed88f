"""Proposals, marks and undo, and what happens when a commit fails halfway."""

from __future__ import annotations

import pytest

from reprise.datalog import (
    Database,
    KeyConflictError,
    LimitError,
    Limits,
    MarkError,
    RowError,
)
from reprise.lang.core import Program
from reprise.lang.diagnostics import RulesError
from tests.datalog.coretext_reader import read

TEXT = """
relation edge(a: int, b: int)
relation weight(a: int key, w: float)
relation path(a: int, b: int)
relation reach(a: int, n: int)
relation total(w: float)
relation lonely(a: int)
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
reach(X, N) :- weight(X, _), N == count{ Y : path(X, Y) }.
total(W) :- W == sum{ V : weight(_, V) }.
lonely(X) :- weight(X, _), not path(_, X).
"""
FACTS = {"edge": [(1, 2), (2, 3)], "weight": [(1, 0.1), (2, 0.2), (3, 0.3)]}


def snapshot(database: Database) -> dict[str, list[object]]:
    return {name: list(database.rows(name)) for name in database.program.relations}


@pytest.fixture
def database() -> Database:
    found = Database(read(TEXT))
    found.commit(FACTS)
    return found


def test_a_proposal_shows_its_consequences_and_takes_them_back(database: Database) -> None:
    before = snapshot(database)
    with database.propose([("edge", (3, 4)), ("weight", (4, 1e30))]) as proposal:
        assert proposal.new("path") == [(1, 4), (2, 4), (3, 4)]
        assert proposal.gone("reach") == [(1, 2), (2, 1), (3, 0)]
        assert "total" in proposal.relations()
        assert database.contains("path", 1, 4)
    assert snapshot(database) == before


def test_an_accepted_proposal_stays(database: Database) -> None:
    with database.propose([("edge", (3, 4))]) as proposal:
        proposal.accept()
    assert database.contains("path", 1, 4)


def test_an_error_in_the_block_takes_an_accepted_proposal_back(database: Database) -> None:
    before = snapshot(database)
    with pytest.raises(ZeroDivisionError), database.propose([("edge", (3, 4))]) as proposal:
        proposal.accept()
        raise ZeroDivisionError
    assert snapshot(database) == before
    database.commit([("edge", (3, 4))])


def test_float_sums_return_exactly(database: Database) -> None:
    before = database.rows("total")
    with database.propose([("weight", (9, 1e300)), ("weight", (8, -1.0))]):
        assert database.rows("total") == [(1e300,)]
    assert database.rows("total") == before == [(0.6,)]


def test_nothing_else_happens_while_a_proposal_is_open(database: Database) -> None:
    with database.propose([("edge", (3, 4))]):
        for call in (
            lambda: database.commit([]),
            lambda: database.propose([]),
            lambda: database.extend(Program({}, ())),
            database.mark,
        ):
            with pytest.raises(MarkError):
                call()


def test_undo_returns_through_deletions_and_replacements(database: Database) -> None:
    before = snapshot(database)
    first = database.mark()
    database.delete([("edge", (1, 2))])
    second = database.mark()
    between = snapshot(database)
    database.commit([("weight", (1, 7))], [("weight", (1, 0.1))])
    database.delete({"edge": [(2, 3)], "weight": [(3, 0.3)]})
    database.undo(second)
    assert snapshot(database) == between
    database.commit([("edge", (5, 1))])
    database.undo(second)
    assert snapshot(database) == between
    database.undo(first)
    assert snapshot(database) == before
    with pytest.raises(MarkError):
        database.undo(second)
    database.release(first)
    with pytest.raises(MarkError):
        database.undo(first)


def test_two_rows_with_one_key_are_refused_and_both_named(database: Database) -> None:
    before = snapshot(database)
    with pytest.raises(KeyConflictError, match=r"\(1, 0\.1\).*\(1, 5\.0\)"):
        database.commit([("edge", (7, 8)), ("weight", (1, 5))])
    assert snapshot(database) == before
    database.commit([("weight", (1, 5))], [("weight", (1, 0.1))])
    assert database.match("weight", (1, None)) == [(1, 5.0)]


def test_replacing_a_row_by_itself_changes_nothing(database: Database) -> None:
    changes = database.commit([("weight", (1, 0.1))], [("weight", (1, 0.1))])
    assert changes.relations() == []


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        (("edge", (1, "2")), "holds int in column `b`"),
        (("edge", (1, True)), "holds int"),
        (("edge", (1, 2.0)), "holds int"),
        (("edge", (1,)), "has 2 column"),
        (("edge", 7), "but got 7"),
        (("edges", (1, 2)), "no relation is called `edges`"),
        (("weight", (1, "x")), "holds float"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(
    database: Database, fact: tuple[str, object], message: str
) -> None:
    before = snapshot(database)
    with pytest.raises(RowError, match=message):
        database.commit([("edge", (10, 11)), fact])
    assert snapshot(database) == before


RUNAWAY = """
relation start(n: int)
relation seen(n: int)
relation pair(a: int, b: int)
seen(N) :- start(N).
seen(N + 1) :- seen(N).
pair(A, B) :- start(A), start(B).
"""


def test_a_runaway_recursion_is_stopped_and_taken_back() -> None:
    database = Database(read(RUNAWAY), limits=Limits(max_derived_rows=5000))
    with pytest.raises(LimitError, match=r"`seen`.*max_derived_rows=5000"):
        database.commit([("start", (0,))])
    assert all(not rows for rows in snapshot(database).values())


def test_a_large_product_is_stopped_and_taken_back() -> None:
    program = read(RUNAWAY.replace("seen(N + 1) :- seen(N).", ""))
    database = Database(program, limits=Limits(max_derived_rows=5000))
    with pytest.raises(LimitError, match="`pair`"):
        database.commit({"start": [(i,) for i in range(3000)]})
    assert database.count("start") == 0
    database.commit({"start": [(i,) for i in range(50)]})
    assert database.count("pair") == 2500


def test_a_commit_that_takes_too_long_is_stopped() -> None:
    database = Database(read(RUNAWAY), limits=Limits(max_seconds=0.05))
    with pytest.raises(LimitError, match="max_seconds"):
        database.commit([("start", (0,))])
    assert database.count("seen") == 0


def test_rules_that_fail_to_run_are_not_kept(database: Database) -> None:
    before = snapshot(database)
    with pytest.raises(RulesError):
        database.extend(read("relation bad(x: int)\nbad(X) :- bad(Y), not bad(X)."))
    small = Database(read(TEXT), limits=Limits(max_derived_rows=30))
    small.commit(FACTS)
    with pytest.raises(LimitError):
        small.extend(
            read(
                "relation all(a: int, b: int)\nall(X, Y) :- edge(X, _), path(_, Y),"
                "weight(Z, _), path(Z, _).\nall(X + 1, Y) :- all(X, Y)."
            )
        )
    small.commit([("edge", (3, 4))])
    assert small.contains("path", 1, 4)
    assert snapshot(database) == before


def test_a_base_relation_may_become_derived(database: Database) -> None:
    database.extend(read("relation edge(a: int, b: int)\nedge(X, Y) :- edge(Y, X)."))
    assert database.contains("edge", 3, 2) and database.contains("path", 3, 1)
    database.delete([("edge", (2, 3))])
    assert database.rows("edge") == [(1, 2), (2, 1)]
    database.commit([("edge", (5, 6))])
    assert database.contains("edge", 6, 5)


def test_facts_may_be_given_for_a_derived_relation(database: Database) -> None:
    before = snapshot(database)
    with database.propose([("path", (3, 9))]) as proposal:
        assert proposal.new("path") == [(3, 9)]
    assert snapshot(database) == before
    database.commit(iter([("path", (1, 2)), ("path", (0, 1))]))
    assert database.contains("path", 0, 3)
    database.delete([("edge", (1, 2))])
    assert database.contains("path", 1, 2)
    database.delete([("path", (1, 2)), ("path", (0, 1))])
    assert database.rows("path") == [(2, 3)]
