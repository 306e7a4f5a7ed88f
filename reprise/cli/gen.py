"""``reprise gen``: programs as files, or one that matches a given rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reprise.cli.generation import generation_options
from reprise.cli.main import Exit
from reprise.cli.output import counted, counting


@click.command(short_help="Write programs, without running them.")
@click.option("--tests", type=click.IntRange(1), metavar="N", help="How many. [default: 10]")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31 - 1), metavar="S"
)
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
    help="Processes; 0: one for each processor. The programs are the same.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Where to; needed, but for --witness. A folder that was not finished is completed.",
)  # fmt: skip
@click.option(
    "--emit", multiple=True, type=click.Choice(["uir", "onnx", "torch", "relax"]),
    help="Besides .uir, write this too; may be repeated.",
)  # fmt: skip
@click.option(
    "--target", metavar="NAME",
    help="Steer around this target's known bugs, and keep to what it supports. "
    "[default: around all known bugs]",
)  # fmt: skip
@click.option(
    "--rules", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A rule file or folder, instead of the shipped bugs; may be repeated.",
)  # fmt: skip
@click.option("--no-guidance", is_flag=True, help="Do not avoid known bugs.")
@click.option("--opset", type=click.IntRange(13, 28), help="For --emit onnx.")
@click.option(
    "--witness", metavar="RULE",
    help="Write one program that matches this rule, to standard output or --out.",
)  # fmt: skip
@generation_options
def gen(
    tests: int | None,
    seed: int,
    jobs: int,
    out: Path | None,
    emit: tuple[str, ...],
    target: str | None,
    rules: tuple[Path, ...],
    no_guidance: bool,
    opset: int | None,
    witness: str | None,
    **generation: Any,
) -> int:
    """Write generated programs: N of them to a folder, or one that matches a known bug.

    Each program is a .uir text and an .npz with its inputs; --emit adds an ONNX model, a torch
    module or a TVM Relax function. The same seed, rules and options give the same programs, byte
    for byte, whatever --jobs.

    Exit code: 0 written; 1 no program matches the rule, as far as was looked; 2 a rule or an option
    is bad.
    """
    from reprise.campaign.options import read_options
    from reprise.campaign.source import SourceRequest
    from reprise.synth.options import OptionsError

    given = {name: value for name, value in generation.items() if value not in (None, ())}
    forms = ("uir", *dict.fromkeys(form for form in emit if form != "uir"))
    try:
        options = read_options(given)
        source = SourceRequest(
            seed,
            options,
            target=target,
            rules=rules,
            guided=not no_guidance,
            opset=opset,
            lowerings=tuple(form for form in forms if form != "uir"),
        )
        if witness is not None:
            return _witness(source, witness, forms, out)
        if out is None:
            raise click.UsageError("--out DIR is missing: where should the programs go?")
        return _generate(source, tests or 10, forms, out, jobs)
    except OptionsError as error:
        raise click.UsageError(str(error)) from error


def _generate(source: Any, tests: int, forms: tuple[str, ...], out: Path, jobs: int) -> int:
    import os

    from reprise.campaign.generate import GenerationRequest, generate

    request = GenerationRequest(source, tests, forms, out)
    written = 0
    jobs = jobs or len(os.sched_getaffinity(0))
    with counting(tests, "program") as done:
        for _ in generate(request, jobs):
            written += 1
            done(written)
    there = tests - written
    kept = f" ({there} were there)" if there else ""
    click.echo(f"{counted(written, 'program')} written to {out}{kept}")
    return Exit.OK


def _witness(source: Any, name: str, forms: tuple[str, ...], out: Path | None) -> int:
    from random import Random

    from reprise.campaign.generate import program_files
    from reprise.campaign.source import open_finder
    from reprise.patterns.truth import Truth
    from reprise.synth.examples import example
    from reprise.synth.witness import Witness
    from reprise.uir.text import print_uir

    finder, pattern = open_finder(source, name)
    answer = finder.find(pattern, Random(source.seed))
    if not isinstance(answer, Witness):
        click.echo(_why_not(answer, finder.rules), err=True)
        own = example(finder, pattern, Random(source.seed))
        if own is None:
            return Exit.FOUND
        click.echo("this one is from the rule's own tests", err=True)
        answer = own
    if out is None:
        if answer.certainty is not Truth.YES:
            click.echo("// whether it shows the bug depends on the values at run time")
        for setting, value in answer.environment.items():
            click.echo(f"// env {setting}={value}")
        click.echo(print_uir(answer.program.graph), nl=False)
        return Exit.OK
    out.mkdir(parents=True, exist_ok=True)
    for end, data in program_files(answer.program, forms, source.opset).items():
        (out / f"{name}{end}").write_bytes(data)
        click.echo(out / f"{name}{end}")
    return Exit.OK


def _why_not(answer: Any, rules: Any) -> str:
    """The reason why there is no witness: the condition at which the nearest program fails."""
    from reprise.patterns.explain import reason

    head = f"reprise: no program matches `{answer.pattern.name}`, of {answer.attempts} attempts"
    if answer.nearest is None:
        return f"{head}; none even has its nodes"
    why = reason(answer.nearest, answer.match, rules.program, rules.sources)
    return f"{head}; the nearest fails at: {why}"
