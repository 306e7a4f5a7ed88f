"""One, one point zero, true and "1" are four values, wherever they meet."""

from __future__ import annotations

import math

import pytest

from reprise.datalog import Database, RowError
from tests.datalog.coretext_reader import read

TEXT = """
relation attr(v: int key, name: sym key, value: any)
relation loose(value: any)
relation ints(i: int)
relation floats(f: float)
relation int_of(v: int, i: int)
relation float_of(v: int, f: float)
relation symbol_of(v: int, s: sym)
relation same(v: int, w: int)
relation one(v: int)
relation about_one(v: int)
relation listed(v: int)
relation kept(value: any)
relation meets_int(v: int)
relation meets_float(v: int)
relation half(v: int, h: float)
relation kinds(n: int)
relation copied(v: int, f: float)
relation meets_copy(v: int)
int_of(V, I) :- attr(V, _, I).
float_of(V, F) :- attr(V, _, F).
symbol_of(V, S) :- attr(V, _, S).
same(V, W) :- attr(V, _, X), attr(W, _, X).
one(V) :- attr(V, _, 1).
about_one(V) :- attr(V, _, X), X == 1.
listed(V) :- attr(V, _, X), X in {1, x}.
kept(X) :- loose(X).
meets_int(V) :- attr(V, _, X), ints(X).
meets_float(V) :- attr(V, _, X), floats(X).
half(V, X / 2.0) :- attr(V, _, X).
copied(V, F) :- attr(V, _, X), F == X.
meets_copy(V) :- copied(V, F), floats(F).
kinds(N) :- N == count{ X : attr(_, _, X) }.
"""


@pytest.fixture
def database() -> Database:
    found = Database(read(TEXT))
    values = [1, 1.0, True, "1", "x", 2.5, math.nan, math.inf]
    found.commit({"attr": [(i, "a", value) for i, value in enumerate(values)]})
    found.commit({"ints": [(1,)], "floats": [(1,), (float("nan"),)]})
    return found


def test_any_values_keep_their_types(database: Database) -> None:
    stored = [row[2] for row in database.rows("attr")]
    assert [type(value) for value in stored] == [int, float, str, str, str, float, float, float]
    assert stored[2] == "true"


def test_typed_columns_take_what_is_of_their_type(database: Database) -> None:
    assert database.rows("int_of") == [(0, 1)]
    assert [v for v, _ in database.rows("float_of")] == [1, 5, 6, 7]
    assert database.rows("symbol_of") == [(2, "true"), (3, "1"), (4, "x")]
    assert database.rows("one") == [(0,)]
    assert database.rows("meets_int") == [(0,)]
    assert database.rows("meets_float") == [(1,), (6,)]


def test_joins_are_by_identity_and_comparisons_by_value(database: Database) -> None:
    assert database.rows("same") == [(v, v) for v in range(8)]
    assert database.rows("about_one") == [(0,), (1,)]
    assert database.rows("listed") == [(0,), (1,), (4,)]
    assert database.rows("kinds") == [(8,)]


def test_computed_values_are_tested_like_stored_ones(database: Database) -> None:
    assert [v for v, _ in database.rows("copied")] == [1, 5, 6, 7]
    assert database.rows("meets_copy") == [(1,), (6,)]
    assert str(database.why("copied", 1, 1.0)).endswith("1.0 == 1.0")
    with pytest.raises(RowError):
        database.why("copied", 0, 1.0)


def test_arithmetic_skips_what_is_not_a_number(database: Database) -> None:
    assert [v for v, _ in database.rows("half")] == [0, 1, 5, 6, 7]


def test_a_relation_without_key_tells_one_from_one_point_zero(database: Database) -> None:
    database.commit({"loose": [(1.0,), (1,), ("1",)]})
    assert [repr(row[0]) for row in database.rows("kept")] == ["1.0", "1", "'1'"]
    database.delete({"loose": [(1.0,)]})
    assert [repr(row[0]) for row in database.rows("kept")] == ["1", "'1'"]


def test_look_ups_by_pattern_respect_types(database: Database) -> None:
    assert database.match("attr", (None, None, 1.0)) == [(1, "a", 1.0)]
    assert database.match("attr", (0, None, None)) == [(0, "a", 1)]
    assert database.match("attr", (0, "a", 1.0)) == []
    assert database.match("int_of", (None, 1)) == [(0, 1)]
    with pytest.raises(RowError):
        database.match("attr", (None,))


def test_floats_accept_ints_and_merge_nans() -> None:
    database = Database(read("relation f(x: float)"))
    database.commit({"f": [(1,), (1.0,), (float("nan"),), (float("nan"),), (-1,)]})
    assert database.count("f") == 3
    rows = database.rows("f")
    assert rows[:2] == [(-1.0,), (1.0,)]
    assert math.isnan(rows[2][0])


def test_output_is_sorted_whatever_the_types() -> None:
    database = Database(read("relation r(x: any, y: sym)"))
    database.commit({"r": [("b", "x"), (2, "x"), ("a", "x"), (1.5, "x"), (math.nan, "x")]})
    assert [row[0] for row in database.rows("r") if row[0] == row[0]] == [1.5, 2, "a", "b"]


def test_entities_are_not_negative() -> None:
    database = Database(read("relation e(a: node, b: node key) @entity @older(a)"))
    for row in ((-1, 2), (0, -2)):
        with pytest.raises(RowError, match="node"):
            database.commit([("e", row)])
