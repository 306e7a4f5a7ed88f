"""``reprise conformance``: do our semantics and the targets agree on what operators mean?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, replace_file, text_or_json, wants_colour

if TYPE_CHECKING:
    from reprise.campaign.conformance.matrix import Matrix

_DEFAULT = ("onnx-reference", "onnxruntime", "inductor", "tvm")
_CHECKED = ("onnx-reference", "onnxruntime")
_BUDGET = 60.0


class _Watch:
    """Says on standard error what goes on: on a terminal, which operator is done."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._left = 0

    def began(self, column: str, version: str, rows: int) -> None:
        self._left = rows
        click.echo(f"{column}: {version}, {counted(rows, 'operator')} to measure", err=True)

    def row(self, column: str, op: str) -> None:
        self._left -= 1
        if self._live:
            line = f"\r{column}: {op}, {self._left} left"
            click.echo(f"{line:<60}\r", err=True, nl=False)

    def skipped(self, column: str, reason: str) -> None:
        click.echo(f"{column} is skipped: {' '.join(reason.split())}", err=True)


def _words(value: tuple[str, ...]) -> tuple[str, ...]:
    """Repeated options, each of which may be several words with commas between them."""
    return tuple(word.strip() for text in value for word in text.split(",") if word.strip())


@click.command(short_help="Compare the reference semantics with targets, operator by operator.")
@click.option(
    "--target", "targets", multiple=True, metavar="NAME[@PYTHON]",
    help="A column; may be repeated. [default: onnx-reference, onnxruntime, inductor, tvm; with "
    "--check the first two]",
)  # fmt: skip
@click.option("--ops", multiple=True, metavar="NAME,...", help="Only these operators, categories.")
@click.option("--dtypes", multiple=True, metavar="NAME,...", help="Only these element types.")
@click.option(
    "--instances", type=click.IntRange(min=1), metavar="K",
    help="Applications for each cell: ordinary, special, infinite, empty, and so on. [default: 4]",
)  # fmt: skip
@click.option("--seed", type=int, metavar="S", help="Which applications. [default: 0]")
@click.option(
    "-j", "--jobs", type=click.IntRange(0), default=1, show_default=True, metavar="N",
    help="Processes of each target; 0: one for each processor.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the matrix to this file. After an interruption, the same command goes on.",
)  # fmt: skip
@click.option(
    "--check", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Measure operators in random order, and look for cells that are worse than in this file.",
)  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help="Stop after so long. [default: no limit; 60 with --check]",
)  # fmt: skip
@text_or_json
def conformance(
    targets: tuple[str, ...],
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    instances: int | None,
    seed: int | None,
    jobs: int,
    out: Path | None,
    check: Path | None,
    budget: float | None,
    form: str,
) -> int:
    """Compare our reference semantics with targets, each operator in each main element type.

    Programs have one node; a target runs them in its least optimised mode. A cell agrees, differs,
    fails, is declined by the target, or is unsupported by what is declared of it. Differences are
    explained in rules/conformance/differences.toml. A target that does not work here is skipped.

    Cases follow from the signatures: where these have changed, --check shows what differs, but as
    long as the file is not written again, it cannot say that it is worse.

    Exit code: 0 every difference is explained (with --check: every one that is worse, on the same
    cases), 1 some are not, 2 wrong usage or no target works.
    """
    from reprise.campaign.conformance.cases import MAIN
    from reprise.campaign.conformance.matrix import KINDS, Matrix
    from reprise.campaign.conformance.measure import Settings, measure

    recorded = None
    if check is not None:
        if seed is not None or instances is not None:
            raise click.UsageError("--check asks what the file asked: without --seed, --instances")
        recorded = Matrix.load(check)
    unknown = [d for d in _words(dtypes) if d not in MAIN]
    if unknown:
        raise click.UsageError(f"element types are {', '.join(MAIN)}, not {', '.join(unknown)}")
    chosen = tuple(d for d in MAIN if not dtypes or d in _words(dtypes))
    given = targets or (_DEFAULT if recorded is None else _CHECKED)
    settings = Settings(
        given,
        _words(ops),
        chosen,
        (instances or KINDS) if recorded is None else recorded.instances,
        (seed or 0) if recorded is None else recorded.seed,
        jobs or os.cpu_count() or 1,
        _BUDGET if budget is None and recorded is not None else budget,
    )
    parts = None if out is None else out.with_name(f"{out.name}.part")
    if out is not None:
        out.touch()
    matrix = measure(settings, _Watch(), parts)
    if out is not None:
        replace_file(out, matrix.text())
        if parts is not None:
            parts.unlink(missing_ok=True)
    if recorded is not None:
        return _compare(recorded, matrix)
    return _show(matrix, form, out)


def _compare(recorded: Matrix, matrix: Matrix) -> int:
    from reprise.campaign.conformance.differences import load_explanations
    from reprise.campaign.conformance.matrix import regressions

    explanations = load_explanations()
    for name, column in matrix.columns.items():
        old = recorded.columns.get(name)
        cells = sum(1 for _ in column.cells())
        if old is None:
            click.echo(f"{name}: not in the file")
        else:
            noted = "" if old.versions == column.versions else f" (recorded with {old.version})"
            every = sum(1 for _ in old.cells())
            same = sum(
                cell.drawn == old.rows.get(op, {}).get(dtype, cell).drawn
                for op, dtype, cell in column.cells()
            )
            anew = "" if same == cells else f", {cells - same} on other cases than recorded"
            click.echo(f"{name}: {cells} of {every} cells checked{anew}, {column.version}{noted}")
    failed = False
    for found in regressions(recorded, matrix):
        before = "not recorded" if found.before is None else found.before.state.name.lower()
        where = (found.column, found.op, found.dtype)
        reasons = [e.reason for e in explanations if e.explains(*where, found.after)]
        failed = failed or (found.same_cases and not reasons)
        known = "" if found.same_cases else ", on other cases than recorded"
        known += f" (known: {reasons[0]})" if reasons else ""
        after = found.after.state.name.lower()
        click.echo(f"{', '.join(where)}: {after}, was {before}{known}")
        click.echo(f"    {found.after.example or found.after.reason}")
    return Exit.FOUND if failed else Exit.OK


def _show(matrix: Matrix, form: str, out: Path | None) -> int:
    from reprise.campaign.conformance.differences import explained, load_explanations
    from reprise.campaign.conformance.page import version_line

    unexplained = [e for e in explained(matrix, load_explanations()) if e.explanation is None]
    if form == "json":
        click.echo(matrix.text(), nl=False)
        return Exit.FOUND if unexplained else Exit.OK
    _table(matrix)
    for name, column in matrix.columns.items():
        click.echo(version_line(name, column))
    if unexplained:
        click.echo(f"{counted(len(unexplained), 'cell')} without an explanation:")
    for found in unexplained:
        click.echo(f"  {found.column}, {found.op}, {found.dtype}, {found.cell.kind}:")
        click.echo(f"    {found.cell.example}")
    if out is not None:
        click.echo(f"in {out}")
    return Exit.FOUND if unexplained else Exit.OK


def _table(matrix: Matrix) -> None:
    """One row an operator, one column a target."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from reprise.campaign.conformance.page import LEGEND, signs_of

    colours = {
        "D": "red",
        "F": "red",
        "d": "yellow",
        "f": "yellow",
        "+": "green",
        "~": "yellow",
        "n": "dim",
        "-": "dim",
    }
    table = Table(box=None, pad_edge=False)
    table.add_column("operator")
    for name in matrix.columns:
        table.add_column(name, no_wrap=True)
    for op in matrix.operators:
        cells = []
        for column in matrix.columns.values():
            text = Text()
            for sign in signs_of(column.rows.get(op, {})):
                text.append(sign, colours.get(sign, ""))
            cells.append(text)
        table.add_row(op, *cells)
    console = Console(no_color=not wants_colour(sys.stdout), highlight=False)
    console.print(table)
    click.echo("columns: float16 32 64, int8 16 32 64, uint8, bool")
    for sign, meaning in LEGEND.items():
        click.echo(f"  {sign} {meaning}")
