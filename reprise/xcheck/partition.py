"""Partitions of the same members, and how one compares with another.

A *signal* gives every compilation a value (accepted or not, the passes that it completed, what held
of every constraint); members with equal values are a class. Nothing here depends on the order in
which members come, nor on what the values are, only on which are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, log2


@dataclass(frozen=True)
class Partition:
    """Classes of members (numbers), the largest first, then by their first member."""

    name: str
    classes: tuple[tuple[int, ...], ...]

    @classmethod
    def by(cls, name: str, values: Mapping[int, Hashable]) -> Partition:
        """Members with equal values are in one class."""
        classes: dict[Hashable, list[int]] = {}
        for member in sorted(values):
            classes.setdefault(values[member], []).append(member)
        found = sorted(map(tuple, classes.values()), key=lambda c: (-len(c), c[0]))
        return cls(name, tuple(found))

    def __len__(self) -> int:
        return len(self.classes)

    @cached_property
    def place(self) -> dict[int, int]:
        """The class of each member, by its position."""
        return {member: i for i, members in enumerate(self.classes) for member in members}

    @property
    def members(self) -> int:
        return len(self.place)

    @property
    def entropy(self) -> float:
        """Bits that the class of a member tells, on average."""
        return _entropy(map(len, self.classes), self.members)


@dataclass(frozen=True)
class Comparison:
    """Two partitions of the same members. ``table``: how many members are in class i of the first
    and class j of the second, where that is not 0."""

    first: Partition
    second: Partition
    table: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, first: Partition, second: Partition) -> Comparison:
        """Raises ValueError if the members differ."""
        if first.place.keys() != second.place.keys():
            raise ValueError(f"{first.name} and {second.name} are not about the same members")
        cells = Counter((first.place[member], second.place[member]) for member in first.place)
        return cls(first, second, dict(sorted(cells.items())))

    @property
    def refines(self) -> bool:
        """Whether every class of the first lies within one of the second: the first tells apart
        whatever the second does."""
        return len(self.table) == len(self.first)

    @property
    def refined(self) -> bool:
        """The other way round."""
        return len(self.table) == len(self.second)

    @property
    def pieces(self) -> tuple[int, ...]:
        """Into how many the first cuts each class of the second."""
        found = Counter(j for _, j in self.table)
        return tuple(found[j] for j in range(len(self.second)))

    @property
    def told(self) -> float:
        """Bits that the first tells of a member whose class in the second is known."""
        joint = _entropy(self.table.values(), self.first.members)
        return max(0.0, joint - self.second.entropy)

    @property
    def missed(self) -> float:
        """Bits that the second tells of a member whose class in the first is known; 0 if the first
        refines it."""
        if self.refines:
            return 0.0
        return max(0.0, _entropy(self.table.values(), self.first.members) - self.first.entropy)

    @property
    def adjusted_rand(self) -> float:
        """The adjusted Rand index (Hubert and Arabie, 1985): 1 for equal partitions, about 0 for
        unrelated ones."""
        pairs = comb(self.first.members, 2)
        both = sum(comb(n, 2) for n in self.table.values())
        ours = sum(comb(len(c), 2) for c in self.first.classes)
        theirs = sum(comb(len(c), 2) for c in self.second.classes)
        if ours == theirs == both:  # equal partitions, those of no pairs among them
            return 1.0
        expected = ours * theirs / pairs
        return (both - expected) / ((ours + theirs) / 2 - expected)


def _entropy(sizes: Iterable[int], total: int) -> float:
    return max(0.0, -sum(n / total * log2(n / total) for n in sizes))


def joined(name: str, partitions: Sequence[Partition]) -> Partition:
    """The coarsest partition that refines them all: members are together that all keep together."""
    places = [partition.place for partition in partitions]
    members = places[0] if places else {}
    return Partition.by(name, {m: tuple(place[m] for place in places) for m in members})
