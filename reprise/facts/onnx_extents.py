"""Arithmetic on extents: values that a model computes from shapes, as far as they are known.

A dynamic model reshapes by what it computes from ``Shape``: gather the batch extent, concatenate
it with constants. These small integer vectors are followed through the graph, entry by entry; an
entry is a number, the name of a symbolic extent, or unknown. They serve type inference only: a
computed value stays an operand of the node that reads it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reprise.facts.onnx_call import constant_of
from reprise.uir.graph import Attribute, Extent, Tensor, TensorType

LARGEST = 2**63 - 1
"""ONNX stores extents in 64 bits; a larger product is not a shape that any runtime could have."""

LONGEST = 64
"""Vectors with more entries are not followed: no tensor has as many axes."""


@dataclass(frozen=True, slots=True)
class Extents:
    """The entries of an integer vector, or of a scalar (one entry)."""

    entries: tuple[Extent, ...]
    scalar: bool = False

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The entries if every one is a number."""
        known = tuple(entry for entry in self.entries if isinstance(entry, int))
        return known if len(known) == len(self.entries) else None


def stored(tensor: Tensor) -> Extents | None:
    """The value of a small constant of integers or booleans."""
    array = constant_of(tensor)
    if array is None or array.ndim > 1 or array.size > LONGEST:
        return None
    if tensor.type.dtype not in ("int64", "int32", "bool"):
        return None
    return Extents(tuple(int(item) for item in array.reshape(-1)), array.ndim == 0)


def follow(
    op: str,
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    """The value of a UIR node's first result, from what is known of its operands' values."""
    rule = _RULES.get(op)
    if rule is None:
        return None
    result = rule(attributes, operands, values)
    return result if result is not None and len(result.entries) <= LONGEST else None


_Rule = Callable[
    [Mapping[str, Attribute], Sequence[Tensor | None], Sequence[Extents | None]], Extents | None
]


def _shape(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    shape = _type(operands, 0).shape
    start, end = attributes.get("start", 0), attributes.get("end")
    if shape is None or type(start) is not int or type(end) is not int:
        return None
    return Extents(shape[start:end])


def _size(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    count = _type(operands, 0).elements
    return None if count is None else Extents((count,), scalar=True)


def _same(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    return _value(values, 0)


def _cast(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    return _value(values, 0) if attributes.get("to") in ("int64", "int32") else None


def _gather(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data, indices = _value(values, 0), _value(values, 1)
    if data is None or data.scalar or indices is None or attributes.get("axis") != 0:
        return None
    count = len(data.entries)
    picked: list[Extent] = []
    for index in indices.entries:
        if not isinstance(index, int):
            picked.append(None)
        elif -count <= index < count:
            picked.append(data.entries[index])
        else:
            return None
    return Extents(tuple(picked), indices.scalar)


def _concat(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    entries: list[Extent] = []
    for i, value in enumerate(values):
        if value is not None:
            entries += value.entries
            continue
        shape = _type(operands, i).shape  # a part whose length alone is known
        if shape is None or len(shape) != 1 or not isinstance(shape[0], int):
            return None
        if shape[0] > LONGEST:
            return None
        entries += [None] * shape[0]
    return Extents(tuple(entries))


def _slice(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data = _value(values, 0)
    bounds = [
        _only(attributes.get(name), _value(values, i))
        for i, name in enumerate(("starts", "ends", "axes", "steps"), 1)
    ]
    start, end, axis, step = bounds
    if data is None or data.scalar or start is None or end is None or axis != 0 or not step:
        return None
    return Extents(data.entries[start:end:step] if step > 0 else _backwards(data, start, end, step))


def _backwards(data: Extents, start: int, end: int, step: int) -> tuple[Extent, ...]:
    """ONNX clamps a descending slice's end at -1, which Python writes as None."""
    count = len(data.entries)
    stop = end + count if end < 0 else end
    return data.entries[start : stop if stop >= 0 else None : step]


def _only(attribute: Attribute | None, value: Extents | None) -> int | None:
    """The one integer in an attribute or operand."""
    items = attribute if isinstance(attribute, tuple) else value.entries if value else ()
    return items[0] if len(items) == 1 and type(items[0]) is int else None


def _squeeze(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data = _value(values, 0)
    if data is None or len(data.entries) != 1:
        return None
    return Extents(data.entries, scalar=True)


def _unsqueeze(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data = _value(values, 0)
    return Extents(data.entries) if data is not None and data.scalar else None


def _reshape(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data, target = _value(values, 0), attributes.get("shape")
    if data is None or not isinstance(target, tuple) or len(target) > 1:
        return None
    return Extents(data.entries, scalar=not target)


def _where(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    return _broadcast(lambda c, x, y: None if c is None else x if c else y, values)


def _range(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    bounds = [value.numbers if value is not None else None for value in values]
    if len(bounds) != 3 or any(numbers is None or len(numbers) != 1 for numbers in bounds):
        return None
    start, limit, step = (numbers[0] for numbers in bounds if numbers)
    if step == 0 or len(range(start, limit, step)) > LONGEST:
        return None
    return Extents(tuple(range(start, limit, step)))


def _filled(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    shape, value = _value(values, 0), attributes.get("value")
    numbers = shape.numbers if shape is not None else None
    if numbers is None or type(value) is not int or len(numbers) > 1:
        return None
    count = math.prod(numbers)
    return Extents((value,) * count, scalar=not numbers) if 0 <= count <= LONGEST else None


def _product(
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> Extents | None:
    data = _value(values, 0)
    numbers = data.numbers if data is not None else None
    if numbers is None:
        return None
    return Extents((math.prod(numbers),), scalar=attributes.get("keepdims") is False)


def _elementwise(function: Callable[[int, int], int | None], neutral: int | None) -> _Rule:
    """Entry by entry; an unknown or symbolic entry survives only the neutral second operand."""

    def entry(left: Extent, right: Extent) -> Extent:
        if isinstance(left, int) and isinstance(right, int):
            return function(left, right)
        if neutral is not None and right == neutral:
            return left
        return None

    def commutative(left: Extent, right: Extent) -> Extent:
        if neutral is not None and left == neutral:
            return right
        return entry(left, right)

    chosen = commutative if function in (operator.add, operator.mul) else entry

    def rule(
        attributes: Mapping[str, Attribute],
        operands: Sequence[Tensor | None],
        values: Sequence[Extents | None],
    ) -> Extents | None:
        return _broadcast(chosen, values) if len(values) == 2 else None

    return rule


def _broadcast(function: Callable[..., Extent], values: Sequence[Extents | None]) -> Extents | None:
    present = [value for value in values if value is not None]
    if len(present) < len(values) or not present:
        return None
    count = max(len(value.entries) for value in present)
    if any(len(value.entries) not in (1, count) for value in present):
        return None
    columns = [v.entries * count if len(v.entries) == 1 else v.entries for v in present]
    return Extents(
        tuple(function(*row) for row in zip(*columns, strict=True)),
        scalar=all(value.scalar for value in present),
    )


def _quotient(left: int, right: int) -> int | None:
    """ONNX divides integers toward zero."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _type(operands: Sequence[Tensor | None], i: int) -> TensorType:
    tensor = operands[i] if i < len(operands) else None
    return TensorType(None, None) if tensor is None else tensor.type


def _value(values: Sequence[Extents | None], i: int) -> Extents | None:
    return values[i] if i < len(values) else None


_RULES: dict[str, _Rule] = {
    "shape": _shape,
    "size": _size,
    "identity": _same,
    "cast": _cast,
    "gather": _gather,
    "concat": _concat,
    "slice": _slice,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "reshape": _reshape,
    "where": _where,
    "range": _range,
    "constant_of_shape": _filled,
    "prod": _product,
    "add": _elementwise(operator.add, 0),
    "sub": _elementwise(operator.sub, 0),
    "mul": _elementwise(operator.mul, 1),
    "div": _elementwise(_quotient, 1),
    "maximum": _elementwise(max, None),
    "minimum": _elementwise(min, None),
    "equal": _elementwise(lambda a, b: int(a == b), None),
}


def shaped(
    op: str,
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> tuple[Extent, ...] | None:
    """The shape of the result of a node whose target shape is an operand known in part."""
    shape = _target_shape(op, attributes, operands, values)
    if shape is None:
        return None
    return tuple(None if isinstance(e, int) and e > LARGEST else e for e in shape)


def _target_shape(
    op: str,
    attributes: Mapping[str, Attribute],
    operands: Sequence[Tensor | None],
    values: Sequence[Extents | None],
) -> tuple[Extent, ...] | None:
    match op:
        case "constant_of_shape":
            value = _value(values, 0)
            return None if value is None else _extents(value.entries)
        case "reshape" if (target := _target(attributes, values)) is not None:
            return _reshaped(_type(operands, 0), target, attributes.get("allowzero") is True)
        case "expand" if (target := _target(attributes, values)) is not None:
            return _expanded(_type(operands, 0).shape, target)
        case _:
            return None


def _target(
    attributes: Mapping[str, Attribute], values: Sequence[Extents | None]
) -> tuple[Extent, ...] | None:
    """The target shape: an attribute if it is constant, else operand 1."""
    stated = attributes.get("shape")
    if isinstance(stated, tuple):
        return tuple(item for item in stated if type(item) is int)
    value = _value(values, 1)
    return None if value is None else value.entries


def _extents(entries: Sequence[Extent]) -> tuple[Extent, ...] | None:
    if any(isinstance(entry, int) and entry < 0 for entry in entries):
        return None
    return tuple(entries)


def _reshaped(
    data: TensorType, target: tuple[Extent, ...], zero_is_zero: bool
) -> tuple[Extent, ...] | None:
    extents: list[Extent] = []
    inferred: int | None = None
    for i, entry in enumerate(target):
        if entry == -1:
            inferred = i
            extents.append(None)
        elif entry == 0 and not zero_is_zero:
            shape = data.shape
            extents.append(shape[i] if shape is not None and i < len(shape) else None)
        elif isinstance(entry, int) and entry < 0:
            return None
        else:
            extents.append(entry)
    if inferred is not None:
        extents[inferred] = _remaining(
            data.shape, [e for i, e in enumerate(extents) if i != inferred]
        )
    return tuple(extents)


def _remaining(shape: tuple[Extent, ...] | None, others: list[Extent]) -> Extent:
    """What is left of ``shape`` when ``others`` are divided out, symbols against equal symbols."""
    if shape is None or None in shape or None in others:
        return None
    symbols = [extent for extent in shape if isinstance(extent, str)]
    for extent in others:
        if isinstance(extent, str):
            if extent not in symbols:
                return None
            symbols.remove(extent)
    total = math.prod(extent for extent in shape if isinstance(extent, int))
    divisor = math.prod(extent for extent in others if isinstance(extent, int))
    if divisor == 0 or total % divisor:
        return None
    if not symbols:
        return total // divisor
    return symbols[0] if len(symbols) == 1 and total == divisor else None


def _expanded(
    shape: tuple[Extent, ...] | None, target: tuple[Extent, ...]
) -> tuple[Extent, ...] | None:
    """Two-way broadcasting, as far as it is decided."""
    if shape is None:
        return None
    rank = max(len(shape), len(target))
    left = (1,) * (rank - len(shape)) + shape
    right = (1,) * (rank - len(target)) + target
    extents: list[Extent] = []
    for mine, theirs in zip(left, right, strict=True):
        if mine == 1 or (mine == theirs and mine is not None):
            extents.append(theirs)
        elif theirs == 1 or (isinstance(mine, int) and mine > 1):
            extents.append(mine)
        elif isinstance(theirs, int) and theirs > 1:
            extents.append(theirs)
        else:
            extents.append(None)
    return _extents(extents)
