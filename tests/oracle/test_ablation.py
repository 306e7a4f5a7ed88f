"""Pass ablation on made-up compilers: which passes it blames, and in how many runs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.oracle.ablation import Ablation, ablate
from reprise.oracle.verdict import Judgement, Verdict

PASSES = tuple(f"P{i:02}" for i in range(40))
FAILURE = Judgement(Verdict.CRASH, "crash | compile | E |  | m")
OTHER = Judgement(Verdict.CRASH, "crash | compile | E |  | other")
FINE = Judgement(Verdict.OK)


def compiler(*culprits: str, needed: frozenset[str] = frozenset()) -> Callable[..., Judgement]:
    """Fails as long as one of the culprits runs; fails otherwise without one of ``needed``."""

    def run(disabled: tuple[str, ...]) -> Judgement:
        if needed & set(disabled):
            return OTHER
        return FINE if set(culprits) <= set(disabled) else FAILURE

    return run


@pytest.mark.parametrize("culprit", [PASSES[0], PASSES[17], PASSES[39]])
def test_one_pass_is_found_by_halving(culprit: str) -> None:
    found = ablate(compiler(culprit), PASSES, FAILURE)
    assert found.cures == (culprit,)
    assert found.signature == f"pass:{culprit}"
    assert found.tried <= 1 + 2 * 6
    assert found.complete


def test_two_passes_that_do_the_same_harm_are_both_named() -> None:
    found = ablate(compiler("P31", "P05"), PASSES, FAILURE, budget=60)
    assert found.cures == ("P05", "P31")
    assert found.signature == "pass:P05+P31"


def test_if_either_pass_cures_the_first_is_named() -> None:
    def run(disabled: tuple[str, ...]) -> Judgement:
        return FINE if {"P11", "P29"} & set(disabled) else FAILURE

    assert ablate(run, PASSES, FAILURE).cures == ("P11",)


@pytest.mark.parametrize(
    ("cleaning", "culprit"),
    [
        ("EliminateIdentity", "GemmTransposeFusion"),
        ("ConstantFolding", "FuseReluClip"),
        ("CanonicalizeBindings", "FuseTIR"),
        ("DeadCodeElimination", "RewriteDataflowReshape"),
        ("FoldConstant", "LegalizeOps"),
    ],
)
def test_a_pass_that_cleaned_up_before_is_not_blamed(cleaning: str, culprit: str) -> None:
    def run(disabled: tuple[str, ...]) -> Judgement:
        return FINE if {cleaning, culprit} & set(disabled) else FAILURE

    for passes in ((cleaning, *PASSES, culprit), (culprit, cleaning, *PASSES)):
        assert ablate(run, passes, FAILURE).cures == (culprit,)


def test_if_no_pass_is_to_blame_one_run_says_so() -> None:
    assert ablate(lambda _: FAILURE, PASSES, FAILURE) == Ablation((), 1, True, "")
    assert ablate(lambda _: FAILURE, (), FAILURE) == Ablation()


def test_a_pass_that_must_not_be_left_out_does_not_hide_the_culprit() -> None:
    found = ablate(compiler("P33", needed=frozenset({"P02"})), PASSES, FAILURE, budget=60)
    assert found.cures == ("P33",)


def test_it_is_said_that_disabling_only_uncovers_another_failure() -> None:
    found = ablate(lambda _: OTHER, PASSES[:4], FAILURE)
    assert found.cures == ()
    assert found.uncovers == OTHER.signature


def test_the_budget_is_kept_and_what_was_found_by_then_is_told() -> None:
    found = ablate(compiler("P17"), PASSES, FAILURE, budget=4)
    assert found.tried == 4
    assert not found.complete
    assert "P17" in found.cures
    assert len(found.cures) < len(PASSES)


@given(st.sets(st.sampled_from(PASSES), min_size=1, max_size=4))
def test_what_is_named_cures_and_no_smaller_part_of_it_does(culprits: set[str]) -> None:
    run = compiler(*culprits)
    found = ablate(run, PASSES, FAILURE, budget=500)
    assert set(found.cures) == culprits
    assert found == ablate(run, PASSES, FAILURE, budget=500)


@pytest.mark.parametrize("failures", range(20))
def test_no_pass_is_blamed_for_what_does_not_fail_every_time(failures: int) -> None:
    """A failure that stays away after some runs, whatever is disabled."""
    left = iter([FAILURE] * failures)

    def run(disabled: tuple[str, ...]) -> Judgement:
        return next(left, FINE)

    found = ablate(run, PASSES, FAILURE)
    assert found.cures == () and found.signature == ""
    # With everything disabled it fails the same: no pass is to blame, and nothing else is asked.
    assert found.stable == (failures > 1)
    assert found.evidence()["stable"] is found.stable


@given(st.integers(0, 2**32))
def test_the_whole_program_is_run_at_most_twice_more(seed: int) -> None:
    random, whole = Random(seed), 0

    def run(disabled: tuple[str, ...]) -> Judgement:
        nonlocal whole
        whole += not disabled
        return random.choice((FAILURE, OTHER, FINE))

    ablate(run, PASSES, FAILURE)
    assert 1 <= whole <= 2
