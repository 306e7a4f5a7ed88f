"""``reprise triage``: from a run's findings to bug reports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted

if TYPE_CHECKING:
    from reprise.campaign.triage.novelty import Item
    from reprise.campaign.triage.session import Choice

_KEYS = {"w": "report", "s": "skip", "k": "known", "n": "not_a_bug", "q": "quit"}
_QUESTION = "write a report, skip, known, not a bug, quit"


class _Watch:
    def show(self, lines: Sequence[str], /) -> None:
        from reprise.lang.display import printable

        for line in lines:
            click.echo(printable(line))


def _ask(item: Item, /) -> Choice | None:
    """Ask the person at the terminal; end of input means quit."""
    from reprise.campaign.triage.decisions import Decision
    from reprise.campaign.triage.session import Choice

    key = click.prompt(
        _QUESTION,
        type=click.Choice(list(_KEYS)),
        default="w" if item.is_new and not item.is_flaky else "s",
    )
    if _KEYS[key] == "quit":
        return None
    decision = Decision(_KEYS[key])
    note = ""
    if decision in (Decision.KNOWN, Decision.NOT_A_BUG):
        note = click.prompt("why (an address, a word)", default="", show_default=False)
    return Choice(decision, note)


@click.command(short_help="Go through a run's findings, and write bug reports.")
@click.argument("run", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--finding", metavar="ID", help="Only this one: any finding's number, or a defect (D3)."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Where reports go. [default: DIR/reports]",
)  # fmt: skip
@click.option(
    "--rules", "paths", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A rule file or folder, instead of the shipped bugs; may be repeated.",
)  # fmt: skip
@click.option(
    "--yes",
    is_flag=True,
    help="Ask nothing: write a report on every new defect that fails every time.",
)
def triage(
    run: Path, finding: str | None, out: Path | None, paths: tuple[Path, ...], yes: bool
) -> int:
    """Go through the defects that a run in DIR found and write bug reports.

    What is new to the rules comes first, whenever it was found: defects that no known rule
    explains, then those that one may explain; among them those furthest from any rule. Each is
    shown with its program, the nearest rules and the condition of theirs that fails. On a terminal
    you are asked what to do with it; otherwise, and with --yes, every new defect gets a report, but
    for those that did not fail every time that they were run again: ask for these with --finding.
    What was decided is kept in DIR/triage.json, and not asked again.

    A report has the shape that the target's project asks for, and everything that a maintainer
    needs: a script, expected and actual results, the pass to blame, tolerances. A reduced version
    of a finding (`reprise reduce`) is used if there is one.

    Exit code: 0 no new defect is left open, 1 some are (flaky ones too), 2 there is no such run or
    finding.
    """
    from reprise.campaign.store import Run
    from reprise.campaign.triage.decisions import Decisions
    from reprise.campaign.triage.novelty import Listing
    from reprise.campaign.triage.session import REPORTS, Triage, report_all_new, still_open
    from reprise.data import data_path
    from reprise.lang.ruleset import load_rules
    from reprise.targets.discover import parse_target

    opened = Run.open(run)
    target = parse_target(opened.info.target.partition("@")[0])
    decisions = Decisions(run)
    listing = Listing(opened, load_rules(paths or (data_path("rules/bugs"),)), target.name)
    every = listing.items
    chosen = still_open(every, decisions)
    if finding is not None:
        one = listing.pick(finding)
        if one is None:
            known = ", ".join(item.defect.id for item in every) or "none"
            raise click.UsageError(
                f"there is no finding {finding} of a defect with a folder (defects: {known})"
            )
        chosen = [one]
    session = Triage(decisions, target, out or run / REPORTS)
    watch = _Watch()
    if not yes and sys.stdin.isatty() and sys.stdout.isatty():
        written = session.go(chosen, _ask, watch)
    elif finding is not None:
        path = session.report(chosen[0])
        written = [path]
        watch.show([f"written: {path}"])
    else:
        written = session.go(chosen, report_all_new, watch)
    left = [item for item in still_open(every, decisions) if item.is_new]
    flaky = sum(item.is_flaky for item in left)
    said = f"{counted(len(written), 'report')} written; {counted(len(left), 'new defect')} left"
    if flaky:
        said += f" ({flaky} flaky: not written up unless asked for with --finding)"
    if listing.without_folder:
        said += f"; {counted(len(listing.without_folder), 'defect')} without a folder"
    click.echo(said)
    return Exit.FOUND if left else Exit.OK
