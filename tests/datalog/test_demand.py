"""A program on demand derives the same rows for its roots, and less of the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reprise.datalog import Database
from reprise.datalog.demand import on_demand
from reprise.lang.core import Program, relations_in
from reprise.lang.stratify import stratify
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import BASE, chunks, graphs, programs
from tests.datalog.test_incremental import runnable

SLOW_TO_DRAW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=150)
def test_roots_have_the_same_rows_along_any_history(data: st.DataObject) -> None:
    program = data.draw(programs(products=True))
    assume(runnable(program, clingo=False))
    derived = sorted(program.derived())
    roots = data.draw(st.lists(st.sampled_from(derived), min_size=1, max_size=2, unique=True))
    full = Database(program)
    less = Database(
        on_demand(program, roots)
    )  # which checks its rules, and that they are stratified
    known = [name for name in BASE if name in less.program.relations]

    def same() -> None:
        for name in roots:
            assert less.rows(name) == full.rows(name)
        for name in less.program.relations.keys() & program.relations.keys():
            assert set(less.rows(name)) <= set(full.rows(name))

    for chunk in data.draw(chunks(data.draw(graphs()))):
        facts = [fact for fact in chunk if fact[0] in known]
        mark = less.mark()
        full.commit(chunk)
        less.commit(facts)
        same()
        if data.draw(st.booleans()):
            less.undo(mark)
            less.commit(facts)
            same()
        less.release(mark)
        if data.draw(st.integers(0, 3)) == 0:
            gone = data.draw(st.lists(st.sampled_from(chunk), max_size=2, unique=True))
            full.delete(gone)
            less.delete([fact for fact in gone if fact[0] in known])
            same()


FLOW = """
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation fanout(v: node, n: int)
fanout(V, N) :- node(V, _), N == count{ edge(V, _, _) }.
relation varies(v: node)
varies(V) :- node(V, "input").
varies(W) :- edge(V, W, _), varies(V).
relation down(v: node)
down(V) :- edge(V, W, _), node(W, "log").
down(V) :- edge(V, W, _), down(W).
relation found(a: node, b: node)
found(A, B) :- node(A, "exp"), edge(A, B, 0), node(B, "sum"), fanout(A, 1), not varies(A), down(B).
"""


def grown(program: Program, ops: str) -> Database:
    """A chain of nodes."""
    database = Database(program)
    for v, op in enumerate(ops.split()):
        edges = [("edge", (v - 1, v, 0))] if v else []
        database.commit([("node", (v, op)), *edges])
    return database


def test_nothing_is_derived_where_the_structure_does_not_occur() -> None:
    program = on_demand(read(FLOW), ["found"])
    database = grown(program, "input exp log exp log sum log sum log")
    assert all(database.count(name) == 0 for name in program.derived())


def test_what_a_place_asks_for_is_derived_there_only() -> None:
    program = on_demand(read(FLOW), ["found"])
    database = grown(program, "const exp sum neg log neg neg")
    assert database.rows("found") == [(1, 2)]
    assert database.rows("fanout") == [(1, 1)]
    assert database.rows("down") == [(2,), (3,)]  # whether 2 is above a log is asked of 3, too
    assert database.rows("varies") == []
    database.commit([("node", (7, "neg")), ("edge", (1, 7, 0))])
    assert database.rows("fanout") == []  # whether it is 1 is all that was asked
    assert database.rows("found") == []


def test_what_binds_in_one_group_only_is_joined_later() -> None:
    """A chain between two nodes is followed from the one end; no product of all ends is made."""
    program = on_demand(
        read("""
        relation node(v: node key, op: sym) @entity
        relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
        relation via(v: node, w: node)
        via(V, W) :- edge(V, W, 0).
        via(V, W) :- via(V, U), node(U, "identity"), edge(U, W, 0).
        relation found(a: node, b: node)
        found(A, B) :- node(A, "exp"), via(A, B), node(B, "log").
        """),
        ["found"],
    )
    places = [rule for rule in program.rules if "$place" in rule.head.relation]
    assert sorted(len(rule.body) for rule in places) == [1, 1]
    database = grown(program, "exp identity identity log identity log")
    assert database.rows("found") == [(0, 3)]
    assert {row[0] for row in database.rows("via")} == {0}


def test_an_assignment_stays_where_it_compares_as_before() -> None:
    """``2 == 2.0`` as numbers, but as rows ``(2,)`` and ``(2.0,)`` are two."""
    text = """
        relation a(x: int)
        relation b(x: float)
        relation d(x: int)
        d(X) :- a(X), not b(1.0).
        relation found(x: int)
        found(X) :- a(X), b(F), X == F + 1.0, d(X).
    """
    program = read(text)
    given = [("a", (2,)), ("b", (1.0,)), ("a", (3,)), ("b", (2.0,))]
    for facts in (given, given[2:]):
        full, less = Database(program), Database(on_demand(program, ["found"]))
        full.commit(facts)
        less.commit(facts)
        assert less.rows("found") == full.rows("found")
    assert less.rows("found") == [(3,)]


def test_the_names_of_new_relations_are_none_of_the_language() -> None:
    given = read(FLOW)
    program = on_demand(given, ["found"])
    added = program.relations.keys() - given.relations.keys()
    assert added and all("$" in name for name in added)
    stratify(program)
    used = {name for rule in program.rules for name in relations_in(rule.body)}
    assert used <= program.relations.keys()


SAME = """
import sys
sys.path.insert(0, sys.argv[1])
from reprise.datalog.demand import on_demand
from reprise.lang.coretext import format_program
from tests.datalog.coretext_reader import read
from tests.datalog.test_demand import FLOW
print(format_program(on_demand(read(FLOW), ["found"])))
"""


@pytest.mark.slow
def test_the_program_is_the_same_in_every_process() -> None:
    """Its text is what compiled rules are kept under."""
    root = Path(__file__).parents[2]
    texts = {
        subprocess.run(
            [sys.executable, "-c", SAME, str(root)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1
    assert "fanout$asked" in texts.pop()
