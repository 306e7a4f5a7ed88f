"""What a node that keeps its ONNX name is told, spelt as in programs: the inverse of how
``onnx_apply`` writes them.

Signatures mined for such operators (``rules/mining/onnx.rules``) take an operand that must be known
beforehand as an attribute (``shape=[2, 3]`` of ``onnx.CenterCropPad``), and an element type by its
name. An imported node has the operand as a stored tensor and the type as a number; here it gets
the attributes, too, so that one rule matches both. Its operands stay as they are: a rule that
speaks of them matches as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reprise.facts.onnx_apply import formal_dtypes
from reprise.facts.onnx_call import constant_of
from reprise.facts.onnx_values import DTYPE_OF_CODE
from reprise.uir.graph import Attribute, Tensor

if TYPE_CHECKING:
    from onnx.defs import OpSchema

MOST_STORED = 64
"""Elements of a stored tensor that is told as an attribute."""

_TYPES = frozenset(("dtype", "output_datatype", "output_dtype", "to"))
"""Attributes of ONNX's operators that say the element type of a result."""


def parameters(
    schema: OpSchema, inputs: Sequence[Tensor | None], attributes: Mapping[str, Attribute]
) -> dict[str, Attribute]:
    """The attributes that a node has besides ``attributes``, or has by another value than there:
    its stored integer operands by their formal names, and element types by name."""
    found: dict[str, Attribute] = {}
    for formal, operand in zip(schema.inputs, inputs, strict=False):
        name = formal.name.lower()  # in signatures a name in capitals would be a variable
        value = None if operand is None else constant_of(operand)
        if operand is None or value is None or name in attributes:
            continue
        usual = formal_dtypes(frozenset(formal.types))[:1]
        if usual and usual[0] in ("int64", "int32") and operand.type.dtype in ("int64", "int32"):
            if value.ndim == 1 and value.size <= MOST_STORED:
                found[name] = tuple(int(item) for item in value)
            elif value.ndim == 0:
                found[name] = int(value)
    for name in _TYPES & attributes.keys():
        code = attributes[name]
        if type(code) is int and name in schema.attributes and code in DTYPE_OF_CODE:
            found[name] = DTYPE_OF_CODE[code]
    return found
