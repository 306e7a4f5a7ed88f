"""Going through a run's defects: shows each, takes a decision, writes the report.

Who decides is passed in: a person at a terminal, or nobody (then every new defect gets a report).
What is decided is kept at once, so an interruption loses nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reprise.cache import write_whole
from reprise.campaign.records import Defect, StoreError
from reprise.campaign.report.summary import in_line
from reprise.campaign.triage.bugreport import bug_report
from reprise.campaign.triage.decisions import Decided, Decision, Decisions
from reprise.campaign.triage.novelty import Item
from reprise.lang.display import shortened
from reprise.oracle.verdict import Severity
from reprise.patterns.truth import Truth
from reprise.targets.discover import Target

REPORTS = "reports"
"""The folder of a run in which reports are, unless told otherwise."""
REPORT = "report.md"
_PROGRAM_LINES = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision and a remark to keep with it."""

    decision: Decision
    note: str = ""


class Decider(Protocol):
    """Decides about one defect, which has been shown; None ends the session."""

    def __call__(self, item: Item, /) -> Choice | None: ...


class Watch(Protocol):
    """Where things are shown."""

    def show(self, lines: Sequence[str], /) -> None: ...


def report_all_new(item: Item, /) -> Choice:
    """The decision of nobody: a report on what is new, nothing about what is known or does not
    fail every time."""
    return Choice(Decision.REPORT if item.is_new and not item.is_flaky else Decision.SKIP)


@dataclass
class Triage:
    """A session over some items of a run of ``target``, into the folder ``out``."""

    decisions: Decisions
    target: Target
    out: Path

    def go(self, items: Sequence[Item], decide: Decider, watch: Watch) -> list[Path]:
        """Take the items one by one; the reports that were written."""
        written = []
        for number, item in enumerate(items, 1):
            head = f"[{number} of {len(items)}] "
            with _reading(item):
                lines = list(shown(item))
            watch.show([head + lines[0], *lines[1:]])
            choice = decide(item)
            if choice is None:
                break
            if choice.decision is Decision.SKIP:
                continue
            if choice.decision is Decision.REPORT:
                written.append(self.report(item, choice.note))
                watch.show([f"  written: {written[-1]}"])
            else:
                kept = Decided(choice.decision, item.finding.id, choice.note)
                self.decisions.decide(item.defect.key, kept)
        return written

    def report(self, item: Item, note: str = "") -> Path:
        """Write a report, and keep that it was decided. Raises StoreError for a damaged finding."""
        path = self._write(item)
        kept = self.decisions.as_kept(path)
        self.decisions.decide(
            item.defect.key, Decided(Decision.REPORT, item.finding.id, note, kept)
        )
        return path

    def _write(self, item: Item) -> Path:
        """Write a report, with the files that go with it beside it."""
        with _reading(item):
            report = bug_report(item, self.target)
        folder = self.out / item.finding.id
        folder.mkdir(parents=True, exist_ok=True)
        for name in report.files:
            shutil.copyfile(item.folder / name, folder / name)
        write_whole(folder / REPORT, report.text.encode("utf-8", "backslashreplace"))
        return folder / REPORT


@contextmanager
def _reading(item: Item) -> Iterator[None]:
    """What is wrong with the evidence of a finding, whose parts are taken as Reprise writes them,
    is said of its file. Raises StoreError."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        path = item.folder / "finding.json"
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {error})") from error


def still_open(items: Sequence[Item], decisions: Decisions) -> list[Item]:
    """The items about which nothing is decided."""
    return [item for item in items if decisions.is_open(item.defect.key)]


def shown(item: Item) -> Iterator[str]:
    """An item for people: what happened, the program, and what it is near to."""
    defect, detail = item.defect, item.detail
    what = " and ".join(v.value.replace("_", " ") for v in defect.verdicts)
    low = ", minor" if defect.severity is Severity.LOW else ""
    state = "new" if item.is_new else f"known: {item.rule}"
    yield f"{defect.id}, finding {item.finding.id}: {what}{low}, {state}, {_times(defect)}"
    yield f"  {_line(detail.title)}"
    confirmation = detail.confirmation
    if confirmation is not None and confirmation.flaky:
        yield (
            f"  FLAKY: of {confirmation.runs} more runs, {confirmation.agreed} came to the same; "
            "no pass can be blamed"
        )
    for line in _differences(item):
        yield f"  {line}"
    if item.text:
        yield f"  the program{' (reduced)' if item.is_reduced else ''}:"
        lines = item.text.rstrip().splitlines()
        yield from (f"    {shortened(line, 120)}" for line in lines[:_PROGRAM_LINES])
        if len(lines) > _PROGRAM_LINES:
            yield f"    ... {len(lines) - _PROGRAM_LINES} more lines in {item.folder}/program.uir"
    yield from _near(item)
    for other in item.similar:
        yield f"  alike in this run: {other.id}: {_line(other.title)}"
    yield f"  in {item.folder}"


def _line(text: str) -> str:
    return in_line(text, 300)


def _times(defect: Defect) -> str:
    return f"{defect.count} report{'' if defect.count == 1 else 's'}"


def _differences(item: Item) -> Iterator[str]:
    for one in item.detail.evidence.get("differences", ())[:2]:
        yield f"output {one['output']}: {one['actual']}, expected {one['expected']}"
    if item.blamed:
        yield f"cured without: {', '.join(item.blamed)}"


def _near(item: Item) -> Iterator[str]:
    if not item.nearest and item.is_new and item.graph is not None:  # kernels: rules of others
        yield "  no rule is near"
    for near in item.nearest:
        match near.certainty:
            case Truth.YES:
                said = "matches"
            case Truth.UNKNOWN:
                said = f"may match: {near.why}"
            case Truth.NO:
                said = f"{near.met} of {near.conditions} conditions, not {near.why}"
        yield f"  {near.rule} ({near.title}): {_line(said)}"
