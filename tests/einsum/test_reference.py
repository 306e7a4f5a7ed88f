"""The dense reference, against loops and ``opt_einsum``; and what counts as a difference."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings

from reprise.einsum.data import Stored, materialise
from reprise.einsum.kernel import Computed, Kernel, KernelError
from reprise.einsum.reference import bounds, difference, is_exact, reference
from reprise.einsum.text import parse
from tests.einsum.kernels import kernels


def loops(kernel: Kernel, stored: dict[str, Stored]) -> np.ndarray:
    """The kernel by its definition: for all values of all indices of a term, add the product."""
    extents = kernel.extent
    arrays = {name: s.dense() for name, s in stored.items()}
    result = np.zeros([extents[i] for i in kernel.output.indices])
    for term in kernel.terms:
        indices = tuple(dict.fromkeys((*kernel.output.indices, *term.indices)))
        for values in product(*(range(extents[i]) for i in indices)):
            at = dict(zip(indices, values, strict=True))
            value = 1.0
            for factor in term.factors:
                value *= arrays[factor.tensor][tuple(at[i] for i in factor.indices)]
            result[tuple(at[i] for i in kernel.output.indices)] += value
    return result


@pytest.mark.slow
@settings(deadline=None)
@given(kernels())
def test_the_reference_is_the_definition(kernel: Kernel) -> None:
    assume(not any(isinstance(tensor.data, Computed) for tensor in kernel.operands))
    stored = materialise(kernel)
    found, expected = reference(kernel, stored), loops(kernel, stored)
    assert found.shape == expected.shape
    if is_exact(kernel, stored):
        assert (found == expected).all()
    else:
        assert difference(found.astype(float), expected, bounds(kernel, stored)) is None


@pytest.mark.parametrize(
    "text",
    ["ij,jk->ik", "iij,jkk->ik", "ij,jk,kl,lm->im", "i,j->ij", "ijk,ijk->", "ab,bc,ca->", ",i->i"],
)
def test_opt_einsum_agrees(text: str) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    kernel = parse(text).kernel()
    stored = materialise(kernel)
    operands = [stored[access.tensor].dense() for access in kernel.accesses]
    assert (reference(kernel, stored) == opt_einsum.contract(text, *operands)).all()


def value(text: str) -> list[float]:
    kernel = parse(text).kernel()
    return reference(kernel, materialise(kernel)).tolist()


def test_each_term_is_summed_by_itself_and_broadcast() -> None:
    data = "i=2, j=3, B: dd full, C: d {(0): 10, (1): 20}, D: {(): 7}"
    (b,) = [np.array(value(f"A(i,j) = B(i,j) where {data.split(', C')[0]}"))]
    assert value(f"A(i) = B(i,j) + C(i) + D() where {data}") == [
        b[0].sum() + 10 + 7, b[1].sum() + 20 + 7,
    ]  # fmt: skip


def test_exactness_depends_on_the_type() -> None:
    text = "A() = B(i) * C(i) where i=2, B: d {(0): 5000, (1): 1}, C: d {(0): 5000}"
    wide, narrow = parse(text).kernel(), parse(f"{text}, float32").kernel()
    assert is_exact(wide, materialise(wide))
    assert not is_exact(narrow, materialise(narrow))
    reals = parse("A() = B(i) where i=2, B: d {(0): 0.5}").kernel()
    assert not is_exact(reals, materialise(reals))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_in_any_order_are_within_the_bounds(dtype: str) -> None:
    data = "B: d full(reals), C: d full(seed=1, reals)"
    kernel = parse(f"A() = B(i) * C(i) where i=1000, {data}, {dtype}").kernel()
    stored = materialise(kernel)
    products = stored["B"].values * stored["C"].values
    expected, bound = reference(kernel, stored), bounds(kernel, stored)
    assert 0 < bound < 1e-1
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(1000)
        total = np.zeros((), products.dtype)
        for number in order:
            total = total + products[number]
        assert difference(expected, np.asarray(total), bound) is None
    assert difference(expected, expected + 2 * bound, bound) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i,i-> where i=1099511627776, B: s empty, C: s empty", "too large to be dense"),
        (f"{'i' * 33}->i where i=1", "too large to be dense"),
        ("ijk->i where i=4096, j=4096, k=4096, B: sss empty", "too large to be dense"),
        (",".join("abcdefghijklmnopqrstuvwxyzABCDEFGH") + "-> where a=1", "a term of 34 factors"),
        (",".join("abcdefghijklmnopqrst") + "->", "run 1.1e+12 times"),
    ],
)
def test_what_is_too_large_to_be_computed_is_refused(text: str, message: str) -> None:
    kernel = parse(text).kernel()
    stored = materialise(kernel)
    with pytest.raises(KernelError, match=re.escape(message)):
        reference(kernel, stored)


@pytest.mark.parametrize("value", [3, 2**31 - 1, 2**53 - 1, float(2**300)])
def test_products_that_int64_does_not_hold_are_not_cut_off(value: float) -> None:
    data = ", ".join(f"{name}: d {{(0): {value}}}" for name in "BCD")
    kernel = parse(f"i,i,i->i where i=1, {data}").kernel()
    stored = materialise(kernel)
    (found,), (bound,) = reference(kernel, stored), bounds(kernel, stored)
    assert abs(Fraction(float(found)) - Fraction(value) ** 3) <= bound


def test_nan_is_never_equal_and_minus_zero_is_zero() -> None:
    zeros = np.array([0.0, 1.0])
    assert difference(zeros, np.array([-0.0, 1.0])) is None
    for wrong in (np.nan, np.inf):
        found = difference(zeros, np.array([0.0, wrong]), 100.0)
        assert found is not None and found.place == (1,) and found.count == 1
    assert difference(np.array([np.nan]), np.array([np.nan])) is not None
    shapes = difference(zeros, np.zeros((2, 1)))
    assert shapes is not None and "shapes" in str(shapes)
    said = difference(zeros, np.array([3.0, 4.0]))
    assert str(said) == "2 values differ, the first at (0,): 3 instead of 0"
