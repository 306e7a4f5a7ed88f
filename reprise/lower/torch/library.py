"""Functions of torch that a lowered program may need; each is copied into its text when it is.

They import nothing but torch, look at shapes but never at data, and mean what ONNX's operators
mean. Whatever one needs of another is copied with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

# --- layout --------------------------------------------------------------------------------------


def shifted(x: Tensor, axis: int, first: float) -> Tensor:
    """x moved by one along an axis, with ``first`` in front; the last element falls off."""
    extent = x.shape[axis]
    front = torch.full_like(x.narrow(axis, 0, min(extent, 1)), first)
    return torch.cat((front, x.narrow(axis, 0, max(extent - 1, 0))), axis)


def reverse_sequence(x: Tensor, lengths: Tensor, batch_axis: int, time_axis: int) -> Tensor:
    """The first ``lengths[i]`` elements along the time axis reversed, for each i of the batch."""
    step = torch.arange(x.shape[time_axis])
    ends = lengths[:, None]
    source = torch.where(step < ends, ends - 1 - step, step)
    source = source if batch_axis == 0 else source.T
    index = source.reshape(source.shape + (1,) * (x.dim() - 2)).expand(x.shape)
    return torch.gather(x, time_axis, index)


def pad_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """An axis padded with its own elements: "reflect", "edge" or "wrap"; less than 0 cuts."""
    last = x.shape[axis] - 1
    index = torch.arange(-before, last + 1 + after)
    if mode == "reflect":
        index = last - (last - index.abs()).abs()
    elif mode == "edge":
        index = index.clamp(0, last)
    else:
        index = index % (last + 1)
    return take(x, axis, index)


def take(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """Slices of x along an axis; torch selects more element types so than by ``index_select``."""
    return x[(slice(None),) * axis + (index,)]


def resize(
    x: Tensor,
    sizes: Sequence[int],
    scales: Sequence[float],
    mode: str,
    coordinates: str,
    nearest: str = "round_prefer_floor",
    a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] = (),
    outside: float = 0.0,
) -> Tensor:
    """Resampling, one axis after the other."""
    y = x
    if mode != "nearest" or coordinates == "tf_crop_and_resize":
        y = x.double() if x.dtype == torch.float64 or not x.is_floating_point() else x.float()
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        extent = x.shape[axis]
        region = (roi[axis], roi[axis + x.dim()]) if roi else (0.0, 1.0)
        if size == extent and scale == 1 and region == (0.0, 1.0):
            continue
        at = source_positions(extent, size, scale, coordinates, region)
        if mode == "nearest":
            index = nearest_positions(at, nearest).clamp(0, extent - 1)
            y = take(y, axis, index)
        else:
            y = interpolate(
                y, axis, at, min(scale, 1.0) if antialias else 1.0, mode, a, exclude_outside
            )
        if coordinates == "tf_crop_and_resize":
            beyond = ((at < 0) | (at > extent - 1)).reshape([-1] + [1] * (x.dim() - axis - 1))
            y = torch.where(beyond, outside, y)
    if x.is_floating_point() or y.dtype == x.dtype:
        return y.to(x.dtype)
    limits = torch.iinfo(x.dtype)
    return torch.round(y).clamp(limits.min, limits.max).to(x.dtype)


def source_positions(
    extent: int, size: int, scale: float, coordinates: str, region: tuple[float, float]
) -> Tensor:
    """Where the elements of a resized axis lie on the original one."""
    at = torch.arange(size, dtype=torch.float64)
    scaled = extent * scale
    if coordinates == "asymmetric":
        return at / scale
    if coordinates == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if coordinates == "align_corners":
        return at * 0 if scaled == 1 else at * (extent - 1) / (scaled - 1)
    if coordinates == "tf_crop_and_resize":
        start, end = region
        if scaled == 1:
            return at * 0 + start * (extent - 1) + (end - start) * (extent - 1) / 2
        return start * (extent - 1) + at * (end - start) * (extent - 1) / (scaled - 1)
    if coordinates == "pytorch_half_pixel" and scaled == 1:
        return at * 0 - 0.5
    at = (at + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":
        at = at + extent / 2 * (1 - size / scaled)
    return at


def nearest_positions(at: Tensor, rounding: str) -> Tensor:
    """Positions rounded to indices."""
    if rounding == "floor":
        return at.floor().long()
    if rounding == "ceil":
        return at.ceil().long()
    if rounding == "round_prefer_ceil":
        return (at + 0.5).floor().long()
    return (at - 0.5).ceil().long()


def interpolate(
    x: Tensor, axis: int, at: Tensor, scale: float, mode: str, a: float, exclude_outside: bool
) -> Tensor:
    """x at fractional positions along an axis: a weighted sum of neighbours. ``scale`` below 1
    widens the window (against aliasing)."""
    extent = x.shape[axis]
    radius = 1 if mode == "linear" else 2
    first = math.floor(-radius / scale) + 1
    base = at.floor()
    offsets = torch.arange(first, 2 - first, dtype=torch.float64)
    distance = ((offsets + base[:, None] - at[:, None]) * scale).abs()
    if mode == "linear":
        weights = (1 - distance).clamp(0, 1)
    else:
        inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        outer = ((distance - 5) * distance + 8) * distance * a - 4 * a
        weights = torch.where(distance <= 1, inner, torch.where(distance < 2, outer, 0.0))
    index = (base[:, None] + offsets).long()
    if exclude_outside:
        weights = torch.where((index >= 0) & (index < extent), weights, 0.0)
    if exclude_outside or scale < 1:
        weights = weights / weights.sum(1, keepdim=True)
    index = index.clamp(0, extent - 1)
    shape = [-1] + [1] * (x.dim() - axis - 1)
    total = torch.zeros_like(torch.index_select(x, axis, index[:, 0]))
    for i in range(len(offsets)):
        weight = weights[:, i].to(x.dtype).reshape(shape)
        total = total + torch.index_select(x, axis, index[:, i]) * weight
    return total


def roi_align(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    size: tuple[int, int],
    samples: int,
    scale: float,
    mode: str,
    half_pixel: bool,
) -> Tensor:
    """Regions of interest, averaged (or their greatest elements taken) on a grid of ``size``."""
    wide = torch.promote_types(x.dtype, torch.float32)
    images = x[batch].to(wide)
    corners = rois.to(wide) * scale - (0.5 if half_pixel else 0.0)
    rows = roi_samples(corners[:, 1], corners[:, 3], size[0], samples, x.shape[2], half_pixel)
    columns = roi_samples(corners[:, 0], corners[:, 2], size[1], samples, x.shape[3], half_pixel)
    region = torch.arange(len(images))[:, None, None]
    parts = []
    for row, row_weight in rows:
        for column, column_weight in columns:
            value = images[region, :, row[:, :, None], column[:, None, :]]
            parts.append(value * (row_weight[:, :, None] * column_weight[:, None, :])[..., None])
    parts_of = torch.stack(parts)
    values = parts_of.sum(0) if mode == "avg" else parts_of.amax(0)
    values = values.reshape(len(images), size[0], samples, size[1], samples, x.shape[1])
    pooled = values.mean((2, 4)) if mode == "avg" else values.amax((2, 4))
    return pooled.permute(0, 3, 1, 2).to(x.dtype)


def roi_samples(
    start: Tensor, end: Tensor, size: int, samples: int, extent: int, half_pixel: bool
) -> list[tuple[Tensor, Tensor]]:
    """The two neighbours of every sample along an axis, each with its weight."""
    length = end - start if half_pixel else (end - start).clamp(min=1.0)
    grid = (torch.arange(size * samples, dtype=start.dtype) + 0.5) / samples
    at = start[:, None] + grid * (length / size)[:, None]
    inside = (at >= -1.0) & (at <= extent)
    at = at.clamp(min=0.0)
    low = at.floor().long().clamp(max=extent - 1)
    high = (low + 1).clamp(max=extent - 1)
    weight = torch.where(low >= extent - 1, 0.0, at - low)
    return [(low, (1 - weight) * inside), (high, weight * inside)]


# --- indexing ------------------------------------------------------------------------------------


def gather_nd(x: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """Slices of x, one for each index tuple."""
    if indices.dim() == 1:
        return gather_nd(x, indices[None], 0)[0]
    batch = [
        torch.arange(x.shape[axis]).reshape([-1] + [1] * (indices.dim() - 2 - axis))
        for axis in range(batch_dims)
    ]
    return x[(*batch, *indices.unbind(-1))]


def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, reduce: str = "") -> Tensor:
    """x with slices replaced (or combined), one for each index tuple."""
    depth = indices.shape[-1]
    places, row = math.prod(x.shape[:depth]), math.prod(x.shape[depth:])
    count = math.prod(indices.shape[:-1])
    position = torch.zeros(count, dtype=torch.int64)
    for axis, index in enumerate(indices.reshape(count, depth).unbind(1)):
        position = position * x.shape[axis] + index % max(x.shape[axis], 1)
    rows, updates = x.reshape(places, row), updates.reshape(count, row)
    target = position[:, None].expand(count, row)
    if reduce:
        return torch.scatter_reduce(rows, 0, target, updates, reduce).reshape(x.shape)
    return torch.scatter(rows, 0, target, updates).reshape(x.shape)


def one_hot(indices: Tensor, depth: int, axis: int, values: Tensor) -> Tensor:
    """``values[1]`` at each index along a new axis, else ``values[0]``."""
    index = indices.long()
    index = torch.where(index < 0, index + depth, index).unsqueeze(axis)
    classes = torch.arange(depth).reshape([-1] + [1] * (indices.dim() - axis))
    return torch.where(index == classes, values[1], values[0])


def unique(x: Tensor, axis: int | None, ordered: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The different elements (or slices); where each first occurs, where each went, how often."""
    y, inverse, counts = torch.unique(
        x, sorted=True, return_inverse=True, return_counts=True, dim=axis
    )
    inverse = inverse.reshape(-1)
    positions = torch.arange(len(inverse))
    first = torch.full_like(counts, len(inverse)).scatter_reduce(0, inverse, positions, "amin")
    if ordered:
        return y, first, inverse, counts
    order = torch.argsort(first)
    y = take(y, axis or 0, order)
    return y, first[order], torch.argsort(order)[inverse], counts[order]


def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    most: Tensor | None,
    overlap: Tensor | None,
    least: Tensor | None,
    center: bool,
) -> Tensor:
    """(batch, class, box) of the boxes that no better box of their class overlaps too much."""
    batches, _, count = scores.shape
    a, b, c, d = boxes.unbind(-1)
    if center:
        a, b, c, d = b - d / 2, a - c / 2, b + d / 2, a + c / 2
    low_y, high_y = torch.minimum(a, c), torch.maximum(a, c)
    low_x, high_x = torch.minimum(b, d), torch.maximum(b, d)
    area = (high_y - low_y) * (high_x - low_x)
    tall = torch.minimum(high_y[:, :, None], high_y[:, None]) - torch.maximum(
        low_y[:, :, None], low_y[:, None]
    )
    wide = torch.minimum(high_x[:, :, None], high_x[:, None]) - torch.maximum(
        low_x[:, :, None], low_x[:, None]
    )
    shared = tall.clamp(min=0) * wide.clamp(min=0)
    union = area[:, :, None] + area[:, None] - shared
    ratio = torch.where(union > 0, shared / union, 0.0)
    ratio = torch.where((area[:, :, None] > 0) & (area[:, None] > 0), ratio, 0.0)
    limit = torch.zeros((), dtype=torch.int64) if most is None else most.reshape(())
    bound = torch.zeros(()) if overlap is None else overlap.reshape(())
    order = torch.argsort(scores, dim=2, descending=True, stable=True)
    allowed = torch.ones_like(scores, dtype=torch.bool)
    if least is not None:
        allowed = scores.gather(2, order) > least.reshape(())
    batch = torch.arange(batches)[:, None, None, None]
    close = ratio[batch, order[:, :, :, None], order[:, :, None, :]] > bound
    kept = torch.zeros_like(allowed)
    for i in range(count):
        hidden = (kept & close[:, :, i]).any(2)
        take = allowed[:, :, i] & ~hidden & (kept.sum(2) < limit)
        kept = kept | (take[:, :, None] & (torch.arange(count) == i))
    found = torch.nonzero(kept)
    box = order[found[:, 0], found[:, 1], found[:, 2]]
    return torch.stack((found[:, 0], found[:, 1], box), 1)


# --- windows -------------------------------------------------------------------------------------


def windows(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    before: Sequence[int],
    dilations: Sequence[int],
    sizes: Sequence[int],
    fill: float,
) -> Tensor:
    """Every window of x, over its spatial axes: ``[N, C, *sizes, *kernel]``. ``before`` is what
    stands before each axis; what is outside of x is ``fill``."""
    axes, pads = len(kernel), []
    for i in reversed(range(axes)):
        reach = (sizes[i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1
        pads += [before[i], reach - before[i] - x.shape[2 + i]]
    cut = F.pad(x, pads, value=fill)
    for i in range(axes):
        start = torch.arange(sizes[i]) * strides[i]
        index = start[:, None] + torch.arange(kernel[i]) * dilations[i]
        cut = cut[(slice(None),) * (2 + 2 * i) + (index,)]
    order = [0, 1, *range(2, 2 + 2 * axes, 2), *range(3, 3 + 2 * axes, 2)]
    return cut.permute(order)


def with_flat_indices(pooled: tuple[Tensor, Tensor], shape: torch.Size) -> tuple[Tensor, Tensor]:
    """A max-pooling with indices into the whole tensor instead of each plane."""
    y, index = pooled
    plane = torch.arange(shape[0] * shape[1]) * math.prod(shape[2:])
    return y, index + plane.reshape([shape[0], shape[1]] + [1] * (len(shape) - 2))


def max_pool_with_indices(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    before: Sequence[int],
    dilations: Sequence[int],
    sizes: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window, and where it is in the whole tensor."""
    lowest = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    cut = windows(x, kernel, strides, before, dilations, sizes, lowest).flatten(-len(kernel))
    places = torch.arange(x.numel()).reshape(x.shape)
    places = windows(places, kernel, strides, before, dilations, sizes, -1).flatten(-len(kernel))
    inside = torch.where(places < 0, -1, 0)  # padding never wins, not even against itself
    y = cut.amax(-1)
    best = torch.where((cut == y[..., None]) | cut.isnan(), 1, 0) + inside
    index = places.gather(-1, best.argmax(-1, keepdim=True)).squeeze(-1)
    return y, index


def avg_pool(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    before: Sequence[int],
    dilations: Sequence[int],
    sizes: Sequence[int],
    after: Sequence[int],
    count_include_pad: bool,
) -> Tensor:
    """The mean of each window; padding counts as zeros, or not at all."""
    total = windows(x, kernel, strides, before, dilations, sizes, 0.0).sum(
        tuple(range(-len(kernel), 0))
    )
    ones = torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    if count_include_pad:
        pads = [p for pair in zip(before, after, strict=True) for p in pair[::-1]][::-1]
        ones = F.pad(ones, pads, value=1.0)
        before = [0] * len(kernel)
    count = windows(ones, kernel, strides, before, dilations, sizes, 0.0).sum(
        tuple(range(-len(kernel), 0))
    )
    return total / count


def max_unpool(x: Tensor, indices: Tensor, covered: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Each element at the index that it came from in a tensor of shape ``covered``, 0 elsewhere;
    then that in the corner of a tensor of ``shape``. What is to go outside goes nowhere."""
    size = math.prod(covered)
    where = indices.reshape(-1)
    where = torch.where((where >= 0) & (where < size), where, size)
    flat = x.new_zeros(size + 1).scatter(0, where, x.reshape(-1))[:size]
    pads = [p for c, s in zip(covered[::-1], shape[::-1], strict=True) for p in (0, s - c)]
    return F.pad(flat.reshape(tuple(covered)), pads)


# --- normalisation -------------------------------------------------------------------------------


def batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    epsilon: float,
    momentum: float,
    training: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Each channel normalised with the given (or the batch's) mean and variance, which come back
    as well, moved towards the batch's in training."""
    axes = [axis for axis in range(x.dim()) if axis != 1]
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    wide = x.to(torch.promote_types(torch.promote_types(x.dtype, mean.dtype), torch.float32))
    used_mean, used_var = mean.to(wide.dtype), var.to(wide.dtype)
    if training:
        used_mean, used_var = wide.mean(axes), wide.var(axes, correction=0)
        mean = (mean * momentum + used_mean * (1 - momentum)).to(mean.dtype)
        var = (var * momentum + used_var * (1 - momentum)).to(var.dtype)
    y = (wide - used_mean.reshape(shape)) * torch.rsqrt(used_var + epsilon).reshape(shape)
    y = y * scale.reshape(shape) + bias.reshape(shape)
    return y.to(x.dtype), mean, var


def layer_norm(
    x: Tensor, axis: int, scale: Tensor | None, bias: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised over the axes from ``axis`` on; the mean and 1 / deviation come back as well."""
    axes = tuple(range(axis, x.dim()))
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = wide.mean(axes, keepdim=True)
    inverse = torch.rsqrt(torch.square(wide - mean).mean(axes, keepdim=True) + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype)
    y = y if scale is None else y * scale
    y = y if bias is None else y + bias
    return y, mean.float(), inverse.float()


def channel_norm(x: Tensor, groups: int, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Each group of channels of each instance normalised, of however few elements."""
    grouped = x.reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    mean = grouped.mean(2, keepdim=True)
    var = torch.square(grouped - mean).mean(2, keepdim=True)
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = ((grouped - mean) * torch.rsqrt(var + epsilon)).reshape(x.shape)
    return y * scale.reshape(shape) + bias.reshape(shape)


def mean_variance_norm(x: Tensor, axes: Sequence[int]) -> Tensor:
    """(x - mean) / deviation over the axes."""
    if not axes:
        return mean_variance_norm(x[None], [0])[0]
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centered = wide - wide.mean(tuple(axes), keepdim=True)
    deviation = torch.sqrt(torch.square(centered).mean(tuple(axes), keepdim=True))
    return (centered / (deviation + 1e-9)).to(x.dtype)


def local_response_norm(x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    """x over a power of the sum of squares of ``size`` channels around each."""
    squares = torch.square(x).movedim(1, -1)
    squares = F.pad(squares, ((size - 1) // 2, size - 1 - (size - 1) // 2))
    total = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x / torch.pow(bias + alpha / size * total, beta)


def lp_normalize(x: Tensor, p: int, axis: int) -> Tensor:
    """x over its p-norm along an axis; 0 where the norm is."""
    norm = torch.linalg.vector_norm(x, p, axis, keepdim=True)
    return torch.where(norm == 0, 0.0, x / norm)


# --- recurrence ----------------------------------------------------------------------------------

Activation = Callable[[Tensor], Tensor]
Step = Callable[[int, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def recur(
    x: Tensor, lengths: Tensor | None, direction: str, states: list[Tensor], step: Step
) -> tuple[Tensor, list[Tensor]]:
    """A layer over a sequence: ``step(d, x[t], states)`` gives direction d's next states, of which
    the first is its output. Beyond a sequence's length nothing moves, and outputs are 0."""
    ways: list[Tensor] = []
    finals: list[list[Tensor]] = [[] for _ in states]
    for d in range(len(states[0])):
        now = tuple(state[d] for state in states)
        outputs: list[Tensor] = [now[0]] * len(x)
        backwards = direction == "reverse" or d == 1
        for t in reversed(range(len(x))) if backwards else range(len(x)):
            new = step(d, x[t], now)
            outputs[t] = new[0]
            if lengths is not None:
                alive = (lengths > t)[:, None]
                new = tuple(torch.where(alive, a, b) for a, b in zip(new, now, strict=True))
                outputs[t] = torch.where(alive, outputs[t], 0.0)
            now = new
        ways.append(torch.stack(outputs))
        for i, state in enumerate(now):
            finals[i].append(state)
    return torch.stack(ways, 1), [torch.stack(final) for final in finals]


def bounded(x: Tensor, clip: float | None) -> Tensor:
    """x between -clip and clip, if there is such a bound."""
    return x if clip is None else x.clamp(-clip, clip)


def initial(state: Tensor | None, x: Tensor, r: Tensor) -> Tensor:
    """The state to begin with: the given one, or zeros."""
    return x.new_zeros(r.shape[0], x.shape[1], r.shape[2]) if state is None else state


def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    h0: Tensor | None,
    direction: str,
    functions: Sequence[Activation],
    clip: float | None,
) -> tuple[Tensor, Tensor]:
    """A layer of simple recurrent cells."""

    def step(d: int, x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = states
        gate = x @ w[d].T + h @ r[d].T
        if b is not None:
            gate = gate + b[d].reshape(2, -1).sum(0)
        return (functions[d](bounded(gate, clip)),)

    y, (h,) = recur(x, lengths, direction, [initial(h0, x, r)], step)
    return y, h


def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    h0: Tensor | None,
    direction: str,
    functions: Sequence[Activation],
    clip: float | None,
    linear_before_reset: bool,
) -> tuple[Tensor, Tensor]:
    """A layer of gated recurrent units; gates are update, reset, hidden."""
    size = r.shape[2]
    biases = x.new_zeros(len(w), 6 * size) if b is None else b

    def step(d: int, x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = states
        f, g = functions[2 * d : 2 * d + 2]
        given = (x @ w[d].T + biases[d, : 3 * size]).chunk(3, 1)
        wu, wr, wh = r[d].chunk(3)
        bu, br, bh = biases[d, 3 * size :].chunk(3)
        update = f(bounded(given[0] + h @ wu.T + bu, clip))
        reset = f(bounded(given[1] + h @ wr.T + br, clip))
        if linear_before_reset:
            hidden = g(bounded(given[2] + reset * (h @ wh.T + bh), clip))
        else:
            hidden = g(bounded(given[2] + (reset * h) @ wh.T + bh, clip))
        return ((1 - update) * hidden + update * h,)

    y, (h,) = recur(x, lengths, direction, [initial(h0, x, r)], step)
    return y, h


def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    h0: Tensor | None,
    c0: Tensor | None,
    p: Tensor | None,
    direction: str,
    functions: Sequence[Activation],
    clip: float | None,
    input_forget: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """A layer of long short-term memory cells; gates are input, output, forget, cell."""
    size = r.shape[2]
    peepholes = x.new_zeros(len(w), 3 * size) if p is None else p

    def step(d: int, x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = states
        f, g, k = functions[3 * d : 3 * d + 3]
        gates = x @ w[d].T + h @ r[d].T
        if b is not None:
            gates = gates + b[d].reshape(2, -1).sum(0)
        into, out, forget, cell = gates.chunk(4, 1)
        peep_in, peep_out, peep_forget = peepholes[d].chunk(3)
        into = f(bounded(into + peep_in * c, clip))
        forget = 1 - into if input_forget else f(bounded(forget + peep_forget * c, clip))
        c = forget * c + into * g(bounded(cell, clip))
        out = f(bounded(out + peep_out * c, clip))
        return out * k(bounded(c, clip)), c

    begin = [initial(h0, x, r), initial(c0, x, r)]
    y, (h, c) = recur(x, lengths, direction, begin, step)
    return y, h, c


# --- attention -----------------------------------------------------------------------------------


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    lengths: Tensor | None,
    scale: float | None = None,
    is_causal: bool = False,
    softcap: float = 0.0,
    left_window_size: int = -1,
    right_window_size: int = -1,
    output_mode: int = 0,
    precision: torch.dtype | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """softmax(q kᵀ * scale + mask) v; the keys and values with those of the past before them, and
    the scores at the stage that ``output_mode`` names, come back as well."""
    key = k if past_key is None else torch.cat((past_key, k), -2)
    value = v if past_value is None else torch.cat((past_value, v), -2)
    rows, columns = q.shape[-2], key.shape[-2]
    bias = torch.zeros(rows, columns, dtype=q.dtype)
    if mask is not None and mask.dim() and mask.shape[-1] < columns:  # the rest is hidden
        hidden_value = 0.0 if mask.dtype == torch.bool else float("-inf")
        mask = F.pad(mask, (0, columns - mask.shape[-1]), value=hidden_value)
    if mask is not None and mask.dtype == torch.bool:
        bias = bias + torch.where(mask, 0.0, float("-inf")).to(q.dtype)
    elif mask is not None:
        bias = bias + mask.to(q.dtype)
    before = torch.zeros((), dtype=torch.int64)
    if past_key is not None:
        before = before + past_key.shape[-2]
    elif lengths is not None:
        before = (lengths - rows).reshape([-1] + [1] * (q.dim() - 1))
    behind = torch.arange(rows)[:, None] + before - torch.arange(columns)
    seen = torch.ones_like(behind, dtype=torch.bool)
    if is_causal:
        seen = seen & (behind >= 0)
    if left_window_size >= 0:
        seen = seen & (behind <= left_window_size)
    if right_window_size >= 0:
        seen = seen & (-behind <= right_window_size)
    if lengths is not None:
        ends = lengths.reshape([-1] + [1] * (q.dim() - 1))
        seen = seen & (torch.arange(columns) < ends)
    bias = torch.where(seen, bias, float("-inf"))
    keys, values = key, value
    if key.shape[:-2] != q.shape[:-2]:  # groups of heads share keys and values
        keys = key.repeat_interleave(q.shape[1] // key.shape[1], 1)
        values = value.repeat_interleave(q.shape[1] // key.shape[1], 1)
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    scores = (q * factor) @ keys.transpose(-1, -2)
    raw = scores
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    capped = scores
    scores = scores + bias
    wide = scores.dtype if precision is None else torch.promote_types(scores.dtype, precision)
    weights = torch.softmax(scores.to(wide), -1)
    hidden = (bias == float("-inf")).all(-1, keepdim=True)
    weights = torch.where(hidden, 0.0, weights).to(q.dtype)
    shown = (raw, capped, scores, weights)[output_mode]
    wide = torch.promote_types(q.dtype, v.dtype)
    y = (weights.to(wide) @ values.to(wide)).to(q.dtype)
    return y, key, value, shown.to(q.dtype)


def rotary_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None,
    interleaved: bool,
    num_heads: int,
    rotated: int,
) -> Tensor:
    """Pairs of features rotated by an angle that depends on the position."""
    if position_ids is not None:
        cos, sin = cos[position_ids], sin[position_ids]
    if x.dim() == 3:
        heads = x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[2] // num_heads)
    else:
        heads = x.transpose(1, 2)
    rotated = rotated or heads.shape[3]
    turning, rest = heads[..., :rotated], heads[..., rotated:]
    cos, sin = cos[:, :, None], sin[:, :, None]
    if interleaved:
        a, b = turning[..., 0::2], turning[..., 1::2]
        turned = torch.stack((cos * a - sin * b, sin * a + cos * b), -1).flatten(-2)
    else:
        a, b = turning.chunk(2, -1)
        turned = torch.cat((cos * a - sin * b, sin * a + cos * b), -1)
    y = torch.cat((turned, rest), -1)
    return y.reshape(x.shape) if x.dim() == 3 else y.transpose(1, 2)


# --- quantisation --------------------------------------------------------------------------------


def spread(scale: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale (or zero point) as it broadcasts to x: one in all, one for each position of an axis,
    or one for each block of positions."""
    if scale.numel() == 1 and not (block and scale.dim()):
        return scale.reshape(())
    if block:
        return scale.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    return scale.reshape([-1] + [1] * (x.dim() - axis - 1))


def quotient(x: Tensor, scale: Tensor, axis: int, block: int) -> Tensor:
    """x / scale, in the type of x (of the scale, for integers)."""
    if not x.is_floating_point():
        x = x.to(scale.dtype if scale.is_floating_point() else torch.float32)
    return x / spread(scale.to(x.dtype), x, axis, block)


def quantize(
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    axis: int,
    block: int,
    low: int,
    high: int,
    dtype: torch.dtype,
) -> Tensor:
    """round(x / scale) + zero, saturated."""
    y = torch.round(quotient(x, scale, axis, block)).double()
    if zero is not None:
        y = y + spread(zero.double(), x, axis, block)
    return y.clamp(low, high).to(dtype)


def quantize_float(
    x: Tensor,
    scale: Tensor,
    axis: int,
    block: int,
    low: float,
    high: float,
    dtype: torch.dtype,
) -> Tensor:
    """x / scale in a small floating-point type, saturated. (Its zero point is 0.)"""
    return quotient(x, scale, axis, block).clamp(low, high).to(dtype)


def dequantize(
    x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int, dtype: torch.dtype
) -> Tensor:
    """(x - zero) * scale."""
    y = x.double()
    if zero is not None:
        y = y - spread(zero.double(), x, axis, block)
    return (y.float() * spread(scale, x, axis, block).float()).to(dtype)


def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x in 8 bits, with the scale and zero point that its range asks for."""
    values = torch.cat((x.reshape(-1), x.new_zeros(1)))
    low, high = values.amin(), values.amax()
    scale = torch.where(high == low, 1.0, high - low) / 255
    zero = torch.round((-low / scale).clamp(0, 255))
    y = (torch.round(x / scale) + zero).clamp(0, 255)
    return y.to(torch.uint8), scale, zero.to(torch.uint8)


def centered(x: Tensor, zero: Tensor, axis: int = 1) -> Tensor:
    """Integers less their zero point, one in all or one for each position of an axis; exact."""
    shape = [-1] + [1] * (x.dim() - axis - 1)
    return x.double() - zero.double().reshape(() if zero.numel() == 1 else shape)


def centered_rows(a: Tensor, zero: Tensor) -> Tensor:
    """A left matrix less its zero point, one in all or one for each row."""
    zero = zero.to(torch.int32)
    if zero.numel() == 1:
        return a.to(torch.int32) - zero.reshape(())
    return a.to(torch.int32) - (zero[:, None] if zero.dim() == 1 and a.dim() > 1 else zero)


def centered_columns(b: Tensor, zero: Tensor) -> Tensor:
    """A right matrix less its zero point, one in all or one for each column."""
    zero = zero.to(torch.int32)
    if zero.numel() == 1:
        zero = zero.reshape(())
    return b.to(torch.int32) - zero


def requantized(y: Tensor, scale: Tensor, zero: Tensor, dtype: torch.dtype) -> Tensor:
    """Whole numbers times a scale, rounded, plus a zero point, saturated."""
    limits = torch.iinfo(dtype)
    return (torch.round(y * scale) + zero).clamp(limits.min, limits.max).to(dtype)


def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """The matrix product of quantised matrices, quantised again."""
    product = torch.matmul(centered_rows(a, a_zero), centered_columns(b, b_zero))
    flat = b.dim() == 1  # then rows are the last axis of the result
    scale = per_row(a_scale, flat) * per_column(b_scale) / per_row(y_scale, flat)
    return requantized(product.float(), scale, per_row(y_zero, flat), dtype)


def per_row(value: Tensor, flat: bool) -> Tensor:
    """A scale or zero point, one in all or one for each row of a matrix (or of a vector)."""
    value = value.float()
    if value.numel() == 1:
        return value.reshape(())
    if flat:
        return value.squeeze(-1) if value.dim() > 1 else value
    return value[:, None] if value.dim() == 1 else value


def per_column(value: Tensor) -> Tensor:
    """A scale, one in all or one for each column of a matrix."""
    return value.float().reshape(()) if value.numel() == 1 else value.float()


def requantized_channels(
    y: Tensor,
    b: Tensor | None,
    x_scale: Tensor,
    w_scale: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """A convolution of integers plus its bias, quantised again; weights may have a scale for each
    output channel."""
    shape = [-1] + [1] * (y.dim() - 2)
    if b is not None:
        y = y + b.reshape(shape)
    channel = [v.float().reshape(() if v.numel() == 1 else shape) for v in (w_scale, y_scale)]
    scale = x_scale.reshape(()) * channel[0] / channel[1]
    zero = y_zero.float().reshape(() if y_zero.numel() == 1 else shape)
    return requantized(y.float(), scale, zero, dtype)
