"""The oracle for kernels: a dense reference, and variants that must compute the same.

All variants of a test go to the target in one job, as its modes. A result is judged three ways:

- against the dense reference of the kernel, which is exact for drawn integers;
- against the other variants, which says which relation and which formats expose a failure, and
  whether variants alone would have shown it;
- as a list of entries: a coordinate that is listed twice or is outside of the shape is a failure of
  its own, whatever a reader makes of it. A NaN is always wrong.

What is wrong is traced to one kernel, run by itself, and made smaller while it stays wrong
(``reduce``); its class of formats and indices is the signature, so that one cause is met under few
names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reprise.campaign.bench import Examination
from reprise.einsum.data import Array, Stored, entries, materialise
from reprise.einsum.kernel import Computed, Entries, Kernel, rebuilt
from reprise.einsum.reduce import reduced
from reprise.einsum.reference import bounds, difference, reference
from reprise.einsum.relations import Variant
from reprise.einsum.shape_class import shape_class
from reprise.einsum.testing import REFERENCE, KernelTest, alone
from reprise.einsum.translate.backends import BACKENDS, Backend
from reprise.einsum.translate.script import HELPERS, Untranslatable, function, script
from reprise.oracle.crash import crash_of, crash_of_end
from reprise.oracle.verdict import Judgement, Verdict
from reprise.targets.discover import Target
from reprise.targets.interface import Ended, Failure, Job, Outcome
from reprise.targets.process import Jobs

SCRIPT = "einsum_script.py"
"""What tracebacks in the worker call the script (``targets/shared/kernel_runner.py``)."""
_OURS = (SCRIPT, "kernel_runner.py")
_NOTE = re.compile(r"\s*note: .*", re.DOTALL)
"""Where MLIR goes on to print the operation that a message is about."""
_TYPES = re.compile(r"'!?[\w.]+<[^']*'(?:, '!?[\w.]+<[^']*')*")
"""Types in a message of MLIR: shapes and encodings say nothing about the defect."""


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
    if coordinates.ndim != 2:
        if values.shape != shape:
            return np.zeros(shape), Wrong("shape", f"shape {values.shape} instead of {shape}")
        return np.asarray(values), None
    if coordinates.shape != (len(values), len(shape)):
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


@dataclass(frozen=True, slots=True)
class KernelJudging:
    """Makes oracles, in any process."""

    def __call__(self, target: Target) -> KernelOracle:
        return KernelOracle(BACKENDS[target.name])


class KernelOracle:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.translator = backend.translator

    def __call__(self, test: KernelTest, model: bytes, process: Jobs, /) -> Examination:
        names = tuple(n for n, v in test.variants.items() if self._says(n, v))
        outcome = process.run(Job(model, {}, names))
        if outcome.ended is Ended.UNSTARTED:
            return Examination(Judgement(Verdict.INVALID), outcome)
        ran = {
            name: judged(test.variants[name].kernels, test.variants[name], outcome, name)
            for name in names
            if name in outcome.results
        }
        if outcome.ended is not Ended.ANSWERED:
            return self._ended(test, outcome)
        for name, one in ran.items():
            if one.failure is not None and is_ours(one.failure):
                said = f"{one.failure.type}: {' '.join(one.failure.message.split())[:200]}"
                place = one.failure.frames[-1]
                judgement = Judgement(Verdict.INVALID, f"reprise: {place}", f"{place}: {said}")
                return Examination(judgement, outcome, shown=test.variants[name].kernels)
        for name, one in ran.items():
            if one.wrong is not None:
                return self._wrong(test, name, ran, outcome, process)
        for name, one in ran.items():
            if one.failure is not None and not one.failure.unsupported:
                return self._crashed(test, name, one.failure, ran, outcome)
        refused = [one.failure for one in ran.values() if one.failure is not None]
        if refused and len(refused) == len(ran):
            said = f"{refused[0].type}: {' '.join(refused[0].message.split())[:200]}"
            return Examination(Judgement(Verdict.UNSUPPORTED, refused[0].type, said), outcome)
        return Examination(Judgement(Verdict.OK), outcome)

    def _says(self, name: str, variant: Variant) -> bool:
        try:
            function(self.translator, name, variant.kernels)
        except Untranslatable:
            return False
        return True

    def _ended(self, test: KernelTest, outcome: Outcome) -> Examination:
        """The process died, or hangs."""
        variant = test.variants[outcome.mode or REFERENCE]
        crash = crash_of_end(replace(outcome, mode=None))
        hang = outcome.ended is Ended.HANG
        title = f"{crash.kind}: {crash.message}".rstrip(": ")
        evidence = {**_told(test, variant), "crash": crash.key}
        signature = f"hang | {shape_class(variant.kernels[-1])}" if hang else crash.key
        verdict = Verdict.HANG if hang else Verdict.CRASH
        judgement = Judgement(verdict, signature, f"{_statement(variant)}: {title}", evidence)
        return Examination(judgement, outcome, shown=variant.kernels)

    def _crashed(
        self,
        test: KernelTest,
        name: str,
        failure: Failure,
        ran: dict[str, Ran],
        outcome: Outcome,
    ) -> Examination:
        """An exception that the target does not declare."""
        variant = test.variants[name]
        theirs = tuple(f for f in failure.frames if not f.startswith(_OURS))
        message = _TYPES.sub("'TYPES'", _NOTE.sub("", failure.message))
        crash = crash_of(replace(failure, frames=theirs, message=message))
        said = " ".join(failure.message.split())[:200]
        evidence = {
            **_told(test, variant),
            "crash": crash.key,
            "message": failure.message[:2000],
            "accepted": sorted(n for n, one in ran.items() if one.failure is None),
        }
        title = f"{_statement(variant)}: {failure.type}: {said}"
        judgement = Judgement(Verdict.CRASH, crash.key, title, evidence)
        return Examination(judgement, outcome, shown=variant.kernels)

    def _wrong(
        self, test: KernelTest, name: str, ran: dict[str, Ran], outcome: Outcome, process: Jobs
    ) -> Examination:
        """A result that the reference does not give."""
        variant, one = test.variants[name], ran[name]
        assert one.wrong is not None
        evidence = {**_told(test, variant), **_compared(ran, name)}
        kernels: tuple[Kernel, ...] = variant.kernels
        wrong, runs = one.wrong, 0
        family = wrong.family
        if one.culprit is not None:
            again = self._alone(one.culprit, process)
            if again is not None and again.family == wrong.family:
                kernel, runs = reduced(
                    one.culprit,
                    lambda k: (w := self._alone(k, process)) is not None and w.family == family,
                    self.backend.tries,
                )
                kernels = (kernel,)
                wrong = self._alone(kernel, process) or wrong
            else:
                evidence["alone"] = "the kernel is right when it is run by itself"
        evidence |= {"reduced in": runs, "kind": wrong.kind}
        where = " ; ".join(map(shape_class, kernels))
        title = f"{'; '.join(map(_described, kernels))}: {wrong.text}"
        judgement = Judgement(Verdict.WRONG_RESULT, f"wrong | {family} | {where}", title,
                              evidence)  # fmt: skip
        return Examination(judgement, outcome, shown=kernels)

    def _alone(self, kernel: Kernel, process: Jobs) -> Wrong | None:
        """What is wrong with a kernel when it is run by itself; None if nothing is, or if it does
        not run."""
        try:
            model = script(self.translator, {REFERENCE: (kernel,)})
        except Untranslatable:
            return None
        outcome = process.run(Job(model, {}, (REFERENCE,)))
        if REFERENCE not in outcome.results:
            return None
        return judged((kernel,), alone(kernel), outcome, REFERENCE).wrong


def judged(kernels: Sequence[Kernel], variant: Variant, outcome: Outcome, name: str) -> Ran:
    """What became of a variant: every kernel is held against its own reference, for the operands
    that it was really given. Raises Unreadable."""
    result = outcome.results[name]
    if result.failure is not None or result.outputs is None:
        return Ran(result.failure)
    if len(result.outputs) != 2 * len(kernels):
        raise Unreadable(f"{len(result.outputs)} arrays for {len(kernels)} kernels")
    outputs: dict[str, Array] = {}
    for number, kernel in enumerate(kernels):
        stored = materialise(kernel, outputs)
        dense, listed = dense_result(kernel, *result.outputs[2 * number : 2 * number + 2])
        expected = reference(kernel, stored)
        wrong = wrong_result(kernel, dense, expected, bounds(kernel, stored)) or listed
        if wrong is not None:
            return Ran(None, None, wrong, given(kernel, outputs))
        outputs[kernel.output.tensor] = dense
    return Ran(None, variant.recovery(outputs))


def is_ours(failure: Failure) -> bool:
    """Whether an exception came out of one of our own functions in the script, which pack operands
    and read results, and not out of what they call."""
    innermost = failure.frames[-1] if failure.frames else ""
    return innermost in {f"{SCRIPT}:{name}" for name in HELPERS}


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


# --- words ---------------------------------------------------------------------------------------


def _statement(variant: Variant) -> str:
    return "; ".join(map(_described, variant.kernels))


def _described(kernel: Kernel) -> str:
    """``A(i,k) = B(i,j) * C(j,k), A: ds, B: dd, C: ds``."""
    stored = ", ".join(f"{t.name}: {t.format}" for t in kernel.tensors if t.format.rank)
    return f"{kernel.statement}{', ' if stored else ''}{stored}"


def _told(test: KernelTest, variant: Variant) -> dict[str, object]:
    """The relation and the formats that expose a finding."""
    before = {t.name: str(t.format) for t in test.kernel.tensors}
    after = {t.name: str(t.format) for t in variant.kernels[-1].tensors}
    changed = {
        name: f"{before[name]} -> {after[name]}"
        for name in before
        if name in after and before[name] != after[name]
    }
    return {
        "relation": variant.relation,
        "note": variant.note,
        "formats": changed or {name: stored for name, stored in after.items() if stored},
        "kernel": _described(test.kernel),
    }


def _compared(ran: dict[str, Ran], name: str) -> dict[str, object]:
    """Which variants are right, and whether comparing them alone would have shown the failure."""
    right = sorted(n for n, one in ran.items() if one.failure is None and one.wrong is None)
    wrong = sorted(n for n, one in ran.items() if one.wrong is not None)
    return {"right": right, "wrong": wrong, "seen by variants alone": bool(right)}
