"""The law of the two readings for values: the engine and the solver compute and compare alike.

Any numbers and symbols, NaN, infinities, zeros and huge integers included, in arithmetic,
comparisons, memberships and aggregates.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.datalog import Database
from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Column,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Rule,
    Var,
)
from reprise.lang.diagnostics import RulesError
from reprise.patterns.truth import Solver, Truth

BASE = {
    "a": Relation("a", (Column("x", "any"),)),
    "b": Relation("b", (Column("x", "any"),)),
    "hit": Relation("hit", (Column("x", "int"),)),
}
X, Y, N = Var("X"), Var("Y"), Var("N")
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 0.2, 1e308, 0, 1, 1.0, -1, 10**400]
values: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([*SPECIAL, "float32", "bool", "s"]), st.integers(-5, 5), st.floats()
)
expressions: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(st.just(X), st.just(Y), values.map(Const)),
    lambda inner: st.one_of(
        st.builds(
            lambda op, left, right: Arith(op, (left, right)),
            st.sampled_from(["+", "-", "*", "/", "%", "min", "max"]),
            inner,
            inner,
        ),
        st.builds(lambda op, e: Arith(op, (e,)), st.sampled_from(["neg", "abs", "bits"]), inner),
    ),
    max_leaves=4,
)
comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


def agree(condition: tuple[Literal, ...], facts: dict[str, list[tuple[Any, ...]]]) -> None:
    body = (Atom("a", (X,)), Atom("b", (Y,)), *condition)
    program = Program(BASE, (Rule(Atom("hit", (Const(1),)), body),))
    try:
        database = Database(program)
    except RulesError:  # ill-typed: there is nothing to agree about
        return
    database.commit(facts)
    answer = Solver(program, database).ask(body, {})
    assert answer.truth is (Truth.YES if database.count("hit") else Truth.NO), (body, facts)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(values, values, comparisons, expressions, expressions)
def test_a_comparison_of_expressions(x: Any, y: Any, op: str, left: Expr, right: Expr) -> None:
    agree((Compare(op, left, right),), {"a": [(x,)], "b": [(y,)]})


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(values, values, expressions, st.lists(values, max_size=4), st.booleans())
def test_a_membership(x: Any, y: Any, left: Expr, options: list[Any], negated: bool) -> None:
    agree((Member(left, tuple(options), negated),), {"a": [(x,)], "b": [(y,)]})


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    values,
    st.lists(values, max_size=6),
    st.sampled_from(["count", "sum", "prod", "min", "max"]),
    comparisons,
    values,
)
def test_an_aggregate(x: Any, others: list[Any], kind: str, op: str, right: Any) -> None:
    total = Aggregate(N, kind, Var("Z"), (Atom("b", (Var("Z"),)),))
    facts = {"a": [(x,)], "b": [(value,) for value in (*others, 2)]}
    agree((total, Compare(op, N, Const(right))), facts)
