"""What a draft matches natively is what its text matches in the engine."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from reprise.datalog import Database
from reprise.einsum.distill.draft import draft_of
from reprise.einsum.distill.rule import named
from reprise.einsum.distill.view import View
from reprise.einsum.facts import facts_of
from reprise.einsum.kernel import Kernel
from reprise.einsum.symptom import Symptom
from reprise.einsum.text import parse
from reprise.lang.diagnostics import RulesError
from reprise.lang.normal import MAX_LITERALS
from reprise.lang.ruleset import load_text
from reprise.oracle.verdict import Verdict
from tests.einsum.distill.planted import WALKER

SEEDS = [
    "A(i,k) = B(i,j) * C(j,k) where i=2, k=1, A: ss, B: ds:1,0, C: ds",
    "A(i,j) = B(i,j,k) * C(k) + B(i,j,l) * D(l) where A: dd:1,0, B: sds:2,0,1, D: s empty(seed=1)",
]


def walked(start: Kernel, count: int) -> list[Kernel]:
    """Valid kernels near a kernel, and further and further away."""
    rng, found = Random(3), [start]
    while len(found) < count:
        made = WALKER.step(found[-1], rng)
        if made is not None and WALKER.is_valid(made):
            found.append(made)
    return found


@pytest.mark.parametrize("text", SEEDS)
def test_a_draft_and_its_text_match_the_same_kernels(text: str) -> None:
    seed = parse(text).kernel()
    draft, rng = draft_of(View(seed)), Random(4)
    kernels = walked(seed, 40)
    matched = compared = 0
    loops = [c for c in draft.conditions if c.dimension.startswith(("loops", "order of loops"))]
    while compared < 12:
        among = draft.conditions if compared < 8 else loops
        some = replace(draft, conditions=tuple(rng.sample(among, rng.randint(1, 8))))
        said = {name for condition in some.conditions for name in condition.variables}
        for name in {*draft.operands, *draft.indices} - said:
            some = some.without_variable(name)
        try:
            rules = load_text(some.text())
        except RulesError:  # two conditions that say one thing, which a rule must not
            continue
        compared += 1
        database = Database(rules.program.restricted_to([some.name]), checked=True)
        known = database.program.relations
        for kernel in kernels:
            with database.propose([fact for fact in facts_of(kernel) if fact[0] in known]):
                found = bool(database.rows(some.name))
            assert found == some.matches(View(kernel)), some.text()
            matched += found
    assert 0 < matched < 12 * len(kernels)


@pytest.mark.parametrize("text", SEEDS)
def test_the_first_draft_is_about_its_kernel_and_hardly_any_other(text: str) -> None:
    seed = parse(text).kernel()
    draft = draft_of(View(seed))
    (place,) = draft.places(View(seed))
    assert place["O1"] == 0 and place["I"] == seed.extents[0][0]
    others = [kernel for kernel in walked(seed, 40) if kernel.statement != seed.statement]
    assert not any(draft.matches(View(kernel)) for kernel in others)


@pytest.mark.slow
def test_a_draft_that_says_more_than_a_rule_can_is_told_in_parts() -> None:
    seed = parse(SEEDS[1]).kernel()
    draft = draft_of(View(seed))
    assert len(draft.conditions) > 2 * MAX_LITERALS
    rules = load_text(draft.text())
    database = Database(rules.program.restricted_to([draft.name]), checked=True)
    known = database.program.relations
    for kernel in walked(seed, 10):
        with database.propose([fact for fact in facts_of(kernel) if fact[0] in known]):
            assert bool(database.rows(draft.name)) == draft.matches(View(kernel))


def test_a_rule_says_what_it_is_about() -> None:
    kernel = parse("A(i,k) = B(i,j) * C(k,j) where A: ds, B: ds, C: ds:1,0").kernel()
    draft = draft_of(View(kernel))
    said = ("output_level(_, compressed, J)", "sparse_before(K, J)", "not output_index(_, K)")
    kept = tuple(c for c in draft.conditions if c.text in said)
    some = replace(draft, operands=(), indices=("J", "K"), conditions=kept)
    symptom = Symptom(Verdict.WRONG_RESULT, "values", "0 instead of 1")
    text = named(some, "", "taco", {"taco": "1"}, kernel, symptom).text()
    assert "/// Sparse levels ask for K outside of J, A stores J in a compressed level, K" in text
    assert "deny taco_wrong_loop_order_compressed_output_summed(\n    K, J, A\n)" in text


def test_what_is_said_in_other_words_is_not_said() -> None:
    draft = draft_of(View(parse("A(i) = B(i,j) * C(j) where B: ds").kernel()))
    kept = {c.text: c for c in draft.conditions}
    some = replace(
        draft,
        conditions=tuple(kept[t] for t in ("level(B, 1, compressed, _)", "is_sparse(B)")),
        indices=(),
    )
    assert "is_sparse" not in some.text()
