"""The program in a target's process: ``PYTHON -I -u worker.py FILE DEVICE CONNECTION STATUS LIFE``.

Loads a target file, says that it is ready, and answers jobs until its connection closes. The last
three arguments are file descriptors:

- CONNECTION, a socket: frames (see ``wire``). Standard output and error are the target's own.
- STATUS, a file that the parent reads, also when the process has died or hangs: two bytes, the
  number of the mode that it is in and of the stage; then, if the target announces its compiler's
  passes, a line for each that began or ended, with the most MiB that the process was seen to hold
  by then (``+441 FuseOps``, ``-445 FuseOps``), and one at the end of the mode (``=446``).
- LIFE, a pipe that the parent alone can write to and never does. The kernel kills this process
  group when it closes, however the parent ended, and also while this process is in an endless loop
  inside the compiler. (PR_SET_PDEATHSIG would do it when the parent's *thread* ends.)

Runs in any interpreter from Python 3.9 that has numpy: standard library and numpy only.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import importlib.machinery
import importlib.util
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from types import CodeType, ModuleType
from typing import Any

STAGES = ("load", "compile", "run")
NO_MODE = 255
"""The status byte before the first mode."""
TRAIL = 2
"""Where the passes begin in the status file."""

_MOST_FRAMES = 60
_MOST_CHARACTERS = 20_000
_MOST_OF_A_NAME = 500
_TICK = 0.002
"""Seconds between looks at our memory while passes are announced."""


def main(arguments: list[str]) -> None:
    """Serve until the connection ends."""
    file, device = arguments[:2]
    connection, status, life = (int(argument) for argument in arguments[2:])
    _end_with_parent(life)
    _mend_surroundings()
    wire = _module("reprise_wire", os.path.join(os.path.dirname(__file__), "wire.py"))
    _Server(wire, socket.socket(fileno=connection), status).serve(file, device)


class _Announce:
    """Leaves word of where we are in the status file, outside the process."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.mode = NO_MODE
        self.stage = STAGES[0]
        self.at = TRAIL
        self.peak = 0
        self.looked = 0.0

    def __call__(self, stage: str) -> None:
        os.pwrite(self.status, bytes((self.mode, STAGES.index(stage))), 0)
        self.stage = stage

    def begin(self, name: str) -> None:
        if self.at == TRAIL:
            _forget_peak()
            self.looked = 0.0
        self._write("+", name)

    def end(self, name: str) -> None:
        self._write("-", name)

    def leave(self) -> None:
        """The mode is over."""
        if self.at > TRAIL:
            self.looked = 0.0
            self._write("=", "")

    def _write(self, sign: str, name: str) -> None:
        now = time.monotonic()
        if now - self.looked > _TICK:  # looking costs ten times as much as writing
            self.peak, self.looked = _peak_mib(), now
        line = f"{sign}{self.peak} {_clean(' '.join(name.split()))[:_MOST_OF_A_NAME]}\n".encode()
        os.pwrite(self.status, line, self.at)
        self.at += len(line)


class _Server:
    def __init__(self, wire: ModuleType, connection: socket.socket, status: int) -> None:
        self.wire = wire
        self.connection = connection
        self.announce = _Announce(status)
        self.runner: Any = None

    def serve(self, file: str, device: str) -> None:
        try:
            target = _module("reprise_target", file)
            self.runner = target.Runner(device, self.announce)
            versions = {str(k): str(v) for k, v in self.runner.versions().items()}
        except Exception as error:
            self.send({"kind": "refused", **describe(error)})
            return
        self.send({"kind": "ready", "versions": versions, "python": sys.version.split()[0]})
        reader = self.wire.Reader(self.connection)
        while True:
            try:
                frame = reader.read()
            except EOFError:
                return
            message = frame.message
            model = frame.arrays.pop("").tobytes()
            self.announce.at = TRAIL  # the parent has emptied the rest of the file
            if message["kind"] == "passes":
                self.send(self.answer_passes(message["id"], model))
            else:
                for index, mode in enumerate(message["modes"]):
                    self.run(message, index, mode, model, frame.arrays)

    def answer_passes(self, job: int, model: bytes) -> dict[str, Any]:
        try:
            names = [str(name) for name in self.runner.passes(model)]
        except Exception as error:
            return {"kind": "passes", "id": job, "names": [], "error": describe(error)}
        return {"kind": "passes", "id": job, "names": names, "error": None}

    def run(
        self, message: dict[str, Any], index: int, mode: str, model: bytes, inputs: dict[str, Any]
    ) -> None:
        """Run one mode and send what became of it."""
        answer: dict[str, Any] = {"kind": "result", "id": message["id"], "index": index}
        given = {name: array.copy() for name, array in inputs.items()}
        disabled = tuple(message["disabled"]) if mode == message["first"] else ()
        self.announce.mode = index
        self.announce(STAGES[0])
        start = time.process_time()
        try:
            with _Monitored(message["label"]):
                outputs = list(self.runner.run(model, given, mode, disabled))
        except Exception as error:
            answer["seconds"] = time.process_time() - start
            self.announce.leave()
            answer["failure"] = {"stage": self.announce.stage, **describe(error)}
            answer["failure"]["unsupported"] = self.unsupported(error)
            self.send(answer)
        else:
            answer["seconds"] = time.process_time() - start
            self.announce.leave()
            try:
                self.send(answer, [(str(i), _array(output)) for i, output in enumerate(outputs)])
            except (self.wire.WireError, ValueError) as error:
                self.send({"kind": "no arrays", "id": message["id"], **describe(error)})

    def unsupported(self, error: Exception) -> bool:
        try:
            return bool(self.runner.is_unsupported(error))
        except Exception:
            traceback.print_exc()
            return False

    def send(self, message: dict[str, Any], arrays: Any = ()) -> None:
        for piece in self.wire.pack(message, arrays):
            self.connection.sendall(piece)


class _Monitored:
    """Have the monitors of an instrumented compiler (``reprise.mining.instrument``), if it has been
    imported, take what follows for a run of its own. Not by ``contextlib``, which sets the
    traceback of an exception that passes: a frozen one becomes a TypeError by that."""

    def __init__(self, label: str) -> None:
        self._monitor: Any = sys.modules.get("_reprise_monitor") if label else None
        self._label = label

    def __enter__(self) -> None:
        if self._monitor is not None:
            self._monitor.begin(self._label)

    def __exit__(self, *_: object) -> None:
        if self._monitor is not None:
            self._monitor.end()


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as a message can hold it, whatever its own methods do."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = f"<a {name} that cannot be printed>"
    try:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [
            f"{_short(entry.filename)}:{entry.name}"
            for entry in stack
            if entry.filename != __file__
        ]
    except Exception:
        frames = []
    return {
        "type": _clean(name),
        "message": _clean(text),
        "frames": [_clean(frame) for frame in frames[-_MOST_FRAMES:]],
    }


def _clean(text: str) -> str:
    """Of bounded length, and of characters that any file or terminal can be given."""
    if len(text) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode()


def _forget_peak() -> None:
    """Have the kernel take the memory that we hold now for the most that we ever held."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _peak_mib() -> int:
    """The most resident memory since :func:`_forget_peak`; 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", "rb") as file:
        _, found, rest = file.read().partition(b"VmHWM:")
        if found:
            return int(rest.split(None, 1)[0]) >> 10
    return 0


def _short(filename: str) -> str:
    """A source file's name relative to the folder that it was imported from. A target file that
    ships is called the same whether its interpreter has Reprise or not: what is told of a crash
    must not depend on that."""
    if os.path.dirname(filename) == os.path.dirname(__file__):
        return f"targets/{os.path.basename(filename)}"
    within = [folder for folder in sys.path if folder and filename.startswith(folder + os.sep)]
    return filename[len(max(within, key=len)) + 1 :] if within else os.path.basename(filename)


def _array(output: Any) -> Any:
    """An output as an array that can be sent."""
    import numpy

    array = numpy.asarray(output)
    if array.dtype.kind == "O" and all(isinstance(item, str) for item in array.flat):
        array = array.astype(str)
    return array


class _Fresh(importlib.machinery.SourceFileLoader):
    """Reads a file's source each time. Python takes compiled code from its cache for a file of the
    same size and the same second, so an edited target could run as it was before."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _module(name: str, path: str) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(name, path, loader=_Fresh(name, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _end_with_parent(life: int) -> None:
    """Have the kernel kill this process group when the parent's end of LIFE closes."""
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    closed = select.poll()
    closed.register(life, select.POLLIN)
    if closed.poll(0):  # before we asked
        os._exit(1)


def _mend_surroundings() -> None:
    """Crashes leave Python's frames in the log, and no core; when memory runs out, we go first."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


if __name__ == "__main__":
    main(sys.argv[1:])
