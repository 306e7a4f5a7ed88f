"""Operators that move elements, or only rename their positions."""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form, dtype_name, number
from reprise.uir.slices import slice_of

_PAD_MODES = {
    "constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"
}  # fmt: skip


def strided_slice(
    x: str, axes: list[int], begin: list[int], end: list[int], steps: list[int] | None = None
) -> str:
    """The text of a slice. A step of -1 down to position 0 ends at -extent - 1."""
    last = "" if steps is None or set(steps) <= {1} else f", {steps}"
    return f"R.strided_slice({x}, {axes}, {begin}, {end}{last})"


def _reshaped(n: Application) -> str:
    return f"R.reshape({n[0]}, {n.result_shape()})"


def _squeeze(n: Application) -> str:
    return f"R.squeeze({n[0]}, {list(n.attr('axes'))})" if n.attr("axes") else n[0]


def _unsqueeze(n: Application) -> str:
    return f"R.expand_dims({n[0]}, {list(n.attr('axes'))})" if n.attr("axes") else n[0]


def _transpose(n: Application) -> str:
    return f"R.permute_dims({n[0]}, {list(n.attr('perm'))})" if n.attr("perm") else n[0]


def _depth_to_space(n: Application) -> str:
    batch, channels, height, width = n.shape
    b = n.attr("block")
    c = channels // (b * b)
    if n.attr("mode") == "DCR":
        split, order = (batch, b, b, c, height, width), [0, 3, 4, 1, 5, 2]
    else:
        split, order = (batch, c, b, b, height, width), [0, 1, 4, 2, 5, 3]
    return f"R.reshape(R.permute_dims(R.reshape({n[0]}, {split}), {order}), {n.result_shape()})"


def _space_to_depth(n: Application) -> str:
    batch, c, height, width = n.shape
    b = n.attr("block")
    split = (batch, c, height // b, b, width // b, b)
    order = [0, 3, 5, 1, 2, 4] if n.attr("mode") == "DCR" else [0, 1, 3, 5, 2, 4]
    return f"R.reshape(R.permute_dims(R.reshape({n[0]}, {split}), {order}), {n.result_shape()})"


def _flip(n: Application) -> str:
    text = n[0]
    for axis in n.attr("axes"):
        text = f"R.flip({text}, axis={axis})"
    return text


def _roll(n: Application) -> str:
    text = n[0]
    for axis, shift in zip(n.attr("axes"), n.attr("shifts"), strict=True):
        extent = n.shape[axis]
        if extent == 0 or shift % extent == 0:
            continue
        x = text if text == n[0] else n.let(text, "rolled")
        cut = extent - shift % extent
        tail = strided_slice(x, [axis], [cut], [extent])
        head = strided_slice(x, [axis], [0], [cut])
        text = f"R.concat([{tail}, {head}], axis={axis})"
    return text


def _reverse_sequence(n: Application) -> str:
    """Positions are computed, then gathered."""
    batch, time, rank = n.attr("batch_axis"), n.attr("time_axis"), len(n.shape)
    along = tuple(n.shape[time] if i == time else 1 for i in range(rank))
    across = tuple(n.shape[batch] if i == batch else 1 for i in range(rank))
    steps = n.let(f'R.reshape(R.arange(0, {n.shape[time]}, 1, "int64"), {along})', "steps")
    lengths = n.let(f"R.reshape({n[1]}, {across})", "lengths")
    back = f"R.subtract(R.subtract({lengths}, {n.const(1, 'int64')}), {steps})"
    chosen = f"R.where(R.less({steps}, {lengths}), {back}, {steps})"
    positions = n.let(f"R.broadcast_to({chosen}, {n.shape})", "positions")
    return f"R.gather_elements({n[0]}, {positions}, axis={time})"


def _joined(function: str) -> Form:
    def form(n: Application) -> str:
        names = ", ".join(name for name in n.names if name is not None)
        return f"R.{function}([{names}], axis={n.attr('axis')})"

    return form


def _pieces(n: Application) -> list[str]:
    """One split, unless a piece is empty: Relax wants its cuts in strict order."""
    axis = n.attr("axis")
    sizes = [n.result_shape(i)[axis] for i in range(len(n.results))]
    cuts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    if len(sizes) == 1:
        return [n[0]]
    if 0 in sizes:
        return [strided_slice(n[0], [axis], [cuts[i]], [cuts[i + 1]]) for i in range(len(sizes))]
    pieces = n.let(f"R.split({n[0]}, {cuts[1:-1]}, axis={axis})", "pieces")
    return [f"{pieces}[{i}]" for i in range(len(sizes))]


def _slice(n: Application) -> str:
    """Positions are counted from the start and clamped to the axis, as ONNX does."""
    axes, begins, ends, steps = [], [], [], []
    rows = zip(n.attr("axes"), n.attr("starts"), n.attr("ends"), n.attr("steps"), strict=True)
    for axis, start, end, step in rows:
        extent = n.shape[axis]
        begin, stop, step = slice_of(extent, start, end, step).indices(extent)
        if len(range(begin, stop, step)) == 0:
            begin, stop, step = 0, 0, 1
        axes.append(axis)
        begins.append(begin)
        ends.append(stop if stop >= 0 else -extent - 1)
        steps.append(step)
    return strided_slice(n[0], axes, begins, ends, steps) if axes else n[0]


def _narrow(n: Application) -> str:
    start = n.attr("start")
    return strided_slice(n[0], [n.attr("axis")], [start], [start + n.attr("length")])


def _select(n: Application) -> str:
    axis = n.attr("axis")
    index = n.attr("index") % n.shape[axis]
    return f"R.squeeze({strided_slice(n[0], [axis], [index], [index + 1])}, [{axis}])"


def _pad(n: Application) -> str:
    """Cuts (negative amounts) come first. A value that is an operand replaces what was padded."""
    rank = len(n.shape)
    axes = n.attr("axes") if n.attr("axes") is not None else tuple(range(rank))
    pads = n.attr("pads")
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    x, shape = n[0], list(n.shape)
    cut = [i for i in range(rank) if before[i] < 0 or after[i] < 0]
    if cut:
        begins = [max(-before[i], 0) for i in cut]
        ends = [shape[i] - max(-after[i], 0) for i in cut]
        x = n.let(strided_slice(x, cut, begins, ends), "cut")
        for i, begin, end in zip(cut, begins, ends, strict=True):
            shape[i] = end - begin
    widths = [max(each, 0) for pair in zip(before, after, strict=True) for each in pair]
    if not any(widths):
        return x
    mode = _PAD_MODES[n.attr("mode")]
    value = n.attr("value") if "float" in n.dtype else int(n.attr("value"))
    if n.dtype == "bool":
        wide = f'R.nn.pad({n.cast(x, "int8")}, {widths}, "{mode}", {int(bool(value))})'
        return n.cast(wide, "bool")
    if mode != "constant":
        return f'R.nn.pad({x}, {widths}, "{mode}")'
    padded = f'R.nn.pad({x}, {widths}, "constant", {number(value)})'
    if not n.has(2):
        return padded
    inside = n.cast(f'R.nn.pad(R.ones({tuple(shape)}, "int8"), {widths}, "constant", 0)', "bool")
    return f"R.where({inside}, {padded}, R.reshape({n[2]}, ()))"


def _tile(n: Application) -> str:
    return f"R.tile({n[0]}, {list(n.attr('repeats'))})" if n.attr("repeats") else n[0]


def _trilu(n: Application) -> str:
    return f"R.{'triu' if n.attr('upper') else 'tril'}({n[0]}, {n.attr('k')})"


def _bitcast(n: Application) -> str:
    return f'R.memory.view({n[0]}, dtype="{dtype_name(n.attr("to"))}")'


FORMS: dict[str, Form] = {
    "identity": lambda n: n[0],
    "reshape": _reshaped,
    "flatten": _reshaped,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "transpose": _transpose,
    "depth_to_space": _depth_to_space,
    "space_to_depth": _space_to_depth,
    "flip": _flip,
    "roll": _roll,
    "reverse_sequence": _reverse_sequence,
    "expand": lambda n: f"R.broadcast_to({n[0]}, {n.result_shape()})",
    "tile": _tile,
    "concat": _joined("concat"),
    "stack": _joined("stack"),
    "split": _pieces,
    "chunk": _pieces,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    "pad": _pad,
    "trilu": _trilu,
    "bitcast": _bitcast,
}
