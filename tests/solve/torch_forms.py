"""How an application of a UIR operator is written in torch: the table behind the cross-check of
signatures against torch's own shape inference (tensors on the ``meta`` device hold no data)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from reprise.solve.sampling import Instance
from reprise.uir.graph import TensorType
from reprise.uir.inference import Typing


class NotExpressible(Exception):
    """torch has the operator, but not this application of it."""


Attributes = dict[str, Any]
Build = Callable[..., Any]


def dtype(name: str | None) -> torch.dtype:
    found = getattr(torch, name or "", None)
    if not isinstance(found, torch.dtype):
        raise NotExpressible(f"no {name}")
    return found


def result(a: Attributes, x: Any) -> torch.dtype:
    """The result's dtype: the attribute's, else the operand's."""
    return dtype(a["dtype"]) if "dtype" in a else x.dtype  # type: ignore[no-any-return]


def tensor(type_: TensorType | None) -> Any:
    if type_ is None:
        return None
    return torch.empty(type_.shape, dtype=dtype(type_.dtype), device="meta")  # type: ignore[arg-type]


def need(condition: bool, why: str) -> None:
    if not condition:
        raise NotExpressible(why)


def unary(function: Callable[[Any], Any]) -> Build:
    return lambda a, x: function(x)


def binary(function: Callable[[Any, Any], Any]) -> Build:
    return lambda a, x, y: function(x, y)


def reduce(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any) -> Any:
        need(bool(a["axes"]), "torch reduces all axes if none are given")
        return function(x, a["axes"], a["keepdims"])

    return build


def typed_reduce(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any) -> Any:
        need(bool(a["axes"]), "torch reduces all axes if none are given")
        return function(x, a["axes"], a["keepdims"], dtype=result(a, x))

    return build


def _mean(a: Attributes, x: Any) -> Any:
    need(result(a, x).is_floating_point, "torch averages floats")
    return typed_reduce(torch.mean)(a, x)


def _instance_norm(a: Attributes, x: Any, scale: Any, bias: Any) -> Any:
    need(x[0, 0].numel() > 1, "torch needs more than one value a channel")
    return F.instance_norm(x, weight=scale, bias=bias)


def _group_norm(a: Attributes, x: Any, scale: Any, bias: Any) -> Any:
    need(x.numel() > x.shape[0] * a["groups"], "torch needs more than one value a group")
    return F.group_norm(x, a["groups"], scale, bias)


def _prod(a: Attributes, x: Any) -> Any:
    need(len(a["axes"]) == 1, "torch multiplies along one axis")
    return torch.prod(x, a["axes"][0], a["keepdims"], dtype=result(a, x))


def _symmetric(pads: tuple[int, ...], kernel: tuple[int, ...] | None = None) -> tuple[int, ...]:
    half = len(pads) // 2
    need(pads[:half] == pads[half:], "torch pads both ends alike")
    for pad, extent in zip(pads[:half], kernel or (), strict=False):
        need(2 * pad <= extent, "torch pads at most half a window")
    return pads[:half]


def convolution(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any, w: Any, b: Any = None) -> Any:
        return function(x, w, b, a["strides"], _symmetric(a["pads"]), a["dilations"], a["groups"])

    return build


def transposed(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any, w: Any, b: Any = None) -> Any:
        return function(
            x,
            w,
            b,
            a["strides"],
            _symmetric(a["pads"]),
            a["output_padding"],
            a["groups"],
            a["dilations"],
        )

    return build


def max_pool(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any) -> Any:
        pads = _symmetric(a["pads"], a["kernel"])
        need(max(a["kernel"]) > 0, "")
        return function(
            x,
            a["kernel"],
            a["strides"],
            pads,
            a["dilations"],
            a["ceil_mode"],
            return_indices=True,
        )

    return build


def avg_pool(function: Callable[..., Any]) -> Build:
    def build(a: Attributes, x: Any) -> Any:
        need(set(a["dilations"]) == {1}, "torch averages without dilation")
        fits = all(e >= k for e, k in zip(x.shape[2:], a["kernel"], strict=True))
        need(fits or function is not F.avg_pool3d, "torch looks at extents before padding")
        pads = _symmetric(a["pads"], a["kernel"])
        return function(x, a["kernel"], a["strides"], pads, a["ceil_mode"], a["count_include_pad"])

    return build


def _gemm(a: Attributes, x: Any, y: Any, c: Any = None) -> Any:
    x = x.T if a["trans_a"] else x
    y = y.T if a["trans_b"] else y
    if c is None:
        return torch.mm(x, y)
    return torch.addmm(c, x, y)


def _batch_norm(a: Attributes, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    need(x.dtype == scale.dtype == mean.dtype, "torch has one type here")
    need(not a["training"] or x.numel() > x.shape[1], "torch needs more than one value a channel")
    need(not a["training"] or a["epsilon"] > 0, "torch needs an epsilon")
    return F.batch_norm(x, mean, var, scale, bias, a["training"], 0.1, a["epsilon"])


def _layer_norm(a: Attributes, x: Any, scale: Any = None, bias: Any = None) -> Any:
    shape = x.shape[a["axis"] :]
    need(scale is None or scale.shape == shape, "torch does not broadcast the scale")
    return F.layer_norm(x, shape, scale, bias, a["epsilon"])


def _rms_norm(a: Attributes, x: Any, scale: Any) -> Any:
    shape = x.shape[a["axis"] :]
    need(scale.shape == shape, "torch does not broadcast the scale")
    return F.rms_norm(x, shape, scale, a["epsilon"])


def _pad(a: Attributes, x: Any) -> Any:
    rank = x.dim()
    pads = a["pads"]
    need("axes" not in a, "torch pads the last axes")
    flat = [p for axis in reversed(range(rank)) for p in (pads[axis], pads[axis + rank])]
    need(a["mode"] == "constant", "torch's other modes take few ranks")
    return F.pad(x, flat, "constant", a["value"])


def _slice(a: Attributes, x: Any) -> Any:
    index = [slice(None)] * x.dim()
    for start, end, axis, step in zip(a["starts"], a["ends"], a["axes"], a["steps"], strict=True):
        need(step > 0, "torch steps forwards only")
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _reshape(a: Attributes, x: Any) -> Any:
    shape = list(a["shape"])
    if not a["allowzero"]:
        shape = [x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape)]
    return x.reshape(shape)


def _depth_to_space(a: Attributes, x: Any) -> Any:
    return F.pixel_shuffle(x, a["block"])


def _space_to_depth(a: Attributes, x: Any) -> Any:
    return F.pixel_unshuffle(x, a["block"])


def _recurrent(layer: Callable[..., Any], gates: int) -> Build:
    def build(a: Attributes, x: Any, w: Any, *rest: Any) -> Any:
        need(a["direction"] != "reverse", "torch has no reverse layer")
        made = layer(
            x.shape[2],
            a["hidden_size"],
            bidirectional=a["direction"] == "bidirectional",
            device="meta",
            dtype=x.dtype,
        )
        y, h = made(x)
        states = h if isinstance(h, tuple) else (h,)
        length, batch, features = y.shape
        directions = w.shape[0]
        y = y.reshape(length, batch, directions, features // directions).permute(0, 2, 1, 3)
        return (y, *states)

    return build


def _gather(a: Attributes, x: Any, i: Any) -> Any:
    axis = a["axis"]
    picked = torch.index_select(x, axis, i.reshape(-1))
    return torch.reshape(picked, (*x.shape[:axis], *i.shape, *x.shape[axis + 1 :]))


def _roll(a: Attributes, x: Any) -> Any:
    return torch.roll(x, a["shifts"], a["axes"])


def _einsum(a: Attributes, *xs: Any) -> Any:
    need(xs[0].dtype.is_floating_point, "torch sums integers as int64")
    return torch.einsum(a["equation"], *xs)


def _attention(a: Attributes, q: Any, k: Any, v: Any, mask: Any = None, *past: Any) -> Any:
    need(not past, "torch keeps no past")
    need("q_num_heads" not in a, "torch packs no heads into the features")
    need(mask is None or mask.shape[-1] == k.shape[-2], "torch fills up no masks")
    need(q.dtype == v.dtype, "torch has one type here")
    need(q.shape[:-2] == k.shape[:-2], "torch shares no heads here")
    need(mask is None or (mask.dtype in (torch.bool, q.dtype)), "the mask's type")
    need(mask is None or not a["is_causal"], "torch takes one or the other")
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, a["is_causal"])


def _scatter(a: Attributes, x: Any, indices: Any, updates: Any) -> Any:
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    if a["reduction"] == "none":
        return torch.scatter(x, a["axis"], indices.long(), updates)
    return torch.scatter_reduce(x, a["axis"], indices.long(), updates, names[a["reduction"]])


def _arg(function: Callable[..., Any]) -> Build:
    return lambda a, x: function(x, a["axis"], a["keepdims"])


def _single(name: str) -> Build:
    return lambda a, x: getattr(torch, name)(x)


def _adaptive(function: Callable[..., Any]) -> Build:
    return lambda a, x: function(x, a["output_size"])


def _clip(a: Attributes, x: Any) -> Any:
    need("min" in a or "max" in a, "torch wants a bound")
    bounds = [a.get(name) for name in ("min", "max")]
    if not x.dtype.is_floating_point:
        bounds = [None if bound is None else int(bound) for bound in bounds]
    return torch.clamp(x, *bounds)


def _pow(a: Attributes, x: Any, y: Any) -> Any:
    need(x.dtype == y.dtype, "torch promotes")
    return torch.pow(x, y)


def _norm(p: int) -> Build:
    def build(a: Attributes, x: Any) -> Any:
        need(x.dtype.is_floating_point, "torch takes floats")
        need(bool(a["axes"]), "torch reduces all axes if none are given")
        return torch.linalg.vector_norm(x, p, a["axes"], a["keepdims"])

    return build


def _grid_sample(a: Attributes, x: Any, grid: Any) -> Any:
    need(x.dtype == grid.dtype, "torch has one type here")
    return F.grid_sample(x, grid, align_corners=a["align_corners"])


def _lrn(a: Attributes, x: Any) -> Any:
    need(x.dim() >= 3, "torch wants three axes")
    return F.local_response_norm(x, a["size"])


def _unsqueeze(a: Attributes, x: Any) -> Any:
    need("axis" in a, "torch adds one axis")
    return torch.unsqueeze(x, a["axis"])


UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh", "ceil",
    "floor", "round", "trunc", "reciprocal", "abs", "neg", "sign", "square", "erf", "sigmoid",
    "logical_not", "bitwise_not",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "atan2", "hypot", "logaddexp", "maximum", "minimum", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "matmul", "bmm",
    "remainder",
)  # fmt: skip

FORMS: dict[str, Build] = {
    **{name: _single(name) for name in UNARY},
    **{name: binary(getattr(torch, name)) for name in BINARY},
    "pow": _pow,
    "relu": unary(F.relu),
    "relu6": unary(F.relu6),
    "leaky_relu": lambda a, x: F.leaky_relu(x, a["alpha"]),
    "elu": lambda a, x: F.elu(x, a["alpha"]),
    "selu": unary(F.selu),
    "celu": lambda a, x: F.celu(x, a["alpha"]),
    "gelu": lambda a, x: F.gelu(x, approximate=a["approximate"]),
    "log_sigmoid": unary(F.logsigmoid),
    "hard_sigmoid": unary(F.hardsigmoid),
    "hard_swish": unary(F.hardswish),
    "hard_tanh": lambda a, x: F.hardtanh(x, a["low"], a["high"]),
    "swish": unary(F.silu),
    "mish": unary(F.mish),
    "softplus": unary(F.softplus),
    "softsign": unary(F.softsign),
    "thresholded_relu": lambda a, x: F.threshold(x, a["alpha"], 0.0),
    "glu": lambda a, x: F.glu(x, a["axis"]),
    "clip": _clip,
    "is_nan": unary(torch.isnan),
    "is_inf": unary(torch.isinf),
    "is_finite": unary(torch.isfinite),
    "identity": unary(torch.clone),
    "cast": lambda a, x: x.to(dtype(a["to"])),
    "bitcast": lambda a, x: x.view(dtype(a["to"])),
    "dropout": lambda a, x: (F.dropout(x, 0.5, True), torch.empty_like(x, dtype=torch.bool)),
    "div": lambda a, x, y: torch.div(
        x, y, rounding_mode=None if x.dtype.is_floating_point else "trunc"
    ),
    "floor_div": binary(torch.floor_divide),
    "mod": lambda a, x, y: torch.fmod(x, y) if a["fmod"] else torch.remainder(x, y),
    "bit_shift": lambda a, x, y: (
        torch.bitwise_left_shift(x, y)
        if a["direction"] == "LEFT"
        else torch.bitwise_right_shift(x, y)
    ),
    "equal": binary(torch.eq),
    "not_equal": binary(torch.ne),
    "less": binary(torch.lt),
    "less_equal": binary(torch.le),
    "greater": binary(torch.gt),
    "greater_equal": binary(torch.ge),
    "where": lambda a, c, x, y: torch.where(c, x, y),
    "masked_fill": lambda a, x, mask: torch.masked_fill(x, mask, a["value"]),
    "sum": typed_reduce(torch.sum),
    "mean": _mean,
    "prod": _prod,
    "max": reduce(torch.amax),
    "min": reduce(torch.amin),
    "l1_norm": _norm(1),
    "l2_norm": _norm(2),
    "log_sum_exp": reduce(torch.logsumexp),
    "var": lambda a, x: torch.var(x, a["axes"], correction=a["correction"], keepdim=a["keepdims"]),
    "std": lambda a, x: torch.std(x, a["axes"], correction=a["correction"], keepdim=a["keepdims"]),
    "reduce_any": reduce(torch.any),
    "reduce_all": reduce(torch.all),
    "argmax": _arg(torch.argmax),
    "argmin": _arg(torch.argmin),
    "softmax": lambda a, x: torch.softmax(x, a["axis"]),
    "log_softmax": lambda a, x: torch.log_softmax(x, a["axis"]),
    "cumsum": lambda a, x: torch.cumsum(x, a["axis"], dtype=result(a, x)),
    "cumprod": lambda a, x: torch.cumprod(x, a["axis"], dtype=result(a, x)),
    "topk": lambda a, x: torch.topk(x, a["k"], a["axis"], a["largest"], a["sorted"]),
    "sort": lambda a, x: torch.sort(x, dim=a["axis"], descending=a["descending"]),
    "argsort": lambda a, x: torch.argsort(x, a["axis"], a["descending"]),
    "gemm": _gemm,
    "linear": lambda a, x, w, b=None: F.linear(x, w, b),
    "einsum": _einsum,
    "det": unary(torch.linalg.det),
    "conv1d": convolution(F.conv1d),
    "conv2d": convolution(F.conv2d),
    "conv3d": convolution(F.conv3d),
    "conv_transpose1d": transposed(F.conv_transpose1d),
    "conv_transpose2d": transposed(F.conv_transpose2d),
    "conv_transpose3d": transposed(F.conv_transpose3d),
    "max_pool1d": max_pool(F.max_pool1d),
    "max_pool2d": max_pool(F.max_pool2d),
    "max_pool3d": max_pool(F.max_pool3d),
    "avg_pool1d": avg_pool(F.avg_pool1d),
    "avg_pool2d": avg_pool(F.avg_pool2d),
    "avg_pool3d": avg_pool(F.avg_pool3d),
    "adaptive_avg_pool1d": _adaptive(F.adaptive_avg_pool1d),
    "adaptive_avg_pool2d": _adaptive(F.adaptive_avg_pool2d),
    "adaptive_avg_pool3d": _adaptive(F.adaptive_avg_pool3d),
    "adaptive_max_pool1d": _adaptive(F.adaptive_max_pool1d),
    "adaptive_max_pool2d": _adaptive(F.adaptive_max_pool2d),
    "adaptive_max_pool3d": _adaptive(F.adaptive_max_pool3d),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "lrn": _lrn,
    "lp_normalize": lambda a, x: F.normalize(x, a["p"], a["axis"]),
    "reshape": _reshape,
    "squeeze": lambda a, x: torch.squeeze(x, a["axes"]),
    "unsqueeze": _unsqueeze,
    "transpose": lambda a, x: torch.permute(x, a["perm"]),
    "depth_to_space": _depth_to_space,
    "space_to_depth": _space_to_depth,
    "flip": lambda a, x: torch.flip(x, a["axes"]),
    "roll": _roll,
    "expand": lambda a, x: torch.broadcast_to(x, torch.broadcast_shapes(x.shape, a["shape"])),
    "tile": lambda a, x: x.repeat(a["repeats"]),
    "concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "stack": lambda a, *xs: torch.stack(xs, a["axis"]),
    "split": lambda a, x: torch.split(x, a["sizes"], a["axis"]),
    "chunk": lambda a, x: torch.chunk(x, a["chunks"], a["axis"]),
    "slice": _slice,
    "narrow": lambda a, x: torch.narrow(x, a["axis"], a["start"], a["length"]),
    "select": lambda a, x: torch.select(x, a["axis"], a["index"]),
    "pad": _pad,
    "trilu": lambda a, x: (torch.triu if a["upper"] else torch.tril)(x, a["k"]),
    "grid_sample": _grid_sample,
    "gather": _gather,
    "gather_elements": lambda a, x, i: torch.gather(x, a["axis"], i.long()),
    "scatter_elements": _scatter,
    "embedding": lambda a, table, i: F.embedding(i, table),
    "full": lambda a: torch.full(a["shape"], a["value"], dtype=dtype(a["dtype"]), device="meta"),
    "arange": lambda a: torch.arange(
        a["start"], a["end"], a["step"], dtype=dtype(a["dtype"]), device="meta"
    ),
    "rnn": _recurrent(torch.nn.RNN, 1),
    "gru": _recurrent(torch.nn.GRU, 3),
    "lstm": _recurrent(torch.nn.LSTM, 4),
    "attention": _attention,
    "random_normal": lambda a: torch.randn(a["shape"], dtype=dtype(a["dtype"]), device="meta"),
    "random_uniform": lambda a: torch.rand(a["shape"], dtype=dtype(a["dtype"]), device="meta"),
    "bernoulli": lambda a, x: torch.bernoulli(x).to(result(a, x)),
    "multinomial": lambda a, x: torch.multinomial(x, a["sample_size"], True).to(dtype(a["dtype"])),
}


def apply(build: Build, instance: Instance, typing: Typing) -> list[TensorType]:
    """What torch says of the application. Raises if it refuses it."""
    operands = [tensor(operand) for operand in instance.operands]
    made = build(dict(typing.attributes), *operands)
    results = made if isinstance(made, tuple | list) else (made,)
    return [TensorType(str(r.dtype).removeprefix("torch."), tuple(r.shape)) for r in results]
