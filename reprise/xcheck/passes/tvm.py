"""TVM, compiled only: its default pipeline, through its ONNX frontend, with every pass announced.

Runs in a worker (see ``interface``). The platform is a TVM target: a kind ("llvm", "cuda"), a tag
("nvidia/nvidia-h100") or a target in JSON. No device is needed, and nothing is run or allocated.
What is compiled, and how, is as for the target ``tvm``.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAME = "tvm"
LOWERING = "onnx"
MODES = ("compiled",)
DEVICES = ("llvm", "cuda")

CODE = "code generation"
"""What comes after the passes. TVM does not say when it begins, so a failure in it is one after the
last pass; it is announced when it is over."""

_NO_SUCH_TYPE = re.compile(
    r"unknown dtype `|Data type \S+ not supported for|Cannot convert type \S+ to \w+ type"
)
"""What TVM says of element types that its frontend, an operator or a code generator has not."""
_ONLY = re.compile(r"\bonly\b.*\bsupport", re.I | re.S)
"""What its frontend says of an operator that it has for some ranks or attributes alone."""


def _shared() -> Any:
    """The target file ``targets/tvm.py``; ``import tvm`` would be the compiler."""
    path = Path(__file__).resolve().parents[2] / "targets" / "tvm.py"
    spec = importlib.util.spec_from_file_location("reprise_target_tvm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner:
    """Builds for one platform."""

    def __init__(self, device: str, announce: Any) -> None:
        self.shared = _shared()
        self.builder = self.shared.Runner("cpu", announce)
        self.announce = announce
        platform = json.loads(device) if device.startswith("{") else device
        self.builder.tvm.target.Target(platform)  # raises for one that it does not know
        self.builder.kind = platform

    def versions(self) -> dict[str, str]:
        versions: dict[str, str] = self.builder.versions()
        return versions

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        self.announce.begin("import")
        module, _ = self.builder.load(model)
        self.announce.end("import")
        self.announce("compile")
        instruments = [announcing(self.builder.tvm, self.announce, self.shared.CONTAINERS)]
        if disabled:
            instruments.append(self.shared.skipping(self.builder.tvm, disabled))
        self.builder.build(module, self.shared.MODES[0], *instruments)
        self.announce.begin(CODE)
        self.announce.end(CODE)
        return ()

    def passes(self, model: bytes) -> Sequence[str]:
        names: Sequence[str] = self.builder.passes(model)
        return names

    def is_unsupported(self, error: Exception) -> bool:
        text = str(error)
        if _NO_SUCH_TYPE.search(text) or self.builder.is_unsupported(error):
            return True
        return self.shared.in_frontend(error) and _ONLY.search(text) is not None


def announcing(tvm: Any, announce: Any, containers: frozenset[str]) -> Any:
    """A pass instrument that announces the passes that run. TVM tells it of no end of a pass that
    failed."""

    def tell(say: Callable[[str], None], name: str) -> None:
        if name not in containers:
            say(name)

    @tvm.ir.instrument.pass_instrument
    class Announcing:
        def run_before_pass(self, module: Any, info: Any) -> None:
            tell(announce.begin, info.name)

        def run_after_pass(self, module: Any, info: Any) -> None:
            tell(announce.end, info.name)

    return Announcing()
