"""Dimensions of tensors' types: extents, ranks and element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reprise.distill.asking import Answer
from reprise.distill.conditions import Among, Condition, Related, Term, Within
from reprise.distill.draft import Draft
from reprise.distill.generalise.questions import (
    ALL_DTYPES,
    EXTENTS,
    RANKS,
    is_extent_of,
    mentions,
    terms_of,
)
from reprise.distill.generalise.specific import scalar_ranks
from reprise.distill.generalise.trying import Trying
from reprise.distill.sampling import Wish
from reprise.lang.dtypes import DTYPES
from reprise.solve.sampling import DRAWN
from reprise.uir.graph import Attribute


def extents(work: Trying) -> None:
    """Each extent of each source; then sources without elements."""
    for tensor in work.draft.sources:
        rank = work.place.tensors[tensor].type.rank or 0
        for axis in range(rank):
            term = Term("dim", tensor, "", axis)
            said = [c for c in work.draft.conditions if terms_of(c) == {term}]
            if said:
                _extent(work, term, said)
    _empties(work)


def _extent(work: Trying, term: Term, said: list[Condition]) -> None:
    now = term.read(work.place)
    assert isinstance(now, int)
    # on both sides, near and far: where a bound is, the first few show it
    near = (now + 1, now - 1, 2 * now, 1, 33, 2)
    values = [v for v in dict.fromkeys((*near, *EXTENTS)) if v > 0]
    wishes = [(Wish("dim", term.of, term.index, v),) for v in values if v != now]
    if work.effort.samples < 8:
        wishes = wishes[: work.effort.samples]

    rank = work.place.tensors[term.of].type.rank or 0
    own = {term, replace(term, index=term.index - rank)}
    sources = set(work.draft.sources)
    results = _downstream(work, term.of)

    def about(condition: Condition) -> bool:
        # what matters may be the extent of what is made: a window's, a sum's
        return any(
            (t.kind == "numel" and t.of in sources | results)
            or (t.kind == "dim" and (t in own or t.of in results))
            for t in terms_of(condition)
        )

    if work.relax(str(term), said, wishes, learn=about):
        return
    linked = [
        c
        for c in work.draft.conditions
        if isinstance(c, Within) and c.term.kind == "dim" and c.low == c.high == now
    ]
    others = [c.term for c in linked if isinstance(c, Within) and c.term != term]
    if said[0] in linked and others:
        together = [
            (
                Wish("dim", term.of, term.index, v),
                *(Wish("dim", t.of, t.index, v) for t in others),
            )
            for v in values
            if v != now
        ]
        equal = [Related(term, "==", other) for other in others]
        work.relax(f"{term} and extents equal to it", linked, together, into=equal, learn=about)


def _downstream(work: Trying, tensor: str) -> set[str]:
    """The results of lines, directly or not, that read a tensor."""
    reached: set[str] = set()
    for line in work.draft.nodes:
        if not reached.union((tensor,)).isdisjoint(line.reads):
            reached.add(line.name)
    return reached


def _empties(work: Trying) -> None:
    """Tensors without elements, wherever an extent is free by now."""
    for tensor in work.draft.sources:
        rank = work.place.tensors[tensor].type.rank or 0
        free = [
            axis
            for axis in range(rank)
            if not any(Term("dim", tensor, "", axis) in terms_of(c) for c in work.draft.conditions)
        ]
        if not free or work.place.tensors[tensor].type.elements == 0:
            continue
        dimension = f"{tensor} without elements"
        wishes = [(Wish("dim", tensor, axis, 0),) for axis in free]
        asked = work.ask(work.draw(dimension, work.draft, wishes))
        no = [a for a in asked if a.answer is Answer.NO]
        kept = not no
        if no:
            condition = Within(Term("numel", tensor), 1, None)
            work.draft = work.draft.with_(condition)
            work.needed.add(condition)
            work.record.reasons[condition] = f"{len(no)} programs without elements pass"
            work.remember(dimension, [], no)
        why = "an empty tensor does not trigger" if no else "an empty tensor is no exception"
        work.record.add(dimension, "anything", "at least 1 element", asked, kept, why)


def empty_axes(work: Trying) -> None:
    """Where one axis is empty: must it be this one, or is it enough that some is?"""
    for tensor in work.draft.sources:
        rank = work.place.tensors[tensor].type.rank or 0
        for axis in range(rank):
            empty = Within(Term("dim", tensor, "", axis), 0, 0)
            if empty not in work.draft.conditions:
                continue
            wishes = [
                (
                    Wish("rank", tensor, "", size),
                    Wish("dim", tensor, axis, 2),
                    Wish("dim", tensor, other, 0),
                )
                for size in (rank + 1, rank)
                for other in range(size)
                if other != axis
            ]
            dims = [
                c
                for c in work.draft.about(tensor)
                if {t.kind for t in terms_of(c)} == {"dim"} and c != empty
            ]
            work.relax(
                f"another empty axis of {tensor}",
                [empty, *dims],
                wishes * 2,
                into=[Within(Term("numel", tensor), 0, 0)],
                learn=is_extent_of(tensor),
            )
            break


def single_elements(work: Trying) -> None:
    """Where each axis is 1: is it enough that there is one element?"""
    for tensor in work.draft.sources:
        rank = work.place.tensors[tensor].type.rank or 0
        dims = [Within(Term("dim", tensor, "", axis), 1, 1) for axis in range(rank)]
        if not dims or any(c not in work.draft.conditions for c in dims):
            continue
        said = [c for c in work.draft.about(tensor) if terms_of(c) == {Term("rank", tensor)}]
        wishes = [
            (
                Wish("rank", tensor, "", size),
                *(Wish("dim", tensor, axis, 1) for axis in range(size)),
            )
            for size in (rank + 1, rank + 2, rank - 1)
            if size > 0
        ]
        title = f"one element of {tensor}, of whatever rank"
        one = Within(Term("numel", tensor), 1, 1)
        work.relax(title, [*dims, *said], wishes * 2, into=[one])


def ranks(work: Trying) -> None:
    """The rank of each source, its axes counted from the front or from the back."""
    for tensor in work.draft.sources:
        said = [c for c in work.draft.conditions if terms_of(c) == {Term("rank", tensor)}]
        now = work.place.tensors[tensor].type.rank
        if not said or now is None:
            continue
        ranks = [r for r in dict.fromkeys((now + 1, now - 1, *RANKS)) if r >= 0 and r != now]
        wishes = [(Wish("rank", tensor, "", r),) for _ in "ab" for r in ranks]
        learn = mentions(Term("rank", tensor))
        if work.relax(f"rank of {tensor}", said, wishes, learn=learn):
            continue
        turned = _from_the_back(work, tensor, now)
        if turned is not None:
            before, work.draft = work.draft, turned
            if not work.relax(f"rank of {tensor}, axes from the back", said, wishes, learn=learn):
                work.draft = before


def scalar_results(work: Trying) -> None:
    """Must what is a scalar be one?"""
    for term in scalar_ranks(work.draft, work.place):
        line = work.draft.node(term.of)
        read = line.reads[0]
        now = work.place.tensors[read].type.rank or 0
        plan = work.sampling.signatures[line.ops[0]].plan
        wishes: list[tuple[Wish, ...]] = [
            (Wish("rank", read, "", now + more),) for more in (1, 2) if read in work.draft.sources
        ]
        for attribute in plan.attributes:
            value = work.place.nodes[line.name].attributes.get(attribute.name)
            if isinstance(value, bool):
                wishes.append((Wish("attr", line.name, attribute.name, not value),))
            elif isinstance(value, int | tuple):
                wishes.append((Wish("attr", line.name, attribute.name, DRAWN),))
        work.relax(f"rank of {term.of}", [Within(term, 0, 0)], wishes)


def _from_the_back(work: Trying, tensor: str, rank: int) -> Draft | None:
    """The draft with the tensor's axes counted from its end, if it names any."""
    draft = work.draft
    readers = {line.name for line in draft.nodes if tensor in line.reads[:1]}
    for condition in work.draft.conditions:
        match condition:
            case Within(Term("attr", of, key) as term, int(axis)) if (
                key == "axis" and of in readers and condition.high == axis
            ):
                back = Related(term, "==", Term("rank", tensor), axis - rank)
                draft = draft.exchanged(condition, back)
        if isinstance(condition, Within | Among) and condition.term.kind == "dim":
            term = condition.term
            if term.of == tensor and term.index >= 0:
                last = replace(term, index=term.index - rank)
                draft = draft.exchanged(condition, replace(condition, term=last))
    return None if draft is work.draft else draft


def dtypes(work: Trying) -> None:
    """Element types, together for sources that have the same one."""
    done: set[str] = set()
    for tensor in work.draft.sources:
        now = work.place.tensors[tensor].type.dtype
        if tensor in done or now is None:
            continue
        alike = [
            t
            for t in work.draft.sources
            if work.place.tensors[t].type.dtype == now and t not in done
        ]
        said = [
            c for c in work.draft.conditions for t in alike if terms_of(c) == {Term("dtype", t)}
        ]
        if not said:
            continue
        done |= set(alike)
        dimension = f"element type of {', '.join(alike)}"
        relaxed = work.draft.without(*said)
        options: list[tuple[Attribute, Sequence[Wish]]] = [
            (d, (Wish("dtype", tensor, "", d),)) for d in ALL_DTYPES if d != now
        ]
        taken, refused, asked = work.choose(dimension, relaxed, options)
        members = sorted({now, *map(str, taken)}, key=list(DTYPES).index)
        label = _named(work, members, [str(r) for r in refused])
        why = f"triggers in {', '.join(members)}"
        why += f"; not in {', '.join(map(str, refused))}" if refused else ""
        new: list[Condition] = []
        if refused:
            # an index keeps its own type: what only one operand has is said of that one
            new = [Among(Term("dtype", t), tuple(members), False, label) for t in alike]
        elif not taken:
            new = list(said)
        before = ", ".join(map(str, said))
        after = ", ".join(map(str, new)) or "anything"
        work.record.add(dimension, before, after, asked, set(new) != set(said), why)
        work.draft = relaxed.with_(*new)
        for condition in new:
            work.record.reasons[condition] = why


def _named(work: Trying, members: Sequence[str], refused: Sequence[str]) -> str:
    """The smallest set of the library that has all members and none that were refused."""
    if len(members) < 2:
        return ""
    sets = work.sampling.signatures.symbols.sets
    fit = [
        (len(found.values), name)
        for name, found in sets.items()
        if set(members) <= set(found.values) and not set(refused) & set(found.values)
    ]
    least = min(fit, default=(0, ""))
    return least[1] if least[0] <= 2 * len(members) else ""
