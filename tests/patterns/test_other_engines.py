"""A second opinion: other engines find the same matches from the same core program and facts."""

from collections.abc import Callable
from functools import cache

import pytest

from reprise.datalog import Database, Engine, UnsupportedError
from reprise.datalog.clingo_engine import ClingoEngine
from reprise.datalog.pydatalog_engine import PyDatalogEngine
from reprise.facts.facts import facts_of
from reprise.lang import core
from tests.patterns.test_law import matcher, random_graph

Maker = Callable[[core.Program], Engine]


@cache
def runnable(other: Maker) -> tuple[str, ...]:
    """The patterns that an engine can run: none has our aggregates and floats in full."""
    names = []
    for pattern in matcher().patterns:
        try:
            other(matcher().program.restricted_to([pattern.name])).rows(pattern.name)
        except UnsupportedError:
            continue
        names.append(pattern.name)
    assert len(names) >= 25
    return tuple(names)


def agree(seed: int, other: Maker) -> bool:
    """Whether both engines find the same matches (and there are any)."""
    names = runnable(other)
    program = matcher().program.restricted_to(names)
    facts = [f for f in facts_of(random_graph(seed, 14)) if f[0] in program.relations]
    answers = []
    for engine in (Database(program), other(program)):
        engine.commit(facts)
        answers.append({name: engine.rows(name) for name in names})
    assert answers[0] == answers[1]
    return any(answers[0].values())


@pytest.mark.slow
def test_clingo_finds_the_same_matches() -> None:
    assert sum(agree(seed, ClingoEngine) for seed in range(12)) >= 6


@pytest.mark.slow
def test_pydatalog_finds_the_same_matches() -> None:
    assert agree(3, PyDatalogEngine)
