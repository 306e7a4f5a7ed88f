"""Does this program show that defect? The one question that reducing and distilling ask.

A defect is known by the passes whose absence cures it, where there are any, and by its symptom
otherwise (:class:`Aim`). Asking after the passes that are to blame takes many runs; asking whether
*these* passes are to blame takes one, so that is what a trial does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import Enum
from itertools import islice
from threading import Lock

from reprise.campaign.bench import Examination
from reprise.campaign.judging import EMULATION, JudgeOracle
from reprise.distill.memory import Memory
from reprise.distill.onnx_judge import ModelJudge
from reprise.distill.onnx_model import Model
from reprise.lower.lowering import Lowering, lowering, refusal
from reprise.oracle.crash import SIMILAR, parse_key, same_defect
from reprise.oracle.verdict import Judgement, Severity, Verdict
from reprise.targets.discover import Target, TargetError
from reprise.targets.interface import Ended, Job, Outcome
from reprise.targets.process import Limits, WorkerPool
from reprise.uir.graph import Array
from reprise.uir.program import Program
from reprise.uir.text import print_uir

_PASS = "pass:"
_STRUCTURE = frozenset(("wrong | shape", "wrong | sign of zero"))
"""Kinds of wrong results that are not about values."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A defect. ``cures``: passes whose absence cures it (none: no pass is known to be to blame);
    ``symptom``: what it looks like, the signature without ablation."""

    verdict: Verdict
    signature: str
    symptom: str
    cures: tuple[str, ...] = ()
    severity: Severity = Severity.NORMAL

    @classmethod
    def of(cls, judgement: Judgement) -> Aim:
        """The defect that a finding's judgement is about."""
        signature = judgement.signature
        symptom = str(judgement.evidence.get("symptom", signature))
        cures = tuple(signature.removeprefix(_PASS).split("+"))
        if not signature.startswith(_PASS):
            cures = ()
        return cls(judgement.verdict, signature, symptom, cures, judgement.severity)

    @property
    def kind(self) -> str:
        """The part of the symptom that does not depend on the program around it: for a wrong result
        ``wrong | values`` (or shape, sign of zero…), for a disagreement with the reference
        ``reference``, and the same words if the modes differ too, for a crash all of it."""
        if self.verdict is Verdict.WRONG_RESULT:
            return " | ".join(self.symptom.split(" | ")[:2])
        if self.verdict is Verdict.REFERENCE_DISAGREEMENT:
            return self.symptom.rpartition(" | ")[0]
        return self.symptom

    def looks_like(self, other: Aim) -> bool:
        """Whether another defect has this one's symptom, as far as symptoms tell: crashes of the
        same call site with much the same words (without a call site, the words must be the same
        unless a pass is known to be to blame); wrong results of the same kind and weight."""
        if self.verdict is not other.verdict or self.severity is not other.severity:
            return False
        if self.kind == other.kind:
            return True
        if self.verdict is Verdict.WRONG_RESULT:
            # Ablation keeps the first look's symptom, where no rounding has been told apart yet.
            return not {self.kind, other.kind} & _STRUCTURE
        a, b = parse_key(self.symptom), parse_key(other.symptom)
        if a is None or b is None:
            return False
        similar = SequenceMatcher(None, a.message.split(), b.message.split()).ratio() >= SIMILAR
        if self.cures and similar and (a.stage, a.kind, a.frames) == (b.stage, b.kind, b.frames):
            return True
        return same_defect(a, b)

    def is_blamed_as(self, other: Aim | None) -> bool:
        """Whether the same passes are known to be to blame, for the same kind of end."""
        return (
            other is not None
            and bool(self.cures)
            and (self.verdict, self.cures) == (other.verdict, other.cures)
        )


class Shown(Enum):
    """What a program showed."""

    SAME = "same"  # the defect aimed at
    OTHER = "other"  # another defect, or the same passes with another verdict
    NOTHING = "nothing"  # all is well
    UNDECIDED = "undecided"  # the oracle cannot tell
    INVALID = "invalid"  # the target, or its lowering, does not take the program


@dataclass(frozen=True, slots=True)
class Trial:
    """A program, tried, and how many ``runs`` of the target that took. ``judgement`` is without
    ablation unless asked for."""

    shown: Shown
    judgement: Judgement
    runs: int = 0


@dataclass(slots=True)
class Count:
    """What trials cost. ``runs``: jobs that the target was given; ``known``: answers that were
    there already."""

    trials: int = 0
    runs: int = 0
    known: int = 0
    shown: dict[Shown, int] = field(default_factory=lambda: dict.fromkeys(Shown, 0))


class Trials:
    """Tries programs on ``target`` for a defect; ``jobs`` of its processes at a time.

    Answers do not depend on ``jobs``. ``exact``: a program shows the defect only if, besides the
    passes that cure it, the symptom is the same, as far as symptoms can tell. ``memory`` (may be
    set later): answers of earlier trials, which are taken for those of these. Raises TargetError
    where the target cannot be started. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        target: Target,
        aim: Aim | None,
        limits: Limits | None = None,
        *,
        jobs: int = 1,
        exact: bool = False,
    ) -> None:
        self.target = target
        self._aim = aim
        self.count = Count()
        self.jobs = jobs
        self.exact = exact
        self.memory: Memory | None = None
        self._lowering: Lowering = lowering(target.lowering)
        self._set_judge()
        self._pool = WorkerPool(target, jobs, limits)
        self._threads = ThreadPoolExecutor(jobs, "trial")
        self._known: dict[str, Trial] = {}
        self._lock = Lock()

    @property
    def aim(self) -> Aim | None:
        """The defect that is asked for; None: whatever shows."""
        return self._aim

    def aim_at(self, aim: Aim) -> None:
        """Ask for another defect from now on: what is known is forgotten."""
        self._aim = aim
        self._known.clear()
        self._set_judge()

    def _set_judge(self) -> None:
        """A judge that compares with the reference where the modes agree, if that can be what is
        looked for."""
        aims = {None, Verdict.REFERENCE_DISAGREEMENT}
        share = 1.0 if (self.aim and self.aim.verdict) in aims else 0.0
        emulation = EMULATION if EMULATION in self.target.modes else None
        self._judge = ModelJudge(self.target.modes, emulation=emulation, share=share)
        self._oracle = JudgeOracle(self._judge)

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._pool.close()
        if self.memory is not None:
            self.memory.close()

    def judge(self, program: Program) -> Judgement:
        """The full verdict on a program, with pass ablation: what a campaign would say."""
        return self.examine(program)[1].judgement

    def examine(self, program: Program) -> tuple[bytes, Examination]:
        """What the target is given for a program, and all that the oracle says of it."""
        model = self._lower(program)
        if isinstance(model, Judgement):
            return b"", Examination(model)
        examination = self._oracle(program, model, self._pool)
        self.count.runs += 1
        _check_started(examination.outcome)
        return model, examination

    def passes(self, model: bytes) -> tuple[str, ...]:
        """The passes of the target that ablation could blame for what it does to a model."""
        return self._pool.passes(model)

    def baseline(self, program: Program) -> tuple[Array, ...] | None:
        """The outputs in the target's least optimised mode; None if it fails."""
        model = self._lower(program)
        if isinstance(model, Judgement):
            return None
        mode = self._judge.baseline or self._judge.tested
        outcome = self._pool.run(Job(model, program.inputs, (mode,)))
        self.count.runs += 1
        _check_started(outcome)
        result = outcome.results.get(mode)
        return None if result is None else result.outputs

    def versions(self) -> dict[str, str]:
        """Of the compiler. Raises TargetError if it cannot be started."""
        return self._pool.start()

    def try_one(self, program: Program) -> Trial:
        """Whether a program shows the defect."""
        key = program_key(program)
        with self._lock:
            known = self._known.get(key)
            self.count.trials += 1
            self.count.known += known is not None
        if known is not None:
            return known
        remembered = self.memory.get(key) if self.memory is not None else None
        if remembered is not None:
            shown, runs = remembered
            known = Trial(Shown(shown), Judgement(Verdict.UNDECIDED, "", "as before"), runs)
        else:
            known = self._try(program)
        with self._lock:
            self._known[key] = known
            self.count.shown[known.shown] += 1
            if remembered is None and self.memory is not None:
                self.memory.put(key, known.shown.value, known.runs)
        return known

    def try_all(self, programs: Iterable[Program]) -> Iterator[Trial]:
        """Trials in the order of the programs; a few of them ahead of whoever listens."""
        left = iter(programs)
        ahead: list[Future[Trial]] = [
            self._threads.submit(self.try_one, p) for p in islice(left, self.jobs)
        ]
        try:
            while ahead:
                done = ahead.pop(0).result()
                ahead += [self._threads.submit(self.try_one, p) for p in islice(left, 1)]
                yield done
        finally:
            for future in ahead:
                future.cancel()

    def first(self, programs: Iterable[Program]) -> Program | None:
        """The first of some programs that shows the defect."""
        kept: list[Program] = []

        def remembered() -> Iterator[Program]:
            for program in programs:
                kept.append(program)
                yield program

        for number, trial in enumerate(self.try_all(remembered())):
            if trial.shown is Shown.SAME:
                return kept[number]
        return None

    def _lower(self, program: Program) -> bytes | Judgement:
        """What the target is given, or why it cannot be."""
        if isinstance(program, Model):
            return program.data
        reason = refusal(self._lowering, program.graph)
        if reason is not None:
            return Judgement(Verdict.UNSUPPORTED, reason, reason)
        return self._lowering.lower(program.graph)

    def _try(self, program: Program) -> Trial:
        model = self._lower(program)
        if isinstance(model, Judgement):
            return Trial(Shown.INVALID, model)
        judge = self._judge
        both = tuple(dict.fromkeys((judge.tested, judge.baseline or judge.tested)))
        runs = 0

        def rerun(
            *,
            inputs: Mapping[str, Array] | None = None,
            modes: tuple[str, ...] | None = None,
            disabled: tuple[str, ...] = (),
        ) -> Outcome:
            nonlocal runs
            given = program.inputs if inputs is None else dict(inputs)
            runs += 1
            with self._lock:
                self.count.runs += 1
            outcome = self._pool.run(Job(model, given, modes or both, disabled))
            _check_started(outcome)
            return outcome

        outcome = rerun()
        judgement = judge.judge(program, outcome, rerun)
        shown = self._shown(judgement)
        if shown is Shown.SAME and self.aim is not None and self.aim.cures:
            again = rerun(modes=(judge.tested,), disabled=self.aim.cures)
            cured = judge.judge(program, _beside(again, outcome, judge))
            if cured.verdict is not Verdict.OK:
                shown = Shown.OTHER
        return Trial(shown, judgement, runs)

    def _shown(self, judgement: Judgement) -> Shown:
        """By the symptom alone."""
        match judgement.verdict:
            case Verdict.OK:
                return Shown.NOTHING
            case Verdict.UNSUPPORTED | Verdict.INVALID:
                return Shown.INVALID
            case Verdict.UNDECIDED:
                return Shown.UNDECIDED
        aim = self.aim
        if judgement.verdict is Verdict.REFERENCE_DISAGREEMENT and (
            aim is None or aim.verdict is not judgement.verdict
        ):
            return Shown.UNDECIDED
        if aim is None:
            return Shown.SAME
        if judgement.verdict is not aim.verdict:
            return Shown.OTHER
        seen = Aim.of(judgement)
        alike = aim.looks_like(seen)
        if not self.exact:
            crash = aim.verdict is Verdict.CRASH
            alike = bool(aim.cures) or seen.kind == aim.kind or (crash and alike)
        return Shown.SAME if alike else Shown.OTHER


def _beside(again: Outcome, outcome: Outcome, judge: ModelJudge) -> Outcome:
    """A rerun of the tested mode, with the baseline's result as it was."""
    results = dict(again.results)
    if judge.baseline is not None and judge.baseline in outcome.results:
        results[judge.baseline] = outcome.results[judge.baseline]
    return replace(again, results=results)


def _check_started(outcome: Outcome | None) -> None:
    if outcome is not None and outcome.ended is Ended.UNSTARTED:
        raise TargetError(outcome.log)


def program_key(program: Program) -> str:
    """Of all that the target sees: the graph with its constants, and the inputs."""
    if isinstance(program, Model):
        digest = hashlib.sha256(program.data)
    else:
        digest = hashlib.sha256(print_uir(program.graph).encode())
    for name in sorted(program.inputs):
        array = program.inputs[name]
        digest.update(f"\n{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
