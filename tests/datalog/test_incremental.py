"""Whatever led to a set of facts, the derived relations are those of evaluating from scratch."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from reprise.datalog import Database, UnsupportedError
from reprise.datalog.clingo_engine import ClingoEngine
from reprise.datalog.export import to_clingo
from reprise.lang.core import Program, Row
from reprise.lang.coretext import format_program
from reprise.lang.diagnostics import Severity
from reprise.lang.safety import check_rule
from tests.datalog.random_programs import Fact, chunks, graphs, programs

SLOW_TO_DRAW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
Contents = dict[str, list[Row]]


def contents(database: Database | ClingoEngine, program: Program) -> Contents:
    return {name: database.rows(name) for name in program.relations}


def from_scratch(program: Program, facts: dict[Fact, None]) -> Contents:
    """Our engine, given one fact at a time in an order that no pruning can use."""
    database = Database(program)
    database.commit(sorted(facts, key=repr))
    return contents(database, program)


def by_clingo(program: Program, facts: dict[Fact, None]) -> Contents:
    engine = ClingoEngine(program)
    engine.commit(list(facts))
    return contents(engine, program)


def runnable(program: Program, clingo: bool = True) -> bool:
    """Whether a drawn program is safe, and one that clingo can run."""
    if clingo:
        try:
            to_clingo(program)
        except UnsupportedError:
            return False
    return not any(
        problem.severity is Severity.ERROR
        for rule in program.rules
        for problem in check_rule(rule, program.relations)
    )


class Session:
    """A database, and beside it the base facts that it should hold."""

    def __init__(self, program: Program, data: st.DataObject) -> None:
        self.program = program
        self.data = data
        self.database = Database(program)
        self.facts: dict[Fact, None] = {}

    def check(self) -> None:
        ours = contents(self.database, self.program)
        assert ours == by_clingo(self.program, self.facts)

    def step(self, chunk: list[Fact]) -> None:
        kind = self.data.draw(
            st.sampled_from(("commit", "accept", "reject", "undo", "delete", "replace"))
        )
        note(f"{kind} {chunk}")
        before = contents(self.database, self.program)
        if kind == "commit":
            self.database.commit(chunk)
        elif kind == "accept":
            with self.database.propose(chunk) as proposal:
                proposal.accept()
        elif kind == "reject":
            with self.database.propose(chunk):
                pass
            assert contents(self.database, self.program) == before
            self.database.commit(chunk)
        elif kind == "undo":
            mark = self.database.mark()
            self.database.commit(chunk)
            self.database.delete(self.some())
            self.database.undo(mark)
            assert contents(self.database, self.program) == before
            self.database.commit(chunk)
            self.database.release(mark)
        elif kind == "delete":
            self.database.commit(chunk)
            self.facts.update(dict.fromkeys(chunk))
            gone = self.some()
            note(f"then delete {gone}")
            self.database.delete(gone)
            for fact in gone:
                del self.facts[fact]
            return
        else:
            gone = self.some()
            note(f"together with deleting {gone}")
            self.database.commit(chunk, gone)
            for fact in gone:
                if fact not in chunk:
                    self.facts.pop(fact, None)
        self.facts.update(dict.fromkeys(chunk))

    def some(self) -> list[Fact]:
        if not self.facts:
            return []
        return self.data.draw(
            st.lists(st.sampled_from(sorted(self.facts, key=repr)), max_size=3, unique=True)
        )


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=80)
def test_any_history_gives_what_clingo_derives_from_its_facts(data: st.DataObject) -> None:
    program = data.draw(programs())
    if not runnable(program):
        return
    note(format_program(program))
    session = Session(program, data)
    for chunk in data.draw(chunks(data.draw(graphs()))):
        session.step(chunk)
        session.check()


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=50)
def test_products_follow_insertions_and_deletions(data: st.DataObject) -> None:
    program = data.draw(programs(products=True))
    if not runnable(program, clingo=False):
        return
    note(format_program(program))
    session = Session(program, data)
    for chunk in data.draw(chunks(data.draw(graphs()))):
        session.step(chunk)
    assert contents(session.database, program) == from_scratch(program, session.facts)


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=50)
def test_the_way_of_loading_a_graph_makes_no_difference(data: st.DataObject) -> None:
    program = data.draw(programs())
    if not runnable(program):
        return
    note(format_program(program))
    graph = data.draw(graphs())
    facts = [fact for owned in graph for fact in owned]
    by_entity, at_once, backwards = Database(program), Database(program), Database(program)
    for owned in graph:
        by_entity.commit(owned)
    at_once.commit(facts)
    for fact in reversed(facts):
        backwards.commit([fact])
    expected = by_clingo(program, dict.fromkeys(facts))
    assert contents(by_entity, program) == expected
    assert contents(at_once, program) == expected
    assert contents(backwards, program) == expected


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=40)
def test_rules_added_later_derive_what_they_would_have(data: st.DataObject) -> None:
    program = data.draw(programs())
    if not runnable(program):
        return
    note(format_program(program))
    cut = data.draw(st.integers(0, len(program.rules)))
    facts = [fact for owned in data.draw(graphs()) for fact in owned]
    when = data.draw(st.integers(0, len(facts)))
    database = Database(Program(program.relations, program.rules[:cut]))
    database.commit(facts[:when])
    database.extend(Program(program.relations, program.rules[cut:]))
    database.commit(facts[when:])
    assert contents(database, program) == by_clingo(program, dict.fromkeys(facts))


@pytest.mark.slow
@given(st.data())
@settings(SLOW_TO_DRAW, max_examples=400)
def test_any_history_at_length(data: st.DataObject) -> None:
    program = data.draw(programs())
    if not runnable(program):
        return
    note(format_program(program))
    session = Session(program, data)
    for chunk in data.draw(chunks(data.draw(graphs(9)))):
        session.step(chunk)
        session.check()
