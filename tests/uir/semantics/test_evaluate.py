"""Whole programs: outputs in order, types as declared, in the stored precision and in float64."""

from __future__ import annotations

import time

import numpy as np
import pytest

from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, TensorType
from reprise.uir.program import Program
from reprise.uir.semantics import (
    Cause,
    SemanticsError,
    apply,
    evaluate,
    evaluate_all,
    fragile_nodes,
)
from reprise.uir.text import parse_uir


def graph(text: str, signatures: Signatures) -> Graph:
    return parse_uir(text, "test.uir", signatures)


def test_outputs_come_in_their_order(signatures):
    g = graph("x: float32[2]\ny = neg(x)\nz = exp(x)\noutput z\noutput y\n", signatures)
    x = np.array([0.0, 1.0], np.float32)
    z, y = evaluate(g, {"x": x})
    assert z.tolist() == pytest.approx([1, np.e]) and y.tolist() == [0, -1]


def test_a_program_brings_its_own_inputs(signatures):
    g = graph("x: int32[2]\ny = add(x, x)\n", signatures)
    program = Program(g, {"x": np.array([1, 2], np.int32)})
    assert evaluate(program)[0].tolist() == [2, 4]
    assert evaluate(program, {"x": np.array([5, 5], np.int32)})[0].tolist() == [10, 10]


def test_every_tensor_has_a_value(signatures):
    g = graph("x: float32[2, 2]\na, b = topk(x, k=1)\nc = sum(a)\n", signatures)
    values = evaluate_all(g, {"x": np.eye(2, dtype=np.float32)})
    assert {t.id for t in g.tensors} == set(values)
    for tensor in g.tensors:
        assert values[tensor.id].shape == tensor.type.shape
        assert str(values[tensor.id].dtype) == tensor.type.dtype


def test_widening_computes_every_float_in_float64(signatures):
    text = (
        "x: float16[3]\ni: int32[3]\nh = cast(x, to=float32)\nn = cast(h, to=float16)\n"
        "s = sum(n)\nk = cast(h, to=int32)\nm = add(k, i)\nb = less(x, n)\n"
    )
    g = graph(text, signatures)
    feeds = {"x": np.array([0.1, 0.2, 3.7], np.float16), "i": np.arange(3, dtype=np.int32)}
    values = evaluate_all(g, feeds, widen=True)
    types = {t.name: str(values[t.id].dtype) for t in g.tensors}
    floats = dict.fromkeys(("x", "h", "n", "s"), "float64")
    assert types == {**floats, "i": "int32", "k": "int32", "m": "int32", "b": "bool"}
    named = {t.name: values[t.id] for t in g.tensors}
    assert named["s"] == feeds["x"].astype(np.float64).sum()
    assert named["m"].tolist() == [0, 1, 5]


def test_widening_keeps_what_rounding_to_the_declared_type_would_lose(signatures):
    g = graph(
        "x: float32[1]\na = full(shape=[1], value=16777216.0)\nb = add(a, x)\nc = sub(b, a)\n",
        signatures,
    )
    feeds = {"x": np.array([1.0], np.float32)}
    assert evaluate(g, feeds)[0].tolist() == [0]
    assert evaluate(g, feeds, widen=True)[0].tolist() == [1]


def test_a_bitcast_reads_declared_bits_also_when_widening(signatures):
    g = graph("x: float32[1]\ny = bitcast(x, to=int32)\nz = bitcast(y, to=float32)\n", signatures)
    values = evaluate_all(g, {"x": np.array([1.0], np.float32)}, widen=True)
    named = {t.name: values[t.id] for t in g.tensors}
    assert named["y"].tolist() == [0x3F800000]
    assert named["z"].dtype == np.float64 and named["z"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "'x' has no value"),
        ({"x": np.zeros(2)}, "'x' is float64, not float32"),
        ({"x": np.zeros(3, np.float32)}, r"computed shape \[3\], not float32\[2\]"),
    ],
)
def test_inputs_must_be_as_declared(signatures, feeds, message):
    g = graph("x: float32[2]\ny = neg(x)\n", signatures)
    with pytest.raises(SemanticsError, match=message):
        evaluate(g, feeds)


def test_results_must_be_as_the_signature_says():
    x = np.zeros(2, np.float32)
    with pytest.raises(SemanticsError, match="computed float32, its signature says int32"):
        apply("neg", [x], {}, [TensorType("int32", (2,))])
    with pytest.raises(SemanticsError, match="computed shape"):
        apply("neg", [x], {}, [TensorType("float32", (3,))])
    with pytest.raises(SemanticsError, match="computed 1 results, not 2"):
        apply("neg", [x], {}, [TensorType("float32", (2,))] * 2)
    with pytest.raises(SemanticsError, match="add: ValueError"):
        apply("add", [x, np.zeros(3, np.float32)], {}, [TensorType("float32", (2,))])


def test_nodes_with_implementation_defined_results_are_found(signatures):
    g = graph("x: float32[2]\ny = cast(x, to=int8)\nz = argmax(x)\n", signatures)
    values = evaluate_all(g, {"x": np.array([1e9, 1e9], np.float32)})
    found = fragile_nodes(g, values)
    assert [list(c.values()) for c in found.values()] == [[Cause.CONVERSION], [Cause.TIE]]


def test_unfinished_graphs_are_refused(signatures):
    g = Graph()
    c = g.add_initializer("c", TensorType("float32", (2,)))
    n = g.add_node("neg", [c], [("y", c.type)])
    g.outputs.append(n.outputs[0])  # type: ignore[arg-type]
    with pytest.raises(SemanticsError, match="'c' was not loaded"):
        evaluate(g, {})


@pytest.mark.slow
def test_a_program_of_ten_nodes_takes_little_time(signatures):
    text = (
        "x: float32[4, 4]\ny: float32[4, 4]\na = add(x, y)\nb = relu(a)\nc = matmul(b, y)\n"
        "d = softmax(c)\ne = transpose(d)\nf = mul(e, x)\ng = sum(f, axis=1, keepdims=true)\n"
        "h = exp(g)\ni = div(x, h)\nj = tanh(i)\n"
    )
    g = graph(text, signatures)
    rng = np.random.default_rng(0)
    feeds = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in "xy"}
    best = float("inf")
    for _ in range(200):
        start = time.perf_counter()
        evaluate(g, feeds)
        best = min(best, time.perf_counter() - start)
    assert best < 500e-6  # about 60 µs on an idle machine
