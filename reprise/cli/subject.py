"""What `reprise reduce` and `reprise distill` share: a program that fails, and options that say on
what, where to, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reprise.cli.duration import Duration

_Command = TypeVar("_Command", bound=Callable[..., Any])


def subject_options(*, out: str, seed: str) -> Callable[[_Command], _Command]:
    """Add the argument and the options, with the help of ``--out`` and ``--seed``."""
    options = (
        click.argument(
            "subject", metavar="FINDING|MODEL|PROGRAM|KERNEL", type=click.Path(path_type=Path)
        ),
        click.option(
            "--target", metavar="NAME[:DEVICE][@PYTHON]",
            help="On what it fails. [default: the finding's own target]",
        ),
        click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help=out),
        click.option(
            "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
            help="Processes of the target; 0: one for each processor.",
        ),
        click.option(
            "--runs", type=click.IntRange(1), metavar="N", help="Stop after so many runs."
        ),
        click.option(
            "--time", "seconds", type=Duration(), metavar="TIME",
            help="Stop after so long (90s, 30m).",
        ),
        click.option(
            "--inputs", type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE.npz",
            help="Values of inputs. [default: the finding's, or NAME.npz beside the file]",
        ),
        click.option(
            "--seed", default=0, show_default=True, type=click.IntRange(0), metavar="S", help=seed
        ),
        click.option(
            "--timeout", default=60.0, type=Duration(), metavar="TIME",
            help="How long the target may take for one program. [default: 60s]",
        ),
        click.option(
            "--memory", default=4096, show_default=True, type=click.IntRange(0), metavar="MIB",
            help="How much memory the target may take; 0: no limit.",
        ),
    )  # fmt: skip

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def refuse_for_kernels(options: dict[str, object]) -> None:
    """Raises UsageError for an option that was given and is about graphs."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise click.UsageError(f"{given[0]} is about graphs: a kernel holds its data itself")


def folder_for(subject: Path, finding: Path | None, name: str) -> Path:
    """Where the result goes unless the user says: into the finding, if it is one, or beside us."""
    return finding / name if finding is not None else Path(f"{subject.stem}-{name}")
