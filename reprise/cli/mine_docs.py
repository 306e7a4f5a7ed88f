"""``reprise mine docs``."""

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


@click.command("docs", short_help="Mine ONNX's operator documentation.")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--as",
    "kind",
    type=click.Choice(["markdown", "pages"]),
    help="Read only documents of this form. Without PATHS: make them in this form.",
)
@output_option(
    "Write the rules here: to a folder or, all of them, to a file NAME.rules.",
    "PATH",
    path={"dir_okay": True},
)
@text_or_json
@click.option(
    "--opset",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take the newest version of each operator that this opset has.",
)
@click.option("--check", is_flag=True, help="Compare what was read with the installed onnx.")
@click.option(
    "--save-docs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Without PATHS: keep the documents that were made, in this folder.",
)
@click.option("--left-out", is_flag=True, help="List the operators without a signature, and why.")
def mine_docs(
    paths: tuple[Path, ...],
    kind: str | None,
    output: Path | None,
    form: str,
    opset: int | None,
    check: bool,
    save_docs: Path | None,
    left_out: bool,
) -> int:
    """Mine constraints and signatures from ONNX's operator documentation.

    PATHS are documents, or folders of them: Operators.md, Changelog.md, or pages as on onnx.ai.
    Without PATHS, the documents are made from the installed onnx package.

    --format json writes the summary for tools, with --check the differences too.

    Exit code: 0 everything was read (and agrees), 1 something disagrees without an explanation, 2
    something could not be read (what could be is written), or nothing.
    """
    from reprise.mining.docs import report
    from reprise.mining.docs.agreement import compare
    from reprise.mining.docs.mining import mine, read, save
    from reprise.mining.docs.model import Form

    if output is not None and output.suffix not in ("", ".rules") and not output.is_dir():
        raise click.UsageError(
            f"{output}: -o is a folder, or a file whose name ends in .rules, not in {output.suffix}"
        )
    if save_docs is not None and paths:
        raise click.UsageError("--save-docs is for documents that are made: give no PATHS")
    documentation = read(paths, None if kind is None else Form(kind), save_docs)
    show_few(documentation.diagnostics)
    if report.unknown_layout(documentation):
        click.echo(report.UNKNOWN_LAYOUT, err=True)
    if not documentation.entries:
        return Exit.INPUT
    mined = mine(documentation, opset)
    agreement = compare(documentation) if check else None
    if output is not None:
        save(mined, output, write_output)
    if form == "json":
        show_json(report.as_json(mined, agreement))
    else:
        for line in report.summary(mined):
            click.echo(line)
        if left_out:
            for line in report.left_out(mined):
                click.echo(line)
        if agreement is not None:
            show_table(report.agreement_table(agreement))
            for line in report.differences(agreement):
                click.echo(line)
        if output is None:
            click.echo("nothing written: -o FOLDER, or -o FILE.rules")
        else:
            number = len(mined.constraints) + len(mined.signatures)
            click.echo(f"{counted(number, 'declaration')} written to {output}")
    if documentation.diagnostics:
        return Exit.INPUT
    return Exit.FOUND if agreement is not None and agreement.unexplained else Exit.OK
