"""A target that evaluates ONNX models with ONNX's own reference, and whose optimiser has a bug:
version 1 adds one to every relu of float32, unless its pass ``AddOne`` is left out; version 2 fails
to load such a model; version 3 has no bug. ``DEFECT_VERSION`` in the environment says which it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

NAME = "faulty"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)


class Runner:
    """Evaluates."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self.version = os.environ.get("DEFECT_VERSION", "1")

    def versions(self) -> dict[str, str]:
        return {"faulty": f"{self.version}.0"}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.announce("load")
        graph = onnx.load_from_string(model)
        kinds = {value.name: value.type.tensor_type.elem_type for value in graph.graph.input}
        hit = any(
            node.op_type == "Relu" and kinds.get(node.input[0]) == onnx.TensorProto.FLOAT
            for node in graph.graph.node
        )
        broken = hit and mode == "optimised" and "AddOne" not in disabled
        if broken and self.version == "2":
            raise ValueError("no kernel for PlusOne")
        self.announce("run")
        outputs = ReferenceEvaluator(graph).run(None, inputs)
        return [array + 1 if broken and self.version == "1" else array for array in outputs]

    def passes(self, model: bytes) -> Sequence[str]:
        return ("RemoveNothing", "AddOne")

    def is_unsupported(self, error: Exception) -> bool:
        return False
