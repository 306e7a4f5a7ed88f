"""What a kernel computes, densely with numpy; and when two results are the same.

Integers are computed in int64, whatever the kernel's element type; where :func:`is_exact` holds,
every order of sums and products in that type gives the same values, and results are compared
exactly. Otherwise the reference is float64, and each element has a bound that holds for any order
of summation (:func:`bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from reprise.einsum.data import MOST_AXES, Array, Stored
from reprise.einsum.kernel import Kernel, KernelError, Term
from reprise.lang.display import counted

_MANTISSA = {"float64": 53, "float32": 24, "int64": 63, "int32": 31}
"""Up to 2 to this power, every integer has its own value in the element type."""
MOST_FACTORS = 30
"""Factors of a term that is computed: numpy's einsum holds no more."""
MOST_ITERATIONS = 1 << 33
"""How often the loops of a term may run: about a minute."""


def evaluate(kernel: Kernel, arrays: Mapping[str, Array]) -> Array:
    """The output, from dense operands by name, in the operands' common type."""
    total: Array | None = None
    for term in kernel.terms:
        value = _term(kernel, term, arrays)
        total = value if total is None else total + value
    assert total is not None
    return total


def reference(kernel: Kernel, stored: Mapping[str, Stored]) -> Array:
    """The output, as float64 or int64: exact if :func:`is_exact`."""
    held = is_integral(stored) and magnitude(kernel, stored) < 2.0 ** _MANTISSA["int64"]
    wide = np.int64 if held else np.float64
    return evaluate(kernel, {name: s.dense().astype(wide) for name, s in stored.items()})


def is_integral(stored: Mapping[str, Stored]) -> bool:
    """Whether all values are integers."""
    return all(
        np.issubdtype(s.values.dtype, np.integer) or bool(np.all(s.values == np.rint(s.values)))
        for s in stored.values()
    )


def magnitude(kernel: Kernel, stored: Mapping[str, Stored]) -> float:
    """A bound on every partial sum and product of the kernel, in magnitude: that of all terms
    together, each over the whole range of its contracted indices."""
    largest = {
        name: float(np.max(np.abs(s.values), initial=0.0)) * _most_at_one_place(s)
        for name, s in stored.items()
    }
    extents = kernel.extent
    total = 0.0
    for term in kernel.terms:
        summed = prod(extents[i] for i in term.indices if i not in kernel.output.indices)
        total += summed * prod(max(1.0, largest[factor.tensor]) for factor in term.factors)
    return total


def is_exact(kernel: Kernel, stored: Mapping[str, Stored]) -> bool:
    """Whether every order of evaluation gives the same result in the kernel's element type."""
    return is_integral(stored) and magnitude(kernel, stored) < 2.0 ** _MANTISSA[kernel.dtype]


def bounds(kernel: Kernel, stored: Mapping[str, Stored]) -> Array:
    """How far a correct result may be from the reference, element by element; 0 if exact.

    For each element ``n * eps * sum(|products|)``, where ``n`` counts the operations behind it:
    the standard bound for sums in any order.
    """
    if is_exact(kernel, stored):
        return np.zeros(kernel.shapes[kernel.output.tensor])
    absolute = {name: np.abs(s.dense().astype(np.float64)) for name, s in stored.items()}
    extents = kernel.extent
    operations = sum(
        len(term.factors) + prod(extents[i] for i in term.indices if i not in kernel.output.indices)
        for term in kernel.terms
    )
    eps = 2.0 ** (1 - _MANTISSA[kernel.dtype])
    return np.asarray(2 * (operations + 1) * eps * evaluate(kernel, absolute))


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two results differ first, in row-major order, and in how many places; ``place`` is
    None if their shapes do."""

    place: tuple[int, ...] | None
    expected: float
    actual: float
    count: int

    def __str__(self) -> str:
        if self.place is None:
            return "the results have different shapes"
        differ = "differs" if self.count == 1 else "differ"
        return (
            f"{counted(self.count, 'value')} {differ}, the first at {self.place}: "
            f"{self.actual:g} instead of {self.expected:g}"
        )


def difference(expected: Array, actual: Array, bound: Array | float = 0.0) -> Difference | None:
    """The difference that counts: more than ``bound``, or a NaN or infinity on one side. 0 and -0
    are equal."""
    if expected.shape != actual.shape:
        return Difference(None, 0.0, 0.0, 0)
    with np.errstate(invalid="ignore"):
        near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= bound
    # a NaN is not near to anything, and an infinity not to itself
    near |= (actual == expected) & ~np.isnan(np.asarray(actual, np.float64))
    if near.all():
        return None
    apart = np.argwhere(~near)
    place = tuple(int(c) for c in apart[0])
    return Difference(place, float(expected[place]), float(actual[place]), len(apart))


def _term(kernel: Kernel, term: Term, arrays: Mapping[str, Array]) -> Array:
    """A term's value, in the output's shape. An index of the output that the term does not have is
    broadcast."""
    _expect_computable(kernel, term)
    numbers: dict[str, int] = {}
    for index in chain(kernel.output.indices, term.indices):
        numbers.setdefault(index, len(numbers))
    inside = [i for i in kernel.output.indices if i in term.indices]
    operands: list[Any] = []
    for factor in term.factors:
        operands += [arrays[factor.tensor], [numbers[i] for i in factor.indices]]
    value = np.asarray(np.einsum(*operands, [numbers[i] for i in inside]))
    extents = kernel.extent
    axes = tuple(extents[i] if i in inside else 1 for i in kernel.output.indices)
    shape = tuple(extents[i] for i in kernel.output.indices)
    return np.broadcast_to(value.reshape(axes), shape)


def _expect_computable(kernel: Kernel, term: Term) -> None:
    """Raise KernelError for a term that numpy has no room or no time for."""
    if len(term.factors) > MOST_FACTORS:
        raise KernelError(f"a term of {len(term.factors)} factors is too long to be computed")
    indices = {*kernel.output.indices, *term.indices}
    extents = kernel.extent
    runs = prod(extents[index] for index in indices)
    if len(indices) > MOST_AXES or runs > MOST_ITERATIONS:
        raise KernelError(f"{len(indices)} indices that run {runs:.3g} times are too many to be "
                          "computed densely")  # fmt: skip


def _most_at_one_place(stored: Stored) -> int:
    """How often one coordinate is stored at most."""
    if not len(stored.values):
        return 1
    return int(np.unique(stored.coordinates, axis=0, return_counts=True)[1].max())
