"""Distilling a kernel from beginning to end: what ``reprise distill`` and a run that learns do."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from reprise.distill.alone import made_for
from reprise.distill.asking import Spent
from reprise.distill.folder import REDUCED, TRIALS, check_folder, distill_into
from reprise.distill.record import Record
from reprise.distill.reduce import Budget, Stop
from reprise.distill.rule import check_name
from reprise.distill.tighten import Tightened
from reprise.einsum.distill.conditions import Condition
from reprise.einsum.distill.draft import Draft
from reprise.einsum.distill.generalise import LOOPS_FIRST, Effort, Generaliser, Progress, silent
from reprise.einsum.distill.reducing import reduce_kernel
from reprise.einsum.distill.rule import named, with_tests
from reprise.einsum.distill.subject import KernelSubject, open_kernel_trials, read_kernel_subject
from reprise.einsum.distill.tighten import tightened
from reprise.einsum.distill.trials import Asker, KernelTrials
from reprise.einsum.distill.walk import Walker
from reprise.einsum.filing import KernelBugs, bug_files
from reprise.einsum.kernel import Kernel
from reprise.einsum.settings import USUAL, Settings
from reprise.einsum.symptom import judgement_of
from reprise.einsum.testing import kernel_options
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import Untranslatable, function
from reprise.einsum.validity import Validity, load_kernel_rules
from reprise.targets.process import Limits

_SLOW = 60
"""A target of which a reduction may run fewer kernels (``Backend.tries``) is asked less."""


@dataclass(frozen=True)
class KernelDistilled:
    """As :class:`reprise.distill.record.Distilled`: a rule made from a kernel."""

    draft: Draft
    text: str
    record: Record
    tightened: Tightened[Draft, Condition] | None = None
    known: str = ""

    @property
    def discarded(self) -> bool:
        return self.tightened is not None and self.tightened.draft is None


class KernelDistiller:
    """Distills one kernel, which shows what ``trials`` aim at. What has been reached is there at
    any time."""

    def __init__(
        self,
        kernel: Kernel,
        trials: KernelTrials,
        rng: Random,
        *,
        budget: Budget | None = None,
        progress: Progress = silent,
        name: str = "",
    ) -> None:
        self.kernel = kernel
        self.trials = trials
        self.name = name
        walker, self.known = walker_for(kernel, trials)
        slow = trials.backend.tries < _SLOW
        self.neighbours = 0.2 if slow else 1.0
        self.work = Generaliser(
            kernel,
            Asker(trials, budget),
            walker,
            rng,
            effort=Effort(4, 8) if slow else Effort(),
            progress=progress,
        )

    def run(self) -> KernelDistilled:
        """Distill until done, or until the budget is spent. Raises TargetError; KeyboardInterrupt
        passes through."""
        with suppress(Spent):
            self.work.run()
        return self.distilled()

    def held_against(self, neighbours: int) -> KernelDistilled:
        """What has been reached, tightened on kernels that it has not seen; if it has to be
        discarded, the same for what leaving out loops first comes to. Raises TargetError."""
        count = round(neighbours * self.neighbours)
        try:
            held = tightened(self.work, count)
        except Spent:
            return self.distilled()
        if held.draft is None:
            first, self.work = self.work, self._other_way()
            try:
                self.work.run()
                again = tightened(self.work, count)
            except Spent:
                self.work = first
            else:
                held, self.work = (again, self.work) if again.draft else (held, first)
        self.work.record.asked, self.work.record.runs = self.work.asker.asked, self.work.asker.runs
        self.work.record.seconds = self.work.asker.seconds
        return self.distilled(held)

    def _other_way(self) -> Generaliser:
        """One that begins anew, leaves out loops first, and knows what has been learned."""
        work = self.work
        other = Generaliser(
            self.kernel, work.asker, work.walker, work.rng,
            effort=work.effort, progress=work.progress, order=LOOPS_FIRST,
        )  # fmt: skip
        other.triggers, other.passing = work.triggers, work.passing
        return other

    def distilled(self, held: Tightened[Draft, Condition] | None = None) -> KernelDistilled:
        """What has been reached, or what holding it against other kernels made of it."""
        work = self.work
        draft = work.draft if held is None or held.draft is None else held.draft
        target, aim = self.trials.target.name, self.trials.aim
        draft = named(draft, self.name, target, self.trials.versions(), self.kernel, aim)
        text = with_tests(draft, work.triggers, work.passing)
        return KernelDistilled(draft, text, work.record, held, self.known)


def walker_for(kernel: Kernel, trials: KernelTrials) -> tuple[Walker, str]:
    """What walks among the kernels that the target takes, away from known bugs that the kernel does
    not hit; and the known bug that the kernel is filed under."""
    target = trials.target.name
    aims = BACKENDS[target].aims
    options = replace(kernel_options(target, {}), targets=aims)
    files = bug_files(target)
    rules = load_kernel_rules(files)
    settings = Settings((), (options.settings.allowed | USUAL) - _never(target), aims)
    validity = Validity(rules, settings)
    excused = frozenset(violation.rule for violation in validity.of(kernel))
    bugs = KernelBugs(target, rules, files)
    rule = bugs.file(judgement_of(kernel, trials.aim), bugs.matches((kernel,)))

    def takes(kernel: Kernel) -> bool:
        try:
            function(trials.backend.translator, "kernel", (kernel,))
        except Untranslatable:
            return False
        return True

    return Walker(validity, options, excused=excused, takes=takes), rule or ""


def _never(target: str) -> frozenset[str]:
    """What kernels for a target do not have."""
    options = BACKENDS[target].options
    return frozenset(name for name, share in options.items() if share == 0.0)


def distill_kernel(
    subject: KernelSubject,
    folder: Path,
    *,
    limits: Limits | None = None,
    jobs: int = 1,
    budget: Budget | None = None,
    reduce: bool = True,
    seed: int = 0,
    name: str = "",
    progress: Progress = silent,
    neighbours: int = 200,
) -> tuple[KernelDistilled, Path, bool]:
    """Reduce a subject, distill it, hold the rule against ``neighbours`` kernels that it has not
    seen, and write it all into ``folder``.

    Returns what came of it, the rule's file, and whether Ctrl-C cut it short. Raises NotShown,
    TargetError, UsageError, OSError; KeyboardInterrupt while the kernel is being reduced.
    """
    check_name(name)
    check_folder(folder)
    origin = str(subject.origin)
    with made_for(folder):
        budget = budget or Budget()
        if reduce:
            began = time.monotonic()
            report = reduce_kernel(
                subject, folder / REDUCED, limits=limits, jobs=jobs, budget=budget
            )
            if report.stop is Stop.INTERRUPTED:
                raise KeyboardInterrupt
            budget = budget.left(report.runs, time.monotonic() - began)
            small = read_kernel_subject(folder / REDUCED, subject.spec)
            subject = replace(small, expected=subject.expected)
        with open_kernel_trials(subject, limits, jobs=jobs, keep=folder / TRIALS) as trials:
            distiller = KernelDistiller(
                trials.kernel, trials, Random(seed), budget=budget, progress=progress, name=name
            )

            def held(done: KernelDistilled) -> KernelDistilled:
                progress("holding the rule against other kernels", done.record.asked, done.draft)
                return distiller.held_against(neighbours)

            return distill_into(folder, distiller, origin, seed, held if neighbours else None)
