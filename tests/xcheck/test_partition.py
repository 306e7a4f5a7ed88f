"""Partitions refine as they should, and nothing depends on the order of their members."""

from __future__ import annotations

import math
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.xcheck.partition import Comparison, Partition, joined

values = st.dictionaries(st.integers(0, 40), st.integers(0, 4), min_size=1, max_size=25)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Partition, Partition]:
    """Two partitions of the same members."""
    first = draw(values)
    second = {member: draw(st.integers(0, 4)) for member in first}
    return Partition.by("first", first), Partition.by("second", second)


def pair_counts(comparison: Comparison) -> tuple[int, int, int, int]:
    """Pairs of members: together in both, in the first only, in the second only, in neither."""
    one, two = comparison.first.place, comparison.second.place
    members = sorted(one)
    counts = [0, 0, 0, 0]
    for i, a in enumerate(members):
        for b in members[:i]:
            counts[2 * (one[a] != one[b]) + (two[a] != two[b])] += 1
    both, first, second, neither = counts
    return both, first, second, neither


def test_members_with_equal_values_are_together_the_largest_class_first() -> None:
    partition = Partition.by("p", {3: "b", 1: "a", 2: "b", 7: "c"})
    assert partition.classes == ((2, 3), (1,), (7,))
    assert partition.place == {2: 0, 3: 0, 1: 1, 7: 2}
    assert len(partition) == 3 and partition.members == 4
    assert partition.entropy == pytest.approx(1.5)


@given(values)
def test_every_member_is_in_one_class(found: dict[int, Hashable]) -> None:
    partition = Partition.by("p", found)
    members = [member for members in partition.classes for member in members]
    assert sorted(members) == sorted(found)
    assert [len(c) for c in partition.classes] == sorted(map(len, partition.classes), reverse=True)


@given(values, st.randoms(use_true_random=False), st.permutations(range(5)))
def test_neither_order_nor_names_of_values_matter(found, random, renamed) -> None:
    order = list(found)
    random.shuffle(order)
    again = Partition.by("p", {member: f"v{renamed[found[member]]}" for member in order})
    assert again == Partition.by("p", found)


@given(pairs())
def test_renaming_members_changes_no_figure(pair: tuple[Partition, Partition]) -> None:
    moved = [
        Partition.by(p.name, {1000 - member: place for member, place in p.place.items()})
        for p in pair
    ]
    here, there = Comparison.of(*pair), Comparison.of(*moved)
    assert (here.refines, here.refined) == (there.refines, there.refined)
    assert sorted(here.pieces) == sorted(there.pieces)
    assert math.isclose(here.adjusted_rand, there.adjusted_rand, abs_tol=1e-9)
    assert math.isclose(here.told, there.told, abs_tol=1e-9)
    assert math.isclose(here.missed, there.missed, abs_tol=1e-9)


@given(pairs())
def test_refining_is_what_its_definition_says(pair: tuple[Partition, Partition]) -> None:
    comparison = Comparison.of(*pair)
    _, together_in_first_only, together_in_second_only, _ = pair_counts(comparison)
    assert comparison.refines == (together_in_first_only == 0)
    assert comparison.refined == (together_in_second_only == 0)
    assert sum(comparison.table.values()) == pair[0].members
    assert sum(comparison.pieces) == len(comparison.table)


@given(pairs())
def test_what_is_told_and_missed_agrees_with_refining(pair: tuple[Partition, Partition]) -> None:
    comparison = Comparison.of(*pair)
    first, second = pair
    assert (comparison.missed < 1e-9) == comparison.refines
    assert (comparison.told < 1e-9) == comparison.refined
    # the chain rule of entropy, both ways
    joint = joined("both", pair).entropy
    assert math.isclose(second.entropy + comparison.told, joint, abs_tol=1e-9)
    assert math.isclose(first.entropy + comparison.missed, joint, abs_tol=1e-9)


@given(pairs())
def test_the_join_is_the_coarsest_that_refines_both(pair: tuple[Partition, Partition]) -> None:
    both = joined("both", pair)
    assert all(Comparison.of(both, part).refines for part in pair)
    assert len(both) == len(Comparison.of(*pair).table)
    assert Comparison.of(joined("again", [both, pair[0]]), both).adjusted_rand == 1.0


@given(pairs())
def test_the_adjusted_rand_index_is_the_one_of_pairs(pair: tuple[Partition, Partition]) -> None:
    """Steinley's form, by counting pairs, of Hubert and Arabie's index."""
    comparison = Comparison.of(*pair)
    a, b, c, d = pair_counts(comparison)
    pairs = a + b + c + d
    over = pairs**2 - ((a + b) * (a + c) + (c + d) * (b + d))
    if over == 0:
        assert comparison.adjusted_rand == 1.0 and b == c == 0
    else:
        expected = (pairs * (a + d) - ((a + b) * (a + c) + (c + d) * (b + d))) / over
        assert math.isclose(comparison.adjusted_rand, expected, abs_tol=1e-9)
    assert Comparison.of(pair[0], pair[0]).adjusted_rand == 1.0


def test_partitions_of_different_members_are_not_compared() -> None:
    with pytest.raises(ValueError, match="a and b are not about the same members"):
        Comparison.of(Partition.by("a", {1: 0}), Partition.by("b", {2: 0}))
