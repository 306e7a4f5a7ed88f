"""What a run has come to: by class and verdict, by constraint, and its findings in groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from reprise.xcheck.pool import Pool
from reprise.xcheck.store import Declared, ModelRow, XRun
from reprise.xcheck.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one constraint with one verdict that ended in one way."""

    constraint: Declared
    verdict: Verdict
    signature: str
    rows: tuple[ModelRow, ...]

    @property
    def first(self) -> ModelRow:
        """The first of its findings."""
        return self.rows[0]

    @property
    def words(self) -> str:
        """What happened, for people."""
        return self.verdict.told(warned=all(row.warned for row in self.rows))


@dataclass(frozen=True, slots=True)
class Coverage:
    """A constraint in a run: how often it was violated, what came of it, how far compilers got.
    ``aside``: why there is no model (any more)."""

    constraint: Declared
    negated: int
    verdicts: dict[Verdict, int]
    valid: dict[Verdict, int]
    least: int | None
    most: int | None
    rank: str
    aside: str | None
    no_valid: str | None

    @property
    def is_untold(self) -> bool:
        """Whether models violate it, and the compiler looked at none of them: it has no operator or
        element type of theirs."""
        return bool(self.verdicts) and all(verdict.says_nothing for verdict in self.verdicts)


@dataclass(frozen=True)
class Summary:
    """A run in figures."""

    run: XRun
    classes: dict[str, Counter[Verdict]]
    coverage: tuple[Coverage, ...]
    groups: tuple[Group, ...]

    @property
    def explored(self) -> int:
        """Constraints that some model violates."""
        return sum(1 for c in self.coverage if c.negated)


def summarise(run: XRun) -> Summary:
    """The figures of a run."""
    declared = {c.name: c for c in run.constraints}
    classes: dict[str, Counter[Verdict]] = {}
    groups: dict[tuple[str, Verdict, str], list[ModelRow]] = {}
    pool = Pool.of(declared)
    for row in run.models:
        classes.setdefault(declared[row.constraint].klass, Counter())[row.verdict] += 1
        if row.verdict.is_finding:
            groups.setdefault((row.constraint, row.verdict, row.signature), []).append(row)
        if not row.valid:
            pool.record(row.constraint, row.passes)
    found = [
        Group(declared[name], verdict, signature, tuple(rows))
        for (name, verdict, signature), rows in groups.items()
    ]
    order = list(Verdict)
    found.sort(key=lambda g: (order.index(g.verdict), -len(g.rows), g.first.number))
    coverage = tuple(_coverage(run, c, pool) for c in run.constraints)
    return Summary(run, dict(sorted(classes.items())), coverage, tuple(found))


def _coverage(run: XRun, constraint: Declared, pool: Pool) -> Coverage:
    rows = [row for row in run.models if row.constraint == constraint.name]
    violating = [row for row in rows if not row.valid]
    passes = [row.passes for row in violating]
    aside = {a.valid: a.reason for a in run.set_aside if a.constraint == constraint.name}
    return Coverage(
        constraint,
        len(violating),
        dict(Counter(row.verdict for row in violating)),
        dict(Counter(row.verdict for row in rows if row.valid)),
        min(passes, default=None),
        max(passes, default=None),
        str(pool[constraint.name].rank),
        aside.get(False),
        aside.get(True),
    )


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary for tools; a stable form."""
    run = summary.run
    return {
        "run": str(run.path),
        "target": run.asked.target,
        "versions": run.versions,
        "seed": run.asked.seed,
        "device": run.asked.device,
        "models": len(run.models),
        "seconds": round(run.seconds, 3),
        "constraints": len(run.constraints),
        "violated": summary.explored,
        "classes": {
            klass: {v.value: counts[v] for v in Verdict if counts[v]}
            for klass, counts in summary.classes.items()
        },
        "coverage": [
            {
                "constraint": c.constraint.name,
                "class": c.constraint.klass,
                "from": c.constraint.source,
                "declared": c.constraint.declared,
                "negated": c.negated,
                "verdicts": {v.value: n for v, n in c.verdicts.items()},
                "valid_models": {v.value: n for v, n in c.valid.items()},
                "told": c.negated > 0 and not c.is_untold,
                "passes": None if c.least is None else [c.least, c.most],
                "rank": c.rank,
                "set_aside": c.aside,
                "no_valid_model": c.no_valid,
            }
            for c in summary.coverage
        ],
        "findings": [
            {
                "constraint": g.constraint.name,
                "class": g.constraint.klass,
                "from": g.constraint.source,
                "verdict": g.verdict.value,
                "count": len(g.rows),
                "stage": g.first.stage,
                "passes": g.first.passes,
                "message": g.first.message,
                "program": g.first.program,
                "warned": any(row.warned for row in g.rows),
                "folders": [row.folder for row in g.rows if row.folder is not None],
            }
            for g in summary.groups
        ],
    }
