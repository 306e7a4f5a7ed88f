"""``reprise check``: start-up, and the time for models of growing size.

Run ``python -m benchmarks.check [--json FILE]``. Process times are shown next to two baselines of
the same run, an empty interpreter and ``import onnx``, since machines differ more than programs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

import onnx
from onnx import TensorProto, helper

from reprise.cache import cache_folder
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


def layer_norm() -> onnx.ModelProto:
    """A layer normalisation written by hand: six operators in which many rules end."""
    one = [helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])]
    one += [helper.make_tensor("eps", TensorProto.FLOAT, [], [1e-5])]
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["q"]),
        helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["w"]),
        helper.make_node("Sqrt", ["w"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
        helper.make_node("Mul", ["n", "scale"], ["y"]),
    ]
    values = {"x": [2, 1], "scale": [4]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [y], one)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def process_seconds(arguments: Sequence[str], before: Callable[[], object] | None = None) -> float:
    """The median wall time of a fresh process, in seconds."""

    def once() -> None:
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)

    return timed(once, before)


def timed(action: Callable[[], object], before: Callable[[], object] | None = None) -> float:
    """The median wall time of ``action``, in seconds; ``before`` runs before each time."""
    times = []
    for _ in range(REPEATS):
        if before is not None:
            before()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def forget_plans() -> None:
    """Let the next process plan and compile rules anew; the rules themselves stay loaded."""
    for path in cache_folder().glob("plans-*"):
        path.unlink(missing_ok=True)


def main() -> None:
    """Measure, print a table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # of this benchmark alone
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
        onnx.save(layer_norm(), folder / "norm.onnx")
        norm = [*check, str(folder / "norm.onnx")]
        label = "process: reprise check, layer norm"
        rows.append((f"{label}, no plans kept", process_seconds(norm, forget_plans)))
        rows.append((f"{label}, plans kept", process_seconds(norm)))
        checker = Checker(CheckOptions((data_path("rules/bugs"),)))
        checker.check(folder / "m10.onnx")
        for nodes in (10, 1_000, 10_000):
            path = folder / f"m{nodes}.onnx"
            rows.append((f"in process: {nodes:,} nodes", timed(partial(checker.check, path))))
    baseline = dict(rows)["process: import onnx"]
    print(f"{len(checker.patterns)} rules, median of {REPEATS}")
    print(f"{'what':<55} {'seconds':>9} {'/ import onnx':>14}")
    for label, seconds in rows:
        print(f"{label:<55} {seconds:>9.3f} {seconds / baseline:>14.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"seconds": dict(rows)}, indent=2))


if __name__ == "__main__":
    main()
