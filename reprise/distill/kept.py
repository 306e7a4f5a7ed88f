"""A reduced program's folder: a finding's folder, and what was done to come to it.

program.uir, model.onnx, inputs.npz, outputs.npz, repro.py, finding.json
                  as in the folder of a campaign's finding (``campaign.findings``)
reduction.json    before and after, every edit that was taken, what it cost, whether it is
                  minimal
trials.jsonl      the answers of all trials: what an interrupted reduction goes on from
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from reprise.cache import write_whole
from reprise.campaign.bench import Exhibit, Tested
from reprise.campaign.filing import Known, RuleMatch
from reprise.campaign.findings import EXPECTED, MODEL_FILES, finding_files
from reprise.campaign.open import own_versions, spelled
from reprise.campaign.records import Record, RunInfo
from reprise.campaign.writer import utc_now
from reprise.distill.onnx_model import Model
from reprise.distill.reduce import Reduced, Stop, Taken
from reprise.distill.subject import Subject
from reprise.distill.trials import Trials
from reprise.oracle.verdict import Judgement
from reprise.patterns.check import UsageError
from reprise.uir.program import Program
from reprise.uir.text import print_uir

TRIALS = "trials.jsonl"
REDUCTION = "reduction.json"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a program is. ``elements`` of all its tensors."""

    nodes: int
    elements: int


@dataclass(frozen=True)
class Report:
    """What became of a reduction. ``text``: the program in UIR, or a line for each node of a model.
    ``judgement``: the full verdict on it, which may blame fewer passes than ``aimed``, the
    signature that was asked for: of several defects at once, one is left."""

    folder: Path
    before: Size
    after: Size
    stop: Stop
    trials: int
    runs: int
    seconds: float
    aimed: str
    judgement: Judgement
    rule: str | None
    text: str


def check_folder(path: Path) -> None:
    """See that a folder can be made, or is one of an earlier reduction. Raises UsageError for any
    other that is not empty, OSError."""
    if path.exists() and any(path.iterdir()) and not (path / TRIALS).exists():
        raise UsageError(f"{path} is not empty and holds no reduction: give another --out")


def write_folder(
    path: Path,
    subject: Subject,
    trials: Trials,
    stages: list[Reduced],
    before: Size,
) -> Report:
    """Judge the last stage's program in full and write its folder. ``stages``: what was done, one
    after the other. Raises OSError."""
    last = stages[-1]
    program = last.program
    model, examination = trials.examine(program)
    judgement = examination.judgement
    versions = {**trials.versions(), **own_versions()}
    version = next(iter(versions.values()), None)
    known = Known(trials.target.name, version, (), (("provider", trials.target.device),))()
    matches = known.matches(program.graph)
    rule = known.file(judgement, matches, trials.passes(model)) if matches else None
    index = 0 if subject.detail is None else subject.detail.index
    record = Record(
        index,
        judgement.verdict,
        judgement.signature,
        judgement.title,
        rule=rule,
        severity=judgement.severity,
    )
    exhibit = Exhibit(
        {} if isinstance(program, Model) else {"program.uir": print_uir(program.graph).encode()},
        program.name,
        model,
        program.inputs,
        examination.outcome,
        judgement,
        matches,
        examination.tolerances,
        examination.expected,
    )
    seed = 0 if subject.detail is None else subject.detail.seed
    info = RunInfo(
        seed, spelled(subject.spec, trials.target), {}, (), "", False, versions, utc_now()
    )
    target = trials.target
    if isinstance(program, Model):  # whatever else the target takes, this it took as ONNX
        target = replace(target, lowering="onnx")
    files = finding_files(Tested(record, exhibit), info, target, None)
    if isinstance(program, Model):
        from reprise.campaign.findings import npz

        files["inputs.npz"] = npz(program.inputs)
    report = Report(
        path,
        before,
        size_of(last),
        last.stop,
        sum(stage.trials for stage in stages),
        sum(stage.runs for stage in stages),
        sum(stage.seconds for stage in stages),
        trials.aim.signature if trials.aim is not None else "",
        judgement,
        rule,
        _text(program),
    )
    files[REDUCTION] = _described(subject, trials, stages, report, matches)
    others = {"program.uir", "outputs.npz", EXPECTED, "repro.py", "target.py"}
    for name in others | {*MODEL_FILES.values()}:
        if name not in files:
            (path / name).unlink(missing_ok=True)  # of an earlier try
    for name, data in files.items():
        write_whole(path / name, data)
    return report


def size_of(reduced: Reduced) -> Size:
    return Size(len(reduced.flow.steps), reduced.elements)


def _described(
    subject: Subject,
    trials: Trials,
    stages: list[Reduced],
    report: Report,
    matches: tuple[RuleMatch, ...],
) -> bytes:
    aim = trials.aim
    assert aim is not None
    described: Mapping[str, object] = {
        "of": str(subject.origin),
        "target": subject.spec,
        "aim": {
            "verdict": aim.verdict.value,
            "signature": aim.signature,
            "symptom": aim.symptom,
            "severity": aim.severity.value,
        },
        "signature": report.judgement.signature,
        "minimal": report.stop is Stop.MINIMAL,
        "stop": report.stop.value,
        "before": asdict(report.before),
        "after": asdict(report.after),
        "trials": report.trials,
        "runs": report.runs,
        "seconds": round(report.seconds, 3),
        "taken": [asdict(taken) for stage in stages for taken in stage.taken],
        "matches": [match.rule for match in matches],
    }
    return (json.dumps(described, indent=2) + "\n").encode()


def _text(program: Program) -> str:
    if not isinstance(program, Model):
        return print_uir(program.graph, limit=16)
    lines = []
    for node in program.proto.graph.node:
        domain = f"{node.domain}." if node.domain else ""
        operands = ", ".join(name or "none" for name in node.input)
        lines.append(f"{', '.join(node.output)} = {domain}{node.op_type}({operands})\n")
    return "".join(lines)


__all__ = ["REDUCTION", "TRIALS", "Report", "Size", "Taken", "check_folder", "write_folder"]
