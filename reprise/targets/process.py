"""A target's process, seen from the campaign: jobs in, outcomes out, whatever happens in between.

:class:`TargetProcess` starts a worker once and feeds it. A crash, a hang, a memory blow-up or an
unreadable answer ends that worker; the outcome says so and the next job gets a new one.
:meth:`TargetProcess.submit` and :meth:`TargetProcess.wait` are two calls so that one thread can
generate the next program while the target works on this one. :class:`WorkerPool` shares several
among threads; blocking calls are all it needs, since a wait leaves the interpreter to others.

What the worker says is never believed: see ``wire`` for frames; messages are checked here.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from reprise.targets.discover import Target, TargetError
from reprise.targets.interface import (
    Ended,
    Failure,
    Job,
    ModeResult,
    Outcome,
    PassEvent,
    Stage,
)
from reprise.targets.wire import Frame, Reader, WireError, pack
from reprise.targets.worker import NO_MODE, STAGES, TRAIL

_HERE = Path(__file__).parent
_TICK = 0.05
"""Seconds between looks at a worker's memory."""
_COLLECTING = 1.0
"""Seconds that a worker has at least to hand over what it has when we come for it."""
_DYING = 3.0
"""Seconds that a process may take from closing its connection to its end."""
_TRAIL_BYTES = 1 << 26
_EVENT = re.compile(r"([+=-])(\d{1,9}) (.*)")
"""A line of the worker's trail of passes."""
_STARTS = 2
"""How often a worker is started before a job is given up as unstarted."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SINGLE_THREADED = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "TVM")
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may take: seconds on the clock and resident MiB of its process (0: no limit; it
    is looked at twenty times a second). A worker that holds more than half of that between two
    jobs, or has died there, is replaced: no job is blamed for what others left behind. Of what it
    prints, an outcome keeps the last ``log_bytes``."""

    seconds: float = 60.0
    memory_mib: int = 4096
    log_bytes: int = 16_384
    startup_seconds: float = 300.0


class _Lost(Exception):
    """The worker is of no more use."""

    def __init__(self, ended: Ended, note: str = "") -> None:
        self.ended = ended
        self.note = note


class _Worker:
    """One process, from its start to its end."""

    def __init__(
        self, target: Target, limits: Limits, folder: str, environment: Mapping[str, str]
    ) -> None:
        self.limits = limits
        self._log = bytearray()
        self._looked = time.monotonic()
        self._statm: int | None = None
        self._ended = False
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        log, log_end = os.pipe()
        self._status = os.memfd_create("reprise") if hasattr(os, "memfd_create") else _file()
        fds = (theirs.fileno(), self._status, life)
        command = [target.python, "-I", "-u", str(_HERE / "worker.py"), str(target.file)]
        command += [target.device, *map(str, fds)]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=log_end,
                stderr=log_end,
                start_new_session=True,
                cwd=folder,
                env={**_SINGLE_THREADED, **dict(target.environment), **os.environ, **environment},
            )
        except BaseException:
            for fd in (self._life, log, self._status):
                os.close(fd)
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(life)
            os.close(log_end)
        self.pid = self._process.pid
        os.set_blocking(log, False)
        ours.setblocking(False)
        self._socket, self._log_fd = ours, log
        self._reader = Reader(ours)
        self._death = _pidfd(self.pid)
        with contextlib.suppress(OSError):
            self._statm = os.open(f"/proc/{self.pid}/statm", os.O_RDONLY)
        self._poll = select.poll()
        for fd in [ours.fileno(), log, *([] if self._death is None else [self._death])]:
            self._poll.register(fd, select.POLLIN)

    def send(self, message: dict[str, Any], arrays: list[tuple[str, Any]], deadline: float) -> None:
        """Send a frame. Raises _Lost, WireError."""
        self._log.clear()
        os.ftruncate(self._status, TRAIL)
        os.pwrite(self._status, bytes((NO_MODE, 0)), 0)
        for piece in pack(message, arrays):
            rest = memoryview(piece)
            while rest:
                try:
                    rest = rest[self._socket.send(rest) :]
                except BlockingIOError:
                    self._poll.modify(self._socket, select.POLLIN | select.POLLOUT)
                    self._pause(deadline)
                    self._poll.modify(self._socket, select.POLLIN)
                except OSError as error:
                    raise _Lost(Ended.DIED) from error

    def receive(self, deadline: float) -> Frame:
        """The next frame. What has arrived counts, also after the deadline. Raises _Lost."""
        while True:
            try:
                frame = self._reader.read()
            except WireError as error:
                raise _Lost(Ended.GARBAGE, str(error)) from error
            except (EOFError, OSError) as error:
                raise _Lost(Ended.DIED) from error
            if frame is not None:
                return frame
            self._pause(deadline)

    def _pause(self, deadline: float) -> None:
        """Wait until there may be something to read or to write. Raises _Lost where waiting is
        over: at the deadline, over the memory limit, after the process's death."""
        now = time.monotonic()
        events = self._poll.poll(max(0.0, min(_TICK, deadline - now)) * 1000)
        ready = {fd for fd, _ in events}
        if self._log_fd in ready:
            self._drain_log()
        if now - self._looked >= _TICK:
            self._looked = now
            if self.limits.memory_mib and self.resident_mib() > self.limits.memory_mib:
                raise _Lost(Ended.MEMORY)
        if self._socket.fileno() in ready:
            return
        if self._death in ready or (self._death is None and self.is_dead()):
            raise _Lost(Ended.DIED)
        if now >= deadline:
            raise _Lost(Ended.HANG)

    def resident_mib(self) -> int:
        """Memory that the process holds; 0 where the system does not say."""
        if self._statm is None:
            return 0
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(os.pread(self._statm, 100, 0).split()[1]) * _PAGE >> 20
        return 0

    def where(self) -> tuple[int, Stage]:
        """The mode (its number, or NO_MODE) and the stage that were announced last."""
        mode, stage, *_ = *os.pread(self._status, 2, 0), 0, 0
        return mode, Stage(STAGES[stage]) if stage < len(STAGES) else Stage.LOAD

    def trail(self) -> tuple[tuple[PassEvent, ...], int]:
        """The passes that were announced since the last frame was sent, and the most MiB that the
        process says it held."""
        text = os.pread(self._status, _TRAIL_BYTES, TRAIL).decode("utf-8", "replace")
        matches = (_EVENT.fullmatch(line) for line in text.split("\n"))
        lines = [match.groups() for match in matches if match is not None]
        events = tuple(PassEvent(name, sign == "-") for sign, _, name in lines if sign != "=")
        return events, max((int(mib) for _, mib, _ in lines), default=0)

    def log(self) -> str:
        """The tail of what was printed since the last frame was sent."""
        if not self._ended:
            self._drain_log()
        return self._log.decode("utf-8", "replace")

    def end(self, patience: float = 0.0) -> str:
        """End the process and all of its group; how it ended: ``SIGSEGV``, ``exit 3``."""
        self._socket.close()
        killed = not self._wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        code = self._process.wait()
        self._drain_log()
        self._ended = True
        for open_fd in (self._life, self._log_fd, self._status, self._death, self._statm):
            if open_fd is not None:
                os.close(open_fd)
        if killed or code >= 0:
            return "killed" if killed else f"exit {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def _wait(self, seconds: float) -> bool:
        """Whether the process ends by itself within ``seconds``."""
        limit = time.monotonic() + seconds
        while not self.is_dead():
            if time.monotonic() >= limit:
                return False
            self._drain_log()  # it may be waiting to print
            time.sleep(0.002)
        return True

    def is_dead(self) -> bool:
        """Whether the process has ended (it is not reaped yet)."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:
            return True

    def _drain_log(self) -> None:
        for _ in range(64):  # bounded: it may print faster than we read
            try:
                data = os.read(self._log_fd, 1 << 16)
            except OSError:
                return
            if not data:
                with contextlib.suppress(KeyError):
                    self._poll.unregister(self._log_fd)
                return
            self._log += data
            del self._log[: -self.limits.log_bytes]


class TargetProcess:
    """One worker at a time, for one thread at a time. A context manager: leaving it ends the
    worker and its whole process group."""

    def __init__(
        self,
        target: Target,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``environment``: variables for the worker, besides our own."""
        self.target = target
        self.limits = limits or Limits()
        self._environment = dict(environment or {})
        self.starts = 0
        """How many workers there have been."""
        self._folder = tempfile.TemporaryDirectory(prefix="reprise-", ignore_cleanup_errors=True)
        self._worker: _Worker | None = None
        self._versions: dict[str, str] = {}
        self._sent = 0
        self._job: Job | None = None
        self._submitted = 0.0
        self._early: Outcome | None = None

    def __enter__(self) -> TargetProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The worker's process, if there is one."""
        return None if self._worker is None else self._worker.pid

    def start(self) -> dict[str, str]:
        """Start the worker, unless it is there already; the target's versions, by package.

        Raises TargetError if the interpreter or the target does not work.
        """
        if self._worker is None:
            self._versions = self._start()
        return self._versions

    def run(self, job: Job) -> Outcome:
        """Run a job; never raises for what a target does."""
        self.submit(job)
        return self.wait()

    def submit(self, job: Job) -> None:
        """Give the worker a job; :meth:`wait` says what became of it. One at a time.

        Raises WireError if the job's arrays have no raw bytes."""
        assert self._job is None, "a job is running"
        self._early = None
        self._submitted = time.monotonic()
        try:
            self._ready()
        except TargetError as error:
            self._early = Outcome(Ended.UNSTARTED, log=str(error))
        else:
            self._submitted = time.monotonic()
            message = {"kind": "job", "modes": job.modes, "first": self.target.modes[0]}
            message["disabled"] = job.disabled
            message["label"] = job.label
            try:
                with self._whole():
                    self._send(message, job.model, job.inputs)
            except _Lost as lost:
                self._early = self._lost(lost, {}, job)
        self._job = job

    def wait(self) -> Outcome:
        """The outcome of the job that was submitted."""
        job = self._job
        assert job is not None, "no job is running"
        self._job = None
        if self._early is not None:
            return self._early
        worker = self._worker
        assert worker is not None
        results: dict[str, ModeResult] = {}
        # If we come late, it may have been waiting for us to take a large answer.
        late = time.monotonic() + min(_COLLECTING, self.limits.seconds)
        deadline = max(self._submitted + self.limits.seconds, late)
        try:
            with self._whole():
                for index, mode in enumerate(job.modes):
                    frame = worker.receive(deadline)
                    results[mode] = _result(frame, self._sent, index)
        except _Lost as lost:
            return self._lost(lost, results, job)
        seconds = time.monotonic() - self._submitted
        trail, peak = worker.trail()
        return Outcome(
            Ended.ANSWERED, results, None, None, None, worker.log(), seconds, trail, peak
        )

    def passes(self, model: bytes) -> tuple[str, ...]:
        """The names of what can be disabled when ``model`` is compiled, the likeliest first; empty
        if the target cannot say."""
        self._submitted = time.monotonic()
        try:
            self._ready()
            with self._whole():
                worker = self._send({"kind": "passes"}, model, {})
                frame = worker.receive(self._submitted + self.limits.seconds)
            return _passes(frame, self._sent)
        except TargetError:
            return ()
        except _Lost as lost:
            self._lost(lost, {}, Job(model, {}, ()))
            return ()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """All is sent and received, or else the worker ends, as where Ctrl-C comes in between: what
        it has yet to say would be taken for its answer to the next job."""
        try:
            yield
        except (_Lost, WireError):
            raise
        except BaseException:
            worker, self._worker = self._worker, None
            if worker is not None:
                worker.end()
            raise

    def close(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(0.0 if self._job is not None else 1.0)
        self._job = None
        self._folder.cleanup()

    def _ready(self) -> None:
        """Have a worker that can take a job. Raises TargetError."""
        worker, limit = self._worker, self.limits.memory_mib
        if worker is not None:
            if not worker.is_dead() and not (limit and worker.resident_mib() * 2 > limit):
                return
            self._worker = None
            worker.end(1.0)
        for attempt in range(_STARTS):
            try:
                self.start()
                return
            except TargetError:
                if attempt == _STARTS - 1:
                    raise

    def _start(self) -> dict[str, str]:
        target = self.target
        self.starts += 1
        try:
            worker = _Worker(target, self.limits, self._folder.name, self._environment)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TargetError(f"{target.name}: cannot start {target.python}: {reason}") from error
        try:
            frame = worker.receive(time.monotonic() + self.limits.startup_seconds)
        except _Lost as lost:
            how = worker.end(_DYING if lost.ended is Ended.DIED else 0.0)
            raise TargetError(self._why_not_started(lost, how, worker)) from lost
        except BaseException:
            worker.end()
            raise
        message = frame.message
        if message.get("kind") == "ready" and isinstance(message.get("versions"), dict):
            self._worker = worker
            return {str(name): str(version) for name, version in message["versions"].items()}
        worker.end(1.0)
        reason = f"{message.get('type')}: {message.get('message')}"
        if message.get("type") == "ModuleNotFoundError":
            reason += f"; `--target {target.name}@ENVIRONMENT` names where it is installed"
        raise TargetError(f"{target.name} does not work with {target.python}: {reason}")

    def _why_not_started(self, lost: _Lost, how: str, worker: _Worker) -> str:
        lines = worker.log().strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
        what = {
            Ended.HANG: f"was not ready within {self.limits.startup_seconds:g} s",
            Ended.MEMORY: f"needs more than {self.limits.memory_mib} MiB to start",
            Ended.GARBAGE: "does not speak our protocol",
        }.get(lost.ended, f"ended ({how}) before it was ready")
        return f"{self.target.name} with {self.target.python} {what}{said}"

    def _send(self, message: dict[str, Any], model: bytes, inputs: dict[str, Any]) -> _Worker:
        worker = self._worker
        assert worker is not None
        self._sent += 1
        arrays = [("", _bytes(model)), *inputs.items()]
        deadline = self._submitted + self.limits.seconds
        worker.send({**message, "id": self._sent}, arrays, deadline)
        return worker

    def _lost(self, lost: _Lost, results: dict[str, ModeResult], job: Job) -> Outcome:
        """The end of the worker as an outcome."""
        worker, self._worker = self._worker, None
        assert worker is not None
        seconds = time.monotonic() - self._submitted
        (number, stage), (trail, peak) = worker.where(), worker.trail()
        if lost.ended is Ended.MEMORY:
            peak = max(peak, worker.resident_mib())
        mode = job.modes[number] if number < len(job.modes) else None
        how = worker.end(_DYING if lost.ended is Ended.DIED else 0.0)
        died = lost.ended is Ended.DIED
        log = "\n".join(part for part in (worker.log(), lost.note) if part)
        if died and how == "killed":  # it only closed its connection
            return Outcome(Ended.GARBAGE, results, mode, stage, None, log, seconds, trail, peak)
        how_died = how if died else None
        return Outcome(lost.ended, results, mode, stage, how_died, log, seconds, trail, peak)


class Jobs(Protocol):
    """Who runs jobs: one process, or a pool of them."""

    def run(self, job: Job) -> Outcome: ...

    def passes(self, model: bytes) -> tuple[str, ...]: ...


class WorkerPool:
    """Several processes of one target, shared by threads."""

    def __init__(self, target: Target, jobs: int, limits: Limits | None = None) -> None:
        self._all = [TargetProcess(target, limits) for _ in range(jobs)]
        self._idle: queue.LifoQueue[TargetProcess] = queue.LifoQueue()
        for process in self._all:
            self._idle.put(process)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> dict[str, str]:
        """Start one worker, to see whether it works; the target's versions. Raises TargetError."""
        with self._taken() as process:
            return process.start()

    def run(self, job: Job) -> Outcome:
        """Run a job on the first process that is free."""
        with self._taken() as process:
            return process.run(job)

    def passes(self, model: bytes) -> tuple[str, ...]:
        """As :meth:`TargetProcess.passes`."""
        with self._taken() as process:
            return process.passes(model)

    def close(self) -> None:
        """End all workers. No thread may be in :meth:`run`."""
        for process in self._all:
            process.close()

    @contextlib.contextmanager
    def _taken(self) -> Iterator[TargetProcess]:
        process = self._idle.get()
        try:
            yield process
        finally:
            self._idle.put(process)


def _result(frame: Frame, job: int, index: int) -> ModeResult:
    """A mode's result out of a worker's message. Raises _Lost."""
    message = frame.message
    if message.get("kind") == "no arrays":
        raise _Lost(Ended.GARBAGE, f"no arrays: {message.get('message')}")
    try:
        if (message["kind"], message["id"], message["index"]) != ("result", job, index):
            raise ValueError("not an answer to this job")
        seconds = float(message["seconds"])
        if "failure" not in message:
            return ModeResult(tuple(frame.arrays.values()), None, seconds)
        return ModeResult(None, _failure(message["failure"]), seconds)
    except (KeyError, TypeError, ValueError) as error:
        raise _Lost(Ended.GARBAGE, f"a malformed answer: {error}") from error


def _failure(message: dict[str, Any]) -> Failure:
    return Failure(
        Stage(message["stage"]),
        str(message["type"]),
        str(message["message"]),
        tuple(str(frame) for frame in message["frames"]),
        message["unsupported"] is True,
    )


def _passes(frame: Frame, job: int) -> tuple[str, ...]:
    message = frame.message
    names = message.get("names")
    if (message.get("kind"), message.get("id")) != ("passes", job) or not isinstance(names, list):
        raise _Lost(Ended.GARBAGE, "not an answer to this question")
    return tuple(str(name) for name in names)


def _bytes(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8)


def _file() -> int:
    """A nameless file, where the system has none in memory."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable when the process has died, where the system has that."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
