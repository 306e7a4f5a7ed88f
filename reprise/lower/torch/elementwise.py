"""Element-wise operators: functions of one operand, arithmetic, comparison, logic, activations."""

from __future__ import annotations

import functools

import numpy as np

from reprise.lower.torch.call import Call, Form, dtype, form, is_float, is_integer, literal, number
from reprise.lower.torch.values import scalar

_SAME_NAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh", "ceil", "floor",
    "round", "trunc", "reciprocal", "abs", "neg", "sign", "square", "erf", "sigmoid",
    "logical_not", "bitwise_not", "atan2", "hypot", "logaddexp", "maximum", "minimum",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "remainder", "where",
)  # fmt: skip

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip

_EXPRESSIONS = {
    "relu": "F.relu({0})",
    "relu6": "F.relu6({0})",
    "leaky_relu": "F.leaky_relu({0}, {alpha})",
    "prelu": "torch.where({0} >= 0, {0}, {1} * {0})",
    "thresholded_relu": "F.threshold({0}, {alpha}, 0.0)",
    "elu": "F.elu({0}, {alpha})",
    "celu": "F.celu({0}, {alpha})",
    "gelu": "F.gelu({0}, approximate={approximate})",
    "log_sigmoid": "F.logsigmoid({0})",
    "hard_swish": "F.hardswish({0})",
    "hard_tanh": "F.hardtanh({0}, {low}, {high})",
    "mish": "F.mish({0})",
    "softplus": "F.softplus({0})",
    "softsign": "F.softsign({0})",
    "glu": "F.glu({0}, {axis})",
    "is_nan": "torch.isnan({0})",
    "is_finite": "torch.isfinite({0})",
}


def _infix(operator: str) -> Form:
    def emit(call: Call) -> str:
        return f"{_operand(call, 0)} {operator} {_operand(call, 1)}"

    return Form(emit)


def _operand(call: Call, number: int) -> str:
    """A constant scalar beside a tensor is written as the number that it is, as people do (and as
    Inductor's patterns want it)."""
    value, other = call.values.get(number), call.values.get(1 - number)
    if value is None or value.ndim or other is not None or call.dtype() == "bool":
        return call.name(number)
    return scalar(value, call.dtype()) or call.name(number)


def _selu(call: Call) -> str:
    alpha, gamma = call.attributes["alpha"], call.attributes["gamma"]
    usual = np.float32(alpha) == np.float32(1.67326324) and np.float32(gamma) == np.float32(
        1.05070098
    )
    if usual and call.dtype() != "float64":  # ONNX's constants are torch's in single precision
        return f"F.selu({call.name()})"
    return f"{literal(gamma)} * F.elu({call.name()}, {literal(alpha)})"


def _hard_sigmoid(call: Call) -> str:
    alpha, beta = call.attributes["alpha"], call.attributes["beta"]
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5:
        return f"F.hardsigmoid({call.name()})"
    return f"torch.clamp({literal(alpha)} * {call.name()} + {literal(beta)}, 0.0, 1.0)"


def _swish(call: Call) -> str:
    alpha, x = call.attributes["alpha"], call.name()
    return f"F.silu({x})" if alpha == 1 else f"{x} * torch.sigmoid({literal(alpha)} * {x})"


def _shrink(call: Call) -> str:
    x, t = call.name(), call.dtype()
    lambd, bias = literal(call.attributes["lambd"]), call.attributes["bias"]
    if bias == 0:
        return f"torch.where(({x} < -{lambd}) | ({x} > {lambd}), {x}, 0)"
    convert = f".to({dtype(t)})" if is_integer(t) else ""
    shift = literal(bias)
    upper = f"torch.where({x} > {lambd}, {x} - {shift}, 0.0)"
    return f"torch.where({x} < -{lambd}, {x} + {shift}, {upper}){convert}"


def _clip(call: Call) -> str:
    bounds = []
    for operand, name in ((1, "min"), (2, "max")):
        if call.has(operand):
            bound = call.name(operand)
            bounds.append(
                f"{name}={bound}" if call.shape(operand) == () else f"{name}={bound}.reshape(())"
            )
        elif name in call.attributes:
            bounds.append(f"{name}={number(call.attributes[name], call.dtype(), saturate=True)}")
    if not bounds:
        return f"{call.name()}.clone()"
    if call.has(1) != call.has(2) and len(bounds) == 2:  # torch takes two numbers or two tensors
        return f"torch.clamp(torch.clamp({call.name()}, {bounds[0]}), {bounds[1]})"
    return f"torch.clamp({call.name()}, {', '.join(bounds)})"


def _is_inf(call: Call) -> str:
    negative, positive = (call.attributes[f"detect_{s}"] for s in ("negative", "positive"))
    if negative and positive:
        return f"torch.isinf({call.name()})"
    if positive:
        return f"torch.isposinf({call.name()})"
    if negative:
        return f"torch.isneginf({call.name()})"
    return f"torch.zeros_like({call.name()}, dtype=torch.bool)"


def _div(call: Call) -> str:
    if is_float(call.dtype()):
        return f"{_operand(call, 0)} / {_operand(call, 1)}"
    return f'torch.div({call.name(0)}, {call.name(1)}, rounding_mode="trunc")'


def _pow(call: Call) -> str:
    """The power in the wider of the two types, as numpy computes it; then the type of a."""
    a, b, t, u = call.name(0), call.name(1), call.dtype(0), call.dtype(1)
    if t == u:
        return f"torch.pow({a}, {b})"
    if is_integer(t) and is_float(u):
        return f"torch.pow({a}.double(), {b}).to({dtype(t)})"
    if is_float(t) and is_integer(u):
        return f"torch.pow({a}, {b}.to({dtype(t)}))"
    return f"torch.pow({a}, {b}).to({dtype(t)})"


def _mod(call: Call) -> str:
    function = "fmod" if call.attributes["fmod"] else "remainder"
    return f"torch.{function}({call.name(0)}, {call.name(1)})"


def _bit_shift(call: Call) -> str:
    side = call.attributes["direction"].lower()
    return f"torch.bitwise_{side}_shift({call.name(0)}, {call.name(1)})"


def _masked_fill(call: Call) -> str:
    value = number(call.attributes["value"], call.dtype())
    return f"torch.masked_fill({call.name(0)}, {call.name(1)}, {value})"


def _folded(function: str) -> Form:
    """All operands, two by two, from the left."""

    def emit(call: Call) -> str:
        if len(call.present) == 1:
            return f"{call.name()}.clone()"
        return functools.reduce(lambda left, right: f"{function}({left}, {right})", call.present)

    return Form(emit)


def _sum_n(call: Call) -> str:
    return " + ".join(call.present) if len(call.present) > 1 else f"{call.name()}.clone()"


def _mean_n(call: Call) -> str:
    count = len(call.present)
    return f"({' + '.join(call.present)}) / {count}" if count > 1 else f"{call.name()}.clone()"


FORMS: dict[str, Form] = {
    **{name: form(f"torch.{name}({{all}})") for name in _SAME_NAME},
    **{name: _infix(operator) for name, operator in _INFIX.items()},
    **{name: form(template) for name, template in _EXPRESSIONS.items()},
    "selu": Form(_selu),
    "hard_sigmoid": Form(_hard_sigmoid),
    "swish": Form(_swish),
    "shrink": Form(_shrink),
    "clip": Form(_clip),
    "is_inf": Form(_is_inf),
    "div": Form(_div),
    "floor_div": form("torch.floor_divide({0}, {1})"),
    "pow": Form(_pow),
    "mod": Form(_mod),
    "bit_shift": Form(_bit_shift),
    "masked_fill": Form(_masked_fill),
    "max_n": _folded("torch.maximum"),
    "min_n": _folded("torch.minimum"),
    "sum_n": Form(_sum_n),
    "mean_n": Form(_mean_n),
}
