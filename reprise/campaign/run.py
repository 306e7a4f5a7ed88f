"""The campaign: batches of numbers out, tests done in, everything recorded in order.

The programs are numbered, each number is done once, and results are recorded by number: the store
says the same whatever the number of processes, times aside. What is told to anybody has been
committed before.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from reprise.campaign.bench import FuzzBench, Fuzzing, Tested
from reprise.campaign.findings import finding_files
from reprise.campaign.interrupts import Interrupted, Interrupts, TimeIsUp
from reprise.campaign.learned import LearnedRule, LearnedRules, Learner, Lesson, Unlearned
from reprise.campaign.records import FIRST_KEPT, Confirmation, End, Record, StoreError, cause
from reprise.campaign.scheduler import InProcess, LocalProcesses, Scheduler
from reprise.campaign.store import FINDINGS, Run, finding_id
from reprise.campaign.writer import RunWriter
from reprise.lang.display import counted
from reprise.oracle.verdict import Verdict

CONFIRMATIONS = 3
"""How often a finding that keeps a folder is run again."""
_COMMIT_SECONDS = 1.0
_BATCH_SECONDS = 0.25
_BATCH_MOST = 64
_MARKS, _MARK_SECONDS = 20, 0.5
"""The rate is that of the last ten seconds."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When to end: after so many tests, or seconds of fuzzing, of the whole run. None: never."""

    tests: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Tally:
    """How a run stands: for those who watch. ``done`` counts this session's tests, ``before`` the
    seconds of the sessions before it; the rate is this session's; all else is of the whole run.
    ``defects``: their causes."""

    tests: int = 0
    budget: Budget = field(default_factory=Budget)
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0
    done: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    defects: set[tuple[bool, str]] = field(default_factory=set)
    rejected: Counter[str] = field(default_factory=Counter)
    marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_MARKS))

    @property
    def seconds(self) -> float:
        """Of this session."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Tests a second, lately."""
        now = self.seconds
        since, before = self.marks[0] if self.marks else (0.0, 0)
        return (self.done - before) / max(now - since, 1e-9)

    def count(self, record: Record) -> None:
        if not self.marks or self.seconds - self.marks[-1][0] >= _MARK_SECONDS:
            self.marks.append((self.seconds, self.done))
        self.tests = record.index + 1
        self.done += 1
        self.verdicts[record.verdict] += 1
        self.rejected.update(record.rejected)
        if record.verdict.is_finding:
            self.defects.add(cause(record.rule, record.signature))


class Watch(Protocol):
    """Somebody who looks on. Called from the loop, so quickly."""

    def began(self, tally: Tally, path: Path) -> None: ...

    def tested(self, tally: Tally) -> None: ...

    def found(self, record: Record, confirmation: Confirmation | None) -> None:
        """A signature that the run had not met before; committed."""
        ...

    def learning(self, index: int) -> None:
        """A test's finding is being made a rule of from now on."""
        ...

    def learned(self, rule: LearnedRule) -> None:
        """A rule is in force from now on."""
        ...

    def ended(self) -> None: ...


class Campaign:
    """One session of a run, from ``writer.next`` on.

    ``jobs`` processes work; with one, the work is done in this process. ``bench``: one that is set
    up already: it does the work if it is alone, and else runs findings again that keep a folder
    (in a target process that does nothing else). Closed at the end. ``learner``: makes rules of
    findings that no rule explains; they are in force as soon as there are tests to hand out.
    ``unlearned``: once it has run, the findings that no rule was made of.
    """

    def __init__(
        self,
        writer: RunWriter,
        work: Fuzzing,
        budget: Budget,
        watch: Watch,
        *,
        jobs: int = 1,
        keep: int = FIRST_KEPT,
        bench: FuzzBench | None = None,
        scheduler: Scheduler[int, Tested] | None = None,
        learner: Learner | None = None,
    ) -> None:
        self.writer = writer
        self.work = work
        self.budget = budget
        self.watch = watch
        self.jobs = jobs
        self.keep = keep
        self.tally = Tally(
            writer.next,
            budget,
            before=writer.seconds,
            verdicts=writer.verdicts(),
            defects=writer.defects(),
            rejected=writer.rejected(),
        )
        self._scheduler = scheduler
        self.unlearned: Sequence[Unlearned] = ()
        self._learner = learner
        self._learned = LearnedRules.of(writer.path)
        self._bench = bench
        self._confirming: FuzzBench | None = None
        self._committed_at = time.monotonic()

    def run(self) -> End:
        """Fuzz until the budget is spent or somebody ends it; commits all that was recorded.

        Raises StoreError (with what to do), TargetError if the target can no longer be started,
        SchedulerError. The writer stays open.
        """
        seconds = self.budget.seconds
        left = None if seconds is None else max(0.0, seconds - self.writer.seconds)
        self.watch.began(self.tally, self.writer.path)
        self._recall()
        end = End.FAILED
        try:
            with Interrupts(left) as interrupts:
                try:
                    self._loop(interrupts)
                    end = End.DONE
                except TimeIsUp:
                    end = End.DONE
                except Interrupted:
                    end = End.INTERRUPTED
                except StoreError:
                    raise
                except Exception:
                    self.writer.commit(End.FAILED)
                    raise
                self.writer.commit(end)
            self._end_lessons()
        except StoreError as error:
            raise StoreError(
                f"{error}; recorded: {counted(self.writer.committed, 'test')}; mend this, then: "
                f"reprise fuzz --resume {self.writer.path}"
            ) from error
        finally:
            self.watch.ended()
            self._close()
        return end

    def _loop(self, interrupts: Interrupts) -> None:
        with interrupts.heeded():
            if self._scheduler is None:
                if self.jobs == 1:
                    bench, self._bench = self._bench or self.work.open(), None
                    self._scheduler = InProcess(bench)
                else:
                    self._scheduler = LocalProcesses(self.work, self.jobs)
        results = self._scheduler.run(self._batches())
        while True:
            confirmation = None
            with interrupts.heeded():
                tested = next(results, None)
                if tested is None:
                    return
                lesson = self._is_lesson(tested)
                keeps = lesson or self.writer.wants_folder(tested.record, self.keep)
                if keeps and tested.record.verdict.is_finding:
                    confirmation, tested = self._confirm(tested)
            self._record(tested, keeps, confirmation)
            if lesson and self._learner is not None:
                folder = _folder(self.writer.path, tested.record.index)
                self._learner.found(tested.record.signature, folder)
                self._tell_begun(self._learner)

    def _is_lesson(self, tested: Tested) -> bool:
        """Whether something can be learned from a test."""
        record = tested.record
        return (
            self._learner is not None
            and record.verdict.is_finding
            and tested.exhibit is not None
            and not tested.explained
            and self._is_unavoided(record.rule)
            and self._learner.wants(record.signature)
        )

    def _record(self, tested: Tested, keeps: bool, confirmation: Confirmation | None) -> None:
        record, writer = tested.record, self.writer
        files = None
        if keeps and tested.exhibit is not None:
            files = finding_files(tested, writer.info, self.work.target, confirmation)
        is_news = record.verdict.is_finding and writer.is_new(record)
        writer.add(record, files, confirmation)
        self.tally.count(record)
        if is_news or time.monotonic() - self._committed_at >= _COMMIT_SECONDS:
            writer.commit()
            self._committed_at = time.monotonic()
        self.watch.tested(self.tally)
        if is_news:
            self.watch.found(record, confirmation)

    def _confirm(self, tested: Tested) -> tuple[Confirmation, Tested]:
        if self._confirming is None:
            self._confirming, self._bench = self._bench or self.work.open(), None
        return self._confirming.confirm(tested, CONFIRMATIONS)

    def _batches(self) -> Iterator[Sequence[int]]:
        """Numbers in batches that take about a quarter of a second of one process."""
        start, stop = self.writer.next, self.budget.tests
        while stop is None or start < stop:
            self._take_lessons(start)
            size = max(1, min(_BATCH_MOST, int(self.tally.rate / self.jobs * _BATCH_SECONDS)))
            end = start + size if stop is None else min(stop, start + size)
            yield range(start, end)
            start = end

    def _recall(self) -> None:
        """Findings of earlier sessions that nothing was learned from."""
        if self._learner is None or not self.writer.next:
            return
        rules = self._learned.all()
        for defect in Run.open(self.writer.path).defects:
            for signature in defect.signatures:
                if not signature.kept or not self._is_unavoided(signature.rule):
                    continue
                name = signature.signature
                if not any(rule.is_about(name) for rule in rules) and self._learner.wants(name):
                    folder = _folder(self.writer.path, signature.first_index)
                    self._learner.found(name, folder)
        self._tell_begun(self._learner)

    def _is_unavoided(self, rule: str | None) -> bool:
        """Whether the run does not steer around a defect: no rule says what it is, or the rules
        that do are there for filing only."""
        info = self.writer.info
        return rule is None or not info.guided or bool(info.options.get("steer"))

    def _take_lessons(self, since: int) -> None:
        """Put what was learned meanwhile into force, from test ``since`` on."""
        if self._learner is None:
            return
        self._put_into_force(self._learner.lessons(), since)
        self._tell_begun(self._learner)

    def _end_lessons(self) -> None:
        """Stop learning. A rule that is ready holds if the run goes on."""
        if self._learner is not None:
            self._put_into_force(self._learner.close(), self.writer.next)
            self.unlearned = self._learner.unlearned()

    def _put_into_force(self, lessons: Sequence[Lesson], since: int) -> None:
        for lesson in lessons:
            self.watch.learned(self._learned.add(lesson, since))

    def _tell_begun(self, learner: Learner) -> None:
        for folder in learner.begun():
            self.watch.learning(int(folder.name))

    def _close(self) -> None:
        for part in (self._learner, self._scheduler, self._confirming, self._bench):
            if part is not None:
                part.close()


def _folder(run: Path, index: int) -> Path:
    return run / FINDINGS / finding_id(index)
