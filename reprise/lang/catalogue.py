"""What a rule set declares, for people who look through it: lists and sources.

Comes in: a :class:`RuleSet`. Goes out: entries in source order, and the text of declarations as it
stands in their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reprise.lang import ast, core
from reprise.lang.ruleset import RuleSet


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
    """The patterns, constraints, deny rules and monitors of the files that were asked for."""
    return [
        entry
        for file in rules.files
        if file.path in rules.own
        for decl in file.decls
        if (entry := _entry(decl)) is not None
    ]


def _entry(decl: ast.Decl) -> CatalogueEntry | None:
    place = decl.span.file, decl.span.line
    match decl:
        case ast.PatternDecl():
            meta = {key: tuple(e.value for e in decl.meta if e.key.text == key) for key in _META}
            affects = meta["affects"][0] if meta["affects"] else None
            title = decl.title or _first_line(decl.doc)
            return CatalogueEntry(
                decl.name.text, "pattern", title, meta["target"], affects, meta["bug"], *place
            )
        case ast.ConstraintDecl(name, klass):
            title = _first_line(decl.doc) or klass.text
            return CatalogueEntry(name.text, "constraint", title, (), None, (), *place)
        case ast.DenyDecl(head, message):
            return CatalogueEntry(head.relation.text, "deny", message, (), None, (), *place)
        case ast.MonitorDecl(name, klass):
            title = _first_line(decl.doc) or f"{klass.text}, around {decl.pass_name}"
            return CatalogueEntry(name.text, "monitor", title, (), None, (), *place)
        case _:
            return None


_META = ("target", "affects", "bug")


def _first_line(doc: tuple[str, ...]) -> str:
    return doc[0].strip() if doc else ""


def _named(rules: RuleSet) -> Iterator[tuple[str, ast.Decl]]:
    for file in rules.files:
        for decl in file.decls:
            match decl:
                case ast.RuleDecl(head) | ast.DenyDecl(head):
                    yield head.relation.text, decl
                case ast.TestDecl(subject):
                    yield subject.text, decl
                case _:
                    yield decl.name.text, decl


def names_of(rules: RuleSet) -> list[str]:
    """Every name that :func:`declarations_of` knows."""
    return list(dict.fromkeys(name for name, _ in _named(rules)))


def declarations_of(rules: RuleSet, name: str) -> list[tuple[str, str]]:
    """Every declaration of ``name``, its tests included: (``file:line``, source with its docs)."""
    found = []
    for declared, decl in _named(rules):
        if declared == name:
            lines = rules.sources[decl.span.file].split("\n")
            first = decl.span.line - 1
            while first > 0 and lines[first - 1].lstrip().startswith("///"):
                first -= 1
            place = f"{decl.span.file}:{decl.span.line}"
            found.append((place, "\n".join(lines[first : decl.span.end_line])))
    return found


def own_program(rules: RuleSet) -> core.Program:
    """What the files that were asked for lower to, with what that depends on."""
    own = [name for name, decl in _named(rules) if decl.span.file in rules.own]
    return rules.program.restricted_to(own)
