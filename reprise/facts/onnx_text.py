"""Attributes of ONNX's own operators that are graphs or tensors: given as text, in ONNX's syntax.

Comes in: the text, as a program has it. Goes out: an ``AttributeProto``. A tensor is
``"uint8[2] {0, 4}"``. A graph is ``"(x) => (y) { y = Mul(x, x2) }"``: its formal inputs, its
outputs, its nodes. Types may be left out where they follow from what runs the graph. ``x0``,
``x1``, ``x2`` … stand for the operands of the application: one that a graph reads is *captured*,
and no operand of the node. The other names are local; in a model they are made different from all
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from reprise.facts.onnx_values import GRAPH, TENSOR
from reprise.uir.graph import Attribute

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto

_WORDS = {GRAPH: "graph", TENSOR: "tensor"}
_OPERAND = re.compile(r"\bx(\d+)\b")
_OPERAND_NAME = re.compile(r"x(\d+)")


class BadText(ValueError):
    """A text that is no graph or tensor, or reads an operand that is not there; says why."""


def is_text(kind: int, value: object) -> bool:
    """Whether a value of an attribute of ``AttributeProto``'s type ``kind`` is such a text."""
    return kind in _WORDS and isinstance(value, str)


def captured(types: Mapping[str, int], attributes: Mapping[str, Attribute]) -> frozenset[int]:
    """The numbers of the operands that graphs among the attributes read. ``types``: the operator's
    attributes."""
    texts = [
        value
        for name, value in attributes.items()
        if types.get(name) == GRAPH and isinstance(value, str)
    ]
    return frozenset(int(found) for text in texts for found in _OPERAND.findall(text))


def check_text(name: str, kind: int, text: str) -> None:
    """Raises BadText."""
    _parsed(name, kind, text)


def attribute_of(
    name: str, kind: int, text: str, operand: Callable[[int], str | None], prefix: str
) -> AttributeProto:
    """The attribute. ``operand``: an operand's name in the model by its number; ``prefix`` makes
    the names of a graph different from others. Raises BadText."""
    from onnx import AttributeProto

    attribute: AttributeProto = AttributeProto.FromString(_parsed(name, kind, text))
    if kind == GRAPH:
        attribute.g.name = f"{prefix}/{name}"
        _rename(attribute.g, operand, f"{prefix}/{name}/")
    return attribute


@lru_cache(maxsize=1024)
def _parsed(name: str, kind: int, text: str) -> bytes:
    from onnx import parser

    named = f"g {text}" if kind == GRAPH and text.startswith("(") else text
    try:
        node = parser.parse_node(f"y = Node <{name}: {_WORDS[kind]} = {named}> ()")
    except parser.ParseError as error:
        said = error.args[0] if error.args else ""
        lines = (said.decode() if isinstance(said, bytes) else str(said)).strip().splitlines()
        raise BadText(f"{name} is no {_WORDS[kind]}: {lines[-1] if lines else text}") from None
    if len(node.attribute) != 1 or node.attribute[0].type != kind:
        raise BadText(f"{name} is no {_WORDS[kind]}")
    parsed: bytes = node.attribute[0].SerializeToString()
    return parsed


def _rename(graph: GraphProto, operand: Callable[[int], str | None], prefix: str) -> None:
    def renamed(name: str) -> str:
        found = _OPERAND_NAME.fullmatch(name)
        if not name or found is None:
            return f"{prefix}{name}" if name else ""
        outer = operand(int(found[1]))
        if not outer:
            raise BadText(f"it reads {name}, an operand that is not there")
        return outer

    for value in (*graph.input, *graph.output):
        value.name = renamed(value.name)
    for stored in graph.initializer:
        stored.name = renamed(stored.name)
    for node in graph.node:
        _replace(node.input, map(renamed, node.input))
        _replace(node.output, map(renamed, node.output))
        for attribute in node.attribute:
            if attribute.type == GRAPH:
                _rename(attribute.g, operand, prefix)


def _replace(field: object, names: Iterable[str]) -> None:
    field[:] = list(names)  # type: ignore[index]
