"""Element-wise operators of two operands and more; Relax broadcasts as numpy does."""

from __future__ import annotations

from functools import reduce

from reprise.lower.relax.application import Application, Form, widened
from reprise.lower.relax.forms.elementwise import direct

_DIRECT = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "floor_div": "floor_divide",
    "remainder": "floor_mod",
    **{name: name for name in ("maximum", "minimum", "where")},
    **{name: name for name in ("equal", "not_equal", "less", "less_equal", "greater")},
    **{name: name for name in ("greater_equal", "logical_and", "logical_or", "logical_xor")},
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
}


def _fold(function: str) -> Form:
    def form(n: Application) -> str:
        names = [name for name in n.names if name is not None]
        return reduce(lambda sofar, name: f"R.{function}({sofar}, {name})", names)

    return form


def _mean(n: Application) -> str:
    return f"R.divide({_fold('add')(n)}, {n.const(float(len(n.names)))})"


def _pow(n: Application) -> str:
    """Relax has powers of floats of one type: integers are raised as float64."""
    kind = n.dtype if "float" in n.dtype else "float64"
    base = n[0] if n.dtype == kind else n.cast(n[0], kind)
    exponent = n[1] if n.type(1).dtype == kind else n.cast(n[1], kind)
    power = f"R.power({base}, {exponent})"
    return power if kind == n.dtype else n.cast(power, n.dtype)


def _hypot(n: Application) -> str:
    return f"R.sqrt(R.add(R.square({n[0]}), R.square({n[1]})))"


def _shift(n: Application) -> str:
    return f"R.{n.attr('direction').lower()}_shift({n[0]}, {n[1]})"


FORMS: dict[str, Form] = {
    **{op: direct(function) for op, function in _DIRECT.items()},
    "logaddexp": widened(direct("log_add_exp"), "bfloat16"),
    "atan2": widened(direct("atan2"), "float16"),
    "pow": widened(_pow, "bfloat16"),
    "mod": widened(
        lambda n: f"R.{'mod' if n.attr('fmod') else 'floor_mod'}({n[0]}, {n[1]})", "bfloat16"
    ),
    "hypot": _hypot,
    "max_n": _fold("maximum"),
    "min_n": _fold("minimum"),
    "sum_n": _fold("add"),
    "mean_n": _mean,
    "bit_shift": _shift,
    "masked_fill": lambda n: f"R.where({n[1]}, {n.const(n.attr('value'))}, {n[0]})",
}
