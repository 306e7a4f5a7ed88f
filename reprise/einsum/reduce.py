"""Makes a kernel smaller while it fails as it does.

A kernel is tried with less of one thing at a time, the most first: without a term, without a
factor, without an index (at its first coordinate), with plainer formats, fewer coordinates, fewer
entries, ones for values. First of all comes a copy of the right result: what still fails then has
to do with the output alone. Whatever still fails is gone on with, until nothing helps or the number
of runs is spent. The passes are tried in order and the first success starts over at the same pass,
so that the answer follows from the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from reprise.einsum.data import Stored, materialise, of_array
from reprise.einsum.kernel import (
    Access,
    Entries,
    Format,
    Kernel,
    KernelError,
    Level,
    Term,
    assemble,
    rebuilt,
)
from reprise.einsum.reference import reference

Fails = Callable[[Kernel], bool]


class Reduction:
    """A kernel as it gets smaller. ``kernel`` always fails, so that it can be kept if :meth:`run`
    is interrupted by an exception out of ``fails``; ``runs``: how often that was asked."""

    def __init__(self, kernel: Kernel, fails: Fails) -> None:
        self.kernel = kernel
        self.runs = 0
        self.minimal = False
        self._fails = fails

    def run(self, tries: int | None = None) -> None:
        """Until no pass helps, or ``fails`` was asked so often."""
        progress = True
        while progress:
            progress = False
            for candidates in _PASSES:
                found = True
                while found:
                    found = False
                    for candidate in candidates(self.kernel):
                        if tries is not None and self.runs >= tries:
                            return
                        self.runs += 1
                        if self._fails(candidate):
                            self.kernel, found, progress = candidate, True, True
                            break
        self.minimal = True


def reduced(kernel: Kernel, fails: Fails, tries: int) -> tuple[Kernel, int]:
    """A kernel that fails and is at most as large, and how often ``fails`` was asked (at most
    ``tries`` times)."""
    reduction = Reduction(kernel, fails)
    reduction.run(tries)
    return reduction.kernel, reduction.runs


def written_out(kernel: Kernel) -> Kernel:
    """The kernel with the entries of its operands written out: sorted, each coordinate once."""
    stored = materialise(kernel)
    return rebuilt(kernel, data={name: _entries(s.canonical()) for name, s in stored.items()})


def _entries(stored: Stored) -> Entries:
    coordinates = tuple(tuple(int(i) for i in c) for c in stored.coordinates)
    return Entries(coordinates, tuple(float(v) for v in stored.values))


def _plain_data(kernel: Kernel) -> Iterator[Kernel]:
    if any(not isinstance(t.data, Entries) or t.data.edits for t in kernel.operands):
        yield written_out(kernel)


def _copied(kernel: Kernel) -> Iterator[Kernel]:
    """``A = B``, where B is densely stored and holds what the kernel should compute."""
    if len(kernel.accesses) == 1 and kernel.accesses[0].indices == kernel.output.indices:
        return
    name = kernel.operands[0].name
    value = reference(kernel, materialise(kernel)).astype(kernel.dtype)
    if not np.isfinite(value).all():
        return
    yield assemble(
        kernel.output,
        [Term((Access(name, kernel.output.indices),))],
        kernel.extent,
        {kernel.output.tensor: kernel.tensors[0].format},
        {name: _entries(of_array(value))},
        kernel.dtype,
    )


def _without_terms(kernel: Kernel) -> Iterator[Kernel]:
    for number in range(len(kernel.terms)):
        terms = [t for n, t in enumerate(kernel.terms) if n != number]
        if terms and _is_bound(kernel.output, terms):
            yield _rebuilt(kernel, terms)


def _without_factors(kernel: Kernel) -> Iterator[Kernel]:
    for number, term in enumerate(kernel.terms):
        for place in range(len(term.factors)):
            left = term.factors[:place] + term.factors[place + 1 :]
            terms = [Term(left) if n == number else t for n, t in enumerate(kernel.terms)]
            if left and _is_bound(kernel.output, terms) and not _has_lonely(kernel.output, terms):
                yield _rebuilt(kernel, terms)


def _without_indices(kernel: Kernel) -> Iterator[Kernel]:
    """An index only at its first coordinate, and so not there at all."""
    if not all(isinstance(t.data, Entries) for t in kernel.operands):
        return
    for index, extent in kernel.extents:
        if not extent:
            continue
        access_of = {a.tensor: a for a in (kernel.output, *kernel.accesses)}
        if any(
            a.indices.count(index) != access_of[a.tensor].indices.count(index)
            or [i == index for i in a.indices] != [i == index for i in access_of[a.tensor].indices]
            for a in kernel.accesses
        ):
            continue
        kept = {n: [p for p, i in enumerate(a.indices) if i != index] for n, a in access_of.items()}
        if any(a.indices and not kept[n] for n, a in access_of.items()):
            continue  # scalars are a matter of their own: what fails on them may be another bug

        def cut(access: Access, kept: dict[str, list[int]] = kept) -> Access:
            return Access(access.tensor, tuple(access.indices[p] for p in kept[access.tensor]))

        terms = [Term(tuple(map(cut, term.factors))) for term in kernel.terms]
        formats, data = {}, {}
        for tensor in kernel.tensors:
            places = kept[tensor.name]
            pairs = [
                (level, places.index(position))
                for level, position in zip(tensor.format.levels, tensor.format.order, strict=True)
                if position in places
            ]
            formats[tensor.name] = Format(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
            if isinstance(tensor.data, Entries):
                at = [p for p, i in enumerate(access_of[tensor.name].indices) if i == index]
                found = [
                    (tuple(c[p] for p in places), value)
                    for c, value in zip(tensor.data.coordinates, tensor.data.values, strict=True)
                    if all(c[p] == 0 for p in at)
                ]
                data[tensor.name] = Entries(tuple(c for c, _ in found), tuple(v for _, v in found))
        yield assemble(cut(kernel.output), terms, kernel.extent, formats, data, kernel.dtype)


def _plainer_formats(kernel: Kernel) -> Iterator[Kernel]:
    for tensor in kernel.tensors:
        levels, order = tensor.format.levels, tensor.format.order
        tried = [Format.dense(len(levels)), Format(levels, tuple(sorted(order)))]
        for n, level in enumerate(levels):
            if level is not Level.DENSE:
                tried.append(Format((*levels[:n], Level.DENSE, *levels[n + 1 :]), order))
        for stored in tried:
            if stored != tensor.format and _weight(stored) < _weight(tensor.format):
                yield rebuilt(kernel, formats={tensor.name: stored})


def _weight(stored: Format) -> tuple[int, bool]:
    return sum(level is not Level.DENSE for level in stored.levels), not stored.is_ordered


def _smaller_extents(kernel: Kernel) -> Iterator[Kernel]:
    if not all(isinstance(t.data, Entries) for t in kernel.operands):
        return
    for index, extent in kernel.extents:
        for smaller in sorted({1, extent // 2, extent - 1} - {0, extent}):
            if not 0 < smaller < extent:
                continue
            data = {}
            for access in kernel.accesses:
                held = kernel.tensor(access.tensor).data
                assert isinstance(held, Entries)
                found = [
                    (c, v)
                    for c, v in zip(held.coordinates, held.values, strict=True)
                    if all(
                        x < smaller for x, i in zip(c, access.indices, strict=True) if i == index
                    )
                ]
                data[access.tensor] = Entries(
                    tuple(c for c, _ in found), tuple(v for _, v in found)
                )
            try:
                yield rebuilt(kernel, extents={index: smaller}, data=data)
            except KernelError:  # a tensor that is used twice has one shape
                continue


def _entries_at_origin(kernel: Kernel) -> Iterator[Kernel]:
    """The entries of a tensor next to each other from 0 on, whatever those of others are."""
    for tensor in kernel.operands:
        if not isinstance(tensor.data, Entries) or not tensor.data.coordinates:
            continue
        axes = [sorted(set(axis)) for axis in zip(*tensor.data.coordinates, strict=True)]
        coordinates = tuple(
            tuple(axis.index(x) for axis, x in zip(axes, coordinate, strict=True))
            for coordinate in tensor.data.coordinates
        )
        if coordinates != tensor.data.coordinates:
            yield rebuilt(kernel, data={tensor.name: Entries(coordinates, tensor.data.values)})


def _closer_entries(kernel: Kernel) -> Iterator[Kernel]:
    """Coordinates that hold entries next to each other, from 0 on, and no others: along all indices
    at once, then along each."""
    operands = {access.tensor: access for access in kernel.accesses}
    if any(operands[a.tensor].indices != a.indices for a in kernel.accesses):
        return  # a tensor that is used twice has one shape
    held = {t.name: t.data for t in kernel.operands if isinstance(t.data, Entries)}
    if len(held) < len(kernel.operands):
        return
    used: dict[str, set[int]] = {index: set() for index, _ in kernel.extents}
    for name, access in operands.items():
        for coordinate in held[name].coordinates:
            for index, place in zip(access.indices, coordinate, strict=True):
                used[index].add(place)
    moved = {
        index: {place: n for n, place in enumerate(sorted(used[index]))}
        for index, extent in kernel.extents
        if max(len(used[index]), 1) < extent
    }
    for indices in [list(moved), *([index] for index in moved if len(moved) > 1)]:
        if not indices:
            return
        data = {}
        for name, access in operands.items():
            coordinates = tuple(
                tuple(
                    moved[i][x] if i in indices else x
                    for i, x in zip(access.indices, coordinate, strict=True)
                )
                for coordinate in held[name].coordinates
            )
            data[name] = Entries(coordinates, held[name].values)
        extents = {index: max(len(moved[index]), 1) for index in indices}
        yield rebuilt(kernel, extents=extents, data=data)


def _fewer_entries(kernel: Kernel) -> Iterator[Kernel]:
    for tensor in kernel.operands:
        if not isinstance(tensor.data, Entries):
            continue
        count = len(tensor.data.values)
        size = count
        while size:
            for start in range(0, count, size):
                keep = [n for n in range(count) if not start <= n < start + size]
                yield rebuilt(
                    kernel,
                    data={
                        tensor.name: Entries(
                            tuple(tensor.data.coordinates[n] for n in keep),
                            tuple(tensor.data.values[n] for n in keep),
                        )
                    },
                )
            size //= 2


def _ones(kernel: Kernel) -> Iterator[Kernel]:
    for tensor in kernel.operands:
        if isinstance(tensor.data, Entries) and any(v != 1.0 for v in tensor.data.values):
            ones = tuple(np.ones(len(tensor.data.values)).tolist())
            yield rebuilt(kernel, data={tensor.name: Entries(tensor.data.coordinates, ones)})


def _is_bound(output: Access, terms: list[Term]) -> bool:
    """Whether every term has every index of the output."""
    return all(set(output.indices) <= set(term.indices) for term in terms)


def _has_lonely(output: Access, terms: list[Term]) -> bool:
    """Whether an index is summed over that one operand has alone."""
    return any(
        index not in output.indices and sum(index in f.indices for f in term.factors) < 2
        for term in terms
        for index in term.indices
    )


def _rebuilt(kernel: Kernel, terms: list[Term]) -> Kernel:
    return rebuilt(kernel, terms=terms)


_PASSES: tuple[Callable[[Kernel], Iterator[Kernel]], ...] = (
    _copied,
    _plain_data,
    _without_terms,
    _without_factors,
    _without_indices,
    _plainer_formats,
    _smaller_extents,
    _closer_entries,
    _entries_at_origin,
    _fewer_entries,
    _ones,
)
