"""``reprise mine new``: the start of an extractor for a compiler that has none."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, counting, show_table


@click.command(short_help="Start an extractor for another compiler.")
@click.argument("name")
@click.option(
    "--suggest",
    "checkout",
    metavar="CHECKOUT",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Look through these sources for names to put into it.",
)
@click.option(
    "-o",
    "--output",
    "--out",
    "--dir",
    "folder",
    metavar="DIR",
    default="extractors",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where extractors are: NAME becomes a folder in it.",
)
def new(name: str, checkout: Path | None, folder: Path) -> int:
    """Write DIR/NAME/extractor.toml, with which `reprise mine source` reads a compiler's sources.

    With --suggest it holds names that occur in CHECKOUT where such things are likely: functions
    that pad, split, unroll or fuse by their names, and by what they do (rounding up, lcm). Those
    that are not certain are comments. Read them; that is most of the work.

    Exit code: 0 written, 2 NAME is taken or no name, or CHECKOUT has no sources.
    """
    from reprise.mining.new.scaffold import ScaffoldError, layout, scaffold
    from reprise.mining.new.suggest import suggest

    try:
        where = layout(checkout) if checkout is not None else None
        found = None
        if where is not None:
            with counting(len(where.files), "file") as tell:
                found = suggest(where.files, tell)
        path, _ = scaffold(name, folder, where, found)
    except ScaffoldError as error:
        raise click.ClickException(str(error)) from error
    if found is not None and where is not None:
        rows = [
            [s.keyword_set, s.name, str(s.count), s.places[0], s.why if s.sure else f"? {s.why}"]
            for s in found.names
        ]
        show_table([["set", "name", "times", "first at", "chosen for"], *rows])
        for pragma in found.pragmas:
            click.echo(f"pragma at {pragma}")
        click.echo(f"{counted(len(where.files), 'file')}, {found.lines:,} lines read", err=True)
    source = checkout if checkout is not None else "CHECKOUT"
    click.echo(
        f"extractor written to {path}; next: reprise mine source {source} --extractor {path.parent}"
    )
    return Exit.OK
