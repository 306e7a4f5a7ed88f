"""Measures the matrix: every rule about a target on that target, as many as there are.

Programs are made here, one rule after the other; a few rules are measured at a time, each on a
process of its own. Cells come out in the order of the rules, the same whatever the number of
processes. With a folder, each cell is kept in ``cells.jsonl`` when it is there, so that the same
command goes on where it was stopped; a cell is measured again if the rule, the version or the
settings have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, Protocol

from reprise.campaign.filing import LIMITS
from reprise.campaign.regress.cell import Cell, Tried, new_cell
from reprise.campaign.regress.probe import About, Effect, Probe
from reprise.campaign.regress.specimens import Collector, Specimen, Specimens, form_of
from reprise.campaign.source import known_bugs
from reprise.datalog import LimitError
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.synth.inputs import input_sets
from reprise.targets.discover import Target
from reprise.targets.process import Limits, WorkerPool
from reprise.uir.text import print_uir

CELLS = "cells.jsonl"
_UNSPELT = "the rule does not match what the target's language makes of it"


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is asked. ``runs``: sets of inputs for a program, at most; ``fresh``: new witnesses
    for a rule; ``only``: these rules (none: all)."""

    runs: int = 8
    fresh: int = 2
    seed: int = 0
    jobs: int = 1
    only: tuple[str, ...] = ()


class Watch(Protocol):
    """Told what goes on."""

    def began(self, target: str, version: str, rules: int) -> None: ...

    def measured(self, cell: Cell, again: bool) -> None:
        """``again``: it was there already."""
        ...


def measure(
    rules: RuleSet,
    target: Target,
    settings: Settings,
    watch: Watch,
    limits: Limits | None = None,
    folder: Path | None = None,
) -> Iterator[Cell]:
    """The cells of one target, in the order of the rules' names.

    Raises TargetError if the target cannot be started.
    """
    patterns = sorted(
        (p for p in known_bugs(rules, target.name) if not settings.only or p.name in settings.only),
        key=lambda p: p.name,
    )
    kept = _read(folder)
    with WorkerPool(target, settings.jobs, limits) as pool:
        versions = pool.start()
        version = next(iter(versions.values()), "")
        watch.began(str(target), version, len(patterns))
        collector = Collector(rules, target, settings.seed, settings.fresh)
        matcher = Matcher(rules, known_bugs(rules, target.name), LIMITS)
        keys = {p.name: _key(p, rules, versions, settings) for p in patterns}
        stop = Event()
        with ThreadPoolExecutor(settings.jobs, "regress") as threads:
            ahead: list[tuple[Pattern, Specimens | None, Future[list[Tried]] | None]] = []
            left = iter(patterns)
            try:
                while True:
                    while len(ahead) <= settings.jobs and (p := next(left, None)) is not None:
                        if keys[p.name] in kept:
                            ahead.append((p, None, None))
                            continue
                        programs = collector.collect(p)
                        probe = Probe(target, pool, form_of(p, target), stop)
                        work = threads.submit(_try_all, probe, p, programs, collector, settings)
                        ahead.append((p, programs, work))
                    if not ahead:
                        return
                    pattern, specimens, future = ahead.pop(0)
                    key = keys[pattern.name]
                    if future is None or specimens is None:
                        cell = kept[key]
                    else:
                        tried = _explained(pattern, specimens, future.result(), matcher)
                        cell = new_cell(
                            pattern, str(target), version, tried, specimens.left_out, key
                        )
                        _write(folder, cell)
                    watch.measured(cell, future is None)
                    yield cell
            finally:
                stop.set()
                threads.shutdown(cancel_futures=True)


def _try_all(
    probe: Probe, pattern: Pattern, specimens: Specimens, collector: Collector, settings: Settings
) -> list[Tried]:
    """Run a rule's programs. The first witness that fires, and near misses that do, are ablated."""
    about = About.rule(pattern)
    tried: list[Tried] = []
    known_cause = False
    for specimen in specimens.programs:
        sets = list(_inputs(specimen, collector, settings, probe))
        ablate = not known_cause or not specimen.is_witness
        seen = probe.observe(specimen.graph, sets, about, ablate=ablate)
        if seen.effect is not Effect.FIRES and not specimen.spelt:
            seen = replace(seen, effect=Effect.REFUSED, title=_UNSPELT)
        known_cause |= specimen.is_witness and seen.effect is Effect.FIRES
        text = print_uir(specimen.graph) if specimen.kind == "fresh" else ""
        tried.append(Tried(specimen.kind, specimen.label, seen, text))
    return tried


def _inputs(
    specimen: Specimen, collector: Collector, settings: Settings, probe: Probe
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A program's own inputs first, then others of several kinds; one set is enough for a target
    that runs nothing."""
    runs = settings.runs
    if specimen.inputs is not None:
        yield "own", specimen.inputs
        runs -= 1
    if len(probe.target.modes) == 1:
        runs = min(runs, 1 if specimen.inputs is None else 0)
    rng = Random(f"{settings.seed}/inputs/{specimen.graph.name}")
    yield from input_sets(specimen.graph, collector.policies, rng, runs)


def _explained(
    pattern: Pattern, specimens: Specimens, tried: Sequence[Tried], matcher: Matcher
) -> list[Tried]:
    """Near misses that fire, with the other rules that they match."""
    found = []
    for specimen, one in zip(specimens.programs, tried, strict=True):
        if not one.is_witness and one.seen.effect is Effect.FIRES:
            one = Tried(
                one.kind, one.label, one.seen, one.program, _others(pattern, specimen, matcher)
            )
        found.append(one)
    return found


def _others(pattern: Pattern, specimen: Specimen, matcher: Matcher) -> tuple[str, ...]:
    try:
        findings = matcher.run(specimen.graph).findings
    except LimitError:
        return ()
    names = {f.pattern.name for f in findings if f.certainty is not Truth.NO}
    return tuple(sorted(names - {pattern.name}))


# --- what is kept --------------------------------------------------------------------------------


def _key(pattern: Pattern, rules: RuleSet, versions: dict[str, str], settings: Settings) -> str:
    """Of all that a cell depends on, but for the interpreter's path."""
    text = rules.sources.get(pattern.span.file, "")
    asked = [settings.runs, settings.fresh, settings.seed]
    parts = [pattern.name, text, json.dumps(versions, sort_keys=True), json.dumps(asked)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _read(folder: Path | None) -> dict[str, Cell]:
    """The cells in a folder by key. A line that was cut off is none."""
    if folder is None or not (folder / CELLS).is_file():
        return {}
    cells = {}
    for line in (folder / CELLS).read_text("utf-8", "replace").splitlines():
        try:
            cell = Cell.of(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        cells[cell.key] = cell
    return cells


def _write(folder: Path | None, cell: Cell) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CELLS
    cut = path.is_file() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + json.dumps(cell.data()) + "\n")
