"""Reading a run: ``Run.open(folder)`` gives everything that reports and comparisons need.

Nothing is ever written: a run can be read from a read-only folder, while a campaign writes to it,
and after one was killed in the middle of a commit. What is read is one consistent state.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reprise.campaign.metrics import Redundancy, redundancy
from reprise.campaign.records import (
    SCHEMA_VERSION,
    Confirmation,
    Defect,
    End,
    Finding,
    RunInfo,
    Session,
    Signature,
    Slice,
    StoreError,
    Suppression,
    cause,
)
from reprise.oracle.verdict import Severity, Verdict

STORE, FINDINGS = "store.sqlite", "findings"
"""What a run's folder holds, and the writer's lock (``writer.py``)."""

APPLICATION_ID = 0x52505253
"""Marks the SQLite file as ours ("RPRS")."""
XCHECK_ID = 0x52505843
"""Marks the store of a run of ``reprise xcheck`` ("RPXC")."""

SCHEMA = """
CREATE TABLE run (
    seed INTEGER NOT NULL, target TEXT NOT NULL, options TEXT NOT NULL, rules TEXT NOT NULL,
    rules_hash TEXT NOT NULL, guided INTEGER NOT NULL, versions TEXT NOT NULL,
    started TEXT NOT NULL
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, jobs INTEGER NOT NULL,
    first_test INTEGER NOT NULL, next_test INTEGER NOT NULL, seconds REAL NOT NULL,
    ended TEXT NOT NULL
);
CREATE TABLE signatures (
    id INTEGER PRIMARY KEY, verdict TEXT NOT NULL, signature TEXT NOT NULL,
    rule TEXT NOT NULL,               -- '' for none
    title TEXT NOT NULL, severity TEXT NOT NULL, count INTEGER NOT NULL, kept INTEGER NOT NULL,
    first_test INTEGER NOT NULL, first_at INTEGER NOT NULL,
    UNIQUE (verdict, signature, rule)
);
CREATE TABLE tests (
    test INTEGER PRIMARY KEY, verdict TEXT NOT NULL, signature INTEGER REFERENCES signatures,
    at INTEGER NOT NULL,              -- milliseconds of fuzzing since the run began
    cost INTEGER NOT NULL             -- microseconds that the target took
);
CREATE TABLE findings (
    test INTEGER PRIMARY KEY REFERENCES tests, folder TEXT, runs INTEGER, agreed INTEGER
);
CREATE TABLE suppressed (
    rule TEXT PRIMARY KEY, rejected INTEGER NOT NULL, completed INTEGER NOT NULL
) WITHOUT ROWID;
"""


def finding_id(index: int) -> str:
    """The name of a test's finding, and of its folder."""
    return f"{index:08d}"


@dataclass(frozen=True)
class Run:
    """A run as it stood when it was opened.

    ``signatures`` are those of every verdict, ``unsupported`` included, in the order of their first
    test; ``defects`` those that are findings, grouped; ``findings`` the tests behind them and
    behind what we have to look into ourselves (``invalid``, ``reference_disagreement``), in
    order; ``suppressed`` by rule.
    """

    path: Path
    info: RunInfo
    sessions: tuple[Session, ...]
    tests: int
    verdicts: dict[Verdict, int]
    """Of every verdict, zeros too."""
    target_seconds: float
    """Time that the target took, all tests together."""
    signatures: tuple[Signature, ...]
    defects: tuple[Defect, ...]
    findings: tuple[Finding, ...]
    suppressed: dict[str, Suppression]

    @classmethod
    def open(cls, path: Path) -> Run:
        """Read a run. Raises StoreError if there is none, or it cannot be read."""
        with reading(path) as db:
            return _read(db, path)

    @property
    def seconds(self) -> float:
        """Time spent fuzzing, in all sessions."""
        return sum(session.seconds for session in self.sessions)

    @property
    def redundancy(self) -> Redundancy:
        """B, U and the rest, over all findings."""
        return redundancy(defect.count for defect in self.defects)

    def redundancy_of(self, verdict: Verdict) -> Redundancy:
        """The same over the findings of one verdict; the paper counts crashes only."""
        return redundancy(
            sum(s.count for s in defect.signatures if s.verdict is verdict)
            for defect in self.defects
        )

    def findings_of(self, defect: Defect) -> tuple[Finding, ...]:
        """The defect's findings, in order."""
        wanted = {(s.verdict, s.signature, s.rule) for s in defect.signatures}
        return tuple(f for f in self.findings if (f.verdict, f.signature, f.rule) in wanted)

    def timeline(self, slices: int = 60) -> tuple[Slice, ...]:
        """Verdicts and new defects over the time of the run, in slices of equal length.

        Reads the store again; tests that were added since the run was opened do not count.
        """
        if slices < 1:
            raise ValueError("a timeline has at least one slice")
        width = max(1, -(-round(self.seconds * 1000 + 1) // slices))
        counts: list[dict[Verdict, int]] = [{} for _ in range(slices)]
        with reading(self.path) as db:
            for number, verdict, count in db.execute(
                "SELECT min(at / ?, ?), verdict, count(*) FROM tests WHERE test < ?"
                " GROUP BY 1, 2 ORDER BY 1, 2",
                (width, slices - 1, self.tests),
            ):
                counts[number][Verdict(verdict)] = count
        first: list[list[str]] = [[] for _ in range(slices)]
        for defect in self.defects:
            first[min(round(defect.first_at * 1000) // width, slices - 1)].append(defect.id)
        return tuple(
            Slice(n * width / 1000, (n + 1) * width / 1000, counts[n], tuple(first[n]))
            for n in range(slices)
        )


def check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Raises StoreError unless the store is one of ours that this version can read."""
    found = db.execute("PRAGMA application_id").fetchone()[0]
    if found == XCHECK_ID:
        raise StoreError(
            f"{path}: a run of `reprise xcheck`, not of `reprise fuzz`: "
            "`reprise xcheck --resume` and `reprise xcheck classes` read it"
        )
    if found != APPLICATION_ID:
        raise StoreError(f"{path / STORE}: this is not the store of a run")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{path / STORE}: written by another version of Reprise (tables of version {version}, "
            f"not {SCHEMA_VERSION})"
        )


def read_info(db: sqlite3.Connection, path: Path) -> RunInfo:
    """What was asked for. Raises StoreError."""
    check_schema(db, path)
    row = db.execute(
        "SELECT seed, target, options, rules, rules_hash, guided, versions, started FROM run"
    ).fetchone()
    if row is None:
        raise StoreError(f"{path / STORE}: there is no run in it")
    seed, target, options, rules, rules_hash, guided, versions, started = row
    return RunInfo(
        seed,
        target,
        json.loads(options),
        tuple(json.loads(rules)),
        rules_hash,
        bool(guided),
        json.loads(versions),
        started,
    )


def _read(db: sqlite3.Connection, path: Path) -> Run:
    info = read_info(db, path)
    counts = dict(db.execute("SELECT verdict, count(*) FROM tests GROUP BY verdict"))
    tests, cost = db.execute("SELECT count(*), coalesce(sum(cost), 0) FROM tests").fetchone()
    signatures = tuple(
        Signature(
            id_, Verdict(v), text, rule or None, title, count, kept, first, at / 1000, Severity(how)
        )
        for id_, v, text, rule, title, how, count, kept, first, at in db.execute(
            "SELECT id, verdict, signature, rule, title, severity, count, kept, first_test,"
            " first_at FROM signatures ORDER BY id"
        )
    )
    return Run(
        path=path,
        info=info,
        sessions=tuple(
            Session(id_, started, jobs, first, after, seconds, End(end))
            for id_, started, jobs, first, after, seconds, end in db.execute(
                "SELECT id, started, jobs, first_test, next_test, seconds, ended"
                " FROM sessions ORDER BY id"
            )
        ),
        tests=tests,
        verdicts={v: counts.get(v.value, 0) for v in Verdict},
        target_seconds=cost / 1e6,
        signatures=signatures,
        defects=_defects(signatures),
        findings=tuple(_findings(db, path, {s.id: s for s in signatures})),
        suppressed={
            rule: Suppression(rejected, completed)
            for rule, rejected, completed in db.execute(
                "SELECT rule, rejected, completed FROM suppressed ORDER BY rule"
            )
        },
    )


def _findings(
    db: sqlite3.Connection, path: Path, signatures: dict[int, Signature]
) -> Iterator[Finding]:
    for test, number, at, folder, runs, agreed in db.execute(
        "SELECT test, signature, at, folder, runs, agreed"
        " FROM findings JOIN tests USING (test) ORDER BY test"
    ):
        signature = signatures[number]
        yield Finding(
            id=finding_id(test),
            index=test,
            verdict=signature.verdict,
            signature=signature.signature,
            rule=signature.rule,
            at=at / 1000,
            folder=None if folder is None else path / FINDINGS / folder,
            confirmation=None if runs is None else Confirmation(runs, agreed),
        )


def _defects(signatures: tuple[Signature, ...]) -> tuple[Defect, ...]:
    """Findings' signatures by cause, in the order of the first test of each."""
    groups: dict[tuple[bool, str], list[Signature]] = {}
    for signature in signatures:
        if signature.verdict.is_finding:
            groups.setdefault(cause(signature.rule, signature.signature), []).append(signature)
    return tuple(
        Defect(f"D{number}", group[0].rule, tuple(group))
        for number, group in enumerate(groups.values(), 1)
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One consistent state of the store, for reading. Raises StoreError."""
    store = path / STORE
    if not store.is_file():
        raise StoreError(f"{path}: there is no run in this folder")
    with contextlib.ExitStack() as stack:
        try:
            db = stack.enter_context(contextlib.closing(_open(store)))
            try:
                db.execute("BEGIN")
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError as error:
                # A commit was cut short and its journal must be played back, which a read-only
                # folder does not allow: do it on a copy.
                if not getattr(error, "sqlite_errorname", "").startswith(
                    ("SQLITE_READONLY", "SQLITE_CANTOPEN")
                ):
                    raise
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-"))
                for part in (store, store.with_name(f"{STORE}-journal")):
                    if part.is_file():
                        shutil.copyfile(part, Path(folder, part.name))
                copy = sqlite3.connect(Path(folder, STORE), isolation_level=None)
                db = stack.enter_context(contextlib.closing(copy))
                db.execute("BEGIN")
            yield db
        except sqlite3.Error as error:
            raise StoreError(f"{store}: {error}") from error
        except OSError as error:
            raise StoreError(f"{error.filename or store}: {error.strerror or error}") from error


def _open(store: Path) -> sqlite3.Connection:
    uri = f"{store.resolve().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
