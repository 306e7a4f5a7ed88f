"""The redundancy figures against what the first paper's text and tables state."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pytest

from reprise.campaign.metrics import chance_of_missing, rate, reduction, redundancy


def percent(share: float | None) -> float:
    assert share is not None
    return round(100 * share, 1)


def rounded(value: float | None, digits: int) -> float:
    assert value is not None
    return round(value, digits)


# Table 3: the counts per defect that §5.1's text gives, then B, U, R_w, ²D, C in per cent.
TABLE_3 = [
    pytest.param((216, 36, 2), 254, 3, 188.8, 1.35, 74.2, id="TVM, no patterns"),
    pytest.param((30,), 30, 1, 30.0, 1.00, 100.0, id="TVM, only A"),
    pytest.param((209, 26), 235, 2, 188.8, 1.25, 80.2, id="TVM, only B"),
    pytest.param((25,), 25, 1, 25.0, 1.00, 100.0, id="TVM, A and B"),
    pytest.param((563, 27, 4), 594, 3, 534.9, 1.11, 90.0, id="PyTorch, no patterns"),
    pytest.param((1, 35, 1), 37, 3, 33.2, 1.12, 89.3, id="PyTorch, full set"),
]


@pytest.mark.parametrize(("counts", "b", "u", "r_w", "d2", "c"), TABLE_3)
def test_table_3(counts: tuple[int, ...], b: int, u: int, r_w: float, d2: float, c: float) -> None:
    found = redundancy(counts)
    assert (found.reports, found.defects, found.repeats) == (b, u, b - u)
    assert rounded(found.weighted_redundancy, 1) == r_w
    assert rounded(found.effective_defects, 2) == d2
    assert percent(found.duplicate_pairs) == c


# Tables 1 and 2: reports, defects, per cent of the largest defect, R_w, then C and ²D where stated.
TABLES_1_AND_2 = [
    pytest.param(127, 4, 64.6, 60.0, 46.8, 2.12, id="TVM"),
    pytest.param(49, 3, 81.6, 33.5, 67.7, None, id="PyTorch"),
    pytest.param(276, 2, 98.6, 268.1, 97.1, 1.03, id="ONNX Runtime"),
]


@pytest.mark.parametrize(("b", "u", "largest", "r_w", "c", "d2"), TABLES_1_AND_2)
def test_tables_1_and_2(
    b: int, u: int, largest: float, r_w: float, c: float, d2: float | None
) -> None:
    """The text gives totals and the largest share only: whichever way the rest is spread so that
    R_w comes out as printed, C and ²D come out as printed too."""
    (top,) = (n for n in range(1, b + 1) if round(100 * n / b, 1) == largest)
    rests = [
        rest
        for rest in combinations_with_replacement(range(1, top + 1), u - 1)
        if sum(rest) == b - top
    ]
    fitting = [
        found
        for found in (redundancy((top, *rest)) for rest in rests)
        if rounded(found.weighted_redundancy, 1) == r_w
    ]
    assert fitting
    for found in fitting:
        assert (found.reports, found.defects) == (b, u)
        assert percent(found.largest_share) == largest
        assert percent(found.duplicate_pairs) == c
        if d2 is not None:
            assert rounded(found.effective_defects, 2) == d2


def test_reductions_of_section_5_1() -> None:
    none, only_a, both = redundancy((216, 36, 2)), redundancy((30,)), redundancy((25,))
    assert percent(reduction(none.reports, only_a.reports)) == 88.2
    assert percent(reduction(none.repeats, only_a.repeats)) == 88.4
    assert percent(reduction(none.reports, both.reports)) == 90.2
    assert percent(reduction(none.repeats, both.repeats)) == 90.4
    torch, guided = redundancy((563, 27, 4)), redundancy((1, 35, 1))
    assert percent(reduction(torch.reports, guided.reports)) == 93.8
    assert percent(reduction(torch.repeats, guided.repeats)) == 94.2


def test_shares_of_section_5_1() -> None:
    assert percent(redundancy((216, 36, 2)).largest_share) == 85.0
    assert percent(redundancy((216, 36, 2)).repeat_share) == 98.8
    assert percent(redundancy((25,)).repeat_share) == 96.0
    assert percent(redundancy((563, 27, 4)).largest_share) == 94.8
    assert percent(redundancy((563, 27, 4)).repeat_share) == 99.5
    assert percent(redundancy((1, 35, 1)).largest_share) == 94.6
    assert percent(redundancy((1, 35, 1)).repeat_share) == 91.9
    assert percent(chance_of_missing(2 / 10_000, 10_000)) == 13.5


def test_a_flood_of_one_missing_kernel() -> None:
    """NNSmith on ONNX Runtime: 59 reports, one cause."""
    found = redundancy((59,))
    assert (found.weighted_redundancy, found.effective_defects) == (59.0, 1.0)
    assert percent(found.duplicate_pairs) == 100.0


def test_no_reports_have_no_redundancy() -> None:
    found = redundancy(())
    assert (found.reports, found.defects, found.repeats) == (0, 0, 0)
    assert found.weighted_redundancy is found.effective_defects is found.duplicate_pairs is None
    assert found.largest_share is found.repeat_share is None
    assert redundancy((0, 0)) == found
    assert reduction(0, 3) is None


def test_one_report_makes_no_pair() -> None:
    found = redundancy((1,))
    assert (found.weighted_redundancy, found.effective_defects) == (1.0, 1.0)
    assert found.duplicate_pairs is None


def test_equal_counts_are_as_many_effective_defects() -> None:
    found = redundancy((7,) * 5)
    assert found.effective_defects == pytest.approx(5)
    assert found.weighted_redundancy == pytest.approx(7)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than no reports"):
        redundancy((3, -1))


# Newcombe (1998), "Two-sided confidence intervals for the single proportion", Table I, method 3.
NEWCOMBE = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0000, 0.1611),
    (1, 29, 0.0061, 0.1718),
]


@pytest.mark.parametrize(("events", "trials", "low", "high"), NEWCOMBE)
def test_wilson_intervals_as_published(events: int, trials: int, low: float, high: float) -> None:
    found = rate(events, trials)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize("events", [0, 1, 5, 9, 10])
def test_wilson_bounds_solve_the_score_equation(events: int) -> None:
    """Each bound p has (share − p)² = z² p(1 − p)/n; at the ends the trivial bound is kept."""
    found = rate(events, 10, confidence=0.9)
    z = 1.6448536269514722
    for bound in (found.low, found.high):
        assert math.isclose(
            (events / 10 - bound) ** 2, z * z * bound * (1 - bound) / 10, abs_tol=1e-12
        )


def test_no_trials_say_nothing() -> None:
    found = rate(0, 0)
    assert (found.low, found.high, found.value) == (0.0, 1.0, None)


@pytest.mark.parametrize(("events", "trials"), [(-1, 3), (4, 3)])
def test_impossible_rates_are_refused(events: int, trials: int) -> None:
    with pytest.raises(ValueError, match="trials"):
        rate(events, trials)
