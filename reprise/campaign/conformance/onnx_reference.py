"""The ONNX project's reference evaluator as a target.

Runs in a worker (``reprise.targets.interface``): imports nothing but the standard library, numpy
and onnx.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

NAME = "onnx-reference"
LOWERING = "onnx"
MODES = ("evaluated",)
DEVICES = ("cpu",)

_DECLINED = re.compile(r"not (yet )?implemented|[Nn]o (registered )?implementation|not supported")


class Runner:
    """One evaluator for each model."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import numpy
        import onnx
        import onnx.reference

        self.announce = announce
        self.numpy = numpy
        self.onnx = onnx
        warnings.simplefilter("ignore")
        numpy.seterr(all="ignore")

    def versions(self) -> dict[str, str]:
        return {"onnx": self.onnx.__version__, "numpy": self.numpy.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        evaluator = self.onnx.reference.ReferenceEvaluator(self.onnx.load_from_string(model))
        self.announce("run")
        results = evaluator.run(None, inputs)
        return [self.numpy.asarray(result) for result in results]

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        return isinstance(error, NotImplementedError) or bool(_DECLINED.search(str(error)))
