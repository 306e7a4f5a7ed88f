"""Convolutions and transposed convolutions over one to three axes."""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form
from reprise.lower.relax.forms.layout import strided_slice


def with_bias(text: str, bias: str | None, spatial: int) -> str:
    """``text`` plus a bias for each channel."""
    if bias is None:
        return text
    return f"R.add({text}, R.reshape({bias}, {(1, -1, *(1,) * spatial)}))"


def convolution(n: Application, x: str, w: str, spatial: int) -> str:
    """``R.nn.conv…d`` with the node's attributes."""
    options = [f"{name}={list(n.attr(name))}" for name in ("strides",)]
    options.append(f"padding={list(n.attr('pads'))}")
    options.append(f"dilation={list(n.attr('dilations'))}")
    if n.attr("groups") != 1:
        options.append(f"groups={n.attr('groups')}")
    return f"R.nn.conv{spatial}d({x}, {w}, {', '.join(options)})"


def _conv(spatial: int) -> Form:
    def form(n: Application) -> str:
        bias = n[2] if n.has(2) else None
        return with_bias(convolution(n, n[0], n[1], spatial), bias, spatial)

    return form


def _transposed(spatial: int) -> Form:
    def form(n: Application) -> str:
        bias = n[2] if n.has(2) else None
        ones = all(d == 1 for d in n.attr("dilations"))
        rows = zip(n.attr("output_padding"), n.attr("strides"), strict=True)
        if not ones or any(padding >= stride for padding, stride in rows):
            return with_bias(_stretched(n, spatial), bias, spatial)
        options = f"strides={list(n.attr('strides'))}, padding={list(n.attr('pads'))}"
        options += f", output_padding={list(n.attr('output_padding'))}"
        if n.attr("groups") != 1:
            options += f", groups={n.attr('groups')}"
        return with_bias(f"R.nn.conv{spatial}d_transpose({n[0]}, {n[1]}, {options})", bias, spatial)

    return form


def _stretched(n: Application, spatial: int) -> str:
    """Dilated, which TVM has no code for: put zeros between the elements, pad, and convolve with
    the kernel flipped and its channels exchanged."""
    shape, strides, dilations = list(n.shape), n.attr("strides"), n.attr("dilations")
    pads, extra, groups = n.attr("pads"), n.attr("output_padding"), n.attr("groups")
    x = n[0]
    for i in range(spatial):
        axis, stride = i + 2, strides[i]
        if stride > 1:
            wide = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
            widths = [0] * (2 * len(wide))
            widths[2 * axis + 3] = stride - 1
            padded = f'R.nn.pad(R.reshape({x}, {tuple(wide)}), {widths}, "constant", 0.0)'
            shape[axis] *= stride
            whole = n.let(f"R.reshape({padded}, {tuple(shape)})", "zeros")
            shape[axis] -= stride - 1
            x = n.let(strided_slice(whole, [axis], [0], [shape[axis]]), "apart")
    kernel = n.shape_of(1)
    widths, cuts = [0, 0, 0, 0], []
    for i in range(spatial):
        reach = dilations[i] * (kernel[i + 2] - 1)
        before, after = reach - pads[i], reach - pads[i + spatial] + extra[i]
        widths += [max(before, 0), max(after, 0)]
        if before < 0 or after < 0:
            padded_extent = shape[i + 2] + max(before, 0) + max(after, 0)
            cuts.append((i + 2, max(-before, 0), padded_extent - max(-after, 0)))
    if any(widths):
        x = n.let(f'R.nn.pad({x}, {widths}, "constant", 0.0)', "padded")
    if cuts:
        axes, begins, ends = ([cut[i] for cut in cuts] for i in range(3))
        x = n.let(strided_slice(x, axes, begins, ends), "cut")
    w = n[1]
    for axis in range(2, spatial + 2):
        w = f"R.flip({w}, axis={axis})"
    inputs, outputs, *window = kernel
    apart = (groups, inputs // groups, outputs, *window)
    order = [0, 2, 1, *range(3, 3 + spatial)]
    together = (groups * outputs, inputs // groups, *window)
    w = n.let(f"R.reshape(R.permute_dims(R.reshape({w}, {apart}), {order}), {together})", "kernel")
    options = f"dilation={list(dilations)}" + (f", groups={groups}" if groups != 1 else "")
    return f"R.nn.conv{spatial}d({x}, {w}, {options})"


FORMS: dict[str, Form] = {
    **{f"conv{spatial}d": _conv(spatial) for spatial in (1, 2, 3)},
    **{f"conv_transpose{spatial}d": _transposed(spatial) for spatial in (1, 2, 3)},
}
