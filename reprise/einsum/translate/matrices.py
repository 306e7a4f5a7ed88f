"""Kernels as operations on matrices, for libraries that have no einsum.

A term with two factors is one product of matrices. Of its indices, *batch* indices are in both
factors and in the output, *contracted* ones in both and not in the output, *left* and *right* ones
in one factor and the output. Without left and right indices the product is taken element by
element (batch by contracted) and summed along rows; else the matrices are (batch, left) by (batch,
contracted) and (batch, contracted) by (batch, right), block-diagonal in batch. A sum of tensors is
a sum of matrices. Operands become matrices where they are written out, so that a script holds what
the library is given; what it gives is unravelled into coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from reprise.einsum.data import Array, Stored
from reprise.einsum.kernel import Access, Format, Kernel, Level, Tensor
from reprise.einsum.translate.script import Untranslatable

helpers = '''
def unravelled(rows, columns, values, row_shape, column_shape, order):
    """Coordinates of a matrix's entries in the tensor that it stands for; ``order``: for each axis,
    its place among the axes of rows and then of columns."""
    axes = [*np.unravel_index(rows, row_shape)] if row_shape else []
    axes += [*np.unravel_index(columns, column_shape)] if column_shape else []
    coordinates = np.array([axes[n] for n in order], "int64").reshape(len(order), len(values))
    return coordinates.T, np.asarray(values)
'''


@dataclass(frozen=True, slots=True)
class Sides:
    """The indices that are a matrix's rows, and those that are its columns."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a kernel becomes matrices. ``how``: "product", "elements" (by element, then summed along
    rows if ``columns`` of the result are none and those of the operands are some) or "sum".
    ``operands`` in the order of the kernel's accesses."""

    how: str
    operands: tuple[Sides, ...]
    result: Sides


def plan(kernel: Kernel) -> Plan:
    """Raises Untranslatable."""
    out = kernel.output.indices
    accesses = kernel.accesses
    if len({a.tensor for a in accesses}) < len(accesses):
        raise Untranslatable("one tensor twice: it would be two matrices")
    if any(len(set(a.indices)) < len(a.indices) for a in accesses):
        raise Untranslatable("an index twice in one operand")
    if all(len(term.factors) == 1 for term in kernel.terms):
        if any(set(a.indices) != set(out) for a in accesses):
            raise Untranslatable("a sum of tensors that lack indices, or have others")
        sides = Sides(out[:1], out[1:])
        return Plan("sum", (sides,) * len(accesses), sides)
    if len(kernel.terms) > 1 or len(accesses) != 2:
        raise Untranslatable("no product of two tensors")
    x, y = (set(a.indices) for a in accesses)
    order = [i for i, _ in kernel.extents]
    batch = tuple(i for i in order if i in x & y and i in out)
    contracted = tuple(i for i in order if i in x & y and i not in out)
    left = tuple(i for i in order if i in x - y)
    right = tuple(i for i in order if i in y - x)
    if not set(left + right) <= set(out):
        raise Untranslatable("an index that one operand has alone is summed over")
    if not left and not right:
        sides = Sides(batch, contracted)
        return Plan("elements", (sides, sides), Sides(batch, ()))
    first = Sides(batch + left, batch + contracted)
    second = Sides(batch + contracted, batch + right)
    return Plan("product", (first, second), Sides(batch + left, batch + right))


def sides_of(kernel: Kernel, tensor: Tensor) -> tuple[Sides, Access]:
    """An operand's sides, and where it is read. Raises Untranslatable."""
    planned = plan(kernel)
    for access, sides in zip(kernel.accesses, planned.operands, strict=True):
        if access.tensor == tensor.name:
            return sides, access
    raise Untranslatable(f"{tensor.name} is not read")


def matrix_of(kernel: Kernel, access: Access, sides: Sides, stored: Stored) -> Stored:
    """An operand's entries as those of a matrix."""
    extents = kernel.extent
    place = {index: n for n, index in enumerate(access.indices)}

    def raveled(indices: Sequence[str]) -> tuple[Array, int]:
        numbers = np.zeros(len(stored.values), np.int64)
        for index in indices:
            numbers = numbers * extents[index] + stored.coordinates[:, place[index]]
        return numbers, prod(extents[i] for i in indices)

    rows, height = raveled(sides.rows)
    columns, width = raveled(sides.columns)
    coordinates = np.stack([rows, columns], axis=1).reshape(len(rows), 2)
    return Stored((height, width), coordinates, stored.values)


def unravelling(kernel: Kernel, result: Sides) -> str:
    """The last three arguments of ``unravelled``."""
    extents = kernel.extent
    axes = [*result.rows, *result.columns]
    row_shape = tuple(extents[i] for i in result.rows)
    column_shape = tuple(extents[i] for i in result.columns)
    order = [axes.index(i) for i in kernel.output.indices]
    return f"{row_shape}, {column_shape}, {order}"


def kind_of(stored: Format) -> str:
    """The layout of matrices that a format stands for: "dense", "rows" or "columns" (compressed
    along the other axis), "entries", "blocks" or "column blocks"."""
    compressed = [level is not Level.DENSE for level in stored.levels]
    if not any(compressed):
        return "dense"
    if not compressed[0]:
        return "rows" if stored.is_ordered else "columns"
    if all(compressed):
        return "entries" if stored.is_ordered else "table"
    return "blocks" if stored.is_ordered else "column blocks"
