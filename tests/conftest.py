"""What all tests share: where the checkout is, and running the command line in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.forking import forked

# In CI the same examples every time: what passed before a change is landed passes after it.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# A shell lets what it runs in the background ignore Ctrl-C, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    """The surroundings of a command under test: this checkout, plain text, 80 columns."""
    python_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": python_path, "NO_COLOR": "1", "COLUMNS": "80"}


@pytest.fixture
def reprise(tmp_path: Path) -> Run:
    """Run `reprise ARGUMENTS` as a process of its own, in a temporary folder."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        if not options.keys() - {"cwd"}:
            return forked(words, Path(str(options.get("cwd", tmp_path))), environment(), 120)
        settings = {"cwd": tmp_path, "env": environment(), "capture_output": True, "timeout": 120}
        return subprocess.run(
            [sys.executable, "-m", "reprise", *words],
            text=True,
            check=False,
            **{**settings, **options},  # type: ignore[call-overload]
        )

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
