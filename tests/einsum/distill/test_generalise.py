"""Distilling comes back to a defect that was planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.distill.asking import Spent
from reprise.distill.reduce import Budget
from reprise.einsum.distill.distilling import KernelDistilled
from reprise.einsum.distill.generalise import Generaliser
from reprise.einsum.distill.rule import named, with_tests
from reprise.einsum.distill.tighten import tightened
from reprise.einsum.distill.trials import Asker
from reprise.einsum.distill.view import View
from reprise.einsum.filing import KnownKernels
from reprise.einsum.symptom import Symptom
from reprise.einsum.testing import TestRequest, kernel_options
from reprise.einsum.text import parse
from reprise.lang.ruleset import load_text
from reprise.oracle.verdict import Verdict
from reprise.patterns.testing import run_tests
from tests.einsum.distill.planted import Planted, generaliser

CYCLIC = 'deny planted(A) "" :- output_tensor(A), cyclic(A).'
COLUMNS = """
deny planted(O, U) "" :- operand(O, X, B), operand(U, X, C), O < U, columns(B), columns(C).
columns(T) :- level(T, 0, dense, 1), level(T, 1, compressed, 0)."""
ON_COLUMNS = "A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds:1,0, C: ds:1,0"


ON_CYCLIC = "A(i,j,k) = B(i,j,k) where A: ddd:1,2,0, B: sss"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Generaliser:
    """A distillation of a kernel on which ``CYCLIC`` fails."""
    made = generaliser(ON_CYCLIC, Planted(CYCLIC, tmp_path_factory.mktemp("planted")), samples=4)
    made.run()
    return made


@pytest.mark.slow
def test_a_rule_about_the_output_is_found_as_it_was_planted(work: Generaliser) -> None:
    assert [c.text for c in work.draft.conditions] == ["cyclic(A)"]
    assert work.draft.operands == work.draft.indices == ()
    assert work.record.complete and work.record.fresh == (16, 16)
    assert work.asker.runs < 250


@pytest.mark.slow
def test_a_rule_about_the_order_of_loops_is_about_kernels_of_any_size(tmp_path: Path) -> None:
    trials = Planted('deny planted(A) "" :- output_tensor(A), sparse_cycle(_).', tmp_path)
    work = generaliser("A(i) = B(i,j) * C(j,i) where B: ds, C: ds", trials, samples=4)
    work.run()
    assert [c.text for c in work.draft.conditions] == ["sparse_cycle(_)"]
    larger = parse("ij,jk,kl,li->i where B: ds, C: ds, D: ds, E: ds").kernel()
    assert work.draft.matches(View(larger))
    turned = parse("ij,jk,kl,il->i where B: ds, C: ds, D: ds, E: ds").kernel()
    assert not work.draft.matches(View(turned))


@pytest.mark.slow
def test_a_rule_about_two_operands_is_as_good_as_the_planted_one(tmp_path: Path) -> None:
    trials = Planted(COLUMNS, tmp_path)
    work = generaliser(ON_COLUMNS, trials, samples=8)
    work.run()
    held = tightened(work, 100)
    assert held.draft is not None
    score = held.score
    assert score.precision.trials >= 5
    assert score.precision.value is not None and score.precision.value > 0.9
    assert score.recall.value is not None and score.recall.value > 0.6
    assert score.false_alarms.events == 0


def test_kernels_that_pass_narrow_a_rule_that_is_too_general(tmp_path: Path) -> None:
    trials = Planted(CYCLIC, tmp_path)
    work = generaliser(ON_CYCLIC, trials)
    (wide,) = (c for c in work.all if c.text == "disordered(A)")
    work.draft = work.draft.without(*(c for c in work.all if c != wide))
    for name in (*work.draft.operands, *work.draft.indices):
        work.draft = work.draft.without_variable(name)
    held = tightened(work, 60)
    assert [round.added.text for round in held.rounds if round.added] == ["cyclic(A)"]
    assert held.draft is not None and held.score.precision.value == 1


@pytest.fixture(scope="module")
def rule(work: Generaliser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distilled rule's file."""
    file = tmp_path_factory.mktemp("rule") / "distilled.rules"
    file.write_text(_text(work))
    return file


def _text(work: Generaliser) -> str:
    symptom = Symptom(Verdict.WRONG_RESULT, "values", "got {1}")
    draft = named(work.draft, "learned_1", "tensora", {"tensora": "0.6"}, work.triggers[0], symptom)
    text = with_tests(draft, work.triggers, work.passing)
    assert KernelDistilled(draft, text, work.record).discarded is False
    return text


def test_the_rule_shows_kernels_on_either_side(rule: Path) -> None:
    results = run_tests(load_text(rule.read_text()))
    assert {result.kind for result in results} == {"match", "no_match"}
    assert all(result.ok for result in results)


@pytest.mark.slow
def test_the_rule_keeps_its_kin_from_being_generated(rule: Path, tmp_path: Path) -> None:
    planted = Planted(CYCLIC, tmp_path)
    request = TestRequest("tensora", 5, kernel_options("tensora", {}))
    tests = request()
    kernels = [tests.program(number).program.kernel for number in range(40)]
    assert any(map(planted.is_hit, kernels))
    tests.learn((rule,))  # as a run does that learned it
    after = [tests.program(number) for number in range(40)]
    assert not any(planted.is_hit(made.program.kernel) for made in after)
    assert sum(made.rejected["learned_1"] for made in after) > 0
    given = TestRequest("tensora", 5, kernel_options("tensora", {}), (rule,))()
    assert given.program(7).program == after[7].program  # as --rules FILE does


def test_a_finding_is_filed_under_the_rule_by_its_symptom(rule: Path) -> None:
    known = KnownKernels("tensora", (rule,))()
    assert known.symptoms["learned_1"] == {"wrong_result"}


@pytest.mark.slow
def test_the_same_seed_makes_the_same_rule_whatever_the_number_of_processes(
    tmp_path: Path,
) -> None:
    texts = []
    for jobs in (1, 2):
        trials = Planted(CYCLIC, tmp_path, jobs)
        work = generaliser("A(i,j,k) = B(i,j,k) where A: ddd:1,2,0", trials, samples=3)
        work.run()
        texts.append((work.draft.text(), work.record.experiments))
    assert texts[0] == texts[1]


def test_a_spent_budget_leaves_a_rule_about_the_kernel(tmp_path: Path) -> None:
    trials = Planted(COLUMNS, tmp_path)
    work = generaliser(ON_COLUMNS, trials)
    work.asker = Asker(trials, Budget(runs=30))
    with pytest.raises(Spent):
        work.run()
    assert trials.runs == 30
    assert not work.record.complete and work.record.interrupted
    assert work.draft.matches(View(work.triggers[0]))
