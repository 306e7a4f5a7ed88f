"""``reprise xcheck classes``: a run's models by what held of every condition."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import show_json, text_or_json


@click.command(short_help="Partition a run's models by what held of every condition.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--by",
    type=click.Choice(["all", "constraints", "monitors"]),
    default="all",
    show_default=True,
    help="The conditions that the classes go by.",
)
@click.option(
    "--between", nargs=2, metavar="CLASS CLASS", help="Say only what tells two classes apart."
)
@click.option("--all", "every", is_flag=True, help="List every class, not only the largest.")
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Also draw it: an HTML page, or an SVG picture alone if FILE ends so.",
)  # fmt: skip
@text_or_json
def classes(
    run: Path,
    by: str,
    between: tuple[str, str] | None,
    every: bool,
    picture: Path | None,
    form: str,
) -> int:
    """Partition the models of a run of `reprise xcheck` by behaviour.

    Models are in one class if the same constraints are satisfied, violated or not reached, and, if
    the compiler was instrumented (`reprise instrument`), its monitors saw the same. The classes
    are compared with those of two plainer tests: whether the model compiled, and which passes were
    completed.

    Exit code: 0 told, 2 there is no such run or class.
    """
    from reprise.campaign.report.text import console
    from reprise.patterns.check import UsageError
    from reprise.xcheck import classes_report
    from reprise.xcheck.classes import By, classes_of
    from reprise.xcheck.store import XRun

    try:
        found = classes_of(XRun.open(run), By(by))
        pair = between and tuple(classes_report.number_of(name, found) for name in between)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if picture is not None:
        from reprise.xcheck.picture import drawing, page

        text = drawing(found) if picture.suffix == ".svg" else page(found)
        picture.write_text(text, "utf-8")
    if form == "json":
        told = (
            classes_report.differences_document(found, pair[0], pair[1])
            if pair
            else classes_report.document(found)
        )
        show_json(told)
        return Exit.OK
    screen = console()
    with screen.capture() as written:
        if pair:
            classes_report.show_differences(found, pair[0], pair[1], screen)
        else:
            classes_report.show(found, screen, every)
    for line in written.get().splitlines():
        click.echo(line.rstrip())  # a table's lines are all of one width
    return Exit.OK
