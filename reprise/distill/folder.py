"""The folder that ``reprise distill`` leaves.

RULE.rules           the rule, with tests
distillation.md      every experiment, for a person who audits the rule
distillation.json    the same for machines, with the programs by key
answers.jsonl        what each program tried did, so that a second call resumes
trials.jsonl         the same, as the target's trials keep it
reduced/             the program that was generalised, as ``reprise reduce`` leaves it
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from reprise.cache import write_whole
from reprise.distill.asking import Answer
from reprise.distill.record import Experiment, Result
from reprise.distill.tighten import tightened_data, tightened_text
from reprise.lang.display import counted
from reprise.patterns.check import UsageError

ANSWERS = "answers.jsonl"
TRIALS = "trials.jsonl"
REDUCED = "reduced"
_MARK = "distillation.json"

R = TypeVar("R", bound=Result)
R_co = TypeVar("R_co", bound=Result, covariant=True)


def check_folder(path: Path) -> None:
    """See that a folder can be made, or is one that an earlier call left. Raises UsageError for any
    other that is not empty (a finding's, which may hold a reduction as well), OSError."""
    known = {ANSWERS, TRIALS, REDUCED, _MARK}
    ours = any((path / name).exists() for name in known) and not (path / "finding.json").exists()
    if path.exists() and any(path.iterdir()) and not ours:
        raise UsageError(f"{path} is not empty and holds no distillation: give another --out")


def write_folder(path: Path, distilled: Result, origin: str, seed: int) -> Path:
    """Write the rule and its record in place of those of an earlier call; the rule's file. Raises
    OSError."""
    earlier = _written_before(path)
    rule = path / f"{distilled.draft.name}.{'discarded' if distilled.discarded else 'rules'}"
    write_whole(rule, distilled.text.encode())
    data = json.dumps(record_data(distilled, origin, seed), indent=2) + "\n"
    write_whole(path / _MARK, data.encode())
    write_whole(path / "distillation.md", record_text(distilled, origin).encode())
    for name in {earlier, distilled.draft.name} - {""}:
        for old in (path / f"{name}.rules", path / f"{name}.discarded"):
            if old != rule:
                old.unlink(missing_ok=True)
    return rule


class Working(Protocol[R_co]):
    """What distills, of programs or of kernels: until done or the budget is spent; and what has
    been reached, at any time."""

    def run(self) -> R_co: ...

    def distilled(self) -> R_co: ...


def distill_into(
    folder: Path,
    distiller: Working[R],
    origin: str,
    seed: int,
    held: Callable[[R], R] | None,
) -> tuple[R, Path, bool]:
    """Distill, write what came of it, hold that against what it has not seen (``held``, if it is
    complete), and write that. Returns it, the rule's file, and whether Ctrl-C cut it short. Raises
    TargetError, StoreError, OSError."""
    interrupted = False
    try:
        done = distiller.run()
    except KeyboardInterrupt:
        interrupted = True
        done = distiller.distilled()
    file = write_folder(folder, done, origin, seed)
    if held is not None and done.record.complete and not interrupted:
        try:
            done = held(done)
        except KeyboardInterrupt:
            interrupted = True
        else:
            file = write_folder(folder, done, origin, seed)
    return done, file, interrupted


def _written_before(path: Path) -> str:
    """The name of the rule that the record is about; other rules in the folder are not ours."""
    try:
        name = json.loads((path / _MARK).read_text(encoding="utf-8"))["rule"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""
    return name if isinstance(name, str) and name.isidentifier() else ""


def record_data(distilled: Result, origin: str, seed: int) -> dict[str, object]:
    """The record as JSON has it."""
    record = distilled.record
    tried, triggered = record.fresh
    as_given = _AS_GIVEN.format(distilled.draft.noun)
    return {
        "rule": distilled.draft.name,
        "origin": origin,
        "seed": seed,
        "complete": record.complete,
        "interrupted": record.interrupted,
        "programs": record.asked,
        "runs": record.runs,
        "seconds": round(record.seconds, 3),
        "fresh": {"tried": tried, "triggered": triggered},
        "tightened": distilled.tightened and tightened_data(distilled.tightened),
        "conditions": [
            {"condition": str(c), "why": record.reasons.get(c, as_given)}
            for c in distilled.draft.conditions
        ],
        "experiments": [
            {
                "dimension": e.dimension,
                "from": e.before,
                "to": e.after,
                "samples": len(e.programs),
                "triggered": e.count(Answer.YES),
                "passed": e.count(Answer.NO),
                "kept": e.kept,
                "why": e.why,
                "programs": [[key, answer.value] for key, answer in e.programs],
            }
            for e in record.experiments
        ],
    }


_KEPT_BACK = (
    "With intervals of 95 %, on {} that were kept back: nothing was learned from them, so a "
    "false match or a miss among them is counted, not mended. A rule is kept with false matches "
    "where what stands around them hides the defect, no more than one for twenty triggers "
    "(docs/learning.md, Tightening)."
)
_AS_GIVEN = "as in the {0}: without it, not all {0}s trigger"


def record_text(distilled: Result, origin: str) -> str:
    """The record as a person reads it."""
    record, draft = distilled.record, distilled.draft
    tried, triggered = record.fresh
    noun, nouns = draft.noun, f"{draft.noun}s"
    as_given = _AS_GIVEN.format(noun)
    lines = [f"# {draft.name}", "", f"Distilled from {origin}.", ""]
    lines += ["```rules", distilled.text.partition("\ntest ")[0].rstrip(), "```", ""]
    if not record.complete:
        lines += [
            f"**Not complete**: stopped at “{record.interrupted}”. What comes after it was not "
            "generalised, so the rule is narrower than the defect.",
            "",
        ]
    lines.append(
        f"{counted(record.asked, noun)}, {counted(record.runs, 'run')} of the target, "
        f"{record.seconds:.1f} s. "
        + (
            f"Of {tried} fresh {nouns} made from the rule, varied in everything at once, "
            f"{triggered} trigger."
            if tried
            else f"Fresh {nouns} were not tried."
        )
    )
    if distilled.tightened is not None:
        lines += ["", f"## On {nouns} that the rule had not seen", ""]
        lines += [_KEPT_BACK.format(nouns), ""]
        lines += tightened_text(distilled.tightened, noun, draft.parts)
    lines += ["", "## Why each condition is there", ""]
    for condition in draft.conditions:
        lines.append(f"- `{condition}`: {record.reasons.get(condition, as_given)}")
    lines += ["", "## Experiments", ""]
    lines += ["| varied | from | to | triggered | kept | |", "|---|---|---|--:|---|---|"]
    lines += [_row(experiment) for experiment in record.experiments]
    lines += ["", f"The {nouns} of each, by key, are in `distillation.json`.", ""]
    return "\n".join(lines)


def _row(experiment: Experiment) -> str:
    yes, no = experiment.count(Answer.YES), experiment.count(Answer.NO)
    count = f"{yes} of {yes + no}" if yes + no else "–"
    silent = experiment.count(Answer.UNUSABLE)
    why = experiment.why + (f" ({silent} said nothing)" if silent else "")
    cells = [
        experiment.dimension,
        f"`{experiment.before}`",
        f"`{experiment.after}`",
        count,
        "yes" if experiment.kept else "no",
        why,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
