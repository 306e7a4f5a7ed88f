"""Types across the edges of sub-graphs: what If, Loop and Scan pass in and what comes out.

A loop-carried value has the element type of its initial value but not its shape, which an
iteration may change; Scan's states keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.facts.onnx_types import UNKNOWN, common
from reprise.uir.graph import Attribute, Body, Extent, Tensor, TensorType


def formal_types(
    op: str, inputs: Sequence[Tensor | None], attributes: Mapping[str, Attribute], count: int
) -> list[TensorType]:
    """Types of the ``count`` formal inputs of the sub-graph of an operator."""
    types: list[TensorType] = []
    match op:
        case "Loop":
            types = [TensorType("int64", ()), TensorType("bool", ())]
            types += [TensorType(_type(t).dtype, None) for t in inputs[2:]]
        case "Scan":
            scanned = _scanned(attributes, len(inputs))
            states = len(inputs) - scanned
            types = [_type(t) for t in inputs[:states]]
            axes = _axes(attributes, "scan_input_axes", scanned)
            types += [
                _without_axis(_type(t), axis) for t, axis in zip(inputs[states:], axes, strict=True)
            ]
    return [*types, *[UNKNOWN] * count][:count]


def source_of_formal(
    op: str, inputs: Sequence[Tensor | None], attributes: Mapping[str, Attribute], i: int
) -> Tensor | None:
    """The outer operand whose kind (sequence, optional, …) formal input ``i`` has."""
    if op == "Loop" and 2 <= i < len(inputs):
        return inputs[i]
    if op == "Scan" and i < len(inputs) - _scanned(attributes, len(inputs)):
        return inputs[i]
    return None


def result_types(
    op: str,
    inputs: Sequence[Tensor | None],
    attributes: Mapping[str, Attribute],
    bodies: Mapping[str, Body],
    count: int,
) -> list[TensorType]:
    """Types of the ``count`` outputs of a control-flow operator."""
    inner = list(bodies.values())
    types: list[TensorType] = []
    match op:
        case "If" if len(inner) == 2:
            types = [
                common([_type(t), _type(e)])
                for t, e in zip(inner[0].outputs, inner[1].outputs, strict=False)
            ]
        case "Loop" if len(inner) == 1:
            initial = inputs[2:]
            carried = inner[0].outputs[1 : 1 + len(initial)]
            types = [
                common([_type(before), _type(after)])
                for before, after in zip(initial, carried, strict=False)
            ]
            types += [_with_axis(_type(t), 0, None) for t in inner[0].outputs[1 + len(initial) :]]
        case "Scan" if len(inner) == 1:
            scanned = _scanned(attributes, len(inputs))
            states = len(inputs) - scanned
            types = [_type(t) for t in inputs[:states]]
            results = inner[0].outputs[states:]
            length = _scan_length(attributes, inputs[states:])
            axes = _axes(attributes, "scan_output_axes", len(results))
            types += [
                _with_axis(_type(t), axis, length) for t, axis in zip(results, axes, strict=True)
            ]
    return [*types, *[UNKNOWN] * count][:count]


def source_of_result(
    op: str, inputs: Sequence[Tensor | None], bodies: Mapping[str, Body], i: int
) -> Tensor | None:
    """The inner result whose kind output ``i`` has, if it passes through unchanged."""
    shift = {"If": 0, "Loop": 1}.get(op)
    if shift is None or (op == "Loop" and i >= len(inputs) - 2):
        return None
    outputs = next((body.outputs for body in bodies.values()), ())
    return outputs[i + shift] if i + shift < len(outputs) else None


def _type(tensor: Tensor | None) -> TensorType:
    return UNKNOWN if tensor is None else tensor.type


def _scanned(attributes: Mapping[str, Attribute], operands: int) -> int:
    """How many of a Scan's operands are scanned; the others are its state."""
    count = attributes.get("num_scan_inputs")
    return min(max(count, 0), operands) if type(count) is int else operands


def _axes(attributes: Mapping[str, Attribute], name: str, count: int) -> list[int]:
    given = attributes.get(name)
    axes = [a if type(a) is int else 0 for a in given] if isinstance(given, tuple) else []
    return (axes + [0] * count)[:count]


def _without_axis(type: TensorType, axis: int) -> TensorType:
    shape = type.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return TensorType(type.dtype, None)
    axis %= len(shape)
    return TensorType(type.dtype, shape[:axis] + shape[axis + 1 :])


def _with_axis(type: TensorType, axis: int, extent: Extent) -> TensorType:
    shape = type.shape
    if shape is None or not -len(shape) - 1 <= axis <= len(shape):
        return TensorType(type.dtype, None)
    axis %= len(shape) + 1
    return TensorType(type.dtype, (*shape[:axis], extent, *shape[axis:]))


def _scan_length(attributes: Mapping[str, Attribute], scanned: Sequence[Tensor | None]) -> Extent:
    """The common extent of the scanned axes."""
    axes = _axes(attributes, "scan_input_axes", len(scanned))
    for tensor, axis in zip(scanned, axes, strict=True):
        shape = _type(tensor).shape
        if shape is not None and -len(shape) <= axis < len(shape) and shape[axis] is not None:
            return shape[axis]
    return None
