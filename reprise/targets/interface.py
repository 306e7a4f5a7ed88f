"""What passes between a campaign and a target's worker: jobs in, outcomes out.

A job is one program and the modes to compile and run it in. Whatever happens in the worker, the
outcome says so: a result for each mode that was tried, or how the process ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from reprise.uir.graph import Array


@dataclass(frozen=True, slots=True)
class Job:
    """A lowered program (``model``, see ``reprise.lower``), its inputs by name, and ``modes``:
    which of the target's modes to run, in order (``("optimised", "unoptimised")``). ``disabled``
    names passes that the optimised mode leaves out."""

    model: bytes
    inputs: dict[str, Array]
    modes: tuple[str, ...]
    disabled: tuple[str, ...] = ()


class Stage(Enum):
    """Where a program failed."""

    LOAD = "load"  # the frontend refused it
    COMPILE = "compile"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that the target raised; ``frames``, innermost last: ``file:function``."""

    stage: Stage
    type: str
    message: str
    frames: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job. ``results`` has the modes that were answered before the end;
    ``mode`` and ``stage`` say where the process was if it ended otherwise; ``signal`` its name
    (``SIGSEGV``) or exit status; ``log`` the tail of its standard error."""

    ended: Ended
    results: dict[str, ModeResult] = field(default_factory=dict)
    mode: str | None = None
    stage: Stage | None = None
    signal: str | None = None
    log: str = ""
    seconds: float = 0.0
