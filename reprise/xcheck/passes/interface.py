"""What a stage report is, and what a target file does to give one.

A *stage report* says how far a compiler got with a model that was compiled and never run. It comes
from a worker of the compiler's own interpreter (``reprise.targets``): no other protocol is needed,
since a target may announce its passes and the outcome keeps them, however the process ended.

**A target file that counts passes** is a target file (``reprise.targets.interface``) in this folder
with these conventions:

- ``LOWERING`` is "onnx" (it is given the serialised ONNX model) or "torch" (the source that
  ``reprise.lower.torch`` writes for it). ``MODES = ("compiled",)``: nothing is compared.
- ``DEVICES`` are platforms to compile *for*; the first is the default. What follows the colon in
  ``--target NAME:PLATFORM`` is handed to ``Runner`` as its device, whether it is listed or not
  ("nvidia/nvidia-h100", a configuration file): ``__init__`` raises for one that it does not know.
- Where a compiler only says in its log which passes it ran, ``PASS_LOG`` is a literal tuple of
  pairs: "begin", "end" or "idle", and a regular expression whose first group, in what the worker
  prints, is the name of a pass. These passes are within the one that was announced last. "idle" is
  the end of a pass that changed nothing: nothing can have failed before the next one begins, and
  which is the next the log of a trivial model tells.
- ``run`` gets no inputs and allocates none: extents may be in the billions. It calls
  ``announce.begin(NAME)`` when a pass begins and ``announce.end(NAME)`` when it is over and did not
  fail, with the compiler's own names. The first pass is :data:`IMPORTER`, the frontend. Containers
  (passes that only run others) are not announced. A pass may run several times and may be nested in
  another. It returns ``()``, or lets the compiler's exception through.

**Counting.** :attr:`StageReport.started` and :attr:`StageReport.completed` hold each name once, in
the order of its first begin or end: a pass that runs once for every node says nothing by its number
of runs. Algorithm 1 of the second paper divides by the number of completed passes, which the paper
leaves undefined where the importer fails; here it is :attr:`StageReport.passes`, at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from reprise.targets.interface import Ended, Failure, Outcome, PassEvent

IMPORTER = "import"
"""The first pass of every compiler: reading the model."""


class Ending(Enum):
    """How a compilation ended."""

    ACCEPTED = "accepted"  # compiled, whatever the model
    REJECTED = "rejected"  # an exception
    CRASHED = "crashed"  # the process: a signal, abort(), exit, or an unreadable answer
    HANG = "hang"  # over the time limit
    MEMORY = "memory"  # over the memory limit
    UNASKED = "unasked"  # no worker, or no form of the model that it reads: says nothing


@dataclass(frozen=True, slots=True)
class StageReport:
    """How far a compiler got with a model.

    ``started`` and ``completed``: distinct names of passes, in order, :data:`IMPORTER` first.
    ``stopped_in``: the innermost pass that had begun and not ended when the compilation ended
    otherwise than accepted; None between passes (code generation after the last one, say).
    ``failure``: a rejection's exception (``failure.unsupported``: the compiler says that it does
    not do this). ``signal``: a crash's (``SIGSEGV``, ``exit 3``). ``seconds`` on the clock;
    ``peak_mib``: the most memory that the worker held, its imports included, as far as was seen.
    ``log``: the tail of what it printed; why, if it was not asked. ``last``: the pass that ended
    last, which may have run before."""

    ending: Ending
    started: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    stopped_in: str | None = None
    failure: Failure | None = None
    signal: str | None = None
    seconds: float = 0.0
    peak_mib: int = 0
    log: str = ""
    last: str | None = None

    @property
    def passes(self) -> int:
        """Completed passes, the importer among them; at least 1, as Algorithm 1's p must be."""
        return max(1, len(self.completed))

    @property
    def where(self) -> str:
        """The stage that was reached, for people: "in FuseOps", "after FuseOps", "at the end"."""
        if self.ending is Ending.ACCEPTED:
            return "at the end"
        if self.stopped_in is not None:
            return f"in {self.stopped_in}"
        return "at the start" if self.last is None else f"after {self.last}"


class Compiler(Protocol):
    """Who compiles models and says how far that went: ``reprise.xcheck.passes.compiler``, or a
    test's own."""

    def compile(self, model: bytes, /) -> StageReport:
        """Compile a serialised ONNX model; never raises for what a compiler does."""
        ...


def stage_report(outcome: Outcome) -> StageReport:
    """The report that a job's outcome amounts to."""
    (result,) = outcome.results.values() if len(outcome.results) == 1 else (None,)
    failure = None if result is None else result.failure
    match outcome.ended:
        case Ended.ANSWERED:
            ending = Ending.ACCEPTED if failure is None else Ending.REJECTED
        case Ended.DIED | Ended.GARBAGE:
            ending = Ending.CRASHED
        case Ended.HANG:
            ending = Ending.HANG
        case Ended.MEMORY:
            ending = Ending.MEMORY
        case Ended.UNSTARTED:
            ending = Ending.UNASKED
    trail = outcome.trail
    return StageReport(
        ending,
        tuple(dict.fromkeys(event.name for event in trail)),
        tuple(dict.fromkeys(event.name for event in trail if event.ended)),
        None if ending is Ending.ACCEPTED else _innermost(trail),
        failure,
        outcome.signal,
        outcome.seconds,
        outcome.peak_mib,
        outcome.log,
        next((event.name for event in reversed(trail) if event.ended), None),
    )


def _innermost(trail: tuple[PassEvent, ...]) -> str | None:
    """The pass that had begun last of those that had not ended. One that ends closes those that
    it had begun: they failed, and it went on without them."""
    open_passes: list[str] = []
    for event in trail:
        if not event.ended:
            open_passes.append(event.name)
        elif event.name in open_passes:
            while open_passes.pop() != event.name:
                pass
    return open_passes[-1] if open_passes else None
