"""What Relax (or TVM behind it) has no form for: a declared table, asked before lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.lower.relax.forms import FORMS
from reprise.uir.graph import Attribute, TensorType

NO_DTYPE = {
    "string": "TVM has no strings",
    "complex64": "TVM has no complex numbers",
    "complex128": "TVM has no complex numbers",
    "float8e8m0": "TVM's CPU code has no float8e8m0",
    "float4e2m1": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "int4": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "uint4": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "int2": "TVM has no 2-bit numbers",
    "uint2": "TVM has no 2-bit numbers",
}
"""Element types that no operator takes or gives."""

NO_OPERATOR = {
    **dict.fromkeys(("if", "loop", "scan"), "sub-graphs are not lowered to Relax"),
}
"""Operators that are never lowered."""


def limit(
    op: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Attribute]
) -> str | None:
    """Why this application has no form in Relax, or None if it has one."""
    if op in NO_OPERATOR:
        return NO_OPERATOR[op]
    if op not in FORMS:
        return f"Relax has no form of {op}"
    dtypes = [operand.dtype for operand in operands if operand is not None]
    dtypes += [value for value in attributes.values() if isinstance(value, str)]
    for dtype in dtypes:
        if dtype in NO_DTYPE:
            return NO_DTYPE[dtype]
    for operand in operands:
        if operand is not None and (operand.dtype is None or operand.elements is None):
            return "an operand's type is not known"
    return None
