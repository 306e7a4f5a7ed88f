"""Evaluating programs: graph inputs in, graph outputs out.

``widen=True`` is the high-precision reading of a program. Inputs and float initializers of the
types ``float16``, ``bfloat16``, ``float32`` are cast up to ``float64`` and every node that a
signature gives such a type computes and returns ``float64``. Integers and bools are computed as
they are; so are the storage formats of 8 bits and fewer, complex numbers and strings. In
particular

- a ``cast`` from float to a narrower float is the identity: rounding to the narrow type is *not*
  emulated; ``cast`` to integers, bools, 8-bit floats and strings happens, from the wide value
  (to strings: from the value rounded to its declared type);
- ``bitcast`` reads the bits of the value rounded to its declared type, and what it makes is
  widened;
- attributes and constants that a kernel makes (``full``, ``arange``) are not rounded to the
  declared type; inputs and initializers were, by being stored in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.graph import Array, Attribute, Graph, Node, Role, Tensor, TensorType
from reprise.uir.program import Program
from reprise.uir.semantics.registry import (
    FLOAT64,
    JUDGES,
    Cause,
    SemanticsError,
    run,
)
from reprise.uir.types import numpy_dtype

WIDENED = frozenset({"float16", "bfloat16", "float32", "float64"})
"""The element types that ``widen=True`` computes in float64."""


def evaluate(
    program: Program | Graph,
    inputs: Mapping[str, Array] | None = None,
    *,
    widen: bool = False,
) -> tuple[Array, ...]:
    """The graph outputs, in order. ``inputs`` defaults to the program's own.

    Raises SemanticsError for an input that is missing or of another type than declared, for an
    initializer without value, and for nodes without reference semantics.
    """
    graph = program.graph if isinstance(program, Program) else program
    if inputs is None:
        inputs = program.inputs if isinstance(program, Program) else {}
    values = evaluate_all(graph, inputs, widen=widen)
    return tuple(values[tensor.id] for tensor in graph.outputs)


def evaluate_all(
    graph: Graph, inputs: Mapping[str, Array], *, widen: bool = False
) -> dict[int, Array]:
    """The value of every tensor of the graph, by id. Raises as :func:`evaluate`."""
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for tensor in graph.tensors:
            if tensor.producer is None and tensor.role is not Role.BODY_INPUT:
                values[tensor.id] = _source(tensor, inputs, widen)
        for node in graph.nodes:
            if node.body:
                continue
            operands = [None if t is None else values[t.id] for t in node.inputs]
            results = _node(node, operands, widen)
            for made, result in zip(node.outputs, results, strict=True):
                if made is not None:
                    values[made.id] = result
    return values


def apply(
    op: str,
    operands: Sequence[Array | None],
    attributes: Mapping[str, Attribute],
    result_types: Sequence[TensorType],
) -> tuple[Array, ...]:
    """The results of one application, of exactly the given types. ``attributes`` are completed;
    operands are of the types that the signature was asked about.

    Raises SemanticsError if the operator has no semantics or the results are of another type.
    """
    dtypes = tuple(None if t.dtype is None else numpy_dtype(t.dtype) for t in result_types)
    with np.errstate(all="ignore"):
        results = _run(op, operands, attributes, dtypes)
    for result, type_ in zip(results, result_types, strict=True):
        if result.shape != type_.shape:
            _check_shape(op, result, type_)
    return tuple(results)


def causes(
    op: str, operands: Sequence[Array | None], attributes: Mapping[str, Attribute]
) -> dict[int, Cause]:
    """Which outputs of this application hold implementation-defined values, and why."""
    judge = JUDGES.get(op)
    if judge is None:
        return {}
    with np.errstate(all="ignore"):
        return judge(operands, attributes) or {}


def fragile(op: str, operands: Sequence[Array | None], attributes: Mapping[str, Attribute]) -> bool:
    """Whether any output holds implementation-defined values, which no oracle should judge."""
    return op in JUDGES and bool(causes(op, operands, attributes))


def fragile_nodes(graph: Graph, values: Mapping[int, Array]) -> dict[int, dict[int, Cause]]:
    """Node id to its implementation-defined outputs, given all tensors' values."""
    found = {}
    for node in graph.nodes:
        if node.op in JUDGES and not node.body:
            operands = [None if t is None else values[t.id] for t in node.inputs]
            made = causes(node.op, operands, node.attributes)
            if made:
                found[node.id] = made
    return found


# --- the parts -----------------------------------------------------------------------------------


def _source(tensor: Tensor, inputs: Mapping[str, Array], widen: bool) -> Array:
    """The value of an input or initializer. Raises SemanticsError."""
    value = tensor.value
    if tensor.role is Role.INPUT or tensor.overridable:
        value = inputs.get(tensor.name, value)
        if value is None:
            raise SemanticsError("input", f"{tensor.name!r} has no value")
    if value is None:
        raise SemanticsError("initializer", f"{tensor.name!r} was not loaded")
    declared = tensor.type.dtype
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if declared is not None and value.dtype != numpy_dtype(declared):
        raise SemanticsError("input", f"{tensor.name!r} is {value.dtype}, not {declared}")
    if value.shape != tensor.type.shape:
        _check_shape("input", value, tensor.type)
    return value.astype(FLOAT64) if widen and declared in WIDENED else value


def _node(node: Node, operands: list[Array | None], widen: bool) -> Sequence[Array]:
    outputs = node.outputs
    if widen and (node.op == "bitcast" or (node.op == "cast" and _makes_text(node))):
        return _narrowed(node, operands)
    wanted: list[np.dtype[Any] | None] = []
    for tensor in outputs:
        declared = None if tensor is None else tensor.type.dtype
        if declared is None:
            wanted.append(None)
        elif widen and declared in WIDENED:
            wanted.append(FLOAT64)
        else:
            wanted.append(numpy_dtype(declared))
    results = _run(node.op, operands, node.attributes, tuple(wanted))
    for tensor, result in zip(outputs, results, strict=True):
        if tensor is not None and result.shape != tensor.type.shape:
            _check_shape(node.op, result, tensor.type)
    return results


def _run(
    op: str,
    operands: Sequence[Array | None],
    attributes: Mapping[str, Any],
    dtypes: tuple[np.dtype[Any] | None, ...],
) -> Sequence[Array]:
    """As ``registry.run``; whatever a kernel raises says that the application is none."""
    try:
        return run(op, operands, attributes, dtypes)
    except SemanticsError:
        raise
    except Exception as error:
        raise SemanticsError(op, f"{type(error).__name__}: {error}") from error


def _makes_text(node: Node) -> bool:
    made = node.outputs[0]
    return made is not None and made.type.dtype == "string"


def _narrowed(node: Node, operands: list[Array | None]) -> Sequence[Array]:
    """A node whose result depends on the operand's declared type, while others are widened."""
    narrow: list[Array | None] = []
    for tensor, value in zip(node.inputs, operands, strict=True):
        declared = None if tensor is None else tensor.type.dtype
        if value is not None and declared in WIDENED:
            value = value.astype(numpy_dtype(declared))
        narrow.append(value)
    results = _node(node, narrow, False)
    return [
        result.astype(FLOAT64) if tensor is not None and tensor.type.dtype in WIDENED else result
        for tensor, result in zip(node.outputs, results, strict=True)
    ]


def _check_shape(op: str, result: Array, type_: TensorType) -> None:
    """Compare a shape with one that may have unknown extents. Raises SemanticsError."""
    shape: Any = type_.shape
    if shape is None:
        return
    fits = len(shape) == result.ndim and all(
        not isinstance(known, int) or known == extent
        for known, extent in zip(shape, result.shape, strict=True)
    )
    if not fits:
        raise SemanticsError(op, f"computed shape {list(result.shape)}, not {type_}")
