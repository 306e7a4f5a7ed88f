"""In which of a target's modes a finding fails, in words."""

from __future__ import annotations

from dataclasses import dataclass

from reprise.campaign.findings import Detail
from reprise.oracle.verdict import Verdict
from reprise.targets.interface import Ended


@dataclass(frozen=True, slots=True)
class Failing:
    """Whether a program fails in the tested mode (the most optimised) and in the baseline (the
    least); None: nobody knows, since it was not run there. A target with one mode has no baseline.

    Written out, it says so for people: "with optimisation, not without"; nothing for one mode.
    """

    tested: bool | None
    baseline: bool | None
    one_mode: bool = False

    @classmethod
    def of(cls, detail: Detail, modes: tuple[str, ...]) -> Failing:
        """From a finding's description; ``modes`` are the target's, the tested one first and the
        least optimised last."""
        if len(modes) < 2:
            return cls(True, None, one_mode=True)
        if detail.verdict is Verdict.REFERENCE_DISAGREEMENT:
            return cls(True, True)
        if detail.verdict is Verdict.WRONG_RESULT:
            return cls(True, False)  # as compared with the baseline
        evidence, outcome = detail.evidence, detail.raw.get("outcome") or {}
        fails = {evidence.get("mode"), *evidence.get("also_fails_in", ())}
        fails |= set(outcome.get("failures", ()))
        passes = set(evidence.get("passes_in", ()))
        if outcome.get("ended") == Ended.ANSWERED.value:
            passes |= {modes[0], modes[-1]} - fails
        tested, baseline = (
            True if mode in fails else False if mode in passes else None
            for mode in (modes[0], modes[-1])
        )
        return cls(tested, baseline)

    @property
    def as_elsewhere(self) -> str:
        """What to compare with: the mode in which it does not fail."""
        match self.tested, self.baseline:
            case True, False:
                return ", as it does without optimisation"
            case False, True:
                return ", as it does with optimisation"
        return ""

    def __str__(self) -> str:
        if self.one_mode:
            return ""
        match self.tested, self.baseline:
            case True, False:
                return "with optimisation, not without"
            case False, True:
                return "without optimisation, not with it"
            case True, True:
                return "with optimisation and without"
            case True, None:
                return "with optimisation (without it, it was not run)"
            case None, True:
                return "without optimisation (with it, it was not run)"
        return ""
