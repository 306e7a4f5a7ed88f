"""What a finding, a program or a model is, for those who are to reduce or distil it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from reprise.campaign.findings import npz
from reprise.campaign.records import StoreError
from reprise.distill.forms import UirForm
from reprise.distill.onnx_model import Model
from reprise.distill.session import reduce_subject
from reprise.distill.subject import NotShown, Subject, open_trials, read_subject
from reprise.facts.errors import ModelError
from reprise.oracle.verdict import Severity, Verdict
from reprise.patterns.check import UsageError
from reprise.targets.discover import TargetError
from tests.distill.toys import FILE, signatures

TARGET = str(FILE)
PROGRAM = """
x: float64[2, 3]
i: int64[4]
r = relu(x)
c = clip(r, min=0.0, max=6.0)
output c
"""


def read(path: Path, target: str | None = TARGET, **options: object) -> Subject:
    return read_subject(path, target, signatures(), **options)  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.uir"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def finding(file: Path) -> Path:
    """A finding's folder, as a reduction writes it."""
    reduce_subject(read(file), signatures(), file.parent / "findings" / "00000007")
    return file.parent / "findings" / "00000007"


def test_a_program_has_values_for_its_inputs_drawn_by_seed(file: Path) -> None:
    one, same, other = (read(file, seed=seed).forms[0].inputs["x"] for seed in (1, 1, 2))
    assert one.shape == (2, 3)
    assert one.dtype == np.float64
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["program.npz", "program.inputs.npz"])
def test_values_beside_a_program_are_its_inputs(file: Path, name: str) -> None:
    value = np.full((2, 3), 5.0)
    (file.parent / name).write_bytes(npz({"x": value}))
    assert np.array_equal(read(file).forms[0].inputs["x"], value)


def test_given_values_count_most(file: Path) -> None:
    file.with_suffix(".npz").write_bytes(npz({"x": np.zeros((2, 3))}))
    given = file.parent / "given.npz"
    given.write_bytes(npz({"x": np.ones((2, 3))}))
    assert read(file, inputs=given).forms[0].inputs["x"].sum() == 6


def test_values_of_another_type_are_refused(file: Path) -> None:
    file.with_suffix(".npz").write_bytes(npz({"x": np.zeros((3, 3))}))
    with pytest.raises(ModelError, match=r"input x is float64\[2, 3\], its value float64\[3, 3\]"):
        read(file)


@pytest.mark.slow
def test_what_it_shows_is_the_aim_where_nothing_is_recorded(file: Path) -> None:
    subject = read(file)
    assert subject.aim is None
    trials, form = open_trials(subject)
    with trials:
        assert form is subject.forms[0]
        assert trials.aim is not None
        assert trials.aim.signature == "pass:fuse_relu_clip"
        assert trials.aim.verdict is Verdict.CRASH


@pytest.mark.slow
def test_a_finding_has_its_record_as_aim(finding: Path) -> None:
    subject = read(finding, None)
    assert subject.target.name == "toy-compiler"
    assert subject.detail is not None
    assert subject.aim is not None
    assert subject.aim.cures == ("fuse_relu_clip",)
    assert subject.aim.symptom.startswith("crash | compile")
    assert subject.aim.severity is Severity.NORMAL
    trials, _ = open_trials(subject, exact=True)
    trials.close()


@pytest.mark.slow
def test_a_finding_of_a_run_is_named_by_its_number(finding: Path) -> None:
    run = finding.parent.parent
    assert read(run / "7", None).origin == finding
    assert read(run / "00000007", None).origin == finding


@pytest.mark.slow
def test_a_record_of_another_target_is_no_aim(finding: Path) -> None:
    assert read(finding, "onnxruntime").aim is None


@pytest.mark.slow
def test_a_finding_that_shows_something_else_now_is_refused(finding: Path) -> None:
    text = (finding / "finding.json").read_text()
    (finding / "finding.json").write_text(text.replace("fuse_relu_clip", "fuse_neg_neg"))
    with pytest.raises(NotShown, match="not with the recorded defect: pass:fuse_neg_neg"):
        open_trials(read(finding, None))


@pytest.mark.slow
def test_a_symptom_that_an_older_version_recorded_may_read_otherwise(finding: Path) -> None:
    subject = read(finding, None)
    assert subject.aim is not None
    older = replace(subject.aim, symptom="crash | compile | as it was written once")
    trials, _ = open_trials(replace(subject, aim=older), exact=True)
    with trials:
        assert trials.aim == subject.aim


@pytest.mark.slow
def test_a_finding_that_does_not_fail_is_refused(finding: Path) -> None:
    text = (finding / "program.uir").read_text()
    (finding / "program.uir").write_text(text.replace("float64", "float32"))
    inputs = np.load(finding / "inputs.npz")
    floats = {name: inputs[name].astype(np.float32) for name in inputs.files}
    (finding / "inputs.npz").write_bytes(npz(floats))
    with pytest.raises(NotShown, match=r"does not fail on toy-compiler.*the verdict is ok"):
        open_trials(read(finding, None))


MODEL = """
<ir_version: 9, opset_import: ["": 20]>
g (double[N, 3] x) => (double[N, 3] y) <double zero = {0}> { r = Relu(x) y = Clip(r, zero) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(MODEL), path)
    return path


def test_a_model_comes_as_a_program_and_as_it_is(model: Path) -> None:
    program, whole = read(model).forms
    assert [node.op for node in program.graph.nodes] == ["relu", "clip"]
    assert isinstance(whole, Model)
    assert whole.inputs["x"].shape == (2, 3)
    assert UirForm(signatures()).program(UirForm(signatures()).flow(program)) is not None


def test_open_extents_follow_from_given_values(model: Path) -> None:
    model.with_suffix(".npz").write_bytes(npz({"x": np.zeros((5, 3))}))
    program, whole = read(model).forms
    assert program.inputs["x"].shape == (5, 3)
    assert isinstance(whole, Model)
    (info,) = whole.proto.graph.input
    assert [d.dim_value for d in info.type.tensor_type.shape.dim] == [5, 3]


def test_a_target_of_torch_takes_no_models_that_uir_cannot_say(tmp_path: Path) -> None:
    text = MODEL.replace("Relu(x)", "com.microsoft.QuickGelu(x)")
    text = text.replace('["": 20]', '["": 20, "com.microsoft": 1]')
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    assert len(read(path).forms) == 1
    with pytest.raises(UsageError, match="inductor takes no ONNX models"):
        read(path, "inductor")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x: float32[2]\ny = frob(x)\n", "line 2"),
        ("x: float32[N]\ny = exp(x)\n", "not fully known"),
        ("const w: float32[2]\ny = exp(w)\n", "constant w has no value"),
    ],
)
def test_what_is_wrong_with_a_program_is_said(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.uir"
    path.write_text(content)
    with pytest.raises(ModelError, match=message):
        read(path)


def test_what_is_no_subject_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match=r"no finding\.json"):
        read(tmp_path)
    with pytest.raises(UsageError, match="no such finding or file"):
        read(tmp_path / "nothing.onnx")
    with pytest.raises(UsageError, match="--target NAME"):
        read(file, None)
    with pytest.raises(TargetError):
        read(file, "nobody")
    (tmp_path / "finding.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        read(tmp_path, None)
    file.with_suffix(".npz").write_bytes(b"no archive")
    (tmp_path / "finding.json").unlink()
    with pytest.raises(ModelError, match=r"\.npz"):
        read(file)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("a = Add(x, b) b = Relu(a) y = Relu(b)", "cycle"),
        ("y = Relu(x) y = Neg(x)", "defined twice"),
    ],
)
def test_nodes_without_an_order_are_no_model(tmp_path: Path, nodes: str, message: str) -> None:
    path = tmp_path / "model.onnx"
    head = '<ir_version: 9, opset_import: ["": 20]> g (float[2] x) => (float[2] y)'
    onnx.save(parser.parse_model(f"{head} {{ {nodes} }}"), path)
    with pytest.raises(ModelError, match=message):
        read(path, "onnxruntime")


def test_an_extent_below_zero_is_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    text = '<ir_version: 9, opset_import: ["": 20]> g (float[1, 3] x) => (float[1, 3] y)'
    proto = parser.parse_model(f"{text} {{ y = Relu(x) }}")
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(proto, path)
    subject = read(path, "onnxruntime")
    assert [form.inputs["x"].shape for form in subject.forms] == [(2, 3), (2, 3)]
