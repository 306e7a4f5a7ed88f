"""Distilling: from a program that shows a defect to a rule that ships, in one call.

:class:`Distiller` is what ``reprise distill`` and a learning campaign use. It prints nothing; what
it has reached is there at any time, so an interrupted call keeps its best pattern.
:func:`distill_subject` is ``reprise distill`` from beginning to end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from reprise.campaign.filing import Known
from reprise.distill.alone import made_for
from reprise.distill.asking import Answers, Asker, Spent
from reprise.distill.draft import Draft
from reprise.distill.folder import ANSWERS, REDUCED, TRIALS, check_folder, distill_into
from reprise.distill.generalise.generaliser import Generaliser
from reprise.distill.generalise.trying import Effort, Progress, silent
from reprise.distill.onnx_model import Model
from reprise.distill.record import Case, Distilled
from reprise.distill.reduce import Budget, Stop
from reprise.distill.rule import check_name, named, with_tests
from reprise.distill.sampling import Sampling
from reprise.distill.session import reduce_subject
from reprise.distill.subject import Subject, open_trials, question, read_subject
from reprise.distill.tighten import Against, Change, Tightened, tighten
from reprise.distill.trials import Shown, Trials
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.synth.vocabulary import WhyNot, read_policies
from reprise.targets.discover import Target
from reprise.targets.process import Limits
from reprise.targets.support import Support
from reprise.uir.program import Program


class DoesNotShow(ValueError):
    """The program to distill does not show the defect."""


def sampling_for(target: Target, signatures: Signatures) -> Sampling:
    """A sampling that keeps to what a target does. Raises RulesError."""
    why_not: WhyNot = Support.whole(target.name).why_not
    unsupported = lowering(target.lowering).unsupported
    return Sampling(signatures, read_policies(load_rules([])), why_not, unsupported)


class Distiller:
    """Distills one program. ``name`` is the rule's; without one it is made up from the target, the
    pass to blame and the operators. ``version`` is the target's."""

    def __init__(
        self,
        program: Program,
        trials: Trials,
        rng: Random,
        *,
        sampling: Sampling | None = None,
        budget: Budget | None = None,
        progress: Progress = silent,
        answers: Answers | None = None,
        effort: Effort | None = None,
        name: str = "",
        version: str | None = None,
        known: tuple[str, Sequence[str]] = ("", ()),
    ) -> None:
        """``known``: the rule that the program is filed under, and the bugs that it names. Raises
        DoesNotShow unless ``trials`` say that it shows their aim; TargetError."""
        if trials.aim is None or trials.try_one(program).shown is not Shown.SAME:
            raise DoesNotShow(f"{program.name or 'the program'} does not show the defect")
        self.trials = trials
        self.name = name
        self.version = version
        self.known, self.bugs = known
        sampling = sampling or sampling_for(trials.target, Signatures.load())
        effort = effort or Effort.for_target(trials.target)
        asker = Asker(trials, sampling, budget, answers)
        self.work = Generaliser(
            program, asker, sampling, rng.randrange(2**32), effort=effort, progress=progress
        )

    def run(self) -> Distilled:
        """Distill until done, or until the budget is spent. Raises TargetError; KeyboardInterrupt
        passes through."""
        with suppress(Spent):
            self.work.run()
        return self.distilled()

    def distilled(self, tightened: Tightened[Draft, Change] | None = None) -> Distilled:
        """What has been reached, or what holding it against other programs made of it."""
        work = self.work
        assert self.trials.aim is not None
        target = self.trials.target.name
        draft = work.draft if tightened is None or tightened.draft is None else tightened.draft
        draft = named(draft, self.name, target, self.version, self.trials.aim, self.bugs)
        first = Case("match", "", work.triggers[0])
        text, _ = with_tests(draft, [first, *work.cases])
        triggers = tuple(s for s in work.triggers if draft.matches(s.place.around))
        return Distilled(draft, text, work.record, triggers, tightened, self.known)

    def held_against(self, against: Against, rng: Random) -> Distilled:
        """What has been reached, tightened on programs that it has not seen; fewer of them where
        the target is slow. Raises TargetError, StoreError."""
        work = self.work
        assert self.trials.aim is not None
        share = work.effort.fresh / Effort().fresh
        against = replace(
            against,
            neighbours=round(against.neighbours * share),
            witnesses=round(against.witnesses * share),
        )
        signature = self.trials.aim.signature
        held = against.programs_for(work.draft, self.trials, signature, work.sampling, rng)
        triggers = [s.program for s in work.triggers if work.draft.matches(s.place.around)]
        return self.distilled(
            tighten(work.draft, triggers, held, self.trials, work.sampling, rng=rng)
        )


def distill(
    program: Program,
    trials: Trials,
    rng: Random,
    budget: Budget | None = None,
    progress: Progress = silent,
    *,
    sampling: Sampling | None = None,
    name: str = "",
    version: str | None = None,
) -> Distilled:
    """A rule for the defect that ``trials`` aim at, made from a program that shows it. Same
    generator state, same rule. Raises DoesNotShow, TargetError."""
    return Distiller(
        program, trials, rng,
        sampling=sampling, budget=budget, progress=progress, name=name, version=version,
    ).run()  # fmt: skip


def distill_subject(
    subject: Subject,
    signatures: Signatures,
    folder: Path,
    *,
    limits: Limits | None = None,
    jobs: int = 1,
    budget: Budget | None = None,
    reduce: bool = True,
    seed: int = 0,
    name: str = "",
    progress: Progress = silent,
    against: Against | None = None,
) -> tuple[Distilled, Path, bool]:
    """Reduce a subject, distill it, hold the rule ``against`` programs that it has not seen, and
    write it all into ``folder``.

    Returns what came of it, the rule's file, and whether Ctrl-C cut it short. Raises NotShown,
    TargetError, UsageError, OSError; KeyboardInterrupt while the program is being reduced.
    """
    check_name(name)
    check_folder(folder)
    with made_for(folder):
        return _distilled_into(
            folder, subject, signatures, limits, jobs, budget or Budget(),
            reduce, seed, name, progress, against,
        )  # fmt: skip


def _distilled_into(
    folder: Path,
    subject: Subject,
    signatures: Signatures,
    limits: Limits | None,
    jobs: int,
    budget: Budget,
    reduce: bool,
    seed: int,
    name: str,
    progress: Progress,
    against: Against | None,
) -> tuple[Distilled, Path, bool]:
    """:func:`distill_subject` in a folder that is ours alone."""
    origin = str(subject.origin)
    if against is not None and subject.detail is not None:
        against = replace(against, finding=subject.origin)
    if reduce:
        began = time.monotonic()
        report = reduce_subject(
            subject, signatures, folder / REDUCED, limits=limits, jobs=jobs, budget=budget
        )
        if report.stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        budget = budget.left(report.runs, time.monotonic() - began)
        small = read_subject(folder / REDUCED, str(subject.target), signatures)
        subject = replace(small, target=subject.target)
    keep = folder / TRIALS
    trials, program = open_trials(subject, limits, jobs=jobs, keep=keep)
    with trials, ExitStack() as close_last:
        if isinstance(program, Model):
            raise UsageError(
                f"{origin}: has operators that UIR does not know, so no rule can be made of it"
            )
        answers = Answers(folder / ANSWERS, question(trials))
        close_last.callback(answers.close)
        distiller = Distiller(
            program,
            trials,
            Random(seed),
            sampling=sampling_for(subject.target, signatures),
            budget=budget,
            progress=progress,
            answers=answers,
            name=name,
            version=next(iter(trials.versions().values()), None),
            known=known_as(program, trials),
        )

        def held(done: Distilled) -> Distilled:
            assert against is not None
            progress("holding the rule against other programs", done.record.asked, done.draft)
            return distiller.held_against(against, Random(seed))

        return distill_into(folder, distiller, origin, seed, held if against else None)


def known_as(program: Program, trials: Trials) -> tuple[str, tuple[str, ...]]:
    """The shipped rule that a program which shows the defect is filed under, and the bugs that it
    names; nothing if no rule says what it is. Raises TargetError."""
    version = next(iter(trials.versions().values()), None)
    provider = ("provider", trials.target.device)
    known = Known(trials.target.name, version, environment=(provider,))()
    matches = known.matches(program.graph)
    if not matches:
        return "", ()
    model, examination = trials.examine(program)
    rule = known.file(examination.judgement, matches, trials.passes(model))
    return ("", ()) if rule is None else (rule, known.bugs(rule))
