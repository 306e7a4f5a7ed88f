"""ONNX Runtime: everything that its optimiser does against nothing of it.

Runs in a worker (see ``interface``): imports nothing but the standard library, numpy, ml_dtypes
and onnxruntime. Sessions are made through the binding that ``onnxruntime.InferenceSession`` wraps,
which loads a model and initialises the session in two calls: two stages here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

NAME = "onnxruntime"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu", "cuda")

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_RULES = {
    "Level1_RuleBasedTransformer": (
        *("EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout"),
        *("ExpandElimination", "CastElimination", "PreShapeNodeElimination", "NoopElimination"),
        *("DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion"),
        *("NotWhereFusion", "ConvAddFusion", "ConvMulFusion", "ConvBNFusion", "Pad_Fusion"),
        *("MatMul_BatchNormalization_Fusion", "LabelEncoderFusion"),
    ),
    "Level2_RuleBasedTransformer": ("ClipQuantRewrite", "ReluQuantRewrite", "GemmTransposeFusion"),
}
"""The rewrite rules of the two transformers that consist of rules, each of which can be disabled
by itself (``GenerateRewriteRules`` in onnxruntime's ``graph_transformer_utils.cc``)."""

_EXTENSIONS = {
    "tensor(bfloat16)": ("bfloat16", 16),
    "tensor(float8e4m3fn)": ("float8_e4m3fn", 17),
    "tensor(float8e4m3fnuz)": ("float8_e4m3fnuz", 18),
    "tensor(float8e5m2)": ("float8_e5m2", 19),
    "tensor(float8e5m2fnuz)": ("float8_e5m2fnuz", 20),
}
"""Element types that ``run`` cannot take or give as numpy arrays: their names in ml_dtypes and
their numbers in ONNX."""

_IDENTITY = (
    b'\x08\x08:9\n\x12\n\x01x\x12\x01y"\x08Identity:\x00\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01b\x0f\n\x01'
    b"y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\x11"
)
"""A model that returns its input."""

_DECLINED = re.compile(
    r"\bnot (yet |currently registered or )?support|\b[Uu]nsupported\b|\bonly supports\b"
    r"|is not a registered function/op|\bis under development\b"
)
_TRANSFORMED = re.compile(r"GraphTransformer (\w+) modified: ([01])")


class Runner:
    """Sessions on one device, each in a single thread."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        import onnxruntime
        from onnxruntime.capi import _pybind_state as native

        provider = _PROVIDERS[device]
        if provider not in onnxruntime.get_available_providers():
            raise RuntimeError(f"this onnxruntime has no {provider}")
        self.announce = announce
        self.ort = onnxruntime
        self.native = native
        self.providers = [provider] if device == "cpu" else [provider, _PROVIDERS["cpu"]]
        self.options = {mode: self.session_options(mode) for mode in MODES}
        onnxruntime.set_default_logger_severity(4)
        onnxruntime.disable_telemetry_events()

    def versions(self) -> dict[str, str]:
        return {"onnxruntime": self.ort.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        session = self.native.InferenceSession(self.options[mode], model, False, False)
        self.announce("compile")
        session.initialize_session(self.providers, [{}] * len(self.providers), set(disabled))
        self.announce("run")
        names = [output.name for output in session.outputs_meta]
        values = [*session.inputs_meta, *session.outputs_meta]
        if any(value.type in _EXTENSIONS for value in values):
            return self._run_raw(session, inputs, names)
        outputs: list[Any] = session.run(names, inputs, None)
        return outputs

    def passes(self, model: bytes) -> Sequence[str]:
        """What changed this model, then everything else that the optimiser has. Transformers that
        run with all optimisations disabled too are no candidates."""
        always = {name for name, _ in self._transformers(model, "unoptimised")}
        seen = self._transformers(model, "optimised")
        changed = [name for name, changed in reversed(seen) if changed]  # what broke it came last
        seen += self._transformers(_IDENTITY, "optimised")  # a failure ends the other list early
        rest = [name for name, _ in seen]
        names = [n for name in [*changed, *rest] for n in _RULES.get(name, (name,))]
        return [name for name in dict.fromkeys(names) if name not in always]

    def is_unsupported(self, error: Exception) -> bool:
        """No kernel for an operator with these element types, or one that says what it does not
        do. (In the optimised mode alone it is a defect: the optimiser made what no kernel takes.)
        """
        return type(error).__name__ == "NotImplemented" or _DECLINED.search(str(error)) is not None

    def session_options(self, mode: str, severity: int = 4) -> Any:
        options = self.ort.SessionOptions()
        level = self.ort.GraphOptimizationLevel
        every, none = level.ORT_ENABLE_ALL, level.ORT_DISABLE_ALL
        options.graph_optimization_level = every if mode == MODES[0] else none
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = severity
        return options

    def _transformers(self, model: bytes, mode: str) -> list[tuple[str, bool]]:
        """The graph transformers that a session applies, and whether they changed the model, out
        of its log. Those before a failure if there is one."""
        with tempfile.TemporaryFile() as log:
            kept = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                with contextlib.suppress(Exception):
                    options = self.session_options(mode, severity=1)
                    session = self.native.InferenceSession(options, model, False, False)
                    session.initialize_session(self.providers, [{}] * len(self.providers), set())
            finally:
                os.dup2(kept, 2)
                os.close(kept)
            log.seek(0)
            text = log.read().decode("utf-8", "replace")
        return [(name, changed == "1") for name, changed in _TRANSFORMED.findall(text)]

    def _run_raw(self, session: Any, inputs: dict[str, Any], names: list[str]) -> list[Any]:
        """Run on memory, for element types that the binding does not translate."""
        import ml_dtypes

        def dtype(kind: str) -> Any:
            return np.dtype(getattr(ml_dtypes, _EXTENSIONS[kind][0]))

        value = self.native.OrtValue
        given = {}
        for meta in session.inputs_meta:
            array = inputs[meta.name]
            if meta.type in _EXTENSIONS:
                raw = array.view(f"u{array.dtype.itemsize}")
                number = _EXTENSIONS[meta.type][1]
                given[meta.name] = value.ortvalue_from_numpy_with_onnx_type(raw, number)
            else:
                cpu = self.native.OrtDevice(0, 0, 0)
                given[meta.name] = value.ortvalue_from_numpy(array, cpu)
        outputs = []
        results = session.run_with_ort_values(given, names, None)
        for meta, result in zip(session.outputs_meta, results):  # noqa: B905  (Python 3.9)
            if meta.type in _EXTENSIONS:
                shape = tuple(result.shape())
                size = int(np.prod(shape, dtype=np.int64)) * dtype(meta.type).itemsize
                raw = ctypes.string_at(result.data_ptr(), size)
                outputs.append(np.frombuffer(raw, dtype(meta.type)).reshape(shape))
            else:
                outputs.append(result.numpy())
        return outputs
