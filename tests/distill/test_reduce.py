"""Reductions: what they come to, and that they can be relied on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from reprise.distill.flow import Flow
from reprise.distill.forms import UirForm
from reprise.distill.reduce import Budget, Reduced, Reducer, Stop, Taken
from reprise.distill.subject import NotShown, open_trials
from reprise.distill.trials import Shown, Trials
from reprise.oracle.verdict import Verdict
from reprise.uir.program import Program
from reprise.uir.text import parse_uir, print_uir
from tests.distill.toys import program, random_program, signatures, subject, toy


class Recorder:
    """Remembers every best."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.taken: list[Taken] = []

    def tried(self, edit: str, trials: int, runs: int, flow: Flow) -> None: ...

    def took(self, taken: Taken, flow: Flow) -> None:
        self.taken.append(taken)
        self.flows.append(flow)


def reduce(
    made: Program,
    *,
    jobs: int = 1,
    budget: Budget | None = None,
    watch: Recorder | None = None,
    keep: Path | None = None,
) -> Reduced:
    trials, form = open_trials(subject(made), jobs=jobs, exact=True, keep=keep)
    with trials:
        reducer = Reducer(UirForm(signatures(), "test"), trials, form, budget, watch)
        return reducer.run()


def text(reduced: Reduced) -> str:
    return print_uir(reduced.program.graph)


def operators(reduced: Reduced) -> list[str]:
    return [node.op for node in reduced.program.graph.nodes]


def values(reduced: Reduced) -> dict[str, list[object]]:
    return {name: array.tolist() for name, array in reduced.program.inputs.items()}


RELU_CLIP = """
x: float64[3, 4]
a = abs(x)
r = relu(a)
e = exp(x)
c = clip(r, min=0.0, max=6.0)
s = add(c, e)
t = neg(s)
"""


@pytest.mark.slow
def test_a_crash_is_reduced_to_the_nodes_of_its_pattern() -> None:
    reduced = reduce(program(RELU_CLIP))
    assert operators(reduced) == ["relu", "clip"]
    assert reduced.stop is Stop.MINIMAL
    (source,) = reduced.flow.sources
    assert (source.dtype, source.shape, source.value.tolist()) == ("float64", (), 0.0)


@pytest.mark.slow
def test_a_wrong_result_keeps_the_extents_that_it_needs() -> None:
    reduced = reduce(program("x: float32[5, 7, 2]\na = abs(x)\ne = exp(a)\nt = relu(e)\n"))
    assert operators(reduced) == ["exp"]
    (source,) = reduced.flow.sources
    assert source.value.size == 6


@pytest.mark.slow
def test_a_wrong_result_keeps_the_rank_that_it_needs() -> None:
    reduced = reduce(program("x: float32[1, 3, 1]\na = neg(x)\nb = neg(a)\nc = relu(b)\n"))
    assert operators(reduced) == ["neg", "neg"]
    assert reduced.flow.sources[0].shape == (1, 1)


@pytest.mark.slow
def test_values_are_kept_where_the_defect_needs_them() -> None:
    made = program("x: float32[2, 2]\na = abs(x)\nt = tanh(a)\n", {"x": [[0, 1], [-5.5, 1]]})
    reduced = reduce(made)
    assert operators(reduced) == ["tanh"]
    (source,) = reduced.flow.sources
    assert source.shape == ()
    assert source.value == 6


@pytest.mark.slow
def test_extents_follow_in_other_sources_and_in_attributes() -> None:
    reduced = reduce(
        program(
            """
            x: float32[6, 8]
            w: float32[8]
            a = reshape(x, shape=[2, 24])
            b = reshape(a, shape=[6, 8])
            c = add(b, w)
            e = exp(c)
            n = neg(e)
            m = neg(n)
            r = reshape(m, shape=[48])
            """
        )
    )
    assert operators(reduced) in (["exp"], ["neg", "neg"])


@pytest.mark.slow
@pytest.mark.parametrize("first", ["tanh", "sigmoid"])
def test_of_two_defects_with_one_symptom_the_first_stays(first: str) -> None:
    """Both die in the same words, in the same place; the one that is met first is the finding."""
    second = {"tanh": "sigmoid", "sigmoid": "tanh"}[first]
    made = program(
        f"""
        x: float32[4]
        y: float32[4]
        p = abs(x)
        a = {first}(p)
        b = mul(a, y)
        c = {second}(y)
        d = add(b, c)
        """,
        {"x": [3, 4, 5, 6], "y": [7, 8, 9, 10]},
    )
    assert operators(reduce(made)) == [first]


@pytest.mark.slow
def test_a_defect_is_not_swapped_for_another_of_the_same_kind() -> None:
    """Two wrong results; only one is cured by the pass that the finding blames."""
    made = program("x: float32[3, 4]\ny: float32[3]\na = neg(x)\nb = neg(a)\nc = exp(y)\n")
    trials, _ = open_trials(subject(made), exact=True)
    with trials:
        assert trials.aim is not None
        assert trials.aim.cures == ("fuse_neg_neg",)
        other = program("y: float32[2, 4]\nc = exp(y)\n")
        assert trials.try_one(other).shown is Shown.OTHER
    assert operators(reduce(made)) == ["neg", "neg"]


@pytest.mark.slow
def test_a_crash_beside_a_wrong_result_stays_a_crash() -> None:
    made = program(RELU_CLIP + "n = neg(x)\nm = neg(n)\n")
    trials, _ = open_trials(subject(made), exact=True)
    with trials:
        assert trials.aim is not None
        assert trials.aim.verdict is Verdict.CRASH
    assert operators(reduce(made)) == ["relu", "clip"]


@pytest.mark.slow
def test_what_is_minimal_stays_as_it_is() -> None:
    once = reduce(program(RELU_CLIP))
    twice = reduce(once.program)
    assert text(twice) == text(once)
    assert not twice.taken


@pytest.mark.slow
def test_a_program_that_does_not_fail_is_refused() -> None:
    with pytest.raises(NotShown, match="does not fail"):
        reduce(program("x: float32[2]\na = abs(x)\n"))


@pytest.mark.slow
def test_a_budget_ends_it_with_the_best_so_far() -> None:
    whole = reduce(program(RELU_CLIP))
    part = reduce(program(RELU_CLIP), budget=Budget(runs=6))
    assert part.stop is Stop.BUDGET
    assert part.runs <= 6
    assert part.taken == whole.taken[: len(part.taken)]
    assert part.cost > whole.cost


@pytest.mark.slow
def test_it_goes_on_where_it_was_and_runs_nothing_twice(tmp_path: Path) -> None:
    keep = tmp_path / "trials.jsonl"
    whole = reduce(program(RELU_CLIP))
    reduce(program(RELU_CLIP), budget=Budget(runs=20), keep=keep)
    known = len(keep.read_text().splitlines())
    trials, form = open_trials(subject(program(RELU_CLIP)), exact=True, keep=keep)
    with trials:
        before = trials.count.runs
        again = Reducer(UirForm(signatures(), "test"), trials, form).run()
        fresh = trials.count.runs - before
    assert text(again) == text(whole)
    assert again.taken == whole.taken
    assert (again.trials, again.runs) == (whole.trials, whole.runs)
    assert known > 5
    assert 0 < fresh < whole.runs - 5


@pytest.mark.slow
def test_answers_about_another_defect_are_not_used(tmp_path: Path) -> None:
    keep = tmp_path / "trials.jsonl"
    reduce(program(RELU_CLIP), keep=keep)
    made = program("x: float32[3, 3]\na = abs(x)\nb = exp(a)\n")
    assert operators(reduce(made, keep=keep)) == ["exp"]


@pytest.mark.slow
def test_a_line_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    keep = tmp_path / "trials.jsonl"
    whole = reduce(program(RELU_CLIP), keep=keep)
    keep.write_bytes(keep.read_bytes()[:-20])
    assert text(reduce(program(RELU_CLIP), keep=keep)) == text(whole)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000))
@example(442)  # smaller values show earlier what is wrong
def test_any_failing_program_is_reduced_step_by_step(seed: int) -> None:
    """Costs go down with every edit, every best shows the defect, the text of the last says all,
    and there is nothing left to do."""
    made = random_program(seed)
    recorder = Recorder()
    try:
        reduced = reduce(made, watch=recorder)
    except NotShown:
        assume(False)
        raise
    form = UirForm(signatures(), "test")
    trials, _ = open_trials(subject(made), exact=True)
    with trials:
        for flow in recorder.flows:
            best = form.program(flow)
            assert best is not None
            assert trials.try_one(best).shown is Shown.SAME
    assert [t.nodes for t in recorder.taken] == sorted(
        (t.nodes for t in recorder.taken), reverse=True
    )
    read = parse_uir(text(reduced), "reduced.uir", signatures())
    assert print_uir(read) == text(reduced)
    left = operators(reduced)
    # what the dropped Negs add can take a number out of the table: both defects are needed
    assert len(left) <= 2 or left in (["neg", "neg", "tanh"], ["neg", "neg", "sigmoid"])
    again = reduce(reduced.program)
    assert text(again) == text(reduced)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000))
def test_the_result_does_not_depend_on_the_number_of_workers(seed: int) -> None:
    made = random_program(seed)
    try:
        one = reduce(made, jobs=1)
    except NotShown:
        assume(False)
        raise
    two = reduce(made, jobs=2)
    assert text(two) == text(one)
    assert two.taken == one.taken
    assert (two.trials, two.runs) == (one.trials, one.runs)
    assert values(two) == values(one)
    part = Budget(runs=one.runs // 2)
    assert text(reduce(made, jobs=2, budget=part)) == text(reduce(made, jobs=1, budget=part))


@pytest.mark.slow
def test_the_toy_compiler_is_right_when_it_does_not_optimise() -> None:
    """What the tests here rest on."""
    made = program(RELU_CLIP)
    with Trials(toy(), None) as trials:
        outputs = trials.baseline(made)
    assert outputs is not None
    x = made.inputs["x"]
    wanted = -(np.clip(np.abs(x), 0, 6) + np.exp(x))
    assert np.allclose(outputs[0], wanted)
