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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reprise.campaign.bench import Examination
from reprise.einsum.filing import KernelBugs, KnownKernels
from reprise.einsum.kernel import Kernel
from reprise.einsum.reduce import reduced
from reprise.einsum.relations import Variant
from reprise.einsum.results import Ran, is_ours, judged
from reprise.einsum.shape_class import shape_class
from reprise.einsum.symptom import Symptom, described, end_of, failure_of, shown, symptom_of
from reprise.einsum.testing import REFERENCE, KernelTest
from reprise.einsum.translate.backends import BACKENDS, Backend
from reprise.einsum.translate.script import Untranslatable, function
from reprise.oracle.verdict import Judgement, Verdict
from reprise.targets.discover import Target
from reprise.targets.interface import Ended, Failure, Job, Outcome
from reprise.targets.process import Jobs


@dataclass(frozen=True, slots=True)
class KernelJudging:
    """Makes oracles, in any process. ``known``: the known bugs of the target, if reductions shall
    not end at one of them that they did not begin with."""

    known: KnownKernels | None = None

    def __call__(self, target: Target) -> KernelOracle:
        return KernelOracle(BACKENDS[target.name], self.known)


class KernelOracle:
    """See the module."""

    def __init__(self, backend: Backend, known: KnownKernels | None = None) -> None:
        self.backend = backend
        self.translator = backend.translator
        self._known = known

    @cached_property
    def _bugs(self) -> KernelBugs | None:
        return None if self._known is None else self._known()

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
        crash = end_of(outcome)
        hang = outcome.ended is Ended.HANG
        title = f"{crash.kind}: {crash.message}".rstrip(": ")
        evidence = {**_told(test, variant), **shown(variant.kernels, title), "crash": crash.key}
        signature = f"hang | {shape_class(variant.kernels[-1])}" if hang else crash.key
        verdict = Verdict.HANG if hang else Verdict.CRASH
        evidence = _once(evidence)
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
        crash = failure_of(failure)
        said = " ".join(failure.message.split())[:200]
        evidence = {
            **_told(test, variant),
            "shown": "; ".join(map(described, variant.kernels)),
            "crash": crash.key,
            "type": failure.type,
            "message": failure.message[:2000],
            "accepted": sorted(n for n, one in ran.items() if one.failure is None),
        }
        title = f"{_statement(variant)}: {failure.type}: {said}"
        judgement = Judgement(Verdict.CRASH, crash.key, title, _once(evidence))
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
        if one.culprit is not None:
            again = symptom_of(one.culprit, self.backend, process)
            if again.wrong is not None and again.key == wrong.family:
                kernel, runs = self._reduced(one.culprit, again, process)
                kernels = (kernel,)
                wrong = symptom_of(kernel, self.backend, process).wrong or wrong
            else:
                evidence["alone"] = "the kernel is right when it is run by itself"
        evidence |= {**shown(kernels, wrong.text), "reduced in": runs, "kind": wrong.kind}
        where = " ; ".join(map(shape_class, kernels))
        title = f"{'; '.join(map(described, kernels))}: {wrong.text}"
        signature = f"wrong | {wrong.family} | {where}"
        judgement = Judgement(Verdict.WRONG_RESULT, signature, title, _once(evidence))
        return Examination(judgement, outcome, shown=kernels)

    def smaller(self, examination: Examination, process: Jobs, /) -> Examination:
        """An examination that shows a smaller kernel, if it is of a crash that the kernel shows by
        itself: what is wrong with a result was made small to know its signature. Its defect's
        signature, and which kernel was tested, stay as they are."""
        judgement = examination.judgement
        kernels: Sequence[Kernel] = examination.shown or ()
        if judgement.verdict not in (Verdict.CRASH, Verdict.HANG) or len(kernels) != 1:
            return examination
        aim = symptom_of(kernels[0], self.backend, process)
        crash = str(judgement.evidence.get("crash"))
        if not aim.is_like(Symptom(judgement.verdict, crash)):
            return examination
        kernel, runs = self._reduced(kernels[0], aim, process)
        before = judgement.evidence
        small = {"shown": described(kernel), "reduced in": runs}
        evidence = _once({"kernel": before["shown"], **before, **small})
        return replace(
            examination, judgement=replace(judgement, evidence=evidence), shown=(kernel,)
        )

    def _reduced(self, kernel: Kernel, aim: Symptom, process: Jobs) -> tuple[Kernel, int]:
        """A smaller kernel with the same symptom, and no known bug that the kernel does not hit."""
        slips = (lambda other: False) if self._bugs is None else self._bugs.slips(kernel)
        return reduced(
            kernel,
            lambda k: not slips(k) and symptom_of(k, self.backend, process).is_like(aim),
            self.backend.tries,
        )


# --- words ---------------------------------------------------------------------------------------


def _statement(variant: Variant) -> str:
    return "; ".join(map(described, variant.kernels))


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
        "kernel": described(test.kernel),
    }


def _once(evidence: dict[str, object]) -> dict[str, object]:
    """Evidence without the kernel of the test where that is the one that shows the finding."""
    if evidence["kernel"] != evidence["shown"]:
        return evidence
    return {key: value for key, value in evidence.items() if key != "kernel"}


def _compared(ran: dict[str, Ran], name: str) -> dict[str, object]:
    """Which variants are right, and whether comparing them alone would have shown the failure."""
    right = sorted(n for n, one in ran.items() if one.failure is None and one.wrong is None)
    wrong = sorted(n for n, one in ran.items() if one.wrong is not None)
    return {"right": right, "wrong": wrong, "seen by variants alone": bool(right)}
