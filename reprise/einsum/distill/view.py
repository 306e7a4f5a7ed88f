"""A kernel as conditions look at it: what its facts say, in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from reprise.einsum.facts import data_facts
from reprise.einsum.kernel import Format, Kernel, Level

OUTPUT = "A"
"""The variable of the output's tensor in rules."""

LOOPS = {"sparse": ("encoded", "stored"), "encoded": ("stored",), "read": ("stored",), "stored": ()}
"""Which levels ask for an order of loops: two of one tensor of which one is not dense; any two of a
tensor that is not plainly dense; any two of an operand; any two. With those that ask for the same
and for more. As ``sparse_before`` and so on in ``rules/einsum/roles.rules``."""

Binding = Mapping[str, int | str]
"""What variables stand for: operands (``O1``) for numbers, indices (``I``) for names."""


@dataclass(frozen=True)
class View:
    """See the module. Operands are numbered through all terms, as in facts."""

    kernel: Kernel

    @cached_property
    def operands(self) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
        """The term, the tensor and the indices of each operand."""
        return tuple(
            (number, access.tensor, access.indices)
            for number, term in enumerate(self.kernel.terms)
            for access in term.factors
        )

    @cached_property
    def output(self) -> tuple[str, ...]:
        """The output's indices."""
        return self.kernel.output.indices

    @cached_property
    def formats(self) -> dict[str, Format]:
        return {tensor.name: tensor.format for tensor in self.kernel.tensors}

    @cached_property
    def extents(self) -> dict[str, int]:
        return self.kernel.extent

    @cached_property
    def data(self) -> frozenset[tuple[str, str]]:
        """What entries are like: tensor and kind."""
        shapes = self.kernel.shapes
        return frozenset(
            (tensor.name, str(row[1]))
            for tensor in self.kernel.operands
            for _, row in data_facts(tensor.name, tensor.data, shapes[tensor.name])
        )

    @cached_property
    def terms(self) -> int:
        return len(self.kernel.terms)

    @cached_property
    def loops(self) -> dict[str, frozenset[tuple[str, str]]]:
        """For each of :data:`LOOPS`, which index comes before which, by any path."""
        found: dict[str, set[tuple[str, str]]] = {kind: set() for kind in LOOPS}
        accesses = [(name, indices, True) for _, name, indices in self.operands]
        for name, indices, is_read in (
            *accesses,
            (self.kernel.output.tensor, self.output, False),
        ):
            stored = self.formats[name]
            levels = list(zip(stored.levels, stored.order, strict=True))
            plain = stored.is_dense and stored.is_ordered
            for (one, first), (other, second) in combinations(levels, 2):
                pair = indices[first], indices[second]
                found["stored"].add(pair)
                if is_read:
                    found["read"].add(pair)
                if not plain:
                    found["encoded"].add(pair)
                if one is not Level.DENSE or other is not Level.DENSE:
                    found["sparse"].add(pair)
        return {kind: _closed(pairs) for kind, pairs in found.items()}

    # --- of a variable ---------------------------------------------------------------------------

    def tensor(self, who: str, binding: Binding) -> str:
        """The tensor of an operand's variable, or of the output."""
        return (
            self.kernel.output.tensor if who == OUTPUT else self.operands[_number(who, binding)][1]
        )

    def indices(self, who: str, binding: Binding) -> tuple[str, ...]:
        return self.output if who == OUTPUT else self.operands[_number(who, binding)][2]

    def format(self, who: str, binding: Binding) -> Format:
        return self.formats[self.tensor(who, binding)]

    def levels(self, who: str, binding: Binding, index: str) -> list[tuple[int, Level]]:
        """The levels at which an operand or the output stores an index, and their kinds."""
        indices, stored = self.indices(who, binding), self.format(who, binding)
        return [
            (level, kind)
            for level, (kind, position) in enumerate(zip(stored.levels, stored.order, strict=True))
            if indices[position] == index
        ]


def _number(who: str, binding: Binding) -> int:
    number = binding[who]
    assert isinstance(number, int)
    return number


def _closed(pairs: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The transitive closure."""
    reached = set(pairs)
    for middle in {index for pair in pairs for index in pair}:
        before = [one for one, other in reached if other == middle]
        after = [other for one, other in reached if one == middle]
        reached |= {(one, other) for one in before for other in after}
    return frozenset(reached)
