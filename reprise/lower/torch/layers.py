"""Normalisation, recurrent layers, attention, and arithmetic on quantised numbers."""

from __future__ import annotations

from reprise.lang.dtypes import DTYPES
from reprise.lower.torch.call import (
    Call,
    Emitted,
    Form,
    Many,
    dtype,
    form,
    literal,
    number,
    shape,
)
from reprise.lower.torch.kernels import HALF

# --- normalisation -------------------------------------------------------------------------------


def _batch_norm(call: Call) -> Emitted:
    a = call.attributes
    x, scale, bias, mean, var = (call.name(i) for i in range(5))
    alike = len({call.dtype(i) for i in (0, 1, 3)}) == 1
    channels = call.shape(0)[1]  # torch's own looks at the first without asking if there is one
    if alike and channels and not a["training"] and not call.wants(1) and not call.wants(2):
        return f"F.batch_norm({x}, {mean}, {var}, {scale}, {bias}, eps={literal(a['epsilon'])})"
    options = f"{literal(a['epsilon'])}, {literal(a['momentum'])}, {a['training']}"
    return Many(f"batch_norm({x}, {scale}, {bias}, {mean}, {var}, {options})", 3)


def _layer_norm(call: Call) -> Emitted:
    axis, epsilon = call.attributes["axis"], literal(call.attributes["epsilon"])
    normalized = call.shape()[axis:]
    fits = all(not call.has(i) or call.shape(i) == normalized for i in (1, 2))
    operands = "".join(f", {call.optional(i)}" for i in (1, 2) if i < len(call.operands))
    if fits and not call.wants(1) and not call.wants(2):
        return f"F.layer_norm({call.name()}, {shape(normalized)}{operands}, eps={epsilon})"
    weights = ", ".join(call.optional(i) for i in (1, 2))
    return Many(f"layer_norm({call.name()}, {axis}, {weights}, {epsilon})", 3)


def _rms_norm(call: Call) -> str:
    axis, epsilon = call.attributes["axis"], literal(call.attributes["epsilon"])
    normalized = call.shape()[axis:]
    if call.shape(1) == normalized:
        return f"F.rms_norm({call.name(0)}, {shape(normalized)}, {call.name(1)}, eps={epsilon})"
    axes = literal(tuple(range(axis, call.rank())))
    x = call.name(0)
    root = f"torch.rsqrt(torch.mean(torch.square({x}), {axes}, keepdim=True) + {epsilon})"
    return f"{x} * {root} * {call.name(1)}"


def _instance_norm(call: Call) -> str:
    x, scale, bias = (call.name(i) for i in range(3))
    epsilon, n_c = literal(call.attributes["epsilon"]), call.shape()[0] * call.shape()[1]
    if (call.type().elements or 0) > n_c:
        return f"F.instance_norm({x}, weight={scale}, bias={bias}, eps={epsilon})"
    return f"channel_norm({x}, {call.shape()[1]}, {scale}, {bias}, {epsilon})"


def _group_norm(call: Call) -> str:
    x, scale, bias = (call.name(i) for i in range(3))
    groups, epsilon = call.attributes["groups"], literal(call.attributes["epsilon"])
    if (call.type().elements or 0) > call.shape()[0] * groups:
        return f"F.group_norm({x}, {groups}, {scale}, {bias}, eps={epsilon})"
    return f"channel_norm({x}, {groups}, {scale}, {bias}, {epsilon})"


def _lrn(call: Call) -> str:
    a, x = call.attributes, call.name()
    numbers = ", ".join(literal(a[name]) for name in ("size", "alpha", "beta", "bias"))
    if a["size"] % 2 and call.rank() >= 3 and call.dtype() not in HALF:
        return f"F.local_response_norm({x}, {numbers})"
    return f"local_response_norm({x}, {numbers})"


# --- recurrence ----------------------------------------------------------------------------------

_ACTIVATIONS = {
    "Relu": ("torch.relu", 0, (0.0, 0.0)),
    "Tanh": ("torch.tanh", 0, (0.0, 0.0)),
    "Sigmoid": ("torch.sigmoid", 0, (0.0, 0.0)),
    "Softsign": ("F.softsign", 0, (0.0, 0.0)),
    "Softplus": ("F.softplus", 0, (0.0, 0.0)),
    "LeakyRelu": ("lambda v: F.leaky_relu(v, {0})", 1, (0.01, 0.0)),
    "ThresholdedRelu": ("lambda v: F.threshold(v, {0}, 0.0)", 1, (1.0, 0.0)),
    "Elu": ("lambda v: F.elu(v, {0})", 1, (1.0, 0.0)),
    "Affine": ("lambda v: {0} * v + {1}", 2, (1.0, 0.0)),
    "ScaledTanh": ("lambda v: {0} * torch.tanh({1} * v)", 2, (1.0, 1.0)),
    "HardSigmoid": ("lambda v: torch.clamp({0} * v + {1}, 0.0, 1.0)", 2, (0.2, 0.5)),
}
"""An activation in torch, how many parameters it takes, and their defaults."""

_USUAL = {"rnn": ("Tanh",), "gru": ("Sigmoid", "Tanh"), "lstm": ("Sigmoid", "Tanh", "Tanh")}


def _functions(call: Call) -> str:
    """The activations as functions, direction by direction; parameters are dealt out in order."""
    a = call.attributes
    directions = 2 if a["direction"] == "bidirectional" else 1
    names = a.get("activations") or _USUAL[call.op] * directions
    alphas, betas = list(a.get("activation_alpha", ())), list(a.get("activation_beta", ()))
    spelled = []
    for name in names:
        template, count, defaults = _ACTIVATIONS[_spelling(name)]
        alpha = (alphas.pop(0) if alphas else defaults[0]) if count >= 1 else 0.0
        beta = (betas.pop(0) if betas else defaults[1]) if count >= 2 else 0.0
        spelled.append(template.format(literal(float(alpha)), literal(float(beta))))
    return f"({', '.join(spelled)},)"


def _spelling(name: str) -> str:
    """The activation's name as ONNX spells it, whatever its case; the name itself if unknown."""
    return next((known for known in _ACTIVATIONS if known.lower() == name.lower()), name)


def _known_activations(call: Call) -> str | None:
    names = call.attributes.get("activations")
    if names is None:
        return None
    for name in names:
        if _spelling(name) not in _ACTIVATIONS:
            return f"no activation is called {name}"
    directions = 2 if call.attributes["direction"] == "bidirectional" else 1
    if len(names) != len(_USUAL[call.op]) * directions:
        return f"{len(names)} activations"
    return None


def _bound(clip: float | None) -> str:
    """The bound on what goes into an activation; ONNX's default of 0 is none."""
    return literal(clip if clip is not None and clip > 0 else None)


def _recurrent(operands: int, *options: str) -> Form:
    def emit(call: Call) -> Emitted:
        a = call.attributes
        given = ", ".join(call.optional(i) for i in range(operands))
        more = [literal(a["direction"]), _functions(call), _bound(a.get("clip"))]
        more += [literal(a[name]) for name in options]
        return Many(f"{call.op}({given}, {', '.join(more)})", 3 if call.op == "lstm" else 2)

    return Form(emit, _known_activations)


# --- attention -----------------------------------------------------------------------------------


def _attention(call: Call) -> Emitted:
    a = call.attributes
    q, k, v = (call.name(i) for i in range(3))
    scale = "" if "scale" not in a else f", scale={literal(a['scale'])}"
    if _is_plain(call):
        mask = f", attn_mask={call.name(3)}" if call.has(3) else ""
        causal = ", is_causal=True" if a["is_causal"] else ""
        return f"F.scaled_dot_product_attention({q}, {k}, {v}{mask}{causal}{scale})"
    options = "".join(
        f", {name}={literal(a[name])}"
        for name, usual in (
            ("is_causal", False),
            ("softcap", 0.0),
            ("left_window_size", -1),
            ("right_window_size", -1),
        )
        if a[name] != usual
    )
    if a["qk_matmul_output_mode"] and call.wants(3):
        options += f", output_mode={a['qk_matmul_output_mode']}"
    if "softmax_precision" in a:
        options += f", precision={dtype(a['softmax_precision'])}"
    operands = ", ".join(call.optional(i) for i in range(7))
    return Many(f"attention({operands}{scale}{options})", 4)


def _is_plain(call: Call) -> bool:
    """Whether torch's own attention computes the same."""
    a = call.attributes
    if any(call.wants(i) for i in (1, 2, 3)) or any(call.has(i) for i in (4, 5, 6)):
        return False
    if call.dtype(0) != call.dtype(2) or call.shape(0)[:-2] != call.shape(1)[:-2]:
        return False
    if call.has(3) and (a["is_causal"] or call.dtype(3) not in (call.dtype(0), "bool")):
        return False
    if a["softcap"] or a.get("softmax_precision", call.dtype(0)) != call.dtype(0):
        return False
    if call.has(3) and call.shape(3)[-1:] != call.shape(1)[-2:-1]:
        return False
    return a["left_window_size"] == a["right_window_size"] == -1 and call.rank(0) == 4


def _attendable(call: Call) -> str | None:
    if call.rank(0) == 3 and {"q_num_heads", "kv_num_heads"} <= call.attributes.keys():
        return "heads that share the last axis have another result type"
    return None


def _rotary_embedding(call: Call) -> str:
    a = call.attributes
    operands = ", ".join(call.optional(i) for i in range(4))
    options = f"{a['interleaved']}, {a['num_heads']}, {a['rotary_embedding_dim']}"
    return f"rotary_embedding({operands}, {options})"


# --- quantisation --------------------------------------------------------------------------------

_RANGES = {
    "float8e4m3fn": (-448.0, 448.0),
    "float8e4m3fnuz": (-240.0, 240.0),
    "float8e5m2": (-57344.0, 57344.0),
    "float8e5m2fnuz": (-57344.0, 57344.0),
}


def _quantize_linear(call: Call) -> str:
    a, to = call.attributes, call.result_dtype()
    x, scale, zero = call.name(0), call.name(1), call.optional(2)
    if "precision" in a:
        wide = dtype(a["precision"])
        x, scale = f"{x}.to({wide})", f"{scale}.to({wide})"
    options = _placement(call)
    if DTYPES[to].kind == "float":
        low, high = _RANGES[to] if a["saturate"] else (float("-inf"), float("inf"))
        limits = f"{literal(low)}, {literal(high)}"
        return f"quantize_float({x}, {scale}, {options}, {limits}, {dtype(to)})"
    limits = f"{number(float('-inf'), to)}, {number(float('inf'), to)}"
    return f"quantize({x}, {scale}, {zero}, {options}, {limits}, {dtype(to)})"


def _dequantize_linear(call: Call) -> str:
    options = f"{_placement(call)}, {dtype(call.result_dtype())}"
    return f"dequantize({call.name(0)}, {call.name(1)}, {call.optional(2)}, {options})"


def _placement(call: Call) -> str:
    """The axis along which scales lie, and the size of blocks."""
    axis = call.attributes["axis"] % call.rank() if call.rank() and call.rank(1) else 0
    return f"{axis}, {call.attributes['block_size']}"


def _matmul_integer(call: Call) -> str:
    a, b = call.name(0), call.name(1)
    a = f"centered_rows({a}, {call.name(2)})" if call.has(2) else f"{a}.to(torch.int32)"
    b = f"centered_columns({b}, {call.name(3)})" if call.has(3) else f"{b}.to(torch.int32)"
    return f"torch.matmul({a}, {b})"


def _qlinear_matmul(call: Call) -> str:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (call.name(i) for i in range(8))
    to = call.dtype(7)
    return (
        f"qlinear_matmul({a}, {a_scale}, {a_zero}, {b}, {b_scale}, {b_zero}, "
        f"{y_scale}, {y_zero}, {dtype(to)})"
    )


FORMS: dict[str, Form] = {
    "batch_norm": Form(_batch_norm),
    "layer_norm": Form(_layer_norm),
    "rms_norm": Form(_rms_norm),
    "instance_norm": Form(_instance_norm),
    "group_norm": Form(_group_norm),
    "mean_variance_norm": form("mean_variance_norm({0}, {axes})"),
    "lrn": Form(_lrn),
    "lp_normalize": form("lp_normalize({0}, {p}, {axis})"),
    "rnn": _recurrent(6),
    "gru": _recurrent(6, "linear_before_reset"),
    "lstm": _recurrent(8, "input_forget"),
    "attention": Form(_attention, _attendable),
    "rotary_embedding": Form(_rotary_embedding),
    "quantize_linear": Form(_quantize_linear),
    "dequantize_linear": Form(_dequantize_linear),
    "dynamic_quantize_linear": Form(
        lambda call: Many(f"dynamic_quantize_linear({call.name()})", 3)
    ),
    "matmul_integer": Form(_matmul_integer),
    "qlinear_matmul": Form(_qlinear_matmul),
}
