"""Reductions. Relax's take a list of axes and reduce nothing if it is empty."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from reprise.lower.relax.application import Application, Form, widened


def reduced(n: Application, function: str, x: str, keepdims: bool | None = None) -> str:
    """``R.function`` over the attribute ``axes``."""
    keep = bool(n.attr("keepdims")) if keepdims is None else keepdims
    return f"R.{function}({x}, axis={list(n.attr('axes'))}, keepdims={keep})"


def count(n: Application) -> int:
    """How many elements each result is made of."""
    return prod(n.shape[axis] for axis in n.attr("axes"))


def _converted(n: Application) -> str:
    """The operand in the type that the result accumulates in."""
    dtype = n.results[0].dtype or ""
    return n[0] if dtype == n.dtype else n.cast(n[0], dtype)


def _accumulated(function: str) -> Form:
    return lambda n: reduced(n, function, _converted(n))


def _mean(n: Application) -> str:
    dtype = n.results[0].dtype or ""
    if "float" in dtype:
        return reduced(n, "mean", _converted(n))
    wide = dtype if "64" in dtype else "int64"  # a sum of int32 would wrap around
    total = reduced(n, "sum", n[0] if n.dtype == wide else n.cast(n[0], wide))
    quotient = f"R.divide({total}, {n.const(count(n), wide)})"
    return quotient if wide == dtype else n.cast(quotient, dtype)


def _rooted(inner: Callable[[str], str]) -> Form:
    """The square root of a sum; of integers, in double precision, rounded towards 0."""

    def form(n: Application) -> str:
        if "float" in n.dtype:
            return f"R.sqrt({reduced(n, 'sum', inner(n[0]))})"
        wide = n.let(n.cast(n[0], "float64"), "wide")
        return n.cast(f"R.sqrt({reduced(n, 'sum', inner(wide))})", n.dtype)

    return form


def _l1_norm(n: Application) -> str:
    return reduced(n, "sum", n[0] if n.dtype.startswith("uint") else f"R.abs({n[0]})")


def _log_sum_exp(n: Application) -> str:
    """Less the greatest element, where that is finite, so that nothing overflows."""
    top = n.let(reduced(n, "max", n[0], keepdims=True), "top")
    finite = f"R.less(R.abs({top}), {n.const(float('inf'))})"
    shift = n.let(f"R.where({finite}, {top}, {n.const(0.0)})", "shift")
    total = f"R.log({reduced(n, 'sum', f'R.exp(R.subtract({n[0]}, {shift}))')})"
    if not n.attr("keepdims"):
        shift = f"R.reshape({shift}, {n.result_shape()})"
    return f"R.add({total}, {shift})"


def _variance(n: Application) -> str:
    elements, correction = count(n), n.attr("correction")
    variance = reduced(n, "variance", n[0])
    if correction == 0:
        return variance
    left = max(elements - correction, 0)
    return f"R.multiply({variance}, {n.const(elements / left if left else float('inf'))})"


def _std(n: Application) -> str:
    if n.attr("correction") == 0:
        return reduced(n, "std", n[0])
    return f"R.sqrt({_variance(n)})"


def _truth(function: str) -> Form:
    """Over bool, as the extreme of integers: TVM's reductions know no bool."""
    return lambda n: n.cast(reduced(n, function, n.cast(n[0], "int8")), "bool")


def _arg(function: str) -> Form:
    def form(n: Application) -> str:
        axis, keepdims = n.attr("axis"), bool(n.attr("keepdims"))
        if not n.shape:
            return 'relax.const(0, "int64")'
        if not n.attr("select_last_index"):
            return f"R.{function}({n[0]}, axis={axis}, keepdims={keepdims})"
        last = n.const(n.shape[axis] - 1, "int64")
        back = f"R.{function}(R.flip({n[0]}, axis={axis}), axis={axis}, keepdims={keepdims})"
        return f"R.subtract({last}, {back})"

    return form


FORMS: dict[str, Form] = {
    "sum": _accumulated("sum"),
    "mean": _mean,
    "prod": _accumulated("prod"),
    "max": lambda n: reduced(n, "max", n[0]),
    "min": lambda n: reduced(n, "min", n[0]),
    "l1_norm": _l1_norm,
    "l2_norm": _rooted(lambda x: f"R.square({x})"),
    "sum_square": lambda n: reduced(n, "sum", f"R.square({n[0]})"),
    "log_sum": lambda n: f"R.log({reduced(n, 'sum', n[0])})",
    "log_sum_exp": _log_sum_exp,
    "var": _variance,
    "std": _std,
    "reduce_any": _truth("max"),
    "reduce_all": _truth("min"),
    "argmax": widened(_arg("argmax"), "bfloat16"),
    "argmin": widened(_arg("argmin"), "bfloat16"),
}
