"""``reprise fuzz``: options in, a run's folder out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from reprise.cli.duration import Duration
from reprise.cli.generation import generation_options
from reprise.cli.main import Exit
from reprise.cli.output import counted, show_table, styled, wants_colour
from reprise.cli.resuming import refuse_other_options


@click.command(short_help="Generate programs and test a compiler with them.")
@click.option(
    "--target", metavar="NAME[:DEVICE][@PYTHON]",
    help="What to test: onnxruntime, inductor, tvm, tensora...; with @PYTHON, the one that this "
    "interpreter has.",
)  # fmt: skip
@click.option(
    "--time", "seconds", type=Duration(), metavar="TIME", help="Stop after so long (90s, 30m, 8h)."
)
@click.option("--tests", type=click.IntRange(1), metavar="N", help="Stop after so many programs.")
@click.option(
    "--rules",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A rule file or folder, instead of the shipped bugs; may be repeated.",
)
@click.option("--no-guidance", is_flag=True, help="Do not avoid known bugs; still file them.")
@click.option(
    "--steer", multiple=True, type=click.Path(exists=True, path_type=Path), metavar="PATH",
    help="Avoid the bugs of these rules instead; findings are filed as without it.",
)  # fmt: skip
@click.option(
    "--learn", is_flag=True,
    help="Make a rule of each new defect, in the background, and avoid it from then on.",
)  # fmt: skip
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
    help="Processes, each with a target of its own; 0: one for each processor.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="ADDRESS",
    help="Let a Dask cluster do the work: the address of its scheduler (tcp://HOST:8786).",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), metavar="S", help="Which programs. [default: 0]"
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="A new folder for the run. [default: fuzz-TARGET-1, -2, ...]",
)  # fmt: skip
@click.option(
    "--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with the run in DIR."
)
@click.option(
    "--keep", type=click.IntRange(0), metavar="N",
    help="Keep a folder for the first N findings of a signature (and the 10th, 100th...). "
    "[default: 3]",
)  # fmt: skip
@click.option(
    "--timeout", type=Duration(), metavar="TIME",
    help="How long the target may take for one program. [default: 60s]",
)  # fmt: skip
@click.option(
    "--memory", type=click.IntRange(0), metavar="MIB",
    help="How much memory the target may take; 0: no limit. [default: 4096]",
)  # fmt: skip
@generation_options
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    target: str | None,
    seconds: float | None,
    tests: int | None,
    rules: tuple[Path, ...],
    no_guidance: bool,
    steer: tuple[Path, ...],
    learn: bool,
    jobs: int,
    cluster: str | None,
    seed: int | None,
    out: Path | None,
    resume: Path | None,
    keep: int | None,
    timeout: float | None,
    memory: int | None,
    **generation: Any,
) -> int:
    """Generate programs and test a compiler with them.

    What is found goes to a folder: a store, and for each finding the program, the model, its
    inputs and a script that shows the failure alone. The same seed, rules and options give the
    same programs, whatever --jobs. Without --time and --tests it goes on until it is stopped;
    Ctrl-C stops it cleanly, --resume goes on.

    Exit code: 0 nothing found, 1 something found, 2 a rule, an option or the target is bad, 130
    stopped.
    """
    from reprise.campaign.open import Request, begin, go_on
    from reprise.campaign.progress import LiveWatch, PlainWatch, unlearned_lines
    from reprise.campaign.records import End
    from reprise.campaign.run import Budget
    from reprise.distill.learn import BackgroundLearner, Teaching
    from reprise.einsum.campaign import describe_kernels
    from reprise.einsum.distill.learning import teach_kernel
    from reprise.patterns.check import UsageError
    from reprise.targets.discover import parse_target
    from reprise.targets.process import Limits

    processors = len(os.sched_getaffinity(0))
    workers = jobs or processors

    def learner(asked: Request) -> BackgroundLearner:
        limits = Limits(seconds=asked.timeout, memory_mib=asked.memory)
        busy = cluster is None and workers >= processors
        teach = lessons.get(parse_target(asked.target).lowering)
        return BackgroundLearner(Teaching(limits=limits, seed=asked.seed, spare_time=busy), teach)

    kinds, lessons = {"einsum": describe_kernels}, {"einsum": teach_kernel}
    budget = Budget(tests, seconds)
    watch = LiveWatch() if wants_colour(sys.stderr) else PlainWatch()
    if resume is not None:
        refuse_other_options(ctx, {"seconds", "tests", "jobs", "cluster", "resume"})
        campaign = go_on(resume, budget, watch, workers, learner, cluster, kinds)
    else:
        if target is None:
            raise UsageError("say what to test: --target NAME (or --resume DIR)")
        request = Request(
            target=target,
            seed=seed or 0,
            rules=tuple(path.resolve() for path in rules),
            steer=tuple(path.resolve() for path in steer),
            learn=learn,
            guided=not no_guidance,
            generation={k: v for k, v in generation.items() if v is not None and v != ()},
            budget=budget,
            keep=3 if keep is None else keep,
            timeout=60.0 if timeout is None else timeout,
            memory=4096 if memory is None else memory,
        )
        campaign = begin(request, out, watch, workers, learner, cluster, kinds)
    path = campaign.writer.path
    try:
        end = campaign.run()
    finally:
        campaign.writer.close()
    found = _summary(path)
    for line in unlearned_lines(campaign.unlearned, path):
        click.echo(line)
    if end is End.INTERRUPTED:
        click.echo(f"stopped; to go on: reprise fuzz --resume {path}")
        return Exit.INTERRUPTED
    return Exit.FOUND if found else Exit.OK


def _summary(path: Path) -> bool:
    """Say what the run has come to; whether anything was found."""
    from reprise.campaign.progress import NAMES, clock
    from reprise.campaign.store import Run
    from reprise.lang.display import printable, shortened

    run = Run.open(path)
    verdicts = ", ".join(f"{n} {NAMES[v]}" for v, n in run.verdicts.items() if n)
    click.echo(f"{counted(run.tests, 'test')} in {clock(run.seconds)}: {verdicts or 'none done'}")
    rejected = sum(s.rejected for s in run.suppressed.values())
    if rejected:
        rules = sum(1 for s in run.suppressed.values() if s.rejected)
        click.echo(f"{counted(rejected, 'candidate')} suppressed by {counted(rules, 'rule')}")
    if run.defects:
        figures = run.redundancy
        click.echo(f"{counted(figures.reports, 'report')} of {counted(figures.defects, 'defect')}:")
        rows = [
            (
                f"  {defect.id}",
                str(defect.count),
                "/".join(NAMES[v] for v in defect.verdicts),
                f"known: {defect.rule}" if defect.rule is not None else styled("new", "bold"),
                printable(shortened(" ".join(defect.title.split()), 120)),
            )
            for defect in sorted(run.defects, key=lambda d: -d.count)
        ]
        show_table(rows)
    click.echo(f"in {path} (reprise report {path})")
    return bool(run.defects)
