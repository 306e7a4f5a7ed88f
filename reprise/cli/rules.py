"""``reprise rules``: the commands for whoever writes rules."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprise.cli.lazy import LazyGroup
from reprise.cli.limits import limit_options
from reprise.cli.main import Exit
from reprise.cli.output import (
    counted,
    replace_file,
    show_diagnostics,
    show_json,
    show_table,
    styled,
    text_or_json,
)

if TYPE_CHECKING:
    from reprise.lang.diagnostics import Diagnostic
    from reprise.lang.ruleset import RuleSet
    from reprise.patterns.testing import CaseResult

_HERE = "reprise.cli.rules"
INPUT = "<stdin>"
"""What messages call standard input."""

KINDS = ("pattern", "constraint", "deny", "monitor")

files_argument = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path),
)
files_or_input = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path, allow_dash=True),
)
one_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
maybe_paths = click.argument(
    "paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path)
)


@click.group(
    cls=LazyGroup,
    lazy={
        "lint": (f"{_HERE}:lint", "Say everything that is wrong with rule files."),
        "fmt": (f"{_HERE}:fmt", "Format rule files in place."),
        "test": (f"{_HERE}:test", "Run the tests that rule files hold."),
        "list": (f"{_HERE}:list_", "List patterns, constraints, deny rules and monitors."),
        "show": (f"{_HERE}:show", "Show one declaration."),
        "lower": (f"{_HERE}:lower", "Show what rules lower to."),
        "import-xcheck": (
            "reprise.cli.xcheck:import_xcheck",
            "Turn XCheck's tuple notation into rules.",
        ),
        "export-xcheck": (
            "reprise.cli.xcheck:export_xcheck",
            "Write constraints and monitors in XCheck's tuple notation.",
        ),
    },
    short_help="Check, format, test and inspect rule files.",
)
def rules() -> None:
    """Check, format, test and inspect rule files."""


@click.command(short_help="Say everything that is wrong with rule files.")
@files_or_input
@text_or_json
def lint(paths: tuple[Path, ...], form: str) -> int:
    """Say everything that is wrong with rule files.

    Each PATH is a .rules file or a folder of them; they may use each other and the library. `-` is
    standard input.

    Exit code: 0 clean, 1 warnings only, 2 errors.
    """
    from reprise.lang.diagnostics import RulesError, Severity
    from reprise.lang.lint import lint_rules
    from reprise.lang.ruleset import load_rules, load_text, rule_files
    from reprise.patterns.never import typed_clash
    from reprise.patterns.testing import case_problems

    files: list[Path] = []
    given: dict[str, str] = {}
    try:
        files = _some(rule_files(paths), paths)
        if paths == (Path("-"),):
            given[INPUT] = _standard_input()
            loaded = load_text(given[INPUT], INPUT)
        else:
            loaded = load_rules(files)
        diagnostics = lint_rules(loaded, case_problems(loaded), [typed_clash(loaded)])
    except RulesError as error:
        diagnostics = error.diagnostics
    errors = sum(d.severity is Severity.ERROR for d in diagnostics)
    warnings = len(diagnostics) - errors
    if form == "json":
        from reprise.lang.render import to_json

        show_json({"version": 1, "files": len(files), "diagnostics": to_json(diagnostics)})
    else:
        show_diagnostics(diagnostics, sys.stdout, given)
        found = [counted(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
        click.echo(f"{counted(len(files), 'file')}: {', '.join(found) or 'no problems'}")
    return Exit.INPUT if errors else Exit.FOUND if warnings else Exit.OK


@click.command(short_help="Format rule files in place.")
@files_or_input
@click.option("--check", is_flag=True, help="Change nothing; say which files would change.")
def fmt(paths: tuple[Path, ...], check: bool) -> int:
    """Format rule files in place. `-` formats standard input to standard output.

    Exit code: 0 formatted, or with --check nothing to do; 1 with --check something to do; 2 a file
    does not parse (the others are formatted all the same).
    """
    from reprise.lang.diagnostics import RulesError
    from reprise.lang.format import format_text
    from reprise.lang.ruleset import rule_files
    from reprise.lang.source import read_source

    if paths == (Path("-"),):
        text = _standard_input()
        try:
            click.echo(format_text(text, INPUT), nl=False)
        except RulesError as error:
            show_diagnostics(error.diagnostics, texts={INPUT: text})
            return Exit.INPUT
        return Exit.OK
    changed: list[Path] = []
    broken: list[Diagnostic] = []
    files = _some(rule_files(paths), paths)
    for path in files:
        try:
            text = read_source(path)
            formatted = format_text(text, str(path))
        except RulesError as error:
            broken += error.diagnostics
            continue
        if formatted != text:
            changed.append(path)
            if not check:
                replace_file(path, formatted)
    show_diagnostics(broken)
    for path in changed:
        click.echo(f"{'would format' if check else 'formatted'} {path}")
    what = "to format" if check else "formatted"
    rest = len(files) - len(changed)
    click.echo(f"{counted(len(changed), 'file')} {what}, {rest} unchanged")
    return Exit.INPUT if broken else Exit.FOUND if check and changed else Exit.OK


@click.command(short_help="Run the tests that rule files hold.")
@files_argument
@click.option("--only", multiple=True, metavar="NAME", help="Only tests of NAME; may be repeated.")
@click.option("-v", "--verbose", is_flag=True, help="Show the cases that pass, too.")
@text_or_json
@limit_options("a case for which")
def test(
    paths: tuple[Path, ...],
    only: tuple[str, ...],
    verbose: bool,
    form: str,
    max_rows: int | None,
    max_seconds: float | None,
) -> int:
    """Run the `test` blocks of rule files, and say which condition failed where a case does not
    come out as it says.

    Exit code: 0 all passed, 1 a case failed or there was none, 2 the rules do not load.
    """
    from reprise.lang.ruleset import load_rules
    from reprise.patterns.limits import limits_of
    from reprise.patterns.testing import Outcome, run_tests

    results = run_tests(load_rules(paths), only or None, limits_of(max_rows, max_seconds))
    failed = sum(not result.ok for result in results)
    if form == "json":
        cases = [{**asdict(result), "outcome": result.outcome.value} for result in results]
        show_json({"version": 1, "cases": cases})
    else:
        for result in results:
            if verbose or not result.ok:
                click.echo(_case_text(result))
        todo = sum(result.outcome is Outcome.TODO for result in results)
        click.echo(
            f"{len(results) - failed - todo} passed, {failed} failed"
            + (f", {todo} todo" if todo else "")
        )
        if not results:
            click.echo("reprise: no test ran", err=True)
    return Exit.FOUND if failed or not results else Exit.OK


def _case_text(result: CaseResult) -> str:
    colour = "green" if result.ok else "red"
    title = f' "{result.title}"' if result.title else ""
    head = f"{result.file}:{result.line}: {styled(result.outcome.value, colour)}"
    message = f"\n    {result.message}" if result.message else ""
    return f"{head} {result.subject} {result.kind}{title}{message}"


@click.command(name="list", short_help="List patterns, constraints, deny rules and monitors.")
@maybe_paths
@click.option(
    "--target", metavar="NAME[==VERSION]", help="Only patterns of this compiler (version)."
)
@click.option("--kind", type=click.Choice(KINDS), help="Only declarations of this kind.")
@text_or_json
def list_(paths: tuple[Path, ...], target: str | None, kind: str | None, form: str) -> int:
    """List the patterns, constraints, deny rules and monitors of PATHs, or of all that ships."""
    from reprise.lang.catalogue import catalogue

    rules = _loaded(paths)
    entries = catalogue(rules)
    if target is not None:
        from reprise.patterns.check import parse_target, select_patterns

        selected = {pattern.name for pattern in select_patterns(rules, parse_target(target))}
        entries = [e for e in entries if e.kind == "pattern" and e.name in selected]
    if kind is not None:
        entries = [entry for entry in entries if entry.kind == kind]
    if form == "json":
        show_json({"version": 1, "rules": [asdict(entry) for entry in entries]})
    else:
        show_table(
            [(entry.name, entry.kind, ",".join(entry.targets), entry.title) for entry in entries]
        )
    return Exit.OK


@click.command(short_help="Show one declaration.")
@click.argument("name")
@click.option(
    "--rules",
    "paths",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Where to look, instead of all that ships; may be repeated.",
)
def show(name: str, paths: tuple[Path, ...]) -> int:
    """Show the source of the declaration NAME, with its documentation and its tests.

    NAME may be any declared name: a pattern, an operator, a relation, a set.
    """
    from reprise.data import data_path
    from reprise.lang.catalogue import Sources
    from reprise.lang.spelling import operator_hint
    from reprise.lang.symbols import suggest

    sources = Sources.of(paths or (data_path("rules"),))
    found = sources.declarations(name)
    if not found:
        hint = operator_hint(name) or suggest(name, sources.names())
        raise click.UsageError(f"nothing is called `{name}`" + (f": {hint}" if hint else ""))
    for place, text in found:
        click.echo(styled(f"// {place}", "dim"))
        click.echo(text)
    return Exit.OK


@click.command(short_help="Show what rules lower to.")
@files_argument
@click.option("--python", "form", flag_value="python", help="The engine's compiled Python.")
@click.option("--clingo", "form", flag_value="clingo", help="A program for clingo.")
@click.option("--core", "form", flag_value="core", default=True, help="Core Datalog (default).")
def lower(paths: tuple[Path, ...], form: str) -> int:
    """Show the core Datalog that rules lower to, or what the engines run.

    Core Datalog is a rule file again; what it uses of the library stands there as comments.

    Exit code: 0 written, 2 a rule is bad, or clingo cannot express one (the others are written all
    the same).
    """
    from reprise.lang.catalogue import own_program
    from reprise.lang.ruleset import load_rules, rule_files

    rules = load_rules(_some(rule_files(paths), paths))
    program = own_program(rules)
    if form == "python":
        from reprise.datalog.database import Database
        from reprise.patterns.limits import USUAL, told_to_users

        with told_to_users(USUAL, program.relations, "--core and --clingo run nothing"):
            click.echo(Database(program, limits=USUAL).source(), nl=False)
    elif form == "clingo":
        from reprise.datalog.export import to_clingo_in_part
        from reprise.lang.display import printable

        text, refused = to_clingo_in_part(program)
        click.echo(text, nl=False)
        for error in refused:
            click.echo(f"reprise: left out: {printable(str(error))}", err=True)
        return Exit.INPUT if refused else Exit.OK
    else:
        from reprise.lang.catalogue import library_part, library_words
        from reprise.lang.coretext import format_beside

        library = library_part(rules, program)
        click.echo(format_beside(program, library, library_words(rules)), nl=False)
    return Exit.OK


def _some(files: list[Path], paths: tuple[Path, ...]) -> list[Path]:
    """The files that ``paths`` name, if there is one: no rules are hardly what was meant."""
    if not files:
        raise click.UsageError(f"no .rules file in {', '.join(map(str, paths))}")
    return files


def _standard_input() -> str:
    """What stands on standard input. Raises RulesError if it is not UTF-8."""
    from reprise.lang.source import decode_source

    return decode_source(sys.stdin.buffer.read(), INPUT)


def _loaded(paths: tuple[Path, ...]) -> RuleSet:
    """The rules of ``paths``, or all that ship."""
    from reprise.data import data_path
    from reprise.lang.ruleset import load_rules

    return load_rules(paths or (data_path("rules"),))
