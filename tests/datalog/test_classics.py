"""Programs with well-known answers, on our engine and on clingo."""

from __future__ import annotations

import pytest

from reprise.datalog import Database
from reprise.lang.core import Program, Row
from tests.datalog.coretext_reader import read

Given = dict[str, list[Row]]


def both(text: str, facts: Given, *relations: str) -> list[list[Row]]:
    """The rows of ``relations``, after our engine and clingo have agreed on them."""
    from reprise.datalog.clingo_engine import ClingoEngine

    program: Program = read(text)
    ours, theirs = Database(program), ClingoEngine(program)
    ours.commit(facts)
    theirs.commit(facts)
    for relation in program.relations:
        assert ours.rows(relation) == theirs.rows(relation), relation
    return [ours.rows(relation) for relation in relations]


CLOSURE = """
relation edge(a: int, b: int)
relation path(a: int, b: int)
path(X, Y) :- edge(X, Y).
"""
LINEAR = CLOSURE + "path(X, Z) :- path(X, Y), edge(Y, Z)."
NON_LINEAR = CLOSURE + "path(X, Z) :- path(X, Y), path(Y, Z)."


@pytest.mark.parametrize("text", [LINEAR, NON_LINEAR], ids=["linear", "non-linear"])
def test_transitive_closure_of_a_chain_and_of_a_cycle(text: str) -> None:
    chain = [(i, i + 1) for i in range(6)]
    (paths,) = both(text, {"edge": chain}, "path")
    assert paths == [(a, b) for a in range(7) for b in range(a + 1, 7)]
    (paths,) = both(text, {"edge": [*chain, (6, 0)]}, "path")
    assert paths == [(a, b) for a in range(7) for b in range(7)]


def test_same_generation() -> None:
    text = """
    relation parent(p: sym, c: sym)
    relation person(p: sym)
    relation same(a: sym, b: sym)
    person(X) :- parent(X, _).
    person(X) :- parent(_, X).
    same(X, X) :- person(X).
    same(X, Y) :- parent(P, X), same(P, Q), parent(Q, Y).
    """
    parents = [("ann", "bob"), ("ann", "cy"), ("bob", "dee"), ("cy", "eve"), ("eve", "fay")]
    (same,) = both(text, {"parent": parents}, "same")
    assert [pair for pair in same if pair[0] < pair[1]] == [("bob", "cy"), ("dee", "eve")]


def test_points_to_analysis_after_andersen() -> None:
    text = """
    relation new(v: sym, o: sym)
    relation assign(to: sym, from: sym)
    relation store(base: sym, field: sym, from: sym)
    relation load(to: sym, base: sym, field: sym)
    relation points(v: sym, o: sym)
    relation heap(o: sym, field: sym, p: sym)
    points(V, O) :- new(V, O).
    points(V, O) :- assign(V, W), points(W, O).
    heap(O, F, P) :- store(B, F, V), points(B, O), points(V, P).
    points(V, P) :- load(V, B, F), points(B, O), heap(O, F, P).
    """
    facts: Given = {
        "new": [("a", "o1"), ("b", "o2"), ("c", "o3")],
        "assign": [("d", "a"), ("d", "b")],
        "store": [("d", "f", "c")],
        "load": [("e", "a", "f"), ("g", "c", "f")],
    }
    points, heap = both(text, facts, "points", "heap")
    assert heap == [("o1", "f", "o3"), ("o2", "f", "o3")]
    assert ("e", "o3") in points
    assert not any(variable == "g" for variable, _ in points)


def test_positions_from_which_every_move_loses() -> None:
    text = """
    relation move(a: int, b: int)
    relation stuck(a: int)
    relation wins_at_once(a: int)
    relation safe(a: int)
    stuck(X) :- move(_, X), not move(X, _).
    wins_at_once(X) :- move(X, Y), stuck(Y).
    safe(X) :- move(X, _), not wins_at_once(X), not stuck(X).
    """
    moves = [(1, 2), (2, 3), (3, 4), (1, 3), (5, 1)]
    stuck, wins, safe = both(text, {"move": moves}, "stuck", "wins_at_once", "safe")
    assert (stuck, wins, safe) == ([(4,)], [(3,)], [(1,), (2,), (5,)])


def test_mutual_recursion() -> None:
    text = """
    relation next(a: int, b: int)
    relation even(a: int)
    relation odd(a: int)
    even(0).
    odd(Y) :- even(X), next(X, Y).
    even(Y) :- odd(X), next(X, Y).
    """
    even, odd = both(text, {"next": [(i, i + 1) for i in range(5)]}, "even", "odd")
    assert even == [(0,), (2,), (4,)]
    assert odd == [(1,), (3,), (5,)]


def test_aggregates_and_their_empty_groups() -> None:
    text = """
    relation item(i: sym)
    relation price(i: sym, shop: sym, p: int)
    relation shops(i: sym, n: int)
    relation prices(i: sym, n: int)
    relation total(i: sym, n: int)
    relation cheapest(i: sym, n: int)
    relation dearest(i: sym, n: int)
    relation all_prices(n: int)
    shops(I, N) :- item(I), N == count{ price(I, _, _) }.
    prices(I, N) :- item(I), N == count{ P : price(I, _, P) }.
    total(I, N) :- item(I), N == sum{ P : price(I, _, P) }.
    cheapest(I, N) :- item(I), N == min{ P : price(I, _, P) }.
    dearest(I, N) :- item(I), N == max{ P - 1 : price(I, _, P), P > 2 }.
    all_prices(N) :- N == count{ P : price(_, _, P) }.
    """
    facts: Given = {
        "item": [("nut",), ("bolt",), ("gear",)],
        "price": [("nut", "x", 2), ("nut", "y", 2), ("bolt", "x", 5), ("bolt", "y", 3)],
    }
    answers = both(text, facts, "shops", "prices", "total", "cheapest", "dearest", "all_prices")
    assert answers == [
        [("bolt", 2), ("gear", 0), ("nut", 2)],
        [("bolt", 2), ("gear", 0), ("nut", 1)],
        [("bolt", 8), ("gear", 0), ("nut", 4)],
        [("bolt", 3), ("nut", 2)],
        [("bolt", 4)],
        [(3,)],
    ]


def test_products_count_equal_factors_and_survive_zeros() -> None:
    text = """
    relation tensor(t: tensor key)
    relation dim(t: tensor key, axis: int key, extent: int)
    relation numel(t: tensor, n: int)
    numel(T, N) :- tensor(T), N == prod{ E : dim(T, _, E) }.
    """
    database = Database(read(text))
    database.commit({"tensor": [(0,), (1,)], "dim": [(0, 0, 4), (0, 1, 4), (0, 2, 0)]})
    assert database.rows("numel") == [(0, 0), (1, 1)]
    database.delete({"dim": [(0, 2, 0)]})
    assert database.rows("numel") == [(0, 16), (1, 1)]


def test_an_aggregate_compared_with_a_variable_from_outside() -> None:
    text = """
    relation price(i: sym, p: int)
    relation limit(n: int)
    relation below(limit: int, n: int)
    below(L, N) :- limit(L), N == count{ I : price(I, P), P < L }.
    """
    facts: Given = {"price": [("a", 1), ("b", 5), ("c", 9)], "limit": [(0,), (6,), (10,)]}
    (below,) = both(text, facts, "below")
    assert below == [(0, 0), (6, 2), (10, 3)]


def test_an_aggregate_over_an_aggregates_result() -> None:
    text = """
    relation edge(a: int, b: int)
    relation node(a: int)
    relation degree(a: int, n: int)
    relation busiest(n: int)
    relation hub(a: int)
    degree(X, N) :- node(X), N == count{ Y : edge(X, Y) }.
    busiest(N) :- N == max{ D : degree(_, D) }.
    hub(X) :- degree(X, N), busiest(N), N > 0.
    """
    nodes = [(i,) for i in range(4)]
    edges = [(0, 1), (0, 2), (1, 2), (3, 0), (3, 1)]
    (hub,) = both(text, {"node": nodes, "edge": edges}, "hub")
    assert hub == [(0,), (3,)]


def test_arithmetic_follows_python_and_undefined_results_are_false() -> None:
    text = """
    relation pair(a: int, b: int)
    relation quotient(a: int, b: int, q: int)
    relation remainder(a: int, b: int, r: int)
    relation extremes(a: int, b: int, low: int, high: int)
    quotient(A, B, A / B) :- pair(A, B).
    remainder(A, B, R) :- pair(A, B), R == A % B.
    extremes(A, B, min(A, B), abs(max(A, B) - 10)) :- pair(A, B), A / B != 100.
    """
    pairs: list[Row] = [(7, 2), (-7, 2), (7, -2), (-7, -2), (3, 0), (0, 5)]
    quotient, remainder, extremes = both(text, {"pair": pairs}, "quotient", "remainder", "extremes")
    defined = sorted(pair for pair in pairs if pair[1] != 0)
    assert quotient == [(a, b, a // b) for a, b in defined]
    assert remainder == [(a, b, a % b) for a, b in defined]
    assert extremes == [(a, b, min(a, b), abs(max(a, b) - 10)) for a, b in defined]


def test_membership_tests_and_enumerates() -> None:
    text = """
    relation node(v: int, op: sym)
    relation rare(v: int)
    relation pointwise(v: int)
    relation choice(n: int)
    rare(V) :- node(V, O), O not in {relu, tanh}.
    pointwise(V) :- node(V, O), O in {relu, tanh, "a b"}.
    choice(N) :- N in {3, 1, 2}, N != 2.
    """
    nodes: list[Row] = [(0, "relu"), (1, "conv"), (2, "a b")]
    rare, pointwise, choice = both(text, {"node": nodes}, "rare", "pointwise", "choice")
    assert (rare, pointwise, choice) == ([(1,), (2,)], [(0,), (2,)], [(1,), (3,)])
