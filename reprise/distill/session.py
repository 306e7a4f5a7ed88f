"""One reduction from beginning to end: what ``reprise reduce`` does.

A model that is given as ONNX, and that UIR cannot say or that does not fail once UIR has said it,
is reduced as a model first; what is left of it is tried in UIR again, and if the defect is still
there, reduced further by the passes that know what operators mean.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from reprise.distill.alone import made_for
from reprise.distill.forms import UirForm
from reprise.distill.kept import TRIALS, Report, check_folder, size_of, write_folder
from reprise.distill.onnx_form import OnnxForm
from reprise.distill.onnx_model import Model, as_program
from reprise.distill.passes import STRUCTURE
from reprise.distill.reduce import Budget, Reduced, Reducer, Stop, Watch
from reprise.distill.subject import Subject, open_trials
from reprise.distill.trials import Shown, Trials
from reprise.solve.signatures import Signatures
from reprise.targets.process import Limits
from reprise.uir.program import Program


def reduce_subject(
    subject: Subject,
    signatures: Signatures,
    folder: Path,
    *,
    limits: Limits | None = None,
    jobs: int = 1,
    budget: Budget | None = None,
    watch: Watch | None = None,
) -> Report:
    """Reduce a subject and write what it came to into ``folder``, also where the budget is spent or
    Ctrl-C is pressed. Raises NotShown, TargetError, UsageError, OSError."""
    check_folder(folder)
    with ExitStack() as stack:
        stack.enter_context(made_for(folder))
        trials, program = open_trials(subject, limits, jobs=jobs, exact=True, keep=folder / TRIALS)
        stack.enter_context(trials)
        stages: list[Reduced] = []
        budget = budget or Budget()
        while True:
            reducer = Reducer(_form(program, signatures, trials), trials, program, budget, watch)
            if not stages:
                before = size_of(reducer.reduced)
            stages.append(reducer.reduced)
            again = False
            try:
                if isinstance(program, Model):
                    reducer.run(STRUCTURE)
                    program, again = _as_uir(reducer.reduced, signatures, trials)
                if not again:
                    reducer.run()
            except KeyboardInterrupt:
                break
            if not again:
                break
            budget = _left(budget, reducer.reduced)
        return write_folder(folder, subject, trials, stages, before)


def _form(program: Program, signatures: Signatures, trials: Trials) -> UirForm | OnnxForm:
    if isinstance(program, Model):
        return OnnxForm(program, trials.baseline)
    return UirForm(signatures, program.name)


def _as_uir(reduced: Reduced, signatures: Signatures, trials: Trials) -> tuple[Program, bool]:
    """A reduced model in UIR, if it shows the defect there too."""
    program = reduced.program
    if not isinstance(program, Model) or reduced.stop is not Stop.MINIMAL:
        return program, False
    imported = as_program(program, signatures)
    if imported is None or trials.try_one(imported).shown is not Shown.SAME:
        return program, False
    return imported, True


def _left(budget: Budget, spent: Reduced) -> Budget:
    """What a stage has left over."""
    return Budget(
        None if budget.runs is None else max(budget.runs - spent.runs, 0),
        None if budget.seconds is None else max(budget.seconds - spent.seconds, 0.0),
    )
