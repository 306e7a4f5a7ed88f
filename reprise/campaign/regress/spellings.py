"""The ways in which one program can be written for a target.

A graph of ours has one spelling where a target's language has several, and some compilers look at
the spelling: ONNX Runtime's layer-norm fusion takes the axis -1 of a vector for its last one, and
not 0; what an optimiser does to Pad depends on the opset. So a program about a rule goes to an ONNX
target in its own opset (or the usual one), then with axes counted from the end, then in an old
opset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reprise.lower.lowering import lowering, refusal
from reprise.uir.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto

_OLD_OPSET = 13
_READABLE = range(13, 24)
"""Opsets that every release of ONNX Runtime on PyPI for this Python reads."""
_AXIS = frozenset({"Softmax", "LogSoftmax", "ArgMax", "ArgMin", "Concat", "Gather", "TopK"})
"""Operators whose attribute ``axis`` counts the axes of their first input."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A program in a target's language. ``name`` is empty for the usual spelling."""

    name: str
    model: bytes


def spellings(form: str, graph: Graph) -> Iterator[Spelling | str]:
    """All spellings of a graph, the usual one first; a reason (text) for one that there is not."""
    usual: Any = lowering(form)
    if form != "onnx":
        yield refusal(usual, graph) or Spelling("", usual.lower(graph))
        return
    opset: int = usual.opset
    wanted = graph.opsets.get("", opset)
    first = replace(usual, opset=wanted if wanted in _READABLE else opset)
    reason = refusal(first, graph)
    if reason is not None and wanted != opset:
        first, wanted = usual, opset
        reason = refusal(first, graph)
    if reason is not None:
        yield reason
        return
    plain = first.lower(graph)
    yield Spelling("", plain)
    counted = _from_the_end(graph, first.opset)
    if counted is not None:
        yield Spelling("negative axes", counted)
    if wanted != _OLD_OPSET:
        old: Any = replace(usual, opset=_OLD_OPSET)
        if refusal(old, graph) is None:
            yield Spelling(f"opset {_OLD_OPSET}", old.lower(graph))


def _from_the_end(graph: Graph, opset: int) -> bytes | None:
    """The ONNX model with negative axes; None if it has none to count otherwise."""
    import numpy as np
    from onnx import numpy_helper

    from reprise.lower.onnx import to_onnx

    model = to_onnx(graph, opset=opset)
    ranks = _ranks(to_onnx(graph, opset=opset, value_info=True))
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    changed = False
    for node in model.graph.node:
        rank = ranks.get(node.input[0]) if node.input else None
        if rank is None:
            continue
        reduces = node.op_type.startswith("Reduce")
        for attribute in node.attribute:
            if attribute.name == "axes" and reduces and len(attribute.ints):
                attribute.ints[:] = [a - rank if a >= 0 else a for a in attribute.ints]
                changed = True
            if attribute.name == "axis" and node.op_type in _AXIS and attribute.i >= 0:
                attribute.i -= rank
                changed = True
        axes = stored.get(node.input[1]) if reduces and len(node.input) > 1 else None
        if axes is not None:
            old = numpy_helper.to_array(axes)
            new = np.where(old >= 0, old - rank, old)
            axes.CopyFrom(numpy_helper.from_array(new, axes.name))
            changed = changed or bool(new.size)
    return model.SerializeToString() if changed else None


def _ranks(model: ModelProto) -> dict[str, int]:
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in values}
    return ranks | {t.name: len(t.dims) for t in model.graph.initializer}
