"""Reductions of models from elsewhere: hundreds of nodes, operators that UIR does not know."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from reprise.distill.kept import Report
from reprise.distill.session import reduce_subject
from reprise.distill.subject import read_subject
from tests.distill.large_models import (
    convolutional,
    pad_pool,
    relu_clip,
    transformer,
    transposed_gemm,
)
from tests.distill.toys import FILE, signatures

ORT = "onnxruntime"
TOY = str(FILE)


def reduce(model: ModelProto, folder: Path, target: str) -> Report:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return reduce_subject(read_subject(path, target, signatures()), signatures(), folder / "out")


def operators(report: Report) -> list[str]:
    """The operators of the reduced model."""
    return [node.op_type for node in onnx.load(report.folder / "model.onnx").graph.node]


@pytest.mark.slow
@pytest.mark.parametrize("gelu", [True, False])
def test_a_crash_in_a_transformer_comes_down_to_two_nodes(tmp_path: Path, gelu: bool) -> None:
    pytest.importorskip("onnxruntime")
    report = reduce(transformer(relu_clip, gelu=gelu), tmp_path, ORT)
    assert report.before.nodes > 300
    assert operators(report) == ["Relu", "Clip"]
    assert report.after.elements == 3
    assert report.rule == "ort_24158"
    assert report.judgement.signature == "pass:FuseReluClip"
    assert report.trials < 300


@pytest.mark.slow
def test_a_wrong_result_among_operators_without_a_reference(tmp_path: Path) -> None:
    """As long as ONNX Runtime's own Gelu is there, nobody but ONNX Runtime can say what is right;
    without it, UIR can."""
    pytest.importorskip("onnxruntime")
    report = reduce(transformer(transposed_gemm), tmp_path, ORT)
    assert operators(report) == ["Transpose", "Gemm"]
    assert report.judgement.signature == "pass:GemmTransposeFusion"
    assert report.judgement.verdict.value == "wrong_result"


@pytest.mark.slow
def test_a_wrong_result_in_a_convolutional_network_comes_down_to_two_nodes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = reduce(convolutional(pad_pool), tmp_path, ORT)
    assert report.before.nodes > 200
    assert operators(report) == ["Pad", "MaxPool"]
    assert report.judgement.signature == "pass:Pad_Fusion"
    (value,) = np.load(report.folder / "inputs.npz").values()
    assert np.all(value < 0)


BRANCHES = """
<ir_version: 9, opset_import: ["": 20]>
g (float[4] x, bool b) => (float[4] y)
<double zero = {0}, double six = {6}>
{
  p = Exp(x)
  q = Neg(p)
  y0 = If(b) <
    then_branch = then () => (float[4] t) {
      d = Cast<to = 11>(q)
      r = Relu(d)
      c = Clip(r, zero, six)
      t = Cast<to = 1>(c)
    },
    else_branch = other () => (float[4] e) {
      e = Mul(q, p)
    }
  >
  s = Sin(y0)
  y = Cos(s)
}
"""


@pytest.mark.slow
def test_control_flow_stays_whole(tmp_path: Path) -> None:
    """The defect is inside of a branch; what the branches read of outside becomes inputs."""
    pytest.importorskip("onnxruntime")
    report = reduce(parser.parse_model(BRANCHES), tmp_path, ORT)
    assert operators(report) == ["If"]
    graph = onnx.load(report.folder / "model.onnx").graph
    bodies = {a.name: [n.op_type for n in a.g.node] for a in graph.node[0].attribute}
    assert bodies == {"then_branch": ["Cast", "Relu", "Clip", "Cast"], "else_branch": ["Mul"]}
    assert {"b", "q", "p"} <= {info.name for info in graph.input}
    assert report.judgement.signature == "pass:FuseReluClip"


FUNCTIONS = """
<ir_version: 9, opset_import: ["": 20, "local": 1]>
g (float[2, 3] x) => (float[2, 3] y)
{
  a = Exp(x)
  b = local.Twice(a)
  c = local.Sixfold(b)
  y = Neg(c)
}
<domain: "local", opset_import: ["": 20]>
Twice (t) => (u) { u = Add(t, t) }
<domain: "local", opset_import: ["": 20, "local": 1]>
Sixfold (t) => (u) {
  d = Cast<to = 11>(t)
  r = Relu(d)
  zero = Constant<value = double {0}>()
  k = Clip(r, zero)
  v = Cast<to = 1>(k)
  u = local.Twice(v)
}
"""


def test_local_functions_are_kept_while_they_are_called(tmp_path: Path) -> None:
    """UIR can say all of this, so the functions are gone in the end; as a model they stay."""
    pytest.importorskip("onnxruntime")
    from reprise.distill.onnx_form import OnnxForm
    from reprise.distill.onnx_model import Model
    from reprise.distill.reduce import Reducer
    from reprise.distill.subject import open_trials

    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(FUNCTIONS), path)
    subject = read_subject(path, ORT, signatures())
    trials, _ = open_trials(subject, exact=True)
    with trials:
        model = subject.forms[-1]
        assert isinstance(model, Model)
        reduced = Reducer(OnnxForm(model, trials.baseline), trials, model).run().program
    assert isinstance(reduced, Model)
    assert [n.op_type for n in reduced.proto.graph.node] == ["Sixfold"]
    assert sorted(f.name for f in reduced.proto.functions) == ["Sixfold", "Twice"]


def custom(nodes: list[object], *values: float) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "custom",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, len(values)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, len(values)])],
        [numpy_helper.from_array(np.tile(np.array(values, np.float32), (3, 1)), "w")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my.domain", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.slow
def test_an_operator_that_nobody_knows_is_kept(tmp_path: Path) -> None:
    """No reference knows it, so that the target's unoptimised mode alone says what is right."""
    model = custom(
        [
            helper.make_node("Mul", ["x", "x"], ["e"]),
            helper.make_node("Add", ["e", "w"], ["s"]),
            helper.make_node("Abs", ["s"], ["a"]),
            helper.make_node("Frobnicate", ["a"], ["f"], domain="my.domain", power=3),
            helper.make_node("Neg", ["f"], ["y"]),
        ],
        0.5,
        1.5,
    )
    report = reduce(model, tmp_path, TOY)
    assert operators(report) == ["Abs", "Frobnicate"]
    graph = onnx.load(report.folder / "model.onnx").graph
    assert helper.get_node_attr_value(graph.node[1], "power") == 3
    (info,) = graph.input
    assert [d.dim_value for d in info.type.tensor_type.shape.dim] == [1, 1]
    evidence = json.loads((report.folder / "finding.json").read_text())["evidence"]
    assert "none knows all operators" in evidence["reference"]


@pytest.mark.slow
def test_constants_outside_of_the_file_are_read(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = transformer(relu_clip, blocks=2, at=1)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    report = reduce_subject(read_subject(path, ORT, signatures()), signatures(), tmp_path / "out")
    assert operators(report) == ["Relu", "Clip"]


@pytest.mark.slow
def test_what_was_reduced_can_be_reduced_again(tmp_path: Path) -> None:
    """The folder is a finding's: it is read as one, and nothing is left to do."""
    model = custom(
        [
            helper.make_node("Abs", ["x"], ["a"]),
            helper.make_node("Frobnicate", ["a"], ["f"], domain="my.domain"),
            helper.make_node("Add", ["f", "w"], ["y"]),
        ],
        0.5,
    )
    report = reduce(model, tmp_path, TOY)
    again = reduce_subject(
        read_subject(report.folder, None, signatures()), signatures(), tmp_path / "again"
    )
    assert again.after == again.before == report.after
    assert again.judgement.signature == report.judgement.signature
