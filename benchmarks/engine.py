"""The engine benchmark: cost per node as a graph grows, against other engines, in one run.

``python -m benchmarks.engine [--json FILE] [--plot FILE.png] [--quick]``

Each cell adds the nodes of one graph one by one; after each, every completed match is derived. A
cell stops when its time is up and then gives the mean over the nodes that it reached (marked
``~``: too low for engines that slow down as the graph grows). Engines that derive all matches are
checked to have found equally many. Times are CPU time of the one process. Garbage collection is
frozen before a cell and off during it, for all alike: what a long-running host does after loading.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import workload
from benchmarks.peers import COMPETITORS, Competitor, Ours
from reprise.datalog import Database, codecache

SIZES = (10, 1_000, 10_000)
PATTERNS = (1, 6, 40, 200)
WARM_UP = 1_500


@dataclass(frozen=True)
class Cell:
    """One measurement: microseconds per node; ``nodes`` were reached of those wanted."""

    engine: str
    patterns: int
    size: int
    microseconds: float
    nodes: int
    matches: int | None

    def text(self) -> str:
        mark = "" if self.nodes == self.size else "~"
        digits = 1 if self.microseconds < 100 else 0
        return f"{mark}{self.microseconds:,.{digits}f}"


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector out of the way."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def seconds(action: Callable[[], object]) -> float:
    """How long ``action`` takes, in CPU time: other programs disturb that less."""
    start = time.process_time()
    action()
    return time.process_time() - start


def timed(action: Callable[[], object]) -> float:
    """How long ``action`` takes without the collector."""
    with without_collector():
        return seconds(action)


# --- the growing graph -------------------------------------------------------------------------


def measure(name: str, patterns: int, size: int, budget: float) -> Cell:
    """One cell of a peer: a fresh engine, as many nodes as the budget allows."""
    engine = COMPETITORS[name](workload.patterns(patterns))
    graph = workload.graph(size)
    reached = 0

    def run() -> None:
        nonlocal reached
        deadline = time.perf_counter() + budget
        for facts in graph:
            engine.add(facts)
            reached += 1
            if time.perf_counter() > deadline:
                return

    taken = timed(run)
    found = engine.matches() if engine.complete and reached == size else None
    return Cell(name, patterns, size, taken / reached * 1e6, reached, found)


def warm(patterns: int) -> Ours:
    """Our engine with its rules compiled, and empty."""
    engine = Ours(workload.patterns(patterns))
    database = engine.database
    start = database.mark()
    add_all(engine, workload.graph(WARM_UP, seed=3))
    database.undo(start)
    database.release(start)
    return engine


def add_all(engine: Competitor, graph: Iterable[list[workload.Fact]]) -> None:
    for facts in graph:
        engine.add(facts)


def measure_ours(engine: Ours, patterns: int, size: int, repeats: int) -> Cell:
    """The best of some repeats; small graphs many times, so that the clock can tell."""
    database = engine.database
    graph = workload.graph(size)
    rounds = max(1, 2_000 // size)
    start = database.mark()
    matches = 0
    best = float("inf")
    for _ in range(repeats):
        taken = 0.0
        with without_collector():
            for _ in range(rounds):
                database.undo(start)
                taken += seconds(lambda: add_all(engine, graph))
        matches = engine.matches()
        best = min(best, taken / rounds)
    database.undo(start)
    database.release(start)
    return Cell("reprise", patterns, size, best / size * 1e6, size, matches)


def reject_ratio(engine: Ours, size: int, repeats: int) -> float:
    """What rejecting a node and adding it again costs, in plain additions."""
    database = engine.database
    graph = workload.graph(size)
    start = database.mark()

    def retry() -> None:
        for facts in graph:
            with database.propose(facts):
                pass
            engine.add(facts)

    ratios = []
    for _ in range(repeats):
        once = timed(lambda: add_all(engine, graph))
        database.undo(start)
        ratios.append(timed(retry) / once)
        database.undo(start)
    database.release(start)
    return statistics.median(ratios)


# --- batches -----------------------------------------------------------------------------------


def batch_seconds(patterns: int, size: int) -> tuple[float, float, float]:
    """All matches of one graph in one commit: making the database, cold, and compiled before."""
    facts = [fact for owned in workload.graph(size) for fact in owned]
    core = workload.program(workload.patterns(patterns))
    made: list[Database] = []
    create = timed(lambda: made.append(Database(core)))
    database = made[0]
    start = database.mark()
    cold = timed(lambda: database.commit(facts))
    warm_times = []
    for _ in range(3):
        database.undo(start)
        warm_times.append(timed(lambda: database.commit(facts)))
    return create, cold, min(warm_times)


def start_seconds(patterns: int, nodes: int = 100) -> tuple[float, float]:
    """Making a database and adding its first nodes one by one: with nothing kept, and with all.

    As in new processes: what the process itself remembers of compiled rules is forgotten.
    """
    core = workload.program(workload.patterns(patterns))
    graph = workload.graph(nodes)

    def start(folder: Path) -> Database:
        database = Database(core, cache=folder)
        for facts in graph:
            with database.propose(facts) as proposal:
                proposal.accept()
        return database

    def forgetful(folder: Path) -> float:
        codecache.forget()
        return timed(lambda: start(folder))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold = min(forgetful(folder / str(i)) for i in range(3))
        start(folder).save()
        return cold, min(forgetful(folder) for _ in range(3))


def closure_seconds(budget: float) -> dict[str, float]:
    """Transitive closure, 1,000 nodes and 3,000 arcs, in one go, by engine."""
    arcs = workload.closure_arcs()
    core = workload.closure_program()
    found: dict[str, float] = {}
    counts = set()

    def ours() -> None:
        database = Database(core)
        database.commit({"arc": arcs})
        counts.add(database.count("path"))

    def clingo() -> None:
        from reprise.datalog.clingo_engine import ClingoEngine

        engine = ClingoEngine(core)
        engine.commit({"arc": arcs})
        counts.add(engine.count("path"))

    def sqlite() -> None:
        import sqlite3

        database = sqlite3.connect(":memory:")
        database.execute("create table arc(a int, b int)")
        database.executemany("insert into arc values (?, ?)", arcs)
        database.execute("create index by_a on arc(a)")
        query = (
            "with recursive path(a, b) as (select a, b from arc union "
            "select path.a, arc.b from path join arc on path.b = arc.a) select count(*) from path"
        )
        counts.add(database.execute(query).fetchone()[0])

    def pydatalog() -> None:
        from reprise.datalog.pydatalog_engine import PyDatalogEngine

        engine = PyDatalogEngine(core)
        engine.commit({"arc": arcs})
        counts.add(engine.count("path"))

    runs = [("reprise", ours), ("sqlite", sqlite), ("clingo", clingo)]
    if budget > 5:
        runs.append(("pyDatalog", pydatalog))
    for name, run in runs:
        found[name] = min(timed(run) for _ in range(3 if name == "reprise" else 1))
    assert len(counts) == 1, f"engines disagree about the closure: {counts}"
    return found


# --- the whole ---------------------------------------------------------------------------------


def grow(budget: float, quick: bool) -> tuple[list[Cell], dict[str, float]]:
    """All cells of the growing graph, and the reject-and-retry ratios."""
    cells = []
    ratios = {}
    sizes = SIZES[:2] if quick else SIZES
    for patterns in PATTERNS:
        engine = warm(patterns)
        for size in sizes:
            cells.append(measure_ours(engine, patterns, size, 2 if quick else 5))
            report(cells[-1])
        ratios[f"P={patterns}"] = reject_ratio(engine, 1_000, 3 if quick else 7)
        del engine
        for name in COMPETITORS:
            if name != "reprise":
                for size in sizes:
                    cells.append(measure(name, patterns, size, budget))
                    report(cells[-1])
    agree(cells)
    return cells, ratios


def report(cell: Cell) -> None:
    print(f"  {cell.engine:10} P={cell.patterns:<4} N={cell.size:<6} {cell.text():>12}", flush=True)


def agree(cells: list[Cell]) -> None:
    """Every engine that reached the end found the same number of matches."""
    found: dict[tuple[int, int], dict[str, int]] = {}
    for cell in cells:
        if cell.matches is not None:
            found.setdefault((cell.patterns, cell.size), {})[cell.engine] = cell.matches
    for place, counts in found.items():
        assert len(set(counts.values())) == 1, f"engines disagree at {place}: {counts}"


def table(cells: list[Cell]) -> str:
    """Engines by columns of (P, N), with our advantage over each."""
    places = sorted({(cell.patterns, cell.size) for cell in cells})
    by_place = {(cell.engine, cell.patterns, cell.size): cell for cell in cells}
    lines = ["µs per node     " + "".join(f"{f'P={p} N={n}':>16}" for p, n in places)]
    for name in COMPETITORS:
        shown = []
        for p, n in places:
            cell = by_place.get((name, p, n))
            ours = by_place[("reprise", p, n)].microseconds
            ratio = (
                "" if cell is None or name == "reprise" else f" {cell.microseconds / ours:,.0f}×"
            )
            shown.append("–" if cell is None else cell.text() + ratio)
        lines.append(f"{name:16}" + "".join(f"{text:>16}" for text in shown))
    return "\n".join(lines)


def plot(cells: list[Cell], path: Path) -> None:
    """Cost per node against the graph's size and against the number of patterns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    most, largest = max(c.patterns for c in cells), max(c.size for c in cells)
    for name in COMPETITORS:
        by_size = [
            (c.size, c.microseconds) for c in cells if (c.engine, c.patterns) == (name, most)
        ]
        by_count = [
            (c.patterns, c.microseconds) for c in cells if (c.engine, c.size) == (name, largest)
        ]
        left.plot(*zip(*by_size, strict=True), marker="o", label=name)
        right.plot(*zip(*by_count, strict=True), marker="o", label=name)
    left.set(
        xscale="log",
        yscale="log",
        xlabel=f"nodes in the graph ({most} patterns)",
        ylabel="µs per added node",
    )
    right.set(xscale="log", xlabel=f"patterns ({largest:,} nodes)")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--plot", type=Path, help="draw cost per node into this PNG file")
    parser.add_argument("--quick", action="store_true", help="small graphs, about a minute")
    arguments = parser.parse_args()
    budget = 1.0 if arguments.quick else 8.0
    cells, ratios = grow(budget, arguments.quick)
    size = 1_000 if arguments.quick else 10_000
    batches = {f"P={p}": batch_seconds(p, size) for p in PATTERNS}
    starts = {f"P={p}": start_seconds(p) for p in PATTERNS}
    closure = closure_seconds(budget)
    print()
    print(table(cells))
    print(f"\nreject and retry, in additions: {_row(ratios, '{:.2f}×')}")
    print(f"\nall matches of {size:,} nodes in one commit")
    for name, (create, cold, compiled) in batches.items():
        print(
            f"  {name:6} create {create * 1e3:.0f} ms, cold {cold * 1e3:.0f} ms, "
            f"compiled {compiled * 1e3:.0f} ms"
        )
    print("\na database and its first 100 nodes")
    for name, (cold, kept) in starts.items():
        print(f"  {name:6} cold {cold * 1e3:.0f} ms, from the cache {kept * 1e3:.0f} ms")
    print(f"\ntransitive closure: {_row(closure, '{:.3f} s')}")
    if arguments.json:
        numbers = {
            "cells": [asdict(cell) for cell in cells],
            "reject_and_retry": ratios,
            "batch_seconds": batches,
            "start_seconds": starts,
            "closure_seconds": closure,
        }
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    if arguments.plot:
        plot(cells, arguments.plot)


def _row(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


if __name__ == "__main__":
    main()
