"""``reprise rules lint``: everything that loading checks, and what is worth a slower look."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache
from pathlib import Path

from reprise.lang import ast, core
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity, Span
from reprise.lang.never import clash
from reprise.lang.ruleset import RuleSet, load_rules

Look = Callable[[core.Rule], Diagnostic | None]
"""Says what makes a body impossible, or None if it sees nothing."""


def lint(paths: Sequence[Path]) -> list[Diagnostic]:
    """All diagnostics for the files in ``paths``, errors and warnings, in source order.

    Raises RulesError if the files do not even load (it carries all errors found).
    """
    return lint_rules(load_rules(paths))


def lint_rules(
    rules: RuleSet, also: Iterable[Diagnostic] = (), looks: Sequence[Look] = ()
) -> list[Diagnostic]:
    """All diagnostics for the files of ``rules`` that were asked for, ``also`` among them.

    ``looks`` are further ways to see that a body can never hold. Raises RulesError, with all
    diagnostics, if one is an error.
    """
    found = [*rules.warnings, *_clashes(rules, (clash, *looks)), *also]
    tested = {test.subject.text for test in rules.tests}
    for file in rules.files:
        if file.path in rules.own:
            for decl in file.decls:
                found += _advice(decl, rules, tested)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise RulesError(sorted(found, key=_place))
    return sorted(found, key=_place)


def _place(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return span.file, span.line, span.column


def _clashes(rules: RuleSet, looks: Sequence[Look]) -> Iterator[Diagnostic]:
    """Declarations of which nothing satisfies any alternative."""
    by_name: dict[str, list[core.Rule]] = {}
    for rule in rules.program.rules:
        if rule.span is not None and rule.span.file in rules.own:
            by_name.setdefault(rule.name, []).append(rule)
    for alternatives in by_name.values():
        told: list[Diagnostic] = []
        for rule in alternatives:
            found = next((why for look in looks if (why := look(rule)) is not None), None)
            if found is None:
                break
            told.append(found)
        else:
            yield told[0]


def _advice(decl: ast.Decl, rules: RuleSet, tested: Set[str]) -> Iterator[Diagnostic]:
    match decl:
        case ast.PatternDecl():
            if decl.name.text in rules.symbols.operators:
                yield _warning(
                    "named-like-operator",
                    f"pattern `{decl.name.text}` has the name of an operator",
                    decl.name.span,
                    "name it after the defect, such as the number of its report",
                )
            if decl.name.text not in tested:
                yield _warning(
                    "untested",
                    f"`{decl.name.text}` has no test",
                    decl.name.span,
                    "add `test … { match { … } no_match { … } }`",
                )
            yield from _used_once((decl.lines, decl.where, decl.graph))
        case ast.RuleDecl() | ast.DenyDecl():
            yield from _used_once((decl.head, decl.body))
        case ast.ConstraintDecl():
            yield from _used_once((decl.lines, decl.where, decl.require))


def _used_once(parts: object) -> Iterator[Diagnostic]:
    """Value variables that occur once: they say nothing, and may be misspelt."""
    occurrences = list(_variables(parts))
    counts = Counter(v.name for v in occurrences)
    for variable in occurrences:
        if counts[variable.name] == 1:
            yield _warning(
                "used-once",
                f"`{variable.name}` is used once only",
                variable.span,
                "write `_` if any value will do",
            )


def _variables(part: object) -> Iterator[ast.Variable]:
    if isinstance(part, ast.Variable):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _variables(item)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type | Span):
        for name in _fields(type(part)):
            yield from _variables(getattr(part, name))


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _warning(code: str, message: str, span: Span, hint: str) -> Diagnostic:
    return Diagnostic(code, message, span, hint, Severity.WARNING)
