"""Reading and printing UIR programs."""

from __future__ import annotations

import numpy as np
import pytest

from reprise.lang.diagnostics import RulesError
from reprise.lang.parse import parse_program
from reprise.uir.graph import Graph, Role, TensorType
from reprise.uir.text import parse_uir, print_uir, read_givens


@pytest.fixture
def read(signatures):
    return lambda text: parse_uir(text, "t.uir", signatures)


@pytest.fixture
def problems(signatures):
    def found(text):
        with pytest.raises(RulesError) as caught:
            parse_uir(text, "t.uir", signatures)
        return caught.value.diagnostics

    return found


def types(graph):
    return {tensor.name: str(tensor.type) for tensor in graph.tensors}


def test_a_program_becomes_a_typed_graph(read):
    graph = read("x: float32[4, 17]; s = softmax(x, axis=-1); t = sum(s, axis=1); f = floor(t)")
    assert types(graph) == {
        "x": "float32[4, 17]",
        "s": "float32[4, 17]",
        "t": "float32[4]",
        "f": "float32[4]",
    }
    softmax, total, floor = graph.nodes
    assert softmax.attributes == {"axis": 1}
    assert softmax.given == {"axis"}
    assert total.attributes == {"axes": (1,), "axis": 1, "keepdims": False}
    assert total.given == {"axis"}
    assert floor.inputs == (total.outputs[0],)
    assert [tensor.name for tensor in graph.outputs] == ["f"]
    assert [type(e).__name__ for e in graph.entities()] == ["Tensor", "Node", "Node", "Node"]


def test_outputs_are_what_nobody_reads_and_what_is_declared(read):
    graph = read("x: float32[2]; a = relu(x); b = exp(a); c = neg(a); output a, x")
    assert [tensor.name for tensor in graph.outputs] == ["a", "x", "b", "c"]


def test_an_input_that_nobody_reads_is_no_output(read):
    graph = read("x: float32[2]; y: float32[2]; a = relu(x)")
    assert [tensor.name for tensor in graph.outputs] == ["a"]


def test_constants_have_values(read):
    graph = read(
        "const a: float32[2, 2] = 0.5  const b: int8[3] = [1, -2, 3]  const c: bool[] = true"
        ' const d: string[2] = ["u", "v"]  const e: float16[3] = [inf, -inf, nan]'
        " const f: float32[2, 2] = [[1, 2], [3, 4]]  const g: float32[7]  const h: bfloat16[1] = 2"
    )
    values = {tensor.name: tensor.value for tensor in graph.tensors}
    assert all(tensor.role is Role.INITIALIZER for tensor in graph.tensors)
    assert np.array_equal(values["a"], np.full((2, 2), 0.5, np.float32))
    assert values["b"].tolist() == [1, -2, 3]
    assert values["b"].dtype == np.int8
    assert values["c"].shape == ()
    assert values["c"]
    assert values["d"].tolist() == ["u", "v"]
    assert np.isinf(values["e"][:2]).all()
    assert np.isnan(values["e"][2])
    assert values["f"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert values["g"] is None
    assert float(values["h"][0]) == 2.0


def test_unknown_symbolic_and_unranked_shapes(read):
    graph = read('x: float32[N, ?, 3, "past + 1"]; y: float32[...]; z = relu(x); w = exp(y)')
    by_name = {tensor.name: tensor.type for tensor in graph.tensors}
    assert by_name["z"] == TensorType("float32", ("N", None, 3, "past + 1"))
    assert by_name["w"] == TensorType("float32", None)


def test_results_by_name_and_by_number(read):
    graph = read("x: float32[9]; v, i = topk(x, k=2); t = topk(x, k=3); a = neg(t[1]); b = neg(t)")
    first, second, a, b = graph.nodes
    assert [t.name for t in first.outputs] == ["v", "i"]
    assert a.inputs == (second.outputs[1],)
    assert b.inputs == (second.outputs[0],)
    assert str(a.outputs[0].type) == "int64[3]"
    assert [t.name for t in graph.outputs] == ["v", "i", "a", "b"]


def test_further_results_exist_only_if_something_asks_for_them(read):
    graph = read("x: float32[1, 1, 4, 4]; p = max_pool2d(x, kernel=[2, 2]); q = relu(p)")
    assert len(graph.nodes[0].outputs) == 1


def test_calls_nest(read):
    graph = read("x: float32[2]; y = add(floor(exp(x)), floor(x))")
    assert [node.op for node in graph.nodes] == ["exp", "floor", "floor", "add"]
    assert len({tensor.name for tensor in graph.tensors}) == 5


def test_absent_operands_are_absent(read):
    graph = read("x: float32[2]; h: float32[]; y = clip(x, none, h)")
    assert graph.nodes[0].inputs == (graph.tensors[0], None, graph.tensors[1])
    trailing = read("x: float32[2, 2]; y = gemm(x, x, none)")
    assert len(trailing.nodes[0].inputs) == 2


def test_foreign_operators_have_the_types_that_are_stated(read):
    graph = read("x: float32[2]; y: float32[2, 3], z: int64[...] = onnx.Foo(x, alpha=2, b=[1, 0])")
    assert types(graph) == {"x": "float32[2]", "y": "float32[2, 3]", "z": "int64[...]"}
    assert graph.nodes[0].op == "onnx.Foo"
    assert graph.nodes[0].attributes == {"alpha": 2, "b": (1, 0)}
    untyped = read("x: float32[2]; y = onnx.Foo(x); z = neg(y)")
    assert types(untyped)["z"] == "?[...]"


def test_a_stated_type_may_say_more_than_the_signature(read):
    graph = read("x: float32[N, 2]; y: int64[2, 7] = non_zero(x); z: float32[5, 2] = relu(x)")
    assert types(graph)["y"] == "int64[2, 7]"
    assert types(graph)["z"] == "float32[5, 2]"


def test_opsets_belong_to_the_graph_and_other_facts_are_given(read):
    text = 'opset("ai.onnx", 17)  opset("com.acme", 2)  env(isa, avx512)  env(threads, 4)'
    graph = read(text)
    assert graph.opsets == {"": 17, "com.acme": 2}
    givens = read_givens(parse_program(text, "t.uir"))
    assert givens == (("env", ("isa", "avx512")), ("env", ("threads", 4)))


def test_control_flow_has_stated_types(read):
    graph = read("c: bool[]; y: float32[2], z: int64[] = if(c)")
    assert types(graph) == {"c": "bool[]", "y": "float32[2]", "z": "int64[]"}


@pytest.mark.parametrize(
    ("text", "code", "column", "words"),
    [
        ("x: float33[2]", "unknown-dtype", 4, "`float33` is no dtype"),
        ("x: float32[2]; y = rlu(x)", "unknown-operator", 20, "no operator `rlu`"),
        ("x: float32[2]; y = relu(z)", "unknown-tensor", 25, "no tensor `z`"),
        ("x: float32[2]; x: int8[1]", "duplicate-name", 16, "`x` is already defined"),
        ("x: float32[2]; y = softmax(x, axs=1)", "unknown-attribute", 31, "no attribute `axs`"),
        ("x: float32[2]; y = softmax(x, axis=7)", "axis", 20, "no axis 7 in rank 1"),
        ("x: float32[2]; y, z = relu(x)", "result-count", 23, "`relu` has 1 result, not 2"),
        ("x: float32[2]; y = relu|exp(x)", "pattern-form", 20, "one operator"),
        ("x: float32[2]; y = add{x, x}", "pattern-form", 20, "in order"),
        ("x: float32[2]; y = add(x, _)", "pattern-form", 27, "only a pattern"),
        ("x: float32[2]; y = softmax(x, axis=in 0..1)", "pattern-form", 31, "only a pattern"),
        ("x: float32[2]; y = elu(x, alpha=A)", "bad-attribute", 27, "`alpha` needs a value"),
        ("x: float32[2 * 3]", "bad-extent", 12, "a number, a name or `?`"),
        ("x: float32[-1]", "bad-extent", 12, "0 or more"),
        ("const x: int8[1] = 200", "bad-constant", 1, "200 is no int8"),
        ("const x: int8[2] = [1]", "bad-constant", 1, "1 elements do not fill int8[2]"),
        ("const x: int8[N] = 1", "bad-constant", 1, "needs a known shape"),
        ("x: float32[2]; y: float32[3] = relu(x)", "type-mismatch", 32, "not float32[3]"),
        ("x: float32[2]; output y", "unknown-tensor", 23, "no tensor `y`"),
    ],
)
def test_mistakes_are_shown_where_they_are(problems, text, code, column, words):
    (problem,) = problems(text)
    assert problem.code == code
    assert words in problem.message
    assert (problem.span.line, problem.span.column) == (1, column)


def test_all_mistakes_are_found_and_none_twice(problems):
    found = problems("x: float33[2]\ny = relu(x)\nz = rlu(y)\nw: float32[2]\nv = add(w, u)")
    assert [(d.code, d.span.line) for d in found] == [
        ("unknown-dtype", 1),
        ("unknown-operator", 3),
        ("unknown-tensor", 5),
    ]


def test_printing_shows_types_and_what_was_written(read):
    text = (
        'opset("ai.onnx", 17)\n'
        "x: float32[N, 3, ?, 8]\n"
        "const w: float32[6, 3, 3, 3] = 0.5\n"
        "const b: float32[3] = [1.0, nan, -inf]\n"
        "c: float32[N, 6, ?, 8] = conv2d(x, w, pad=1)\n"
        "y: float32[2, 3], z: int8[...] = onnx.Foo(c, none, b, alpha=1.5, mode=bar)\n"
        'p: float32[4, 5] = pad(y, pads=[1, 1, 1, 1], mode="none")\n'
        "output c\n"
    ).replace('mode="none"', "mode=edge")
    assert print_uir(read(text)) == text


def test_printing_makes_identifiers_of_other_names():
    graph = Graph()
    kind = TensorType("float32", (2,))
    x = graph.add_input("/layer.0/X:0", kind)
    y = graph.add_initializer("9", kind)
    node = graph.add_node("add", [x, y], [("none", kind)])
    graph.add_node("relu", [node.outputs[0]], [("layer_0_x_0", kind)])
    assert print_uir(graph) == (
        "layer_0_x_0_1: float32[2]\n"
        "const t_9: float32[2]\n"
        "none_1: float32[2] = add(layer_0_x_0_1, t_9)\n"
        "layer_0_x_0: float32[2] = relu(none_1)\n"
    )


def test_large_constants_can_be_left_out(read):
    graph = read("const w: float32[3] = [1, 2, 3]; y = relu(w)")
    assert "const w: float32[3]\n" in print_uir(graph, limit=2)
    assert "[1.0, 2.0, 3.0]" in print_uir(graph, limit=3)


def test_results_that_are_not_asked_for_are_underscores(read, problems):
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (9,)))
    graph.add_node("topk", [x], [None, ("i", TensorType("int64", (2,)))], {"k": 2}, given={"k"})
    text = "x: float32[9]\n_, i: int64[2] = topk(x, k=2)\n"
    assert print_uir(graph) == text
    again = read(text)
    assert print_uir(again) == text
    assert again.nodes[0].outputs[0] is None
    assert [t.name for t in again.outputs] == ["i"]
    (problem,) = problems("x: float32[9]; _ = relu(x)")
    assert "at least one result" in problem.message
    (problem,) = problems("_: float32[9]")
    assert "needs a name" in problem.message


def test_claims_of_great_size_cost_nothing(read, problems):
    graph = read("const w: float32[100_000, 100_000] = 0.0; const v: int8[1_000_000] = 1")
    assert graph.tensors[0].value is None
    assert graph.tensors[1].value.shape == (1_000_000,)
    ranks = ", ".join(["1"] * 70)
    assert read(f"const w: float32[{ranks}] = 0.0").tensors[0].value is None
    huge = "9" * 400
    assert [d.code for d in problems(f"const w: float32[1] = {huge}")] == ["bad-constant"]
    assert [d.code for d in problems(f"x: float32[1]; y = elu(x, alpha={huge})")] == [
        "attribute-type"
    ]
    for line in (
        "s: int64[999_999_999]; y = constant_of_shape(s)",
        "x: float32[999_999_999]; y = chunk(x, chunks=999_999_999)",
    ):
        assert [d.code for d in problems(line)] == ["shape"]
    assert read("const w: float16[1] = 1e9").tensors[0].value[0] == np.inf


def test_what_no_program_can_say_is_left_out(read):
    graph = Graph()
    kind = TensorType("float32", (1,))
    w = graph.add_initializer("w", kind, np.ones(1, np.float32))
    w.overridable = True
    node = graph.add_node("if", [w], [("y", kind)])
    node.bodies = {"then_branch": graph.new_body()}
    assert print_uir(graph) == (
        "w: float32[1]  // an input with a value of its own, which is left out\n"
        "y: float32[1] = if(w)  // sub-graphs left out: then_branch\n"
    )
    assert read(print_uir(graph)).tensors[0].role is Role.INPUT


def test_deep_nesting_is_read_or_refused(signatures):
    text = "x: float32[1]; y = " + "relu(" * 3000 + "x" + ")" * 3000
    try:
        graph = parse_uir(text, "t.uir", signatures)
    except RulesError:
        return
    assert len(graph.nodes) == 3000
