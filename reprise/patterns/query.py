"""``reprise query``: one goal, asked of a rule file's rules and of a model's facts.

The goal becomes a rule for a relation of its own, so that it may be whatever a rule's body may be,
and is checked like one. It is answered by pyDatalog, which works back from the goal, or by our own
engine, which derives forward what the goal depends on; both run the same core program.
"""

from __future__ import annotations

import multiprocessing
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path

from reprise.datalog import LimitError, Limits
from reprise.datalog.database import Database
from reprise.datalog.errors import UnsupportedError
from reprise.facts.facts import facts_of
from reprise.lang import ast, core
from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from reprise.lang.lower.variables import value_variables
from reprise.lang.parse import parse_text
from reprise.lang.ruleset import RuleSet, load_text, rule_files
from reprise.patterns.check import UsageError
from reprise.patterns.explain import entity_names
from reprise.patterns.limits import USUAL, told
from reprise.patterns.models import read_model

GOAL = "query__answer"
"""The relation that a goal becomes."""

PLACE = "<goal>"
"""The file name in diagnostics about the goal."""


@dataclass(frozen=True, slots=True)
class Answer:
    """For which values of its variables a goal holds (no variables: one empty row, or none).

    Nodes and tensors of a model stand there by name.
    """

    engine: str
    variables: tuple[str, ...]
    rows: tuple[core.Row, ...]


def goal_text(goal: str) -> tuple[str, tuple[str, ...]]:
    """The goal as a rule, on a line of its own; and its variables, in order of appearance.

    Raises RulesError if it does not parse.
    """
    body = goal.rstrip().rstrip(".")
    if GOAL in body:
        raise UsageError(f"{GOAL} is what a query itself is called")
    file = parse_text(f"{GOAL}() :-\n{body}\n.", PLACE)
    rules = [decl for decl in file.decls if isinstance(decl, ast.RuleDecl)]
    if len(file.decls) != 1 or len(rules) != 1:
        raise UsageError("a query is one goal: what may stand in the body of a rule")
    variables = tuple(dict.fromkeys(value_variables(rules[0].body)))
    return f"{GOAL}({', '.join(variables)}) :-\n{body}\n.", variables


def ask(
    file: Path,
    goal: str,
    *,
    model: Path | None = None,
    engine: str | None = None,
    limits: Limits = USUAL,
) -> Answer:
    """Answer ``goal`` by the rules of ``file`` (or folder), and the facts of ``model`` if given.

    Of ``limits`` pyDatalog keeps the time, and our own engine both.

    Raises RulesError, ModelError or UsageError; places in the goal are counted from its start.
    """
    variables, rules = _loaded(file, goal)
    program = rules.program.restricted_to([GOAL])
    facts: list[tuple[str, core.Row]] = []
    names: dict[int, str] = {}
    if model is not None:
        known = program.relations
        graph = read_model(model, rules)
        names = entity_names(graph)
        facts = [fact for fact in facts_of(graph) if fact[0] in known]
    try:
        by, rows = _answered(program, facts, engine, limits)
    except LimitError as error:
        others = {n: r for n, r in program.relations.items() if n != GOAL}
        message, option = told(error, limits, others)
        raise UsageError(f"{message}; {option} raises the limit") from None
    types = [column.type for column in program.relations[GOAL].columns]
    return Answer(by, variables, tuple(_named(row, types, names) for row in rows))


def _loaded(file: Path, goal: str) -> tuple[tuple[str, ...], RuleSet]:
    """The goal's variables, and the rules with the goal as one of them."""
    head: tuple[str, ...] = ()
    try:
        rule, head = goal_text(goal)
        files = rule_files([file])
        imports = "".join(f'import "{path.resolve().as_posix()}"\n' for path in files)
        return head, load_text(f"{rule}\n{imports}", PLACE)
    except RulesError as error:
        raise RulesError(_in_the_goal(error.diagnostics, goal, head)) from None


def _in_the_goal(
    diagnostics: Sequence[Diagnostic], goal: str, variables: Sequence[str]
) -> list[Diagnostic]:
    """Diagnostics as if the goal were a file: without the head that it got, which has the first
    line. What is wrong there is about a variable, and follows from what is wrong in the goal."""
    about_goal = any(d.span.file == PLACE and d.span.line > 1 for d in diagnostics)
    kept: list[Diagnostic] = []
    columns = {}
    column = len(GOAL) + 2
    for name in variables:
        columns[column] = name
        column += len(name) + 2
    for diagnostic in diagnostics:
        span = diagnostic.span
        hint = None if GOAL in (diagnostic.hint or "") else diagnostic.hint
        if span.file != PLACE:
            kept.append(diagnostic)
        elif span.line > 1:
            moved = replace(span, line=span.line - 1, end_line=span.end_line - 1)
            kept.append(replace(diagnostic, span=moved, hint=hint))
        elif not about_goal:
            name = columns.get(span.column) or next(iter(variables), "")
            message = diagnostic.message
            if diagnostic.code == "unknown-type":
                message = f"cannot tell what kind of value `{name}` is"
            kept.append(replace(diagnostic, message=message, span=_first(name, goal), hint=hint))
    return kept


def _first(name: str, goal: str) -> Span:
    """Where a variable first occurs."""
    found = re.search(rf"\b{re.escape(name)}\b", goal)
    before = goal[: found.start()] if found else ""
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return Span(PLACE, line, column, line, column + len(name))


def _named(row: core.Row, types: Sequence[str], names: Mapping[int, str]) -> core.Row:
    """A row with nodes and tensors by name."""
    return tuple(
        names.get(value, f"#{value}")
        if isinstance(value, int) and type_ in ("node", "tensor")
        else value
        for value, type_ in zip(row, types, strict=True)
    )


def _answered(
    program: core.Program,
    facts: Sequence[tuple[str, core.Row]],
    engine: str | None,
    limits: Limits,
) -> tuple[str, list[core.Row]]:
    """Which engine answered, and what."""
    if engine == "pydatalog" and not find_spec("pyDatalog"):
        raise UsageError("pyDatalog is not installed: pip install 'reprise[query]'")
    if engine != "reprise" and find_spec("pyDatalog"):
        try:
            return "pydatalog", _by_pydatalog(program, facts, limits)
        except UnsupportedError as error:
            if engine == "pydatalog":
                reason = str(error).partition(f": {GOAL}(")[0]  # the rule is the goal itself
                raise UsageError(f"--engine pydatalog: {reason}") from None
    return "reprise", _by_us(program, facts, limits)


def _by_us(
    program: core.Program, facts: Iterable[tuple[str, core.Row]], limits: Limits
) -> list[core.Row]:
    database = Database(program, limits=limits)
    database.commit(facts)
    return database.rows(GOAL)


def _by_pydatalog(
    program: core.Program, facts: Iterable[tuple[str, core.Row]], limits: Limits
) -> list[core.Row]:
    """In a process of its own: pyDatalog may go on for ever, and cannot be stopped otherwise."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_tell, args=(sender, program, facts), daemon=True)
    child.start()
    sender.close()
    try:
        if not receiver.poll(limits.max_seconds):
            raise LimitError(GOAL, "max_seconds", limits.max_seconds or 0)
        answer = receiver.recv()
    except EOFError:
        raise UsageError("pyDatalog's process was killed: it may need more memory") from None
    finally:
        child.kill()
        child.join()
    if isinstance(answer, Exception):
        raise answer
    rows: list[core.Row] = answer
    return rows


def _tell(sender: Connection, program: core.Program, facts: Iterable[tuple[str, core.Row]]) -> None:
    """Send the goal's rows, or the exception that came instead."""
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its child
    try:
        database = PyDatalogEngine(program)
        database.commit(facts)
        sender.send(database.rows(GOAL))
    except Exception as error:
        sender.send(error)
