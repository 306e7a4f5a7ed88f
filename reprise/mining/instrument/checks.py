"""Monitors as checks: each assertion of each monitor at each place that its ``from:`` names.

The place is ``path:line`` in the checkout. An assertion with several places is a check at each of
them where its values exist; it is told of if no place has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reprise.lang import ast
from reprise.lang.diagnostics import Span
from reprise.lang.format import show
from reprise.lang.ruleset import RuleSet

_PLACE = re.compile(r"(?P<path>.+):(?P<line>[0-9]+)(?::[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Site:
    """A line of a file of the checkout; ``path`` with forward slashes, ``line`` from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion. ``key`` names it in records: the monitor's name, with ``/N`` for the N-th
    of several assertions. ``sites`` are where it belongs, ``text`` is the condition as written."""

    key: str
    monitor: str
    condition: ast.Condition
    text: str
    sites: tuple[Site, ...]
    pass_name: str
    klass: str
    span: Span


def read_checks(rules: RuleSet) -> list[Check]:
    """The checks of the monitors in the files that were asked for, in the order of writing."""
    found: list[Check] = []
    for file in rules.files:
        if file.path not in rules.own:
            continue
        for decl in file.decls:
            if isinstance(decl, ast.MonitorDecl):
                found += _checks_of(decl)
    return found


def _checks_of(decl: ast.MonitorDecl) -> list[Check]:
    places = [entry.value for entry in decl.meta if entry.key.text == "from"]
    matches = [match for match in map(_PLACE.fullmatch, places) if match is not None]
    sites = tuple(
        dict.fromkeys(Site(m["path"].replace("\\", "/"), int(m["line"])) for m in matches)
    )
    name = decl.name.text
    several = len(decl.asserts) > 1
    return [
        Check(
            f"{name}/{number}" if several else name,
            name,
            condition,
            show(condition),
            sites,
            decl.pass_name,
            decl.klass.text,
            condition.span,
        )
        for number, (condition, _) in enumerate(decl.asserts, 1)
    ]
