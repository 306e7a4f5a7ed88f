"""Commands under test without their start: a process that has imported Reprise forks for each.

``python -m tests.forking`` is that process. It has no threads and runs no command itself, so a
command finds what it would find in a fresh interpreter: its own process, streams, folder and
environment; only that modules are there already, as are the trees of the rules that ship, and that
strings hash as in the commands before.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from reprise.data import data_path
from reprise.lang.ruleset import load_rules

ROOT = Path(__file__).resolve().parent.parent
MODULES = (
    *("numpy", "onnx", "rich.console", "reprise.cli.main", "reprise.cli.rules"),
    *("reprise.cli.check", "reprise.cli.query", "reprise.cli.report", "reprise.cli.gen"),
    *("reprise.cli.fuzz", "reprise.campaign.run", "reprise.campaign.open"),
    *("reprise.lang.ruleset", "reprise.lang.lint", "reprise.patterns.check"),
    *("reprise.patterns.testing", "reprise.facts.onnx_import", "reprise.campaign.source"),
)
"""What most commands import."""


class Forking:
    """The process that forks, as the tests see it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking"],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, arguments: Sequence[str], cwd: str, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """``reprise ARGUMENTS``. Raises TimeoutExpired, and nothing can be run after that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as name:
            out, err = Path(name) / "out", Path(name) / "err"
            request = [list(arguments), cwd, dict(env), str(out), str(err)]
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                self._process.kill()
                raise subprocess.TimeoutExpired(list(arguments), timeout)
            code = int(self._process.stdout.readline())
            written = out.read_text("utf-8"), err.read_text("utf-8")
        return subprocess.CompletedProcess(["reprise", *arguments], code, *written)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(10)


@cache
def _started() -> Forking:
    """The one of this session, which ends with it."""
    made = Forking(ROOT, {**os.environ, "PYTHONPATH": str(ROOT)})
    atexit.register(made.close)
    return made


def forked(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run ``reprise ARGUMENTS`` as a process of its own. Raises TimeoutExpired."""
    return _started().run(arguments, str(cwd), env, timeout)


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Fork for each request, and answer with the command's exit code."""
    for module in MODULES:
        importlib.import_module(module)
    assert load_rules([data_path("rules/bugs")]).syntax  # parses them all, once
    gc.collect()
    gc.freeze()
    for line in requests:
        arguments, cwd, env, out, err = json.loads(line)
        child = os.fork()
        if child == 0:
            become(cwd, env, out, err)
            command(arguments)
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def command(arguments: Sequence[str]) -> NoReturn:
    """Run a command and end, without taking apart what was there before it."""
    sys.argv = ["reprise", *arguments]
    code: object = 70
    try:
        importlib.import_module("reprise.cli.main").main()
    except SystemExit as ending:
        code = ending.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 1)


def become(cwd: str, env: Mapping[str, str], out: str, err: str) -> None:
    """Take on the folder, environment and streams of a command."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, out, os.O_WRONLY | os.O_CREAT),
        (2, err, os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    # The standard streams are the commands'; requests and answers keep to descriptors of their own
    serve(
        os.fdopen(os.dup(0), encoding="utf-8"),
        os.fdopen(os.dup(1), "w", encoding="utf-8"),
    )
