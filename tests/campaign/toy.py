"""A small, quick campaign for the tests of the loop: real processes, lowering and store; a target
that breaks by checksum, a source of tiny programs, and an oracle that needs no semantics."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np

from reprise.campaign.bench import Examination, Fuzzing, Oracle
from reprise.campaign.filing import KnownBugs
from reprise.campaign.records import End, RunInfo
from reprise.campaign.run import Budget, Campaign
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter
from reprise.lang.ruleset import load_text
from reprise.oracle.tolerance import Tolerance
from reprise.oracle.verdict import Judgement, Verdict
from reprise.synth.interface import Source, Synthesis
from reprise.targets.discover import Target, read_target
from reprise.targets.interface import Ended, Job
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Graph, TensorType
from reprise.uir.program import Program
from tests.campaign.runs import info

OPERATORS = ("abs", "exp", "neg", "relu", "sigmoid", "tanh")
RULES = """
/// A rule that explains some of the toy's crashes.
pattern toy_tanh "tanh last" {
    target: toy   symptom: crash_at_compile
    a = tanh(x)
    b = neg(a)
}
"""


@dataclass(frozen=True)
class ToySource:
    """A chain of unary operators; some candidates count as rejected. ``stumbles`` at one number,
    ``dies`` at another, sleeps a little before each."""

    seed: int = 0
    stumbles: int = -1
    dies: int = -1
    seconds: float = 0.0

    def __call__(self) -> Source:
        return self

    def program(self, index: int) -> Synthesis:
        if index == self.stumbles:
            raise RuntimeError("the generator stumbles")
        if index == self.dies:
            os._exit(7)
        time.sleep(self.seconds)
        rng = Random(f"{self.seed}/{index}")
        graph = Graph(f"s{self.seed}-{index:06d}")
        type_ = TensorType("float32", (rng.randint(1, 4), rng.randint(1, 4)))
        value = np.array(
            [[rng.random() for _ in range(type_.shape[1])] for _ in range(type_.shape[0])]
        )  # type: ignore[index, arg-type]
        tensor = graph.add_input("x", type_)
        for number in range(3):
            op = rng.choice(OPERATORS)
            node = graph.add_node(op, [tensor], [(f"v{number}", type_)])
            assert node.outputs[0] is not None
            tensor = node.outputs[0]
        graph.outputs.append(tensor)
        program = Program(graph, {"x": value.astype(np.float32)}, graph.name)
        return Synthesis(program, Counter({"toy_tanh": 1} if rng.random() < 0.2 else {}))


def toy_oracle(target: Target) -> Oracle:
    return judge_toy


def judge_toy(program: Program, model: bytes, process: TargetProcess) -> Examination:
    outcome = process.run(Job(model, program.inputs, process.target.modes))
    if outcome.ended is not Ended.ANSWERED:
        return Examination(Judgement(Verdict.CRASH, outcome.ended.value, "ended"), outcome)
    tested, plain = (outcome.results[mode] for mode in process.target.modes)
    if tested.failure is not None:
        failure = tested.failure
        return Examination(Judgement(Verdict.CRASH, failure.message, failure.type), outcome)
    assert tested.outputs is not None and plain.outputs is not None
    if not np.array_equal(tested.outputs[0], plain.outputs[0]):
        judgement = Judgement(Verdict.WRONG_RESULT, "differs", "is off by one", {"error": 1.0})
        return Examination(judgement, outcome, (Tolerance(1e-3, 1e-2),))
    return Examination(Judgement(Verdict.OK), outcome)


def toy_bugs() -> KnownBugs:
    rules = load_text(RULES)
    return KnownBugs(rules, rules.patterns.values(), {})


def toy_work(source: ToySource | None = None, seconds: float = 30.0) -> Fuzzing:
    target = read_target(Path(__file__).with_name("toy_target.py"))
    return Fuzzing(target, source or ToySource(), toy_oracle, toy_bugs, Limits(seconds=seconds))


class Silent:
    """Nobody watches; what would have been said is kept."""

    def __init__(self) -> None:
        self.said: list[int] = []
        self.lessons: list[int] = []

    def began(self, tally: object, path: Path) -> None: ...

    def tested(self, tally: object) -> None: ...

    def found(self, record: object, confirmation: object) -> None:
        self.said.append(record.index)  # type: ignore[attr-defined]

    def learning(self, index: int) -> None:
        if index not in self.lessons:
            self.lessons.append(index)

    def learned(self, rule: object) -> None: ...

    def ended(self) -> None: ...


def toy_info() -> RunInfo:
    return replace(info(), target="toy", versions={"toy": "1.0"}, rules=("toy_tanh",))


def fuzz(
    path: Path,
    tests: int | None,
    *,
    jobs: int = 1,
    source: ToySource | None = None,
    seconds: float | None = None,
    resume: bool = False,
    limit: float = 30.0,
) -> End:
    """One session in ``path``."""
    writer = RunWriter.resume(path, jobs) if resume else RunWriter.create(path, toy_info(), jobs)
    try:
        budget = Budget(tests, seconds)
        return Campaign(writer, toy_work(source, limit), budget, Silent(), jobs=jobs).run()
    finally:
        writer.close()


def contents(path: Path) -> dict[str, object]:
    """All that a run holds that does not depend on time: rows, and the findings' files."""
    run = Run.open(path)
    return {
        "tests": run.tests,
        "verdicts": run.verdicts,
        "signatures": [
            (s.verdict, s.signature, s.rule, s.title, s.count, s.kept, s.first_index)
            for s in run.signatures
        ],
        "findings": [
            (f.index, f.verdict, f.signature, f.rule, f.confirmation, f.folder and f.folder.name)
            for f in run.findings
        ],
        "suppressed": run.suppressed,
        "files": {
            str(p.relative_to(path)): p.read_bytes()
            for p in sorted((path / "findings").rglob("*"))
            if p.is_file()
        },
    }
