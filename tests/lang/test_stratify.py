"""Strata and the cycles that forbid them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.lang.core import Program, Rule
from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from reprise.lang.stratify import components, stratify
from tests.datalog.coretext_reader import read


def order(text: str) -> list[tuple[set[str], bool]]:
    return [(set(s.relations), s.recursive) for s in stratify(read(text))]


def refusal(program: Program) -> Diagnostic:
    with pytest.raises(RulesError) as caught:
        stratify(program)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_each_stratum_comes_after_what_it_reads() -> None:
    strata = order("""
    far(X) :- node(X), not path(X, _).
    path(X, Z) :- path(X, Y), edge(Y, Z).
    path(X, Y) :- edge(X, Y).
    ping(X) :- pong(X).
    pong(X) :- ping(X).
    pong(X) :- far(X).
    """)
    assert strata == [({"path"}, True), ({"far"}, False), ({"ping", "pong"}, True)]


def test_a_relation_may_not_negate_itself() -> None:
    found = refusal(read("win(X) :- move(X, Y), not win(Y)."))
    assert found.code == "not-stratified"
    assert found.message == "`win` depends on itself through `not`: win -> not win"


def test_the_cycle_is_spelt_out_with_rules_and_places() -> None:
    program = read("""
    a(X) :- base(X), not b(X).
    b(X) :- c(X).
    c(X) :- a(X).
    d(X) :- a(X).
    """)
    rules = tuple(
        Rule(rule.head, rule.body, f"rule_{rule.head.relation}", Span("f.rules", i, 1, i, 9))
        for i, rule in enumerate(program.rules, start=1)
    )
    found = refusal(Program(program.relations, rules))
    assert found.message.endswith("a -> not b -> c -> a")
    assert found.span.line == 1
    assert found.hint == (
        "`a` reads `not b` in rule_a at f.rules:1:1; `b` reads `c` in rule_b at f.rules:2:1; "
        "`c` reads `a` in rule_c at f.rules:3:1"
    )


def test_an_aggregate_needs_its_body_complete() -> None:
    found = refusal(read("size(N) :- N == count{ X : part(X) }.  part(N) :- size(N)."))
    assert "through an aggregate: size -> count of part -> size" in found.message


def test_every_faulty_component_is_reported() -> None:
    with pytest.raises(RulesError) as caught:
        stratify(read("a(X) :- e(X), not a(X).  b(X) :- e(X), not b(X)."))
    assert len(caught.value.diagnostics) == 2


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=8, max_size=8))
def test_components_are_the_classes_of_mutual_reachability(edges: list[list[int]]) -> None:
    graph = dict(enumerate(edges))
    reach = {node: {node} for node in graph}
    for _ in graph:
        for node in graph:
            for successor in graph[node]:
                reach[node] |= reach[successor]
    found = components(graph)
    assert sorted(node for component in found for node in component) == sorted(graph)
    for i, component in enumerate(found):
        for node in component:
            assert {other for other in reach[node] if node in reach[other]} == set(component)
            assert reach[node] <= {other for earlier in found[: i + 1] for other in earlier}
