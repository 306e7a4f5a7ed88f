"""What shape functions suggest to a sampler: values that are likely to fit what is drawn already.

Where a signature relates two things by a shape function (``broadcast(A, B)``, ``permute(D, P)``),
:data:`SUGGESTIONS` says how to draw one argument when others are known. A suggestion is a guess:
the signature has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Shape = tuple[int, ...]

MISSING: Any = object()
"""The value of an argument that is not drawn yet, and of a suggestion where there is none."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """What extents and ranks are drawn from; what occurs twice is twice as likely.

    The default extents are small: 1 in particular meets many special cases.
    """

    extents: tuple[int, ...] = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8)
    ranks: tuple[int, ...] = (0, 1, 2, 2, 3, 3, 4)

    def extent(self, rng: Random) -> int:
        """One extent."""
        return self.extents[int(rng.random() * len(self.extents))]

    def rank(self, rng: Random) -> int:
        """One rank."""
        return self.ranks[int(rng.random() * len(self.ranks))]

    def shape(self, rng: Random, rank: int | None = None) -> Shape:
        """A shape of the given rank, or of any."""
        count = self.rank(rng) if rank is None else rank
        return tuple([self.extent(rng) for _ in range(count)])


@dataclass(slots=True)
class Request:
    """Suggest a value for argument ``i`` of a shape function called with ``args``, of which some
    are MISSING. ``first`` is the shape of a variadic operand's first tensor, if that is given."""

    rng: Random
    args: list[Any]
    i: int
    shapes: Shapes
    first: Shape | None = None


Suggest = Callable[[Request], Any]


def _broadcasting(ask: Request, shape: Shape, *, grow: bool = False) -> Shape:
    """A shape that broadcasts with ``shape``; if it may ``grow``, also one that stretches it."""
    rng = ask.rng
    cut = rng.choice((0, 0, 1, len(shape)))
    kept = [1 if rng.random() < 0.25 else extent for extent in shape[cut:]]
    if grow and not cut and rng.random() < 0.2:
        kept = [ask.shapes.extent(rng) if extent == 1 else extent for extent in kept]
    return tuple(kept)


def _like(ask: Request) -> Any:
    known = [a for j, a in enumerate(ask.args) if j != ask.i and isinstance(a, tuple)]
    if not known:
        return MISSING
    longest = max(known, key=len)
    return _broadcasting(ask, longest, grow=ask.i == 1 and len(ask.args) == 2)


def _group_that_broadcasts(ask: Request) -> Any:
    shape = ask.shapes.shape(ask.rng) if ask.first is None else ask.first
    return (shape, *(_broadcasting(ask, shape) for _ in range(ask.rng.randint(0, 3))))


def _group_that_joins(ask: Request) -> Any:
    rng = ask.rng
    if ask.i == 1:
        group = ask.args[0]
        if group is MISSING:
            return MISSING
        rank = len(group[0])
        apart = [a for a in range(rank) if len({shape[a] for shape in group}) > 1]
        axis = apart[0] if apart else rng.randrange(rank)
        return axis - rank if rng.random() < 0.3 else axis
    shape = ask.first
    if shape is None:
        shape = ask.shapes.shape(rng, rng.choice((1, 2, 3, 4)))
    axis = rng.randrange(len(shape))
    others = [
        (*shape[:axis], ask.shapes.extent(rng), *shape[axis + 1 :])
        for _ in range(rng.randint(0, 3))
    ]
    return (shape, *others)


def _group_alike(ask: Request) -> Any:
    shape = ask.shapes.shape(ask.rng) if ask.first is None else ask.first
    return (shape,) * ask.rng.randint(1, 4)


def _permutation(ask: Request) -> Any:
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    order = list(range(len(ask.args[0])))
    ask.rng.shuffle(order)
    return tuple(order)


def _new_shape(ask: Request) -> Any:
    """The elements of a shape dealt out again; sometimes one extent is -1, or 0 for a copy."""
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    rng = ask.rng
    old, zero_is_zero = ask.args[0], ask.args[2]
    factors: list[int] = []
    rest = math.prod(old)
    for prime in (2, 3, 5, 7):
        while rest and rest % prime == 0:
            factors.append(prime)
            rest //= prime
    if rest != 1:
        factors.append(rest)
    shape = [1] * rng.choice((1, 2, 2, 3, 4))
    for factor in factors:
        shape[rng.randrange(len(shape))] *= factor
    if 0 in old:
        return tuple(shape)  # -1 says nothing here, and 0 may be taken for a copy
    for axis in range(min(len(shape), len(old))):
        if zero_is_zero is not True and shape[axis] == old[axis] and rng.random() < 0.3:
            shape[axis] = 0
    if rng.random() < 0.3:
        shape[rng.randrange(len(shape))] = -1
    return tuple(shape)


def _new_axes(ask: Request) -> Any:
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    rng = ask.rng
    count = rng.choice((1, 1, 2))
    rank = len(ask.args[0]) + count
    chosen = rng.sample(range(rank), count)
    return tuple(axis - rank if rng.random() < 0.3 else axis for axis in chosen)


def _pieces(ask: Request) -> Any:
    shape, axis = ask.args[:2]
    if ask.i != 2 or shape is MISSING or axis is MISSING:
        return MISSING
    rest = shape[axis]
    sizes: list[int] = []
    while rest and len(sizes) < 3:
        sizes.append(ask.rng.randint(1, rest))
        rest -= sizes[-1]
    return (*sizes, rest) if rest or not sizes else tuple(sizes)


def _bounds(ask: Request) -> Any:
    rng, args = ask.rng, ask.args
    if args[0] is MISSING:
        return MISSING
    rank = len(args[0])
    known = next((len(a) for a in args[1:] if isinstance(a, tuple)), None)
    count = rng.randint(1, rank) if known is None and rank else known or 0
    match ask.i:
        case 1:
            return tuple(rng.choice((0, 0, 1, -1, -2, 2, 9)) for _ in range(count))
        case 2:
            return tuple(rng.choice((1, 2, 3, -1, 2**31 - 1, 2**63 - 1)) for _ in range(count))
        case 3:
            return tuple(rng.sample(range(rank), min(count, rank)))
        case _:
            return tuple(rng.choice((1, 1, 1, 2, 3, -1)) for _ in range(count))


def _for_each_axis(*choices: Any) -> Suggest:
    """A list with one random choice for each extent of the first argument."""

    def suggest(ask: Request) -> Any:
        if ask.i == 0 or ask.args[0] is MISSING:
            return MISSING
        return tuple(ask.rng.choice(choices) for _ in range(len(ask.args[0])))

    return suggest


def _pads(ask: Request) -> Any:
    axes = ask.args[2]
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    count = len(axes if isinstance(axes, tuple) else ask.args[0])
    return tuple(ask.rng.choice((0, 0, 1, 2)) for _ in range(2 * count))


def _windows(ask: Request) -> Any:
    if ask.i not in (1, 2, 3, 4) or ask.args[0] is MISSING:
        return MISSING
    count = len(ask.args[0]) * (2 if ask.i == 3 else 1)
    choices = {1: (1, 2, 2, 3), 2: (1, 1, 2, 3), 3: (0, 0, 1), 4: (1, 1, 2)}[ask.i]
    return tuple(ask.rng.choice(choices) for _ in range(count))


def _matrix(ask: Request) -> Any:
    rng = ask.rng
    if ask.i == 0:
        return ask.shapes.shape(rng, rng.choice((1, 2, 2, 3, 4)))
    left = ask.args[0]
    if left is MISSING:
        return MISSING
    if rng.random() < 0.2:
        return (left[-1],)
    batch = _broadcasting(ask, left[:-2], grow=True) if rng.random() < 0.7 else ()
    return (*batch, left[-1], ask.shapes.extent(rng))


def _index_tuples(ask: Request) -> Any:
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    rng = ask.rng
    shape, batch = ask.args[0], ask.args[2] if isinstance(ask.args[2], int) else 0
    middle = ask.shapes.shape(rng, rng.choice((0, 1, 2)))
    return (*shape[:batch], *middle, rng.randint(1, max(len(shape) - batch, 1)))


def _smaller(ask: Request) -> Any:
    if ask.i != 1 or ask.args[0] is MISSING:
        return MISSING
    return tuple(ask.rng.randint(min(1, extent), extent) for extent in ask.args[0])


EQUATIONS = (
    "ij,jk->ik",
    "i,i->",
    "ii->i",
    "bij,bjk->bik",
    "ij->ji",
    "ij,j->i",
    "i,j->ij",
    "...ij,...jk->...ik",
    "ij,jk",
    "ijk->k",
)


def _equation(ask: Request) -> Any:
    rng, first = ask.rng, ask.first
    if ask.i == 1:
        if first is None:
            return rng.choice(EQUATIONS)
        fit = [e for e in EQUATIONS if _first_rank(e) == len(first)]
        return rng.choice(fit) if fit else rng.choice(EQUATIONS)
    extents: dict[str, int] = {}
    if first is not None:
        extents = dict(zip(ask.args[1].partition("->")[0].split(",")[0], first, strict=False))
    shapes = []
    batch = (ask.shapes.extent(rng),)
    for term in ask.args[1].partition("->")[0].split(","):
        shape: list[int] = []
        if term.startswith("..."):
            shape += batch
        for letter in term.removeprefix("..."):
            shape.append(extents.setdefault(letter, ask.shapes.extent(rng)))
        shapes.append(tuple(shape))
    return tuple(shapes)


def _first_rank(equation: str) -> int | None:
    """The rank of an equation's first operand; None if it has an ellipsis."""
    term = equation.partition("->")[0].split(",")[0]
    return None if "." in term else len(term)


SUGGESTIONS: dict[str, Suggest] = {
    "broadcast": _like,
    "broadcast_all": _group_that_broadcasts,
    "concat_dims": _group_that_joins,
    "common": _group_alike,
    "permute": _permutation,
    "reshape_dims": _new_shape,
    "insert": _new_axes,
    "split_dims": _pieces,
    "slice_dims": _bounds,
    "pad_dims": _pads,
    "tile_dims": _for_each_axis(1, 1, 2, 3),
    "scale_dims": _for_each_axis(1.0, 2.0, 0.5, 1.5),
    "sized_dims": _for_each_axis(1, 2, 3, 5),
    "windows": _windows,
    "unwindows": _windows,
    "matmul_dims": _matrix,
    "gather_nd_dims": _index_tuples,
    "room": _smaller,
    "einsum_dims": _equation,
}
