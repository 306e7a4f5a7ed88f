"""torch.compile, on tensors that have no data: Inductor's passes and phases.

Runs in a worker (see ``interface``). The program's inputs are fake tensors, which have extents and
strides and nothing else; Inductor compiles for them as for others, down to the machine code of its
kernels, and nothing is run. Settings, caches and what is compiled are as for the target
``inductor``.

torch 2.13 says two things of its passes: each graph pass is entered as a ``GraphTransformObserver``
("post_grad_passes.remove_noop_ops" here, as torch calls it in its own timings), and each phase is
logged as a chromium event ("bytecode_tracing", "GraphLowering.run", "Scheduler.codegen").
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAME = "inductor"
LOWERING = "torch"
MODES = ("compiled",)
DEVICES = ("cpu", "cuda")

_CONTAINERS = re.compile(
    r"dynamo|entire_frame_compile|compile_attempt_\d+|backend_compile|compile_fx\..*"
    r"|inductor_compile|fx_codegen_and_compile|GraphLowering\.compile_to_fn|code_gen"
)
"""Phases that only run others."""
_NO_PASSES = re.compile(r"gc|pass\..*")
"""Events of Python's garbage collector, and those that repeat an observer's."""
_GROUPS = re.compile(r"_recursive_((?:pre_grad|joint_graph|post_grad)_passes)")
"""Phases that run graph passes, whose names are only unique within one."""


def _shared() -> Any:
    """The target file ``targets/inductor.py``."""
    path = Path(__file__).resolve().parents[2] / "targets" / "inductor.py"
    spec = importlib.util.spec_from_file_location("reprise_target_inductor", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner:
    """Compiles modules for one device."""

    def __init__(self, device: str, announce: Any) -> None:
        self.compiler = _shared().Runner(device, announce)
        self.torch = self.compiler.torch
        self.announce = announce
        self.listener = Listener(announce)

    def versions(self) -> dict[str, str]:
        versions: dict[str, str] = self.compiler.versions()
        return versions

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        from torch._dynamo.exc import BackendCompilerFailed

        self.announce("load")
        self.announce.begin("import")
        module, arguments = self.load(model)
        self.announce.end("import")
        self.announce("compile")
        with self.compiler.compiling(disabled), self.listener:
            compiled = self.torch.compile(module, fullgraph=True, dynamic=False, backend=_compile)
            try:
                compiled(*arguments)
            except BackendCompilerFailed as error:
                if not isinstance(error.inner_exception, _Compiled):
                    raise error.inner_exception from None
        return ()

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        """What dynamo does not trace."""
        return type(error).__name__ == "Unsupported"

    def load(self, model: bytes) -> tuple[Any, list[Any]]:
        """The module, with its weights, and fake tensors for its inputs."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        space: dict[str, Any] = {"__name__": "model"}
        exec(compile(model, "<program>", "exec"), space)
        module = space["Model"]().eval().to(self.compiler.device)
        with FakeTensorMode(allow_non_fake_inputs=True):
            return module, [self.compiler.zeros(type_) for type_ in module.inputs.values()]


class _Compiled(Exception):
    """The program is compiled: there is no need to run it."""


def _compile(graph: Any, examples: Any) -> Any:
    """A backend that compiles and goes no further."""
    from torch._inductor.compile_fx import compile_fx

    compile_fx(graph, examples)
    raise _Compiled


class Listener:
    """Announces passes and phases while it is entered."""

    def __init__(self, announce: Any) -> None:
        from torch._dynamo.utils import ChromiumEventLogger
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        self.announce = announce
        self.open: list[tuple[str, BaseException | None]] = []
        """Passes that began, each with the exception that was being handled then."""
        self.hearing = False
        observer, events = GraphTransformObserver, ChromiumEventLogger
        observer.__enter__ = self.before(  # type: ignore[method-assign]
            observer.__enter__, lambda its: self.begin(self.within_group(its.passname))
        )
        observer.__exit__ = self.before(  # type: ignore[method-assign]
            observer.__exit__, lambda its, *_: self.end(self.within_group(its.passname))
        )
        events.log_event_start = self.before(  # type: ignore[method-assign]
            events.log_event_start, lambda its, name, *_: self.phase(self.begin, name)
        )
        events.log_event_end = self.before(  # type: ignore[method-assign]
            events.log_event_end, lambda its, name, *_: self.phase(self.end, name)
        )

    def __enter__(self) -> None:
        self.open.clear()
        self.hearing = True

    def __exit__(self, *_: object) -> None:
        self.hearing = False

    def before(self, method: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
        """The method, which tells us first."""

        def told(*arguments: Any, **named: Any) -> Any:
            if self.hearing:
                tell(*arguments)
            return method(*arguments, **named)

        return told

    def begin(self, name: str) -> None:
        self.open.append((name, sys.exc_info()[1]))
        self.announce.begin(name)

    def end(self, name: str) -> None:
        """A phase that an exception leaves logs its end too, while the exception is on its way."""
        while self.open:
            opened, handled = self.open.pop()
            if opened == name:
                if sys.exc_info()[1] is handled:
                    self.announce.end(name)
                return

    def phase(self, tell: Callable[[str], None], name: str) -> None:
        if not _CONTAINERS.fullmatch(name) and not _NO_PASSES.fullmatch(name):
            tell(name)

    def within_group(self, name: str) -> str:
        """A graph pass's name, after that of the group that is being run."""
        groups = [match for opened, _ in self.open if (match := _GROUPS.fullmatch(opened))]
        return f"{groups[-1].group(1)}.{name}" if groups else name
