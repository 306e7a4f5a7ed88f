"""Normalisation."""

from __future__ import annotations

import numpy as np

from reprise.lower.relax.application import Application, Form, widened

EPSILON = 1e-9
"""What ``mean_variance_norm`` adds to the deviation, as ONNX's definition does."""


def _as(n: Application, position: int, dtype: str) -> str:
    """An operand in the given element type."""
    same = n.type(position).dtype == dtype
    return n[position] if same else n.cast(n[position], dtype)


def _batch_norm(n: Application) -> list[str]:
    """Relax's momentum is the weight of the batch, ONNX's that of the running value."""
    parameters = ", ".join([n[0], *(_as(n, i, n.dtype) for i in range(1, 5))])
    training = bool(n.attr("training"))
    options = f"axis=1, epsilon={n.attr('epsilon')}, momentum={1 - n.attr('momentum')}"
    all_three = n.let(f"R.nn.batch_norm({parameters}, {options}, training={training})", "all")
    if not training:
        return [f"{all_three}[0]", n[3], n[4]]
    others = [f"{all_three}[{i}]" for i in (1, 2)]
    running = n.type(3).dtype or ""
    if running != n.dtype:
        others = [n.cast(text, running) for text in others]
    return [f"{all_three}[0]", *others]


def _tail(n: Application) -> list[int]:
    return list(range(n.attr("axis"), len(n.shape)))


def _parameter(n: Application, position: int, neutral: str) -> str:
    """A scale or bias in the shape of what is normalised."""
    shape = n.shape[n.attr("axis") :]
    if not n.has(position):
        return f'R.{neutral}({shape}, "{n.dtype}")'
    if n.shape_of(position) == shape:
        return n[position]
    return f"R.broadcast_to({n[position]}, {shape})"


def _normalized(n: Application, x: str, axes: list[int], scale: str, bias: str) -> str:
    """Written out, where Relax's own takes float16 and float32 only."""
    mean = n.let(f"R.mean({x}, axis={axes}, keepdims=True)", "mean")
    variance = f"R.variance({x}, axis={axes}, keepdims=True)"
    deviation = f"R.sqrt(R.add({variance}, {n.const(n.attr('epsilon'))}))"
    unit = f"R.divide(R.subtract({x}, {mean}), {deviation})"
    return f"R.add(R.multiply({unit}, {scale}), {bias})"


def _each_channel(n: Application, position: int) -> str:
    return f"R.reshape({n[position]}, {(1, n.shape[1], *(1 for _ in n.shape[2:]))})"


def _layer_norm(n: Application) -> list[str]:
    axes, epsilon = _tail(n), n.attr("epsilon")
    scale, bias = _parameter(n, 1, "ones"), _parameter(n, 2, "zeros")
    if n.dtype == "float64":
        y = _normalized(n, n[0], axes, scale, bias)
    else:
        y = f"R.nn.layer_norm({n[0]}, {scale}, {bias}, axes={axes}, epsilon={epsilon})"
    if len(n.results) < 2 or not (n.is_wanted(1) or n.is_wanted(2)):
        return [y]
    x = n[0] if n.dtype == "float32" else n.let(n.cast(n[0], "float32"), "single")
    variance = f"R.variance({x}, axis={axes}, keepdims=True)"
    inverse = f"R.rsqrt(R.add({variance}, {n.const(epsilon, 'float32')}))"
    return [y, f"R.mean({x}, axis={axes}, keepdims=True)", inverse]


def _rms_norm(n: Application) -> str:
    scale = _parameter(n, 1, "ones")
    return f"R.nn.rms_norm({n[0]}, {scale}, axes={_tail(n)}, epsilon={n.attr('epsilon')})"


def _instance_norm(n: Application) -> str:
    axes = list(range(2, len(n.shape)))
    if n.dtype == "float64":
        return _normalized(n, n[0], axes, _each_channel(n, 1), _each_channel(n, 2))
    options = f"channel_axis=1, axes={axes}, epsilon={n.attr('epsilon')}"
    return f"R.nn.instance_norm({n[0]}, {n[1]}, {n[2]}, {options})"


def _group_norm(n: Application) -> str:
    axes = list(range(2, len(n.shape)))
    if n.dtype == "float64":
        groups, (batch, channels, *rest) = n.attr("groups"), n.shape
        apart = (batch, groups, channels // groups, *rest)
        grouped = n.let(f"R.reshape({n[0]}, {apart})", "groups")
        scale, bias = (
            f"R.reshape({n[i]}, {(1, groups, channels // groups, *(1 for _ in rest))})"
            for i in (1, 2)
        )
        unit = _normalized(n, grouped, list(range(2, len(apart))), scale, bias)
        return f"R.reshape({unit}, {n.shape})"
    options = f"num_groups={n.attr('groups')}, channel_axis=1, axes={axes}"
    return f"R.nn.group_norm({n[0]}, {n[1]}, {n[2]}, {options}, epsilon={n.attr('epsilon')})"


def _mean_variance_norm(n: Application) -> str:
    axes = list(n.attr("axes"))
    mean = f"R.mean({n[0]}, axis={axes}, keepdims=True)"
    deviation = f"R.add(R.std({n[0]}, axis={axes}, keepdims=True), {n.const(EPSILON)})"
    return f"R.divide(R.subtract({n[0]}, {mean}), {deviation})"


def _lrn(n: Application) -> str:
    """The squares of each channel's neighbours are gathered and summed."""
    batch, channels, *rest = n.shape
    size = n.attr("size")
    before = (size - 1) // 2
    widths = [0, 0, before, size - 1 - before, *(0 for _ in rest for _ in "ab")]
    padded = n.let(f'R.nn.pad(R.square({n[0]}), {widths}, "constant", 0.0)', "squares")
    at = n.array(np.add.outer(np.arange(channels), np.arange(size)).reshape(-1), "neighbours")
    wide = (batch, channels, size, *rest)
    total = f"R.sum(R.reshape(R.take({padded}, {at}, axis=1), {wide}), axis=[2])"
    scaled = f"R.multiply({n.const(n.attr('alpha') / size)}, {total})"
    power = f"R.power(R.add({n.const(n.attr('bias'))}, {scaled}), {n.const(n.attr('beta'))})"
    return f"R.divide({n[0]}, {power})"


def _lp_normalize(n: Application) -> str:
    axes = [n.attr("axis")]
    if n.attr("p") == 1:
        norm = f"R.sum(R.abs({n[0]}), axis={axes}, keepdims=True)"
    else:
        norm = f"R.sqrt(R.sum(R.square({n[0]}), axis={axes}, keepdims=True))"
    norm = n.let(norm, "norm")
    is_zero = f"R.equal({norm}, {n.const(0.0)})"
    return f"R.where({is_zero}, {n.const(0.0)}, R.divide({n[0]}, {norm}))"


FORMS: dict[str, Form] = {
    "batch_norm": widened(_batch_norm, "float16", "bfloat16"),
    "layer_norm": widened(_layer_norm, "bfloat16"),
    "rms_norm": _rms_norm,
    "instance_norm": widened(_instance_norm, "bfloat16"),
    "group_norm": widened(_group_norm, "bfloat16"),
    "mean_variance_norm": _mean_variance_norm,
    "lrn": widened(_lrn, "bfloat16"),
    "lp_normalize": _lp_normalize,
}
