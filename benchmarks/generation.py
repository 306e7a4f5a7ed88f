"""The generation benchmark: programs per CPU second, by size and number of known bugs.

``python -m benchmarks.generation [--json FILE] [--quick] [--nnsmith PYTHON] [--executed SECONDS]``

Every cell makes programs of so many nodes around so many patterns; cells take turns, several times,
and the best turn counts: other programs on the machine only ever slow one down. A second, slower
pass over the same programs says where the time goes: *solve* (the sampler), *facts*, *match* (the
engine: commits and taking back), *lower* (to ONNX, not part of the rate), *propose* (the rest).

``--nnsmith``: an interpreter that has NNSmith, for the same sizes in the same run:

    python3.11 -m venv .nnsmith
    .nnsmith/bin/pip install 'nnsmith[torch]==0.1.0' torch --extra-index-url \\
        https://download.pytorch.org/whl/cpu
    python -m benchmarks.generation --nnsmith .nnsmith/bin/python

``--executed``: seconds of ``reprise fuzz`` on ONNX Runtime with guidance, and as many without, in
turns: what guidance costs in tests.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.known_bugs import known_bugs
from reprise.lower.lowering import lowering
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.synth import following
from reprise.synth.generator import Generator
from reprise.synth.guide import Guide
from reprise.synth.options import Options

SIZES = (5, 10, 20, 40)
PATTERNS = (0, 40, 200)
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


def fuzz(guided: bool, seconds: float, seed: int) -> tuple[int, float]:
    """Tests that ``reprise fuzz`` executes on ONNX Runtime in so much time, and the CPU time of all
    its processes, the target's included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        command = [sys.executable, "-m", "reprise", "fuzz", "--target", "onnxruntime"]
        command += ["--time", f"{seconds:.0f}s", "--seed", str(seed), "--out", str(folder)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command if guided else [*command, "--no-guidance"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,  # its status says whether there were findings
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = subprocess.run(
            [sys.executable, "-m", "reprise", "report", str(folder), "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return int(json.loads(report.stdout)["tests"]), used


def executed(seconds: float, turns: int = 4) -> dict[str, Any]:
    """Tests per CPU second, guided and unguided in turns; the order alternates."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(turns):
        for guided in (True, False) if turn % 2 else (False, True):
            tests, used = fuzz(guided, seconds / turns, turn)
            rates[guided].append(tests / used)
    ratios = [a / b for a, b in zip(rates[True], rates[False], strict=True)]
    return {
        "guided_per_second": statistics.median(rates[True]),
        "unguided_per_second": statistics.median(rates[False]),
        "fewer_percent": 100 * (1 - statistics.median(ratios)),
        "ratios": ratios,
    }


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
    parser.add_argument("--executed", type=float, metavar="SECONDS", help="also fuzz ONNX Runtime")
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
        numbers["executed"] = found = executed(arguments.executed)
        print(
            f"\ntests a CPU second on ONNX Runtime: {found['guided_per_second']:.0f} guided, "
            f"{found['unguided_per_second']:.0f} unguided: {found['fewer_percent']:.1f} % fewer"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
