"""Rules that a run learned from its own findings, and from which test on they hold.

``RUN/learned/0001-000345-NAME.rules``: the first rule, in force from test 345 on. A rule is there
before the first test that it is in force for is handed out, so which rules a test's generator knew
depends on the test's number alone: a killed run goes on with the same programs, whoever makes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reprise.cache import write_whole
from reprise.campaign.records import StoreError
from reprise.lang.ruleset import RuleSet, load_rules

LEARNED = "learned"
_NAME = re.compile(r"(\d{4,})-(\d{6,})-(\w+)\.rules")
_ABOUT = re.compile(r"^// learned from: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A rule that was made from a finding. ``signature``: the finding's, which is what the run
    calls the defect. ``text``: a rule file with a pattern called ``name``."""

    name: str
    signature: str
    text: str


@dataclass(frozen=True, slots=True)
class Unlearned:
    """A finding of which no rule was made: ``reason`` says why, or is empty if its lesson was not
    finished."""

    folder: Path
    reason: str = ""


class Learner(Protocol):
    """Makes rules of findings, in the background."""

    def wants(self, signature: str) -> bool:
        """Whether a finding with this signature that no learned rule explains is worth a lesson:
        one defect may need several patterns. Returns at once."""
        ...

    def found(self, signature: str, folder: Path) -> None:
        """Such a finding. Returns at once."""
        ...

    def begun(self) -> Sequence[Path]:
        """The findings whose lessons have begun since the last call. Returns at once."""
        ...

    def lessons(self) -> Sequence[Lesson]:
        """What has been learned since the last call. Returns at once."""
        ...

    def close(self) -> Sequence[Lesson]:
        """Stop: what has been learned since the last call of ``lessons``; what is not finished is
        lost."""
        ...

    def unlearned(self) -> Sequence[Unlearned]:
        """Once it is closed: the findings that no rule was made of."""
        ...


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A file in the folder."""

    path: Path
    name: str
    since: int

    @property
    def signature(self) -> str:
        """Of the defect that it was learned from. Raises StoreError if the file cannot be read."""
        try:
            found = _ABOUT.search(self.path.read_text("utf-8", "replace"))
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        return found.group(1) if found else ""

    def is_about(self, signature: str) -> bool:
        return self.signature == _line(signature)

    def load(self) -> RuleSet:
        return load_rules([self.path])


@dataclass(frozen=True)
class LearnedRules:
    """A run's folder of learned rules, which need not be there."""

    folder: Path

    @classmethod
    def of(cls, run: Path) -> LearnedRules:
        return cls(run / LEARNED)

    def all(self) -> list[LearnedRule]:
        """In the order in which they were learned."""
        if not self.folder.is_dir():
            return []
        found = {path: _NAME.fullmatch(path.name) for path in sorted(self.folder.iterdir())}
        return [
            LearnedRule(path, match.group(3), int(match.group(2)))
            for path, match in found.items()
            if match is not None
        ]

    def at(self, index: int) -> list[LearnedRule]:
        """Those in force for a test."""
        return [rule for rule in self.all() if rule.since <= index]

    def add(self, lesson: Lesson, since: int) -> LearnedRule:
        """Put a rule into force from test ``since`` on. Raises StoreError."""
        number = len(self.all()) + 1
        path = self.folder / f"{number:04d}-{since:06d}-{lesson.name}.rules"
        about = _line(lesson.signature)
        try:
            self.folder.mkdir(exist_ok=True)
            write_whole(path, f"// learned from: {about}\n{lesson.text}".encode())
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        return LearnedRule(path, lesson.name, since)


def _line(text: str) -> str:
    return " ".join(text.split())
