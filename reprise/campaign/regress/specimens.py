"""The programs that say whether a rule's bug is there: its witnesses and its near misses.

Witnesses are the ``match`` and ``possible`` cases of the rule's tests, and fresh programs that
match it; near misses its ``no_match`` cases. A case about other surroundings than the target's
(another execution provider), or with open extents, cannot be run: it is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from reprise.campaign.regress.spellings import Spelling, spellings
from reprise.campaign.source import FRONTENDS
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.lower.lowering import lowering
from reprise.patterns.match import Matcher
from reprise.solve.signatures import Signatures
from reprise.synth.inputs import fill_constants
from reprise.synth.values import NoValue
from reprise.synth.vocabulary import read_policies
from reprise.synth.witness import Witness, WitnessFinder
from reprise.targets.discover import Target
from reprise.targets.support import Support
from reprise.uir.graph import Array, Graph, Scalar
from reprise.uir.text import read_givens, read_graph

_TRIES = 8
"""Attempts at a fresh witness, for each one asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Specimen:
    """A program about a rule. ``kind``: "match", "possible", "fresh" or "no_match"; ``label`` tells
    it from the rule's others; ``inputs``: its own values, if it came with any; ``spelt``: the rule
    still matches what the target is given, so that silence means something."""

    rule: str
    kind: str
    label: str
    graph: Graph
    inputs: dict[str, Array] | None = None
    spelt: bool = True

    @property
    def is_witness(self) -> bool:
        return self.kind != "no_match"


@dataclass(frozen=True, slots=True)
class Specimens:
    """A rule's programs, and why others could not be had."""

    programs: tuple[Specimen, ...]
    left_out: tuple[str, ...] = ()


def form_of(pattern: Pattern, target: Target) -> str:
    """The lowering in which the target is given programs about this rule."""
    forms = [FRONTENDS[p] for p in pattern.meta.get("pass", ()) if p in FRONTENDS]
    return forms[0] if forms else target.lowering


@dataclass
class Collector:
    """Makes the specimens of the rules of one rule set for one target. The same seed gives the
    same programs. ``fresh``: how many new witnesses to look for."""

    rules: RuleSet
    target: Target
    seed: int = 0
    fresh: int = 2
    attempts: int = 120
    _finders: dict[str, WitnessFinder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.signatures = Signatures.of_symbols(self.rules.symbols)
        self.policies = read_policies(self.rules)
        self.known: dict[str, Scalar] = {"provider": self.target.device}

    def collect(self, pattern: Pattern) -> Specimens:
        """The specimens of one rule, its own cases first."""
        left_out: list[str] = []
        found = [*self._cases(pattern, left_out), *self._new(pattern, left_out)]
        return Specimens(tuple(found), tuple(dict.fromkeys(left_out)))

    def _cases(self, pattern: Pattern, left_out: list[str]) -> Iterator[Specimen]:
        number = 0
        matcher = Matcher(self.rules, [pattern])
        for test in self.rules.tests:
            if test.subject.text != pattern.name:
                continue
            for case in test.cases:
                if case.kind not in ("match", "possible", "no_match"):
                    continue
                number += 1
                label = f"{case.kind} {number}" + (f" ({case.title})" if case.title else "")
                given = {
                    str(row[0]): row[1]
                    for relation, row in read_givens(case.lines)
                    if relation == "env" and len(row) == 2
                }
                if reason := self._elsewhere(given):
                    left_out.append(reason)
                    continue
                graph = read_graph(case.lines, self.signatures)
                graph.name = f"{pattern.name}-{number}"
                if any(t.type.dtype is None or t.type.elements is None for t in graph.tensors):
                    left_out.append("extents or types are open")
                    continue
                try:
                    fill_constants(graph, self.policies, Random(f"{self.seed}/{graph.name}"))
                except NoValue:
                    left_out.append("no values fit")
                    continue
                if case.kind == "possible" and not matcher.run(graph, self.known).findings:
                    left_out.append("does not concern this target's surroundings")
                    continue
                spelt = case.kind == "no_match" or self._is_spelt(graph, pattern, matcher)
                yield Specimen(pattern.name, case.kind, label, graph, spelt=spelt)

    def _new(self, pattern: Pattern, left_out: list[str]) -> Iterator[Specimen]:
        """Fresh witnesses, with the inputs that they were made with."""
        finder = self._finder(form_of(pattern, self.target))
        rng = Random(f"{self.seed}/fresh/{pattern.name}")
        matcher = Matcher(self.rules, [pattern])
        made = 0
        for _ in range(_TRIES * self.fresh):
            if made == self.fresh:
                return
            answer = finder.find(pattern, rng, attempts=self.attempts)
            if not isinstance(answer, Witness):
                left_out.append("no fresh program was found")
                return
            if reason := self._elsewhere(answer.environment):
                left_out.append(reason)
                continue
            made += 1
            graph, inputs = answer.program.graph, dict(answer.program.inputs)
            graph.name = f"{pattern.name}-fresh-{made}"
            spelt = self._is_spelt(graph, pattern, matcher)
            yield Specimen(pattern.name, "fresh", f"fresh {made}", graph, inputs, spelt)

    def _finder(self, form: str) -> WitnessFinder:
        finder = self._finders.get(form)
        if finder is None:
            support = Support.whole(self.target.name) if form == self.target.lowering else None
            finder = self._finders[form] = WitnessFinder(
                self.rules,
                self.signatures,
                why_not=None if support is None else support.why_not,
                unsupported=lowering(form).unsupported,
            )
        return finder

    def _is_spelt(self, graph: Graph, pattern: Pattern, matcher: Matcher) -> bool:
        """Whether the rule still matches what an ONNX target is given: an operator may be written
        as several others, an attribute as what it comes to."""
        if form_of(pattern, self.target) != "onnx":
            return True
        first = next(spellings("onnx", graph))
        if not isinstance(first, Spelling):
            return True  # refused: that is said when it is tried
        import onnx

        from reprise.facts.onnx_import import import_model
        from reprise.facts.onnx_read import Limits

        model = onnx.load_from_string(first.model)
        read = import_model(model, Path("model.onnx"), Limits())
        return bool(matcher.run(read, self.known).findings)

    def _elsewhere(self, environment: Mapping[str, Scalar]) -> str | None:
        """Why a program does not concern this target's surroundings."""
        for name, value in environment.items():
            if self.known.get(name) != value:
                return f"needs {name} = {value}"
        return None
