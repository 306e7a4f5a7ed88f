"""A report for a terminal: what a triager wants to know on one screen."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reprise.campaign.progress import NAMES, clock
from reprise.campaign.report.figures import EXPLAINED, LEGEND, figures
from reprise.campaign.report.summary import NO_DEFECT, Ranked, Report, in_line, plain
from reprise.lang.display import printable
from reprise.oracle.verdict import Severity, Verdict

_SHOWN = 20
"""Defects in the table; the page and the JSON have all of them."""
_TOP = 3
_LEAST = 30
"""Width of a column that gives way."""
_COLOURS = {Verdict.CRASH: "red", Verdict.WRONG_RESULT: "yellow", Verdict.HANG: "magenta"}


def console(stream: IO[str] | None = None) -> Console:
    """A console that keeps lines whole where there is no terminal to be as wide as."""
    out = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = 120
    return out


def show(report: Report, to: Console) -> None:
    """Write the summary."""
    run = report.run
    guided = "guided" if run.info.guided else "unguided"
    heading = f"{run.info.target}, seed {run.info.seed}, {guided}"
    to.print(Text(printable(heading), style="bold"))
    to.print(Text(printable(f"{report.versions}; {report.state}"), style="dim"))
    to.print()
    rate = "" if report.rate is None else f", {report.rate:.1f} a second"
    share = run.target_seconds / run.seconds if run.seconds else 0.0
    inside = f", {share:.0%} of it in the target" if 0 < share <= 1 else ""
    to.print(Text(f"{run.tests:,} tests in {clock(run.seconds)}{rate}{inside}"))
    to.print(Text(", ".join(f"{n:,} {NAMES[v]}" for v, n in run.verdicts.items() if n) or "none"))
    to.print()
    _defects(report, to)
    _figures(report, to)
    _suppressed(report, to)
    _ours(report, to)
    _findings(report.top(_TOP), report, to)


def plain_table(
    heads: Sequence[str], rows: Sequence[Sequence[Text]], right: Collection[int] = ()
) -> Table:
    """Columns with nothing around them; those numbered in ``right`` are numbers. Only the last one
    gives way where the terminal is narrow."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, head in enumerate(heads):
        last = number == len(heads) - 1 and number not in right
        wide = max([cell_len(head), *(row[number].cell_len for row in rows)])
        table.add_column(
            Text(head),
            justify="right" if number in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if last else wide,
        )
    for row in rows:
        table.add_row(*row)
    return table


def put(table: Table, to: Console) -> None:
    """Print a table whole: one that is too wide for the terminal is wrapped by it, not cut."""
    least = sum((column.min_width or _LEAST) + 2 for column in table.columns)
    if least <= to.width:
        to.print(table)
        return
    options = to.options.update(width=least)
    for line in to.render_lines(table, options, pad=False):
        to.print(Text.assemble(*((s.text, s.style or "") for s in line)), soft_wrap=True)


def _defects(report: Report, to: Console) -> None:
    if not report.defects:
        to.print(Text("No finding.", style="bold green"))
        to.print()
        return
    rows = [_row(ranked) for ranked in report.defects[:_SHOWN]]
    heads = ("defect", "reports", "what", "known as", "first test", "what happened")
    used = sum(max(len(h), *(r[i].cell_len for r in rows)) + 2 for i, h in enumerate(heads[:5]))
    for row, ranked in zip(rows, report.defects, strict=False):
        row.append(Text(in_line(ranked.headline, max(30, to.width - used - 2))))
    put(plain_table(heads, rows, right=(1, 4)), to)
    more = len(report.defects) - _SHOWN
    if more > 0:
        to.print(Text(f"and {more:,} more, less often reported", style="dim"))
    to.print()


def _row(ranked: Ranked) -> list[Text]:
    defect = ranked.defect
    low = ", low" if defect.severity is Severity.LOW else ""
    what = "/".join(NAMES[v] for v in defect.verdicts) + low
    return [
        Text(defect.id),
        Text(f"{defect.count:,}"),
        Text(what, style=_COLOURS.get(defect.verdicts[0], "")),
        Text(printable(ranked.rule)) if ranked.rule else Text(ranked.known_as, style="bold"),
        Text(f"{defect.first_index:,}"),
    ]


def _figures(report: Report, to: Console) -> None:
    run = report.run
    if not run.defects:
        return
    every = figures(run.redundancy)
    rows = [[Text("all findings"), *(Text(f.value) for f in every)]]
    crashes = run.redundancy_of(Verdict.CRASH)
    if 0 < crashes.reports < run.redundancy.reports:
        rows.append([Text("crashes"), *(Text(f.value) for f in figures(crashes))])
    put(plain_table(("", *(f.symbol for f in every)), rows, right=range(1, 9)), to)
    legend(to)
    to.print()


def legend(to: Console) -> None:
    """What the figures' symbols stand for."""
    to.print(Text(f"({LEGEND}: {EXPLAINED})", style="dim"))


def _suppressed(report: Report, to: Console) -> None:
    if not report.suppressed:
        return
    rows = [
        (Text(printable(rule)), Text(f"{rejected:,}"), Text(f"{completed:,}"))
        for rule, rejected, completed in report.suppressed[:_SHOWN]
    ]
    heads = ("suppressed by", "candidates", "accepted all the same")
    put(plain_table(heads, rows, right=(1, 2)), to)
    more = report.suppressed[_SHOWN:]
    if more:
        to.print(Text(f"and {sum(r for _, r, _ in more):,} by {len(more)} more rules", style="dim"))
    to.print()


def _ours(report: Report, to: Console) -> None:
    if not report.ours:
        return
    to.print(Text(f"{NO_DEFECT}:", style="bold"))
    for ours in report.ours[:_TOP]:
        signature = ours.signature
        what = f"{signature.count:,} {NAMES[signature.verdict]}, first in test "
        line = f"  {what}{signature.first_index}: {plain(signature.title)}"
        to.print(Text(in_line(line, to.width)), soft_wrap=True)
        if ours.folder is not None:
            command = report.command(ours.folder)
            style = "dim" if command is None else "cyan"
            to.print(
                Text(f"    {printable(command or str(ours.folder))}", style=style), soft_wrap=True
            )
    to.print()


def _findings(top: Sequence[Ranked], report: Report, to: Console) -> None:
    if not top:
        return
    to.print(Text("See them fail again:", style="bold"))
    for ranked in top:
        defect, finding = ranked.defect, ranked.finding
        flaky = finding and finding.confirmation and finding.confirmation.flaky
        known = f"known: {ranked.rule}" if ranked.rule else ranked.known_as
        head = f"{defect.id} ({known}{', flaky' if flaky else ''}): {ranked.headline}"
        to.print(Text(f"  {in_line(head, to.width - 3)}"), soft_wrap=True)
        command = None if ranked.folder is None else report.command(ranked.folder)
        if command is not None:
            to.print(Text(f"    {printable(command)}", style="cyan"), soft_wrap=True)
        else:
            to.print(Text(f"    {printable(ranked.problem or 'no folder was kept')}", style="dim"))
    to.print()
