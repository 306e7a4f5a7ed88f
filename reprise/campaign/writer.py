"""Writing a run: a folder with an SQLite store, findings beside it, one writer at a time.

    RUN/lock               held (``flock``) by the campaign that writes; says who it is
    RUN/store.sqlite       rows: see ``store.SCHEMA``
    RUN/findings/00000017/ what a triager needs of test 17 (``findings.py``)

Invariants, whatever ends the process and whenever:

* The rows say that tests 0 to n-1 were done, for some n, each once, together with everything that
  follows from them (counts, findings, suppression): one transaction holds them all.
* A finding's folder is complete and in place before the transaction that names it. A folder that
  no row names is what a killed campaign left behind; it is removed when the run is resumed, and
  its test is done again.

The store uses a rollback journal, not a write-ahead log: a log needs shared memory (no network
file systems) and cannot be read from a read-only folder. Batches are a second long, so that
syncing costs nothing. Durations come from a clock that does not jump; wall-clock times are for
people only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from reprise.campaign.records import (
    FIRST_KEPT,
    SCHEMA_VERSION,
    Confirmation,
    End,
    Record,
    RunInfo,
    StoreError,
    cause,
)
from reprise.campaign.store import (
    APPLICATION_ID,
    FINDINGS,
    SCHEMA,
    STORE,
    check_schema,
    finding_id,
    read_info,
)
from reprise.oracle.verdict import Verdict

LOCK = "lock"

KEPT_VERDICTS = frozenset(v for v in Verdict if v.is_finding) | {
    Verdict.INVALID,
    Verdict.REFERENCE_DISAGREEMENT,
}
"""Tests that keep a row among the findings, and the first of a signature a folder: defects of the
target, and what we have to look into ourselves."""

_TITLE = 1000
"""Characters of a title that are kept."""
_FINDING_FOLDER = re.compile(r"(\.new-)?\d{8,}")


def utc_now() -> str:
    """The time, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def keeps_folder(number: int, first: int) -> bool:
    """Whether a signature's test keeps a folder, counted from 1: the first few do, then the 10th,
    the 100th and so on, so that a flood leaves examples without filling the disk."""
    if number <= first:
        return True
    power = 10
    while power < number:
        power *= 10
    return number == power


@dataclass(slots=True)
class _SignatureRow:
    """A row of ``signatures`` as it will be after the next commit."""

    id: int
    title: str
    severity: str
    count: int
    kept: int
    first_test: int
    first_at: int


_Key = tuple[str, str, str]


class RunWriter:
    """A run that is being written. ``add`` tests in order, without gaps; ``commit`` at leisure.

    Everything since the last commit is lost if the process is killed, and done again after
    ``resume``. Every method that writes raises StoreError if it cannot; the store then stands as
    the last commit left it.
    """

    def __init__(self, path: Path, lock: IO[str], database: sqlite3.Connection) -> None:
        self.path = path
        self._lock = lock
        self._database = database
        self._began = time.monotonic()
        self._signatures: dict[_Key, _SignatureRow] = {}
        self._dirty: set[_Key] = set()
        self._tests: list[tuple[int, str, int | None, int, int]] = []
        self._findings: list[tuple[int, str | None, int | None, int | None]] = []
        self._suppressed: dict[str, list[int]] = {}
        self._session = 0
        self._before = 0.0
        self.info: RunInfo
        self.next = 0
        """The number of tests added so far, which is the index of the next."""
        self.committed = 0
        """The number of tests that a killed campaign would find again."""

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, info: RunInfo, jobs: int = 1) -> RunWriter:
        """Begin a run in a new folder, or an empty one. Raises StoreError."""
        with _plainly(path):
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path}: this is a file; a run needs a folder of its own")
            foreign = _foreign(path)
            if foreign is not None:
                raise StoreError(
                    f"{path}: this folder holds other things ({foreign}); a run needs its own"
                )
            path.mkdir(parents=True, exist_ok=True)
            (path / FINDINGS).mkdir(exist_ok=True)
            lock = _take_lock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.close)
            with _plainly(path):
                database = _connect(path / STORE)
                undo.callback(database.close)
                if _has_run(database, path):
                    raise StoreError(
                        f"{path}: this folder holds a run already; to go on with it: "
                        f"reprise fuzz --resume {path}"
                    )
            writer = cls(path, lock, database)
            writer.info = info
            with writer._transaction():
                for statement in SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                database.execute(
                    "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        info.seed,
                        info.target,
                        json.dumps(info.options, sort_keys=True),
                        json.dumps(info.rules),
                        info.rules_hash,
                        int(info.guided),
                        json.dumps(info.versions, sort_keys=True),
                        info.started,
                    ),
                )
                writer._begin_session(jobs)
            undo.pop_all()
        return writer

    @classmethod
    def resume(cls, path: Path, jobs: int = 1) -> RunWriter:
        """Go on with a run, from the first test that was not committed. Raises StoreError."""
        with _plainly(path):
            if not (path / STORE).is_file():
                raise StoreError(f"{path}: there is no run in this folder")
            lock = _take_lock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.close)
            with _plainly(path):
                database = _connect(path / STORE)
                undo.callback(database.close)
                if not _has_run(database, path):
                    raise StoreError(
                        f"{path}: the run in this folder ended before it began; start it again "
                        f"with --out {path}"
                    )

                writer = cls(path, lock, database)
                writer.info = read_info(database, path)
                writer._read_state()
                writer._clean()
            with writer._transaction():
                writer._begin_session(jobs)
            undo.pop_all()
        return writer

    def _read_state(self) -> None:
        db = self._database
        (self.next,) = db.execute("SELECT coalesce(max(test) + 1, 0) FROM tests").fetchone()
        self.committed = self.next
        (self._before,) = db.execute("SELECT coalesce(sum(seconds), 0.0) FROM sessions").fetchone()
        for verdict, signature, rule, *row in db.execute(
            "SELECT verdict, signature, rule, id, title, severity, count, kept, first_test,"
            " first_at FROM signatures"
        ):
            self._signatures[verdict, signature, rule] = _SignatureRow(*row)

    def _begin_session(self, jobs: int) -> None:
        cursor = self._database.execute(
            "INSERT INTO sessions (started, jobs, first_test, next_test, seconds, ended)"
            " VALUES (?, ?, ?, ?, 0.0, ?)",
            (utc_now(), jobs, self.next, self.next, End.RUNNING.value),
        )
        self._session = cursor.lastrowid or 0
        self._began = time.monotonic()

    def _clean(self) -> None:
        """Remove the folders that a killed campaign wrote and did not commit."""
        named = {
            folder
            for (folder,) in self._database.execute(
                "SELECT folder FROM findings WHERE folder IS NOT NULL"
            )
        }
        (self.path / FINDINGS).mkdir(exist_ok=True)
        for folder in (self.path / FINDINGS).iterdir():
            if _FINDING_FOLDER.fullmatch(folder.name) and folder.name not in named:
                shutil.rmtree(folder)

    # --- adding ----------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Time spent fuzzing in all of the run's sessions."""
        return self._before + time.monotonic() - self._began

    def defects(self) -> set[tuple[bool, str]]:
        """The causes of the defects that the run has met."""
        return {
            cause(rule or None, signature)
            for verdict, signature, rule in self._signatures
            if Verdict(verdict).is_finding
        }

    def verdicts(self) -> Counter[Verdict]:
        """How many committed tests came to each verdict."""
        with _plainly(self.path):
            rows = self._database.execute("SELECT verdict, count(*) FROM tests GROUP BY verdict")
            return Counter({Verdict(verdict): count for verdict, count in rows})

    def rejected(self) -> Counter[str]:
        """How many candidates each rule has kept away, in committed tests."""
        with _plainly(self.path):
            rows = self._database.execute(
                "SELECT rule, rejected FROM suppressed WHERE rejected > 0"
            )
            return Counter(dict(rows))

    def is_new(self, record: Record) -> bool:
        """Whether the run has not met this signature before."""
        return bool(record.signature) and _key(record) not in self._signatures

    def wants_folder(self, record: Record, first: int = FIRST_KEPT) -> bool:
        """Whether the next test to add should keep a folder; asked before ``add``."""
        if record.verdict not in KEPT_VERDICTS:
            return False
        row = self._signatures.get(_key(record))
        return keeps_folder((row.count if row else 0) + 1, first)

    def add(
        self,
        record: Record,
        files: Mapping[str, bytes] | None = None,
        confirmation: Confirmation | None = None,
    ) -> None:
        """Add the next test; with ``files``, its finding's folder (in place at once, named by no
        row before the next commit). Raises StoreError; the test is then not added."""
        if record.index != self.next:
            raise ValueError(f"test {record.index} where {self.next} is next")
        folder = None
        if files is not None:
            folder = finding_id(record.index)
            with _plainly(self.path):
                _write_folder(self.path / FINDINGS, folder, files)
        at = round(self.seconds * 1000)
        signature = None
        if record.signature or record.verdict in KEPT_VERDICTS:
            signature = self._count(record, at, folder is not None)
        cost = round(record.seconds * 1e6)
        self._tests.append((record.index, record.verdict.value, signature, at, cost))
        if record.verdict in KEPT_VERDICTS:
            runs, agreed = (
                (confirmation.runs, confirmation.agreed) if confirmation else (None, None)
            )
            self._findings.append((record.index, folder, runs, agreed))
        for rule, count in record.rejected.items():
            self._suppressed.setdefault(rule, [0, 0])[0] += count
        for rule in record.completed:
            self._suppressed.setdefault(rule, [0, 0])[1] += 1
        self.next += 1

    def _count(self, record: Record, at: int, kept: bool) -> int:
        key = _key(record)
        row = self._signatures.get(key)
        if row is None:
            how = record.severity.value
            number = len(self._signatures) + 1
            title = _text(record.title)[:_TITLE]
            row = _SignatureRow(number, title, how, 0, 0, record.index, at)
            self._signatures[key] = row
        row.count += 1
        row.kept += kept
        self._dirty.add(key)
        return row.id

    def commit(self, end: End = End.RUNNING) -> None:
        """Make everything added so far lasting. Raises StoreError."""
        with self._transaction():
            db = self._database
            db.executemany(
                "INSERT INTO signatures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET count = excluded.count, kept = excluded.kept",
                [self._signature_row(key) for key in sorted(self._dirty, key=self._id_of)],
            )
            db.executemany("INSERT INTO tests VALUES (?, ?, ?, ?, ?)", self._tests)
            db.executemany("INSERT INTO findings VALUES (?, ?, ?, ?)", self._findings)
            db.executemany(
                "INSERT INTO suppressed VALUES (?, ?, ?) ON CONFLICT (rule) DO UPDATE SET"
                " rejected = rejected + excluded.rejected,"
                " completed = completed + excluded.completed",
                [(rule, *counts) for rule, counts in sorted(self._suppressed.items())],
            )
            db.execute(
                "UPDATE sessions SET next_test = ?, seconds = ?, ended = ? WHERE id = ?",
                (self.next, self.seconds - self._before, end.value, self._session),
            )
        self._dirty.clear()
        self._tests.clear()
        self._findings.clear()
        self._suppressed.clear()
        self.committed = self.next

    def _id_of(self, key: _Key) -> int:
        return self._signatures[key].id

    def _signature_row(self, key: _Key) -> tuple[object, ...]:
        row = self._signatures[key]
        counts = (row.title, row.severity, row.count, row.kept, row.first_test, row.first_at)
        return (row.id, *key, *counts)

    def close(self) -> None:
        """Let go of the folder; what was not committed is dropped."""
        self._database.close()
        self._lock.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with _plainly(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back already
                    self._database.execute("ROLLBACK")
                raise


def _key(record: Record) -> _Key:
    return record.verdict.value, _text(record.signature), record.rule or ""


def _text(text: str) -> str:
    """``text`` as SQLite can hold it: an exception's message may be anything."""
    return text.encode("utf-8", "backslashreplace").decode()


def _connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for readers and syncs every commit."""
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    database.execute("PRAGMA synchronous = FULL")
    return database


def _has_run(database: sqlite3.Connection, path: Path) -> bool:
    """Whether the store holds a run (not: was being created when something ended it)."""
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables:
        check_schema(database, path)
    return bool(tables)


def _foreign(path: Path) -> str | None:
    """The name of something in a folder that no run put there."""
    ours = {LOCK, STORE, f"{STORE}-journal", FINDINGS}
    names = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
    return next((name for name in names if name not in ours), None)


def _take_lock(path: Path) -> IO[str]:
    """The folder's lock, ours until the file is closed or the process ends. Raises StoreError."""
    lock = open(path / LOCK, "a+", encoding="utf-8")  # noqa: SIM115 - kept for as long as the run
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = " ".join(lock.read(300).split())
        lock.close()
        raise StoreError(
            f"{path}: another campaign is writing to this folder ({owner or 'just started'}); "
            "wait for it, stop it, or use another folder"
        ) from None
    try:
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()} since {utc_now()}\n")
        lock.flush()
    except OSError:
        lock.close()
        raise
    return lock


def _write_folder(parent: Path, name: str, files: Mapping[str, bytes]) -> None:
    """A folder with these files, all or nothing, on the disk when it has its name."""
    temporary = parent / f".new-{name}"
    try:
        temporary.mkdir()
        for file, data in files.items():
            with open(temporary / file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        _sync_folder(temporary)
        os.rename(temporary, parent / name)
        _sync_folder(parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """Turn what the disk and SQLite say into a StoreError with the folder's name."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "")
        if code == "SQLITE_FULL":
            raise StoreError(f"{path}: the disk is full") from error
        if code.startswith("SQLITE_BUSY"):
            raise StoreError(f"{path / STORE}: another process does not let go of it") from error
        raise StoreError(f"{path / STORE}: {error}") from error
    except OSError as error:
        if error.errno in _FULL:
            raise StoreError(f"{path}: the disk is full ({error.strerror})") from error
        where = error.filename or path
        raise StoreError(f"{where}: {error.strerror or error}") from error
