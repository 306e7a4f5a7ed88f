"""A target that only gives a model to ``onnx.checker``, with full and strict shape inference.

See ``reprise.targets.interface``: it runs in a worker (models can kill shape inference), and
imports onnx alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAME = "onnx-checker"
LOWERING = "onnx"
MODES = ("checked",)
DEVICES = ("cpu",)


class Runner:
    """Checks models."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import onnx
        from onnx import checker, shape_inference

        self.onnx = onnx
        self.check = checker.check_model
        self.infer = shape_inference.infer_shapes
        self.announce = announce

    def versions(self) -> dict[str, str]:
        return {"onnx": self.onnx.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> list[Any]:
        self.announce("load")
        self.check(model, full_check=True)
        self.announce("compile")
        self.infer(model, check_type=True, strict_mode=True, data_prop=True)
        return []

    def passes(self, model: bytes) -> list[str]:
        return []

    def is_unsupported(self, error: Exception) -> bool:
        return False
