"""Runs for the tests of reports and comparisons: findings with folders, made without a target."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reprise.campaign.records import Confirmation, End, Record, RunInfo
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Verdict
from tests.campaign.runs import info

PROGRAM = """\
x: float32[4, 4]
w: float32[4, 4]
v0: float32[4, 4] = transpose(x, perm=[0, 1])
v1: float32[4, 4] = gemm(v0, w)
v2: float32[4, 4] = relu(w)
output v1
output v2
"""
WRONG = {
    "differences": [
        {
            "output": 0, "kind": "values", "expected": "-6.5", "actual": "8.25", "count": 3,
            "total": 16, "first_index": [0, 2], "max_absolute_error": 14.75,
            "max_relative_error": 2.5, "tolerance": "0.001 absolute and 0.01 relative",
        }
    ],
    "float64_sides_with": "baseline",
    "ablation": {"cures": ["GemmTransposeFusion"], "runs": 8, "complete": True, "uncovers": ""},
}  # fmt: skip


def files(
    record: Record, *, program: str = PROGRAM, evidence: Mapping[str, Any] = {}, **more: Any
) -> dict[str, bytes]:
    """A finding's folder; the keys of its description as ``findings.py`` writes them."""
    described = {
        "id": f"{record.index:08d}", "program": "p", "seed": 42, "index": record.index,
        "verdict": record.verdict.value, "signature": record.signature, "title": record.title,
        "severity": record.severity.value, "rule": record.rule, "matches": [],
        "confirmation": {"runs": 3, "agreed": 3, "flaky": False}, "evidence": dict(evidence),
        "tolerances": [], "outcome": None, "target": "onnxruntime",
        "versions": {"onnxruntime": "1.27.0"}, "files": ["finding.json"], **more,
    }  # fmt: skip
    return {
        "finding.json": json.dumps(described).encode(),
        "program.uir": program.encode(),
        "repro.py": f"# {record.title}\nprint('fails')\n".encode(),
    }


def defect(index: int, name: str, rule: str | None = None, title: str = "") -> Record:
    """A crash with this signature."""
    return Record(index, Verdict.CRASH, name, title or f"crash {name}", rule)


def run(
    path: Path,
    records: Iterable[Record],
    of: RunInfo | None = None,
    *,
    end: End = End.DONE,
    **changed: object,
) -> Path:
    """A run of these records; findings keep folders as in a campaign."""
    writer = RunWriter.create(path, of or info(**changed))
    for record in records:
        kept = files(record) if writer.wants_folder(record) else None
        writer.add(record, kept, Confirmation(3, 3) if kept else None)
    writer.commit(end)
    writer.close()
    return path


def counted(counts: Mapping[str, int], tests: int, **rejected: int) -> list[Record]:
    """``tests`` tests, of which so many are crashes of each name (``rule:R``: filed under R),
    spread evenly; the first has these candidates rejected."""
    crashes = [name for name, count in counts.items() for _ in range(count)]
    every = max(1, tests // max(len(crashes), 1))
    records = []
    for index in range(tests):
        number, rest = divmod(index, every)
        extra = Counter(rejected) if index == 0 else Counter()
        if rest == 0 and number < len(crashes):
            name = crashes[number]
            rule = name.removeprefix("rule:") if name.startswith("rule:") else None
            records.append(
                Record(index, Verdict.CRASH, f"signature of {name.removeprefix('rule:')}",
                       f"crash {name}", rule, rejected=extra)
            )  # fmt: skip
        else:
            records.append(Record(index, Verdict.OK, rejected=extra))
    return records
