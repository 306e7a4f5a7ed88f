"""Extents for the indices of a kernel, within a budget.

They are drawn one by one. Upper bounds on products can always be met by drawing again and, at last,
by making the largest extent smaller. Where lower bounds, memory or entries tie extents together and
drawing fails, extents near the drawn ones are searched for (``coupled``): all bounds are on sums of
products, so that bounds on some extents bound the others. Only where that finds nothing, the
kernel's shapes become an operator's signature with the budget as its conditions, and
:mod:`reprise.solve` finds extents with z3, or names the conditions that clash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

from reprise.einsum.coupled import Indexed, Nothing, Sought, nearest, within
from reprise.einsum.options import Budget, Options

if TYPE_CHECKING:
    from reprise.solve.signatures import Signature

_TRIES = 6
"""How often all extents are drawn before something else is tried."""
_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4}


_FAILURES = 100
"""How often a kernel may be drawn in vain before it is given up: always as often, so that it does
not depend on the kernels before it, which another process may have made."""


class Stuck(Exception):
    """Nothing that keeps to the rules and the budget was found, however often it was tried."""


class Extents:
    """Draws extents under the options' budget."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.low, self.high = options.extents
        self.rare = options.empty + options.units
        self.coupled = options.budget.is_coupled
        bounds = (options.budget.elements[1], options.budget.iterations[1])
        most = min((b for b in bounds if b is not None), default=None)
        if most is not None and options.diagonals:
            most //= max(self.high, 1)  # a tensor may have one index twice
        self.most = most
        """A kernel whose extents other than 0 have at most this product is within the bounds."""
        self.width = max(_BYTES[dtype] for dtype in options.dtypes)
        self.failures = 0

    def restart(self) -> None:
        """Begin with another kernel: what was drawn for the last one in vain counts no more."""
        self.failures = 0

    def draw(
        self,
        rng: Random,
        indices: Iterable[str],
        output: Indexed,
        operands: Sequence[Indexed],
        densities: Sequence[float],
    ) -> dict[str, int] | None:
        """An extent for each index, in the order given; None if the budget leaves none.

        Raises Stuck once that has happened too often since :meth:`restart`.
        """
        indices = tuple(indices)
        found: dict[str, int] = {}
        for _ in range(_TRIES):
            found, product = self._drawn(rng, indices)
            if not self.coupled and (self.most is None or product <= self.most):
                return found
            if within(self.options.budget, found, output, operands, densities, self.width):
                return found
        why = ""
        solution: dict[str, int] | None = None
        if self.coupled:
            sought = Sought(
                self.options.budget, found, output, operands, densities, self.width,
                self.options.extents,
            )  # fmt: skip
            near = nearest(sought, rng)
            if isinstance(near, dict):
                solution = near
            elif near is Nothing.GIVEN_UP or self.failures >= _FAILURES:  # z3 says why, too
                solved = solve(sought, rng)
                solution = solved if isinstance(solved, dict) else None
                why = "" if isinstance(solved, dict) else solved
        else:
            why, solution = "upper bounds", self._smaller(found, output, operands)
        self.failures += solution is None
        if self.failures > _FAILURES:
            raise Stuck(f"no extents keep to the budget; in the way are: {why}")
        return solution

    def _drawn(self, rng: Random, indices: Sequence[str]) -> tuple[dict[str, int], int]:
        """Extents, and the product of those that are not 0."""
        random, low, span = rng.random, self.low, self.high - self.low + 1
        rare, empty = self.rare, self.options.empty
        found = {}
        product = 1
        for index in indices:
            if rare and (chance := random()) < rare:
                found[index] = 0 if chance < empty else 1
            else:
                found[index] = extent = low + int(random() * span)
                product *= extent
        return found, product

    def _smaller(
        self, found: dict[str, int], output: Indexed, operands: Sequence[Indexed]
    ) -> dict[str, int] | None:
        """The same with the largest extents halved until bounds are met."""
        least = 1 if "units" in self.options.settings.allowed else 2
        while not within(self.options.budget, found, output, operands, (), self.width):
            largest = max(found, key=lambda index: found[index])
            if found[largest] <= least:
                return None
            found[largest] = max(least, found[largest] // 2)
        return found


def solve(sought: Sought, rng: Random) -> dict[str, int] | str:
    """Such extents by z3; if it finds none, the conditions in the way."""
    from reprise.solve.z3_search import Structure, new_context
    from reprise.solve.z3_search import solve as search
    from reprise.uir.graph import TensorType

    signature = _signature(
        sought.budget,
        tuple((index, low, high) for index, (low, high) in sought.domains.items()),
        sought.output.indices,
        tuple(operand.indices for operand in sought.operands),
        tuple(round(100 * density) for density in sought.densities),
        sought.width,
    )
    listed = [TensorType("float64", (extent,)) for extent in sought.start.values()]
    typed = frozenset(range(len(listed)))
    structure = Structure([*listed], {}, frozenset(), frozenset(), typed)
    verdict = search(signature, structure, {}, rng, new_context())
    if verdict.instance is None:
        named = ", ".join(clash.text for clash in verdict.clashes)
        return re.sub(r"\bN(?=\w)", "", named) or "nothing that z3 could name"
    found = {}
    for index, operand in zip(sought.start, verdict.instance.operands, strict=True):
        assert operand is not None and operand.shape is not None
        extent = operand.shape[0]
        assert isinstance(extent, int)
        found[index] = extent
    if not sought.is_met(found):
        return "densities that are not in percent"
    return found


@lru_cache(maxsize=256)
def _signature(
    budget: Budget,
    ranges: tuple[tuple[str, int, int], ...],
    output: tuple[str, ...],
    operands: tuple[tuple[str, ...], ...],
    percent: tuple[int, ...],
    width: int,
) -> Signature:
    """The kernel as an operator: a vector for each index, and the budget as conditions."""
    from reprise.lang.ruleset import load_text
    from reprise.solve.signatures import Signatures

    def size(indices: Sequence[str]) -> str:
        return " * ".join(f"N{index}" for index in indices) or "1"

    def bounded(text: str, bounds: tuple[int, int | None], unit: int = 1) -> list[str]:
        low, high = bounds
        found = [f"{text} >= {low * unit}"] if low else []
        return found if high is None else [*found, f"{text} <= {high * unit}"]

    where = [f"N{index} >= {low}, N{index} <= {high}" for index, low, high in ranges]
    for indices in dict.fromkeys((output, *operands)):
        where += bounded(size(indices), budget.elements)
    where += bounded(size([index for index, _, _ in ranges]), budget.iterations)
    if budget.memory is not None:
        total = " + ".join(size(indices) for indices in (output, *operands))
        where.append(f"{width} * ({total}) <= {budget.memory}")
    shares = [f"{p} * {size(indices)}" for p, indices in zip(percent, operands, strict=True)]
    where += bounded(" + ".join(shares), budget.entries, 100)
    params = ", ".join(f"x{n}: float64[N{index}]" for n, (index, _, _) in enumerate(ranges))
    text = (
        f"op einsum_kernel({params}) -> float64[1] {{\n"
        + "".join(f"    where {condition}\n" for condition in where)
        + "}\n"
    )
    signatures = Signatures.of_symbols(load_text(text, library=False).symbols)
    return signatures["einsum_kernel"]
