"""Element-wise functions of one operand."""

from __future__ import annotations

import math

from reprise.lower.relax.application import Application, Form, number, widened

_DIRECT = {
    **{name: name for name in ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos")},
    **{name: name for name in ("atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh")},
    **{name: name for name in ("ceil", "floor", "round", "trunc", "abs", "square", "erf")},
    **{name: name for name in ("sigmoid", "logical_not", "bitwise_not")},
    "neg": "negative",
}


def direct(function: str) -> Form:
    """The operator that Relax has under the name ``function``."""
    return lambda n: f"R.{function}({', '.join(name for name in n.names if name is not None)})"


def _expm1(n: Application) -> str:
    """2t / (1 - t) with t = tanh(x/2) where that loses nothing, exp(x) - 1 elsewhere."""
    t = n.let(f"R.tanh(R.multiply({n[0]}, {n.const(0.5)}))", "tanh")
    near = f"R.divide(R.multiply({n.const(2.0)}, {t}), R.subtract({n.const(1.0)}, {t}))"
    far = f"R.subtract(R.exp({n[0]}), {n.const(1.0)})"
    return f"R.where(R.less(R.abs({n[0]}), {n.const(1.0)}), {near}, {far})"


def _log1p(n: Application) -> str:
    """Kahan's: log(u) * x / (u - 1) with u = 1 + x, and x where u is 1."""
    u = n.let(f"R.add({n.const(1.0)}, {n[0]})", "sum")
    near = f"R.divide(R.multiply(R.log({u}), {n[0]}), R.subtract({u}, {n.const(1.0)}))"
    least = n.const({"float16": 1e-3, "bfloat16": 1e-2}.get(n.dtype, 1e-4))
    small = n.let(f"R.less(R.abs({n[0]}), {least})", "small")
    kept = f"R.where(R.equal({u}, {n.const(1.0)}), {n[0]}, {near})"
    return f"R.where({small}, {kept}, R.log({u}))"


def _logarithm(base: float) -> Form:
    return lambda n: f"R.divide(R.log({n[0]}), {n.const(math.log(base))})"


def _sign(n: Application) -> str:
    if n.dtype.startswith("uint"):
        return n.cast(f"R.not_equal({n[0]}, {n.const(0)})", n.dtype)
    return f"R.sign({n[0]})"


def _bound(n: Application, position: int, attribute: str) -> str | None:
    """A bound of ``clip`` as an expression of rank 0, or None if it is not given."""
    if n.has(position):
        return n[position] if n.shape_of(position) == () else f"R.reshape({n[position]}, ())"
    value = n.attr(attribute)
    return None if value is None else n.const(_saturated(value, n.dtype))


def _saturated(value: float, dtype: str) -> float:
    """A bound in the range of an integer type, without its fraction; of a float type, itself."""
    if "float" in dtype:
        return value
    bits = int(dtype.strip("uint"))
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return low if value != value else int(min(max(value, low), high))


def _clip(n: Application) -> str:
    """The upper bound wins where the two cross; in Relax's own clip the lower one does."""
    low, high = n.attr("min"), n.attr("max")
    if low is not None and high is not None and low <= high and not n.has(1) and not n.has(2):
        bounds = [number(_saturated(bound, n.dtype)) for bound in (low, high)]
        return f"R.clip({n[0]}, {', '.join(bounds)})"
    clipped = n[0]
    for function, bound in (("maximum", _bound(n, 1, "min")), ("minimum", _bound(n, 2, "max"))):
        if bound is not None:
            clipped = f"R.{function}({clipped}, {bound})"
    return clipped


def _is_inf(n: Application) -> str:
    negative, positive = n.attr("detect_negative"), n.attr("detect_positive")
    if negative and positive:
        return f"R.isinf({n[0]})"
    if not negative and not positive:
        return f'R.zeros({n.shape}, "bool")'
    return f"R.equal({n[0]}, {n.const(math.inf if positive else -math.inf)})"


_NO_HALF = ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
"""What LLVM code generation has no float16 intrinsic for."""

FORMS: dict[str, Form] = {
    **{op: direct(function) for op, function in _DIRECT.items()},
    **{op: widened(direct(op), "float16") for op in _NO_HALF},
    "is_nan": widened(direct("isnan"), "bfloat16"),
    "is_finite": widened(direct("isfinite"), "bfloat16"),
    "exp2": widened(lambda n: f"R.power({n.const(2.0)}, {n[0]})", "bfloat16"),
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _logarithm(2.0),
    "log10": _logarithm(10.0),
    "reciprocal": lambda n: f"R.divide({n.const(1.0)}, {n[0]})",
    "sign": _sign,
    "clip": _clip,
    "is_inf": widened(_is_inf, "bfloat16"),
}
