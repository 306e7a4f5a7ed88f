"""ONNX Runtime in a worker, against what is known about it."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import parser

from reprise.targets.discover import parse_target
from reprise.targets.interface import Job, ModeResult, Outcome, Stage
from reprise.targets.process import TargetProcess


@pytest.fixture(scope="module")
def process() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target("onnxruntime")) as process:
        yield process


def model(text: str, opset: int = 17) -> bytes:
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
    serialised: bytes = parser.parse_model(header + text).SerializeToString()
    return serialised


def both(outcome: Outcome) -> tuple[ModeResult, ModeResult]:
    return outcome.results["optimised"], outcome.results["unoptimised"]


def run(process: TargetProcess, text: str, *disabled: str, **inputs: np.ndarray) -> Outcome:
    return process.run(Job(model(text), inputs, process.target.modes, disabled))


IDENTITY_TRANSPOSE = """
    g (float[3,3] x, float[3,3] w) => (float[3,3] y) {
        t = Transpose<perm=[0,1]>(x)
        y = Gemm(t, w)
    }"""
RELU_CLIP = """
    g (double[3] x) => (double[3] y) {
        m = Constant<value = double {0.5}>()
        r = Relu(x)
        y = Clip(r, m)
    }"""


def test_it_says_which_version_it_is(process: TargetProcess) -> None:
    assert process.start() == {"onnxruntime": onnxruntime.__version__}


def test_results_are_those_of_the_library_itself(process: TargetProcess) -> None:
    text = """
        g (float[2,3] x) => (float[2,3] y, int64 s) {
            y = Tanh(x)
            n = Shape(x)
            s = ReduceSum<keepdims = 0>(n)
        }"""
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    session = onnxruntime.InferenceSession(model(text), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    for result in both(run(process, text, x=x)):
        for got, want in zip(result.outputs or (), expected, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_miscompilation_shows_and_disabling_its_pass_cures_it(process: TargetProcess) -> None:
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    inputs = {"x": x, "w": x + 1}

    def agrees(*disabled: str) -> bool:
        fast, slow = both(run(process, IDENTITY_TRANSPOSE, *disabled, **inputs))
        assert fast.outputs and slow.outputs
        np.testing.assert_array_equal(slow.outputs[0], x @ (x + 1))
        return bool(np.array_equal(fast.outputs[0], slow.outputs[0]))

    passes = process.passes(model(IDENTITY_TRANSPOSE))
    assert not agrees()
    assert agrees(*passes)
    assert [name for name in passes if agrees(name)] == ["GemmTransposeFusion"]


def test_a_load_error_of_the_optimiser_is_a_failure_to_compile(process: TargetProcess) -> None:
    fast, slow = both(run(process, RELU_CLIP, x=np.ones(3)))
    assert fast.failure is not None and fast.failure.stage is Stage.COMPILE
    assert "relu_clip_fusion" in fast.failure.message and not fast.failure.unsupported
    assert slow.failure is None
    fast, _ = both(run(process, RELU_CLIP, "FuseReluClip", x=np.ones(3)))
    assert fast.failure is None


def test_what_a_failing_optimiser_did_not_reach_can_still_be_disabled(
    process: TargetProcess,
) -> None:
    passes = process.passes(model(RELU_CLIP))
    healthy = process.passes(model("g (float[3] x) => (float[3] y) { y = Relu(x) }"))
    assert {*passes} == {*healthy}
    assert {"FuseReluClip", "ConstantFolding", "TransposeOptimizer", "NchwcTransformer"} <= {
        *passes
    }


def test_what_changed_the_model_comes_first(process: TargetProcess) -> None:
    text = """
        g (float[3] x) => (float[3] y) {
            a = Constant<value = float[3] {1.0, 2.0, 3.0}>()
            b = Exp(a)
            y = Add(x, b)
        }"""
    assert process.passes(model(text))[0] == "ConstantFolding"


def test_a_missing_kernel_is_unsupported(process: TargetProcess) -> None:
    for result in both(
        run(process, "g (double[3] x) => (double[3] y) { y = Erf(x) }", x=np.ones(3))
    ):
        assert result.failure is not None and result.failure.unsupported
        assert result.failure.stage is Stage.COMPILE


@pytest.mark.parametrize("data", [b"", b"nonsense" * 9])
def test_what_is_no_model_fails_to_load(process: TargetProcess, data: bytes) -> None:
    for result in both(process.run(Job(data, {}, process.target.modes))):
        assert result.failure is not None and result.failure.stage is Stage.LOAD


def test_a_wrong_input_fails_to_run(process: TargetProcess) -> None:
    outcome = run(process, "g (float[3] x) => (float[3] y) { y = Exp(x) }", x=np.ones(3))
    for result in both(outcome):
        assert result.failure is not None and result.failure.stage is Stage.RUN


def test_bfloat16_passes_beside_other_types(process: TargetProcess) -> None:
    text = """
        g (bfloat16[4] x, float[2] z) => (bfloat16[4] y, float[2] u, bfloat16 e) {
            y = Identity(x)
            u = Neg(z)
            c = Constant<value = float {1.5}>()
            e = Cast<to = 16>(c)
        }"""
    x = np.array([1.0, -0.0, np.nan, np.inf], ml_dtypes.bfloat16)
    for result in both(run(process, text, x=x, z=np.array([1, -2], np.float32))):
        y, u, e = result.outputs or ()
        assert y.dtype == x.dtype and y.tobytes() == x.tobytes()
        assert u.tolist() == [-1, 2]
        assert (e.shape, float(e)) == ((), 1.5)


def test_a_graph_without_inputs_runs(process: TargetProcess) -> None:
    text = "g () => (float[2] y) { a = Constant<value = float[2] {0.0, 1.0}>() y = Exp(a) }"
    for result in both(run(process, text)):
        np.testing.assert_allclose((result.outputs or ())[0], np.exp([0, 1]), rtol=1e-6)
