"""What a test's outcome means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """The end of one test (design, §9)."""

    OK = "ok"
    CRASH = "crash"  # compiling or running fails, or the process dies
    WRONG_RESULT = "wrong_result"
    HANG = "hang"
    UNSUPPORTED = "unsupported"  # the target says that it does not do this
    INVALID = "invalid"  # our fault: must be 0
    REFERENCE_DISAGREEMENT = "reference_disagreement"  # the target alone agrees with itself
    UNDECIDED = "undecided"  # ties, NaN indices, ill-conditioned: no verdict is possible

    @property
    def is_finding(self) -> bool:
        """Whether a triager should see it as a defect of the target."""
        return self in (Verdict.CRASH, Verdict.WRONG_RESULT, Verdict.HANG)


class Severity(Enum):
    """How much a finding matters. Low: the sign of a zero, or a rounding error that a discrete
    operator blew up but that always goes the same way."""

    NORMAL = "normal"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its grounds.

    ``signature``: what tells this defect from others (the pass whose ablation cures it, a
    normalised crash); equal signatures are one defect. ``title``: one line for people.
    ``evidence``: numbers and words that can be written as JSON.
    """

    verdict: Verdict
    signature: str = ""
    title: str = ""
    evidence: dict[str, object] = field(default_factory=dict)
    severity: Severity = Severity.NORMAL
