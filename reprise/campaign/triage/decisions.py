"""What was decided about a run's defects: ``triage.json`` in its folder, beside the store.

Keyed by what tells a defect from others (its rule or its signature), so that a decision outlives a
run that goes on. The store itself is only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from reprise.cache import write_whole
from reprise.campaign.records import StoreError

FILE = "triage.json"
_VERSION = 1


class Decision(Enum):
    """What becomes of a defect."""

    REPORT = "report"  # a bug report was written
    SKIP = "skip"  # not now: asked again next time
    KNOWN = "known"  # somebody knows it
    NOT_A_BUG = "not_a_bug"


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision about a defect, the finding that stood for it, a remark, and the report's path, as
    seen from the run's folder if it is inside."""

    decision: Decision
    finding: str
    note: str = ""
    report: str = ""
    when: str = ""


class Decisions(Mapping[str, Decided]):
    """The decisions about a run, by defect key. Raises StoreError if the file is damaged."""

    def __init__(self, run: Path) -> None:
        self.path = run / FILE
        self._made: dict[str, Decided] = {}
        if not self.path.is_file():
            return
        try:
            data = json.loads(self.path.read_text("utf-8"))
            if data["version"] != _VERSION:
                raise ValueError(f"version {data['version']}, not {_VERSION}")
            for key, one in data["decisions"].items():
                self._made[key] = Decided(**{**one, "decision": Decision(one["decision"])})
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(f"{self.path}: damaged ({error})") from error

    def decide(self, key: str, decided: Decided) -> None:
        """Keep a decision, in the file too."""
        when = decided.when or datetime.now(UTC).isoformat(timespec="seconds")
        self._made[key] = Decided(
            decided.decision, decided.finding, decided.note, decided.report, when
        )
        made = {k: {**asdict(one), "decision": one.decision.value} for k, one in self._made.items()}
        text = json.dumps({"version": _VERSION, "decisions": made}, indent=2) + "\n"
        write_whole(self.path, text.encode())

    def as_kept(self, report: Path) -> str:
        """A report's path as it is kept: it must not depend on where the command was run, nor on
        where the run's folder is moved to."""
        run, path = self.path.parent.resolve(), report.resolve()
        return (path.relative_to(run) if path.is_relative_to(run) else path).as_posix()

    def is_open(self, key: str) -> bool:
        """Whether nothing is decided, or only that it is not for now."""
        return key not in self._made or self._made[key].decision is Decision.SKIP

    def __getitem__(self, key: str) -> Decided:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
