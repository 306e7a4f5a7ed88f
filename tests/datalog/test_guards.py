"""What a commit need not look at, it does not; what is skipped once is not lost later."""

from __future__ import annotations

from reprise.datalog import Database
from tests.datalog.coretext_reader import read

WANTED = """
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation wanted(v: node)
relation above(v: node, w: node)
above(V, W) :- wanted(V), edge(V, W, _).
above(V, W) :- above(V, U), edge(U, W, _).
relation alone(v: node)
alone(V) :- wanted(V), node(V, _), not above(V, _).
relation reach(v: node, n: int)
reach(V, N) :- wanted(V), N == count{ above(V, _) }.
"""


def chain(database: Database, count: int, start: int = 0) -> None:
    for v in range(start, start + count):
        edges = [("edge", (v - 1, v, 0))] if v else []
        database.commit([("node", (v, "op")), *edges])


def test_rules_that_waited_for_an_empty_relation_run_when_it_fills() -> None:
    database = Database(read(WANTED))
    chain(database, 4)
    assert database.count("above") == 0
    database.add("wanted", 1)
    assert database.rows("above") == [(1, 2), (1, 3)]
    assert database.rows("reach") == [(1, 2)]
    chain(database, 1, start=4)
    assert database.rows("reach") == [(1, 3)]
    database.add("wanted", 4)
    assert database.rows("alone") == [(4,)]
    chain(database, 1, start=5)
    assert database.rows("alone") == []


def test_they_stop_when_it_empties_again() -> None:
    database = Database(read(WANTED))
    chain(database, 3)
    mark = database.mark()
    database.add("wanted", 0)
    chain(database, 1, start=3)
    database.undo(mark)
    chain(database, 1, start=3)
    assert all(database.count(name) == 0 for name in ("above", "alone", "reach"))
    database.delete([("wanted", (0,))])
    database.add("wanted", 2)
    assert database.rows("above") == [(2, 3)]


def test_changes_can_be_asked_for_by_relation() -> None:
    database = Database(read(WANTED))
    chain(database, 2)
    changes = database.add("wanted", 0)
    assert changes.relations({"above", "alone", "node"}) == ["above"]
    assert changes.relations() == ["above", "reach", "wanted"]
    gone = database.delete([("wanted", (0,))])
    assert gone.relations({"wanted", "node"}) == ["wanted"]
