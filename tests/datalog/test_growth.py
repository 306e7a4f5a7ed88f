"""Leaving out delta variants: what is proved, and that no match is lost by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.datalog import Database
from reprise.datalog.blueprint import levels_of
from reprise.datalog.clauses import Clauses
from reprise.datalog.growth import Growth, Mode, ownership
from reprise.lang.core import Atom, Program, Relation
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import Fact, graphs
from tests.datalog.test_incremental import contents

BASE = """
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation out(n: node key, i: int key, t: tensor) @entity @same(t)
relation use(n: node key, i: int key, t: tensor) @entity @older(t)
relation dim(t: tensor key, axis: int key, extent: int) @entity
relation tag(v: node, s: sym)
"""
SHARED = (
    BASE
    + """
relation varies(v: node)
relation constant(v: node)
relation tensor_varies(t: tensor)
relation down(v: node, class: sym)
relation present(class: sym)
relation depth(v: node, n: int)
relation shape(t: tensor, n: int)
relation chain(a: node, b: node, c: node)
relation diamond(a: node, b: node)
relation apart(a: node, b: node)
relation fixed(t: tensor)
relation tagged(v: node)
relation quiet(v: node)
varies(V) :- node(V, a).
varies(V) :- edge(U, V, _), varies(U).
constant(V) :- node(V, _), not varies(V).
tensor_varies(T) :- out(N, _, T), varies(N).
tensor_varies(T) :- out(N, _, T), use(N, _, S), tensor_varies(S).
down(U, b) :- edge(U, V, _), node(V, b).
down(U, C) :- edge(U, V, _), down(V, C).
present(b) :- node(_, b).
depth(V, N) :- node(V, _), N == count{ U : edge(U, V, _) }.
shape(T, N) :- out(_, _, T), N == sum{ E : dim(T, _, E) }.
chain(A, B, C) :- edge(A, B, 0), edge(B, C, _), node(A, a), node(C, b), constant(B).
diamond(A, C) :- edge(A, C, 0), edge(A, C, 1), down(C, b).
apart(A, B) :- node(A, a), node(B, b), present(b), constant(A).
fixed(T) :- out(N, _, T), constant(N), shape(T, E), E < 3, not tensor_varies(T).
tagged(V) :- node(V, _), tag(V, a), not tag(V, b), varies(V).
quiet(V) :- constant(V), not down(V, b).
"""
)


def analysed(text: str) -> tuple[Clauses, Growth]:
    clauses = Clauses()
    clauses.add(read(text))
    level = {name: level.number for level in levels_of(clauses) for name in level.relations}
    return clauses, Growth(clauses, level)


def needed(text: str, head: str, mode: Mode) -> list[set[str]]:
    """By clause of ``head``, the relations whose insertions have to be joined."""
    clauses, growth = analysed(text)
    found = []
    for clause in clauses.clauses:
        if clause.head.relation == head:
            positions = growth.needs(clause, mode).insertions
            literals = [clause.body[i] for i in positions]
            found.append(
                {lit.relation if isinstance(lit, Atom) else lit.view for lit in literals}  # type: ignore[union-attr]
            )
    return found


@pytest.mark.parametrize(
    ("relation", "columns"),
    [("varies", {0}), ("constant", {0}), ("tensor_varies", {0}), ("shape", {0}), ("down", set()),
     ("depth", {0}), ("tagged", set()), ("chain", {2}), ("fixed", {0}), ("quiet", set())],
)  # fmt: skip
def test_settled_columns(relation: str, columns: set[int]) -> None:
    _, growth = analysed(SHARED)
    assert growth.settled(relation) == columns


def test_a_pattern_is_anchored_at_its_sink_only() -> None:
    assert needed(SHARED, "chain", Mode.GROWTH) == [{"node"}]
    assert needed(SHARED, "chain", Mode.BATCH) == [{"node"}]
    assert needed(SHARED, "chain", Mode.EDIT) == [{"edge", "node", "constant"}]


def test_a_recursive_relation_is_joined_again_only_if_several_entities_arrive() -> None:
    assert needed(SHARED, "varies", Mode.GROWTH) == [{"node"}, {"edge"}]
    assert needed(SHARED, "varies", Mode.BATCH) == [{"node"}, {"edge", "varies"}]


def test_what_lies_downstream_arrives_later_and_keeps_its_variant() -> None:
    assert needed(SHARED, "diamond", Mode.GROWTH) == [{"down"}]
    assert needed(SHARED, "down", Mode.GROWTH)[1] == {"down"}
    assert needed(SHARED, "down", Mode.BATCH)[1] == {"down", "edge"}


def test_unconnected_nodes_have_an_anchor_each() -> None:
    clauses, growth = analysed(SHARED)
    (clause,) = (c for c in clauses.clauses if c.head.relation == "apart")
    assert growth.needs(clause, Mode.GROWTH).insertions == (0, 1, 2)


def test_the_owner_is_the_first_entity_key_or_else_the_first_entity() -> None:
    relations = read(BASE + "relation pair(n: int, a: node, b: node) @entity").relations
    assert ownership(relations["edge"]) is not None
    assert ownership(relations["edge"]).owner == 1  # type: ignore[union-attr]
    assert ownership(relations["pair"]).owner == 1  # type: ignore[union-attr]
    assert ownership(relations["tag"]) is None
    assert ownership(Relation("none", (), entity=True)) is None


@pytest.mark.slow
@given(graphs(8), st.data())
@settings(deadline=None, max_examples=60)
def test_no_match_is_lost_however_the_facts_arrive(
    graph: list[list[Fact]], data: st.DataObject
) -> None:
    program: Program = read(SHARED)
    facts = [fact for owned in graph for fact in owned if fact[0] in program.relations]
    tags: list[Fact] = [("tag", (2 * data.draw(st.integers(0, 8)), s)) for s in ("a", "b")]
    expected = Database(program)
    for fact in data.draw(st.permutations([*facts, *tags])):
        expected.add(fact[0], *fact[1])
    loaded = Database(program)
    pending = [*graph]
    while pending:
        size = data.draw(st.integers(1, 3))
        chunk = [f for owned in pending[:size] for f in owned if f[0] in program.relations]
        del pending[:size]
        if data.draw(st.booleans()):
            with loaded.propose(chunk):
                pass
        loaded.commit(chunk)
    loaded.commit(tags)
    assert contents(loaded, program) == contents(expected, program)


def test_a_forward_reference_is_noticed_when_its_target_arrives() -> None:
    database = Database(read(SHARED))
    database.commit([("node", (2, "b")), ("edge", (5, 2, 0))])
    database.commit([("node", (4, "b"))])
    database.commit([("node", (5, "a"))])
    assert database.rows("varies") == [(2,), (5,)]
    assert database.rows("constant") == [(4,)]


def test_undo_lets_the_same_entities_arrive_again() -> None:
    database = Database(read(SHARED))
    database.commit([("node", (0, "a"))])
    facts = [("node", (1, "b")), ("edge", (0, 1, 0))]
    for _ in range(2):
        with database.propose(facts) as proposal:
            assert proposal.new("varies") == [(1,)]
    source = database.source()
    database.commit(facts)
    assert database.source() == source  # Nothing new was compiled: still a growth commit.
