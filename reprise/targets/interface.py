"""What a target is, and what passes between a campaign and a target's worker.

A *target* is one Python file about one compiler. It runs in a worker: a process of its own, in
whatever interpreter has that compiler, so it may import only the standard library, numpy and the
compiler. :class:`TargetFile` says what the file must hold and :class:`Runner` what its class must
do; they are protocols for readers and type checkers, since a target file cannot import them.

A *job* is one program and the modes to compile and run it in. Whatever happens in the worker, the
*outcome* says so: a result for each mode that was tried, or how the process ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from reprise.uir.graph import Array


class Stage(Enum):
    """Where a program failed."""

    LOAD = "load"  # the frontend refused it
    COMPILE = "compile"
    RUN = "run"


class Announce(Protocol):
    """Says which stage a runner is about to enter: "load", "compile" or "run".

    An announcement is kept outside the process (it costs a microsecond), so that the outcome knows
    where a process was that died or hung. The stage is "load" until something else is announced.
    """

    def __call__(self, stage: str, /) -> None: ...

    def begin(self, name: str, /) -> None:
        """Say that a pass of the compiler begins: its own name for it. Only targets that count
        passes do (``reprise.xcheck.passes``); also kept outside the process, at a few
        microseconds."""
        ...

    def end(self, name: str, /) -> None:
        """Say that the pass has ended, and did not fail."""
        ...


class Runner(Protocol):
    """The compiler at work, in the worker. Made once, by ``Runner(device, announce)``; what costs
    much once (imports, a first compilation) belongs in ``__init__``.

    An exception out of ``__init__`` or ``versions`` says that the target cannot work here; one out
    of ``run`` is a failure of the program in the stage that was announced last. Whatever is
    printed, to either stream, goes to the outcome's log.
    """

    def __init__(self, device: str, announce: Announce, /) -> None: ...

    def versions(self) -> dict[str, str]:
        """The compiler's version under the name of its package, first, and what else matters."""
        ...

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...], /
    ) -> Sequence[Any]:
        """Load, compile and run ``model`` (the lowering's bytes) in one of the target's modes,
        announcing "load", "compile" and "run" on the way.

        ``inputs`` are numpy arrays by name, in the order of the graph's inputs; they are the
        runner's own and may be written to. ``disabled``: passes, of those that :meth:`passes`
        names, to leave out. Returns numpy arrays, in the order of the graph's outputs (bfloat16
        and the like as ml_dtypes arrays; strings as arrays of kind U, never of objects).
        """
        ...

    def passes(self, model: bytes, /) -> Sequence[str]:
        """What can be disabled when the first mode compiles ``model``: the candidates of pass
        ablation, the likeliest first; empty if nothing can be."""
        ...

    def is_unsupported(self, error: Exception, /) -> bool:
        """Whether an exception that ``run`` raised says that the compiler does not do this, rather
        than that it fails to."""
        ...


class TargetFile(Protocol):
    """A target file's module. The constants are literals: a campaign reads them from the source
    and never runs the file, so it may import whatever the worker's interpreter has."""

    NAME: str
    """As in ``--target NAME``: lower case, digits, ``-`` and ``_``."""
    LOWERING: str
    """What ``run`` takes: "onnx", "torch" or "relax" (``reprise.lower``)."""
    MODES: tuple[str, ...]
    """The first is what is under test, the last the least optimised: what the first is compared
    with. A target with one mode only looks for crashes."""
    DEVICES: tuple[str, ...]
    """Devices that the file knows; the first is the default. "cpu", "cuda"."""
    Runner: type[Runner]


@dataclass(frozen=True, slots=True)
class Job:
    """A lowered program (``model``, see ``reprise.lower``), its inputs by name, and ``modes``:
    which of the target's modes to run, in order (``("optimised", "unoptimised")``). ``disabled``
    names passes that the target's first mode leaves out; other modes ignore it. ``label``: what
    the monitors of an instrumented compiler are to call what they see of it."""

    model: bytes
    inputs: dict[str, Array]
    modes: tuple[str, ...]
    disabled: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that the target raised; ``frames``, innermost last: ``file:function``.
    ``unsupported``: the target says that it does not do this (:meth:`Runner.is_unsupported`)."""

    stage: Stage
    type: str
    message: str
    frames: tuple[str, ...] = ()
    unsupported: bool = False


@dataclass(frozen=True, slots=True)
class ModeResult:
    """One mode's outputs, in the order of the graph's, or its failure. ``seconds`` of CPU."""

    outputs: tuple[Array, ...] | None
    failure: Failure | None
    seconds: float


class Ended(Enum):
    """How a job ended."""

    ANSWERED = "answered"
    DIED = "died"  # the process: a signal, abort(), exit
    HANG = "hang"  # over the time limit, killed
    MEMORY = "memory"  # over the memory limit
    GARBAGE = "garbage"  # what came back was no answer
    UNSTARTED = "unstarted"  # no worker could be had: says nothing about the program


@dataclass(frozen=True, slots=True)
class PassEvent:
    """A pass that began, or ended without failing, as its target announced it."""

    name: str
    ended: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job. ``results`` has the modes that were answered before the end;
    ``mode`` and ``stage`` say where the process was if it ended otherwise; ``signal`` its name
    (``SIGSEGV``) or exit status (``exit 3``); ``log`` the tail of what it printed, where a crash's
    Python frames are too; ``seconds`` on the clock, from sending to the end; ``trail``: the passes
    that began and ended, in order, however the job ended, if the target announces them; then also
    ``peak_mib``, the most memory that the process was seen to hold since the first of them."""

    ended: Ended
    results: dict[str, ModeResult] = field(default_factory=dict)
    mode: str | None = None
    stage: Stage | None = None
    signal: str | None = None
    log: str = ""
    seconds: float = 0.0
    trail: tuple[PassEvent, ...] = ()
    peak_mib: int = 0
