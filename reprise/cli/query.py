"""``reprise query``: one question, asked of a rule file and perhaps a model."""

from __future__ import annotations

from pathlib import Path

import click

from reprise.cli.limits import limit_options
from reprise.cli.main import Exit
from reprise.cli.output import show_diagnostics, show_json, show_table, text_or_json


@click.command(short_help="Ask a rule file one question.")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.argument("goal")
@click.option("--model", metavar="MODEL", help="Ask about this model's facts, too.")
@click.option(
    "--engine",
    type=click.Choice(["pydatalog", "reprise"]),
    help="What answers. Default: pyDatalog where it is installed.",
)
@text_or_json
@limit_options("a question for which")
def query(
    file: Path,
    goal: str,
    model: str | None,
    engine: str | None,
    form: str,
    max_rows: int | None,
    max_seconds: float | None,
) -> int:
    """Ask FILE one question: for which values of its variables does GOAL hold?

    GOAL is what may stand in the body of a rule, such as 'path(a, X), X != b'. Without variables
    the answer is yes or no. Nodes and tensors of MODEL are shown by name.

    Exit code: 0 answered, also where nothing holds; 2 bad rules, goal or model.
    """
    from reprise.lang.diagnostics import RulesError
    from reprise.patterns.limits import limits_of
    from reprise.patterns.query import PLACE, ask

    try:
        answer = ask(
            file,
            goal,
            model=None if model is None else Path(model),
            engine=engine,
            limits=limits_of(max_rows, max_seconds),
        )
    except RulesError as error:
        show_diagnostics(error.diagnostics, texts={PLACE: goal})
        return Exit.INPUT
    if form == "json":
        rows = [dict(zip(answer.variables, row, strict=True)) for row in answer.rows]
        show_json({"version": 1, "engine": answer.engine, "answers": rows})
    elif not answer.variables:
        click.echo("yes" if answer.rows else "no")
    else:
        show_table([answer.variables, *([str(value) for value in row] for row in answer.rows)])
        if not answer.rows:
            click.echo("reprise: it holds for no values", err=True)
    return Exit.OK
