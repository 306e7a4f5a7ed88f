"""What a run's store holds, as values: what was asked for, what each test came to, and what it
adds up to. The writer (``writer.py``) and the reader (``store.py``) speak in these.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from reprise.oracle.verdict import Severity, Verdict

SCHEMA_VERSION = 1
"""Of the store's tables; a store with a later one is refused."""

FIRST_KEPT = 3
"""How many of a signature's first tests keep a folder unless the user says otherwise."""


class StoreError(Exception):
    """A run folder cannot be used; the message is for people. (``UsageError`` and its like end
    the command with exit code 2; so does this.)"""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was asked for: enough to make the same programs again.

    ``target`` as given (``onnxruntime@/path/to/python``); ``options`` are the command's, JSON
    values by name (budget, generation, ``keep``); ``rules`` the names of the patterns that guide
    the run or file its findings, ``rules_hash`` of the texts of their files; ``guided``: whether
    the generator knew them. ``versions`` of Reprise, Python, numpy, the compiler, the machine.
    ``started`` in UTC, ISO 8601.
    """

    seed: int
    target: str
    options: dict[str, object]
    rules: tuple[str, ...]
    rules_hash: str
    guided: bool
    versions: dict[str, str]
    started: str
    schema: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Record:
    """One test, done. ``rule``: the known bug that it is filed under. ``seconds`` that its target
    took. ``rejected`` and ``completed`` as in :class:`~reprise.synth.interface.Synthesis`."""

    index: int
    verdict: Verdict
    signature: str = ""
    title: str = ""
    rule: str | None = None
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)
    completed: tuple[str, ...] = ()
    severity: Severity = Severity.NORMAL


class End(Enum):
    """How a session ended."""

    RUNNING = "running"  # or killed
    DONE = "done"  # the budget is spent
    INTERRUPTED = "interrupted"
    FAILED = "failed"  # a full disk, a fault of ours


@dataclass(frozen=True, slots=True)
class Session:
    """One stretch of a run, from start or ``--resume`` to its end. Tests ``first`` to before
    ``next``; ``seconds`` by a clock that does not jump; ``started`` in UTC."""

    id: int
    started: str
    jobs: int
    first: int
    next: int
    seconds: float
    end: End


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A finding was run again ``runs`` times, in another process, and came to the same verdict and
    signature ``agreed`` times."""

    runs: int
    agreed: int

    @property
    def flaky(self) -> bool:
        return self.agreed < self.runs


@dataclass(frozen=True, slots=True)
class Finding:
    """A test that came to something worth keeping: a defect of the target, or what its verdict
    says. ``folder`` is None where only the row was kept; ``confirmation`` comes with a folder."""

    id: str
    index: int
    verdict: Verdict
    signature: str
    rule: str | None
    at: float
    """Seconds of fuzzing since the run began."""
    folder: Path | None
    confirmation: Confirmation | None


@dataclass(frozen=True, slots=True)
class Signature:
    """All tests of one verdict with one signature that were filed under the same rule (or none).

    ``title`` and ``severity`` are the first one's; ``kept`` counts folders.
    """

    id: int
    verdict: Verdict
    signature: str
    rule: str | None
    title: str
    count: int
    kept: int
    first_index: int
    first_at: float
    severity: Severity = Severity.NORMAL


def cause(rule: str | None, signature: str) -> tuple[bool, str]:
    """What findings of one defect have in common: one known rule, or else one signature."""
    return (rule is not None, signature if rule is None else rule)


@dataclass(frozen=True, slots=True)
class Defect:
    """Findings with one cause as far as we know: one known rule, whatever it looked like, or else
    one signature. ``id`` is ``D1``, ``D2``… in the order in which they were first met."""

    id: str
    rule: str | None
    signatures: tuple[Signature, ...]

    @property
    def key(self) -> str:
        """The same in every run that meets this defect: what ``compare`` joins on."""
        return f"rule:{self.rule}" if self.rule is not None else self.signatures[0].signature

    @property
    def count(self) -> int:
        """b_d: reports of this defect."""
        return sum(s.count for s in self.signatures)

    @property
    def title(self) -> str:
        return self.signatures[0].title

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Each kind of end that it came to, the first first."""
        return tuple(dict.fromkeys(s.verdict for s in self.signatures))

    @property
    def severity(self) -> Severity:
        """Low only if all of it is."""
        low = all(s.severity is Severity.LOW for s in self.signatures)
        return Severity.LOW if low else Severity.NORMAL

    @property
    def first_index(self) -> int:
        return min(s.first_index for s in self.signatures)

    @property
    def first_at(self) -> float:
        return min(s.first_at for s in self.signatures)


@dataclass(frozen=True, slots=True)
class Suppression:
    """What a rule did to generation: candidates taken back, and programs that match it all the
    same (the last attempt is accepted)."""

    rejected: int
    completed: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Verdicts of the tests that ended in a stretch of time, ``[start, end)`` in seconds of
    fuzzing, and the defects that were first met in it."""

    start: float
    end: float
    verdicts: dict[Verdict, int]
    new_defects: tuple[str, ...]
