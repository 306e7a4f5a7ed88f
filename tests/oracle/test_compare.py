"""`compare`: what counts as a difference, for arrays of every kind."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reprise.oracle.compare import Kind, compare, compare_outputs
from reprise.oracle.tolerance import PAPER, TIGHT, Tolerance, Tolerances

EXTENDED = [
    np.dtype(t)
    for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4)
]
STRICT = Tolerance(strict_zero=True)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def arrays(dtype: object = None) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    kinds = st.just(dtype) if dtype is not None else hnp.scalar_dtypes()
    return hnp.arrays(kinds, shapes)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays; in half of the cases of one dtype and shape."""
    first = draw(arrays())
    if draw(st.booleans()):
        return first, draw(arrays())
    second = draw(hnp.arrays(first.dtype, first.shape))
    if draw(st.booleans()):
        extended = draw(st.sampled_from(EXTENDED))
        with np.errstate(all="ignore"):
            if first.dtype.kind in "iuf":
                return first.astype(extended), second.astype(extended)
    return first, second


tolerances = st.builds(
    Tolerance,
    st.floats(0, 1e6),
    st.floats(0, 10),
    st.booleans(),
)


@pytest.mark.slow
@given(pairs(), tolerances | st.none())
def test_it_never_raises_and_the_order_does_not_matter(
    pair: tuple[np.ndarray, np.ndarray], tolerance: Tolerance | None
) -> None:
    forth, back = compare(*pair, tolerance), compare(*pair[::-1], tolerance)
    assert (forth is None) == (back is None)
    if forth is not None and back is not None:
        assert (forth.kind, forth.count, forth.index) == (back.kind, back.count, back.index)
        assert (forth.expected, forth.actual) == (back.actual, back.expected)
        json.dumps(forth.evidence(), allow_nan=False)
        str(forth)


@given(arrays(), tolerances)
def test_everything_equals_itself(array: np.ndarray, tolerance: Tolerance) -> None:
    assert compare(array, array.copy(), tolerance) is None


@pytest.mark.slow
@given(pairs(), tolerances, st.floats(0, 1e6), st.floats(0, 10))
def test_a_wider_tolerance_finds_no_more(
    pair: tuple[np.ndarray, np.ndarray], narrow: Tolerance, more: float, wider: float
) -> None:
    wide = Tolerance(narrow.absolute + more, narrow.relative + wider, narrow.strict_zero)
    before, after = compare(*pair, narrow), compare(*pair, wide)
    if before is None:
        assert after is None
    elif after is not None and before.kind is after.kind:
        assert after.count <= before.count


@given(
    hnp.arrays(np.float64, 6, elements=st.floats(-1e9, 1e9)),
    hnp.arrays(np.float64, 6, elements=st.floats(-1e9, 1e9)),
)
def test_finite_values_differ_as_the_definition_says(a: np.ndarray, b: np.ndarray) -> None:
    """Against Python's own arithmetic, one element at a time."""
    wrong = [
        i
        for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
        if abs(x - y) > 1e-3 and abs(x - y) > 1e-2 * max(abs(x), abs(y))
    ]
    found = compare(a, b)
    assert (found.count if found else 0) == len(wrong)
    if found:
        assert found.index == (wrong[0],)
        assert found.max_absolute == max(abs(float(a[i]) - float(b[i])) for i in wrong)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_equals_nan_and_nothing_else(dtype: type) -> None:
    nan = np.array([np.nan], dtype)
    negative = -nan
    assert compare(nan, negative, Tolerance()) is None
    for other in (0.0, 1.0, np.inf):
        found = compare(np.array([other], dtype), nan, Tolerance(1e9, 1e9))
        assert found is not None
        assert found.kind is Kind.VALUES
        assert found.evidence()["max_absolute_error"] == "inf"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_infinities_are_equal_by_sign(dtype: type) -> None:
    up, down = np.array([np.inf], dtype), np.array([-np.inf], dtype)
    assert compare(up, up.copy()) is None
    assert compare(up, down, Tolerance(1e9, 1e9)) is not None
    assert compare(up, np.array([1e4], dtype), Tolerance(np.inf, np.inf)) is not None


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.complex64])
def test_the_sign_of_zero_counts_only_if_asked(dtype: type) -> None:
    plus, minus = np.array([1.0, 0.0], dtype), np.array([1.0, -0.0], dtype)
    assert compare(plus, minus) is None
    found = compare(plus, minus, STRICT)
    assert found is not None
    assert (found.kind, found.index, found.count) == (Kind.SIGN_OF_ZERO, (1,), 1)


def test_a_wrong_value_comes_before_the_sign_of_a_zero() -> None:
    found = compare(f32(0.0, 1.0), f32(-0.0, 2.0), STRICT)
    assert found is not None
    assert (found.kind, found.index) == (Kind.VALUES, (1,))


def test_both_bounds_must_be_exceeded() -> None:
    assert compare(f32(1000.0), f32(1009.0)) is None  # 9 absolute, 0.9 %
    assert compare(f32(1e-5), f32(9e-4)) is None  # 99 %, under 1e-3
    assert compare(f32(1000.0), f32(1011.0)) is not None
    assert compare(f32(0.1), f32(0.102)) is not None


def test_integers_and_booleans_are_exact() -> None:
    big = 2**62
    found = compare(np.array([1, big]), np.array([1, big + 1]))
    assert found is not None
    assert (found.expected, found.actual) == (str(big), str(big + 1))
    assert compare(np.array([True, False]), np.array([True, True])) is not None
    assert compare(np.array(3, ml_dtypes.int4), np.array(4, ml_dtypes.int4)) is not None


def test_strings_are_compared_as_text_in_whatever_array_they_come() -> None:
    assert compare(np.array(["a", "bc"]), np.array(["a", "bc"], object)) is None
    assert compare(np.array([b"a"]), np.array(["a"], object)) is None
    found = compare(np.array(["a", "bc"], object), np.array(["a", "bd"], object))
    assert found is not None
    assert (found.index, found.actual) == ((1,), "bd")


def test_shape_and_dtype_are_kinds_of_their_own() -> None:
    shape = compare(np.zeros((2, 3)), np.zeros((3, 2)))
    dtype = compare(np.zeros(2, np.int8), np.zeros(2, np.int64))
    assert shape is not None
    assert dtype is not None
    assert (shape.kind, shape.expected, shape.actual) == (Kind.SHAPE, "[2, 3]", "[3, 2]")
    assert (dtype.kind, dtype.expected, dtype.actual) == (Kind.DTYPE, "int8", "int64")


def test_empty_and_scalar_arrays() -> None:
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))) is None
    found = compare(np.array(1.0), np.array(2.0))
    assert found is not None
    assert (found.index, found.total) == ((), 1)


def test_arrays_that_are_not_contiguous() -> None:
    grid = np.arange(12.0).reshape(3, 4)
    assert compare(grid.T, grid.T.copy()) is None
    found = compare(grid.T, grid.T + np.eye(4, 3))
    assert found is not None
    assert (found.index, found.count) == ((0, 0), 3)


def test_huge_values_overflow_into_a_difference_not_into_an_error() -> None:
    found = compare(np.array([1e308]), np.array([-1e308]))
    assert found is not None
    assert found.max_absolute == np.inf


def test_outputs_are_compared_one_by_one() -> None:
    tolerance = [Tolerance()] * 3
    found = compare_outputs(
        [f32(1.0), f32(2.0), f32(3.0)], [f32(1.0), f32(5.0), f32(3.0, 4.0)], tolerance
    )
    assert [(d.output, d.kind) for d in found] == [(1, Kind.VALUES), (2, Kind.SHAPE)]
    assert [d.kind for d in compare_outputs([f32(1.0)], [], tolerance)] == [Kind.COUNT]


@pytest.mark.parametrize(
    ("dtype", "length", "absolute", "relative"),
    [
        (np.float64, 10**6, 1e-3, 1e-2),
        (np.float32, 10**4, 1e-3, 1e-2),
        (np.float16, 1, 4 * 2**-10, 1e-2),
        (np.float16, 64, 32 * 2**-10, 32 * 2**-10),
        (np.float16, 10**4, 32 * 2**-10, 32 * 2**-10),
        (ml_dtypes.bfloat16, 16, 16 * 2**-7, 16 * 2**-7),
        (np.int32, 100, 0.0, 0.0),
    ],
)
def test_the_paper_s_bounds_widen_where_the_dtype_needs_it(
    dtype: type, length: int, absolute: float, relative: float
) -> None:
    bounds = PAPER.bounds(np.dtype(dtype), length)
    assert bounds.absolute == pytest.approx(absolute)
    assert bounds.relative == pytest.approx(relative)


@settings(max_examples=50)
@given(st.sampled_from([np.float16, np.float32, np.float64]), st.integers(1, 10**6))
def test_bounds_grow_with_the_length_of_sums(dtype: type, length: int) -> None:
    for policy in (PAPER, TIGHT, Tolerances(steps=1)):
        short = policy.bounds(np.dtype(dtype), length)
        long = policy.bounds(np.dtype(dtype), 2 * length)
        assert long.absolute >= short.absolute
        assert long.relative >= short.relative


def test_a_float64_result_computed_in_float32_passes_the_paper_s_bounds_only() -> None:
    exact = np.array([np.pi])
    single = exact.astype(np.float32).astype(np.float64)
    assert compare(exact, single) is None
    assert compare(exact, single, TIGHT.bounds(exact.dtype)) is not None
