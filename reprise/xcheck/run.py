"""The loop: choose a constraint, violate it, compile, record, and choose again.

Algorithm 1 is sequential: each choice depends on how far the last model got. With several jobs the
models that are likely to be chosen next are made and compiled ahead, and used when their turn
comes. A model follows from the run's seed, the constraint and how often that was chosen, so what a
run finds is the same whatever the number of jobs, as long as the compiler behaves the same.

Each constraint is chosen together with a *valid* model of the same guard, the first time and every
few times after: a compiler that rejects that one rejects for another reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Protocol

from reprise.campaign.interrupts import Interrupted, Interrupts, TimeIsUp
from reprise.campaign.writer import keeps_folder
from reprise.lang.declared import Constraint
from reprise.targets.discover import Target
from reprise.xcheck.behaviour import Vector
from reprise.xcheck.findings import Finding, finding_files, program_line
from reprise.xcheck.judge import Judgement
from reprise.xcheck.models import Made, Modeller, NotMade
from reprise.xcheck.passes.compiler import digest
from reprise.xcheck.passes.interface import Compiler, StageReport
from reprise.xcheck.pool import Pool
from reprise.xcheck.store import ModelRow, SetAside, Store
from reprise.xcheck.verdict import Verdict, outcome

VALID_EVERY = 4
"""Every so many choices of a constraint, a valid model comes first."""
_ATTEMPTS = 4
"""How often a model is looked for where others were found before."""
_KEPT = 3
"""Findings of one group that keep a folder, and the 10th, the 100th and so on."""


class End(Enum):
    """Why a session ended."""

    EXPLORED = "explored"  # every constraint was violated, or cannot be
    MODELS = "models"
    TIME = "time"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: after so many models, so many seconds of this session, or (neither given) when
    every constraint was chosen once."""

    models: int | None = None
    seconds: float | None = None


class Watch(Protocol):
    """Who is told what happens."""

    def began(self, tally: Tally) -> None: ...

    def chose(self, tally: Tally, constraint: str) -> None: ...

    def compiled(self, tally: Tally, row: ModelRow) -> None: ...

    def set_aside(self, tally: Tally, aside: SetAside) -> None: ...

    def ended(self) -> None: ...


@dataclass(slots=True)
class Tally:
    """A run so far. ``negated``: how often each constraint was violated by a model."""

    budget: Budget
    constraints: int
    models: int = 0
    before: float = 0.0
    began: float = field(default_factory=time.monotonic)
    verdicts: dict[Verdict, int] = field(default_factory=dict)
    negated: dict[str, int] = field(default_factory=dict)
    aside: int = 0
    deepest: int = 0
    stage: str = ""

    @property
    def seconds(self) -> float:
        """Seconds of this session."""
        return time.monotonic() - self.began


@dataclass(frozen=True, slots=True)
class Task:
    """A model to make and compile: it depends on nothing else but the run's seed."""

    constraint: str
    usage: int
    valid: bool

    def rng(self, seed: int, attempt: int) -> Random:
        """The generator of its choices."""
        key = f"{seed}/{self.constraint}/{self.usage}/{self.valid}/{attempt}"
        return Random(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model, what it makes of every constraint, and how far the compiler got with it."""

    made: Made
    seen: Vector
    report: StageReport


Done = Compiled | NotMade


class Bench(Protocol):
    """What makes models and compiles them; one for each thread."""

    @property
    def modeller(self) -> Modeller: ...

    @property
    def compiler(self) -> Compiler: ...

    def stop(self) -> None:
        """End what the compiler is doing, from another thread, and the compiler."""
        ...


def perform(bench: Bench, task: Task, seed: int) -> Done:
    """Make a task's model and compile it. Where there was a model before, a failure to find one is
    bad luck: other programs are tried."""
    why = NotMade("nothing was tried")
    for attempt in range(_ATTEMPTS if task.usage else 1):
        rng = task.rng(seed, attempt)
        made = (
            bench.modeller.valid(task.constraint, rng)
            if task.valid
            else bench.modeller.violating(task.constraint, rng, task.usage)
        )
        if isinstance(made, Made):
            judgement = Judgement(made.violated, made.possible)
            seen = bench.modeller.judge_for(made.graph).vector(made.graph, judgement)
            return Compiled(made, seen, bench.compiler.compile(made.model))
        why = made
    return why


class Ahead:
    """Tasks performed by threads, each with a bench of its own, before they are asked for."""

    def __init__(self, make: Callable[[], Bench], jobs: int, seed: int) -> None:
        self.jobs = jobs
        self.seed = seed
        self._make = make
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(jobs, "xcheck")
        self._futures: dict[Task, Future[Done]] = {}
        self._benches: list[Bench] = []

    def prepare(self, task: Task) -> None:
        """Have the task performed, unless it is already."""
        if task not in self._futures:
            self._futures[task] = self._pool.submit(self._perform, task)

    def get(self, task: Task) -> Done:
        """What came of the task. Raises what performing it raised."""
        self.prepare(task)
        future = self._futures[task]
        while not future.done():  # in short waits, so that signals are heeded
            wait_for([future], timeout=0.2)
        return self._futures.pop(task).result()

    def close(self) -> None:
        """Drop what was not asked for; end what runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for bench in self._benches:
            bench.stop()
        self._pool.shutdown()

    def _perform(self, task: Task) -> Done:
        bench = getattr(self._local, "bench", None)
        if bench is None:
            bench = self._local.bench = self._make()
            self._benches.append(bench)
        return perform(bench, task, self.seed)


class Loop:
    """One session of a run."""

    def __init__(
        self,
        store: Store,
        constraints: Mapping[str, Constraint],
        texts: Mapping[str, str],
        target: Target,
        versions: Mapping[str, str],
        ahead: Ahead,
        budget: Budget,
        watch: Watch,
    ) -> None:
        self.store = store
        self.constraints = constraints
        self.texts = texts
        self.target = target
        self.versions = versions
        self.ahead = ahead
        self.budget = budget
        self.watch = watch
        self.pool = Pool.of(constraints)
        self.passes: dict[str, int] = {}
        self.no_valid: set[str] = set()
        self.done: set[Task] = set()
        self.groups: dict[tuple[str, Verdict, str], int] = {}
        self.tally = Tally(budget, len(constraints))
        self._replay()

    def run(self) -> End:
        """Go on until the budget is spent. Raises StoreError if a row cannot be written."""
        self.watch.began(self.tally)
        end = End.EXPLORED
        try:
            with Interrupts(self.budget.seconds) as interrupts:
                end = self._loop(interrupts)
        except Interrupted:
            end = End.INTERRUPTED
        except TimeIsUp:
            end = End.TIME
        finally:
            self.watch.ended()
            with contextlib.suppress(Exception):  # a full disk was reported already
                self.store.end(self.tally.seconds, end.value)
        return end

    def _loop(self, interrupts: Interrupts) -> End:
        while True:
            if self.budget.models is not None and self.tally.models >= self.budget.models:
                return End.MODELS
            entry = self.pool.choose()
            if entry is None or (self._until_explored and all(e.usage for e in self.pool)):
                return End.EXPLORED
            self.watch.chose(self.tally, entry.name)
            for task in self._tasks(self.pool):
                if task not in self.done:
                    break
            self._look_ahead()
            with interrupts.heeded():
                done = self.ahead.get(task)
            self._record(task, done)

    @property
    def _until_explored(self) -> bool:
        return self.budget.models is None and self.budget.seconds is None

    def _tasks(self, pool: Pool) -> Iterator[Task]:
        """What is to do for the constraint that is chosen next: a valid model at times, then the
        one that violates it."""
        entry = pool.choose()
        if entry is not None:
            if entry.usage % VALID_EVERY == 0 and entry.name not in self.no_valid:
                yield Task(entry.name, entry.usage, True)
            yield Task(entry.name, entry.usage, False)

    def _look_ahead(self) -> None:
        """Prepare what will be chosen if each constraint gets as far as it did the last time."""
        if self.ahead.jobs <= 1:
            return
        pool, prepared = self.pool.copy(), 0
        while prepared < self.ahead.jobs + 1 and len(pool):
            for task in self._tasks(pool):
                if task not in self.done:
                    self.ahead.prepare(task)
                    prepared += 1
            entry = pool.choose()
            assert entry is not None
            pool.record(entry.name, self.passes.get(entry.name, 1))

    # --- recording -------------------------------------------------------------------------------

    def _record(self, task: Task, done: Done) -> None:
        if isinstance(done, NotMade):
            reason = str(done)
            self.store.set_aside(
                task.constraint, valid=task.valid, at=self.tally.models, reason=reason
            )
            aside = SetAside(task.constraint, task.valid, self.tally.models, reason)
            self._took_aside(aside)
            self.watch.set_aside(self.tally, aside)
            return
        made, report = done.made, done.report
        row = self._row(task, done)
        files: dict[str, bytes] = {}
        if row.folder is not None:
            constraint, text = self.constraints[task.constraint], self.texts[task.constraint]
            files = finding_files(
                Finding(row, made, report, constraint, text, self.target, self.versions)
            )
        self.store.add(row, made.model, files)
        self._took(row)
        self.watch.compiled(self.tally, row)

    def _row(self, task: Task, done: Compiled) -> ModelRow:
        made = done.made
        violated = [self.constraints[name] for name in sorted(made.violated)]
        found = outcome(done.report, valid=task.valid, violated=violated)
        number = self.tally.models
        group = (task.constraint, found.verdict, found.signature)
        count = self.groups.get(group, 0) + 1
        kept = found.verdict.is_finding and keeps_folder(count, _KEPT)
        return ModelRow(
            number=number,
            constraint=task.constraint,
            usage=task.usage,
            valid=task.valid,
            kind=made.kind.value,
            digest=digest(made.model),
            program=program_line(made),
            verdict=found.verdict,
            passes=found.passes,
            stage=found.stage,
            message=found.message,
            signature=found.signature,
            warned=found.warned,
            milliseconds=round(found.seconds * 1000),
            folder=f"{number:08d}" if kept else None,
            completed=done.report.completed,
            seen=done.seen,
        )

    def _took(self, row: ModelRow) -> None:
        """Bring pool and figures up to date with a row."""
        tally = self.tally
        self.done.add(Task(row.constraint, row.usage, row.valid))
        tally.models = row.number + 1
        tally.verdicts[row.verdict] = tally.verdicts.get(row.verdict, 0) + 1
        group = (row.constraint, row.verdict, row.signature)
        self.groups[group] = self.groups.get(group, 0) + 1
        if row.passes > tally.deepest:
            tally.deepest, tally.stage = row.passes, row.stage
        if not row.valid:
            self.passes[row.constraint] = row.passes
            tally.negated[row.constraint] = tally.negated.get(row.constraint, 0) + 1
            self.pool.record(row.constraint, row.passes)

    def _took_aside(self, aside: SetAside) -> None:
        if aside.valid:
            self.no_valid.add(aside.constraint)
        else:
            self.pool.drop(aside.constraint)
            self.tally.aside += 1

    def _replay(self) -> None:
        """Take up what the store holds."""
        run = self.store.read()
        for row in run.models:
            self._took(row)
        for aside in run.set_aside:
            self._took_aside(aside)
        self.tally.before = run.seconds
