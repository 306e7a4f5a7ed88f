"""Quantised numbers and arithmetic on them."""

from __future__ import annotations

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lower.onnx.call import Call, Form, Ref, array_of
from reprise.lower.onnx.forms import same


def _quantize(c: Call) -> Ref:
    """``output_dtype`` came with opset 21: before, a zero point says the type. ``saturate`` is
    about 8-bit floats only."""
    zero_point, wanted = c.get(2), c["output_dtype"]
    attributes = {name: c[name] for name in ("axis", "block_size")}
    if (wanted or c.dtype(2)).startswith("float8"):
        attributes["saturate"] = c["saturate"]
    if wanted is not None and not c.has("QuantizeLinear", "output_dtype"):
        if zero_point is None:
            shape = c.shape(1)
            zero_point = c.constant("zero_point", array_of(0, wanted, shape), wanted)
        wanted = None
    code = None if wanted is None else CODE_OF_DTYPE[wanted]
    precision = None if c["precision"] is None else CODE_OF_DTYPE[c["precision"]]
    return c.add(
        "QuantizeLinear",
        c.x,
        c.operand(1),
        zero_point,
        output_dtype=code,
        precision=precision,
        **attributes,
    )


def _dequantize(c: Call) -> Ref:
    """``output_dtype`` came with opset 23: before, the result had the scale's type."""
    wanted, scale = c["output_dtype"], c.dtype(1)
    attributes = {name: c[name] for name in ("axis", "block_size")}
    code = None if wanted is None else CODE_OF_DTYPE[wanted]
    if c.has("DequantizeLinear", "output_dtype"):
        return c.add("DequantizeLinear", *c.operands, output_dtype=code, **attributes)
    y = c.add("DequantizeLinear", *c.operands, **attributes)
    return y if wanted in (None, scale) else c.add("Cast", y, to=code)


FORMS: dict[str, Form] = {
    "quantize_linear": _quantize,
    "dequantize_linear": _dequantize,
    "dynamic_quantize_linear": same("DynamicQuantizeLinear", results=3),
    "qlinear_matmul": same("QLinearMatMul"),
    "matmul_integer": same("MatMulInteger"),
}
"""The form of each of these operators."""
