"""What a program shows on a target, in the words that rules have for symptoms.

The oracle is the campaign's, but for one thing: where all modes agree, they are always compared
with the reference, since a kernel's or an importer's defect shows in every mode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from threading import Event
from typing import Any

from reprise.campaign.judging import EMULATION
from reprise.campaign.regress.spellings import Spelling, spellings
from reprise.lang.declared import Pattern
from reprise.oracle.choices import inadmissible
from reprise.oracle.compare import Kind, compare, compare_outputs
from reprise.oracle.judge import Judge
from reprise.oracle.reference import Reference
from reprise.oracle.tolerance import TIGHT, Tolerance
from reprise.oracle.verdict import Judgement, Verdict
from reprise.targets.discover import Target, TargetError
from reprise.targets.interface import Ended, Job, Outcome
from reprise.targets.process import Jobs
from reprise.uir.graph import Array, Graph
from reprise.uir.program import Program
from reprise.uir.semantics import Cause, SemanticsError

BEFORE_RUN = frozenset({"crash_at_load", "crash_at_compile"})
"""One symptom: where loading ends and compiling begins is for each target to say."""


class Effect(Enum):
    """What a program comes to, seen from a rule."""

    FIRES = "fires"  # the rule's symptom
    OTHER = "other"  # a defect, but another symptom
    SILENT = "silent"  # runs as it should
    UNDECIDED = "undecided"  # the oracle cannot tell
    REFUSED = "refused"  # the target, or its lowering, does not take it


@dataclass(frozen=True, slots=True)
class Observation:
    """What a program showed. ``symptoms``: as in rules; ``everywhere``: in every mode of the
    target, so no optimisation is to blame; ``values``: the kind of inputs that showed it;
    ``cures``: passes whose absence cures it, where that was asked; ``runs``: jobs that it took;
    ``signature``: the judgement's, without ablation."""

    effect: Effect
    symptoms: tuple[str, ...] = ()
    everywhere: bool = False
    title: str = ""
    values: str = ""
    cures: tuple[str, ...] = ()
    runs: int = 0
    signature: str = ""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "effect": self.effect.value}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Observation:
        """From JSON."""
        lists = {name: tuple(data[name]) for name in ("symptoms", "cures")}
        return cls(**{**data, "effect": Effect(data["effect"]), **lists})


@dataclass(frozen=True, slots=True)
class About:
    """What to look for: ``symptoms`` (none: any will do); ``passes`` that the rule blames; and
    whether the sign of a zero, and a rounding error that a step makes visible, count: they do for
    rules of low severity alone, since most of what a target does to them is nobody's defect."""

    symptoms: frozenset[str]
    passes: frozenset[str] = frozenset()
    minor: bool = False

    @property
    def is_wrong(self) -> bool:
        """Whether a wrong result may be the symptom."""
        return not self.symptoms or "wrong_result" in self.symptoms

    @classmethod
    def rule(cls, pattern: Pattern) -> About:
        """What a rule says of its symptom."""
        symptoms = frozenset(pattern.meta.get("symptom", ()))
        low = pattern.get("severity") == "low" and "wrong_result" in symptoms
        return cls(symptoms, frozenset(pattern.meta.get("pass", ())), low)


class Stopped(Exception):
    """Whoever asked does not want the answer any more."""


@dataclass(frozen=True)
class Probe:
    """Asks a target, in one form of the programs. Where a rule blames a pass that the target can
    leave out, a symptom of all modes is not the rule's. Thread-safe if ``jobs`` is."""

    target: Target
    jobs: Jobs
    form: str
    stop: Event

    @property
    def judge(self) -> Judge:
        emulation = EMULATION if EMULATION in self.target.modes else None
        share = 1.0 if len(self.target.modes) > 1 else 0.0  # one mode: nothing is compared
        return Judge(self.target.modes, emulation=emulation, share=share)

    def observe(
        self,
        graph: Graph,
        inputs: Sequence[tuple[str, dict[str, Array]]],
        about: About,
        *,
        ablate: bool = False,
        thorough: bool = True,
        suspects: Collection[tuple[str, ...]] = (),
    ) -> Observation:
        """Run a program, in each of its spellings, on sets of inputs until it shows the symptom.
        ``ablate``: ask for the passes that are to blame; ``suspects``: sets of passes, of which it
        is then only asked whether one cures it, which takes a run each instead of a search;
        ``thorough``: not only in the usual spelling.

        Raises TargetError if the target cannot be started, Stopped.
        """
        best = Observation(Effect.UNDECIDED, title="no inputs fit")
        runs = 0
        for number, spelling in enumerate(spellings(self.form, graph)):
            if not isinstance(spelling, Spelling):
                return Observation(Effect.REFUSED, title=spelling)
            found = self._spelt(spelling, graph, inputs, about, ablate, suspects)
            runs += found.runs
            if number == 0 or _RANK[found.effect] > _RANK[best.effect]:
                best = found
            if found.effect is Effect.FIRES or not thorough:
                break
        return replace(best, runs=runs)

    def _spelt(
        self,
        spelling: Spelling,
        graph: Graph,
        inputs: Sequence[tuple[str, dict[str, Array]]],
        about: About,
        ablate: bool,
        suspects: Collection[tuple[str, ...]],
    ) -> Observation:
        """Run one spelling of a program."""
        runs, passes = 0, None
        best: Observation | None = None
        for values, given in inputs:
            program = Program(graph, given, graph.name)
            asked = _Asked(self, spelling.model, program)
            judge = replace(self.judge, steps=about.minor)
            judgement = judge.judge(program, asked.outcome, asked.rerun)
            found = seen(judgement, asked.outcome, self.judge)
            if found.effect is Effect.SILENT and about.is_wrong:
                found = _excused(program, asked.outcome, self.judge) or found
            if found.effect is Effect.SILENT and about.minor:
                found = _zeros(program, asked.outcome, self.judge) or found
            if found.symptoms and passes is None and about.passes:
                passes = set(self.jobs.passes(spelling.model))
            optimisation = passes is not None and bool(passes & about.passes)
            fits = shows(found.symptoms, about.symptoms) and not (found.everywhere and optimisation)
            effect = found.effect
            if effect is Effect.OTHER and fits:
                effect = Effect.FIRES
            cures: tuple[str, ...] = ()
            if effect is Effect.FIRES and ablate and not found.everywhere:
                cures = self._cured(asked, suspects) if suspects else self._cures(asked)
            runs += asked.runs
            shown = values if not spelling.name else f"{values}, {spelling.name}"
            title = found.title or judgement.title
            observed = Observation(
                effect,
                found.symptoms,
                found.everywhere,
                title,
                shown,
                cures,
                runs,
                judgement.signature,
            )
            if best is None or _RANK[effect] > _RANK[best.effect]:
                best = observed
            if effect is Effect.FIRES or (effect is Effect.REFUSED and runs > 1):
                break
        if best is None:
            return Observation(Effect.UNDECIDED, title="no inputs fit")
        return replace(best, runs=runs)

    def _cured(self, asked: _Asked, suspects: Collection[tuple[str, ...]]) -> tuple[str, ...]:
        """The first of some sets of passes whose absence cures it."""
        judge = self.judge
        for passes in suspects:
            again = asked.rerun(modes=(judge.tested,), disabled=passes)
            beside = {**asked.outcome.results, **again.results}
            judgement = judge.judge(asked.program, replace(again, results=beside))
            if judgement.verdict is Verdict.OK:
                return passes
        return ()

    def _cures(self, asked: _Asked) -> tuple[str, ...]:
        """The passes to blame, by ablation."""
        again = self.judge.judge(
            asked.program, asked.outcome, asked.rerun, self.jobs.passes(asked.model)
        )
        if not again.signature.startswith("pass:"):
            return ()
        return tuple(again.signature.removeprefix("pass:").split("+"))


_RANK = {
    Effect.REFUSED: 0,
    Effect.SILENT: 1,
    Effect.UNDECIDED: 2,  # a difference that has an excuse is more than none
    Effect.OTHER: 3,
    Effect.FIRES: 4,
}


class _Asked:
    """One program on one set of inputs: the first outcome, and the way to run it again."""

    def __init__(self, probe: Probe, model: bytes, program: Program) -> None:
        self.probe, self.model, self.program = probe, model, program
        judge = probe.judge
        self.modes = tuple(dict.fromkeys((judge.tested, judge.baseline or judge.tested)))
        self.runs = 0
        self.outcome = self.rerun()

    def rerun(
        self,
        *,
        inputs: Mapping[str, Array] | None = None,
        modes: tuple[str, ...] | None = None,
        disabled: tuple[str, ...] = (),
    ) -> Outcome:
        if self.probe.stop.is_set():
            raise Stopped
        self.runs += 1
        given = self.program.inputs if inputs is None else dict(inputs)
        outcome = self.probe.jobs.run(Job(self.model, given, modes or self.modes, disabled))
        if outcome.ended is Ended.UNSTARTED:
            raise TargetError(outcome.log)
        return outcome


@dataclass(frozen=True, slots=True)
class _Seen:
    """A judgement in the words of rules; ``effect`` OTHER for every defect."""

    effect: Effect
    symptoms: tuple[str, ...] = ()
    everywhere: bool = False
    title: str = ""


def seen(judgement: Judgement, outcome: Outcome, judge: Judge) -> _Seen:
    """What a judgement says, in the words that rules have for symptoms."""
    evidence = judgement.evidence
    match judgement.verdict:
        case Verdict.OK:
            return _Seen(Effect.SILENT)
        case Verdict.HANG:
            return _Seen(Effect.OTHER, ("hang",), evidence.get("mode") != judge.tested)
        case Verdict.CRASH:
            symptom = f"crash_at_{evidence['stage']}" if evidence.get("stage") else "crash"
            if outcome.ended is Ended.MEMORY:
                symptom = "memory"
            return _Seen(Effect.OTHER, (symptom,), _everywhere(evidence, judge))
        case Verdict.WRONG_RESULT:
            return _Seen(Effect.OTHER, _wrong(evidence))
        case Verdict.REFERENCE_DISAGREEMENT:  # of all modes, whether or not they agree
            return _Seen(Effect.OTHER, _wrong(evidence), True)
        case Verdict.UNSUPPORTED | Verdict.INVALID:
            return _Seen(Effect.REFUSED)
    return _Seen(Effect.UNDECIDED)


def _excused(program: Program, outcome: Outcome, judge: Judge) -> _Seen | None:
    """What the campaign's oracle passes over in all modes alike: outputs that an implementation may
    choose (an index among equal values) and that are not what the reference has. A choice that no
    tie allows is wrong; of another, nobody can tell."""
    result = outcome.results.get(judge.tested)
    if result is None or not result.outputs:
        return None
    reference = Reference(program.graph, program.inputs)
    try:
        close = _close(program, outcome, judge)
        if close is not None:
            return close
        open_ones = reference.undefined_outputs()
        bounds = judge.bounds(program, result.outputs)
        for number, cause in open_ones.items():
            got = result.outputs[number]
            found = compare(reference.native[number], got, bounds[number])
            if found is None:
                continue
            title = f"output {number}: {found}"
            if cause is Cause.TIE:
                wrong = inadmissible(program.graph, number, got, reference.native_values)
                if wrong is not None and wrong.any():
                    return _Seen(Effect.OTHER, ("wrong_result",), True, title)
            return _Seen(Effect.UNDECIDED, title=f"{title} ({cause.value})")
    except SemanticsError as error:
        return _Seen(Effect.UNDECIDED, title=str(error))
    return None


def _close(program: Program, outcome: Outcome, judge: Judge) -> _Seen | None:
    """Modes that agree within the tolerance, but not within rounding: not silence either."""
    base = outcome.results.get(judge.baseline or "")
    tested = outcome.results.get(judge.tested)
    if base is None or tested is None or base.outputs is None or tested.outputs is None:
        return None
    bounds = replace(judge, tolerances=TIGHT).bounds(program, base.outputs)
    found = compare_outputs(base.outputs, tested.outputs, bounds)
    return _Seen(Effect.UNDECIDED, title=f"within the tolerance: {found[0]}") if found else None


def _zeros(program: Program, outcome: Outcome, judge: Judge) -> _Seen | None:
    """A zero whose sign is another than the reference's, though no operator may choose it."""
    result = outcome.results.get(judge.tested)
    base = outcome.results.get(judge.baseline or "")
    if result is None or result.outputs is None:
        return None
    reference = Reference(program.graph, program.inputs)
    try:
        if any(Cause.SIGNED_ZERO in causes.values() for causes in reference.causes.values()):
            return None
        strict = Tolerance(float("inf"), float("inf"), strict_zero=True)
        for number, expected in enumerate(reference.native):
            found = compare(expected, result.outputs[number], strict)
            if found is None or found.kind is not Kind.SIGN_OF_ZERO:
                continue
            outputs = None if base is None else base.outputs
            everywhere = outputs is not None and (
                compare(expected, outputs[number], strict) is not None
            )
            return _Seen(Effect.OTHER, ("wrong_result",), everywhere, f"output {number}: {found}")
    except SemanticsError:
        return None
    return None


def _everywhere(evidence: Mapping[str, object], judge: Judge) -> bool:
    if judge.baseline is None:
        return False  # one mode: nobody can tell
    return evidence.get("mode") == judge.baseline or bool(evidence.get("also_fails_in"))


def _wrong(evidence: Mapping[str, object]) -> tuple[str, ...]:
    """The symptoms of results that differ, in order."""
    words = {Kind.COUNT.value: "wrong_shape", Kind.SHAPE.value: "wrong_shape"}
    words[Kind.DTYPE.value] = "wrong_dtype"
    differences = evidence.get("differences")
    assert isinstance(differences, list)
    found = [words.get(d["kind"], "wrong_result") for d in differences]
    return tuple(dict.fromkeys(found))


def shows(found: Collection[str], wanted: Collection[str]) -> bool:
    """Whether one of the symptoms is among those of a rule (which may state none: any will do)."""
    words = set(wanted)
    if words & BEFORE_RUN:
        words |= BEFORE_RUN
    if "crash" in words:
        words |= {*BEFORE_RUN, "crash_at_run", "memory"}
    return bool(found) and (not words or bool(words & set(found)))
