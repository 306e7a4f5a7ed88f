"""Dimensions of a line's attributes: free, a range, some words, item by item, or an identity."""

from __future__ import annotations

from collections.abc import Sequence

from reprise.distill.conditions import Among, Condition, Holds, Term, Within, is_number
from reprise.distill.draft import DraftNode
from reprise.distill.generalise.questions import ALL_DTYPES, attribute_of, attributes_in, mentions
from reprise.distill.generalise.trying import Trying
from reprise.distill.sampling import Wish
from reprise.solve.sampling import DRAWN
from reprise.uir.graph import Attribute, Scalar

_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 7.0)


def attributes(work: Trying) -> None:
    """Each attribute that the draft still says something of."""
    for line in work.draft.nodes:
        plan = work.sampling.signatures[line.ops[0]].plan
        for attribute in plan.attributes:
            said = [
                c
                for c in work.draft.about(line.name)
                if attribute_of(c) == (line.name, attribute.name)
            ]
            if said and not work.needed.issuperset(said):
                _attribute(work, line, attribute.name, attribute.type, said)


def _attribute(work: Trying, line: DraftNode, key: str, type: str, said: list[Condition]) -> None:
    dimension = f"{key} of {line.name} ({line.ops[0]})"
    now = work.place.nodes[line.name].attributes.get(key)

    def wish(value: Attribute | None) -> tuple[Wish, ...]:
        return (Wish("attr", line.name, key, value),)

    wishes: list[tuple[Wish, ...]] = [wish(DRAWN)] * work.effort.samples
    if type in ("dtype", "sym") and isinstance(now, str) and len(said) == 1:
        _words(work, dimension, line, key, now, said[0])
        return
    match type:
        case "bool":
            wishes = [wish(not now)] * max(2, work.effort.samples // 2)
        case "float":
            near = [now * 2, now + 1.0, -now] if isinstance(now, float) else []
            wishes = [wish(v) for v in (*_FLOATS, *near) if v != now]
        case "int":
            around = [now - 1, now + 1] if isinstance(now, int) else []
            numbers = dict.fromkeys((*around, 0, 1, 2, 3, -1))
            wishes = [wish(v) for v in numbers if v != now] + wishes
        case _:
            pass
    optional = next(
        a.optional for a in work.sampling.signatures[line.ops[0]].plan.attributes if a.name == key
    )
    present = Holds("attr", line.name, key)

    def about(condition: Condition) -> bool:
        return (line.name, key) in attributes_in(condition)

    if optional and now is not None:
        if work.relax(dimension, said, wishes, into=[present], learn=about):
            left = [c for c in work.draft.about(line.name) if attribute_of(c) == (line.name, key)]
            n = max(2, work.effort.samples // 2)
            if left == [present]:
                work.relax(f"{dimension} left out", left, [wish(None)] * n)
        return
    if work.relax(dimension, said, wishes, learn=about):
        return
    if isinstance(now, tuple) and any(c in work.draft.conditions for c in said):
        if len(now) >= 2 and now == tuple(range(len(now))):
            # the same at this rank, and what stays the same at another
            same = Holds("identity", line.name, key)
            work.draft = work.draft.exchanged(said[0], same)
            work.needed.add(same)
        else:
            _list(work, line, key, now, said)


def _words(
    work: Trying, dimension: str, line: DraftNode, key: str, now: str, said: Condition
) -> None:
    """An attribute whose values are words: each that the operator has is tried."""
    prepared = work.sampling.sampler(line.ops[0]).attributes.values()
    members = next((a.members for a in prepared if a.plan.name == key), None)
    words = [str(m) for m in members or ALL_DTYPES if m != now]
    options: list[tuple[Attribute, Sequence[Wish]]] = [
        (word, (Wish("attr", line.name, key, word),)) for word in words
    ]
    relaxed = work.draft.without(said)
    taken, refused, asked = work.choose(dimension, relaxed, options)
    new = Among(Term("attr", line.name, key), (now, *taken))
    why = f"triggers with {', '.join(map(str, new.values))}"
    why += f"; not with {', '.join(map(str, refused))}" if refused else ""
    kept = bool(taken)
    after = str(new) if refused else "anything"
    work.record.add(dimension, str(said), after if kept else str(said), asked, kept, why)
    if kept:
        work.draft = work.draft.exchanged(said, new) if refused else relaxed
        work.record.reasons[new] = why
    work.needed.add(new if kept else said)


def _list(
    work: Trying, line: DraftNode, key: str, now: tuple[Scalar, ...], said: Sequence[Condition]
) -> None:
    """A list attribute that matters: item by item, or as an identity."""
    items: list[Condition] = [
        Within(term, item, item) if is_number(item) else Among(term, (item,))
        for i, item in enumerate(now)
        for term in [Term("item", line.name, key, i)]
    ]
    if any(attribute_of(c) != (line.name, key) for c in items) or len(items) > 12:
        return
    length = Within(Term("len", line.name, key), len(now), len(now))
    whole = work.draft
    work.draft = whole.without(*said).with_(length, *items)
    dropped_some = False
    for i, item in enumerate(items):
        value = now[i]
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        wishes = [
            (Wish("attr", line.name, key, (*now[:i], other, *now[i + 1 :])),)
            for other in (value + 1, value - 1, value + 2, 0, 1, value + 5)
            if other != value
        ]
        term = Term("item", line.name, key, i)
        dropped_some |= work.relax(
            f"{key}[{i}] of {line.name}", [item], wishes,
            learn=mentions(term),
        )  # fmt: skip
    if not dropped_some:
        work.draft = whole
