"""A run, gathered for a report: defects ranked, each with its best finding and its known rule.

Comes in: a run (:class:`~reprise.campaign.store.Run`) and its findings' folders. Nothing that is
missing or damaged there stops a report: what could not be read is said where it would have stood.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote

from reprise.campaign.findings import Detail
from reprise.campaign.learned import LearnedRules
from reprise.campaign.records import Defect, End, Finding, Signature, StoreError
from reprise.campaign.representative import representative, shown_folder
from reprise.campaign.store import Run
from reprise.data import data_path
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.lang.display import printable, shortened
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.oracle.verdict import Severity, Verdict


@dataclass(frozen=True)
class Ranked:
    """A defect, and the finding that shows it best: ``folder`` is the finding's or its reduced
    version's (None: none was kept), ``detail`` what stands in it, ``problem`` why it could not be
    read.

    ``rule``: the known rule that the defect is filed under, by itself or by its reduced version;
    ``pattern``: the rule's declaration, if it could be loaded.
    ``learned``: the rules that the run learned from it.
    """

    defect: Defect
    rule: str | None
    pattern: Pattern | None
    finding: Finding | None
    folder: Path | None
    detail: Detail | None
    problem: str = ""
    learned: tuple[str, ...] = ()

    @property
    def known_as(self) -> str:
        """The rule that explains the defect; of a new one, the rules that were learned from it."""
        if self.rule is not None:
            return self.rule
        match self.learned:
            case ():
                return "new"
            case (name,):
                return f"new, {name}"
            case names:
                return f"new, {names[0]} and {len(names) - 1} more"

    @property
    def is_flaky(self) -> bool:
        """Whether not even the best finding fails the same every time."""
        confirmation = None if self.finding is None else self.finding.confirmation
        return confirmation is not None and confirmation.flaky

    @property
    def headline(self) -> str:
        """What happened, in a line: the title, or of a crash the whole message, without folders
        and codes that say nothing."""
        evidence = {} if self.detail is None else self.detail.evidence
        message = evidence.get("message")
        if Verdict.CRASH not in self.defect.verdicts or not isinstance(message, str):
            return plain(self._unblamed(self.defect.title))
        blamed = self.defect.signatures[0].signature
        head = f"{blamed.removeprefix('pass:')}: " if blamed.startswith("pass:") else ""
        head = self._unblamed(head)
        where = "".join(f"{evidence[key]}: " for key in ("stage", "type") if evidence.get(key))
        return plain(f"{head}{where}{message}")

    def _unblamed(self, text: str) -> str:
        """A text without the pass that it begins with where the failure comes and goes: no pass can
        be blamed for that."""
        blamed = self.defect.signatures[0].signature
        passes = " + ".join(blamed.removeprefix("pass:").split("+"))
        return text.removeprefix(f"{passes}: ") if self.is_flaky else text


@dataclass(frozen=True)
class Ours:
    """A signature that is no defect of the target but has to be looked into: ``invalid`` programs
    and disagreements with the reference. ``folder``: of its first finding that kept one, or of the
    finding's reduced version."""

    signature: Signature
    folder: Path | None


class Report:
    """All that a report of ``run`` says. Reading the folders is put off until it is asked for."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._kept: dict[tuple[Verdict, str, str | None], list[Finding]] = defaultdict(list)
        for finding in run.findings:
            if finding.folder is not None:
                self._kept[finding.verdict, finding.signature, finding.rule].append(finding)

    @cached_property
    def defects(self) -> tuple[Ranked, ...]:
        """The most reported first; equally often reported ones in the order they were met."""
        order = sorted(self.run.defects, key=lambda defect: -defect.count)
        return tuple(self._ranked(defect) for defect in order)

    @cached_property
    def ours(self) -> tuple[Ours, ...]:
        """Signatures with a folder that are no findings, the most frequent first."""
        wanted = (Verdict.INVALID, Verdict.REFERENCE_DISAGREEMENT)
        found = [s for s in self.run.signatures if s.verdict in wanted]
        return tuple(
            Ours(s, next((shown_folder(f.folder) for f in self._findings((s,)) if f.folder), None))
            for s in sorted(found, key=lambda s: (s.verdict is not Verdict.INVALID, -s.count))
        )

    @cached_property
    def rules(self) -> RuleSet | None:
        """The rules that the run knew, if they can still be loaded."""
        given = self.run.info.options.get("rules")
        paths = [Path(str(path)) for path in given] if isinstance(given, list) else []
        try:
            return load_rules(paths or (data_path("rules/bugs"),))
        except (RulesError, OSError):
            return None

    @property
    def suppressed(self) -> list[tuple[str, int, int]]:
        """Rule, candidates taken back, programs that match all the same; most taken back first."""
        rows = [(rule, s.rejected, s.completed) for rule, s in self.run.suppressed.items()]
        return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))

    @property
    def rate(self) -> float | None:
        """Tests a second; None of no time."""
        return self.run.tests / self.run.seconds if self.run.seconds else None

    @property
    def versions(self) -> str:
        """The compiler's version first, then the rest; the machine is left out."""
        versions = dict(self.run.info.versions)
        versions.pop("machine", None)
        own = [n for n in ("reprise", "python", "numpy") if n in versions]
        order = [*(n for n in versions if n not in own), *own]
        return ", ".join(f"{name} {versions[name]}" for name in order)

    @property
    def state(self) -> str:
        """How the run stands, in a few words."""
        if not self.run.sessions:
            return "not begun"
        return {
            End.DONE: "complete",
            End.INTERRUPTED: "stopped by its user",
            End.FAILED: "ended by a fault",
            End.RUNNING: "running, or killed",
        }[self.run.sessions[-1].end]

    def pattern(self, rule: str | None) -> Pattern | None:
        """A rule's declaration, if there is one that can be loaded."""
        if rule is None or self.rules is None:
            return None
        return self.rules.patterns.get(rule)

    def command(self, folder: Path) -> str | None:
        """What to type to see a finding fail again; None where there is no script."""
        script = folder / "repro.py"
        if not script.is_file():
            return None
        python = self.run.info.target.partition("@")[2] or "python"
        return f"{quote(python)} {quote(str(script))}"

    def top(self, number: int) -> list[Ranked]:
        """What a triager should see first: new defects, those that matter, the frequent ones."""

        def order(ranked: Ranked) -> tuple[bool, bool, int]:
            defect = ranked.defect
            return ranked.rule is not None, defect.severity is Severity.LOW, -defect.count

        return sorted(self.defects, key=order)[:number]

    def _findings(self, signatures: Iterable[Signature]) -> list[Finding]:
        return [f for s in signatures for f in self._kept.get((s.verdict, s.signature, s.rule), [])]

    def _ranked(self, defect: Defect) -> Ranked:
        best = representative(self._findings(defect.signatures))
        rule = defect.rule if best is None else best.rule
        pattern = self.pattern(rule)
        learned = tuple(
            dict.fromkeys(
                name
                for s in defect.signatures
                for name in self._learned.get(" ".join(s.signature.split()), ())
            )
        )
        if best is None:
            return Ranked(defect, rule, pattern, None, None, None, "", learned)
        shown = best.finding, best.folder, best.detail, best.problem
        return Ranked(defect, rule, pattern, *shown, learned)

    @cached_property
    def _learned(self) -> dict[str, list[str]]:
        """The names of learned rules by the signature that they were learned from."""
        names: dict[str, list[str]] = defaultdict(list)
        for rule in LearnedRules.of(self.run.path).all():
            with suppress(StoreError):
                names[rule.signature].append(rule.name)
        return names


NO_DEFECT = "No defect of the target, as far as is known; to be looked into in Reprise"
"""What stands over invalid programs and disagreements with the reference."""
_NOISE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : |Exception during initialization: ")
_RUNNING = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:'[^']*' Status Message: "
)
_FUNCTION = re.compile(
    r"(\b[\w.+-]+\.(?:cc|cpp|cu|cuh|h|hpp):\d+) (?=[\w:~]+[ *&])[^()]*\([^()]*\)"
    r"(?: const)?(?: \[with [^\]]*\])? "
)
"""A file and line of C++, and the function's whole declaration, which says nothing more."""
_MANGLED = re.compile(r"\bN((?:\d+[A-Za-z_]\w*?)+?)(?:I\w*E)?E\b")
"""A C++ type's name as the linker has it: ``N11onnxruntime17PrimitiveDataTypeIiEE``."""
_FOLDERS = re.compile(r"(?<![\w.:/])/(?!/)(?:[\w.+-]+/)+(?=[\w.+-])")


def plain(text: str) -> str:
    """A message in one line, without what every message of its kind has."""
    said = _RUNNING.sub(r"\1: ", _NOISE.sub("", text))
    said = _FUNCTION.sub(r"\1 ", _FOLDERS.sub("", said))
    return " ".join(_MANGLED.sub(lambda found: _demangled(found.group(0)), said).split())


def _demangled(name: str) -> str:
    """The last identifier of a mangled nested name: ``PrimitiveDataType``."""
    rest, last = name.removeprefix("N"), name
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found.group())
        last, rest = rest[found.end() : end], rest[end:]
    return last


def in_line(text: str, width: int) -> str:
    """A text in one line of at most so many characters: its beginning, which says what failed."""
    return shortened(printable(" ".join(text.split())), max(width, 1))


def relative(folder: Path, run: Run) -> str:
    """A finding's folder as seen from the run's."""
    return (folder.relative_to(run.path) if folder.is_relative_to(run.path) else folder).as_posix()


def bug_links(pattern: Pattern) -> list[tuple[str, str | None]]:
    """The rule's bugs, each with an address where it has one."""
    from reprise.patterns.reports.sarif import bug_url

    return [(bug, bug_url(bug)) for bug in pattern.meta.get("bug", ())]
