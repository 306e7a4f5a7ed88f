"""``reprise mine hardware``: facts about devices, from their specifications."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import (
    counted,
    output_option,
    show_few,
    show_json,
    show_table,
    text_or_json,
    write_output,
)


@click.command(short_help="Read hardware specifications into facts and constraints.")
@click.argument("specs", nargs=-1, metavar="SPEC...", type=click.Path(exists=True, path_type=Path))
@click.option("--as", "name", metavar="NAME", help="The format of every SPEC.")
@click.option(
    "--formats",
    "folders",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="A folder with further formats, or one such file. May be repeated.",
)
@click.option("--list-formats", is_flag=True, help="Say which formats there are.")
@click.option(
    "--device", metavar="NAME", help="What to call the device that the SPECs describe together."
)
@output_option("Where to write the rules. Default: standard output.")
@text_or_json
def hardware(
    specs: tuple[Path, ...],
    name: str | None,
    folders: tuple[Path, ...],
    list_formats: bool,
    device: str | None,
    output: Path | None,
    form: str,
) -> int:
    """Read hardware specifications: `hw(target, key, value)` facts, constraints and monitors.

    SPECs are files, or folders to search for files in a known format. Each fact says which line it
    comes from. `--env device=NAME` then gives `device(key)` in rules its value.

    --format json writes the facts for tools to standard output; the rules then go to -o alone.

    Exit code: 0 written, 2 something in a SPEC could not be read (what could be is written).
    """
    from reprise.lang.diagnostics import Severity
    from reprise.mining.hardware.formats import FormatError, load_formats, load_keys, named
    from reprise.mining.hardware.mine import mine_specifications
    from reprise.mining.hardware.write import as_json, rules_text

    try:
        formats = load_formats(folders)
        chosen = named(formats, name) if name else None
    except FormatError as error:
        raise click.ClickException(str(error)) from error
    if list_formats and form == "json":
        show_json([{"name": f.name, "title": f.title, "files": list(f.files)} for f in formats])
        return Exit.OK
    if list_formats:
        show_table([[f.name, f.title, ", ".join(f.files)] for f in formats])
        return Exit.OK
    if not specs:
        raise click.UsageError("Missing argument 'SPEC...'.")
    mined = mine_specifications(specs, formats, chosen=chosen, target=device)
    show_few(mined.diagnostics)
    if mined.facts:
        text = rules_text(mined, load_keys())
        if output is None:
            if form == "text":
                click.echo(text, nl=False)
        else:
            read = [*specs, *(Path(device.place.file) for device in mined.devices)]
            write_output(output, text, read)
            said = counted(len(mined.facts), "fact"), counted(len(mined.targets), "target")
            click.echo(f"{said[0]} about {said[1]} written to {output}", err=form == "json")
    elif not mined.diagnostics:
        raise click.ClickException("no hardware specification among these files")
    if form == "json":
        show_json(as_json(mined))
    failed = any(d.severity is Severity.ERROR for d in mined.diagnostics)
    return Exit.INPUT if failed else Exit.OK
