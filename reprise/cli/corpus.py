"""``reprise corpus``: programs held out from every run, to hold rules against."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from reprise.cli.duration import Duration
from reprise.cli.generation import generation_options
from reprise.cli.main import Exit
from reprise.cli.output import counted, counting


@click.command(short_help="Collect programs that no run sees, to hold rules against.")
@click.option(
    "--target", required=True, metavar="NAME[:DEVICE][@PYTHON]", help="As for `reprise fuzz`."
)
@click.option(
    "--tests", default=1000, show_default=True, type=click.IntRange(1), metavar="N",
    help="How many programs to try.",
)  # fmt: skip
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), metavar="S",
    help="Which corpus; no run has the same programs.",
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Where to; a corpus that was begun there is completed.",
)  # fmt: skip
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
    help="Processes, each with a target of its own; 0: one for each processor.",
)  # fmt: skip
@click.option(
    "--timeout", default=60.0, type=Duration(), metavar="TIME",
    help="How long the target may take for one program. [default: 60s]",
)  # fmt: skip
@generation_options
def corpus(
    target: str,
    tests: int,
    seed: int,
    out: Path,
    jobs: int,
    timeout: float,
    **generation: Any,
) -> int:
    """Run unguided programs on a target and keep what they came to.

    The programs are of seeds that `reprise fuzz` never uses. `reprise distill --corpus DIR` holds a
    new rule against them: it should match none that pass, and those that fail in its way.

    Exit code: 0 done, 2 an option, the folder or the target is bad, 130 stopped (the same command
    goes on).
    """
    from reprise.campaign.progress import NAMES
    from reprise.distill.corpus import CorpusRequest, Entry, collect
    from reprise.synth.options import OptionsError

    given = {name: value for name, value in generation.items() if value not in (None, ())}
    request = CorpusRequest(target, tests, seed, given, timeout)
    try:
        with counting(tests, "test") as done:

            def tell(entry: Entry) -> None:
                done(entry.index + 1)

            made = collect(request, out, jobs=jobs or os.cpu_count() or 1, tell=tell)
    except OptionsError as error:
        raise click.UsageError(str(error)) from error
    verdicts = ", ".join(f"{n} {NAMES[v]}" for v, n in made.verdicts.items())
    click.echo(f"{counted(len(made.entries), 'test')} in {out}: {verdicts}")
    return Exit.OK
