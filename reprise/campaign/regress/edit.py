"""Writes measured versions into rule files: only the value of ``affects``, in its place.

The place comes from the language's own spans, so comments, order and layout stay as they are. What
was written is read again and compared: nothing but that value may have changed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.cache import write_whole
from reprise.campaign.regress.affects import public, updated
from reprise.campaign.regress.cell import Cell, State
from reprise.lang import ast
from reprise.lang.diagnostics import Span
from reprise.lang.parse import parse_text
from reprise.lang.ruleset import RuleSet
from reprise.lang.source import read_source
from reprise.patterns.check import UsageError


@dataclass(frozen=True, slots=True)
class Edit:
    """A rule whose measurements differ from its ``affects``: what becomes of it (``after`` equals
    ``before`` where a person has to decide), and why."""

    rule: str
    file: str
    before: str
    after: str
    reason: str

    @property
    def changes(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        if self.changes:
            return f'{self.rule}: affects: "{self.before}" is now "{self.after}" ({self.reason})'
        return f'{self.rule}: affects: "{self.before}": {self.reason}'


def edits(rules: RuleSet, cells: Sequence[Cell]) -> Iterator[Edit]:
    """What the measurements say of each rule's ``affects``, where they say anything new. A rule is
    measured at every version at which it fired or its witnesses all ran as they should; a target
    that has several interpreters of one version must come to the same at each."""
    for name in sorted({cell.rule for cell in cells}):
        pattern = rules.patterns[name]
        affects = pattern.get("affects")
        if affects is None or not any(c.contradicts for c in cells if c.rule == name):
            continue
        own = [c for c in cells if c.rule == name]
        fires = {public(c.version) for c in own if c.state is State.FIRES}
        silent = {public(c.version) for c in own if c.state is State.FIXED}
        update = updated(affects, fires, silent)
        if update.reason:
            yield Edit(name, pattern.span.file, affects, update.text, update.reason)


def apply(found: Iterable[Edit]) -> None:
    """Write the edits that change something. Raises RulesError for a file that cannot be read any
    more, UsageError for a value that cannot be found in it, OSError."""
    by_file: dict[str, list[Edit]] = {}
    for edit in found:
        if edit.changes:
            by_file.setdefault(edit.file, []).append(edit)
    for file, some in by_file.items():
        path = Path(file)
        text = read_source(path)
        new = edited(text, file, {e.rule: e.after for e in some})
        if not os.access(path, os.W_OK):  # a new file in its place would be written all the same
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
        mode = path.stat().st_mode
        write_whole(path.resolve(), new.encode())
        path.chmod(mode)


def edited(text: str, file: str, affects: dict[str, str]) -> str:
    """The text of a rule file with other values of ``affects``, by rule. Raises RulesError,
    UsageError."""
    tree = parse_text(text, file)
    places = []
    for decl in tree.decls:
        if isinstance(decl, ast.PatternDecl) and decl.name.text in affects:
            places += [
                (entry.span, entry.value, affects[decl.name.text])
                for entry in decl.meta
                if entry.key.text == "affects"
            ][:1]
    lines = text.split("\n")  # as spans count them
    for span, old, new in sorted(places, key=lambda p: (p[0].line, p[0].column), reverse=True):
        _replace(lines, span, old, new)
    result = "\n".join(lines)
    values = dict(_values(parse_text(result, file)))
    before = {n: affects.get(n, v) for n, v in _values(tree)}
    if values != before:  # a value that is written with escapes
        raise UsageError(f"{file}: cannot change `affects` in its place; write it by hand")
    return result


def _replace(lines: list[str], span: Span, old: str, new: str) -> None:
    """Replace the value of an entry: what is last in it, in quotes or bare."""
    line = lines[span.end_line - 1]
    value = line[: span.end_column - 1]
    quoted = value.endswith('"')
    end = len(value) - quoted
    if value[end - len(old) : end] == old:
        lines[span.end_line - 1] = line[: end - len(old)] + new + line[end:]


def _values(tree: ast.RuleFile) -> Iterator[tuple[str, str]]:
    """The first ``affects`` of every pattern."""
    for decl in tree.decls:
        if isinstance(decl, ast.PatternDecl):
            for entry in decl.meta:
                if entry.key.text == "affects":
                    yield decl.name.text, entry.value
                    break
