"""ONNX models as flows: what can be done to a model without knowing what its operators mean.

Nodes are kept as they are, with their attributes, domains, sub-graphs and names; so are local
functions, as long as something calls them. Types and values of intermediate tensors are those that
the target's least optimised mode computes (all tensors made outputs, once, at the start); what it
does not compute is asked of ONNX's reference implementation, node by node; what that does not know
either has values drawn for its type, if ONNX's inference finds one, and otherwise cannot be cut at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from reprise.distill.flow import Flow, Source, Step
from reprise.distill.forms import drawn
from reprise.distill.onnx_model import Model
from reprise.facts.onnx_order import in_order
from reprise.facts.onnx_types import encode
from reprise.facts.onnx_values import DTYPE_OF_CODE
from reprise.lower.onnx.model import fill_tensor
from reprise.uir.graph import Array, TensorType
from reprise.uir.program import Program
from reprise.uir.types import numpy_dtype

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_GRAPH, _GRAPHS = 5, 10
_DTYPES = {numpy_dtype(name): name for name in DTYPE_OF_CODE.values() if name != "string"}

Compute = Callable[[Model], "tuple[Array, ...] | None"]
"""A model's outputs in the target's least optimised mode; None if it fails."""


class OnnxForm:
    """Models made of the parts of one. See :class:`~reprise.distill.forms.Form`."""

    def __init__(self, model: Model, compute: Compute) -> None:
        self.model = model
        self.compute = compute
        graph = model.proto.graph
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._infos = {i.name: i for i in (*graph.input, *graph.value_info, *graph.output)}
        self._constants: dict[str, Array] = {}
        self._recorded: tuple[Flow, dict[str, Source]] | None = None

    def flow(self, program: Program) -> Flow:
        """The model, to be edited."""
        assert isinstance(program, Model)
        return Flow(
            tuple(self._sources(program)),
            tuple(_step(node) for node in in_order(program.proto.graph.node)),
            tuple(output.name for output in program.proto.graph.output),
        )

    def program(self, flow: Flow) -> Program | None:
        from onnx import ModelProto as Proto

        proto = Proto()
        for field, value in self.model.proto.ListFields():
            if field.name not in ("graph", "functions"):
                if field.is_repeated:
                    getattr(proto, field.name).extend(value)
                else:
                    setattr(proto, field.name, value)
        graph = proto.graph
        graph.name = self.model.proto.graph.name or "graph"
        graph.sparse_initializer.extend(self.model.proto.graph.sparse_initializer)
        inputs: dict[str, Array] = {}
        for source in flow.sources:
            if source.stored:
                self._write_constant(graph.initializer.add(name=source.name), source)
            else:
                self._write_info(graph.input.add(name=source.name), source)
                inputs[source.name] = source.value
        for step in flow.steps:
            node = graph.node.add()
            node.CopyFrom(step.proto)
            node.input[:] = [name or "" for name in step.inputs]
        as_it_came = self._is_as_it_came(flow)
        for name in flow.outputs:
            self._write_info(graph.output.add(name=name), self._known.get(name), as_it_came)
        _add_functions(proto, self.model.proto)
        return Model(proto, inputs, self.model.name)

    def types(self, flow: Flow) -> Mapping[str, TensorType]:
        names = {s.name for s in flow.sources}.union(flow.producers)
        known = {**self.values(flow), **flow.by_name}
        return {n: TensorType(known[n].dtype, known[n].shape) for n in names if n in known}

    def values(self, flow: Flow) -> Mapping[str, Source]:
        """The values that tensors have in the model as it came, as long as they can still be of the
        same types; else those that they have now."""
        if self._is_as_it_came(flow):
            return self._known
        if self._recorded is None or self._recorded[0] is not flow:
            program = self.program(flow)
            assert isinstance(program, Model)
            self._recorded = flow, self._record(program)
        return self._recorded[1]

    def _is_as_it_came(self, flow: Flow) -> bool:
        """Whether every source is of the type that the model had there."""
        known = self._known
        return all(
            s.name in known and (s.dtype, s.shape) == (known[s.name].dtype, known[s.name].shape)
            for s in flow.sources
        )

    # --- parts of models ---------------------------------------------------------------------

    def _sources(self, model: Model) -> Iterator[Source]:
        from onnx import numpy_helper

        for info in model.proto.graph.input:
            if info.name in model.inputs and info.name not in self._stored:
                array = model.inputs[info.name]
                yield Source(info.name, _dtype(array), array)
        for tensor in model.proto.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if model is self.model:
                array = self._constants.setdefault(tensor.name, array)
            dtype = DTYPE_OF_CODE[tensor.data_type]
            yield Source(tensor.name, dtype, array, stored=True)

    def _write_constant(self, proto: Any, source: Source) -> None:
        own = self._stored.get(source.name)
        if own is not None and source.value is self._constants.get(source.name):
            proto.CopyFrom(own)  # byte for byte
        else:
            fill_tensor(proto, source.value, source.dtype)

    def _write_info(self, info: Any, source: Source | None, shaped: bool = True) -> None:
        """The type of an input or output; not its shape, where that is not known any more."""
        if source is not None and not shaped:
            info.type.MergeFromString(encode(TensorType(source.dtype, None)))
        elif source is not None:
            info.type.MergeFromString(encode(TensorType(source.dtype, source.shape)))
        elif info.name in self._infos:
            info.CopyFrom(self._infos[info.name])

    # --- values --------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> dict[str, Source]:
        """Every tensor of the model as it came that has a value that can be an input's."""
        return self._record(self.model)

    def _record(self, model: Model) -> dict[str, Source]:
        flow = self.flow(model)
        known = {source.name: source for source in flow.sources}
        names = [name for step in flow.steps for name in step.makes if self._is_tensor(name)]
        computed = self.compute(_with_outputs(model, names))
        if computed is not None and len(computed) == len(names):
            for name, array in zip(names, computed, strict=True):
                known[name] = Source(name, _dtype(array), array)
            return known
        for step in flow.steps:
            self._evaluate(step, known)
        return known

    def _is_tensor(self, name: str) -> bool:
        return self._kinds.get(name, "tensor") == "tensor"

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {tensor.name: tensor.kind for tensor in self.model.graph.tensors}

    @cached_property
    def _inferred(self) -> dict[str, TensorType]:
        return {
            tensor.name: tensor.type
            for tensor in self.model.graph.tensors
            if tensor.kind == "tensor" and tensor.type.elements is not None and tensor.type.dtype
        }

    def _evaluate(self, step: Step, known: dict[str, Source]) -> None:
        """One node's results by ONNX's reference implementation, else drawn."""
        results: list[Any] = []
        if all(name in known for name in step.reads):
            results = _reference(self.model.proto, step, known)
        for position, name in enumerate(step.outputs):
            if name is None:
                continue
            result = results[position] if position < len(results) else None
            if isinstance(result, np.ndarray):
                known[name] = Source(name, _dtype(result), result)
            elif (type := self._inferred.get(name)) is not None:
                known[name] = Source(name, type.dtype or "", drawn(name, type))


def _step(node: NodeProto) -> Step:
    return Step(
        node.op_type if not node.domain else f"{node.domain}.{node.op_type}",
        tuple(name or None for name in node.input),
        tuple(name or None for name in node.output),
        captured=frozenset(_captured(node)),
        proto=node,
    )


def _captured(node: NodeProto) -> Iterator[str]:
    """The names that a node's sub-graphs read from outside."""
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == _GRAPH else list(attribute.graphs)
        for graph in graphs if attribute.type in (_GRAPH, _GRAPHS) else ():
            inside = {info.name for info in graph.input}
            inside.update(tensor.name for tensor in graph.initializer)
            inside.update(name for inner in graph.node for name in inner.output)
            reads = [name for inner in graph.node for name in (*inner.input, *_captured(inner))]
            reads += [output.name for output in graph.output]
            yield from (name for name in reads if name and name not in inside)


def _dtype(array: Array) -> str:
    """UIR's name of an array's element type."""
    return "string" if array.dtype.kind in "OUS" else _DTYPES[array.dtype]


def _with_outputs(model: Model, names: list[str]) -> Model:
    from onnx import ModelProto as Proto

    proto = Proto()
    proto.CopyFrom(model.proto)
    infos = {i.name: i for i in (*proto.graph.value_info, *proto.graph.output)}
    outputs = []
    for name in names:
        info = proto.graph.output.add(name=name)
        if name in infos:
            info.CopyFrom(infos[name])
        outputs.append(info)
    del proto.graph.output[: len(proto.graph.output) - len(outputs)]
    return Model(proto, model.inputs, model.name)


def _reference(proto: ModelProto, step: Step, known: Mapping[str, Source]) -> list[Any]:
    """A node's results; empty if ONNX's reference implementation does not know it."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    infos = [helper.make_empty_tensor_value_info(name) for name in sorted(step.reads)]
    outputs = [helper.make_empty_tensor_value_info(name) for name in step.makes]
    graph = helper.make_graph([step.proto], "node", infos, outputs)
    model = helper.make_model(
        graph, opset_imports=list(proto.opset_import), functions=list(proto.functions)
    )
    model.ir_version = proto.ir_version
    try:
        with np.errstate(all="ignore"):
            made = ReferenceEvaluator(model).run(None, {n: known[n].value for n in step.reads})
    except Exception:  # whatever it raises, it has no answer
        return []
    results = dict(zip(step.makes, made, strict=True))
    return [None if name is None else results[name] for name in step.outputs]


def _add_functions(proto: ModelProto, whole: ModelProto) -> None:
    """The local functions that the graph needs."""
    waiting = [proto.graph.node]
    called: set[tuple[str, str, str]] = set()
    functions = {(f.domain, f.name, f.overload): f for f in whole.functions}
    while waiting:
        for node in waiting.pop():
            key = (node.domain, node.op_type, node.overload)
            if key in functions and key not in called:
                called.add(key)
                waiting.append(functions[key].node)
            for attribute in node.attribute:
                if attribute.type == _GRAPH:
                    waiting.append(attribute.g.node)
    proto.functions.extend(f for key, f in functions.items() if key in called)
