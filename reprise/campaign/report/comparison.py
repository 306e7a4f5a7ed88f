"""A comparison of runs as text, in the manner of the first paper's Tables 3 and 4, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from reprise.campaign.compare import (
    ENOUGH,
    Comparison,
    Comparisons,
    Configuration,
    Estimate,
    Fate,
    Outcome,
)
from reprise.campaign.metrics import Rate
from reprise.campaign.progress import NAMES
from reprise.campaign.report.document import metrics
from reprise.campaign.report.figures import figures
from reprise.campaign.report.summary import in_line, plain
from reprise.campaign.report.text import legend, plain_table, put
from reprise.lang.display import printable
from reprise.oracle.verdict import Verdict

VERSION = 1
_LISTED = 20
"""Defects of a kind that are listed; the JSON has all."""


# --- text ---------------------------------------------------------------------------------------


def show(found: Comparisons, to: Console) -> None:
    """The tables, and what became of each defect."""
    configurations = found.configurations
    seeds = sorted({seed for c in configurations for seed in c.seeds})
    to.print(Text(printable(f"{found.target}: {len(found.runs)} runs, "
                            f"{_seeds(seeds)}"), style="bold"))  # fmt: skip
    if set(found.verdicts) != {v for v in Verdict if v.is_finding}:
        to.print(Text(f"counted: {', '.join(NAMES[v] for v in found.verdicts)}", style="dim"))
    to.print()
    _table3(found, to)
    _table4(found, to)
    for comparison in found.comparisons:
        _compared(comparison, to)


def _table3(found: Comparisons, to: Console) -> None:
    """Reports with and without guidance: all seeds of a configuration together, and b_d."""
    configurations = found.configurations
    keys = _ranked(configurations)
    removed = {c.other: c for c in found.comparisons}
    heads = ["configuration", "seeds", "tests", "B", "U", "B−U", "(B−U)/B", "²D", "R_w", "C",
             "max", "B removed", "B−U removed"]  # fmt: skip
    rows = []
    for configuration in configurations:
        comparison = removed.get(configuration.name)
        rows.append(
            [
                Text(printable(configuration.name)),
                Text(str(len(configuration.runs))),
                Text(f"{configuration.tests:,}"),
                *(Text(figure.value) for figure in figures(configuration.pooled)),
                Text("" if comparison is None else _percent(comparison.removed)),
                Text("" if comparison is None else _percent(comparison.repeats_removed)),
            ]
        )
    to.print(Text("Reports, all seeds together (removed: at equal tests)"))
    put(plain_table(heads, rows, right=range(1, len(heads))), to)
    legend(to)
    to.print()
    if not keys:
        return
    names = [f"b{number}" for number in range(1, min(len(keys), 8) + 1)]
    shown = [
        [Text(printable(c.name)), *(Text(f"{c.counts[key]:,}") for key in keys[:8])]
        for c in configurations
    ]
    to.print(Text("Reports by defect"))
    put(plain_table(["configuration", *names], shown, right=range(1, len(names) + 1)), to)
    for name, key in zip(names, keys, strict=False):
        line = in_line(f"{_known(key)}{plain(found.title(key))}", to.width - 8)
        to.print(Text(f"  {name}: {line}", style="dim"), soft_wrap=True)
    if len(keys) > len(names):
        to.print(Text(f"  and {len(keys) - len(names)} more defects", style="dim"))
    to.print()


def _table4(found: Comparisons, to: Console) -> None:
    """Tests executed in the budget, candidates taken back, and reports: means over the seeds."""

    def means(of: Configuration, *measures: tuple[Callable[[Outcome], float], str]) -> list[Text]:
        return [Text(_interval(of.mean(measure, found.rng), style)) for measure, style in measures]

    fewer = {c.other: c for c in found.comparisons}
    executed, reported = [], []
    for configuration in found.configurations:
        comparison = fewer.get(configuration.name)
        name = Text(printable(configuration.name))
        share = Text("" if comparison is None else _percent(comparison.executed))
        tests, speed, rejected = means(
            configuration,
            (lambda o: o.run.tests, ",.0f"),
            (_speed, ",.1f"),
            (lambda o: o.rejected, ",.1f"),
        )
        executed.append([name, tests, share, speed, rejected])
        figures_ = means(
            configuration,
            (lambda o: o.redundancy.reports, ",.1f"),
            (lambda o: o.redundancy.defects, ",.1f"),
            (lambda o: o.redundancy.repeats, ",.1f"),
        )
        reported.append([name, *figures_, Text(_rate(configuration.report_rate))])
    heads = ("configuration", "tests executed", "fewer", "a second", "rejected candidates")
    to.print(Text("Tests of a run, on average over the seeds [95 %]"))
    put(plain_table(heads, executed, right=range(1, 5)), to)
    to.print()
    to.print(Text("Reports of a run, on average over the seeds [95 %]"))
    put(plain_table(("configuration", "B", "U", "B−U", "B a test"), reported, range(1, 5)), to)
    if all(len(c.runs) < ENOUGH for c in found.configurations):
        to.print(Text("Means have no intervals: that takes three seeds or more.", style="dim"))
    to.print()


def _compared(comparison: Comparison, to: Console) -> None:
    head = f"{comparison.other} against {comparison.baseline}"
    to.print(Text(printable(head), style="bold"))
    if not comparison.seeds:
        to.print(Text("  They share no seed: nothing to compare at equal tests."))
        to.print()
        return
    to.print(Text(f"  at equal tests: {comparison.tests:,} each, {_seeds(comparison.seeds)}"))
    for name, estimate in (
        ("reports removed", comparison.removed),
        ("of known defects", comparison.known_removed),
    ):
        said = "none to remove" if estimate is None else _percent(estimate)
        to.print(Text(f"  {name}: {said}"))
    to.print(Text(f"  reports of known defects that are left: {_rate(comparison.known)} of tests"))
    for title, fates, note in (
        ("found by both", comparison.both, ""),
        ("only by the baseline, avoided by a rule", comparison.avoided, ""),
        ("LOST: only by the baseline", comparison.lost, "chance"),
        ("GAINED: only by the other", comparison.gained, ""),
    ):
        style = "bold" if title[0].isupper() and fates else ""
        to.print(Text(f"  {title}: {len(fates)}", style=style))
        for fate in fates[:_LISTED]:
            to.print(Text(f"    {_fate(fate, comparison, bool(note), to.width)}"), soft_wrap=True)
        if len(fates) > _LISTED:
            to.print(Text(f"    and {len(fates) - _LISTED} more", style="dim"))
    to.print(Text(f"  known bugs that neither met: {len(comparison.unmet)}"))
    to.print()


def _fate(fate: Fate, comparison: Comparison, chance: bool, width: int) -> str:
    seeds = len(comparison.seeds)
    counts = f"{fate.baseline:,} to {fate.other:,} reports"
    where = f"in {fate.baseline_seeds} and {fate.other_seeds} of {seeds} seeds"
    missed = ""
    if chance and fate.by_chance is not None:
        missed = f", missed by chance with probability {fate.by_chance:.1%}"
    head = f"{counts}, {where}{missed}: {_known(fate.key)}"
    return f"{head}{in_line(plain(fate.title), max(24, width - len(head) - 5))}"


def _ranked(configurations: Sequence[Configuration]) -> list[str]:
    """Defects, the most reported in the baseline first."""
    keys = {key for c in configurations for key in c.counts}
    return sorted(keys, key=lambda key: (*(-c.counts[key] for c in configurations), key))


def _known(key: str) -> str:
    return f"{printable(key.removeprefix('rule:'))}: " if key.startswith("rule:") else ""


def _seeds(seeds: Sequence[int]) -> str:
    word = "seed" if len(seeds) == 1 else "seeds"
    return f"{word} {', '.join(map(str, seeds))}"


def _speed(outcome: Outcome) -> float:
    return outcome.run.tests / outcome.run.seconds if outcome.run.seconds else 0.0


def _interval(estimate: Estimate, style: str) -> str:
    value = f"{estimate.value:{style}}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{estimate.low:{style}}, {estimate.high:{style}}]"


def _percent(estimate: Estimate | None) -> str:
    return "-" if estimate is None else _interval(estimate, ".1%")


def _rate(found: Rate) -> str:
    value = found.value
    return "-" if value is None else f"{value:.2%} [{found.low:.2%}, {found.high:.2%}]"


# --- JSON ---------------------------------------------------------------------------------------


def document(found: Comparisons) -> dict[str, Any]:
    """The whole comparison."""
    return {
        "version": VERSION,
        "target": found.target,
        "verdicts": [verdict.value for verdict in found.verdicts],
        "configurations": [_configuration(c, found) for c in found.configurations],
        "comparisons": [_comparison(c) for c in found.comparisons],
    }


def _configuration(configuration: Configuration, found: Comparisons) -> dict[str, Any]:
    def mean(measure: Callable[[Outcome], float]) -> dict[str, float | None]:
        estimate = _estimate(configuration.mean(measure, found.rng))
        assert estimate is not None
        return estimate

    return {
        "name": configuration.name,
        "guided": configuration.guided,
        "seeds": list(configuration.seeds),
        "tests": configuration.tests,
        "metrics": metrics(configuration.pooled),
        "report_rate": _proportion(configuration.report_rate),
        "mean": {
            "tests": mean(lambda o: o.run.tests),
            "tests_per_second": mean(_speed),
            "rejected": mean(lambda o: o.rejected),
            "reports": mean(lambda o: o.redundancy.reports),
            "defects": mean(lambda o: o.redundancy.defects),
            "repeats": mean(lambda o: o.redundancy.repeats),
        },
        "runs": [
            {
                "run": str(outcome.run.path),
                "seed": outcome.seed,
                "tests": outcome.run.tests,
                "seconds": outcome.run.seconds,
                "rejected": outcome.rejected,
                "metrics": metrics(outcome.redundancy),
            }
            for outcome in configuration.runs
        ],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline,
        "other": comparison.other,
        "seeds": list(comparison.seeds),
        "tests": comparison.tests,
        "removed": _estimate(comparison.removed),
        "repeats_removed": _estimate(comparison.repeats_removed),
        "known_removed": _estimate(comparison.known_removed),
        "known_rate": _proportion(comparison.known),
        "fewer_tests": _estimate(comparison.executed),
        "defects": [
            {
                "key": fate.key,
                "title": fate.title,
                "found_by": fate.found_by,
                "avoided": fate.avoided,
                "baseline_reports": fate.baseline,
                "other_reports": fate.other,
                "baseline_seeds": fate.baseline_seeds,
                "other_seeds": fate.other_seeds,
                "missed_by_chance": fate.by_chance,
            }
            for fate in comparison.fates
        ],
        "lost": [fate.key for fate in comparison.lost],
        "gained": [fate.key for fate in comparison.gained],
        "unmet": list(comparison.unmet),
    }


def _proportion(found: Rate) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _estimate(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
