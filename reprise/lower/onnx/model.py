"""Whole graphs to ``onnx.ModelProto``.

Nodes, tensors and initializers keep their names. What a form adds is called after its node:
``n7/axes`` for a constant, ``n7/2`` for an intermediate value. Optional results that nobody reads
are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from reprise.facts.onnx_apply import (
    definition_of,
    domain_version,
    is_foreign,
    opset_of,
    parts,
    runs_graphs,
)
from reprise.facts.onnx_text import attribute_of
from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lang.dtypes import DTYPES
from reprise.lower.onnx.call import Call, OnnxNode, Ref, Text
from reprise.lower.onnx.spec import Spec, spec
from reprise.lower.onnx.tables import CONTROL, form_of
from reprise.uir.graph import Array, Body, Graph, Node, Role, Tensor, TensorType

_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 6, 7, 8

IR_OF_OPSET = {
    version: ir
    for (domain, version), ir in helper.OP_SET_ID_VERSION_MAP.items()
    if domain == "ai.onnx"
}
"""The IR version that came with an opset: no reader of the opset is too old for it."""


class Writer:
    """Writes one graph, at ``opset`` or the least above it that has all its operators. ``reads``:
    ids of the tensors that somebody wants."""

    def __init__(self, graph: Graph, opset: int, constants_as_nodes: bool, value_info: bool):
        self.graph = graph
        self.opset = opset_of([node.op for node in graph.nodes], opset)
        self.constants_as_nodes = constants_as_nodes
        self.value_info = value_info
        self.names = {t.name for t in graph.tensors}
        self.reads = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        self.reads.update(t.id for t in graph.outputs)
        self.runs_graphs = any(is_foreign(node.op) and runs_graphs(node.op) for node in graph.nodes)
        self.bodies = any(node.bodies for node in graph.nodes)
        for node in graph.nodes if self.bodies else ():
            for body in node.bodies.values():
                self.reads.update(t.id for t in body.outputs if t is not None)

    def model(self) -> ModelProto:
        model = ModelProto(ir_version=IR_OF_OPSET[self.opset], producer_name="reprise")
        model.opset_import.add(version=self.opset)
        for domain in sorted({parts(node.op)[0] for node in self.graph.nodes} - {""}):
            model.opset_import.add(domain=domain, version=domain_version(domain))
        graph = model.graph
        graph.name = self.graph.name or "graph"
        self._fill(graph, 0)
        for tensor in self.graph.tensors:
            if not tensor.body and (tensor.role is Role.INPUT or tensor.overridable):
                graph.input.append(_info(tensor.name, tensor.type))
        self._outputs(graph, self.graph.outputs)
        return model

    # --- graphs --------------------------------------------------------------------------------

    def _fill(self, proto: GraphProto, body: int) -> None:
        """Initializers and nodes of the main graph, or of one body."""
        for tensor in self.graph.tensors:
            if tensor.body != body:
                continue
            if tensor.role is Role.INITIALIZER:
                if tensor.value is None:
                    raise ValueError(f"the value of initializer {tensor.name!r} is not loaded")
                self._constant(
                    proto, tensor.name, tensor.value, tensor.type.dtype or "", tensor.overridable
                )
            elif tensor.role is Role.COMPUTED and tensor.type.dtype and self._states(tensor):
                proto.value_info.append(_info(tensor.name, tensor.type))
        for node in self.graph.nodes:
            if node.body == body:
                self._node(proto, node)

    def _states(self, tensor: Tensor) -> bool:
        """Whether a computed tensor's type is written down: on request, in programs that run
        sub-graphs (ONNX Runtime refuses a Scan of what it knows no shape of), and where ONNX has no
        inference that would find it."""
        if self.value_info or self.runs_graphs:
            return True
        op = "" if tensor.producer is None else tensor.producer.op
        if not is_foreign(op) or tensor in self.graph.outputs:
            return False
        found = definition_of(op, self.opset)
        return found is not None and not found.infers

    def _outputs(self, proto: GraphProto, outputs: Iterable[Tensor | None]) -> None:
        """A tensor that is an output twice gets a copy, for names of outputs must differ."""
        seen: set[str] = set()
        for tensor in outputs:
            if tensor is None:
                proto.output.add()
                continue
            name = tensor.name
            if name in seen:
                name = self._fresh(f"{name}/again")
                proto.node.add(op_type="Identity", input=[tensor.name], output=[name])
            seen.add(name)
            proto.output.append(_info(name, tensor.type))

    def _body(self, body: Body, name: str) -> GraphProto:
        proto = GraphProto(name=name)
        for formal in body.inputs:
            proto.input.append(_info(formal.name, formal.type))
        self._fill(proto, body.id)
        self._outputs(proto, body.outputs)
        return proto

    # --- nodes ---------------------------------------------------------------------------------

    def _node(self, proto: GraphProto, node: Node) -> None:
        name = node.name or f"n{node.id}"
        if node.op in CONTROL:
            self._control(proto, node, name)
            return
        form = form_of(node.op)
        assert form is not None
        types: list[TensorType | None] = []
        operands: list[Ref | None] = []
        for tensor in node.inputs:
            if tensor is None:
                types.append(None)
                operands.append(None)
            else:
                types.append(tensor.type)
                operands.append(Ref(tensor.name))
        call = Call(node.op, types, operands, node.attributes, self.opset, len(node.outputs))
        made = form(call)
        refs = (made,) if isinstance(made, Ref) else made
        for ref, tensor in zip(refs, node.outputs, strict=False):
            if tensor is None:
                continue
            if ref.name or ref.array is not None or ref.spare:  # an operand, a constant, or twice
                ref = call.add("Identity", ref)
            if tensor.id in self.reads:
                ref.name = tensor.name
            ref.spare = tensor.name
        for constant in call.constants:
            constant.name = self._fresh(f"{name}/{constant.spare}")
            assert constant.array is not None
            self._constant(proto, constant.name, constant.array, constant.dtype, False)
        last = len(call.nodes) - 1
        for i, onnx_node in enumerate(call.nodes):
            label = name if i == last else f"{name}/{onnx_node.op}_{i}"
            self._onnx_node(proto, onnx_node, label, name)

    def _onnx_node(self, proto: GraphProto, node: OnnxNode, label: str, prefix: str) -> None:
        found = spec(node.op, self.opset)
        if found is None:
            raise ValueError(f"opset {self.opset} has no {node.op}: ask `unsupported` first")
        inputs = ["" if ref is None else ref.name for ref in node.inputs]
        outputs = []
        for i, ref in enumerate(node.outputs):
            if not ref.name:
                formal = found.result(i)
                if ref.read or formal is None or not formal.optional:
                    ref.name = ref.spare or self._fresh(f"{prefix}/{len(proto.node)}")
            outputs.append(ref.name)
        while len(outputs) > 1 and not outputs[-1]:
            outputs.pop()
        domain, op_type = parts(node.op)
        written = proto.node.add(
            op_type=op_type, domain=domain, name=label, input=inputs, output=outputs
        )
        if node.attributes:
            _write_attributes(written, node.attributes, found)

    def _control(self, proto: GraphProto, node: Node, name: str) -> None:
        written = proto.node.add(
            op_type=CONTROL[node.op],
            name=name,
            input=["" if t is None else t.name for t in node.inputs],
            output=["" if t is None else t.name for t in node.outputs],
        )
        found = spec(written.op_type, self.opset)
        assert found is not None
        _write_attributes(written, node.attributes, found)
        for role, body in node.bodies.items():
            attribute = written.attribute.add(name=role, type=AttributeProto.GRAPH)
            attribute.g.CopyFrom(self._body(body, f"{name}/{role}"))

    # --- constants and names -------------------------------------------------------------------

    def _constant(
        self, proto: GraphProto, name: str, array: Array, dtype: str, overridable: bool
    ) -> None:
        if self.constants_as_nodes and not overridable:
            node = proto.node.add(op_type="Constant", name=name, output=[name])
            attribute = node.attribute.add(name="value", type=AttributeProto.TENSOR)
            fill_tensor(attribute.t, array, dtype)
        else:
            fill_tensor(proto.initializer.add(name=name), array, dtype)

    def _fresh(self, name: str) -> str:
        """``name``, or with a number if it is taken."""
        fresh, number = name, 1
        while fresh in self.names:
            number += 1
            fresh = f"{name}_{number}"
        self.names.add(fresh)
        return fresh


_SAYS_ALL = frozenset({"MeanVarianceNormalization"})
"""Operators that shape inference refuses without their optional attributes (onnx 1.23: the body
of the function refers to an attribute that is not there). ONNX's own operators, whose result types
are asked of inference, say all too: STFT's inference takes another default than its schema."""


def _write_attributes(node: NodeProto, attributes: dict[str, Any], found: Spec) -> None:
    """The attributes that are not None and not their default; what the opset does not know is left
    out (``unsupported`` has seen that it says nothing)."""
    for name, value in attributes.items():
        kind = found.attributes.get(name)
        if value is None or kind is None:
            continue
        if isinstance(value, Text):
            text = attribute_of(name, kind, value.text, value.name_of, node.name)
            node.attribute.append(text)
            continue
        says_all = found.op in _SAYS_ALL or is_foreign(found.op)
        if found.defaults.get(name) == value and not says_all:
            continue
        attribute = node.attribute.add(name=name, type=kind)
        if kind == _INT:
            attribute.i = int(value)
        elif kind == _FLOAT:
            attribute.f = value
        elif kind == _INTS:
            attribute.ints.extend(value)
        elif kind == _STRING:
            attribute.s = value.encode()
        elif kind == _FLOATS:
            attribute.floats.extend(value)
        elif kind == _STRINGS:
            attribute.strings.extend(text.encode() for text in value)
        elif kind == _TENSOR:
            attribute.t.CopyFrom(value)


def fill_tensor(proto: TensorProto, array: Array, dtype: str) -> None:
    """Write a value into an (empty or named) TensorProto, as raw data where the type has any."""
    if dtype == "string":
        proto.dims.extend(array.shape)
        proto.data_type = CODE_OF_DTYPE[dtype]
        proto.string_data.extend(str(text).encode() for text in array.reshape(-1))
    elif DTYPES[dtype].bits < 8:  # packed, several to a byte
        name = proto.name
        proto.CopyFrom(numpy_helper.from_array(np.asarray(array)))
        proto.name = name
    else:
        proto.dims.extend(array.shape)
        proto.data_type = CODE_OF_DTYPE[dtype]
        proto.raw_data = array.tobytes()


def _info(name: str, type: TensorType) -> ValueInfoProto:
    info = ValueInfoProto(name=name)
    info.type.CopyFrom(_type(type))
    return info


@lru_cache(maxsize=4096)
def _type(type: TensorType) -> TypeProto:
    proto = TypeProto()
    tensor = proto.tensor_type
    if type.dtype is not None:
        tensor.elem_type = CODE_OF_DTYPE[type.dtype]
    if type.shape is not None:
        dims = tensor.shape.dim
        tensor.shape.SetInParent()
        for extent in type.shape:
            if isinstance(extent, int):
                dims.add(dim_value=extent)
            elif isinstance(extent, str):
                dims.add(dim_param=extent)
            else:
                dims.add()
    return proto
