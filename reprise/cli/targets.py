"""``reprise targets``: which compilers can be tested here, and what they do not do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprise.cli.lazy import LazyGroup
from reprise.cli.main import Exit
from reprise.cli.output import counted, replace_file, show_json, show_table, text_or_json
from reprise.cli.signature_file import SignatureFile
from reprise.lang.display import printable

if TYPE_CHECKING:
    from reprise.targets.discover import Target
    from reprise.targets.probe import Report

_HERE = "reprise.cli.targets"
_SHOWN = 3
"""Failing programs shown of each group."""


@click.group(
    cls=LazyGroup,
    lazy={
        "list": (f"{_HERE}:list_", "List the targets, and whether they work here."),
        "probe": (f"{_HERE}:probe", "Find out what a target does not do."),
    },
    short_help="List compilers under test, and find out what they do.",
)
def targets() -> None:
    """List compilers under test, and find out what they do.

    A target is written NAME, NAME:DEVICE, NAME@PYTHON or NAME:DEVICE@PYTHON; NAME may be a target
    file's path, PYTHON an interpreter or a virtual environment's folder.
    """


@click.command(name="list", short_help="List the targets, and whether they work here.")
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=180.0,
    show_default=True,
    help="Seconds that a target may take to start.",
)
@text_or_json
def list_(names: tuple[str, ...], timeout: float, form: str) -> int:
    """List TARGETs, or all that ship or are installed: what they read, their modes, the version
    that their interpreter has.

    Exit code: 0 all work, 1 one does not.
    """
    from reprise.targets.discover import parse_target, target_names

    found = [parse_target(name) for name in names or target_names()]
    states = [_state(target, timeout) for target in found]
    if form == "json":
        show_json({"version": 1, "targets": states})
    else:
        heads = ("target", "reads", "modes", "device", "version", "interpreter")
        show_table([heads, *(_row(state) for state in states)])
        for state in states:
            if state["error"] is not None:
                click.echo(f"reprise: {printable(state['error'])}", err=True)
    return Exit.OK if all(state["error"] is None for state in states) else Exit.FOUND


def _state(target: Target, timeout: float) -> dict[str, Any]:
    from reprise.targets.discover import TargetError
    from reprise.targets.process import Limits, TargetProcess

    versions: dict[str, str] = {}
    error = None
    with TargetProcess(target, Limits(startup_seconds=timeout)) as process:
        try:
            versions = process.start()
        except TargetError as refused:
            error = str(refused)
    return {
        "name": target.name,
        "lowering": target.lowering,
        "modes": list(target.modes),
        "device": target.device,
        "versions": versions,
        "python": target.python,
        "file": str(target.file),
        "error": error,
    }


def _row(state: dict[str, Any]) -> tuple[str, ...]:
    name, version = next(iter(state["versions"].items()), ("", ""))
    shown = version if name in (state["name"], "") else f"{name} {version}"
    if state["error"] is not None:
        shown = "-"
    modes = ", ".join(state["modes"])
    return state["name"], state["lowering"], modes, state["device"], shown, state["python"]


@click.command(short_help="Find out what a target does not do.")
@click.argument("name", metavar="TARGET")
@click.option("--op", "ops", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="What programs are drawn from."
)
@click.option(
    "--instances",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Programs for each operator and choice of element types.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes to use."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the support table to this file, not to standard output.",
)
@click.option(
    "--signatures",
    multiple=True,
    type=SignatureFile(),
    help="Try the operators of this file instead (reprise mine signatures); may be repeated.",
)
@text_or_json
def probe(
    name: str,
    ops: tuple[str, ...],
    seed: int,
    instances: int,
    jobs: int,
    out: Path | None,
    signatures: tuple[Path, ...],
    form: str,
) -> int:
    """Run programs of one node on TARGET: every operator with every choice of element types.

    What the target declines whenever it is asked becomes its support table, which the generator
    reads from rules/targets/NAME.toml. What fails only sometimes is listed on standard error: it is
    a bug, or a condition to be written down in rules/targets/NAME.rules.

    Exit code: 0 nothing is left to look at, 1 something is.
    """
    from reprise.targets.discover import parse_target
    from reprise.targets.probe import probe as run_probe

    report = run_probe(
        parse_target(name),
        ops,
        seed=seed,
        instances=instances,
        jobs=jobs,
        progress=_progress,
        signatures=signatures,
    )
    table = report.support.text()
    if out is not None:
        out.touch()
        replace_file(out, table)
    if form == "json":
        show_json({"version": 1, **_summary(report)})
    elif out is None:
        click.echo(table, nl=False)
    _show_doubtful(report)
    return Exit.FOUND if report.doubtful else Exit.OK


def _progress(op: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{op:<40}\r", err=True, nl=False)


def _summary(report: Report) -> dict[str, Any]:
    from reprise.targets.support import show_dtypes

    return {
        "target": report.target.name,
        "versions": report.versions,
        "mode": report.mode,
        "programs": sum(len(group.cases) for group in report.groups),
        "unlowered": report.unlowered,
        "unsupported": [
            {"op": op, "dtypes": show_dtypes(dtypes), "reason": reason}
            for (op, dtypes), reason in report.support.table.items()
        ],
        "doubtful": [
            {
                "op": group.key[0],
                "dtypes": show_dtypes(group.key[1]),
                "programs": len(group.cases),
                "failing": [[case.application, case.reason] for case in group.failing],
            }
            for group in report.doubtful
        ],
        "overcautious": [case.application for case in report.overcautious],
    }


def _show_doubtful(report: Report) -> None:
    from reprise.targets.support import show_dtypes

    for group in report.doubtful:
        op, dtypes = group.key
        failing = group.failing
        click.echo(
            f"{op}({show_dtypes(dtypes)}): {len(failing)} of {len(group.cases)} fail", err=True
        )
        for case in failing[:_SHOWN]:
            click.echo(f"    {case.application}\n        {case.reason}", err=True)
    programs = sum(len(group.cases) for group in report.groups)
    click.echo(
        f"{counted(programs, 'program')}; declined: {len(report.support.table)} of "
        f"{counted(len(report.groups), 'choice')} of element types; failing now and then: "
        f"{len(report.doubtful)}; forbidden but running: {len(report.overcautious)}",
        err=True,
    )
