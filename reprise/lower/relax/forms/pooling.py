"""Pooling: by Relax's own operators where it has them, else over gathered windows."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from reprise.lower.relax.application import Application, Form, widened
from reprise.lower.relax.forms import windows


def _pool(function: str, spatial: int, n: Application, **more: object) -> str:
    kernel, strides = f"pool_size={list(n.attr('kernel'))}", f"strides={list(n.attr('strides'))}"
    options = [kernel, strides, f"padding={list(n.attr('pads'))}"]
    if any(d != 1 for d in n.attr("dilations")):
        options.append(f"dilation={list(n.attr('dilations'))}")
    if n.attr("ceil_mode"):
        options.append("ceil_mode=True")
    options += [f"{name}={value!r}" for name, value in more.items()]
    return f"R.nn.{function}{spatial}d({n[0]}, {', '.join(options)})"


def _lowest(n: Application) -> str:
    """What padding holds in a search for the greatest element."""
    if "float" in n.dtype:
        return n.const(-inf)
    return n.const(0 if n.dtype == "uint8" else -128)


def _places(n: Application, table: windows.Windows, shape: tuple[int, ...]) -> str:
    """The flat position of each window's greatest element."""
    gathered = table.gathered(n, n[0], _lowest(n))
    if n.dtype == "bfloat16":
        gathered = n.cast(gathered, "float32")  # TVM has no argmax of bfloat16
    first = n.let(f"R.argmax({gathered}, axis=3)", "first")
    count, size = table.positions.shape
    rows = n.array((size * np.arange(count)).reshape(1, 1, count), "rows")
    positions = n.array(table.positions.reshape(-1), "flat_positions")
    flat = f"R.take({positions}, R.add({first}, {rows}), axis=0)"
    return f"R.reshape({n.let(flat, 'at')}, {shape})"


def _planes(n: Application, places: str) -> str:
    """ONNX counts positions through batch and channels too."""
    batch, channels, *extents = n.shape
    starts = np.arange(batch * channels) * prod(extents)
    offsets = n.array(starts.reshape(batch, channels, *(1 for _ in extents)), "planes")
    return f"R.add({places}, {offsets})"


def _max_pool(spatial: int) -> Form:
    def form(n: Application) -> list[str]:
        y = _pool("max_pool", spatial, n)
        if len(n.results) < 2 or not n.is_wanted(1):
            return [y]
        outputs = n.result_shape(1)
        places = _places(n, windows.sliding(n, outputs[2:]), outputs)
        return [y, _planes(n, places)]

    return form


def _avg_pool(spatial: int) -> Form:
    def form(n: Application) -> str:
        return _pool("avg_pool", spatial, n, count_include_pad=bool(n.attr("count_include_pad")))

    return form


def _norm(n: Application, x: str, axes: list[int], keepdims: bool) -> str:
    """The p-norm over axes."""
    p = n.attr("p")
    if p == 1:
        return f"R.sum(R.abs({x}), axis={axes}, keepdims={keepdims})"
    if p == 2:
        return f"R.sqrt(R.sum(R.square({x}), axis={axes}, keepdims={keepdims}))"
    powers = f"R.sum(R.power(R.abs({x}), {n.const(float(p))}), axis={axes}, keepdims={keepdims})"
    return f"R.power({powers}, {n.const(1 / p)})"


def _lp_pool(n: Application) -> str:
    outputs = n.result_shape()
    gathered = windows.sliding(n, outputs[2:]).gathered(n, n[0], n.const(0.0))
    return f"R.reshape({_norm(n, gathered, [3], False)}, {outputs})"


def _global(function: str) -> Form:
    return lambda n: f"R.{function}({n[0]}, axis={_spatial(n)}, keepdims=True)"


def _spatial(n: Application) -> list[int]:
    return list(range(2, len(n.shape)))


def _adaptive_avg(spatial: int) -> Form:
    return lambda n: (
        f"R.nn.adaptive_avg_pool{spatial}d({n[0]}, output_size={list(n.attr('output_size'))})"
    )


def _adaptive_max(n: Application) -> str:
    """The greatest element of each of the windows."""
    outputs = n.result_shape()
    gathered = windows.adaptive(n, outputs[2:]).gathered(n, n[0], _lowest(n))
    return f"R.reshape(R.max({gathered}, axis=[3]), {outputs})"


def _max_unpool(n: Application) -> str:
    """Written to the flat positions; a greater ``output_shape`` adds zeros at the ends."""
    kernel, strides, pads = n.attr("kernel"), n.attr("strides"), n.attr("pads")
    spatial = len(kernel)
    implied = [
        max((extent - 1) * strides[i] + kernel[i] - pads[i] - pads[spatial + i], 0)
        for i, extent in enumerate(n.shape[2:])
    ]
    shape = (*n.shape[:2], *implied)
    if 0 in shape:
        return f'R.zeros({n.result_shape()}, "{n.dtype}")'
    zeros = n.let(f'R.zeros({(prod(shape),)}, "{n.dtype}")', "zeros")
    flat = (prod(n.shape),)
    positions = n.let(f"R.reshape({n[1]}, {flat})", "positions")
    values = n.let(f"R.reshape({n[0]}, {flat})", "values")
    written = n.let(f"R.scatter_elements({zeros}, {positions}, {values})", "written")
    made = f"R.reshape({written}, {shape})"
    wanted = n.result_shape()
    if wanted == shape:
        return made
    axes = list(range(2, len(shape)))
    ends = [min(shape[axis], wanted[axis]) for axis in axes]
    cut = f"R.strided_slice({n.let(made, 'implied')}, {axes}, {[0] * len(axes)}, {ends})"
    widths = [0, 0, 0, 0]
    for axis, end in zip(axes, ends, strict=True):
        widths += [0, wanted[axis] - end]
    return f'R.nn.pad({cut}, {widths}, "constant", 0.0)'


FORMS: dict[str, Form] = {
    **{f"max_pool{spatial}d": _max_pool(spatial) for spatial in (1, 2, 3)},
    **{f"avg_pool{spatial}d": _avg_pool(spatial) for spatial in (1, 2, 3)},
    **{f"adaptive_avg_pool{spatial}d": _adaptive_avg(spatial) for spatial in (1, 2, 3)},
    **{f"adaptive_max_pool{spatial}d": _adaptive_max for spatial in (1, 2, 3)},
    "max_unpool": _max_unpool,
    "lp_pool": widened(_lp_pool, "bfloat16"),
    "global_avg_pool": _global("mean"),
    "global_max_pool": _global("max"),
    "global_lp_pool": widened(lambda n: _norm(n, n[0], _spatial(n), True), "bfloat16"),
}
