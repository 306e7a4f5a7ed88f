"""Passes over the extents of sources where nobody here knows what depends on them: for models with
operators that are known to their target only. The target says whether what comes out is a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from reprise.distill.flow import Source
from reprise.distill.passes.state import Pass, Place, Proposals, State
from reprise.distill.passes.types import ladder
from reprise.distill.rederive import Corner, fitted
from reprise.uir.graph import TensorType

_EXTENTS = 8
"""Constants of up to so many integers may be extents: targets of reshapes and the like."""


def common_extents(state: State, start: Place) -> Proposals:
    """An extent smaller wherever it occurs: in all sources, and in constants that may hold
    extents."""
    sources = state.flow.sources
    for extent in sorted({e for s in sources for e in s.shape if e > 1}, reverse=True):
        if start and extent > start[0]:
            continue
        for smaller in ladder(extent):
            for corner in _corners(state):
                for values_too in (True, False):
                    changed = [_shrunk(s, {extent: smaller}, corner, values_too) for s in sources]
                    yield (extent,), replace(state.flow, sources=tuple(changed))


def single_extents(state: State, start: Place) -> Proposals:
    """One axis of one source shorter."""
    first = start[0] if start else 0
    for number, source in enumerate(state.flow.sources):
        for axis, extent in enumerate(source.shape) if number >= first else ():
            for smaller in ladder(extent):
                shape = (*source.shape[:axis], smaller, *source.shape[axis + 1 :])
                for corner in _corners(state):
                    value = fitted(source, TensorType(source.dtype, shape), corner=corner)
                    yield (number,), state.flow.with_source(replace(source, value=value))


def _corners(state: State) -> Iterator[Corner]:
    return iter(Corner if state.careful else (Corner.FIRST,))


def _shrunk(source: Source, smaller: Mapping[int, int], corner: Corner, values: bool) -> Source:
    """A source with other extents; of a few stored integers, also the values."""
    shape = tuple(smaller.get(extent, extent) for extent in source.shape)
    value = source.value
    if shape != source.shape:
        value = fitted(source, TensorType(source.dtype, shape), corner=corner)
    if values and source.stored and source.dtype in ("int64", "int32") and value.size <= _EXTENTS:
        numbers = [smaller.get(n, n) for n in value.reshape(-1).tolist()]
        value = np.array(numbers, value.dtype).reshape(value.shape)
    return replace(source, value=value)


SOURCES: tuple[Pass, ...] = (common_extents, single_extents)
