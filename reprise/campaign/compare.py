"""Several runs of one target side by side: the first paper's RQ1 and RQ2.

Runs fall into *configurations*: what they have in common but for the seed. Each configuration is
compared with the *baseline* (the unguided one, else the first given), seed by seed where both have
the seed. Because a run under a time limit may have done more tests than its partner, what was found
is compared at equal tests: the first N of both, N being the smaller number; totals are of whole
runs.

Intervals hold the true value with 95 % confidence: Wilson's for proportions, the bootstrap over
seeds (percentiles of resampled runs, from an explicit generator) for means and for reductions. Two
seeds or fewer give no bootstrap interval: there is nothing to resample.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TypeVar

from reprise.campaign.metrics import Rate, Redundancy, chance_of_missing, rate, redundancy
from reprise.campaign.records import Defect, End, RunInfo
from reprise.campaign.store import Run
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError

T = TypeVar("T")
RESAMPLES = 2000
CONFIDENCE = 0.95
ENOUGH = 3
"""Seeds from which a bootstrap interval says anything."""
_LONG = 20
"""Characters of an option that a configuration's name has."""
_NOT_COMPARED = {"keep", "rules"}
"""Options that change neither programs nor verdicts; rules are compared by their hash."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and an interval where there are enough seeds for one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, as it is compared: reports by defect, of the first ``tests`` tests."""

    run: Run
    tests: int
    counts: Counter[str]

    @property
    def seed(self) -> int:
        return self.run.info.seed

    @property
    def redundancy(self) -> Redundancy:
        return redundancy(self.counts.values())

    @property
    def rejected(self) -> int:
        return sum(s.rejected for s in self.run.suppressed.values())


@dataclass(frozen=True)
class Configuration:
    """Runs that differ in their seed only, whole. ``name`` tells it from the others."""

    name: str
    guided: bool
    runs: tuple[Outcome, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(outcome.seed for outcome in self.runs)

    @property
    def tests(self) -> int:
        return sum(outcome.tests for outcome in self.runs)

    @property
    def counts(self) -> Counter[str]:
        """Reports by defect, all seeds together."""
        return sum((outcome.counts for outcome in self.runs), Counter())

    @property
    def pooled(self) -> Redundancy:
        """B, U and the rest of all seeds together."""
        return redundancy(self.counts.values())

    @property
    def report_rate(self) -> Rate:
        """Reports a test, with Wilson's interval."""
        return rate(sum(self.counts.values()), self.tests, CONFIDENCE)

    def mean(self, measure: Callable[[Outcome], float], rng: Random) -> Estimate:
        """The mean of a measure over the seeds."""
        values = [measure(outcome) for outcome in self.runs]
        return bootstrap(values, lambda drawn: sum(drawn) / len(drawn), rng)


@dataclass(frozen=True, slots=True)
class Fate:
    """One defect in two configurations at equal tests: reports, and in how many of the shared seeds
    it was found. ``avoided``: its rule steers the other configuration, so that it is missed on
    purpose. ``by_chance``: how likely the other configuration misses it by chance, if it is as
    frequent as in the baseline (§5.1)."""

    key: str
    title: str
    baseline: int
    other: int
    baseline_seeds: int
    other_seeds: int
    avoided: bool
    by_chance: float | None

    @property
    def found_by(self) -> str:
        """``both``, ``baseline`` or ``other``."""
        return "both" if self.baseline and self.other else "baseline" if self.baseline else "other"


@dataclass(frozen=True)
class Comparison:
    """A configuration against the baseline, over the seeds that both have.

    ``tests``: equal tests, all seeds together. ``known``: reports of known defects that the other
    configuration still makes, of its tests. ``removed``: the share of the baseline's reports
    that is gone; ``known_removed``: of those of known defects; None of nothing. ``executed``: how
    many fewer tests were executed, as a share (negative: more), whole runs.
    ``unmet``: rules that were there for the target and whose bug neither met.
    """

    baseline: str
    other: str
    seeds: tuple[int, ...]
    tests: int
    fates: tuple[Fate, ...]
    removed: Estimate | None
    repeats_removed: Estimate | None
    known_removed: Estimate | None
    known: Rate
    executed: Estimate | None
    unmet: tuple[str, ...]

    @property
    def lost(self) -> tuple[Fate, ...]:
        """Found by the baseline only, and not because a rule avoids them."""
        return tuple(f for f in self.fates if f.found_by == "baseline" and not f.avoided)

    @property
    def avoided(self) -> tuple[Fate, ...]:
        """Found by the baseline only, and avoided by a rule."""
        return tuple(f for f in self.fates if f.found_by == "baseline" and f.avoided)

    @property
    def gained(self) -> tuple[Fate, ...]:
        return tuple(f for f in self.fates if f.found_by == "other")

    @property
    def both(self) -> tuple[Fate, ...]:
        return tuple(f for f in self.fates if f.found_by == "both")


class Comparisons:
    """All of it. ``verdicts``: which findings count (the paper counts crashes). ``partial``: take
    runs that did not come to their end too.

    Raises UsageError for what cannot be compared.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        verdicts: Iterable[Verdict] = (),
        *,
        partial: bool = False,
        seed: int = 0,
    ) -> None:
        _check(runs, partial)
        self.runs = tuple(runs)
        self.verdicts = tuple(verdicts) or tuple(v for v in Verdict if v.is_finding)
        self.rng = Random(seed)
        self._keys = _Keys(runs)

    @property
    def target(self) -> str:
        return self.runs[0].info.target

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """The baseline first, then in the order in which they were given."""
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(_configuration(run.info), []).append(run)
        found = sorted(groups.values(), key=lambda group: group[0].info.guided)
        names = _names([group[0].info for group in found])
        made = []
        for name, group in zip(names, found, strict=True):
            ordered = sorted(group, key=lambda run: run.info.seed)
            for one, next_ in pairwise(ordered):
                if one.info.seed == next_.info.seed:
                    raise UsageError(
                        f"{one.path} and {next_.path} are of one configuration and one seed "
                        f"({one.info.seed}): they would count twice"
                    )
            outcomes = tuple(self._outcome(run, run.tests) for run in ordered)
            made.append(Configuration(name, group[0].info.guided, outcomes))
        return tuple(made)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every other configuration against the baseline."""
        baseline, *others = self.configurations
        return tuple(self._compared(baseline, other) for other in others)

    def title(self, key: str) -> str:
        """A defect's title, as the first run that has it gives it."""
        return self._keys.titles[key]

    def _outcome(self, run: Run, tests: int) -> Outcome:
        """The run's first ``tests`` tests."""
        counts: Counter[str] = Counter()
        wanted = {
            (s.verdict, s.signature, s.rule): self._keys.of(defect, run)
            for defect in run.defects
            for s in defect.signatures
            if s.verdict in self.verdicts
        }
        for finding in run.findings:
            key = wanted.get((finding.verdict, finding.signature, finding.rule))
            if key is not None and finding.index < tests:
                counts[key] += 1
        return Outcome(run, tests, counts)

    def _compared(self, baseline: Configuration, other: Configuration) -> Comparison:
        ours = {outcome.seed: outcome.run for outcome in other.runs}
        pairs = []
        for outcome in baseline.runs:
            partner = ours.get(outcome.seed)
            if partner is not None:
                tests = min(outcome.run.tests, partner.tests)
                pairs.append((self._outcome(outcome.run, tests), self._outcome(partner, tests)))
        rules = set(other.runs[0].run.info.rules)
        named = other.guided and not other.runs[0].run.info.options.get("steer")
        steering = {f"rule:{rule}" for rule in rules} if named else set()
        fates = self._fates(pairs, steering)
        met = {fate.key for fate in fates}
        before = [a.redundancy for a, _ in pairs]
        after = [b.redundancy for _, b in pairs]
        return Comparison(
            baseline=baseline.name,
            other=other.name,
            seeds=tuple(a.seed for a, _ in pairs),
            tests=sum(a.tests for a, _ in pairs),
            fates=fates,
            removed=self._less(
                [(a.reports, b.reports) for a, b in zip(before, after, strict=True)]
            ),
            repeats_removed=self._less(
                [(a.repeats, b.repeats) for a, b in zip(before, after, strict=True)]
            ),
            known_removed=self._less(
                [(_reports_of(a, steering), _reports_of(b, steering)) for a, b in pairs]
            ),
            known=rate(
                sum(_reports_of(b, steering) for _, b in pairs),
                sum(b.tests for _, b in pairs),
                CONFIDENCE,
            ),
            executed=self._less([(a.run.tests, b.run.tests) for a, b in pairs]),
            unmet=tuple(sorted(rule for rule in rules if f"rule:{rule}" not in met)),
        )

    def _fates(
        self, pairs: Sequence[tuple[Outcome, Outcome]], steering: set[str]
    ) -> tuple[Fate, ...]:
        keys = sorted({key for pair in pairs for outcome in pair for key in outcome.counts})
        tests = sum(a.tests for a, _ in pairs)
        fates = []
        for key in keys:
            before = sum(a.counts[key] for a, _ in pairs)
            after = sum(b.counts[key] for _, b in pairs)
            missing = chance_of_missing(before / tests, tests) if before and not after else None
            fates.append(
                Fate(
                    key,
                    self.title(key),
                    before,
                    after,
                    sum(1 for a, _ in pairs if a.counts[key]),
                    sum(1 for _, b in pairs if b.counts[key]),
                    key in steering,
                    missing,
                )
            )
        return tuple(sorted(fates, key=lambda f: (-f.baseline, -f.other, f.key)))

    def _less(self, pairs: Sequence[tuple[int, int]]) -> Estimate | None:
        """The share of the first numbers, all together, that the second ones are less by."""
        if not sum(a for a, _ in pairs):
            return None

        def share(drawn: Sequence[tuple[int, int]]) -> float | None:
            before, after = sum(a for a, _ in drawn), sum(b for _, b in drawn)
            return 1 - after / before if before else None

        return bootstrap(pairs, share, self.rng)


def bootstrap(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    rng: Random,
    resamples: int = RESAMPLES,
) -> Estimate:
    """A statistic with its percentile interval. A resample for which it is None does not count.

    Raises ValueError if it is None of the values themselves.
    """
    value = statistic(values)
    if value is None:
        raise ValueError("the statistic says nothing of these values")
    if len(values) < ENOUGH:
        return Estimate(value)
    drawn = (statistic(rng.choices(values, k=len(values))) for _ in range(resamples))
    order = sorted(number for number in drawn if number is not None)
    tail = (1 - CONFIDENCE) / 2
    last = len(order) - 1
    return Estimate(value, order[round(tail * last)], order[round((1 - tail) * last)])


class _Keys:
    """What tells defects apart across runs: the rule, else the signature.

    A run that does not know a rule files the same failure under its bare signature. If another run
    files that signature under exactly one rule, which the first does not know, both are one defect.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._filed: dict[str, set[str]] = defaultdict(set)
        for run in runs:
            for defect in run.defects:
                if defect.rule is not None:
                    for signature in defect.signatures:
                        self._filed[signature.signature].add(defect.rule)
        self.titles: dict[str, str] = {}
        for run in runs:
            for defect in run.defects:
                self.titles.setdefault(self.of(defect, run), defect.title)

    def of(self, defect: Defect, run: Run) -> str:
        if defect.rule is None:
            rules = self._filed.get(defect.signatures[0].signature, set()) - set(run.info.rules)
            if len(rules) == 1:
                return f"rule:{next(iter(rules))}"
        return defect.key


def _check(runs: Sequence[Run], partial: bool) -> None:
    if len(runs) < 2:
        raise UsageError("there is nothing to compare: give two runs or more")
    seen: set[Path] = set()
    for run in runs:
        if run.path.resolve() in seen:
            raise UsageError(f"{run.path} is given twice")
        seen.add(run.path.resolve())
    targets = sorted({run.info.target for run in runs})
    if len(targets) > 1:
        raise UsageError(
            f"the runs are of different targets ({', '.join(targets)}): compare those of one"
        )
    unfinished = [
        str(run.path) for run in runs if not run.sessions or run.sessions[-1].end is not End.DONE
    ]
    if unfinished and not partial:
        raise UsageError(
            f"not complete: {', '.join(unfinished)}; go on with them (reprise fuzz --resume), or "
            "compare what is there with --partial"
        )
    empty = next((run for run in runs if not run.tests), None)
    if empty is not None:
        raise UsageError(f"{empty.path}: no test has ended yet")


def _settings(info: RunInfo) -> dict[str, object]:
    """What makes runs of one configuration: everything but the seed."""
    options = {k: v for k, v in info.options.items() if k not in _NOT_COMPARED}
    flat: dict[str, object] = {"rules": info.rules_hash}
    for key, value in options.items():
        if isinstance(value, dict):
            flat |= {str(name): inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat | dict(info.versions)


def _configuration(info: RunInfo) -> str:
    return json.dumps([info.guided, _settings(info)], sort_keys=True, default=str)


def _names(infos: Sequence[RunInfo]) -> list[str]:
    """A short name for each configuration: what it does not share with all others."""
    settings = [_settings(info) for info in infos]
    names = sorted({name for each in settings for name in each})
    varying = [n for n in names if len({json.dumps(s.get(n), default=str) for s in settings}) > 1]
    result: list[str] = []
    for info, setting in zip(infos, settings, strict=True):
        parts = ["guided" if info.guided else "unguided"]
        for name in varying:
            if name == "rules":
                number = len(info.rules)
                word = "rule" if number == 1 else "rules"
                parts.append(f"{number} {word} ({info.rules_hash[:6]})")
            elif isinstance(setting.get(name), bool):
                parts.append(name if setting[name] else f"no {name}")
            elif setting.get(name) is not None:
                value = setting[name]
                shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                parts.append(f"{name} {shown if len(shown) <= _LONG else f'{shown[:_LONG]}…'}")
        name = ", ".join(parts)
        result.append(name if name not in result else f"{name} (#{len(result) + 1})")
    return result


def _reports_of(outcome: Outcome, keys: set[str]) -> int:
    return sum(count for key, count in outcome.counts.items() if key in keys)
