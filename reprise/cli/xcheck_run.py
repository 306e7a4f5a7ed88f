"""``reprise xcheck``: violate constraints one by one, and see what a compiler makes of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.duration import Duration
from reprise.cli.hardware import device_option, hardware_option
from reprise.cli.lazy import LazyGroup
from reprise.cli.main import Exit
from reprise.cli.output import counted, show_json, show_table, text_or_json, wants_colour
from reprise.cli.resuming import refuse_other_options
from reprise.cli.signature_file import SignatureFile

if TYPE_CHECKING:
    from reprise.xcheck.summary import Summary

_TEXT = 110
_NAMED = 6
"""Constraints that are named in a line."""
_REASONS = 3
"""Constraints of which the summary repeats why no model violates them."""


@click.group(
    cls=LazyGroup,
    lazy={
        "classes": (
            "reprise.cli.xcheck_classes:classes",
            "Partition a run's models by what held of every condition.",
        ),
        "compile": (
            "reprise.cli.xcheck_compile:compile_models",
            "Compile given models: what they violate, and how far they get.",
        ),
    },
    invoke_without_command=True,
    short_help="Violate constraints one by one, and see what a compiler does.",
)
@click.option(
    "--target", metavar="NAME[:PLATFORM][@PYTHON]",
    help="The compiler: tvm, onnxruntime, inductor, genesys; with @PYTHON, the one that this "
    "interpreter has.",
)  # fmt: skip
@click.option(
    "--rules", multiple=True, type=click.Path(exists=True, path_type=Path), metavar="PATH",
    help="Constraints: a rule file or folder, instead of those that ship; may be repeated.",
)  # fmt: skip
@click.option(
    "--signatures", multiple=True, type=SignatureFile(as_text=True), metavar="FILE",
    help="A file with more operators (reprise mine signatures); may be repeated.",
)  # fmt: skip
@hardware_option
@device_option
@click.option(
    "--time", "seconds", type=Duration(), metavar="TIME", help="Stop after so long (90s, 30m)."
)
@click.option("--models", type=click.IntRange(1), metavar="N", help="Stop after so many models.")
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), metavar="S", help="Which models. [default: 0]"
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="A new folder for the run. [default: xcheck-TARGET-1, -2, ...]",
)  # fmt: skip
@click.option(
    "--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with the run in DIR."
)
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(1), metavar="N",
    help="Compile what is likely to come next ahead, in so many processes.",
)  # fmt: skip
@click.option(
    "--timeout", type=Duration(), metavar="TIME",
    help="How long the compiler may take for one model. [default: 60s]",
)  # fmt: skip
@click.option(
    "--memory", type=click.IntRange(0), metavar="MIB",
    help="How much memory the compiler may take; 0: no limit. [default: 4096]",
)  # fmt: skip
@text_or_json
@click.pass_context
def xcheck(
    ctx: click.Context,
    /,
    target: str | None,
    rules: tuple[Path, ...],
    signatures: tuple[str, ...],
    hardware: tuple[Path, ...],
    device: str | None,
    seconds: float | None,
    models: int | None,
    seed: int | None,
    out: Path | None,
    resume: Path | None,
    jobs: int,
    timeout: float | None,
    memory: int | None,
    form: str,
) -> int:
    """Violate constraints one by one, and see what a compiler does.

    For one constraint after the other a model is made that violates it and keeps all others; it is
    compiled and never run. The constraint to violate next is the one with the smallest rank, which
    grows less the further the compiler got. A model that violates a constraint should be rejected;
    one that is accepted silently is a finding, as is a crash, a hang, or a valid model that is
    rejected. Without --time and --models it stops when every constraint was violated once. The same
    seed, rules and compiler give the same models, whatever --jobs.

    Exit code: 0 nothing found, 1 something found, 2 a rule, an option or the compiler is bad, 130
    stopped.
    """
    if ctx.invoked_subcommand is not None:
        return Exit.OK
    from reprise.patterns.check import UsageError
    from reprise.xcheck.open import (
        asked_for,
        begin,
        free_folder,
        go_on,
    )
    from reprise.xcheck.progress import LiveWatch, PlainWatch
    from reprise.xcheck.run import Budget, End
    from reprise.xcheck.store import XRun
    from reprise.xcheck.summary import summarise

    budget = Budget(models, seconds)
    if resume is not None:
        refuse_other_options(ctx, {"seconds", "models", "jobs", "resume", "form"})
        path = resume
    elif target is None:
        raise UsageError("say what to test: --target NAME (or --resume DIR)")
    else:
        path = out or free_folder(target)
    watch = LiveWatch(path) if wants_colour(sys.stderr) else PlainWatch(path)
    if resume is not None:
        session = go_on(path, budget, watch, jobs, _say)
    else:
        asked = asked_for(
            target or "",
            rules,
            hardware,
            device,
            seed or 0,
            60.0 if timeout is None else timeout,
            4096 if memory is None else memory,
            budget,
            signatures,
        )
        session = begin(asked, path, budget, watch, jobs, _say)
    with session as loop:
        end = loop.run()
    summary = summarise(XRun.open(path))
    if form == "json":
        from reprise.xcheck.summary import as_json

        show_json(as_json(summary))
    else:
        _show(summary)
    if end is End.INTERRUPTED:
        _say(f"stopped; to go on: reprise xcheck --resume {path}")
        return Exit.INTERRUPTED
    return Exit.FOUND if summary.groups else Exit.OK


def _say(line: str) -> None:
    click.echo(line, err=True)


def _show(summary: Summary) -> None:
    from reprise.lang.display import printable, shortened
    from reprise.xcheck.verdict import Verdict

    run = summary.run
    click.echo(
        f"{counted(len(run.models), 'model')}; {summary.explored} of "
        f"{counted(len(run.constraints), 'constraint')} violated"
    )
    used = [v for v in Verdict if any(counts[v] for counts in summary.classes.values())]
    if used:
        rows = [("  class", *(v.value for v in used))]
        for klass, counts in summary.classes.items():
            rows.append((f"  {klass}", *(str(counts[v]) if counts[v] else "-" for v in used)))
        show_table(rows)
    if summary.groups:
        click.echo(f"{counted(len(summary.groups), 'group')} of findings:")
    for group in summary.groups:
        first = group.first
        click.echo(printable(f"  {group.constraint.name} ({group.constraint.source})"))
        click.echo(f"      {len(group.rows)} x {group.words}, {first.stage}")
        click.echo(printable(f"      {shortened(first.program, _TEXT)}"))
        if first.message:
            click.echo(printable(f"      {shortened(first.message, _TEXT)}"))
        if first.folder is not None:
            click.echo(f"      {run.path / 'findings' / first.folder}")
    untold = [entry.constraint.name for entry in summary.coverage if entry.is_untold]
    if untold:
        them = "it" if len(untold) == 1 else "one of them"
        click.echo(
            f"nothing is known of {counted(len(untold), 'constraint')} ({_named(untold)}): the "
            f"compiler lacks an operator or an element type of every model that violates {them}"
        )
    aside = [entry for entry in summary.coverage if entry.aside is not None]
    if len(aside) <= _REASONS:
        for entry in aside:
            reason = printable(shortened(entry.aside or "", 3 * _TEXT))
            click.echo(f"set aside, no model violates it: {entry.constraint.name}: {reason}")
    else:
        names = _named([entry.constraint.name for entry in aside])
        click.echo(f"{len(aside)} set aside, no model violates them ({names})")
    click.echo(f"in {run.path}")


def _named(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
