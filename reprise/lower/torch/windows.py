"""Convolution and pooling.

torch pads both ends of an axis alike, and pooling by half a window at most; where a program wants
something else, the padding is a call of its own, or the windows are cut out one by one
(``library.windows``).
"""

from __future__ import annotations

from collections.abc import Sequence

from reprise.lower.torch.call import (
    Call,
    Emitted,
    Form,
    Many,
    dtype,
    either,
    literal,
    number,
    shape,
)
from reprise.lower.torch.kernels import HALF
from reprise.lower.torch.reductions import runtime


def _halves(pads: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    half = len(pads) // 2
    return tuple(pads[:half]), tuple(pads[half:])


def _flat(before: Sequence[int], after: Sequence[int]) -> str:
    """Pads as ``F.pad`` lists them: the last axis first."""
    pairs = list(zip(before, after, strict=True))[::-1]
    return literal(tuple(p for pair in pairs for p in pair))


def _options(call: Call, **more: Sequence[int] | int) -> str:
    """Keyword arguments that are not torch's defaults."""
    given = {"stride": call.attributes["strides"], **more}
    text = ""
    for name, value in given.items():
        usual = 0 if "padding" in name else 1
        if isinstance(value, int):
            text += f", {name}={value}" * (value != usual)
        elif set(value) != {usual}:
            text += f", {name}={literal(tuple(value))}"
    return text


def _convolution(axes: int) -> Form:
    def emit(call: Call) -> str:
        a, x = call.attributes, call.name()
        before, after = _halves(a["pads"])
        if before != after:
            x, before = f"F.pad({x}, {_flat(before, after)})", (0,) * axes
        options = _options(call, padding=before, dilation=a["dilations"], groups=a["groups"])
        return f"F.conv{axes}d({x}, {call.listed(range(1, len(call.operands)))}{options})"

    return Form(emit)


def _transposed(axes: int) -> Form:
    def emit(call: Call) -> str:
        a = call.attributes
        before, after = _halves(a["pads"])
        crop = ""
        if before != after:
            sizes = call.result_shape()[2:]
            ends = [f"{b}:{b + size}" for b, size in zip(before, sizes, strict=True)]
            before, crop = (0,) * axes, f"[:, :, {', '.join(ends)}]"
        options = _options(
            call,
            padding=before,
            output_padding=a["output_padding"],
            groups=a["groups"],
            dilation=a["dilations"],
        )
        return f"F.conv_transpose{axes}d({call.listed(range(len(call.operands)))}{options}){crop}"

    return Form(emit)


def _native(call: Call) -> bool:
    """Whether torch's pooling takes these pads as they are."""
    before, after = _halves(call.attributes["pads"])
    kernel = call.attributes["kernel"]
    return before == after and all(2 * p <= k for p, k in zip(before, kernel, strict=True))


def _cut(call: Call) -> str:
    """The arguments of ``library.windows`` after the tensor."""
    a = call.attributes
    lists = (a["kernel"], a["strides"], _halves(a["pads"])[0], a["dilations"])
    sizes = call.result_shape()[2:]
    return ", ".join(literal(tuple(items)) for items in (*lists, sizes))


def _pool_options(call: Call, **more: Sequence[int]) -> str:
    """Strides default to the window in pooling."""
    a = call.attributes
    text = f"{literal(tuple(a['kernel']))}, {literal(tuple(a['strides']))}"
    for name, value in more.items():
        if set(value) != {0 if name == "padding" else 1}:
            text += f", {name}={literal(tuple(value))}"
    return text


def _max_pool(axes: int) -> Form:
    def emit(call: Call) -> Emitted:
        a, x = call.attributes, call.name()
        integers = call.dtype() in ("int8", "uint8")
        before, _ = _halves(a["pads"])
        if call.wants(1) and (integers or not _native(call)):
            return Many(f"max_pool_with_indices({x}, {_cut(call)})", 2)
        if integers:
            lowest = number(float("-inf"), call.dtype())
            every = literal(tuple(range(-axes, 0)))
            return f"torch.amax(windows({x}, {_cut(call)}, {lowest}), {every})"
        if _native(call):
            options = _pool_options(call, padding=before, dilation=a["dilations"])
            options += ", ceil_mode=True" * a["ceil_mode"]
            if call.wants(1):
                pooled = f"F.max_pool{axes}d({x}, {options}, return_indices=True)"
                return Many(f"with_flat_indices({pooled}, {x}.shape)", 2)
            return f"F.max_pool{axes}d({x}, {options})"
        padded = f'F.pad({x}, {_flat(before, _ends(call))}, value=float("-inf"))'
        return f"F.max_pool{axes}d({padded}, {_pool_options(call, dilation=a['dilations'])})"

    return Form(emit)


def _ends(call: Call) -> list[int]:
    """What must follow each axis so that exactly the wanted windows fit: less than 0 is cut."""
    a, sizes = call.attributes, call.result_shape()[2:]
    return [
        (sizes[i] - 1) * a["strides"][i]
        + a["dilations"][i] * (a["kernel"][i] - 1)
        + 1
        - (extent + a["pads"][i])
        for i, extent in enumerate(call.shape()[2:])
    ]


def _avg_pool(axes: int) -> Form:
    def emit(call: Call) -> str:
        a, x = call.attributes, call.name()
        fits = all(e >= k for e, k in zip(call.shape()[2:], a["kernel"], strict=True))
        kernel = axes < 3 or (fits and call.dtype() not in HALF)  # "avg_pool3d_out_frame"
        if _native(call) and set(a["dilations"]) == {1} and kernel:
            options = _pool_options(call, padding=_halves(a["pads"])[0])
            options += ", ceil_mode=True" * a["ceil_mode"]
            if any(a["pads"]) and not a["count_include_pad"]:
                options += ", count_include_pad=False"
            return f"F.avg_pool{axes}d({x}, {options})"
        after = literal(_halves(a["pads"])[1])
        return f"avg_pool({x}, {_cut(call)}, {after}, {a['count_include_pad']})"

    return Form(emit)


def _lp_pool(call: Call) -> str:
    a, x, axes = call.attributes, call.name(), call.rank() - 2
    plain = not any(a["pads"]) and set(a["dilations"]) == {1} and not a["ceil_mode"]
    if plain and (axes == 2 or (axes == 3 and call.dtype() not in HALF)) and a["p"] % 2 == 0:
        return f"F.lp_pool{axes}d({x}, {a['p']}, {_pool_options(call)})"
    every = literal(tuple(range(-axes, 0)))
    return f"torch.linalg.vector_norm(windows({x}, {_cut(call)}, 0.0), {a['p']}, {every})"


def _spatial(call: Call) -> str:
    return literal(tuple(range(2, call.rank())))


def _adaptive(function: str) -> Form:
    def emit(call: Call) -> str:
        return f"F.{function}({call.name()}, {literal(tuple(call.attributes['output_size']))})"

    return Form(emit)


def _covered(call: Call) -> list[int]:
    """The spatial extents that the windows cover."""
    a = call.attributes
    return [
        (extent - 1) * stride + kernel - a["pads"][i] - a["pads"][i + call.rank() - 2]
        for i, (extent, stride, kernel) in enumerate(
            zip(call.shape()[2:], a["strides"], a["kernel"], strict=True)
        )
    ]


def _max_unpool(call: Call) -> str:
    covered = shape((*call.shape()[:2], *_covered(call)))
    return f"max_unpool({call.name(0)}, {call.name(1)}, {covered}, {shape(call.result_shape())})"


def _nowhere(call: Call) -> str | None:
    a, shape = call.attributes, call.shape()
    if "output_shape" in a and tuple(a["output_shape"][:2]) != shape[:2]:
        return "the output shape has another batch or other channels"
    if not all(_covered(call)) and call.type().elements:
        return "the indices have nowhere to go"
    return None


# --- on integers ---------------------------------------------------------------------------------


def _integer_convolution(call: Call, x: str, w: str) -> str:
    """Convolution of integers: torch has it for floats, and double precision is exact here."""
    a, axes = call.attributes, call.rank() - 2
    before, after = _halves(a["pads"])
    if before != after:
        x, before = f"F.pad({x}, {_flat(before, after)})", (0,) * axes
    options = _options(call, padding=before, dilation=a["dilations"], groups=a["groups"])
    return f"F.conv{axes}d({x}, {w}{options})"


def _conv_integer(call: Call) -> str:
    x, w = call.name(0), call.name(1)
    x = f"centered({x}, {call.name(2)})" if call.has(2) else f"{x}.double()"
    w = f"centered({w}, {call.name(3)}, 0)" if call.has(3) else f"{w}.double()"
    return f"{_integer_convolution(call, x, w)}.to(torch.int32)"


def _qlinear_conv(call: Call) -> str:
    operands = [call.optional(i) for i in range(9)]
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b = operands
    product = Call(
        call.op,
        [call.operands[0], call.operands[3]],
        call.attributes,
        [call.names[0], call.names[3]],
    )
    text = _integer_convolution(product, f"centered({x}, {x_zero})", f"centered({w}, {w_zero}, 0)")
    scales = f"{x_scale}, {w_scale}, {y_scale}, {y_zero}"
    return f"requantized_channels({text}, {b}, {scales}, {dtype(call.dtype(7))})"


def _at_most_three(call: Call) -> str | None:
    return "torch convolves over at most three axes" if call.rank() > 5 else None


FORMS: dict[str, Form] = {
    **{f"conv{n}d": _convolution(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(f"adaptive_avg_pool{n}d") for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d") for n in (1, 2, 3)},
    "lp_pool": Form(_lp_pool),
    "global_avg_pool": Form(
        lambda call: f"torch.mean({call.name()}, {_spatial(call)}, keepdim=True)"
    ),
    "global_max_pool": Form(
        lambda call: f"torch.amax({call.name()}, {_spatial(call)}, keepdim=True)"
    ),
    "global_lp_pool": Form(
        lambda call: (
            f"torch.linalg.vector_norm({call.name()}, {call.attributes['p']}, "
            f"{_spatial(call)}, keepdim=True)"
        )
    ),
    "max_unpool": Form(_max_unpool, either(runtime(2, "the shape"), _nowhere)),
    "conv_integer": Form(_conv_integer, _at_most_three),
    "qlinear_conv": Form(_qlinear_conv, _at_most_three),
}
