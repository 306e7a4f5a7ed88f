"""Every relation is sound: on dense numpy, a variant computes what the kernel does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import permutations
from math import factorial
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reprise.einsum.data import materialise
from reprise.einsum.generate import BLOCK, Request, Source
from reprise.einsum.json_form import dumps, loads
from reprise.einsum.kernel import Computed, Format, Kernel, Level
from reprise.einsum.options import Options
from reprise.einsum.reference import bounds, difference, is_exact, reference
from reprise.einsum.relations import RELATIONS, Exactness, Variant, variants
from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.text import parse
from reprise.einsum.validity import Validity, load_kernel_rules

NAMES = [
    "commute",
    "formats",
    "output-format",
    "rename",
    "transpose",
    "permute",
    "reorder",
    "scale",
    "zeros",
    "distribute",
    "split-range",
    "precompute",
]


@cache
def source(values: str) -> Callable[[int], list[str]]:
    options = Options(
        operands=(1, 4), ranks=(1, 3), sums=0.3, diagonals=0.2, scalars=0.05, reductions=0.2,
        broadcasts=0.2, repeated_tensors=0.2, empty=0.05, units=0.05, values=values, zeros=0.2,
        duplicates=0.2, unsorted=0.2, levels=tuple(Level),
    )  # fmt: skip
    made = Source(Request(40 * BLOCK, 1, options))
    return cache(lambda block: made.block(block).splitlines())


def drawn(values: str) -> st.SearchStrategy[Kernel]:
    places = st.tuples(st.integers(0, 3), st.integers(0, BLOCK - 1))
    return places.map(lambda place: loads(source(values)(place[0])[place[1]]))


def variant(name: str, kernel: Kernel, seed: int) -> Variant:
    found = RELATIONS[name].draw(kernel, Random(seed))
    assume(found is not None)
    assert found is not None
    return found


FUZZ = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])


def test_these_are_all_relations() -> None:
    assert list(RELATIONS) == NAMES


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(kernel=drawn("integers"), seed=st.integers(0, 2**20))
def test_with_integers_a_variant_computes_the_same_exactly(
    name: str, kernel: Kernel, seed: int
) -> None:
    stored = materialise(kernel)
    assert is_exact(kernel, stored)
    found = variant(name, kernel, seed)
    assert difference(reference(kernel, stored), found.reference()) is None


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(kernel=drawn("reals"), seed=st.integers(0, 2**20))
def test_with_reals_a_variant_is_within_the_bounds(name: str, kernel: Kernel, seed: int) -> None:
    stored = materialise(kernel)
    found = variant(name, kernel, seed)
    expected = reference(kernel, stored).astype(float)
    exact = RELATIONS[name].exactness is Exactness.BITWISE and name == "scale"
    allowed = np.zeros(expected.shape) if exact else bounds(kernel, stored)
    assert difference(expected, found.reference(), allowed) is None


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(kernel=drawn("integers"), seed=st.integers(0, 2**20))
def test_the_kernels_of_a_variant_are_valid_and_can_be_written(
    name: str, kernel: Kernel, seed: int
) -> None:
    found = variant(name, kernel, seed)
    assert found.kernels != (kernel,)
    for part in found.kernels:
        assert loads(dumps(part)) == part
        assert not validity().of(part)


@cache
def validity() -> Validity:
    return Validity(load_kernel_rules(), Settings(allowed=frozenset(PERMISSIONS)))


def all_of(name: str, text: str, count: int = 60) -> list[Variant]:
    kernel = parse(text).kernel()
    return [v for seed in range(count) if (v := RELATIONS[name].draw(kernel, Random(seed)))]


def test_a_variant_that_is_wrong_is_seen() -> None:
    """The tests above can fail: a recovery that leaves something out does not get through."""
    kernel = parse("ij,jk->ik where i=3, j=4, k=2, B: dd full, C: dd full(seed=1)").kernel()
    stored = materialise(kernel)
    expected = reference(kernel, stored)
    for name in ("scale", "transpose", "permute", "distribute"):
        wrong = 0
        for seed in range(30):
            found = RELATIONS[name].draw(kernel, Random(seed))
            assert found is not None
            bare = Variant(
                name, "", found.kernels[:1], type(found.recovery)((kernel.output.tensor,))
            )
            wrong += difference(expected, bare.reference()) is not None
        assert wrong, name


def test_commuting_gives_every_order() -> None:
    found = {v.kernels[0].subscripts for v in all_of("commute", "i,ij,j->i")}
    assert found == {"i,j,ij->i", "ij,i,j->i", "ij,j,i->i", "j,i,ij->i", "j,ij,i->i"}
    terms = {v.kernels[0].statement for v in all_of("commute", "A(i) = B(i) + C(i)")}
    assert terms == {"A(i) = C(i) + B(i)"}


def test_formats_change_operands_or_the_output_alone() -> None:
    text = "ij,jk->ik where A: ds, B: ds, C: ds"
    kernel = parse(text).kernel()
    for name, changes in (("formats", (1, 2)), ("output-format", (0,))):
        seen = set()
        for found in all_of(name, text):
            (changed,) = found.kernels
            assert changed.statement == kernel.statement
            for number, (old, new) in enumerate(zip(kernel.tensors, changed.tensors, strict=True)):
                if old.format != new.format:
                    seen.add(number)
        assert seen == set(changes)


def test_a_transposed_operand_is_stored_as_before() -> None:
    """CSR of a matrix is CSC of its transpose: the same positions, coordinates and values."""
    for found in all_of("transpose", "A(i) = B(i,j) where B: ds"):
        (changed,) = found.kernels
        assert changed.statement == "A(i) = B(j,i)"
        assert changed.tensor("B").format == Format((Level.DENSE, Level.COMPRESSED), (1, 0))


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_every_order_of_positions_comes_out_as_often(rank: int) -> None:
    text = f"A() = B({','.join('ijkl'[:rank])})"
    kernel, rng = parse(text).kernel(), Random(0)
    found = Counter(
        variant.kernels[0].accesses[0].indices
        for _ in range(60 * factorial(rank))
        for variant in variants(kernel, rng, ["transpose"])
    )
    assert set(found) == set(permutations("ijkl"[:rank])) - {tuple("ijkl"[:rank])}
    assert min(found.values()) > 25


def test_a_tensor_of_many_indices_has_variants_soon() -> None:
    indices = ",".join(f"i{n}" for n in range(30))
    extents = ", ".join(f"i{n}={1 + (n < 3)}" for n in range(30))
    kernel = parse(f"A({indices}) = B({indices}) where {extents}").kernel()
    for name in ("transpose", "permute", "formats"):
        (variant,) = variants(kernel, Random(1), [name])
        assert (variant.reference() == reference(kernel, materialise(kernel))).all()


def test_splitting_and_distributing_use_one_kernel_or_two() -> None:
    for name in ("distribute", "split-range"):
        shapes = {(len(v.kernels), len(v.kernels[0].terms)) for v in all_of(name, "ij,jk->ik")}
        assert shapes == {(1, 2), (2, 1)}


def test_part_of_a_product_is_computed_first() -> None:
    found = all_of("precompute", "ij,jk,kl->il")
    for each in found:
        first, second = each.kernels
        name = first.output.tensor
        assert second.tensor(name).data == Computed(name)
        assert len(first.accesses) == 2 and len(second.accesses) == 2
    assert "E(i,k) = B(i,j) * C(j,k)" in {v.note for v in found}
    assert not all_of("precompute", "ij,jk->ik")


def test_an_index_is_not_permuted_where_a_tensor_has_it_at_different_positions() -> None:
    assert not all_of("permute", "A() = B(i,j) * B(j,i)")
    assert {v.note for v in all_of("permute", "A() = B(i,j) * B(i,k)")} == {"coordinates of i"}


def test_variants_are_different_and_keep_to_rules() -> None:
    kernel = parse("ij,jk->ik where A: dd, B: ds, C: ds").kernel()
    found = list(variants(kernel, Random(0), ("formats", "commute"), count=20))
    assert len(found) == len({v.kernels for v in found})
    assert {v.relation for v in found} == {"formats", "commute"}
    finch = Validity(load_kernel_rules(), Settings(targets=("finch",)))
    kept = list(variants(kernel, Random(0), ("formats",), 60, finch))
    assert kept
    assert all(
        t.format.is_ordered and t.format.levels[0] is Level.DENSE
        for v in kept
        for t in v.kernels[0].tensors
    )
    again = list(variants(kernel, Random(0), ("formats", "commute"), count=20))
    assert [v.kernels for v in again] == [v.kernels for v in found]
