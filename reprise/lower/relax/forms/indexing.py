"""Reading and writing at positions that are themselves data.

Relax reads and writes at negative positions as they are, outside the tensor, except ``take`` in its
mode "wrap": they are counted from the end first, unless they are known not to be negative.
"""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form, are_counted

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _from_start(n: Application, position: int, limit: str) -> str:
    """The indices of an operand, none of them negative; ``limit`` is the extent that they count."""
    if are_counted(n.values[position]):
        return n[position]
    dtype = n.type(position).dtype or ""
    zero = n.const(0, dtype)
    wrapped = f"R.add({n[position]}, {limit})"
    return n.let(f"R.where(R.less({n[position]}, {zero}), {wrapped}, {n[position]})", "indices")


def _take(n: Application, axis: int) -> str:
    mode = "fast" if are_counted(n.values[1]) else "wrap"
    return f'R.take({n[0]}, {n[1]}, axis={axis}, mode="{mode}")'


def _extent(n: Application) -> str:
    return n.const(n.shape[n.attr("axis")], n.type(1).dtype)


def _gather_elements(n: Application) -> str:
    if not n.shape:
        return n[0]
    indices = _from_start(n, 1, _extent(n))
    return f"R.gather_elements({n[0]}, {indices}, axis={n.attr('axis')})"


def _scatter_elements(n: Application) -> str:
    if not n.shape:
        raise AssertionError("limits.py refuses scatter_elements of rank 0")
    indices = _from_start(n, 1, _extent(n))
    options = f'axis={n.attr("axis")}, reduction="{_REDUCTIONS[n.attr("reduction")]}"'
    return f"R.scatter_elements({n[0]}, {indices}, {n[2]}, {options})"


def _extents(n: Application, batch: int) -> str:
    """The extents that index tuples count, in the shape of a tuple."""
    depth = n.shape_of(1)[-1]
    return n.array(n.shape[batch : batch + depth], "extents")


def _gather_nd(n: Application) -> str:
    batch = n.attr("batch_dims")
    return f"R.gather_nd({n[0]}, {_from_start(n, 1, _extents(n, batch))}, {batch})"


def _scatter_nd(n: Application) -> str:
    indices = _from_start(n, 1, _extents(n, 0))
    return f'R.scatter_nd({n[0]}, {indices}, {n[2]}, "{_REDUCTIONS[n.attr("reduction")]}")'


def _one_hot(n: Application) -> str:
    """A comparison with positions: Relax's own takes neither fractions nor negative indices."""
    axis, depth = n.attr("axis"), n.attr("depth")
    indices = n.let(n.cast(n[0], "int64"), "whole")
    limit, zero = n.const(depth, "int64"), n.const(0, "int64")
    wrapped = f"R.where(R.less({indices}, {zero}), R.add({indices}, {limit}), {indices})"
    steps = tuple(depth if i == axis else 1 for i in range(len(n.shape) + 1))
    positions = f'R.reshape(R.arange(0, {depth}, 1, "int64"), {steps})'
    hot = n.let(f"R.equal(R.expand_dims({wrapped}, [{axis}]), {positions})", "hot")
    dtype = n.results[0].dtype or ""
    if n.has(2):
        off, on = (
            f"R.squeeze(R.strided_slice({n[2]}, [0], [{i}], [{i + 1}]), [0])" for i in (0, 1)
        )
    else:
        off, on = n.const(n.attr("off_value"), dtype), n.const(n.attr("on_value"), dtype)
    return f"R.where({hot}, {on}, {off})"


FORMS: dict[str, Form] = {
    "gather": lambda n: _take(n, n.attr("axis")),
    "embedding": lambda n: _take(n, 0),
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "one_hot": _one_hot,
}
