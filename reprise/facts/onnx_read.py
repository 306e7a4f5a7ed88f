"""Reading an ONNX file: path in, ``ModelProto`` out, or one :class:`ModelError`.

Only the file itself is read, never its external data. Protobuf's own limits decide what can be
read at all (2 GiB, 100 nested messages); a file that it refuses is scanned once more, without
recursion, only to say why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.facts.errors import ModelError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

PROTOBUF_BYTES = 2**31 - 1
"""Protobuf's limit on one message; bigger models must keep their weights outside the file."""

PROTOBUF_DEPTH = 100
"""Protobuf's default limit on nested messages; a sub-graph costs three (graph, node, attribute)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a model an import may read or build.

    ``value_elements``: initializers with more elements are not decoded. ``external_bytes`` and
    ``external_total``: largest piece of external data, and sum of them, that is read.
    ``nodes``: nodes once local functions are inlined (nested calls multiply). ``calls``: how deep
    calls may nest.
    """

    file_bytes: int = PROTOBUF_BYTES
    value_elements: int = 1_000_000
    external_bytes: int = 1 << 20
    external_total: int = 1 << 26
    nodes: int = 500_000
    calls: int = 64


def read_model(path: Path, limits: Limits) -> ModelProto:
    """The model in the file at ``path``; it has a graph. Raises ModelError."""
    data = _read_bytes(path, limits)
    # The protobuf classes cost 0.1 s to import: only a command that reads a model pays for them.
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise ModelError(path, *_why_unreadable(data)) from None
    if not model.HasField("graph"):
        raise ModelError(
            path,
            "not an ONNX model: it holds no graph",
            "is this a TensorProto, a weights file or another format?",
        )
    # Python gets a string that is not UTF-8 as bytes.
    if any(type(text) is not str for text in _texts(model)):
        raise ModelError(path, "a name in the file is not UTF-8 text", "the file is damaged")
    return model


def _texts(model: ModelProto) -> Iterator[str]:
    """Every string that the importer reads."""
    for opset in model.opset_import:
        yield opset.domain
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from function.input
        yield from function.output
        yield from (opset.domain for opset in function.opset_import)
        yield from _texts_of_values(function.value_info)
        for default in function.attribute_proto:
            yield default.name
        yield from _texts_of_nodes(function.node)
    yield from _texts_of_graph(model.graph)


def _texts_of_graph(graph: GraphProto) -> Iterator[str]:
    yield graph.name
    for values in (graph.input, graph.output, graph.value_info):
        yield from _texts_of_values(values)
    for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        yield from _texts_of_tensor(tensor)
    yield from _texts_of_nodes(graph.node)


def _texts_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.op_type
        yield node.name
        yield node.domain
        yield node.overload
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
            yield attribute.ref_attr_name
            if attribute.HasField("t"):
                yield from _texts_of_tensor(attribute.t)
            if attribute.HasField("g"):
                yield from _texts_of_graph(attribute.g)


def _texts_of_values(values: Iterable[ValueInfoProto]) -> Iterator[str]:
    for value in values:
        yield value.name
        for part in (value.type.tensor_type, value.type.sparse_tensor_type):
            for dim in part.shape.dim:
                yield dim.dim_param


def _texts_of_tensor(tensor: TensorProto) -> Iterator[str]:
    yield tensor.name
    for entry in tensor.external_data:
        yield entry.key
        yield entry.value


def _read_bytes(path: Path, limits: Limits) -> bytes:
    try:
        if path.is_dir():
            os.scandir(path).close()  # says so if it may not be read
            raise ModelError(path, "is a directory, not a model file", "name the .onnx file in it")
        if not path.is_file():
            path.stat()  # says so if there is nothing
            raise ModelError(path, "is no regular file")
        size = path.stat().st_size
        if size > limits.file_bytes:
            raise ModelError(
                path,
                f"the file has {size:,} bytes; ONNX files end at {limits.file_bytes:,}",
                "save the model with external data: its weights are then not read",
            )
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(path, error.strerror or "cannot be read") from None
    except ValueError:  # a null byte in the path
        raise ModelError(path, "is not a usable file name") from None
    if not data:
        raise ModelError(path, "the file is empty")
    return data


def _why_unreadable(data: bytes) -> tuple[str, str | None]:
    """Message and hint for bytes that protobuf refused."""
    if data[:200].lstrip()[:1] in (b"<", b"{") or data.startswith(b"ir_version"):
        return "not a binary ONNX model: it looks like text", "convert it to binary with onnx.save"
    if data.startswith(
        (b"PK\x03\x04", b"\x80\x02", b"\x80\x04", b"\x89HDF", b"\x08\x00\x00\x00TFL3")
    ):
        return (
            "not an ONNX model: it looks like another framework's file",
            "export it to ONNX first",
        )
    if _depth(data) > PROTOBUF_DEPTH:
        return (
            "sub-graphs are nested too deeply: protobuf reads at most "
            f"{PROTOBUF_DEPTH} nested messages (33 sub-graphs)",
            "flatten the control flow",
        )
    return "not an ONNX model, or the file is truncated or damaged", "is the download complete?"


def _depth(data: bytes) -> int:
    """How deep messages nest along the first path of graphs, found without recursion."""
    start, end, depth = 0, len(data), 1
    wanted = 7  # ModelProto.graph
    following = {7: 1, 1: 5, 5: 6, 6: 1}  # graph.node, node.attribute, attribute.g, graph.node
    while depth <= PROTOBUF_DEPTH:
        found = _field(data, start, end, wanted)
        if found is None:
            return depth
        start, end = found
        depth += 1
        wanted = following[wanted]
    return depth


def _field(data: bytes, start: int, end: int, wanted: int) -> tuple[int, int] | None:
    """Extent of the largest length-delimited field ``wanted`` in a message, or None.

    The largest, because what nests deeply is larger than its siblings.
    """
    best: tuple[int, int] | None = None
    position = start
    while position < end:
        key, position = _varint(data, position, end)
        match key & 7:
            case 0:
                _, position = _varint(data, position, end)
            case 1:
                position += 8
            case 5:
                position += 4
            case 2:
                length, position = _varint(data, position, end)
                if length < 0 or position + length > end:
                    return best
                if key >> 3 == wanted and (best is None or length > best[1] - best[0]):
                    best = (position, position + length)
                position += length
            case _:
                return best
    return best


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """A base-128 number and the position after it; (-1, end) if the message ends within it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            return -1, end
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    return -1, end
