"""Verdicts over the time of a run, as stacked bars; pure SVG and HTML, no script.

The bars stretch with the page; what is written around them does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10

from reprise.campaign.progress import NAMES, clock
from reprise.campaign.records import Slice
from reprise.campaign.report.markup import Markup, tag
from reprise.oracle.verdict import Verdict

_HEIGHT = 100.0
"""Of the bars, in units of their own; a slice is 10 wide."""

FINDINGS = tuple(v for v in Verdict if v.is_finding)


def chart(
    title: str, slices: Sequence[Slice], verdicts: Sequence[Verdict], marks: bool = False
) -> Markup:
    """Tests of these verdicts in each slice; ``marks``: a dot above the slices with new defects."""
    totals = [sum(s.verdicts.get(v, 0) for v in verdicts) for s in slices]
    top = _round_up(max(totals, default=0))
    bars = [_bar(n, s, verdicts, top) for n, s in enumerate(slices)]
    end = slices[-1].end if slices else 0.0
    total = sum(totals)
    new = [
        tag(
            "circle", tag("title", f"new: {', '.join(s.new_defects)}"),
            cx=_percent((n + 0.5) / len(slices)), cy=5, r=3.5,
        )
        for n, s in enumerate(slices)
        if marks and s.new_defects
    ]  # fmt: skip
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", tag("span", f"{top:,}"), tag("span", "0"), class_="scale", aria_hidden="true"),
        tag("div",
            tag("svg", *new, class_="marks", aria_hidden="true") if marks else None,
            tag("svg", *bars, class_="bars", role="img", preserveAspectRatio="none",
                aria_label=f"{title}: {total} tests in {clock(end)}",
                viewBox=f"0 0 {10 * max(len(slices), 1)} {_HEIGHT:g}"),
            class_="plot"),
        tag("div", tag("span", "0:00:00"), tag("span", clock(end / 2)), tag("span", clock(end)),
            class_="time", aria_hidden="true"),
        class_="chart",
    )  # fmt: skip


def legend(counts: dict[Verdict, int]) -> Markup:
    """What the colours mean, with how many tests came to each."""
    entries = [
        tag("li", tag("i", class_=f"v-{v.value}"), tag("b", f"{n:,}"), " ", NAMES[v])
        for v, n in counts.items()
        if n
    ]
    return tag("ul", *entries, class_="legend")


def _bar(number: int, piece: Slice, verdicts: Sequence[Verdict], top: int) -> Markup | None:
    parts, y = [], _HEIGHT
    for verdict in verdicts:
        count = piece.verdicts.get(verdict, 0)
        if count:
            height = count / top * _HEIGHT
            y -= height
            parts.append(
                tag("rect", x=10 * number + 1, y=round(y, 2), width=8, height=round(height, 2),
                    class_=f"v-{verdict.value}")
            )  # fmt: skip
    if not parts:
        return None
    said = ", ".join(f"{n} {NAMES[v]}" for v, n in piece.verdicts.items() if v in verdicts)
    return tag("g", tag("title", f"{clock(piece.start)} to {clock(piece.end)}: {said}"), *parts)


def _round_up(number: int) -> int:
    """The next number that is easy to read on a scale."""
    if number <= 5:
        return max(number, 1)
    step = 10 ** int(log10(number)) // 2 or 1
    return ceil(number / step) * step


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
