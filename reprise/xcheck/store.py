"""A run's folder: a row for each model, and what a triager needs of each finding.

    RUN/store.sqlite        rows, as in :data:`SCHEMA`
    RUN/models/00000017.onnx  every model that was compiled
    RUN/findings/00000017/  model.onnx, repro.py, README.md, finding.json … (``findings.py``)
    RUN/monitors.jsonl      what the monitors of an instrumented compiler saw, by models' digests

Invariants, whatever ends the process and whenever: models are rows 0 to n-1, each once, in the
order of Algorithm 1, committed one by one; a model's files are complete and in place before the row
that names them. Ranks are not stored but follow from the rows, so that they cannot disagree. One
process at a time writes to a folder (``reprise.distill.alone``).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reprise.campaign.records import StoreError
from reprise.campaign.store import XCHECK_ID, reading
from reprise.xcheck.behaviour import Seen, Vector
from reprise.xcheck.verdict import Verdict

STORE, MODELS, FINDINGS, MONITORS = "store.sqlite", "models", "findings", "monitors.jsonl"
APPLICATION_ID = XCHECK_ID
SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE run (
    asked TEXT NOT NULL,              -- JSON: target, rules, hardware, device, seed, limits, …
    rules_hash TEXT NOT NULL, versions TEXT NOT NULL, started TEXT NOT NULL
);
CREATE TABLE constraints (
    position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, class TEXT NOT NULL,
    source TEXT NOT NULL,             -- where it is from: its `from:`, else its own place
    declared TEXT NOT NULL            -- FILE:LINE of the declaration
);
CREATE TABLE models (
    number INTEGER PRIMARY KEY,
    constraint_name TEXT NOT NULL REFERENCES constraints (name),
    usage INTEGER NOT NULL, valid INTEGER NOT NULL,
    kind TEXT NOT NULL, digest TEXT NOT NULL, program TEXT NOT NULL,
    verdict TEXT NOT NULL, passes INTEGER NOT NULL, stage TEXT NOT NULL,
    message TEXT NOT NULL, signature TEXT NOT NULL, warned INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL, folder TEXT,
    completed TEXT NOT NULL,          -- JSON: names of the passes
    seen TEXT NOT NULL,               -- JSON: what holds of the constraints that apply, by name
    UNIQUE (constraint_name, usage, valid)
);
CREATE TABLE set_aside (              -- no model was found
    constraint_name TEXT NOT NULL, valid INTEGER NOT NULL, at INTEGER NOT NULL,
    reason TEXT NOT NULL, PRIMARY KEY (constraint_name, valid)
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, seconds REAL NOT NULL, ended TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Declared:
    """A constraint of the run."""

    name: str
    klass: str
    source: str
    declared: str


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model that was compiled. ``valid``: it violates nothing; ``kind``: see ``models.Kind``;
    ``program``: its operators and types in a line; ``folder``: the finding's, if one was kept;
    ``completed``: the names of ``passes`` passes, in order; ``seen``: what holds of constraints."""

    number: int
    constraint: str
    usage: int
    valid: bool
    kind: str
    digest: str
    program: str
    verdict: Verdict
    passes: int
    stage: str
    message: str
    signature: str
    warned: bool
    milliseconds: int
    folder: str | None
    completed: tuple[str, ...] = ()
    seen: Vector = ()

    @property
    def words(self) -> str:
        """The verdict, for people."""
        return self.verdict.told(warned=self.warned)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A constraint that no model was found for; ``valid``: no valid one."""

    constraint: str
    valid: bool
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was asked for; enough to go on with it. ``models`` and ``seconds``: when to stop,
    unless whoever goes on says otherwise; ``signatures``: files with more operators."""

    target: str
    rules: tuple[str, ...]
    hardware: tuple[str, ...]
    device: str | None
    seed: int
    timeout: float
    memory: int
    models: int | None = None
    seconds: float | None = None
    signatures: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Asked:
        """From JSON. Raises ValueError, TypeError or KeyError."""
        found: dict[str, Any] = json.loads(text)
        for name in {"rules", "hardware", "signatures"} & found.keys():
            found[name] = tuple(found[name])
        return cls(**found)


@dataclass(frozen=True)
class XRun:
    """A run as it stood when it was read."""

    path: Path
    asked: Asked
    rules_hash: str
    versions: dict[str, str]
    started: str
    constraints: tuple[Declared, ...]
    models: tuple[ModelRow, ...]
    set_aside: tuple[SetAside, ...]
    seconds: float

    @classmethod
    def open(cls, path: Path) -> XRun:
        """Read a run; nothing is written. Raises StoreError."""
        with reading(path) as db:
            return _read(db, path)

    def model(self, number: int) -> Path:
        """The file of a model."""
        return self.path / MODELS / f"{number:08d}.onnx"

    @property
    def monitors(self) -> Path:
        """The file of what monitors saw, if the compiler has some."""
        return self.path / MONITORS


class Store:
    """A run that is being written, by one process at a time (its caller sees to that)."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self._session = 0

    @classmethod
    @contextlib.contextmanager
    def create(
        cls,
        path: Path,
        asked: Asked,
        rules_hash: str,
        versions: Mapping[str, str],
        constraints: list[Declared],
    ) -> Iterator[Store]:
        """Begin a run in an empty folder. Raises StoreError."""
        others = sorted(entry.name for entry in path.iterdir())
        if STORE not in others and others:
            raise StoreError(f"{path}: this folder holds other things ({others[0]})")
        with _connected(path) as db:
            with _plainly(path):  # a run that was killed before it began leaves an empty store
                if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise StoreError(
                        f"{path}: this folder holds a run already; to go on with it: "
                        f"reprise xcheck --resume {path}"
                    )
                for name in (MODELS, FINDINGS):
                    (path / name).mkdir(exist_ok=True)
            with _transaction(db):
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                text = json.dumps(
                    {name: getattr(asked, name) for name in Asked.__slots__}, sort_keys=True
                )
                db.execute(
                    "INSERT INTO run VALUES (?, ?, ?, ?)",
                    (text, rules_hash, json.dumps(dict(versions)), _now()),
                )
                db.executemany(
                    "INSERT INTO constraints VALUES (?, ?, ?, ?, ?)",
                    [(i, c.name, c.klass, c.source, c.declared) for i, c in enumerate(constraints)],
                )
            store = cls(path, db)
            store._begin()
            yield store

    @classmethod
    @contextlib.contextmanager
    def resume(cls, path: Path) -> Iterator[Store]:
        """Go on with a run. What a killed process left that no row names is removed. Raises
        StoreError."""
        if not (path / STORE).is_file():
            raise StoreError(f"{path}: there is no run in this folder")
        with _connected(path) as db:
            run = _read(db, path)
            with _plainly(path):
                _tidy(run)
            store = cls(path, db)
            store._begin()
            yield store

    def read(self) -> XRun:
        """The run so far."""
        return _read(self._db, self.path)

    def add(self, row: ModelRow, model: bytes, files: Mapping[str, bytes]) -> None:
        """Add a model, and its finding's files if ``row.folder`` names one. Raises StoreError;
        the store is then as before."""
        with _plainly(self.path):
            file = self.path / MODELS / f"{row.number:08d}.onnx"
            _put(file, model)
            if row.folder is not None:
                new = self.path / FINDINGS / f".new-{row.folder}"
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir()
                for name, data in files.items():
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    _put(new / name, data)
                new.rename(self.path / FINDINGS / row.folder)
            with _transaction(self._db):
                self._db.execute(
                    f"INSERT INTO models VALUES ({', '.join('?' * 17)})",
                    (
                        row.number,
                        row.constraint,
                        row.usage,
                        row.valid,
                        row.kind,
                        row.digest,
                        row.program,
                        row.verdict.value,
                        row.passes,
                        row.stage,
                        row.message,
                        row.signature,
                        row.warned,
                        row.milliseconds,
                        row.folder,
                        json.dumps(row.completed),
                        json.dumps({name: seen.value for name, seen in row.seen}),
                    ),
                )

    def set_aside(self, constraint: str, *, valid: bool, at: int, reason: str) -> None:
        """Note that there is no model. Raises StoreError."""
        with _plainly(self.path), _transaction(self._db):
            self._db.execute(
                "INSERT INTO set_aside VALUES (?, ?, ?, ?)", (constraint, valid, at, reason)
            )

    def end(self, seconds: float, how: str) -> None:
        """Note how long the session took and why it ended. Raises StoreError."""
        with _plainly(self.path), _transaction(self._db):
            self._db.execute(
                "UPDATE sessions SET seconds = ?, ended = ? WHERE id = ?",
                (seconds, how, self._session),
            )

    def _begin(self) -> None:
        with _plainly(self.path), _transaction(self._db):
            found = self._db.execute(
                "INSERT INTO sessions (started, seconds, ended) VALUES (?, 0, 'killed')", (_now(),)
            )
            self._session = found.lastrowid or 0


_UNFINISHED = re.compile(r"(?P<number>\d{8})(\.onnx)?|(\.new-)?\d{8}(\.onnx\.new)?")
"""Names that :meth:`Store.add` gives; whatever else is in the folders is not ours."""


def _tidy(run: XRun) -> None:
    """Remove what a killed process left that no row names, and make folders that are gone."""
    kept = {m.folder for m in run.models if m.folder}
    for name in (MODELS, FINDINGS):
        (run.path / name).mkdir(exist_ok=True)
        for entry in (run.path / name).iterdir():
            match = _UNFINISHED.fullmatch(entry.name)
            if match is None:
                continue
            number = match["number"]
            if name == MODELS and number is not None and int(number) < len(run.models):
                continue
            if name == FINDINGS and entry.name in kept:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _put(file: Path, data: bytes) -> None:
    new = file.with_name(f"{file.name}.new")
    with open(new, "wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    new.replace(file)


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """What the system says of a write that failed, as a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path / STORE}: {error}") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with _plainly(path):
        db = sqlite3.connect(path / STORE, timeout=30, isolation_level=None)
    with contextlib.closing(db):
        yield db


def _read(db: sqlite3.Connection, path: Path) -> XRun:
    with _plainly(path):
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreError(f"{path / STORE}: this is not the store of an xcheck run")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{path / STORE}: written by another version of Reprise (tables of version "
                f"{version}, not {SCHEMA_VERSION})"
            )
        row = db.execute("SELECT asked, rules_hash, versions, started FROM run").fetchone()
        if row is None:
            raise StoreError(f"{path / STORE}: there is no run in it")
        constraints = db.execute(
            "SELECT name, class, source, declared FROM constraints ORDER BY position"
        ).fetchall()
        models = db.execute("SELECT * FROM models ORDER BY number").fetchall()
        aside = db.execute(
            "SELECT constraint_name, valid, at, reason FROM set_aside ORDER BY at, rowid"
        ).fetchall()
        seconds = db.execute("SELECT coalesce(sum(seconds), 0) FROM sessions").fetchone()[0]
    asked, rules_hash, versions, started = row
    try:
        run = XRun(
            path,
            Asked.read(asked),
            rules_hash,
            dict(json.loads(versions)),
            started,
            tuple(Declared(*c) for c in constraints),
            tuple(map(_model, models)),
            tuple(SetAside(c, bool(v), at, reason) for c, v, at, reason in aside),
            seconds,
        )
        _verify(run)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{path / STORE}: damaged: {error}") from error
    return run


def _verify(run: XRun) -> None:
    """Hold rows against the invariants. Raises ValueError."""
    known = {c.name for c in run.constraints}
    usage: Counter[str] = Counter()
    for place, row in enumerate(run.models):
        if row.number != place:
            raise ValueError(f"there is no model {place}")
        if not row.valid:
            usage[row.constraint] += 1
        if row.usage != usage[row.constraint] - (not row.valid):
            raise ValueError(f"model {place} is not the next of `{row.constraint}`")
    for name in (*(row.constraint for row in run.models), *(a.constraint for a in run.set_aside)):
        if name not in known:
            raise ValueError(f"`{name}` is no constraint of the run")


def _model(row: Sequence[Any]) -> ModelRow:
    number, constraint, usage, valid, kind, digest, program, verdict, *rest = row
    passes, stage, message, signature, warned, milliseconds, folder, completed, seen = rest
    return ModelRow(
        int(number),
        constraint,
        int(usage),
        bool(valid),
        kind,
        digest,
        program,
        Verdict(verdict),
        int(passes),
        stage,
        message,
        signature,
        bool(warned),
        int(milliseconds),
        folder,
        tuple(json.loads(completed)),
        tuple((name, Seen(found)) for name, found in json.loads(seen).items()),
    )
