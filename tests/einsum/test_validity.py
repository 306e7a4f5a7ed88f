"""What the rules say of kernels: each is shown to fire, alone, on a kernel that was valid."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.cli import einsum as commands
from reprise.data import data_path
from reprise.einsum.facts import facts_as_written, facts_of
from reprise.einsum.kernel import Kernel, KernelError
from reprise.einsum.settings import LIMITS, PERMISSIONS, TARGETS, USUAL, Settings
from reprise.einsum.text import parse
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.validity import Validity, load_kernel_rules, specialised
from reprise.lang.ruleset import load_rules
from tests.einsum.kernels import kernels

RULES = load_kernel_rules()
LAX = Settings(allowed=frozenset(PERMISSIONS))
TIGHT = Settings(
    (("most_operands", 2), ("most_terms", 2), ("most_indices", 2), ("most_elements", 20),
     ("most_iterations", 30)),
    frozenset(),
)  # fmt: skip


def without(name: str) -> Settings:
    return Settings(allowed=frozenset(PERMISSIONS) - {name})


def at_most(name: str, value: int) -> Settings:
    return Settings(((name, value),), frozenset(PERMISSIONS))


def aimed(*targets: str) -> Settings:
    return Settings(allowed=frozenset(PERMISSIONS), targets=targets)


# Rule -> settings, a kernel to which there is no objection, and a mutant to which there is one.
CASES = {
    "too_many_operands": (at_most("most_operands", 2), "i,i->i", "i,i,i->i"),
    "too_many_terms": (at_most("most_terms", 1), "i->i", "i+i->i"),
    "rank_over_limit": (at_most("most_indices", 1), "i,j->i", "ij,j->i"),
    "output_rank_over_limit": (at_most("most_indices", 1), "i,j->i", "i,j->ij"),
    "lonely_index": (without("reductions"), "ij,j->i", "ij,i->i"),
    "unbound_output": (LAX, "i->i", "i->ij"),
    "broadcast": (without("broadcasts"), "ij+ij->ij", "ij+i->ij"),
    "repeated_output": (LAX, "ij->ij", "ij->ii"),
    "diagonal": (without("diagonals"), "ij,j->i", "ii,i->i"),
    "outer_product": (without("outer_products"), "ij,j->ij", "ij,k->ijk"),
    "scalar_operand": (without("scalars"), "i,i->i", "i,->i"),
    "scalar_output": (without("scalars"), "i,i->i", "i,i->"),
    "sum_of_terms": (without("sums"), "i,i->i", "i+i->i"),
    "output_is_read": (LAX, "A(i) = B(i)", "A(i) = A(i)"),
    "repeated_tensor": (without("repeated_tensors"), "A(i) = B(i) * C(i)", "A(i) = B(i) * B(i)"),
    "ranks_differ": (LAX, "A(i) = B(i) * B(i)", "A(i) = B(i) * B(i,i)"),
    "extents_differ": (LAX, "i,i->i where B: d[3], C: d[3]", "i,i->i where B: d[3], C: d[4]"),
    "shapes_differ": (
        LAX,
        "A() = B(i) * B(j) where i=2, j=2",
        "A() = B(i) * B(j) where i=2, j=3",
    ),
    "empty_extent": (without("empty"), "i->i where i=1", "i->i where i=0"),
    "unit_extent": (without("units"), "i->i where i=2", "i->i where i=1"),
    "too_many_elements": (
        at_most("most_elements", 9),
        "ij->i where i=3, j=3",
        "ij->i where i=3, j=4",
    ),
    "output_too_large": (
        at_most("most_elements", 9),
        "i,j->ij where i=3, j=3",
        "i,j->ij where i=3, j=4",
    ),
    "too_many_iterations": (
        at_most("most_iterations", 9),
        "i,j->ij where i=3, j=3",
        "i,j->ij where i=3, j=4",
    ),
    "unstored_position": (LAX, "ij->ij where B: ds", "ij->ij where B: d"),
    "superfluous_level": (LAX, "ij->ij where B: ds", "ij->ij where B: dss"),
    "singleton_alone": (LAX, "ij->ij where B: uq", "ij->ij where B: dq"),
    "repeats_nothing": (LAX, "ij->ij where B: uq", "ij->ij where B: us"),
    "taco_cycle": (aimed("taco"), "ij->ji where A: dd, B: ds", "ij->ji where A: ds, B: ds"),
    "taco_diagonal": (aimed("taco"), "ij->i where B: ds", "ii->i where B: ds"),
    "no_such_level": (aimed("tensora"), "ij->ij where B: ss", "ij->ij where B: uq"),
    "matrix_factors": (aimed("torch"), "ij,jk->ik", "ij,jk,kl->il"),
    "matrix_sum_of_products": (
        aimed("torch"),
        "A(i) = B(i) + C(i)",
        "A(i) = B(i) + C(i) * D(i)",
    ),
    "matrix_tensor_twice": (aimed("scipy"), "A(i) = B(i) * C(i)", "A(i) = B(i) * B(i)"),
    "matrix_diagonal": (aimed("scipy"), "ij,j->i", "ii,i->i"),
    "matrix_reduction": (aimed("torch"), "ij,j->i", "ij,i->i"),
    "matrix_broadcast": (
        aimed("torch"),
        "A(i) = B(i) + C(i)",
        "A(i,j) = B(i,j) + C(i)",
    ),
    "torch_no_sum": (
        aimed("torch"),
        "ij+ij->ij where A: ds, B: ds, C: ss",  # a bug is no limit
        "ij+ij->ij where A: ds, B: ss, C: ds",
    ),
    "torch_no_product": (
        aimed("torch"),
        "ij,jk->ik where B: ds:1,0, C: ds:1,0",
        "ij,jk->ik where B: ds:1,0, C: ss",
    ),
    "torch_no_sparse_product": (
        aimed("torch"),
        "ij,jk->ik where B: ds, C: ds:1,0",
        "ij,jk->ik where A: ds, B: ds, C: ds:1,0",
    ),
    "torch_no_elements": (
        aimed("torch"),
        "ij,ij->i where B: ds, C: ss",
        "ij,ij->i where B: ss, C: ds",
    ),
    "finch_order": (aimed("finch"), "ij->ij where B: ds", "ij->ij where B: dd:1,0"),
    "finch_outermost": (aimed("finch"), "ij->ij where B: ds", "ij->ij where B: ss"),
    "finch_output": (aimed("finch"), "ij->ij where A: dd", "ij->ij where A: ds"),
}
"""``position_stored_twice`` is not among them: no text can say it (see below)."""


def rules_against(text: str, settings: Settings) -> set[str]:
    validity = Validity(RULES, settings)
    validity.add(facts_as_written(parse(text)))
    return {violation.rule for violation in validity.violations()}


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_fires_on_a_mutant_of_a_valid_kernel(rule: str) -> None:
    keeps, valid, mutant = CASES[rule]
    assert rules_against(valid, keeps) == set()
    assert rule in rules_against(mutant, keeps)


def test_every_rule_is_shown_to_fire() -> None:
    assert set(CASES) | {"position_stored_twice"} == set(RULES.denies)


def test_a_position_may_not_be_stored_twice() -> None:
    validity = Validity(RULES, LAX)
    written = facts_as_written(parse("ij->ij"))
    validity.add(fact for fact in written if fact[0] != "level")
    assert validity.admits([("level", ("B", 0, "dense", 0)), ("level", ("B", 1, "dense", 1))])
    twice = validity.rejected_by([("level", ("B", 0, "dense", 1)), ("level", ("B", 1, "dense", 1))])
    told = {violation.rule: violation.message for violation in twice}
    assert told["position_stored_twice"] == "levels 0 and 1 of B store the same position"


@pytest.mark.parametrize(
    "text",
    [
        "ij,jk->ik",
        "ij,jk->ik where B: ds[3,4], C: full(seed=3), i=3",
        "A(i) = B(i,j) * B(i,j) + c where B: ds:1,0 {(0,1): 2}, float32",
        "i,->i where A: s, B: empty",
    ],
)
def test_what_goes_without_saying_is_a_fact_too(text: str) -> None:
    source = parse(text)
    assert set(facts_as_written(source)) == set(facts_of(source.kernel()))


@pytest.mark.parametrize("text", ["ij,jk->ik", "bij,bjk->bik", "ijk,jl,kl->il", "ij,ij,ij->ij"])
def test_ordinary_kernels_are_valid(text: str) -> None:
    assert rules_against(text, Settings()) == set()


def test_the_names_in_the_rules_are_ours() -> None:
    rules = load_rules([data_path("rules/einsum")])
    assert set(rules.sets["permissions"].values) == set(PERMISSIONS)
    assert set(rules.sets["limit_names"].values) == set(LIMITS)
    assert set(rules.sets["einsum_targets"].values) == set(TARGETS)
    assert set(PERMISSIONS) > USUAL
    assert commands._PERMISSIONS == PERMISSIONS
    assert set(commands._TARGET_NAMES) == {*TARGETS, *BACKENDS}


def test_a_setting_that_is_none_is_refused() -> None:
    for wrong in (
        Settings((("most", 1),)),
        Settings(allowed=frozenset({"loops"})),
        aimed("gcc"),
    ):
        with pytest.raises(KernelError, match="is none of"):
            Validity(RULES, wrong)


SETTINGS = st.sampled_from([LAX, Settings(), TIGHT, aimed("taco", "finch")])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(kernels(), SETTINGS)
def test_rules_that_cannot_fire_may_be_left_out(kernel: Kernel, keeps: Settings) -> None:
    from reprise.datalog import Database

    facts = [*facts_of(kernel), *keeps.facts()]
    whole = Database(RULES.program)
    whole.commit(facts)
    part = Database(specialised(RULES.program, keeps))
    part.commit(facts)
    for rule in RULES.denies:
        assert whole.rows(rule) == part.rows(rule)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(kernels(), SETTINGS, st.randoms(use_true_random=False))
def test_a_kernel_may_grow_in_any_order_and_shrink_again(
    kernel: Kernel, keeps: Settings, rng: object
) -> None:
    """The engine's answer after single facts, some of them tried and taken back, is the one for the
    whole kernel; and a final violation stays."""
    validity = Validity(RULES, keeps)
    expected = validity.of(kernel)
    assert not validity.violations() or all(not v.final for v in validity.violations())
    facts = facts_of(kernel)
    rng.shuffle(facts)  # type: ignore[attr-defined]
    final: set[object] = set()
    for fact in facts:
        validity.rejected_by([fact])
        validity.add([fact])
        now = set(validity.violations())
        assert final <= now
        final |= {violation for violation in now if violation.final}
    assert validity.violations() == expected
    validity.restart()
    assert validity.of(kernel) == expected


def test_a_final_violation_is_never_accepted() -> None:
    validity = Validity(RULES, at_most("most_indices", 1))
    assert validity.fits([("operand", (0, 0, "B"))])
    assert validity.fits([("operand_index", (0, 0, "i"))])
    assert not validity.fits([("operand_index", (0, 1, "j"))])
    assert validity.is_valid()
