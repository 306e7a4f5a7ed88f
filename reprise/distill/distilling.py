"""Distilling: from a program that shows a defect to a rule that ships, in one call.

:class:`Distiller` is what ``reprise distill`` and a learning campaign use. It prints nothing; what
it has reached is there at any time, so an interrupted call keeps its best pattern.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

from reprise.distill.asking import Answers, Asker, Spent
from reprise.distill.generalise import Effort, Generaliser, Progress, silent
from reprise.distill.record import Case, Distilled
from reprise.distill.reduce import Budget
from reprise.distill.rule import named, with_tests
from reprise.distill.sampling import Sampling
from reprise.distill.trials import Shown, Trials
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.solve.signatures import Signatures
from reprise.synth.vocabulary import WhyNot, read_policies
from reprise.targets.discover import Target
from reprise.targets.support import Support
from reprise.uir.program import Program


class DoesNotShow(ValueError):
    """The program to distill does not show the defect."""


def sampling_for(target: Target, signatures: Signatures) -> Sampling:
    """A sampling that keeps to what a target does. Raises RulesError."""
    why_not: WhyNot = Support.load(target.name).why_not
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
    ) -> None:
        """Raises DoesNotShow unless ``trials`` say that it shows their aim; TargetError."""
        if trials.aim is None or trials.try_one(program).shown is not Shown.SAME:
            raise DoesNotShow(f"{program.name or 'the program'} does not show the defect")
        self.trials = trials
        self.name = name
        self.version = version
        sampling = sampling or sampling_for(trials.target, Signatures.load())
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

    def distilled(self) -> Distilled:
        """What has been reached."""
        work = self.work
        assert self.trials.aim is not None
        target = self.trials.target.name
        draft = named(work.draft, self.name, target, self.version, self.trials.aim)
        first = Case("match", "", work.triggers[0])
        text, _ = with_tests(draft, [first, *work.cases])
        triggers = tuple(s for s in work.triggers if draft.matches(s.place.around))
        return Distilled(draft, text, work.record, triggers)


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
