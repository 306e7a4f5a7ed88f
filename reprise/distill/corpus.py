"""Programs that no run ever sees: what a new rule is held against (first paper, §3.4).

A corpus is a folder: ``corpus.json`` says what was asked for and with which versions, and
``tests.jsonl`` has a line for each test, in order: its number, verdict, signature and, where the
program passed or failed, the program. It is disjoint from every run by its seed: campaigns take
seeds below :data:`FIRST_SEED`, corpora the ones from there. Passing programs show what a rule
matches without reason, failing ones what it misses.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reprise import __version__
from reprise.cache import write_whole
from reprise.campaign.bench import FuzzBench, Fuzzing
from reprise.campaign.filing import Known
from reprise.campaign.judging import Judging
from reprise.campaign.open import Programs
from reprise.campaign.options import read_options
from reprise.campaign.records import StoreError
from reprise.campaign.scheduler import InProcess, LocalProcesses, Scheduler
from reprise.campaign.source import SourceRequest
from reprise.distill.alone import alone_in
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Graph
from reprise.uir.text import parse_uir, print_uir

FIRST_SEED = 2**31
"""Seeds of campaigns are below, seeds of corpora from here on."""

MANIFEST, TESTS = "corpus.json", "tests.jsonl"
_KEPT = {Verdict.OK, Verdict.CRASH, Verdict.WRONG_RESULT, Verdict.HANG}
_BATCH = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A test of a corpus. ``program`` is empty for verdicts that say nothing for or against a
    rule."""

    index: int
    verdict: Verdict
    signature: str = ""
    program: str = ""

    def line(self) -> str:
        plain = {**asdict(self), "verdict": self.verdict.value}
        return json.dumps({k: v for k, v in plain.items() if v != ""}) + "\n"

    @classmethod
    def read(cls, line: str) -> Entry:
        """Raises ValueError for what is no such line."""
        try:
            found = json.loads(line)
            entry = cls(**{**found, "verdict": Verdict(found["verdict"])})
            if not (isinstance(entry.signature, str) and isinstance(entry.program, str)):
                raise TypeError("signature and program are texts")
            return entry
        except (TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"no test of a corpus: {error}") from error


@dataclass(frozen=True, slots=True)
class CorpusRequest:
    """``tests`` unguided programs for ``target`` (as in ``--target``), number ``seed`` of the
    corpora. ``generation``: the generator's options, as they were given."""

    target: str
    tests: int
    seed: int = 0
    generation: dict[str, Any] = field(default_factory=dict)
    timeout: float = 60.0
    memory: int = 4096


@dataclass(frozen=True)
class Corpus:
    """What a folder holds. ``versions`` of the target and of Reprise."""

    path: Path
    target: str
    seed: int
    versions: dict[str, str]
    entries: tuple[Entry, ...]

    @classmethod
    def open(cls, path: Path) -> Corpus:
        """Raises StoreError for what is no corpus; a last line that was cut off is left out."""
        manifest = _manifest(path)
        entries = tuple(_entries(path))
        request = manifest["request"]
        return cls(path, request["target"], request["seed"], manifest["versions"], entries)

    @property
    def verdicts(self) -> Counter[Verdict]:
        return Counter(entry.verdict for entry in self.entries)

    def passing(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.verdict is Verdict.OK)

    def failing(self, signature: str) -> Iterator[Entry]:
        """The tests that came to a finding with this signature."""
        return (e for e in self.entries if e.verdict.is_finding and e.signature == signature)

    def graph(self, entry: Entry, signatures: Signatures) -> Graph:
        """The program of an entry. Raises RulesError if its operators are not what they were."""
        return parse_uir(entry.program, f"{self.path}/{entry.index}", signatures)


@dataclass(frozen=True)
class _Collecting:
    """Work for the scheduler: a test's number in, an entry out."""

    fuzzing: Fuzzing

    def open(self) -> _CollectingBench:
        return _CollectingBench(FuzzBench(self.fuzzing))

    def abandoned(self, item: int, /) -> Entry:
        return Entry(item, Verdict.INVALID, "reprise: process died")


class _CollectingBench:
    def __init__(self, bench: FuzzBench) -> None:
        self.bench = bench

    def run(self, batch: Sequence[int], /) -> Iterator[Entry]:
        for index in batch:
            program = self.bench.source.program(index).program
            judgement = self.bench.examine(program)[1].judgement
            text = print_uir(program.graph) if judgement.verdict in _KEPT else ""
            yield Entry(index, judgement.verdict, judgement.signature, text)

    def close(self) -> None:
        self.bench.close()


def collect(
    request: CorpusRequest,
    path: Path,
    *,
    jobs: int = 1,
    tell: Callable[[Entry], None] = lambda entry: None,
) -> Corpus:
    """Build a corpus, or complete the one that the same request began. ``tell`` hears of each test
    once it is written.

    Raises UsageError for a folder that holds something else, TargetError, OptionsError, StoreError.
    """
    target = parse_target(request.target)
    options = read_options(request.generation)
    limits = Limits(seconds=request.timeout, memory_mib=request.memory)
    process = TargetProcess(target, limits)
    stack = contextlib.ExitStack()
    try:
        versions = {**process.start(), "reprise": __version__}
        done = stack.enter_context(_prepared(path, request, versions))
        seed = FIRST_SEED + request.seed
        source = SourceRequest(
            seed=seed,
            options=options,
            target=target.name,
            version=next(iter(versions.values()), None),
            guided=False,
            environment={"provider": target.device},
            lowerings=(target.lowering,),
        )
        fuzzing = Fuzzing(
            target,
            Programs(source),
            Judging(seed),
            Known(target.name, source.version),
            limits,
            lowerable=True,
        )
        scheduler: Scheduler[int, Entry]
        if jobs == 1:
            scheduler = InProcess(_CollectingBench(FuzzBench(fuzzing, process)))
        else:
            scheduler = LocalProcesses(_Collecting(fuzzing), jobs)
    except BaseException:
        stack.close()
        process.close()
        raise
    try:
        with (path / TESTS).open("a", encoding="utf-8") as file:
            for entry in scheduler.run(_batches(done, request.tests)):
                file.write(entry.line())
                file.flush()
                tell(entry)
    except OSError as error:
        raise StoreError(f"{path / TESTS}: {error.strerror}") from error
    finally:
        scheduler.close()
        process.close()
        stack.close()
    return Corpus.open(path)


def _batches(done: int, tests: int) -> Iterator[Sequence[int]]:
    for start in range(done, tests, _BATCH):
        yield range(start, min(start + _BATCH, tests))


@contextlib.contextmanager
def _prepared(path: Path, request: CorpusRequest, versions: dict[str, str]) -> Iterator[int]:
    """The folder, ours alone; how many tests are there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    with alone_in(path):
        yield _prepare(path, request, versions)


def _prepare(path: Path, request: CorpusRequest, versions: dict[str, str]) -> int:
    """See that the folder is empty, or one of this request; how many tests are there."""
    asked = {k: v for k, v in asdict(request).items() if k not in ("tests", "timeout", "memory")}
    wanted = {"request": asked, "versions": versions}
    try:
        if not (path / MANIFEST).exists():
            if any(path.iterdir()):
                raise UsageError(f"{path}: this folder holds other files; choose another --out")
            write_whole(path / MANIFEST, (json.dumps(wanted, indent=2) + "\n").encode())
            return 0
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    if _manifest(path) != wanted:
        raise UsageError(
            f"{path}: this corpus was made by another request or with other versions (see "
            f"{MANIFEST}); choose another --out"
        )
    whole = "".join(entry.line() for entry in _entries(path))
    try:
        write_whole(path / TESTS, whole.encode())  # without a line that was cut off
    except OSError as error:
        raise StoreError(f"{path / TESTS}: {error.strerror}") from error
    return whole.count("\n")


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        request, versions = dict(found["request"]), dict(found["versions"])
        if not isinstance(request["target"], str) or not isinstance(request["seed"], int):
            raise TypeError("a target is a text, a seed a number")
        return {"request": request, "versions": versions}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(
            f"{path} is no corpus: {MANIFEST} cannot be read; `reprise corpus` makes one"
        ) from error


def _entries(path: Path) -> Iterator[Entry]:
    """The tests that are there. A last line without an end was being written: it is left out."""
    text = ""
    try:
        text = (path / TESTS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{path / TESTS}: {error.strerror}") from error
    for number, line in enumerate(text.split("\n")[:-1]):
        try:
            entry = Entry.read(line)
        except ValueError as error:
            raise StoreError(f"{path / TESTS}:{number + 1}: {error}") from error
        if entry.index != number:
            raise StoreError(f"{path / TESTS}:{number + 1}: test {entry.index} is out of order")
        yield entry


def default_folder(target: str, versions: dict[str, str], cache: Path) -> Path:
    """Where a corpus is kept that nobody asked for by name: by target and version."""
    version = next(iter(versions.values()), "unknown")
    return cache / "corpus" / f"{target}-{version}".replace(os.sep, "_")
