"""A target with known defects: it runs ONNX models of a few operators in numpy, and its optimised
mode gets some of them wrong.

- ``fuse_relu_clip`` cannot fuse Relu and Clip in float64: compiling fails.
- ``fuse_neg_neg`` drops two Negs in a row, and adds 1 where they are of rank 2 or more.
- Exp of 6 elements or more adds 1 to the last (no pass is to blame).
- Frobnicate, an operator of the toy's own, adds 1 to what Abs makes (no pass either).
- Tanh and Sigmoid die with the same message on anything greater than 2 (no pass either).

``TOY_SECONDS`` in the environment: how long a run takes besides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

NAME = "toy-compiler"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)


class Runner:
    """See ``reprise.targets.interface``."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import onnx

        self.onnx = onnx
        self.announce = announce

    def versions(self) -> dict[str, str]:
        return {"toy-compiler": "1.0"}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
        graph = self.onnx.ModelProto.FromString(model).graph
        values = dict(inputs)
        for tensor in graph.initializer:
            values[tensor.name] = self.onnx.numpy_helper.to_array(tensor)
        makers = {name: node for node in graph.node for name in node.output}
        passes = () if mode == "unoptimised" else [p for p in PASSES if p not in disabled]
        self.announce("compile")
        if "fuse_relu_clip" in passes:
            self._fuse_relu_clip(graph, makers, values)
        self.announce("run")
        for node in graph.node:
            operands = [values[name] if name else None for name in node.input]
            result = OPERATORS[node.op_type](*operands)
            before = makers.get(node.input[0])
            neg = node.op_type == "Neg" and before is not None and before.op_type == "Neg"
            if "fuse_neg_neg" in passes and neg and result.ndim >= 2:
                result = result + np.ones((), result.dtype)
            if mode == "optimised":
                if node.op_type == "Frobnicate" and before is not None and before.op_type == "Abs":
                    result = result + np.float32(1)
                if node.op_type == "Exp" and result.size >= 6:
                    result = result.copy()
                    result.reshape(-1)[-1] += 1
                if node.op_type in ("Tanh", "Sigmoid") and np.any(operands[0] > 2):
                    raise RuntimeError("out of table")
            values[node.output[0]] = result
        return [values[output.name] for output in graph.output]

    def _fuse_relu_clip(self, graph: Any, makers: dict[str, Any], values: dict[str, Any]) -> None:
        doubles = {name for name, value in values.items() if value.dtype == np.float64}
        for node in graph.node:
            if node.input[0] in doubles:
                doubles.update(node.output)
            before = makers.get(node.input[0])
            pair = (before.op_type if before is not None else "", node.op_type)
            if pair == ("Relu", "Clip") and node.input[0] in doubles:
                raise TypeError("relu and clip: not a float")

    def passes(self, model: bytes) -> Sequence[str]:
        return PASSES

    def is_unsupported(self, error: Exception) -> bool:
        return isinstance(error, KeyError)


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    return np.clip(x, low, high) if low is not None or high is not None else x


PASSES = ("fuse_relu_clip", "fuse_neg_neg")
OPERATORS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "Clip": _clip,
    "Exp": np.exp,
    "Frobnicate": lambda x: 2 * x,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": lambda x, shape: x.reshape(shape.tolist()),
    "Sigmoid": lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype),
    "Tanh": np.tanh,
    "Transpose": np.transpose,
}
