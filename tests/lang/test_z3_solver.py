"""z3 leaves Ctrl-C to Python."""

from __future__ import annotations

import os
import re
import signal
import threading

import pytest
import z3

from reprise.lang.z3_solver import new_solver
from tests.conftest import ROOT


@pytest.mark.slow
def test_an_interrupt_during_a_search_is_not_lost() -> None:
    solver = new_solver(600)
    x, y, z = z3.Ints("x y z")
    solver.add(x**3 + y**3 + z**3 == 33, x > 10, y < -10)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.check()
            threading.Event().wait(5)
    finally:
        signal.signal(signal.SIGINT, before)


def test_every_solver_is_limited() -> None:
    for path in (ROOT / "reprise").rglob("*.py"):
        text = path.read_text()
        made = len(re.findall(r"z3\.\w*(?:Solver|SolverFor|Optimize)\(", text))
        assert made <= len(re.findall(r"\blimit\(", text)), path
