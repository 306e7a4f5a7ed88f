"""TVM in workers, in the interpreter that ``REPRISE_TVM_PYTHON`` names (0.25 to 0.27): both modes,
pass ablation, both frontends, and the crashes that are known of its CUDA code generation."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import parser
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.lower.relax import LOWERING
from reprise.solve.signatures import Signatures
from reprise.targets.discover import TargetError, parse_target
from reprise.targets.interface import Job, Outcome, Stage
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Graph, Role
from reprise.uir.text import parse_uir
from tests.bugs.programs import examples
from tests.conftest import ROOT

PYTHON = os.environ.get("REPRISE_TVM_PYTHON")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="REPRISE_TVM_PYTHON names no interpreter")
LIMITS = Limits(seconds=60, startup_seconds=120)
SIGNATURES = Signatures.load()
RULES = load_rules([ROOT / "rules" / "bugs" / "tvm_cuda"])


def source(text: str) -> bytes:
    return LOWERING.lower(parse_uir(text, "test.uir", SIGNATURES))


@pytest.fixture(scope="module")
def llvm() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target(f"tvm@{PYTHON}"), LIMITS) as process:
        yield process


@pytest.fixture(scope="module")
def cuda() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target(f"tvm-cuda-compile@{PYTHON}"), LIMITS) as process:
        yield process


def run(process: TargetProcess, model: bytes, **inputs: np.ndarray) -> Outcome:
    return process.run(Job(model, inputs, process.target.modes))


def outputs(outcome: Outcome, mode: str) -> list[np.ndarray]:
    result = outcome.results[mode]
    assert result.outputs is not None, result.failure
    return list(result.outputs)


SOFTMAX = """
    x: float32[2, 3]
    const w: float32[3, 2] = 0.5
    m = matmul(x, w)
    s = softmax(m, axis=1)
    t = sum(s, axis=1)
    output s"""


@pytest.mark.slow
def test_it_says_which_version_it_is(llvm: TargetProcess) -> None:
    assert PYTHON is not None
    ask = [PYTHON, "-c", "import tvm; print(tvm.__version__)"]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    assert llvm.start() == {"apache-tvm": said}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["optimised", "unoptimised"])
def test_a_program_computes_what_numpy_does(llvm: TargetProcess, mode: str) -> None:
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    s, t = outputs(run(llvm, source(SOFTMAX), x=x), mode)
    np.testing.assert_allclose(s, np.full((2, 2), 0.5), rtol=1e-6)
    np.testing.assert_allclose(t, [1, 1], rtol=1e-6)


@pytest.mark.slow
def test_inputs_keep_their_rank_and_their_bits(llvm: TargetProcess) -> None:
    text = "x: float32[]; y: int64[2]; a = identity(x); b = identity(y)"
    y = np.array([2**62 + 1, -1])
    for mode in ("optimised", "unoptimised"):
        a, b = outputs(run(llvm, source(text), x=np.array(-0.0, np.float32), y=y), mode)
        assert a.shape == () and np.signbit(a)
        np.testing.assert_array_equal(b, y)


@pytest.mark.slow
def test_optimisations_are_named_and_can_be_left_out(llvm: TargetProcess) -> None:
    model = source(SOFTMAX)
    passes = llvm.passes(model)
    assert {"FuseOps", "FoldConstant"} <= {*passes[:5]}
    assert "LegalizeOps" not in passes
    inputs = {"x": np.ones((2, 3), np.float32)}
    for disabled in ((passes[0],), passes[:5]):
        outcome = llvm.run(Job(model, inputs, ("optimised",), disabled))
        assert outputs(outcome, "optimised")[1].tolist() == pytest.approx([1, 1])


def test_leaving_a_pass_out_that_lowers_fails(llvm: TargetProcess) -> None:
    job = Job(source(SOFTMAX), {"x": np.ones((2, 3), np.float32)}, ("optimised",), ("LegalizeOps",))
    failure = llvm.run(job).results["optimised"].failure
    assert failure is not None and failure.stage is Stage.COMPILE


@pytest.mark.slow
def test_an_onnx_model_goes_through_the_frontend(llvm: TargetProcess) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x, float[3] b) => (float[2,3] y)
        <float[3] w = {1.0, 2.0, 3.0}> { t = Mul(x, w)  y = Add(t, b) }"""
    model = parser.parse_model(text).SerializeToString()
    x, b = np.ones((2, 3), np.float32), np.array([1, 0, -1], np.float32)
    for mode in ("optimised", "unoptimised"):
        (y,) = outputs(run(llvm, model, x=x, b=b), mode)
        np.testing.assert_array_equal(y, x * np.array([1, 2, 3], np.float32) + b)


@pytest.mark.slow
def test_both_routes_into_tvm_compute_the_same(llvm: TargetProcess) -> None:
    text = """
        x: float32[2, 3, 8, 8]; w: float32[4, 3, 3, 3]; b: float32[4]
        c = conv2d(x, w, b, pads=[1, 1, 1, 1])
        p, i = max_pool2d(c, kernel=[2, 2], strides=[2, 2])
        y = layer_norm(p)
        s = reshape(y, shape=[2, -1])
        output s"""
    graph = parse_uir(text, "test.uir", SIGNATURES)
    rng = np.random.default_rng(0)
    inputs = {
        t.name: rng.normal(size=t.type.shape).astype(np.float32)  # type: ignore[arg-type]
        for t in graph.tensors
        if t.role is Role.INPUT
    }
    graph.outputs = [t for t in graph.outputs if t.name == "s"]
    direct, through = (lowering(name).lower(graph) for name in ("relax", "onnx"))
    for mode in ("optimised", "unoptimised"):
        (one,) = outputs(run(llvm, direct, **inputs), mode)
        (other,) = outputs(run(llvm, through, **inputs), mode)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_device_that_is_not_there_is_said_so() -> None:
    with TargetProcess(parse_target(f"tvm:cuda@{PYTHON}"), LIMITS) as process:
        try:
            process.start()
        except TargetError as error:
            message = str(error)
        else:
            pytest.skip("there is a CUDA device")
    assert "finds no cuda device" in message


def test_what_the_frontend_does_not_know_is_unsupported(llvm: TargetProcess) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,2] x) => (float y) { y = Det(x) }"""
    model = parser.parse_model(text).SerializeToString()
    failure = run(llvm, model, x=np.ones((2, 2), np.float32)).results["optimised"].failure
    assert failure is not None and failure.stage is Stage.LOAD
    assert failure.unsupported


@pytest.mark.slow
def test_a_crash_says_where_in_tvm_it_happened(cuda: TargetProcess) -> None:
    result = run(cuda, source("x: float32[1]; m = argmax(x, axis=0)")).results["compiled"]
    if result.failure is None:
        pytest.skip("this version does not have apache/tvm#20060")
    assert result.failure.stage is Stage.COMPILE
    assert result.failure.type == "InternalError"
    assert result.failure.frames[-1].startswith("codegen_cuda.cc:")
    assert "0x" not in result.failure.message


@pytest.mark.slow
def test_a_sound_program_compiles_for_cuda_and_returns_nothing(cuda: TargetProcess) -> None:
    result = run(cuda, source(SOFTMAX)).results["compiled"]
    assert result.outputs == () and result.failure is None


def test_the_pass_that_fails_is_the_first_candidate(cuda: TargetProcess) -> None:
    model = source("x: float32[4, 5]; w: float32[4, 1]; e = mul(x, w); t = sum(e, axis=1)")
    assert run(cuda, model).results["compiled"].failure is not None
    assert cuda.passes(model)[0] == "ApplyDefaultSchedule"


def complete(graph: Graph) -> Graph:
    """Constants that an example leaves open are ones."""
    for tensor in graph.tensors:
        if tensor.role is Role.INITIALIZER and tensor.value is None:
            tensor.value = np.ones(tensor.type.shape, tensor.type.dtype)  # type: ignore[arg-type]
    return graph


CUDA = list(examples(RULES, RULES.patterns))


@pytest.mark.slow
@pytest.mark.parametrize("example", CUDA, ids=lambda example: example.key)
def test_known_crashes_happen_and_their_near_misses_do_not(example, cuda: TargetProcess) -> None:  # type: ignore[no-untyped-def]
    version = Version(cuda.start()["apache-tvm"])
    affected = SpecifierSet(RULES.patterns[example.rule].get("affects") or "")
    expected = example.kind == "match" and affected.contains(version, prereleases=True)
    failure = run(cuda, LOWERING.lower(complete(example.graph))).results["compiled"].failure
    assert (failure is not None) == expected, failure
