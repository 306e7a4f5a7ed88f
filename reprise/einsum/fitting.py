"""Whether data fit the tensor that they are described for: its shape, its element type.

Every way to read a kernel asks, so that what is wrong is told where it was written, and so does
whoever makes entries, for kernels that were changed since. What is one machine's limit, such as how
many entries can be drawn, is not asked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from reprise.einsum.kernel import (
    REALS,
    Access,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Kept,
    Kernel,
    KernelError,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Transposed,
    Zeros,
)

MOST = (1 << 53) - 1
"""Extents, coordinates, seeds and counts are at most this: what every reader of JSON can hold."""
MOST_EXPONENT = 1000
"""A value is scaled by at most two to the power of this, or minus this."""
MOST_OPERANDS = 256
"""Operands of a kernel, all terms together: more than any compiler is asked for. Rules about pairs
of operands, and those about the order of loops, take time for many."""
MOST_INDICES = 256
"""Indices of a kernel, positions of a tensor, and levels of a format, at most."""
LARGEST_HELD = {
    "float64": float.fromhex("0x1.fffffffffffffp+1023"),
    "float32": float.fromhex("0x1.fffffep+127"),
    "int64": 2**63 - 1,
    "int32": 2**31 - 1,
}
"""The largest value of each element type."""

Shape = tuple[int, ...]


class DataError(KernelError):
    """Data that do not fit a tensor, or an index that has no such extent: ``name`` says which."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class SizeError(KernelError):
    """A kernel with too much of something: ``access`` is where, a number of its operands, or how
    many there are for the output."""

    def __init__(self, access: int, message: str) -> None:
        super().__init__(message)
        self.access = access


def fitted(kernel: Kernel) -> Kernel:
    """The kernel. Raises KernelError if it is too large, and DataError if its extents are no
    extents or its data do not fit."""
    expect_size(kernel.output, kernel.accesses)
    for index, extent in kernel.extents:
        if not 0 <= extent <= MOST:
            raise DataError(index, f"index {index}: an extent is from 0 to {MOST}, not {extent}")
    shapes = kernel.shapes
    for tensor in kernel.operands:
        assert tensor.data is not None
        try:
            expect_fit(tensor.data, shapes[tensor.name], kernel.dtype)
        except KernelError as error:
            raise DataError(tensor.name, f"tensor {tensor.name}: {error}") from None
    return kernel


def expect_computed(kernel: Kernel, computed: Mapping[str, Shape]) -> None:
    """Raise DataError unless the outputs that a kernel reads are ``computed`` before it, by name,
    in the shapes that it reads them in."""
    shapes = kernel.shapes
    for tensor in kernel.operands:
        if isinstance(tensor.data, Computed):
            output, shape = tensor.data.output, shapes[tensor.name]
            if output not in computed:
                raise DataError(tensor.name, f"tensor {tensor.name}: no kernel before this one "
                                f"computes {output}")  # fmt: skip
            if computed[output] != shape:
                raise DataError(tensor.name, f"tensor {tensor.name}: {output} has shape "
                                f"{computed[output]}, not {shape}")  # fmt: skip


def expect_size(output: Access, operands: Sequence[Access]) -> None:
    """Raise SizeError if a kernel has too many operands or indices."""
    if len(operands) > MOST_OPERANDS:
        raise SizeError(MOST_OPERANDS, f"a kernel has at most {MOST_OPERANDS} operands, not "
                        f"{len(operands)}")  # fmt: skip
    indices: set[str] = set()
    for number, access in enumerate((*operands, output)):
        rank = len(access.indices)
        if rank > MOST_INDICES:
            raise SizeError(number, f"a tensor has at most {MOST_INDICES} indices, not {rank}")
        indices.update(access.indices)
        if len(indices) > MOST_INDICES:
            raise SizeError(number, f"a kernel has at most {MOST_INDICES} indices")


def expect_fit(data: Data, shape: Shape, dtype: str) -> None:
    """Raise KernelError if data are not for a tensor of this shape and element type."""
    match data:
        case Computed():
            return
        case Drawn():
            _expect_described(data, dtype)
        case Entries(coordinates, values):
            if len(coordinates) != len(values):
                raise KernelError(f"{len(coordinates)} coordinates, but {len(values)} values")
            before = shape_before(shape, data.edits)
            for coordinate in coordinates:
                if len(coordinate) != len(before) or not all(
                    0 <= c < extent for c, extent in zip(coordinate, before, strict=True)
                ):
                    raise KernelError(f"coordinate {coordinate} is not in shape {before}")
            for value in values:
                if not _is_held(value, dtype):
                    raise KernelError(f"{dtype} does not hold {_shown(value)}")
    for edit in data.edits:
        problem = _problem(edit, len(shape))
        if problem:
            raise KernelError(problem)


def shape_before(shape: Shape, edits: tuple[Edit, ...]) -> Shape:
    """The shape before edits: only transpositions change it. Raises KernelError."""
    for edit in reversed(edits):
        if isinstance(edit, Transposed):
            if sorted(edit.axes) != list(range(len(shape))):
                raise KernelError(f"{edit.axes} is no order of {len(shape)} axes")
            earlier = [0] * len(shape)
            for axis, source in enumerate(edit.axes):
                earlier[source] = shape[axis]
            shape = tuple(earlier)
    return shape


def _expect_described(data: Drawn, dtype: str) -> None:
    if not 0 <= data.density <= 1:
        raise KernelError(f"a density is from 0 to 1, not {data.density:g}")
    if data.values == REALS and not dtype.startswith("float"):
        raise KernelError(f"{dtype} does not hold reals")
    for what, number in (
        ("a seed", data.seed), ("a count", data.duplicates), ("a count", data.zeros)
    ):  # fmt: skip
        if not 0 <= number <= MOST:
            raise KernelError(f"{what} is from 0 to {MOST}, not {number}")


def _is_held(value: float, dtype: str) -> bool:
    if isinstance(value, float) and not isfinite(value):
        return False
    if dtype.startswith("int") and value != int(value):
        return False
    return abs(value) <= LARGEST_HELD[dtype]


def _shown(value: float) -> str:
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:27]}..."


def _problem(edit: Edit, rank: int) -> str:
    """What is wrong with an edit of a tensor of this rank; "" if nothing is."""
    axis: int | None = None
    numbers: tuple[int, ...]
    match edit:
        case Transposed(axes):
            return "" if sorted(axes) == list(range(rank)) else f"{axes} is no order of {rank} axes"
        case Scaled(exponent):
            right = abs(exponent) <= MOST_EXPONENT
            return "" if right else f"2 to the power of {exponent} scales by too much"
        case Permuted(axis, seed):
            numbers = (axis, seed)
        case Zeros(count, seed):
            numbers = (count, seed)
        case Part(number, of):
            numbers = (number, of)
            if of < 1:
                return f"there is no part {number} of {of}"
        case Kept(axis, start, stop):
            numbers = (axis, start, stop)
        case Reordered(seed):
            numbers = (seed,)
    wrong = [number for number in numbers if not 0 <= number <= MOST]
    if wrong:
        return f"what an edit is told is from 0 to {MOST}, not {wrong[0]}"
    if axis is not None and axis >= rank:
        return f"there is no axis {axis} of {rank}"
    return ""
