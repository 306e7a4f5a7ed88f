"""Campaigns for compilers of kernels: what ``reprise fuzz`` needs to know to run one.

The campaign itself is the one for graphs (``reprise.campaign``): its workers, verdicts, store and
report. Here are a source of tests, an oracle, the known bugs, and what a finding's folder holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reprise.campaign.bench import Examination, Fuzzing
from reprise.campaign.learned import LearnedRule
from reprise.campaign.open import Request, run_info
from reprise.campaign.records import RunInfo
from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files, bug_rules
from reprise.einsum.findings import kernel_files
from reprise.einsum.kernel import Kernel
from reprise.einsum.oracle import KernelJudging, KernelOracle
from reprise.einsum.self_check import self_check
from reprise.einsum.testing import KernelTest, KernelTests, TestRequest, kernel_options
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import Untranslatable, function, script
from reprise.einsum.validity import load_kernel_rules
from reprise.patterns.check import UsageError
from reprise.targets.discover import Target
from reprise.targets.process import Jobs, Limits, TargetProcess


class Kernels:
    """Kernels with their variants, to a campaign: see :class:`reprise.campaign.bench.Kind`."""

    def __init__(self, known: KnownKernels, target: Target) -> None:
        self._target = target.name
        self._translator = BACKENDS[target.name].translator
        self._oracle = KernelOracle(BACKENDS[target.name], known)

    def refusal(self, program: KernelTest, /) -> str | None:
        """Why the target cannot be given the kernel itself; variants are left out silently."""
        try:
            function(self._translator, "kernel", (program.kernel,))
        except Untranslatable as error:
            return str(error)
        return None

    def lower(self, program: KernelTest, /) -> bytes:
        """A script with all variants that can be said to the target."""
        said = {}
        for name, variant in program.variants.items():
            try:
                function(self._translator, name, variant.kernels)
            except Untranslatable:
                continue
            said[name] = variant.kernels
        return script(self._translator, said)

    def files(self, program: KernelTest, examination: Examination, /) -> dict[str, bytes]:
        return kernel_files(program, examination, self._translator)

    def matched(self, program: KernelTest, examination: Examination, /) -> Sequence[Kernel]:
        """The kernels that show a finding."""
        shown: Sequence[Kernel] | None = examination.shown
        return shown or (program.kernel,)

    def learn(self, source: KernelTests, rule: LearnedRule, /) -> KernelBugs:
        """The rule is a deny rule about kernels: one more that the generator keeps to."""
        source.learn((rule.path,))
        return KnownKernels(self._target, (rule.path,))()

    def smaller(self, examination: Examination, process: Jobs, /) -> Examination:
        """A crash on a smaller kernel."""
        return self._oracle.smaller(examination, process)


def describe_kernels(
    request: Request,
    target: Target,
    limits: Limits,
    process: TargetProcess,
    versions: dict[str, str],
) -> tuple[Fuzzing, RunInfo]:
    """Set up a run whose target has started: see :data:`reprise.campaign.open.Describe`.

    Raises RulesError, KernelError, UsageError, Stuck if rules and options leave no kernel, or
    TargetError if the target does not compute what a harness that works would have it compute.
    """
    if target.name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise UsageError(
            f"{target.file}: nothing is known of {target.name}: kernels are for {known}"
        )
    options = kernel_options(target.name, request.generation)
    filing = bug_files(target.name, request.rules)
    steering = tuple(request.steer) or filing
    rules = load_kernel_rules(filing)
    sets = [rules.rules]
    if request.steer:
        sets.append(load_kernel_rules(steering).rules)
    tests = TestRequest(target.name, request.seed, options, steering, request.guided)
    tests().program(0)  # options and rules that leave no kernel leave no test
    self_check(target, process)
    bugs = KnownKernels(target.name, filing)
    work = Fuzzing(
        target,
        tests,
        KernelJudging(bugs),
        bugs,
        limits,
        kind=partial(Kernels, bugs),
    )
    return work, run_info(request, target, versions, bug_rules(rules, filing), sets)
