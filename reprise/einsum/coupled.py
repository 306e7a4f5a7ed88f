"""Extents that a budget ties together, found by propagation.

Everything that a budget bounds is a sum of products of extents, with coefficients that are not
negative. So the bounds that are known on some extents bound each sum, and what is left of a sum
bounds the others: extents are chosen one by one, each from the values that the bounds leave, the
nearest to the one that was drawn first, and taken back where nothing is left for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod
from random import Random
from typing import Protocol

from reprise.einsum.options import Budget

_CHOICES, _BEGUN = 60, 2
"""Values that are tried before a search is given up, and how many searches are begun."""
_WIDE = 40
"""Of more values than this that an extent may have, some are tried only."""


class Nothing(Enum):
    """Why no extents were found."""

    THERE_IS_NONE = "there is none"
    GIVEN_UP = "given up"  # z3 may still find some


Domains = dict[str, tuple[int, int]]


class Indexed(Protocol):
    """Something with indices."""

    @property
    def indices(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Bound:
    """``low`` to ``high`` (None: unbounded) for the sum of the products of these extents, each
    times its coefficient."""

    products: tuple[tuple[float, tuple[str, ...]], ...]
    low: float
    high: float | None

    def may_hold(self, domains: Domains) -> bool:
        """Whether some of the extents that domains leave keep to it, as far as sums tell."""
        least = sum(c * prod(domains[i][0] for i in indices) for c, indices in self.products)
        if self.high is not None and least > self.high:
            return False
        most = sum(c * prod(domains[i][1] for i in indices) for c, indices in self.products)
        return most >= self.low


@dataclass(frozen=True)
class Sought:
    """Extents that are looked for: within a budget, for a kernel whose tensors have these indices,
    near those that were ``drawn``. One that was drawn as 0 or 1 may stay so; others are in the
    range ``extents``. ``densities`` of the operands; ``width``: bytes of a value."""

    budget: Budget
    drawn: Mapping[str, int]
    output: Indexed
    operands: Sequence[Indexed]
    densities: Sequence[float]
    width: int
    extents: tuple[int, int]

    @cached_property
    def start(self) -> dict[str, int]:
        """Those drawn, but for empty indices where something has to be big."""
        if self.budget.elements[0] or self.budget.iterations[0]:
            return {index: extent or self.extents[0] for index, extent in self.drawn.items()}
        return dict(self.drawn)

    @property
    def domains(self) -> Domains:
        """What each may be."""
        low, high = self.extents
        return {i: (min(extent, low), max(extent, high)) for i, extent in self.start.items()}

    @property
    def bounds(self) -> list[Bound]:
        """What the budget asks of them."""
        budget = self.budget
        shapes = [tuple(tensor.indices) for tensor in (self.output, *self.operands)]
        found = [Bound(((1, shape),), *budget.elements) for shape in dict.fromkeys(shapes)]
        found.append(Bound(((1, tuple(self.drawn)),), *budget.iterations))
        if budget.memory is not None:
            found.append(Bound(tuple((self.width, shape) for shape in shapes), 0, budget.memory))
        entries = zip(self.densities, shapes[1:], strict=False)
        found.append(Bound(tuple(entries), *budget.entries))
        return [bound for bound in found if bound.low > 0 or bound.high is not None]

    def is_met(self, extents: Mapping[str, int]) -> bool:
        """Whether a kernel with these extents keeps to the budget."""
        asked = self.output, self.operands, self.densities, self.width
        return within(self.budget, extents, *asked)


def nearest(sought: Sought, rng: Random) -> dict[str, int] | Nothing:
    """Such extents; why there are none otherwise."""
    bounds, drawn, domains = sought.bounds, sought.start, sought.domains
    for _ in range(_BEGUN):
        search = _Search(bounds, drawn, rng.sample(list(drawn), len(drawn)))
        found = search.run(domains, 0)
        if found is not None:
            chosen = {index: found[index][0] for index in drawn}
            if sought.is_met(chosen):
                return chosen
        elif search.left and search.tried_all:
            return Nothing.THERE_IS_NONE
        drawn = {index: (domains[index][0] + extent) // 2 for index, extent in drawn.items()}
    return Nothing.GIVEN_UP


class _Search:
    def __init__(self, bounds: Sequence[Bound], drawn: dict[str, int], order: list[str]) -> None:
        self.bounds = bounds
        self.drawn = drawn
        self.order = order
        self.left = _CHOICES
        self.tried_all = True

    def run(self, domains: Domains, depth: int) -> Domains | None:
        """Domains with one value each, from the place ``depth`` of the order on."""
        if not all(bound.may_hold(domains) for bound in self.bounds):
            return None
        if depth == len(self.order):
            return domains
        index = self.order[depth]
        low, high = self._possible(domains, index)
        self.tried_all &= high - low <= _WIDE
        for value in _outward(min(max(self.drawn[index], low), high), low, high):
            if not self.left:
                return None
            self.left -= 1
            found = self.run({**domains, index: (value, value)}, depth + 1)
            if found is not None:
                return found
        return None

    def _possible(self, domains: Domains, index: str) -> tuple[int, int]:
        """The values of an index that the bounds leave; the first is past the last if none is."""
        low, high = domains[index]

        def fits(value: int, *, from_above: bool) -> bool:
            tried = {**domains, index: (low, value) if from_above else (value, high)}
            return all(bound.may_hold(tried) for bound in self.bounds)

        # Sums grow with each extent: a larger greatest value helps to reach what is asked for at
        # least, a smaller least one to keep to what is allowed at most.
        least = _first(low, high, lambda value: fits(value, from_above=True))
        most = -_first(-high, -low, lambda value: fits(-value, from_above=False))
        return least, most


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from ``low`` on for which something holds that holds of all after it;
    ``high + 1`` if it holds of none."""
    while low <= high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle - 1
        else:
            low = middle + 1
    return low


def _outward(start: int, low: int, high: int) -> Iterator[int]:
    """The numbers from ``low`` to ``high``, the nearest to ``start`` first; of many, those at
    distances that double."""
    if low > high:
        return
    yield start
    distance = 1
    while start + distance <= high or start - distance >= low:
        if start + distance <= high:
            yield start + distance
        if start - distance >= low:
            yield start - distance
        distance = 2 * distance if high - low > _WIDE else distance + 1
    if high - low > _WIDE:
        yield from (low, high)


def within(
    budget: Budget,
    extents: Mapping[str, int],
    output: Indexed,
    operands: Sequence[Indexed],
    densities: Sequence[float],
    width: int,
) -> bool:
    """Whether a kernel with these extents keeps to a budget."""
    sizes = [prod(extents[i] for i in tensor.indices) for tensor in (output, *operands)]
    entries = sum(d * n for d, n in zip(densities, sizes[1:], strict=False))
    return (
        all(_between(size, budget.elements) for size in sizes)
        and _between(prod(extents.values()), budget.iterations)
        and (budget.memory is None or width * sum(sizes) <= budget.memory)
        and _between(entries, budget.entries)
    )


def _between(value: float, bounds: tuple[int, int | None]) -> bool:
    return bounds[0] <= value and (bounds[1] is None or value <= bounds[1])
