"""A target that only builds a Relax program and asks TVM whether it is well formed.

See ``reprise.targets.interface``: it runs in a worker, and imports TVM alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAME = "relax-well-formed"
LOWERING = "relax"
MODES = ("built",)
DEVICES = ("cpu",)


class Runner:
    """Builds modules."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import tvm
        from tvm import relax

        self.tvm = tvm
        self.relax = relax
        self.announce = announce

    def versions(self) -> dict[str, str]:
        return {"apache-tvm": self.tvm.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> list[Any]:
        self.announce("load")
        space: dict[str, Any] = {}
        exec(compile(model, "<program>", "exec"), space)
        module = space["build"]()
        if self.relax.analysis.well_formed(module) is False:  # since 0.25 it raises
            raise ValueError("the module is not well formed")
        return []

    def passes(self, model: bytes) -> list[str]:
        return []

    def is_unsupported(self, error: Exception) -> bool:
        return False
