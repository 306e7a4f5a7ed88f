"""The paper's figures of redundancy by name: what each is called, shown as, and says (§2.1)."""

from __future__ import annotations

from dataclasses import dataclass

from reprise.campaign.metrics import Redundancy


@dataclass(frozen=True, slots=True)
class Figure:
    """``key`` in JSON; ``value`` as people read it, ``-`` where there is none; ``number`` as it
    is."""

    key: str
    symbol: str
    number: float | None
    value: str
    meaning: str


LEGEND = "B reports of U defects, B−U of them repeats; the others"
"""For a line below a table; the others are explained in ``EXPLAINED``."""
EXPLAINED = "docs/report.md"


def figures(found: Redundancy) -> tuple[Figure, ...]:
    """All of them, in the order of the paper's tables."""

    def figure(key: str, symbol: str, number: float | None, style: str, meaning: str) -> Figure:
        return Figure(key, symbol, number, "-" if number is None else f"{number:{style}}", meaning)

    return (
        figure("reports", "B", found.reports, ",d", "reports: tests that came to a finding"),
        figure("defects", "U", found.defects, ",d", "distinct defects behind them"),
        figure(
            "repeats", "B−U", found.repeats, ",d", "reports of a defect that was reported before"
        ),
        figure("repeat_share", "(B−U)/B", found.repeat_share, ".1%", "share of such repeats"),
        figure(
            "effective_defects", "²D", found.effective_defects, ".2f",
            "how many defects, equally often reported, would look as skewed",
        ),
        figure(
            "weighted_redundancy", "R_w", found.weighted_redundancy, ".1f",
            "how many reports the defect of an average report has",
        ),
        figure(
            "duplicate_pairs", "C", found.duplicate_pairs, ".1%",
            "chance that two reports drawn at random are of one defect",
        ),
        figure(
            "largest_share", "max", found.largest_share, ".1%",
            "share of the reports that the most reported defect has",
        ),
    )  # fmt: skip
