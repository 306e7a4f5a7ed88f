"""What a target's answer for a kernel comes to: its result, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reprise.einsum.data import Array, Stored, entries, materialise
from reprise.einsum.kernel import Computed, Entries, Kernel, rebuilt
from reprise.einsum.reference import bounds, difference, reference
from reprise.einsum.relations import Variant
from reprise.einsum.translate.script import HELPERS
from reprise.targets.interface import Failure, Outcome, Stage

SCRIPT = "einsum_script.py"
"""What tracebacks in the worker call the script (``targets/shared/kernel_runner.py``)."""
_OURS = (SCRIPT, "kernel_runner.py")
_READING = f"{SCRIPT}:result"
"""The frame of an answer that is no result."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a kernel's result. ``kind``: "values", "nan", "shape", "twice" (a
    coordinate that is listed twice), "outside" (one that the output does not have)."""

    kind: str
    text: str

    @property
    def family(self) -> str:
        """What it is to signatures: "entries" if only the list of entries is wrong, or "values":
        what moves values about may show as any of the other kinds."""
        return "entries" if self.kind == "twice" else "values"


class Unreadable(ValueError):
    """A target's answer that is no result of a kernel."""


def dense_result(kernel: Kernel, coordinates: Array, values: Array) -> tuple[Array, Wrong | None]:
    """The output as an array, and what is wrong with its entries as a list. Entries with the same
    coordinate are added. Raises Unreadable if the arrays are no result."""
    shape = kernel.shapes[kernel.output.tensor]
    if values.dtype.kind not in "biuf" or coordinates.dtype.kind not in "iu":
        raise Unreadable(f"{coordinates.dtype} coordinates and {values.dtype} values")
    if coordinates.ndim != 2:
        if values.shape != shape:
            return np.zeros(shape), Wrong("shape", f"shape {values.shape} instead of {shape}")
        return np.asarray(values), None
    if values.ndim != 1 or coordinates.shape != (len(values), len(shape)):
        raise Unreadable(f"{coordinates.shape} coordinates and {values.shape} values")
    inside = np.all((coordinates >= 0) & (coordinates < np.array(shape, np.int64)), axis=1)
    dense = Stored(shape, coordinates[inside], values[inside]).dense()
    if not inside.all():
        first = tuple(int(c) for c in coordinates[~inside][0])
        return dense, Wrong("outside", f"entry at {first}, outside of shape {shape}")
    places, counts = np.unique(coordinates, axis=0, return_counts=True)
    if (counts > 1).any():
        first = tuple(int(c) for c in places[counts > 1][0])
        return dense, Wrong("twice", f"{int((counts > 1).sum())} coordinates are listed more than "
                            f"once, the first {first}")  # fmt: skip
    return dense, None


def wrong_result(kernel: Kernel, dense: Array, expected: Array, bound: Array) -> Wrong | None:
    """How a result is wrong, by the reference."""
    found = difference(expected, dense, bound)
    if found is None:
        return None
    if found.place is not None and np.isnan(dense).any():
        return Wrong("nan", f"NaN among the values; {found}")
    return Wrong("shape" if found.place is None else "values", str(found))


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one variant: a failure, or the outputs of its kernels by name and what is
    wrong with the first of them that is. ``value``: the result of the whole variant."""

    failure: Failure | None
    value: Array | None = None
    wrong: Wrong | None = None
    culprit: Kernel | None = None


def judged(kernels: Sequence[Kernel], variant: Variant, outcome: Outcome, name: str) -> Ran:
    """What became of a variant: every kernel is held against its own reference, for the operands
    that it was really given. What is no result is a failure of ours: :func:`is_ours`."""
    result = outcome.results[name]
    if result.failure is not None or result.outputs is None:
        return Ran(result.failure)
    if len(result.outputs) != 2 * len(kernels):
        return _unread(f"{len(result.outputs)} arrays for {len(kernels)} kernels")
    outputs: dict[str, Array] = {}
    for number, kernel in enumerate(kernels):
        stored = materialise(kernel, outputs)
        try:
            dense, listed = dense_result(kernel, *result.outputs[2 * number : 2 * number + 2])
        except Unreadable as error:
            return _unread(str(error))
        expected = reference(kernel, stored)
        wrong = wrong_result(kernel, dense, expected, bounds(kernel, stored)) or listed
        if wrong is not None:
            return Ran(None, None, wrong, given(kernel, outputs))
        outputs[kernel.output.tensor] = dense
    return Ran(None, variant.recovery(outputs))


def _unread(why: str) -> Ran:
    return Ran(Failure(Stage.RUN, Unreadable.__name__, why, (_READING,)))


def is_ours(failure: Failure) -> bool:
    """Whether an exception came out of one of our own functions in the script, which pack operands
    and read results, and not out of what they call; or an answer could not be read."""
    innermost = failure.frames[-1] if failure.frames else ""
    return innermost in {_READING, *(f"{SCRIPT}:{name}" for name in HELPERS)}


def given(kernel: Kernel, outputs: dict[str, Array]) -> Kernel:
    """The kernel with its data written out, so that it stands alone."""
    shapes = kernel.shapes
    written = {}
    for tensor in kernel.operands:
        if isinstance(tensor.data, Computed):
            stored = entries(tensor.data, shapes[tensor.name], np.dtype(kernel.dtype), outputs)
            coordinates = tuple(tuple(int(i) for i in c) for c in stored.coordinates)
            values = tuple(float(v) for v in stored.values)
            written[tensor.name] = Entries(coordinates, values)
    return rebuilt(kernel, data=written) if written else kernel


def theirs(failure: Failure) -> tuple[str, ...]:
    """The frames of an exception that are not our own script's."""
    return tuple(frame for frame in failure.frames if not frame.startswith(_OURS))
