"""ONNX's own operators (``onnx.Col2Im``, ``ai.onnx.ml.Binarizer``): written as they are.

What they mean is for ONNX to say, so there is nothing to translate: operands and attributes keep
their places and names, and an attribute that has the name of an operand becomes a stored tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprise.facts.onnx_apply import BEFORE, Stored, steps_of
from reprise.facts.onnx_text import is_text
from reprise.lower.onnx.call import Call, Ref, Text


def form(c: Call) -> Sequence[Ref]:
    """The node itself, or the nodes of a chain. Of an operator that the opset does not have, a node
    that ``unsupported`` finds to be none."""
    steps = steps_of(c.op, len(c.operands), c.attributes, c.opset)
    if steps is None:
        return c.add_many(c.op, 1, *c.operands)
    results: list[Ref] = []
    for step in steps:
        operands: list[Ref | None] = []
        for operand in step.operands:
            if isinstance(operand, Stored):
                operands.append(c.constant(operand.name, operand.value, operand.dtype))
            elif operand == BEFORE:
                operands.append(results[0])
            else:
                operands.append(None if operand is None else c.get(operand))
        outer = {i: c.get(i) for i in sorted(step.captured)}
        attributes = {
            name: Text(str(value), outer) if is_text(step.found.types[name], value) else value
            for name, value in step.attributes.items()
        }
        results = c.add_many(step.op, step.results(c.results), *operands, **attributes)
    return results
