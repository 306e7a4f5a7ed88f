"""Compare what a program should give with what it gave.

Rules, each of them tested (`docs/oracle.md` has them for readers):

* Shapes and dtypes are compared first; each is a difference of its own kind.
* NaN equals NaN, whatever its payload or sign. An infinity equals the infinity of its sign only.
* +0 equals -0, unless the tolerance is strict about zeros; then the sign is a kind of its own,
  found only where nothing else differs.
* Finite floating-point values differ if their distance exceeds the absolute bound and also the
  relative bound times the larger magnitude: so the order of the operands does not matter.
* Integers, booleans, strings and everything else must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from reprise.oracle.tolerance import PAPER, Tolerance, epsilon
from reprise.uir.graph import Array

Mask = npt.NDArray[np.bool_]


class Kind(Enum):
    """In which respect two results differ."""

    COUNT = "number of outputs"
    SHAPE = "shape"
    DTYPE = "dtype"
    VALUES = "values"
    SIGN_OF_ZERO = "sign of zero"


@dataclass(frozen=True, slots=True)
class Difference:
    """How two results differ. ``expected`` and ``actual`` are, by kind, the shapes, the dtypes or
    the values at ``index``, the first place that differs (row-major), as text.

    ``max_absolute`` and ``max_relative`` are taken over the ``count`` of ``total`` elements that
    differ; infinite where one of the two values is not finite, NaN never. ``output``: the number
    of the output.
    """

    kind: Kind
    expected: str
    actual: str
    tolerance: Tolerance = Tolerance()
    count: int = 0
    total: int = 0
    index: tuple[int, ...] = ()
    max_absolute: float = 0.0
    max_relative: float = 0.0
    output: int = 0

    def __str__(self) -> str:
        if self.kind not in (Kind.VALUES, Kind.SIGN_OF_ZERO):
            return f"{self.kind.value} {self.actual}, expected {self.expected}"
        place = f"[{', '.join(map(str, self.index))}]"
        return (
            f"{self.count} of {self.total} elements differ, first at {place}: "
            f"{self.actual}, expected {self.expected}"
        )

    def evidence(self) -> dict[str, object]:
        """As data that can be written as JSON (which has no infinity: it becomes a string)."""
        facts: dict[str, object] = {
            "output": self.output,
            "kind": self.kind.value,
            "expected": self.expected,
            "actual": self.actual,
        }
        if self.kind in (Kind.VALUES, Kind.SIGN_OF_ZERO):
            facts |= {
                "count": self.count,
                "total": self.total,
                "first_index": list(self.index),
                "max_absolute_error": number(self.max_absolute),
                "max_relative_error": number(self.max_relative),
                "tolerance": str(self.tolerance),
            }
        return facts


def number(value: float) -> float | str:
    """A number that JSON can hold, else its name."""
    value = float(value)
    return value if np.isfinite(value) else str(value)


def compare(
    expected: Array, actual: Array, tolerance: Tolerance | None = None
) -> Difference | None:
    """The difference, or None. Without a tolerance: the paper's, for the dtype. Never raises."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return Difference(Kind.SHAPE, str(list(expected.shape)), str(list(actual.shape)))
    textual = expected.dtype.kind in "OUS" and actual.dtype.kind in "OUS"
    if expected.dtype != actual.dtype and not textual:
        return Difference(Kind.DTYPE, str(expected.dtype), str(actual.dtype))
    if not textual and expected.tobytes() == actual.tobytes():
        return None
    if tolerance is None:
        tolerance = PAPER.bounds(expected.dtype)
    differs = mismatches(expected, actual, tolerance)
    if differs.any():
        return _described(Kind.VALUES, expected, actual, differs, tolerance)
    if tolerance.strict_zero and is_float(expected.dtype):
        signs = _signs_differ(expected, actual)
        if signs.any():
            return _described(Kind.SIGN_OF_ZERO, expected, actual, signs, tolerance)
    return None


def compare_outputs(
    expected: Sequence[Array], actual: Sequence[Array], tolerances: Sequence[Tolerance]
) -> list[Difference]:
    """The differences of a program's outputs, in order."""
    if len(expected) != len(actual):
        return [Difference(Kind.COUNT, str(len(expected)), str(len(actual)))]
    found = []
    for position, (a, b, tolerance) in enumerate(zip(expected, actual, tolerances, strict=True)):
        difference = compare(a, b, tolerance)
        if difference is not None:
            found.append(replace(difference, output=position))
    return found


def mismatches(expected: Array, actual: Array, tolerance: Tolerance) -> Mask:
    """Which elements of two arrays of one shape differ (the sign of zero aside)."""
    if is_float(expected.dtype) and is_float(actual.dtype):
        x, y = widened(expected), widened(actual)
        with np.errstate(all="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            finite = np.isfinite(x) & np.isfinite(y)
            error = np.abs(x - y)
            bound = tolerance.relative * np.maximum(np.abs(x), np.abs(y))
            beyond = (error > tolerance.absolute) & (error > bound)
        return np.asarray(~same & (~finite | beyond))
    if expected.dtype.kind in "biu" and actual.dtype.kind in "biu":
        return np.asarray(expected != actual)
    if expected.dtype.kind in "mM" and expected.dtype == actual.dtype:
        return np.asarray(expected.view(np.int64) != actual.view(np.int64))
    pairs = zip(expected.ravel(), actual.ravel(), strict=True)
    flags = np.fromiter((not _equal(a, b) for a, b in pairs), np.bool_, expected.size)
    return flags.reshape(expected.shape)


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Whether values have rounding errors: floats of any width, complex numbers."""
    return dtype.kind in "fc" or epsilon(dtype) > 0.0


def widened(array: Array) -> npt.NDArray[Any]:
    """Floats as float64 (wider ones and complex numbers as they are)."""
    wide = array.dtype.kind in "fc" and array.dtype.itemsize >= 8
    return array if wide else array.astype(np.float64)


def _signs_differ(expected: Array, actual: Array) -> Mask:
    if expected.dtype.kind == "c":
        return _signs_differ(expected.real, actual.real) | _signs_differ(expected.imag, actual.imag)
    x, y = widened(expected), widened(actual)
    zeros = (x == 0) & (y == 0)
    return np.asarray(zeros & (np.signbit(x) != np.signbit(y)))


def _described(
    kind: Kind, expected: Array, actual: Array, differs: Mask, tolerance: Tolerance
) -> Difference:
    flat = int(np.argmax(differs))
    index = tuple(int(i) for i in np.unravel_index(flat, differs.shape))
    absolute = relative = 0.0
    if kind is Kind.VALUES:
        absolute, relative = _errors(expected[differs], actual[differs])
    return Difference(
        kind,
        _text(expected[index]),
        _text(actual[index]),
        tolerance,
        int(np.count_nonzero(differs)),
        int(differs.size),
        index,
        absolute,
        relative,
    )


def _errors(expected: Array, actual: Array) -> tuple[float, float]:
    """The largest absolute and relative error of values that differ; infinite for what has none."""
    if not is_float(expected.dtype) and expected.dtype.kind not in "iu":
        return float("inf"), float("inf")
    with np.errstate(all="ignore"):
        x, y = widened(expected), widened(actual)
        absolute = np.abs(x - y)
        absolute = np.where(np.isnan(absolute), np.inf, absolute)
        relative = absolute / np.maximum(np.abs(x), np.abs(y))
        relative = np.where(np.isnan(relative), np.inf, relative)
    return float(absolute.max()), float(relative.max())


def _equal(a: object, b: object) -> bool:
    """Equality of single values of any type; bytes stand for the text that they encode."""
    if a is b:
        return True
    a, b = (x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in (a, b))
    try:
        if bool(a == b):
            return True
        return bool(a != a) and bool(b != b)  # NaN and NaN
    except Exception:  # values that cannot be compared are not equal
        return False


def _text(value: object) -> str:
    """One element, in as many digits as tell it from its neighbours."""
    if isinstance(value, np.generic):
        try:
            return str(value.item()) if value.dtype.kind in "biufc" else str(value)
        except (OverflowError, ValueError):
            return str(value)
    return str(value)
