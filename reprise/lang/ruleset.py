"""Loading rule files: from paths to one checked :class:`RuleSet`.

Everything that is wrong is found in one go and leaves here as a single RulesError; a RuleSet that
was returned has resolved names, typed and safe rules, and a stratified program.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprise.data import data_path
from reprise.lang import ast, core
from reprise.lang.declarations import (
    Constraint,
    DeclarationLowering,
    Deny,
    Monitor,
    Pattern,
)
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity
from reprise.lang.infer import infer_auxiliary, infer_declared
from reprise.lang.never import contradictions
from reprise.lang.parse import parse_file, parse_text
from reprise.lang.safety import check_rule
from reprise.lang.stratify import stratify
from reprise.lang.symbols import NamedSet, Report, Symbols, collect_symbols, suggest

LIBRARY = ("std", "ops")
"""Folders of the rule library that every rule may use without importing them."""


@dataclass(frozen=True)
class RuleSet:
    """Checked rules. ``program`` is everything lowered; the rest is for people and tools."""

    files: tuple[ast.RuleFile, ...]
    sources: dict[str, str]
    program: core.Program
    symbols: Symbols
    patterns: dict[str, Pattern] = field(default_factory=dict)
    constraints: dict[str, Constraint] = field(default_factory=dict)
    denies: dict[str, tuple[Deny, ...]] = field(default_factory=dict)
    monitors: dict[str, Monitor] = field(default_factory=dict)
    tests: tuple[ast.TestDecl, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    own: frozenset[str] = frozenset()
    """Paths of the files that were asked for (not the library, not imports)."""

    @property
    def ops(self) -> dict[str, ast.OpDecl]:
        """Operator signatures by name."""
        return {name: op.decl for name, op in self.symbols.operators.items()}

    @property
    def sets(self) -> dict[str, NamedSet]:
        """Named sets."""
        return self.symbols.sets


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The ``.rules`` files that ``paths`` name: files as they are, folders searched, in order."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*.rules") if p.is_file())
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def load_rules(paths: Sequence[Path], *, library: bool = True) -> RuleSet:
    """Load rule files and folders, with what they import and (``library``) the shipped library.

    Raises RulesError with every diagnostic, errors and warnings, in source order.
    """
    loader = _Loader()
    for path in rule_files(paths):
        loader.load(path, own=True)
    if library:
        for folder in LIBRARY:
            for path in rule_files([data_path(f"rules/{folder}")]):
                loader.load(path)
    return loader.finish()


def load_text(text: str, path: str = "<text>", *, library: bool = True) -> RuleSet:
    """Load rules from a string, as :func:`load_rules` does from files."""
    loader = _Loader()
    loader.add_text(text, path)
    if library:
        for folder in LIBRARY:
            for file in rule_files([data_path(f"rules/{folder}")]):
                loader.load(file)
    return loader.finish()


class _Loader:
    """Parses each file once, follows imports, then checks and lowers everything together."""

    def __init__(self) -> None:
        self.report = Report()
        self.files: dict[Path | str, ast.RuleFile] = {}
        self.sources: dict[str, str] = {}
        self.own: set[str] = set()
        self._seen: set[Path] = set()

    def add_text(self, text: str, path: str) -> None:
        """Parse ``text`` as a file of its own."""
        self.sources[path] = text
        self.own.add(path)
        try:
            self.files[path] = parse_text(text, path)
        except RulesError as error:
            self.report.diagnostics += error.diagnostics
            return
        self._imports(self.files[path], Path())

    def load(self, path: Path, own: bool = False) -> None:
        """Parse a file and what it imports, unless that has happened already."""
        if own:
            self.own.add(str(path))
        key = path.resolve()
        if key in self._seen:
            return
        self._seen.add(key)
        try:
            file = parse_file(path)
        except RulesError as error:
            self.report.diagnostics += error.diagnostics
            self._remember(path)
            return
        self._remember(path)
        self.files[key] = file
        self._imports(file, path.parent)

    def _imports(self, file: ast.RuleFile, folder: Path) -> None:
        for imported in file.imports:
            candidates = [folder / imported.path, data_path("rules") / imported.path]
            target = next((c for c in candidates if c.is_file()), None)
            if target is None:
                known = [
                    str(p.relative_to(data_path("rules"))) for p in rule_files([data_path("rules")])
                ]
                self.report.error(
                    "missing-import",
                    f"there is no file `{imported.path}`",
                    imported.span,
                    suggest(imported.path, known)
                    or "paths are relative to this file, or to the shipped library",
                )
                continue
            self.load(target)

    def _remember(self, path: Path) -> None:
        try:
            self.sources[str(path)] = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            self.sources[str(path)] = ""

    def finish(self) -> RuleSet:
        """Check and lower everything that was loaded."""
        files = tuple(self.files.values())
        symbols = collect_symbols(files, self.report)
        decls = [d for file in files for d in file.decls]
        clauses = [d for d in decls if isinstance(d, ast.RuleDecl | ast.DenyDecl)]
        for decl in decls:
            if isinstance(decl, ast.PatternDecl | ast.ConstraintDecl):
                nodes = dict.fromkeys(line.names[0].text for line in decl.lines)
                symbols.column_types[decl.name.text] = ("node",) * len(nodes)
        infer_declared(clauses, symbols, self.report)
        lowering = DeclarationLowering(symbols, self.report)
        result = _Lowered(lowering)
        for decl in decls:
            result.add(decl)
        self._tests_have_subjects(result, symbols)
        self._patterns_differ(list(result.patterns.values()))
        relations = {**symbols.relations, **lowering.auxiliary.relations}
        rules = [*lowering.rules, *lowering.auxiliary.rules]
        if not self.report.failed:
            infer_auxiliary(rules, relations)
        program = core.Program(relations, tuple(rules))
        if not self.report.failed:
            self._check(program)
        if self.report.failed:
            raise RulesError(_in_order(self.report.diagnostics))
        warnings = tuple(d for d in self.report.diagnostics if d.severity is Severity.WARNING)
        return RuleSet(
            files,
            self.sources,
            program,
            symbols,
            result.patterns,
            result.constraints,
            {name: tuple(group) for name, group in result.denies.items()},
            result.monitors,
            tuple(result.tests),
            warnings,
            frozenset(self.own),
        )

    def _check(self, program: core.Program) -> None:
        for rule in program.rules:
            self.report.diagnostics += check_rule(rule, program.relations)
        self.report.diagnostics += contradictions(program.rules)
        if not self.report.failed:
            try:
                stratify(program)
            except RulesError as error:
                self.report.diagnostics += error.diagnostics

    def _patterns_differ(self, patterns: Sequence[Pattern]) -> None:
        """Two patterns about one target must not match the same places."""
        seen: dict[object, Pattern] = {}
        for pattern in patterns:
            same = frozenset(canonical((*a.structure, *a.conditions)) for a in pattern.alternatives)
            key = (pattern.meta.get("target"), same)
            first = seen.setdefault(key, pattern)
            if first is not pattern and same:
                self.report.error(
                    "shadowed",
                    f"`{pattern.name}` matches exactly what `{first.name}` matches",
                    pattern.span,
                    f"{first.span}: add the report to that pattern as a further `bug:`",
                )

    def _tests_have_subjects(self, result: _Lowered, symbols: Symbols) -> None:
        subjects = {*result.patterns, *result.constraints, *symbols.column_types, *result.monitors}
        for test in result.tests:
            if test.subject.text not in subjects:
                self.report.error(
                    "unknown-subject",
                    f"nothing is called `{test.subject.text}`",
                    test.subject.span,
                    suggest(test.subject.text, subjects),
                )


class _Lowered:
    """The declarations of a rule set by kind, as they are lowered."""

    def __init__(self, lowering: DeclarationLowering) -> None:
        self.lowering = lowering
        self.patterns: dict[str, Pattern] = {}
        self.constraints: dict[str, Constraint] = {}
        self.denies: dict[str, list[Deny]] = {}
        self.monitors: dict[str, Monitor] = {}
        self.tests: list[ast.TestDecl] = []

    def add(self, decl: ast.Decl) -> None:
        """Lower one declaration."""
        match decl:
            case ast.RuleDecl():
                self.lowering.rule(decl)
            case ast.DenyDecl():
                self.lowering.rule(decl)
                columns = tuple(
                    a.name if isinstance(a, ast.Variable) else "_" for a in decl.head.args
                )
                name = decl.head.relation.text
                deny = Deny(name, decl.message, columns, decl.span)
                self.denies.setdefault(name, []).append(deny)
            case ast.PatternDecl():
                self.patterns[decl.name.text] = self.lowering.pattern(decl)
            case ast.ConstraintDecl():
                self.constraints[decl.name.text] = self.lowering.constraint(decl)
            case ast.MonitorDecl():
                self.monitors[decl.name.text] = self.lowering.monitor(decl)
            case ast.TestDecl():
                self.tests.append(decl)
            case ast.OpDecl() | ast.SetDecl() | ast.RelationDecl():
                pass


def canonical(literals: Sequence[core.Literal]) -> str:
    """Literals with their variables numbered by first use: equal texts mean equal conditions."""
    numbers: dict[str, int] = {}
    for literal in literals:
        for name in core.variables(literal):
            numbers.setdefault(name, len(numbers))
    pattern = re.compile(r"Var\(name='([^']*)'\)")
    plain = repr([_without_span(x) for x in literals])
    return pattern.sub(lambda found: f"V{numbers[found.group(1)]}", plain)


def _without_span(literal: core.Literal) -> core.Literal:
    bare = dataclasses.replace(literal, span=None)
    if isinstance(bare, core.Aggregate):
        return dataclasses.replace(bare, body=tuple(_without_span(x) for x in bare.body))
    return bare


def _in_order(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    unique = list(dict.fromkeys(diagnostics))
    return sorted(unique, key=lambda d: (d.span.file, d.span.line, d.span.column))
