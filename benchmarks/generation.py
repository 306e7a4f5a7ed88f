"""The generation benchmark: programs per CPU second, by size and number of known bugs.

``python -m benchmarks.generation [--json FILE] [--quick] [--nnsmith PYTHON] [--executed TESTS]``

Every cell makes programs of so many nodes around so many patterns; cells take turns, several times,
and the best turn counts: other programs on the machine only ever slow one down. A second, slower
pass over the same programs says where the time goes: *solve* (the sampler), *facts*, *match* (the
engine: commits and taking back), *lower* (to ONNX, not part of the rate), *propose* (the rest).

``--nnsmith``: an interpreter that has NNSmith, for the same sizes in the same run:

    python3.11 -m venv .nnsmith
    .nnsmith/bin/pip install 'nnsmith[torch]==0.1.0' torch --extra-index-url \\
        https://download.pytorch.org/whl/cpu
    python -m benchmarks.generation --nnsmith .nnsmith/bin/python

``--executed``: what guidance costs in tests. Campaigns of so many tests on ONNX Runtime, guided and
unguided in turns, say what a test takes; what guidance adds to making a program is measured by
itself, for each target, since guided programs are others, that cost the target more or less.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.known_bugs import known_bugs
from reprise.campaign.source import SourceRequest, open_source
from reprise.lower.lowering import lowering
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.synth import following
from reprise.synth.generator import Generator
from reprise.synth.guide import Guide
from reprise.synth.options import Options

SIZES = (5, 10, 20, 40)
PATTERNS = (0, 40, 200)
LOWERINGS = {"onnxruntime": ("onnx",), "inductor": ("torch",), "tvm": ("relax",)}
"""The targets whose guidance is measured, and how their programs are lowered."""
STAGES = ("propose", "solve", "facts", "match", "lower")


@dataclass
class Cell:
    """One size and number of patterns. ``rates``: programs per CPU second, turn by turn;
    ``stages``: microseconds of CPU time for each node. ``start``: seconds until the generator is
    there, and then until its first program."""

    nodes: int
    patterns: int
    start: tuple[float, float]
    rejected: int = 0
    rates: list[float] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return max(self.rates)


def timed(action: Callable[[], object]) -> float:
    """CPU time of ``action``."""
    start = time.process_time()
    action()
    return time.process_time() - start


class Bench:
    """A generator, and the programs that its cell makes."""

    def __init__(self, nodes: int, patterns: int, signatures: Signatures) -> None:
        rules, chosen = known_bugs(patterns)
        options = Options(nodes=nodes)
        made: list[Generator] = []
        create = timed(
            lambda: made.append(Generator(rules, signatures, options, 1, patterns=chosen))
        )
        self.generator = made[0]
        first = timed(lambda: self.generator.program(0))
        self.cell = Cell(nodes, patterns, (create, first))
        self.count = max(10, 1_000 // nodes)
        self.make()  # rules are compiled when they are first needed
        self.generator.guide.database.save()

    def make(self) -> None:
        """The cell's programs."""
        rejected = 0
        for index in range(self.count):
            rejected += self.generator.program(index).rejected.total()
        self.cell.rejected = rejected

    def turn(self) -> None:
        """One measurement of the rate."""
        self.cell.rates.append(self.count / timed(self.make))

    def split(self) -> None:
        """Where the time goes."""
        spent: dict[str, float] = defaultdict(float)
        lower = lowering("onnx")

        def run() -> None:
            for index in range(self.count):
                graph = self.generator.program(index).program.graph
                start = time.thread_time()
                if all(
                    lower.unsupported(n.op, [t and t.type for t in n.inputs], n.attributes) is None
                    for n in graph.nodes
                ):
                    lower.lower(graph)
                spent["lower"] += time.thread_time() - start

        with watched(spent):
            total = timed(run)
        spent["propose"] = total - sum(spent.values())
        nodes = self.count * self.cell.nodes
        self.cell.stages = {stage: spent[stage] / nodes * 1e6 for stage in STAGES}


@contextmanager
def watched(spent: dict[str, float]) -> Iterator[None]:
    """Count the time in the functions that stages consist of, each without those that it calls."""
    inner = [0.0]

    def counting(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            before, inner[0] = inner[0], 0.0
            start = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                took = time.thread_time() - start
                spent[stage] += took - inner[0]
                inner[0] = before + took

        return wrapped

    places: list[tuple[Any, str, str]] = [
        (Sampler, "typed", "solve"),
        (following, "entity_facts", "facts"),
        *((Guide, name, "match") for name in ("begin", "add", "finish", "take_back")),
    ]
    before = [getattr(owner, name) for owner, name, _ in places]
    for (owner, name, stage), function in zip(places, before, strict=True):
        setattr(owner, name, counting(stage, function))
    try:
        yield
    finally:
        for (owner, name, _), function in zip(places, before, strict=True):
            setattr(owner, name, function)


# --- peers and the whole loop --------------------------------------------------------------------


def nnsmith(python: str, nodes: int, count: int) -> dict[str, Any]:
    """What NNSmith makes of the same size; an ``error`` if it cannot be run."""
    script = Path(__file__).with_name("nnsmith_peer.py")
    done = subprocess.run(
        [python, str(script), str(nodes), str(count)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"nodes": nodes, "error": lines[-1] if lines else f"ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def fuzz(guided: bool, tests: int, seed: int) -> float:
    """CPU time of ``reprise fuzz`` on ONNX Runtime, all its processes together."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "reprise", "fuzz", "--target", "onnxruntime"]
        command += ["--tests", str(tests), "--seed", str(seed), "--out", str(Path(name) / "run")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command if guided else [*command, "--no-guidance"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):  # without and with findings
            raise RuntimeError(f"{' '.join(command)}: ended with {done.returncode}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def making(target: str, turns: int, blocks: int = 10, size: int = 50) -> dict[str, Any]:
    """Milliseconds of CPU time that a program for a target takes to make, guided and unguided. Both
    make the same numbers, block by block in turns, and of each block the best turn counts; the
    interval of what guidance adds is over the blocks."""
    request = SourceRequest(1, target=target, lowerings=LOWERINGS[target])
    sources = {guided: open_source(replace(request, guided=guided)) for guided in (True, False)}

    def block(number: int, guided: bool) -> float:
        first, source = number * size, sources[guided]
        used = timed(lambda: [source.program(first + i) for i in range(size)])
        return 1e3 * used / size

    best = {guided: [math.inf] * blocks for guided in sources}
    for turn in range(turns + 1):  # rules are compiled when they are first needed: one more
        for number in range(blocks):
            for guided in (True, False) if turn % 2 else (False, True):
                best[guided][number] = min(best[guided][number], block(number, guided))
    added = [a - b for a, b in zip(best[True], best[False], strict=True)]
    return {
        "unguided_ms": statistics.fmean(best[False]),
        "guided_ms": statistics.fmean(best[True]),
        "added_ms": statistics.fmean(added),
        "interval_ms": interval(added),
    }


def interval(sample: list[float], level: float = 0.95) -> tuple[float, float]:
    """A bootstrap interval of a sample's mean."""
    rng = Random(0)
    means = sorted(statistics.fmean(rng.choices(sample, k=len(sample))) for _ in range(2_000))
    out = int((1 - level) / 2 * len(means))
    return means[out], means[-1 - out]


def executed(tests: int, turns: int) -> dict[str, Any]:
    """What guidance costs in tests: the time that it adds to making a program, beside the time of a
    test on ONNX Runtime. Of two campaigns that differ in length alone, the difference is free of
    what starting costs; guided ones have other programs, whose own cost is told apart."""
    few = max(tests // 8, 1)
    costs: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(turns):
        for guided in (True, False) if turn % 2 else (False, True):
            more = fuzz(guided, tests + few, turn) - fuzz(guided, few, turn)
            costs[guided].append(1e3 * more / tests)
    made = {target: making(target, turns) for target in LOWERINGS}
    test = statistics.median(costs[False])
    low, high = made["onnxruntime"]["interval_ms"]
    return {
        "test_ms": {"unguided": test, "guided": statistics.median(costs[True])},
        "turns_ms": {"unguided": costs[False], "guided": costs[True]},
        "making": made,
        "fewer_percent": 100 * made["onnxruntime"]["added_ms"] / test,
        "interval_percent": (100 * low / test, 100 * high / test),
    }


def told(found: dict[str, Any]) -> str:
    """The result of :func:`executed`, for people."""
    lines = [
        "",
        f"{'ms of CPU time to make a program':34}{'unguided':>10}{'guided':>10}{'added':>10}",
    ]
    for target, made in found["making"].items():
        low, high = made["interval_ms"]
        lines.append(
            f"{target:34}{made['unguided_ms']:>10.2f}{made['guided_ms']:>10.2f}"
            f"{made['added_ms']:>10.3f}  (95 %: {low:.3f} to {high:.3f})"
        )
    low, high = found["interval_percent"]
    lines += [
        f"a test on ONNX Runtime, all processes: {found['test_ms']['unguided']:.1f} ms unguided, "
        f"{found['test_ms']['guided']:.1f} ms guided (other programs)",
        f"guidance itself costs {found['fewer_percent']:.2f} % of tests there "
        f"(95 %: {low:.2f} to {high:.2f})",
    ]
    return "\n".join(lines)


# --- the table -----------------------------------------------------------------------------------


def table(cells: list[Cell], peers: dict[int, dict[str, Any]]) -> str:
    """Programs per CPU second, and what the stages take."""
    by_place = {(cell.nodes, cell.patterns): cell for cell in cells}
    sizes = sorted({cell.nodes for cell in cells})
    counts = sorted({cell.patterns for cell in cells})
    lines = ["programs a CPU second" + "".join(f"{f'{n} nodes':>16}" for n in sizes)]
    for count in counts:
        best = [by_place[n, count].best for n in sizes]
        base = [by_place[n, counts[0]].best for n in sizes]
        shown = [
            f"{b:,.0f}" + ("" if count == counts[0] else f" ({b / a:.0%})")
            for a, b in zip(base, best, strict=True)
        ]
        lines.append(f"{f'{count} patterns':21}" + "".join(f"{text:>16}" for text in shown))
    if peers:
        shown = []
        for n in sizes:
            peer = peers.get(n, {"error": "not run"})
            if "error" in peer:
                shown.append("–")
            else:
                rate = peer["programs"] / peer["seconds"]
                shown.append(f"{rate:,.1f} ({by_place[n, counts[0]].best / rate:,.0f}×)")
        lines.append(f"{'NNSmith':21}" + "".join(f"{text:>16}" for text in shown))
    lines += ["", "µs of CPU time a node" + "".join(f"{stage:>10}" for stage in STAGES)]
    for cell in cells:
        name = f"{cell.nodes} nodes, {cell.patterns} patterns"
        lines.append(f"{name:21}" + "".join(f"{cell.stages[s]:>10.1f}" for s in STAGES))
    lines += ["", "seconds of CPU time until there is a generator, and then a first program"]
    for cell in cells:
        if cell.nodes == sizes[0]:
            lines.append(
                f"{f'{cell.patterns} patterns':21}{cell.start[0]:>8.2f}{cell.start[1]:>8.2f}"
            )
    lines += [peer["error"] for peer in peers.values() if "error" in peer]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--quick", action="store_true", help="two sizes, few turns: a minute")
    parser.add_argument("--nnsmith", metavar="PYTHON", help="an interpreter that has NNSmith")
    parser.add_argument("--executed", type=int, metavar="TESTS", help="also fuzz ONNX Runtime")
    arguments = parser.parse_args()
    signatures = Signatures.load()
    benches = [
        Bench(nodes, patterns, signatures)
        for nodes in (SIZES[:2] if arguments.quick else SIZES)
        for patterns in PATTERNS
    ]
    gc.collect()
    peers = {}
    for turn in range(3 if arguments.quick else 8):
        for bench in benches:
            bench.turn()
        print(f"  turn {turn + 1}", file=sys.stderr, flush=True)
    for bench in benches:
        bench.split()
    cells = [bench.cell for bench in benches]
    if arguments.nnsmith:
        for nodes in sorted({cell.nodes for cell in cells}):
            count = max(4, (200 if arguments.quick else 400) // nodes)
            peers[nodes] = nnsmith(arguments.nnsmith, nodes, count)
    print(table(cells, peers))
    numbers: dict[str, Any] = {"cells": [asdict(cell) for cell in cells], "nnsmith": peers}
    if arguments.executed:
        numbers["executed"] = executed(arguments.executed, 2 if arguments.quick else 5)
        print(told(numbers["executed"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
