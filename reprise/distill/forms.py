"""How flows become programs that can be tried, and how programs become flows.

A :class:`Form` is one way of writing programs. :class:`UirForm` knows what every step means, so
that types follow from signatures and values from the reference semantics.
``onnx_form.OnnxForm`` knows what ONNX knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol

import numpy as np

from reprise.distill.flow import Flow, Source, Step
from reprise.distill.spelled import off_default
from reprise.solve.signatures import Signatures
from reprise.synth.values import ordinary
from reprise.uir.graph import Array, Graph, Role, Tensor, TensorType
from reprise.uir.inference import SignatureError, Typing
from reprise.uir.program import Program
from reprise.uir.semantics import SemanticsError, apply
from reprise.uir.text import MAX_ELEMENTS


class Form(Protocol):
    """One way of writing programs."""

    def flow(self, program: Program) -> Flow:
        """The program, to be edited."""
        ...

    def program(self, flow: Flow) -> Program | None:
        """The program that a flow says, or None if it says none."""
        ...

    def types(self, flow: Flow) -> Mapping[str, TensorType]:
        """The types of a valid flow's tensors, as far as they are known."""
        ...

    def values(self, flow: Flow) -> Mapping[str, Source]:
        """A value for each tensor that can be an input: the one that it has, where that can be
        found out."""
        ...


class UirForm:
    """Programs in UIR. See :class:`Form`."""

    def __init__(self, signatures: Signatures, name: str = "") -> None:
        self.signatures = signatures
        self.name = name

    def flow(self, program: Program) -> Flow:
        graph = program.graph
        names = _names(graph)
        sources = []
        for tensor in graph.tensors:
            if tensor.producer is None:
                stored = tensor.role is Role.INITIALIZER
                value = tensor.value if stored else program.inputs[tensor.name]
                assert value is not None and tensor.type.dtype is not None
                sources.append(Source(names[tensor], tensor.type.dtype, value, stored))
        steps = [
            Step(
                node.op,
                tuple(None if t is None else names[t] for t in node.inputs),
                tuple(None if t is None else names[t] for t in node.outputs),
                dict(node.attributes),
                node.given,
            )
            for node in graph.nodes
        ]
        return Flow(tuple(sources), tuple(steps), tuple(names[t] for t in graph.outputs))

    def program(self, flow: Flow) -> Program | None:
        typed = typed_steps(flow, self.signatures)
        if typed is None:
            return None
        graph = Graph(self.name)
        inputs: dict[str, Array] = {}
        tensors: dict[str, Tensor] = {}
        first_use = _first_use(flow)
        waiting = sorted(flow.sources, key=lambda s: first_use.get(s.name, -1))
        for number, (step, typing) in enumerate(zip(flow.steps, typed, strict=True)):
            while waiting and first_use.get(waiting[0].name, -1) <= number:
                _add_source(graph, waiting.pop(0), inputs, tensors)
            operands = [None if name is None else tensors[name] for name in step.inputs]
            outputs = [
                None if name is None else (name, type)
                for name, type in zip(step.outputs, typing.outputs, strict=False)
            ]
            signature = self.signatures[step.op]
            types = [None if t is None else t.type for t in operands]
            given = step.given & typing.attributes.keys()
            given |= {*off_default(signature, types, typing.attributes)}
            node = graph.add_node(step.op, operands, outputs, typing.attributes, given=given)
            tensors.update((t.name, t) for t in node.outputs if t is not None)
        for source in waiting:
            _add_source(graph, source, inputs, tensors)
        graph.outputs = [tensors[name] for name in flow.outputs]
        return Program(graph, inputs, self.name)

    def types(self, flow: Flow) -> Mapping[str, TensorType]:
        typed = typed_steps(flow, self.signatures)
        return {} if typed is None else types_of(flow, typed)

    def values(self, flow: Flow) -> Mapping[str, Source]:
        typed = typed_steps(flow, self.signatures)
        return {} if typed is None else _values(flow, typed)


def typed_steps(flow: Flow, signatures: Signatures) -> list[Typing] | None:
    """What the signatures say of each step; None if they refuse one, or leave something open."""
    types = {s.name: TensorType(s.dtype, s.shape) for s in flow.sources}
    found: list[Typing] = []
    for step in flow.steps:
        try:
            operands = [None if name is None else types[name] for name in step.inputs]
            typing = signatures.check(step.op, operands, step.attributes)
        except (SignatureError, KeyError):
            return None
        if len(typing.outputs) < len(step.outputs):
            return None
        for name, type in zip(step.outputs, typing.outputs, strict=False):
            if type.elements is None or type.dtype is None or type.elements > MAX_ELEMENTS:
                return None
            if name is not None:
                types[name] = type
        found.append(typing)
    return found


def types_of(flow: Flow, typed: list[Typing]) -> dict[str, TensorType]:
    """The type of every tensor."""
    types = {s.name: TensorType(s.dtype, s.shape) for s in flow.sources}
    for step, typing in zip(flow.steps, typed, strict=True):
        for name, type in zip(step.outputs, typing.outputs, strict=False):
            if name is not None:
                types[name] = type
    return types


def _values(flow: Flow, typed: list[Typing]) -> dict[str, Source]:
    """Every tensor with its value by the reference semantics; where there are none, one drawn for
    its name."""
    known = {source.name: source for source in flow.sources}
    for step, typing in zip(flow.steps, typed, strict=True):
        operands = [None if name is None else known[name].value for name in step.inputs]
        types = typing.outputs[: len(step.outputs)]
        try:
            results = apply(step.op, operands, typing.attributes, types)
        except SemanticsError:
            results = tuple(
                drawn(name or "", type) for name, type in zip(step.outputs, types, strict=True)
            )
        for name, type, value in zip(step.outputs, types, results, strict=True):
            if name is not None:
                assert type.dtype is not None
                known[name] = Source(name, type.dtype, np.asarray(value))
    return known


def drawn(name: str, type: TensorType) -> Array:
    """Ordinary values for a tensor, always the same for the same name."""
    if type.dtype == "string":
        shape = tuple(e for e in type.shape or () if isinstance(e, int))
        return np.full(shape, "a", dtype=object)
    return ordinary(Random(name), type)


def _add_source(
    graph: Graph, source: Source, inputs: dict[str, Array], tensors: dict[str, Tensor]
) -> None:
    type = TensorType(source.dtype, source.shape)
    if source.stored:
        tensors[source.name] = graph.add_initializer(source.name, type, source.value)
    else:
        tensors[source.name] = graph.add_input(source.name, type)
        inputs[source.name] = source.value


def _first_use(flow: Flow) -> dict[str, int]:
    """The first step that reads each source: it stands just before it."""
    first: dict[str, int] = {}
    for number, step in enumerate(flow.steps):
        for name in step.inputs:
            if name is not None:
                first.setdefault(name, number)
    return {s.name: first.get(s.name, len(flow.steps)) for s in flow.sources}


def _names(graph: Graph) -> dict[Tensor, str]:
    """A name of its own for each tensor."""
    taken: set[str] = set()
    names: dict[Tensor, str] = {}
    for tensor in graph.tensors:
        name, number = tensor.name or "t", 1
        while name in taken:
            number += 1
            name = f"{tensor.name or 't'}_{number}"
        taken.add(name)
        names[tensor] = name
    return names
