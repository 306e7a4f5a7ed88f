"""``reprise compare``: runs side by side."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import show_json, text_or_json


@click.command(short_help="Compare runs: guided, unguided, many seeds.")
@click.argument("runs", metavar="RUN RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--verdict", "verdicts", multiple=True, type=click.Choice(["crash", "wrong_result", "hang"]),
    help="Count only these findings (the first paper: crash); may be repeated.",
)  # fmt: skip
@click.option("--partial", is_flag=True, help="Take runs that were stopped, or still go on, too.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="S", help="For the intervals."
)
@text_or_json
def compare(
    runs: tuple[Path, ...], verdicts: tuple[str, ...], partial: bool, seed: int, form: str
) -> int:
    """Compare runs of one target that differ in guidance, rules, options or seed.

    Runs that differ in their seed only are one configuration. Each configuration is compared with
    the unguided one (else the first): reports removed, defects found by either or both, defects
    lost and gained at equal tests, tests executed and candidates rejected. Intervals are of 95 %:
    the bootstrap over seeds for means, Wilson's for proportions.

    Exit code: 0 compared, 2 a run is missing, incomplete or of another target.
    """
    from reprise.campaign.compare import Comparisons
    from reprise.campaign.report.comparison import document, show
    from reprise.campaign.report.text import console
    from reprise.campaign.store import Run
    from reprise.oracle.verdict import Verdict

    found = Comparisons(
        [Run.open(path) for path in runs], map(Verdict, verdicts), partial=partial, seed=seed
    )
    if form == "json":
        show_json(document(found))
    else:
        screen = console()
        with screen.capture() as written:
            show(found, screen)
        click.echo(written.get(), nl=False)
    return Exit.OK
