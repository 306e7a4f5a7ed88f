"""A campaign's tests: a kernel and its variants, numbered, each from the seed and its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from reprise.einsum.data import Array
from reprise.einsum.facts import Fact
from reprise.einsum.filing import bug_rules
from reprise.einsum.grow import Grower
from reprise.einsum.kernel import Kernel
from reprise.einsum.options import Options
from reprise.einsum.relations import RELATIONS, Recovery, Variant, variants
from reprise.einsum.settings import Settings
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.validity import KernelRules, Validity, load_kernel_rules

REFERENCE = "reference"
"""The name of the kernel itself among its variants."""


@dataclass(frozen=True, slots=True)
class KernelTest:
    """A kernel with variants of it, by name, the kernel itself first. Their data are written into
    what the target is given, so that there are no inputs."""

    name: str
    variants: dict[str, Variant]
    inputs: dict[str, Array] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        return self.variants[REFERENCE].kernels[0]


def alone(kernel: Kernel) -> Variant:
    """A kernel as a variant of itself."""
    return Variant(REFERENCE, "", (kernel,), Recovery((kernel.output.tensor,)))


@dataclass(frozen=True, slots=True)
class MadeTest:
    """A test and how it came about: see :class:`reprise.campaign.bench.Made`."""

    program: KernelTest
    rejected: Counter[str]
    completed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TestRequest:
    """Which tests: for a target, away from the bugs that the files say (if ``guided``)."""

    __test__ = False

    target: str
    seed: int
    options: Options
    bugs: tuple[Path, ...] = ()
    guided: bool = True

    def __call__(self) -> KernelTests:
        return KernelTests(self)


class KernelTests:
    """The tests of a request: number ``index`` depends on no other, but on what was learned."""

    def __init__(self, request: TestRequest) -> None:
        self.request = request
        self._bugs: tuple[Path, ...] = request.bugs if request.guided else ()
        self._start()

    def learn(self, files: Sequence[Path]) -> None:
        """Steer around the bugs of these rules too, from the next test on."""
        self._bugs = (*self._bugs, *files)
        self._start()

    def _start(self) -> None:
        """Make the generator, under the rules that are known now."""
        rules = load_kernel_rules(self._bugs)
        self._under(rules, bug_rules(rules, self._bugs))

    def _under(self, rules: KernelRules, counted: frozenset[str]) -> None:
        """Make the generator under these rules; rejections by some of them are counted."""
        aims = BACKENDS[self.request.target].aims
        options = replace(self.request.options, targets=aims)
        self.validity = _Counting(rules, options.settings, counted)
        self.grower = Grower(options, self.validity)

    def program(self, index: int, /) -> MadeTest:
        """Test number ``index``. Raises Stuck."""
        rng = Random(f"{self.request.seed}/{index}")
        self.validity.rejected.clear()
        kernel = self.grower.kernel(rng)
        self.validity.restart()
        found = {REFERENCE: alone(kernel)}
        names = rng.sample(list(RELATIONS), len(RELATIONS))
        for variant in variants(kernel, rng, names, validity=self.validity):
            if len(found) > BACKENDS[self.request.target].mutants:
                break
            found[variant.relation] = variant
        test = KernelTest(f"k{index}", found)
        return MadeTest(test, Counter(self.validity.rejected))


class _Counting(Validity):
    """Counts how often each rule about a bug has kept something away."""

    def __init__(self, rules: KernelRules, settings: Settings, counted: frozenset[str]) -> None:
        super().__init__(rules, settings)
        self.counted = counted
        self.rejected: Counter[str] = Counter()

    def fits(self, facts: list[Fact], *, keep: bool = True) -> bool:
        fits = super().fits(facts, keep=keep)
        if not fits:
            self._count(facts)
        return fits

    def admits(self, facts: list[Fact]) -> bool:
        admits = super().admits(facts)
        if not admits:
            self._count(facts)
        return admits

    def of(self, kernel: Kernel) -> list[Any]:
        found = super().of(kernel)
        self.rejected.update({v.rule for v in found} & self.counted)
        return found

    def _count(self, facts: list[Fact]) -> None:
        if self.counted:
            self.rejected.update({v.rule for v in self.rejected_by(facts)} & self.counted)


def kernel_options(target: str, given: Mapping[str, Any]) -> Options:
    """The generator's options for a target, by what ``reprise fuzz`` was given. Raises KernelError
    for an option that kernels do not have."""
    from reprise.einsum.kernel import KernelError

    options = replace(Options(), **BACKENDS[target].options)
    for name, value in given.items():
        match name:
            case "max_rank":
                options = replace(options, ranks=(min(options.ranks[0], value), value))
            case "max_extent":
                options = replace(options, extents=(min(options.extents[0], value), value))
            case "max_elements":
                budget = replace(options.budget, elements=(0, value))
                options = replace(options, budget=budget)
            case "empty":
                options = replace(options, empty=value)
            case "dtypes":
                words = tuple(w.strip() for text in value for w in text.split(",") if w.strip())
                options = replace(options, dtypes=words)
            case _:
                flag = name.replace("_", "-")
                raise KernelError(f"--{flag} is about graphs: {target} is given einsum kernels")
    return options
