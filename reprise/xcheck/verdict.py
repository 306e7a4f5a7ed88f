"""What became of a model that was made for a constraint.

A model that violates a constraint should be rejected with an error; a valid one should compile.
What differs from that is a finding; so is a compiler that dies, hangs, takes too much memory or
fails for a reason of its own, whatever the model.

A compiler that says that it has no such operator, or none for these element types, has not looked
at the model: that is no finding if the model is valid, and does not show that the constraint is
checked if the model violates one. Which errors say so is the target file's to know
(``is_unsupported``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from reprise.lang.declared import Constraint
from reprise.lang.display import shortened
from reprise.oracle.crash import normalise
from reprise.xcheck.passes.interface import Ending, StageReport


class Verdict(Enum):
    """The outcome of one model, as stored."""

    ACCEPTED = "accepted"  # compiled, though a constraint is violated
    ALLOWED = "allowed"  # compiled, and the constraint that is violated is no demand
    CRASHED = "crashed"
    HANG = "hang"
    MEMORY = "memory"
    INTERNAL = "internal"  # rejected by an error of the compiler's own
    VALID_REJECTED = "valid_rejected"  # rejected, though every constraint holds
    REJECTED = "rejected"  # as it should be
    COMPILED = "compiled"  # a valid model, as it should be
    UNSUPPORTED = "unsupported"  # rejected, since the compiler has no such operator or type
    UNASKED = "unasked"  # no worker, or no form of the model that the compiler reads

    @property
    def is_finding(self) -> bool:
        """Whether it is worth a look at the compiler."""
        return self in _FINDINGS

    @property
    def says_nothing(self) -> bool:
        """Whether the compiler did not look at what the model was made for."""
        return self in (Verdict.UNSUPPORTED, Verdict.UNASKED)

    @property
    def words(self) -> str:
        """The verdict, for people."""
        return _WORDS[self]

    def told(self, *, warned: bool) -> str:
        """The verdict on models of which all were compiled with a warning, or not all."""
        return _WARNED if warned and self is Verdict.ACCEPTED else self.words


_FINDINGS = frozenset(
    {
        Verdict.ACCEPTED,
        Verdict.CRASHED,
        Verdict.HANG,
        Verdict.MEMORY,
        Verdict.INTERNAL,
        Verdict.VALID_REJECTED,
    }
)
_WORDS = {
    Verdict.ACCEPTED: "accepted silently though a constraint is violated",
    Verdict.ALLOWED: "compiled; the constraint that is violated is no demand",
    Verdict.CRASHED: "crashed",
    Verdict.HANG: "no end within the time limit",
    Verdict.MEMORY: "over the memory limit",
    Verdict.INTERNAL: "rejected by an internal error",
    Verdict.VALID_REJECTED: "valid model rejected",
    Verdict.REJECTED: "rejected with an error",
    Verdict.COMPILED: "valid model compiled",
    Verdict.UNSUPPORTED: "not supported, says the compiler",
    Verdict.UNASKED: "not asked",
}
_WARNED = "accepted with a warning though a constraint is violated"
_WARNS = re.compile(
    r"\bexceed|\boverflow|\btoo (large|big)\b|\bout of memory\b|\berror merging shape", re.I
)
"""Words of a log in which an accepted model's size, type or shape is questioned."""
_INTERNAL = frozenset(
    {
        *("AssertionError", "AttributeError", "IndexError", "InternalError", "KeyError"),
        *("NameError", "RecursionError", "ScheduleError", "SystemError", "UnboundLocalError"),
        "ZeroDivisionError",
    }
)
"""Exceptions that say that the compiler lost its way, not that the model is at fault."""
_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, how far the compiler got (``passes`` completed, ``stage`` for people) and what it
    said. ``signature`` is the message without what varies: findings of one constraint, verdict and
    signature are one group."""

    verdict: Verdict
    passes: int
    stage: str
    message: str
    signature: str
    warned: bool
    seconds: float

    @property
    def words(self) -> str:
        """The verdict, for people."""
        return self.verdict.told(warned=self.warned)


def is_demand(constraint: Constraint) -> bool:
    """Whether a compiler has to reject what violates a constraint. What is mined or written with
    less than high confidence only says where compilers may go wrong; and where operators cannot be
    fused, they are compiled one by one."""
    meta = constraint.meta
    if "fusion" in meta.get("template", ()):
        return False
    return not {"low", "medium"} & set(meta.get("confidence", ()))


def is_about_one(constraint: Constraint) -> bool:
    """Whether a constraint says what one compiler takes: then "not supported" is the rejection that
    it asks for."""
    return bool(constraint.meta.get("target"))


def outcome(report: StageReport, *, valid: bool, violated: Collection[Constraint] = ()) -> Outcome:
    """What a stage report means for a model. ``valid``: nothing speaks against it; ``violated``:
    the constraints that it violates for certain."""
    failure = report.failure
    unsupported = failure is not None and failure.unsupported
    match report.ending:
        case Ending.ACCEPTED if not violated:
            verdict = Verdict.COMPILED
        case Ending.ACCEPTED:
            demanded = any(is_demand(c) for c in violated)
            verdict = Verdict.ACCEPTED if demanded else Verdict.ALLOWED
        case Ending.REJECTED if unsupported and not any(is_about_one(c) for c in violated):
            verdict = Verdict.UNSUPPORTED
        case Ending.REJECTED if valid:
            verdict = Verdict.VALID_REJECTED
        case Ending.REJECTED if unsupported:
            verdict = Verdict.REJECTED
        case Ending.REJECTED:
            internal = failure is not None and failure.type.rpartition(".")[2] in _INTERNAL
            verdict = Verdict.INTERNAL if internal else Verdict.REJECTED
        case Ending.CRASHED:
            verdict = Verdict.CRASHED
        case Ending.HANG:
            verdict = Verdict.HANG
        case Ending.MEMORY:
            verdict = Verdict.MEMORY
        case Ending.UNASKED:
            verdict = Verdict.UNASKED
    message = ""
    if failure is not None:
        message = ": ".join(filter(None, (failure.type, failure.message)))
    elif report.ending is not Ending.ACCEPTED:
        message = report.signal or report.log.strip()
    signature = report.where if report.ending is not Ending.ACCEPTED else ""
    if failure is not None:
        signature += f" | {failure.type}: {normalise(failure.message)}"
    elif report.signal:
        signature += f" | {report.signal}"
    return Outcome(
        verdict,
        report.passes,
        report.where,
        shortened(" ".join(message.split()), _MESSAGE),
        shortened(signature, _MESSAGE),
        report.ending is Ending.ACCEPTED and _WARNS.search(report.log) is not None,
        report.seconds,
    )
