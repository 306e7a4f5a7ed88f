"""``reprise mine source``: constraints and monitors from a compiler's sources."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import (
    counted,
    counting,
    output_option,
    show_diagnostics,
    show_json,
    text_or_json,
    write_output,
)

_PATHS = click.Path(exists=True, path_type=Path)


@click.command(short_help="Mine a compiler's sources for constraints and monitors.")
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--extractor",
    "name",
    metavar="NAME|FOLDER",
    required=True,
    help="What to look for: a shipped extractor, or a folder with an extractor.toml.",
)
@output_option("Where to write the rules. Default: standard output.")
@text_or_json
@click.option("--commit", metavar="ID", help="The commit, if CHECKOUT is no git work tree.")
@click.option(
    "--hardware",
    multiple=True,
    metavar="PATH",
    type=_PATHS,
    help="Facts of `reprise mine hardware`, to hold the sources against; repeatable.",
)
@click.option(
    "--docs",
    multiple=True,
    metavar="PATH",
    type=_PATHS,
    help="Constraints of `reprise mine docs`, to refer to; repeatable.",
)
@click.option(
    "--max-bytes",
    metavar="N",
    type=click.IntRange(min=1),
    help="Skip larger files, which are mostly generated. Default: 2000000.",
)
@click.option("--unused", is_flag=True, help="List the places that were found but give nothing.")
def source(
    checkout: Path,
    name: str,
    output: Path | None,
    form: str,
    commit: str | None,
    hardware: tuple[Path, ...],
    docs: tuple[Path, ...],
    max_bytes: int | None,
    unused: bool,
) -> int:
    """Mine CHECKOUT, the sources of a compiler, for constraints and monitors.

    Each says which line it comes from, by which template, and how far to trust it. A second run
    reads only files that have changed; a run that was stopped goes on where it was.

    --format json writes a summary for tools to standard output; the rules then go to -o alone.

    Exit code: 0 written, 2 a bad extractor, query or file, or nothing to read in CHECKOUT.
    """
    from reprise.lang.diagnostics import RulesError
    from reprise.mining.source.extractor import load_extractor
    from reprise.mining.source.files import MOST_BYTES, nothing_asked_for
    from reprise.mining.source.mine import mine
    from reprise.mining.source.summary import as_json, declarations, notes, summary, unused_lines

    try:
        extractor = load_extractor(name)
        mined = mine(
            checkout,
            extractor,
            commit=commit,
            hardware=hardware,
            docs=docs,
            most_bytes=max_bytes or MOST_BYTES,
            progress=lambda files: counting(files, "file"),
        )
    except RulesError as error:
        show_diagnostics(error.diagnostics)
        return Exit.INPUT
    except KeyboardInterrupt:
        click.echo("interrupted: what was read is kept, and the same command goes on", err=True)
        return Exit.INTERRUPTED
    for line in notes(mined):
        click.echo(line, err=True)
    if not mined.files:
        hint = f"\n{mined.better.hint}" if mined.better is not None else ""
        raise click.ClickException(f"{nothing_asked_for(checkout, extractor)}{hint}")
    if output is not None:
        write_output(output, mined.text, [checkout / path for path in mined.files])
    elif form == "text":
        click.echo(mined.text, nl=False)
    if form == "json":
        show_json(as_json(mined))
        return Exit.OK
    for line in [*(unused_lines(mined) if unused else ()), *summary(mined)]:
        click.echo(line, err=output is None)
    if output is not None:
        click.echo(f"{counted(declarations(mined), 'declaration')} written to {output}")
    return Exit.OK
