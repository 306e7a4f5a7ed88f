"""Kernels that grow under the rules: whatever rules there are, also those of targets and users.

Indices, extents and formats are assigned one after the other. Each becomes facts that are proposed
to the engine; if they bring a final violation, they are taken back, and something else is drawn.
What is wrong but may still be put right (an index that is summed over and shared by nobody) is
repaired at the end, by whatever addition makes the violations fewer. The first third of this is the
paper's Algorithm; that conditions are not written here, but only in ``.rules`` files, is not.
"""

from __future__ import annotations

import json
from random import Random

from reprise.einsum.coupled import within
from reprise.einsum.extents import Stuck
from reprise.einsum.facts import Fact, data_facts, level_facts
from reprise.einsum.json_form import data_from_json
from reprise.einsum.kernel import (
    Access,
    Drawn,
    Format,
    Kernel,
    Level,
    Structure,
    Term,
    assemble,
    indices_in_order,
)
from reprise.einsum.options import Options
from reprise.einsum.sampler import Sampler
from reprise.einsum.tables import Tables
from reprise.einsum.validity import Validity

_KERNELS = 2_000
"""How many kernels are begun before it is given up."""
_REPAIRS = 40
_DRAWS = 12
"""How often the data of a tensor are drawn."""
_FORMATS = 12
"""How many formats of a tensor are tried before it is dense."""


class _DeadEnd(Exception):
    """This kernel cannot be completed."""


class Grower:
    """Draws kernels whose every part was accepted by the rules."""

    def __init__(self, options: Options, validity: Validity) -> None:
        self.options = options
        self.validity = validity
        self.sampler = Sampler(options, _no_tables(options))
        self.begun = 0
        """How many kernels were begun so far, the finished ones included."""

    def kernel(self, rng: Random) -> Kernel:
        """A kernel. Raises Stuck if the rules and options leave none, as far as was tried."""
        self.sampler.extents.restart()
        for _ in range(_KERNELS):
            self.begun += 1
            try:
                return self._grown(rng)
            except _DeadEnd:
                continue
        raise Stuck("no kernel with these options keeps to the rules")

    def _grown(self, rng: Random) -> Kernel:
        self.validity.restart()
        output, terms = self._statement(rng)
        data = {
            name: self._data(rng, name)
            for name in dict.fromkeys(f.tensor for term in terms for f in term.factors)
        }
        extents = self._extents(rng, output, terms, data)
        ranks = {a.tensor: len(a.indices) for term in terms for a in term.factors}
        formats = {name: self._format(rng, name, rank, False) for name, rank in ranks.items()}
        formats[output.tensor] = self._format(rng, output.tensor, len(output.indices), True)
        dtype = self._dtype(rng)
        if not self.validity.is_valid():
            raise _DeadEnd
        return assemble(output, terms, extents, formats, {**data}, dtype)

    def _dtype(self, rng: Random) -> str:
        first = rng.choice(self.options.dtypes)
        if "element_type" not in self.validity.read:
            return first
        for dtype in dict.fromkeys((first, *self.options.dtypes)):
            if self.validity.fits([("element_type", (dtype,))]):
                return dtype
        raise _DeadEnd

    def _data(self, rng: Random, name: str) -> Drawn:
        for _ in range(_DRAWS):
            drawn = data_from_json(json.loads(self.sampler.described(rng))["data"])
            assert isinstance(drawn, Drawn)
            if "data" not in self.validity.read:
                return drawn
            facts = list(data_facts(name, drawn, None))
            if not facts or self.validity.fits(facts):
                return drawn
        raise _DeadEnd

    # --- indices ---------------------------------------------------------------------------------

    def _statement(self, rng: Random) -> tuple[Access, list[Term]]:
        """The output and the terms, free of violations."""
        options = self.options
        sizes = self._sizes(rng)
        operands: list[list[str]] = []
        places: list[int] = []
        tensors: list[str] = []
        for term, size in enumerate(sizes):
            for _ in range(size):
                self._operand(rng, term, operands, tensors)
                places.append(term)
        output: list[str] = []
        self._accept([("output_tensor", ("A",))])
        used = list(dict.fromkeys(index for indices in operands for index in indices))
        rng.shuffle(used)
        for index in used:
            if rng.random() < options.keep:
                self._append_output(output, index)
        self._repair(rng, operands, output)
        terms = [
            Term(
                tuple(
                    Access(tensors[n], tuple(operands[n]))
                    for n in range(len(operands))
                    if places[n] == term
                )
            )
            for term in range(len(sizes))
        ]
        return Access("A", tuple(output)), terms

    def _sizes(self, rng: Random) -> list[int]:
        """The number of operands of each term."""
        options = self.options
        count = rng.randint(*options.operands)
        terms = 1
        if rng.random() < options.sums:
            terms = min(options.operands[1], rng.randint(*options.terms))
            count = max(count, terms)
        sizes = [1] * terms
        for _ in range(count - terms):
            sizes[rng.randrange(terms)] += 1
        return sizes

    def _operand(
        self, rng: Random, term: int, operands: list[list[str]], tensors: list[str]
    ) -> None:
        """A further operand, with its indices."""
        options = self.options
        number = len(operands)
        low, high = options.ranks
        rank = 0 if rng.random() < options.scalars else rng.randint(low, high)
        rank = min(rank, options.indices + bool(options.diagonals))
        name = self.sampler.names[number + 1]
        alike = [n for n, indices in enumerate(operands) if len(indices) == rank]
        if alike and rng.random() < options.repeated_tensors:
            name = tensors[rng.choice(alike)]
        self._accept([("operand", (number, term, name))])
        indices: list[str] = []
        operands.append(indices)
        tensors.append(name)
        twice = rng.randrange(1, rank) if rank > 1 and rng.random() < options.diagonals else -1
        for position in range(rank):
            pool = [i for i in options.pool if i not in indices]
            if position == twice or not pool:
                pool = list(indices)
            rng.shuffle(pool)
            for index in pool:
                if self.validity.fits([("operand_index", (number, position, index))]):
                    indices.append(index)
                    break
            else:
                raise _DeadEnd

    def _append_output(self, output: list[str], index: str) -> bool:
        fits = self.validity.fits([("output_index", (len(output), index))])
        if fits:
            output.append(index)
        return fits

    def _repair(self, rng: Random, operands: list[list[str]], output: list[str]) -> None:
        """Add indices until nothing is wrong. What makes the violations fewer is kept."""
        wrong = self.validity.count()
        for _ in range(_REPAIRS):
            if not wrong:
                return
            where = rng.randrange(len(operands) + 1)
            indices = operands[where] if where < len(operands) else output
            used = {i for o in operands for i in o}
            possible = [i for i in self.options.pool if i in used and i not in indices]
            if not possible or len(indices) >= self.options.ranks[1]:
                continue
            index = rng.choice(possible)
            if where < len(operands):
                fact: Fact = ("operand_index", (where, len(indices), index))
            else:
                fact = ("output_index", (len(indices), index))
            left = self.validity.after(fact, wrong)
            if left is not None:
                indices.append(index)
                wrong = left
        if wrong:
            raise _DeadEnd

    def _accept(self, facts: list[Fact]) -> None:
        if not self.validity.fits(facts):
            raise _DeadEnd

    # --- extents and formats ---------------------------------------------------------------------

    def _extents(
        self, rng: Random, output: Access, terms: list[Term], data: dict[str, Drawn]
    ) -> dict[str, int]:
        options = self.options
        indices = indices_in_order(output, terms)
        accesses = [factor for term in terms for factor in term.factors]
        shares = {Structure.EMPTY: 0.0, Structure.FULL: 1.0}
        densities = [shares.get(data[a.tensor].structure, data[a.tensor].density) for a in accesses]
        drawn = self.sampler.extents.draw(rng, indices, output, accesses, densities)
        if drawn is None:
            raise _DeadEnd
        for index in indices:
            for extent in dict.fromkeys((drawn[index], *drawn.values())):
                if self.validity.fits([("extent", (index, extent))]):
                    drawn[index] = extent
                    break
            else:
                raise _DeadEnd
        budget, width = options.budget, self.sampler.extents.width
        if not within(budget, drawn, output, accesses, densities, width):
            raise _DeadEnd  # of what a rule had drawn anew
        if not self.validity.is_valid():
            raise _DeadEnd
        return drawn

    def _format(self, rng: Random, name: str, rank: int, is_output: bool) -> Format:
        """A format that no rule objects to."""
        options = self.options
        straight = tuple(range(rank))
        for _ in range(_FORMATS):
            levels = tuple(rng.choice(options.levels) for _ in range(rank))
            if is_output and rng.random() < options.dense_outputs:
                levels = (Level.DENSE,) * rank
            order = straight
            if rank > 1 and rng.random() < options.orders:
                order = tuple(rng.sample(straight, rank))
            stored = Format(levels, order)
            if self._stores(name, stored):
                return stored
        dense = Format.dense(rank)
        if not self._stores(name, dense):
            raise _DeadEnd
        return dense

    def _stores(self, name: str, stored: Format) -> bool:
        facts = list(level_facts(name, stored))
        admitted = self.validity.admits(facts)
        if admitted:
            self.validity.add(facts)
        return admitted


def _no_tables(options: Options) -> Tables:
    """Tables with nothing in them: what is drawn here, rules are asked about as it is drawn."""
    none: tuple[tuple[()], ...] = ((),) * (options.ranks[1] + 1)
    return Tables(none, none, {}, {}, (none, none), (none, none))
