"""Which constraint is violated next."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reprise.xcheck.pool import Entry, Pool

FAILS_AFTER = {"C1": 1, "C2": 4, "C3": 3}
"""Passes that are completed when each constraint of the paper's example is violated."""

TABLE_3 = [
    # rank and count of C1, C2, C3; the constraint selected; its rank afterwards
    ((1, 0), (2, 0), (3, 0), "C1", Fraction(2)),
    ((2, 1), (2, 0), (3, 0), "C2", Fraction(9, 4)),
    ((2, 1), (Fraction(9, 4), 1), (3, 0), "C1", Fraction(3)),
    ((3, 2), (Fraction(9, 4), 1), (3, 0), "C2", Fraction(5, 2)),
    ((3, 2), (Fraction(5, 2), 2), (3, 0), "C2", Fraction(11, 4)),
    ((3, 2), (Fraction(11, 4), 3), (3, 0), "C2", Fraction(3)),
    ((3, 2), (3, 4), (3, 0), "C3", Fraction(10, 3)),
    # The paper prints "2 + 1/1 = 3" here. C1 has rank 3 in this row, so the rule says 3 + 1/1 = 4.
    ((3, 2), (3, 4), (Fraction(10, 3), 1), "C1", Fraction(4)),
]


def test_table_3_of_the_paper_is_replayed_row_by_row() -> None:
    pool = Pool.of(FAILS_AFTER, {"C1": Fraction(1), "C2": Fraction(2), "C3": Fraction(3)})
    for *before, selected, after in TABLE_3:
        assert [(entry.rank, entry.usage) for entry in pool] == before
        chosen = pool.choose()
        assert chosen is not None and chosen.name == selected
        assert pool.record(selected, FAILS_AFTER[selected]).rank == after


def test_thirds_add_up_to_the_same_rank_as_one_whole() -> None:
    pool = Pool([Entry("thirds"), Entry("whole", Fraction(2))])
    for _ in range(3):
        pool.record("thirds", 3)
    assert pool["thirds"].rank == pool["whole"].rank
    assert (chosen := pool.choose()) is not None and chosen.name == "whole"


def test_a_model_that_fails_before_the_first_pass_counts_as_one_pass() -> None:
    pool = Pool.of(["c"])
    assert pool.record("c", 0).rank == 2


def test_an_empty_pool_chooses_nothing() -> None:
    pool = Pool.of(["c"])
    pool.drop("c")
    assert pool.choose() is None


@given(st.lists(st.integers(1, 120), min_size=2, max_size=6), st.integers(1, 60))
def test_what_fails_late_is_violated_at_least_as_often(passes: list[int], steps: int) -> None:
    depth = {f"c{i}": p for i, p in enumerate(passes)}
    pool = Pool.of(depth)
    for _ in range(steps):
        chosen = pool.choose()
        assert chosen is not None
        assert chosen.rank == min(entry.rank for entry in pool)
        pool.record(chosen.name, depth[chosen.name])
    for a in pool:
        for b in pool:
            if depth[a.name] > depth[b.name]:
                assert a.usage >= b.usage - 1
