"""``reprise report``: what a run came to, on the terminal, as a page or as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.main import Exit
from reprise.lang.display import printable

if TYPE_CHECKING:
    from reprise.campaign.report.summary import Report

PAGE = "report.html"


@click.command(short_help="Say what a run came to.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    help="Only this one. [default: text, and a page in DIR/report.html]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write to this file (-: standard output); without --format, the page.",
)  # fmt: skip
def report(folder: Path, form: str | None, output: Path | None) -> int:
    """Say what the run in DIR came to.

    Verdicts, defects ranked by how often they were reported, what was suppressed by which rule,
    and how redundant the reports are. The page has each finding's program drawn, its evidence and
    its reproducer; it is one file and works offline. A run may be reported while it goes on.

    Exit code: 0 reported, 2 there is no run in DIR, or FILE cannot be written.
    """
    from reprise.campaign.report.summary import Report
    from reprise.campaign.store import Run

    found = Report(Run.open(folder))
    if form is None:
        click.echo(_text(found, None), nl=False)
        place = output or folder / PAGE
        try:
            _write(_page(found), place)
        except OSError as error:
            if output is not None:
                raise
            reason = printable(f"{error.filename or place}: {error.strerror or error}")
            click.echo(f"reprise: no page was written: {reason}; say where with -o", err=True)
        else:
            if str(place) != "-":
                click.echo(f"page: {printable(str(place))}")
        return Exit.OK
    default = folder / PAGE if form == "html" else Path("-")
    place = output or default
    make = {"text": lambda r: _text(r, place), "json": _json, "html": _page}[form]
    _write(make(found), place)
    if form == "html" and output is None:
        click.echo(f"page: {printable(str(place))}")
    return Exit.OK


def _text(found: Report, place: Path | None) -> str:
    """The summary; in colour if it goes to a terminal that shows it."""
    from reprise.campaign.report.text import console, show

    screen = console()
    if place is not None and str(place) != "-":
        screen = console(io.StringIO())
    with screen.capture() as written:
        show(found, screen)
    return written.get()


def _json(found: Report) -> str:
    from reprise.campaign.report.document import document
    from reprise.cli.output import jsonable

    text = json.dumps(jsonable(document(found)), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n"


def _page(found: Report) -> str:
    from reprise.campaign.report.page import page

    return page(found)


def _write(text: str, place: Path) -> None:
    """To a file, whose readers see the old text or the new one; ``-``: standard output."""
    from reprise.cli.output import replace_file

    if str(place) == "-":
        click.echo(text, nl=False)
        return
    if not place.exists():
        place.touch()
    replace_file(place, text)
