"""A target with a planted defect: what matches the rule in ``PLANTED`` fails while it is compiled.

The rule is matched by the matcher that ships, in the target's process. The pass ``Planted`` is to
blame. Results are zeros of the right types: only crashes can be told here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAME = "planted"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)


class Runner:
    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        from reprise.lang.ruleset import load_text
        from reprise.patterns.match import Matcher

        self.announce = announce
        rules = load_text(os.environ["PLANTED"])
        self.matcher = Matcher(rules, list(rules.patterns.values()))

    def versions(self) -> dict[str, str]:
        return {"planted": "1.0"}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        import numpy as np
        import onnx

        from reprise.facts.onnx_import import Limits, import_model
        from reprise.patterns.truth import Truth
        from reprise.uir.types import numpy_dtype

        self.announce("compile")
        graph = import_model(onnx.load_from_string(model), Path("model.onnx"), Limits())
        if mode == "optimised" and "Planted" not in disabled:
            found = self.matcher.run(graph).findings
            if any(finding.certainty is Truth.YES for finding in found):
                raise RuntimeError("the planted defect")
        self.announce("run")
        return [np.zeros(t.type.shape or (), numpy_dtype(t.type.dtype)) for t in graph.outputs]

    def passes(self, model: bytes) -> Sequence[str]:
        return ("Planted",)

    def is_unsupported(self, error: Exception) -> bool:
        return False
