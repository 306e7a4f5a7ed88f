"""Metamorphic relations: other kernels, and how their results say what the first one's must be.

A :class:`Variant` is a *program*: kernels that are run in order, of which later ones may read the
outputs of earlier ones (:class:`~reprise.einsum.kernel.Computed`), and a :class:`Recovery` that
makes of their outputs what the original computes. Each :class:`Relation` says under which
arithmetic that is the same to the last bit, and under which up to rounding:

========== ===================================================================================
BITWISE    the same operations in the same order, for a compiler that decides by structure and
           storage: equal whatever the values (for *scale*: short of overflow and underflow)
ROUNDED    the same sums in another order, or other ways to the same products: equal whenever
           :func:`~reprise.einsum.reference.is_exact` holds; else within the reference's bounds
========== ===================================================================================

With drawn integers every kernel of ordinary size is exact, so that all relations are. A relation
that does not apply to a kernel gives no variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import factorial
from random import Random

import numpy as np

from reprise.einsum.data import Array, materialise, permutation
from reprise.einsum.kernel import (
    Access,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Format,
    Kept,
    Kernel,
    Level,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Tensor,
    Term,
    Transposed,
    Zeros,
    assemble,
    rebuilt,
)
from reprise.einsum.reference import evaluate
from reprise.einsum.validity import Validity

_SEEDS = 1 << 32


class Exactness(Enum):
    """Under which arithmetic a relation's results are the same to the last bit."""

    BITWISE = "bitwise"
    ROUNDED = "rounded"


@dataclass(frozen=True, slots=True)
class Recovery:
    """From the outputs of a program to what the original kernel computes.

    The outputs named in ``added`` are added up; the sum is scaled by two to the power of
    ``-exponent``, the coordinates of each axis are permuted back (``permuted``: axis and seed), and
    at last axis ``n`` of the result is axis ``axes[n]``, if ``axes`` are given.
    """

    added: tuple[str, ...]
    exponent: int = 0
    permuted: tuple[tuple[int, int], ...] = ()
    axes: tuple[int, ...] | None = None

    def __call__(self, outputs: Mapping[str, Array]) -> Array:
        """What the original kernel computes, from the program's outputs by name."""
        result = outputs[self.added[0]]
        for name in self.added[1:]:
            result = result + outputs[name]
        if self.exponent:
            result = np.ldexp(result, -self.exponent) if result.dtype.kind == "f" else (
                result // 2**self.exponent
            )  # fmt: skip
        for axis, seed in self.permuted:
            result = np.take(result, permutation(seed, result.shape[axis]), axis=axis)
        return result if self.axes is None else np.transpose(result, self.axes)


@dataclass(frozen=True, slots=True)
class Variant:
    """A program that computes what a kernel does, and by which relation. ``note`` says what was
    done, for reports."""

    relation: str
    note: str
    kernels: tuple[Kernel, ...]
    recovery: Recovery

    def reference(self) -> Array:
        """What the original kernel must compute, by the dense reference of every kernel here."""
        outputs: dict[str, Array] = {}
        for kernel in self.kernels:
            stored = materialise(kernel, outputs)
            dense = {name: entries.dense() for name, entries in stored.items()}
            outputs[kernel.output.tensor] = evaluate(kernel, dense)
        return self.recovery(outputs)


Draw = Callable[[Kernel, Random], Variant | None]


@dataclass(frozen=True, slots=True)
class Relation:
    """A way to vary a kernel. ``draw`` gives a variant, or None where it does not apply."""

    name: str
    title: str
    exactness: Exactness
    draw: Draw


RELATIONS: dict[str, Relation] = {}
"""All relations, by name."""


def _relation(name: str, title: str, exactness: Exactness) -> Callable[[Draw], Draw]:
    def register(draw: Draw) -> Draw:
        RELATIONS[name] = Relation(name, title, exactness, draw)
        return draw

    return register


def variants(
    kernel: Kernel,
    rng: Random,
    names: Sequence[str] = (),
    count: int = 1,
    validity: Validity | None = None,
) -> Iterator[Variant]:
    """Up to ``count`` different variants of a kernel by each relation; by all if none is named.

    With ``validity``, those with a kernel that its rules object to are left out.
    """
    for name in names or RELATIONS:
        seen: set[tuple[Kernel, ...]] = {(kernel,)}
        for _ in range(count):
            variant = RELATIONS[name].draw(kernel, rng)
            if variant is None or variant.kernels in seen:
                continue
            seen.add(variant.kernels)
            if validity is None or not any(map(validity.of, variant.kernels)):
                yield variant


def _same_output(relation: str, note: str, kernel: Kernel) -> Variant:
    return Variant(relation, note, (kernel,), Recovery((kernel.output.tensor,)))


# --- the paper's two -----------------------------------------------------------------------------


@_relation("commute", "factors, and terms, in another order", Exactness.ROUNDED)
def commute(kernel: Kernel, rng: Random) -> Variant | None:
    """``B * C + D`` as ``D + C * B``."""
    terms = [Term(tuple(rng.sample(term.factors, len(term.factors)))) for term in kernel.terms]
    rng.shuffle(terms)
    if tuple(terms) == kernel.terms:
        return None
    changed = rebuilt(kernel, terms=terms)
    return _same_output("commute", changed.statement, changed)


@_relation("formats", "operands stored in other formats", Exactness.ROUNDED)
def formats(kernel: Kernel, rng: Random) -> Variant | None:
    """Other levels, in another order, for some of the operands."""
    operands = [tensor for tensor in kernel.operands if tensor.format.rank]
    if not operands:
        return None
    chosen = rng.sample(operands, rng.randint(1, len(operands)))
    changes = {tensor.name: _other_format(tensor, rng) for tensor in chosen}
    note = ", ".join(f"{t.name}: {t.format} -> {changes[t.name]}" for t in chosen)
    return _same_output("formats", note, rebuilt(kernel, formats=changes))


@_relation("output-format", "the output stored in another format", Exactness.ROUNDED)
def output_format(kernel: Kernel, rng: Random) -> Variant | None:
    """Other levels, in another order, for the output."""
    output = kernel.tensors[0]
    if not output.format.rank:
        return None
    changed = _other_format(output, rng)
    note = f"{output.name}: {output.format} -> {changed}"
    return _same_output("output-format", note, rebuilt(kernel, formats={output.name: changed}))


def _other_format(tensor: Tensor, rng: Random) -> Format:
    """A format of dense and compressed levels that is another than the tensor's."""
    rank = tensor.format.rank
    while True:
        levels = tuple(rng.choice((Level.DENSE, Level.COMPRESSED)) for _ in range(rank))
        order = tensor.format.order
        if rng.random() < 0.5:
            order = tuple(rng.sample(range(rank), rank))
        if (levels, order) != (tensor.format.levels, tensor.format.order):
            return Format(levels, order)


# --- names and order -----------------------------------------------------------------------------


@_relation("rename", "other names for indices and tensors", Exactness.BITWISE)
def rename(kernel: Kernel, rng: Random) -> Variant | None:
    """The names of indices, and those of operands, exchanged among themselves."""
    indices = [index for index, _ in kernel.extents]
    names = [tensor.name for tensor in kernel.operands if not isinstance(tensor.data, Computed)]
    index_of = dict(zip(indices, rng.sample(indices, len(indices)), strict=True))
    name_of = dict(zip(names, rng.sample(names, len(names)), strict=True))

    def renamed(access: Access) -> Access:
        name = name_of.get(access.tensor, access.tensor)
        return Access(name, tuple(index_of[index] for index in access.indices))

    operands = {name_of.get(t.name, t.name): t for t in kernel.operands}
    changed = assemble(
        renamed(kernel.output),
        [Term(tuple(map(renamed, term.factors))) for term in kernel.terms],
        {index_of[index]: extent for index, extent in kernel.extents},
        {
            **{n: t.format for n, t in operands.items()},
            kernel.output.tensor: kernel.tensors[0].format,
        },
        {n: t.data for n, t in operands.items() if t.data is not None},
        kernel.dtype,
    )
    return None if changed == kernel else _same_output("rename", changed.statement, changed)


@_relation("transpose", "tensors transposed, and stored as before", Exactness.BITWISE)
def transpose(kernel: Kernel, rng: Random) -> Variant | None:
    """A tensor with its positions in another order, and its levels so that they store what they
    stored: the compiler sees other positions, the storage is the same to the last bit."""
    tensors = [t for t in kernel.tensors if t.format.rank > 1 and _may_edit(t)]
    if not tensors:
        return None
    tensor = rng.choice(tensors)
    rank = tensor.format.rank
    axes = _permutation(rng.randrange(factorial(rank) - 1) + 1, rank)
    stored = Format(
        tensor.format.levels, tuple(axes.index(position) for position in tensor.format.order)
    )

    def moved(access: Access) -> Access:
        if access.tensor != tensor.name:
            return access
        return Access(access.tensor, tuple(access.indices[axis] for axis in axes))

    changed = rebuilt(
        kernel,
        output=moved(kernel.output),
        terms=[Term(tuple(map(moved, term.factors))) for term in kernel.terms],
        formats={tensor.name: stored},
        data=_edited([tensor], Transposed(axes)),
    )
    back = None
    if tensor is kernel.tensors[0]:
        back = tuple(axes.index(axis) for axis in range(rank))
    note = f"{tensor.name}: positions {','.join(map(str, axes))}"
    return Variant("transpose", note, (changed,), Recovery((kernel.output.tensor,), axes=back))


def _permutation(number: int, rank: int) -> tuple[int, ...]:
    """One of the orders of so many axes, by its number in lexicographic order; 0: as they are."""
    left = list(range(rank))
    found = []
    for remaining in reversed(range(rank)):
        place, number = divmod(number, factorial(remaining))
        found.append(left.pop(place))
    return tuple(found)


@_relation("permute", "the coordinates of an index permuted in all tensors", Exactness.ROUNDED)
def permute(kernel: Kernel, rng: Random) -> Variant | None:
    """Every tensor that has an index is permuted along it, and the output is permuted back."""
    possible = [
        index for index, extent in kernel.extents if extent > 1 and _is_separate(kernel, index)
    ]
    if not possible:
        return None
    index, seed = rng.choice(possible), rng.randrange(_SEEDS)
    data = {t.name: t.data for t in kernel.operands if t.data is not None}
    for access in {access.tensor: access for access in kernel.accesses}.values():
        for position, other in enumerate(access.indices):
            if other == index:
                data[access.tensor] = _appended(data[access.tensor], Permuted(position, seed))
    back = tuple((n, seed) for n, other in enumerate(kernel.output.indices) if other == index)
    changed = rebuilt(kernel, data=data)
    recovery = Recovery((kernel.output.tensor,), permuted=back)
    return Variant("permute", f"coordinates of {index}", (changed,), recovery)


def _is_separate(kernel: Kernel, index: str) -> bool:
    """Whether all uses of a tensor have an index at the same positions, and none is computed."""
    places: dict[str, set[tuple[int, ...]]] = {}
    for access in kernel.accesses:
        here = tuple(n for n, other in enumerate(access.indices) if other == index)
        places.setdefault(access.tensor, set()).add(here)
    return all(
        len(found) == 1 and (found == {()} or _may_edit(kernel.tensor(name)))
        for name, found in places.items()
    )


@_relation("reorder", "entries listed in another order", Exactness.ROUNDED)
def reorder(kernel: Kernel, rng: Random) -> Variant | None:
    """The entries of an operand, given to whoever packs them in another order. Values that are
    stored twice are then added in another order too."""
    tensors = [t for t in kernel.operands if t.format.rank and _may_edit(t)]
    if not tensors:
        return None
    chosen = rng.choice(tensors)
    changed = rebuilt(kernel, data=_edited([chosen], Reordered(rng.randrange(_SEEDS))))
    return _same_output("reorder", chosen.name, changed)


# --- values --------------------------------------------------------------------------------------


@_relation("scale", "one operand of each term scaled by a power of two", Exactness.BITWISE)
def scale(kernel: Kernel, rng: Random) -> Variant | None:
    """An operand that only its term has, in every term, so that the result is scaled as a whole."""
    chosen: list[Tensor] = []
    for term in kernel.terms:
        uses = [factor.tensor for factor in term.factors]
        able = [
            tensor for tensor in dict.fromkeys(uses)
            if uses.count(tensor) == 1 and _may_edit(kernel.tensor(tensor))
            and sum(f.tensor == tensor for f in kernel.accesses) == 1
        ]  # fmt: skip
        if not able:
            return None
        chosen.append(kernel.tensor(rng.choice(able)))
    positive = kernel.dtype.startswith("int")
    exponent = rng.choice([1, 2, 3] if positive else [-3, -2, -1, 1, 2, 3, 10])
    changed = rebuilt(kernel, data=_edited(chosen, Scaled(exponent)))
    names = ", ".join(tensor.name for tensor in chosen)
    recovery = Recovery((kernel.output.tensor,), exponent)
    return Variant("scale", f"{names} times 2^{exponent}", (changed,), recovery)


@_relation("zeros", "explicit zeros among the entries", Exactness.ROUNDED)
def zeros(kernel: Kernel, rng: Random) -> Variant | None:
    """Zeros stored where an operand had nothing. Infinities and NaN would show; there are none."""
    tensors = [t for t in kernel.operands if t.format.rank and _may_edit(t)]
    if not tensors:
        return None
    chosen = rng.choice(tensors)
    edit = Zeros(rng.randint(1, 6), rng.randrange(_SEEDS))
    return _same_output("zeros", chosen.name, rebuilt(kernel, data=_edited([chosen], edit)))


# --- algebra -------------------------------------------------------------------------------------


@_relation("distribute", "an operand split in two, and the product distributed", Exactness.ROUNDED)
def distribute(kernel: Kernel, rng: Random) -> Variant | None:
    """``(B1 + B2) * C`` as ``B1 * C + B2 * C``, where B1 and B2 are the even and the odd entries of
    B: as one kernel with more terms, or as two kernels whose outputs are added."""
    chosen = _used_once(kernel, rng)
    if chosen is None:
        return None
    term, tensor = chosen
    parts: list[Edit] = [Part(0, 2), Part(1, 2)]
    return _split("distribute", f"entries of {tensor.name}", kernel, term, tensor, parts, rng)


@_relation("split-range", "a sum over an index split in two ranges", Exactness.ROUNDED)
def split_range(kernel: Kernel, rng: Random) -> Variant | None:
    """A contraction over ``j`` as one over the first and one over the other coordinates of ``j``:
    one operand keeps only its entries there."""
    chosen = _used_once(kernel, rng, contracted=True)
    if chosen is None:
        return None
    term, tensor = chosen
    (access,) = [f for f in kernel.terms[term].factors if f.tensor == tensor.name]
    extents = kernel.extent
    positions = [
        n for n, i in enumerate(access.indices)
        if i not in kernel.output.indices and extents[i] > 1
    ]  # fmt: skip
    position = rng.choice(positions)
    index = access.indices[position]
    middle = rng.randrange(1, extents[index])
    parts: list[Edit] = [Kept(position, 0, middle), Kept(position, middle, extents[index])]
    note = f"{index} at {middle}, in {tensor.name}"
    return _split("split-range", note, kernel, term, tensor, parts, rng)


def _used_once(
    kernel: Kernel, rng: Random, *, contracted: bool = False
) -> tuple[int, Tensor] | None:
    """A term and a tensor that is used there and nowhere else (and has an index with two or more
    coordinates that is summed over)."""
    extents = kernel.extent
    possible = []
    for number, term in enumerate(kernel.terms):
        for factor in term.factors:
            once = sum(f.tensor == factor.tensor for f in kernel.accesses) == 1
            sums = any(i not in kernel.output.indices and extents[i] > 1 for i in factor.indices)
            tensor = kernel.tensor(factor.tensor)
            if once and _may_edit(tensor) and (sums if contracted else factor.indices):
                possible.append((number, tensor))
    return rng.choice(possible) if possible else None


def _split(
    relation: str,
    note: str,
    kernel: Kernel,
    term: int,
    tensor: Tensor,
    parts: list[Edit],
    rng: Random,
) -> Variant:
    """One term as several, each with a part of the data of ``tensor``: as one kernel, or each part
    as a kernel of its own."""
    assert tensor.data is not None
    whole = set(kernel.output.indices) <= set(kernel.terms[term].indices)
    if not whole or rng.random() < 0.5:  # a kernel that lacks an index of the output is not valid
        names = _fresh(kernel, len(parts) - 1)
        terms, formats, data = list(kernel.terms), {}, {}
        terms[term : term + 1] = [
            Term(
                tuple(
                    Access(name, f.indices) if f.tensor == tensor.name else f
                    for f in kernel.terms[term].factors
                )
            )
            for name in (tensor.name, *names)
        ]
        for name, part in zip((tensor.name, *names), parts, strict=True):
            formats[name] = tensor.format
            data[name] = _appended(tensor.data, part)
        changed = rebuilt(kernel, terms=terms, formats=formats, data=data)
        return _same_output(relation, f"{note}, in one kernel", changed)
    outputs = (kernel.output.tensor, *_fresh(kernel, len(parts) - 1))
    kernels = []
    for number, (name, part) in enumerate(zip(outputs, parts, strict=True)):
        terms = list(kernel.terms) if number == 0 else [kernel.terms[term]]
        kernels.append(
            rebuilt(
                kernel,
                output=Access(name, kernel.output.indices),
                terms=terms,
                formats={name: kernel.tensors[0].format},
                data={tensor.name: _appended(tensor.data, part)},
            )
        )
    return Variant(relation, f"{note}, in {len(parts)} kernels", tuple(kernels), Recovery(outputs))


@_relation("precompute", "part of a product computed first", Exactness.ROUNDED)
def precompute(kernel: Kernel, rng: Random) -> Variant | None:
    """``B * C * D`` as ``T = B * C`` and ``T * D``; ``T`` sums over what only B and C have."""
    able = [n for n, term in enumerate(kernel.terms) if len(term.factors) > 2]
    if not able:
        return None
    number = rng.choice(able)
    factors = kernel.terms[number].factors
    inner = sorted(rng.sample(range(len(factors)), rng.randint(2, len(factors) - 1)))
    outer = [f for n, f in enumerate(factors) if n not in inner]
    needed = {*kernel.output.indices, *(i for factor in outer for i in factor.indices)}
    first = Term(tuple(factors[n] for n in inner))
    kept = tuple(index for index in first.indices if index in needed)
    (name,) = _fresh(kernel, 1)
    access = Access(name, kept)
    levels = tuple(rng.choice((Level.DENSE, Level.COMPRESSED)) for _ in kept)
    stored = Format(levels, tuple(range(len(kept))))
    before = rebuilt(kernel, output=access, terms=[first], formats={name: stored})
    terms = list(kernel.terms)
    terms[number] = Term((access, *outer))
    after = rebuilt(kernel, terms=terms, formats={name: stored}, data={name: Computed(name)})
    recovery = Recovery((kernel.output.tensor,))
    return Variant("precompute", before.statement, (before, after), recovery)


# --- parts ---------------------------------------------------------------------------------------


def _may_edit(tensor: Tensor) -> bool:
    """Whether a tensor's data are not computed by another kernel: the output has none to edit."""
    return not isinstance(tensor.data, Computed)


def _appended(data: Data | None, edit: Edit) -> Data:
    match data:
        case Drawn(structure, density, seed, values, duplicates, zeros, unsorted, edits):
            return Drawn(
                structure, density, seed, values, duplicates, zeros, unsorted, (*edits, edit)
            )
        case Entries(coordinates, values_, edits):
            return Entries(coordinates, values_, (*edits, edit))
    raise TypeError(f"{data!r} cannot be edited")


def _edited(tensors: Sequence[Tensor], edit: Edit) -> dict[str, Data]:
    return {t.name: _appended(t.data, edit) for t in tensors if t.data is not None}


def _fresh(kernel: Kernel, count: int) -> list[str]:
    """Names that no tensor of the kernel has."""
    taken = {tensor.name for tensor in kernel.tensors}
    letters = [chr(code) for code in range(ord("B"), ord("Z") + 1)]
    numbered = [f"T{n}" for n in range(len(taken) + count)]
    return [name for name in (*letters, *numbered) if name not in taken][:count]
