"""``reprise rules test``: runs the ``test`` blocks that stand beside the rules.

A case is a small graph (and given facts); ``match`` wants the subject's relation to hold something,
``no_match`` nothing, ``possible`` only possible matches, ``holds`` / ``violates`` a constraint kept
or broken where its guard applies. ``todo_…`` cases are expected to fail: one that passes is
reported, so that it is promoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from reprise.datalog import Database, LimitError, Limits
from reprise.facts.facts import facts_of
from reprise.lang import ast, core
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity
from reprise.lang.ruleset import RuleSet
from reprise.lang.symbols import suggest
from reprise.patterns.explain import reason
from reprise.patterns.limits import USUAL, told
from reprise.patterns.match import Matcher, node_name
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.uir.text import read_givens, read_graph


class Outcome(Enum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    TODO = "todo"  # a todo_ case that fails, as expected
    PROMOTE = "promote"  # a todo_ case that passes: drop the todo_


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case's outcome; ``message`` says what was expected and which condition failed."""

    subject: str
    kind: str
    title: str
    file: str
    line: int
    outcome: Outcome
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.outcome in (Outcome.PASSED, Outcome.TODO)


def run_tests(
    rules: RuleSet, only: Iterable[str] | None = None, limits: Limits = USUAL
) -> list[CaseResult]:
    """Run every test of the files that were asked for (``only``: these subjects)."""
    wanted = None if only is None else set(only)
    signatures = Signatures.of_symbols(rules.symbols)
    results: list[CaseResult] = []
    for test in rules.tests:
        if test.span.file not in rules.own or (
            wanted is not None and test.subject.text not in wanted
        ):
            continue
        runner = _Runner(rules, signatures, test.subject.text, limits)
        results += [runner.run(case) for case in test.cases]
    return results


def case_problems(rules: RuleSet) -> list[Diagnostic]:
    """What is wrong with the programs of test cases: unknown operators, operands that do not fit,
    given facts of no relation. In ``todo_`` cases these are warnings. And cases of a kind that
    means nothing of their subject."""
    signatures = Signatures.of_symbols(rules.symbols)
    found: list[Diagnostic] = []
    for test in rules.tests:
        if test.span.file not in rules.own:
            continue
        for case in test.cases:
            found += _kind_problems(test.subject.text, case, rules)
            problems = _case_problems(case, signatures, rules)
            todo = case.kind.startswith("todo_")
            found += [replace(p, severity=Severity.WARNING) for p in problems] if todo else problems
    return found


def _kind_problems(subject: str, case: ast.Case, rules: RuleSet) -> list[Diagnostic]:
    if case.kind in ("holds", "violates"):
        fits, kinds = subject in rules.constraints, ("constraints", "match` and `no_match")
    elif case.kind == "possible":
        fits, kinds = subject in rules.patterns, ("patterns", "match` and `no_match")
    else:
        return []
    if fits:
        return []
    whole = case.span
    span = replace(whole, end_line=whole.line, end_column=whole.column + len(case.kind))
    message = f"`{case.kind}` is for {kinds[0]}; `{subject}` is none"
    return [Diagnostic("wrong-case", message, span, f"cases of other kinds: `{kinds[1]}`")]


def _case_problems(case: ast.Case, signatures: Signatures, rules: RuleSet) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for read in (lambda: read_graph(case.lines, signatures), lambda: read_givens(case.lines)):
        try:
            read()
        except RulesError as error:
            found += error.diagnostics
    for line in case.lines:
        if isinstance(line, ast.Given) and line.fact.relation.text != "opset":
            relation = line.fact.relation
            declared = rules.program.relations.get(relation.text)
            if declared is None or declared.span is None:
                message = f"no relation is called `{relation.text}`"
                hint = suggest(relation.text, rules.symbols.relations)
                found.append(Diagnostic("unknown-relation", message, relation.span, hint))
            elif len(line.fact.args) != len(declared.columns):
                columns = ", ".join(column.name for column in declared.columns)
                message = f"`{relation.text}` has {len(declared.columns)} columns ({columns})"
                found.append(Diagnostic("wrong-arity", message, line.fact.span))
    return found


class _Runner:
    """Runs the cases of one subject."""

    def __init__(
        self, rules: RuleSet, signatures: Signatures, subject: str, limits: Limits
    ) -> None:
        self._rules = rules
        self._limits = limits
        self._signatures = signatures
        self._subject = subject
        self._pattern = rules.patterns.get(subject)
        self._constraint = rules.constraints.get(subject)
        self._matcher = Matcher(rules, [self._pattern], limits) if self._pattern else None

    def run(self, case: ast.Case) -> CaseResult:
        kind = case.kind.removeprefix("todo_")
        try:
            problem = self._problem(kind, case)
        except RulesError as error:
            first = error.diagnostics[0]
            problem = f"the case is not a valid program: {first.span}: {first.message}"
            return self._result(case, Outcome.FAILED, problem)
        except LimitError as error:
            problem, option = told(error, self._limits, self._rules.program.relations)
            return self._result(case, Outcome.FAILED, f"{problem}; {option} raises the limit")
        if case.kind.startswith("todo_"):
            return self._result(case, Outcome.TODO if problem else Outcome.PROMOTE, problem or "")
        return self._result(case, Outcome.FAILED if problem else Outcome.PASSED, problem or "")

    def _result(self, case: ast.Case, outcome: Outcome, message: str) -> CaseResult:
        return CaseResult(
            self._subject, case.kind, case.title, case.span.file, case.span.line, outcome, message
        )

    def _problem(self, kind: str, case: ast.Case) -> str | None:
        """What is wrong, or None if the case holds."""
        if self._pattern is not None and self._matcher is not None:
            return self._pattern_problem(kind, case, self._pattern, self._matcher)
        guard = self._constraint.guard if self._constraint else None
        roots = [self._subject, *([guard] if guard else [])]
        graph = read_graph(case.lines, self._signatures)
        given = read_givens(case.lines)
        database = Database(self._rules.program.restricted_to(roots), limits=self._limits)
        known = database.program.relations
        facts = [f for f in (*facts_of(graph), *given) if f[0] in known]
        database.commit(facts)
        rows = database.rows(self._subject)
        if kind in ("holds", "violates"):
            if guard is None:
                return f"`{kind}` is for constraints; `{self._subject}` is none"
            if not database.rows(guard):
                return "the constraint's lines occur nowhere in this graph"
            if kind == "holds":
                return None if not rows else f"it is violated, at {_row(rows[0])}"
            return None if rows else "nothing violates it"
        if kind == "match":
            return None if rows else f"`{self._subject}` holds nothing"
        if kind == "no_match":
            return None if not rows else f"`{self._subject}` holds {_row(rows[0])}"
        return f"`{kind}` is for patterns"

    def _pattern_problem(
        self, kind: str, case: ast.Case, pattern: Pattern, matcher: Matcher
    ) -> str | None:
        graph = read_graph(case.lines, self._signatures)
        given = read_givens(case.lines)
        found = matcher.run(graph, near=True, given=given)
        sure = [f for f in found.findings if f.certainty is Truth.YES]
        open_ones = [f for f in found.findings if f.certainty is Truth.UNKNOWN]
        told = (matcher.program, self._rules.sources)
        match kind:
            case "match" if sure:
                return None
            case "match" if open_ones:
                return f"it matches only possibly: {reason(open_ones[0], found, *told)}"
            case "match" if found.near:
                return f"no match; the nearest failed at {reason(found.near[0], found, *told)}"
            case "match":
                return "no match: the pattern's nodes and flow occur nowhere in this graph"
            case "no_match" if sure:
                names = {node.id: node_name(found.graph, node) for node in found.graph.nodes}
                nodes = ", ".join(f"{k} = {names[i]}" for k, i in sure[0].nodes.items())
                return f"it matches: {nodes}"
            case "no_match" if open_ones:
                return f"it matches possibly: {reason(open_ones[0], found, *told)}"
            case "no_match":
                return None
            case "possible" if sure:
                return "it matches for certain"
            case "possible":
                return None if open_ones else "it does not even match possibly"
            case _:
                return f"`{kind}` is for constraints; `{pattern.name}` is a pattern"


def _row(row: core.Row) -> str:
    return "(" + ", ".join(str(v) for v in row) + ")"
