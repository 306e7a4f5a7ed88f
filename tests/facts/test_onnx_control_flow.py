"""If, Loop, Scan and local functions: bodies, captures, links, types and inlining."""

from __future__ import annotations

import pytest

from reprise.facts.errors import ModelError
from reprise.facts.facts import facts_of
from reprise.lang.core import Relation
from reprise.uir.graph import Graph, Node, Role
from tests.facts.onnx_text import check_well_formed, imported

IF = """
g (bool c, float[2] x) => (float[2] y) {
    h = Abs(x)
    y = If (c) <
        then_branch = t () => (a) { a = Relu(h) },
        else_branch = e () => (b) { u = Neg(x) b = Add(u, h) }
    >
}
"""

LOOP = """
g (int64 trips, float[3] x) => (float[3] y, float[k, 3] history) {
    go = Constant <value = bool {1}> ()
    y, history = Loop (trips, go, x) <
        body = b (int64 i, bool more, float[3] state) => (again, next, seen) {
            again = Identity(more)
            next = Add(state, x)
            seen = Identity(next)
        }
    >
}
"""

SCAN = """
g (float[2] first, float[5, 2] rows) => (last, sums) {
    last, sums = Scan <num_scan_inputs = 1, scan_output_axes = [1],
        body = b (sum, row) => (next, out) { next = Add(sum, row) out = Identity(next) }
    > (first, rows)
}
"""


def by_op(graph: Graph) -> dict[str, Node]:
    return {node.op: node for node in graph.nodes}


def rows(graph: Graph, relation: str) -> list[tuple[object, ...]]:
    return [row for name, row in facts_of(graph) if name == relation]


@pytest.mark.parametrize("text", [IF, LOOP, SCAN])
def test_facts_of_control_flow_are_well_formed(text: str, vocabulary: dict[str, Relation]) -> None:
    assert check_well_formed(imported(text), vocabulary) > 30


def test_the_nodes_of_a_body_are_older_than_the_node_that_runs_it() -> None:
    graph = imported(IF)
    assert [node.op for node in graph.nodes] == ["abs", "relu", "neg", "add", "if"]
    assert [node.body for node in graph.nodes] == [0, 1, 2, 2, 0]
    run = by_op(graph)["if"]
    assert list(run.bodies) == ["then_branch", "else_branch"]
    assert rows(graph, "body") == [(run.id, "else_branch", 2), (run.id, "then_branch", 1)]


def test_a_body_reads_outer_tensors_directly() -> None:
    graph = imported(IF)
    relu, neg, add = (by_op(graph)[op] for op in ("relu", "neg", "add"))
    h = by_op(graph)["abs"].outputs[0]
    x = graph.tensors[1]
    assert relu.inputs == (h,)
    assert h is not None
    assert rows(graph, "captures") == [(relu.id, h.id), (neg.id, x.id), (add.id, h.id)]


def test_both_branches_flow_into_the_output() -> None:
    graph = imported(IF)
    nodes = by_op(graph)
    (y,) = nodes["if"].outputs
    ends = [nodes[op].outputs[0] for op in ("relu", "add")]
    assert rows(graph, "body_link") == [(end.id, y.id) for end in ends if end and y]


def test_a_loop_links_state_in_around_and_out() -> None:
    graph = imported(LOOP)
    loop = by_op(graph)["loop"]
    body = loop.bodies["body"]
    _, more, state = body.inputs
    again, following, seen = body.outputs
    assert all(tensor.role is Role.BODY_INPUT and tensor.body == body.id for tensor in body.inputs)
    _, go, x = loop.inputs
    pairs = [
        (go, more),
        (x, state),
        (again, more),
        (following, state),
        (following, loop.outputs[0]),
        (seen, loop.outputs[1]),
    ]
    assert rows(graph, "body_link") == sorted((a.id, b.id) for a, b in pairs if a and b)


def test_types_cross_the_edges_of_a_loop() -> None:
    graph = imported(LOOP)
    loop = by_op(graph)["loop"]
    assert [str(t.type) for t in loop.bodies["body"].inputs] == ["int64[]", "bool[]", "float32[3]"]
    assert [str(t.type) for t in loop.outputs if t] == ["float32[3]", "float32[k, 3]"]


def test_a_loop_may_change_the_shape_of_its_state() -> None:
    graph = imported(
        """g (int64 n, bool c, float[1] x) => (y) {
            y = Loop (n, c, x) <
                body = b (i, more, state) => (more, next) { next = Concat <axis = 0> (state, x) }
            >
        }"""
    )
    loop = by_op(graph)["loop"]
    assert str(loop.bodies["body"].inputs[2].type) == "float32[...]"
    assert str(graph.outputs[0].type) == "float32[...]"


def test_scan_takes_slices_in_and_stacks_results() -> None:
    graph = imported(SCAN)
    scan = by_op(graph)["scan"]
    assert [str(t.type) for t in scan.bodies["body"].inputs] == ["float32[2]", "float32[2]"]
    assert [str(t.type) for t in scan.outputs if t] == ["float32[2]", "float32[2, 5]"]
    sum_, row = scan.bodies["body"].inputs
    first, scanned = scan.inputs
    assert first and scanned
    assert {(first.id, sum_.id), (scanned.id, row.id)} < set(rows(graph, "body_link"))


def test_bodies_nest_and_see_every_enclosing_graph() -> None:
    graph = imported(
        """g (bool c, float[2] x) => (y) {
            y = If (c) <
                then_branch = t () => (a) {
                    m = Relu(x)
                    a = If (c) <
                        then_branch = tt () => (p) { p = Add(m, x) },
                        else_branch = te () => (q) { q = Identity(m) }
                    >
                },
                else_branch = e () => (b) { b = Identity(x) }
            >
        }"""
    )
    assert [(n.op, n.body) for n in graph.nodes] == [
        ("relu", 1),
        ("add", 2),
        ("identity", 3),
        ("if", 1),
        ("identity", 4),
        ("if", 0),
    ]
    assert str(graph.outputs[0].type) == "float32[2]"


def test_a_name_in_a_body_may_hide_an_outer_one() -> None:
    graph = imported(
        """g (bool c, float[2] x) => (y) {
            y = If (c) <
                then_branch = t () => (x) { x = Constant <value = float[3] {1, 2, 3}> () },
                else_branch = e () => (x) { x = Constant <value = float[3] {4, 5, 6}> () }
            >
        }"""
    )
    assert str(graph.outputs[0].type) == "float32[3]"
    assert not rows(graph, "captures")


FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
g (float[2, 3] x) => (y, z) {
    y = local.Norm <power = 3.0> (x)
    z = local.Norm (x)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
Norm <power: float = 2.0> (a) => (r) {
    p = Constant <value_float: float = @power> ()
    q = local.Raise (a, p)
    r = Softmax <axis = -1> (q)
}
<domain: "local", opset_import: ["" : 11]>
Raise (b, e) => (s) { s = Pow(b, e) }
"""


def test_local_functions_are_inlined_with_their_attributes() -> None:
    graph = imported(FUNCTIONS)
    assert [node.op for node in graph.nodes] == ["pow", "softmax", "pow", "softmax"]
    powers = [node.inputs[1] for node in graph.nodes if node.op == "pow"]
    assert [t.value.item() for t in powers if t is not None and t.value is not None] == [3.0, 2.0]
    assert [t.name for t in graph.outputs] == ["y/r", "z/r"]
    assert [str(t.type) for t in graph.outputs] == ["float32[2, 3]"] * 2


def test_a_function_may_leave_out_optional_operands() -> None:
    graph = imported(
        """<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x) => (y) { y = local.Bound (x) }
        <domain: "local", opset_import: ["" : 17]>
        Bound (a, high) => (r) { r = Clip (a, , high) }"""
    )
    (node,) = graph.nodes
    assert (node.op, len(node.inputs)) == ("clip", 1)


def test_a_function_overrides_the_operator_of_its_name() -> None:
    graph = imported(
        """<ir_version: 10, opset_import: ["" : 17]>
        g (float[2] x) => (y) { y = Relu (x) }
        <domain: "", opset_import: ["" : 17]>
        Relu (a) => (r) { zero = Constant <value_float = 0.0> () r = Max (a, zero) }"""
    )
    assert [node.op for node in graph.nodes] == ["maximum"]


@pytest.mark.parametrize("callee", ["F", "G"])
def test_functions_that_call_themselves_are_refused(callee: str) -> None:
    with pytest.raises(ModelError, match="calls itself"):
        imported(
            f"""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
            g (float[2] x) => (y) {{ y = local.F (x) }}
            <domain: "local", opset_import: ["" : 17, "local" : 1]>
            F (a) => (r) {{ r = local.{callee} (a) }}
            <domain: "local", opset_import: ["" : 17, "local" : 1]>
            G (a) => (r) {{ r = local.F (a) }}"""
        )


def test_functions_that_multiply_are_refused_before_they_do() -> None:
    doubling = "\n".join(
        f"""<domain: "local", opset_import: ["" : 17, "local" : 1]>
        F{i} (a) => (r) {{ t = local.F{i + 1} (a) r = local.F{i + 1} (t) }}"""
        for i in range(40)
    )
    with pytest.raises(ModelError, match=r"3,\d{3},\d{3},\d{3},\d{3} nodes once"):
        imported(
            f"""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
            g (float[2] x) => (y) {{ y = local.F0 (x) }}
            {doubling}
            <domain: "local", opset_import: ["" : 17]>
            F40 (a) => (r) {{ r = Relu (a) }}"""
        )
