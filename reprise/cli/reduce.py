"""``reprise reduce``: a program that fails in, the smallest that fails alike out."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, wants_colour
from reprise.cli.subject import folder_for, refuse_for_kernels, subject_options

if TYPE_CHECKING:
    from reprise.distill.kept import Report
    from reprise.distill.reduce import Stop
    from reprise.einsum.distill.reducing import KernelReport


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

    Takes a finding's folder (or RUN/ID), a .uir program, an ONNX model or a JSON kernel. Nodes are
    cut away, extents and ranks shrunk, attributes, element types, formats and values simplified, as
    long as the verdict and the defect stay the same. The result is a folder like a finding's.
    Ctrl-C keeps the smallest program so far; the same command goes on from there.

    Exit code: 0 reduced (or small already), 2 an option or the target is bad or the program does
    not show the defect there, 130 stopped.
    """
    from reprise.distill.reduce import Budget, Stop
    from reprise.einsum.distill.subject import is_about_a_kernel
    from reprise.targets.process import Limits

    given: dict[str, Any] = {
        "limits": Limits(seconds=timeout, memory_mib=memory),
        "jobs": jobs or os.cpu_count() or 1,
        "budget": Budget(runs, seconds),
    }
    if is_about_a_kernel(subject):
        refuse_for_kernels({"--inputs": inputs})
        stop = _reduce_kernel(subject, target, out, given)
    else:
        stop = _reduce_program(subject, target, out, inputs, seed, given)
    return Exit.INTERRUPTED if stop is Stop.INTERRUPTED else Exit.OK


def _reduce_program(
    subject: Path,
    target: str | None,
    out: Path | None,
    inputs: Path | None,
    seed: int,
    given: dict[str, Any],
) -> Stop:
    from reprise.data import data_path
    from reprise.distill.reduce import Stop
    from reprise.distill.session import reduce_subject
    from reprise.distill.subject import read_subject
    from reprise.distill.watching import LiveWatch, PlainWatch
    from reprise.facts.onnx_apply import OnnxResults
    from reprise.solve.signatures import Signatures

    mined = sorted(data_path("rules/mining").glob("onnx*.rules"))
    signatures = Signatures.load(mined, OnnxResults())
    read = read_subject(subject, target, signatures, inputs=inputs, seed=seed)
    out = out or folder_for(subject, read.origin if read.detail else None, "reduced")
    live = LiveWatch() if wants_colour(sys.stderr) else None
    with live or nullcontext():
        report = reduce_subject(read, signatures, out, watch=live or PlainWatch(), **given)
    before, after = report.before, report.after
    sizes = (
        f"{counted(before.nodes, 'node')} -> {after.nodes}, {before.elements} elements -> "
        f"{after.elements}"
    )
    if before == after and report.stop is Stop.MINIMAL:
        sizes = (
            f"small already: {counted(before.nodes, 'node')}, {counted(before.elements, 'element')}"
        )
    _tell(report, sizes)
    if report.judgement.signature != report.aimed:
        from reprise.lang.display import printable

        click.echo(printable(f"of {report.aimed}, this is {report.judgement.signature}"))
    _tell_end(report.stop, out)
    return report.stop


def _reduce_kernel(
    subject: Path, target: str | None, out: Path | None, given: dict[str, Any]
) -> Stop:
    from reprise.distill.reduce import Stop
    from reprise.einsum.distill.reducing import reduce_kernel, size_of
    from reprise.einsum.distill.subject import read_kernel_subject
    from reprise.einsum.distill.watching import watching

    read = read_kernel_subject(subject, target)
    out = out or folder_for(subject, read.origin if read.detail else None, "reduced")
    with watching(wants_colour(sys.stderr)) as watch:
        report = reduce_kernel(read, out, watch=watch, **given)
    (operands, elements), (fewer, left) = size_of(report.before), size_of(report.after)
    sizes = f"{counted(operands, 'operand')} -> {fewer}, {elements} elements -> {left}"
    if (operands, elements) == (fewer, left) and report.stop is Stop.MINIMAL:
        sizes = f"small already: {counted(operands, 'operand')}, {counted(elements, 'element')}"
    _tell(report, sizes)
    _tell_end(report.stop, out)
    return report.stop


def _tell(report: Report | KernelReport, sizes: str) -> None:
    from reprise.lang.display import printable

    for line in report.text.splitlines():
        click.echo(printable(line))
    click.echo(
        f"{sizes}, in {counted(report.trials, 'trial')}, {counted(report.runs, 'run')}, "
        f"{report.seconds:.1f} s"
    )
    known = f", known: {report.rule}" if report.rule else ""
    verdict = report.judgement.verdict.value.replace("_", " ")
    click.echo(printable(f"{verdict}{known}: {' '.join(report.judgement.title.split())[:160]}"))


def _tell_end(stop: Stop, out: Path) -> None:
    from reprise.distill.reduce import Stop

    if stop is not Stop.MINIMAL:
        why = "the budget is spent" if stop is Stop.BUDGET else "stopped"
        click.echo(f"not minimal: {why}; the same command goes on from here")
    click.echo(f"in {out}")
