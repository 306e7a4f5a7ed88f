"""Asks whether samples show the defect: in batches, with other inputs, each program once.

What a trial shows is not yet an answer. A wrong result can need particular values, so a program
that passes is tried on other inputs first; a program that fails otherwise is asked which passes are
to blame, since one defect has several symptoms; one that the target does not take, or about which
the oracle cannot tell, says nothing. The answer depends on the program alone, so it can be kept in
a file, and a second call resumes where the first was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random

from reprise.distill.memory import Memory
from reprise.distill.reduce import Budget
from reprise.distill.sampling import Sample, Sampling
from reprise.distill.trials import Aim, Shown, Trials, program_key
from reprise.oracle.crash import parse_key
from reprise.oracle.verdict import Verdict
from reprise.synth.values import NoValue
from reprise.uir.program import Program

INPUTS = 3
"""On how many inputs a program is tried before it is said to pass, if values can matter."""
_KEY = 16
"""Characters of a program's key that the records of a distillation have."""


class Answer(Enum):
    """What a sample says about the defect."""

    YES = "triggers"
    NO = "passes"
    UNUSABLE = "says nothing"


class Spent(Exception):
    """The budget is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample and its answer; ``key`` identifies the program with its inputs."""

    sample: Sample
    answer: Answer
    key: str


class Answers:
    """Answers by program, kept in a file if there is one: those to another question (``question``
    as in :class:`~reprise.distill.memory.Memory`) are not taken for ours."""

    def __init__(
        self, path: Path | None = None, question: Mapping[str, object] | None = None
    ) -> None:
        allowed = [answer.value for answer in Answer]
        self._memory = None if path is None else Memory(path, question or {}, allowed)
        self._known: dict[str, Answer] = {}

    def __contains__(self, key: str) -> bool:
        return self._get(key) is not None

    def __getitem__(self, key: str) -> Answer:
        found = self._get(key)
        if found is None:
            raise KeyError(key)
        return found

    def keep(self, key: str, answer: Answer) -> None:
        self._known[key] = answer
        if self._memory is not None:
            self._memory.put(key, answer.value, 0)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def _get(self, key: str) -> Answer | None:
        if key not in self._known and self._memory is not None:
            kept = self._memory.get(key)
            if kept is not None:
                self._known[key] = Answer(kept[0])
        return self._known.get(key)


class Asker:
    """Asks a target's trials. ``asked`` counts programs that were not known."""

    def __init__(
        self,
        trials: Trials,
        sampling: Sampling,
        budget: Budget | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.trials = trials
        self.sampling = sampling
        self.budget = budget or Budget()
        self.answers = answers or Answers()
        self.asked = 0
        self._begin = time.monotonic()
        self._runs = trials.count.runs

    @property
    def runs(self) -> int:
        """Runs of the target so far."""
        return self.trials.count.runs - self._runs

    @property
    def seconds(self) -> float:
        """Seconds on the clock so far."""
        return time.monotonic() - self._begin

    @property
    def values_matter(self) -> bool:
        """Whether the defect may show on some inputs only."""
        aim = self.trials.aim
        if aim is None or aim.verdict is not Verdict.CRASH:
            return True
        crash = parse_key(aim.symptom)
        return crash is None or crash.stage.endswith("run")

    def ask(self, samples: Sequence[Sample]) -> list[Asked]:
        """The answers to some samples, in their order. Raises Spent, TargetError."""
        keys = [program_key(sample.program)[:_KEY] for sample in samples]
        new = {k: s for k, s in zip(keys, samples, strict=True) if k not in self.answers}
        if new:
            self._check_budget()
        self.asked += len(new)
        open_ones = dict(new)
        for attempt in range(INPUTS if self.values_matter else 1):
            programs = {
                key: sample.program if attempt == 0 else self._redrawn(key, sample, attempt)
                for key, sample in open_ones.items()
                if attempt == 0 or sample.program.inputs
            }
            for key, trial in zip(programs, self.trials.try_all(programs.values()), strict=True):
                answer = self._answer(programs[key], trial.shown)
                if answer is not None:
                    self.answers.keep(key, answer)
                    del open_ones[key]
                elif trial.shown is Shown.UNDECIDED and attempt == INPUTS - 1:
                    self.answers.keep(key, Answer.UNUSABLE)
                    del open_ones[key]
        for key in open_ones:
            self.answers.keep(key, Answer.NO)
        return [
            Asked(sample, self.answers[key], key) for sample, key in zip(samples, keys, strict=True)
        ]

    def _answer(self, program: Program, shown: Shown) -> Answer | None:
        """What a trial says; None: ask again with other inputs."""
        aim = self.trials.aim
        match shown:
            case Shown.SAME:
                return Answer.YES
            case Shown.INVALID:
                return Answer.UNUSABLE
            case Shown.OTHER:
                if aim is not None and aim.cures:
                    found = Aim.of(self.trials.judge(program))
                    if found.cures and set(found.cures) & set(aim.cures):
                        return Answer.YES
                return Answer.UNUSABLE
            case _:
                return None

    def _redrawn(self, key: str, sample: Sample, attempt: int) -> Program:
        try:
            return self.sampling.redrawn(sample, Random(f"{key}/{attempt}"))
        except NoValue:
            return sample.program

    def _check_budget(self) -> None:
        if self.budget.is_spent(self.runs, self.seconds):
            raise Spent
