"""How many repeated reports do rules prevent, and at what price? (First paper, RQ1 and RQ2.)

    python -m experiments.suppression --target onnxruntime --tests 2000 --seeds 1,2,3,4,5 \\
        --distilled DIR --out /tmp/suppression

Every configuration runs the same number of programs for the same seeds, on one target:

``unguided``   no rule steers; findings are filed under the shipped rules all the same
``hand``       the shipped, hand-written rules steer
``distilled``  only rules that `reprise distill` made (``--distilled``) steer
``learn``      nothing steers at first; what is found is distilled during the run

All of them file findings under the shipped rules, so a defect has one name everywhere. Runs are
folders in ``--out``: what was stopped goes on, and what is complete is only counted. Writes
``suppression.json``, ``suppression.md`` and ``suppression.svg``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from reprise.campaign.compare import Estimate, bootstrap
from reprise.campaign.metrics import Rate, Redundancy, chance_of_missing, rate, redundancy
from reprise.campaign.records import End
from reprise.campaign.store import Run

CONFIGURATIONS = ("unguided", "hand", "distilled", "learn")


@dataclass(frozen=True)
class Group:
    """The runs of one configuration, in the order of the seeds."""

    name: str
    runs: tuple[Run, ...]

    def counts(self, run: Run) -> Counter[str]:
        """Reports by defect."""
        return Counter({defect.key: defect.count for defect in run.defects})

    @property
    def pooled(self) -> Counter[str]:
        return sum((self.counts(run) for run in self.runs), Counter())

    @property
    def tests(self) -> int:
        return sum(run.tests for run in self.runs)

    @property
    def rejected(self) -> int:
        return sum(s.rejected for run in self.runs for s in run.suppressed.values())

    @property
    def rate(self) -> float:
        """Tests a second, everything included."""
        return self.tests / max(sum(run.seconds for run in self.runs), 1e-9)

    def mean(self, measure: Callable[[Redundancy], float | None], rng: Random) -> Estimate | None:
        """Over the seeds, where the measure says anything."""
        values = [measure(redundancy(self.counts(run).values())) for run in self.runs]
        known = [value for value in values if value is not None]
        return bootstrap(known, lambda v: sum(v) / len(v), rng) if known else None


@dataclass(frozen=True)
class Against:
    """A configuration against the unguided one. ``removed``: the share of reports that is gone;
    ``known``: of reports of defects that a shipped rule names; ``left``: reports of known defects,
    of all tests. ``lost``: defects that only the unguided runs met, though no shipped rule explains
    them, with how likely that is by chance."""

    removed: Estimate | None
    known: Estimate | None
    left: Rate
    lost: tuple[tuple[str, int, float], ...]
    gained: tuple[str, ...]


def less(pairs: Sequence[tuple[int, int]], rng: Random) -> Estimate | None:
    """The share by which the second numbers are less than the first, all together."""

    def share(drawn: Sequence[tuple[int, int]]) -> float | None:
        before = sum(a for a, _ in drawn)
        return 1 - sum(b for _, b in drawn) / before if before else None

    return bootstrap(pairs, share, rng) if sum(a for a, _ in pairs) else None


def against(baseline: Group, other: Group, rng: Random) -> Against:
    pairs = [
        (baseline.counts(a), other.counts(b))
        for a, b in zip(baseline.runs, other.runs, strict=True)
    ]

    def known(counts: Counter[str]) -> int:
        return sum(n for key, n in counts.items() if key.startswith("rule:"))

    before, after = baseline.pooled, other.pooled
    lost = tuple(
        (key, count, chance_of_missing(count / baseline.tests, other.tests))
        for key, count in before.most_common()
        if not after[key] and not key.startswith("rule:")
    )
    return Against(
        less([(a.total(), b.total()) for a, b in pairs], rng),
        less([(known(a), known(b)) for a, b in pairs], rng),
        rate(sum(known(b) for _, b in pairs), other.tests, 0.95),
        lost,
        tuple(key for key in after if not before[key]),
    )


# --- running --------------------------------------------------------------------------------------


def command(args: argparse.Namespace, name: str, seed: int, folder: Path) -> list[str]:
    """What begins a run."""
    steering = {
        "unguided": ["--no-guidance"],
        "hand": [],
        "distilled": ["--steer", str(args.distilled)],
        "learn": ["--no-guidance", "--learn"],
    }[name]
    options = ["--target", args.target, "--tests", str(args.tests), "--seed", str(seed)]
    return ["fuzz", *options, *shlex.split(args.fuzz), *steering, "--out", str(folder)]


def is_done(folder: Path, tests: int) -> bool:
    if not (folder / "store.sqlite").exists():
        return False
    run = Run.open(folder)
    return run.tests >= tests and run.sessions[-1].end is End.DONE


def execute(args: argparse.Namespace, name: str, seed: int) -> Run:
    """The run of a configuration and a seed, begun, gone on with, or there already."""
    folder = args.out / f"{name}-{seed}"
    if not is_done(folder, args.tests):
        begun = (folder / "store.sqlite").exists()
        arguments = (
            ["fuzz", "--resume", str(folder), "--tests", str(args.tests)]
            if begun
            else command(args, name, seed, folder)
        )
        with (args.out / f"{name}-{seed}.log").open("a") as log:
            done = subprocess.run([sys.executable, "-m", "reprise", *arguments], stderr=log)
        if done.returncode not in (0, 1):
            sys.exit(f"reprise {' '.join(arguments)}: exit code {done.returncode}")
    return Run.open(folder)


# --- telling --------------------------------------------------------------------------------------


def number(value: float | None, form: str = ".1f") -> str:
    return "–" if value is None else format(value, form)


def share(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    text = f"{100 * estimate.value:.1f} %"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def markdown(args: argparse.Namespace, groups: Sequence[Group], rng: Random) -> str:
    baseline = groups[0]
    lines = [
        f"`{args.target}`, {args.tests:,} programs for each of seeds {args.seeds}:",
        "",
        "| | tests | tests/s | B | U | B−U | ²D | R_w | C | rejected | reports removed "
        "| of known defects | known reports left, of tests |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    details: list[str] = []
    for group in groups:
        pooled = redundancy(group.pooled.values())
        cells = [
            group.name,
            f"{group.tests:,}",
            f"{group.rate:.1f}",
            str(pooled.reports),
            str(pooled.defects),
            str(pooled.repeats),
            number(pooled.effective_defects, ".2f"),
            number(pooled.weighted_redundancy),
            "–" if pooled.duplicate_pairs is None else f"{100 * pooled.duplicate_pairs:.1f} %",
            f"{group.rejected:,}",
        ]
        if group is baseline:
            cells += ["", "", ""]
        else:
            found = against(baseline, group, rng)
            left = f"{100 * found.left.high:.2f} % at most"
            cells += [share(found.removed), share(found.known), left]
            details += ["", f"**{group.name}** against unguided:"]
            for key, count, chance in found.lost:
                by_chance = f"{100 * chance:.0f} % by chance alone"
                details.append(f"- lost: `{key}` ({count} unguided reports; missed: {by_chance})")
            details += [f"- gained: `{key}`" for key in found.gained]
            if not found.lost and not found.gained:
                details.append("- no defect lost or gained")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, *details]) + "\n"


def document(groups: Sequence[Group], rng: Random) -> dict[str, object]:
    baseline = groups[0]
    made: dict[str, object] = {}
    for group in groups:
        pooled = redundancy(group.pooled.values())
        entry: dict[str, object] = {
            "tests": group.tests,
            "tests_per_second": group.rate,
            "seeds": [run.info.seed for run in group.runs],
            "B": pooled.reports,
            "U": pooled.defects,
            "2D": pooled.effective_defects,
            "R_w": pooled.weighted_redundancy,
            "C": pooled.duplicate_pairs,
            "rejected": group.rejected,
            "defects": dict(group.pooled.most_common()),
        }
        if group is not baseline:
            found = against(baseline, group, rng)
            for name in ("removed", "known"):
                estimate = getattr(found, name)
                entry[name] = estimate and [estimate.value, estimate.low, estimate.high]
            entry["known_left"] = [found.left.value, found.left.low, found.left.high]
            entry["lost"] = [list(item) for item in found.lost]
            entry["gained"] = list(found.gained)
        made[group.name] = entry
    return made


def draw(groups: Sequence[Group], path: Path) -> None:
    """Reports and distinct defects as tests go on, all seeds together."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (reports, defects) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for group in groups:
        indices = sorted(
            f.index for run in group.runs for f in run.findings if f.verdict.is_finding
        )
        firsts = sorted(d.first_index for run in group.runs for d in run.defects)
        last = max((run.tests for run in group.runs), default=0)
        for axes, places in ((reports, indices), (defects, firsts)):
            axes.step([0, *places, last], [*range(len(places) + 1), len(places)], where="post",
                      label=group.name)  # fmt: skip
    reports.set_title("reports, all seeds")
    defects.set_title("first reports of a defect, seed by seed")
    for axes in (reports, defects):
        axes.set_xlabel("tests of a run")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0)
    reports.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--target", required=True)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--seeds", default="1,2,3,4,5", help="comma-separated")
    parser.add_argument("--configurations", default=",".join(CONFIGURATIONS))
    parser.add_argument("--distilled", type=Path, help="rules for the distilled configuration")
    parser.add_argument(
        "--fuzz", default="", metavar="OPTIONS",
        help='more options of `reprise fuzz`, for all configurations: --fuzz="--ops conv2d,add"',
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    names = args.configurations.split(",")
    unknown = [name for name in names if name not in CONFIGURATIONS]
    if unknown or not re.fullmatch(r"\d+(,\d+)*", args.seeds):
        parser.error(f"configurations are {', '.join(CONFIGURATIONS)}; seeds are numbers")
    if "distilled" in names and args.distilled is None:
        parser.error("--distilled says where the distilled rules are")
    args.out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for seed in seeds:
        for name in names:
            runs[name].append(execute(args, name, seed))
    groups = [Group(name, tuple(found)) for name, found in runs.items()]
    text = markdown(args, groups, Random(0))
    (args.out / "suppression.md").write_text(text)
    written = json.dumps(document(groups, Random(0)), indent=2)
    (args.out / "suppression.json").write_text(written + "\n")
    draw(groups, args.out / "suppression.svg")
    print(text)


if __name__ == "__main__":
    main()
