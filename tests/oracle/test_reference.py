"""The reference in three readings: what counts as rounding and what does not."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reprise.oracle.compare import is_float
from reprise.oracle.reference import Reference, distance, in_range, perturbed
from reprise.uir.program import Program
from reprise.uir.semantics import Cause
from tests.oracle.conftest import f32

Build = Callable[..., Program]


def radius(p: Program, samples: int = 8) -> np.ndarray:
    reference = Reference(p.graph, p.inputs)
    return reference.scatter(samples, np.random.default_rng(0))[0].radius


def test_a_well_conditioned_program_scatters_by_ulps(program: Build) -> None:
    x = f32(0.3, 1.7, 2.9)
    p = program("x: float32[3]\ny = exp(x)", x=x)
    relative = radius(p) / np.exp(x.astype(np.float64))
    assert (relative > 0).all()
    assert (relative < 8 * np.finfo(np.float32).eps).all()


def test_a_cancellation_scatters_as_far_as_it_should(program: Build) -> None:
    """exp(10) has 22026.46…: one unit in the last place is 2e-3."""
    p = program("x: float32[1]\nb: float32[1]\ny = exp(x)\nz = sub(y, b)", x=f32(10.1),
                b=np.exp(f32(10.1)))  # fmt: skip
    assert 1e-3 < radius(p)[0] < 2e-1


@pytest.mark.parametrize(
    "discrete",
    ["floor(z)", "ceil(z)", "cast(z, to=int32)", "less(z, x)", "remainder(z, x)"],
)
def test_a_discrete_operator_on_its_step_scatters_by_a_whole_step(
    program: Build, discrete: str
) -> None:
    p = program(f"x: float32[1]\ny = exp(x)\nz = log(y)\nw = {discrete}", x=f32(3))
    assert radius(p, 16)[0] >= 1


def test_a_step_far_away_does_not_scatter(program: Build) -> None:
    p = program("x: float32[2]\ny = exp(x)\nz = log(y)\nw = floor(z)", x=f32(3.4, 2.6))
    assert (radius(p, 16) == 0).all()


def test_whole_numbers_are_exact(program: Build) -> None:
    p = program("x: float32[3]\ny = mul(x, x)\nz = sum(y, axes=[0])\nw = floor(z)", x=f32(1, 2, 3))
    assert (radius(p, 16) == 0).all()


def test_moved_elements_do_not_scatter(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = transpose(x, perm=[1, 0])", x=np.ones((2, 3), np.float32))
    assert (radius(p) == 0).all()


def test_half_precision_scatters_more(program: Build) -> None:
    single = program("x: float32[1]\ny = exp(x)", x=f32(1.3))
    half = program("x: float16[1]\ny = exp(x)", x=np.array([1.3], np.float16))
    assert radius(half)[0] > 1000 * radius(single)[0]


def test_what_follows_from_a_tie_is_undefined(program: Build) -> None:
    p = program(
        "x: float32[1, 3]\ny = argmax(x, axis=1)\nz = add(y, y)\nw = exp(x)",
        x=f32(5, 5, 2).reshape(1, 3),
    )
    reference = Reference(p.graph, p.inputs)
    assert list(reference.undefined_outputs().values()) == [Cause.TIE]
    untied = Reference(p.graph, {"x": f32(5, 6, 2).reshape(1, 3)})
    assert untied.undefined_outputs() == {}


def test_overflow_in_the_declared_type_is_infinite() -> None:
    wide = np.array([1e5, -1e5, 1.0, np.nan])
    assert in_range(wide, np.dtype(np.float16)).tolist()[:3] == [np.inf, -np.inf, 1.0]
    assert in_range(wide, np.dtype(np.float32)).tolist()[:3] == [1e5, -1e5, 1.0]


def test_distances() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([1.0, nan, inf, inf, 1.0, nan])
    b = np.array([1.5, nan, inf, -inf, inf, 1.0])
    assert distance(a, b).tolist() == [0.5, 0.0, 0.0, inf, inf, inf]
    assert distance(np.array([1, 2]), np.array([1, 3])).tolist() == [0.0, inf]


@pytest.mark.slow
@given(
    hnp.arrays(st.sampled_from([np.float16, np.float32, np.float64]), hnp.array_shapes(min_side=0)),
    st.integers(0, 2**32),
)
def test_perturbing_moves_to_a_neighbour_or_not_at_all(array: np.ndarray, seed: int) -> None:
    with np.errstate(all="ignore"):
        moved = perturbed(array, np.random.default_rng(seed))
        up, down = np.nextafter(array, np.inf), np.nextafter(array, -np.inf)
        whole = ~np.isfinite(array) | (array == np.rint(array))
    assert moved.dtype == array.dtype
    neighbour = (moved == up.astype(array.dtype)) | (moved == down.astype(array.dtype))
    same = (moved == array) | np.isnan(array)
    assert (neighbour | same).all()
    assert same[whole].all()


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, ml_dtypes.bfloat16])
def test_perturbing_leaves_integers_alone(dtype: type) -> None:
    array = np.array([1, 0, 1]).astype(dtype)
    assert (perturbed(array, np.random.default_rng(0)) == array).all()
    halves = np.array([0.3, 1.7]).astype(ml_dtypes.bfloat16)
    moved = perturbed(halves, np.random.default_rng(0))
    assert is_float(moved.dtype)
    assert (moved != halves).all()
