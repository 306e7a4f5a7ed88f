"""Sizes at which compilers go wrong: extents for tensors that are meant to be too large.

A number of elements is chosen first: just beyond what the device holds, where 32 bits end, where 64
bits end, and multiples of 2^32 and 2^64, at which a size that is computed in too few bits comes out
small. It is then split over the axes. What is drawn is a wish: the constraints have the last word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from reprise.xcheck.question import MOST

_ENDS = (2**31, 2**32, 2**61, 2**62, 2**63)
_SMALL = (1, 2, 3, 4, 8, 16, 32, 64, 100, 128)


def draw_shape(rng: Random, rank: int, limits: Iterable[int | float | str]) -> Sequence[int]:
    """Extents of a large tensor. ``limits``: what the device description says, in any unit."""
    if rank == 0:
        return ()
    total = _total(rng, [x for x in limits if isinstance(x, int) and x >= 1 << 20])
    shape = [1] * rank
    large = rng.randrange(rank)
    for axis in rng.sample(range(rank), rank):
        if axis == large or total <= 1:
            continue
        if rng.random() < 0.35:  # a second large axis
            shape[axis] = min(MOST, max(1, 1 << rng.randrange(total.bit_length())))
        else:
            shape[axis] = rng.choice(_SMALL)
        total = -(-total // shape[axis])
    shape[large] = min(MOST, max(1, total))
    return shape


def _total(rng: Random, limits: Sequence[int]) -> int:
    """A number of elements."""
    choice = rng.random()
    if limits and choice < 0.4:
        return rng.choice(limits) // rng.choice((1, 4, 8, 32)) * rng.choice((1, 2, 3, 10)) + 1
    end = rng.choice(_ENDS)
    if choice < 0.7:
        return end + rng.choice((-1, 0, 1, 16, 1024))
    if choice < 0.85:
        return end * rng.choice((2, 3, 4, 16)) + rng.choice((0, 16))
    return int(10 ** rng.uniform(9, 24))
