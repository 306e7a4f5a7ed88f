"""Conditions that tell the places where a defect shows from those where it does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from reprise.distill.conditions import (
    Among,
    Condition,
    Distinct,
    Holds,
    Near,
    Place,
    Related,
    Term,
    Within,
    holds_all,
    is_number,
)
from reprise.distill.draft import Draft, conditions_of

_MOST_RIGHT = 80
"""So many triggers, the latest, are compared with what does not trigger."""

SEVERAL = 3
"""So many programs that do not trigger must have a neighbour in common for it to be blamed, and
must pass for want of a condition before the joint check adds it."""


def separators(
    draft: Draft,
    right: Sequence[Place],
    wrong: Sequence[Place],
    allowed: Callable[[Condition], bool],
    *,
    partial: bool = False,
) -> list[Condition]:
    """Conditions that hold at all ``right`` places and together at no ``wrong`` one: one, or two.
    With ``partial``, the best single one, which need not exclude every wrong place. Empty if there
    are none."""
    if not right:
        return []
    right = [right[0], *right[1:][-_MOST_RIGHT:]]
    usual = [c for c in conditions_of(right[0], draft) if not _is_odd_bound(c)]
    usual += _bounds(draft, right, int)
    usual += _without_neighbours(draft, right, wrong)
    # a bound on a float is some number between two that were seen: only if 0 or 1 are none
    for more in ((), tuple(_bounds(draft, right, float))):
        candidates = [
            c
            for c in dict.fromkeys((*usual, *more))
            if allowed(c) and all(c.holds(place) for place in right[1:])
        ]
        chosen = _cover(candidates, wrong, 1 if partial else 2, draft.sources)
        if chosen and (partial or not any(holds_all(chosen, place) for place in wrong)):
            return chosen
    return []


def _is_odd_bound(condition: Condition) -> bool:
    """Whether it bounds a float on one side, by a number that just happened to be there."""
    if not isinstance(condition, Within) or (condition.low is None) == (condition.high is None):
        return False
    bound = condition.high if condition.low is None else condition.low
    return isinstance(bound, float) and bound not in (-1.0, 0.0, 1.0)


def _cover(
    candidates: Sequence[Condition], wrong: Sequence[Place], most: int, sources: Collection[str]
) -> list[Condition]:
    """Greedily, the conditions that leave the fewest places, the plainest of equals."""
    chosen: list[Condition] = []
    left = list(wrong)
    while left and candidates and len(chosen) < most:
        best = min(
            candidates,
            key=lambda c: (sum(c.holds(p) for p in left), *_plainest_first(c, sources)),
        )
        remaining = [p for p in left if best.holds(p)]
        if len(remaining) == len(left):
            break
        chosen.append(best)
        left = remaining
    return chosen


def _bounds(draft: Draft, right: Sequence[Place], kind: type) -> Iterator[Condition]:
    """The least and the greatest value of each number of a kind, over all places."""
    terms = {c.term for c in conditions_of(right[0], draft) if isinstance(c, Within)}
    for term in sorted(terms, key=str):
        found = [term.read(place) for place in right]
        numbers = [v for v in found if is_number(v) and isinstance(v, kind)]
        if len(numbers) == len(found):
            yield Within(term, min(numbers), None)
            yield Within(term, None, max(numbers))


def _without_neighbours(
    draft: Draft, right: Sequence[Place], wrong: Sequence[Place]
) -> Iterator[Condition]:
    """For each tensor: none of the operators reads it, or makes it, that do so at ``wrong`` places
    only, if there are several such places."""
    for tensor in draft.tensors:
        for where in ("user", "producer"):
            seen = [
                {op for p in places for op in p.around.near(where, p.tensors[tensor])}
                for places in (right, wrong)
                if all(tensor in p.tensors for p in places)
            ]
            if len(seen) < 2:
                continue
            only = seen[1] - seen[0]
            places = sum(bool(p.around.near(where, p.tensors[tensor]) & only) for p in wrong)
            if places >= SEVERAL:
                yield Near(where, tensor, tuple(sorted(only)), negated=True)


def _plainest_first(
    condition: Condition, sources: Collection[str]
) -> tuple[int, bool, bool, int, str]:
    text = str(condition)
    computed = not condition.names <= set(sources)
    return plainness(condition), computed, "[-" in text, len(text), text


def plainness(condition: Condition) -> int:
    """How much a person would rather read another condition: element types and constness before
    bounds, bounds before exact numbers and what relates two things."""
    match condition:
        case Among(Term("dtype"), negated=False) | Holds("constant" | "initializer" | "identity"):
            return 0
        case Holds():
            return 1
        case Within(Term("rank" | "fanout")):
            return 2
        case Within(_, low, high) if low is None or high is None:
            return 3
        case Related(_, "==") | Distinct():
            return 4
        case Among(label=label) if label:  # a known set rather than the members that were met
            return 4
        case Among(_, _, True):
            return 5
        case Within():
            return 6
        case Near():
            return 9
        case _:
            return 7
