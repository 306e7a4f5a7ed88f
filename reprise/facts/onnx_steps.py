"""The parts of normalisation that are not renaming: one short function for each.

Every function takes a :class:`Draft` whose attributes have been conveyed under their UIR names
and finishes it, or raises :class:`Misfit` where the node means something that the UIR operator
does not. Numbers come from the file, so each is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprise.facts.onnx_call import (
    Draft,
    Misfit,
    Step,
    axes_of,
    axis_of,
    constant_of,
    extents_of,
    known,
    whole,
)
from reprise.facts.onnx_values import scalars_of
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Extent

# --- elementwise -----------------------------------------------------------------------------


def legacy_broadcast(draft: Draft) -> None:
    """Before opset 7, a binary operator broadcast only if told to, from a given axis."""
    call = draft.call
    broadcast, axis = draft.take("broadcast"), draft.take("axis")
    draft.given -= {"broadcast", "axis"}
    if call.version >= 7 or not broadcast or axis is None:
        return  # equal shapes, or aligned at the end: what broadcasting means today
    left, right = call.type(0).rank, call.type(1).rank
    if left is None or right is None or type(axis) is not int:
        raise Misfit(f"broadcasts its second operand from axis {axis}")
    if right == 0 or axis_of(axis, left) + right == left:
        return
    raise Misfit(f"broadcasts its second operand from axis {axis} of {left}")


def variadic(binary: str | None, many: str) -> Step:
    """``binary`` for two operands (if there is such an operator), else ``many``."""

    def step(draft: Draft) -> None:
        draft.op = binary if binary is not None and len(draft.inputs) == 2 else many

    return step


def clip_bounds(draft: Draft) -> None:
    """Opset 6 writes an absent bound as float32's extreme."""
    for name in ("min", "max"):
        if name in draft.attributes and name not in draft.given:
            del draft.attributes[name]


def prelu_slope(draft: Draft) -> None:
    """Before opset 7 the slope's only axis was the channel, today's broadcast aligns at the end."""
    call = draft.call
    if call.version >= 7:
        return
    slope, rank = call.type(1), call.type(0).rank
    if slope.elements == 1 or rank == 2:
        return
    raise Misfit("its slope belongs to axis 1")


def dropout_mode(draft: Draft) -> None:
    """The first two versions trained unless told to test; the next three only tested."""
    call = draft.call
    if call.version < 7:
        draft.attributes["training"] = not call.attributes.get("is_test", 0)
        if "is_test" in call.given:
            draft.given.add("training")


def cast_target(draft: Draft) -> None:
    """``to`` is required; a file without it names no type."""
    if "to" not in draft.attributes:
        raise Misfit("it does not say to which type")


# --- reductions and axes ---------------------------------------------------------------------

_COMPOSITE = frozenset({"l1_norm", "l2_norm", "log_sum", "log_sum_exp", "sum_square"})


def reduction(draft: Draft) -> None:
    """Axes written out where the rank is known; ``axis`` too if there is exactly one."""
    no_axes_is_none = draft.take("noop_with_empty_axes") is True
    if len(draft.inputs) > 1 and draft.inputs[1] is not None:  # axes known only at run time
        if no_axes_is_none:
            draft.put("noop_with_empty_axes", True)
        return
    axes = draft.ints("axes")
    if not axes and no_axes_is_none:
        if draft.op in _COMPOSITE:  # the part that is not a reduction remains
            draft.put("axes", ())
            return
        draft.op = "identity"
        draft.attributes.clear()
        draft.given.clear()
        return
    if not axes:
        rank = draft.call.type(0).rank
        if rank is None:
            draft.take("axes")
            return
        axes = tuple(range(rank))
    draft.put("axes", axes)
    if len(axes) == 1:
        draft.put("axis", axes[0], "axes")


def coerced_softmax(draft: Draft) -> None:
    """Before opset 13 the axes from ``axis`` on were one: the same if the others have extent 1."""
    if draft.call.version >= 13:
        return
    shape = extents_of(draft.call.type(0))
    axis = draft.int("axis")
    if axis is None or any(extent != 1 for extent in shape[axis + 1 :]):
        raise Misfit(f"normalises all axes from {axis} on together")


def concat_axis(draft: Draft) -> None:
    """Any operand's rank will do; opset 1 defaulted to axis 1."""
    axis = draft.int("axis")
    if axis is None:
        axis = 1 if draft.call.version == 1 else 0
    draft.put("axis", axis_of(axis, _first_rank(draft)))


def _first_rank(draft: Draft) -> int | None:
    types = [t.type for t in draft.call.inputs if t is not None] + draft.call.outputs
    return next((t.rank for t in types if t.rank is not None), None)


def axis_after_insertion(draft: Draft) -> None:
    """The axis counts in a shape of one more axis (one_hot)."""
    axis, rank = draft.int("axis"), draft.call.type(0).rank
    if axis is not None:
        draft.put("axis", axis_of(axis, None if rank is None else rank + 1))


def axis_between(draft: Draft) -> None:
    """The axis is a place between axes: the rank itself is one (flatten)."""
    axis = draft.int("axis")
    if axis is not None:
        draft.put("axis", axis_of(axis, draft.call.type(0).rank, end=1))


def axis_if_in_range(draft: Draft) -> None:
    """The default axis 1 means nothing for a scalar or vector (quantisation per tensor)."""
    axis, rank = draft.int("axis"), draft.call.type(0).rank
    if axis is not None and rank is not None and -rank <= axis < 0:
        draft.put("axis", axis + rank)


# --- shapes ----------------------------------------------------------------------------------


def transposition(draft: Draft) -> None:
    """The default permutation reverses."""
    rank = draft.call.type(0).rank
    perm = draft.ints("perm")
    if perm is None:
        if rank is not None:
            draft.put("perm", tuple(reversed(range(rank))))
    elif sorted(perm) != list(range(len(perm) if rank is None else rank)):
        raise Misfit(f"{list(perm)} is no permutation of its axes")


def squeezed_axes(draft: Draft) -> None:
    """Without axes, every axis of extent 1 goes."""
    if "axes" in draft.attributes or draft.call.has(1):
        return
    shape = draft.call.type(0).shape
    if shape is not None and all(isinstance(extent, int) for extent in shape):
        draft.put("axes", tuple(i for i, extent in enumerate(shape) if extent == 1))


def unsqueezed_axes(draft: Draft) -> None:
    """Axes count in the result."""
    axes, rank = draft.ints("axes"), draft.call.type(0).rank
    if axes is not None:
        draft.put("axes", tuple(sorted(axes_of(axes, None if rank is None else rank + len(axes)))))


def split_sizes(draft: Draft) -> None:
    """Sizes written out where the extent is known; only the last may be smaller."""
    call = draft.call
    if "sizes" in draft.attributes or (len(draft.inputs) > 1 and draft.inputs[1] is not None):
        return
    axis, shape = draft.int("axis"), call.type(0).shape
    count = len(call.outputs)
    if axis is None or shape is None or not 0 <= axis < len(shape) or not count:
        return
    if (extent := known(shape[axis])) is None:
        return
    if "num_outputs" not in call.attributes and extent % count:
        raise Misfit(f"cannot split {extent} into {count} equal parts")
    size = -(-extent // count)
    last = extent - size * (count - 1)
    if last < 0:
        raise Misfit(f"cannot split {extent} into {count} parts of {size}")
    draft.put("sizes", (size,) * (count - 1) + (last,))


def slice_bounds(draft: Draft) -> None:
    """Axes and steps written out, axes non-negative; starts and ends stay as they were written."""
    call = draft.call
    starts, ends = draft.ints("starts"), draft.ints("ends")
    count: int | None = len(starts) if starts is not None else None
    if count is None:
        count = len(ends) if ends is not None else None
    if count is None and (shape := call.type(1).shape) is not None and len(shape) == 1:
        count = known(shape[0])
    rank = call.type(0).rank
    if "axes" in draft.attributes:
        draft.put("axes", axes_of(whole(draft.attributes["axes"], "axes"), rank))
    elif not call.has(3) and count is not None:
        draft.put("axes", axes_of(range(_bounded(count)), rank))
    if "steps" not in draft.attributes and not call.has(4) and count is not None:
        draft.put("steps", (1,) * _bounded(count))
    lists = [draft.ints(name) for name in ("starts", "ends", "axes", "steps")]
    if len({len(items) for items in lists if items is not None}) > 1:
        raise Misfit("starts, ends, axes and steps have different lengths")
    if 0 in (draft.ints("steps") or ()):
        raise Misfit("a step is 0")


def _bounded(count: int) -> int:
    """A list length that a file claims, if it can be the length of a list of axes."""
    if count > 1024:
        raise Misfit(f"{count} axes")
    return count


def padding(draft: Draft) -> None:
    """Pads for every axis, begin of all then end of all; the fill value written out."""
    call = draft.call
    rank = call.type(0).rank
    pads, axes = draft.ints("pads"), draft.ints("axes")
    if pads is not None:
        if axes is not None and rank is not None:
            resolved = axes_of(axes, rank)
            if len(pads) != 2 * len(axes):
                raise Misfit(f"{len(pads)} pads for {len(axes)} axes")
            full = [0] * (2 * rank)
            for i, axis in enumerate(resolved):
                full[axis], full[axis + rank] = pads[i], pads[i + len(axes)]
            draft.put("pads", tuple(full))
            draft.take("axes")
            draft.given.discard("axes")
        elif axes is None and not call.has(3) and rank is not None and len(pads) != 2 * rank:
            raise Misfit(f"{len(pads)} pads for rank {rank}")
    if "value" not in draft.attributes and not call.has(2):
        kind = _kind(call.type(0).dtype)
        draft.put("value", 0 if kind in ("int", "uint") else False if kind == "bool" else 0.0)


def _kind(dtype: str | None) -> str:
    return DTYPES[dtype].kind if dtype in DTYPES else ""


def filled_constant(draft: Draft) -> None:
    """The fill value is a tensor of one element, whose type is the result's."""
    value = draft.attributes.get("value", 0.0)
    if isinstance(value, tuple):
        if len(value) != 1:
            raise Misfit(f"its fill value has {len(value)} elements")
        value = value[0]
    draft.put("value", value)
    draft.put("dtype", draft.call.outputs[0].dtype or "float32")


def shape_range(draft: Draft) -> None:
    """``start`` and ``end`` clamped to the axes there are."""
    rank = draft.call.type(0).rank
    start, end = draft.int("start") or 0, draft.int("end")
    if rank is not None:
        start = _clamp(start, rank)
        end = rank if end is None else _clamp(end, rank)
    draft.put("start", start)
    if end is not None:
        draft.put("end", end)


def _clamp(axis: int, rank: int) -> int:
    return min(max(axis + rank if axis < 0 else axis, 0), rank)


# --- windows: convolution and pooling --------------------------------------------------------

_MAX_SPATIAL = 3


def windows(weights: int | None, *, ranked: bool = True, transposed: bool = False) -> Step:
    """Strides, pads, dilations and kernel written out, also as one number where uniform.

    ``weights``: the operand whose shape tells the kernel, if any. ``ranked``: the operator's name
    ends in its number of spatial axes.
    """

    def step(draft: Draft) -> None:
        kernel = _kernel(draft, weights)
        spatial = _spatial_rank(draft, weights, kernel)
        if spatial is None:
            if ranked:
                raise Misfit("its number of spatial axes is not known")
            return
        if not 1 <= spatial <= (_MAX_SPATIAL if ranked else 16):
            raise Misfit(f"it has {spatial} spatial axes")
        if ranked:
            draft.op = f"{draft.op}{spatial}d"
        if kernel is not None:
            draft.put("kernel", _sized(kernel, spatial, "kernel_shape"))
        strides = _sized(draft.ints("strides") or (1,) * spatial, spatial, "strides")
        dilations = _sized(draft.ints("dilations") or (1,) * spatial, spatial, "dilations")
        if min(strides) < 1 or min(dilations) < 1:
            raise Misfit("a stride or dilation is not positive")
        draft.put("strides", strides)
        draft.put("dilations", dilations)
        _explicit_pads(draft, spatial, kernel, strides, dilations, transposed)
        for plural, singular in (("strides", "stride"), ("pads", "pad"), ("dilations", "dilation")):
            items = draft.ints(plural)
            if items and len(set(items)) == 1:
                draft.put(singular, items[0], plural)

    return step


def _kernel(draft: Draft, weights: int | None) -> tuple[int, ...] | None:
    kernel = draft.ints("kernel")
    if kernel is None and weights is not None:
        shape = draft.call.type(weights).shape
        if shape is not None and len(shape) > 2:
            extents = [known(extent) for extent in shape[2:]]
            if None not in extents:
                kernel = tuple(extent for extent in extents if extent is not None)
    return kernel


def _spatial_rank(draft: Draft, weights: int | None, kernel: tuple[int, ...] | None) -> int | None:
    for operand in (0, weights):
        if operand is not None and (rank := draft.call.type(operand).rank) is not None:
            return rank - 2
    for items, per_axis in ((kernel, 1), (draft.ints("strides"), 1), (draft.ints("pads"), 2)):
        if items:
            return len(items) // per_axis
    return None


def _sized(items: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    if len(items) != count:
        raise Misfit(f"{name} has {len(items)} items, not {count}")
    return items


def _explicit_pads(
    draft: Draft,
    spatial: int,
    kernel: tuple[int, ...] | None,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    transposed: bool,
) -> None:
    """Replace ``auto_pad`` (and what ``output_shape`` implies) by pads, where they can be known."""
    mode = draft.attributes.get("auto_pad", "NOTSET")
    pads = draft.ints("pads")
    if pads is not None:
        pads = _sized(pads, 2 * spatial, "pads")
    wanted = draft.ints("output_shape") if transposed else None
    if mode in ("NOTSET", "") and wanted is None:
        draft.take("auto_pad")
        draft.put("pads", pads or (0,) * (2 * spatial))
        return
    totals: list[int | None]
    if mode == "VALID" and wanted is None:
        totals = [0] * spatial
    elif mode not in ("SAME_UPPER", "SAME_LOWER") and wanted is None:
        raise Misfit(f"auto_pad is {mode!r}")
    elif kernel is None:
        totals = [None]
    else:
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        extents = _spatial_extents(draft, spatial)
        if transposed:
            extra = _sized(
                draft.ints("output_padding") or (0,) * spatial, spatial, "output_padding"
            )
            totals = _transposed_totals(extents, strides, reach, extra, wanted)
            if any(total is not None and total < 0 for total in totals) and None not in totals:
                # More is wanted than there is: the rest is padding of the output, at its end.
                missing = [max(-total, 0) for total in totals if total is not None]
                draft.put(
                    "output_padding", tuple(e + m for e, m in zip(extra, missing, strict=True))
                )
                totals = [max(total, 0) for total in totals if total is not None]
        else:
            totals = [_same_total(*each) for each in zip(extents, strides, reach, strict=True)]
    if None in totals:
        draft.take("pads")  # auto_pad stays
        return
    least = [total // 2 for total in totals if total is not None]
    most = [total - total // 2 for total in totals if total is not None]
    # Of an odd total, the larger half goes to the end for SAME_UPPER and to the begin otherwise.
    halves = (least, most) if mode == "SAME_UPPER" else (most, least)
    draft.take("auto_pad")
    draft.put("pads", (*halves[0], *halves[1]), "auto_pad")


def _spatial_extents(draft: Draft, spatial: int) -> list[int | None]:
    shape = draft.call.type(0).shape
    if shape is None or len(shape) != spatial + 2:
        return [None] * spatial
    return [known(extent) for extent in shape[2:]]


def _same_total(extent: int | None, stride: int, reach: int) -> int | None:
    """Padding that keeps ``ceil(extent / stride)`` windows."""
    if stride == 1:
        return max(reach - 1, 0)
    if extent is None:
        return None
    return max((-(-extent // stride) - 1) * stride + reach - extent, 0)


def _transposed_totals(
    extents: Sequence[int | None],
    strides: Sequence[int],
    reach: Sequence[int],
    extra: Sequence[int],
    wanted: tuple[int, ...] | None,
) -> list[int | None]:
    """Padding that gives the wanted output extents; without, ``extent * stride``."""
    if wanted is None:
        return [max(r + e - s, 0) for r, e, s in zip(reach, extra, strides, strict=True)]
    wanted = _sized(wanted, len(strides), "output_shape")
    return [
        None if extent is None else s * (extent - 1) + e + r - w
        for extent, s, e, r, w in zip(extents, strides, extra, reach, wanted, strict=True)
    ]


# --- normalisation layers --------------------------------------------------------------------


def batch_norm_mode(draft: Draft) -> None:
    """Training was: not ``is_test`` (1, 6), more than one output (7, 9), then an attribute."""
    call = draft.call
    if not call.attributes.get("spatial", 1):
        raise Misfit("it normalises each position by itself (spatial=0)")
    if call.version < 7:
        draft.put("training", not call.attributes.get("is_test", 0))
        if "is_test" in call.given:
            draft.given.add("training")
    elif call.version < 14:
        draft.put("training", len(call.outputs) > 1)


def group_norm_scale(draft: Draft) -> None:
    """Opset 18 has a scale a group, opset 21 a scale a channel: the same for groups of one."""
    if draft.call.version >= 21:
        return
    shape = extents_of(draft.call.type(0))
    if len(shape) < 2 or shape[1] != draft.attributes.get("groups"):
        raise Misfit("its scale and bias are per group, not per channel")


# --- resize ----------------------------------------------------------------------------------


def resizing(draft: Draft) -> None:
    """Upsample and every Resize as (x, roi, scales, sizes); what is constant as attributes."""
    call = draft.call
    if call.op == "Upsample" or call.version < 11:
        _old_resize(draft)
    draft.inputs = [*draft.inputs, None, None, None][:4]
    if draft.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        draft.inputs[1] = None  # a region of interest means nothing otherwise
    for i, name in ((1, "roi"), (2, "scales"), (3, "sizes")):
        _absorb(draft, i, name)
    axes, shape = draft.ints("axes"), call.type(0).shape
    if axes is None or shape is None:
        return
    axes = axes_of(axes, len(shape))
    draft.put("axes", axes)
    stretch = draft.attributes.get("keep_aspect_ratio_policy") == "stretch"
    if draft.inputs[1:] == [None] * 3 and "roi" not in draft.attributes and stretch:
        _every_axis(draft, axes, shape)


def _absorb(draft: Draft, i: int, name: str) -> None:
    """Turn operand ``i`` into a list attribute if the model fixes it; drop it if it is empty."""
    operand = draft.inputs[i]
    array = None if operand is None else constant_of(operand)
    if operand is None or array is None:
        return
    draft.inputs[i] = None
    if array.size:
        draft.put(name, scalars_of(array, operand.type.dtype))
        draft.given.add(name)


def _every_axis(draft: Draft, axes: tuple[int, ...], shape: tuple[Extent, ...]) -> None:
    """Scales or sizes for every axis instead of those in ``axes``, where that is possible."""
    for name, rest in (("scales", (1.0,) * len(shape)), ("sizes", shape)):
        values = draft.attributes.get(name)
        if values is None:
            continue
        if not isinstance(values, tuple) or len(values) != len(axes):
            raise Misfit(f"{name} does not fit its axes")
        full: list[Extent | float] = list(rest)
        for axis, value in zip(axes, values, strict=True):
            full[axis] = value
        if any(not isinstance(value, int | float) for value in full):
            return
        draft.put(name, tuple(value for value in full if value is not None))
    draft.take("axes")
    draft.given.discard("axes")


def _old_resize(draft: Draft) -> None:
    """Upsample, and Resize of opset 10: asymmetric coordinates, rounded down."""
    call = draft.call
    if call.op == "Upsample" and call.version < 7:
        height, width = draft.take("height_scale"), draft.take("width_scale")
        if not isinstance(height, float) or not isinstance(width, float):
            raise Misfit("a scale is missing")
        draft.put("scales", (1.0, 1.0, height, width))
        draft.given = (draft.given - {"height_scale", "width_scale"}) | {"scales"}
    if len(draft.inputs) > 1:
        draft.inputs = [draft.inputs[0], None, draft.inputs[1]]
    mode = draft.attributes.get("mode", "nearest")
    if mode == "bilinear":
        mode = "linear"
    draft.put("mode", mode)
    if call.op == "Resize" and mode == "nearest":
        scales = draft.call.constant(1)
        if scales is None or not bool((scales.astype(float) >= 1).all()):
            raise Misfit("opset 10 does not say how it rounds when it makes smaller")
    draft.put("coordinate_transformation_mode", "asymmetric")
    draft.put("nearest_mode", "floor")


def sampling_mode(draft: Draft) -> None:
    """Opset 16 named the modes after images."""
    mode = draft.attributes.get("mode")
    new = {"bilinear": "linear", "bicubic": "cubic"}.get(mode) if isinstance(mode, str) else None
    if new is not None:
        draft.put("mode", new)


# --- the rest --------------------------------------------------------------------------------


def direction(draft: Draft) -> None:
    """GRU's first definition has its default misspelt."""
    if draft.attributes.get("direction") == "foward":
        draft.put("direction", "forward")


def batchless_scan(draft: Draft) -> None:
    """Opset 8's Scan had a batch axis and sequence lengths."""
    if draft.call.version < 9:
        raise Misfit("it scans batches")
