"""From what was asked for to a campaign that can run: a new one, or one that goes on.

A run goes on only if its programs would be the same and what they are tested with is: the rules,
Reprise and the compiler must be those that it began with.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from reprise import __version__
from reprise.campaign.bench import FuzzBench, Fuzzing
from reprise.campaign.filing import Known, rules_hash
from reprise.campaign.judging import Judging
from reprise.campaign.learned import LearnedRules, Learner
from reprise.campaign.options import read_options
from reprise.campaign.records import FIRST_KEPT, RunInfo, StoreError
from reprise.campaign.run import Budget, Campaign, Watch
from reprise.campaign.source import SourceRequest, known_bugs, open_source
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter, utc_now
from reprise.data import data_path
from reprise.lang.display import counted
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.patterns.check import UsageError
from reprise.synth.generator import Generator
from reprise.targets.discover import Target, parse_target
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Scalar


@dataclass(frozen=True)
class Request:
    """What ``reprise fuzz`` was asked for. ``generation``: the generator's options, as they were
    given. ``rules`` say what findings are filed under, and what to steer around unless ``steer``
    names other files for that. ``learn``: make rules of what is found. ``timeout`` and ``memory``
    (MiB) limit the target."""

    target: str
    seed: int = 0
    rules: tuple[Path, ...] = ()
    steer: tuple[Path, ...] = ()
    guided: bool = True
    learn: bool = False
    generation: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    keep: int = FIRST_KEPT
    timeout: float = 60.0
    memory: int = 4096

    def stored(self) -> dict[str, object]:
        """As the store keeps it, besides what has a column of its own."""
        return {
            "rules": [str(path) for path in self.rules],
            "steer": [str(path) for path in self.steer],
            "learn": self.learn,
            "generation": dict(self.generation),
            "budget": asdict(self.budget),
            "keep": self.keep,
            "timeout": self.timeout,
            "memory": self.memory,
        }


@dataclass(frozen=True)
class Programs:
    """Makes the generator, in any process."""

    request: SourceRequest

    def __call__(self) -> Generator:
        return open_source(self.request)


MakeLearner = Callable[[Request], Learner]
"""What makes the learner of a run that learns."""

Describe = Callable[
    [Request, Target, Limits, TargetProcess, dict[str, str]], tuple[Fuzzing, RunInfo]
]
"""What sets a run up whose target has started, as a process and with these versions: raises what
:func:`begin` does."""


def begin(
    request: Request,
    path: Path | None,
    watch: Watch,
    jobs: int,
    learner: MakeLearner | None = None,
    cluster: str | None = None,
    kinds: Mapping[str, Describe] = MappingProxyType({}),
) -> Campaign:
    """A new run, in ``path`` or a new folder of the working directory. ``cluster``: the address of
    a Dask scheduler whose workers do the work, instead of ``jobs`` processes. ``kinds``: how runs
    are set up for targets with these lowerings; for others, their programs are graphs.

    Raises TargetError, RulesError, OptionsError, UsageError or StoreError for what makes it
    impossible, before any folder is made.
    """
    folder = path or _free(parse_target(request.target).name)
    bench, info = _prepare(request, folder, kinds)
    with _closing_on_error(bench):
        writer = RunWriter.create(folder, info, jobs)
    return _campaign(writer, bench, request, watch, jobs, learner, cluster)


def go_on(
    path: Path,
    budget: Budget,
    watch: Watch,
    jobs: int,
    learner: MakeLearner | None = None,
    cluster: str | None = None,
    kinds: Mapping[str, Describe] = MappingProxyType({}),
) -> Campaign:
    """The run in ``path``, from where it stands; ``budget`` in place of the one that it began
    with, if it says anything. Raises as :func:`begin`."""
    run = Run.open(path)
    request = _request(run.info)
    if budget != Budget():
        request = replace(request, budget=budget)
    tests, seconds = request.budget.tests, request.budget.seconds
    if (tests is not None and run.tests >= tests) or (
        seconds is not None and run.seconds >= seconds
    ):
        raise UsageError(
            f"{path}: this run is complete ({counted(run.tests, 'test')}, {run.seconds:.0f} s); "
            "to go on, give a larger --tests or --time (both count the whole run)"
        )
    bench, info = _prepare(request, path, kinds)
    with _closing_on_error(bench):
        _check_same(path, run.info, info)
        for rule in LearnedRules.of(path).all():
            rule.load()  # a process that makes programs could not say what is wrong with it
        writer = RunWriter.resume(path, jobs)
    return _campaign(writer, bench, request, watch, jobs, learner, cluster)


def _campaign(
    writer: RunWriter,
    bench: FuzzBench,
    request: Request,
    watch: Watch,
    jobs: int,
    learner: MakeLearner | None,
    cluster: str | None,
) -> Campaign:
    scheduler = None
    if cluster is not None:
        from reprise.campaign.cluster import DaskCluster

        scheduler = DaskCluster(bench.work, cluster)
    return Campaign(
        writer,
        bench.work,
        request.budget,
        watch,
        jobs=jobs,
        keep=request.keep,
        bench=bench,
        scheduler=scheduler,
        learner=learner(request) if learner is not None and request.learn else None,
    )


@contextlib.contextmanager
def _closing_on_error(bench: FuzzBench) -> Iterator[None]:
    try:
        yield
    except BaseException:
        bench.close()
        raise


def _request(info: RunInfo) -> Request:
    options: dict[str, Any] = info.options
    return Request(
        target=info.target,
        seed=info.seed,
        rules=tuple(Path(path) for path in options["rules"]),
        steer=tuple(Path(path) for path in options.get("steer", ())),
        guided=info.guided,
        learn=options.get("learn", False),
        generation=options["generation"],
        budget=Budget(**options["budget"]),
        keep=options["keep"],
        timeout=options["timeout"],
        memory=options["memory"],
    )


def _prepare(
    request: Request, folder: Path, kinds: Mapping[str, Describe]
) -> tuple[FuzzBench, RunInfo]:
    """A bench that is set up, and what the store says of it."""
    target = parse_target(request.target)
    describe = kinds.get(target.lowering, _describe_graphs)
    limits = Limits(seconds=request.timeout, memory_mib=request.memory)
    process = TargetProcess(target, limits)
    try:
        work, info = describe(request, target, limits, process, process.start())
        work = replace(work, learned=LearnedRules.of(folder))
        return FuzzBench(work, process), info
    except BaseException:
        process.close()
        raise


def _describe_graphs(
    request: Request,
    target: Target,
    limits: Limits,
    process: TargetProcess,
    versions: dict[str, str],
) -> tuple[Fuzzing, RunInfo]:
    options = read_options(request.generation)
    version = next(iter(versions.values()), None)
    environment: dict[str, Scalar] = {"provider": target.device}
    rules = load_rules(request.rules or (data_path("rules/bugs"),))
    steering = [load_rules(request.steer)] if request.steer else []
    patterns = known_bugs(rules, target.name, version, target.lowering)
    source = SourceRequest(
        seed=request.seed,
        options=options,
        target=target.name,
        version=version,
        rules=request.steer or request.rules,
        guided=request.guided,
        environment=environment,
        lowerings=(target.lowering,),
    )
    work = Fuzzing(
        target,
        Programs(source),
        Judging(request.seed),
        Known(target.name, version, request.rules, tuple(environment.items()), target.lowering),
        limits,
        lowerable=True,
    )
    names = [pattern.name for pattern in patterns]
    return work, run_info(request, target, versions, names, (rules, *steering))


def run_info(
    request: Request,
    target: Target,
    versions: dict[str, str],
    names: Iterable[str],
    rules: Iterable[RuleSet],
) -> RunInfo:
    """What the store says of a run: ``names`` of the rules of ``rules`` that are about its
    target."""
    return RunInfo(
        seed=request.seed,
        target=spelled(request.target, target),
        options=request.stored(),
        rules=tuple(sorted(names)),
        rules_hash=rules_hash(rules, target.name),
        guided=request.guided,
        versions={**versions, **own_versions()},
        started=utc_now(),
    )


def spelled(given: str, target: Target) -> str:
    """The target as it was given, but with paths that mean the same everywhere."""
    name, _, python = given.partition("@")
    if target.name != name.partition(":")[0]:  # a file
        name = str(target.file) + (f":{target.device}" if ":" in name else "")
    return f"{name}@{target.python}" if python else name


def own_versions() -> dict[str, str]:
    """Of all that decides what a run does besides the compiler."""
    return {
        "reprise": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _check_same(path: Path, before: RunInfo, now: RunInfo) -> None:
    """Raises StoreError if what was tested with what has changed."""
    if before.rules_hash != now.rules_hash:
        raise StoreError(
            f"{path}: the rules have changed since the run began, and with them its programs; "
            "begin a new run"
        )
    changed = [
        f"{name} {was} is now {now.versions.get(name, 'missing')}"
        for name, was in before.versions.items()
        if now.versions.get(name) != was
    ]
    if changed:
        raise StoreError(
            f"{path}: a run goes on with what it began with, but {', '.join(changed)}; begin a new "
            "run"
        )


def _free(target: str) -> Path:
    """A folder of the working directory that does not exist yet."""
    number = 1
    while Path(f"fuzz-{target}-{number}").exists():
        number += 1
    return Path(f"fuzz-{target}-{number}")
