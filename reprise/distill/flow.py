"""A program as the reducer edits it: sources, steps and outputs that refer to each other by name.

A :class:`Flow` is a value: an edit makes another. The edits here need to know nothing of what the
steps do, so they are the same for programs in UIR and for ONNX models with operators that nobody
here has heard of; a step carries whatever says what it does. What an edit makes may be no valid
program: whoever turns it into one (``forms``) finds out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from reprise.uir.graph import Array, Attribute


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A graph input or, ``stored``, a constant of the model. ``dtype`` is UIR's name for it."""

    name: str
    dtype: str
    value: Array
    stored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A node. ``inputs`` and ``outputs`` are names, None where there is none. ``captured``: names
    that its sub-graphs read besides. ``proto``: the ONNX node that it was, where ``op`` and
    ``attributes`` do not say everything."""

    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    captured: frozenset[str] = frozenset()
    proto: Any = None

    @property
    def reads(self) -> frozenset[str]:
        return self.captured.union(name for name in self.inputs if name is not None)

    @property
    def makes(self) -> tuple[str, ...]:
        return tuple(name for name in self.outputs if name is not None)


@dataclass(frozen=True, eq=False)
class Flow:
    """Steps are in the order of data flow; every name is defined once."""

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]

    @cached_property
    def by_name(self) -> dict[str, Source]:
        return {source.name: source for source in self.sources}

    @cached_property
    def producers(self) -> dict[str, int]:
        """The number of the step that makes a name."""
        return {name: i for i, step in enumerate(self.steps) for name in step.makes}

    @cached_property
    def read(self) -> frozenset[str]:
        """The names that some step reads."""
        return frozenset(name for step in self.steps for name in step.reads)

    def tidied(self) -> Flow:
        """Without what no output depends on."""
        wanted = set(self.outputs)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.makes):
                wanted |= step.reads
                steps.append(step)
        sources = tuple(s for s in self.sources if s.name in wanted)
        return Flow(sources, tuple(reversed(steps)), self.outputs)

    def with_outputs(self, outputs: Iterable[str]) -> Flow:
        """Only these outputs, and what they depend on."""
        return replace(self, outputs=tuple(dict.fromkeys(outputs))).tidied()

    def with_source(self, source: Source) -> Flow:
        """With another source of the same name."""
        sources = tuple(source if s.name == source.name else s for s in self.sources)
        return replace(self, sources=sources)

    def with_step(self, number: int, step: Step) -> Flow:
        return replace(self, steps=(*self.steps[:number], step, *self.steps[number + 1 :]))

    def without(
        self, dropped: Collection[int], values: Mapping[str, Source], *, stored: bool
    ) -> Flow | None:
        """Without some steps. What the others read of theirs becomes a source with the value that
        it had, ``stored`` or not; what they alone read becomes an output. None if a value that is
        needed is not among ``values``, or nothing is left."""
        steps = tuple(s for i, s in enumerate(self.steps) if i not in dropped)
        if not steps:
            return None
        made = {name for i in dropped for name in self.steps[i].makes}
        read = {name for step in steps for name in step.reads}
        cut = [name for name in self.producers if name in made and name in read]
        if any(name not in values for name in cut):
            return None
        sources = (*self.sources, *(replace(values[name], stored=stored) for name in cut))
        outputs = [name for name in self.outputs if name not in made]
        lost = {name for i in dropped for name in self.steps[i].reads} - read
        outputs += [
            name for step in steps for name in step.makes if name in lost and name not in outputs
        ]
        if not outputs:
            return None
        return Flow(sources, steps, tuple(outputs)).tidied()

    def renamed(self, name: str, instead: str) -> Flow | None:
        """With every reader of ``name`` reading ``instead``, which must be older than they are;
        None if a sub-graph reads it. What was an output stays one, under the other name."""
        if any(name in step.captured for step in self.steps):
            return None
        steps = tuple(
            replace(step, inputs=tuple(instead if i == name else i for i in step.inputs))
            if name in step.inputs
            else step
            for step in self.steps
        )
        outputs = [instead if output == name else output for output in self.outputs]
        kept = [o for o in dict.fromkeys(outputs) if o not in self.by_name]
        if not kept:
            return None
        return Flow(self.sources, steps, tuple(kept)).tidied()
