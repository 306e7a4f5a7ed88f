"""``reprise instrument``: monitors put into a copy of a compiler's sources."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.hardware import device_option, hardware_option
from reprise.cli.main import Exit
from reprise.cli.output import counted, show_json, text_or_json
from reprise.lang.display import printable

if TYPE_CHECKING:
    from reprise.mining.instrument.instrumenting import Refusal

_RULES = click.Path(exists=True, path_type=Path)


@click.command(short_help="Put monitors into a copy of a compiler's sources.")
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o", "--out", "copy", type=click.Path(path_type=Path), metavar="COPY",
    help="The copy to make, or to renew if this command has made it.",
)  # fmt: skip
@click.option(
    "--rules", "paths", multiple=True, required=True, type=_RULES,
    help="A rule file or folder whose monitors are put in; may be repeated.",
)  # fmt: skip
@hardware_option
@device_option
@click.option(
    "--device-value", "given", multiple=True, metavar="KEY=VALUE",
    help="A value of device(key); overrides what is described; may be repeated.",
)  # fmt: skip
@click.option(
    "--lazy", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.toml", help="How values that are still expressions become known; repeatable.",
)  # fmt: skip
@click.option(
    "--cxxflags", default="", metavar="FLAGS",
    help="Flags for the C++ syntax check, such as -Iinclude.",
)  # fmt: skip
@click.option(
    "--may-call", multiple=True, metavar="NAME",
    help="A function or method that only looks, so that monitors may call it; repeatable.",
)  # fmt: skip
@click.option(
    "--extractor", "name", metavar="NAME|FOLDER",
    help="An extractor, whose `looks` are such functions.",
)  # fmt: skip
@click.option("--diff", is_flag=True, help="Print a unified diff and write nothing.")
@text_or_json
def instrument(
    checkout: Path,
    copy: Path | None,
    paths: tuple[Path, ...],
    hardware: tuple[Path, ...],
    device: str | None,
    given: tuple[str, ...],
    lazy: tuple[Path, ...],
    cxxflags: str,
    may_call: tuple[str, ...],
    name: str | None,
    diff: bool,
    form: str,
) -> int:
    """Put the monitors of rule files into a copy of CHECKOUT, which stays as it is.

    A monitor's `from: "path:line"` says where: its assertions are checked right after that
    statement, or right before it if it is a guard or leaves the function. When the copy runs, the
    environment variable REPRISE_MONITOR_OUT names the file to which each run appends a verdict for
    every assertion; nothing is raised unless REPRISE_MONITOR=raise. Monitors that cannot be placed
    are listed, and the others are put in.

    Exit code: 0 every monitor is in, 1 some are not, 2 the rules, an option or a folder is bad.
    """
    import shlex

    from reprise.facts.hardware import default_hardware
    from reprise.lang.ruleset import load_rules
    from reprise.mining.instrument.checks import read_checks
    from reprise.mining.instrument.copying import Checkout, check_place
    from reprise.mining.instrument.device import device_values
    from reprise.mining.instrument.errors import InstrumentError
    from reprise.mining.instrument.instrumenting import plan, report, require_some_file, write
    from reprise.mining.instrument.lazy import read_lazy
    from reprise.mining.source.extractor import load_extractor

    if copy is None and not diff:
        raise click.UsageError("say where the copy goes (-o COPY), or ask for a --diff")
    try:
        if copy is not None:
            check_place(checkout, copy)
        described = hardware or (default_hardware() if device is not None else ())
        facts = load_rules(described) if described else None
        values = device_values(facts, device, given)
        checks = read_checks(load_rules(paths))
        if not checks:
            raise InstrumentError("there are no monitors in these rule files")
        require_some_file(checkout, checks)
        failures: list[str] = []
        looks = () if name is None else load_extractor(name).keywords.get("looks", ())
        source, flags = Checkout(checkout), shlex.split(cxxflags)
        with _progress() as tell:
            made = plan(source, checks, values, read_lazy(lazy), flags, (*may_call, *looks), tell)
            if not diff and copy is not None:
                failures = write(source, copy, made, lambda n: tell(f"{n} files copied"))
    except InstrumentError as error:
        raise click.ClickException(str(error)) from error

    if form == "json":
        show_json({**report(made), "not_copied": failures})
    elif diff:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.diff())
        sys.stdout.buffer.flush()
    _tell(made.refused, failures)
    if form == "text" and not diff:
        placed = sum(len(sites) for sites in made.placed.values())
        click.echo(f"{copy}: {counted(placed, 'check')} in {counted(len(made.touched), 'file')}")
        for file in made.touched:
            click.echo(f"  {file.path}: {', '.join(file.keys)} ({file.verified})")
    return Exit.FOUND if made.refused or failures else Exit.OK


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, if that is a terminal."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(printable(text))


_SHOWN = 20
"""Refusals that are told one by one."""


def _tell(refused: tuple[Refusal, ...], failures: list[str]) -> None:
    """Say on standard error what was left out."""
    from reprise.mining.instrument.instrumenting import kinds
    from reprise.mining.instrument.values import MAY_CHANGE

    for refusal in refused[:_SHOWN]:
        at = f" at {refusal.site}" if refusal.site is not None else ""
        place = f"{refusal.check.span.file}:{refusal.check.span.line}"
        click.echo(f"{place}: {refusal.check.key} is not put in{at}: {refusal.reason}", err=True)
    if len(refused) > _SHOWN:
        more = counted(len(refused) - _SHOWN, "more check")
        click.echo(f"{more} not put in (--format json lists them). In all:", err=True)
        for why, number in kinds(refused).most_common():
            click.echo(f"{number:>6}  {why}", err=True)
    if any(refusal.reason.endswith(MAY_CHANGE) for refusal in refused):
        click.echo("what only looks: --may-call NAME, or `looks` of an --extractor", err=True)
    for failure in failures:
        click.echo(f"not copied: {failure}", err=True)
