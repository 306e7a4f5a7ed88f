"""Everything that a rule could say of a kernel: conditions over operands and indices.

A :class:`Condition` is a text of rule literals and the same as a function; the two mean the same,
which the tests see to. It belongs to a *dimension* that is generalised together, and says which
weaker conditions follow from it. :func:`conditions_of` lists those that hold of a kernel, where
``O1``, ``O2``, … are its operands, ``B``, ``C``, … their tensors and ``I``, ``J``, … its indices:
the first, most special rule about it is all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

from reprise.einsum.distill.view import LOOPS, OUTPUT, Binding, View
from reprise.einsum.kernel import Level
from reprise.lang.display import counted

INDEX_NAMES = ("I", "J", "K", "L", "M", "N", "P", "Q", "R", "S", "U", "V", "W", "Y", "Z")
"""Variables for indices, in the order of the kernel's."""

TENSOR_NAMES = "BCDEFGH"
"""Variables for the tensors of operands; of more operands, they are called T8, T9, …"""

Holds = Callable[[View, Binding], bool]


@dataclass(frozen=True)
class Condition:
    """``text``: literals, with a comma between. ``weight``: how special it is: of a dimension, the
    heaviest is left out first. ``variables``: of operands and indices in it. ``implied``: texts of
    conditions that need not be said beside it. ``positive``: whether it binds its variables.
    ``words``: the same for people, with tensors and indices in braces. ``tag``: what it may give to
    a rule's name."""

    text: str
    dimension: str
    weight: int
    variables: tuple[str, ...]
    holds: Holds = field(compare=False, repr=False)
    implied: frozenset[str] = field(default=frozenset(), compare=False)
    positive: bool = True
    words: str = field(default="", compare=False)
    tag: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text


def operand(number: int) -> str:
    """The variable of an operand."""
    return f"O{number + 1}"


def tensor(who: str) -> str:
    """The variable of the tensor of an operand, or of the output."""
    if who == OUTPUT:
        return who
    number = int(who[1:])
    return TENSOR_NAMES[number - 1] if number <= len(TENSOR_NAMES) else f"T{number}"


def role(who: str) -> str:
    """What a tensor is to the kernel, in the words of a rule's name."""
    return "output" if who == OUTPUT else "operand"


def term(who: str) -> str:
    """The variable of an operand's term."""
    return f"X{who[1:]}"


_TELLING = (
    *("loops", "order of", "storage", "levels", "rank", "tensors", "number of", "terms"),
    *("index", "indices", "entries", "element type", "extent"),
)


def telling(condition: Condition) -> tuple[bool, int]:
    """Sorts conditions for people: what is so before what is not, and what tells most of a defect
    first."""
    begins = (n for n, begin in enumerate(_TELLING) if condition.dimension.startswith(begin))
    return condition.text.startswith("not "), next(begins, len(_TELLING))


def conditions_of(view: View) -> list[Condition]:
    """All that hold of a kernel, each variable standing for what it is named after."""
    names = dict(zip(INDEX_NAMES, view.extents, strict=False))
    operands = [operand(n) for n in range(len(view.operands))]
    binding: dict[str, int | str] = {who: n for n, who in enumerate(operands)}
    binding.update(names)
    found = [c for c in _all(view, operands, tuple(names), binding) if c.holds(view, binding)]
    return list(dict.fromkeys(found))


def _all(
    view: View, operands: Sequence[str], indices: Sequence[str], binding: Binding
) -> Iterator[Condition]:
    everyone = (*operands, OUTPUT)
    yield from _data(operands)
    yield from _element_type(view)
    yield from _extents(view, indices, binding)
    yield from _counts(view, operands, binding)
    for who in everyone:
        yield from _format(view, who, binding)
        yield from _rank(len(view.indices(who, binding)), who)
    for who in everyone:
        for index in indices:
            yield from _access(view, who, index, binding)
        for first, second in permutations(indices, 2):
            yield from _orders(who, first, second)
    yield from _loops(indices)
    for first, second in combinations(indices, 2):

        def differ(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return b[f] != b[s]

        text = f"{first} != {second}"
        yield Condition(text, "indices", 4, (first, second), differ, positive=False)


# --- values --------------------------------------------------------------------------------------

_DATA = {
    "empty_data": "has no entries",
    "full_data": "has entries everywhere",
    "explicit_zeros": "stores zeros",
    "duplicates": "lists coordinates twice",
    "unsorted": "lists its entries out of order",
}


def _data(operands: Sequence[str]) -> Iterator[Condition]:
    for who in operands:
        for what in _DATA:
            text = f"data({tensor(who)}, {what})"
            words = f"{{{tensor(who)}}} {_DATA[what]}"

            def has(view: View, binding: Binding, who: str = who, what: str = what) -> bool:
                return (view.tensor(who, binding), what) in view.data

            about = f"entries of {who}"
            yield Condition(text, about, 2, (who,), has, words=words, tag=what)
            yield _negated(text, about, 1, (who,), has, f"not so that {words}")


def _element_type(view: View) -> Iterator[Condition]:
    dtype = view.kernel.dtype
    yield Condition(
        f"element_type({dtype})", "element type", 1, (), lambda v, _: v.kernel.dtype == dtype,
        words=f"values are {dtype}", tag=dtype,
    )  # fmt: skip


def _extents(view: View, indices: Sequence[str], binding: Binding) -> Iterator[Condition]:
    for index in indices:
        extent = view.extents[str(binding[index])]
        least = [f">= {n}" for n in range(1, min(extent, 4) + 1)]
        most = [f"<= {n}" for n in (0, 1, 2) if n >= extent]
        for bounds in (least[::-1], most):
            texts = [f"extent({index}, N{index}), N{index} {bound}" for bound in bounds]
            for place, bound in enumerate(bounds):

                def within(view: View, b: Binding, i: str = index, bound: str = bound) -> bool:
                    value, limit = view.extents[str(b[i])], int(bound[3:])
                    return value >= limit if bound[0] == ">" else value <= limit

                yield Condition(
                    texts[place],
                    f"extent of {index}",
                    len(bounds) - place,
                    (index,),
                    within,
                    frozenset(texts[place + 1 :]),
                    words=f"the extent of {{{index}}} is {_bound_words(bound)}",
                )


def _bound_words(bound: str) -> str:
    return f"{bound[3:]} or {'more' if bound[0] == '>' else 'less'}"


# --- how many ------------------------------------------------------------------------------------


def _counts(view: View, operands: Sequence[str], binding: Binding) -> Iterator[Condition]:
    count, terms = len(view.operands), view.terms
    yield Condition(
        f"not operand({count}, _, _)", "number of operands", 2, (),
        lambda v, _: len(v.operands) <= count, positive=False,
        words=f"{counted(count, 'operand')} at most",
    )  # fmt: skip
    yield Condition(
        f"not operand(_, {terms}, _)", "number of terms", 2, (),
        lambda v, _: v.terms <= terms, positive=False, words=f"{counted(terms, 'term')} at most",
    )  # fmt: skip
    if terms > 1:
        yield Condition(
            f"operand(_, {terms - 1}, _)", "number of terms", 1, (), lambda v, _: v.terms >= terms,
            words=f"{terms} terms or more", tag="sum",
        )  # fmt: skip
    for who in operands:
        multiplied, named = _relation("multiplied", _is_multiplied), f"{{{tensor(who)}}}"
        yield multiplied(
            (who,), "number of operands", 1, words=f"{named} is multiplied", tag="product"
        )
        yield multiplied(
            (who,), "number of operands", 1, negated=True, words=f"{named} is a term by itself"
        )
    for first, second in combinations(operands, 2):
        both = first, second

        def one_term(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return view.operands[int(b[f])][0] == view.operands[int(b[s])][0]

        def one_tensor(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return view.tensor(f, b) == view.tensor(s, b)

        def in_order(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return int(b[f]) < int(b[s])

        names = f"{{{tensor(first)}}} and {{{tensor(second)}}}"
        yield from _either(
            term, "terms", 3, both, one_term,
            (f"{names} are multiplied", "product"), (f"{names} are in different terms", "sum"),
        )  # fmt: skip
        yield from _either(
            tensor, "tensors", 2, both, one_tensor,
            (f"{names} are one tensor", "tensor_twice"), (f"{names} are different tensors", ""),
        )  # fmt: skip
        text, words = (
            f"{first} < {second}",
            f"{{{tensor(first)}}} comes before {{{tensor(second)}}}",
        )
        yield Condition(text, "order of operands", 1, both, in_order, positive=False, words=words)
        shares, common = _relation("shares", _shares), "indices in common"
        yield shares(both, common, 1, words=f"{names} have an index in common")
        yield shares(both, common, 1, negated=True, words=f"{names} have no index in common")


def _rank(rank: int, who: str) -> Iterator[Condition]:
    has = "output_index(" if who == OUTPUT else f"operand_index({who}, "
    variables = () if who == OUTPUT else (who,)
    dimension = f"rank of {who}"
    yield Condition(
        f"not {has}{rank}, _)", dimension, 2, variables,
        lambda v, b: len(v.indices(who, b)) <= rank, positive=False,
        words=f"{{{tensor(who)}}} {_at_most(rank)}", tag="" if rank else f"scalar_{role(who)}",
    )  # fmt: skip
    least = [n for n in (1, rank) if 0 < n <= rank]
    for number in dict.fromkeys(least):

        def is_least(view: View, b: Binding, number: int = number) -> bool:
            return len(view.indices(who, b)) >= number

        text = f"{has}{number - 1}, _)"
        weaker = frozenset({f"{has}0, _)"} - {text})
        words = f"{number} indices or more" if number > 1 else "an index"
        words = f"{{{tensor(who)}}} has {words}"
        yield Condition(text, dimension, 1, variables, is_least, weaker, words=words)


def _at_most(rank: int) -> str:
    if not rank:
        return "is a scalar"
    return "has one index at most" if rank == 1 else f"has {rank} indices at most"


# --- storage -------------------------------------------------------------------------------------


def _format(view: View, who: str, binding: Binding) -> Iterator[Condition]:
    """Of a tensor's format, whatever its indices are."""
    stored = view.format(who, binding)
    named, variables = tensor(who), () if who == OUTPUT else (who,)
    kinds, order = f"levels of {who}", f"order of {who}"
    for number, (kind, position) in enumerate(zip(stored.levels, stored.order, strict=True)):

        def is_kind(view: View, b: Binding, number: int = number, kind: Level = kind) -> bool:
            levels = view.format(who, b).levels
            return number < len(levels) and levels[number] is kind

        def is_position(view: View, b: Binding, number: int = number, p: int = position) -> bool:
            positions = view.format(who, b).order
            return number < len(positions) and positions[number] == p

        exact = f"level({named}, {number}, {kind}, _)"
        implied = {f"level({named}, _, {kind}, _)"}
        implied |= {f"is_sparse({named})"} if kind is not Level.DENSE else set()
        words = f"level {number} of {{{named}}} is {kind}"
        yield Condition(exact, kinds, 5, variables, is_kind, frozenset(implied), words=words)
        exact = f"level({named}, {number}, _, {position})"
        disordered = {f"disordered({named})"} if number != position else set()
        words = f"level {number} of {{{named}}} stores position {position}"
        yield Condition(exact, order, 4, variables, is_position, frozenset(disordered), words=words)
    for kind in Level:

        def has(view: View, b: Binding, kind: Level = kind) -> bool:
            return kind in view.format(who, b).levels

        def inner(view: View, b: Binding, kind: Level = kind) -> bool:
            return view.format(who, b).levels[-1:] == (kind,)

        text = f"level({named}, _, {kind}, _)"
        sparse = frozenset({f"is_sparse({named})"} if kind is not Level.DENSE else ())
        tag = f"{kind}_{role(who)}"
        words = f"{{{named}}} has a {kind} level"
        yield Condition(text, kinds, 3, variables, has, sparse, words=words, tag=tag)
        without = f"{{{named}}} has no {kind} level"
        yield _negated(text, kinds, 3, variables, has, without, f"no_{tag}")
        text, words = (
            f"innermost({named}, {kind}, _)",
            f"the innermost level of {{{named}}} is {kind}",
        )
        weaker = sparse | {f"level({named}, _, {kind}, _)"}
        yield Condition(text, kinds, 4, variables, inner, weaker, words=words, tag=tag)
    for name, holds, dimension, weight, said, unsaid, tags in _FORMATS:
        text = f"{name}({named})"

        def form(view: View, b: Binding, holds: Callable[..., bool] = holds) -> bool:
            return holds(view.format(who, b))

        weaker = frozenset({f"disordered({named})"} if name == "cyclic" else ())
        subject = f"{{{named}}} "
        tag, other = (f"{tag}_{role(who)}" if tag else "" for tag in tags)
        about = dimension.format(who)
        yield Condition(text, about, weight, variables, form, weaker, words=subject + said, tag=tag)
        yield _negated(text, about, weight, variables, form, subject + unsaid, other)


def _is_cyclic(stored: object) -> bool:
    order = stored.order  # type: ignore[attr-defined]
    return any(order[position] != level for level, position in enumerate(order))


_FORMATS: tuple[tuple[str, Callable[..., bool], str, int, str, str, tuple[str, str]], ...] = (
    (
        "cyclic", _is_cyclic, "order of {}", 2,
        "has an order of levels that is not its own inverse",
        "has an order of levels that is its own inverse", ("cyclic", ""),
    ),
    (
        "disordered", lambda stored: not stored.is_ordered, "order of {}", 1,
        "has levels in another order than its positions",
        "has levels in the order of its positions", ("reordered", ""),
    ),
    (
        "is_sparse", lambda stored: not stored.is_dense, "levels of {}", 1,
        "is sparse", "is dense", ("sparse", "dense"),
    ),
)  # fmt: skip
"""Of a format: the relation, the same natively, dimension, weight, words for it and for the
contrary, and what each gives to a name."""


# --- indices -------------------------------------------------------------------------------------


def _access(view: View, who: str, index: str, binding: Binding) -> Iterator[Condition]:
    """Of an index in an operand or the output."""
    output = who == OUTPUT
    variables = (index,) if output else (who, index)
    dimension, storage = f"index {index} in {who}", f"storage of {index} in {who}"
    named = "" if output else f"{who}, "
    prefix = "output" if output else "operand"

    def is_in(view: View, b: Binding) -> bool:
        return b[index] in view.indices(who, b)

    text, subject = f"{prefix}_index({named}_, {index})", f"{{{tensor(who)}}}"
    words, contrary = f"{subject} has {{{index}}}", f"{subject} does not have {{{index}}}"
    if output:
        contrary = f"{{{index}}} is summed over"
    yield Condition(text, dimension, 1, variables, is_in, words=words)
    yield _negated(text, dimension, 1, variables, is_in, contrary, "summed" if output else "")
    weaker = frozenset({text})
    name = str(binding[index])
    indices = view.indices(who, binding)
    for position, other in enumerate(indices):
        if other == name:

            def is_at(view: View, b: Binding, place: int = position) -> bool:
                return view.indices(who, b)[place : place + 1] == (b[index],)

            at = f"{prefix}_index({named}{position}, {index})"
            words = f"{subject} has {{{index}}} at position {position}"
            yield Condition(at, storage, 5, variables, is_at, weaker, words=words)
    for level, kind in view.levels(who, binding, name):

        def is_level(view: View, b: Binding, level: int = level) -> bool:
            return level in {found for found, _ in view.levels(who, b, str(b[index]))}

        def is_kind(view: View, b: Binding, kind: Level = kind) -> bool:
            return kind in {found for _, found in view.levels(who, b, str(b[index]))}

        at = f"{prefix}_level({named}{level}, _, {index})"
        words = f"level {level} of {subject} stores {{{index}}}"
        yield Condition(at, storage, 4, variables, is_level, weaker, words=words)
        at = f"{prefix}_level({named}_, {kind}, {index})"
        words, tag = f"{subject} stores {{{index}}} in a {kind} level", f"{kind}_{role(who)}"
        yield Condition(at, storage, 3, variables, is_kind, weaker, words=words, tag=tag)

    def is_inner(view: View, b: Binding) -> bool:
        last = len(view.indices(who, b)) - 1
        return last in {level for level, _ in view.levels(who, b, str(b[index]))}

    text = f"{prefix}_innermost({named}{index})"
    words = f"{subject} stores {{{index}}} innermost"
    yield Condition(text, storage, 3, variables, is_inner, weaker, words=words)


def _orders(who: str, first: str, second: str) -> Iterator[Condition]:
    """Of two indices in an operand or the output."""
    output = who == OUTPUT
    variables = (first, second) if output else (who, first, second)
    prefix, named = ("output", "") if output else ("operand", f"{who}, ")
    both = frozenset(f"{prefix}_index({named}_, {index})" for index in (first, second))

    def outside(view: View, b: Binding) -> bool:
        outer = view.levels(who, b, str(b[first]))
        inner = view.levels(who, b, str(b[second]))
        return any(one < other for one, _ in outer for other, _ in inner)

    def before(view: View, b: Binding) -> bool:
        indices = view.indices(who, b)
        if b[first] not in indices:
            return False
        return b[second] in indices[indices.index(str(b[first])) + 1 :]

    dimension = f"order of indices in {who}"
    text = f"{prefix}_outside({named}{first}, {second})"
    words = f"{{{tensor(who)}}} stores {{{first}}} outside of {{{second}}}"
    yield Condition(text, dimension, 3, variables, outside, both, words=words)
    text = f"{prefix}_before({named}{first}, {second})"
    words = f"{{{tensor(who)}}} has {{{first}}} before {{{second}}}"
    yield Condition(text, dimension, 4, variables, before, both, words=words)


# --- loops ---------------------------------------------------------------------------------------


def _loops(indices: Sequence[str]) -> Iterator[Condition]:
    """Of the order of loops that formats ask for, through all tensors together: what says so much
    is true of kernels of any size."""
    for kind, least in LOOPS.items():
        stronger = [other for other, implied in LOOPS.items() if kind in implied]
        said, weight = _LOOP_WORDS[kind], 2 + len(least)

        def goes_round(view: View, b: Binding, kind: str = kind) -> bool:
            return any(one == other for one, other in view.loops[kind])

        text = f"{kind}_cycle(_)"
        weaker = frozenset(f"{other}_cycle(_)" for other in least)
        words = f"no order of loops suits {said}"
        yield Condition(
            text, "loops", weight, (), goes_round, weaker, words=words, tag="cyclic_loops"
        )
        implied = frozenset(f"not {other}_cycle(_)" for other in stronger)
        words = f"an order of loops suits {said}"
        rare = 2 + len(stronger)
        yield _negated(text, "loops", rare, (), goes_round, words, implied=implied)
        for index in indices:

            def is_inside(view: View, b: Binding, kind: str = kind, index: str = index) -> bool:
                return any(inner == b[index] for _, inner in view.loops[kind])

            words = f"{said} ask for no loop around {{{index}}}"
            implied = frozenset(f"not {other}_before(_, {index})" for other in stronger)
            yield _negated(
                f"{kind}_before(_, {index})", f"loops around {index}", rare, (index,), is_inside,
                words, implied=implied,
            )  # fmt: skip
        for first, second in permutations(indices, 2):

            def before(
                view: View, b: Binding, kind: str = kind, f: str = first, s: str = second
            ) -> bool:
                return (b[f], b[s]) in view.loops[kind]

            text = f"{kind}_before({first}, {second})"
            weaker = frozenset(f"{other}_before({first}, {second})" for other in least)
            words = f"{said} ask for {{{first}}} outside of {{{second}}}"
            yield Condition(
                text, "order of loops", weight, (first, second), before, weaker, words=words,
                tag="loop_order",
            )  # fmt: skip


_LOOP_WORDS = {
    "sparse": "sparse levels",
    "encoded": "tensors that are not plainly dense",
    "read": "operands",
    "stored": "all tensors",
}


# --- parts ---------------------------------------------------------------------------------------


def _either(
    variable: Callable[[str], str],
    dimension: str,
    weight: int,
    both: tuple[str, str],
    same: Holds,
    *said: tuple[str, str],
) -> Iterator[Condition]:
    """That two operands have the same of something, and that they have not; words and tag of
    each."""
    first, second = map(variable, both)

    def differ(view: View, binding: Binding) -> bool:
        return not same(view, binding)

    for sign, holds, (words, tag) in zip(("==", "!="), (same, differ), said, strict=True):
        yield Condition(
            f"{first} {sign} {second}", dimension, weight, both, holds, positive=False,
            words=words, tag=tag,
        )  # fmt: skip


def _negated(
    text: str,
    dimension: str,
    weight: int,
    variables: tuple[str, ...],
    holds: Holds,
    words: str,
    tag: str = "",
    implied: frozenset[str] = frozenset(),
) -> Condition:
    return Condition(
        f"not {text}", dimension, weight, variables, lambda v, b: not holds(v, b), implied,
        positive=False, words=words, tag=tag,
    )  # fmt: skip


def _relation(name: str, holds: Callable[..., bool]) -> Callable[..., Condition]:
    """A relation over operands."""

    def make(
        who: tuple[str, ...],
        dimension: str,
        weight: int,
        *,
        negated: bool = False,
        words: str,
        tag: str = "",
    ) -> Condition:
        def says(view: View, b: Binding) -> bool:
            return holds(view, *(int(b[one]) for one in who))

        text = f"{name}({', '.join(who)})"
        if negated:
            return _negated(text, dimension, weight, who, says, words, tag)
        return Condition(text, dimension, weight, who, says, words=words, tag=tag)

    return make


def _is_multiplied(view: View, number: int) -> bool:
    own = view.operands[number][0]
    return sum(one == own for one, _, _ in view.operands) > 1


def _shares(view: View, first: int, second: int) -> bool:
    return bool(set(view.operands[first][2]) & set(view.operands[second][2]))
