"""Runs for the tests of the store and of what reads it, made through the writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from reprise.campaign.records import Record, RunInfo
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Verdict

FILES = {"finding.json": b"{}", "program.uir": b"x: float32[1]\n"}


def info(**changes: object) -> RunInfo:
    fields = {
        "seed": 42,
        "target": "onnxruntime",
        "options": {"tests": 100},
        "rules": ("ort_32228",),
        "rules_hash": "abc",
        "guided": True,
        "versions": {"onnxruntime": "1.27.0"},
        "started": "2026-01-01T00:00:00+00:00",
    }
    return RunInfo(**{**fields, **changes})  # type: ignore[arg-type]


def record(index: int) -> Record:
    """Test ``index`` of an imaginary run: every third crashes in one of two ways, one of which is
    known; every tenth is wrong; every seventh unsupported."""
    if index % 3 == 2:
        kind = index % 2
        return Record(
            index,
            Verdict.CRASH,
            f"crash {kind}",
            f"crashes in way {kind}",
            "ort_32228" if kind else None,
            0.002,
        )
    if index % 10 == 0:
        return Record(index, Verdict.WRONG_RESULT, "wrong", "is wrong", None, 0.003)
    if index % 7 == 0:
        return Record(index, Verdict.UNSUPPORTED, "no kernel", "has no kernel")
    rejected = Counter({"ort_32228": index % 4})
    return Record(index, Verdict.OK, seconds=0.001, rejected=+rejected)


def add(writer: RunWriter, records: Iterable[Record]) -> None:
    for each in records:
        writer.add(each, FILES if writer.wants_folder(each) else None)


def made(path: Path, tests: int = 100) -> RunWriter:
    writer = RunWriter.create(path, info())
    add(writer, map(record, range(tests)))
    writer.commit()
    return writer
