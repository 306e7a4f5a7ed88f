"""A target that runs a torch program eagerly, and does not compile it.

As the last mode of the target ``inductor``, but it starts in seconds. See
``reprise.targets.interface``: it runs in a worker, and imports torch and numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAME = "torch-eager"
LOWERING = "torch"
MODES = ("eager",)
DEVICES = ("cpu",)


class Runner:
    """Runs modules in a single thread."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.announce = announce

    def versions(self) -> dict[str, str]:
        return {"torch": self.torch.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> list[Any]:
        self.announce("load")
        space: dict[str, Any] = {"__name__": "model"}
        exec(compile(model, "<program>", "exec"), space)
        module = space["Model"]().eval()
        arguments = [self.torch.from_numpy(inputs[name]) for name in module.inputs]
        self.announce("run")
        with self.torch.no_grad():
            return [result.contiguous().numpy() for result in module(*arguments)]

    def passes(self, model: bytes) -> list[str]:
        return []

    def is_unsupported(self, error: Exception) -> bool:
        return False
