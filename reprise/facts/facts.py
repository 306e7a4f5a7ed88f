"""Facts of a graph: the vocabulary of ``rules/std/graph.rules``, as rows for a database.

In goes a :class:`Graph`, out come ``(relation, row)`` pairs, entity by entity, oldest first. All
facts about an entity come in one batch, which holds a node together with its outputs; a row never
mentions an entity younger than that. Facts that are known only once the graph is complete
(``graph_output``, a sub-graph's formal inputs and results) follow the entity that completes them.

A generator calls :func:`entity_facts` for every node that it proposes, so this code is plain and
flat: rows that depend on a type or an attribute value alone are computed once and kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache

import numpy as np

from reprise.lang.core import Row, Value
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import (
    Array,
    Attribute,
    Body,
    Graph,
    Node,
    Role,
    Scalar,
    Tensor,
    TensorType,
)

Fact = tuple[str, Row]

LISTED_VALUES = 64
"""Initializers with at most this many elements get a ``value_at`` fact for each."""

LISTED_ITEMS = 256
"""Of a list attribute with more items (the tables of tree ensembles) only the length is a fact."""

EXAMINED_VALUES = 1_000_000
"""Initializers with more elements get no value facts at all."""


def facts_of(graph: Graph, *, environment: Mapping[str, Scalar] | None = None) -> Iterator[Fact]:
    """Every fact about ``graph``: its opsets and ``environment`` first, then entity by entity."""
    for domain, version in sorted(graph.opsets.items()):
        yield "opset", (domain, version)
        if domain in ("", "ai.onnx"):  # two spellings of ONNX's own domain
            yield "opset", ("ai.onnx" if domain == "" else "", version)
    for name, given in sorted((environment or {}).items()):
        if (value := value_of(given)) is not None:
            yield "env", (name, value)
    for entity in graph.entities():
        yield from entity_facts(entity)
    for tensor in dict.fromkeys(graph.outputs):
        yield "graph_output", (tensor.id,)


def entity_facts(entity: Tensor | Node) -> list[Fact]:
    """The facts that arrive with a source tensor, or with a node and its outputs."""
    if isinstance(entity, Tensor):
        return _source_facts(entity)
    return _node_facts(entity)


def value_of(scalar: Scalar) -> Value | None:
    """``scalar`` as a column's value; None for NaN, which equals nothing."""
    if scalar is True:
        return "true"
    if scalar is False:
        return "false"
    if isinstance(scalar, float) and scalar != scalar:
        return None
    return scalar


def list_text(items: tuple[Scalar, ...]) -> str:
    """A list attribute as its ``attr`` fact spells it: ``[1, 0]``."""
    return "[" + ", ".join(_item_text(item) for item in items) + "]"


def _item_text(item: Scalar) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return str(item)


def shape_text(type: TensorType) -> str | None:
    """``"4x17"``, ``"Nx3"``, ``"scalar"``; None if an extent has neither number nor name."""
    if type.shape is None or None in type.shape:
        return None
    return "x".join(map(str, type.shape)) or "scalar"


# --- nodes -----------------------------------------------------------------------------------


def _node_facts(node: Node) -> list[Fact]:
    n = node.id
    body = node.body
    facts: list[Fact] = [
        ("node", (n, node.op)),
        ("arity", (n, len(node.inputs))),
        ("results", (n, len(node.outputs))),
    ]
    add = facts.append
    captured: set[int] = set()
    for i, operand in enumerate(node.inputs):
        if operand is not None:
            add(("input", (n, i, operand.id)))
            if operand.body != body:
                captured.add(operand.id)
    if node.attributes:
        rows: list[Fact] = []
        for name, value in node.attributes.items():
            if type(value) is tuple:
                rows += _attribute_rows(name, value, tuple(map(type, value)))
            else:
                rows += _attribute_rows(name, value, (type(value),))
        facts += [(relation, (n, *rest)) for relation, rest in rows]
    for name in sorted(node.given) if len(node.given) > 1 else node.given:
        add(("attr_given", (n, name)))
    for i, result in enumerate(node.outputs):
        if result is not None:
            t = result.id
            add(("output", (n, i, t)))
            facts += [(relation, (t, *rest)) for relation, rest in _type_rows(result.type)]
            if result.kind != "tensor":
                add(("kind", (t, result.kind)))
    if body:
        add(("in_body", (n, body)))
        for t in sorted(captured):
            add(("captures", (n, t)))
    if node.bodies:
        facts += _body_facts(node)
    return facts


@lru_cache(maxsize=8192)
def _attribute_rows(name: str, value: Attribute, types: Hashable) -> tuple[Fact, ...]:
    """Facts about one attribute, without the node's id in front.

    ``types`` are the types of the value's items: they keep ``1``, ``1.0`` and ``True``, which are
    equal, apart in the cache.
    """
    if not isinstance(value, tuple):
        plain = value_of(value)
        return () if plain is None else (("attr", (name, plain)),)
    if len(value) > LISTED_ITEMS:
        return (("attr_len", (name, len(value))),)
    rows: list[Fact] = [("attr", (name, list_text(value))), ("attr_len", (name, len(value)))]
    for i, item in enumerate(value):
        if (plain := value_of(item)) is not None:
            rows.append(("attr_at", (name, i, plain)))
    return tuple(rows)


def _body_facts(node: Node) -> Iterator[Fact]:
    links: set[tuple[int, int]] = set()
    for which, body in sorted(node.bodies.items()):
        yield "body", (node.id, which, body.id)
        for i, tensor in enumerate(body.inputs):
            yield "body_input", (body.id, i, tensor.id)
        for i, result in enumerate(body.outputs):
            if result is not None:
                yield "body_output", (body.id, i, result.id)
        links.update(_links(node, body))
    for link in sorted(links):
        yield "body_link", link


def _links(node: Node, body: Body) -> Iterator[tuple[int, int]]:
    """Pairs of tensors that hold the same value on the two sides of a sub-graph's edge."""
    count = len(body.inputs)
    match node.op:
        case "if":
            yield from _zip(body.outputs, node.outputs)
        case "loop":  # operands: trip count, condition, state; formals: iteration, condition, state
            yield from _zip(node.inputs[1:], body.inputs[1:])
            yield from _zip(body.outputs, body.inputs[1:])
            yield from _zip(body.outputs[1:], node.outputs)
        case "scan":  # operands and formals: state, then what is scanned
            state = count - int(node.attributes.get("num_scan_inputs", count))  # type: ignore[arg-type]
            yield from _zip(node.inputs, body.inputs)
            yield from _zip(body.outputs[:state], body.inputs[:state])
            yield from _zip(body.outputs, node.outputs)
        case _:
            return


def _zip(
    sources: tuple[Tensor | None, ...], targets: tuple[Tensor | None, ...]
) -> Iterator[tuple[int, int]]:
    for source, target in zip(sources, targets, strict=False):
        if source is not None and target is not None:
            yield source.id, target.id


# --- tensors ---------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _type_rows(type: TensorType) -> tuple[Fact, ...]:
    """Facts that follow from a type, without the tensor's id in front."""
    rows: list[Fact] = [("tensor", ())]
    rows.append(("unknown_dtype", ()) if type.dtype is None else ("dtype", (type.dtype,)))
    if type.shape is None:
        rows.append(("unknown_rank", ()))
        return tuple(rows)
    rows.append(("rank", (len(type.shape),)))
    for axis, extent in enumerate(type.shape):
        if isinstance(extent, int):
            rows.append(("dim", (axis, extent)))
            continue
        if extent is not None:
            rows.append(("symbol", (axis, extent)))
        rows.append(("unknown_dim", (axis,)))
    if (count := type.elements) is not None:
        rows.append(("elems", (count,)))
    if (text := shape_text(type)) is not None:
        rows.append(("shape", (text,)))
    return tuple(rows)


def _source_facts(tensor: Tensor) -> list[Fact]:
    t = tensor.id
    facts: list[Fact] = [(relation, (t, *rest)) for relation, rest in _type_rows(tensor.type)]
    if tensor.kind != "tensor":
        facts.append(("kind", (t, tensor.kind)))
    match tensor.role:
        case Role.INPUT:
            facts.append(("graph_input", (t,)))
        case Role.INITIALIZER:
            facts.append(("initializer", (t,)))
            if tensor.overridable:
                facts.append(("overridable", (t,)))
            facts += ((name, (t, *rest)) for name, rest in value_rows(tensor))
        case _:
            pass
    return facts


def value_rows(tensor: Tensor) -> list[Fact]:
    """Facts about the value of an initializer, without its id in front."""
    array = tensor.value
    if array is None or tensor.overridable or array.size > EXAMINED_VALUES:
        return [("unknown_value", ())]
    dtype = tensor.type.dtype
    kind = DTYPES[dtype].kind if dtype in DTYPES else ""
    flat = array.reshape(-1)
    if flat.size == 0:
        return []
    match kind:
        case "float":
            return _float_rows(flat, dtype)
        case "int" | "uint":
            if DTYPES[dtype or ""].bits < 8:  # ml_dtypes: few ufuncs
                flat = flat.astype(np.int8)
            return _ordered_rows(flat, dtype, [("value_integral", ())])
        case "bool" | "string":
            return _symbol_rows(flat, kind)
        case _:  # complex: no column holds such a value
            return [("unknown_value", ())]


def _float_rows(flat: Array, dtype: str | None) -> list[Fact]:
    if dtype not in (
        "float16",
        "float32",
        "float64",
    ):  # ml_dtypes: few ufuncs, all exact in float32
        flat, dtype = flat.astype(np.float32), "float32"
    rows: list[Fact] = []
    nan = np.isnan(flat)
    has_nan = bool(nan.any())
    if has_nan:
        rows.append(("value_nan", ()))
    infinite = bool(np.isinf(flat).any())
    if infinite:
        rows.append(("value_inf", ()))
    if bool(((flat == 0) & np.signbit(flat)).any()):
        rows.append(("value_negzero", ()))
    if not has_nan and not infinite and bool((flat == np.trunc(flat)).all()):
        rows.append(("value_integral", ()))
    return _ordered_rows(flat, dtype, rows, nan if has_nan else None)


def _ordered_rows(
    flat: Array, dtype: str | None, rows: list[Fact], nan: Array | None = None
) -> list[Fact]:
    numbers = flat if nan is None else flat[~nan.astype(bool)]
    if numbers.size:
        low, high = _number(numbers.min(), dtype), _number(numbers.max(), dtype)
        rows.append(("value_min", (low,)))
        rows.append(("value_max", (high,)))
        if nan is None and low == high:
            rows.append(("value_all", (low,)))
    if flat.size <= LISTED_VALUES:
        for i, item in enumerate(flat):
            number = _number(item, dtype)
            if number == number:
                rows.append(("value_at", (i, number)))
    return rows


def _symbol_rows(flat: Array, kind: str) -> list[Fact]:
    def symbol(item: object) -> str:
        return ("true" if item else "false") if kind == "bool" else str(item)

    rows: list[Fact] = []
    if bool((flat == flat[0]).all()):
        rows.append(("value_all", (symbol(flat[0]),)))
    if flat.size <= LISTED_VALUES:
        rows += (("value_at", (i, symbol(item))) for i, item in enumerate(flat))
    return rows


def _number(item: np.generic, dtype: str | None) -> int | float:
    """A numpy number as Python's; short floats as the shortest decimal that rounds to them, so
    that a rule's ``0.1`` meets the float32 nearest to it."""
    if dtype == "float32" or dtype == "float16":
        return float(str(item))
    return float(item) if dtype == "float64" else int(item)
