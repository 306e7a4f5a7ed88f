"""How right are the rules? Every rule against hundreds of programs around it.

    python experiments/grid.py --target onnxruntime --out grid [--rule NAME ...] [--rules FILE ...]

For each rule: programs near its examples and fresh witnesses (``neighbourhood.py``, which never
looks at the rule's conditions), each run on the target with several inputs. Which show the rule's
defect, that is, its symptom and, where ablation finds passes to blame for the witnesses, through
the same passes? And which does the rule match? From the two come precision and recall, with
Wilson's intervals at 95 %.

What was measured is kept in DIR/TARGET/RULE.jsonl as it comes in; the same command goes on where it
was stopped, and matches anew what is there: a rule that is mended is held against the same
programs. ``--rules`` holds further patterns against the grids: those named after a rule
(``RULE_anything``), such as the first paper's own in ``experiments/paper`` or distilled ones.

Exit code: 0 done, 2 wrong usage, 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.neighbourhood import EXTENTS, Neighbourhood
from reprise.campaign.filing import LIMITS
from reprise.campaign.metrics import Rate, rate
from reprise.campaign.regress.probe import About, Effect, Observation, Probe
from reprise.campaign.regress.specimens import Collector, form_of
from reprise.campaign.source import known_bugs
from reprise.data import data_path
from reprise.datalog import LimitError
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.synth.inputs import input_sets
from reprise.targets.discover import Target, TargetError, parse_target
from reprise.targets.process import Limits, WorkerPool
from reprise.uir.graph import Graph
from reprise.uir.text import parse_uir, print_uir

FRESH = 6
"""New witnesses among the seeds of a rule's grid, besides the programs of its tests."""


@dataclass(frozen=True, slots=True)
class Point:
    """A program of a grid and what it showed. ``seed``: it is a witness that the grid grew from."""

    program: str
    seed: bool
    seen: Observation

    def data(self) -> dict[str, Any]:
        return {"program": self.program, "seed": self.seed, **self.seen.data()}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Point:
        rest = dict(data)
        program, seed = rest.pop("program"), rest.pop("seed")
        return cls(program, seed, Observation.of(rest))


@dataclass(frozen=True)
class Defect:
    """What tells a rule's defect from others that may turn up around it: the passes that cure the
    witnesses (``sets``: of each one, ``cures``: of all), or else how they fail."""

    cures: frozenset[str]
    kinds: frozenset[str]
    sets: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def of(cls, points: Iterable[Point]) -> Defect:
        """Known from the witnesses that fire."""
        fired = [p.seen for p in points if p.seed and p.seen.effect is Effect.FIRES]
        sets = frozenset(seen.cures for seen in fired if seen.cures)
        cures = frozenset(cure for one in sets for cure in one)
        return cls(cures, frozenset(_kind(seen) for seen in fired), sets)

    def shows(self, seen: Observation) -> bool | None:
        """Whether a program shows the defect; None where that cannot be said: it is refused,
        undecided, or shows something else that may hide it."""
        match seen.effect:
            case Effect.SILENT:
                return False
            case Effect.FIRES if self.cures:
                return True if self.cures & set(seen.cures) else None
            case Effect.FIRES:
                return True if _kind(seen) in self.kinds else None
        return None


def _kind(seen: Observation) -> str:
    """How a program fails: for a crash its stage and exception, else the symptom."""
    if seen.signature.startswith("crash"):
        return " | ".join(seen.signature.split(" | ")[:3])
    return seen.symptoms[0] if seen.symptoms else ""


# --- measuring -----------------------------------------------------------------------------------


@dataclass
class Grid:
    """Measures the grids of one target's rules."""

    rules: RuleSet
    target: Target
    size: int
    runs: int
    seed: int
    jobs: int
    limits: Limits
    folder: Path

    def measure(self, patterns: Sequence[Pattern]) -> Iterator[tuple[Pattern, list[Point]]]:
        """Every rule's points, as they are complete. Raises TargetError."""
        collector = Collector(self.rules, self.target, self.seed, FRESH)
        stop = Event()
        with (
            WorkerPool(self.target, self.jobs, self.limits) as pool,
            ThreadPoolExecutor(self.jobs, "grid") as threads,
        ):
            version = next(iter(pool.start().values()), "")
            print(f"{self.target}: {version}, {len(patterns)} rules", file=sys.stderr, flush=True)
            try:
                for pattern in patterns:
                    probe = Probe(self.target, pool, form_of(pattern, self.target), stop)
                    yield pattern, self._rule(pattern, collector, probe, threads)
            finally:
                stop.set()
                threads.shutdown(cancel_futures=True)

    def _rule(
        self, pattern: Pattern, collector: Collector, probe: Probe, threads: ThreadPoolExecutor
    ) -> list[Point]:
        path = self.folder / f"{pattern.name}.jsonl"
        kept = read_points(path)
        if len(kept) >= self.size:
            return kept[: self.size]
        began = time.monotonic()
        specimens = collector.collect(pattern).programs
        seeds = [s.graph for s in specimens]
        witnesses = {print_uir(s.graph) for s in specimens if s.is_witness}
        around = Neighbourhood(collector.signatures, collector.policies, tuple(_extents(seeds)))
        rng = Random(f"{self.seed}/grid/{pattern.name}")
        known = {p.program for p in kept}
        about = About.rule(pattern)

        def point(graph: Graph, suspects: Sequence[tuple[str, ...]]) -> Point:
            program = print_uir(graph)
            own = Random(f"{self.seed}/{program}")
            sets = list(input_sets(graph, collector.policies, own, self._runs(about)))
            seen = probe.observe(
                graph, sets, about,
                ablate=True, thorough=program in witnesses, suspects=suspects,
            )  # fmt: skip
            return Point(program, program in witnesses, seen)

        left = [g for g in around.around(seeds, rng, self.size) if print_uir(g) not in known]
        ours = [g for g in left if print_uir(g) in witnesses]
        others = [g for g in left if print_uir(g) not in witnesses]
        self.folder.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            for graphs in (ours, others):
                suspects = sorted(Defect.of(kept).sets)  # once the witnesses have told
                for found in threads.map(point, graphs, [suspects] * len(graphs)):
                    kept.append(found)
                    file.write(json.dumps(found.data()) + "\n")
                    if len(kept) % 50 == 0:
                        file.flush()
                        print(f"  {pattern.name}: {len(kept)}", file=sys.stderr, flush=True)
        took = time.monotonic() - began
        print(f"  {pattern.name}: {len(kept)} programs, {took:.0f} s", file=sys.stderr, flush=True)
        return kept

    def _runs(self, about: About) -> int:
        """One set of inputs is enough where values cannot matter."""
        early = about.symptoms and about.symptoms <= {"crash_at_load", "crash_at_compile"}
        return 1 if early or len(self.target.modes) == 1 else self.runs


def _extents(seeds: Sequence[Graph]) -> list[int]:
    """Usual extents, and those of the seeds with their neighbours."""
    own = {e for g in seeds for t in g.tensors for e in t.type.shape or () if isinstance(e, int)}
    near = {e + d for e in own for d in (-1, 0, 1) if 0 <= e + d <= 1 << 14}
    return sorted({*EXTENTS, *near})


def read_points(path: Path) -> list[Point]:
    """The points in a file; a line that was cut off is none."""
    if not path.is_file():
        return []
    points = {}
    for line in path.read_text("utf-8").splitlines():
        try:
            point = Point.of(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        points[point.program] = point
    return list(points.values())


# --- scoring -------------------------------------------------------------------------------------


@dataclass
class Score:
    """A pattern on a grid. ``shows``: programs that show the defect; ``elsewhere``: those of them
    that only another rule of the target matches, which are no miss. ``wrong`` and ``missed`` hold
    the programs behind what is not 1."""

    rule: str
    pattern: str
    points: int
    judged: int
    shows: int
    elsewhere: int
    precision: Rate
    recall: Rate
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "pattern": self.pattern,
            "programs": self.points,
            "judged": self.judged,
            "show_the_defect": self.shows,
            "matched_by_another_rule_only": self.elsewhere,
            "precision": _rate(self.precision),
            "recall": _rate(self.recall),
            "matched_but_silent": self.wrong,
            "missed": self.missed,
        }


def _rate(found: Rate) -> dict[str, object]:
    return {
        "value": found.value,
        "events": found.events,
        "trials": found.trials,
        "low": found.low,
        "high": found.high,
    }


class Scorer:
    """Matches grids against rules, those that ship and others."""

    def __init__(self, rules: RuleSet, target: Target, patterns: Sequence[Pattern]) -> None:
        self.signatures = Signatures.of_symbols(rules.symbols)
        self.environment = {"provider": target.device}
        self.patterns = {p.name: p for p in patterns}
        self.matcher = Matcher(rules, patterns, LIMITS)

    def matches(self, program: str) -> set[str]:
        """The patterns that match a program, for certain or as far as a graph can say."""
        graph = parse_uir(program, "grid", self.signatures)
        try:
            findings = self.matcher.run(graph, self.environment).findings
        except LimitError:
            return set()
        return {f.pattern.name for f in findings if f.certainty is not Truth.NO}

    def score(
        self, rule: Pattern, points: Sequence[Point], others: Sequence[str]
    ) -> Iterator[Score]:
        """The rule's score, then those of ``others``, on the same grid."""
        defect = Defect.of(points)
        judged = [(p, shown) for p in points if (shown := defect.shows(p.seen)) is not None]
        matches = [self.matches(p.program) for p, _ in judged]
        compared = {rule.name, *others}
        for name in (rule.name, *others):
            hits = [name in found for found in matches]
            kin = [any(self._is_kin(rule, n) for n in found - compared) for found in matches]
            matched = [(p, shown) for (p, shown), hit in zip(judged, hits, strict=True) if hit]
            right = sum(shown for _, shown in matched)
            missed = [
                (p, other)
                for (p, shown), hit, other in zip(judged, hits, kin, strict=True)
                if shown and not hit
            ]
            elsewhere = sum(other for _, other in missed)
            yield Score(
                rule.name,
                name,
                len(points),
                len(judged),
                sum(shown for _, shown in judged),
                elsewhere,
                rate(right, len(matched)),
                rate(right, right + len(missed) - elsewhere),
                [p.program for p, shown in matched if not shown],
                [p.program for p, other in missed if not other],
            )

    def _is_kin(self, rule: Pattern, name: str) -> bool:
        """Whether another rule may explain the same symptom: it names the same pass, or neither
        names one."""
        other = self.patterns[name]
        return set(other.meta.get("pass", ())) & set(rule.meta.get("pass", ())) != set() or not (
            other.meta.get("pass") or rule.meta.get("pass")
        )


def markdown(scores: Sequence[Score]) -> str:
    """The table."""
    lines = [
        "| rule | pattern | programs | show the defect | precision | recall |",
        "|---|---|--:|--:|---|---|",
    ]
    for s in scores:
        which = "shipped" if s.pattern == s.rule else f"`{s.pattern}`"
        lines.append(
            f"| `{s.rule}` | {which} | {s.judged} | {s.shows} | {_shown(s.precision)} | "
            f"{_shown(s.recall)} |"
        )
    return "\n".join(lines) + "\n"


def _shown(found: Rate) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}] ({found.events}/{found.trials})"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="onnxruntime", help="NAME[@PYTHON]")
    parser.add_argument("--rule", action="append", default=[], help="only this rule; repeatable")
    parser.add_argument(
        "--rules", action="append", default=[], type=Path, help="further patterns to compare"
    )
    parser.add_argument("--out", type=Path, default=Path("grid"), help="where results are kept")
    parser.add_argument("--size", type=int, default=300, help="programs for each rule")
    parser.add_argument("--runs", type=int, default=5, help="sets of inputs for each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for one program")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    try:
        target = parse_target(asked.target)
        rules = load_rules([data_path("rules/bugs"), *asked.rules])
        return _run(asked, target, rules)
    except (TargetError, RulesError) as error:
        print(f"grid: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("grid: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _run(asked: argparse.Namespace, target: Target, rules: RuleSet) -> int:
    about = known_bugs(rules, target.name)
    extra_files = {
        str(f)
        for path in asked.rules
        for f in ([path] if path.is_file() else sorted(path.rglob("*.rules")))
    }
    extra = [p for p in about if p.span.file in extra_files]
    shipped = [p for p in about if p.span.file not in extra_files]
    chosen = sorted(
        (p for p in shipped if not asked.rule or p.name in asked.rule), key=lambda p: p.name
    )
    if unknown := set(asked.rule) - {p.name for p in shipped}:
        print(
            f"grid: no rule about {target.name} is called {', '.join(sorted(unknown))}",
            file=sys.stderr,
        )
        return 2
    limits = Limits(seconds=asked.timeout)
    folder = asked.out / target.name
    grid = Grid(rules, target, asked.size, asked.runs, asked.seed, asked.jobs, limits, folder)
    scorer = Scorer(rules, target, about)
    scores: list[Score] = []
    for pattern, points in grid.measure(chosen):
        others = [p.name for p in extra if p.name.startswith(f"{pattern.name}_")]
        scores += scorer.score(pattern, points, others)
    folder.mkdir(parents=True, exist_ok=True)
    table = markdown(scores)
    (folder / "table.md").write_text(table, "utf-8")
    document = {
        "target": str(target),
        "size": asked.size,
        "seed": asked.seed,
        "scores": [s.data() for s in scores],
    }
    (folder / "scores.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    print(table, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
