"""A target that only gives a model to ``onnx.checker``, with full (strict) shape inference.

Without onnx's propagation of data: it takes any small integer tensor for a shape, and so refuses to
multiply one of 20 elements by one of two times 20 (onnx 1.23). See ``reprise.targets.interface``:
it runs in a worker (models can kill shape inference), and imports onnx alone.
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
        from onnx import checker

        self.onnx = onnx
        self.check = checker.check_model
        self.announce = announce

    def versions(self) -> dict[str, str]:
        return {"onnx": self.onnx.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> list[Any]:
        self.announce("load")
        self.check(model, full_check=True)
        return []

    def passes(self, model: bytes) -> list[str]:
        return []

    def is_unsupported(self, error: Exception) -> bool:
        return False
