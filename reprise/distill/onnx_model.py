"""An ONNX model as it came: a program that the target is given byte for byte.

What Reprise knows of such a model is its import (``graph``), where operators that it does not know
keep their names (``onnx.Foo``). Extents that the model leaves open are fixed before anything is
run, so that every input has a type of known extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.facts.errors import ModelError
from reprise.facts.onnx_import import Limits, import_model
from reprise.facts.onnx_order import BadOrder, in_order
from reprise.facts.onnx_read import read_model
from reprise.facts.onnx_values import DTYPE_OF_CODE
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Array, Graph, Role, TensorType
from reprise.uir.inference import SignatureError
from reprise.uir.program import Program

if TYPE_CHECKING:
    from onnx import ModelProto, TensorShapeProto

OPEN_EXTENT = 2
"""What an extent becomes that the model leaves open."""

_LIMITS = Limits(value_elements=1 << 24, external_bytes=1 << 30, external_total=1 << 31)
_TENSORS_BYTES = 1 << 31


class Model(Program):
    """A program that is given to the target as ``proto`` says, not as its graph is lowered.

    ``graph`` is imported when it is first asked for.
    """

    __slots__ = ("__dict__", "proto")

    def __init__(self, proto: ModelProto, inputs: Mapping[str, Array], name: str = "") -> None:
        self.proto = proto
        self.inputs = dict(inputs)
        self.name = name

    @cached_property
    def graph(self) -> Graph:  # type: ignore[override]
        return import_model(self.proto, Path(self.name or "model.onnx"), _LIMITS)

    @cached_property
    def data(self) -> bytes:
        """What the target is given."""
        return bytes(self.proto.SerializeToString(deterministic=True))


def read_proto(path: Path) -> ModelProto:
    """The model in a file, its external data in place. Raises ModelError, also for nodes that
    cannot be put into an order."""
    from onnx.external_data_helper import load_external_data_for_model

    proto = read_model(path, _LIMITS)
    try:
        load_external_data_for_model(proto, str(path.parent))
    except Exception as error:  # whatever the helper raises, the data is not there
        raise ModelError(path, f"its external data cannot be read: {error}") from error
    try:
        in_order(proto.graph.node)
    except BadOrder as error:
        raise ModelError(path, error.message, error.hint) from error
    if proto.ByteSize() >= _TENSORS_BYTES:
        raise ModelError(path, "with its external data it is larger than 2 GiB, protobuf's limit")
    return proto


def input_types(proto: ModelProto, path: Path) -> dict[str, TensorType]:
    """The types of a model's inputs, without those that have a value in the model. Raises
    ModelError for inputs that are no tensors."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    types: dict[str, TensorType] = {}
    for info in proto.graph.input:
        if info.name in stored:
            continue
        if not info.type.HasField("tensor_type"):
            raise ModelError(path, f"input {info.name!r} is no tensor")
        tensor = info.type.tensor_type
        dtype = DTYPE_OF_CODE.get(tensor.elem_type)
        if dtype is None or not tensor.HasField("shape"):
            raise ModelError(
                path, f"input {info.name!r} has no known type", "give values with --inputs"
            )
        shape = tuple(
            d.dim_value if _is_known(d) else (d.dim_param or None) for d in tensor.shape.dim
        )
        types[info.name] = TensorType(dtype, shape)
    return types


def _is_known(extent: TensorShapeProto.Dimension) -> bool:
    """Whether a model says an extent: exporters write -1 for one that they leave open."""
    return extent.HasField("dim_value") and extent.dim_value >= 0


def closed(type: TensorType) -> TensorType:
    """A type with every extent known."""
    shape = type.shape or ()
    return TensorType(type.dtype, tuple(e if isinstance(e, int) else OPEN_EXTENT for e in shape))


def fixed(proto: ModelProto, inputs: Mapping[str, Array]) -> ModelProto:
    """The model for inputs of these shapes only: what it said of other values' types goes, so that
    it is inferred anew. A model without open extents stays as it is."""
    from onnx import ModelProto as Proto

    sources = [info for info in proto.graph.input if info.name in inputs]
    if all(
        info.type.tensor_type.HasField("shape")
        and all(_is_known(d) for d in info.type.tensor_type.shape.dim)
        for info in sources
    ):
        return proto
    copy = Proto()
    copy.CopyFrom(proto)
    for info in copy.graph.input:
        if info.name in inputs:
            shape = info.type.tensor_type.shape
            del shape.dim[:]
            for extent in inputs[info.name].shape:
                shape.dim.add(dim_value=extent)
    del copy.graph.value_info[:]
    for info in copy.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return copy


def as_program(model: Model, signatures: Signatures) -> Program | None:
    """The same program in UIR; None where UIR cannot say it: operators that have no signature,
    control flow, values that are no tensors or whose type is not known."""
    try:
        graph = model.graph
    except ModelError:
        return None
    inputs = dict(model.inputs)
    for tensor in graph.tensors:
        if tensor.kind != "tensor" or tensor.type.elements is None or tensor.type.dtype is None:
            return None
        if tensor.role is Role.INITIALIZER and tensor.value is None:
            return None
        if tensor.overridable:
            tensor.overridable = False
        if tensor.role is Role.INPUT:
            value = inputs.get(tensor.name)
            if value is None or value.shape != tensor.type.shape:
                return None
    for node in graph.nodes:
        if node.bodies or node.op not in signatures:
            return None
        types = [None if t is None else t.type for t in node.inputs]
        try:
            typing = signatures.check(node.op, types, node.attributes)
        except SignatureError:
            return None
        if len(typing.outputs) < len(node.outputs):
            return None
        node.attributes = dict(typing.attributes)
    graph.opsets = {}
    return Program(graph, inputs, model.name)
