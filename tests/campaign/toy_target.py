"""A target that does to a model what the model's checksum says: most are fine, some break."""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

NAME = "toy"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)


class Runner:
    """``TOY`` in the environment names what happens to the unlucky ones besides."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self.harm = os.environ.get("TOY", "").split()

    def versions(self) -> dict[str, str]:
        return {"toy": "1.0"}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        import numpy as np

        luck = zlib.crc32(model) % 100
        self.announce("compile")
        if mode == "optimised":
            if "garbage" in self.harm and 20 <= luck < 26:
                os.write(int(sys.argv[3]), b"this is no frame, whatever it is" * 10)
                time.sleep(60)
            if "dies" in self.harm and 26 <= luck < 32:
                os.abort()
            if luck < 6:
                raise ValueError("no kernel of the first kind")
            if luck < 9:
                raise KeyError("the second kind")
        self.announce("run")
        wrong = mode == "optimised" and luck in (9, 10, 11)
        return [np.full(3, 1.0 + wrong, np.float32)]

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        return False
