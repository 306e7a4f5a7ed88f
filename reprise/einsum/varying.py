"""Variants of a kernel for people: each with its kernels, and whether it computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from reprise.einsum.data import materialise
from reprise.einsum.json_form import to_json
from reprise.einsum.kernel import Kernel, KernelError
from reprise.einsum.reading import located
from reprise.einsum.reference import Difference, bounds, difference, reference
from reprise.einsum.relations import RELATIONS, variants
from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.text import print_text
from reprise.einsum.validity import Validity, load_kernel_rules

MOST_OPERANDS = 30
"""How many operands numpy computes, to be held against."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A variant, and where its dense reference differs from the kernel's. ``of``: where that one
    stands, ``FILE:LINE``, or ""."""

    of: str
    relation: str
    note: str
    kernels: tuple[Kernel, ...]
    difference: Difference | None

    @property
    def is_same(self) -> bool:
        return self.difference is None

    @property
    def verdict(self) -> str:
        """Whether it computes the same, in words."""
        return "computes the same" if self.difference is None else str(self.difference)

    @property
    def texts(self) -> list[str]:
        """The kernels as text."""
        return [print_text(kernel) for kernel in self.kernels]

    def document(self) -> dict[str, Any]:
        """The variant as JSON."""
        return {
            **({"of": self.of} if self.of else {}),
            "relation": self.relation,
            "title": RELATIONS[self.relation].title,
            "exactness": RELATIONS[self.relation].exactness.value,
            "note": self.note,
            "same": self.is_same,
            "kernels": [to_json(kernel) for kernel in self.kernels],
        }


def varied(
    named: str, names: Sequence[str], count: int, seed: int, targets: tuple[str, ...] = ()
) -> Iterator[Varied]:
    """Variants of every kernel of an argument. Raises KernelError, also for a kernel that is not
    valid: it computes nothing."""
    for name in names:
        if name not in RELATIONS:
            raise KernelError(f"there is no relation {name!r}; there are {', '.join(RELATIONS)}")
    rules, permitted = load_kernel_rules(), frozenset(PERMISSIONS)
    valid = Validity(rules, Settings((("most_operands", MOST_OPERANDS),), permitted))
    validity = Validity(rules, Settings(allowed=permitted, targets=targets)) if targets else None
    rng = Random(seed)
    for where, kernel in located(named):
        wrong = valid.of(kernel)
        if wrong:
            of = f"{where}: " if where else ""
            raise KernelError(f"{of}this kernel computes nothing: {wrong[0].message}")
        stored = materialise(kernel)
        expected, bound = reference(kernel, stored), bounds(kernel, stored)
        for variant in variants(kernel, rng, names, count, validity):
            found = difference(expected, variant.reference(), bound)
            yield Varied(where, variant.relation, variant.note, variant.kernels, found)
