"""TVM for CUDA, compiled only: a crash oracle for its GPU schedules and code generation.

Needs no GPU and no CUDA: TVM generates the kernels' source with its own passes, and the failures
looked for are theirs. Nothing is run, so there are no outputs and nothing to compare. Runs in a
worker (see ``interface``).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

NAME = "tvm-cuda-compile"
LOWERING = "relax"
MODES = ("compiled",)
DEVICES = ("cpu",)


def _sibling() -> Any:
    """The target file ``tvm.py`` beside this one; ``import tvm`` would be the compiler."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tvm.py")
    spec = importlib.util.spec_from_file_location("reprise_target_tvm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner:
    """Builds for CUDA."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        self.sibling = _sibling()
        self.builder = self.sibling.Runner("cpu", announce)
        self.builder.kind = "cuda"
        self.announce = announce

    def versions(self) -> dict[str, str]:
        versions: dict[str, str] = self.builder.versions()
        return versions

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        module, _ = self.builder.load(model)
        self.announce("compile")
        first = self.sibling.MODES[0]
        self.builder.build(module, first, self.sibling.skipping(self.builder.tvm, disabled))
        return ()

    def passes(self, model: bytes) -> Sequence[str]:
        """As for ``tvm``. A program that fails to compile has been through the passes up to the
        one that failed, which are those that matter."""
        names: Sequence[str] = self.builder.passes(model)
        return names

    def is_unsupported(self, error: Exception) -> bool:
        return bool(self.builder.is_unsupported(error))
