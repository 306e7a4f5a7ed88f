"""Passes over the values of sources, and over whether they are inputs or constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reprise.distill.flow import Flow, Source
from reprise.distill.passes.state import Pass, Place, Proposals, State
from reprise.uir.graph import Array

_SMALL = 16
"""Arrays of up to so many elements are simplified one element at a time."""


def unstored(state: State, start: Place) -> Proposals:
    """Constants become inputs: what is known at run time only is the more general case."""
    stored = [source for source in state.flow.sources if source.stored]
    if len(stored) > 1:
        sources = tuple(replace(s, stored=False) for s in state.flow.sources)
        yield (), replace(state.flow, sources=sources)
    for source in stored:
        yield (), state.flow.with_source(replace(source, stored=False))


def all_values(state: State, start: Place) -> Proposals:
    """All sources at once: zeros, ones, whole numbers."""
    if len(state.flow.sources) < 2:
        return
    for number in range(len(_WHOLE)):
        sources = []
        for source in state.flow.sources:
            simpler = _WHOLE[number](source.value)
            sources.append(source if simpler is None else replace(source, value=simpler))
        yield (), Flow(tuple(sources), state.flow.steps, state.flow.outputs)


def values(state: State, start: Place) -> Proposals:
    """One source: the whole array, halves of it, single elements while there are few."""
    flow = state.flow
    for number in range(start[0] if start else 0, len(flow.sources)):
        source = flow.sources[number]
        for value in _simpler(source):
            yield (number,), flow.with_source(replace(source, value=value))


def _simpler(source: Source) -> Iterator[Array]:
    value = source.value
    for simplify in _WHOLE:
        simpler = simplify(value)
        if simpler is not None:
            yield simpler
    flat = value.reshape(-1)
    if flat.size < 2:
        return
    for item in dict.fromkeys(flat[:_SMALL].tolist()):
        yield np.full(value.shape, item, value.dtype)
    middle = flat.size // 2
    parts = [slice(0, middle), slice(middle, None)]
    if flat.size <= _SMALL:
        parts += [slice(i, i + 1) for i in range(flat.size)]
    for part in parts:
        for simplify in _WHOLE:
            simpler = simplify(flat[part])
            if simpler is not None:
                changed = flat.copy()
                changed[part] = simpler
                yield changed.reshape(value.shape)


# --- whole arrays ---------------------------------------------------------------------------------


def _zeros(value: Array) -> Array | None:
    return _text(value, "") if value.dtype.kind in "OUS" else np.zeros_like(value)


def _ones(value: Array) -> Array | None:
    return _text(value, "a") if value.dtype.kind in "OUS" else np.ones_like(value)


def _text(value: Array, text: str) -> Array:
    return np.full(value.shape, text, dtype=value.dtype)


def _rounded(value: Array) -> Array | None:
    if value.dtype.kind in "OUSbiuc":
        return None
    with np.errstate(all="ignore"):
        return np.round(value.astype(np.float64)).astype(value.dtype)


def _away(value: Array) -> Array | None:
    """Whole numbers, none of them 0."""
    if value.dtype.kind in "OUSbiuc":
        return None
    with np.errstate(all="ignore"):
        wide = value.astype(np.float64)
        return (np.copysign(np.ceil(np.abs(wide)), wide)).astype(value.dtype)


def _plain(value: Array) -> Array | None:
    """Without NaN and infinities, and all at most 1 in size."""
    if value.dtype.kind in "OUSbc":
        return None
    with np.errstate(all="ignore"):
        wide = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
        low = 0.0 if value.dtype.kind == "u" else -1.0
        return np.clip(wide, low, 1.0).astype(value.dtype)


def _absolute(value: Array) -> Array | None:
    if value.dtype.kind in "OUSbuc":
        return None
    with np.errstate(all="ignore"):
        return np.abs(value)


_WHOLE = (_zeros, _ones, _rounded, _away, _absolute, _plain)
"""Ways to simplify an array, the simplest result first; None where one has no meaning."""

VALUES: tuple[Pass, ...] = (unstored, all_values, values)
