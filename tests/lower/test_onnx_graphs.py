"""Whole graphs: names, constants, sharing, absence, emptiness, control flow."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import onnx
import pytest

from reprise.lower.lowering import lowering
from reprise.lower.onnx import DEFAULT_OPSET, LOWERING, to_onnx
from reprise.uir.graph import Graph, Role, TensorType
from reprise.uir.text import parse_uir
from tests.facts.onnx_text import imported
from tests.lower.onnx_models import check, inferred, run, session, signatures

OPSETS = (13, 15, 18, 21, 26)


def program(text: str) -> Graph:
    return parse_uir(text, "p.uir", signatures())


def names(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


DIAMOND = """
x: float32[2, 4]
a = relu(x)
b = exp(a)
c = add(a, b)
d = sum(c, axes=[1], keepdims=true)
e = mul(c, c)
f = transpose(e, perm=[1, 0])
g = matmul(f, e)
h = clip(g, min=-1.0, max=2.0)
i = slice(h, starts=[0], ends=[2], axes=[0])
j = softmax(i, axis=1)
output a
"""


@pytest.mark.parametrize("opset", OPSETS)
def test_a_graph_keeps_its_names_types_and_values(opset):
    graph = program(DIAMOND)
    model = to_onnx(graph, opset=opset)
    check(model)
    assert [i.name for i in model.graph.input] == ["x"]
    assert [o.name for o in model.graph.output] == [t.name for t in graph.outputs]
    assert inferred(model) == [t.type for t in graph.outputs]
    made = {name for node in model.graph.node for name in node.output}
    assert {t.name for t in graph.tensors if t.role is Role.COMPUTED} <= made
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    found = dict(zip([t.name for t in graph.outputs], run(model, {"x": x}), strict=True))
    a = np.maximum(x, 0)
    c = a + np.exp(a)
    np.testing.assert_allclose(found["a"], a)
    np.testing.assert_allclose(found["d"], c.sum(1, keepdims=True), rtol=1e-5)
    i = np.clip((c * c).T @ (c * c), -1, 2)[:2]
    np.testing.assert_allclose(found["j"], np.exp(i) / np.exp(i).sum(1, keepdims=True), rtol=1e-4)


def test_lists_that_onnx_takes_as_operands_have_readable_names():
    graph = program(DIAMOND)
    graph.nodes[8].name = "cut"
    constants = {t.name for t in to_onnx(graph).graph.initializer}
    assert {"cut/starts", "cut/ends", "cut/axes"} <= constants
    assert "h/min" in constants
    graph.nodes[7].name = ""
    assert f"n{graph.nodes[7].id}/min" in {t.name for t in to_onnx(graph).graph.initializer}


def test_names_that_are_taken_are_not_used_again():
    graph = Graph()
    x = graph.add_input("n/axes", TensorType("float32", (2, 3)))
    attributes = signatures().check("sum", [x.type], {"axes": (1,)}).attributes
    out = [("y", TensorType("float32", (2,)))]
    graph.outputs = list(graph.add_node("sum", [x], out, attributes, name="n").outputs)
    model = to_onnx(graph)
    check(model)
    assert [t.name for t in model.graph.initializer] == ["n/axes_2"]


def test_constants_may_be_nodes():
    text = "x: float32[2]; const c: float32[2] = [1.0, 2.0]; y = add(x, c); z = clip(y, min=0.0)"
    graph = program(text)
    inits, nodes = to_onnx(graph), to_onnx(graph, constants_as_nodes=True)
    check(nodes)
    assert not nodes.graph.initializer and names(nodes).count("Constant") == 2
    assert {t.name for t in inits.graph.initializer} == {
        n.output[0] for n in nodes.graph.node if n.op_type == "Constant"
    }
    x = np.array([-3.0, 1.0], np.float32)
    for a, b in zip(run(inits, {"x": x}), run(nodes, {"x": x}), strict=True):
        np.testing.assert_array_equal(a, b)


def test_types_of_intermediate_tensors_are_stated_if_asked_for():
    graph = program(DIAMOND)
    assert not to_onnx(graph).graph.value_info
    model = to_onnx(graph, value_info=True)
    check(model)
    assert {"b", "c", "e"} <= {info.name for info in model.graph.value_info}


def test_a_graph_without_inputs():
    graph = program("const c: float32[2] = [1.0, 2.0]; y = exp(c); z = full(shape=[2], value=3.0)")
    model = to_onnx(graph)
    check(model)
    y, z = run(model, {})
    np.testing.assert_allclose(y, np.exp([1, 2]), rtol=1e-6)
    np.testing.assert_array_equal(z, [3, 3])


def test_one_tensor_twice_into_a_node_and_consumed_outputs():
    graph = program("x: float32[3]; y = mul(x, x); z = add(y, y); output y")
    model = to_onnx(graph)
    check(model)
    x = np.array([1, 2, 3], np.float32)
    found = dict(zip([o.name for o in model.graph.output], run(model, {"x": x}), strict=True))
    np.testing.assert_array_equal(found["y"], x * x)
    np.testing.assert_array_equal(found["z"], 2 * x * x)


def test_an_output_named_twice_and_outputs_that_are_sources():
    graph = program("x: float32[3]; y = neg(x)")
    x, (y,) = graph.tensors[0], graph.nodes[0].outputs
    graph.outputs = [y, y, x]
    model = to_onnx(graph)
    check(model)
    assert len({o.name for o in model.graph.output}) == 3
    value = np.array([1, 2, 3], np.float32)
    for found, expected in zip(run(model, {"x": value}), [-value, -value, value], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_optional_operands_absent_in_the_middle():
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (4,)))
    most = graph.add_input("most", TensorType("float32", ()))
    graph.outputs = list(graph.add_node("clip", [x, None, most], [("y", x.type)], {}).outputs)
    model = to_onnx(graph)
    check(model)
    assert list(model.graph.node[0].input) == ["x", "", "most"]
    value = np.array([-5, 0, 1, 7], np.float32)
    (y,) = run(model, {"x": value, "most": np.array(1, np.float32)})
    np.testing.assert_array_equal(y, np.minimum(value, 1))


def test_results_that_nobody_reads_are_left_out_where_onnx_allows_it():
    text = "x: float32[1, 1, 4]; y, i = max_pool1d(x, kernel=[2]); v, w = topk(x, k=1); z = neg(y)"
    graph = program(text)
    wanted = {"z", "w"}
    graph.outputs = [t for t in graph.tensors if t.name in wanted]
    model = to_onnx(graph)
    check(model)
    pool, topk = (
        next(n for n in model.graph.node if n.op_type == op) for op in ("MaxPool", "TopK")
    )
    assert list(pool.output) == ["y"]
    assert list(topk.output) == ["v", "w"]


def test_an_operator_that_does_nothing_still_makes_its_result():
    graph = program("x: float32[2, 3]; y = roll(x, axes=[0], shifts=[2]); z = squeeze(x, axes=[])")
    model = to_onnx(graph)
    check(model)
    assert names(model) == ["Identity", "Identity"]


@pytest.mark.parametrize(
    "dtype", ["bool", "float16", "int8", "uint8", "int64", "float64", "string"]
)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 2)])
def test_element_types_scalars_and_nothing_at_all(dtype, shape):
    value = np.ones(shape, dtype) if dtype != "string" else np.full(shape, "é", object)
    graph = Graph()
    x = graph.add_input("x", TensorType(dtype, shape))
    c = graph.add_initializer("c", TensorType(dtype, shape), value)
    shape_of = graph.add_node(
        "shape", [x], [("s", TensorType("int64", (len(shape),)))], {"start": 0, "end": len(shape)}
    )
    axes = {"axes": (0,), "axis": 0}
    longer = graph.add_node("unsqueeze", [c], [("u", TensorType(dtype, (1, *shape)))], axes)
    graph.outputs = [*shape_of.outputs, *longer.outputs]
    model = to_onnx(graph)
    check(model)
    extents, again = run(model, {"x": value})
    assert list(extents) == list(shape)
    assert again.shape == (1, *shape)
    np.testing.assert_array_equal(again[0], value)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8e4m3fn", "bfloat16"])
def test_constants_of_types_that_numpy_lacks(dtype):
    text = f"x: float32[]; const c: {dtype}[3] = [1.0, 0.0, 2.0]; y = cast(c, to=float32)"
    if dtype in ("int4", "uint4"):
        text = text.replace("[1.0, 0.0, 2.0]", "[1, 0, 2]")
    model = to_onnx(program(text))
    check(model)
    index = [o.name for o in model.graph.output].index("y")
    outputs = run(model, {i.name: np.array(0, np.float32) for i in model.graph.input})
    np.testing.assert_array_equal(outputs[index], [1, 0, 2])


CONTROL = {
    "if": """
        g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] a) { a = Neg(x) },
                else_branch = e () => (float[2] b) {
                    k = Constant <value = float[2] {1, 2}> ()
                    b = Add(x, k)
                }
            >
        }""",
    "loop": """
        g (float[2] x, int64 n, bool c) => (float[2] y) {
            y = Loop (n, c, x) <
                body = b (int64 i, bool go, float[2] v) => (bool again, float[2] w) {
                    again = Identity(go)
                    w = Add(v, x)
                }
            >
        }""",
}
INPUTS = {
    "if": {"x": np.array([5, 7], np.float32), "c": np.array(False)},
    "loop": {"x": np.array([5, 7], np.float32), "n": np.array(3), "c": np.array(True)},
}


@pytest.mark.parametrize("op", sorted(CONTROL))
def test_sub_graphs(op):
    graph = imported(CONTROL[op])
    assert LOWERING.unsupported(op, [], {}) is None
    model = to_onnx(graph)
    check(model)
    (y,) = run(model, INPUTS[op])
    np.testing.assert_array_equal(y, [6, 9] if op == "if" else [20, 28])


def test_opset_and_ir_version_are_what_onnx_runtime_reads():
    graph = program(DIAMOND)
    for opset in range(13, 27):
        model = to_onnx(graph, opset=opset)
        assert model.opset_import[0].version == opset
        session(model)
    assert to_onnx(graph).opset_import[0].version == DEFAULT_OPSET


def test_an_initializer_without_a_value_is_refused():
    graph = Graph()
    c = graph.add_initializer("c", TensorType("float32", (2,)))
    graph.outputs = list(graph.add_node("neg", [c], [("y", c.type)], {}).outputs)
    with pytest.raises(ValueError, match="'c'"):
        to_onnx(graph)


def test_the_lowering_is_found_by_name_and_writes_bytes():
    found = lowering("onnx")
    assert found is LOWERING and found.name == "onnx"
    graph = program(DIAMOND)
    data = found.lower(graph)
    assert data == found.lower(graph)
    assert onnx.ModelProto.FromString(data) == to_onnx(graph)


def test_ten_nodes_take_less_than_half_a_millisecond():
    graph = program(DIAMOND)
    LOWERING.lower(graph)
    times = []
    for _ in range(200):
        start = time.process_time()
        LOWERING.lower(graph)
        times.append(time.process_time() - start)
    assert median(times) < 0.0005


SEVERAL = {
    "batch_norm": "s: float32[3]\ny, m, v = batch_norm(x, s, s, s, s, training=true)",
    "layer_norm": "s: float32[4]\ny, m, d = layer_norm(x, s, axis=2)",
    "max_pool1d": "y, i = max_pool1d(x, kernel=[2])",
    "topk": "y, i = topk(x, k=2)",
    "sort": "y, i = sort(x)",
    "dropout": "y, m = dropout(x)",
    "dynamic_quantize_linear": "y, s, z = dynamic_quantize_linear(x)",
    "attention": "y, k, v, s = attention(x, x, x)",
    "lstm": "w: float32[1, 8, 4]\nr: float32[1, 8, 2]\ny, h, c = lstm(x, w, r, hidden_size=2)",
    "gru": "w: float32[1, 6, 4]\nr: float32[1, 6, 2]\ny, h = gru(x, w, r, hidden_size=2)",
    "rnn": "w: float32[1, 2, 4]\nr: float32[1, 2, 2]\ny, h = rnn(x, w, r, hidden_size=2)",
}


@pytest.mark.parametrize("op", SEVERAL)
def test_any_results_may_be_left_out(op):
    text = f"x: float32[2, 3, 4]\n{SEVERAL[op]}\n"
    results = SEVERAL[op].splitlines()[-1].split(" = ")[0].split(", ")
    for asked in range(1, 2 ** len(results)):
        kept = [name if asked >> i & 1 else "_" for i, name in enumerate(results)]
        model = to_onnx(program(text.replace(", ".join(results) + " =", ", ".join(kept) + " =")))
        check(model)
        inferred(model)
        session(model)
        assert [o.name for o in model.graph.output] == [name for name in kept if name != "_"]
