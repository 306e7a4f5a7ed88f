"""Passes of the compilers themselves, on models that would need terabytes to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from reprise.targets.interface import Job
from reprise.targets.process import Limits, TargetProcess
from reprise.xcheck.passes.compiler import PassCounter, parse_compiler
from reprise.xcheck.passes.interface import Ending, StageReport, stage_report

TVM = os.environ.get("REPRISE_TVM_PYTHON")
TORCH = os.environ.get("REPRISE_TORCH_PYTHON")

needs_tvm = pytest.mark.skipif(TVM is None, reason="REPRISE_TVM_PYTHON names no interpreter")
needs_torch = pytest.mark.skipif(TORCH is None, reason="REPRISE_TORCH_PYTHON names no interpreter")

BIG = (1, 16, 302492402, 1410389859)
"""The paper's second observation: 2 ** 64 float32 bytes and more."""
HUGE = (1, 16, 300_000_000, 16)
"""The paper's memory overflow: 307 GB."""

Compile = Callable[[bytes], StageReport]


def model(nodes: Sequence, inputs: Sequence, output: tuple, **values: np.ndarray) -> bytes:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(*given) for given in inputs],
        [helper.make_tensor_value_info(*output)],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def binary(op: str, shape: Sequence[int]) -> bytes:
    float32 = TensorProto.FLOAT
    nodes = [helper.make_node(op, ["x", "y"], ["z"])]
    return model(nodes, [("x", float32, shape), ("y", float32, shape)], ("z", float32, shape))


def unary(op: str, dtype: int = TensorProto.FLOAT) -> bytes:
    return model([helper.make_node(op, ["x"], ["z"])], [("x", dtype, [4])], ("z", dtype, [4]))


def lrn(rank: int) -> bytes:
    float32, shape = TensorProto.FLOAT, [2] * rank
    nodes = [helper.make_node("LRN", ["x"], ["z"], size=3)]
    return model(nodes, [("x", float32, shape)], ("z", float32, shape))


def matmul(inner: int, other: int) -> bytes:
    float32 = TensorProto.FLOAT
    nodes = [helper.make_node("MatMul", ["x", "y"], ["z"])]
    inputs = [("x", float32, [4, inner]), ("y", float32, [other, 7])]
    return model(nodes, inputs, ("z", float32, [4, 7]))


@pytest.fixture(scope="module")
def compilers() -> Iterator[Callable[[str], Compile]]:
    """A compiler by its text, started once."""
    with ExitStack() as stack:
        made: dict[str, PassCounter] = {}

        def get(text: str) -> Compile:
            if text not in made:
                counter = PassCounter(parse_compiler(text), Limits(seconds=120, memory_mib=2048))
                made[text] = stack.enter_context(counter)
            return made[text].compile

        yield get


def assert_accepted(report: StageReport) -> None:
    assert report.ending is Ending.ACCEPTED, (report.where, report.failure, report.log)
    assert report.started[0] == report.completed[0] == "import"
    assert {*report.started} == {*report.completed}


# --- ONNX Runtime --------------------------------------------------------------------------------


@pytest.fixture
def ort(compilers: Callable[[str], Compile]) -> Compile:
    pytest.importorskip("onnxruntime")
    return compilers("onnxruntime")


@pytest.mark.parametrize("shape", [(1, 16, 32, 32), HUGE, BIG])
def test_onnxruntime_makes_a_session_for_inputs_of_any_extent(
    ort: Compile, shape: tuple[int, ...]
) -> None:
    report = ort(binary("Add", shape))
    assert_accepted(report)
    transformers = ("Level1_RuleBasedTransformer", "ConstantFolding", "TransposeOptimizer")
    assert {*transformers, "MemcpyTransformer", "initialize"} <= {*report.completed}
    assert report.peak_mib < 500


def test_onnxruntime_names_the_transformer_that_threw(ort: Compile) -> None:
    """microsoft/onnxruntime#24158, whose message is of FuseReluClip, a rule of that transformer."""
    float64 = TensorProto.DOUBLE
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Clip", ["r", "low", "high"], ["z"]),
    ]
    limits = {"low": np.array(-1.0), "high": np.array(1.0)}
    report = ort(model(nodes, [("x", float64, [4])], ("z", float64, [4]), **limits))
    assert report.ending is Ending.REJECTED and report.failure is not None
    assert "FuseReluClip" in report.failure.message
    assert report.stopped_in == "Level1_RuleBasedTransformer"
    assert report.passes == len(report.completed) > 1


def test_onnxruntime_without_a_kernel_got_through_the_transformers(ort: Compile) -> None:
    report = ort(unary("Erf", TensorProto.DOUBLE))
    assert report.ending is Ending.REJECTED and report.failure is not None
    assert report.failure.unsupported and report.stopped_in == "initialize"
    assert report.completed[-1] == "MemcpyTransformer"


@pytest.mark.parametrize("bad", [b"hello", unary("NoSuchOperator"), matmul(5, 6)])
def test_onnxruntime_may_refuse_to_load(ort: Compile, bad: bytes) -> None:
    report = ort(bad)
    assert (report.ending, report.where, report.passes) == (Ending.REJECTED, "in import", 1)


# --- TVM -----------------------------------------------------------------------------------------


@pytest.fixture
def tvm(compilers: Callable[[str], Compile]) -> Callable[[str], Compile]:
    return lambda platform: compilers(f"tvm:{platform}@{TVM}")


@pytest.mark.slow
@needs_tvm
def test_tvm_runs_the_same_passes_for_every_small_model(tvm: Callable[[str], Compile]) -> None:
    compile = tvm("llvm")
    add, multiply = compile(binary("Add", (1, 16, 32, 32))), compile(matmul(5, 5))
    for report in (add, multiply):
        assert_accepted(report)
    assert add.started == multiply.started and 60 <= add.passes <= 100
    assert {"LegalizeOps", "FuseOps", "StaticPlanBlockMemory", "tirx.LowerIntrin"} <= {*add.started}
    assert not {"sequential", "_pipeline"} & {*add.started}
    assert add.started[-1] == "code generation"


@pytest.mark.slow
@needs_tvm
def test_tvm_refuses_for_one_platform_what_it_takes_for_another(
    tvm: Callable[[str], Compile],
) -> None:
    assert_accepted(tvm("llvm")(binary("Sub", HUGE)))
    for platform in ("cuda", "nvidia/nvidia-h100"):
        report = tvm(platform)(binary("Sub", HUGE))
        assert report.ending is Ending.REJECTED and report.failure is not None
        assert report.stopped_in == "ApplyDefaultSchedule"
        assert "4800000000" in report.failure.message and "int32" in report.failure.message
        assert report.completed[:2] == ("import", "NormalizeGlobalVar")
        assert "StaticPlanBlockMemory" not in report.started


@needs_tvm
def test_tvm_compiles_or_refuses_what_no_address_reaches(tvm: Callable[[str], Compile]) -> None:
    """0.25 compiles an addition of 2 ** 64 bytes and more; 0.27 finds out when it plans memory."""
    report = tvm("llvm")(binary("Add", BIG))
    if report.ending is Ending.ACCEPTED:
        assert_accepted(report)
    else:
        assert report.stopped_in == "StaticPlanBlockMemory"
        assert report.failure is not None and "int64" in report.failure.message
    assert report.peak_mib < 1000


@needs_tvm
def test_tvm_may_refuse_to_import(tvm: Callable[[str], Compile]) -> None:
    report = tvm("llvm")(unary("NoSuchOperator"))
    assert (report.ending, report.where, report.passes) == (Ending.REJECTED, "in import", 1)
    assert report.failure is not None and report.failure.unsupported
    report = tvm("llvm")(unary("Relu", TensorProto.COMPLEX64))
    assert report.failure is not None and report.failure.unsupported
    report = tvm("llvm")(lrn(rank=2))  # "LRN only supports 3D or 4D input"
    assert report.failure is not None and report.failure.unsupported
    report = tvm("llvm")(matmul(5, 6))
    assert (report.ending, report.where) == (Ending.REJECTED, "in import")
    assert report.failure is not None and not report.failure.unsupported


# --- Inductor ------------------------------------------------------------------------------------


@pytest.fixture
def inductor(compilers: Callable[[str], Compile]) -> Compile:
    return compilers(f"inductor@{TORCH}")


@needs_torch
@pytest.mark.slow
def test_inductor_compiles_for_tensors_without_data(inductor: Compile) -> None:
    report = inductor(binary("Sub", HUGE))
    assert_accepted(report)
    graph_passes = ("pre_grad_passes.efficient_conv_bn_eval_pass",)
    graph_passes += ("joint_graph_passes.remove_noop_ops", "post_grad_passes.remove_noop_ops")
    phases = ("bytecode_tracing", "GraphLowering.run", "Scheduler.codegen", "compile_file")
    assert {*graph_passes, *phases} <= {*report.completed}
    order = [report.started.index(name) for name in (*graph_passes, *phases[1:])]
    assert order == sorted(order)
    assert report.peak_mib < 1500


@needs_torch
@pytest.mark.slow
def test_inductor_refuses_extents_that_no_address_reaches(inductor: Compile) -> None:
    report = inductor(binary("Add", BIG))
    assert (report.ending, report.where) == (Ending.REJECTED, "in import")
    assert report.failure is not None and "overflow" in report.failure.message


@needs_torch
@pytest.mark.slow
def test_a_phase_of_inductor_that_fails_is_named(inductor: Compile) -> None:
    report = inductor(matmul(5, 6))
    assert report.ending is Ending.REJECTED and report.stopped_in == "bytecode_tracing"
    assert report.completed == ("import",)


@needs_torch
@pytest.mark.slow
def test_weights_are_no_obstacle(inductor: Compile) -> None:
    float32 = TensorProto.FLOAT
    weight = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"])]
    report = inductor(model(nodes, [("x", float32, [4, 5])], ("z", float32, [4, 7]), w=weight))
    assert_accepted(report)


@needs_torch
@pytest.mark.slow
def test_what_has_no_form_in_torch_is_not_asked(inductor: Compile) -> None:
    for bad in (unary("NoSuchOperator"), b"hello"):
        report = inductor(bad)
        assert report.ending is Ending.UNASKED and report.log and not report.started


SABOTAGE = """
import torch
import torch._inductor.fx_passes.post_grad as post_grad
import torch._inductor.scheduler as scheduler

def broken(*arguments):
    raise ValueError("broken")

post_grad.remove_assert_ops, scheduler.Scheduler.fuse_nodes = {}

class Model(torch.nn.Module):
    inputs = {{"x": "float32[4]"}}

    def forward(self, x):
        return (torch.relu(x) + 1,)
"""


@needs_torch
@pytest.mark.slow
def test_a_pass_of_inductor_that_throws_is_named() -> None:
    with TargetProcess(parse_compiler(f"inductor@{TORCH}"), Limits(seconds=120)) as process:

        def stopped(replacement: str) -> StageReport:
            text = SABOTAGE.format(replacement).encode()
            return stage_report(process.run(Job(text, {}, ("compiled",))))

        late = stopped("post_grad.remove_assert_ops, broken")
        early = stopped("broken, scheduler.Scheduler.fuse_nodes")
    for report in (early, late):
        assert report.ending is Ending.REJECTED and report.failure is not None
        assert "broken" in report.failure.message
    assert early.stopped_in == "post_grad_passes.remove_assert_ops"
    assert early.completed[-1] == "post_grad_passes.remove_noop_ops"
    assert late.stopped_in is not None and late.stopped_in.startswith("Scheduler.")
    assert "post_grad_passes.remove_assert_ops" in late.completed
    assert early.passes < late.passes
