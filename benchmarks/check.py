"""``reprise check``: start-up, and the time for models of growing size.

Run ``python -m benchmarks.check [--json FILE]``. Process times are shown next to two baselines of
the same run, an empty interpreter and ``import onnx``, since machines differ more than programs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median

import onnx
from onnx import TensorProto, helper

from reprise.data import data_path
from reprise.patterns.check import Checker, CheckOptions

REPEATS = 5
UNARY = ["Relu", "Tanh", "Exp", "Abs", "Neg", "Sigmoid", "Identity", "Floor", "Sqrt", "Softmax"]
BINARY = ["Add", "Mul", "Sub", "Max", "MatMul"]


def random_model(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """A valid model of ``nodes`` nodes over square float32 matrices."""
    random = Random(seed)
    names = ["x"]
    made = []
    for i in range(nodes):
        recent = names[-6:]
        name = f"t{i}"
        if random.random() < 0.6:
            op, inputs = random.choice(UNARY), [random.choice(recent)]
        else:
            op, inputs = random.choice(BINARY), [random.choice(recent), random.choice(recent)]
        made.append(helper.make_node(op, inputs, [name], name=f"n{i}"))
        names.append(name)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 8])
    y = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)
    graph = helper.make_graph(made, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def process_seconds(arguments: Sequence[str]) -> float:
    """The median wall time of a fresh process, in seconds."""

    def once() -> None:
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)

    return timed(once)


def timed(action: Callable[[], object]) -> float:
    """The median wall time of ``action``, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def main() -> None:
    """Measure, print a table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for nodes in (10, 1_000, 10_000):
            onnx.save(random_model(nodes), folder / f"m{nodes}.onnx")
        small = str(folder / "m10.onnx")
        rows.append(("process: empty interpreter", process_seconds(["-c", "pass"])))
        rows.append(("process: import onnx", process_seconds(["-c", "import onnx"])))
        rows.append(("process: reprise --help", process_seconds(["-m", "reprise", "--help"])))
        check = ["-m", "reprise", "check"]
        rows.append(("process: reprise check, 10 nodes", process_seconds([*check, small])))
        for nodes in (1_000, 10_000):
            label = f"process: reprise check, {nodes:,} nodes"
            rows.append((label, process_seconds([*check, str(folder / f"m{nodes}.onnx")])))
        checker = Checker(CheckOptions((data_path("rules/bugs"),)))
        checker.check(folder / "m10.onnx")
        for nodes in (10, 1_000, 10_000):
            path = folder / f"m{nodes}.onnx"
            rows.append((f"in process: {nodes:,} nodes", timed(lambda p=path: checker.check(p))))
    baseline = dict(rows)["process: import onnx"]
    print(f"{len(checker.patterns)} rules, median of {REPEATS}")
    print(f"{'what':<40} {'seconds':>9} {'/ import onnx':>14}")
    for label, seconds in rows:
        print(f"{label:<40} {seconds:>9.3f} {seconds / baseline:>14.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"seconds": dict(rows)}, indent=2))


if __name__ == "__main__":
    main()
