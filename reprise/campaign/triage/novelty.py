"""A run's defects in order of novelty, each with what a person needs to decide about it.

Comes in: a run and the rules about its target. Goes out: :class:`Item` values, the newest first:
defects that no rule matches, then those that one may explain, then the known; among them those
furthest from any rule, and those with more reports. Defects of low severity come after the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from reprise.campaign.filing import LIMITS
from reprise.campaign.findings import Detail
from reprise.campaign.records import Defect, Finding, StoreError
from reprise.campaign.representative import REDUCED, Shown, representative, shown
from reprise.campaign.source import known_bugs
from reprise.campaign.store import Run
from reprise.datalog import LimitError
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet
from reprise.oracle.verdict import Severity, Verdict
from reprise.patterns.explain import reason
from reprise.patterns.match import Finding as Place
from reprise.patterns.match import Match, Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph
from reprise.uir.text import parse_uir

_NEAREST = 3
_SIMILAR = 0.75
"""How alike two signatures are (by difflib's ratio) that may be one defect."""


@dataclass(frozen=True, slots=True)
class Near:
    """A rule beside a program. ``certainty`` NO: it does not match, and ``why`` says which
    condition fails; UNKNOWN: it may. ``met`` of ``conditions`` hold."""

    rule: str
    title: str
    bugs: tuple[str, ...]
    certainty: Truth
    met: int
    conditions: int
    why: str

    @property
    def distance(self) -> float:
        """0: it matches; 1: nothing of it holds."""
        if self.certainty is not Truth.NO:
            return 0.0
        return 1.0 - self.met / max(self.conditions, 1)


@dataclass(frozen=True)
class Item:
    """A defect to decide about. ``finding`` stands for it, in ``folder`` (its reduced version, if
    there is one), which is filed under ``rule``; ``similar``: other defects of the run whose
    signatures are alike."""

    defect: Defect
    finding: Finding
    folder: Path
    detail: Detail
    graph: Graph | None
    text: str
    nearest: tuple[Near, ...]
    similar: tuple[Defect, ...]
    rule: str | None

    @property
    def is_reduced(self) -> bool:
        return self.folder.name == REDUCED

    @property
    def is_flaky(self) -> bool:
        """Whether it did not fail the same way every time that it was run again."""
        confirmation = self.detail.confirmation or self.finding.confirmation
        return confirmation is not None and confirmation.flaky

    @property
    def blamed(self) -> tuple[str, ...]:
        """The passes whose absence cures it. None for what comes and goes: it may have stayed away
        whatever was left out."""
        ablation = self.detail.evidence.get("ablation")
        return () if not ablation or self.is_flaky else tuple(ablation["cures"])

    @property
    def is_new(self) -> bool:
        """Whether no known bug is what happened."""
        return self.rule is None

    @property
    def novelty(self) -> tuple[bool, bool, bool, float, int, str]:
        """What items are sorted by; the smallest first."""
        near = min((n.distance for n in self.nearest), default=1.0)
        return (
            not self.is_new,
            self.defect.severity is Severity.LOW,
            any(n.certainty is not Truth.NO for n in self.nearest),
            -near,
            -self.defect.count,
            self.finding.id,
        )


class Listing:
    """A run's defects as items. ``target``: its name, as rules know it or as ``--target`` does."""

    def __init__(self, run: Run, rules: RuleSet, target: str) -> None:
        self._run, self._rules = run, rules
        self._matcher = Matcher(rules, known_bugs(rules, target), LIMITS)
        self._signatures = Signatures.of_symbols(rules.symbols)

    @cached_property
    def items(self) -> list[Item]:
        """Every defect that has a folder, the newest first. Raises StoreError where a defect's
        findings are damaged."""
        shown = ((d, representative(self._run.findings_of(d))) for d in self._run.defects)
        found = [self._item(defect, one) for defect, one in shown if one is not None]
        return sorted(found, key=lambda item: item.novelty)

    @cached_property
    def without_folder(self) -> list[Defect]:
        """Defects of which nothing but a row was kept."""
        having = {item.defect.id for item in self.items}
        return [defect for defect in self._run.defects if defect.id not in having]

    def pick(self, asked: str) -> Item | None:
        """The item that a defect's id (``D3``) means, or the finding's, of whatever defect, that
        its id or number does. None if there is none, or it has no folder. Raises StoreError."""
        for item in self.items:
            if asked == item.defect.id:
                return item
        for defect in (*self._run.defects, *self._disagreements):
            for finding in self._run.findings_of(defect):
                if asked and asked.zfill(len(finding.id)) == finding.id:
                    here = finding.folder is not None and finding.folder.is_dir()
                    return self._item(defect, shown(finding)) if here else None
        return None

    @property
    def _disagreements(self) -> Iterator[Defect]:
        """Disagreements with the reference, which may be defects of the target."""
        for signature in self._run.signatures:
            if signature.verdict is Verdict.REFERENCE_DISAGREEMENT:
                yield Defect("unclear whose fault", signature.rule, (signature,))

    def _item(self, defect: Defect, one: Shown) -> Item:
        if one.detail is None:
            raise StoreError(one.problem)
        graph, text = _program(one.folder, self._signatures)
        nearest = () if graph is None else tuple(_nearest(graph, self._matcher, self._rules))
        similar = tuple(d for d in self._run.defects if d is not defect and _alike(d, defect))
        return Item(
            defect, one.finding, one.folder, one.detail, graph, text, nearest, similar, one.rule
        )


def _program(folder: Path, signatures: Signatures) -> tuple[Graph | None, str]:
    """The program and its text; no graph where it cannot be read (it was ours that failed)."""
    path = folder / "program.uir"
    if not path.is_file():
        return None, ""
    text = path.read_text("utf-8", "replace")
    try:
        return parse_uir(text, str(path), signatures), text
    except RulesError:
        return None, text


def _nearest(graph: Graph, matcher: Matcher, rules: RuleSet) -> Iterator[Near]:
    """The rules that match, may match or nearly do: each once, the nearest first."""
    try:
        match = matcher.run(graph, near=True)
    except LimitError:
        return
    best: dict[str, Near] = {}
    for place in (*match.findings, *match.near):
        near = _near(place, match, matcher, rules)
        if near.rule not in best or near.distance < best[near.rule].distance:
            best[near.rule] = near
    yield from sorted(best.values(), key=lambda n: (n.distance, n.rule))[:_NEAREST]


def _near(place: Place, match: Match, matcher: Matcher, rules: RuleSet) -> Near:
    pattern: Pattern = place.pattern
    why = ""
    if place.certainty is not Truth.YES:
        why = reason(place, match, matcher.program, rules.sources)
    conditions = max(len(a.structure) + len(a.conditions) for a in pattern.alternatives)
    met = min(len(place.answer.steps) - (place.certainty is Truth.NO), conditions)
    bugs = tuple(pattern.meta.get("bug", ()))
    return Near(pattern.name, pattern.title, bugs, place.certainty, met, conditions, why)


def _alike(one: Defect, other: Defect) -> bool:
    return any(
        _same_pass(a.signature, b.signature)
        or SequenceMatcher(None, a.signature, b.signature).ratio() >= _SIMILAR
        for a in one.signatures
        for b in other.signatures
    )


def _same_pass(a: str, b: str) -> bool:
    if not (a.startswith("pass:") and b.startswith("pass:")):
        return False
    return bool(_passes(a) & _passes(b))


def _passes(signature: str) -> set[str]:
    return set(signature.removeprefix("pass:").split("+"))
