"""Verdicts on ONNX models with operators that the reference semantics do not know.

Crashes and agreement need no reference. Where the modes differ and UIR has no reference for some
operator, ONNX's own reference implementation takes its place, where it knows all operators: the
unoptimised mode must agree with it. Where it does not (custom domains, contrib operators), there is
no third opinion; then the difference itself counts, if it is more than inputs disturbed by one unit
in the last place make, and the evidence says that nothing else stands behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reprise.distill.onnx_model import Model
from reprise.oracle.compare import compare_outputs, mismatches
from reprise.oracle.judge import Judge, Passes, Rerun, _Case
from reprise.oracle.verdict import Judgement, Verdict
from reprise.targets.interface import Outcome
from reprise.uir.graph import Array
from reprise.uir.program import Program


class ModelJudge(Judge):
    """A judge of programs that may be models as they came."""

    __slots__ = ()

    def judge(
        self,
        program: Program,
        outcome: Outcome,
        rerun: Rerun | None = None,
        passes: Passes = (),
    ) -> Judgement:
        found = Judge.judge(self, program, outcome, rerun, passes)
        if isinstance(program, Model) and found.evidence.get("why") == "no reference":
            return self._without(program, outcome, rerun, passes)
        return found

    def _without(
        self, model: Model, outcome: Outcome, rerun: Rerun | None, passes: Passes
    ) -> Judgement:
        """The verdict on a difference that UIR has no reference for."""
        first = self._first(model, outcome)
        base = outcome.results[self.baseline or ""]
        tested = outcome.results[self.tested]
        assert base.outputs is not None and tested.outputs is not None
        bounds = self.bounds(model, base.outputs)
        native = reference_outputs(model)
        if native is None:
            evidence = "none knows all operators: the target's unoptimised mode is taken for right"
        else:
            evidence = "onnx.reference"
            if compare_outputs(base.outputs, native, bounds):
                return replace(
                    first,
                    verdict=Verdict.REFERENCE_DISAGREEMENT,
                    signature=first.signature.replace("wrong | ", "disagreement | ", 1),
                    evidence={**first.evidence, "reference": evidence},
                )
        weighed = replace(first, evidence={**first.evidence, "reference": evidence})
        case = _Case(self, model, outcome, rerun, passes)
        masks = {
            n: mismatches(a, b, bounds[n])
            for n, (a, b) in enumerate(zip(base.outputs, tested.outputs, strict=False))
            if a.shape == b.shape and a.dtype == b.dtype
        }
        masks = {n: mask for n, mask in masks.items() if mask.any()}
        if masks and case._moves_as_much(base.outputs, tested.outputs, masks):
            return replace(
                weighed,
                verdict=Verdict.UNDECIDED,
                signature=first.signature.replace("wrong | ", "undecided | ill-conditioned | ", 1),
            )
        return case._ablated(weighed, base)


def reference_outputs(model: Model) -> Sequence[Array] | None:
    """A model's outputs by ONNX's reference implementation; None if it does not know them."""
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            outputs: Any = ReferenceEvaluator(model.proto).run(None, dict(model.inputs))
    except Exception:  # whatever it raises, it has no answer
        return None
    if not all(isinstance(output, np.ndarray) for output in outputs):
        return None
    return list(outputs)
