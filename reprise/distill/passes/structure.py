"""Passes over the graph: fewer outputs, fewer nodes, fewer sources.

First the shortest failing beginning of the program is looked for: it ends with a node that the
failure needs, and nothing before that node fails alike. Graph cuts come next: whole stretches of
nodes are taken out, the largest first (delta debugging), and what others read of them becomes an
input or a constant with the value that it had. Then single nodes are bypassed and sources merged.
These passes work on any form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reprise.distill.flow import Flow, Step
from reprise.distill.passes.state import Pass, Place, Proposals, State


def beginnings(state: State, start: Place) -> Proposals:
    """Only so many of the first nodes, by bisection; what nobody reads any more is an output."""
    flow, count = state.flow, len(state.flow.steps)
    kept = count // 2
    while 0 < kept < count:
        yield (), flow.without(range(kept, count), {}, stored=False)
        kept += max((count - kept) // 2, 1)


def outputs(state: State, start: Place) -> Proposals:
    """Each output alone, halves of them, all but one."""
    names = state.flow.outputs
    if len(names) < 2:
        return
    for name in names:
        yield (), state.flow.with_outputs([name])
    middle = len(names) // 2
    for half in (names[:middle], names[middle:]):
        if len(half) > 1:
            yield (), state.flow.with_outputs(half)
    if len(names) > 2:
        for name in names:
            yield (), state.flow.with_outputs(n for n in names if n != name)


def cuts(state: State, start: Place) -> Proposals:
    """Without a stretch of nodes; from halves down to single nodes, the last ones first."""
    count = len(state.flow.steps)
    size, end = start or (count // 2, count)
    size, end = min(size, count), min(end, count)
    while size:
        while end > 0:
            begin = max(end - size, 0)
            for flow in _cut(state, range(begin, end)):
                yield (size, begin), flow
            end = begin
        size, end = size // 2, count


def _cut(state: State, dropped: range) -> Iterator[Flow | None]:
    flow = state.flow.without(dropped, state.values, stored=False)
    yield flow
    if flow is not None and any(s.name not in state.flow.by_name for s in flow.sources):
        yield state.flow.without(dropped, state.values, stored=True)


def producers(state: State, start: Place) -> Proposals:
    """Everything that a node depends on replaced by its values: cones instead of stretches, which
    are not next to each other where branches run side by side."""
    flow = state.flow
    first = start[0] if start else len(flow.steps) - 1
    for number in range(min(first, len(flow.steps) - 1), -1, -1):
        names = [n for n in sorted(flow.steps[number].reads) if n in flow.producers]
        dropped = _cone(flow, names)
        if len(dropped) > 1:
            kept = [i for i in dropped if not _read_elsewhere(flow, i, dropped, number)]
            for choice in (dropped, kept):
                if len(choice) > 1:
                    yield (number,), flow.without(choice, state.values, stored=False)


def _cone(flow: Flow, names: list[str]) -> list[int]:
    """The steps that some names depend on."""
    found: set[int] = set()
    waiting = list(names)
    while waiting:
        number = flow.producers.get(waiting.pop())
        if number is not None and number not in found:
            found.add(number)
            waiting += flow.steps[number].reads
    return sorted(found)


def _read_elsewhere(flow: Flow, number: int, dropped: list[int], reader: int) -> bool:
    makes = set(flow.steps[number].makes)
    inside = {*dropped, reader}
    return any(makes & step.reads for i, step in enumerate(flow.steps) if i not in inside)


def bypasses(state: State, start: Place) -> Proposals:
    """A node's result replaced by one of its operands, or by an older tensor of the same type."""
    flow = state.flow
    first = start[0] if start else len(flow.steps) - 1
    for number in range(min(first, len(flow.steps) - 1), -1, -1):
        step = flow.steps[number]
        makes = [name for name in step.makes if name in flow.read]
        if len(makes) != 1:
            continue
        made = makes[0]
        for operand in dict.fromkeys(name for name in step.inputs if name is not None):
            if state.rederive is not None:
                yield (
                    (number - 1,),
                    state.rederive(flow, state.types, aliases={made: operand}),
                )
            elif _same_type(state, made, operand):
                yield (number - 1,), flow.renamed(made, operand)
        for source in flow.sources:
            if _same_type(state, made, source.name) and source.name not in step.inputs:
                yield (number - 1,), flow.renamed(made, source.name)


def operands(state: State, start: Place) -> Proposals:
    """Without an operand that a step can do without, or with one operand twice."""
    flow = state.flow
    if state.rederive is None:
        return
    for number in range(start[0] if start else 0, len(flow.steps)):
        step = flow.steps[number]
        for position, name in enumerate(step.inputs):
            if name is None:
                continue
            for inputs in _fewer(step, position):
                yield (
                    (number,),
                    state.rederive(flow, state.types, steps={number: replace(step, inputs=inputs)}),
                )


def _fewer(step: Step, position: int) -> Iterator[tuple[str | None, ...]]:
    before, after = step.inputs[:position], step.inputs[position + 1 :]
    if any(name is not None for name in after):
        yield (*before, None, *after)
    yield (*before, *after)


def mergers(state: State, start: Place) -> Proposals:
    """One source read in place of another of the same type."""
    sources = state.flow.sources
    for i in range(len(sources) - 1, 0, -1):
        for other in sources[:i]:
            if _same_type(state, sources[i].name, other.name):
                yield (), state.flow.renamed(sources[i].name, other.name)


def _same_type(state: State, a: str, b: str) -> bool:
    first, second = state.types.get(a), state.types.get(b)
    return first is not None and first == second and first.dtype is not None


BEGINNING: tuple[Pass, ...] = (beginnings,)
STRUCTURE: tuple[Pass, ...] = (outputs, cuts, producers, bypasses, outputs, operands)
