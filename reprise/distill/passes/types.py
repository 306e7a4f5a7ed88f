"""Passes over extents, ranks, attributes and element types. All go through ``rederive``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reprise.distill.cost import SIMPLE_DTYPES, dtype_rank
from reprise.distill.flow import Flow, Source, Step
from reprise.distill.passes.state import Pass, Place, Proposals, State
from reprise.distill.rederive import Corner, fitted
from reprise.distill.spelled import off_default, plain, plain_given, required
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Attribute, Scalar, TensorType


def all_extents(state: State, start: Place) -> Proposals:
    """Every extent 1, then 2; every extent of one size smaller."""
    for extent in (1, 2):
        everywhere = {e: extent for e in _extents(state) if e > extent}
        yield from (((), flow) for flow in _with_extents(state, everywhere))
    for extent in _extents(state):
        if start and extent > start[0]:
            continue
        for smaller in ladder(extent):
            yield from (((extent,), flow) for flow in _with_extents(state, {extent: smaller}))


def extents(state: State, start: Place) -> Proposals:
    """One axis of one source shorter; what depends on it follows."""
    flow = state.flow
    first, at = start or (0, 0)
    for number in range(first, len(flow.sources)):
        source = flow.sources[number]
        for axis in range(at if number == first else 0, len(source.shape)):
            for smaller in ladder(source.shape[axis]):
                shape = (*source.shape[:axis], smaller, *source.shape[axis + 1 :])
                for changed in _reshaped(state, {source.name: shape}):
                    yield (number, axis), changed


def ranks(state: State, start: Place) -> Proposals:
    """An axis less, in all sources that have it (counted from the end, then from the start), or in
    one; or two axes made one."""
    assert state.rederive is not None
    sources = state.flow.sources
    most = max((len(s.shape) for s in sources), default=0)
    for axis in [*range(-most, 0), *range(most)]:
        shapes = {s.name: _without(s.shape, axis) for s in sources if _has(s.shape, axis)}
        yield from (((), flow) for flow in _reshaped(state, shapes))
    for source in sources:
        for axis in range(len(source.shape)):
            shape = _without(source.shape, axis)
            yield from (((), flow) for flow in _reshaped(state, {source.name: shape}))
    for axis in range(-most, -1):
        joined = [_joined(s, axis) if _has(s.shape, axis) else s for s in sources]
        yield (), state.rederive(state.flow, state.types, sources=joined)


def _joined(source: Source, axis: int) -> Source:
    """A source with two axes made one, its elements as they were."""
    axis %= len(source.shape)
    extent = source.shape[axis] * source.shape[axis + 1]
    shape = (*source.shape[:axis], extent, *source.shape[axis + 2 :])
    return replace(source, value=source.value.reshape(shape))


def defaulted(state: State, start: Place) -> Proposals:
    """Attributes left to their defaults: all of a step's, then one by one."""
    flow = state.flow
    for number in range(start[0] if start else 0, len(flow.steps)):
        step = flow.steps[number]
        off = _free_to_drop(state, step)
        for names in ([off] if len(off) > 1 else []) + [[name] for name in off]:
            kept = {n: v for n, v in _plain(state, step).items() if n not in names}
            yield (number,), _edited(state, number, step, kept)


def attributes(state: State, start: Place) -> Proposals:
    """Numbers in attributes smaller."""
    flow = state.flow
    for number in range(start[0] if start else 0, len(flow.steps)):
        step = flow.steps[number]
        own = _plain(state, step)
        for name, value in own.items():
            for simpler in _simpler(value):
                yield (number,), _edited(state, number, step, {**own, name: simpler})


def dtypes(state: State, start: Place) -> Proposals:
    """A simpler element type in place of another: everywhere, or in one source."""
    present = sorted({s.dtype for s in state.flow.sources}, key=dtype_rank, reverse=True)
    for dtype in present:
        for simpler in _simpler_dtypes(dtype):
            alike = [s for s in state.flow.sources if s.dtype == dtype]
            yield (), _retyped(state, alike, dtype, simpler, everywhere=True)
            yield (), _retyped(state, alike, dtype, simpler, everywhere=False)
    for source in state.flow.sources:
        for simpler in _simpler_dtypes(source.dtype):
            yield (), _retyped(state, [source], source.dtype, simpler, everywhere=False)
    for number, step in enumerate(state.flow.steps):
        own = _plain(state, step)
        for name, value in own.items():
            if isinstance(value, str) and value in DTYPES:
                for simpler in _simpler_dtypes(value):
                    yield (), _edited(state, number, step, {**own, name: simpler})


# --- extents --------------------------------------------------------------------------------------


def ladder(extent: int) -> list[int]:
    """Smaller extents to try: the smallest, then by bisection ever closer to ``extent``."""
    steps = [e for e in (1, 2, 3) if e < extent]
    gap = extent // 2
    while gap >= 1:
        steps.append(extent - gap)
        gap //= 2
    return list(dict.fromkeys(e for e in steps if 0 < e < extent)) or (
        [1, 2] if extent == 0 else []
    )


def _extents(state: State) -> list[int]:
    """All extents of sources and all numbers in attributes that may be extents, largest first."""
    found = {e for source in state.flow.sources for e in source.shape}
    for step in state.flow.steps:
        for name in step.makes:
            found.update(e for e in state.types[name].shape or () if isinstance(e, int))
    return sorted((e for e in found if e != 1), reverse=True)


def _with_extents(state: State, smaller: Mapping[int, int]) -> Iterator[Flow | None]:
    """Extents replaced in all sources, and in the attributes that hold them."""
    sources = state.flow.sources
    shapes = {s.name: tuple(smaller.get(e, e) for e in s.shape) for s in sources}
    steps = {}
    for number, step in enumerate(state.flow.steps):
        made = {e for name in step.makes for e in state.types[name].shape or ()}
        if step.inputs and any(name is not None for name in step.inputs):
            continue  # what it makes follows from its operands
        own = _plain(state, step)
        new = {name: _replaced(value, smaller) for name, value in own.items()}
        if new != own and made & smaller.keys():
            steps[number] = replace(step, attributes=new)
    return _reshaped(state, shapes, steps)


def _replaced(value: Attribute, smaller: Mapping[int, int]) -> Attribute:
    if isinstance(value, tuple):
        return tuple(smaller.get(v, v) if type(v) is int else v for v in value)
    return smaller.get(value, value) if type(value) is int else value


def _reshaped(
    state: State,
    shapes: Mapping[str, tuple[int, ...]],
    steps: Mapping[int, Step] | None = None,
) -> Iterator[Flow | None]:
    """The program with some sources of other shapes; where values matter, with one or another part
    of their elements."""
    assert state.rederive is not None
    for corner in Corner if state.careful else (Corner.FIRST,):
        sources = []
        for source in state.flow.sources:
            shape = shapes.get(source.name, source.shape)
            if shape != source.shape:
                type = TensorType(source.dtype, shape)
                value = fitted(source, type, corner=corner)
                sources.append(replace(source, value=value))
        if not sources and not steps:
            return
        yield state.rederive(state.flow, state.types, sources=sources, steps=steps, corner=corner)


def _has(shape: tuple[int, ...], axis: int) -> bool:
    return -len(shape) <= axis < len(shape)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], *shape[axis + 1 :])


# --- attributes -----------------------------------------------------------------------------------


def _plain(state: State, step: Step) -> dict[str, Attribute]:
    assert state.rederive is not None
    return plain(state.rederive.signatures[step.op], step.attributes)


def _free_to_drop(state: State, step: Step) -> list[str]:
    """The attributes that are written out, or not at their default, and need not be."""
    assert state.rederive is not None
    signature = state.rederive.signatures[step.op]
    operands = [None if name is None else state.types[name] for name in step.inputs]
    odd = {*off_default(signature, operands, step.attributes)}
    odd |= plain_given(signature, step.given)
    return [n for n in _plain(state, step) if n in odd and n not in required(signature)]


def _edited(
    state: State, number: int, step: Step, attributes: Mapping[str, Attribute]
) -> Flow | None:
    assert state.rederive is not None
    signature = state.rederive.signatures[step.op]
    given = plain_given(signature, step.given) & attributes.keys()
    edited = replace(step, attributes=attributes, given=given)
    return state.rederive(state.flow, state.types, steps={number: edited})


def _simpler(value: Attribute) -> Iterator[Attribute]:
    """Simpler values of an attribute; of a list, shorter ones and simpler items too."""
    if not isinstance(value, tuple):
        yield from _simpler_number(value)
        return
    for position in range(len(value)):
        yield (*value[:position], *value[position + 1 :])
    for position, item in enumerate(value):
        for simpler in _simpler_number(item):
            yield (*value[:position], simpler, *value[position + 1 :])


def _simpler_number(value: Scalar) -> Iterator[Scalar]:
    match value:
        case bool():
            if value:
                yield False
        case int():
            tried = (0, 1, abs(value), value // 2, value - 1 if value > 0 else value + 1)
            yield from (n for n in dict.fromkeys(tried) if n != value and abs(n) <= abs(value))
        case float():
            usual: list[float] = [0.0, 1.0]
            if value == value and abs(value) < 1e15:
                usual += [float(round(value)), abs(value)]
            yield from (n for n in dict.fromkeys(usual) if n != value)


# --- element types --------------------------------------------------------------------------------


def _simpler_dtypes(dtype: str) -> list[str]:
    """The simpler types of the same kind first, so that what counts stays a number."""
    simpler = [d for d in SIMPLE_DTYPES if dtype_rank(d) < dtype_rank(dtype)]
    return sorted(simpler, key=lambda d: DTYPES[d].kind != DTYPES[dtype].kind)


def _retyped(
    state: State, sources: list[Source], dtype: str, simpler: str, *, everywhere: bool
) -> Flow | None:
    assert state.rederive is not None
    changed = [
        Source(s.name, simpler, fitted(s, TensorType(simpler, s.shape)), s.stored) for s in sources
    ]
    steps = {}
    if everywhere:
        for number, step in enumerate(state.flow.steps):
            own = _plain(state, step)
            new = {n: simpler if v == dtype else v for n, v in own.items()}
            if new != own:
                steps[number] = replace(step, attributes=new)
    return state.rederive(state.flow, state.types, sources=changed, steps=steps)


TYPES: tuple[Pass, ...] = (all_extents, extents, ranks, defaulted, attributes, dtypes)
