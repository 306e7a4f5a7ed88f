"""The oracle of a campaign: a judge, and a target's process to put its questions to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reprise.campaign.bench import Examination
from reprise.oracle.judge import Judge
from reprise.oracle.reference import Reference
from reprise.oracle.tolerance import Tolerance
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import Target
from reprise.targets.interface import Ended, Job, Outcome
from reprise.targets.process import Jobs
from reprise.uir.graph import Array
from reprise.uir.program import Program
from reprise.uir.semantics import SemanticsError

EMULATION = "emulated"
"""The name of a mode that rounds as the least optimised one does (``Judge.emulation``)."""
_BY_VALUE = (Verdict.WRONG_RESULT, Verdict.REFERENCE_DISAGREEMENT)
"""Verdicts on outputs that came out."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Makes oracles for a target. ``seed``: the run's, which chooses the tests that are compared
    with the reference though the target's modes agree."""

    seed: int

    def __call__(self, target: Target) -> JudgeOracle:
        emulation = EMULATION if EMULATION in target.modes else None
        return JudgeOracle(Judge(target.modes, emulation=emulation, seed=self.seed))


class JudgeOracle:
    """See :class:`~reprise.campaign.bench.Oracle`."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._modes = tuple(dict.fromkeys((judge.tested, judge.baseline or judge.tested)))

    def __call__(self, program: Program, model: bytes, process: Jobs, /) -> Examination:
        judge = self._judge

        def rerun(
            *,
            inputs: Mapping[str, Array] | None = None,
            modes: tuple[str, ...] | None = None,
            disabled: tuple[str, ...] = (),
        ) -> Outcome:
            given = program.inputs if inputs is None else dict(inputs)
            return process.run(Job(model, given, modes or self._modes, disabled))

        outcome = rerun()
        if outcome.ended is Ended.UNSTARTED:
            return Examination(judge.judge(program, outcome), outcome)
        # Asking for the passes is a question to the worker: not in every test.
        clean = (
            outcome.ended is Ended.ANSWERED
            and all(r.failure is None for r in outcome.results.values())
            and not judge.differences(program, outcome.results)
        )
        passes = () if clean else process.passes(model)
        judgement = judge.judge(program, outcome, rerun, passes)
        tolerances: tuple[Tolerance, ...] = ()
        expected: Mapping[int, Array] = {}
        baseline = outcome.results.get(judge.baseline or judge.tested)
        if judgement.verdict in _BY_VALUE and baseline and baseline.outputs:
            tolerances = judge.bounds(program, baseline.outputs)
        if judgement.verdict is Verdict.REFERENCE_DISAGREEMENT:
            expected = _expected(program)
        return Examination(judgement, outcome, tolerances, expected=expected)


def _expected(program: Program) -> Mapping[int, Array]:
    """The reference's outputs, by number; those that implementations may choose are left out, and
    so are all where UIR has no reference."""
    reference = Reference(program.graph, program.inputs)
    try:
        undefined = reference.undefined_outputs()
        return {n: array for n, array in enumerate(reference.native) if n not in undefined}
    except SemanticsError:
        return {}
