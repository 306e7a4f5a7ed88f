"""The rules about ONNX Runtime's kernels, and about what it refuses to load, against ONNX Runtime:
each of their examples runs in a worker, with and without optimisation. A match shows the rule's
symptom; what does not match does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target
from reprise.targets.interface import Ended, Job, Outcome, Stage
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Graph, Role
from reprise.uir.semantics.evaluate import evaluate
from reprise.uir.semantics.registry import UndefinedError
from reprise.uir.text import parse_uir
from tests.bugs.programs import Example, examples
from tests.conftest import ROOT

onnxruntime = pytest.importorskip("onnxruntime")
FILES = (
    *("conv_transpose", "dequantize_int32", "empty_tensors", "expand", "half_cast"),
    *(
        "avg_pool_ceil",
        "batch_norm_in_place",
        "pad_wrap",
        "quantize_half",
        "quick_gelu",
        "relu6",
        "resize_cubic",
        "slice_to_max",
    ),
)
FOLDER = ROOT / "rules" / "bugs" / "onnxruntime"
RULES = load_rules([FOLDER / f"{name}.rules" for name in (*FILES, "where_negative_zero")])
MINED = {"ort_half_cast_like"}  # test_onnxruntime_mined.py: numpy has no reference for it
OURS = [n for n, p in RULES.patterns.items() if p.get("target") == "onnxruntime" and n not in MINED]
EXAMPLES = list(examples(RULES, OURS))
LIMITS = Limits(seconds=4)
RUNS, OTHERS = 4, 5
"""How often a program is run in a process that shows memory which is not set, and in how many
others, at most."""
DIRT = "".join(
    f"a{n}: float32[{n}]\nb{n} = neg(a{n})\n" for n in (1, 2, 4, 6, 8, 16, 64, 256, 1024)
)
"""A program that leaves what it is given in memory, in pieces of many sizes."""
pytestmark = pytest.mark.skipif(
    onnxruntime.__version__ != "1.27.0", reason=f"not measured on {onnxruntime.__version__}"
)


@pytest.fixture(scope="module")
def process() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target("onnxruntime"), LIMITS) as one:
        one.start()
        yield one


@pytest.fixture(scope="module")
def dirt(process: TargetProcess) -> Job:
    """Leaves NaN in the memory that is free: of a zero there, a kernel makes what it should."""
    graph = parse_uir(DIRT, "dirt.uir", Signatures.load())
    given = [t for t in graph.tensors if t.role is Role.INPUT]
    inputs = {t.name: np.full(t.type.shape or (), np.nan, np.float32) for t in given}
    return Job(lowering("onnx").lower(graph), inputs, process.target.modes)


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = {}
    for tensor in graph.tensors:
        if tensor.role is Role.INPUT:
            shape = tensor.type.shape
            inputs[tensor.name] = rng.integers(1, 5, shape).astype(tensor.type.dtype)
    return inputs


def in_memory_with_dirt(job: Job, process: TargetProcess, dirt: Job) -> Iterator[Outcome]:
    """Run a program that may show memory which is not set: where others ran before, then in new
    processes. What is unset may be what it should, as where much memory was never used."""
    yield from _again(job, process, dirt)
    for _ in range(OTHERS):
        with TargetProcess(process.target, LIMITS) as another:
            yield from _again(job, another, dirt)


def _again(job: Job, process: TargetProcess, dirt: Job) -> Iterator[Outcome]:
    for _ in range(RUNS):
        process.run(dirt)
        yield process.run(job)


def symptoms_of(outcome: Outcome, expected: list[np.ndarray] | None) -> set[str]:
    """What the modes show, in the words of rules. Without what is expected, whether they fail."""
    found = set()
    if outcome.ended is Ended.HANG:
        found.add("hang")
    elif outcome.ended is not Ended.ANSWERED:
        found.add("crash_at_run" if outcome.stage is Stage.RUN else "crash_at_load")
    for result in outcome.results.values():
        if result.failure is not None:
            at_run = result.failure.stage is Stage.RUN
            found.add("crash_at_run" if at_run else "crash_at_load")
        elif expected is None:
            continue
        elif any(a.shape != b.shape for a, b in zip(result.outputs or (), expected, strict=True)):
            found.add("wrong_shape")
        elif not all(map(same, result.outputs or (), expected)):
            found.add("wrong_result")
    return found


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Values within rounding, and zeros of the same sign."""
    if got.dtype.kind != "f":
        return np.array_equal(got, wanted)
    zeros = (got == 0) & (wanted == 0)
    if (np.signbit(got) != np.signbit(wanted))[zeros].any():
        return False
    return np.allclose(got, wanted, rtol=1e-2, atol=1e-3, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.key)
def test_an_example_does_what_its_rule_says(
    example: Example, process: TargetProcess, dirt: Job
) -> None:
    graph = example.graph
    inputs = inputs_of(graph)
    expected = None
    with suppress(UndefinedError):  # ONNX's own operators have no reference here
        expected = [np.asarray(value) for value in evaluate(graph, inputs)]
    job = Job(lowering("onnx").lower(graph), inputs, process.target.modes)
    wanted = set(RULES.patterns[example.rule].meta["symptom"])
    matches = example.kind == "match"
    if matches and "wrong_result" in wanted:
        runs = (
            symptoms_of(outcome, expected) for outcome in in_memory_with_dirt(job, process, dirt)
        )
        seen = next(filter(None, runs), set())
    else:
        seen = symptoms_of(process.run(job), expected)
    assert bool(seen & wanted) == matches, seen


def test_every_rule_has_an_example_of_either_kind() -> None:
    for name in OURS:
        assert {"match", "no_match"} <= {e.kind for e in EXAMPLES if e.rule == name}
