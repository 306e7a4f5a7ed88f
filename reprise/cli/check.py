"""``reprise check``: options in, reports out."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reprise.cli.limits import limit_options
from reprise.cli.main import Exit
from reprise.cli.output import counted, show_json, styled


@click.command(short_help="Say which known compiler bugs a model can hit, where and why.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--rules",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A rule file or folder, instead of the shipped bugs; may be repeated.",
)
@click.option("--target", metavar="NAME[==VERSION]", help="Only bugs of this compiler (version).")
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="What is known of the run, such as isa=avx512 or provider=cpu; may be repeated.",
)
@click.option("--explain", is_flag=True, help="Show which facts met which line of the rule.")
@click.option(
    "-a", "--all", "every", is_flag=True, help="Show every place of a rule that matches in many."
)
@click.option("--near", is_flag=True, help="Show rules whose structure occurs, and what failed.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to write the result.",
)
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
    help="Models to check at the same time; 0: one for each processor.",
)  # fmt: skip
@limit_options("a model for which")
def check(
    models: tuple[str, ...],
    rules: tuple[Path, ...],
    target: str | None,
    env: tuple[str, ...],
    explain: bool,
    every: bool,
    near: bool,
    form: str,
    jobs: int,
    max_rows: int | None,
    max_seconds: float | None,
) -> int:
    """Say which known compiler bugs a model can hit, where and why.

    MODEL is an ONNX or .uir file, a folder, or a quoted glob. A match is certain, or possible where
    the model leaves open what the rule asks (an unknown extent, say). Constraints and deny rules of
    --rules are looked for, too: their violations are matches of a kind of their own.

    Exit code: 0 nothing matched, 1 something matched, 2 a model, a rule or an option is bad, 130
    stopped (JSON and SARIF then hold the models that were checked, and say so).
    """
    from reprise.data import data_path
    from reprise.lang.diagnostics import RulesError
    from reprise.lang.display import printable
    from reprise.patterns.check import (
        Checker,
        CheckOptions,
        UsageError,
        check_models,
        find_models,
        parse_environment,
        parse_target,
    )
    from reprise.patterns.limits import limits_of

    reports = []
    try:
        options = CheckOptions(
            rules or (data_path("rules/bugs"),),
            None if target is None else parse_target(target),
            parse_environment(env),
            explain,
            near,
            limits_of(max_rows, max_seconds),
        )
        paths = find_models(models)
        checker = Checker(options)
        for warning in checker.warnings:
            click.echo(f"reprise: warning: {printable(warning)}", err=True)
        for report in check_models(
            paths, options, jobs=jobs or os.cpu_count() or 1, checker=checker
        ):
            reports.append(report)
            if form == "text":
                from reprise.patterns.reports.text import model_text

                click.echo(model_text(report, styled, every=every), nl=False)
    except (RulesError, UsageError) as error:
        if form == "text":
            raise
        diagnostics = error.diagnostics if isinstance(error, RulesError) else []
        messages = [] if isinstance(error, RulesError) else [str(error)]
        show_json(_machine_form(form)(reports, diagnostics, messages))
        return Exit.INPUT
    except KeyboardInterrupt:
        if form == "text":
            raise
        ended = f"interrupted: {counted(len(reports), 'model')} checked"
        show_json(_machine_form(form)(reports, (), [ended]))
        return Exit.INTERRUPTED
    if form == "text":
        from reprise.patterns.reports.text import summary

        click.echo(summary(reports, checker.rule_count))
    else:
        show_json(_machine_form(form)(reports))
    if any(report.errors for report in reports):
        return Exit.INPUT
    return Exit.FOUND if any(report.matches for report in reports) else Exit.OK


def _machine_form(form: str):  # type: ignore[no-untyped-def]
    """The function that writes reports in a machine's format."""
    if form == "sarif":
        from reprise.patterns.reports.sarif import to_sarif

        return to_sarif
    from reprise.patterns.reports.json_report import to_json

    return to_json
