"""What kernels have to keep to: limits, permissions and targets, as facts that rules read."""

from __future__ import annotations

from dataclasses import dataclass

from reprise.einsum.facts import Fact
from reprise.einsum.kernel import KernelError

SETTINGS = frozenset({"limit", "allowed", "aimed_at"})
"""Relations that hold what a kernel has to keep to; they never change while one grows."""
PERMISSIONS = (
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
"""What a kernel may have, or not: the set ``permissions`` of ``rules/einsum/facts.rules``."""
USUAL = frozenset(PERMISSIONS) - {"reductions", "broadcasts"}
"""What a kernel may have if nothing is said."""
TARGETS = ("taco", "tensora", "mlir", "finch", "pydata", "torch", "scipy")
LIMITS = ("most_operands", "most_terms", "most_indices", "most_elements", "most_iterations")


@dataclass(frozen=True, slots=True)
class Settings:
    """What kernels have to keep to. ``limits`` by name; None of them: no limit."""

    limits: tuple[tuple[str, int], ...] = ()
    allowed: frozenset[str] = USUAL
    targets: tuple[str, ...] = ()

    def facts(self) -> list[Fact]:
        """The settings as facts. Raises KernelError for a name that is none."""
        for names, known in (
            ((name for name, _ in self.limits), LIMITS),
            (self.allowed, PERMISSIONS),
            (self.targets, TARGETS),
        ):
            for name in names:
                if name not in known:
                    raise KernelError(f"{name!r} is none of {', '.join(known)}")
        found: list[Fact] = [("limit", limit) for limit in self.limits]
        found += [("allowed", (name,)) for name in sorted(self.allowed)]
        return found + [("aimed_at", (name,)) for name in self.targets]
