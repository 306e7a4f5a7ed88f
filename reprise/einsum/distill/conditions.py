"""Everything that a rule could say of a kernel: conditions over operands and indices.

A :class:`Condition` is a text of rule literals and the same as a function; the two mean the same,
which the tests see to. It belongs to a *dimension* that is generalised together, and says which
weaker conditions follow from it. :func:`conditions_of` lists those that hold of a kernel, where
``O1``, ``O2``, … are its operands and ``I``, ``J``, … its indices: the first, most special rule
about it is all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

from reprise.einsum.distill.view import OUTPUT, Binding, View
from reprise.einsum.kernel import Level

INDEX_NAMES = ("I", "J", "K", "L", "M", "N", "P", "Q", "R", "S", "U", "V", "W", "Y", "Z")
"""Variables for indices, in the order of the kernel's."""

Holds = Callable[[View, Binding], bool]


@dataclass(frozen=True)
class Condition:
    """``text``: literals, with a comma between. ``weight``: how special it is: of a dimension, the
    heaviest is left out first. ``variables``: of operands and indices in it. ``implied``: texts of
    conditions that need not be said beside it. ``positive``: whether it binds its variables."""

    text: str
    dimension: str
    weight: int
    variables: tuple[str, ...]
    holds: Holds = field(compare=False, repr=False)
    implied: frozenset[str] = field(default=frozenset(), compare=False)
    positive: bool = True

    def __str__(self) -> str:
        return self.text


def operand(number: int) -> str:
    """The variable of an operand."""
    return f"O{number + 1}"


def tensor(who: str) -> str:
    """The variable of the tensor of an operand, or of the output."""
    return who if who == OUTPUT else f"T{who[1:]}"


def term(who: str) -> str:
    """The variable of an operand's term."""
    return f"X{who[1:]}"


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
    for first, second in combinations(indices, 2):

        def differ(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return b[f] != b[s]

        text = f"{first} != {second}"
        yield Condition(text, "indices", 4, (first, second), differ, positive=False)


# --- values --------------------------------------------------------------------------------------

_DATA = ("empty_data", "full_data", "explicit_zeros", "duplicates", "unsorted")


def _data(operands: Sequence[str]) -> Iterator[Condition]:
    for who in operands:
        for what in _DATA:
            text = f"data({tensor(who)}, {what})"

            def has(view: View, binding: Binding, who: str = who, what: str = what) -> bool:
                return (view.tensor(who, binding), what) in view.data

            yield Condition(text, f"entries of {who}", 2, (who,), has)
            yield _negated(text, f"entries of {who}", 1, (who,), has)


def _element_type(view: View) -> Iterator[Condition]:
    dtype = view.kernel.dtype
    yield Condition(
        f"element_type({dtype})", "element type", 1, (), lambda v, _: v.kernel.dtype == dtype
    )


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
                )


# --- how many ------------------------------------------------------------------------------------


def _counts(view: View, operands: Sequence[str], binding: Binding) -> Iterator[Condition]:
    count, terms = len(view.operands), view.terms
    yield Condition(
        f"not operand({count}, _, _)", "number of operands", 2, (),
        lambda v, _: len(v.operands) <= count, positive=False,
    )  # fmt: skip
    yield Condition(
        f"not operand(_, {terms}, _)", "number of terms", 2, (),
        lambda v, _: v.terms <= terms, positive=False,
    )  # fmt: skip
    if terms > 1:
        yield Condition(
            f"operand(_, {terms - 1}, _)", "number of terms", 1, (), lambda v, _: v.terms >= terms
        )
    for who in operands:
        multiplied = _relation("multiplied", _is_multiplied)
        yield multiplied((who,), "number of operands", 1)
        yield multiplied((who,), "number of operands", 1, negated=True)
    for first, second in combinations(operands, 2):
        both = first, second

        def one_term(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return view.operands[int(b[f])][0] == view.operands[int(b[s])][0]

        def one_tensor(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return view.tensor(f, b) == view.tensor(s, b)

        def in_order(view: View, b: Binding, f: str = first, s: str = second) -> bool:
            return int(b[f]) < int(b[s])

        yield from _either(term, "terms", 3, both, one_term)
        yield from _either(tensor, "tensors", 2, both, one_tensor)
        text = f"{first} < {second}"
        yield Condition(text, "order of operands", 1, both, in_order, positive=False)
        yield _relation("shares", _shares)(both, "indices in common", 1)
        yield _relation("shares", _shares)(both, "indices in common", 1, negated=True)


def _rank(rank: int, who: str) -> Iterator[Condition]:
    has = "output_index(" if who == OUTPUT else f"operand_index({who}, "
    variables = () if who == OUTPUT else (who,)
    dimension = f"rank of {who}"
    yield Condition(
        f"not {has}{rank}, _)", dimension, 2, variables,
        lambda v, b: len(v.indices(who, b)) <= rank, positive=False,
    )  # fmt: skip
    least = [n for n in (1, rank) if 0 < n <= rank]
    for number in dict.fromkeys(least):

        def is_least(view: View, b: Binding, number: int = number) -> bool:
            return len(view.indices(who, b)) >= number

        text = f"{has}{number - 1}, _)"
        weaker = frozenset({f"{has}0, _)"} - {text})
        yield Condition(text, dimension, 1, variables, is_least, weaker)


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
        yield Condition(exact, kinds, 5, variables, is_kind, frozenset(implied))
        exact = f"level({named}, {number}, _, {position})"
        disordered = {f"disordered({named})"} if number != position else set()
        yield Condition(exact, order, 4, variables, is_position, frozenset(disordered))
    for kind in Level:

        def has(view: View, b: Binding, kind: Level = kind) -> bool:
            return kind in view.format(who, b).levels

        def inner(view: View, b: Binding, kind: Level = kind) -> bool:
            return view.format(who, b).levels[-1:] == (kind,)

        text = f"level({named}, _, {kind}, _)"
        sparse = frozenset({f"is_sparse({named})"} if kind is not Level.DENSE else ())
        yield Condition(text, kinds, 3, variables, has, sparse)
        yield _negated(text, kinds, 3, variables, has)
        text = f"innermost({named}, {kind}, _)"
        yield Condition(
            text, kinds, 4, variables, inner, sparse | {f"level({named}, _, {kind}, _)"}
        )
    for name, holds, dimension, weight in _FORMATS:
        text = f"{name}({named})"

        def form(view: View, b: Binding, holds: Callable[..., bool] = holds) -> bool:
            return holds(view.format(who, b))

        weaker = frozenset({f"disordered({named})"} if name == "cyclic" else ())
        yield Condition(text, dimension.format(who), weight, variables, form, weaker)
        yield _negated(text, dimension.format(who), weight, variables, form)


def _is_cyclic(stored: object) -> bool:
    order = stored.order  # type: ignore[attr-defined]
    return any(order[position] != level for level, position in enumerate(order))


_FORMATS: tuple[tuple[str, Callable[..., bool], str, int], ...] = (
    ("cyclic", _is_cyclic, "order of {}", 2),
    ("disordered", lambda stored: not stored.is_ordered, "order of {}", 1),
    ("is_sparse", lambda stored: not stored.is_dense, "levels of {}", 1),
)


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

    text = f"{prefix}_index({named}_, {index})"
    yield Condition(text, dimension, 1, variables, is_in)
    yield _negated(text, dimension, 1, variables, is_in)
    weaker = frozenset({text})
    name = str(binding[index])
    indices = view.indices(who, binding)
    for position, other in enumerate(indices):
        if other == name:

            def is_at(view: View, b: Binding, place: int = position) -> bool:
                return view.indices(who, b)[place : place + 1] == (b[index],)

            at = f"{prefix}_index({named}{position}, {index})"
            yield Condition(at, storage, 5, variables, is_at, weaker)
    for level, kind in view.levels(who, binding, name):

        def is_level(view: View, b: Binding, level: int = level) -> bool:
            return level in {found for found, _ in view.levels(who, b, str(b[index]))}

        def is_kind(view: View, b: Binding, kind: Level = kind) -> bool:
            return kind in {found for _, found in view.levels(who, b, str(b[index]))}

        at = f"{prefix}_level({named}{level}, _, {index})"
        yield Condition(at, storage, 4, variables, is_level, weaker)
        at = f"{prefix}_level({named}_, {kind}, {index})"
        yield Condition(at, storage, 3, variables, is_kind, weaker)

    def is_inner(view: View, b: Binding) -> bool:
        last = len(view.indices(who, b)) - 1
        return last in {level for level, _ in view.levels(who, b, str(b[index]))}

    text = f"{prefix}_innermost({named}{index})"
    yield Condition(text, storage, 3, variables, is_inner, weaker)


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
    yield Condition(text, dimension, 3, variables, outside, both)
    text = f"{prefix}_before({named}{first}, {second})"
    yield Condition(text, dimension, 4, variables, before, both)


# --- parts ---------------------------------------------------------------------------------------


def _either(
    variable: Callable[[str], str], dimension: str, weight: int, both: tuple[str, str], same: Holds
) -> Iterator[Condition]:
    """That two operands have the same of something, and that they have not."""
    first, second = map(variable, both)
    text = f"{first} == {second}"
    yield Condition(text, dimension, weight, both, same, positive=False)
    text = f"{first} != {second}"
    yield Condition(text, dimension, weight, both, lambda v, b: not same(v, b), positive=False)


def _negated(
    text: str, dimension: str, weight: int, variables: tuple[str, ...], holds: Holds
) -> Condition:
    return Condition(
        f"not {text}", dimension, weight, variables, lambda v, b: not holds(v, b), positive=False
    )


def _relation(name: str, holds: Callable[..., bool]) -> Callable[..., Condition]:
    """A relation over operands."""

    def make(
        who: tuple[str, ...], dimension: str, weight: int, *, negated: bool = False
    ) -> Condition:
        def says(view: View, b: Binding) -> bool:
            return holds(view, *(int(b[one]) for one in who))

        text = f"{name}({', '.join(who)})"
        if negated:
            return _negated(text, dimension, weight, who, says)
        return Condition(text, dimension, weight, who, says)

    return make


def _is_multiplied(view: View, number: int) -> bool:
    own = view.operands[number][0]
    return sum(one == own for one, _, _ in view.operands) > 1


def _shares(view: View, first: int, second: int) -> bool:
    return bool(set(view.operands[first][2]) & set(view.operands[second][2]))
