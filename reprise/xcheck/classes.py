"""Behaviour classes: a run's compilations partitioned by what held of every condition.

The paper's third part: compilations behave alike if they satisfy, violate and do not reach the same
conditions. Conditions are the constraints of the run, asked of each model, and the monitors of an
instrumented compiler. The partition is compared with what other tests go by: whether the model
compiled, and which passes were completed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from reprise.xcheck.behaviour import Seen, Vector
from reprise.xcheck.partition import Comparison, Partition
from reprise.xcheck.store import ModelRow, XRun
from reprise.xcheck.verdict import Verdict

_WORST_FIRST = (Seen.VIOLATED, Seen.ERROR, Seen.UNKNOWN, Seen.SATISFIED)


@dataclass(frozen=True, slots=True)
class Difference:
    """A condition of which two classes differ: what was seen in the first, and in the second."""

    condition: str
    here: Seen
    there: Seen


@dataclass(frozen=True)
class BehaviourClass:
    """Models with one vector. ``nearest``: the class that differs in the fewest conditions (its
    number in the list), of those that the other signals do not tell from this one if there is
    one; ``differences``: from that class."""

    models: tuple[ModelRow, ...]
    vector: Vector
    nearest: int | None
    differences: tuple[Difference, ...]

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """What became of its models, in the order of Verdict."""
        counts = Counter(row.verdict for row in self.models)
        return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}

    @property
    def passes(self) -> tuple[int, int]:
        """The fewest passes that a model of the class completed, and the most."""
        found = [row.passes for row in self.models]
        return min(found), max(found)


@dataclass(frozen=True)
class Classes:
    """A run's models by behaviour. ``signals``: pass/fail, pass coverage, then what there is of
    constraints, monitors and both; ``behaviour`` is the one of these that ``classes`` are about,
    and ``vectors`` what it goes by. ``left_out``: models that no compiler was asked about;
    ``unmonitored``: models of which the monitors' record is missing."""

    run: XRun
    signals: tuple[Partition, ...]
    behaviour: Partition
    vectors: Mapping[int, Vector]
    left_out: int
    unmonitored: int

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each finer signal against each coarser one before it."""
        plain, rest = self.signals[:2], self.signals[2:]
        found = [(plain[1], plain[0])]
        found += [(mine, other) for mine in rest for other in plain]
        if len(rest) > 1:
            found += [(rest[-1], part) for part in rest[:-1]]
        return tuple(Comparison.of(first, second) for first, second in found)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Conditions that are not the same in all classes, by name."""
        counts: Counter[tuple[str, Seen]] = Counter()
        firsts = [members[0] for members in self.behaviour.classes]
        for member in firsts:
            counts.update(self.vectors[member])
        return tuple(sorted({name for (name, _), n in counts.items() if n < len(firsts)}))

    @cached_property
    def classes(self) -> tuple[BehaviourClass, ...]:
        """Every class. Each is compared with every other, so that one alone is had sooner by
        :meth:`described`."""
        return tuple(map(self.described, range(len(self.behaviour))))

    def described(self, number: int) -> BehaviourClass:
        """The class at a place in the list."""
        members = self.behaviour.classes[number]
        rows = tuple(self._rows[member] for member in members)
        nearest = self._nearest(number)
        apart = () if nearest is None else self.differences(number, nearest)
        return BehaviourClass(rows, self.vectors[members[0]], nearest, apart)

    def differences(self, first: int, second: int) -> tuple[Difference, ...]:
        """What tells two classes apart, by their numbers in the list."""
        members = self.behaviour.classes
        return differences(self.vectors[members[first][0]], self.vectors[members[second][0]])

    def _nearest(self, number: int) -> int | None:
        cells = self._plainly[number]
        alike = sorted({i for cell in cells for i in self._alike[cell]} - {number})
        others = alike or [i for i in range(len(self.behaviour)) if i != number]
        sets, mine = self._sets, self._sets[number]
        # min keeps the first of those that are equally near
        return min(others, key=lambda i: (sets[i] ^ mine).bit_count(), default=None)

    @cached_property
    def _rows(self) -> dict[int, ModelRow]:
        return {row.number: row for row in self.run.models}

    @cached_property
    def _sets(self) -> list[int]:
        """Each class's vector as a set of bits, one for each condition and what was seen of it."""
        bits: dict[tuple[str, Seen], int] = {}
        found = []
        for members in self.behaviour.classes:
            entries = self.vectors[members[0]]
            found.append(sum(1 << bits.setdefault(entry, len(bits)) for entry in entries))
        return found

    @cached_property
    def _plainly(self) -> list[frozenset[tuple[int, int]]]:
        """What the other signals say of each class's models."""
        fate, coverage = self.signals[0].place, self.signals[1].place
        return [
            frozenset((fate[m], coverage[m]) for m in members) for members in self.behaviour.classes
        ]

    @cached_property
    def _alike(self) -> dict[tuple[int, int], list[int]]:
        """The classes that have models of which the other signals say this."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, cells in enumerate(self._plainly):
            for cell in cells:
                found.setdefault(cell, []).append(number)
        return found


class By(Enum):
    """The conditions that classes go by."""

    ALL = "all"
    CONSTRAINTS = "constraints"
    MONITORS = "monitors"


def classes_of(run: XRun, by: By = By.ALL) -> Classes:
    """The behaviour classes of a run's models. Raises ValueError if there are no models, or no
    monitors to go by; OSError if what they wrote cannot be read."""
    asked = [row for row in run.models if row.verdict is not Verdict.UNASKED]
    if not asked:
        raise ValueError(f"{run.path}: the compiler was asked about no model yet")
    monitored = read_monitors(run.monitors)
    seen = {row.number: monitored.get(row.digest, ()) for row in asked}
    constraints = {row.number: row.seen for row in asked}
    plain = (
        Partition.by("pass/fail", {row.number: compiled(row) for row in asked}),
        Partition.by("pass coverage", {row.number: frozenset(row.completed) for row in asked}),
    )
    known = {By.CONSTRAINTS: ("constraints", constraints)}
    if monitored:
        both = {m: _sorted(dict((*seen[m], *constraints[m]))) for m in constraints}
        known[By.MONITORS] = "monitors", seen
        known[By.ALL] = "constraints, monitors", both
    elif by is By.MONITORS:
        raise ValueError(f"{run.path}: no monitors were seen: was the compiler instrumented?")
    finer = {which: Partition.by(name, vectors) for which, (name, vectors) in known.items()}
    chosen = by if by in known else By.CONSTRAINTS
    return Classes(
        run,
        (*plain, *finer.values()),
        finer[chosen],
        known[chosen][1],
        len(run.models) - len(asked),
        sum(row.digest not in monitored for row in asked) if monitored else 0,
    )


def compiled(row: ModelRow) -> bool:
    """Whether the compiler took the model, as it should or not."""
    return row.verdict in (Verdict.ACCEPTED, Verdict.ALLOWED, Verdict.COMPILED)


def differences(first: Vector, second: Vector) -> tuple[Difference, ...]:
    """The conditions of which two vectors differ, by name."""
    here, there = dict(first), dict(second)
    return tuple(
        Difference(name, here.get(name, Seen.NOT_REACHED), there.get(name, Seen.NOT_REACHED))
        for name in sorted(here.keys() | there.keys())
        if here.get(name) is not there.get(name)
    )


# --- what monitors wrote --------------------------------------------------------------------------


def read_monitors(file: Path) -> dict[str, Vector]:
    """What the monitors of an instrumented compiler saw, by models' digests. A model whose
    compilation ended the process has only the lines of what was seen first; of a model that was
    compiled several times, the last time counts. Nothing if there is no file; a line that is no
    record (the process was killed in it) is passed over."""
    if not file.exists():
        return {}
    whole: dict[str, dict[str, Seen]] = {}
    early: dict[str, tuple[str, dict[str, Seen]]] = {}
    for line in _records(file):
        label = line.get("label")
        if not isinstance(label, str):
            continue
        try:
            if line["kind"] == "run":
                checks = line["checks"].items()
                whole[label] = {str(k): Seen(check["verdict"]) for k, check in checks}
                early.pop(label, None)
            elif line["kind"] == "first":
                run = str(line["run"])
                if label not in early or early[label][0] != run:
                    early[label] = run, {}
                _add(early[label][1], str(line["check"]), Seen(line["verdict"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    seen = {**whole, **{label: checks for label, (_, checks) in early.items()}}
    return {
        label: _sorted({k: v for k, v in checks.items() if v is not Seen.NOT_REACHED})
        for label, checks in seen.items()
    }


def _sorted(seen: Mapping[str, Seen]) -> Vector:
    return tuple((name, seen[name]) for name in sorted(seen))


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with open(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _add(checks: dict[str, Seen], key: str, seen: Seen) -> None:
    known = checks.get(key, seen)
    checks[key] = min(known, seen, key=_WORST_FIRST.index)
