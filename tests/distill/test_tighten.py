"""Tightening against a planted defect, whose true trigger is known, needs no compiler."""

from __future__ import annotations

from typing import cast

import pytest

from reprise.campaign.source import SourceRequest, open_source
from reprise.distill.conditions import Among, Condition, Holds, Near, Term, Within
from reprise.distill.draft import Draft, DraftNode
from reprise.distill.tighten import Held, HeldOut, Round, score, tighten, tightened_text
from reprise.distill.trials import Aim, Trials
from reprise.oracle.verdict import Verdict
from reprise.synth.options import Options
from reprise.uir.program import Program

OPS = frozenset({"relu", "neg", "identity", "add", "sum"})


class Told:
    """Trials that nobody runs: a crash does not depend on inputs."""

    aim = Aim(Verdict.CRASH, "planted", "planted")

    def first(self, programs: object) -> Program | None:
        raise AssertionError("a crash needs no other inputs")


class Lucky(Told):
    """A wrong result that shows on other inputs."""

    aim = Aim(Verdict.WRONG_RESULT, "planted", "wrong | values | planted")

    def first(self, programs: object) -> Program | None:
        return next(iter(cast(list[Program], programs)))


TOLD = cast(Trials, Told())
LINES = (DraftNode("n1", ("relu",), ("x1",)), DraftNode("n2", ("neg",), ("n1",)))


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    options = Options(nodes=5, include=OPS, dtypes={"float32": 2, "float64": 2}, expose=0.3)
    source = open_source(SourceRequest(5, options, guided=False))
    return [source.program(index).program for index in range(500)]


def held_out(programs: list[Program], truth: Draft) -> HeldOut:
    held = HeldOut()
    held.extend(Held(program, truth.matches(program.graph)) for program in programs)
    return held


def planted(*conditions: Condition) -> Draft:
    return Draft(LINES, conditions)


@pytest.mark.parametrize(
    "condition",
    [
        Among(Term("dtype", "n1"), ("float64",)),
        Holds("initializer", "x1"),
        Holds("graph_output", "n1", negated=True),
        Within(Term("fanout", "n1"), 1, 1),
        Within(Term("rank", "x1"), 2, None),
        Near("user", "n2", ("neg",)),
    ],
    ids=str,
)
def test_the_missing_condition_is_found(programs: list[Program], condition: Condition) -> None:
    truth, general = planted(condition), planted()
    held = held_out(programs, truth)
    triggers = [h.program for h in held.learn if h.fails][:3]
    assert triggers, "the defect never shows"
    done = tighten(general, triggers, held, TOLD)
    assert done.draft is not None
    assert done.before.precision.value is not None and done.before.precision.value < 1
    assert len(done.rounds) <= 2
    for program in programs:
        if truth.matches(program.graph):
            assert done.draft.matches(program.graph) or len(triggers) < 3
    assert done.score.precision.low > done.before.precision.low
    assert done.score.false_alarms.events <= 2


def test_two_missing_conditions_are_found(programs: list[Program]) -> None:
    truth = planted(Among(Term("dtype", "n1"), ("float64",)), Holds("graph_output", "n1"))
    held = held_out(programs, truth)
    triggers = [h.program for h in held.learn if h.fails]
    done = tighten(planted(), triggers, held, TOLD)
    assert done.draft is not None
    assert done.draft.conditions and len(done.rounds) <= 3
    assert not any(done.draft.matches(h.graph) for h in held.learn if not h.fails)


def test_a_rule_that_is_right_stays_as_it_is(programs: list[Program]) -> None:
    truth = planted(Among(Term("dtype", "n1"), ("float64",)))
    done = tighten(truth, [], held_out(programs, truth), TOLD)
    assert done.draft == truth
    assert done.rounds == ()
    assert done.score.precision.value == done.score.recall.value == 1.0


def test_a_rule_that_nothing_can_mend_is_discarded(programs: list[Program]) -> None:
    matching = next(p for p in programs if len(list(planted().places(p.graph))) == 1)
    held = HeldOut()
    held.extend([Held(matching, True), Held(matching, True), Held(matching, False)])
    told: list[Round] = []
    done = tighten(planted(), [matching], held, TOLD, tell=told.append)
    assert done.draft is None
    assert done.reason == "nothing tells 1 false match from the triggers"
    lines = tightened_text(done)
    assert lines[0].startswith("- round 1: 1 false match; nothing could be added")
    assert tuple(told) == done.rounds
    assert [r.added for r in told] == [None]


def test_the_rounds_are_limited(programs: list[Program]) -> None:
    truth = planted(Among(Term("dtype", "n1"), ("float64",)), Holds("graph_output", "n1"))
    held = held_out(programs, truth)
    triggers = [h.program for h in held.learn if h.fails]
    done = tighten(planted(), triggers, held, TOLD, rounds=0)
    assert done.draft is None and "after 0 rounds" in done.reason


def test_a_match_that_fails_on_other_inputs_is_right(programs: list[Program]) -> None:
    never = HeldOut()
    with_inputs = [p for p in programs if p.inputs]
    never.extend(Held(program, False) for program in with_inputs)
    general = planted()
    matched = score(general, never.tell, cast(Trials, Lucky()))
    assert matched.precision.value == 1.0
    assert score(general, never.tell, TOLD).precision.value == 0.0
    assert tighten(general, [], never, cast(Trials, Lucky())).draft == general


def test_both_halves_have_both_kinds(programs: list[Program]) -> None:
    held = held_out(programs, planted())
    for fails in (True, False):
        halves = [sum(h.fails is fails for h in half) for half in (held.learn, held.tell)]
        assert abs(halves[0] - halves[1]) <= 1
