"""Compilers that count passes: which there are, and their processes.

``NAME[:PLATFORM][@PYTHON]`` names one: a file of this folder, or the path of another, the platform
to compile for and the interpreter that has the compiler. :class:`PassCounter` compiles ONNX models
in a worker of it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from reprise.facts.errors import ModelError
from reprise.lower.lowering import lowering, refusal
from reprise.targets.discover import Target, TargetError, parse_target, read_target
from reprise.targets.interface import Job, Outcome, PassEvent
from reprise.targets.process import Limits, TargetProcess
from reprise.xcheck.passes.interface import Ending, StageReport, stage_report

_SHIPPED = ("tvm", "inductor", "onnxruntime", "genesys")
_SPEC = re.compile(r"(?P<name>.+?\.py|[^:@]+)(?::(?P<platform>[^@]+))?(?:@(?P<python>.+))?", re.S)
_LOG_BYTES = 1 << 20
"""What is kept of a log that names passes; a transformer's line has some 150 characters."""
_SHOWN_LOG = 16_384
"""Characters of the log in a report."""
_MONITOR_OUT = "REPRISE_MONITOR_OUT"
"""Tells an instrumented compiler where to write (``reprise.mining.instrument``)."""
_Entry = tuple[str, str]
"""What a line of the log says of a pass: "begin", "end" or "idle", and its name."""


def compiler_names() -> list[str]:
    """The compilers that ship, sorted."""
    return sorted(name for name in _SHIPPED if _file(name).exists())


def parse_compiler(text: str) -> Target:
    """The compiler that ``NAME[:PLATFORM][@PYTHON]`` means; the platform is its device. NAME may be
    a file's path; PYTHON an interpreter, a command or a virtual environment's folder. Raises
    TargetError."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise TargetError(f"`{text}` is no compiler: write NAME, NAME:PLATFORM or NAME@PYTHON")
    name, platform, python = match.group("name", "platform", "python")
    if not name.endswith(".py") and name not in compiler_names():
        from reprise.lang.symbols import suggest

        known = compiler_names()
        hint = suggest(name, known) or f"there are {', '.join(known)}"
        raise TargetError(f"there is no compiler `{name}` that counts passes: {hint}")
    file = Path(name) if name.endswith(".py") else _file(name)
    target = parse_target(str(file) + (f"@{python}" if python is not None else ""))
    return target if platform is None else replace(target, device=platform)


class PassCounter:
    """A compiler's worker, which compiles one model at a time. A context manager: leaving it ends
    the worker. Implements ``interface.Compiler``."""

    def __init__(
        self, target: Target, limits: Limits | None = None, *, monitors: Path | None = None
    ) -> None:
        """``monitors``: the file to which monitors of an instrumented compiler write what they
        saw, labelled with :func:`digest` of the model; it need not exist."""
        self.target = target
        self._patterns = _pass_log(target.file)
        bounds = limits or Limits()
        if self._patterns:
            bounds = replace(bounds, log_bytes=max(bounds.log_bytes, _LOG_BYTES))
        told = {} if monitors is None else {_MONITOR_OUT: str(monitors)}
        self._process = TargetProcess(target, bounds, environment=told)
        self._order: tuple[_Entry, ...] | None = None

    def __enter__(self) -> PassCounter:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def stop(self) -> None:
        """End what the worker is doing, from another thread: that compilation has crashed then."""
        pid = self._process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start(self) -> dict[str, str]:
        """Start the worker, unless it is there already; the compiler's versions, by package.
        Raises TargetError if the interpreter, the compiler or the platform does not work."""
        return self._process.start()

    def compile(self, model: bytes | Path, /) -> StageReport:
        """Compile an ONNX model, serialised or in a file, and do not run it. Never raises for what
        a compiler does; raises OSError for a file that cannot be read."""
        data = model.read_bytes() if isinstance(model, Path) else model
        label = digest(data)
        if self.target.lowering != "onnx":
            try:
                data = _lowered(data, self.target.lowering)
            except (ModelError, ValueError) as error:
                return StageReport(Ending.UNASKED, log=str(error))
        outcome = self._run(data, label)
        entries = self._named(outcome)
        events = [PassEvent(name, kind != "begin") for kind, name in entries]
        report = stage_report(_within(outcome, events))
        if report.ending in (Ending.ACCEPTED, Ending.UNASKED) or not entries:
            return report
        failed = following(entries, self._usual_order())
        if failed is None:
            return report
        return stage_report(_within(outcome, [*events, PassEvent(failed, False)]))

    def _run(self, data: bytes, label: str = "") -> Outcome:
        return self._process.run(Job(data, {}, self.target.modes[:1], label=label))

    def _named(self, outcome: Outcome) -> list[_Entry]:
        """What the log says of passes, in order."""
        found = [
            (match.start(), (kind, match.group(1)))
            for kind, pattern in self._patterns
            for match in pattern.finditer(outcome.log)
        ]
        return [entry for _, entry in sorted(found)]

    def _usual_order(self) -> tuple[_Entry, ...]:
        """What the log of a trivial model says: every pass, in order."""
        if self._order is None:
            self._order = tuple(self._named(self._run(_trivial_model())))
        return self._order


def digest(model: bytes) -> str:
    """A short name for a serialised model."""
    return hashlib.sha256(model).hexdigest()[:16]


def following(entries: Sequence[_Entry], order: Sequence[_Entry]) -> str | None:
    """The pass that must have been running when a log ended with ``entries``: the one that comes
    after the last in the usual ``order``. None if the last one had not ended or had changed
    something or is not in the order, if the next one would have said that it begins, and after the
    last of all.

    Passes may occur several times in the order, and a stretch of it may be repeated (while
    something changes): each entry is the next of its name, or else the first."""
    if entries[-1][0] != "idle" or entries[-1][1] not in {name for _, name in order}:
        return None
    at = -1
    for _, name in entries:
        places = [i for i, (_, usual) in enumerate(order) if usual == name]
        at = next((i for i in places if i > at), places[0] if places else at)
    kind, name = order[at + 1] if at + 1 < len(order) else ("begin", "")
    return name if kind != "begin" else None


def _within(outcome: Outcome, events: Sequence[PassEvent]) -> Outcome:
    """The outcome with ``events`` in the pass that was announced last, and a log to be shown."""
    trail = outcome.trail
    cut = max((i for i, event in enumerate(trail, 1) if not event.ended), default=0)
    merged = (*trail[:cut], *events, *trail[cut:])
    return replace(outcome, log=outcome.log[-_SHOWN_LOG:], trail=merged)


def _file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.py")


@cache
def _pass_log(file: Path) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """A compiler's ``PASS_LOG``, empty if it has none. Raises TargetError for one that is wrong."""
    read_target(file)
    for node in ast.parse(file.read_bytes()).body:
        match node:
            case ast.Assign([ast.Name("PASS_LOG")], value):
                try:
                    entries = [(kind, re.compile(text)) for kind, text in ast.literal_eval(value)]
                except (ValueError, TypeError, re.error) as error:
                    raise TargetError(f"{file}: PASS_LOG: {error}") from error
                kinds = ("begin", "end", "idle")
                if any(kind not in kinds or not pattern.groups for kind, pattern in entries):
                    raise TargetError(f'{file}: PASS_LOG needs pairs ("end", "…(name)…")')
                return tuple(entries)
    return ()


def _trivial_model() -> bytes:
    """A model that returns its input."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _lowered(model: bytes, language: str) -> bytes:
    """An ONNX model in another language. Raises ModelError if it cannot be imported, ValueError if
    the language has no form of it."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    from reprise.facts.onnx_import import Limits as ImportLimits
    from reprise.facts.onnx_import import import_model

    where = Path("model.onnx")
    proto = ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise ModelError(where, f"not an ONNX model: {error}") from error
    graph = import_model(proto, where, ImportLimits(value_elements=1 << 24))
    reason = refusal(lowering(language), graph)
    if reason is not None:
        raise ValueError(reason)
    return lowering(language).lower(graph)
