"""Models written as ONNX text, and what every set of facts must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

from reprise.facts.facts import Fact, entity_facts, facts_of
from reprise.facts.onnx_import import Limits, import_model
from reprise.lang.core import SCALAR_TYPES, Relation, Value
from reprise.uir.graph import Graph, Node


def onnx_model(text: str, *, opset: int = 17, ir_version: int = 10) -> onnx.ModelProto:
    """A model from the text of its graph: ``g (float[2] x) => (float[2] y) { y = Relu(x) }``."""
    header = ""
    if not text.lstrip().startswith("<"):
        header = f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>'
    model: onnx.ModelProto = onnx.parser.parse_model(header + text)
    return model


def import_proto(model: onnx.ModelProto) -> Graph:
    return import_model(model, Path("m.onnx"), Limits())


def imported(text: str, *, opset: int = 17, ir_version: int = 10) -> Graph:
    """The graph of a model in ONNX text."""
    return import_proto(onnx_model(text, opset=opset, ir_version=ir_version))


def one_node(
    op: str,
    operands: Sequence[tuple[str, Sequence[int | str | None] | None] | np.ndarray[Any, Any] | None],
    opset: int,
    outputs: int = 1,
    **attributes: Any,
) -> Graph:
    """A model of one node: operands are inputs (element type, shape), constants or absent."""
    names: list[str] = []
    inputs, initializers = [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, np.ndarray):
            initializers.append(numpy_helper.from_array(operand, f"x{i}"))
        elif operand is not None:
            code = getattr(onnx.TensorProto, operand[0].upper())
            inputs.append(helper.make_tensor_value_info(f"x{i}", code, operand[1]))
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph(
        [node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in results], initializers
    )
    return import_proto(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    )


def check_well_formed(graph: Graph, vocabulary: dict[str, Relation]) -> int:
    """Check what the engine relies on, and return the number of facts.

    Every row fits its declaration; keys determine rows; batches come oldest first; a fact about
    an entity comes in the entity's batch; what a node reads is older, its outputs come with it.
    """
    seen: dict[tuple[str, Any], Any] = {}
    last = -1
    for entity in graph.entities():
        assert entity.id > last
        last = entity.id
        batch = entity_facts(entity)
        own = {entity.id}
        if isinstance(entity, Node):
            own |= {t.id for t in entity.outputs if t is not None}
            assert all(t is None or t.id < entity.id for t in entity.inputs)
            assert own == set(range(entity.id, entity.id + len(own)))
        for fact in batch:
            _check_row(fact, vocabulary[fact[0]], seen)
            _check_owner(fact, vocabulary[fact[0]], own, entity.id)
    count = 0
    entity_rows = len(seen)
    for fact in facts_of(graph, environment={"isa": "avx2"}):
        count += 1
        if fact[0] in ("opset", "env", "graph_output"):
            _check_row(fact, vocabulary[fact[0]], seen)
    assert count == len(seen) >= entity_rows
    return count


def _check_row(fact: Fact, relation: Relation, seen: dict[tuple[str, Any], Any]) -> None:
    name, row = fact
    assert len(row) == relation.arity, fact
    for column, value in zip(relation.columns, row, strict=True):
        assert _fits(value, column.type), fact
    keyed = any(column.key for column in relation.columns)
    key = tuple(
        (type(value), value)
        for column, value in zip(relation.columns, row, strict=True)
        if column.key or not keyed
    )
    assert (name, key) not in seen, fact
    seen[name, key] = row


def _fits(value: Value, type_: str) -> bool:
    match type_:
        case "sym" | "bool":
            return type(value) is str
        case "any":
            return type(value) in (int, float, str) and value == value
        case "float":
            return type(value) is float
        case _:
            assert type_ == "int" or type_ not in SCALAR_TYPES
            return type(value) is int


def _check_owner(fact: Fact, relation: Relation, own: set[int], entity: int) -> None:
    for column, value in zip(relation.columns, fact[1], strict=True):
        if column.name in relation.older:
            assert isinstance(value, int) and value < entity, fact
        if column.name in relation.same:
            assert value in own, fact
    if relation.entity:
        keys = [c for c in relation.columns if c.key] or relation.columns
        owner = next(c for c in keys if c.type not in SCALAR_TYPES)
        assert fact[1][relation.columns.index(owner)] in own, fact
