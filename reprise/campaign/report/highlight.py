"""Which nodes of a finding's program to point at, and why those.

The nodes that the known rule matches, if the finding is filed under one; else, of a wrong result,
the operators above the output that differs, as in its signature; else the node that the compiler's
message names, or the operators that it speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reprise.campaign.filing import LIMITS
from reprise.campaign.findings import Detail
from reprise.datalog import LimitError
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.oracle.structure import DEPTH
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.uir.graph import Graph, Node, Tensor

_NODE_NAME = re.compile(r"'n(\d+)['/]")
"""A node's name in a message about a lowered program: node n7 of ours makes tensor v7."""


@dataclass(frozen=True)
class Highlight:
    """``nodes``: ids of the graph's nodes; ``names``: what the rule calls them; ``outputs``:
    numbers of the graph's outputs that differ; ``why``: a phrase for the caption."""

    nodes: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)
    outputs: frozenset[int] = frozenset()
    why: str = ""


class Highlighter:
    """Looks at one finding after the other; a rule's plan is made once."""

    def __init__(self, rules: RuleSet | None) -> None:
        self._rules = rules
        self._matchers: dict[str, Matcher] = {}

    def look(self, graph: Graph, detail: Detail, pattern: Pattern | None) -> Highlight:
        outputs = frozenset(_differing(detail.evidence))
        ways = (
            self._matched(graph, pattern),
            _sliced(graph, outputs),
            _named(graph, _words(detail)),
            _spoken_of(graph, _words(detail)),
        )
        for nodes, names, why in ways:
            if nodes:
                return Highlight(frozenset(nodes), names, outputs, why)
        return Highlight(outputs=outputs)

    def _matched(self, graph: Graph, pattern: Pattern | None) -> _Found:
        if pattern is None or self._rules is None:
            return _NOTHING
        matcher = self._matchers.get(pattern.name)
        if matcher is None:
            matcher = self._matchers[pattern.name] = Matcher(self._rules, [pattern], LIMITS)
        try:
            found = matcher.run(graph).findings
        except LimitError:
            return _NOTHING
        if not found:
            return _NOTHING
        best = min(found, key=lambda f: f.certainty is not Truth.YES)
        names: dict[int, str] = {}
        for name, number in best.nodes.items():
            names[number] = f"{names[number]}, {name}" if number in names else name
        return set(names), names, f"the nodes that {pattern.name} matches"


_Found = tuple[set[int], Mapping[int, str], str]
_NOTHING: _Found = (set(), {}, "")


def _differing(evidence: Mapping[str, Any]) -> Iterator[int]:
    differences = evidence.get("differences")
    for difference in differences if isinstance(differences, list) else []:
        if isinstance(difference, dict) and isinstance(difference.get("output"), int):
            yield difference["output"]


def _words(detail: Detail) -> str:
    """What the compiler said."""
    return f"{detail.title}\n{detail.evidence.get('message', '')}\n{detail.signature}"


def _sliced(graph: Graph, outputs: frozenset[int]) -> _Found:
    found: set[int] = set()

    def climb(tensor: Tensor | None, depth: int) -> None:
        if depth and tensor is not None and tensor.producer is not None:
            found.add(tensor.producer.id)
            for operand in tensor.producer.inputs:
                climb(operand, depth - 1)

    first = min(outputs, default=-1)
    if 0 <= first < len(graph.outputs):
        climb(graph.outputs[first], DEPTH)
    return found, {}, f"what output {first} comes from, up to {DEPTH} steps"


def _named(graph: Graph, words: str) -> _Found:
    wanted = set(_NODE_NAME.findall(words))
    return (
        {n.id for n in graph.nodes if _number(n) in wanted},
        {},
        "the node that the message names",
    )


def _number(node: Node) -> str | None:
    first = next((t.name for t in node.outputs if t is not None), "")
    match = re.fullmatch(r"v(\d+)(?:_\d+)?", first)
    return match[1] if match else None


def _spoken_of(graph: Graph, words: str) -> _Found:
    spoken = {_plain(word) for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", words)}
    nodes = {node.id for node in graph.nodes if _plain(node.op) in spoken}
    return nodes, {}, "operators that the message speaks of"


def _plain(word: str) -> str:
    return word.replace("_", "").lower()
