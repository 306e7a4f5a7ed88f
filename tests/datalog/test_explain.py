"""Explanations: every derivation is checked by an independent verifier."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from reprise.datalog import Database, Derivation, RowError
from reprise.datalog.arithmetic import compare, evaluate
from reprise.lang.core import Aggregate, Atom, Compare, Const, Expr, Member, Value, Var
from reprise.lang.coretext import format_program
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import graphs, programs
from tests.datalog.test_incremental import runnable

GRAPH = """
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation path(a: node, b: node)
relation varies(v: node)
relation constant(v: node)
relation busy(v: node, n: int)
path(X, Y) :- edge(X, Y, _).
path(X, Z) :- path(X, Y), path(Y, Z).
varies(V) :- node(V, input).
varies(V) :- edge(U, V, _), varies(U).
constant(V) :- node(V, _), not varies(V).
busy(V, N) :- node(V, _), N == count{ W : edge(V, W, _) }, N > 1.
"""


@pytest.fixture
def database() -> Database:
    found = Database(read(GRAPH))
    found.commit([("node", (i, "input" if i == 0 else "relu")) for i in range(6)])
    found.commit([("edge", (i, i + 1, 0)) for i in range(1, 5)] + [("edge", (1, 4, 1))])
    return found


def verify(database: Database, step: Derivation, above: frozenset[object] = frozenset()) -> None:
    """Check one derivation: facts are there, rules apply, nothing rests on itself."""
    assert database.contains(step.relation, *step.row)
    fact = (step.relation, step.row)
    assert fact not in above
    if step.rule is None:
        assert not step.premises and not step.conditions
        return
    assert step.rule.head.relation == step.relation
    values = step.bindings
    for term, value in zip(step.rule.head.terms, step.row, strict=True):
        assert compare("==", evaluate(term, values), value)
    positive = [atom for atom in step.rule.body if isinstance(atom, Atom) and not atom.negated]
    assert len(step.premises) == len(positive)
    for atom, premise in zip(positive, step.premises, strict=True):
        assert atom.relation == premise.relation
        assert tuple(_value(term, values) for term in atom.terms) == premise.row
        verify(database, premise, above | {fact})
    for condition in step.conditions:
        match condition:
            case Compare(op, left, right):
                assert compare(op, evaluate(left, {}), evaluate(right, {}))
            case Member(expr, members, negated):
                assert (evaluate(expr, {}) in members) != negated
            case Atom(relation, terms, True):
                pattern = [term.value if isinstance(term, Const) else None for term in terms]
                assert database.match(relation, pattern) == []
            case _:
                assert isinstance(condition, Aggregate)


def _value(term: Expr, values: dict[str, Value]) -> Value:
    assert isinstance(term, Var | Const)
    return values[term.name] if isinstance(term, Var) else term.value


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_every_row_of_every_program_has_a_sound_derivation(data: st.DataObject) -> None:
    program = data.draw(programs())
    if not runnable(program, clingo=False):
        return
    note(format_program(program))
    database = Database(program)
    database.commit([fact for owned in data.draw(graphs()) for fact in owned])
    for relation in program.relations:
        for row in database.rows(relation)[:6]:
            verify(database, database.why(relation, *row))


def test_a_derivation_reads_as_a_tree(database: Database) -> None:
    assert str(database.why("constant", 2)) == (
        "constant(2)  by constant(V) :- node(V, _), not varies(V).\n"
        "  node(2, relu)\n"
        "  not varies(2)"
    )
    assert str(database.why("busy", 1, 2)).endswith("\n  2 == count{ W : edge(1, W, _) }\n  2 > 1")


def test_a_cycle_does_not_explain_itself() -> None:
    database = Database(read(GRAPH))
    database.commit([("edge", (1, 2, 0)), ("edge", (2, 1, 0)), ("edge", (0, 1, 1))])
    for row in database.rows("path"):
        verify(database, database.why("path", *row))


def test_facts_given_for_a_derived_relation_explain_themselves(database: Database) -> None:
    database.add("varies", 3)
    assert database.why("varies", 3) == Derivation("varies", (3,))
    assert database.why("varies", 4).premises[-1] == Derivation("varies", (3,))


def test_a_long_chain_has_a_long_derivation() -> None:
    without_paths = "\n".join(line for line in GRAPH.splitlines() if not line.startswith("path"))
    database = Database(read(without_paths))
    database.commit([("node", (0, "input")), *(("edge", (i, i + 1, 0)) for i in range(3000))])
    assert str(database.why("varies", 3000)).count("\n") == 6001


def test_why_not_names_the_first_literal_that_fails(database: Database) -> None:
    (miss,) = database.why_not("constant", 0)
    assert str(miss).splitlines()[1:] == ["  holds   node(0, input)", "  fails   not varies(0)"]
    (miss,) = database.why_not("busy", 2, None)
    assert str(miss).splitlines()[-1] == "  fails   1 > 1"
    assert miss.bindings["N"] == 1


def test_why_not_backtracks_to_the_attempt_that_got_furthest() -> None:
    database = Database(
        read("""
    relation a(x: int)
    relation b(x: int, y: int)
    relation c(y: int)
    relation goal(x: int)
    goal(X) :- a(X), b(X, Y), c(Y).
    goal(X) :- c(X), b(X, _).
    """)
    )
    database.commit({"a": [(1,), (2,), (3,)], "b": [(2, 5), (2, 6)], "c": [(9,)]})
    best, second = database.why_not("goal", None)
    assert [len(best.held), len(second.held)] == [2, 1]
    assert str(best.failed) == str(database.why_not("goal", 2)[0].failed)
    assert best.bindings == {"X": 2, "Y": 5}


def test_questions_the_wrong_way_round_are_refused(database: Database) -> None:
    with pytest.raises(RowError, match="why_not"):
        database.why("constant", 0)
    with pytest.raises(RowError, match="ask `why`"):
        database.why_not("constant", 2)
