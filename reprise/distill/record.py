"""What distilling leaves: the rule, and a record of every experiment that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reprise.distill.asking import Answer
from reprise.distill.draft import Draft
from reprise.distill.sampling import Sample
from reprise.distill.tighten import Change, Tightened


class Tried(Protocol):
    """A program that was asked about: its key, and the answer."""

    @property
    def key(self) -> str: ...

    @property
    def answer(self) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question to the target. ``dimension``: what was varied, ``before`` and ``after`` what the
    pattern said and, were it kept, would say of it. ``programs``: those tried, by key, with what
    they did. ``why``: what was concluded."""

    dimension: str
    before: str
    after: str
    programs: tuple[tuple[str, Answer], ...]
    kept: bool
    why: str

    def count(self, answer: Answer) -> int:
        return sum(given is answer for _, given in self.programs)


@dataclass(frozen=True)
class Case:
    """A sample as a test of the rule: ``match`` or ``no_match``."""

    kind: str
    title: str
    sample: Sample


@dataclass
class Record:
    """``reasons``: of each condition that is in the rule, why. ``fresh``: how many fresh programs
    the last joint check tried, and how many of them triggered. ``complete``: neither a budget nor
    Ctrl-C cut it short. ``interrupted`` says where it was if one did."""

    experiments: list[Experiment] = field(default_factory=list)
    reasons: dict[object, str] = field(default_factory=dict)
    fresh: tuple[int, int] = (0, 0)
    complete: bool = False
    interrupted: str = ""
    asked: int = 0
    runs: int = 0
    seconds: float = 0.0

    def add(
        self,
        dimension: str,
        before: str,
        after: str,
        programs: Sequence[Tried],
        kept: bool,
        why: str,
    ) -> None:
        tried = tuple((asked.key, asked.answer) for asked in programs)
        self.experiments.append(Experiment(dimension, before, after, tried, kept, why))


class Said(Protocol):
    """A draft of any kind, as far as reports tell of it."""

    @property
    def name(self) -> str: ...

    @property
    def noun(self) -> str: ...

    @property
    def parts(self) -> str: ...

    @property
    def conditions(self) -> Sequence[object]: ...


class Result(Protocol):
    """What distilling came to, of programs of any kind: see :class:`Distilled`."""

    @property
    def draft(self) -> Said: ...

    @property
    def text(self) -> str: ...

    @property
    def record(self) -> Record: ...

    @property
    def tightened(self) -> Tightened[Any, Any] | None: ...

    @property
    def known(self) -> str: ...

    @property
    def discarded(self) -> bool: ...


@dataclass(frozen=True)
class Distilled:
    """A rule made from a program that shows a defect. ``text``: the ``.rules`` file, with tests;
    ``triggers``: programs that show the defect and that the draft matches. ``tightened``: how it
    did on programs that it had not seen, if it was held against any; the draft is what came of
    that, unless the rule was discarded. ``known``: the rule that the program was filed under."""

    draft: Draft
    text: str
    record: Record
    triggers: tuple[Sample, ...]
    tightened: Tightened[Draft, Change] | None = None
    known: str = ""

    @property
    def discarded(self) -> bool:
        return self.tightened is not None and self.tightened.draft is None
