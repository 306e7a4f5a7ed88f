"""The element types that the rule language knows, with their widths and classes.

One table serves the checker (a misspelt dtype is an error), the engine (``bits``) and UIR.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: its name, width in bits (0 for ``string``: no fixed width) and class."""

    name: str
    bits: int
    kind: str  # "float" | "int" | "uint" | "bool" | "complex" | "string"


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("float16", 16, "float"),
        DType("bfloat16", 16, "float"),
        DType("float32", 32, "float"),
        DType("float64", 64, "float"),
        DType("float8e4m3fn", 8, "float"),
        DType("float8e4m3fnuz", 8, "float"),
        DType("float8e5m2", 8, "float"),
        DType("float8e5m2fnuz", 8, "float"),
        DType("float8e8m0", 8, "float"),
        DType("float4e2m1", 4, "float"),
        DType("int2", 2, "int"),
        DType("int4", 4, "int"),
        DType("int8", 8, "int"),
        DType("int16", 16, "int"),
        DType("int32", 32, "int"),
        DType("int64", 64, "int"),
        DType("uint2", 2, "uint"),
        DType("uint4", 4, "uint"),
        DType("uint8", 8, "uint"),
        DType("uint16", 16, "uint"),
        DType("uint32", 32, "uint"),
        DType("uint64", 64, "uint"),
        DType("bool", 8, "bool"),  # stored in a byte by every target
        DType("complex64", 64, "complex"),
        DType("complex128", 128, "complex"),
        DType("string", 0, "string"),
    )
}


def bits(dtype: str) -> int:
    """Storage width of one element in bits. Raises KeyError for a name that is no dtype."""
    return DTYPES[dtype].bits
