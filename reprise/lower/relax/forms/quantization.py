"""Quantisation, written out: integer arithmetic in 32 bits, scales in double precision."""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form, Shape
from reprise.lower.relax.forms.convolution import convolution

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


def _laid_out(n: Application, position: int, shape: Shape, axis: int, block: int) -> str:
    """A scale or zero point, to be broadcast against an operand of ``shape``."""
    mine = n.shape_of(position)
    axis += len(shape) if axis < 0 else 0
    size = 1
    for extent in mine:
        size *= extent
    if size == 1 and not (block and mine):
        return f"R.reshape({n[position]}, ())"
    if block:
        repeated = f"R.repeat({n[position]}, {block}, axis={axis})"
        if mine[axis] * block == shape[axis]:
            return repeated
        return f"R.strided_slice({repeated}, [{axis}], [0], [{shape[axis]}])"
    if len(mine) > 1:
        return n[position]
    wide = tuple(size if i == axis else 1 for i in range(len(shape)))
    return f"R.reshape({n[position]}, {wide})"


def _saturated(n: Application, quotient: str, zero: str | None, dtype: str) -> str:
    """A quotient in double precision: rounded, its zero point added, in the range of the type."""
    low, high = RANGES[dtype]
    made = f"R.round({quotient})"
    if zero is not None:
        made = f"R.add({made}, {zero})"
    return n.cast(f"R.clip({made}, {float(low)}, {float(high)})", dtype)


def _quantize(n: Application) -> str:
    axis, block, to = n.attr("axis"), n.attr("block_size"), n.results[0].dtype or ""
    wide = n.attr("precision")
    scale_type = n.type(1).dtype or ""
    if wide is None:
        wide = n.dtype if "float" in n.dtype else scale_type if "float" in scale_type else "float32"
    x = n[0] if n.dtype == wide else n.cast(n[0], wide)
    scale = _laid_out(n, 1, n.shape, axis, block)
    scale = scale if scale_type == wide else n.cast(scale, wide)
    quotient = f"R.divide({x}, {scale})"
    if to not in RANGES:
        return n.cast(quotient, to)
    zero = n.cast(_laid_out(n, 2, n.shape, axis, block), "float64") if n.has(2) else None
    return _saturated(n, n.cast(quotient, "float64"), zero, to)


def _dequantize(n: Application) -> str:
    axis, block, result = n.attr("axis"), n.attr("block_size"), n.results[0].dtype or ""
    scale_type = n.type(1).dtype or ""
    wide = scale_type if "float" in scale_type else "float32"
    first = "float64" if "int" in n.dtype else wide
    made = n.cast(n[0], first)
    if n.has(2):
        zero = n.cast(_laid_out(n, 2, n.shape, axis, block), first)
        made = f"R.subtract({made}, {zero})"
    made = made if first == wide else n.cast(made, wide)
    scale = _laid_out(n, 1, n.shape, axis, block)
    scale = scale if scale_type == wide else n.cast(scale, wide)
    product = f"R.multiply({made}, {scale})"
    return product if wide == result else n.cast(product, result)


def _dynamic(n: Application) -> list[str]:
    zero, one = n.const(0.0), n.const(1.0)
    if 0 in n.shape:
        low, high = zero, zero
    else:
        low = n.let(f"R.minimum(R.min({n[0]}), {zero})", "low")
        high = f"R.maximum(R.max({n[0]}), {zero})"
    span = n.let(f"R.subtract({high}, {low})", "span")
    known = f"R.where(R.not_equal({span}, {zero}), {span}, {one})"
    scale = n.let(f"R.divide({known}, {n.const(255.0)})", "step")
    shift = f"R.clip(R.divide(R.negative({low}), {scale}), 0.0, 255.0)"
    point = n.let(f"R.round({shift})", "point")
    quotient = n.cast(f"R.divide({n[0]}, {scale})", "float64")
    y = _saturated(n, quotient, n.cast(point, "float64"), "uint8")
    return [y, scale, n.cast(point, "uint8")]


def _less_zero(n: Application, position: int, zero: int, axis: int) -> str:
    """An operand in 32 bits, less its zero point."""
    made = n.cast(n[position], "int32")
    if not n.has(zero):
        return made
    point = n.cast(_per_axis(n, zero, n.shape_of(position), axis), "int32")
    return f"R.subtract({made}, {point})"


def _per_axis(n: Application, position: int, shape: Shape, axis: int) -> str:
    """A parameter: one, or one for each position of an axis."""
    return _laid_out(n, position, shape, axis, 0)


def _product(n: Application, b: int, a_zero: int, b_zero: int) -> str:
    rows, columns = max(len(n.shape) - 2, 0), len(n.shape_of(b)) - 1
    left = _less_zero(n, 0, a_zero, rows)
    right = _less_zero(n, b, b_zero, columns)
    return f"R.matmul({left}, {right})"


def _rescaled(n: Application, total: str, factors: list[str], divisor: str, zero: str) -> str:
    factor = f"R.multiply({factors[0]}, {factors[1]})"
    wide = f"R.multiply({n.cast(total, 'float64')}, R.divide({factor}, {divisor}))"
    return _saturated(n, wide, n.cast(zero, "float64"), n.results[0].dtype or "")


def _qlinear_matmul(n: Application) -> str:
    total, shape = _product(n, 3, 2, 5), n.result_shape()
    rows, columns = max(len(n.shape) - 2, 0), len(n.shape_of(3)) - 1
    across = max(len(shape) - 2, 0)
    a = n.cast(_per_axis(n, 1, n.shape, rows), "float64")
    b = n.cast(_per_axis(n, 4, n.shape_of(3), columns), "float64")
    y = n.cast(_per_axis(n, 6, shape, across), "float64")
    return _rescaled(n, total, [a, b], y, _per_axis(n, 7, shape, across))


def _convolved(n: Application, w: int, x_zero: int, w_zero: int) -> str:
    """The padding holds x's zero point: 0 once that is taken off."""
    x = n.let(_less_zero(n, 0, x_zero, 1), "x")
    kernel = n.let(_less_zero(n, w, w_zero, 0), "w")
    return convolution(n, x, kernel, len(n.shape) - 2)


def _qlinear_conv(n: Application) -> str:
    shape = n.result_shape()
    total = _convolved(n, 3, 2, 5)
    if n.has(8):
        wide = (1, shape[1], *(1 for _ in shape[2:]))
        total = f"R.add({total}, R.reshape({n[8]}, {wide}))"
    x = f"R.reshape({n.cast(n[1], 'float64')}, ())"
    w = n.cast(_per_axis(n, 4, shape, 1), "float64")
    y = n.cast(_per_axis(n, 6, shape, 1), "float64")
    return _rescaled(n, total, [w, x], y, _per_axis(n, 7, shape, 1))


FORMS: dict[str, Form] = {
    "quantize_linear": _quantize,
    "dequantize_linear": _dequantize,
    "dynamic_quantize_linear": _dynamic,
    "matmul_integer": lambda n: _product(n, 1, 2, 3),
    "qlinear_matmul": _qlinear_matmul,
    "conv_integer": lambda n: _convolved(n, 1, 2, 3),
    "qlinear_conv": _qlinear_conv,
}
