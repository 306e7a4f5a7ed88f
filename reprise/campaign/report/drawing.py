"""A program as an SVG picture: operators, sources and outputs as boxes, tensor types on edges.

Programs of more than :data:`MOST` nodes are cut to the neighbourhood of what is highlighted. Sizes
follow from the number of characters in a fixed-width font, so nothing depends on the viewer. All
colours are the page's (classes, no styles).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from reprise.campaign.report.highlight import Highlight
from reprise.campaign.report.layout import Box, Edge, layered
from reprise.campaign.report.markup import Markup, join, tag
from reprise.uir.graph import Attribute, Graph, Node, Role, Tensor

MOST = 40
"""Nodes that are drawn."""
_NAME, _SMALL = 7.3, 6.35
"""Widths of a character of the fixed-width font at 12 and 10.5 units."""
_LONGEST = 36
"""Characters of attributes that a box shows; all of them are in its tooltip."""
_MARGIN = 10.0
_OP, _ATTRIBUTES, _PILL, _TYPE = 26.0, 15.0, 22.0, 17.0
"""Heights: of an operator's box, of its second line, of a source or output, of a type below."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A box to draw: what is in it, and the types of its outputs that someone reads."""

    kind: str
    lines: tuple[str, ...]
    title: str
    ports: tuple[tuple[Tensor, str], ...] = ()
    source: bool = False

    @property
    def inner(self) -> float:
        """Height without the types below."""
        if self.kind.startswith("op"):
            return _OP + (_ATTRIBUTES if len(self.lines) > 1 else 0.0)
        return _PILL

    @property
    def widths(self) -> list[float]:
        return [len(label) * _SMALL + 10 for _, label in self.ports]

    @property
    def text_width(self) -> float:
        first = len(self.lines[0]) * (_NAME if self.kind.startswith("op") else _SMALL)
        rest = [len(line) * _SMALL for line in self.lines[1:]]
        return max([first, *rest]) + 20

    @property
    def box(self) -> Box:
        width = max(self.text_width, sum(self.widths))
        height = self.inner + (_TYPE if self.ports else 0.0)
        return Box(width, height, late=self.source)


def draw(graph: Graph, highlight: Highlight) -> Markup:
    """The picture, with a caption's worth of text for those who cannot see it."""
    nodes = _chosen(graph, highlight)
    items: list[_Item] = []
    edges: list[Edge] = []
    homes: dict[Tensor, tuple[int, float]] = {}
    read = {t for n in nodes for t in n.inputs} | set(graph.outputs)

    def add(item: _Item, tensors: Sequence[Tensor]) -> None:
        number = len(items)
        items.append(item)
        x = -sum(item.widths) / 2
        for tensor, width in zip(tensors, item.widths, strict=True):
            homes[tensor] = number, x + width / 2
            x += width

    for node in nodes:
        for tensor in dict.fromkeys(node.inputs):
            if tensor is not None and tensor not in homes:
                add(_source(tensor), [tensor])
        item = _operator(node, highlight, read)
        add(item, [tensor for tensor, _ in item.ports])
        edges += _inputs(node, len(items) - 1, items[-1].box.width, homes)
    for number, tensor in enumerate(graph.outputs):
        if tensor not in homes and tensor.producer is None:
            add(_source(tensor), [tensor])
        if tensor in homes:
            differs = number in highlight.outputs
            kind = "output differs" if differs else "output"
            text = f"output {number}"
            items.append(_Item(kind, (text,), f"{text}: {tensor.name} {tensor.type}"))
            home, leave = homes[tensor]
            edges.append(Edge(home, len(items) - 1, leave))
    hot = {n for n, item in enumerate(items) if item.kind == "op hot"}
    laid = layered([item.box for item in items], edges, hot)
    lines = [
        tag("path", d=path, class_="flow hot" if {e.source, e.target} <= hot else "flow")
        for e, path in zip(edges, laid.edges, strict=True)
    ]
    boxes = [_boxed(item, *corner) for item, corner in zip(items, laid.boxes, strict=True)]
    width, height = laid.width + 2 * _MARGIN, laid.height + 2 * _MARGIN
    cut = len(graph.nodes) - len(nodes)
    return tag(
        "svg",
        tag("title", _described(graph, highlight, nodes, cut)),
        tag("g", *lines, *boxes, transform=f"translate({_MARGIN:g} {_MARGIN:g})"),
        class_="graph",
        role="img",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
    )


def hidden(graph: Graph) -> int:
    """How many nodes are too many to be drawn."""
    return max(0, len(graph.nodes) - MOST)


def _chosen(graph: Graph, highlight: Highlight) -> list[Node]:
    """All nodes, or the :data:`MOST` nearest to the highlighted ones (else to the outputs)."""
    if len(graph.nodes) <= MOST:
        return list(graph.nodes)
    near: dict[int, list[int]] = defaultdict(list)
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor is not None and tensor.producer is not None:
                near[node.id].append(tensor.producer.id)
                near[tensor.producer.id].append(node.id)
    queue = deque(sorted(highlight.nodes) or [node.id for node in reversed(graph.nodes)])
    taken: dict[int, None] = {}
    while queue and len(taken) < MOST:
        number = queue.popleft()
        if number not in taken:
            taken[number] = None
            queue.extend(near[number])
    return [node for node in graph.nodes if node.id in taken]


def _source(tensor: Tensor) -> _Item:
    if tensor.producer is not None:  # made by a node that is not drawn
        kind, text = "source more", f"… {tensor.name}"
    elif tensor.role is Role.INITIALIZER:
        scalar = tensor.value is not None and tensor.value.size == 1
        value = f" = {_short(str(tensor.value.reshape(()).item()), 14)}" if scalar else ""  # type: ignore[union-attr]
        kind, text = "source constant", f"{_short(tensor.name, 24)}{value}"
    else:
        kind, text = "source input", _short(tensor.name, 30)
    what = {"source more": "tensor", "source constant": "constant"}.get(kind, "input")
    label = _short(str(tensor.type), _LONGEST)
    return _Item(kind, (text,), f"{what} {tensor.name}: {tensor.type}", ((tensor, label),), True)


def _operator(node: Node, highlight: Highlight, read: set[Tensor | None]) -> _Item:
    attributes = ", ".join(f"{name}={_written(value)}" for name, value in node.attributes.items())
    name = highlight.names.get(node.id)
    head = _short(node.op, 30) + (f" ({_short(name, 16)})" if name else "")
    lines = (head, _short(attributes, _LONGEST)) if attributes else (head,)
    made = [t for t in node.outputs if t is not None]
    title = f"{', '.join(t.name for t in made)} = {node.op}({_short(attributes, 400)})"
    ports = tuple((t, _short(str(t.type), _LONGEST)) for t in made if t in read or len(made) == 1)
    return _Item("op hot" if node.id in highlight.nodes else "op", lines, title, ports)


def _inputs(
    node: Node, number: int, width: float, homes: dict[Tensor, tuple[int, float]]
) -> list[Edge]:
    """The node's edges, entering from left to right."""
    given = [tensor for tensor in node.inputs if tensor is not None]
    step = min(24.0, (width - 16) / max(len(given), 1))
    return [
        Edge(homes[t][0], number, homes[t][1], (i - (len(given) - 1) / 2) * step)
        for i, t in enumerate(given)
    ]


def _boxed(item: _Item, x: float, y: float) -> Markup:
    box = item.box
    middle = box.width / 2
    wide = item.text_width
    shape = tag(
        "rect",
        x=round(middle - wide / 2, 1),
        y=0,
        width=round(wide, 1),
        height=item.inner,
        rx=6 if item.kind.startswith("op") else item.inner / 2,
    )
    texts = [tag("text", item.lines[0], x=round(middle, 1), y=17 if len(item.lines) > 1 else
                 item.inner / 2 + 4, class_="head")]  # fmt: skip
    texts += [tag("text", line, x=round(middle, 1), y=32, class_="more") for line in item.lines[1:]]
    left = middle - sum(item.widths) / 2
    for (_, label), width in zip(item.ports, item.widths, strict=True):
        texts.append(
            tag("text", label, x=round(left + width / 2, 1), y=item.inner + 13, class_="type")
        )
        left += width
    return tag(
        "g", tag("title", item.title), shape, join(*texts),
        class_=item.kind, transform=f"translate({x:.1f} {y:.1f})",
    )  # fmt: skip


def _described(graph: Graph, highlight: Highlight, nodes: Sequence[Node], cut: int) -> str:
    hot = ", ".join(node.op for node in nodes if node.id in highlight.nodes)
    pointed = f"; highlighted ({highlight.why}): {hot}" if hot else ""
    rest = f", {cut} more are not drawn" if cut else ""
    return f"A program of {len(graph.nodes)} nodes{rest}{pointed}"


def _written(value: Attribute) -> str:
    return f"[{', '.join(map(_written, value))}]" if isinstance(value, tuple) else _literal(value)


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
