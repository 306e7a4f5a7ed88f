"""Outputs that draw numbers are not compared; all others are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from reprise.oracle.chance import random_outputs
from reprise.oracle.judge import Judge
from reprise.oracle.verdict import Verdict
from reprise.targets.interface import Ended, ModeResult, Outcome
from reprise.uir.program import Program

Build = Callable[..., Program]
TEXT = """
x: float32[3]
r = random_normal_like(x)
y = relu(r)
z = neg(x)
output y
output z
"""


def judged(program: Program, optimised: list[np.ndarray], baseline: list[np.ndarray]) -> Verdict:
    results = {
        "optimised": ModeResult(optimised, None, 0.0),
        "unoptimised": ModeResult(baseline, None, 0.0),
    }
    judge = Judge(("optimised", "unoptimised"), share=0)
    return judge.judge(program, Outcome(Ended.ANSWERED, results)).verdict


def test_what_depends_on_a_draw_may_differ(program: Build) -> None:
    p = program(TEXT, x=np.ones(3, np.float32))
    assert random_outputs(p.graph) == {0}
    minus = np.full(3, -1, np.float32)
    zeros, ones = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert judged(p, [zeros, minus], [ones, minus]) is Verdict.OK
    assert judged(p, [zeros, minus], [np.ones(4, np.float32), minus]) is not Verdict.OK
    assert judged(p, [zeros, ones], [ones, minus]) is not Verdict.OK


@pytest.mark.parametrize(
    ("line", "draws"),
    [
        ("y, m = dropout(x)", False),
        ("y, m = dropout(x, training=true)", True),
        ("const t: bool[] = false\ny, m = dropout(x, none, t)", False),
        ("t: bool[]\ny, m = dropout(x, none, t)", True),
    ],
)
def test_dropout_draws_in_training(program: Build, line: str, draws: bool) -> None:
    p = program(f"x: float32[3]\n{line}\noutput y\n")
    assert (0 in random_outputs(p.graph)) is draws
