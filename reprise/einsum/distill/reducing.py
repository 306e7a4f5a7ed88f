"""One reduction of a kernel from beginning to end: what ``reprise reduce`` does with one.

The folder is like a finding's, with ``reduction.json`` (before and after) and ``trials.jsonl`` (the
answers, so that what was interrupted goes on). A kernel that matches a known bug which the first
one does not match is not gone on with: its failure may be that bug (*slippage*).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from reprise.cache import write_whole
from reprise.campaign.bench import Examination, Exhibit, Tested
from reprise.campaign.findings import finding_files
from reprise.campaign.open import own_versions, spelled
from reprise.campaign.records import Record, RunInfo
from reprise.campaign.writer import utc_now
from reprise.distill.alone import made_for
from reprise.distill.asking import Spent
from reprise.distill.kept import REDUCTION, TRIALS, check_folder
from reprise.distill.reduce import Budget, Stop
from reprise.distill.trials import Shown
from reprise.einsum.distill.subject import KernelSubject, open_kernel_trials
from reprise.einsum.distill.trials import KernelTrials
from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files
from reprise.einsum.findings import kernel_files
from reprise.einsum.json_form import to_json
from reprise.einsum.kernel import Kernel
from reprise.einsum.reduce import Reduction
from reprise.einsum.symptom import judgement_of
from reprise.einsum.testing import REFERENCE, KernelTest, alone
from reprise.einsum.text import print_text
from reprise.einsum.translate.script import script
from reprise.oracle.verdict import Judgement
from reprise.targets.process import Limits

Watch = Callable[[str, int, Kernel], None]
"""Told what is done, how many kernels were tried, and the smallest so far."""


def silent(step: str, tried: int, kernel: Kernel) -> None:
    """Nothing is shown."""


@dataclass(frozen=True)
class KernelReport:
    """What became of a reduction; ``rule``: the known bug that the kernel is filed under."""

    folder: Path
    before: Kernel
    after: Kernel
    stop: Stop
    trials: int
    runs: int
    seconds: float
    judgement: Judgement
    rule: str | None

    @property
    def text(self) -> str:
        return print_text(self.after)


def reduce_kernel(
    subject: KernelSubject,
    folder: Path,
    *,
    limits: Limits | None = None,
    jobs: int = 1,
    budget: Budget | None = None,
    watch: Watch = silent,
) -> KernelReport:
    """Reduce a subject and write what it came to into ``folder``, also where the budget is spent or
    Ctrl-C is pressed. Raises NotShown, TargetError, UsageError, OSError."""
    check_folder(folder)
    with (
        made_for(folder),
        open_kernel_trials(subject, limits, jobs=jobs, keep=folder / TRIALS) as trials,
    ):
        bugs = KnownKernels(subject.target.name, bug_files(subject.target.name))()
        kernel = trials.kernel
        slips = bugs.slips(kernel)
        budget = budget or Budget()
        began, runs = time.monotonic(), trials.runs

        def fails(candidate: Kernel) -> bool:
            if budget.runs is not None and trials.runs - runs >= budget.runs:
                raise Spent
            if budget.seconds is not None and time.monotonic() - began >= budget.seconds:
                raise Spent
            watch("reducing", reduction.runs, reduction.kernel)
            return not slips(candidate) and trials.shown(candidate) is Shown.SAME

        reduction = Reduction(kernel, fails)
        stop = Stop.MINIMAL
        try:
            reduction.run()
        except Spent:
            stop = Stop.BUDGET
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        spent = trials.runs - runs, time.monotonic() - began
        return _written(folder, subject, trials, bugs, reduction, stop, *spent)


def size_of(kernel: Kernel) -> tuple[int, int]:
    """Operands, and elements of all tensors."""
    return len(kernel.accesses), sum(prod(shape) for shape in kernel.shapes.values())


def _written(
    folder: Path,
    subject: KernelSubject,
    trials: KernelTrials,
    bugs: KernelBugs,
    reduction: Reduction,
    stop: Stop,
    runs: int,
    seconds: float,
) -> KernelReport:
    kernel = reduction.kernel
    symptom = trials.symptom(kernel)
    judgement = judgement_of(kernel, symptom)
    matches = bugs.matches((kernel,))
    rule = bugs.file(judgement, matches)
    examination = Examination(judgement, symptom.outcome, shown=(kernel,))
    test = KernelTest("reduced", {REFERENCE: alone(kernel)})
    translator = trials.backend.translator
    exhibit = Exhibit(
        kernel_files(test, examination, translator),
        test.name,
        script(translator, {REFERENCE: (kernel,)}),
        {},
        symptom.outcome,
        judgement,
        matches,
    )
    index, seed = (0, 0) if subject.detail is None else (subject.detail.index, subject.detail.seed)
    record = Record(index, judgement.verdict, judgement.signature, judgement.title, rule=rule)
    versions = {**trials.versions(), **own_versions()}
    target = spelled(subject.spec, trials.target)
    info = RunInfo(seed, target, {}, (), "", False, versions, utc_now())
    files = finding_files(Tested(record, exhibit), info, trials.target, None)
    described = {
        "of": str(subject.origin),
        "target": subject.spec,
        "aim": {"verdict": trials.aim.verdict.value, "key": trials.aim.key},
        "before": to_json(trials.kernel),
        "after": to_json(kernel),
        "stop": stop.value,
        "trials": reduction.runs,
        "runs": runs,
        "seconds": round(seconds, 3),
        "rule": rule,
    }
    files[REDUCTION] = (json.dumps(described, indent=2) + "\n").encode()
    for name, data in files.items():
        write_whole(folder / name, data)
    return KernelReport(
        folder, trials.kernel, kernel, stop, reduction.runs, runs, seconds, judgement, rule
    )
