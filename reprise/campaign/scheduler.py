"""Who does a campaign's work: one process, or several of this machine.

Work comes in batches of numbered items, in order, and results go out in the same order, one for
each item, whatever the number of processes and however often one of them dies. The interface is
two methods, so that something that spreads work over machines can stand in for what is here; all
that it needs is that :class:`Work`, items and results can be pickled.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)

_BATCHES_AHEAD = 64
"""How many batches a process may be ahead of the slowest one: results wait in memory."""
_STARTS = 3
"""How often in a row a process may die before it is set up."""
_PATIENCE = 3.0
"""Seconds that a process has to end by itself."""


class Bench(Protocol[Item_contra, Result_co]):
    """What does the work in one process, with all that it costs to set up."""

    def run(self, batch: Sequence[Item_contra], /) -> Iterator[Result_co]:
        """A result for each item, in order."""
        ...

    def close(self) -> None: ...


class Work(Protocol[Item_contra, Result_co]):
    """How to set up a bench; crosses process boundaries."""

    def open(self) -> Bench[Item_contra, Result_co]: ...

    def abandoned(self, item: Item_contra, /) -> Result_co:
        """The result of an item that twice took the process that worked on it with it."""
        ...


class Scheduler(Protocol[Item_contra, Result_co]):
    """Where work is done."""

    def run(self, batches: Iterator[Sequence[Item_contra]], /) -> Iterator[Result_co]:
        """Results in the order of the items. Batches are asked for when they can be started, not
        before. Raises what a bench raised; whoever stops early closes the iterator."""
        ...

    def close(self) -> None:
        """End all work, finished or not."""
        ...


class SchedulerError(Exception):
    """No process can be had to work in; for people."""


class InProcess(Generic[Item, Result]):
    """All in this process, on a bench that is there already."""

    def __init__(self, bench: Bench[Item, Result]) -> None:
        self._bench = bench

    def run(self, batches: Iterator[Sequence[Item]], /) -> Iterator[Result]:
        for batch in batches:
            yield from self._bench.run(batch)

    def close(self) -> None:
        self._bench.close()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A process says that its bench is set up."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """A process says why it ends."""

    error: Exception


@dataclass(slots=True)
class _Batch(Generic[Item, Result]):
    """A batch under way: its items, and the results that are not handed out yet."""

    items: Sequence[Item]
    done: int = 0
    results: deque[Result] = field(default_factory=deque)
    deadly: int = -1
    """The item at which a process died last."""


class LocalProcesses(Generic[Item, Result]):
    """``jobs`` processes of this machine. A process that dies is replaced; the item that it worked
    on is tried once more, then abandoned."""

    def __init__(self, work: Work[Item, Result], jobs: int) -> None:
        self._work = work
        self._lanes = [_Lane(work) for _ in range(jobs)]

    def run(self, batches: Iterator[Sequence[Item]], /) -> Iterator[Result]:
        under_way: deque[_Batch[Item, Result]] = deque()
        more = True
        while True:
            for lane in self._lanes:
                if lane.batch is None and len(under_way) < _BATCHES_AHEAD * len(self._lanes):
                    items = next(batches, None) if more else None
                    more = items is not None
                    if items:
                        batch: _Batch[Item, Result] = _Batch(items)
                        under_way.append(batch)
                        lane.begin(batch)
            while under_way:
                first = under_way[0]
                while first.results:
                    yield first.results.popleft()
                if first.done < len(first.items):
                    break
                under_way.popleft()
            if not under_way:
                if not more:
                    return
                continue
            busy = {lane.connection: lane for lane in self._lanes if lane.batch is not None}
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                self._listen(busy[connection])

    def _listen(self, lane: _Lane) -> None:
        """Take one message from a process that has something to say, or has died."""
        batch = lane.batch
        assert batch is not None
        try:
            message = lane.connection.recv()
        except (EOFError, OSError):
            self._bury(lane)
            return
        match message:
            case _Ready():
                lane.ready = True
                lane.failed_starts = 0
            case _Failed(error):
                raise error
            case result:
                batch.results.append(result)
                batch.done += 1
                if batch.done == len(batch.items):
                    lane.batch = None

    def _bury(self, lane: _Lane) -> None:
        """Replace a process that died, and go on where it was."""
        batch = lane.batch
        assert batch is not None
        if not lane.ready:
            lane.failed_starts += 1
            if lane.failed_starts > _STARTS:
                raise SchedulerError(
                    f"worker processes die when they start ({lane.how_it_ended()})"
                )
        elif batch.deadly == batch.done:
            batch.results.append(self._work.abandoned(batch.items[batch.done]))
            batch.done += 1
        else:
            batch.deadly = batch.done
        lane.restart()
        if batch.done == len(batch.items):
            lane.batch = None
        else:
            lane.begin(batch)

    def close(self) -> None:
        for lane in self._lanes:
            lane.tell_to_end()
        for lane in self._lanes:
            lane.end()

    @property
    def pids(self) -> list[int]:
        """The processes at work, those that are set up."""
        return [lane.process.pid or 0 for lane in self._lanes if lane.ready]


_SPAWN = multiprocessing.get_context("spawn")
"""Not forked: a copy of this process would hold the run's lock, and its threads' locks."""


class _Lane:
    """A process and its end of the connection."""

    def __init__(self, work: Work[Any, Any]) -> None:
        self._work = work
        self.batch: _Batch[Any, Any] | None = None
        self.failed_starts = 0
        self.restart()

    def restart(self) -> None:
        if hasattr(self, "process"):
            self.end()
        self.ready = False
        self.connection, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(self._work, theirs))
        self.process.start()
        theirs.close()  # so that its death is the end of the stream

    def begin(self, batch: _Batch[Any, Any]) -> None:
        """Send what is left of a batch. A process that is dead is noticed when we listen."""
        self.batch = batch
        with contextlib.suppress(OSError):
            self.connection.send(batch.items[batch.done :])

    def how_it_ended(self) -> str:
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit {code}"

    def tell_to_end(self) -> None:
        self.process.terminate()

    def end(self) -> None:
        self.connection.close()
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()


def _serve(work: Work[Any, Any], connection: Connection) -> None:
    """The life of a process. It ends when the connection does: with its parent, at the latest."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to everybody
    signal.signal(signal.SIGTERM, _leave)
    try:
        with contextlib.closing(work.open()) as bench:
            connection.send(_Ready())
            while True:
                for result in bench.run(connection.recv()):
                    connection.send(result)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(_Failed(_picklable(error)))


def _leave(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _picklable(error: Exception) -> Exception:
    """An exception that survives the way to the parent: as it is if it is one of our own."""
    plain = len(error.args) == 1 and isinstance(error.args[0], str) and not error.__dict__
    if type(error).__module__.startswith("reprise.") and plain:
        return error
    return RuntimeError(f"in a worker process: {type(error).__name__}: {error}")
