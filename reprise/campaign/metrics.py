"""How redundant a run's reports are (first paper, §2.1 and §5.1), and intervals for rates.

Comes in: how many reports each defect got. Goes out: B, U, B−U, ²D, R_w and C. With b_d reports of
defect d and B = Σ b_d::

    R_w = Σ b_d² / B            how many reports the defect of an average report has
    ²D  = B² / Σ b_d²           how many defects, equally often reported, would look as skewed
    C   = Σ b_d(b_d − 1) / B(B − 1)   chance that two reports, drawn at random, are of one defect

A figure that is a division by zero is ``None``: without reports there is no R_w, ²D or C, and
with one report there is no pair for C.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Redundancy:
    """The paper's figures for one run. ``shares`` of the largest defect and of repeats are in
    0..1, as ``duplicate_pairs`` (C) is; ``None`` where there is nothing to divide by."""

    reports: int
    """B"""
    defects: int
    """U"""
    effective_defects: float | None
    """²D"""
    weighted_redundancy: float | None
    """R_w"""
    duplicate_pairs: float | None
    """C"""
    largest_share: float | None
    """Share of the reports that the most reported defect has."""

    @property
    def repeats(self) -> int:
        """B−U: reports of a defect that the run had reported before."""
        return self.reports - self.defects

    @property
    def repeat_share(self) -> float | None:
        """(B−U)/B."""
        return self.repeats / self.reports if self.reports else None


def redundancy(counts: Iterable[int]) -> Redundancy:
    """The figures for defects with these numbers of reports; defects without any do not count.

    Raises ValueError for a negative count.
    """
    found = [count for count in counts if count]
    if any(count < 0 for count in found):
        raise ValueError("a defect cannot have fewer than no reports")
    total = sum(found)
    squares = sum(count * count for count in found)
    return Redundancy(
        reports=total,
        defects=len(found),
        effective_defects=total * total / squares if total else None,
        weighted_redundancy=squares / total if total else None,
        duplicate_pairs=(squares - total) / (total * (total - 1)) if total > 1 else None,
        largest_share=max(found) / total if total else None,
    )


def reduction(before: int, after: int) -> float | None:
    """The share of ``before`` that is gone (negative: more than before); None of nothing."""
    return (before - after) / before if before else None


@dataclass(frozen=True, slots=True)
class Rate:
    """``events`` of ``trials``, with the bounds of a Wilson score interval."""

    events: int
    trials: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The rate as observed; None without trials."""
        return self.events / self.trials if self.trials else None


def rate(events: int, trials: int, confidence: float = 0.95) -> Rate:
    """The rate with its Wilson score interval, which stays in 0..1 and says something of 0 events
    too ("zero observed crashes do not establish a zero crash rate", §5.1).

    Raises ValueError unless 0 <= events <= trials and 0 < confidence < 1.
    """
    if not 0 <= events <= trials:
        raise ValueError(f"{events} events in {trials} trials")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence}")
    if trials == 0:
        return Rate(0, 0, 0.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = events / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    spread = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low = 0.0 if events == 0 else max(0.0, centre - spread)
    high = 1.0 if events == trials else min(1.0, centre + spread)
    return Rate(events, trials, low, high)


def chance_of_missing(probability: float, trials: int) -> float:
    """How likely ``trials`` tests miss a defect of this probability (§5.1, TVM-20048)."""
    return (1 - probability) ** trials
