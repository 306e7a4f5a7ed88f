"""From a job's outcome to a verdict.

Comes in: a program, the outcome of running it, and a way to run it again. Goes out: a
:class:`~reprise.oracle.verdict.Judgement`, with evidence that can be written as JSON. Where the
modes agree, the cost is one comparison of bytes; the reference is evaluated only where they differ
and on a share of the other tests, to see what both modes get wrong.

The order of the questions is the policy (`docs/oracle.md`): did the process live? does the target
do this at all? do the modes differ? with whom does float64 side? does rounding explain it? does
emulating the plain precision? which pass is to blame?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from zlib import crc32

import numpy as np

from reprise.lang.display import shortened
from reprise.oracle.ablation import Ablation, ablate
from reprise.oracle.chance import random_outputs
from reprise.oracle.choices import inadmissible
from reprise.oracle.classify import blame
from reprise.oracle.compare import Difference, Kind, Mask, compare_outputs, is_float, mismatches
from reprise.oracle.compare import compare as compare_arrays
from reprise.oracle.crash import Crash, crash_of, crash_of_end
from reprise.oracle.reference import (
    Reference,
    Scatter,
    distance,
    perturbed_inputs,
    selects,
    steps,
)
from reprise.oracle.structure import term
from reprise.oracle.tolerance import PAPER, Tolerance, Tolerances, lengths
from reprise.oracle.verdict import Judgement, Severity, Verdict
from reprise.oracle.weigh import Weighing, total, weigh
from reprise.targets.interface import Ended, ModeResult, Outcome
from reprise.uir.graph import Array, TensorType
from reprise.uir.program import Program
from reprise.uir.semantics import Cause, SemanticsError
from reprise.uir.types import numpy_dtype

_STRUCTURAL = (Kind.COUNT, Kind.SHAPE, Kind.DTYPE)
_HALVES = ("float16", "bfloat16")


class Rerun(Protocol):
    """Runs the judged program again, on other inputs, in some of its modes, without some passes."""

    def __call__(
        self,
        *,
        inputs: Mapping[str, Array] | None = None,
        modes: tuple[str, ...] | None = None,
        disabled: tuple[str, ...] = (),
    ) -> Outcome: ...


Passes = Sequence[str] | Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Judge:
    """How outcomes are judged.

    ``modes``: the target's, the tested one first and the least optimised last. ``emulation``: the
    name of a mode that rounds every intermediate result as the baseline does, if the target has
    one. ``share``: of the tests whose modes agree, how many are compared with the reference
    besides (chosen by the program's name, so always the same). ``samples``: noisy readings of the
    reference. ``runs``: at most so many perturbed runs of the target for one finding. ``budget``:
    runs for one pass ablation. ``steps``: file a rounding error that a discrete operator makes a
    whole step of as a finding of low severity, as the first paper does, though it has no direction.
    """

    modes: tuple[str, ...]
    tolerances: Tolerances = PAPER
    emulation: str | None = None
    share: float = 0.05
    seed: int = 0
    samples: int = 6
    runs: int = 4
    steps: bool = False
    budget: int = 24

    @property
    def tested(self) -> str:
        return self.modes[0]

    @property
    def baseline(self) -> str | None:
        return self.modes[-1] if len(self.modes) > 1 else None

    def judge(
        self,
        program: Program,
        outcome: Outcome,
        rerun: Rerun | None = None,
        passes: Passes = (),
    ) -> Judgement:
        """The verdict on ``outcome``. Without ``rerun``, nothing is run again: no ablation, no
        conditioning test of the target itself. ``passes``: candidates of ablation, the likeliest
        first, or what gives them (asked only where there is a finding)."""
        first = self._first(program, outcome)
        case = _Case(self, program, outcome, rerun, passes)
        match first.verdict:
            case Verdict.OK if self._ran(outcome) and (
                self._chosen(program) or self._mistyped(program, outcome)
            ):
                return case.both_wrong() or first
            case Verdict.WRONG_RESULT:
                return case.wrong_result(first)
            case Verdict.CRASH:
                return case.crash(first)
        return first

    def _first(self, program: Program, outcome: Outcome) -> Judgement:
        """What can be said without running anything."""
        ended = self._ended(outcome)
        if ended is not None:
            return ended
        blamed = blame(outcome.results, self.tested, self.baseline)
        if blamed is not None:
            return _failed(outcome.results, *blamed)
        differences = self.differences(program, outcome.results)
        if not differences:
            return _OK
        first = differences[0]
        kind = "shape" if first.kind in _STRUCTURAL else "values"
        if first.kind is Kind.SIGN_OF_ZERO:
            kind = "sign of zero"
        signature = f"wrong | {kind} | {term(program.graph, first.output)}"
        evidence: dict[str, object] = {"differences": [d.evidence() for d in differences]}
        title = f"{self.tested}, output {first.output}: {first}"
        low = first.kind is Kind.SIGN_OF_ZERO
        severity = Severity.LOW if low else Severity.NORMAL
        return Judgement(Verdict.WRONG_RESULT, signature, title, evidence, severity)

    def _ended(self, outcome: Outcome) -> Judgement | None:
        if outcome.ended is Ended.ANSWERED:
            return None
        if outcome.ended is Ended.UNSTARTED:
            return Judgement(Verdict.UNDECIDED, "unstarted", "no worker could be had")
        crash = crash_of_end(outcome)
        what = {
            Ended.DIED: f"{outcome.signal or 'the process died'}",
            Ended.HANG: "over the time limit",
            Ended.MEMORY: "over the memory limit",
            Ended.GARBAGE: "the answer was garbage",
        }[outcome.ended]
        stage = f", stage {outcome.stage.value}" if outcome.stage else ""
        title = f"{what} in mode {outcome.mode or '?'}{stage}"
        verdict = Verdict.HANG if outcome.ended is Ended.HANG else Verdict.CRASH
        passed = [m for m, r in outcome.results.items() if r.failure is None]
        evidence: dict[str, object] = {
            "passes_in": passed,
            "ended": outcome.ended.value,
            "signal": outcome.signal,
            "mode": outcome.mode,
            "stage": outcome.stage.value if outcome.stage else None,
            "log": outcome.log[-4000:],
            "seconds": outcome.seconds,
        }
        return Judgement(verdict, crash.key, title, evidence)

    def differences(self, program: Program, results: Mapping[str, ModeResult]) -> list[Difference]:
        """How the tested mode's outputs differ from the baseline's."""
        tested = results.get(self.tested)
        baseline = results.get(self.baseline) if self.baseline else None
        if tested is None or baseline is None:
            return []
        if tested.outputs is None or baseline.outputs is None:
            return []  # compiled only
        pairs = zip(baseline.outputs, tested.outputs, strict=False)
        same = len(tested.outputs) == len(baseline.outputs)
        if same and all(_identical(a, b) for a, b in pairs):
            return []
        found = compare_outputs(
            baseline.outputs, tested.outputs, self.bounds(program, baseline.outputs)
        )
        random = random_outputs(program.graph)
        return [d for d in found if d.output not in random or _tells(d, program)]

    def bounds(self, program: Program, outputs: Sequence[Array]) -> tuple[Tolerance, ...]:
        """The tolerance of each output: by its dtype, and the length of the sums behind it."""
        long = lengths(program.graph)
        padded = (*long, *([1] * max(len(outputs) - len(long), 0)))
        return tuple(
            self.tolerances.bounds(array.dtype, length)
            for array, length in zip(outputs, padded, strict=False)
        )

    def _ran(self, outcome: Outcome) -> bool:
        """Whether there are results. A target that only compiles has none."""
        result = outcome.results.get(self.tested)
        return result is not None and bool(result.outputs)

    def _mistyped(self, program: Program, outcome: Outcome) -> bool:
        """Whether an output has not the type that the program declares. That costs nothing to see,
        so no test's types are left to the share that is compared with the reference."""
        result = outcome.results.get(self.baseline or self.tested)
        if result is None or result.outputs is None:
            return False
        return any(
            not _has_type(array, tensor.type)
            for array, tensor in zip(result.outputs, program.graph.outputs, strict=False)
        )

    def _chosen(self, program: Program) -> bool:
        return crc32(f"{self.seed}/{program.name}".encode()) < self.share * 2**32


_OK = Judgement(Verdict.OK)


def _tells(difference: Difference, program: Program) -> bool:
    """Whether a difference in an output of random values says something: one of the types does,
    unless the shape depends on values as well."""
    if difference.kind is Kind.SHAPE:
        return program.graph.outputs[difference.output].type.elements is not None
    return difference.kind in _STRUCTURAL


def _has_type(array: Array, type: TensorType) -> bool:
    """Whether an array is of a type, as far as the type is known."""
    if type.shape is not None:
        known = zip(type.shape, array.shape, strict=False)
        if len(type.shape) != array.ndim or any(
            isinstance(extent, int) and extent != actual for extent, actual in known
        ):
            return False
    if type.dtype is None or type.dtype == "string":
        return True
    return array.dtype == numpy_dtype(type.dtype)


def _failed(results: Mapping[str, ModeResult], verdict: Verdict, mode: str) -> Judgement:
    failure = results[mode].failure
    assert failure is not None
    crash = crash_of(failure)
    line = next(iter(failure.message.strip().splitlines()), "")
    others = [m for m, r in results.items() if m != mode and r.failure is not None]
    passed = [m for m, r in results.items() if r.failure is None]
    evidence: dict[str, object] = {
        "mode": mode,
        "stage": failure.stage.value,
        "type": failure.type,
        "message": failure.message[:4000],
        "frames": list(failure.frames[-20:]),
        "also_fails_in": others,
        "passes_in": passed,
    }
    title = f"{mode}, {failure.stage.value}: {failure.type}: {shortened(line, 200)}"
    signature = crash.key if verdict is Verdict.CRASH else _brief(verdict, crash)
    return Judgement(verdict, signature, title, evidence)


def _brief(verdict: Verdict, crash: Crash) -> str:
    return f"{verdict.value} | {crash.kind} | {crash.message}"


@dataclass(frozen=True, slots=True)
class _Case:
    """One suspicious test and the means to look closer."""

    judge: Judge
    program: Program
    outcome: Outcome
    rerun: Rerun | None
    passes: Passes

    # --- crashes ----------------------------------------------------------------------------------

    def crash(self, first: Judgement) -> Judgement:
        """Name the pass, if the tested mode alone fails."""
        judge = self.judge
        if self.outcome.ended in (Ended.MEMORY, Ended.GARBAGE) or self.rerun is None:
            return first
        where = first.evidence.get("mode")
        if where != judge.tested:
            return first
        base = self._baseline()
        if judge.baseline is None:
            return self._ablated(first, base)
        if base is None or base.failure is not None:
            if judge.baseline not in self.outcome.results:  # the process died before it got there
                fails = {"also_fails_in": [judge.baseline]}
                return replace(first, evidence={**first.evidence, **fails})
            return first  # no pass is to blame for what fails without any
        passes = {"passes_in": [judge.baseline]}
        return self._ablated(replace(first, evidence={**first.evidence, **passes}), base)

    def _baseline(self) -> ModeResult | None:
        """The baseline's result; run now if the process died before it got there."""
        name = self.judge.baseline
        if name is None:
            return None
        if name in self.outcome.results:
            return self.outcome.results[name]
        assert self.rerun is not None
        return self.rerun(modes=(name,)).results.get(name)

    def _ablated(self, first: Judgement, base: ModeResult | None) -> Judgement:
        """The judgement with the pass to blame as its signature, where there is one."""
        rerun, judge = self.rerun, self.judge
        if rerun is None:
            return first
        passes = self.passes() if callable(self.passes) else self.passes
        if not passes:
            return first

        def run(disabled: tuple[str, ...]) -> Judgement:
            again = rerun(modes=(judge.tested,), disabled=disabled)
            results = dict(again.results)
            if judge.baseline is not None and base is not None:
                results[judge.baseline] = base
            return judge._first(self.program, replace(again, results=results))

        found: Ablation = ablate(run, passes, first, judge.budget)
        evidence = {**first.evidence, "symptom": first.signature, "ablation": found.evidence()}
        title = first.title
        if found.cures:
            title = f"{' + '.join(found.cures)}: {first.title}"
        return replace(
            first, signature=found.signature or first.signature, title=title, evidence=evidence
        )

    # --- wrong results ----------------------------------------------------------------------------

    def wrong_result(self, first: Judgement) -> Judgement:
        """Believe a difference only if the reference, the conditioning test and the emulation
        leave no other explanation."""
        results, judge = self.outcome.results, self.judge
        assert judge.baseline is not None
        base, tested = results[judge.baseline].outputs, results[judge.tested].outputs
        assert base is not None
        assert tested is not None
        differences = judge.differences(self.program, results)
        reference = Reference(self.program.graph, self.program.inputs)
        try:
            if any(d.kind in _STRUCTURAL for d in differences):
                return self._structural(first, reference, base)
            every = [d.output for d in differences]
            undefined = reference.undefined_outputs()
            numbers = [n for n in every if n not in undefined]
            chosen, chosen_masks = self._choices(reference, base, tested, every, undefined)
            if not numbers and not chosen_masks:
                causes = sorted({undefined[n].value for n in every})
                return _undecided(first, "implementation-defined", {"causes": causes})
            if first.severity is Severity.LOW:
                return self._zeros(first, reference, base, numbers)
            weighings, masks = self._weigh(reference, base, tested, numbers)
            weighings, masks = weighings + chosen, {**masks, **chosen_masks}
        except SemanticsError as error:
            return _undecided(first, "no reference", {"reference": str(error)})
        weighed = replace(first, evidence={**first.evidence, **weighings.evidence()})
        if weighings.neither or weighings.closer:
            return self._disagreement(weighed, weighings, reference, base, numbers)
        if not weighings.wrong:
            return self._rounding(weighed, numbers)
        if self._moves_as_much(base, tested, masks):
            return _undecided(weighed, "ill-conditioned", {"conditioning": _MOVES})
        if self._emulated(base, masks):
            return _undecided(weighed, "intermediate precision", {"emulation": _EMULATED})
        return self._ablated(weighed, results[judge.baseline])

    def _structural(
        self, first: Judgement, reference: Reference, base: Sequence[Array]
    ) -> Judgement:
        """Shapes and dtypes: the baseline must have those that the reference has."""
        native = reference.native
        same = len(native) == len(base) and all(
            a.shape == b.shape and (a.dtype == b.dtype or a.dtype.kind in "OUS")
            for a, b in zip(native, base, strict=True)
        )
        if not same:
            evidence = {
                "baseline": [f"{a.dtype}{list(a.shape)}" for a in base],
                "reference": [f"{a.dtype}{list(a.shape)}" for a in native],
            }
            return _disagreeing(first, evidence)
        return self._ablated(first, self.outcome.results[self.judge.baseline or ""])

    def _zeros(
        self,
        first: Judgement,
        reference: Reference,
        base: Sequence[Array],
        numbers: Sequence[int],
    ) -> Judgement:
        """Signs of zeros: a finding only if the reference has the baseline's, and no operator on
        the way may choose."""
        if any(Cause.SIGNED_ZERO in causes.values() for causes in reference.causes.values()):
            return _undecided(first, "implementation-defined", {"causes": [_SIGN]})
        for number in numbers:
            strict = Tolerance(np.inf, np.inf, strict_zero=True)
            if compare_arrays(reference.native[number], base[number], strict) is not None:
                return _disagreeing(first, {"reference": "has the other sign of zero"})
        return self._ablated(first, self.outcome.results[self.judge.baseline or ""])

    def _weigh(
        self,
        reference: Reference,
        base: Sequence[Array],
        tested: Sequence[Array],
        numbers: Sequence[int],
    ) -> tuple[Weighing, dict[int, Mask]]:
        """Weigh some outputs; if anything but rounding is seen, look again with more samples."""
        found = Weighing(), dict[int, Mask]()
        for stream, samples in enumerate((self.judge.samples, _MORE * self.judge.samples)):
            scatter = reference.scatter(samples, self._random(10 + stream))
            found = self._weigh_with(reference, base, tested, numbers, scatter)
            if not (found[0].wrong or found[0].closer or found[0].neither):
                break
        return found

    def _choices(
        self,
        reference: Reference,
        base: Sequence[Array],
        tested: Sequence[Array],
        numbers: Sequence[int],
        undefined: Mapping[int, Cause],
    ) -> tuple[Weighing, dict[int, Mask]]:
        """Among outputs with ties: indices that no tie excuses."""
        weighings, masks = [], dict[int, Mask]()
        for n in numbers:
            if undefined.get(n) is not Cause.TIE:
                continue
            values = reference.native_values
            ours, theirs = (
                inadmissible(self.program.graph, n, array, values) for array in (tested[n], base[n])
            )
            if ours is None or theirs is None or not (ours.any() or theirs.any()):
                continue
            wrong = ours & ~theirs
            weighings.append(Weighing(wrong=int(wrong.sum()), neither=int(theirs.sum())))
            masks[n] = wrong
        return total(weighings), masks

    def _weigh_with(
        self,
        reference: Reference,
        base: Sequence[Array],
        tested: Sequence[Array],
        numbers: Sequence[int],
        scatter: Sequence[Scatter],
    ) -> tuple[Weighing, dict[int, Mask]]:
        bounds = self.judge.bounds(self.program, base)
        weighings, masks = [], {}
        for n in numbers:
            if base[n].shape != reference.wide[n].shape:
                weighings.append(Weighing(neither=int(base[n].size) or 1))
                continue
            weighing, mask = weigh(
                base[n],
                tested[n],
                reference.native[n],
                reference.wide[n],
                scatter[n],
                bounds[n],
            )
            weighings.append(weighing)
            masks[n] = mask
        return total(weighings), masks

    def _disagreement(
        self,
        first: Judgement,
        weighings: Weighing,
        reference: Reference,
        base: Sequence[Array],
        numbers: Sequence[int],
    ) -> Judgement:
        """Float64 does not side with the baseline. If numpy in native precision does, the
        optimiser merely computed more precisely."""
        bounds = self.judge.bounds(self.program, base)
        plain = all(
            compare_arrays(reference.native[n], base[n], bounds[n]) is None for n in numbers
        )
        if plain and not weighings.neither:
            return _undecided(first, "more precise", {"native_reference": "sides with baseline"})
        return _disagreeing(first, {"native_reference": "agrees" if plain else "disagrees"})

    def _rounding(self, first: Judgement, numbers: Sequence[int]) -> Judgement:
        """Rounding explains the difference. It is still a (minor) finding if, on perturbed inputs,
        it always goes the same way: `floor(sum(softmax(x)))` is 1 optimised and 0 or 1 otherwise.
        Noise has no direction."""
        signs = self._signs(numbers)
        evidence: dict[str, object] = {"signs_on_perturbed_inputs": list(signs)}
        up, down = signs
        outputs = [self.program.graph.outputs[n] for n in numbers]
        if up + down >= _ONE_SIDED and min(up, down) == 0:
            what = "one-sided rounding"
        elif self.judge.steps and steps(outputs) and not selects(outputs):
            what = "rounding at a step"
        else:
            return _undecided(first, "rounding", evidence)
        symptom = first.signature.replace("wrong | values", f"wrong | {what}")
        low = replace(first, severity=Severity.LOW, evidence={**first.evidence, **evidence})
        ablated = self._ablated(low, self.outcome.results[self.judge.baseline or ""])
        if ablated.signature == first.signature:
            return replace(ablated, signature=symptom)
        return ablated

    def _signs(self, numbers: Sequence[int]) -> tuple[int, int]:
        """Over some runs on perturbed inputs: in how many elements the tested mode is above the
        baseline, and below. Stops at the first run with both."""
        judge, up, down = self.judge, 0, 0
        graph = self.program.graph
        if self.rerun is None or judge.baseline is None:
            return 0, 0
        if selects([graph.outputs[n] for n in numbers]):
            return 0, 0
        random = self._random(1)
        for _ in range(judge.runs):
            inputs = perturbed_inputs(self.program.inputs, random)
            if not _moved(inputs, self.program.inputs):
                return 0, 0
            again = self.rerun(inputs=inputs, modes=(judge.tested, judge.baseline)).results
            pair = [again.get(judge.tested), again.get(judge.baseline)]
            if any(r is None or r.outputs is None for r in pair):
                return 0, 0
            tested, base = (r.outputs for r in pair if r is not None)
            assert tested is not None
            assert base is not None
            bounds = judge.bounds(self.program, base)
            for n in numbers:
                if tested[n].shape != base[n].shape:
                    return 0, 0
                differ = mismatches(base[n], tested[n], bounds[n])
                a, b = (x[n][differ].astype(np.float64) for x in (tested, base))
                up += int(np.count_nonzero(a > b))
                down += int(np.count_nonzero(a < b))
            if up and down:
                break
        return up, down

    def _moves_as_much(
        self, base: Sequence[Array], tested: Sequence[Array], masks: Mapping[int, Mask]
    ) -> bool:
        """The conditioning test on the target itself: perturbed by one unit in the last place, does
        the baseline move as much as the modes differ, in all wrong elements?"""
        judge = self.judge
        if self.rerun is None or judge.baseline is None:
            return False
        random = self._random(2)
        left = {n: mask.copy() for n, mask in masks.items()}
        for _ in range(min(judge.runs, 2)):
            inputs = perturbed_inputs(self.program.inputs, random)
            if not _moved(inputs, self.program.inputs):
                return False
            result = self.rerun(inputs=inputs, modes=(judge.baseline,)).results.get(judge.baseline)
            if result is None or result.outputs is None:
                return False
            for n, mask in left.items():
                moved = result.outputs[n]
                if moved.shape != base[n].shape:
                    return False
                mask &= ~_as_far(base[n], moved, tested[n])
        return not any(mask.any() for mask in left.values())

    def _emulated(self, base: Sequence[Array], masks: Mapping[int, Mask]) -> bool:
        """Whether the target agrees with its baseline once it rounds every intermediate result to
        half precision, as the baseline does."""
        judge = self.judge
        halves = any(t.type.dtype in _HALVES for t in self.program.graph.tensors)
        if judge.emulation is None or self.rerun is None or not halves:
            return False
        result = self.rerun(modes=(judge.emulation,)).results.get(judge.emulation)
        if result is None or result.outputs is None:
            return False
        bounds = judge.bounds(self.program, base)
        return not any(
            compare_arrays(base[n], result.outputs[n], bounds[n]) is not None for n in masks
        )

    # --- what both modes get wrong ----------------------------------------------------------------

    def both_wrong(self) -> Judgement | None:
        """Compare a test whose modes agree with the reference. None if nothing is found."""
        judge = self.judge
        result = self.outcome.results.get(judge.baseline or judge.tested)
        if result is None or result.outputs is None:
            return None
        outputs = result.outputs
        reference = Reference(self.program.graph, self.program.inputs)
        try:
            bounds = judge.bounds(self.program, outputs)
            found = compare_outputs(reference.native, outputs, bounds)
            if not found:
                return None
            first = found[0]
            signature = f"reference | {term(self.program.graph, first.output)}"
            judgement = Judgement(
                Verdict.REFERENCE_DISAGREEMENT,
                signature,
                f"all modes, output {first.output}: {first}",
                {"differences": [d.evidence() for d in found]},
            )
            if any(d.kind in _STRUCTURAL for d in found):
                return judgement
            undefined = reference.undefined_outputs()
            numbers = [d.output for d in found if d.output not in undefined]
            if not numbers:
                return None
            weighings, _ = self._weigh(reference, reference.native, outputs, numbers)
        except SemanticsError:
            return None
        if not (weighings.wrong or weighings.neither):
            return None
        return replace(judgement, evidence={**judgement.evidence, **weighings.evidence()})

    def _random(self, stream: int = 0) -> np.random.Generator:
        """A generator that depends on the judge's seed and the program's name alone."""
        name = crc32(self.program.name.encode())
        return np.random.default_rng([self.judge.seed, name, stream])


_MORE = 6
"""How many times more noisy readings are taken before anything is called wrong. A value at a step
falls on the same side six times running in 3 % of cases, and a large output has many."""
_ONE_SIDED = 8
"""So many differences of one sign in a row have, by chance, a probability of 1 in 128."""
_SIGN = Cause.SIGNED_ZERO.value
_MOVES = "the baseline moves as much if its inputs move by one unit in the last place"
_EMULATED = "agrees once intermediate results are rounded as the baseline rounds them"


def _undecided(first: Judgement, why: str, evidence: Mapping[str, object]) -> Judgement:
    return replace(
        first,
        verdict=Verdict.UNDECIDED,
        signature=first.signature.replace("wrong | ", f"undecided | {why} | ", 1),
        evidence={**first.evidence, "why": why, **evidence},
    )


def _disagreeing(first: Judgement, evidence: Mapping[str, object]) -> Judgement:
    return replace(
        first,
        verdict=Verdict.REFERENCE_DISAGREEMENT,
        signature=first.signature.replace("wrong | ", "reference | ", 1),
        evidence={**first.evidence, **evidence},
    )


def _identical(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _moved(inputs: Mapping[str, Array], before: Mapping[str, Array]) -> bool:
    return any(inputs[name].tobytes() != before[name].tobytes() for name in before)


def _as_far(base: Array, moved: Array, tested: Array) -> Mask:
    """Where the baseline moved at least half as far as the tested mode is away."""
    if not is_float(base.dtype):
        return np.asarray(base != moved)
    with np.errstate(all="ignore"):
        return np.asarray(distance(moved, base) >= 0.5 * distance(tested, base))
