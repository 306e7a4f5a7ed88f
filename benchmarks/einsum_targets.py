"""Kernels on compilers: tests a second, what keeping away from known bugs costs, what rules name.

``python -m benchmarks.einsum_targets [--count N] [--json] [--rules FILE] TARGET@PYTHON ...`` makes
N tests for each target twice, with its known bugs and away from them, and runs the first as a
campaign does: one job for a kernel and its variants. Every kernel that is run is then held against
the rules about the target's bugs, those that ship and (distilled ones, say) those given by
``--rules``, of which it is told how many of the kernels that a rule that ships is right about they
name too.

Seconds are of CPU: *making* of this process, *running* of the target's, with what it starts (a C
compiler for TACO). Of the kernels that a rule names: those that fail as it says; those that are
right, for a wrong result needs data that show it; those that the target refuses before it comes to
that; those that fail otherwise. Exit code 1: a kernel fails that no rule names.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from reprise.campaign.filing import SYMPTOMS
from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files, bug_rules
from reprise.einsum.kernel import Kernel
from reprise.einsum.results import judged
from reprise.einsum.testing import KernelTest, TestRequest, kernel_options
from reprise.einsum.text import print_text
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import Untranslatable, function, script
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import Target, parse_target
from reprise.targets.interface import Job, Outcome
from reprise.targets.process import Limits, TargetProcess

SECONDS = 120
"""How long the target may take for one test."""


@dataclass
class Row:
    """A target's result. ``making`` and ``guided``: seconds to make all tests, with known bugs and
    away from them; ``suppressed``: how often something was kept away; ``rules``: what became of the
    kernels that each is about; ``shared``: by given rule, how many of the kernels that fail as a
    rule that ships says it names too; ``unnamed``: kernels that fail and that no rule is about."""

    target: str
    tests: int
    kernels: int = 0
    making: float = 0.0
    guided: float = 0.0
    running: float = 0.0
    suppressed: int = 0
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    shared: dict[str, Counter[str]] = field(default_factory=dict)
    fine: int = 0
    unnamed: list[str] = field(default_factory=list)

    @property
    def tests_per_second(self) -> float:
        return self.tests / (self.making + self.running)

    @property
    def overhead(self) -> float:
        """What keeping away from known bugs adds to a test, as a share of what a test takes."""
        return (self.guided - self.making) / (self.making + self.running)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.einsum_targets")
    parser.add_argument("targets", nargs="+", metavar="TARGET@PYTHON")
    parser.add_argument("--count", type=int, default=100, help="tests of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        _row(parse_target(text), options.count, options.seed, tuple(options.rules))
        for text in options.targets
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        _print(rows)
    return 1 if any(row.unnamed for row in rows) else 0


def _row(target: Target, count: int, seed: int, given: tuple[Path, ...]) -> Row:
    files = bug_files(target.name)
    bugs = KnownKernels(target.name, files + given)()
    row = Row(target.name, count, rules={name: Counter() for name in sorted(bugs.names)})
    own = bug_rules(bugs.rules, given)
    row.shared = {name: Counter() for name in sorted(own)}
    options = kernel_options(target.name, {})
    away = TestRequest(target.name, seed, options, files)()
    away.program(count)  # compiles what the engine needs
    start = time.process_time()
    for number in range(count):
        row.suppressed += away.program(number).rejected.total()
    row.guided = time.process_time() - start
    tests = TestRequest(target.name, seed, options)()
    tests.program(count)
    before = _children()
    with TargetProcess(target, Limits(seconds=SECONDS)) as process:
        for number in range(count):
            start = time.process_time()
            test = tests.program(number).program
            row.making += time.process_time() - start
            _run(test, target.name, process, bugs, row)
    row.running = _children() - before
    return row


def _run(test: KernelTest, target: str, process: TargetProcess, bugs: KernelBugs, row: Row) -> None:
    said = {n: v.kernels for n, v in test.variants.items() if _says(target, n, v.kernels)}
    model = script(BACKENDS[target].translator, said)
    outcome = process.run(Job(model, {}, tuple(said)))
    row.kernels += sum(len(kernels) for kernels in said.values())
    for name, kernels in said.items():
        if len(kernels) > 1 or name not in outcome.results:
            continue
        verdict = _verdict(test, name, outcome)
        named = [match.rule for match in bugs.matches(kernels)]
        became = {rule: _became(verdict, bugs.symptoms[rule]) for rule in named}
        for rule in named:
            row.rules[rule][became[rule]] += 1
            if rule in row.shared:
                row.shared[rule].update(
                    r for r in named if r not in row.shared and became[r] == _AS_STATED
                )
        if not named and verdict.is_finding:
            row.unnamed.append(f"{verdict.value}: {print_text(kernels[0])}")
        row.fine += not named and verdict is Verdict.OK


def _says(target: str, name: str, kernels: Sequence[Kernel]) -> bool:
    try:
        function(BACKENDS[target].translator, name, kernels)
    except Untranslatable:
        return False
    return True


def _verdict(test: KernelTest, name: str, outcome: Outcome) -> Verdict:
    ran = judged(test.variants[name].kernels, test.variants[name], outcome, name)
    if ran.wrong is not None:
        return Verdict.WRONG_RESULT
    if ran.failure is None:
        return Verdict.OK
    return Verdict.UNSUPPORTED if ran.failure.unsupported else Verdict.CRASH


_AS_STATED = "as it says"


def _became(verdict: Verdict, symptoms: frozenset[str]) -> str:
    if any(verdict in SYMPTOMS.get(symptom, ()) for symptom in symptoms):
        return _AS_STATED
    if verdict is Verdict.OK:
        return "right"
    return "refused" if verdict is Verdict.UNSUPPORTED else "otherwise"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _print(rows: list[Row]) -> None:
    print(
        f"{'':15}{'tests':>7}{'kernels':>9}{'making':>10}{'running':>10}{'tests/s':>9}"
        f"{'suppressed':>12}{'overhead':>10}"
    )
    for row in rows:
        making, running = (1000 * s / row.tests for s in (row.making, row.running))
        print(
            f"{row.target:15}{row.tests:>7,}{row.kernels:>9,}{making:>7,.1f} ms{running:>7,.0f} ms"
            f"{row.tests_per_second:>9.2f}{row.suppressed:>12,}{row.overhead:>10.1%}"
        )
    for row in rows:
        print(f"\n{row.target}: {row.fine} right that no rule names; fail and are not named: "
              f"{len(row.unnamed)}")  # fmt: skip
        for rule, became in row.rules.items():
            print(f"  {rule:32}" + (", ".join(f"{n} {what}" for what, n in became.items()) or "-"))
        for rule, counts in row.shared.items():
            for other, count in counts.items():
                of = row.rules[other][_AS_STATED]
                print(f"  {rule} names {count} of {of} that fail as {other} says")
        for text in row.unnamed:
            print(f"  {text}")


if __name__ == "__main__":
    sys.exit(main())
