"""Kernels to facts, in the vocabulary of ``rules/einsum/facts.rules``.

A fact of a kernel as written keeps its position, so that a violation can be shown where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from reprise.einsum.kernel import (
    Access,
    Computed,
    Data,
    Drawn,
    Entries,
    Format,
    Kernel,
    Reordered,
    Structure,
    Zeros,
)
from reprise.einsum.text import EXTENT, Source
from reprise.lang.core import Row
from reprise.lang.diagnostics import Span

Fact = tuple[str, Row]
Position = dict[Fact, Span]
"""Where facts were written."""


def facts_of(kernel: Kernel) -> list[Fact]:
    """The facts of a kernel."""
    found: list[Fact] = []
    number = 0
    for term, product in enumerate(kernel.terms):
        for access in product.factors:
            found += operand_facts(number, term, access)
            number += 1
    found += output_facts(kernel.output)
    for tensor in kernel.tensors:
        found += level_facts(tensor.name, tensor.format)
    found += [("extent", (index, extent)) for index, extent in kernel.extents]
    found.append(("element_type", (kernel.dtype,)))
    shapes = kernel.shapes
    for tensor in kernel.operands:
        found += data_facts(tensor.name, tensor.data, shapes[tensor.name])
    return found


def operand_facts(number: int, term: int, access: Access) -> Iterator[Fact]:
    """An operand, and its indices."""
    yield "operand", (number, term, access.tensor)
    for position, index in enumerate(access.indices):
        yield "operand_index", (number, position, index)


def output_facts(access: Access) -> Iterator[Fact]:
    """The output, and its indices."""
    yield "output_tensor", (access.tensor,)
    for position, index in enumerate(access.indices):
        yield "output_index", (position, index)


def level_facts(tensor: str, stored: Format) -> Iterator[Fact]:
    """The levels of a tensor's format."""
    for level, (kind, position) in enumerate(zip(stored.levels, stored.order, strict=True)):
        yield "level", (tensor, level, kind.value, position)


def data_facts(tensor: str, data: Data | None, shape: tuple[int, ...] | None) -> Iterator[Fact]:
    """What an operand's entries are like, as far as their description says; ``shape`` is asked for
    where they are written out (None: not known)."""
    for what in _data_kinds(data, shape):
        yield "data", (tensor, what)


def _data_kinds(data: Data | None, shape: tuple[int, ...] | None) -> Iterator[str]:
    match data:
        case Drawn():
            edits = [type(edit) for edit in data.edits]
            if data.structure is Structure.EMPTY:
                yield "empty_data"
            if data.structure is Structure.FULL:
                yield "full_data"
            if data.zeros or Zeros in edits:
                yield "explicit_zeros"
            if data.duplicates:
                yield "duplicates"
            if data.unsorted or Reordered in edits:
                yield "unsorted"
        case Entries(coordinates, values):
            if not values:
                yield "empty_data"
            if shape is not None and values and len(set(coordinates)) == prod(shape):
                yield "full_data"
            if 0.0 in values:
                yield "explicit_zeros"
            if len(set(coordinates)) < len(coordinates):
                yield "duplicates"
            if list(coordinates) != sorted(coordinates):
                yield "unsorted"
        case Computed() | None:
            return


def facts_as_written(source: Source) -> Position:
    """The facts of a kernel as written, each with its position: those of the kernel that the text
    stands for, if it hangs together. What goes without saying, an extent or a dense format, is
    where the index or the tensor is first used.

    Extents are those that the text gives, for indices and in shapes: there may be several.
    """
    found: Position = {}
    number = 0
    for term, factors in enumerate(source.terms):
        for written in factors:
            spans = iter((written.span, *written.spans))
            for fact in operand_facts(number, term, written.access):
                found[fact] = next(spans)
            number += 1
    spans = iter((source.output.span, *source.output.spans))
    for fact in output_facts(source.output.access):
        found[fact] = next(spans)
    for index, (extent, span) in source.extents.items():
        found["extent", (index, extent)] = span
    everywhere = (*source.operands, source.output)
    for written in everywhere:
        declared = source.tensors.get(written.access.tensor)
        if declared is not None:
            for index, extent in zip(written.access.indices, declared.shape or (), strict=False):
                found.setdefault(("extent", (index, extent)), declared.span)
    given = {row[0] for relation, row in found if relation == "extent"}
    ranks: dict[str, set[int]] = {}
    for written in everywhere:
        ranks.setdefault(written.access.tensor, set()).add(len(written.spans))
        for index, span in zip(written.access.indices, written.spans, strict=True):
            if index not in given:
                found.setdefault(("extent", (index, EXTENT)), span)
    for written in everywhere:
        tensor = written.access.tensor
        declared = source.tensors.get(tensor)
        if declared is not None and declared.format is not None:
            for fact in level_facts(tensor, declared.format):
                found[fact] = declared.span
        elif len(ranks[tensor]) == 1:
            for fact in level_facts(tensor, Format.dense(len(written.spans))):
                found.setdefault(fact, written.span)
        if declared is not None:
            for fact in data_facts(tensor, declared.data, declared.shape):
                found[fact] = declared.span
    found["element_type", (source.dtype,)] = source.output.span
    return found
