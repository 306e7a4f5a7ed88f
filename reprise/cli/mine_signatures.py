"""``reprise mine signatures``."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, counting, output_option, show_table, write_output
from reprise.cli.signature_file import SignatureFile


@click.command("signatures", short_help="Complete mined signatures by asking ONNX.")
@click.argument("path", type=SignatureFile())
@output_option("Where the completed signatures go.", required=True)
@click.option("--ops", multiple=True, metavar="NAME,...", help="Only these operators.")
@click.option("--all", "every", is_flag=True, help="Also operators that UIR has.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31 - 1), metavar="S"
)
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1), metavar="N")
def signatures(
    path: Path, output: Path, ops: tuple[str, ...], every: bool, seed: int, jobs: int
) -> int:
    """Complete signatures that were mined from documentation: ranks, extents, attributes.

    PATH declares operators with element types only, as `reprise mine docs` writes them. What is
    open is found by asking ONNX's shape inference and reference evaluator about applications; the
    file that is written can be given to `gen` and `fuzz` as --signatures. Operators that UIR has
    under a name of its own are left out, unless --all.

    Exit code: 0 some signature was completed, 1 none was, 2 the file cannot be read.
    """
    from reprise.mining.signatures.asked import elsewhere, full_name, names_in
    from reprise.mining.signatures.learning import Learned, declarations, learn_all, written

    decls = declarations(path)
    known = {decl.name.text for decl in decls}
    wanted = [full_name(name, known) for name in names_in(ops)]
    for name in wanted:
        if name not in known:
            raise click.UsageError(
                f"{path} declares no operator `{name}`{elsewhere(name, known, path)}"
            )
    chosen = [decl for decl in decls if not wanted or decl.name.text in wanted]
    answers = []
    with counting(len(chosen), "operator") as done:
        for answer in learn_all(chosen, seed=seed, every=every, jobs=jobs):
            answers.append(answer)
            done(len(answers))
    learned = [answer for answer in answers if isinstance(answer, Learned)]
    write_output(output, written(path.name, answers), [path])
    rows = [
        (answer.op, f"{answer.accepted} of {answer.drawn} valid", "")
        if isinstance(answer, Learned)
        else (answer.op, "left out", answer.reason)
        for answer in answers
        if isinstance(answer, Learned) or answer.uir is None
    ]
    show_table(rows)
    in_uir = sum(1 for a in answers if not isinstance(a, Learned) and a.uir is not None)
    click.echo(f"{counted(len(learned), 'signature')} written to {output}")
    if in_uir:
        click.echo(f"{counted(in_uir, 'operator')} left to the signatures of UIR")
    return Exit.OK if learned else Exit.FOUND
