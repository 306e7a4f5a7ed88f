"""Kernels by the ten thousand: valid by construction, written at once as lines of JSON.

Indices are bits, so that what rules say about several operands together costs a few operations on
integers (``once`` are the indices that one operand of a term has, ``shared`` those of several):

- *lonely_index*: an index in ``once`` goes to the output, or to a further operand.
- *unbound_output*: the output is drawn from the indices that there are.
- *broadcast*: every index of the output is dealt to an operand of each further term.
- *outer_product*, *scalar_output*, *output_rank_over_limit*: what violates them is drawn anew.

Rules about one part alone are in the :class:`~reprise.einsum.tables.Tables` that parts are drawn
from, which the engine filled. That the two together leave nothing for the rules to object to is a
property that is tested, and so is that every kernel that the rules permit can come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from reprise.einsum.extents import Extents, Stuck
from reprise.einsum.kernel import INTEGERS, Structure
from reprise.einsum.options import Options
from reprise.einsum.tables import Tables, Word
from reprise.einsum.text import tensor_names

_SEEDS = 1 << 32

Terms = Sequence[Sequence[Word]]


_TRIES = 10_000


class Sampler:
    """Draws kernels. What it draws follows from the options, the tables and the generator."""

    def __init__(self, options: Options, tables: Tables) -> None:
        self.options = options
        self.tables = tables
        low, high = options.ranks
        plain, diagonal = tables.plain, tables.diagonal
        self.ranks = [rank for rank in range(low, high + 1) if plain[rank] or diagonal[rank]]
        self.names = tensor_names(options.operands[1] + 1)
        self.extents = Extents(options)
        self.formats = [
            [self._format_texts(role, rank) for rank in range(options.ranks[1] + 1)]
            for role in (0, 1)
        ]
        self.dense = [
            '"levels":[' + ",".join(['"dense"'] * rank) + "]"
            for rank in range(options.ranks[1] + 1)
        ]
        self.data = _data_texts(options)
        self.dtypes = [f'{{"version":1,"dtype":"{d}","extents":{{' for d in options.dtypes]

    def line(self, rng: Random) -> str:
        """A kernel, as :func:`reprise.einsum.json_form.dumps` writes it.

        Raises Stuck if the options leave nothing that keeps to the rules.
        """
        self.extents.restart()
        for _ in range(_TRIES):
            structure = self.structure(rng)
            if structure is None:
                continue
            line = self._written(rng, *structure)
            if line is not None:
                return line
        raise Stuck("no kernel with these options keeps to the rules")

    # --- indices ---------------------------------------------------------------------------------

    def structure(self, rng: Random) -> tuple[Word, Terms] | None:
        """The output and the operands of each term; None if the draw led nowhere."""
        options, random = self.options, rng.random
        low, high = options.operands
        count = low + int(random() * (high - low + 1))
        terms = 1
        if options.sums and random() < options.sums:
            least, most = options.terms
            terms = min(high, least + int(random() * (most - least + 1)))
            count = max(count, terms)
        sizes = _parts(count, terms, random) if terms > 1 else (count,)
        reduces = bool(options.reductions) and random() < options.reductions
        outer = options.outer_products == 1 or (random() < options.outer_products)
        first = self._first(sizes[0], reduces, random)
        if first is None:
            return None
        output, words = first
        found = [words]
        for size in sizes[1:]:
            more = self._further(size, output.mask, reduces, random)
            if more is None:
                return None
            found.append(more)
        if not outer and any(_has_outer(words) for words in found):
            return None
        return output, found

    def _first(
        self, count: int, reduces: bool, random: Callable[[], float]
    ) -> tuple[Word, list[Word]] | None:
        """The first term, and an output that suits it."""
        options = self.options
        words = [self._operand(random) for _ in range(count)]
        once = shared = 0
        for word in words:
            shared |= once & word.mask
            once |= word.mask
        there = once
        once &= ~shared
        kept = self._subset(there, random)
        lonely = 0 if reduces else once & ~kept
        if lonely:
            for number in range(options.indices):
                index = 1 << number
                if lonely & index and (random() < 0.5 or not self._share(words, index, random)):
                    kept |= index
        outputs = self.tables.outputs.get(kept)
        if outputs is None or (not kept and not options.scalars):
            return None
        return outputs[int(random() * len(outputs))], words

    def _operand(self, random: Callable[[], float]) -> Word:
        """One operand, its indices drawn."""
        options = self.options
        if options.scalars and random() < options.scalars:
            return self.tables.plain[0][0]
        rank = self.ranks[int(random() * len(self.ranks))]
        words = self.tables.plain[rank]
        if options.diagonals and (not words or random() < options.diagonals):
            words = self.tables.diagonal[rank] or words
        return words[int(random() * len(words))]

    def _subset(self, mask: int, random: Callable[[], float]) -> int:
        """Some of the bits, each with the share ``keep``."""
        keep = self.options.keep
        found = 0
        while mask:
            bit = mask & -mask
            mask ^= bit
            if random() < keep:
                found |= bit
        return found

    def _share(self, words: list[Word], index: int, random: Callable[[], float]) -> bool:
        """Give an index to a further operand; False if none has room."""
        most = self.options.ranks[1]
        able = [
            n for n, word in enumerate(words)
            if not word.mask & index and 0 < len(word.indices) < most
            and word.mask.bit_count() == len(word.indices)
        ]  # fmt: skip
        if not able:
            return False
        number = able[int(random() * len(able))]
        choices = self.tables.arranged.get(words[number].mask | index)
        if not choices:
            return False
        words[number] = choices[int(random() * len(choices))]
        return True

    def _further(
        self, count: int, kept: int, reduces: bool, random: Callable[[], float]
    ) -> list[Word] | None:
        """A further term: every index of the output is dealt to some operand, and indices to sum
        over to two or more."""
        options = self.options
        if options.broadcasts and random() < options.broadcasts:
            kept = self._subset(kept, random)
        low, most = options.ranks
        for _ in range(50):
            masks = [0] * count
            for number in range(options.indices):
                index = 1 << number
                if kept & index:
                    least = 1
                elif (count > 1 or reduces) and random() < 0.4:
                    least = 1 if reduces else 2
                else:
                    continue
                times = least
                while times < count and random() < 0.3:
                    times += 1
                for place in _sample(count, times, random):
                    masks[place] |= index
            words = []
            for mask in masks:
                rank = mask.bit_count()
                if rank > most or (rank < low and not (rank == 0 and options.scalars)):
                    break
                choices = self.tables.arranged[mask]
                words.append(choices[int(random() * len(choices))])
            else:
                return words
        return None

    # --- the rest, as text -----------------------------------------------------------------------

    def _written(self, rng: Random, output: Word, terms: Terms) -> str | None:
        options, random = self.options, rng.random
        indices = dict.fromkeys(output.indices)
        words: list[Word] = []
        for term in terms:
            for word in term:
                words.append(word)
                indices.update(dict.fromkeys(word.indices))
        data = self.data
        chosen = [data[int(random() * len(data))] for _ in words]
        extents = self.extents.draw(rng, indices, output, words, [d[1] for d in chosen])
        if extents is None:
            return None
        names = self.names
        same = self._repeated(words, extents, random) if options.repeated_tensors else None
        parts = [self.dtypes[int(random() * len(self.dtypes))] if len(self.dtypes) > 1
                 else self.dtypes[0]]  # fmt: skip
        parts.append(",".join([f'"{index}":{extent}' for index, extent in extents.items()]))
        parts.append(f'}},"output":{{"tensor":"A","indices":{output.json}}},"terms":[[')
        tensors = [f'{{"name":"A",{self._format(0, len(output.indices), random)}}}']
        number = 0
        for place, term in enumerate(terms):
            if place:
                parts.append("],[")
            factors = []
            for word in term:
                owner = number if same is None else same[number]
                name = names[owner + 1]
                factors.append(f'{{"tensor":"{name}","indices":{word.json}}}')
                if owner == number:
                    stored = self._format(1, len(word.indices), random)
                    described = self._data(chosen[number][0], random)
                    tensors.append(f'{{"name":"{name}",{stored},{described}}}')
                number += 1
            parts.append(",".join(factors))
        parts.append(f']],"tensors":[{",".join(tensors)}]}}')
        return "".join(parts)

    def _repeated(
        self, words: list[Word], extents: dict[str, int], random: Callable[[], float]
    ) -> list[int] | None:
        """For each operand, the first with the same tensor; None if all have their own."""
        share = self.options.repeated_tensors
        owners = None
        for number in range(1, len(words)):
            if random() < share:
                shape = [extents[i] for i in words[number].indices]
                for other in range(number):
                    if [extents[i] for i in words[other].indices] == shape:
                        owners = owners or list(range(len(words)))
                        owners[number] = owners[other]
                        break
        return owners

    def _format(self, role: int, rank: int, random: Callable[[], float]) -> str:
        levels, orders = self.formats[role][rank]
        if role == 0 and random() < self.options.dense_outputs:
            chosen = self.dense[rank]
        else:
            chosen = levels[int(random() * len(levels))]
        if len(orders) > 1 and random() < self.options.orders:
            return f"{chosen},{orders[1 + int(random() * (len(orders) - 1))]}"
        return f"{chosen},{orders[0]}"

    def described(self, rng: Random) -> str:
        """A description of data, as JSON."""
        beginning, _ = self.data[int(rng.random() * len(self.data))]
        return "{" + self._data(beginning, rng.random) + "}"

    def _data(self, described: str, random: Callable[[], float]) -> str:
        options = self.options
        text = f"{described}{int(random() * _SEEDS)}"
        if options.values != INTEGERS:
            text += f',"values":"{options.values}"'
        if options.duplicates and random() < options.duplicates:
            text += f',"duplicates":{1 + int(random() * 3)}'
        if options.zeros and random() < options.zeros:
            text += f',"zeros":{1 + int(random() * 4)}'
        if options.unsorted and random() < options.unsorted:
            text += ',"unsorted":true'
        return text + "}"

    def _format_texts(self, role: int, rank: int) -> tuple[list[str], list[str]]:
        levels = [
            '"levels":[' + ",".join(f'"{level.value}"' for level in kinds) + "]"
            for kinds in self.tables.levels[role][rank]
        ]
        orders = [
            '"order":[' + ",".join(map(str, order)) + "]"
            for order in self.tables.orders[role][rank]
        ]
        return levels, orders


def _data_texts(options: Options) -> list[tuple[str, float]]:
    """The beginnings of descriptions of data, each as often as its weight has it, up to their
    seeds, with the density that they come to."""
    total = sum(weight for _, weight in options.structures)
    found = []
    for structure, weight in options.structures:
        times = max(1, round(100 * weight / total)) if weight else 0
        for density in options.densities:
            text = f'"data":{{"kind":"drawn","structure":"{structure.value}","density":{density}'
            share = {Structure.EMPTY: 0.0, Structure.FULL: 1.0}.get(structure, density)
            found += [(text + ',"seed":', share)] * times
    return found


def _parts(count: int, terms: int, random: Callable[[], float]) -> list[int]:
    """Operands for each term: at least one, all together ``count``."""
    sizes = [1] * terms
    for _ in range(count - terms):
        sizes[int(random() * terms)] += 1
    return sizes


def _sample(count: int, times: int, random: Callable[[], float]) -> list[int]:
    """``times`` different numbers below ``count``."""
    if times >= count:
        return list(range(count))
    numbers = list(range(count))
    for place in range(times):
        other = place + int(random() * (count - place))
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return numbers[:times]


def _has_outer(words: Sequence[Word]) -> bool:
    """Whether an operand has indices, but none of another operand."""
    for number, word in enumerate(words):
        if word.mask and len(words) > 1:
            others = 0
            for place, other in enumerate(words):
                if place != number:
                    others |= other.mask
            if not word.mask & others:
                return True
    return False
