"""What no caller should hand to a database: refused with the engine's own errors, without a trace.

Each value is tried on a fresh database, where facts are loaded relation by relation, and on one
that has seen many commits, where one generated function loads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reprise.datalog import Database, DatalogError
from tests.datalog.coretext_reader import read

PROGRAM = """
relation node(v: node key, op: sym) @entity
relation e(a: int, b: int)
relation p(a: int, b: int)
p(X, Y) :- e(X, Y).
"""


class _Thing:
    """A value of no known type; with the same words in every process, as test ids need."""

    def __repr__(self) -> str:
        return "thing"


_THING = _Thing()
NO_FACTS: list[Any] = [
    5, "x", b"x", _THING, [1], [[]], [None], [("e",)], [("e", None)], [("e", 5)],
    [(None, (1, 2))], [([], (1, 2))], [("e", (1, []))], [("e", ({}, 1))],
    {"e": 5}, {"e": None}, {"e": [5]}, {"e": [None]}, {None: [(1, 2)]}, [("e", (1, 2), 3)],
    {"e": ["ab"]}, {"e": [{1, 2}]},
    [("node", (1, None))], [("node", (True, "a"))], [("node", (-1, "a"))], [("p", 5)],
    [("p", (1, []))], {"p": [None]}, {"e": [[1, []]]}, [("nope", (1,))], [("e", (1, 2)), ("e", ())],
]  # fmt: skip
NO_VALUES: list[Any] = [[1], {}, _THING, b"x", (1,)]


def database(commits: int) -> Database:
    made = Database(read(PROGRAM))
    for i in range(commits):
        made.commit([("e", (i, i)), ("node", (i, "a")), ("p", (i, 9))])
    return made


def refused(made: Database, call: Callable[[], object]) -> None:
    before = [made.rows(name) for name in ("node", "e", "p")]
    with pytest.raises(DatalogError):
        call()
    assert [made.rows(name) for name in ("node", "e", "p")] == before


@pytest.mark.parametrize("commits", [0, 10])
@pytest.mark.parametrize("facts", NO_FACTS, ids=repr)
def test_what_are_no_facts_is_refused(facts: Any, commits: int) -> None:
    made = database(commits)
    refused(made, lambda: made.commit(facts))
    refused(made, lambda: made.propose(facts))
    refused(made, lambda: made.commit((), facts))
    made.add("e", 77, 78)
    assert made.contains("p", 77, 78)


@pytest.mark.parametrize("value", NO_VALUES, ids=repr)
def test_what_is_no_value_is_refused(value: Any) -> None:
    made = database(10)
    for call in (
        lambda: made.add("e", value, 2),
        lambda: made.add(value, 1, 2),
        lambda: made.contains("e", value, 1),
        lambda: made.match("e", [value, 1]),
        lambda: made.match("node", [value, None]),
        lambda: made.match(value, [1, 1]),
        lambda: made.match("e", 5),  # type: ignore[arg-type]
        lambda: made.why("p", value, 1),
        lambda: made.why_not("p", value, 1),
        lambda: made.why_not("p", value, None),
        lambda: made.rows(value),
        lambda: made.count(value),
        lambda: made.commit([]).new(value),
        lambda: made.undo(value),
        lambda: made.release(value),
        lambda: made.extend(value),
        lambda: Database(value),
    ):
        refused(made, call)


def test_commits_without_facts_do_nothing() -> None:
    made = Database(read(PROGRAM))
    for _ in range(10):
        assert made.commit([]).relations() == []
        assert made.commit({}).relations() == []
        assert made.commit().relations() == []
