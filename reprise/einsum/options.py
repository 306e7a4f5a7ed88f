"""Which kernels to generate: how many operands, of which ranks, and how often what is rare."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import isfinite, perm

from reprise.einsum.fitting import MOST
from reprise.einsum.kernel import INTEGERS, REALS, KernelError, Level, Structure
from reprise.einsum.settings import Settings
from reprise.einsum.text import DTYPES

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"
"""The names of indices, in the order in which a pool takes them."""
_MOST_LISTS = 200_000
"""Lists of indices of one length, at most: they are all listed."""
Range = tuple[int, int]
"""From the first number to the second, both included."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on what a kernel takes; None: unbounded. What ties extents together is given to z3
    where drawing them one by one finds nothing."""

    elements: tuple[int, int | None] = (0, 1 << 16)
    """Of each tensor."""
    iterations: tuple[int, int | None] = (0, 1 << 20)
    """The product of all extents."""
    memory: int | None = None
    """Bytes of all tensors together, stored densely."""
    entries: tuple[int, int | None] = (0, None)
    """Expected stored entries of all operands together: density times elements."""

    @property
    def is_coupled(self) -> bool:
        """Whether there is more than upper bounds on single products."""
        return (
            bool(
                self.elements[0] or self.iterations[0] or self.memory is not None or self.entries[0]
            )
            or self.entries[1] is not None
        )


@dataclass(frozen=True, slots=True)
class Options:
    """Ranges include both ends; shares are between 0 and 1."""

    operands: Range = (2, 3)
    """How many operands, all terms together."""
    terms: Range = (2, 2)
    """How many terms a kernel has that has several."""
    ranks: Range = (1, 3)
    """Indices of an operand; the output has at most as many."""
    indices: int = 5
    """How many indices there are to draw from."""
    keep: float = 0.5
    """How often an index is in the output."""
    sums: float = 0.1
    """Share of kernels that have several terms."""
    diagonals: float = 0.05
    """Share of operands that have an index twice."""
    scalars: float = 0.02
    """Share of operands that are scalars. If 0, outputs are none either."""
    reductions: float = 0.0
    """Share of kernels in which an index of one operand may be summed over."""
    broadcasts: float = 0.0
    """Share of terms, after the first, that need not have all indices of the output."""
    outer_products: float = 1.0
    """Share of kernels in which operands may have no index in common."""
    repeated_tensors: float = 0.05
    """Share of operands that are an earlier operand's tensor, if shapes allow it."""
    extents: Range = (2, 5)
    empty: float = 0.01
    """Share of indices with extent 0."""
    units: float = 0.05
    """Share of indices with extent 1."""
    levels: tuple[Level, ...] = (Level.DENSE, Level.COMPRESSED)
    """How levels may be stored."""
    dense_outputs: float = 0.25
    """Share of outputs that are dense (others are as they come)."""
    orders: float = 0.25
    """Share of tensors whose levels are not in the order of positions."""
    structures: tuple[tuple[Structure, float], ...] = (
        (Structure.UNIFORM, 12),
        (Structure.FULL, 2),
        (Structure.BANDED, 2),
        (Structure.ROW, 2),
        (Structure.EMPTY, 1),
    )
    """Where entries lie, each with how often."""
    densities: tuple[float, ...] = (0.1, 0.3, 0.5, 0.8)
    zeros: float = 0.1
    """Share of operands with explicit zeros."""
    duplicates: float = 0.05
    """Share of operands some of whose entries are stored twice."""
    unsorted: float = 0.05
    """Share of operands whose entries are listed in any order."""
    values: str = INTEGERS
    dtypes: tuple[str, ...] = ("float64",)
    budget: Budget = Budget()
    targets: tuple[str, ...] = ()
    """Compilers whose limits kernels keep to."""

    def __post_init__(self) -> None:
        for name in ("operands", "terms", "ranks", "extents"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise KernelError(f"{name}: {low} to {high} is no range")
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise KernelError(f"{name}: a share is between 0 and 1")
        if not self.operands[0] >= 1 or self.operands[1] > 25:
            raise KernelError("operands: from 1 to 25")
        if self.terms[0] < 2:
            raise KernelError("terms: a sum has 2 or more")
        if not 1 <= self.indices <= len(LETTERS):
            raise KernelError(f"indices: from 1 to {len(LETTERS)}")
        if self.ranks[0] == 0 or self.ranks[1] > 6:
            raise KernelError("ranks: from 1 to 6; `scalars` says how often there is no index")
        if perm(self.indices, min(self.ranks[1], self.indices)) > _MOST_LISTS:
            raise KernelError(
                f"indices: {self.indices} are too many for operands of up to {self.ranks[1]}"
            )
        if self.ranks[0] > self.indices and not self.diagonals:
            raise KernelError(f"ranks: {self.ranks[0]} need as many indices, not {self.indices}")
        if self.sums and self.operands[1] < self.terms[0]:
            raise KernelError(f"operands: a sum of {self.terms[0]} terms needs as many")
        if not self.levels or not self.densities or not self.dtypes or not self.structures:
            raise KernelError("levels, densities, structures and dtypes: at least one of each")
        if not set(self.dtypes) <= set(DTYPES):
            raise KernelError(f"dtypes: {', '.join(DTYPES)}")
        if self.values == REALS and not all(d.startswith("float") for d in self.dtypes):
            raise KernelError("values: integers cannot hold reals")
        if self.extents[1] > MOST:
            raise KernelError(f"extents: at most {MOST}")
        weights = [weight for _, weight in self.structures]
        if not all(weight >= 0 and isfinite(weight) for weight in weights) or not sum(weights):
            raise KernelError("structures: how often is a number from 0, and not always 0")
        if self.extents[0] == 0:
            raise KernelError("extents: from 1; `empty` says how often there is a 0")

    @property
    def pool(self) -> tuple[str, ...]:
        """The names of the indices to draw from."""
        return tuple(islice(LETTERS, self.indices))

    @property
    def settings(self) -> Settings:
        """What the kernels keep to, as rules read it: a share of 0 permits nothing."""
        limits = {
            "most_operands": self.operands[1],
            "most_terms": self.terms[1] if self.sums else 1,
            "most_indices": self.ranks[1],
            "most_elements": self.budget.elements[1],
            "most_iterations": self.budget.iterations[1],
        }
        allowed = {name for name in _PERMITTING if getattr(self, name)}
        if self.extents[0] == 1:
            allowed.add("units")
        return Settings(
            tuple((name, value) for name, value in limits.items() if value is not None),
            frozenset(allowed),
            self.targets,
        )


_PERMITTING = (
    "diagonals",
    "reductions",
    "broadcasts",
    "outer_products",
    "scalars",
    "sums",
    "repeated_tensors",
    "empty",
    "units",
)
_SHARES = (*_PERMITTING, "keep", "dense_outputs", "orders", "zeros", "duplicates", "unsorted")
