"""One process's share of a campaign: number in, test done out.

A :class:`FuzzBench` has a generator, a lowering, a target's process and an oracle. Nothing that a
test does to any of them stops it: what the target does is a verdict, and what goes wrong on our
side is one too (``invalid``), with its traceback as evidence. Only a target that cannot be started
at all ends the run.

What a program is, the bench does not know: a graph, or a kernel with its variants. A :class:`Kind`
says what it asks of one; :class:`Graphs` does so for graphs.
"""

from __future__ import annotations

import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from reprise.campaign.filing import KnownBugs, RuleMatch
from reprise.campaign.learned import LearnedRule, LearnedRules
from reprise.campaign.records import Confirmation, Record
from reprise.campaign.writer import KEPT_VERDICTS
from reprise.lower.lowering import Lowering, lowering, refusal
from reprise.oracle.tolerance import Tolerance
from reprise.oracle.verdict import Judgement, Verdict
from reprise.synth.interface import Learning
from reprise.targets.discover import Target, TargetError
from reprise.targets.interface import Ended, Outcome
from reprise.targets.process import Jobs, Limits, TargetProcess
from reprise.uir.graph import Array, Graph
from reprise.uir.program import Program
from reprise.uir.text import print_uir


class Subject(Protocol):
    """What a test is made of: a program, with the inputs that it is given by name."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> dict[str, Array]: ...


class Made(Protocol):
    """A subject and how it came about, as in :class:`~reprise.synth.interface.Synthesis`."""

    @property
    def program(self) -> Any: ...

    @property
    def rejected(self) -> Counter[str]: ...

    @property
    def completed(self) -> tuple[str, ...]: ...


class Programs(Protocol):
    """A run's subjects, numbered from 0, as in :class:`~reprise.synth.interface.Source`."""

    def program(self, index: int, /) -> Made: ...


class Filing(Protocol):
    """The known bugs of a target: see :class:`~reprise.campaign.filing.KnownBugs`. What they are
    matched with is what :meth:`Kind.matched` gives."""

    def matches(self, matched: Any, /) -> tuple[RuleMatch, ...]: ...

    def file(
        self, judgement: Judgement, matches: Collection[RuleMatch], passes: Collection[str] = ()
    ) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Examination:
    """What the oracle says of a program, the outcome that it looked at first (None: there was
    nothing to run), and how far apart its outputs may be, one by one. ``shown``: the part of the
    program that shows it, if the oracle has found one. ``expected``: where the target disagrees
    with the reference, the reference's outputs by number, those that are defined."""

    judgement: Judgement
    outcome: Outcome | None = None
    tolerances: tuple[Tolerance, ...] = ()
    shown: Any = None
    expected: Mapping[int, Array] = field(default_factory=dict)


class Oracle(Protocol):
    """Runs a lowered program, as often as it takes, and judges it."""

    def __call__(self, program: Any, model: bytes, process: Jobs, /) -> Examination: ...


class Kind(Protocol):
    """What subjects of one kind are to a campaign."""

    def refusal(self, program: Any, /) -> str | None:
        """Why the target cannot be given a subject; None if it can."""
        ...

    def lower(self, program: Any, /) -> bytes:
        """What the target is given."""
        ...

    def files(self, program: Any, examination: Examination, /) -> dict[str, bytes]:
        """What a finding's folder has of a subject, by file: its text first."""
        ...

    def matched(self, program: Any, examination: Examination, /) -> Any:
        """What known bugs are matched with."""
        ...

    def learn(self, source: Any, rule: LearnedRule, /) -> Filing:
        """Let a source of subjects steer around a rule that the run has learned, from its next
        subject on; what findings are filed under it by."""
        ...

    def smaller(self, examination: Examination, process: Jobs, /) -> Examination:
        """An examination of a finding, with as little shown as its folder should show."""
        ...


class Graphs:
    """Programs that are graphs."""

    def __init__(self, target: Target) -> None:
        self._lowering: Lowering = lowering(target.lowering)

    def refusal(self, program: Program, /) -> str | None:
        return refusal(self._lowering, program.graph)

    def lower(self, program: Program, /) -> bytes:
        return self._lowering.lower(program.graph)

    def files(self, program: Program, examination: Examination, /) -> dict[str, bytes]:
        return {"program.uir": print_uir(program.graph).encode("utf-8", "backslashreplace")}

    def matched(self, program: Program, examination: Examination, /) -> Graph:
        return program.graph

    def learn(self, source: Any, rule: LearnedRule, /) -> Filing:
        assert isinstance(source, Learning)
        rules = rule.load()
        patterns = list(rules.patterns.values())
        source.learn(rules, patterns)
        return KnownBugs(rules, patterns, {})

    def smaller(self, examination: Examination, process: Jobs, /) -> Examination:
        return examination  # `reprise reduce` is for that


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What is needed to write a finding's folder. ``files``: of the program, by name, its text
    first; none if there was no program. ``model`` is empty if there was none."""

    files: dict[str, bytes]
    name: str
    model: bytes
    inputs: dict[str, Array]
    outcome: Outcome | None
    judgement: Judgement
    matches: tuple[RuleMatch, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    expected: Mapping[int, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tested:
    """A test, done; an exhibit comes with the verdicts that may keep a folder. ``explained``: a
    rule that the run has learned says what it is."""

    record: Record
    exhibit: Exhibit | None = None
    explained: bool = False


@dataclass(frozen=True)
class Fuzzing:
    """How to set up a bench, in any process (see :class:`~reprise.campaign.scheduler.Work`).

    ``source``, ``oracle`` and ``known`` make the generator, the oracle and the known bugs; they
    are functions, or values that can be called, that can be pickled. ``learned``: rules that come
    while the run goes on; the kind lets the source know them.
    """

    target: Target
    source: Callable[[], Programs]
    oracle: Callable[[Target], Oracle]
    known: Callable[[], Filing]
    limits: Limits = field(default_factory=Limits)
    learned: LearnedRules | None = None
    kind: Callable[[Target], Kind] = Graphs
    lowerable: bool = False
    """The generator keeps to what the target's lowering supports: no need to ask again."""

    def open(self) -> FuzzBench:
        return FuzzBench(self)

    def abandoned(self, item: int, /) -> Tested:
        judgement = Judgement(
            Verdict.INVALID,
            "reprise: process died",
            "the fuzzer's own process died twice on this test",
        )
        record = Record(item, judgement.verdict, judgement.signature, judgement.title)
        return Tested(record, Exhibit({}, "", b"", {}, None, judgement))


class FuzzBench:
    """See the module. Closing it ends the target's process: ``process``, if one is there already.

    Raises what makes generation impossible (RulesError, OptionsError)."""

    def __init__(self, work: Fuzzing, process: TargetProcess | None = None) -> None:
        self.work = work
        self.source = work.source()
        self._kind = work.kind(work.target)
        self._oracle = work.oracle(work.target)
        self._known: Filing | None = None
        self._learned: list[tuple[LearnedRule, Filing]] = []
        self.process = process or TargetProcess(work.target, work.limits)

    def run(self, batch: Sequence[int], /) -> Iterator[Tested]:
        """Rules are learned between batches, never within one."""
        if batch:
            self._learn(batch[0])
        for index in batch:
            yield self.test(index)

    def close(self) -> None:
        self.process.close()

    def test(self, index: int) -> Tested:
        """Make and judge one program. Raises TargetError if the target cannot be started."""
        try:
            synthesis = self.source.program(index)
        except Exception as error:
            judgement = _fault("generate", error)
            record = Record(index, judgement.verdict, judgement.signature, judgement.title)
            return Tested(record, Exhibit({}, "", b"", {}, None, judgement))
        start = time.monotonic()
        model, examination = self.examine(synthesis.program)
        outcome, judgement = examination.outcome, examination.judgement
        record = Record(
            index,
            judgement.verdict,
            judgement.signature,
            judgement.title,
            seconds=time.monotonic() - start if outcome is None else outcome.seconds,
            rejected=synthesis.rejected,
            completed=synthesis.completed,
            severity=judgement.severity,
        )
        if judgement.verdict not in KEPT_VERDICTS:
            return Tested(record)
        return self._filed(record, synthesis, model, examination)

    def confirm(self, tested: Tested, runs: int) -> tuple[Confirmation, Tested]:
        """Make the same program again and judge it ``runs`` times; with the test as its folder
        should show it."""
        index = tested.record.index
        self._learn(index)
        program = self.source.program(index).program
        before = (tested.record.verdict, tested.record.signature)
        if tested.exhibit is not None:
            before = (tested.exhibit.judgement.verdict, tested.exhibit.judgement.signature)
        agreed = 0
        last: Examination | None = None
        for _ in range(runs):
            examination = self.examine(program)[1]
            judgement = examination.judgement
            if (judgement.verdict, judgement.signature) == before:
                agreed += 1
                last = examination
        if last is None or tested.exhibit is None:
            return Confirmation(runs, agreed), tested
        smaller = self._kind.smaller(last, self.process)
        if smaller is not last:
            exhibit = replace(
                tested.exhibit,
                files=self._kind.files(program, smaller),
                outcome=smaller.outcome,
                judgement=smaller.judgement,
            )
            tested = replace(tested, exhibit=exhibit)
        return Confirmation(runs, agreed), tested

    def _learn(self, index: int) -> None:
        """Let the generator know the learned rules that are in force for a test, and no others."""
        if self.work.learned is None:
            return
        wanted = self.work.learned.at(index)
        if [rule for rule, _ in self._learned] == wanted:
            return
        if [rule for rule, _ in self._learned] != wanted[: len(self._learned)]:
            self.source = self.work.source()
            self._learned = []
        for rule in wanted[len(self._learned) :]:
            self._learned.append((rule, self._kind.learn(self.source, rule)))

    def examine(self, program: Any) -> tuple[bytes, Examination]:
        """What the target was given, and what the oracle says of it. Raises TargetError if the
        target cannot be started."""
        model = b""
        try:
            reason = None if self.work.lowerable else self._kind.refusal(program)
            if reason is not None:
                return b"", Examination(Judgement(Verdict.UNSUPPORTED, reason, reason))
            model = self._kind.lower(program)
            examination = self._oracle(program, model, self.process)
        except TargetError:
            raise
        except Exception as error:
            return model, Examination(_fault("judge" if model else "lower", error))
        outcome = examination.outcome
        if outcome is not None and outcome.ended is Ended.UNSTARTED:
            raise TargetError(outcome.log)
        return model, examination

    def _filed(self, record: Record, made: Made, model: bytes, examination: Examination) -> Tested:
        program, judgement = made.program, examination.judgement
        matches: tuple[RuleMatch, ...] = ()
        explained = False
        if judgement.verdict.is_finding:
            if self._known is None:
                self._known = self.work.known()
            matched = self._kind.matched(program, examination)
            matches = self._known.matches(matched)
            if matches:
                passes = self.process.passes(model)
                record = replace(record, rule=self._known.file(judgement, matches, passes))
            rule = self._explanation(matched, judgement)
            explained = rule is not None
            if rule is not None and record.rule is None:
                record = replace(record, signature=rule.signature)
        exhibit = Exhibit(
            self._kind.files(program, examination),
            program.name,
            model,
            program.inputs,
            examination.outcome,
            judgement,
            matches,
            examination.tolerances,
            examination.expected,
        )
        return Tested(record, exhibit, explained)

    def _explanation(self, matched: Any, judgement: Judgement) -> LearnedRule | None:
        """The learned rule that explains a finding: it is one more of the defect that the rule was
        learned from, whatever this one looks like."""
        for rule, known in self._learned:
            if known.file(judgement, known.matches(matched)) is not None:
                return rule
        return None


def _fault(doing: str, error: Exception) -> Judgement:
    """Our own mistake as a verdict: the same for the same place in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].name}" if frames else ""
    name = type(error).__name__
    return Judgement(
        Verdict.INVALID,
        f"reprise: {doing} | {name} | {place}",
        f"our own fault, to {doing} it: {name}: {' '.join(str(error).split())[:200]}",
        {"traceback": "".join(traceback.format_exception(error))[-8000:]},
    )
