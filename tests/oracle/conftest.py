"""Programs from `.uir` text, and targets made of two numpy functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from reprise.oracle.judge import Judge
from reprise.oracle.verdict import Judgement
from reprise.solve.signatures import Signatures
from reprise.targets.interface import Ended, Failure, ModeResult, Outcome, Stage
from reprise.uir.program import Program
from reprise.uir.semantics import evaluate
from reprise.uir.text import parse_uir

Arrays = Mapping[str, np.ndarray]
Mode = Callable[[Arrays], "list[np.ndarray]"]


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.fixture(scope="session")
def signatures() -> Signatures:
    return Signatures.load()


@pytest.fixture(scope="session")
def program(signatures: Signatures) -> Callable[..., Program]:
    def build(text: str, name: str = "p", **inputs: np.ndarray) -> Program:
        return Program(parse_uir(text, "test.uir", signatures), inputs, name)

    return build


@dataclass
class Target:
    """A target whose modes are functions. ``optimised``: given arrays and the disabled passes.
    ``baseline`` is the numpy reference in native precision unless given."""

    program: Program
    optimised: Callable[[Arrays, tuple[str, ...]], list[np.ndarray]]
    baseline: Mode | None = None
    emulated: Mode | None = None
    modes: tuple[str, ...] = ("optimised", "unoptimised")
    runs: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def __call__(
        self,
        *,
        inputs: Arrays | None = None,
        modes: tuple[str, ...] | None = None,
        disabled: tuple[str, ...] = (),
    ) -> Outcome:
        given = self.program.inputs if inputs is None else inputs
        self.runs.append((modes or self.modes, disabled))
        results = {}
        for mode in modes or self.modes:
            try:
                results[mode] = ModeResult(tuple(self._run(mode, given, disabled)), None, 0.0)
            except Crashed as crashed:
                results[mode] = ModeResult(None, crashed.failure, 0.0)
        return Outcome(Ended.ANSWERED, results)

    def _run(self, mode: str, given: Arrays, disabled: tuple[str, ...]) -> list[np.ndarray]:
        if mode == "optimised":
            return self.optimised(given, disabled)
        if mode == "emulated" and self.emulated is not None:
            return self.emulated(given)
        if self.baseline is not None:
            return self.baseline(given)
        return list(evaluate(self.program.graph, given))

    def judged(self, passes: tuple[str, ...] = (), **options: object) -> Judgement:
        judge = Judge(self.modes, **options)  # type: ignore[arg-type]
        outcome = self()
        self.runs.clear()
        return judge.judge(self.program, outcome, self, passes)


class Crashed(Exception):
    def __init__(self, type: str, message: str, stage: Stage = Stage.COMPILE, **more: object):
        self.failure = Failure(stage, type, message, **more)  # type: ignore[arg-type]
