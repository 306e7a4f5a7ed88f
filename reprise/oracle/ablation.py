"""Which pass, left out, cures a failure: the best key for a defect (one defect has several symptoms
and messages, but one pass).

First everything is disabled. If that does not change the failure, no pass is to blame. If it
cures it, halving finds the first smallest group that does. Where disabling everything brings up
*another* failure (some passes are indispensable), groups are split until one cures or none is left.
The order of the passes and of the trials is fixed, so the same failure always gets the same answer.
Often two passes cure, one that breaks the program and one that only cleaned up before it (an
`EliminateIdentity` that brings two nodes together): those that clean up are tried last.

A failure that comes and goes, as one of uninitialised memory does, seems cured by whatever is
disabled when it stays away. So the whole program, with every pass, is run before anything is
disabled and again before a cure is believed; if it does not fail, no pass is blamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reprise.oracle.verdict import Judgement, Verdict

Run = Callable[[tuple[str, ...]], Judgement]
"""Judges the program again, with these passes disabled."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """What was found. ``cures``: the passes whose absence cures the failure, in order; empty if
    none do. ``tried``: how many runs with passes disabled it took; ``complete``: whether the budget
    was enough. ``uncovers``: another failure that appeared instead when passes were disabled.
    ``stable``: whether the whole program failed each time that it was run again."""

    cures: tuple[str, ...] = ()
    tried: int = 0
    complete: bool = True
    uncovers: str = ""
    stable: bool = True

    @property
    def signature(self) -> str:
        """`pass:GemmTransposeFusion`, or the empty string."""
        return f"pass:{'+'.join(self.cures)}" if self.cures else ""

    def evidence(self) -> dict[str, object]:
        return {
            "cures": list(self.cures),
            "runs": self.tried,
            "complete": self.complete,
            "uncovers": self.uncovers,
            "stable": self.stable,
        }


def ablate(run: Run, passes: Sequence[str], failure: Judgement, budget: int = 24) -> Ablation:
    """Find the passes to blame for ``failure`` within ``budget`` runs. ``passes``: the likeliest
    first, among those that clean up and those that do not. The runs of the whole program, at most
    two, are not counted."""
    ordered = sorted(dict.fromkeys(passes), key=lambda name: bool(_CLEANS.search(name)))
    if not ordered:
        return Ablation()
    if not run(()).verdict.is_finding:
        return Ablation(stable=False)
    found = _Search(run, failure, budget).search(tuple(ordered))
    if found.cures and not run(()).verdict.is_finding:
        return replace(found, cures=(), stable=False)
    return found


_CLEANS = re.compile(
    r"Eliminat|Elimination|Constant_?(Folding|Sharing|Propagation)|Fold_?Constant|Dead|Redundant"
    r"|Common_?Sub|Canonical|Normal(ize|Form)|Simplif(y|ication)$|Unused|RemoveDuplicate"
    r"|EnsureUnique|Identity|Noop|DCE|CSE",
    re.IGNORECASE,
)
"""Names of passes that prepare or tidy a program, in every compiler that has such."""


class _Spent(Exception):
    """The budget is used up."""


class _Search:
    def __init__(self, run: Run, failure: Judgement, budget: int) -> None:
        self.run, self.failure, self.budget = run, failure, budget
        self.seen: dict[tuple[str, ...], str] = {}
        self.uncovers = ""
        self.best: tuple[str, ...] = ()

    def search(self, passes: tuple[str, ...]) -> Ablation:
        complete = True
        self.order = {name: i for i, name in enumerate(passes)}
        try:
            match self._try(passes):
                case "cured":
                    self.best = passes
                    self._shrink((), passes)
                case "other":
                    self._split(passes)
        except _Spent:
            complete = False
        return Ablation(self.best, len(self.seen), complete, "" if self.best else self.uncovers)

    def _split(self, group: tuple[str, ...]) -> bool:
        """Look in both halves of a group whose absence uncovers another failure."""
        if len(group) == 1:
            return False
        for half in _halves(group):
            match self._try(half):
                case "cured":
                    self.best = half
                    self._shrink((), half)
                    return True
                case "other":
                    if self._split(half):
                        return True
        return False

    def _shrink(self, fixed: tuple[str, ...], group: tuple[str, ...]) -> tuple[str, ...]:
        """The smallest part of ``group`` that, with ``fixed``, still cures. ``best`` always holds
        a set that does. (Zeller and Hildebrandt's case "interference" where both halves count.)"""
        if len(group) == 1:
            return group
        first, second = _halves(group)
        for half in (first, second):
            if self._try((*fixed, *half)) == "cured":
                self.best = self._sorted((*fixed, *half))
                return self._shrink(fixed, half)
        left = self._shrink((*fixed, *second), first)
        right = self._shrink((*fixed, *left), second)
        self.best = self._sorted((*fixed, *left, *right))
        return self._sorted((*left, *right))

    def _try(self, disabled: tuple[str, ...]) -> str:
        """ "cured", "same" failure, or an "other" one."""
        disabled = self._sorted(disabled)
        if disabled in self.seen:
            return self.seen[disabled]
        if len(self.seen) >= self.budget:
            raise _Spent
        now = self.run(disabled)
        if now.verdict is Verdict.OK:
            answer = "cured"
        elif now.verdict is self.failure.verdict and now.signature == self.failure.signature:
            answer = "same"
        else:
            answer = "other"
            self.uncovers = self.uncovers or now.signature or now.verdict.value
        self.seen[disabled] = answer
        return answer

    def _sorted(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self.order.__getitem__))


def _halves(group: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    middle = (len(group) + 1) // 2
    return group[:middle], group[middle:]
