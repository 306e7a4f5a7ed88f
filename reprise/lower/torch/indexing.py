"""Reading and writing at positions that are themselves data.

An index that counts from the end, which ONNX allows, is not one for most of torch's functions; it
is wrapped, unless the indices are stored and none is negative.
"""

from __future__ import annotations

from reprise.lower.torch.call import Call, Form, Many, dtype, form, index, literal, number
from reprise.lower.torch.kernels import COMPLEX, WIDE_UNSIGNED
from reprise.lower.torch.reductions import runtime


def _plain(call: Call, operand: int) -> bool:
    """Whether the indices are known, and none counts from the end."""
    value = call.values.get(operand)
    return value is not None and bool((value >= 0).all())  # type: ignore[operator]


def _wrapped(call: Call, operand: int, extent: int) -> str:
    """The operand as 64-bit indices from 0."""
    text = call.name(operand)
    if call.dtype(operand) != "int64":
        text = f"{text}.long()"
    return text if _plain(call, operand) or not extent else f"{text} % {extent}"


def _gather(call: Call) -> str:
    x, indices, axis = call.name(0), call.name(1), call.attributes["axis"]
    if call.rank(1) == 1 and _plain(call, 1) and call.dtype() not in WIDE_UNSIGNED:
        return f"torch.index_select({x}, {axis}, {indices})"
    if call.rank(1) == 0:
        return f"{x}{index({axis: f'{indices}.reshape(1)'})}.squeeze({axis})"
    return f"{x}{index({axis: indices})}"


def _gather_elements(call: Call) -> str:
    axis = call.attributes["axis"]
    return f"torch.gather({call.name(0)}, {axis}, {_wrapped(call, 1, call.shape()[axis])})"


def _embedding(call: Call) -> str:
    return f"F.embedding({_wrapped(call, 1, call.shape()[0])}, {call.name(0)})"


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scatter_elements(call: Call) -> str:
    axis, x, updates = call.attributes["axis"], call.name(0), call.name(2)
    indices = _wrapped(call, 1, call.shape()[axis])
    reduction = call.attributes["reduction"]
    if reduction == "none":
        return f"torch.scatter({x}, {axis}, {indices}, {updates})"
    return f'torch.scatter_reduce({x}, {axis}, {indices}, {updates}, "{_REDUCTIONS[reduction]}")'


def _ordered(call: Call) -> str | None:
    if call.dtype() in COMPLEX and call.attributes["reduction"] in ("max", "min"):
        return f"there is no order of {call.dtype()}"
    return None


def _scatter_nd(call: Call) -> str:
    reduction = call.attributes["reduction"]
    how = "" if reduction == "none" else f', "{_REDUCTIONS[reduction]}"'
    return f"scatter_nd({call.listed((0, 1, 2))}{how})"


def _one_hot(call: Call) -> str:
    a = call.attributes
    if call.has(2):
        values = call.name(2)
    else:
        pair = ", ".join(number(a[name], a["dtype"]) for name in ("off_value", "on_value"))
        values = f"torch.tensor([{pair}], dtype={dtype(a['dtype'])})"
    return f"one_hot({call.name()}, {a['depth']}, {a['axis']}, {values})"


def _compress(call: Call) -> str:
    x, condition, axis = call.name(0), call.name(1), call.attributes.get("axis")
    count = call.shape(1)[0]
    if axis is None:
        return f"{x}.reshape(-1)[:{count}][{condition}]"
    return f"{x}{index({axis: f':{count}'})}{index({axis: condition})}"


def _unique(call: Call) -> Many:
    axis, ordered = call.attributes.get("axis"), call.attributes["sorted"]
    return Many(f"unique({call.name()}, {literal(axis)}, {ordered})", 4)


def _non_max_suppression(call: Call) -> str:
    center = bool(call.attributes["center_point_box"])
    operands = ", ".join(call.optional(i) for i in range(5))
    return f"non_max_suppression({operands}, {center})"


FORMS: dict[str, Form] = {
    "gather": Form(_gather),
    "gather_elements": Form(_gather_elements),
    "gather_nd": form("gather_nd({0}, {1}, {batch_dims})"),
    "embedding": Form(_embedding),
    "scatter_elements": Form(_scatter_elements, _ordered),
    "scatter_nd": Form(_scatter_nd, _ordered),
    "one_hot": Form(_one_hot, runtime(1, "the depth")),
    "non_zero": form("torch.nonzero({0}).T"),
    "compress": Form(_compress),
    "unique": Form(_unique),
    "non_max_suppression": Form(_non_max_suppression),
}
