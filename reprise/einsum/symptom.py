"""What one kernel does on a target when it is run by itself.

The question that reducing and distilling ask: is it wrong in the same way? A :class:`Symptom` is
what tells one way from another: for a wrong result the family, for a crash its key (without what
varies, see :mod:`reprise.oracle.crash`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reprise.einsum.kernel import Kernel
from reprise.einsum.results import Wrong, is_ours, judged, theirs
from reprise.einsum.shape_class import shape_class
from reprise.einsum.testing import REFERENCE, alone
from reprise.einsum.translate.backends import Backend
from reprise.einsum.translate.script import Untranslatable, script
from reprise.oracle.crash import Crash, crash_of, crash_of_end, parse_key, same_defect
from reprise.oracle.verdict import Judgement, Verdict
from reprise.targets.discover import TargetError
from reprise.targets.interface import Ended, Failure, Job, Outcome
from reprise.targets.process import Jobs

_NOTE = re.compile(r"\s*note: .*", re.DOTALL)
"""Where MLIR goes on to print the operation that a message is about."""
_TYPES = re.compile(r"'!?[\w.]+<[^']*'(?:, '!?[\w.]+<[^']*')*")
"""Types in a message of MLIR: shapes and encodings say nothing about the defect."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """``key``: what tells it from others of its verdict. ``text``: for people. ``wrong``: what is
    wrong with the result, if that is it. ``outcome``: None if there was nothing to run."""

    verdict: Verdict
    key: str = ""
    text: str = ""
    wrong: Wrong | None = None
    outcome: Outcome | None = None

    def is_like(self, other: Symptom) -> bool:
        """Whether both are one defect, as far as symptoms tell."""
        if self.verdict is not other.verdict:
            return False
        if self.key == other.key or self.verdict is Verdict.HANG:
            return True
        one, two = parse_key(self.key), parse_key(other.key)
        return one is not None and two is not None and same_defect(one, two)


def symptom_of(kernel: Kernel, backend: Backend, process: Jobs) -> Symptom:
    """Run a kernel and see. Raises TargetError if the target cannot be started."""
    try:
        model = script(backend.translator, {REFERENCE: (kernel,)})
    except Untranslatable as error:
        return Symptom(Verdict.UNSUPPORTED, text=str(error))
    outcome = process.run(Job(model, {}, (REFERENCE,)))
    if outcome.ended is Ended.UNSTARTED:
        raise TargetError(outcome.log)
    if outcome.ended is not Ended.ANSWERED or REFERENCE not in outcome.results:
        crash = end_of(outcome)
        verdict = Verdict.HANG if outcome.ended is Ended.HANG else Verdict.CRASH
        said = f"{crash.kind}: {crash.message}".rstrip(": ")
        return Symptom(verdict, crash.key, said, outcome=outcome)
    ran = judged((kernel,), alone(kernel), outcome, REFERENCE)
    if ran.wrong is not None:
        wrong = ran.wrong
        return Symptom(Verdict.WRONG_RESULT, wrong.family, wrong.text, wrong, outcome)
    if ran.failure is None:
        return Symptom(Verdict.OK, outcome=outcome)
    said = f"{ran.failure.type}: {' '.join(ran.failure.message.split())[:200]}"
    if is_ours(ran.failure):
        return Symptom(Verdict.INVALID, text=said, outcome=outcome)
    if ran.failure.unsupported:
        return Symptom(Verdict.UNSUPPORTED, ran.failure.type, said, outcome=outcome)
    return Symptom(Verdict.CRASH, failure_of(ran.failure).key, said, outcome=outcome)


def end_of(outcome: Outcome) -> Crash:
    """The signature of a process that ended, whichever variant it was at."""
    return crash_of_end(replace(outcome, mode=None))


def failure_of(failure: Failure) -> Crash:
    """The signature of an exception: without our own frames, and what MLIR prints besides."""
    message = _TYPES.sub("'TYPES'", _NOTE.sub("", failure.message))
    return crash_of(replace(failure, frames=theirs(failure), message=message))


def described(kernel: Kernel) -> str:
    """``A(i,k) = B(i,j) * C(j,k), A: ds, B: dd, C: ds``."""
    stored = ", ".join(f"{t.name}: {t.format}" for t in kernel.tensors if t.format.rank)
    return f"{kernel.statement}{', ' if stored else ''}{stored}"


def shown(kernels: Sequence[Kernel], says: str) -> dict[str, str]:
    """What a bug report says of a finding: the kernels that show it, and what is wrong."""
    return {"shown": "; ".join(map(described, kernels)), "says": says}


def judgement_of(kernel: Kernel, symptom: Symptom) -> Judgement:
    """The verdict on a kernel that fails so, as a campaign would file it."""
    evidence: dict[str, object] = dict(shown((kernel,), symptom.text))
    match symptom.verdict:
        case Verdict.WRONG_RESULT:
            signature = f"wrong | {symptom.key} | {shape_class(kernel)}"
        case Verdict.HANG:
            signature = f"hang | {shape_class(kernel)}"
            evidence["crash"] = symptom.key
        case _:
            signature = symptom.key
            evidence["crash"] = symptom.key
    title = f"{described(kernel)}: {symptom.text}"
    return Judgement(symptom.verdict, signature, title, evidence)
