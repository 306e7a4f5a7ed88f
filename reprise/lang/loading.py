"""From rule files to a checked rule set: parse, resolve, lower, check.

Everything that is wrong is found in one go and leaves here as a single RulesError.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path

from reprise.data import data_path
from reprise.lang import ast, core
from reprise.lang.declarations import DeclarationLowering
from reprise.lang.declared import Constraint, Deny, Monitor, Pattern
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity
from reprise.lang.infer import infer_auxiliary, infer_declared
from reprise.lang.metadata import check_class, check_metadata
from reprise.lang.never import contradictions
from reprise.lang.parse import parse_file, parse_text
from reprise.lang.ruleset import RuleSet, Syntax, rule_files
from reprise.lang.safety import check_rule
from reprise.lang.source import source_for_messages
from reprise.lang.stratify import stratify
from reprise.lang.symbols import Report, Symbols, collect_symbols, suggest


@lru_cache(maxsize=512)
def _parsed(path: Path, version: tuple[int, int]) -> ast.RuleFile:
    """A file's tree, parsed once per version: trees are never changed."""
    return parse_file(path)


def _version(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


class Loader:
    """Parses each file once, follows imports, then checks and lowers everything together."""

    def __init__(self) -> None:
        self.report = Report()
        self.files: dict[Path | str, ast.RuleFile] = {}
        self.sources: dict[str, str] = {}
        self.own: set[str] = set()
        self._seen: dict[Path, str] = {}
        self._spoilt: set[str] = set()
        self._syntax: set[int] = set()

    def add_text(self, text: str, path: str) -> None:
        """Parse ``text`` as a file of its own."""
        self.sources[path] = text
        self.own.add(path)
        try:
            self.files[path] = parse_text(text, path)
        except RulesError as error:
            self._salvage(path, path, error, text)
            return
        self._imports(self.files[path], Path())

    def load(self, path: Path, own: bool = False) -> None:
        """Parse a file and what it imports, unless that has happened already: then it is called
        as it was first, whichever way its path is spelled now."""
        key = path.resolve()
        is_new = key not in self._seen
        name = self._seen.setdefault(key, str(path))
        if own:
            self.own.add(name)
        if not is_new:
            return
        try:
            file = _parsed(path, _version(path))
        except RulesError as error:
            self._remember(path)
            self._salvage(key, str(path), error, self.sources[str(path)])
            return
        self._remember(path)
        self.files[key] = file
        self._imports(file, path.parent)

    def _salvage(self, key: Path | str, path: str, error: RulesError, text: str) -> None:
        """Keep what is sound of a file with syntax errors, so that its other mistakes are told in
        the same run; what the rest may have declared is not called unknown."""
        self.report.diagnostics += error.diagnostics
        self._syntax.update(map(id, error.diagnostics))
        self._spoilt.update(_DECLARES.findall(text))
        sound = tuple(d for d in error.sound if isinstance(d, ast.Decl))
        self.files[key] = ast.RuleFile(path, (), sound)

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
        self.sources[str(path)] = source_for_messages(path)

    def finish(self) -> RuleSet:
        """Check and lower everything that was loaded."""
        files = tuple(self.files.values())
        # The library's names come first: whoever declares one of them again is told so.
        symbols = collect_symbols(sorted(files, key=_is_not_shipped), self.report)
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
        if lowering.broken:  # what is sound is checked all the same, to tell everything at once
            rules = [r for r in rules if _is_sound(r, lowering.broken, relations)]
        infer_auxiliary(rules, relations)
        program = core.Program(relations, tuple(rules))
        self._check(program)
        if self.report.failed:
            raise RulesError(_in_order(self._without_followers()))
        warnings = tuple(d for d in self.report.diagnostics if d.severity is Severity.WARNING)
        return RuleSet(
            self.sources,
            program,
            result.patterns,
            result.constraints,
            {name: tuple(group) for name, group in result.denies.items()},
            result.monitors,
            warnings,
            frozenset(self.own),
            Syntax(files, symbols, tuple(result.tests)),
        )

    def _without_followers(self) -> list[Diagnostic]:
        """The diagnostics, but for names that are unknown only because of a syntax error."""
        return [
            d
            for d in self.report.diagnostics
            if id(d) in self._syntax
            or not (
                d.code.startswith("unknown-") and self._spoilt & set(re.findall(r"\w+", d.message))
            )
        ]

    def _check(self, program: core.Program) -> None:
        for rule in program.rules:
            self.report.diagnostics += check_rule(rule, program.relations)
        self.report.diagnostics += contradictions(program.rules)
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
        self.lowering.auxiliary.span = decl.span
        match decl:
            case ast.RuleDecl():
                self.lowering.rule(decl)
            case ast.DenyDecl():
                deny = self.lowering.deny(decl)
                self.denies.setdefault(deny.name, []).append(deny)
            case ast.PatternDecl():
                check_metadata(decl, self.lowering.report)
                self.patterns[decl.name.text] = self.lowering.pattern(decl)
            case ast.ConstraintDecl():
                check_class(decl, self.lowering.report)
                self.constraints[decl.name.text] = self.lowering.constraint(decl)
            case ast.MonitorDecl():
                check_class(decl, self.lowering.report)
                self.monitors[decl.name.text] = self.lowering.monitor(decl)
            case ast.TestDecl():
                self.tests.append(decl)
            case ast.OpDecl() | ast.SetDecl() | ast.RelationDecl():
                pass


def _is_not_shipped(file: ast.RuleFile) -> bool:
    return not Path(file.path).is_relative_to(data_path("rules"))


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


_DECLARES = re.compile(
    r"^\s*(?:(?:relation|set|op|pattern|constraint|monitor|deny)\s+)?([a-z_]\w*)\s*[({=:]",
    re.MULTILINE,
)
"""Where a line may declare a name: ``relation r(``, ``set s =``, ``head(``, ``pattern p {``."""


def _is_sound(rule: core.Rule, broken: Set[str], relations: Mapping[str, core.Relation]) -> bool:
    """Whether a rule was lowered without complaint and reads declared relations only."""
    return rule.name not in broken and all(
        name in relations for name in (rule.head.relation, *core.relations_in(rule.body))
    )


def _in_order(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    unique = list(dict.fromkeys(diagnostics))
    return sorted(unique, key=lambda d: (d.span.file, d.span.line, d.span.column))
