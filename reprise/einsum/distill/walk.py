"""Kernels near a kernel: one small edit after the other.

A step is up to three edits, since some only make sense together: an index that is summed over has
to be in two operands. Whoever walks keeps the steps that lead to a valid kernel, and to one of
those that are asked for: so kernels are found that match a rule, however special, and that are
anything from next to the first one to far away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random

from reprise.einsum.distill.view import View
from reprise.einsum.kernel import (
    Access,
    Data,
    Drawn,
    Entries,
    Format,
    Kernel,
    KernelError,
    Level,
    Structure,
    Term,
    assemble,
)
from reprise.einsum.options import LETTERS, Options
from reprise.einsum.text import tensor_names
from reprise.einsum.validity import Validity

_SEEDS = 1 << 32
_LARGEST = 5
_ELEMENTS, _ITERATIONS = 1 << 10, 1 << 12
"""Kernels are kept small: their results are computed densely as well."""
_MANY = 0.9
_LIKELY = 0.75
_TOGETHER = 3
"""Edits in a step, at most."""
_OPERANDS, _RANK, _TERMS = 5, 4, 3


@dataclass(frozen=True)
class Walker:
    """Walks among the kernels that a target takes. ``validity`` says which these are, ``excused``
    what may be wrong with one all the same: rules that the first kernel violates too; ``takes``
    what else there is to know before a kernel is run."""

    validity: Validity
    options: Options
    dtypes: tuple[str, ...] = ("float64", "float32")
    excused: frozenset[str] = frozenset()
    takes: Callable[[Kernel], bool] = lambda kernel: True

    def is_valid(self, kernel: Kernel) -> bool:
        """Whether the target takes a kernel, and no other known bug is in its way."""
        shapes = kernel.shapes.values()
        if max(map(prod, shapes)) > _ELEMENTS or prod(e for _, e in kernel.extents) > _ITERATIONS:
            return False
        return all(v.rule in self.excused for v in self.validity.of(kernel)) and self.takes(kernel)

    def step(self, kernel: Kernel, rng: Random, about: str = "") -> Kernel | None:
        """A kernel next to another, whether valid or not; None if the edits made none. More often
        than not, one of the edits changes something in the dimension that it is ``about``."""
        parts = _Parts.of(kernel)
        likely = next((edits for begin, edits in _ABOUT.items() if about.startswith(begin)), ())
        if about and likely and rng.random() < _LIKELY:
            rng.choice(likely)(parts, rng, self)
            more = rng.choice((0, 0, 1, 2))
        else:
            more = rng.choice((1, 1, 2, _TOGETHER))
        for _ in range(more):
            rng.choices(_EDITS, _WEIGHTS)[0](parts, rng, self)
        return parts.kernel(rng)


def redrawn(kernel: Kernel, rng: Random) -> Kernel:
    """The same kernel with other entries of the same kind, and many of them: what a few zeros may
    hide shows."""
    parts = _Parts.of(kernel)
    kept = View(kernel).data
    for tensor in kernel.operands:
        kinds = {kind for name, kind in kept if name == tensor.name}
        parts.data[tensor.name] = _drawn(rng, kinds, (_MANY,))
    return parts.kernel(rng) or kernel


def _drawn(rng: Random, kinds: set[str], densities: tuple[float, ...] = (0.5, 0.7)) -> Drawn:
    structure = Structure.UNIFORM
    if "empty_data" in kinds:
        structure = Structure.EMPTY
    elif "full_data" in kinds:
        structure = Structure.FULL
    return Drawn(
        structure,
        rng.choice(densities),
        rng.randrange(_SEEDS),
        duplicates=int("duplicates" in kinds),
        zeros=int("explicit_zeros" in kinds),
        unsorted="unsorted" in kinds,
    )


@dataclass
class _Parts:
    """A kernel taken apart. Formats are lists of pairs: kind and position."""

    output: list[str]
    terms: list[list[tuple[str, list[str]]]]
    formats: dict[str, list[tuple[Level, int]]]
    data: dict[str, Data]
    extents: dict[str, int]
    dtype: str
    name: str
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, kernel: Kernel) -> _Parts:
        return cls(
            list(kernel.output.indices),
            [[(a.tensor, list(a.indices)) for a in term.factors] for term in kernel.terms],
            {
                t.name: list(zip(t.format.levels, t.format.order, strict=True))
                for t in kernel.tensors
            },
            {t.name: t.data for t in kernel.operands if t.data is not None},
            kernel.extent,
            kernel.dtype,
            kernel.output.tensor,
            kernel.shapes,
        )

    def kernel(self, rng: Random) -> Kernel | None:
        """Put together again; entries that are written out are drawn anew where the shape has
        changed. None if the parts do not fit."""
        terms = [Term(tuple(Access(n, tuple(i)) for n, i in term)) for term in self.terms if term]
        formats = {
            name: Format(tuple(k for k, _ in levels), tuple(p for _, p in levels))
            for name, levels in self.formats.items()
        }
        data = dict(self.data)
        try:
            made = assemble(
                Access(self.name, tuple(self.output)), terms, self.extents, formats, data,
                self.dtype,
            )  # fmt: skip
        except (KernelError, KeyError):
            return None
        shapes = made.shapes
        changed = [
            t.name
            for t in made.operands
            if shapes[t.name] != self.shapes.get(t.name) and not isinstance(t.data, Drawn)
        ]
        if not changed:
            return made
        tensors = tuple(
            replace(t, data=_drawn(rng, set())) if t.name in changed else t for t in made.tensors
        )
        return replace(made, tensors=tensors)

    # --- what edits ask for ----------------------------------------------------------------------

    @property
    def operands(self) -> list[tuple[str, list[str]]]:
        return [factor for term in self.terms for factor in term]

    @property
    def used(self) -> list[str]:
        """Every index that is there."""
        everyone = (*self.operands, (self.name, self.output))
        return list(dict.fromkeys(i for _, indices in everyone for i in indices))

    def fresh_index(self, rng: Random) -> str | None:
        index = next((letter for letter in LETTERS if letter not in self.used), None)
        if index is not None:
            self.extents[index] = rng.randint(2, _LARGEST)
        return index

    def fresh_tensor(self) -> str:
        taken = {name for name, _ in self.operands} | {self.name}
        return next(name for name in tensor_names(len(taken) + 2) if name not in taken)

    def insert(self, name: str, indices: list[str], index: str, rng: Random, kind: Level) -> None:
        """Give an operand or the output an index, stored at a level of a kind. A tensor that is
        used elsewhere too becomes one of its own."""
        place, level = rng.randint(0, len(indices)), rng.randint(0, len(indices))
        levels = [(k, p + (p >= place)) for k, p in self.formats[name]]
        levels.insert(level, (kind, place))
        indices.insert(place, index)
        self.formats[name] = levels

    def remove(self, name: str, indices: list[str], place: int) -> None:
        del indices[place]
        self.formats[name] = [(k, p - (p > place)) for k, p in self.formats[name] if p != place]

    def alone(self, rng: Random) -> tuple[str, list[str]] | None:
        """An operand whose tensor is used once, or the output."""
        everyone = [*self.operands, (self.name, self.output)]
        names = [name for name, _ in everyone]
        once = [one for one in everyone if names.count(one[0]) == 1]
        return rng.choice(once) if once else None


# --- edits ---------------------------------------------------------------------------------------


def _relevel(parts: _Parts, rng: Random, walker: Walker) -> None:
    levels = parts.formats[rng.choice(list(parts.formats))]
    if levels:
        place = rng.randrange(len(levels))
        levels[place] = (rng.choice(walker.options.levels), levels[place][1])


def _reformat(parts: _Parts, rng: Random, walker: Walker) -> None:
    """All levels of a tensor anew, often all of one kind."""
    name = rng.choice(list(parts.formats))
    kinds = walker.options.levels if rng.random() < 0.5 else (rng.choice(walker.options.levels),)
    parts.formats[name] = [(rng.choice(kinds), position) for _, position in parts.formats[name]]


def _reorder(parts: _Parts, rng: Random, walker: Walker) -> None:
    name = rng.choice(list(parts.formats))
    levels = parts.formats[name]
    order = list(range(len(levels)))
    if rng.random() < 0.7:
        rng.shuffle(order)
    parts.formats[name] = [(kind, p) for (kind, _), p in zip(levels, order, strict=True)]


def _transpose(parts: _Parts, rng: Random, walker: Walker) -> None:
    """The positions of a tensor in another order, its levels as they were."""
    found = parts.alone(rng)
    if found is not None:
        rng.shuffle(found[1])


def _append(parts: _Parts, rng: Random, walker: Walker) -> None:
    """An index more for one or two operands, often for the output."""
    index = parts.fresh_index(rng) if rng.random() < 0.6 else None
    index = index or rng.choice(parts.used or [LETTERS[0]])
    parts.extents.setdefault(index, rng.randint(2, _LARGEST))
    for _ in range(rng.choice((1, 2))):
        found = parts.alone(rng)
        if found is not None and index not in found[1] and len(found[1]) < _RANK:
            parts.insert(*found, index, rng, rng.choice(walker.options.levels))
    if rng.random() < 0.4 and index not in parts.output and len(parts.output) < _RANK:
        kind = rng.choice(walker.options.levels)
        parts.insert(parts.name, parts.output, index, rng, kind)


def _remove(parts: _Parts, rng: Random, walker: Walker) -> None:
    """An index less for one tensor, or for all."""
    found = parts.alone(rng)
    if found is None or not found[1]:
        return
    place = rng.randrange(len(found[1]))
    index = found[1][place]
    parts.remove(*found, place)
    if rng.random() < 0.5:
        for name, indices in (*parts.operands, (parts.name, parts.output)):
            while index in indices:
                parts.remove(name, indices, indices.index(index))


def _rename(parts: _Parts, rng: Random, walker: Walker) -> None:
    """Another index in one place, one that is there or a new one."""
    found = parts.alone(rng)
    if found is not None and found[1]:
        index = parts.fresh_index(rng) if rng.random() < 0.3 else rng.choice(parts.used)
        if index is not None:
            found[1][rng.randrange(len(found[1]))] = index


def _keep_or_sum(parts: _Parts, rng: Random, walker: Walker) -> None:
    """An index into the output, or out of it."""
    index = rng.choice(parts.used or [LETTERS[0]])
    if index in parts.output:
        parts.remove(parts.name, parts.output, parts.output.index(index))
    elif index in parts.extents and len(parts.output) < _RANK:
        kind = rng.choice(walker.options.levels)
        parts.insert(parts.name, parts.output, index, rng, kind)


def _new_operand(parts: _Parts, rng: Random, walker: Walker, indices: Sequence[str]) -> str:
    name = parts.fresh_tensor()
    kinds = [rng.choice(walker.options.levels) for _ in indices]
    order = list(range(len(indices)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    parts.formats[name] = list(zip(kinds, order, strict=True))
    parts.data[name] = _drawn(rng, set())
    return name


def _more_factors(parts: _Parts, rng: Random, walker: Walker) -> None:
    if len(parts.operands) >= _OPERANDS:
        return
    term = rng.choice(parts.terms)
    used = list(dict.fromkeys(i for _, indices in term for i in indices)) or parts.used
    few = min(len(used), 0 if rng.random() < 0.1 else 1)
    indices = rng.sample(used, rng.randint(few, min(3, len(used))))
    if rng.random() < 0.3:
        index = parts.fresh_index(rng)
        if index is not None:
            indices.insert(rng.randint(0, len(indices)), index)
            parts.insert(parts.name, parts.output, index, rng, rng.choice(walker.options.levels))
    factor = (_new_operand(parts, rng, walker, indices), indices)
    term.insert(rng.randint(0, len(term)), factor)


def _more_terms(parts: _Parts, rng: Random, walker: Walker) -> None:
    if len(parts.operands) >= _OPERANDS or len(parts.terms) >= _TERMS:
        return
    indices = rng.sample(parts.output, len(parts.output))
    factor = (_new_operand(parts, rng, walker, indices), indices)
    parts.terms.insert(rng.randint(0, len(parts.terms)), [factor])


def _fewer_factors(parts: _Parts, rng: Random, walker: Walker) -> None:
    term = rng.choice(parts.terms)
    if len(parts.operands) > 1:
        del term[rng.randrange(len(term))]
        parts.terms = [term for term in parts.terms if term]


def _shuffle(parts: _Parts, rng: Random, walker: Walker) -> None:
    """Terms and factors in another order."""
    rng.shuffle(parts.terms)
    for term in parts.terms:
        rng.shuffle(term)


def _same_tensor(parts: _Parts, rng: Random, walker: Walker) -> None:
    """One operand becomes another's tensor; or one that was is made a tensor of its own."""
    term = rng.choice(parts.terms)
    place = rng.randrange(len(term))
    name, indices = term[place]
    names = [other for other, _ in parts.operands]
    if names.count(name) > 1:
        term[place] = (_new_operand(parts, rng, walker, indices), indices)
        return
    alike = [o for o, other in parts.operands if o != name and len(other) == len(indices)]
    if alike:
        term[place] = (rng.choice(alike), indices)


def _extent(parts: _Parts, rng: Random, walker: Walker) -> None:
    """Another extent, also for all indices at once."""
    used = parts.used
    if not used:
        return
    chosen = used if rng.random() < 0.3 else [rng.choice(used)]
    for index in chosen:
        small = [0] if walker.options.empty else []
        parts.extents[index] = rng.choice((*small, 1, 2, 2, 3, 4, _LARGEST))


def _entries(parts: _Parts, rng: Random, walker: Walker) -> None:
    """Other entries for a tensor, or for all."""
    names = list(parts.data)
    chosen = names if rng.random() < 0.3 else [rng.choice(names)]
    for name in chosen:
        kinds = [kind for kind in _KINDS if rng.random() < 0.25]
        parts.data[name] = _drawn(rng, set(kinds))


_KINDS = ("empty_data", "full_data", "explicit_zeros", "duplicates", "unsorted")


def _element_type(parts: _Parts, rng: Random, walker: Walker) -> None:
    parts.dtype = rng.choice(walker.dtypes)


_Edit = Callable[[_Parts, Random, Walker], None]
_WEIGHTED: dict[_Edit, float] = {
    _relevel: 3, _reformat: 1.5, _reorder: 2, _transpose: 1.5, _append: 2, _remove: 1.5,
    _rename: 1.5, _keep_or_sum: 1.5, _more_factors: 1, _more_terms: 0.7, _fewer_factors: 0.7,
    _shuffle: 1, _same_tensor: 0.5, _extent: 1.5, _entries: 1.5, _element_type: 0.5,
}  # fmt: skip
_EDITS, _WEIGHTS = list(_WEIGHTED), list(_WEIGHTED.values())
_ABOUT: dict[str, tuple[_Edit, ...]] = {
    "entries": (_entries,),
    "element type": (_element_type,),
    "extent": (_extent,),
    "number of operands": (_more_factors, _more_factors, _more_terms, _fewer_factors),
    "number of terms": (_more_terms, _fewer_factors),
    "order of operands": (_shuffle,),
    "order of indices": (_transpose, _reorder),
    "order of loops": (_transpose, _reorder, _relevel, _rename),
    "loops": (_transpose, _reorder, _relevel, _rename),
    "order of": (_reorder,),
    "tensors": (_same_tensor,),
    "terms": (_more_terms, _more_factors, _shuffle),
    "rank": (_append, _remove),
    "levels": (_relevel, _reformat, _relevel, _append),
    "indices": (_rename, _append),
    "index": (_rename, _append, _remove, _keep_or_sum, _transpose, _reorder, _relevel),
    "storage": (_relevel, _reorder, _transpose, _append, _rename),
    "variable": (_remove, _fewer_factors, _rename, _keep_or_sum),
}
"""Edits that change something in a dimension, by the beginning of its name."""


def is_written_out(kernel: Kernel) -> bool:
    """Whether all entries are."""
    return all(isinstance(tensor.data, Entries) for tensor in kernel.operands)
