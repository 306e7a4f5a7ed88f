"""How soon the distinct defects of a target are met, if what is met is kept away from afterwards.

``python -m benchmarks.einsum_kin [--tests N] [--seeds N] TARGET ...`` makes tests as a campaign
does, for each target twice: under no rules, and under the rules about the defects met so far, each
from the test on after the one that meets it. What a test reports is what the shipped rules say of
its kernels; the compiler is not run, so that many seeds are affordable. How well the rules say it
is what ``benchmarks.einsum_targets`` shows.

A test reports one defect, as the oracle does: one that ends the process hides all others in the
test, and a wrong result comes before a crash. Printed are, as means over seeds, the reports there
are and the distinct defects they are of, and how many tests it takes to meet the first, the second
and so on; a defect that is not met within N tests counts as N, which is marked.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import mean

from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files
from reprise.einsum.testing import KernelTest, KernelTests, TestRequest, kernel_options
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import Untranslatable, function
from reprise.einsum.validity import KernelRules, load_kernel_rules

ENDING = frozenset({"taco_transposed"})
"""Defects that end the process: a segmentation fault."""


class Steered(KernelTests):
    """Tests away from some of a target's known bugs, by the names of their rules."""

    def __init__(self, request: TestRequest, rules: KernelRules, known: Collection[str]) -> None:
        self._rules = rules
        self._known = frozenset(known)
        self._avoided: frozenset[str] = frozenset()
        super().__init__(request)

    def avoid(self, names: Collection[str]) -> None:
        self._avoided |= frozenset(names)
        self._start()

    def _start(self) -> None:
        denies = {
            name: deny
            for name, deny in self._rules.denies.items()
            if name not in self._known or name in self._avoided
        }
        self._under(replace(self._rules, denies=denies), self._avoided)


@dataclass(frozen=True)
class Met:
    """One seed's result: reports by defect, and the test that met each first."""

    reports: Counter[str]
    first: dict[str, int]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.einsum_kin")
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--tests", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    for target in options.targets:
        bugs = KnownKernels(target, bug_files(target))()
        print(f"{target}: {len(bugs.names)} rules, {options.tests} tests, {options.seeds} seeds")
        for learns in (False, True):
            runs = [_run(target, bugs, n, options.tests, learns) for n in range(options.seeds)]
            _print("away from what was met" if learns else "under no rules", runs, options.tests)
    return 0


def _run(target: str, bugs: KernelBugs, seed: int, tests: int, learns: bool) -> Met:
    rules = load_kernel_rules(bug_files(target))
    source = Steered(TestRequest(target, seed, kernel_options(target, {})), rules, bugs.names)
    met = Met(Counter(), {})
    for number in range(tests):
        defect = _reported(source.program(number).program, target, bugs)
        if defect is None:
            continue
        met.reports[defect] += 1
        if defect not in met.first:
            met.first[defect] = number + 1
            if learns:
                source.avoid([defect])
    return met


def _reported(test: KernelTest, target: str, bugs: KernelBugs) -> str | None:
    """The defect that a test reports."""
    found = [
        match.rule
        for name, variant in test.variants.items()
        if _says(target, name, test)
        for match in bugs.matches(variant.kernels)
    ]
    wrong = [name for name in found if "wrong_result" in bugs.symptoms[name]]
    return next(iter([*(n for n in found if n in ENDING), *wrong, *found]), None)


def _says(target: str, name: str, test: KernelTest) -> bool:
    try:
        function(BACKENDS[target].translator, name, test.variants[name].kernels)
    except Untranslatable:
        return False
    return True


def _print(title: str, runs: list[Met], tests: int) -> None:
    reports = mean(run.reports.total() for run in runs)
    distinct = mean(len(run.first) for run in runs)
    print(f"  {title:24} {reports:6.1f} reports of {distinct:.1f} defects", end="; tests to meet:")
    for place in range(max(len(run.first) for run in runs)):
        ordered = [sorted(run.first.values()) for run in runs]
        numbers = [firsts[place] if place < len(firsts) else tests for firsts in ordered]
        late = sum(place >= len(firsts) for firsts in ordered)
        print(f" {'>' if late else ''}{mean(numbers):.0f}", end="")
        print(f" ({late} not)" if late else "", end="")
    print()


if __name__ == "__main__":
    sys.exit(main())
