"""Models as ONNX files, the invalid ones too, and nothing allocated however large they are.

Inputs are declared and have no data, so a model's size in bytes does not depend on its extents. A
model that a signature refuses is written as the valid one that it was made from, and what differs
(declared types, a node's operands) is changed in the result: no lowering needs to know of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reprise.facts.errors import ModelError
from reprise.facts.onnx_types import encode
from reprise.lower.onnx import DEFAULT_OPSET, to_onnx
from reprise.lower.onnx.support import unsupported
from reprise.uir.graph import Graph, Node, Role
from reprise.xcheck.stored import sources_of

if TYPE_CHECKING:
    from onnx import ModelProto

LARGEST = 1 << 20
"""Bytes that a model may have: constants are small."""


class Unwritten(Exception):
    """ONNX has no form for a graph, and why."""


def write(graph: Graph) -> bytes:
    """A valid graph as a serialised model. Raises Unwritten."""
    return _small(_lowered(graph))


def write_invalid(graph: Graph, valid: Graph) -> bytes:
    """A graph that differs in types, attributes and operands from a ``valid`` one of the same
    nodes. Raises Unwritten."""
    model = _lowered(_with_attributes(valid, graph))
    declared = {t.name: t.type for t in graph.tensors}
    known = {info.name for info in model.graph.input}
    for info in (*model.graph.input, *model.graph.output):
        if info.name in declared:
            info.type.ParseFromString(encode(declared[info.name]))
    inputs = {t.name for t in graph.tensors if t.role is Role.INPUT}
    stored = [proto for proto in model.graph.initializer if proto.name not in inputs]
    del model.graph.initializer[:]
    model.graph.initializer.extend(stored)
    for tensor in graph.tensors:
        if tensor.role is Role.INPUT and tensor.name not in known:
            info = model.graph.input.add(name=tensor.name)
            info.type.ParseFromString(encode(tensor.type))
    before = {node.name: _operands(node) for node in valid.nodes}
    for node in graph.nodes:
        wanted = _operands(node)
        results = ["" if t is None else t.name for t in node.outputs]
        parts = (node.name, f"{node.name}/")
        written = [n for n in model.graph.node if n.name == parts[0] or n.name.startswith(parts[1])]
        if len(written) != 1:
            raise Unwritten(f"{node.op} is several ONNX nodes")
        written[0].output.extend(results[len(written[0].output) :])
        if wanted == before[node.name]:
            continue
        if list(written[0].input) != before[node.name]:
            raise Unwritten(f"{node.op} is an ONNX node of other operands")
        del written[0].input[:]
        written[0].input.extend(wanted)
    return _small(model)


def onnx_refuses(model: bytes) -> str | None:
    """What ONNX's own checker, shape inference included, says against a model."""
    from onnx import ModelProto, checker, shape_inference

    try:
        # the checker wants every output's shape to be stated, and inference may find them
        inferred = shape_inference.infer_shapes(
            ModelProto.FromString(model), check_type=True, strict_mode=True
        )
        if all(info.type.tensor_type.HasField("shape") for info in inferred.graph.output):
            checker.check_model(inferred)
    except (checker.ValidationError, shape_inference.InferenceError, ValueError) as error:
        return " ".join(str(error).split())
    return None


def parse_model(data: bytes, where: Path) -> ModelProto:
    """A serialised model. Raises ModelError, which names ``where`` it is, for what is no ONNX
    model at all, whatever a compiler says of it."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    try:
        proto: ModelProto = ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(where, f"not an ONNX model: {error}") from error
    if not proto.HasField("graph"):
        raise ModelError(where, "not an ONNX model: it has no graph")
    return proto


def read_model(model: bytes, where: Path = Path("model.onnx")) -> Graph:
    """The graph in a serialised model. Raises ModelError, which names ``where`` it is."""
    from reprise.facts.onnx_import import Limits, import_model

    return import_model(parse_model(model, where), where, Limits())


def _operands(node: Node) -> list[str]:
    return ["" if t is None else t.name for t in node.inputs]


def _lowered(graph: Graph) -> ModelProto:
    opset = graph.opsets.get("", DEFAULT_OPSET)
    try:
        for node in graph.nodes:
            operands = [None if t is None else t.type for t in node.inputs]
            why = unsupported(node.op, operands, node.attributes, opset)
            if why is not None:
                raise Unwritten(f"{node.op}: {why}")
        return to_onnx(graph, opset=opset)
    except (ValueError, KeyError, IndexError, TypeError, AssertionError, MemoryError) as error:
        raise Unwritten(f"{type(error).__name__}: {error}") from error


def _with_attributes(valid: Graph, graph: Graph) -> Graph:
    """The valid graph with the other's attributes."""
    made, tensors = sources_of(valid)
    for node, other in zip(valid.nodes, graph.nodes, strict=True):
        copy = made.add_node(
            node.op,
            [None if t is None else tensors[t.name] for t in node.inputs],
            [None if t is None else (t.name, t.type) for t in node.outputs],
            other.attributes,
            name=node.name,
            given=other.given,
        )
        tensors |= {t.name: t for t in copy.outputs if t is not None}
    made.outputs = [tensors[t.name] for t in valid.outputs]
    return made


def _small(model: ModelProto) -> bytes:
    if model.ByteSize() > LARGEST:
        raise Unwritten("its constants are large")
    data: bytes = model.SerializeToString()
    return data
