"""The interface of a lowering, and the table of those there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

from reprise.uir.graph import Attribute, Graph, TensorType


class Lowering(Protocol):
    """One target language. Whoever lowers a graph asks first, node by node, whether it can be
    lowered: ``lower`` may take for granted that ``unsupported`` said None for each."""

    name: str

    def at(self, opset: int) -> Lowering:
        """The lowering to ONNX's ``opset``; itself, of a language without opsets."""
        ...

    def unsupported(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> str | None:
        """Why the language has no such application of the operator, or None if it has."""
        ...

    def lower(self, graph: Graph) -> bytes:
        """The whole program: a serialised model, or UTF-8 source text."""
        ...


_MODULES = {
    "onnx": "reprise.lower.onnx",
    "torch": "reprise.lower.torch",
    "relax": "reprise.lower.relax",
}


class LoweringError(ValueError):
    """There is no such lowering; the message is for people."""


def lowering(name: str, opset: int | None = None) -> Lowering:
    """The lowering called ``name`` (loaded on first use), at its usual opset unless told otherwise.
    Raises LoweringError for one that graphs do not have: what reads einsum kernels cannot be given
    a graph."""
    if name not in _MODULES:
        raise LoweringError(f"graphs are not lowered to {name}: such targets are for reprise fuzz")
    made: Lowering = import_module(_MODULES[name]).LOWERING
    return made if opset is None else made.at(opset)


def refusal(language: Lowering, graph: Graph) -> str | None:
    """Why a graph cannot be written in a language, by its first node that cannot, or None."""
    for node in graph.nodes:
        operands = [None if t is None else t.type for t in node.inputs]
        reason = language.unsupported(node.op, operands, node.attributes)
        if reason is not None:
            return f"{node.op}: {reason}"
    return None
