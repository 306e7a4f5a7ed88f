"""What torch eager computes for an application of a UIR operator.

The table of forms (``tests/solve/torch_forms.py``) was written for shapes; forms here replace those
whose *values* would differ, since they leave an attribute out or return another index.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from tests.solve.torch_forms import FORMS as SHAPES
from tests.solve.torch_forms import NotExpressible, dtype, need, result

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]


def to_torch(value: Array | None) -> Any:
    if value is None:
        return None
    if value.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(value.astype(np.float32)).to(torch.bfloat16)
    if value.dtype == object or value.dtype.kind == "V":
        raise NotExpressible("no such type")
    return torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape).copy())


def to_numpy(value: Any) -> Array:
    if value.dtype == torch.bfloat16:
        return value.float().numpy().astype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return value.resolve_conj().numpy()  # type: ignore[no-any-return]


def apply(op: str, operands: list[Array | None], attributes: Attributes) -> list[Array]:
    """The results. Raises NotExpressible, or whatever torch raises."""
    made = FORMS[op](attributes, *map(to_torch, operands))
    results = made if isinstance(made, tuple | list) else (made,)
    return [to_numpy(r) for r in results]


# --- forms whose values count --------------------------------------------------------------------


def _hard_sigmoid(a: Attributes, x: Any) -> Any:
    return torch.clamp(a["alpha"] * x + a["beta"], 0, 1)


def _selu(a: Attributes, x: Any) -> Any:
    need(abs(a["alpha"] - 1.6732631921768188) < 1e-6, "torch fixes alpha")
    need(abs(a["gamma"] - 1.0507010221481323) < 1e-6, "torch fixes gamma")
    return F.selu(x)


def _swish(a: Attributes, x: Any) -> Any:
    need(a["alpha"] == 1, "torch fixes alpha")
    return F.silu(x)


def _plain_order(name: str) -> Any:
    def build(a: Attributes, x: Any) -> Any:
        return SHAPES[name](a, x)

    return build


def _cumulative(function: Any, identity: int) -> Any:
    def build(a: Attributes, x: Any) -> Any:
        need(not a["exclusive"] and not a["reverse"], "torch runs forwards")
        return function(x, a["axis"], dtype=result(a, x))

    return build


def _extreme(function: Any) -> Any:
    def build(a: Attributes, x: Any) -> Any:
        need(not a["select_last_index"], "torch says nothing of the last")
        return function(x, a["axis"], a["keepdims"])

    return build


def _gemm(a: Attributes, x: Any, y: Any, c: Any = None) -> Any:
    x = x.T if a["trans_a"] else x
    y = y.T if a["trans_b"] else y
    need(x.dtype.is_floating_point, "torch wants whole factors of integers")
    if c is None:
        return a["alpha"] * torch.mm(x, y)
    return torch.addmm(c, x, y, alpha=a["alpha"], beta=a["beta"])


def _max_pool(name: str) -> Any:
    def build(a: Attributes, x: Any) -> Any:
        y, indices = SHAPES[name](a, x)
        plane = int(np.prod(x.shape[2:]))
        first = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) * plane
        return y, indices + first.reshape(*first.shape, *(1,) * (x.dim() - 2))

    return build


def _batch_norm(a: Attributes, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    """The running variance is another: only y."""
    return SHAPES["batch_norm"](a, x, scale, bias, mean, var)


def _layer_norm(a: Attributes, x: Any, scale: Any = None, bias: Any = None) -> Any:
    return SHAPES["layer_norm"](a, x, scale, bias)


def _instance_norm(a: Attributes, x: Any, scale: Any, bias: Any) -> Any:
    need(x[0, 0].numel() > 1, "torch needs more than one value a channel")
    return F.instance_norm(x, weight=scale, bias=bias, eps=a["epsilon"])


def _group_norm(a: Attributes, x: Any, scale: Any, bias: Any) -> Any:
    need(x.numel() > x.shape[0] * a["groups"], "torch needs more than one value a group")
    return F.group_norm(x, a["groups"], scale, bias, a["epsilon"])


def _lrn(a: Attributes, x: Any) -> Any:
    need(x.dim() >= 3, "torch wants three axes")
    need(a["size"] % 2 == 1, "torch's window is the other way round")
    return F.local_response_norm(x, a["size"], a["alpha"], a["beta"], a["bias"])


def _depth_to_space(a: Attributes, x: Any) -> Any:
    need(a["mode"] == "CRD", "torch shuffles columns first")
    return F.pixel_shuffle(x, a["block"])


def _space_to_depth(a: Attributes, x: Any) -> Any:
    need(a["mode"] == "CRD", "torch shuffles columns first")
    return F.pixel_unshuffle(x, a["block"])


_GRID_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def _grid_sample(a: Attributes, x: Any, grid: Any) -> Any:
    need(x.dtype == grid.dtype, "torch has one type here")
    need(a["mode"] != "cubic" or x.dim() == 4, "torch's cubic mode has two axes")
    need(
        a["mode"] != "cubic" or a["padding_mode"] == "zeros", "ONNX clamps cubic coordinates first"
    )
    return F.grid_sample(x, grid, _GRID_MODES[a["mode"]], a["padding_mode"], a["align_corners"])


def _scatter(a: Attributes, x: Any, indices: Any, updates: Any) -> Any:
    indices = torch.where(indices < 0, indices + x.shape[a["axis"]], indices)
    return SHAPES["scatter_elements"](a, x, indices, updates)


def _positive(name: str) -> Any:
    """torch wants indices from 0 on."""

    def build(a: Attributes, x: Any, indices: Any) -> Any:
        extent = x.shape[a.get("axis", 0)]
        return SHAPES[name](a, x, torch.where(indices < 0, indices + extent, indices))

    return build


def _attention(a: Attributes, q: Any, k: Any, v: Any, mask: Any = None, *past: Any) -> Any:
    need(not a["softcap"], "torch has no soft cap")
    need(a["left_window_size"] == a["right_window_size"] == -1, "torch has no windows")
    need("q_num_heads" not in a or q.dim() == 4, "torch splits no heads")
    need(not any(p is not None for p in past), "torch keeps no past")
    need(q.dtype == v.dtype == k.dtype, "torch has one type here")
    need(q.shape[:-2] == k.shape[:-2], "torch shares no heads here")
    need(mask is None or mask.dtype in (torch.bool, q.dtype), "the mask's type")
    need(mask is None or not a["is_causal"], "torch takes one or the other")
    need(mask is None or mask.shape[-1:] in ((), (k.shape[-2],)), "torch pads no mask")
    need(a.get("scale", 1.0) >= 0, "torch takes the root of the scale")
    scale = a.get("scale")
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, a["is_causal"], scale=scale)


def _recurrent(layer: Any, gates: int, order: tuple[int, ...]) -> Any:
    """``order``: which of torch's gates stands at each place of ONNX's."""

    def build(
        a: Attributes, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *rest: Any
    ) -> Any:
        need(a["direction"] != "reverse", "torch has no reverse layer")
        need(lengths is None, "torch packs sequences")
        need("activations" not in a and a.get("clip", 0) <= 0, "torch fixes activations")
        need(not a.get("input_forget"), "torch couples no gates")
        need(a.get("linear_before_reset", True), "torch resets after the product")
        need(len(rest) < 3 or rest[2] is None, "torch has no peepholes")
        need(x.dtype in (torch.float32, torch.float64), "torch's halves round after each step")
        hidden, both = a["hidden_size"], w.shape[0] == 2
        made = layer(x.shape[2], hidden, bidirectional=both, dtype=x.dtype)

        def sorted_gates(m: Any) -> Any:
            parts = torch.split(m, hidden, 0)
            return torch.cat([parts[order.index(g)] for g in range(gates)], 0)

        with torch.no_grad():
            for i, suffix in enumerate(("l0", "l0_reverse")[: w.shape[0]]):
                half = gates * hidden
                bias = torch.zeros(2 * half, dtype=x.dtype) if b is None else b[i]
                getattr(made, f"weight_ih_{suffix}").copy_(sorted_gates(w[i]))
                getattr(made, f"weight_hh_{suffix}").copy_(sorted_gates(r[i]))
                getattr(made, f"bias_ih_{suffix}").copy_(sorted_gates(bias[:half]))
                getattr(made, f"bias_hh_{suffix}").copy_(sorted_gates(bias[half:]))
            zero = torch.zeros(w.shape[0], x.shape[1], hidden, dtype=x.dtype)
            first = [*(zero if s is None else s for s in rest[:2])]
            states = 2 if layer is torch.nn.LSTM else 1
            first += [zero] * (states - len(first))
            y, last = made(x, tuple(first[:2]) if states == 2 else first[0])
        y = y.reshape(*y.shape[:2], w.shape[0], hidden).permute(0, 2, 1, 3)
        return (y, *(last if isinstance(last, tuple) else (last,)))

    return build


def _dropout(a: Attributes, x: Any, *rest: Any) -> Any:
    need(not a["training"], "random")
    return F.dropout(x, a["ratio"], False), torch.ones_like(x, dtype=torch.bool)


def _full(a: Attributes) -> Any:
    return torch.full(a["shape"], a["value"], dtype=dtype(a["dtype"]))


def _arange(a: Attributes) -> Any:
    return torch.arange(a["start"], a["end"], a["step"], dtype=dtype(a["dtype"]))


def _clip(a: Attributes, x: Any, *bounds: Any) -> Any:
    need(not bounds, "torch wants numbers")
    return SHAPES["clip"](a, x)


def _shift(a: Attributes, x: Any, y: Any) -> Any:
    return SHAPES["bit_shift"](a, x, y)


def _order(name: str) -> Any:
    def build(a: Attributes, x: Any) -> Any:
        function = torch.sort if name == "sort" else torch.argsort
        return function(x, dim=a["axis"], descending=a["descending"], stable=True)

    return build


FORMS: dict[str, Any] = {
    **SHAPES,
    "hard_sigmoid": _hard_sigmoid,
    "selu": _selu,
    "swish": _swish,
    "cumsum": _cumulative(torch.cumsum, 0),
    "cumprod": _cumulative(torch.cumprod, 1),
    "argmax": _extreme(torch.argmax),
    "argmin": _extreme(torch.argmin),
    "gemm": _gemm,
    **{f"max_pool{n}d": _max_pool(f"max_pool{n}d") for n in (1, 2, 3)},
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "lrn": _lrn,
    "depth_to_space": _depth_to_space,
    "space_to_depth": _space_to_depth,
    "grid_sample": _grid_sample,
    "scatter_elements": _scatter,
    "gather": _positive("gather"),
    "gather_elements": _positive("gather_elements"),
    "embedding": _positive("embedding"),
    "attention": _attention,
    "rnn": _recurrent(torch.nn.RNN, 1, (0,)),
    "gru": _recurrent(torch.nn.GRU, 3, (1, 0, 2)),
    "lstm": _recurrent(torch.nn.LSTM, 4, (0, 3, 1, 2)),
    "dropout": _dropout,
    "full": _full,
    "arange": _arange,
    "sort": _order("sort"),
    "argsort": _order("argsort"),
}
