"""A layered drawing of a directed acyclic graph: where each box stands and how edges run.

The classic method (Sugiyama): every box gets a row below all that it depends on; an edge over
several rows gets a point in each; rows are ordered by sweeps of barycentres, the ordering with
the fewest crossings kept; then boxes move as close to their neighbours as their order and their
widths allow, which is an isotonic regression and solved exactly, row by row. Parts that no edge
joins are drawn one by one and set like words in lines. Everything is deterministic. Sizes are in
the drawing's units; a box's edges leave from its bottom and enter at its top.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BESIDE, BETWEEN = 18.0, 34.0
"""Room between boxes of a row, and between rows."""
WIDE = 1040.0
"""Width of a line of parts; a part that is wider has a line of its own."""
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


Hop = tuple[float, float, float, float]
"""A curve of an edge: from (x, y) to (x, y)."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the drawing, with its own origin: corners, and the hops of each edge."""

    width: float
    height: float
    boxes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[float, tuple[Hop, ...]], ...]
    """Each starts at this height, straight down to its first hop."""


def layered(boxes: Sequence[Box], edges: Sequence[Edge], first: Collection[int] = ()) -> Layout:
    """Lay out. Edges must go from boxes to later ones in the sequence (the order of data flow).
    Parts with boxes of ``first`` come first.

    Raises ValueError for an edge that does not.
    """
    if any(not 0 <= e.source < e.target < len(boxes) for e in edges):
        raise ValueError("an edge must lead from a box to a later one")
    corners: dict[int, tuple[float, float]] = {}
    paths: dict[int, str] = {}
    x = y = tall = wide = 0.0
    for members in sorted(_parts(boxes, edges), key=lambda m: not set(m) & set(first)):
        number = {box: n for n, box in enumerate(members)}
        own = [n for n, e in enumerate(edges) if e.source in number]
        moved = [
            Edge(number[e.source], number[e.target], e.leave, e.enter)
            for e in (edges[n] for n in own)
        ]
        part = _part([boxes[n] for n in members], moved)
        if x and x + part.width > WIDE:
            x, y, tall = 0.0, y + tall + BETWEEN, 0.0
        for n, corner in zip(members, part.boxes, strict=True):
            corners[n] = corner[0] + x, corner[1] + y
        for n, (start, hops) in zip(own, part.edges, strict=True):
            paths[n] = _path(start, hops, x, y)
        wide, tall = max(wide, x + part.width), max(tall, part.height)
        x += part.width + 2 * BESIDE
    return Layout(
        wide,
        y + tall,
        tuple(corners[n] for n in range(len(boxes))),
        tuple(paths[n] for n in range(len(edges))),
    )


def _parts(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[list[int]]:
    """The boxes that edges join, part by part."""
    part = list(range(len(boxes)))

    def root(number: int) -> int:
        while part[number] != number:
            number = part[number]
        return number

    for edge in edges:
        a, b = sorted((root(edge.source), root(edge.target)))
        part[b] = a
    found: dict[int, list[int]] = defaultdict(list)
    for number in range(len(boxes)):
        found[root(number)].append(number)
    return list(found.values())


def _part(boxes: Sequence[Box], edges: Sequence[Edge]) -> _Part:
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
) -> _Part:
    heights = [max((sizes[n].height for n in row), default=0.0) for row in order]
    tops = [0.0]
    for height in heights:
        tops.append(tops[-1] + height + BETWEEN)
    left = min((m - s.width / 2 for m, s in zip(middles, sizes, strict=True)), default=0.0)
    right = max((m + s.width / 2 for m, s in zip(middles, sizes, strict=True)), default=0.0)
    corners = tuple(
        (middles[n] - box.width / 2 - left, tops[rows[n]]) for n, box in enumerate(boxes)
    )
    lines = []
    for edge, chain in zip(edges, chains, strict=True):
        x = middles[edge.source] + edge.leave - left
        row = rows[edge.source]
        start = tops[row] + boxes[edge.source].height
        hops: list[Hop] = []
        for number in chain[1:]:
            bottom = tops[row] + heights[row]
            row = rows[number]
            to = middles[number] - left + (edge.enter if number == edge.target else 0.0)
            hops.append((x, bottom, to, tops[row]))
            x = to
        lines.append((start, tuple(hops)))
    return _Part(right - left, max(0.0, tops[-1] - BETWEEN), corners, tuple(lines))


def _path(start: float, hops: Sequence[Hop], x: float, y: float) -> str:
    """An edge in SVG's terms, moved by (x, y): straight beside boxes, curved between rows."""
    words = [f"M{hops[0][0] + x:.1f} {start + y:.1f}"]
    for at, top, to, bottom in hops:
        half = f"{(top + bottom) / 2 + y:.1f}"
        words.append(
            f"V{top + y:.1f}C{at + x:.1f} {half} {to + x:.1f} {half} {to + x:.1f} {bottom + y:.1f}"
        )
    return "".join(words)
