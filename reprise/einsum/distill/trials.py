"""Does this kernel show that defect? As :mod:`reprise.distill.trials`, for kernels."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from random import Random
from threading import Lock
from typing import Protocol

import numpy as np

from reprise.distill.asking import INPUTS, Answer, Spent
from reprise.distill.memory import Memory
from reprise.distill.reduce import Budget
from reprise.distill.trials import Shown
from reprise.einsum.data import materialise
from reprise.einsum.distill.walk import redrawn
from reprise.einsum.json_form import dumps
from reprise.einsum.kernel import Kernel
from reprise.einsum.reference import reference
from reprise.einsum.symptom import Symptom, symptom_of
from reprise.einsum.translate.backends import BACKENDS
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import Target
from reprise.targets.process import Limits, WorkerPool

_KEY = 16


class Trials(Protocol):
    """Who can be asked whether a kernel shows a defect. ``runs`` of a target so far; ``jobs``
    kernels at a time; ``values_matter``: some entries may hide it."""

    @property
    def runs(self) -> int: ...

    @property
    def jobs(self) -> int: ...

    @property
    def values_matter(self) -> bool: ...

    def shown(self, kernel: Kernel) -> Shown: ...


class KernelTrials:
    """Tries kernels on ``target`` for the defect that ``kernel`` shows; ``aim`` is its symptom.
    ``jobs`` of its processes at a time. ``memory`` (may be set later, as these two): answers of
    earlier trials. Close it, or use it as a context manager."""

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        aim: Symptom,
        limits: Limits | None = None,
        *,
        jobs: int = 1,
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.aim = aim
        self.jobs = jobs
        self.memory: Memory | None = None
        self.backend = BACKENDS[target.name]
        self.pool = WorkerPool(target, jobs, limits)
        self._runs = 0
        self._lock = Lock()

    def __enter__(self) -> KernelTrials:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.pool.close()
        if self.memory is not None:
            self.memory.close()

    @property
    def runs(self) -> int:
        return self._runs

    @property
    def values_matter(self) -> bool:
        return self.aim.verdict is Verdict.WRONG_RESULT

    def versions(self) -> dict[str, str]:
        """Of the compiler. Raises TargetError if it cannot be started."""
        return self.pool.start()

    def question(self) -> dict[str, object]:
        """What trials answer, as JSON values."""
        return {
            "target": str(self.target),
            "versions": self.versions(),
            "aim": [self.aim.verdict.value, self.aim.key],
        }

    def symptom(self, kernel: Kernel) -> Symptom:
        """What a kernel does. Raises TargetError."""
        with self._lock:
            self._runs += 1
        return symptom_of(kernel, self.backend, self.pool)

    def shown(self, kernel: Kernel) -> Shown:
        """Whether a kernel shows the defect. Raises TargetError."""
        key = kernel_key(kernel)
        with self._lock:
            known = self.memory.get(key) if self.memory is not None else None
        if known is not None:
            return Shown(known[0])
        found = self._shown(self.symptom(kernel))
        if found is Shown.NOTHING and self.values_matter and is_vacuous(kernel):
            found = Shown.UNDECIDED
        with self._lock:
            if self.memory is not None:
                self.memory.put(key, found.value, 1)
        return found

    def _shown(self, symptom: Symptom) -> Shown:
        match symptom.verdict:
            case Verdict.OK:
                return Shown.NOTHING
            case Verdict.UNSUPPORTED | Verdict.INVALID:
                return Shown.INVALID
        return Shown.SAME if self.aim.is_like(symptom) else Shown.OTHER


def kernel_key(kernel: Kernel) -> str:
    """Of all that the target sees."""
    return hashlib.sha256(dumps(kernel).encode()).hexdigest()[:_KEY]


def is_vacuous(kernel: Kernel) -> bool:
    """Whether zeros are all that a kernel should compute: that it does so says little."""
    return not np.any(reference(kernel, materialise(kernel)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A kernel and what it says about the defect. ``kernel`` as it triggers, if other entries than
    those that were asked about do. ``otherwise``: it fails in another way."""

    kernel: Kernel
    answer: Answer
    key: str
    otherwise: bool = False


class Asker:
    """Asks trials, within a budget; each kernel once. A kernel that is right is asked with other
    entries before it counts as passing, if values can matter. ``asked`` counts kernels."""

    def __init__(self, trials: Trials, budget: Budget | None = None) -> None:
        self.trials = trials
        self.budget = budget or Budget()
        self.asked = 0
        self._known: dict[str, Asked] = {}
        self._begin = time.monotonic()
        self._runs = trials.runs

    @property
    def runs(self) -> int:
        """Runs of the target so far."""
        return self.trials.runs - self._runs

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def ask(
        self, kernels: Sequence[Kernel], enough: Callable[[Asked], bool] = lambda asked: False
    ) -> list[Asked]:
        """The answers, in order, up to the first that is ``enough``. Raises Spent, TargetError."""
        found: list[Asked] = []
        for one in self._answers(kernels):
            found.append(one)
            if one.key not in self._known:
                self._known[one.key] = one
                self.asked += 1
            if enough(one):
                break
        return found

    def _answers(self, kernels: Iterable[Kernel]) -> Iterator[Asked]:
        """In order; a few ahead of whoever listens, if there are several processes."""
        if self.trials.jobs <= 1:
            for kernel in kernels:
                self._check_budget()
                yield self._answer(kernel)
            return
        left = iter(kernels)
        with ThreadPoolExecutor(self.trials.jobs, "trial") as threads:
            ahead: list[Future[Asked]] = [
                threads.submit(self._answer, k) for k in islice(left, self.trials.jobs)
            ]
            try:
                while ahead:
                    self._check_budget()
                    done = ahead.pop(0).result()
                    ahead += [threads.submit(self._answer, k) for k in islice(left, 1)]
                    yield done
            finally:
                for future in ahead:
                    future.cancel()

    def _answer(self, kernel: Kernel) -> Asked:
        key = kernel_key(kernel)
        known = self._known.get(key)
        if known is not None:
            return known
        tried, decided = kernel, False
        for attempt in range(INPUTS if self.trials.values_matter else 1):
            tried = redrawn(kernel, Random(f"{key}/{attempt}")) if attempt else kernel
            match self.trials.shown(tried):
                case Shown.SAME:
                    return Asked(tried, Answer.YES, key)
                case Shown.OTHER:
                    return Asked(tried, Answer.UNUSABLE, key, otherwise=True)
                case Shown.INVALID:
                    return Asked(tried, Answer.UNUSABLE, key)
                case Shown.NOTHING:
                    decided = True
        return Asked(kernel, Answer.NO if decided else Answer.UNUSABLE, key)

    def _check_budget(self) -> None:
        if self.budget.is_spent(self.runs, self.seconds):
            raise Spent
