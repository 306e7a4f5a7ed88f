"""What one operand, one output or one format may look like, as the rules have it.

Conditions on a single part of a kernel are asked of the engine once, for every candidate, and the
answers kept as tables: :class:`Tables` holds nothing that a rule forbids. What ties parts together
(an index must be shared, terms must agree) is up to the sampler. Lists of indices that differ only
in the indices' names are asked about once: the rules that ship name none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations, product

from reprise.einsum.facts import level_facts, operand_facts, output_facts
from reprise.einsum.kernel import Access, Format, KernelError, Level
from reprise.einsum.options import Options
from reprise.einsum.validity import Validity


@dataclass(frozen=True, slots=True)
class Word:
    """A list of indices: as a set of bits (index ``n`` of the pool is ``1 << n``), and as JSON."""

    mask: int
    indices: tuple[str, ...]
    json: str

    @property
    def rank(self) -> int:
        return len(self.indices)


@dataclass(frozen=True)
class Tables:
    """``plain`` and ``diagonal`` list operands by rank, without and with a repeated index;
    ``outputs`` the orders of a set of indices; ``arranged`` the same for operands. ``levels`` and
    ``orders`` list what formats consist of, by role (0 output, 1 operand) and rank."""

    plain: tuple[tuple[Word, ...], ...]
    diagonal: tuple[tuple[Word, ...], ...]
    outputs: dict[int, tuple[Word, ...]]
    arranged: dict[int, tuple[Word, ...]]
    levels: tuple[tuple[tuple[tuple[Level, ...], ...], ...], ...]
    orders: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]


def make_tables(options: Options, validity: Validity) -> Tables:
    """Ask the engine about every candidate. Raises KernelError if there are too many, or none."""
    pool = options.pool
    bit = {index: 1 << number for number, index in enumerate(pool)}

    def word(indices: tuple[str, ...]) -> Word:
        mask = 0
        for index in indices:
            mask |= bit[index]
        return Word(mask, indices, json.dumps(indices, separators=(",", ":")))

    @cache
    def operand_may_be(shape: tuple[str, ...]) -> bool:
        return validity.fits(list(operand_facts(0, 0, Access("B", shape))), keep=False)

    @cache
    def output_may_be(shape: tuple[str, ...]) -> bool:
        return validity.fits(list(output_facts(Access("A", shape))), keep=False)

    def operand_fits(indices: tuple[str, ...]) -> bool:
        return operand_may_be(_renamed(indices, pool))

    def output_fits(indices: tuple[str, ...]) -> bool:
        return output_may_be(_renamed(indices, pool))

    validity.restart()
    most = options.ranks[1]
    plain, diagonal = [], []
    arranged: dict[int, list[Word]] = {}
    outputs: dict[int, list[Word]] = {}
    for rank in range(most + 1):
        found = [word(i) for i in permutations(pool, rank) if operand_fits(i)]
        plain.append(tuple(found))
        for each in found:
            arranged.setdefault(each.mask, []).append(each)
        twice = _with_repeats(pool, rank) if options.diagonals else ()
        diagonal.append(tuple(word(i) for i in twice if operand_fits(i)))
        for indices in permutations(pool, rank):
            if output_fits(indices):
                each = word(indices)
                outputs.setdefault(each.mask, []).append(each)
    if not any(plain[options.ranks[0] :]) and not any(diagonal[options.ranks[0] :]):
        raise KernelError("no operand of such a rank keeps to the rules")
    formats = [_formats(options, validity, role) for role in (0, 1)]
    validity.restart()
    return Tables(
        tuple(plain),
        tuple(diagonal),
        {mask: tuple(words) for mask, words in outputs.items()},
        {mask: tuple(words) for mask, words in arranged.items()},
        tuple(levels for levels, _ in formats),
        tuple(orders for _, orders in formats),
    )


def _renamed(indices: tuple[str, ...], pool: tuple[str, ...]) -> tuple[str, ...]:
    """The same list with the indices called as the pool has them, in the order of their use."""
    names = dict(zip(dict.fromkeys(indices), pool, strict=False))
    return tuple(names[index] for index in indices)


def _with_repeats(pool: tuple[str, ...], rank: int) -> Iterator[tuple[str, ...]]:
    """Lists with one index twice, the others once."""
    if rank < 2:
        return
    for rest in permutations(pool, rank - 1):
        for index in rest:
            others = [i for i in rest if i != index]
            if others != [i for i in pool if i in others] and rank > 4:
                continue  # of very many, those whose other indices are in order
            for first, second in combinations(range(rank), 2):
                following = iter(others)
                yield tuple(index if p in (first, second) else next(following) for p in range(rank))


def _formats(options: Options, validity: Validity, role: int) -> tuple[
    tuple[tuple[tuple[Level, ...], ...], ...], tuple[tuple[tuple[int, ...], ...], ...]
]:  # fmt: skip
    """By rank, the levels that a tensor may have, and their orders."""
    levels, orders = [], []
    for rank in range(options.ranks[1] + 1):
        validity.restart()
        indices = (options.pool * rank)[:rank]
        access = Access("T", indices)
        validity.add(output_facts(access) if role == 0 else operand_facts(0, 0, access))

        def admitted(stored: Format) -> bool:
            return validity.admits(list(level_facts("T", stored)))

        straight = tuple(range(rank))
        levels.append(
            tuple(
                kinds
                for kinds in product(options.levels, repeat=rank)
                if admitted(Format(kinds, straight))
            )
        )
        plainest = levels[-1][0] if levels[-1] else ()
        orders.append(
            tuple(o for o in permutations(straight) if levels[-1] and admitted(Format(plainest, o)))
        )
        if rank >= options.ranks[0] and not levels[-1]:
            raise KernelError(f"no format of {rank} levels keeps to the rules")
    return tuple(levels), tuple(orders)
