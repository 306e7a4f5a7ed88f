"""Which finding stands for a defect, in whatever command shows one.

Comes in: a defect's findings. Goes out: a :class:`Shown`: those that failed every time before
flaky ones, reduced ones before others, small programs before large ones. A finding's reduced
version, which `reprise reduce` puts into its folder in the same form, is what is shown of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reprise.campaign.findings import Detail, read_detail
from reprise.campaign.records import Finding, StoreError

REDUCED = "reduced"
"""The folder, inside a finding's, that holds its reduced version, in the same form."""

_TRIED = 3


@dataclass(frozen=True)
class Shown:
    """A finding, and the folder that shows it: its own or its reduced version's. ``detail`` is what
    stands there, or None and ``problem`` says why it could not be read."""

    finding: Finding
    folder: Path
    detail: Detail | None
    problem: str = ""

    @property
    def rule(self) -> str | None:
        """The known rule that the finding is filed under as it is shown: a rule may match what is
        left of a program, though it does not match all of it."""
        return self.finding.rule if self.detail is None else self.finding.rule or self.detail.rule


def representative(findings: Iterable[Finding]) -> Shown | None:
    """The finding that stands for these; None if none kept a folder. A damaged one gives way to
    the next, within reason."""
    kept = [f for f in findings if f.folder is not None and f.folder.is_dir()]
    candidates = [shown(finding) for finding in sorted(kept, key=_awkwardness)[:_TRIED]]
    for candidate in candidates:
        if candidate.detail is not None:
            return candidate
    return candidates[0] if candidates else None


def shown(finding: Finding) -> Shown:
    """What shows a finding that kept a folder."""
    assert finding.folder is not None
    folder = shown_folder(finding.folder)
    try:
        return Shown(finding, folder, read_detail(folder))
    except StoreError as error:
        return Shown(finding, folder, None, str(error))


def shown_folder(folder: Path) -> Path:
    """The reduced version's folder if it is whole, or else the finding's own."""
    reduced = folder / REDUCED
    if not (reduced / "finding.json").is_file() or not (reduced / "program.uir").is_file():
        return folder
    try:
        read_detail(reduced)
    except StoreError:
        return folder
    return reduced


def _awkwardness(finding: Finding) -> tuple[bool, bool, int, int]:
    assert finding.folder is not None
    flaky = finding.confirmation is None or finding.confirmation.flaky
    folder = shown_folder(finding.folder)
    try:
        size = (folder / "program.uir").stat().st_size
    except OSError:
        size = 1 << 60
    return flaky, folder == finding.folder, size, finding.index
