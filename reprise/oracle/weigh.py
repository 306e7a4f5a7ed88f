"""The three-way test: which of two modes does float64 side with, element by element?

Of the elements that differ, each is one of five kinds:

* *wrong*: the tested mode is much farther from float64 than the baseline is, farther than rounding
  explains, and the baseline agrees with the reference;
* *closer*: the same with the modes exchanged: the optimiser's result is the better one;
* *neither*: both are far from float64, or the baseline does not agree with the reference;
* *rounding*: the noisy readings scatter as far as the difference: ill-conditioned, or on a step;
* *undefined*: the value is implementation-defined (ties, NaN indices, integer division by zero…).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reprise.oracle.compare import Mask, mismatches, number
from reprise.oracle.reference import Scatter, distance, in_range
from reprise.oracle.tolerance import Tolerance
from reprise.uir.graph import Array

MARGIN = 4.0
"""How many times farther from float64 one mode must be than the other."""
SCATTER = 4.0
"""How many times the noise's radius a difference must be: six samples see most of the range."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """The elements of one kind each, counted; the largest distances from float64 among them."""

    wrong: int = 0
    closer: int = 0
    neither: int = 0
    rounding: int = 0
    undefined: int = 0
    tested_error: float = 0.0
    baseline_error: float = 0.0
    noise: float = 0.0

    def __add__(self, other: Weighing) -> Weighing:
        return Weighing(
            self.wrong + other.wrong,
            self.closer + other.closer,
            self.neither + other.neither,
            self.rounding + other.rounding,
            self.undefined + other.undefined,
            max(self.tested_error, other.tested_error),
            max(self.baseline_error, other.baseline_error),
            max(self.noise, other.noise),
        )

    @property
    def sides_with(self) -> str:
        """ "baseline", "tested", "both", "neither" or "" if nothing can be said."""
        if self.neither or (self.wrong and self.closer):
            return "neither"
        return "baseline" if self.wrong else "tested" if self.closer else ""

    def evidence(self) -> dict[str, object]:
        return {
            "float64_sides_with": self.sides_with,
            "elements": {
                "wrong": self.wrong,
                "closer_to_float64": self.closer,
                "neither": self.neither,
                "rounding": self.rounding,
                "undefined": self.undefined,
            },
            "tested_error_to_float64": number(self.tested_error),
            "baseline_error_to_float64": number(self.baseline_error),
            "noise_of_rounding": number(self.noise),
        }


def total(weighings: Iterable[Weighing]) -> Weighing:
    """Several outputs together."""
    return sum(weighings, Weighing())


def weigh(
    baseline: Array,
    tested: Array,
    native: Array,
    wide: Array,
    scatter: Scatter,
    tolerance: Tolerance,
) -> tuple[Weighing, Mask]:
    """Weigh one output whose modes differ; all arrays are of one shape. Also gives the mask of the
    wrong elements."""
    differ = mismatches(baseline, tested, tolerance)
    wide = in_range(wide, baseline.dtype)
    far, near = distance(tested, wide), distance(baseline, wide)
    radius = np.broadcast_to(scatter.radius, differ.shape)
    with np.errstate(all="ignore"):
        unstable = ~np.isfinite(radius)
        beyond = ~unstable & (far > SCATTER * radius)
        base_beyond = ~unstable & (near > SCATTER * radius)
        agrees = ~mismatches(baseline, native, tolerance) | ~mismatches(
            baseline, wide.astype(baseline.dtype), tolerance
        )
        worse = differ & beyond & (far > MARGIN * near)
        wrong = worse & agrees
        closer = differ & base_beyond & (near > MARGIN * far)
        neither = (worse & ~agrees) | (differ & beyond & base_beyond & ~worse & ~closer)
    rest = differ & ~wrong & ~closer & ~neither

    def largest(values: Array) -> float:
        return float(values[differ].max()) if differ.any() else 0.0

    wrongs, closers, neithers, rests = (
        int(np.count_nonzero(mask)) for mask in (wrong, closer, neither, rest)
    )
    weighing = Weighing(
        wrong=wrongs,
        closer=closers,
        neither=neithers,
        rounding=rests,
        tested_error=largest(far),
        baseline_error=largest(near),
        noise=largest(radius),
    )
    return weighing, wrong
