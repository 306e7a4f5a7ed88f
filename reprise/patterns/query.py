"""``reprise query``: one goal, asked of a rule file's rules and of a model's facts.

The goal becomes a rule for a relation of its own, so that it may be whatever a rule's body may be,
and is checked like one. It is answered by pyDatalog, which works back from the goal, or by our own
engine, which derives forward what the goal depends on; both run the same core program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reprise.datalog.database import Database
from reprise.datalog.errors import UnsupportedError
from reprise.facts.facts import facts_of
from reprise.lang import ast, core
from reprise.lang.declarations import value_variables
from reprise.lang.parse import parse_text
from reprise.lang.ruleset import load_text
from reprise.patterns.check import UsageError
from reprise.patterns.models import read_model

GOAL = "query__answer"
"""The relation that a goal becomes."""

PLACE = "<goal>"
"""The file name in diagnostics about the goal."""


@dataclass(frozen=True, slots=True)
class Answer:
    """For which values of its variables a goal holds (no variables: one empty row, or none)."""

    engine: str
    variables: tuple[str, ...]
    rows: tuple[core.Row, ...]


def goal_text(goal: str) -> tuple[str, tuple[str, ...]]:
    """The goal as a rule, on a line of its own; and its variables, in order of appearance.

    Raises RulesError if it does not parse.
    """
    body = goal.strip().rstrip(".")
    file = parse_text(f"{GOAL}() :-\n{body}\n.", PLACE)
    rules = [decl for decl in file.decls if isinstance(decl, ast.RuleDecl)]
    if len(file.decls) != 1 or len(rules) != 1:
        raise UsageError("a query is one goal: what may stand in the body of a rule")
    variables = tuple(dict.fromkeys(value_variables(rules[0].body)))
    return f"{GOAL}({', '.join(variables)}) :-\n{body}\n.", variables


def ask(file: Path, goal: str, *, model: Path | None = None, engine: str | None = None) -> Answer:
    """Answer ``goal`` by the rules of ``file`` (or folder), and the facts of ``model`` if given.

    Raises RulesError, ModelError or UsageError.
    """
    rule, variables = goal_text(goal)
    files = sorted(file.rglob("*.rules")) if file.is_dir() else [file]
    imports = "".join(f'import "{path.resolve().as_posix()}"\n' for path in files)
    rules = load_text(f"{rule}\n{imports}", PLACE)
    program = rules.program.restricted_to([GOAL])
    facts: list[tuple[str, core.Row]] = []
    if model is not None:
        known = program.relations
        facts = [fact for fact in facts_of(read_model(model, rules)) if fact[0] in known]
    if engine == "pydatalog" and not find_spec("pyDatalog"):
        raise UsageError("pyDatalog is not installed: pip install 'reprise[query]'")
    if engine != "reprise" and find_spec("pyDatalog"):
        try:
            return Answer("pydatalog", variables, tuple(_by_pydatalog(program, facts)))
        except UnsupportedError:
            if engine == "pydatalog":
                raise
    return Answer("reprise", variables, tuple(_by_us(program, facts)))


def _by_us(program: core.Program, facts: Iterable[tuple[str, core.Row]]) -> list[core.Row]:
    database = Database(program)
    database.commit(facts)
    return database.rows(GOAL)


def _by_pydatalog(program: core.Program, facts: Iterable[tuple[str, core.Row]]) -> list[core.Row]:
    from reprise.datalog.pydatalog_engine import PyDatalogEngine

    database = PyDatalogEngine(program)
    database.commit(facts)
    return database.rows(GOAL)
