"""Row 10 of what the language must cover: If/Loop/Scan bodies, captured values, local functions."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from reprise.data import data_path
from reprise.facts.onnx_import import load_onnx
from reprise.lang.ruleset import load_rules, load_text
from reprise.patterns.match import Match, Matcher

RULES = """
pattern captured "a body reads a tensor from outside" {
    a = abs(x)
    where captures(a, x)
}
pattern in_loop "an operator inside a loop" {
    a = abs(_)
    where inside(a, loop)
}
pattern in_if "an operator inside a branch, amplified outside" {
    a = abs(_)
    where inside(a, if)
    graph downstream(a) in {reciprocal}
}
pattern fed_by_neg "flow into a loop" {
    a = abs(_)
    graph upstream(a) in {neg}
}
pattern pair "two operators in a row" {
    n = neg(x)
    a = abs(n)
}
"""


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(load_text(RULES, "bodies.rules"))


def info(
    name: str, shape: list[int] | None = None, kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape if shape is not None else [2])


def run(matcher: Matcher, folder: Path, model: onnx.ModelProto) -> dict[str, int]:
    path = folder / "m.onnx"
    onnx.save(model, path)
    found: Match = matcher.run(load_onnx(path))
    counts: dict[str, int] = {}
    for finding in found.findings:
        counts[finding.pattern.name] = counts.get(finding.pattern.name, 0) + 1
    return counts


def branch(name: str, op: str, source: str) -> onnx.GraphProto:
    node = helper.make_node(op, [source], [f"{name}_out"])
    return helper.make_graph([node], name, [], [info(f"{name}_out")])


def test_if_branches_see_outer_tensors_and_flow_out(matcher: Matcher, tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("t", "Abs", "x"),
            else_branch=branch("e", "Neg", "x"),
        ),
        helper.make_node("Reciprocal", ["y"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "g", [info("c", [], TensorProto.BOOL), info("x")], [info("z")])
    found = run(matcher, tmp_path, helper.make_model(graph))
    assert found == {"captured": 1, "in_if": 1}


def test_the_same_operators_outside_a_body_do_not_match(matcher: Matcher, tmp_path: Path) -> None:
    nodes = [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Reciprocal", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("z")])
    assert run(matcher, tmp_path, helper.make_model(graph)) == {}


def loop(body_op: str, before: str) -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node(body_op, ["v_in"], ["v_out"]),
            helper.make_node("Identity", ["cond_in"], ["cond_out"]),
        ],
        "body",
        [
            info("i", [], TensorProto.INT64),
            info("cond_in", [], TensorProto.BOOL),
            info("v_in"),
        ],
        [info("cond_out", [], TensorProto.BOOL), info("v_out")],
    )
    nodes = [
        helper.make_node(before, ["x"], ["v"]),
        helper.make_node("Loop", ["n", "", "v"], ["y"], body=body),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("n", [], TensorProto.INT64), info("x")], [info("y")]
    )
    return helper.make_model(graph)


def test_loops_carry_flow_into_their_bodies(matcher: Matcher, tmp_path: Path) -> None:
    assert run(matcher, tmp_path, loop("Abs", "Neg")) == {"in_loop": 1, "fed_by_neg": 1}
    assert run(matcher, tmp_path, loop("Abs", "Exp")) == {"in_loop": 1}
    assert run(matcher, tmp_path, loop("Exp", "Neg")) == {}


def test_scan_bodies_are_searched(matcher: Matcher, tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Neg", ["s_in"], ["m"]), helper.make_node("Abs", ["m"], ["s_out"])],
        "body",
        [info("s_in")],
        [info("s_out")],
    )
    node = helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)
    graph = helper.make_graph([node], "g", [info("x", [3, 2])], [info("y", [3, 2])])
    found = run(matcher, tmp_path, helper.make_model(graph))
    assert found == {"pair": 1, "fed_by_neg": 1}


def test_local_functions_are_looked_into(matcher: Matcher, tmp_path: Path) -> None:
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    function = helper.make_function(
        "local",
        "NegAbs",
        ["a"],
        ["b"],
        [helper.make_node("Neg", ["a"], ["m"]), helper.make_node("Abs", ["m"], ["b"])],
        opset,
    )
    node = helper.make_node("NegAbs", ["x"], ["y"], domain="local")
    graph = helper.make_graph([node], "g", [info("x")], [info("y")])
    model = helper.make_model(graph, functions=[function], opset_imports=opset)
    found = run(matcher, tmp_path, model)
    assert found == {"pair": 1, "fed_by_neg": 1}


@pytest.mark.parametrize(("elements", "condition", "found"), [(32, 1, 1), (31, 1, 0), (32, 0, 0)])
def test_a_large_constant_of_a_branch_is_a_known_bug(
    elements: int, condition: int, found: int, tmp_path: Path
) -> None:
    """microsoft/onnxruntime#29071, on an imported model; not if the condition is an input."""
    given = "" if condition else "bool c, "
    stored = "c = Constant <value = bool {1}> ()" if condition else ""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({given}float[{elements}] x) => (float[{elements}] y) {{
            {stored}
            y = If (c) <
                then_branch: graph = a () => (t) {{ t = Add(w, x) }},
                else_branch: graph = b () => (t) {{ t = Sub(w, x) }}
            >
        }}"""
    )
    for attribute in model.graph.node[-1].attribute:
        w = np.ones(elements, np.float32)
        attribute.g.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    rules = load_rules([data_path("rules/bugs/onnxruntime/mined_operators.rules")])
    known = Matcher(rules, [rules.patterns["ort_if_inlined_constant"]])
    assert sum(run(known, tmp_path, model).values()) == found
