"""``reprise mine reach``."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import counting, show_json, show_table, text_or_json
from reprise.cli.signature_file import SignatureFile


@click.command("reach", short_help="Count the ONNX operators that programs have.")
@click.option(
    "--signatures",
    multiple=True,
    type=SignatureFile(),
    help="A file with more operators (reprise mine signatures); may be repeated.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="NAME,...",
    help="Also operators that are `random` or have `data_dependent` extents.",
)
@click.option(
    "--programs",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Programs of each operator, at each of two opsets.",
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31 - 1), metavar="S"
)
@text_or_json
def reach(
    signatures: tuple[Path, ...], also: tuple[str, ...], programs: int, seed: int, form: str
) -> int:
    """Generate each operator alone, and count ONNX's operators in the models.

    Of each of the others, say why programs do not have it.

    Exit code: 0 counted, 2 a file or an option is bad.
    """
    from reprise.campaign.options import read_options
    from reprise.campaign.reach import Reaching
    from reprise.synth.options import OptionsError

    try:
        options = read_options({"also": also})
    except OptionsError as error:
        raise click.UsageError(str(error)) from error
    reaching = Reaching(signatures, also=options.also, seed=seed)
    with counting(len(reaching.names), "operator") as done:
        found = reaching.count(programs, done)
    names = {key: f"{key[0] or 'onnx'}.{key[1]}" for key in (*found.reached, *found.missing)}
    if form == "json":
        show_json(
            {
                "reached": {names[key]: list(ops) for key, ops in found.reached.items()},
                "missing": {names[key]: why for key, why in found.missing.items()},
            }
        )
        return Exit.OK
    show_table([(names[key], why) for key, why in found.missing.items()])
    for domain in found.domains:
        here, all_of_it = found.of_domain(domain)
        click.echo(f"{domain or 'ai.onnx'}: {here} of {all_of_it}")
    click.echo(f"{len(found.reached)} operators of ONNX in programs")
    return Exit.OK
