"""The order of a graph's nodes: producers before readers, as ONNX demands and files mostly have.

Sub-graphs count: a node reads whatever its sub-graphs take from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from reprise.facts.errors import one_line
from reprise.facts.onnx_values import GRAPH, attribute_type

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


class BadOrder(Exception):
    """Nodes that no order makes computable, or a value with two definitions."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """``nodes`` itself if it is in order, else its nodes sorted. Raises BadOrder."""
    produced: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            if name and produced.setdefault(name, i) != i:
                raise BadOrder(
                    f"{one_line(name, 80)!r} is defined twice",
                    "every value of an ONNX graph has one definition",
                )
    if all(produced.get(name, -1) < i for i, node in enumerate(nodes) for name in _reads(node)):
        return nodes
    return _sorted(nodes, produced)


def _sorted(nodes: Sequence[NodeProto], produced: dict[str, int]) -> list[NodeProto]:
    """A topological order that keeps the file's where it can (Kahn's, by lowest position)."""
    waits = [{produced[name] for name in _reads(node) if name in produced} for node in nodes]
    readers: dict[int, list[int]] = {}
    for i, sources in enumerate(waits):
        for source in sources:
            readers.setdefault(source, []).append(i)
    ready = [i for i, sources in enumerate(waits) if not sources]
    heapify(ready)
    order: list[NodeProto] = []
    while ready:
        i = heappop(ready)
        order.append(nodes[i])
        for reader in readers.get(i, ()):
            waits[reader].discard(i)
            if not waits[reader]:
                heappush(ready, reader)
    if len(order) < len(nodes):
        stuck = next(i for i, sources in enumerate(waits) if sources)
        passed: set[int] = set()
        while stuck not in passed:  # upstream, until a node comes round again: it is on the cycle
            passed.add(stuck)
            stuck = min(waits[stuck])
        raise BadOrder(
            f"the graph has a cycle through {label(nodes[stuck])}",
            "no order of the nodes computes operands before they are read",
        )
    return order


def _reads(node: NodeProto) -> Iterator[str]:
    """Every name that a node may read, those captured by its sub-graphs included."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        if attribute_type(attribute) == GRAPH:
            yield from _captured(attribute.g)


def _captured(graph: GraphProto) -> Iterable[str]:
    """Names that a sub-graph reads from outside."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer}
    own.update(name for node in graph.node for name in node.output)
    used = {name for node in graph.node for name in _reads(node)}
    used |= {o.name for o in graph.output}
    return sorted(used - own)


def label(node: NodeProto) -> str:
    """How messages name a node."""
    name = one_line(node.name or next((o for o in node.output if o), ""), 80)
    op = one_line(node.op_type, 80)
    return f"node {name!r} ({op})" if name else f"a node ({op})"
