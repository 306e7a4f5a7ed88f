"""ONNX Runtime, as far as a session: its graph transformers, out of its log.

Runs in a worker (see ``interface``). A session plans memory for what depends on no input and
allocates initializers only, so inputs may be of any extent. ONNX Runtime logs a transformer when it
is through, with the status that it gave; one that throws an exception is not named, but it follows
the one that was named last, unless that had changed the graph: then what failed may also be the
check of what it made, and the report only says that the session's initialisation stopped
("initialize").
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAME = "onnxruntime"
LOWERING = "onnx"
MODES = ("compiled",)
DEVICES = ("cpu", "cuda")

PASS_LOG = (
    ("end", r"GraphTransformer (\w+) modified: 1 with status: OK"),
    ("idle", r"GraphTransformer (\w+) modified: 0 with status: OK"),
    ("begin", r"GraphTransformer (\w+) modified: [01] with status: (?!OK)"),
    ("end", r"\.cc:\d+ (InlineFunctionsAOT)\]"),
    ("begin", r"\.cc:\d+ (SaveInitializedTensors)\] Saving"),
    ("end", r"\.cc:\d+ (SaveInitializedTensors)\] Done"),
)

_INFO = 1
"""The severity from which on the log names transformers."""


def _shared() -> Any:
    """The target file ``targets/onnxruntime.py``; ``import onnxruntime`` would be the compiler."""
    path = Path(__file__).resolve().parents[2] / "targets" / "onnxruntime.py"
    spec = importlib.util.spec_from_file_location("reprise_target_onnxruntime", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner:
    """Makes sessions on one provider."""

    def __init__(self, device: str, announce: Any) -> None:
        shared = _shared()
        self.maker = shared.Runner(device, announce)
        self.announce = announce
        self.options = self.maker.session_options(shared.MODES[0], severity=_INFO)

    def versions(self) -> dict[str, str]:
        versions: dict[str, str] = self.maker.versions()
        return versions

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        providers = self.maker.providers
        self.announce("load")
        self.announce.begin("import")
        session = self.maker.native.InferenceSession(self.options, model, False, False)
        self.announce.end("import")
        self.announce("compile")
        self.announce.begin("initialize")
        session.initialize_session(providers, [{}] * len(providers), set(disabled))
        self.announce.end("initialize")
        return ()

    def passes(self, model: bytes) -> Sequence[str]:
        names: Sequence[str] = self.maker.passes(model)
        return names

    def is_unsupported(self, error: Exception) -> bool:
        return bool(self.maker.is_unsupported(error))
