"""``reprise regress``: do known bugs still fire, in which versions?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reprise.cli.duration import Duration
from reprise.cli.main import Exit
from reprise.cli.output import counted, show_json, show_table

if TYPE_CHECKING:
    from reprise.campaign.regress.cell import Cell


class _Watch:
    """Says on standard error what was measured: a line a rule."""

    def __init__(self) -> None:
        self._left = 0

    def began(self, target: str, version: str, rules: int) -> None:
        self._left = rules
        click.echo(f"{target}: {version}, {counted(rules, 'rule')} to measure", err=True)

    def measured(self, cell: Cell, again: bool) -> None:
        self._left -= 1
        kept = " (kept)" if again else ""
        click.echo(f"  {cell.rule}: {cell.state.value}{kept}, {self._left} left", err=True)


@click.command(short_help="Say which known bugs still fire, in which versions of their targets.")
@click.option(
    "--target", "targets", multiple=True, metavar="NAME[@PYTHON]",
    help="A column of the matrix; may be repeated. [default: onnxruntime]",
)  # fmt: skip
@click.option(
    "--rules", "paths", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A rule file or folder, instead of the shipped bugs; may be repeated.",
)  # fmt: skip
@click.option("--rule", "names", multiple=True, metavar="NAME", help="Only this rule; repeatable.")
@click.option("--update", is_flag=True, help="Write the versions measured into the rules' affects.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Keep what was measured; after an interruption, the same command goes on.",
)  # fmt: skip
@click.option(
    "--runs", type=click.IntRange(1), default=8, show_default=True, metavar="N",
    help="Sets of inputs for each program, at most; it stops at the first that shows the bug.",
)  # fmt: skip
@click.option(
    "--fresh", type=click.IntRange(0), default=2, show_default=True, metavar="N",
    help="New programs that match, for each rule, besides its own tests.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, metavar="S",
    help="Which new programs and inputs.",
)  # fmt: skip
@click.option(
    "-j", "--jobs", type=click.IntRange(0), default=1, show_default=True, metavar="N",
    help="Rules at a time, each on a process of its own; 0: one for each processor.",
)  # fmt: skip
@click.option(
    "--timeout", type=Duration(), default="20s", show_default=True, metavar="TIME",
    help="How long the target may take for one program: a hang, after that.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text",
    show_default=True, help="How to write the result.",
)  # fmt: skip
def regress(
    targets: tuple[str, ...],
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    update: bool,
    out: Path | None,
    runs: int,
    fresh: int,
    seed: int,
    jobs: int,
    timeout: float,
    form: str,
) -> int:
    """Run the witnesses of known-bug rules on installed versions of their targets.

    A rule's witnesses are the programs of its tests that match, and new ones made from it. Each
    runs on several kinds of inputs. What they come to is one cell of the matrix: the bug still
    fires, fires differently (with another symptom), is fixed (no witness shows anything), or
    nobody can tell. An asterisk marks what contradicts the rule's affects. Near misses, its
    no_match tests, run too: one that shows the symptom is told as a hint that the rule may be too
    narrow, and changes no exit code.

    Exit code: 0 everything as the rules' affects say, 1 something contradicts them, 2 a rule, an
    option or a target is bad, 130 stopped.
    """
    from reprise.campaign.regress import edit, table
    from reprise.campaign.regress.measure import Settings, measure
    from reprise.data import data_path
    from reprise.lang.ruleset import load_rules
    from reprise.lang.symbols import suggest
    from reprise.targets.discover import parse_target
    from reprise.targets.process import Limits

    rules = load_rules(paths or (data_path("rules/bugs"),))
    for name in names:
        if name not in rules.patterns:
            hint = suggest(name, rules.patterns)
            raise click.UsageError(f"no rule is called `{name}`" + (f" ({hint})" if hint else ""))
    settings = Settings(runs, fresh, seed, jobs or os.cpu_count() or 1, names)
    watch = _Watch()
    asked = [parse_target(text) for text in targets or ("onnxruntime",)]
    cells = [
        cell
        for target in asked
        for cell in measure(rules, target, settings, watch, Limits(seconds=timeout), out)
    ]
    found = list(edit.edits(rules, cells))
    if update:
        edit.apply(found)
    if form == "json":
        show_json({"cells": [c.data() for c in cells], "edits": [_said(e, update) for e in found]})
    elif form == "markdown":
        click.echo(table.markdown(cells), nl=False)
    else:
        _show(cells, found, update)
    return Exit.FOUND if any(c.contradicts for c in cells) else Exit.OK


def _said(found: Any, update: bool) -> dict[str, object]:
    return {
        "rule": found.rule,
        "file": found.file,
        "before": found.before,
        "after": found.after,
        "reason": found.reason,
        "written": update and found.changes,
    }


def _show(cells: list[Cell], found: list[Any], update: bool) -> None:
    from reprise.campaign.regress import table
    from reprise.lang.display import shortened

    show_table(list(table.rows(cells)))
    click.echo()
    for line in table.totals(cells):
        click.echo(line)
    remarks = list(table.remarks(cells))
    if remarks:
        click.echo("\nto look into:")
    for line in remarks:
        click.echo(f"  {shortened(' '.join(line.split()), 400)}")
    if found:
        click.echo("\nversions:" if update else "\nversions (--update writes what changes):")
    for one in found:
        click.echo(f"  {one}")
    sys.stdout.flush()
