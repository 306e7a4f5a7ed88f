"""A finding's folder: everything that a triager needs, and nothing that needs Reprise.

    program.uir    the program, to read and to run again with any target; of an einsum kernel
                   kernel.json, and variants.json, the program with its variants
    model.onnx     what the target was given (model.py where that is Python)
    inputs.npz     the values of its inputs, by name
    outputs.npz    what came out, ``MODE.N`` for the N-th output in each mode
    expected.npz   where the target disagrees with the numpy reference, the reference's N-th output
    repro.py       runs alone: prints versions; exit code 1: still fails, 0: it does not
    target.py      how the target is called, if it is not one that ships
    finding.json   verdict, signature, evidence, versions, seed and number, known rules

:func:`finding_files` makes them; :func:`read_detail` reads ``finding.json``.
"""

from __future__ import annotations

import io
import json
import traceback
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from reprise.campaign.bench import Exhibit, Tested
from reprise.campaign.filing import RuleMatch
from reprise.campaign.records import Confirmation, RunInfo, StoreError
from reprise.campaign.repro import repro
from reprise.campaign.store import finding_id
from reprise.oracle.verdict import Severity, Verdict
from reprise.targets.discover import Target
from reprise.targets.interface import Failure, Outcome
from reprise.uir.graph import Array

MODEL_FILES = {
    "onnx": "model.onnx",
    "torch": "model.py",
    "relax": "model.py",
    "einsum": "model.py",
}
"""The name of a lowered program's file."""
EXPECTED = "expected.npz"
"""The name of the file with the reference's outputs."""

_PLAIN_KINDS = "biufc"
_DAMAGED_NPZ = (EOFError, KeyError, TypeError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What numpy and zipfile raise for files that are no archives of arrays, besides ValueError."""
_LOG = 8000


def finding_files(
    tested: Tested, info: RunInfo, target: Target, confirmation: Confirmation | None
) -> dict[str, bytes]:
    """The files of a finding's folder, by name."""
    exhibit = tested.exhibit
    assert exhibit is not None
    files: dict[str, bytes] = {}
    if exhibit.files:
        files.update(exhibit.files)
        files["inputs.npz"] = npz(exhibit.inputs)
    if exhibit.model:
        files[MODEL_FILES[target.lowering]] = exhibit.model
    outputs = _outputs(exhibit.outcome)
    if outputs:
        files["outputs.npz"] = npz(outputs)
    if exhibit.expected:
        files[EXPECTED] = npz({str(n): array for n, array in exhibit.expected.items()})
    wants_script = exhibit.model and exhibit.outcome is not None and "repro.py" not in files
    if wants_script and (tested.record.verdict.is_finding or exhibit.expected):
        try:
            script = repro(tested.record, exhibit, info, target)
        except Exception:  # our mistake must not cost the finding, nor end the campaign
            script = f"import sys\n\nprint({traceback.format_exc()!r})\nsys.exit(2)\n"
        files["repro.py"] = script.encode("utf-8", "backslashreplace")
        if '"target.py"' in script:
            files["target.py"] = target.file.read_bytes()
    description = _description(tested, exhibit, info, confirmation)
    description["files"] = sorted([*files, "finding.json"])
    files["finding.json"] = (json.dumps(_plain(description), indent=2) + "\n").encode()
    return files


def _description(
    tested: Tested, exhibit: Exhibit, info: RunInfo, confirmation: Confirmation | None
) -> dict[str, object]:
    record, outcome = tested.record, exhibit.outcome
    return {
        "id": finding_id(record.index),
        "program": exhibit.name,
        "seed": info.seed,
        "index": record.index,
        "verdict": record.verdict.value,
        "signature": record.signature,
        "title": record.title,
        "severity": record.severity.value,
        "rule": record.rule,
        "matches": [asdict(match) for match in exhibit.matches],
        "confirmation": None
        if confirmation is None
        else {**asdict(confirmation), "flaky": confirmation.flaky},
        "evidence": exhibit.judgement.evidence,
        "tolerances": [asdict(tolerance) for tolerance in exhibit.tolerances],
        "outcome": None if outcome is None else _described(outcome),
        "target": info.target,
        "versions": info.versions,
    }


def _described(outcome: Outcome) -> dict[str, object]:
    return {
        "ended": outcome.ended.value,
        "mode": outcome.mode,
        "stage": outcome.stage.value if outcome.stage else None,
        "signal": outcome.signal,
        "failures": {
            mode: _failure(result.failure)
            for mode, result in outcome.results.items()
            if result.failure is not None
        },
        "log": outcome.log[-_LOG:],
    }


def _failure(failure: Failure) -> dict[str, object]:
    return {**asdict(failure), "stage": failure.stage.value}


def _outputs(outcome: Outcome | None) -> dict[str, Array]:
    if outcome is None:
        return {}
    return {
        f"{mode}.{number}": array
        for mode, result in outcome.results.items()
        for number, array in enumerate(result.outputs or ())
    }


def npz(arrays: Mapping[str, Array]) -> bytes:
    """Arrays in numpy's format. Element types that numpy does not know itself (bfloat16, …) are
    stored as unsigned integers of the same bits, with the type after the name: ``x:bfloat16``."""
    stored: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.kind in _PLAIN_KINDS:
            stored[name] = array
        elif array.dtype.kind in "OU":
            stored[name] = array.astype(str)
        else:
            stored[f"{name}:{array.dtype.name}"] = array.view(f"u{array.dtype.itemsize}")
    buffer = io.BytesIO()
    np.savez(buffer, **stored)
    return buffer.getvalue()


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of a finding's ``inputs.npz`` or ``outputs.npz``; what else its archive holds is
    left out. Raises OSError, ValueError."""
    from reprise.uir.types import numpy_dtype

    arrays: dict[str, Array] = {}
    try:
        with np.load(path, allow_pickle=False) as stored:
            for key in stored.files:
                name, _, dtype = key.rpartition(":")
                array = stored[key]
                if isinstance(array, np.ndarray):
                    arrays[name or key] = array.view(numpy_dtype(dtype)) if name else array
    except _DAMAGED_NPZ as error:
        raise ValueError(str(error)) from error
    return arrays


def _plain(value: object) -> object:
    """``value`` with what JSON cannot hold made text or plain numbers."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case float() | np.floating():
            number = float(value)
            return number if np.isfinite(number) else str(number)
        case bool() | int() | str() | None:
            return value
        case np.integer():
            return int(value)
        case np.ndarray():
            return _plain(value.tolist())
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case _:
            return str(value)


@dataclass(frozen=True)
class Detail:
    """What ``finding.json`` says; ``raw`` has it all."""

    id: str
    program: str
    seed: int
    index: int
    verdict: Verdict
    signature: str
    title: str
    rule: str | None
    matches: tuple[RuleMatch, ...]
    confirmation: Confirmation | None
    evidence: dict[str, Any]
    target: str
    versions: dict[str, str]
    files: Sequence[str]
    raw: dict[str, Any]


def read_detail(folder: Path) -> Detail:
    """A finding's description. Raises StoreError if it is missing or damaged."""
    path = folder / "finding.json"
    try:
        raw = json.loads(path.read_text("utf-8"))
        if "constraint" in raw:
            raise StoreError(
                f"{folder}: a finding of `reprise xcheck`, which is about its constraint and not "
                "about a failure to look into; give its model.onnx to commands that take models"
            )
        Severity(raw.get("severity", "normal"))
        confirmation = _typed(raw, "confirmation", dict, NoneType)
        return Detail(
            id=_typed(raw, "id", str),
            program=_typed(raw, "program", str),
            seed=_typed(raw, "seed", int),
            index=_typed(raw, "index", int),
            verdict=Verdict(raw["verdict"]),
            signature=_typed(raw, "signature", str),
            title=_typed(raw, "title", str),
            rule=_typed(raw, "rule", str, NoneType),
            matches=tuple(RuleMatch(**match) for match in _typed(raw, "matches", list)),
            confirmation=None
            if confirmation is None
            else Confirmation(
                _typed(confirmation, "runs", int), _typed(confirmation, "agreed", int)
            ),
            evidence=_typed(raw, "evidence", dict),
            target=_typed(raw, "target", str),
            versions={key: str(value) for key, value in _typed(raw, "versions", dict).items()},
            files=tuple(map(str, _typed(raw, "files", list))),
            raw=raw,
        )
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {error})") from error


def _typed(raw: dict[str, Any], key: str, *kinds: type) -> Any:
    """The value of ``key``, if it is of one of some kinds. Raises KeyError, TypeError."""
    value = raw[key]
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{key} is no {wanted}")
    return value
