"""pyDatalog as a second opinion, and for goal-directed questions."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from reprise.datalog import Database, UnsupportedError
from reprise.lang.coretext import format_program
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import graphs, programs
from tests.datalog.test_incremental import SLOW_TO_DRAW, runnable

pytest.importorskip("pyDatalog")


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=25)
def test_both_engines_agree(data: st.DataObject) -> None:
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    program = data.draw(programs(aggregates=False))
    facts = [fact for owned in data.draw(graphs(4)) for fact in owned]
    if not runnable(program):
        return
    try:
        theirs = PyDatalogEngine(program)
        theirs.commit(facts)
    except UnsupportedError:
        return
    note(format_program(program))
    ours = Database(program)
    ours.commit(facts)
    gone = facts[::3]
    ours.delete(gone)
    theirs.commit((), gone)
    for relation in program.relations:
        assert ours.rows(relation) == theirs.rows(relation)


def test_questions_with_some_values_given() -> None:
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    text = """
    relation parent(p: sym, c: sym)
    relation ancestor(a: sym, b: sym)
    relation related()
    ancestor(X, Y) :- parent(X, Y).
    ancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).
    related() :- ancestor(_, _).
    """
    engine, other = PyDatalogEngine(read(text)), PyDatalogEngine(read(text))
    engine.commit({"parent": [("ann", "bob"), ("bob", 'c"y')]})
    other.add("parent", "x", "y")
    assert engine.ask("ancestor", "ann", None) == [("ann", "bob"), ("ann", 'c"y')]
    assert engine.ask("ancestor", None, "bob") == [("ann", "bob")]
    assert engine.ask("ancestor", "bob", "ann") == []
    assert engine.ask("related") == [()]
    assert other.rows("ancestor") == [("x", "y")]
    assert engine.count("ancestor") == 3


@pytest.mark.parametrize(
    "rule",
    ["p(N) :- N == count{ q(_, _) }.", "p(X) :- q(_, X).", "p(abs(X)) :- p(X)."],
)
def test_what_pydatalog_cannot_say_is_refused(rule: str) -> None:
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    with pytest.raises(UnsupportedError):
        PyDatalogEngine(read(f"relation p(n: int)\nrelation q(a: int, v: any)\n{rule}"))


def test_floats_beside_ints_are_refused() -> None:
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    engine = PyDatalogEngine(read("relation q(a: int, v: any)"))
    with pytest.raises(UnsupportedError):
        engine.add("q", 1, 1.0)
