"""``reprise xcheck compile``: given models, what they violate and how far they get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.duration import Duration
from reprise.cli.hardware import device_option, hardware_option
from reprise.cli.main import Exit
from reprise.cli.output import show_json, text_or_json
from reprise.cli.signature_file import SignatureFile

if TYPE_CHECKING:
    from reprise.xcheck.given import Given

_TEXT = 140
_FILE = click.Path(exists=True, path_type=Path)


@click.command(
    "compile", short_help="Compile given models: what they violate, and how far they get."
)
@click.argument(
    "models", nargs=-1, required=True, metavar="MODEL...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)  # fmt: skip
@click.option(
    "--target", required=True, metavar="NAME[:PLATFORM][@PYTHON]",
    help="The compiler, as in `reprise xcheck`.",
)  # fmt: skip
@click.option(
    "--rules", multiple=True, type=_FILE, metavar="PATH",
    help="Constraints: a rule file or folder, instead of those that ship; may be repeated.",
)  # fmt: skip
@click.option(
    "--signatures", multiple=True, type=SignatureFile(as_text=True), metavar="FILE",
    help="A file with more operators (reprise mine signatures); may be repeated.",
)  # fmt: skip
@hardware_option
@device_option
@click.option(
    "--timeout", type=Duration(), default="60s", show_default=True, metavar="TIME",
    help="How long the compiler may take for one model.",
)  # fmt: skip
@click.option(
    "--memory", type=click.IntRange(0), default=4096, show_default=True, metavar="MIB",
    help="How much memory the compiler may take; 0: no limit.",
)  # fmt: skip
@text_or_json
def compile_models(
    models: tuple[Path, ...],
    target: str,
    rules: tuple[Path, ...],
    signatures: tuple[str, ...],
    hardware: tuple[Path, ...],
    device: str | None,
    timeout: float,
    memory: int,
    form: str,
) -> int:
    """Compile given models, and say which constraints each violates, how many passes were completed
    and what came of it.

    MODEL is an ONNX or .uir file. Nothing is allocated or run, so extents may be of any size.

    Exit code: 0 nothing found, 1 something found, 2 a model, a rule, an option or the compiler is
    bad.
    """
    from reprise.xcheck.given import as_json, examine
    from reprise.xcheck.open import asked_for, compiler_for, prepare, remarks

    asked = asked_for(target, rules, hardware, device, 0, timeout, memory, signatures=signatures)
    prepared = prepare(asked)
    for remark in remarks(prepared):
        click.echo(remark, err=True)
    found = []
    with compiler_for(prepared) as compiler:
        compiler.start()
        for given in examine(models, prepared.modeller(), compiler):
            found.append(given)
            if form != "json":
                _show(given)
    if form == "json":
        show_json({"models": [as_json(given) for given in found]})
    return Exit.FOUND if any(g.outcome.verdict.is_finding for g in found) else Exit.OK


def _show(given: Given) -> None:
    from reprise.cli.output import counted
    from reprise.lang.display import printable, shortened
    from reprise.xcheck.findings import source_of

    found = given.outcome
    passes = counted(found.passes, "pass")
    click.echo(printable(f"{given.path}: {given.words}, {found.stage} ({passes})"))
    if found.message:
        click.echo(printable(f"    {shortened(found.message, _TEXT)}"))
    if found.warned:
        click.echo("    with a warning in its log")
    if given.unread is not None:
        click.echo(printable(f"    no constraint was looked at: {given.unread}"))
    for broken in given.broken:
        click.echo(printable(f"    contradicts the signature of {shortened(broken, _TEXT)}"))
    for word, constraints in (("violates", given.violated), ("may violate", given.possible)):
        for constraint in constraints:
            click.echo(printable(f"    {word} {constraint.name} ({source_of(constraint)})"))
