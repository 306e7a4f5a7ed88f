"""Rules as a filter in front of another generator: which of its models would they hold back?

    python -m experiments.other_models MODELS --target onnxruntime --out /tmp/other

MODELS is a folder of ONNX models, each with an ``.npz`` of its inputs beside it, or none (then they
are drawn). Every model is looked at by the rules, as `reprise check` does, and run: optimised
against unoptimised, with the same oracle as in a campaign. The table says how many failing models
the rules hold back (repeated reports avoided) and how many passing ones (tests lost). Writes
``models.jsonl``, a line for each model as it is done (a second call goes on), and ``other.md``.

Models of NNSmith, in an environment of their own::

    python3.11 -m venv .nnsmith
    .nnsmith/bin/pip install 'nnsmith[torch]==0.1.0' torch==2.13.0 onnx onnxscript
    .nnsmith/bin/python experiments/nnsmith_models.py 600 MODELS
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import track

from reprise.campaign.metrics import rate
from reprise.campaign.source import RULE_TARGETS
from reprise.data import data_path
from reprise.distill.subject import read_subject
from reprise.distill.trials import Trials
from reprise.facts.errors import ModelError
from reprise.patterns.check import Checker, CheckOptions, Target, UsageError
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target


def flagged(checker: Checker, path: Path) -> list[str]:
    """The rules that match a model for certain."""
    report = checker.check(path)
    return sorted({match.rule for match in report.matches if match.certainty == "yes"})


def examine(paths: list[Path], target: str, rules: tuple[Path, ...], done: Path) -> None:
    """Look at and run the models that ``done`` has no line for."""
    known = {json.loads(line)["model"] for line in done.read_text().splitlines()}
    parsed = parse_target(target)
    names = RULE_TARGETS.get(parsed.name, (parsed.name,))
    checker = Checker(CheckOptions(rules, Target(names[0])))
    signatures = Signatures.load()
    with Trials(parsed, None) as trials, done.open("a") as file:
        for path in track(paths, "models", console=Console(stderr=True), transient=True):
            if path.name in known:
                continue
            entry: dict[str, object] = {"model": path.name}
            try:
                entry["rules"] = flagged(checker, path)
                subject = read_subject(path, target, signatures)
                judgement = trials.judge(subject.forms[-1])
                entry["verdict"] = judgement.verdict.value
                entry["title"] = judgement.title
                if judgement.verdict.is_finding:
                    entry["signature"] = judgement.signature
            except (ModelError, UsageError) as error:
                entry["verdict"] = "unreadable"
                entry["title"] = str(error)
            file.write(json.dumps(entry) + "\n")
            file.flush()


def percent(events: int, trials: int) -> str:
    found = rate(events, trials)
    if found.value is None:
        return "–"
    return f"{100 * found.value:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def markdown(entries: list[dict[str, object]], target: str) -> str:
    findings = [e for e in entries if e["verdict"] in ("crash", "wrong_result", "hang")]
    passing = [e for e in entries if e["verdict"] == "ok"]
    held = [e for e in findings if e["rules"]]
    lines = [
        f"{len(entries)} models on `{target}`: {len(passing)} pass, {len(findings)} fail, "
        f"{len(entries) - len(passing) - len(findings)} are neither "
        f"({dict(Counter(str(e['verdict']) for e in entries))}).",
        "",
        "| | of | held back by a rule |",
        "|---|--:|--:|",
        f"| failing models | {len(findings)} | {percent(len(held), len(findings))} |",
        f"| passing models | {len(passing)} | "
        f"{percent(sum(bool(e['rules']) for e in passing), len(passing))} |",
        "",
        "| defect | reports | held back | by |",
        "|---|--:|--:|---|",
    ]
    counts = Counter(str(e["signature"]) for e in findings)
    for signature, count in counts.most_common():
        same = [e for e in findings if e["signature"] == signature]
        rules = sorted({str(rule) for e in same for rule in e["rules"]})  # type: ignore[attr-defined]
        caught = sum(bool(e["rules"]) for e in same)
        by = ", ".join(f"`{rule}`" for rule in rules)
        lines.append(f"| `{signature[:90]}` | {count} | {caught} | {by} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--rules", type=Path, action="append", help="default: the shipped ones")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    done = args.out / "models.jsonl"
    done.touch()
    rules = tuple(args.rules or (data_path("rules/bugs"),))
    examine(sorted(args.models.glob("*.onnx")), args.target, rules, done)
    entries = [json.loads(line) for line in done.read_text().splitlines()]
    text = markdown(entries, args.target)
    (args.out / "other.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
