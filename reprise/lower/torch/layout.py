"""Operators that move elements: shapes, permutations, cutting, joining, padding, resampling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reprise.lower.torch.call import (
    Call,
    Emitted,
    Form,
    Many,
    dtype,
    either,
    form,
    index,
    is_float,
    literal,
    number,
    shape,
)
from reprise.lower.torch.reductions import runtime
from reprise.uir.slices import slice_of

_SHAPE = runtime(1, "the shape")


def _reshape(call: Call) -> str:
    return f"torch.reshape({call.name()}, {shape(call.result_shape())})"


def _flatten(call: Call) -> str:
    if call.attributes["axis"] == 1 and call.rank() >= 2:
        return f"torch.flatten({call.name()}, 1)"
    return _reshape(call)


def _squeeze(call: Call) -> str:
    axes = call.attributes["axes"]
    if not axes:
        return f"{call.name()}.clone()"
    return f"torch.squeeze({call.name()}, {_one_or_list(axes)})"


def _unsqueeze(call: Call) -> str:
    text, rank = call.name(), call.rank() + len(call.attributes["axes"])
    for axis in sorted(axis % rank for axis in call.attributes["axes"]):
        text = f"{text}.unsqueeze({axis})"
    return text if call.attributes["axes"] else f"{text}.clone()"


def _one_or_list(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else literal(tuple(axes))


def _flip(call: Call) -> str:
    return f"torch.flip({call.name()}, {literal(tuple(call.attributes['axes']))})"


def _roll(call: Call) -> str:
    a = call.attributes
    if not a["axes"]:
        return f"{call.name()}.clone()"
    return f"torch.roll({call.name()}, {literal(tuple(a['shifts']))}, {literal(tuple(a['axes']))})"


def _depth_to_space(call: Call) -> str:
    block, x = call.attributes["block"], call.name()
    if call.attributes["mode"] == "CRD" and is_float(call.dtype()):
        return f"F.pixel_shuffle({x}, {block})"
    n, c, h, w = call.shape()
    c //= block * block
    if call.attributes["mode"] == "CRD":
        blocks, order = (n, c, block, block, h, w), (0, 1, 4, 2, 5, 3)
    else:
        blocks, order = (n, block, block, c, h, w), (0, 3, 4, 1, 5, 2)
    out = (n, c, h * block, w * block)
    return f"{x}.reshape({shape(blocks)}).permute({shape(order)}).reshape({shape(out)})"


def _space_to_depth(call: Call) -> str:
    block, x = call.attributes["block"], call.name()
    if call.attributes["mode"] == "CRD" and is_float(call.dtype()):
        return f"F.pixel_unshuffle({x}, {block})"
    n, c, h, w = call.shape()
    blocks = (n, c, h // block, block, w // block, block)
    order = (0, 1, 3, 5, 2, 4) if call.attributes["mode"] == "CRD" else (0, 3, 5, 1, 2, 4)
    out = (n, c * block * block, h // block, w // block)
    return f"{x}.reshape({shape(blocks)}).permute({shape(order)}).reshape({shape(out)})"


def _expand(call: Call) -> str:
    return f"torch.broadcast_to({call.name()}, {shape(call.result_shape())})"


def _split(call: Call) -> Emitted:
    a = call.attributes
    return Many(f"torch.split({call.name()}, {literal(tuple(a['sizes']))}, {a['axis']})", None)


def _chunk(call: Call) -> Emitted:
    a = call.attributes
    return Many(f"torch.chunk({call.name()}, {a['chunks']}, {a['axis']})", None)


def _slice(call: Call) -> str:
    """Slices forwards as Python has them; torch has none backwards, so those are flipped."""
    a, text = call.attributes, call.name()
    at: dict[int, str] = {}
    backwards = []
    for start, end, axis, step in zip(a["starts"], a["ends"], a["axes"], a["steps"], strict=True):
        extent = call.shape()[axis]
        positions = range(*slice_of(extent, start, end, step).indices(extent))
        if step < 0:
            backwards.append(axis)
            positions = positions[::-1]
        at[axis] = _positions(positions, extent)
    text += index(at) if at else ".clone()"
    return f"torch.flip({text}, {literal(tuple(backwards))})" if backwards else text


def _positions(positions: range, extent: int) -> str:
    if not positions:
        return "0:0"
    start = str(positions.start) if positions.start else ""
    end = str(positions[-1] + 1) if positions[-1] + 1 < extent else ""
    step = f":{positions.step}" if len(positions) > 1 and positions.step != 1 else ""
    if len(positions) == 1:
        end = str(positions[-1] + 1)
    return f"{start}:{end}{step}"


# --- padding -------------------------------------------------------------------------------------

_PAD_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _pad(call: Call) -> str:
    """``F.pad`` where it does it; other modes take few ranks there, and floats."""
    a, x, rank = call.attributes, call.name(), call.rank()
    axes = a.get("axes", tuple(range(rank)))
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis % rank] = a["pads"][i]
        after[axis % rank] = a["pads"][i + len(axes)]
    padded = [axis for axis in range(rank) if before[axis] or after[axis]]
    if not padded:
        return f"{x}.clone()"
    first, mode = padded[0], a["mode"]
    flat = [p for axis in range(rank - 1, first - 1, -1) for p in (before[axis], after[axis])]
    if mode == "constant":
        value = number(a["value"], call.dtype())
        return f"F.pad({x}, {literal(tuple(flat))}, value={value})"
    if (
        is_float(call.dtype())
        and rank - first in (1, 2, 3)
        and first in (1, 2)
        and min(flat) >= 0
        and _circles_once(mode, call, before, after)
    ):
        return f'F.pad({x}, {literal(tuple(flat))}, mode="{_PAD_MODES[mode]}")'
    for axis in padded:
        x = f'pad_axis({x}, {axis}, {before[axis]}, {after[axis]}, "{mode}")'
    return x


def _circles_once(mode: str, call: Call, before: list[int], after: list[int]) -> bool:
    extents = zip(call.shape(), before, after, strict=True)
    return mode != "wrap" or all(b <= e and a <= e for e, b, a in extents)


# --- resampling ----------------------------------------------------------------------------------


def _resize(call: Call) -> str:
    """``F.interpolate`` where it computes the same, else axis by axis."""
    a, x = call.attributes, call.name()
    native = _interpolate(call)
    if native is not None:
        return native
    sizes = call.result_shape()
    scales = a.get("scales") or tuple(
        size / extent if extent else 1.0 for size, extent in zip(sizes, call.shape(), strict=True)
    )
    crops = a["coordinate_transformation_mode"] == "tf_crop_and_resize"
    roi = a["roi"] if crops else ()
    options = [f'mode="{a["mode"]}"', f'coordinates="{a["coordinate_transformation_mode"]}"']
    if a["mode"] == "nearest":
        options.append(f'nearest="{a["nearest_mode"]}"')
    if a["mode"] == "cubic":
        options.append(f"a={literal(a['cubic_coeff_a'])}")
    if a["exclude_outside"]:
        options.append("exclude_outside=True")
    if a["antialias"]:
        options.append("antialias=True")
    if crops:
        options += [f"roi={literal(tuple(roi))}", f"outside={literal(a['extrapolation_value'])}"]
    return (
        f"resize({x}, {shape(sizes)}, {literal(tuple(map(float, scales)))}, {', '.join(options)})"
    )


def _interpolate(call: Call) -> str | None:
    a, rank = call.attributes, call.rank()
    if (
        not is_float(call.dtype())
        or rank not in (3, 4, 5)
        or a["exclude_outside"]
        or a["antialias"]
    ):
        return None
    if not math.prod(call.shape()) or not math.prod(call.result_shape()):
        return None
    if call.shape()[:2] != call.result_shape()[:2]:
        return None
    if "scales" in a and (a["scales"][:2] != (1.0, 1.0) or not _whole(call)):
        return None
    linear = {3: "linear", 4: "bilinear", 5: "trilinear"}[rank]
    mode, how = a["mode"], a["coordinate_transformation_mode"]
    options = ""
    match mode, how, a["nearest_mode"]:
        case "nearest", "asymmetric", "floor":
            options = 'mode="nearest"'
        case "nearest", "half_pixel", "round_prefer_ceil":
            options = 'mode="nearest-exact"'
        case "linear", "half_pixel", _:
            options = f'mode="{linear}", align_corners=False'
        case "linear", "align_corners", _:
            options = f'mode="{linear}", align_corners=True'
        case "cubic", "half_pixel", _ if rank == 4 and a["cubic_coeff_a"] == -0.75:
            options = 'mode="bicubic", align_corners=False'
    sizes = shape(call.result_shape()[2:])
    return f"F.interpolate({call.name()}, {sizes}, {options})" if options else None


def _whole(call: Call) -> bool:
    """Whether the result's extents are exactly the scaled ones, so that sizes say as much."""
    return all(
        extent * scale == size
        for extent, scale, size in zip(
            call.shape(), call.attributes["scales"], call.result_shape(), strict=True
        )
    )


def _resizable(call: Call) -> str | None:
    a = call.attributes
    if any(call.has(i) for i in (1, 2, 3)):
        return "torch wants sizes and scales as numbers, not as tensors"
    if a["keep_aspect_ratio_policy"] != "stretch" and "sizes" in a:
        return "torch does not keep the aspect ratio"
    crops = a["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if crops and len(a.get("roi", ())) != 2 * call.rank():
        return "there is no region of interest"
    return None


_GRID_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def _grid_sample(call: Call) -> str:
    a, x, grid = call.attributes, call.name(0), call.name(1)
    options = f'mode="{_GRID_MODES[a["mode"]]}", padding_mode="{a["padding_mode"]}", '
    options += f"align_corners={a['align_corners']}"
    if call.dtype(0) in ("float16", "bfloat16"):  # torch has no kernel for these on CPUs
        sampled = f"F.grid_sample({x}.float(), {grid}.float(), {options})"
        return f"{sampled}.to({dtype(call.dtype(0))})"
    grid = grid if call.dtype(1) == call.dtype(0) else f"{grid}.to({dtype(call.dtype(0))})"
    return f"F.grid_sample({x}, {grid}, {options})"


def _cubic_images(call: Call) -> str | None:
    if call.attributes["mode"] == "cubic" and call.rank() != 4:
        return "torch samples cubically over two axes only"
    return None


def _roi_align(call: Call) -> str:
    a = call.attributes
    size = shape((a["output_height"], a["output_width"]))
    half = a["coordinate_transformation_mode"] == "half_pixel"
    options = f'{size}, {a["sampling_ratio"]}, {literal(a["spatial_scale"])}, "{a["mode"]}", {half}'
    return f"roi_align({call.listed((0, 1, 2))}, {options})"


def _fixed_samples(call: Call) -> str | None:
    if call.attributes["sampling_ratio"] == 0:
        return "the number of samples would depend on the regions' sizes"
    return None


FORMS: dict[str, Form] = {
    "identity": form("{0}.clone()"),
    "reshape": Form(_reshape, _SHAPE),
    "flatten": Form(_flatten),
    "squeeze": Form(_squeeze, runtime(1, "axes")),
    "unsqueeze": Form(_unsqueeze, runtime(1, "axes")),
    "transpose": form("torch.permute({0}, {perm})"),
    "depth_to_space": Form(_depth_to_space),
    "space_to_depth": Form(_space_to_depth),
    "flip": Form(_flip),
    "roll": Form(_roll),
    "reverse_sequence": form("reverse_sequence({0}, {1}, {batch_axis}, {time_axis})"),
    "expand": Form(_expand, _SHAPE),
    "tile": Form(
        lambda call: f"{call.name()}.repeat({literal(tuple(call.attributes['repeats']))})",
        runtime(1, "repeats"),
    ),
    "concat": form("torch.cat(({all},), {axis})"),
    "stack": form("torch.stack(({all},), {axis})"),
    "split": Form(_split, runtime(1, "sizes")),
    "chunk": Form(_chunk),
    "slice": Form(_slice, runtime(1, "bounds")),
    "narrow": form("torch.narrow({0}, {axis}, {start}, {length})"),
    "select": form("torch.select({0}, {axis}, {index})"),
    "pad": Form(_pad, either(runtime(1, "pads"), runtime(2, "the value"), runtime(3, "axes"))),
    "trilu": Form(
        lambda call: (
            f"torch.{'triu' if call.attributes['upper'] else 'tril'}"
            f"({call.name()}, {call.attributes['k']})"
        ),
        runtime(1, "the diagonal"),
    ),
    "resize": Form(_resize, _resizable),
    "grid_sample": Form(_grid_sample, _cubic_images),
    "roi_align": Form(_roi_align, _fixed_samples),
}
