"""ONNX Runtime: everything its optimiser does against nothing of it.

Runs in a worker (see ``interface``): imports nothing but the standard library, numpy and
onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NAME = "onnxruntime"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu", "cuda")

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class Runner:
    """Sessions on one device, each in a single thread."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import onnxruntime
        from onnxruntime.capi import _pybind_state as native

        self.ort = onnxruntime
        self.native = native
        self.announce = announce
        provider = _PROVIDERS[device]
        if provider not in onnxruntime.get_available_providers():
            raise RuntimeError(f"this onnxruntime has no {provider}")
        self.providers = [provider]
        if device != "cpu":
            self.providers.append(_PROVIDERS["cpu"])
        onnxruntime.set_default_logger_severity(4)
        onnxruntime.disable_telemetry_events()

    def versions(self) -> dict[str, str]:
        return {"onnxruntime": self.ort.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        options = self._options(mode)
        session = self.native.InferenceSession(options, model, False, False)
        self.announce("compile")
        session.initialize_session(self.providers, [{} for _ in self.providers], set(disabled))
        self.announce("run")
        outputs = session.run([output.name for output in session.outputs_meta], inputs, None)
        return [*outputs]

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        return type(error).__name__ == "NotImplemented"

    def _options(self, mode: str) -> Any:
        options = self.ort.SessionOptions()
        level = self.ort.GraphOptimizationLevel
        every, none = level.ORT_ENABLE_ALL, level.ORT_DISABLE_ALL
        options.graph_optimization_level = every if mode == "optimised" else none
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        return options
