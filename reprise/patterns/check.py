"""``reprise check``: which known bugs can these models hit, where, and why.

Models are checked one by one (in parallel with ``jobs``); a model that cannot be read becomes an
error in its own report and never stops the others. Reports are plain values: they cross process
boundaries and are written as text, JSON or SARIF by ``reprise.patterns.reports``.
"""

from __future__ import annotations

import glob
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from reprise.data import data_path
from reprise.datalog import LimitError, Limits
from reprise.facts.errors import ModelError
from reprise.facts.hardware import devices
from reprise.lang import core
from reprise.lang.declared import Constraint, Pattern
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.lang.spelling import did_you_mean
from reprise.patterns.denials import Denials, violation_pattern
from reprise.patterns.explain import ExplainedLine, explain, reason
from reprise.patterns.limits import USUAL, told, told_to_users
from reprise.patterns.match import Finding, Match, Matcher, node_name
from reprise.patterns.models import read_model
from reprise.patterns.truth import Truth
from reprise.uir.graph import Graph, Scalar

MODEL_SUFFIXES = (".onnx", ".uir")


class UsageError(Exception):
    """The command was asked for something that makes no sense; the message says what."""


@dataclass(frozen=True, slots=True)
class Target:
    """A compiler, and the version of it that the user runs (None: any)."""

    name: str
    version: Version | None = None


@dataclass(frozen=True)
class CheckOptions:
    """What to check for. ``rules``: files and folders (empty: the shipped bugs)."""

    rules: tuple[Path, ...]
    target: Target | None = None
    environment: Mapping[str, Scalar] = field(default_factory=dict)
    explain: bool = False
    near: bool = False
    limits: Limits = USUAL


@dataclass(frozen=True, slots=True)
class MatchReport:
    """A finding, told. ``certainty``: ``yes``, ``possible``, or ``no`` for a near miss."""

    rule: str
    title: str
    certainty: str
    nodes: dict[str, str]
    values: dict[str, core.Value]
    meta: dict[str, tuple[str, ...]]
    doc: str
    reason: str
    explanation: tuple[ExplainedLine, ...]
    rule_file: str
    rule_line: int
    kind: str = "pattern"  # or constraint, deny: then a violation


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What was found in one model; ``errors`` are one-line messages, with hints."""

    path: str
    matches: tuple[MatchReport, ...] = ()
    near: tuple[MatchReport, ...] = ()
    hidden_near: int = 0
    errors: tuple[tuple[str, str | None], ...] = ()
    nodes: int = 0


def parse_target(text: str) -> Target:
    """``onnxruntime`` or ``onnxruntime==1.27.0``. Raises UsageError."""
    name, separator, version = text.partition("==")
    if any(c in name for c in "=<>~!"):
        raise UsageError(f"--target {text}: write NAME or NAME==VERSION")
    if not name or (separator and not version):
        raise UsageError(f"--target {text}: write NAME or NAME==VERSION")
    try:
        return Target(name.strip(), Version(version.strip()) if version else None)
    except (InvalidVersion, ValueError) as error:
        raise UsageError(f"--target {text}: {version!r} is not a version") from error


def parse_environment(pairs: Iterable[str]) -> dict[str, Scalar]:
    """``isa=avx512`` pairs; numbers become numbers. Raises UsageError."""
    environment: dict[str, Scalar] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UsageError(f"--env {pair}: write NAME=VALUE")
        if name in environment:
            raise UsageError(f"--env {pair}: {name} was given before")
        number = value.lstrip("-").isdigit() and len(value) < 19
        environment[name] = int(value) if number else value
    return environment


def _models_in(folder: Path) -> Iterator[Path]:
    """The models in a folder and those below it, but for hidden folders and Python environments.
    A finding's folder has its program twice: only the model counts. A folder that cannot be read
    stands for what may be in it."""
    closed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=closed.append):
        here = Path(place)
        if "pyvenv.cfg" in files and here != folder:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        twice = {"program.uir"} if {"finding.json", "model.onnx"} <= set(files) else set()
        # a link to a folder is among the folders
        yield from (here / n for n in files if Path(n).suffix in MODEL_SUFFIXES and n not in twice)
    yield from (Path(error.filename) for error in closed)


def find_models(arguments: Sequence[str]) -> list[Path]:
    """Files as they are, folders searched for models (not hidden ones inside, nor Python
    environments), globs expanded; in order, without repeats.

    Raises UsageError for a path that names nothing.
    """
    found: list[Path] = []
    for argument in arguments:
        if not argument:  # an unset variable, say: it does not mean this folder
            raise UsageError("a model's name is empty")
        path = Path(argument)
        if path.is_dir():
            inside = sorted(_models_in(path))
            if not inside and len(arguments) == 1:
                raise UsageError(f"{argument}: no .onnx or .uir file in this folder")
            found += inside or [path]
        elif os.path.lexists(path):  # a link to nowhere is that model's own error
            found.append(path)
        else:
            matches = sorted(glob.glob(argument, recursive=True))
            if not matches and len(arguments) == 1:
                raise UsageError(f"{argument}: there is no such file")
            # among others, a model that is not there is an error of its own
            found += [Path(m) for m in matches or (argument,) if not Path(m).is_dir()]
    return list(dict.fromkeys(found))


def unknown_environment(given: Iterable[str], rules: RuleSet) -> tuple[str, ...]:
    """Warnings about names that neither the rules ask for nor the library knows."""
    asked = {
        atom.terms[0].value
        for rule in rules.program.rules
        for atom in rule.body
        if isinstance(atom, core.Atom)
        and atom.relation == "env"
        and isinstance(atom.terms[0], core.Const)
    }
    if asked.issuperset(given):
        return ()
    known = sorted({*map(str, asked), *environment_names()})
    return tuple(
        f"--env {name}: no rule asks for `{name}`: "
        + (did_you_mean(name, known) or f"known are {', '.join(known)}")
        for name in given
        if name not in known
    )


def unknown_device(environment: Mapping[str, Scalar], rules: RuleSet) -> tuple[str, ...]:
    """A warning if ``env(device)`` names none of the devices that the rules describe."""
    asked = environment.get("device")
    if asked is None:
        return ()
    described = devices(rules)
    if str(asked) in described:
        return ()
    hint = did_you_mean(str(asked), described) if described else ""
    what = "these rules describe no such device" if described else "no rule describes a device"
    return (f"--env device={asked}: {what}" + (f": {hint}" if hint else ""),)


def environment_names() -> tuple[str, ...]:
    """What the library's ``environment_names`` holds."""
    from reprise.lang import ast
    from reprise.lang.parse import parse_file

    file = parse_file(data_path("rules/std/environment.rules"))
    return tuple(
        item.text
        for decl in file.decls
        if isinstance(decl, ast.SetDecl) and decl.name.text == "environment_names"
        for item in decl.items
        if isinstance(item, ast.Name)
    )


def select_patterns(rules: RuleSet, target: Target | None) -> list[Pattern]:
    """The patterns that concern ``target``, by ``target`` and ``affects``."""
    if target is None:
        return list(rules.patterns.values())
    known = {t for p in rules.patterns.values() for t in p.meta.get("target", ())}
    if not any(_covers(target.name, name) for name in known):
        raise UsageError(
            f"--target {target.name}: no rule is about it (they are about "
            f"{', '.join(sorted(known))})"
        )
    return [p for p in rules.patterns.values() if concerns(p, target)]


def _covers(asked: str, name: str) -> bool:
    """Whether a target is the one asked for, or a back end of it: ``tvm`` covers ``tvm_cuda``."""
    return name == asked or name.startswith(f"{asked}_")


def concerns(pattern: Pattern, target: Target) -> bool:
    """Whether the pattern is about the target, in the version given."""
    if not any(_covers(target.name, name) for name in pattern.meta.get("target", ())):
        return False
    affects = pattern.get("affects")
    if target.version is None or affects is None:
        return True
    try:
        return SpecifierSet(affects).contains(target.version, prereleases=True)
    except InvalidSpecifier:
        return True


def _is_asked_for(constraint: Constraint, target: Target | None) -> bool:
    """Whether the constraint is about the target, or about all."""
    about = constraint.meta.get("target", ())
    return target is None or not about or any(_covers(target.name, name) for name in about)


_FEWER = "raise {option}, or choose fewer rules with --rules or --target"


class Checker:
    """Rules loaded and compiled once, ready for models."""

    def __init__(self, options: CheckOptions, rules: RuleSet | None = None) -> None:
        self.options = options
        self.rules = load_rules(options.rules) if rules is None else rules
        own = self.rules.own
        self.constraints = [
            constraint
            for constraint in self.rules.constraints.values()
            if constraint.span.file in own and _is_asked_for(constraint, options.target)
        ]
        self.denies = [d for ds in self.rules.denies.values() for d in ds if d.span.file in own]
        if not (self.rules.patterns or self.constraints or self.denies):
            raise UsageError("there is no pattern among these rules: nothing to look for")
        self.patterns = select_patterns(self.rules, options.target) if self.rules.patterns else []
        self.warnings = (
            *unknown_environment(options.environment, self.rules),
            *unknown_device(options.environment, self.rules),
            *self._unknown_version(),
        )
        self._violations = [violation_pattern(constraint) for constraint in self.constraints]
        rules, limits = self.rules, options.limits
        with told_to_users(limits, rules.program.relations, _FEWER):
            self._matcher = Matcher(rules, self.patterns, limits)
            self._guard = Matcher(rules, self._violations, limits) if self._violations else None
            self._denials = Denials(rules, self.denies, limits) if self.denies else None

    def _unknown_version(self) -> Iterator[str]:
        """A warning if the rules about the target are all of other versions: the version may be
        mistyped, or newer than the rules."""
        target = self.options.target
        if target is None or target.version is None or self.patterns or not self.rules.patterns:
            return
        named = [
            Version(one.version)
            for pattern in select_patterns(self.rules, Target(target.name))
            for one in SpecifierSet(pattern.get("affects") or "")
            if not one.version.endswith(".*")
        ]
        newest = f", the newest that they name is {max(named)}" if named else ""
        yield f"--target {target.name}=={target.version}: no rule is about this version{newest}"

    @property
    def rule_count(self) -> int:
        """How many patterns, constraints and deny rules a model is checked against."""
        return len(self.patterns) + len(self.constraints) + len(self.denies)

    def check(self, path: Path) -> ModelReport:
        """Check one model. Problems with the model are in the report, never raised."""
        try:
            graph = read_model(path, self.rules)
            found = self._matcher.run(graph, self.options.environment, near=self.options.near)
            violations = self._broken(graph)
        except ModelError as error:
            return ModelReport(str(path), errors=((error.message, error.hint),))
        except LimitError as error:
            return ModelReport(str(path), errors=(self._too_much(error),))
        return ModelReport(
            str(path),
            (*(self._tell(f, found) for f in found.findings), *violations),
            tuple(self._tell(f, found) for f in found.near),
            found.hidden_near,
            (),
            len(graph.nodes),
        )

    def _too_much(self, error: LimitError) -> tuple[str, str]:
        """What a limit that was met means, and what to do."""
        message, option = told(error, self.options.limits, self.rules.program.relations)
        return message, _FEWER.format(option=option)

    def _broken(self, graph: Graph) -> list[MatchReport]:
        """Violations of constraints and of deny rules."""
        reports = []
        environment = self.options.environment
        if self._guard is not None:
            found = self._guard.run(graph, environment)
            told = (self._tell(f, found, "constraint", self._guard.program) for f in found.findings)
            reports += list(told)
        if self._denials is not None:
            rows, match = self._denials.run(graph, environment)
            for row in rows:
                report = self._tell(row.finding, match, "deny", self._denials.program)
                reports.append(replace(report, title=row.message, values=row.values))
        return reports

    def _tell(
        self,
        finding: Finding,
        found: Match,
        kind: str = "pattern",
        program: core.Program | None = None,
    ) -> MatchReport:
        pattern = finding.pattern
        by_id = {n.id: n for n in found.graph.nodes}
        program, sources = program or self._matcher.program, self.rules.sources
        lines = explain(finding, found, program, sources) if self.options.explain else []
        sure = finding.certainty is Truth.YES
        return MatchReport(
            pattern.name,
            pattern.title,
            finding.certainty.value,
            {name: node_name(found.graph, by_id[i]) for name, i in finding.nodes.items()},
            finding.values,
            pattern.meta,
            pattern.doc,
            "" if sure else reason(finding, found, program, sources),
            tuple(lines),
            pattern.span.file,
            pattern.span.line,
            kind,
        )


def check_models(
    paths: Sequence[Path],
    options: CheckOptions,
    *,
    jobs: int = 1,
    checker: Checker | None = None,
) -> Iterator[ModelReport]:
    """Reports in the order of ``paths``, as they become ready."""
    if jobs <= 1 or len(paths) <= 1:
        here = checker or Checker(options)
        for path in paths:
            yield here.check(path)
        return
    done = 0
    try:
        for report in _in_pool(paths, options, min(jobs, len(paths))):
            yield report
            done += 1
        return
    except BrokenProcessPool:  # one of the models took a worker with it: find out which
        pass
    for path in paths[done:]:
        try:
            yield from _in_pool([path], options, 1)
        except BrokenProcessPool:
            message = "the process that checked it was killed"
            yield ModelReport(str(path), errors=((message, "it may need more memory"),))


def _in_pool(paths: Sequence[Path], options: CheckOptions, jobs: int) -> Iterator[ModelReport]:
    """Reports from worker processes, which never outlive this call."""
    pool = ProcessPoolExecutor(jobs, initializer=_start_worker, initargs=(options,))
    try:
        yield from pool.map(_check_in_worker, paths)
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.kill()
        raise


_worker: Checker | None = None


def _start_worker(options: CheckOptions) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _worker = Checker(options)


def _check_in_worker(path: Path) -> ModelReport:
    assert _worker is not None
    return _worker.check(path)
