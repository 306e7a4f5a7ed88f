"""ONNX's own operators (``onnx.Col2Im``, ``ai.onnx.ml.Binarizer``): written as they are.

What they mean is for ONNX to say, so there is nothing to translate: operands and attributes keep
their places and names, and an attribute that has the name of an operand becomes a stored tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprise.facts.onnx_apply import Stored, definition_of, operands_of, own_attributes
from reprise.lower.onnx.call import Call, Ref


def form(c: Call) -> Sequence[Ref]:
    """The node itself. Of an operator that the opset does not have, a node that ``unsupported``
    finds to be none."""
    found = definition_of(c.op, c.opset)
    if found is None:
        return c.add_many(c.op, 1, *c.operands)
    operands: list[Ref | None] = []
    for operand in operands_of(found.schema, len(c.operands), c.attributes):
        if isinstance(operand, Stored):
            operands.append(c.constant(operand.name, operand.value, operand.dtype))
        else:
            operands.append(None if operand is None else c.get(operand))
    own = own_attributes(found.schema, c.attributes)
    return c.add_many(c.op, len(found.schema.outputs), *operands, **own)
