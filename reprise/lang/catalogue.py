"""What a rule set declares, for people who look through it: lists and sources.

Comes in: a :class:`RuleSet`, or files. Goes out: entries in source order, and the text of
declarations as it stands in their files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reprise.lang import ast, core
from reprise.lang.declared import Constraint, Deny, Monitor, Pattern
from reprise.lang.diagnostics import RulesError, Span
from reprise.lang.dtypes import DTYPES
from reprise.lang.ruleset import RuleSet, library_files, rule_files


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A rule that can be found in a model, a graph or a compiler run."""

    name: str
    kind: str  # pattern constraint deny monitor
    title: str
    targets: tuple[str, ...]
    affects: str | None
    bugs: tuple[str, ...]
    file: str
    line: int


def catalogue(rules: RuleSet) -> list[CatalogueEntry]:
    """The patterns, constraints, deny rules and monitors of the files that were asked for; without
    their syntax trees, so that a set that comes from the cache need not be parsed again."""
    entries = [
        *map(_pattern, rules.patterns.values()),
        *map(_constraint, rules.constraints.values()),
        *(_deny(deny) for denies in rules.denies.values() for deny in denies),
        *map(_monitor, rules.monitors.values()),
    ]
    order = {file: number for number, file in enumerate(rules.sources)}
    own = [entry for entry in entries if entry.file in rules.own]
    return sorted(own, key=lambda entry: (order[entry.file], entry.line))


def _pattern(pattern: Pattern) -> CatalogueEntry:
    title = pattern.title or _first_line(pattern.doc)
    targets, bugs = (pattern.meta.get(key, ()) for key in ("target", "bug"))
    place = pattern.span.file, pattern.span.line
    return CatalogueEntry(
        pattern.name, "pattern", title, targets, pattern.get("affects"), bugs, *place
    )


def _constraint(constraint: Constraint) -> CatalogueEntry:
    title = _first_line(constraint.doc) or constraint.klass
    place = constraint.span.file, constraint.span.line
    targets = constraint.meta.get("target", ())
    return CatalogueEntry(constraint.name, "constraint", title, targets, None, (), *place)


def _deny(deny: Deny) -> CatalogueEntry:
    place = deny.span.file, deny.span.line
    return CatalogueEntry(deny.name, "deny", deny.message, (), None, (), *place)


def _monitor(monitor: Monitor) -> CatalogueEntry:
    title = _first_line(monitor.doc) or f"{monitor.klass}, around {monitor.pass_name}"
    place = monitor.span.file, monitor.span.line
    targets = monitor.meta.get("target", ())
    return CatalogueEntry(monitor.name, "monitor", title, targets, None, (), *place)


def _first_line(doc: str) -> str:
    return doc.partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class Sources:
    """Rule files as written, parsed but not checked, for looking something up."""

    files: tuple[ast.RuleFile, ...]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Sources:
        """The files of ``paths``, what they import, and the library. Raises RulesError."""
        from reprise.lang.loading import Loader  # the parser: lists do without it

        loader = Loader()
        for path in (*rule_files(paths), *library_files()):
            loader.load(path)
        if loader.report.failed:
            raise RulesError(loader.report.diagnostics)
        return cls(tuple(loader.files.values()), loader.sources)

    def names(self) -> list[str]:
        """Every name that :meth:`declarations` knows."""
        return list(dict.fromkeys(name for name, _ in _named(self.files)))

    def declarations(self, name: str) -> list[tuple[str, str]]:
        """Every declaration of ``name``, its tests included: (``file:line``, source with docs)."""
        found = []
        for declared, decl in _named(self.files):
            if declared == name:
                lines = self.texts[decl.span.file].split("\n")
                first = decl.span.line - 1
                while first > 0 and lines[first - 1].lstrip().startswith("///"):
                    first -= 1
                place = f"{decl.span.file}:{decl.span.line}"
                found.append((place, "\n".join(lines[first : decl.span.end_line])))
        return found


def _named(files: Iterable[ast.RuleFile]) -> Iterator[tuple[str, ast.Decl]]:
    for file in files:
        for decl in file.decls:
            match decl:
                case ast.RuleDecl(head) | ast.DenyDecl(head):
                    yield head.relation.text, decl
                case ast.TestDecl(subject):
                    yield subject.text, decl
                case _:
                    yield decl.name.text, decl


def own_program(rules: RuleSet) -> core.Program:
    """What the files that were asked for lower to, with what that depends on."""
    own = [name for name, decl in _named(rules.files) if decl.span.file in rules.own]
    return rules.program.restricted_to(own)


def library_part(rules: RuleSet, program: core.Program) -> core.Program:
    """What of ``program`` is there without being asked for: the library's relations and rules."""
    library = {str(path) for path in library_files()} - rules.own

    def shipped(span: Span | None) -> bool:
        return span is not None and span.file in library

    def known(relation: core.Relation) -> bool:
        if relation.span is not None:
            return shipped(relation.span)
        defined = program.by_head.get(relation.name, [])
        return bool(defined) and all(shipped(rule.span) for rule in defined)

    return core.Program(
        {name: relation for name, relation in program.relations.items() if known(relation)},
        tuple(rule for rule in program.rules if shipped(rule.span)),
    )


def library_words(rules: RuleSet) -> frozenset[str]:
    """The symbols that the library gives a meaning: dtypes, its operators and their attributes."""
    library = {str(path) for path in library_files()}
    shipped = [decl for name, decl in rules.ops.items() if decl.span.file in library]
    names = {attribute.name.text for decl in shipped for attribute in decl.attributes}
    return frozenset({*DTYPES, *(decl.name.text for decl in shipped), *names})
