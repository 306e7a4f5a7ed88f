"""Which outputs of a program differ from run to run, because something behind them draws numbers.

No oracle but the crash is of use there: no two modes, and no reference, draw the same numbers.
"""

from __future__ import annotations

from reprise.uir.graph import Graph, Node, Role
from reprise.uir.semantics import RANDOM


def random_outputs(graph: Graph) -> frozenset[int]:
    """The numbers of the graph's outputs that depend on a node that draws."""
    drawn: set[int] = set()
    for node in graph.nodes:
        inherits = any(tensor is not None and tensor.id in drawn for tensor in node.inputs)
        if inherits or draws(node):
            drawn.update(tensor.id for tensor in node.outputs if tensor is not None)
    return frozenset(i for i, tensor in enumerate(graph.outputs) if tensor.id in drawn)


def draws(node: Node) -> bool:
    """Whether a node draws numbers: ``dropout`` does in training, or if only the run says whether
    this is training."""
    if node.op != "dropout":
        return node.op in RANDOM
    training = node.inputs[2] if len(node.inputs) > 2 else None
    if training is None:
        return bool(node.attributes.get("training"))
    if training.role is Role.INITIALIZER and training.value is not None:
        return bool(training.value.any())
    return True
