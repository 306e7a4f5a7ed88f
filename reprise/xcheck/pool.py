"""Which constraint to violate next: Algorithm 1 of the second paper (§3.2), to the letter.

The pool P holds for each constraint its rank and how often it was chosen. The smallest rank is
chosen; among several, the one that was chosen least often; among several, the first. After the
model that violates it was compiled, its rank grows by 1/p, where p is the number of compilation
passes that were completed: what fails late keeps a small rank, and is violated again soon.

What the paper leaves open: initial ranks are inputs (all 1 unless stated); p is at least 1, so that
a model that fails before the first pass can be ranked; a model that compiles has completed all
passes, so it counts as deepest. Ranks are fractions, since "the same rank" has to mean the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

FIRST_RANK = Fraction(1)


@dataclass(frozen=True, slots=True)
class Entry:
    """A constraint in the pool: (c, r, u) of the paper."""

    name: str
    rank: Fraction = FIRST_RANK
    usage: int = 0


class Pool:
    """The pool P. Entries keep the order in which they were given.

    ``_order`` is a heap of (rank, usage, place in the order, name), which is the order in which
    entries are chosen: what is in it of an entry that has changed or is gone is dropped when it
    comes up."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._places = {name: place for place, name in enumerate(self._entries)}
        self._order = [self._key(entry) for entry in self]
        heapq.heapify(self._order)

    @classmethod
    def of(cls, names: Iterable[str], ranks: Mapping[str, Fraction] | None = None) -> Pool:
        """A pool in which nothing was chosen yet."""
        given = ranks or {}
        return cls(Entry(name, given.get(name, FIRST_RANK)) for name in names)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def choose(self) -> Entry | None:
        """The constraint to violate next: of those with the smallest rank (line 2) the one that
        was chosen least often (line 6), of these the first; None from an empty pool."""
        while self._order:
            rank, usage, _, name = self._order[0]
            entry = self._entries.get(name)
            if entry is not None and (entry.rank, entry.usage) == (rank, usage):
                return entry
            heapq.heappop(self._order)
        return None

    def record(self, name: str, completed: int) -> Entry:
        """Lines 11 to 14, after ``completed`` passes; the entry as it is now."""
        old = self._entries[name]
        rank = old.rank + Fraction(1, max(completed, 1))
        entry = self._entries[name] = replace(old, rank=rank, usage=old.usage + 1)
        heapq.heappush(self._order, self._key(entry))
        return entry

    def drop(self, name: str) -> None:
        """Take a constraint out: no model violates it."""
        del self._entries[name]

    def copy(self) -> Pool:
        """A pool of its own, to look ahead in."""
        copied = Pool(())
        copied._entries, copied._places = dict(self._entries), self._places
        copied._order = list(self._order)
        return copied

    def _key(self, entry: Entry) -> tuple[Fraction, int, int, str]:
        return entry.rank, entry.usage, self._places[entry.name], entry.name
