"""What a campaign asks of a generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.uir.program import Program


@dataclass(slots=True)
class Synthesis:
    """A program and how it came about. ``rejected``: candidates taken back, by rule;
    ``completed``: rules that the program matches all the same (the R-th attempt is accepted)."""

    program: Program
    rejected: Counter[str] = field(default_factory=Counter)
    completed: tuple[str, ...] = ()


class Source(Protocol):
    """A run's programs, numbered from 0: number ``index`` does not depend on any other, so it does
    not matter who makes which, or in what order."""

    def program(self, index: int) -> Synthesis: ...


@runtime_checkable
class Learning(Source, Protocol):
    """A source that takes new rules while it runs."""

    def learn(self, rules: RuleSet, patterns: Sequence[Pattern]) -> None:
        """Steer around these patterns too, from the next program on."""
        ...
