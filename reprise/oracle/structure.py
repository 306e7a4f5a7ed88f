"""A name for what a program computes around an output: the second key of a wrong result.

`float32: floor(sum(softmax(input)))` is the term of the output's operators, read upwards from it
a few steps. It holds no names, numbers or shapes, so it is the same for the same structure in
whatever program.
"""

from __future__ import annotations

from reprise.uir.graph import Graph, Role, Tensor

DEPTH = 4
_TRANSPARENT = frozenset(("identity", "dropout"))


def term(graph: Graph, output: int) -> str:
    """The term of the graph's output number ``output``, with its dtype."""
    if not 0 <= output < len(graph.outputs):
        return ""
    tensor = graph.outputs[output]
    return f"{tensor.type.dtype or '?'}: {_term(tensor, DEPTH)}"


def _term(tensor: Tensor, depth: int) -> str:
    node = tensor.producer
    if node is None:
        return "constant" if tensor.role is Role.INITIALIZER else "input"
    first = node.inputs[0] if node.inputs else None
    if node.op in _TRANSPARENT and first is not None:
        return _term(first, depth)
    if depth == 0:
        return "_"
    operands = ["" if t is None else _term(t, depth - 1) for t in node.inputs]
    position = node.outputs.index(tensor)
    return f"{node.op}({', '.join(operands)}){f'.{position}' if position else ''}"
