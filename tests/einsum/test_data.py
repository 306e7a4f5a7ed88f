"""What descriptions of data come to."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.einsum.data import entries, materialise, of_array, permutation
from reprise.einsum.kernel import (
    Computed,
    Data,
    Drawn,
    Entries,
    Kept,
    KernelError,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Structure,
    Transposed,
    Zeros,
)
from reprise.einsum.text import parse
from tests.einsum.kernels import SEEDS, drawn

FLOAT = np.dtype("float64")
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def dense(data: Data, *shape: int) -> np.ndarray:
    return entries(data, shape, FLOAT).dense()


@pytest.mark.slow
@given(st.data(), SHAPES)
def test_entries_lie_in_the_tensor(data: st.DataObject, shape: tuple[int, ...]) -> None:
    stored = entries(data.draw(drawn(shape)), shape, FLOAT)
    assert stored.shape == shape
    assert stored.coordinates.shape == (len(stored.values), len(shape))
    assert (stored.coordinates >= 0).all() and (stored.coordinates < shape).all()
    assert np.isfinite(stored.values).all()


@pytest.mark.slow
@given(st.data(), SHAPES)
def test_the_same_description_gives_the_same_entries(
    data: st.DataObject, shape: tuple[int, ...]
) -> None:
    description = data.draw(drawn(shape))
    one, two = (entries(description, shape, FLOAT) for _ in range(2))
    assert (one.coordinates == two.coordinates).all() and (one.values == two.values).all()


@given(SEEDS, SHAPES, st.floats(0, 1))
def test_structures_are_what_they_are_called(
    seed: int, shape: tuple[int, ...], density: float
) -> None:
    def drawn(structure: Structure) -> np.ndarray:
        return dense(Drawn(structure, density, seed), *shape)

    assert not drawn(Structure.EMPTY).any()
    assert drawn(Structure.FULL).all()
    if len(shape) >= 2:
        places = np.argwhere(drawn(Structure.BANDED))
        assert (abs(places[:, 0] - places[:, 1]) <= 1).all()
    if shape:
        places = np.argwhere(drawn(Structure.ROW))
        assert not len(places) or any(len(set(places[:, n])) == 1 for n in range(len(shape)))


def test_density_is_the_share_of_places() -> None:
    share = np.count_nonzero(dense(Drawn(Structure.UNIFORM, 0.3, 5), 100, 100)) / 10_000
    assert share == pytest.approx(0.3, abs=0.02)


@given(SEEDS, st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_duplicates_and_zeros_change_what_is_stored_and_not_what_it_is(
    seed: int, duplicates: int, zeros: int, unsorted: bool
) -> None:
    shape = (4, 5)
    plain = entries(Drawn(Structure.UNIFORM, 0.4, seed), shape, FLOAT)
    more = entries(
        Drawn(Structure.UNIFORM, 0.4, seed, "integers", duplicates, zeros, unsorted), shape, FLOAT
    )
    count = len(plain.values)
    free = prod(shape) - count
    assert (more.dense() == plain.dense()).all()
    assert len(more.values) == count + min(duplicates, count) + min(zeros, free)
    if not unsorted:
        flat = more.coordinates @ [5, 1]
        assert (np.diff(flat) >= 0).all()


def test_integers_are_small_and_not_zero() -> None:
    values = entries(Drawn(Structure.FULL, 1.0, 1), (30, 30), FLOAT).values
    assert set(values) == {-4, -3, -2, -1, 1, 2, 3, 4}


def test_reals_are_not_integers() -> None:
    values = entries(Drawn(Structure.FULL, 1.0, 1, "reals"), (30, 30), FLOAT).values
    assert (abs(values) <= 1).all() and (values != np.rint(values)).mean() > 0.99


def test_unsorted_entries_come_in_any_order() -> None:
    stored = entries(Drawn(Structure.FULL, 1.0, 1, unsorted=True), (20,), FLOAT)
    assert list(stored.coordinates[:, 0]) != sorted(stored.coordinates[:, 0])


def test_a_large_tensor_is_drawn_entry_by_entry() -> None:
    shape = (100_000, 100_000)
    stored = entries(Drawn(Structure.BANDED, 1e-7, 3), shape, FLOAT)
    assert 500 < len(stored.values) <= 1000
    assert (abs(stored.coordinates[:, 0] - stored.coordinates[:, 1]) <= 1).all()
    with pytest.raises(KernelError, match="are more than"):
        entries(Drawn(Structure.FULL, 1.0, 3), shape, FLOAT)


SOURCE = Entries(((0, 1), (2, 0), (1, 1)), (5.0, 6.0, 7.0))


def with_edit(*edits: object) -> Entries:
    return Entries(SOURCE.coordinates, SOURCE.values, edits)  # type: ignore[arg-type]


def test_edits_do_what_they_say() -> None:
    array = dense(SOURCE, 3, 2)
    assert (dense(with_edit(Transposed((1, 0))), 2, 3) == array.T).all()
    assert (dense(with_edit(Scaled(-2)), 3, 2) == array / 4).all()
    assert (dense(with_edit(Zeros(2, 0)), 3, 2) == array).all()
    assert len(entries(with_edit(Zeros(2, 0)), (3, 2), FLOAT).values) == 5
    assert len(entries(with_edit(Zeros(99, 0)), (3, 2), FLOAT).values) == 6
    assert (dense(with_edit(Part(0, 2)), 3, 2) + dense(with_edit(Part(1, 2)), 3, 2) == array).all()
    assert dense(with_edit(Part(1, 2)), 3, 2)[2, 0] == 6
    assert (dense(with_edit(Kept(0, 1, 3)), 3, 2) == array * [[0], [1], [1]]).all()
    assert (dense(with_edit(Reordered(1)), 3, 2) == array).all()


def test_a_permutation_moves_coordinates() -> None:
    array = dense(SOURCE, 3, 2)
    found = set()
    for seed in range(20):
        moved = dense(with_edit(Permuted(0, seed)), 3, 2)
        assert (moved[permutation(seed, 3)] == array).all()
        found.add(moved.tobytes())
    assert len(found) == 6


def test_edits_follow_one_another() -> None:
    edited = with_edit(Transposed((1, 0)), Kept(0, 1, 2), Scaled(1))
    assert (dense(edited, 2, 3) == [[0, 0, 0], [10, 14, 0]]).all()


@given(SEEDS)
def test_canonical_entries_are_sorted_and_unique(seed: int) -> None:
    stored = entries(Drawn(Structure.UNIFORM, 0.5, seed, "integers", 3, 3, True), (4, 4), FLOAT)
    canonical = stored.canonical()
    flat = canonical.coordinates @ [4, 1]
    assert (np.diff(flat) > 0).all()
    assert (canonical.dense() == stored.dense()).all()


def test_an_array_is_its_entries() -> None:
    array = np.array([[0.0, 2.0], [3.0, 0.0]])
    stored = of_array(array)
    assert stored.coordinates.tolist() == [[0, 1], [1, 0]]
    assert (stored.dense() == array).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Entries(((0,),), (1.0,)), r"coordinate \(0,\) is not in shape"),
        (Entries(((0, 9),), (1.0,)), r"coordinate \(0, 9\) is not in shape"),
        (Entries(((0, 0),), (1.0, 2.0)), "1 coordinates, but 2 values"),
        (Drawn(Structure.FULL, 1.0, 0, edits=(Transposed((0, 0)),)), "is no order of 2 axes"),
        (Computed("T"), "reads T, which nothing has computed"),
    ],
)
def test_data_that_do_not_fit_are_refused(data: Data, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        entries(data, (2, 2), FLOAT)


def test_a_computed_tensor_is_another_kernels_output() -> None:
    kernel = parse("A(i) = B(i) where i=2, B: s computed(T)").kernel()
    (stored,) = materialise(kernel, {"T": np.array([0.0, 4.0])}).values()
    assert stored.coordinates.tolist() == [[1]]
    with pytest.raises(KernelError, match="B: has shape"):
        materialise(kernel, {"T": np.array([0.0, 4.0, 1.0])})
