"""Non-linearities of neural networks."""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form
from reprise.lower.relax.forms.elementwise import direct

SELU = {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}
"""What ``relax.op.nn.selu`` has built in (to the precision of float32)."""


def _elu(n: Application, alpha: float) -> str:
    scaled = f"R.multiply({n.const(alpha)}, R.subtract(R.exp({n[0]}), {n.const(1.0)}))"
    return f"R.where(R.greater_equal({n[0]}, {n.const(0.0)}), {n[0]}, {scaled})"


def _selu(n: Application) -> str:
    if all(n.attr(name) == value for name, value in SELU.items()):
        return f"R.nn.selu({n[0]})"
    return f"R.multiply({n.const(n.attr('gamma'))}, {_elu(n, n.attr('alpha'))})"


def _celu(n: Application) -> str:
    alpha = n.const(n.attr("alpha"))
    grown = f"R.subtract(R.exp(R.divide({n[0]}, {alpha})), {n.const(1.0)})"
    below = f"R.minimum(R.multiply({alpha}, {grown}), {n.const(0.0)})"
    return f"R.add(R.maximum({n[0]}, {n.const(0.0)}), {below})"


def _prelu(n: Application) -> str:
    slope, last = n.shape_of(1), len(n.shape) - 1
    if "float" in n.dtype and last >= 0 and slope == (n.shape[last],):
        return f"R.nn.prelu({n[0]}, {n[1]}, axis={last})"
    scaled = f"R.multiply({n[1]}, {n[0]})"
    return f"R.where(R.greater_equal({n[0]}, {n.const(0)}), {n[0]}, {scaled})"


def _hard_sigmoid(n: Application, alpha: float, beta: float) -> str:
    line = f"R.add(R.multiply({n.const(alpha)}, {n[0]}), {n.const(beta)})"
    return f"R.clip({line}, 0.0, 1.0)"


def _swish(n: Application) -> str:
    if n.attr("alpha") == 1.0:
        return f"R.nn.silu({n[0]})"
    scaled = f"R.multiply({n.const(n.attr('alpha'))}, {n[0]})"
    return f"R.multiply({n[0]}, R.sigmoid({scaled}))"


def _shrink(n: Application) -> str:
    """Integers are shrunk as float64, where bounds and bias may be fractions."""
    kind = n.dtype if "float" in n.dtype else "float64"
    x = n[0] if kind == n.dtype else n.let(n.cast(n[0], kind), "wide")
    low, high = n.const(-n.attr("lambd"), kind), n.const(n.attr("lambd"), kind)
    bias = n.const(n.attr("bias"), kind)
    above = f"R.where(R.greater({x}, {high}), R.subtract({x}, {bias}), {n.const(0.0, kind)})"
    shrunk = f"R.where(R.less({x}, {low}), R.add({x}, {bias}), {above})"
    return shrunk if kind == n.dtype else n.cast(shrunk, n.dtype)


def _glu(n: Application) -> str:
    halves = n.let(f"R.split({n[0]}, 2, axis={n.attr('axis')})", "halves")
    return f"R.multiply({halves}[0], R.sigmoid({halves}[1]))"


FORMS: dict[str, Form] = {
    "relu": direct("nn.relu"),
    "relu6": direct("nn.relu6"),
    "leaky_relu": lambda n: f"R.nn.leakyrelu({n[0]}, {n.attr('alpha')})",
    "prelu": _prelu,
    "thresholded_relu": lambda n: (
        f"R.where(R.greater({n[0]}, {n.const(n.attr('alpha'))}), {n[0]}, {n.const(0.0)})"
    ),
    "elu": lambda n: _elu(n, n.attr("alpha")),
    "selu": _selu,
    "celu": _celu,
    "gelu": lambda n: f"R.nn.gelu{'_tanh' if n.attr('approximate') == 'tanh' else ''}({n[0]})",
    "log_sigmoid": lambda n: f"R.negative(R.nn.softplus(R.negative({n[0]})))",
    "hard_sigmoid": lambda n: _hard_sigmoid(n, n.attr("alpha"), n.attr("beta")),
    "hard_swish": lambda n: f"R.multiply({n[0]}, {_hard_sigmoid(n, 1 / 6, 0.5)})",
    "hard_tanh": lambda n: f"R.clip({n[0]}, {n.attr('low')}, {n.attr('high')})",
    "swish": _swish,
    "mish": lambda n: f"R.multiply({n[0]}, R.tanh(R.nn.softplus({n[0]})))",
    "softplus": direct("nn.softplus"),
    "softsign": lambda n: f"R.divide({n[0]}, R.add({n.const(1.0)}, R.abs({n[0]})))",
    "shrink": _shrink,
    "glu": _glu,
}
