"""Workers of a target that does whatever a test's program says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from reprise.targets.discover import parse_target
from reprise.targets.interface import Job, Outcome
from reprise.targets.process import Limits, TargetProcess

OBEDIENT = Path(__file__).with_name("obedient.py")


def job(program: str, *modes: str, **inputs: np.ndarray) -> Job:
    return Job(program.encode(), inputs, modes or ("fast",))


@pytest.fixture
def process() -> Iterator[TargetProcess]:
    limits = Limits(seconds=20, startup_seconds=60)
    with TargetProcess(parse_target(str(OBEDIENT)), limits) as process:
        yield process


@pytest.fixture
def run(process: TargetProcess) -> Callable[..., Outcome]:
    """Run a program in one worker (and those that replace it)."""

    def run(program: str, *modes: str, **inputs: np.ndarray) -> Outcome:
        return process.run(job(program, *modes, **inputs))

    return run
