"""Learning while a campaign runs: each new defect becomes a rule in the background.

:class:`BackgroundLearner` is the campaign's :class:`~reprise.campaign.learned.Learner`. Findings
wait in a queue; one process at a time, with a target of its own, reduces, distills and tightens the
first of them. What a lesson left behind (the reduced program, every experiment) is in
``RUN/learned/FINDING``; a finding of which no rule could be made says why in ``failed.txt`` there.
A process that dies takes its lesson with it, and nothing else.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from reprise.cache import write_whole
from reprise.campaign.learned import LEARNED, Lesson, Unlearned
from reprise.targets.process import Limits

_SPAWN = multiprocessing.get_context("spawn")
_PATIENCE = 3.0
"""Seconds that a process has to end by itself."""
_MOST_LESSONS = 4
"""For one signature."""
_NICE = 5
"""The campaign comes first, where there is no processor left over."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """How lessons are made. ``seconds``: for reducing and distilling one finding; ``neighbours``:
    programs of a rule's neighbourhood that it is held against; ``spare_time``: work only when
    nobody else does, for there are no more processors than the campaign uses."""

    seconds: float = 300.0
    neighbours: int = 200
    limits: Limits = Limits()
    seed: int = 0
    spare_time: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """No rule was made of a finding, and why."""

    signature: str
    folder: Path
    reason: str


Teach = Callable[[Path, Path, Teaching], str | tuple[str, str]]
"""What makes a rule of a finding, in any process: of a finding's folder and the folder for what the
lesson leaves, a rule's name and text, or why there is none."""


class BackgroundLearner:
    """See the module. ``teach``: how a lesson is made of a finding; a function of a module."""

    def __init__(self, teaching: Teaching | None = None, teach: Teach | None = None) -> None:
        self.teaching = teaching or Teaching()
        self._teach = teach or teach_graph
        self.failed: list[Failed] = []
        self._queue: deque[tuple[str, Path]] = deque()
        self._pending: set[str] = set()
        self._lessons: Counter[str] = Counter()
        self._at: tuple[str, Path] | None = None
        self._begun: list[Path] = []
        self._unfinished: list[Path] = []
        self._process: Any = None
        self._connection: Connection | None = None

    def wants(self, signature: str) -> bool:
        """Not while one of its findings waits, nor after a few lessons: one defect may need several
        patterns, but not any number."""
        return signature not in self._pending and self._lessons[signature] < _MOST_LESSONS

    def found(self, signature: str, folder: Path) -> None:
        """Put a finding into the queue."""
        if self.wants(signature):
            self._pending.add(signature)
            self._lessons[signature] += 1
            self._queue.append((signature, folder))
        self._begin()

    def begun(self) -> Sequence[Path]:
        """The findings whose lessons have begun since the last call."""
        begun, self._begun = self._begun, []
        return begun

    def lessons(self) -> Sequence[Lesson]:
        """What has been learned since the last call; the next finding is begun."""
        done = self._finished()
        self._begin()
        return done

    def _finished(self) -> list[Lesson]:
        done: list[Lesson] = []
        if self._connection is not None and self._connection.poll():
            assert self._at is not None
            signature, folder = self._at
            try:
                answer = self._connection.recv()
            except (EOFError, OSError):
                answer = "the process that made the rule died"
            self._end()
            self._pending.discard(signature)
            if isinstance(answer, str):
                self.failed.append(Failed(signature, folder, answer))
            else:
                name, text = answer
                done.append(Lesson(name, signature, text))
        return done

    @property
    def busy(self) -> bool:
        """Whether a lesson is being made, or waits."""
        return self._process is not None or bool(self._queue)

    def close(self) -> Sequence[Lesson]:
        """Stop: what has been learned since the last call; lessons that are not finished are lost,
        and are among the unlearned."""
        done = self._finished()
        if self._process is not None:
            assert self._at is not None
            self._unfinished.append(self._at[1])
            self._process.terminate()
            self._end()
        self._unfinished += [folder for _, folder in self._queue]
        self._queue.clear()
        return done

    def unlearned(self) -> Sequence[Unlearned]:
        """The findings that no rule was made of: those that failed, then those not finished."""
        failed = [Unlearned(each.folder, each.reason) for each in self.failed]
        return [*failed, *map(Unlearned, self._unfinished)]

    def _begin(self) -> None:
        if self._process is not None or not self._queue:
            return
        self._at = self._queue.popleft()
        self._connection, theirs = _SPAWN.Pipe(duplex=False)
        given = self._at[1], self._teach, self.teaching, theirs
        self._process = _SPAWN.Process(target=_give_lesson, args=given)
        self._process.start()
        self._begun.append(self._at[1])
        theirs.close()  # so that its death is the end of the stream

    def _end(self) -> None:
        assert self._connection is not None
        self._connection.close()
        self._process.join(_PATIENCE)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()
        self._process = self._connection = self._at = None


def _give_lesson(folder: Path, teach: Teach, teaching: Teaching, connection: Connection) -> None:
    """The life of a process: one finding in, a rule's name and text out, or why there is none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to everybody
    if teaching.spare_time:
        with contextlib.suppress(OSError):
            os.nice(_NICE)
    place = folder.parent.parent / LEARNED / folder.name
    try:
        answer = teach(folder, place, teaching)
    except Exception as error:  # whatever it is, the campaign goes on
        answer = f"{type(error).__name__}: {error}"
    if isinstance(answer, str):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / "failed.txt", (answer + "\n").encode())
    with contextlib.suppress(OSError):
        connection.send(answer)


def teach_graph(folder: Path, place: Path, teaching: Teaching) -> str | tuple[str, str]:
    """A lesson of a finding whose program is a graph."""
    from reprise.distill.distilling import distill_subject
    from reprise.distill.reduce import Budget
    from reprise.distill.subject import read_subject
    from reprise.distill.tighten import Against
    from reprise.solve.signatures import Signatures

    signatures = Signatures.load()
    made, _, _ = distill_subject(
        read_subject(folder, None, signatures),
        signatures,
        place,
        limits=teaching.limits,
        budget=Budget(seconds=teaching.seconds),
        seed=teaching.seed,
        name=lesson_name(folder),
        against=Against(None, teaching.neighbours),
    )
    if made.discarded:
        assert made.tightened is not None
        return f"the rule was discarded: {made.tightened.reason}"
    return made.draft.name, made.text


def lesson_name(folder: Path) -> str:
    """The name of the rule that is learned from a finding."""
    return f"learned_{int(folder.name):06d}"
