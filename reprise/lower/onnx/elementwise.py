"""Activations, element-wise functions and comparisons."""

from __future__ import annotations

import math

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lang.dtypes import DTYPES
from reprise.lower.onnx.call import Call, Form, Ref, array_of, clamped
from reprise.lower.onnx.forms import either, is_float, same, widened

# --- one operand -----------------------------------------------------------------------------


def _exp2(c: Call) -> Ref:
    return c.add("Pow", c.number(2.0, label="two"), c.x)


def _expm1(c: Call) -> Ref:
    """tanh(x / 2) * (exp(x) + 1): exact in form, no cancellation near 0, keeps the sign of 0."""
    half = c.add("Tanh", c.add("Mul", c.x, c.number(0.5, label="half")))
    return c.add("Mul", half, c.add("Add", c.add("Exp", c.x), c.number(1.0, label="one")))


def _log1p(c: Call) -> Ref:
    """Kahan's: with u = 1 + x rounded, log(u) * x / (u - 1) undoes the rounding; x itself where
    u is 1, log(u) where x is big (or infinite)."""
    one = c.number(1.0, label="one")
    u = c.add("Add", c.x, one)
    log = c.add("Log", u)
    small = c.add("Mul", log, c.add("Div", c.x, c.add("Sub", u, one)))
    near = c.add("Where", c.add("Equal", u, one), c.x, small)
    is_near = c.add("Less", c.add("Abs", c.x), c.number(0.5, label="half"))
    return c.add("Where", is_near, near, log)


def _logarithm(base: float) -> Form:
    return lambda c: c.add("Div", c.add("Log", c.x), c.number(math.log(base), label="log_base"))


def _rsqrt(c: Call) -> Ref:
    return c.add("Reciprocal", c.add("Sqrt", c.x))


def _trunc(c: Call) -> Ref:
    negative = c.add("Less", c.x, c.number(0.0, label="zero"))
    return c.add("Where", negative, c.add("Ceil", c.x), c.add("Floor", c.x))


def _square(c: Call) -> Ref:
    return c.add("Mul", c.x, c.x)


def _is_finite(c: Call) -> Ref:
    """|x| < inf: false for NaN too."""
    return c.add("Less", c.add("Abs", c.x), c.number(math.inf, label="infinity"))


def _is_inf(c: Call) -> Ref:
    """Before opset 20 IsInf takes no 16-bit types: compare."""
    if c["detect_negative"] and c["detect_positive"]:
        return c.add("Equal", c.add("Abs", c.x), c.number(math.inf, label="infinity"))
    if c["detect_negative"] or c["detect_positive"]:
        which = math.inf if c["detect_positive"] else -math.inf
        return c.add("Equal", c.x, c.number(which, label="infinity"))
    return c.add("Less", c.add("Abs", c.x), c.number(0.0, label="zero"))  # never


def _is_nan(c: Call) -> Ref:
    """Before opset 20 IsNaN takes no bfloat16: only NaN differs from itself."""
    return c.add("Not", c.add("Equal", c.x, c.x))


def _clip(c: Call) -> Ref:
    bounds: list[Ref | None] = []
    for i, name in ((1, "min"), (2, "max")):
        bound, value = c.get(i), c[name]
        if bound is not None and c.rank(i):
            bound = c.add("Squeeze", bound)  # Clip wants a scalar
        elif bound is None and value is not None:
            bound = c.number(clamped(value, c.dtype()), label=name)
        bounds.append(bound)
    return c.add("Clip", c.x, *bounds)


def _between(low: float, high: float) -> Form:
    return lambda c: c.add("Clip", c.x, c.number(low, label="min"), c.number(high, label="max"))


def _hard_tanh(c: Call) -> Ref:
    return c.add("Clip", c.x, c.number(c["low"], label="min"), c.number(c["high"], label="max"))


# --- activations -----------------------------------------------------------------------------


def _celu(c: Call) -> Ref:
    """Celu takes float32 alone."""
    zero, alpha = c.number(0.0, label="zero"), c.number(c["alpha"], label="alpha")
    exp = c.add("Exp", c.add("Div", c.x, alpha))
    below = c.add("Mul", alpha, c.add("Sub", exp, c.number(1.0, label="one")))
    return c.add("Add", c.add("Max", c.x, zero), c.add("Min", below, zero))


def _gelu(c: Call) -> Ref:
    half, one = c.number(0.5, label="half"), c.number(1.0, label="one")
    if c["approximate"] == "tanh":
        cube = c.add("Mul", c.add("Mul", c.x, c.x), c.x)
        inner = c.add("Add", c.x, c.add("Mul", cube, c.number(0.044715, label="cubic")))
        inner = c.add("Mul", inner, c.number(math.sqrt(2 / math.pi), label="scale"))
        inner = c.add("Tanh", inner)
    else:
        inner = c.add("Erf", c.add("Mul", c.x, c.number(math.sqrt(0.5), label="scale")))
    return c.add("Mul", c.add("Mul", c.x, half), c.add("Add", inner, one))


def _log_sigmoid(c: Call) -> Ref:
    return c.add("Neg", c.add("Softplus", c.add("Neg", c.x)))


def _hard_swish(c: Call) -> Ref:
    return c.add("Mul", c.x, c.add("HardSigmoid", c.x, alpha=1 / 6, beta=0.5))


def _swish(c: Call) -> Ref:
    alpha = c["alpha"]
    scaled = c.x if alpha == 1 else c.add("Mul", c.x, c.number(alpha, label="alpha"))
    return c.add("Mul", c.x, c.add("Sigmoid", scaled))


def _mish(c: Call) -> Ref:
    return c.add("Mul", c.x, c.add("Tanh", c.add("Softplus", c.x)))


def _glu(c: Call) -> list[Ref]:
    axis = c["axis"]
    half = c.shape()[axis] // 2
    first, second = c.add_many("Split", 2, c.x, c.ints("sizes", (half, half)), axis=axis)
    return [c.add("Mul", first, c.add("Sigmoid", second))]


# --- two operands ----------------------------------------------------------------------------


def _floor_div(c: Call) -> Ref:
    """Integers: Div cuts towards 0, one more than the floor where the two remainders differ."""
    a, b = c.x, c.operand(1)
    quotient = c.add("Div", a, b)
    if is_float(c.dtype()):
        return c.add("Floor", quotient)
    if DTYPES[c.dtype()].kind == "uint":
        return quotient
    floored, cut = c.add("Mod", a, b), c.add("Mod", a, b, fmod=1)
    above = c.add("Not", c.add("Equal", floored, cut))
    return c.add("Sub", quotient, c.add("Cast", above, to=CODE_OF_DTYPE[c.dtype()]))


def _remainder(c: Call) -> Ref:
    """Floats: fmod's result has the sign of a; where it differs from b's, add b."""
    a, b = c.x, c.operand(1)
    if not is_float(c.dtype()):
        return c.add("Mod", a, b)
    rest = c.add("Mod", a, b, fmod=1)
    signs = c.add("Mul", c.add("Sign", rest), c.add("Sign", b))
    differ = c.add("Less", signs, c.number(0.0, label="zero"))
    return c.add("Where", differ, c.add("Add", rest, b), rest)


def _has_sign(c: Call, x: Ref, zero: Ref) -> Ref:
    """Whether x is negative or -0."""
    return c.add("Or", c.add("Less", x, zero), c.add("Less", c.add("Reciprocal", x), zero))


def _atan2(c: Call) -> Ref:
    """The angle of (|b|, |a|), reflected by the signs, those of 0 among them. Both 0 and both
    infinite are no quotients: 0 and 1 stand for them."""
    y, x = c.x, c.operand(1)
    zero = c.number(0.0, label="zero")
    height, width = c.add("Abs", y), c.add("Abs", x)
    slope = c.add(
        "Where",
        c.add("Equal", height, width),
        c.add("Mul", c.add("Sign", height), c.add("Sign", width)),
        c.add("Div", height, width),
    )
    angle = c.add("Atan", slope)
    mirrored = c.add("Sub", c.number(math.pi, label="pi"), angle)
    angle = c.add("Where", _has_sign(c, x, zero), mirrored, angle)
    return c.add("Where", _has_sign(c, y, zero), c.add("Neg", angle), angle)


def _hypot(c: Call) -> Ref:
    """m * sqrt(1 + (n / m)²) with m the greater: neither overflows nor underflows. Where m is 0 or
    infinite (half of it is itself), m."""
    a, b = c.add("Abs", c.x), c.add("Abs", c.operand(1))
    most, least = c.add("Max", a, b), c.add("Min", a, b)
    ratio = c.add("Div", least, most)
    root = c.add("Add", c.add("Mul", ratio, ratio), c.number(1.0, label="one"))
    long = c.add("Mul", most, c.add("Sqrt", root))
    half = c.add("Mul", most, c.number(0.5, label="half"))
    return c.add("Where", c.add("Equal", half, most), most, long)


def _logaddexp(c: Call) -> Ref:
    """max + log(1 + exp(-|a - b|)); equal operands (both infinite) apart."""
    a, b = c.x, c.operand(1)
    apart = c.add("Neg", c.add("Abs", c.add("Sub", a, b)))
    rest = c.add("Log", c.add("Add", c.add("Exp", apart), c.number(1.0, label="one")))
    alike = c.add("Add", a, c.number(math.log(2), label="log_two"))
    sum_ = c.add("Add", c.add("Max", a, b), rest)
    return c.add("Where", c.add("Equal", a, b), alike, sum_)


def _not_equal(c: Call) -> Ref:
    return c.add("Not", c.add("Equal", c.x, c.operand(1)))


def _bit_shift(c: Call) -> Ref:
    """ONNX shifts unsigned integers only. To the right, a negative number is shifted as its
    complement: the sign moves in from the left."""
    a, b = c.x, c.operand(1)
    dtype, direction = c.dtype(), c["direction"]
    if DTYPES[dtype].kind == "uint":
        return c.add("BitShift", a, b, direction=direction)
    unsigned, signed = CODE_OF_DTYPE["u" + dtype], CODE_OF_DTYPE[dtype]
    if direction == "LEFT":
        return c.add("Cast", _shifted(c, a, b, unsigned, direction), to=signed)
    ones = c.number(-1, label="ones")
    negative = c.add("Less", a, c.number(0, label="zero"))
    positive = c.add("Where", negative, c.add("Sub", ones, a), a)
    y = c.add("Cast", _shifted(c, positive, b, unsigned, direction), to=signed)
    return c.add("Where", negative, c.add("Sub", ones, y), y)


def _shifted(c: Call, a: Ref, b: Ref, unsigned: int, direction: str) -> Ref:
    a, b = c.add("Cast", a, to=unsigned), c.add("Cast", b, to=unsigned)
    return c.add("BitShift", a, b, direction=direction)


def _masked_fill(c: Call) -> Ref:
    value = c.constant("value", array_of(c["value"], c.dtype()), c.dtype())
    return c.add("Where", c.operand(1), value, c.x)


def _cast(c: Call) -> Ref:
    """``saturate`` is about 8-bit floats only; ORT refuses it for others."""
    saturate = c["saturate"] if c["to"].startswith("float8") else None
    code, mode = CODE_OF_DTYPE[c["to"]], c["round_mode"]
    return c.add("Cast", c.x, to=code, saturate=saturate, round_mode=mode)


def _bitcast(c: Call) -> Ref:
    return c.add("BitCast", c.x, to=CODE_OF_DTYPE[c["to"]])


_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "softplus": "Softplus", "softsign": "Softsign",
    "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "ceil": "Ceil", "floor": "Floor",
    "round": "Round", "reciprocal": "Reciprocal", "abs": "Abs", "neg": "Neg", "sign": "Sign",
    "erf": "Erf", "logical_not": "Not", "bitwise_not": "BitwiseNot", "identity": "Identity",
    "pow": "Pow", "maximum": "Max", "minimum": "Min", "max_n": "Max", "min_n": "Min",
    "sum_n": "Sum", "mean_n": "Mean", "equal": "Equal", "less": "Less",
    "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "where": "Where", "prelu": "PRelu",
}  # fmt: skip

FORMS: dict[str, Form] = {
    **{ours: same(theirs) for ours, theirs in _SAME.items()},
    **{
        ours: widened(theirs, same(theirs))
        for ours, theirs in {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}.items()
    },
    "relu6": _between(0.0, 6.0),
    "leaky_relu": same("LeakyRelu", "alpha"),
    "thresholded_relu": same("ThresholdedRelu", "alpha"),
    "elu": same("Elu", "alpha"),
    "selu": same("Selu", "alpha", "gamma"),
    "celu": either("Celu", same("Celu", "alpha"), _celu),
    "gelu": either("Gelu", same("Gelu", "approximate"), _gelu),
    "log_sigmoid": _log_sigmoid,
    "hard_sigmoid": same("HardSigmoid", "alpha", "beta"),
    "hard_swish": either("HardSwish", same("HardSwish"), _hard_swish),
    "hard_tanh": _hard_tanh,
    "swish": either("Swish", same("Swish", "alpha"), _swish),
    "mish": either("Mish", same("Mish"), _mish),
    "shrink": same("Shrink", "lambd", "bias"),
    "glu": _glu,
    "exp2": _exp2,
    "expm1": _expm1,
    "log2": _logarithm(2.0),
    "log10": _logarithm(10.0),
    "log1p": _log1p,
    "rsqrt": _rsqrt,
    "trunc": _trunc,
    "square": widened("Mul", _square),
    "clip": _clip,
    "is_nan": either("IsNaN", same("IsNaN"), _is_nan),
    "is_inf": either("IsInf", same("IsInf", "detect_negative", "detect_positive"), _is_inf),
    "is_finite": _is_finite,
    "floor_div": widened("Div", _floor_div),
    "mod": same("Mod", "fmod"),
    "remainder": _remainder,
    "atan2": _atan2,
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "not_equal": _not_equal,
    "bit_shift": _bit_shift,
    "masked_fill": _masked_fill,
    "cast": _cast,
    "bitcast": _bitcast,
}
"""The form of each of these operators."""
