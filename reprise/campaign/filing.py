"""Which known bug a finding is: the rules that its program matches, and the one that fits.

A match says that a program *can* hit a bug, not that this failure is it. So a finding is filed
under a rule only if the rule's symptom is what happened, and if pass ablation did not blame a pass
other than the rule's. All matches are kept with the finding, for the triager.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reprise.campaign.source import known_bugs
from reprise.data import data_path
from reprise.datalog import LimitError, Limits
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.oracle.verdict import Judgement, Verdict
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.uir.graph import Graph, Scalar

LIMITS = Limits(max_derived_rows=500_000, max_seconds=10.0)
"""For one program; a rule that needs more says nothing about it."""

SYMPTOMS = {
    "crash": {Verdict.CRASH},
    "crash_at_load": {Verdict.CRASH},
    "crash_at_compile": {Verdict.CRASH},
    "crash_at_run": {Verdict.CRASH},
    "memory": {Verdict.CRASH},
    "hang": {Verdict.HANG},
    "wrong_result": {Verdict.WRONG_RESULT},
    "wrong_dtype": {Verdict.WRONG_RESULT, Verdict.CRASH},
    "wrong_shape": {Verdict.WRONG_RESULT, Verdict.CRASH},
}
"""What a rule's symptom looks like to the oracle. A wrong shape or dtype may be noticed by the
target's own next step."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A rule that a finding's program matches; ``certain``: whatever the run's surroundings."""

    rule: str
    title: str
    certain: bool


def rules_hash(sets: Iterable[RuleSet], target: str) -> str:
    """Of the texts of all files that rules came from, the library's included, and of what is
    known of the target: what decides, with the options, which programs a seed gives."""
    sources = {path: text for rules in sets for path, text in rules.sources.items()}
    texts = [text.encode() for text in sources.values()]
    texts += [path.read_bytes() for path in sorted(data_path("rules").glob(f"targets/{target}.*"))]
    digests = sorted(hashlib.sha256(text).hexdigest() for text in texts)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Known:
    """How to make the known bugs of a target in any process. ``rules``: files and folders (none:
    the shipped bugs); ``environment``: what is known of the run, as in ``reprise check --env``;
    ``form``: as in :func:`known_bugs`."""

    target: str
    version: str | None
    rules: tuple[Path, ...] = ()
    environment: tuple[tuple[str, Scalar], ...] = ()
    form: str | None = None

    def __call__(self) -> KnownBugs:
        rules = load_rules(self.rules or (data_path("rules/bugs"),))
        patterns = known_bugs(rules, self.target, self.version, self.form)
        return KnownBugs(rules, patterns, dict(self.environment))


class KnownBugs:
    """The rules about one target. Nothing is compiled before the first finding."""

    def __init__(
        self, rules: RuleSet, patterns: Collection[Pattern], environment: Mapping[str, Scalar]
    ) -> None:
        self._rules = rules
        self._patterns = {p.name: p for p in patterns}
        self._environment = environment

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._rules, self._patterns.values(), LIMITS)

    def matches(self, graph: Graph) -> tuple[RuleMatch, ...]:
        """The rules that a program matches, by name, certain ones first."""
        if not self._patterns:
            return ()
        try:
            findings = self._matcher.run(graph, self._environment).findings
        except LimitError:
            return ()
        certain: dict[str, bool] = {}
        for finding in findings:
            name = finding.pattern.name
            certain[name] = certain.get(name, False) or finding.certainty is Truth.YES
        order = sorted(certain, key=lambda name: (not certain[name], name))
        return tuple(RuleMatch(n, self._patterns[n].title, certain[n]) for n in order)

    def bugs(self, rule: str) -> tuple[str, ...]:
        """Where the bug of a rule is reported."""
        return tuple(self._patterns[rule].meta.get("bug", ()))

    def file(
        self, judgement: Judgement, matches: Collection[RuleMatch], passes: Collection[str] = ()
    ) -> str | None:
        """The rule that a finding is filed under, or None: of the certain matches that fit what
        happened, one that says part of the message, or else whose pass is to blame, or else the
        first. ``passes``: the names of all that ablation could have blamed."""
        blamed = set(judgement.signature.removeprefix("pass:").split("+"))
        if not judgement.signature.startswith("pass:"):
            blamed = set()
        fitting = []
        for match in matches:
            pattern = self._patterns[match.rule]
            if not match.certain or not _shows(pattern, judgement.verdict):
                continue
            stated = set(pattern.meta.get("pass", ()))
            if blamed and stated and stated <= set(passes) and not stated & blamed:
                continue
            says = pattern.meta.get("says", ())
            if says and judgement.verdict is Verdict.CRASH:
                message = str(judgement.evidence.get("message", judgement.title))
                if not any(words in message for words in says):
                    continue
            fitting.append((not says, not stated & blamed, match.rule))
        return min(fitting)[-1] if fitting else None


def _shows(pattern: Pattern, verdict: Verdict) -> bool:
    """Whether a verdict is what the rule's symptom looks like; a rule that states none fits all."""
    symptoms = pattern.meta.get("symptom", ())
    return verdict.is_finding and (
        not symptoms or any(verdict in SYMPTOMS.get(s, set()) for s in symptoms)
    )
