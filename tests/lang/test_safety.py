"""Which rules may run, and what a rule author is told about those that may not."""

from __future__ import annotations

import pytest

from reprise.lang.diagnostics import Diagnostic, Severity
from reprise.lang.safety import check_rule, variable_types
from tests.datalog.coretext_reader import read

RELATIONS = """
relation node(v: node key, op: sym) @entity
relation tensor(t: tensor key) @entity
relation edge(src: node, dst: node key, pos: int key) @entity
relation attr(v: node key, name: sym key, value: any) @entity
relation scale(v: node key, s: float) @entity
relation flag(v: node key, b: bool) @entity
relation fanout(v: node, n: int)
relation varies(v: node)
relation named(s: sym)
relation ratio(s: float)
"""


def problems(rule: str) -> list[Diagnostic]:
    program = read(RELATIONS + rule)
    return check_rule(program.rules[0], program.relations)


def codes(rule: str) -> list[str]:
    return [problem.code for problem in problems(rule)]


@pytest.mark.parametrize(
    "rule",
    [
        "varies(V) :- edge(U, V, _), varies(U).",
        "varies(V) :- node(V, _), not edge(V, _, _).",
        "fanout(V, N) :- node(V, _), N == count{ W : edge(V, W, _) }.",
        "fanout(V, N + 1) :- node(V, _), N == 2.",
        "fanout(V, N) :- node(V, _), N == M + 1, M == 2 * K, K in {1, 2}.",
        "named(S) :- S in {a, b}.",
        "named(S) :- attr(_, axis, S).",
        "fanout(V, A) :- attr(V, axis, A), A > 0.",
        "ratio(1) :- node(_, _).",
        "ratio(S * 2) :- scale(_, S).",
        "ratio(N) :- N == sum{ S : scale(_, S) }.",
        "fanout(V, N) :- node(V, _), L == 3, N == count{ P : edge(_, V, P), P < L }.",
        "varies(V) :- flag(V, true).",
        "varies(0).",
    ],
)
def test_rules_that_are_fit_to_run(rule: str) -> None:
    assert problems(rule) == []


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("varies(V) :- node(U, _).", "V"),
        ("varies(V) :- not edge(V, _, _).", "V"),
        ("fanout(V, N) :- node(V, _), M > 2, N == 1.", "M"),
        ("fanout(V, N) :- node(V, _), N == M + 1.", "M"),
        ("fanout(V, N) :- node(V, _), N == M, M == N.", "M"),
        ("fanout(V, 1) :- node(V, _), K not in {1, 2}.", "K"),
        ("fanout(V, N) :- N == count{ W : edge(V, W, _) }.", "V"),
        ("fanout(V, N) :- node(V, _), N == count{ X : edge(V, _, _) }.", "X"),
        ("fanout(V, W) :- node(V, _), N == count{ W : edge(V, _, W) }.", "W"),
    ],
)
def test_a_variable_without_a_value_is_named(rule: str, name: str) -> None:
    found = problems(rule)
    assert "unsafe-variable" in [problem.code for problem in found]
    assert any(f"`{name}` has no value" in problem.message for problem in found)


def test_the_hint_says_what_would_bind_the_variable() -> None:
    first, unsafe = problems("varies(V) :- not edge(V, _, _).")
    assert first.code == "only-negated"
    assert unsafe.hint == "a positive literal such as `edge(V, _, _)` would bind it"
    (chained, *_) = problems("fanout(V, N) :- node(V, _), N == M + 1.")
    assert chained.hint == "bind the other variables of `N == M + 1` first"


def test_a_name_only_under_not_is_told_about_the_wildcard() -> None:
    (found,) = problems("varies(V) :- node(V, _), not edge(V, W, _).")
    assert found.code == "only-negated"
    assert "`W` occurs only under `not`" in found.message
    assert found.hint is not None and "`_`" in found.hint


def test_unknown_relations_come_with_a_suggestion() -> None:
    (found,) = problems("varies(V) :- nodes(V, _).")
    assert (found.code, found.hint) == ("unknown-relation", "did you mean `node`?")


def test_the_wrong_number_of_arguments_names_the_columns() -> None:
    (found,) = problems("varies(V) :- edge(U, V).")
    assert found.code == "wrong-arity"
    assert found.hint == "its columns are (src, dst, pos)"


@pytest.mark.parametrize(
    "rule",
    [
        "varies(V) :- edge(V, _, V).",
        "varies(T) :- tensor(T).",
        "fanout(V, S) :- node(V, S).",
        "varies(V) :- node(V, 3).",
        "varies(V) :- node(a, _), node(V, _).",
        "varies(V) :- flag(V, maybe).",
        "fanout(V, S * 2) :- node(V, _), scale(V, S).",
        "fanout(V, N) :- node(V, S), N == S + 1.",
        "fanout(V, bits(N)) :- edge(_, V, N).",
        "varies(V) :- node(V, _), attr(_, x, V).",
        "fanout(V, N) :- node(V, _), N == sum{ O : node(V, O) }.",
        "ratio(S) :- fanout(_, S).",
    ],
)
def test_types_that_clash(rule: str) -> None:
    assert "type-conflict" in codes(rule)


def test_a_clash_names_both_places() -> None:
    (found,) = problems("varies(V) :- node(V, _), edge(_, _, V).")
    assert found.message == (
        "`V` is a node in `node` (column `v`) but an int in `edge` (column `pos`)"
    )


def test_arithmetic_belongs_into_the_head_or_an_equation() -> None:
    assert codes("varies(V) :- edge(_, V, 1 + 2).") == ["arithmetic-in-body"]


def test_an_order_of_symbols_is_warned_about() -> None:
    (found,) = problems("varies(V) :- node(V, O), O < relu.")
    assert (found.code, found.severity) == ("never-true", Severity.WARNING)


def test_typed_columns_decide_over_columns_of_any_type() -> None:
    program = read(RELATIONS + "fanout(V, A) :- attr(V, axis, A), attr(V, other, B).")
    assert variable_types(program.rules[0], program.relations) == {
        "V": "node", "A": "int", "B": "any"
    }  # fmt: skip
