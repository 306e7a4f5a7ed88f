"""Extents that a budget ties together are found exactly where there are some."""

from __future__ import annotations

from itertools import product
from random import Random

from reprise.einsum.coupled import Nothing, Sought, nearest, within
from reprise.einsum.kernel import Access
from reprise.einsum.options import Budget


def test_what_is_found_keeps_to_the_budget_and_nothing_is_missed() -> None:
    rng, found, none = Random(1), 0, 0
    for _ in range(150):
        indices = "ijk"[: rng.randint(2, 3)]
        accesses = [Access(name, tuple(rng.sample(indices, 2))) for name in "ABC"]
        low = rng.randint(1, 30)
        budget = Budget(
            elements=(rng.choice((0, low)), low + rng.randint(0, 6)),
            iterations=(rng.randint(0, 60), 80),
            memory=rng.choice((None, 600)),
        )
        drawn = {index: rng.randint(2, 8) for index in indices}
        asked = accesses[0], accesses[1:], (0.5, 0.5), 8
        near = nearest(Sought(budget, drawn, *asked, (2, 8)), rng)
        possible = any(
            within(budget, dict(zip(indices, values, strict=True)), *asked)
            for values in product(range(2, 9), repeat=len(indices))
        )
        if isinstance(near, dict):
            assert within(budget, near, *asked)
            found += 1
        elif near is Nothing.THERE_IS_NONE:
            assert not possible
            none += 1
        else:
            raise AssertionError("a search among so few values ends")
    assert found > 20 and none > 20


def test_extents_stay_near_those_that_were_drawn() -> None:
    access = Access("A", ("i", "j"))
    budget = Budget(elements=(200, 400))
    sought = Sought(budget, {"i": 15, "j": 30}, access, [access], (1.0,), 8, (2, 100))
    near = nearest(sought, Random(2))
    assert isinstance(near, dict)
    assert 200 <= near["i"] * near["j"] <= 400
    assert near["i"] == 15 or near["j"] == 30
