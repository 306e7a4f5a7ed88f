"""A run's defects in order of novelty, each with what a person needs to decide about it.

Comes in: a run and the rules about its target. Goes out: :class:`Item` values, the newest first:
defects that no rule matches, then those that one may explain, then the known; among them those
furthest from any rule, and those with more reports. Defects of low severity come after the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from reprise.campaign.filing import LIMITS
from reprise.campaign.findings import Detail, read_detail
from reprise.campaign.records import Defect, Finding, StoreError
from reprise.campaign.source import known_bugs
from reprise.campaign.store import Run
from reprise.datalog import LimitError
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet
from reprise.oracle.verdict import Severity
from reprise.patterns.explain import reason
from reprise.patterns.match import Finding as Place
from reprise.patterns.match import Match, Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph
from reprise.uir.text import parse_uir

REDUCED = "reduced"
"""The folder, inside a finding's, that holds its reduced version, in the same form."""

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
    there is one); ``similar``: other defects of the run whose signatures are alike."""

    defect: Defect
    finding: Finding
    folder: Path
    detail: Detail
    graph: Graph | None
    text: str
    nearest: tuple[Near, ...]
    similar: tuple[Defect, ...]

    @property
    def is_reduced(self) -> bool:
        return self.folder.name == REDUCED

    @property
    def is_new(self) -> bool:
        """Whether no known bug is what happened."""
        return self.defect.rule is None

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


def items(run: Run, rules: RuleSet, target: str) -> list[Item]:
    """Every defect of a run that has a folder, the newest first. ``target``: its name, as rules
    know it or as ``--target`` does. Raises StoreError for a damaged finding."""
    patterns = known_bugs(rules, target)
    matcher = Matcher(rules, patterns, LIMITS)
    signatures = Signatures.of_symbols(rules.symbols)
    found = []
    for defect in run.defects:
        finding = _standing_for(run, defect)
        if finding is None or finding.folder is None:
            continue
        folder = _reduced(finding.folder)
        detail = read_detail(folder)
        graph, text = _program(folder, signatures)
        nearest = () if graph is None else tuple(_nearest(graph, matcher, rules))
        similar = tuple(d for d in run.defects if d is not defect and _alike(d, defect))
        found.append(Item(defect, finding, folder, detail, graph, text, nearest, similar))
    return sorted(found, key=lambda item: item.novelty)


def without_folder(run: Run) -> list[Defect]:
    """Defects of which nothing but a row was kept."""
    return [d for d in run.defects if _standing_for(run, d) is None]


def _standing_for(run: Run, defect: Defect) -> Finding | None:
    """The finding to show: one that was confirmed, of the smallest program."""
    kept = [f for f in run.findings_of(defect) if f.folder is not None and f.folder.is_dir()]
    return min(kept, key=_size, default=None)


def _size(finding: Finding) -> tuple[bool, int, str]:
    flaky = finding.confirmation is not None and finding.confirmation.flaky
    folder = finding.folder
    assert folder is not None
    program = folder / "program.uir"
    lines = program.read_bytes().count(b"\n") if program.is_file() else 1 << 30
    return flaky, lines, finding.id


def _reduced(folder: Path) -> Path:
    """The reduced version's folder, if it is whole."""
    reduced = folder / REDUCED
    if not (reduced / "finding.json").is_file() or not (reduced / "program.uir").is_file():
        return folder
    try:
        read_detail(reduced)
    except StoreError:
        return folder
    return reduced


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


def pick(found: Sequence[Item], asked: str) -> Item | None:
    """The item that a defect's id (``D3``), a finding's, or its number means."""
    for item in found:
        names = (item.defect.id, item.finding.id)
        if asked in names or (asked and asked.zfill(len(item.finding.id)) in names):
            return item
    return None
