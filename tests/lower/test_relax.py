"""The lowering to Relax: the text itself; every operator built by TVM, and its results on llvm.

What needs TVM runs in the interpreter that ``REPRISE_TVM_PYTHON`` names (0.25 to 0.27)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import pytest

from reprise.lower.relax import LOWERING
from reprise.lower.relax.application import dtype_name
from reprise.lower.relax.forms import FORMS
from reprise.lower.relax.limits import NO_OPERATOR
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target
from reprise.targets.interface import Job
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Graph, Role, TensorType
from reprise.uir.inference import Typing
from reprise.uir.program import Program
from reprise.uir.semantics import SemanticsError, apply, causes, evaluate
from reprise.uir.text import parse_uir
from tests.uir.semantics.agreement import coarsest, difference
from tests.uir.semantics.drawing import operands

PYTHON = os.environ.get("REPRISE_TVM_PYTHON")
needs_tvm = pytest.mark.skipif(PYTHON is None, reason="REPRISE_TVM_PYTHON names no interpreter")
SIGNATURES = Signatures.load()
OPERATORS = sorted(SIGNATURES)
INSTANCES = 10
JUDGED = 3

TVM_CRASHES = {
    r"LLVM module verification failed.*FCmp": "bools are compared as floats",
    r"Cannot decide (max|min)_value for type ?(bool|T\.bool)": "extremes over bool",
    r"Invalid DLTensor file format": "a constant without elements is folded",
    r"Tensor dimension mismatch in read": "rms_norm over several axes",
    r"Divide by zero": "a slice without elements (0.25)",
    r"Do not have a default for tirx\.ProducerLoad": "roi_align with adaptive sampling (0.25)",
    r"\(t\.(is_float|MatchesCode)": "scatter_nd of bools, reduced",
}
"""Failures of TVM itself that the instances below run into: by message, and what they are."""

TVM_WRONG = {
    **{f"adaptive_avg_pool{n}d": "windows of different sizes (0.25)" for n in (1, 2, 3)},
    "scatter_elements": "updates are misplaced where indices are smaller than the data",
}
"""Operators that TVM, in all its modes, computes wrongly for some instances."""


def drawn(op: str, count: int) -> Iterator[tuple[Instance, Typing]]:
    """Instances of an operator that the lowering takes."""
    sampler, rng = Sampler(SIGNATURES[op]), Random(op)
    for _ in range(8 * count):
        instance = sampler.draw(rng)
        if instance is None:
            continue
        typing = SIGNATURES.check(op, instance.operands, instance.attributes)
        if LOWERING.unsupported(op, instance.operands, typing.attributes) is None:
            count -= 1
            yield instance, typing
        if count == 0:
            return


def applied(op: str, instance: Instance, typing: Typing) -> Graph:
    """A program of one node."""
    graph = Graph(name=op)
    inputs = [
        None if type_ is None else graph.add_input(f"x{i}", type_)
        for i, type_ in enumerate(instance.operands)
    ]
    results = [(f"y{i}", type_) for i, type_ in enumerate(typing.outputs)]
    node = graph.add_node(op, inputs, results, typing.attributes)
    graph.outputs = [t for t in node.outputs if t is not None]
    return graph


def lowered(text: str) -> str:
    return LOWERING.lower(parse_uir(text, "test.uir", SIGNATURES)).decode()


# --- the text ------------------------------------------------------------------------------------


def test_a_program_reads_as_a_person_would_write_it() -> None:
    text = lowered("""
        x: float32[2, 3]
        const w: float32[3] = 0.5
        a = mul(x, w)
        y = softsign(a)
    """)
    body = text[text.index("def build") :]
    assert (
        body
        == """def build() -> tvm.IRModule:
    bb = relax.BlockBuilder()
    x = relax.Var("x", tensor_type((2, 3), "float32"))
    w = relax.const([0.5, 0.5, 0.5], "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(R.multiply(x, w), "a")
            y = bb.emit(R.divide(a, R.add(relax.const(1.0, "float32"), R.abs(a))), "y")
            outputs = bb.emit_output(y)
        bb.emit_func_output(outputs)
    return bb.get()
"""
    )


def test_only_tvm_numpy_and_what_decodes_constants_are_imported() -> None:
    graph = Graph()
    big = graph.add_initializer("big", TensorType("float32", (100,)), np.ones(100, np.float32))
    graph.outputs = list(graph.add_node("neg", [big], [("y", big.type)]).outputs)  # type: ignore[arg-type]
    text = LOWERING.lower(graph).decode()
    imports = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    assert imports == ["base64", "numpy", "tvm", "tvm", "tvm"]


def test_names_that_are_no_identifiers_or_are_taken_get_others() -> None:
    graph = Graph(name='a "quoted" name\n')
    type_ = TensorType("float32", (2,))
    names = ("onnx::Add_1", "R", "lambda", "1", "", "R", "relax")
    inputs = [graph.add_input(name, type_) for name in names]
    graph.outputs = list(graph.add_node("sum_n", inputs, [("print", type_)]).outputs)  # type: ignore[arg-type]
    text = LOWERING.lower(graph).decode()
    compile(text, "<text>", "exec")
    parameters = re.search(r'"main", \[(.*)\]', text)
    assert parameters is not None
    taken = parameters[1].split(", ")
    assert taken[0] == "onnx__Add_1"
    assert len({*taken}) == len(names)
    assert not {"R", "relax", "lambda", "1"} & {*taken}
    assert f"INPUTS = {names!r}" in text


# --- every operator ------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATORS)
def test_an_operator_is_lowered_or_declined_but_never_raises(op: str) -> None:
    sampler, rng = Sampler(SIGNATURES[op]), Random(op)
    assert (op in FORMS) != (op in NO_OPERATOR)
    for _ in range(2 * INSTANCES):
        instance = sampler.draw(rng)
        if instance is None:
            continue
        typing = SIGNATURES.check(op, instance.operands, instance.attributes)
        reason = LOWERING.unsupported(op, instance.operands, typing.attributes)
        if reason is None:
            compile(LOWERING.lower(applied(op, instance, typing)), "<text>", "exec")
        else:
            assert reason


def test_what_is_not_known_before_it_runs_is_declined() -> None:
    x, axes = TensorType("float32", (2, 3)), TensorType("int64", (1,))
    assert LOWERING.unsupported("sum", [x, axes], {"axes": (0,)})
    assert LOWERING.unsupported("relu", [TensorType("float32", (None, 3))], {})
    assert LOWERING.unsupported("identity", [TensorType("string", (2,))], {})
    assert LOWERING.unsupported("cast", [x], {"to": "int4"})
    assert LOWERING.unsupported("relu", [x], {}) is None


@needs_tvm
@pytest.mark.slow
def test_every_instance_builds_well_formed_with_the_declared_types() -> None:
    assert PYTHON is not None
    tasks = []
    for op in OPERATORS:
        for number, (instance, typing) in enumerate(drawn(op, INSTANCES)):
            results = [[dtype_name(t.dtype), list(t.shape or ())] for t in typing.outputs]
            source = LOWERING.lower(applied(op, instance, typing)).decode()
            task = {"key": f"{op}-{number}", "source": source, "results": results}
            tasks.append(json.dumps(task))
    script = Path(__file__).with_name("build_relax.py")
    given = "\n".join(tasks)
    ran = subprocess.run([PYTHON, str(script)], input=given, capture_output=True, text=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(tasks) > 1500
    assert [answer for answer in answers if answer["problem"] is not None] == []


@pytest.fixture(scope="module")
def llvm() -> Iterator[TargetProcess]:
    limits = Limits(seconds=60, startup_seconds=120)
    with TargetProcess(parse_target(f"tvm@{PYTHON}"), limits) as process:
        yield process


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(FORMS))
def test_results_are_those_of_the_reference(op: str, llvm: TargetProcess) -> None:
    rng = np.random.default_rng(zlib.crc32(op.encode()))
    for instance, typing in drawn(op, JUDGED):
        values = operands(rng, op, instance, dict(typing.attributes))
        try:
            wanted = apply(op, values, typing.attributes, typing.outputs)
        except SemanticsError:
            continue
        undefined = causes(op, values, typing.attributes)
        model = LOWERING.lower(applied(op, instance, typing))
        inputs = {f"x{i}": value for i, value in enumerate(values) if value is not None}
        result = llvm.run(Job(model, inputs, ("optimised",))).results["optimised"]
        if result.failure is not None:
            message = " ".join(result.failure.message.split())
            assert any(re.search(known, message) for known in TVM_CRASHES), message
            continue
        assert result.outputs is not None
        precision = coarsest([*instance.operands, *typing.outputs])
        for i, (got, want) in enumerate(zip(result.outputs, wanted, strict=True)):
            if i not in undefined and op not in TVM_WRONG:
                assert got.dtype == want.dtype
                assert difference(got, want, precision) is None, (instance, i)


PROGRAMS = {
    "qlinear_matmul": """
        a: uint8[2, 3]; b: int8[3, 4]
        const s: float32[] = 0.5; const z: uint8[] = 3; const t: float32[4] = 0.25
        const u: int8[4] = 1; const v: float32[] = 2.0; const w: uint8[] = 7
        y = qlinear_matmul(a, s, z, b, t, u, v, w)""",
    "qlinear_conv": """
        x: uint8[1, 2, 4, 4]; k: int8[2, 2, 3, 3]; b: int32[2]
        const s: float32[] = 0.5; const z: uint8[] = 3; const t: float32[2] = 0.25
        const u: int8[2] = 1; const v: float32[] = 2.0; const w: int8[] = 7
        y = qlinear_conv(x, s, z, k, t, u, v, w, b, pads=[1, 1, 1, 1])""",
    "rotary_embedding": """
        x: float32[2, 3, 8]; c: float32[2, 3, 2]; s: float32[2, 3, 2]
        y = rotary_embedding(x, c, s, num_heads=2, rotary_embedding_dim=4)""",
    "interleaved rotary_embedding": """
        x: float32[2, 2, 3, 4]; c: float32[5, 2]; s: float32[5, 2]
        const p: int64[2, 3] = 4
        y = rotary_embedding(x, c, s, p, interleaved=true)""",
    "causal attention over a past": """
        q: float32[2, 4, 3, 8]; k: float32[2, 2, 3, 8]; v: float32[2, 2, 3, 5]
        m: float32[3, 5]; o: float32[2, 2, 2, 8]; u: float32[2, 2, 2, 5]
        y, a, b, s = attention(q, k, v, m, o, u, is_causal=true, softcap=2.0)""",
    "a transposed convolution, dilated, in groups, cropped": """
        x: float32[2, 4, 5]; w: float32[4, 3, 2]
        y = conv_transpose1d(x, w, groups=2, strides=[2], dilations=[3], pads=[4, 1])""",
    "a bidirectional lstm": """
        x: float32[3, 2, 4]; w: float32[2, 12, 4]; r: float32[2, 12, 3]; b: float32[2, 24]
        const n: int32[2] = 2
        y, h, c = lstm(x, w, r, b, n, hidden_size=3, direction="bidirectional")""",
    "a resize that keeps the aspect ratio": """
        x: float32[1, 2, 4, 6]
        y = resize(x, scales=[1.0, 1.0, 0.6, 1.7], mode="linear", antialias=true)""",
    "a mean whose sum the type cannot hold": """
        x: int32[2, 3]
        const w: int32[3] = 2000000000
        a = bitwise_or(x, w)
        y = mean(a, axis=1)""",
    "three axes resized": """
        x: float32[3, 4, 5]
        y = resize(x, sizes=[5, 4, 3], mode="cubic", exclude_outside=true)""",
}
"""Applications that are rarely drawn."""


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["optimised", "unoptimised"])
def test_what_is_rarely_drawn_is_right_too(name: str, mode: str, llvm: TargetProcess) -> None:
    graph = parse_uir(PROGRAMS[name], "test.uir", SIGNATURES)
    for node in graph.nodes:
        types = [None if t is None else t.type for t in node.inputs]
        assert LOWERING.unsupported(node.op, types, node.attributes) is None
    rng = np.random.default_rng(1)
    inputs = {
        t.name: (rng.normal(size=t.type.shape) * 3).astype(t.type.dtype)  # type: ignore[arg-type]
        if "float" in str(t.type.dtype)
        else rng.integers(0, 9, t.type.shape).astype(t.type.dtype)  # type: ignore[arg-type]
        for t in graph.tensors
        if t.role is Role.INPUT
    }
    wanted = evaluate(Program(graph, inputs))
    result = llvm.run(Job(LOWERING.lower(graph), inputs, (mode,))).results[mode]
    assert result.outputs is not None, result.failure
    for got, want in zip(result.outputs, wanted, strict=True):
        assert difference(got, want, "float32") is None


@needs_tvm
@pytest.mark.slow
def test_constants_keep_every_bit(llvm: TargetProcess) -> None:
    odd = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1, 0x3DCCCCCD], np.uint32)
    arrays = [
        odd.view(np.float32),
        np.array([0.1, -0.0, np.nan, 5e-324]),
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1], np.uint64),
        np.array([0.1, 3.0, -0.0], ml_dtypes.bfloat16),
        np.array([6e-8, 65504], np.float16),
        np.array(True),
        np.zeros((0, 3), np.float32),
        np.arange(100, dtype=np.int16).reshape(4, 25),
    ]
    graph = Graph()
    for i, array in enumerate(arrays):
        type_ = TensorType(str(array.dtype), array.shape)
        graph.outputs.append(graph.add_initializer(f"c{i}", type_, array))
    result = llvm.run(Job(LOWERING.lower(graph), {}, ("unoptimised",))).results["unoptimised"]
    assert result.outputs is not None, result.failure
    for got, want in zip(result.outputs, arrays, strict=True):
        assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())
