"""Kernels to facts, in the vocabulary of ``rules/einsum/facts.rules``.

A fact of a kernel as written keeps its position, so that a violation can be shown where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from reprise.einsum.kernel import Access, Format, Kernel
from reprise.einsum.text import Source
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


def facts_as_written(source: Source) -> Position:
    """The facts of a kernel as written, each with its position.

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
    for written in (*source.operands, source.output):
        declared = source.tensors.get(written.access.tensor)
        if declared is None:
            continue
        for index, extent in zip(written.access.indices, declared.shape or (), strict=False):
            found.setdefault(("extent", (index, extent)), declared.span)
        if declared.format is not None:
            for fact in level_facts(written.access.tensor, declared.format):
                found[fact] = declared.span
    return found
