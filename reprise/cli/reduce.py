"""``reprise reduce``: a program that fails in, the smallest that fails alike out."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, wants_colour
from reprise.cli.subject import folder_for, subject_options


@click.command(short_help="Make a failing program as small as it can be.")
@subject_options(
    out="A folder for the result; one that holds a reduction already goes on from there. "
    "[default: FINDING/reduced, or NAME-reduced]",
    seed="For the values of inputs that have none.",
)
def reduce(
    subject: Path,
    target: str | None,
    out: Path | None,
    jobs: int,
    runs: int | None,
    seconds: float | None,
    inputs: Path | None,
    seed: int,
    timeout: float,
    memory: int,
) -> int:
    """Make a failing program as small as it can be, without losing the failure.

    Takes a finding's folder (or RUN/ID), a .uir program or an ONNX model. Nodes are cut away,
    extents and ranks shrunk, attributes, element types and values simplified, as long as the
    verdict and the defect stay the same. The result is a folder like a finding's. Ctrl-C keeps
    the smallest program so far; the same command goes on from there.

    Exit code: 0 reduced (or small already), 2 an option or the target is bad or the program does
    not show the defect there, 130 stopped.
    """
    from reprise.distill.reduce import Budget, Stop
    from reprise.distill.session import reduce_subject
    from reprise.distill.subject import read_subject
    from reprise.distill.watching import LiveWatch, PlainWatch
    from reprise.lang.display import printable
    from reprise.solve.signatures import Signatures
    from reprise.targets.process import Limits

    signatures = Signatures.load()
    read = read_subject(subject, target, signatures, inputs=inputs, seed=seed)
    out = out or folder_for(subject, read.origin if read.detail else None, "reduced")
    live = LiveWatch() if wants_colour(sys.stderr) else None
    with live or nullcontext():
        report = reduce_subject(
            read,
            signatures,
            out,
            limits=Limits(seconds=timeout, memory_mib=memory),
            jobs=jobs or os.cpu_count() or 1,
            budget=Budget(runs, seconds),
            watch=live or PlainWatch(),
        )
    for line in report.text.splitlines():
        click.echo(printable(line))
    before, after = report.before, report.after
    click.echo(
        f"{counted(before.nodes, 'node')} -> {after.nodes}, {before.elements} elements -> "
        f"{after.elements}, in {counted(report.trials, 'trial')}, {counted(report.runs, 'run')}, "
        f"{report.seconds:.1f} s"
    )
    known = f", known: {report.rule}" if report.rule else ""
    verdict = report.judgement.verdict.value.replace("_", " ")
    click.echo(printable(f"{verdict}{known}: {' '.join(report.judgement.title.split())[:160]}"))
    if report.judgement.signature != report.aimed:
        click.echo(printable(f"of {report.aimed}, this is {report.judgement.signature}"))
    if report.stop is not Stop.MINIMAL:
        why = "the budget is spent" if report.stop is Stop.BUDGET else "stopped"
        click.echo(f"not minimal: {why}; the same command goes on from here")
    click.echo(f"in {out}")
    return Exit.INTERRUPTED if report.stop is Stop.INTERRUPTED else Exit.OK
