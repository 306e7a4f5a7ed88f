"""``reprise distill``: a program that fails in, a rule about all that fail alike out."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprise.cli.main import Exit
from reprise.cli.output import wants_colour
from reprise.cli.subject import folder_for, refuse_for_kernels, subject_options

if TYPE_CHECKING:
    from reprise.distill.record import Result


@click.command(short_help="Turn a failing program into a rule about its defect.")
@subject_options(
    out="A folder for the rule; one that holds a distillation already goes on from there. "
    "[default: FINDING/distilled, or NAME-distilled]",
    seed="For all that is drawn.",
)
@click.option("--name", default="", metavar="RULE", help="The rule's name. [default: made up]")
@click.option(
    "--reduce/--no-reduce", default=True, show_default=True,
    help="Whether to reduce the program first.",
)  # fmt: skip
@click.option(
    "--corpus", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="Hold the rule against these programs too (reprise corpus).",
)  # fmt: skip
@click.option(
    "--neighbours", default=200, show_default=True, type=click.IntRange(0), metavar="N",
    help="Hold the rule against so many fresh programs of its own operators; 0: against none.",
)  # fmt: skip
def distill(
    subject: Path,
    target: str | None,
    out: Path | None,
    name: str,
    reduce: bool,
    corpus: Path | None,
    neighbours: int,
    jobs: int,
    runs: int | None,
    seconds: float | None,
    inputs: Path | None,
    seed: int,
    timeout: float,
    memory: int,
) -> int:
    """Turn a failing program into a rule that matches the programs that fail alike.

    Takes a finding's folder (or RUN/ID), a .uir program, an ONNX model or a JSON kernel, and
    reduces it. Then everything that the rule could say of it is varied, one thing at a time, and
    what does not matter to the defect is left out. The folder holds the rule with tests, and a
    record of every experiment. Ctrl-C, and a budget that is spent, keep the rule as far as it is,
    with the conditions that were not tried yet; the same command goes on from there. At last the
    rule is held against programs that it has not seen, and the run's other findings of the same
    defect: where it matches one that passes, a condition is added, at most ten times; if that does
    not help, the rule is discarded, unless such matches are few.

    Exit code: 0 distilled, 1 the rule was discarded, 2 an option or the target is bad or the
    program does not show the defect there, 130 stopped.
    """
    from reprise.distill.distilling import distill_subject
    from reprise.distill.reduce import Budget
    from reprise.distill.subject import read_subject
    from reprise.distill.telling import LiveProgress, PlainProgress, summary_lines
    from reprise.distill.tighten import Against
    from reprise.einsum.distill.distilling import distill_kernel
    from reprise.einsum.distill.subject import is_about_a_kernel, read_kernel_subject
    from reprise.solve.signatures import Signatures
    from reprise.targets.process import Limits

    live = LiveProgress() if wants_colour(sys.stderr) else None
    given: dict[str, Any] = {
        "limits": Limits(seconds=timeout, memory_mib=memory),
        "jobs": jobs or os.cpu_count() or 1,
        "budget": Budget(runs, seconds),
        "reduce": reduce,
        "seed": seed,
        "name": name,
        "progress": live or PlainProgress(),
    }
    done: Result
    try:
        if is_about_a_kernel(subject):
            refuse_for_kernels({"--inputs": inputs, "--corpus": corpus})
            kernel = read_kernel_subject(subject, target)
            out = out or folder_for(subject, kernel.origin if kernel.detail else None, "distilled")
            with live or nullcontext():
                done, file, interrupted = distill_kernel(
                    kernel, out, neighbours=neighbours, **given
                )
        else:
            signatures = Signatures.load()
            read = read_subject(subject, target, signatures, inputs=inputs, seed=seed)
            out = out or folder_for(subject, read.origin if read.detail else None, "distilled")
            against = Against(corpus, neighbours) if corpus or neighbours else None
            with live or nullcontext():
                done, file, interrupted = distill_subject(
                    read, signatures, out, against=against, **given
                )
    except KeyboardInterrupt:
        if out is None or not out.exists():
            raise
        click.echo(
            f"stopped before there was a rule; the same command goes on from {out}", err=True
        )
        return Exit.INTERRUPTED
    for line in summary_lines(done, interrupted):
        click.echo(line)
    click.echo(f"in {file}")
    if done.discarded:
        return Exit.FOUND
    return Exit.INTERRUPTED if interrupted else Exit.OK
