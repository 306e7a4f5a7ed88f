"""A layered drawing of a directed acyclic graph: where each box stands and how edges run.

The classic method (Sugiyama): every box gets a row below all that it depends on; an edge over
several rows gets a point in each; rows are ordered by sweeps of barycentres, the ordering with
the fewest crossings kept; then boxes move as close to their neighbours as their order and their
widths allow, which is an isotonic regression and solved exactly, row by row. Everything is
deterministic. Sizes are in the drawing's units; a box's edges leave from its bottom and enter at
its top.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BESIDE, BETWEEN = 18.0, 34.0
"""Room between boxes of a row, and between rows."""
_SWEEPS = 8
_BEND = 2.0
"""How much more a bend in a long edge costs than a slanted short one."""


@dataclass(frozen=True, slots=True)
class Box:
    """``late``: belongs just above its first reader (a source), not as high as it can."""

    width: float
    height: float
    late: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """From a box to a box, by number; ``leave`` and ``enter``: where, measured from their
    middles."""

    source: int
    target: int
    leave: float = 0.0
    enter: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """``boxes``: the left upper corner of each box; ``edges``: the path of each, in SVG's terms."""

    width: float
    height: float
    boxes: tuple[tuple[float, float], ...]
    edges: tuple[str, ...]


def layered(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Lay out. Edges must go from boxes to later ones in the sequence (the order of data flow).

    Raises ValueError for an edge that does not.
    """
    if any(not 0 <= e.source < e.target < len(boxes) for e in edges):
        raise ValueError("an edge must lead from a box to a later one")
    rows = _rows(boxes, edges)
    sizes = list(boxes)
    chains: list[list[int]] = []
    for edge in edges:
        between = range(rows[edge.source] + 1, rows[edge.target])
        chain = [edge.source, *range(len(sizes), len(sizes) + len(between)), edge.target]
        sizes += [Box(4.0, 0.0)] * len(between)
        rows += between
        chains.append(chain)
    links = [pair for chain in chains for pair in pairwise(chain)]
    order = _ordered(rows, links)
    middles = _placed(order, sizes, links, len(boxes))
    return _drawn(boxes, edges, chains, rows, order, middles, sizes)


def _rows(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[int]:
    """The row of each box."""
    rows = [0] * len(boxes)
    for edge in sorted(edges, key=lambda e: e.target):
        rows[edge.target] = max(rows[edge.target], rows[edge.source] + 1)
    readers: dict[int, list[int]] = defaultdict(list)
    for edge in edges:
        readers[edge.source].append(rows[edge.target])
    for number, box in enumerate(boxes):
        if box.late and readers[number]:
            rows[number] = min(readers[number]) - 1
    return rows


def _ordered(rows: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The boxes (and points) of each row, left to right."""
    order: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for number, row in enumerate(rows):
        order[row].append(number)
    up: dict[int, list[int]] = defaultdict(list)
    down: dict[int, list[int]] = defaultdict(list)
    for source, target in links:
        down[source].append(target)
        up[target].append(source)
    best, fewest = [list(row) for row in order], _crossings(order, down)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downward = sweep % 2 == 0
        near = up if downward else down
        for members in order if downward else reversed(order):
            place = {n: i for r in order for i, n in enumerate(r)}
            members.sort(key=_barycentre(near, place))
        crossings = _crossings(order, down)
        if crossings < fewest:
            best, fewest = [list(row) for row in order], crossings
    return best


def _barycentre(
    near: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> Callable[[int], float]:
    def key(number: int) -> float:
        others = near.get(number)
        return sum(place[o] for o in others) / len(others) if others else float(place[number])

    return key


def _crossings(order: Sequence[Sequence[int]], down: Mapping[int, Sequence[int]]) -> int:
    """How many pairs of edges cross: inversions between neighbouring rows."""
    total = 0
    for upper, lower in pairwise(order):
        place = {n: i for i, n in enumerate(lower)}
        seen: list[int] = []
        for number in upper:
            targets = [place[t] for t in down.get(number, ())]
            total += sum(len(seen) - bisect_right(seen, t) for t in targets)
            for t in targets:
                insort(seen, t)
    return total


def _placed(
    order: Sequence[Sequence[int]],
    sizes: Sequence[Box],
    links: Sequence[tuple[int, int]],
    real: int,
) -> list[float]:
    """The middle of each box; numbers from ``real`` on are points of long edges."""
    near: list[list[tuple[int, float]]] = [[] for _ in sizes]
    for source, target in links:
        weight = _BEND if source >= real or target >= real else 1.0
        near[source].append((target, weight))
        near[target].append((source, weight))
    middles = [0.0] * len(sizes)
    for row in order:
        x = 0.0
        for number in row:
            middles[number] = x + sizes[number].width / 2
            x += sizes[number].width + BESIDE
    for _ in range(_SWEEPS):
        for row in (*order, *reversed(order)):
            wanted, weights = [], []
            for number in row:
                pull = sum(w for _, w in near[number])
                mean = sum(middles[o] * w for o, w in near[number]) / pull if pull else 0.0
                wanted.append(mean if pull else middles[number])
                weights.append(pull or 0.01)
            apart = [(sizes[a].width + sizes[b].width) / 2 + BESIDE for a, b in pairwise(row)]
            for number, middle in zip(row, _apart(wanted, weights, apart), strict=True):
                middles[number] = middle
    return middles


def _apart(
    wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]
) -> list[float]:
    """The positions nearest to the wanted ones (least squares) that keep the order and these
    distances: pool adjacent violators."""
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, total, count = want - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, heavy, many = pools.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        pools.append((mean, total, count))
    flat = [mean for mean, _, count in pools for _ in range(count)]
    return [base + offset for base, offset in zip(flat, offsets, strict=False)]


def _drawn(
    boxes: Sequence[Box],
    edges: Sequence[Edge],
    chains: Sequence[Sequence[int]],
    rows: Sequence[int],
    order: Sequence[Sequence[int]],
    middles: Sequence[float],
    sizes: Sequence[Box],
) -> Layout:
    heights = [max((sizes[n].height for n in row), default=0.0) for row in order]
    tops = [0.0]
    for height in heights:
        tops.append(tops[-1] + height + BETWEEN)
    left = min((m - s.width / 2 for m, s in zip(middles, sizes, strict=True)), default=0.0)
    right = max((m + s.width / 2 for m, s in zip(middles, sizes, strict=True)), default=0.0)
    corners = tuple(
        (middles[n] - box.width / 2 - left, tops[rows[n]]) for n, box in enumerate(boxes)
    )
    paths = []
    for edge, chain in zip(edges, chains, strict=True):
        x = middles[edge.source] + edge.leave - left
        row = rows[edge.source]
        path = [f"M{x:.1f} {tops[row] + boxes[edge.source].height:.1f}"]
        for number in chain[1:]:
            bottom = tops[row] + heights[row]
            row = rows[number]
            to = middles[number] - left + (edge.enter if number == edge.target else 0.0)
            half = (bottom + tops[row]) / 2
            path.append(f"V{bottom:.1f}C{x:.1f} {half:.1f} {to:.1f} {half:.1f} {to:.1f}")
            path.append(f" {tops[row]:.1f}")
            x = to
        paths.append("".join(path))
    return Layout(right - left, max(0.0, tops[-1] - BETWEEN), corners, tuple(paths))
