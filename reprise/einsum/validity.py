"""Whether a kernel is valid: the deny rules of ``rules/einsum/``, run by the incremental engine.

:class:`Validity` follows one kernel as it grows: facts are proposed, and accepted or taken back; a
*violation* is a row of a deny rule. A violation is *final* if no later fact can undo it, which is
so for a rule that rests on no negation of what is still to come and on no aggregate: the rule's
text decides (:func:`monotone`). Limits, permissions and the targets that a kernel is for are facts
like others, and are there before it; rules that they rule out are left out
(:func:`specialised`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reprise.cache import cache_folder
from reprise.data import data_path
from reprise.datalog import Database
from reprise.einsum.facts import Fact, facts_of
from reprise.einsum.kernel import Kernel
from reprise.einsum.settings import SETTINGS, Settings
from reprise.lang import core
from reprise.lang.core import Program, Row
from reprise.lang.declared import Deny
from reprise.lang.display import shown
from reprise.lang.ruleset import RuleSet, load_rules

RULES = "rules/einsum"
"""Where the rules that ship are."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A row of a deny rule: what is wrong with a kernel."""

    rule: str
    row: Row
    message: str
    final: bool


@dataclass(frozen=True)
class KernelRules:
    """The deny rules for kernels, checked and ready."""

    rules: RuleSet
    program: Program
    denies: dict[str, Deny]
    final: frozenset[str] = field(default=frozenset())

    def advice(self, name: str) -> str | None:
        """What its documentation says to do about a violation of a deny rule, and what permits it
        if something does."""
        permits = {
            str(literal.terms[0].value)
            for rule in self.program.rules
            if rule.head.relation == name
            for literal in rule.body
            if isinstance(literal, core.Atom)
            and literal.relation == "allowed"
            and isinstance(literal.terms[0], core.Const)
        }
        deny = self.denies[name]
        doc = " ".join(deny.doc.split()).removesuffix(".")
        if doc.partition(" ")[0] not in deny.columns:  # a tensor's name keeps its capital
            doc = f"{doc[:1].lower()}{doc[1:]}"
        said = [doc] if doc else []
        said += [f"`--allow {what}` permits it" for what in sorted(permits)]
        return "; ".join(said) or None

    def told(self, name: str, row: Row) -> Violation:
        """The violation that a row of a deny rule stands for."""
        deny = self.denies[name]
        values = dict(zip(deny.columns, row, strict=True))

        def value(found: re.Match[str]) -> str:
            return shown(values[found[1]]) if found[1] in values else found[0]

        return Violation(name, row, re.sub(r"\{(\w+)\}", value, deny.message), name in self.final)


def load_kernel_rules(more: Sequence[Path] = ()) -> KernelRules:
    """The rules that ship, with further files. Raises RulesError."""
    rules = load_rules([data_path(RULES), *more])
    denies = {
        name: told[0] for name, told in rules.denies.items() if _is_about_kernels(rules, name)
    }
    program = rules.program.restricted_to([*denies, *SETTINGS, *_vocabulary(rules)])
    final = frozenset(name for name in denies if name in monotone(program))
    return KernelRules(rules, program, denies, final)


def _vocabulary(rules: RuleSet) -> list[str]:
    """The base relations that ``facts.rules`` declares."""
    file = str(data_path(f"{RULES}/facts.rules"))
    return [
        name
        for name, relation in rules.program.relations.items()
        if relation.span is not None and relation.span.file == file
    ]


def _is_about_kernels(rules: RuleSet, name: str) -> bool:
    span = rules.denies[name][0].span
    return span.file in rules.own


def monotone(program: Program) -> frozenset[str]:
    """The relations that only gain rows while a kernel grows: nothing that they rest on is negated
    or aggregated, but for what does not change while it grows."""
    by_head = _by_head(program)
    fixed = _fixed(program)
    bad = {rule.head.relation for rule in program.rules if not _grows(rule.body, fixed)}
    while more := {
        name
        for name, rules in by_head.items()
        if name not in bad
        and any(read in bad for rule in rules for read in core.relations_in(rule.body))
    }:
        bad |= more
    return frozenset(program.relations) - bad


def _fixed(program: Program) -> frozenset[str]:
    """Settings, and relations that follow from them or from nothing at all."""
    found = set(SETTINGS)
    while more := {
        name
        for name, rules in _by_head(program).items()
        if name not in found
        and all(read in found for rule in rules for read in core.relations_in(rule.body))
    }:
        found |= more
    return frozenset(found)


def _grows(body: Iterable[core.Literal], fixed: frozenset[str]) -> bool:
    return not any(
        isinstance(literal, core.Aggregate)
        or (isinstance(literal, core.Atom) and literal.negated and literal.relation not in fixed)
        for literal in body
    )


def _by_head(program: Program) -> dict[str, list[core.Rule]]:
    found: dict[str, list[core.Rule]] = {}
    for rule in program.rules:
        found.setdefault(rule.head.relation, []).append(rule)
    return found


def specialised(program: Program, settings: Settings) -> Program:
    """The program without the rules that cannot fire under these settings, and without relations
    that no other rule needs."""
    facts = set(settings.facts())
    limits = {name for name, _ in settings.limits}

    def may_fire(literal: core.Literal) -> bool:
        if not isinstance(literal, core.Atom) or literal.relation not in SETTINGS:
            return True
        first = literal.terms[0]
        if not isinstance(first, core.Const):
            return bool(settings.targets) or literal.relation != "aimed_at"
        if literal.relation == "limit":
            return literal.negated or first.value in limits
        return ((literal.relation, (first.value,)) in facts) != literal.negated

    rules = tuple(rule for rule in program.rules if all(map(may_fire, rule.body)))
    return Program(program.relations, rules)


class Validity:
    """The violations of one kernel at a time, which grows by facts."""

    def __init__(self, rules: KernelRules, settings: Settings) -> None:
        self.rules = rules
        self.settings = settings
        program = specialised(rules.program, settings)
        roots = [name for name in rules.denies if name in program.derived()]
        bases = [name for name in program.relations if name not in rules.program.derived()]
        self.database = Database(
            program.restricted_to([*roots, *bases]), cache=cache_folder(), checked=True
        )
        self.database.commit(settings.facts())
        self._start = self.database.mark()
        self._denies = dict.fromkeys(roots)
        self.read = frozenset(
            name for rule in self.database.program.rules for name in core.relations_in(rule.body)
        )
        """The relations that some rule reads: facts of others need not be told."""

    def restart(self) -> None:
        """Forget the kernel."""
        self.database.undo(self._start)

    def add(self, facts: Iterable[Fact]) -> None:
        """Let the kernel have facts, whatever they violate."""
        self.database.commit(list(facts))

    def fits(self, facts: list[Fact], *, keep: bool = True) -> bool:
        """Add facts (if ``keep``) unless they bring a final violation; whether they do not."""
        with self.database.propose(facts) as proposal:
            for name in proposal.relations(self.rules.final):
                if proposal.new(name):
                    return False
            if keep:
                proposal.accept()
        return True

    def admits(self, facts: list[Fact]) -> bool:
        """Whether facts bring no violation of any kind; they are not added."""
        with self.database.propose(facts) as proposal:
            return not any(proposal.new(n) for n in proposal.relations(self._denies.keys()))

    def count(self) -> int:
        """How many violations the kernel has as it is now."""
        return sum(self.database.count(name) for name in self._denies)

    def after(self, fact: Fact, wrong: int) -> int | None:
        """Add a fact if the violations are then fewer than ``wrong``; how many they are, or None
        if it was not added."""
        with self.database.propose([fact]) as proposal:
            left = self.count()
            if left >= wrong:
                return None
            proposal.accept()
        return left

    def rejected_by(self, facts: list[Fact]) -> list[Violation]:
        """The violations that facts would bring; they are not added."""
        with self.database.propose(facts) as proposal:
            return [
                self.rules.told(name, row)
                for name in proposal.relations(self._denies.keys())
                for row in proposal.new(name)
            ]

    def violations(self) -> list[Violation]:
        """All that is wrong with the kernel as it is now, in the order of the rules."""
        return [
            self.rules.told(name, row)
            for name in self._denies
            if self.database.count(name)
            for row in self.database.rows(name)
        ]

    def is_valid(self) -> bool:
        """Whether nothing is wrong with the kernel as it is now."""
        return not any(self.database.count(name) for name in self._denies)

    def of(self, kernel: Kernel) -> list[Violation]:
        """All that is wrong with a kernel, which is forgotten afterwards."""
        with self.database.propose([fact for fact in facts_of(kernel) if fact[0] in self.read]):
            return self.violations()

    def why(self, violation: Violation) -> Any:
        """The derivation of a violation of the kernel as it is now."""
        return self.database.why(violation.rule, *violation.row)
