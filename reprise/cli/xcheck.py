"""``reprise rules import-xcheck`` and ``export-xcheck``."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import show_diagnostics

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command("import-xcheck", short_help="Turn XCheck's tuple notation into rules.")
@file_argument
@click.option("--class", "klass", metavar="CLASS", help="The class of all that is imported.")
def import_xcheck(file: Path, klass: str | None) -> int:
    """Turn constraints and assertions in XCheck's notation into rules, on standard output.

    Each declaration keeps its tuple in a line `/// xcheck: …`, so that export-xcheck gives it back.

    Exit code: 0 written (warnings, if any, on standard error), 2 FILE cannot be read.
    """
    from reprise.lang.format import format_file
    from reprise.lang.source import read_source
    from reprise.lang.xcheck_rules import import_notation

    imported = import_notation(read_source(file), str(file), klass)
    show_diagnostics(imported.warnings)
    click.echo(format_file(imported.file), nl=False)
    return Exit.OK


@click.command(
    "export-xcheck", short_help="Write constraints and monitors in XCheck's tuple notation."
)
@file_argument
def export_xcheck(file: Path) -> int:
    """Write the constraints and monitors of a rule file in XCheck's notation.

    Exit code: 0 written, 2 FILE does not parse, or holds a constraint that the notation has no form
    for (the others are written all the same).
    """
    from reprise.lang.diagnostics import Severity
    from reprise.lang.parse import parse_file
    from reprise.lang.xcheck_rules import export_rules

    exported = export_rules(parse_file(file))
    show_diagnostics(exported.diagnostics)
    click.echo(exported.text, nl=False)
    failed = any(d.severity is Severity.ERROR for d in exported.diagnostics)
    return Exit.INPUT if failed else Exit.OK
