"""What does distilling cost, and how does its rule compare with the one that people wrote?

    python -m experiments.distillations --out DIR ort_32228 ort_24158 ...
    python -m experiments.grid --rules DIR/rules --out DIR/grid --rule ort_32228 --rule ...

The first command takes an example of each named rule that fails on the target and distils it as
`reprise distill` does; nothing else of the hand-written rule is looked at. Rules go to
``DIR/rules/NAME_distilled.rules``; ``distillations.json`` and ``.md`` have the CPU time of all
processes, runs of the target, and precision and recall on programs that a rule had not seen. The
second command holds both rules against the same grid of programs. What is in DIR already is not
done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from reprise.campaign.regress.specimens import Collector, Specimen
from reprise.data import data_path
from reprise.distill.distilling import distill_subject
from reprise.distill.reduce import Budget
from reprise.distill.subject import NotShown, input_values, read_subject
from reprise.distill.tighten import Against, tightened_data
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target
from reprise.uir.text import print_uir

_INPUTS = 6
"""How many sets of inputs an example is tried with before it is given up."""


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for: targets that are closed."""
    return sum(u.ru_utime + u.ru_stime for u in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def write_subject(specimen: Specimen, folder: Path, seed: int) -> Path:
    """An example as a program with inputs."""
    import numpy as np

    path = folder / "subject.uir"
    path.write_text(print_uir(specimen.graph))
    values = input_values(specimen.graph, dict(specimen.inputs or {}), path, seed)
    np.savez(folder / "subject.npz", **values)  # type: ignore[arg-type]
    return path


def distil(
    pattern: Pattern, collector: Collector, args: argparse.Namespace, signatures: Signatures
) -> dict[str, Any]:
    """One rule's defect, distilled from the first of its examples that fails."""
    name = f"{pattern.name}_distilled"
    folder = args.out / pattern.name
    folder.mkdir(parents=True, exist_ok=True)
    for specimen in collector.collect(pattern).programs:
        if not specimen.is_witness:
            continue
        for seed in range(_INPUTS):
            path = write_subject(specimen, folder, seed)
            began, cpu = time.monotonic(), cpu_seconds()
            try:
                done, file, _ = distill_subject(
                    read_subject(path, args.target, signatures),
                    signatures,
                    folder / "distilled",
                    budget=Budget(seconds=args.seconds),
                    seed=args.seed,
                    name=name,
                    against=Against(args.corpus, args.neighbours),
                )
            except NotShown:
                continue
            rules = args.out / "rules"
            rules.mkdir(exist_ok=True)
            if not done.discarded:
                (rules / f"{name}.rules").write_text(file.read_text())
            return {
                "rule": pattern.name,
                "cpu_seconds": cpu_seconds() - cpu,
                "seconds": time.monotonic() - began,
                "programs": done.record.asked,
                "runs": done.record.runs,
                "complete": done.record.complete,
                "text": done.text.partition("\ntest ")[0],
                "tightened": done.tightened and tightened_data(done.tightened),
            }
    return {"rule": pattern.name, "failed": "no example fails on this target"}


def share(found: Mapping[str, Any]) -> str:
    if not found["of"]:
        return "–"
    low, high = 100 * found["low"], 100 * found["high"]
    return f"{found['events']} of {found['of']} [{low:.0f}, {high:.0f}] %"


def markdown(entries: list[dict[str, Any]], rules: RuleSet, target: str) -> str:
    lines = [
        f"On `{target}`:",
        "",
        "| defect | CPU s | programs | runs | rounds | precision | recall | passing matched |",
        "|---|--:|--:|--:|--:|---|---|---|",
    ]
    for entry in entries:
        if "failed" in entry:
            lines.append(f"| `{entry['rule']}` | {entry['failed']} |||||||")
            continue
        tightened = entry["tightened"]
        scores = ["–"] * 3
        if tightened:
            after = tightened["after"]
            scores = [share(after[k]) for k in ("precision", "recall", "false_alarms")]
        rounds = "–" if not tightened else str(len(tightened["rounds"]))
        if tightened and tightened["discarded"]:
            rounds += ", discarded"
        cells = [
            f"`{entry['rule']}`",
            f"{entry['cpu_seconds']:.0f}",
            str(entry["programs"]),
            str(entry["runs"]),
            rounds,
            *scores,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    for entry in entries:
        if "text" in entry:
            shown = "\n".join(
                line for line in entry["text"].splitlines() if not line.startswith("///")
            )
            lines += ["", f"`{entry['rule']}`:", "", "```rules", shown.strip(), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rules", nargs="+", metavar="RULE")
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, help="see `reprise corpus`")
    parser.add_argument("--neighbours", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=600.0, help="budget of one distillation")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rules = load_rules([data_path("rules/bugs")])
    unknown = [name for name in args.rules if name not in rules.patterns]
    if unknown:
        parser.error(f"no such rule: {', '.join(unknown)}")
    collector = Collector(rules, parse_target(args.target))
    signatures = Signatures.load()
    args.out.mkdir(parents=True, exist_ok=True)
    kept = args.out / "distillations.json"
    known = {e["rule"]: e for e in json.loads(kept.read_text())} if kept.exists() else {}
    for name in args.rules:
        if name not in known:
            print(name, file=sys.stderr)
            known[name] = distil(rules.patterns[name], collector, args, signatures)
            kept.write_text(json.dumps(list(known.values()), indent=2) + "\n")
    text = markdown([known[name] for name in args.rules], rules, args.target)
    (args.out / "distillations.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
