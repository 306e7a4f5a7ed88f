"""Facts of tensors, attributes and values; the vocabulary and its documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from reprise.facts.facts import entity_facts, facts_of, list_text, shape_text, value_of
from reprise.facts.onnx_import import load_onnx
from reprise.lang.core import Relation, Row
from reprise.uir.graph import Array, Graph, TensorType
from tests.conftest import ROOT
from tests.facts.onnx_text import check_well_formed, import_proto, onnx_model

CASES = Path(__file__).parent / "cases"
"""Models behind six public bug reports, each with a near miss."""


def facts_about(graph: Graph, entity: int) -> set[tuple[str, Row]]:
    """Facts whose first column is the entity, without it."""
    return {
        (name, row[1:])
        for name, row in facts_of(graph)
        if row[0] == entity and name not in ("opset", "env")
    }


def stored(value: Array, dtype: str, *, overridable: bool = False) -> set[tuple[str, Row]]:
    """Value facts of an initializer."""
    graph = Graph()
    tensor = graph.add_initializer("w", TensorType(dtype, value.shape), value)
    tensor.overridable = overridable
    return {
        (name, row)
        for name, row in facts_about(graph, tensor.id)
        if name.startswith(("value", "unknown_v", "over"))
    }


# --- tensors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "facts"),
    [
        (
            TensorType("float32", (4, 17)),
            {
                ("dtype", ("float32",)),
                ("rank", (2,)),
                ("dim", (0, 4)),
                ("dim", (1, 17)),
                ("elems", (68,)),
                ("shape", ("4x17",)),
            },
        ),
        (
            TensorType("bool", ()),
            {("dtype", ("bool",)), ("rank", (0,)), ("elems", (1,)), ("shape", ("scalar",))},
        ),
        (
            TensorType("int8", ("N", 3)),
            {
                ("dtype", ("int8",)),
                ("rank", (2,)),
                ("symbol", (0, "N")),
                ("unknown_dim", (0,)),
                ("dim", (1, 3)),
                ("shape", ("Nx3",)),
            },
        ),
        (
            TensorType(None, (None, 0)),
            {
                ("unknown_dtype", ()),
                ("rank", (2,)),
                ("unknown_dim", (0,)),
                ("dim", (1, 0)),
            },
        ),
        (TensorType("float16", None), {("dtype", ("float16",)), ("unknown_rank", ())}),
    ],
)
def test_types_are_facts(type_: TensorType, facts: set[tuple[str, Row]]) -> None:
    graph = Graph()
    x = graph.add_input("x", type_)
    assert facts_about(graph, x.id) == facts | {("tensor", ()), ("graph_input", ())}


def test_shapes_as_text() -> None:
    assert shape_text(TensorType("int8", (2, "N", 3))) == "2xNx3"
    assert shape_text(TensorType("int8", ())) == "scalar"
    assert shape_text(TensorType("int8", (2, None))) is None
    assert shape_text(TensorType("int8", None)) is None


def test_what_is_no_tensor_has_a_kind() -> None:
    graph = import_proto(onnx_model("g (seq(float[2]) s) => (seq(float[2]) t) { t = Identity(s) }"))
    for tensor in graph.tensors:
        assert {("kind", ("sequence",)), ("unknown_rank", ()), ("unknown_dtype", ())} < facts_about(
            graph, tensor.id
        )


# --- values ----------------------------------------------------------------------------------


def test_a_constant_that_is_one_number() -> None:
    assert stored(np.full((100,), 0.1, np.float32), "float32") == {
        ("value_all", (0.1,)),
        ("value_min", (0.1,)),
        ("value_max", (0.1,)),
    }


def test_a_constant_of_few_elements_lists_them() -> None:
    assert stored(np.array([[1, -2], [3, 3]]), "int64") == {
        ("value_min", (-2,)),
        ("value_max", (3,)),
        ("value_integral", ()),
        *{("value_at", (i, v)) for i, v in enumerate([1, -2, 3, 3])},
    }


def test_special_floats_are_named_and_nan_is_no_value() -> None:
    assert stored(np.array([np.nan, -np.inf, -0.0]), "float64") == {
        ("value_nan", ()),
        ("value_inf", ()),
        ("value_negzero", ()),
        ("value_min", (-np.inf,)),
        ("value_max", (-0.0,)),
        ("value_at", (1, -np.inf)),
        ("value_at", (2, -0.0)),
    }
    assert stored(np.array([np.nan]), "float64") == {("value_nan", ())}


def test_no_element_has_no_value() -> None:
    assert stored(np.zeros((0, 3), np.float32), "float32") == set()


def test_booleans_and_strings_are_symbols() -> None:
    assert stored(np.array([True, True]), "bool") == {
        ("value_all", ("true",)),
        ("value_at", (0, "true")),
        ("value_at", (1, "true")),
    }
    words: Array = np.array(["a", "b"], dtype=object)
    assert stored(words, "string") == {("value_at", (0, "a")), ("value_at", (1, "b"))}


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("bfloat16", ml_dtypes.bfloat16),
        ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
        ("float4e2m1", ml_dtypes.float4_e2m1fn),
        ("float16", np.float16),
    ],
)
def test_narrow_floats_are_numbers(dtype: str, kind: Any) -> None:
    facts = stored(np.array([0.5, 1.5]).astype(kind), dtype)
    assert facts >= {("value_min", (0.5,)), ("value_max", (1.5,)), ("value_at", (1, 1.5))}
    assert ("value_integral", ()) not in facts


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "int8", "uint64"])
def test_narrow_integers_are_numbers(dtype: str) -> None:
    array = np.array([0, 1]).astype(getattr(ml_dtypes, dtype, None) or dtype)
    facts = stored(array, dtype)
    assert facts >= {("value_min", (0,)), ("value_max", (1,)), ("value_integral", ())}


def test_complex_values_are_not_described() -> None:
    assert stored(np.array([1j]), "complex128") == {("unknown_value", ())}


def test_what_was_not_loaded_or_may_be_replaced_is_unknown() -> None:
    graph = Graph()
    tensor = graph.add_initializer("w", TensorType("float32", (3,)), None)
    assert ("unknown_value", ()) in facts_about(graph, tensor.id)
    assert stored(np.ones(3, np.float32), "float32", overridable=True) == {
        ("unknown_value", ()),
        ("overridable", ()),
    }
    assert stored(np.zeros(1_000_001, np.int8), "int8") == {("unknown_value", ())}


# --- nodes -----------------------------------------------------------------------------------


def test_attributes_keep_their_types() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    attributes = {
        "whole": 1,
        "real": 1.0,
        "flag": True,
        "word": "linear",
        "nan": float("nan"),
        "perm": (1, 0),
        "scales": (1.0, 2.5),
        "flags": (True, False),
        "none": (),
    }
    node = graph.add_node("f", [x], [], attributes, given=frozenset({"word", "perm"}))
    attrs = {row: name for name, row in facts_about(graph, node.id) if name.startswith("attr")}
    values = {row[0]: row[1] for row, name in attrs.items() if name == "attr"}
    assert values == {
        "whole": 1,
        "real": 1.0,
        "flag": "true",
        "word": "linear",
        "perm": "[1, 0]",
        "scales": "[1.0, 2.5]",
        "flags": "[true, false]",
        "none": "[]",
    }
    assert type(values["whole"]) is int
    assert type(values["real"]) is float
    lengths = {row for row, name in attrs.items() if name == "attr_len"}
    assert lengths == {("perm", 2), ("scales", 2), ("flags", 2), ("none", 0)}
    items = {row for row, name in attrs.items() if name == "attr_at"}
    assert items >= {("perm", 0, 1), ("perm", 1, 0), ("scales", 1, 2.5), ("flags", 1, "false")}
    assert {row for row, name in attrs.items() if name == "attr_given"} == {("word",), ("perm",)}


def test_equal_attributes_of_different_types_are_not_mixed_up() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    for value, text in (((1, 1), "[1, 1]"), ((1.0, 1.0), "[1.0, 1.0]"), ((True, 1), "[true, 1]")):
        node = graph.add_node("f", [x], [], {"a": value})
        assert ("attr", (node.id, "a", text)) in entity_facts(node)


def test_long_lists_have_a_length_only() -> None:
    graph = Graph()
    node = graph.add_node("f", [], [], {"a": tuple(range(257))})
    names = [fact for fact in entity_facts(node) if fact[0].startswith("attr")]
    assert names == [("attr_len", (node.id, "a", 257))]


def test_absent_operands_and_results_keep_positions() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    node = graph.add_node("f", [x, None, x, None], [None, ("y", TensorType("int8", ()))])
    facts = facts_about(graph, node.id)
    assert facts >= {("arity", (3,)), ("input", (0, x.id)), ("input", (2, x.id))}
    assert facts >= {("results", (2,)), ("output", (1, node.id + 1))}
    assert not any(name == "input" and row[0] == 1 for name, row in facts)


def test_the_surroundings_are_facts() -> None:
    graph = Graph(opsets={"": 17, "my": 1})
    environment = {"isa": "avx2", "level": 3, "debug": False, "bad": float("nan")}
    assert list(facts_of(graph, environment=environment)) == [
        ("opset", ("", 17)),
        ("opset", ("ai.onnx", 17)),
        ("opset", ("my", 1)),
        ("env", ("debug", "false")),
        ("env", ("isa", "avx2")),
        ("env", ("level", 3)),
    ]


def test_outputs_of_the_graph_come_last_and_once() -> None:
    graph = import_proto(onnx_model("g (float[2] x) => (y, x, y) { y = Relu(x) }"))
    assert list(facts_of(graph))[-2:] == [
        ("graph_output", (graph.outputs[0].id,)),
        ("graph_output", (graph.outputs[1].id,)),
    ]


def test_values_of_columns() -> None:
    assert [value_of(v) for v in (True, False, 1, 1.5, "a")] == ["true", "false", 1, 1.5, "a"]
    assert value_of(float("nan")) is None
    assert list_text((1, -0.5, "x", True)) == "[1, -0.5, x, true]"


# --- the six reference cases, and the documentation ------------------------------------------


@pytest.mark.parametrize("path", sorted(CASES.glob("*.onnx")), ids=lambda path: path.stem)
def test_the_reference_cases_load_in_uir(path: Path, vocabulary: dict[str, Relation]) -> None:
    graph = load_onnx(path)
    assert check_well_formed(graph, vocabulary) > 50
    assert graph.notes == []
    assert not any("." in node.op for node in graph.nodes)
    assert all(tensor.type.elements is not None for tensor in graph.tensors)


def test_every_relation_is_documented(vocabulary: dict[str, Relation]) -> None:
    page = (ROOT / "docs" / "facts.md").read_text()
    rules = (ROOT / "rules" / "std" / "graph.rules").read_text()
    for name in re.findall(r"^relation (\w+)", rules, re.MULTILINE):
        assert vocabulary[name].doc, name
        assert f"`{name}(" in page, name
