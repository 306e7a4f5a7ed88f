"""Types in an ONNX model: reading them, joining what is known, and inferring them node by node.

Inference runs ONNX's own function for each node in turn, with the types and small constants known
so far. A node whose inference fails is left with what the file declares for it; nothing that was
not derived or declared is ever assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reprise.facts.onnx_values import CODE_OF_DTYPE, DTYPE_OF_CODE
from reprise.uir.graph import Extent, TensorType

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto
    from onnx.defs import OpSchema

UNKNOWN = TensorType(None, None)

_KINDS = {
    "tensor_type": "tensor",
    "sequence_type": "sequence",
    "optional_type": "optional",
    "map_type": "map",
    "sparse_tensor_type": "sparse",
}


def type_of(proto: TypeProto) -> tuple[TensorType, str]:
    """Element type and shape, and the kind: tensor, sequence, optional, map or sparse.

    Only tensors (dense and sparse) have an element type and a shape; of the others, what is
    inside is not described.
    """
    which = proto.WhichOneof("value")
    kind = _KINDS.get(which or "tensor_type", "opaque")
    if which not in ("tensor_type", "sparse_tensor_type"):
        return UNKNOWN, kind
    tensor = proto.tensor_type if which == "tensor_type" else proto.sparse_tensor_type
    shape: tuple[Extent, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(_extent(dim) for dim in tensor.shape.dim)
    return TensorType(DTYPE_OF_CODE.get(tensor.elem_type), shape), kind


def _extent(dim: object) -> Extent:
    """A negative extent is how some exporters write an unknown one."""
    which = dim.WhichOneof("value")  # type: ignore[attr-defined]
    if which == "dim_value":
        value: int = dim.dim_value  # type: ignore[attr-defined]
        return value if value >= 0 else None
    if which == "dim_param":
        return dim.dim_param or None  # type: ignore[attr-defined]
    return None


def encode(type: TensorType) -> bytes:
    """``type`` as a serialised TypeProto, as inference takes it."""
    from onnx import TypeProto

    proto = TypeProto()
    tensor = proto.tensor_type
    tensor.elem_type = CODE_OF_DTYPE.get(type.dtype or "", 0)
    if type.shape is not None:
        tensor.shape.SetInParent()
        for extent in type.shape:
            dim = tensor.shape.dim.add()
            if isinstance(extent, int):
                dim.dim_value = extent
            elif extent is not None:
                dim.dim_param = extent
    encoded: bytes = proto.SerializeToString()
    return encoded


def refine(derived: TensorType, declared: TensorType) -> tuple[TensorType, bool]:
    """What both together say, and whether they contradict each other.

    Where they do, what was derived wins: it is what the operator computes.
    """
    clash = False
    dtype = derived.dtype or declared.dtype
    if derived.dtype and declared.dtype and derived.dtype != declared.dtype:
        clash = True
    if derived.shape is None or declared.shape is None:
        return TensorType(dtype, declared.shape if derived.shape is None else derived.shape), clash
    if len(derived.shape) != len(declared.shape):
        return TensorType(dtype, derived.shape), True
    extents: list[Extent] = []
    for mine, theirs in zip(derived.shape, declared.shape, strict=True):
        if isinstance(mine, int):
            clash |= isinstance(theirs, int) and theirs != mine
            extents.append(mine)
        elif isinstance(theirs, int):
            extents.append(theirs)
        else:
            extents.append(mine or theirs)
    return TensorType(dtype, tuple(extents)), clash


def common(types: Sequence[TensorType]) -> TensorType:
    """What holds for every one of ``types`` (the branches of an If, say)."""
    first, *others = types
    for other in others:
        dtype = first.dtype if first.dtype == other.dtype else None
        shape: tuple[Extent, ...] | None = None
        if (
            first.shape is not None
            and other.shape is not None
            and len(first.shape) == len(other.shape)
        ):
            shape = tuple(
                mine if mine == theirs else None
                for mine, theirs in zip(first.shape, other.shape, strict=True)
            )
        first = TensorType(dtype, shape)
    return first


class InferenceFailed(Exception):
    """ONNX's inference refused a node; the text says why, in one line."""


def infer(
    schema: OpSchema,
    node: NodeProto,
    types: Mapping[str, bytes],
    data: Mapping[str, bytes],
    opsets: Mapping[str, int],
    ir_version: int,
) -> dict[str, bytes]:
    """Serialised types of the node's outputs, by name. Raises InferenceFailed."""
    try:
        inferred: dict[str, bytes] = schema._infer_node_outputs(  # type: ignore[attr-defined]
            node.SerializeToString(), types, data, {}, opsets, ir_version
        )
    # The binding raises RuntimeError, ValidationError, InferenceError and more, none with a
    # common base: whatever it refuses is simply not known.
    except Exception as error:
        lines = str(error).strip().splitlines()
        raise InferenceFailed(lines[0] if lines else type(error).__name__) from None
    return inferred
