"""Types in an ONNX model: reading them, joining what is known, and inferring them node by node.

Inference runs ONNX's own function for each node in turn, with the types and small constants known
so far. A node whose inference fails is left with what the file declares for it; nothing that was
not derived or declared is ever assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from reprise.facts.onnx_values import CODE_OF_DTYPE, DTYPE_OF_CODE, text_of
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


def cleaned(proto: TypeProto) -> bytes:
    """``proto`` serialised, without negative extents: ONNX's inference trusts them."""
    from onnx import TypeProto as Proto

    copy = Proto()
    copy.CopyFrom(proto)
    parts = [copy]
    while parts:
        part = parts.pop()
        match part.WhichOneof("value"):
            case "tensor_type" | "sparse_tensor_type" as which:
                for dim in getattr(part, which).shape.dim:
                    if dim.HasField("dim_value") and dim.dim_value < 0:
                        dim.Clear()
            case "sequence_type" | "optional_type" as which:
                parts.append(getattr(part, which).elem_type)
            case "map_type":
                parts.append(part.map_type.value_type)
    encoded: bytes = copy.SerializeToString()
    return encoded


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


_INT32 = range(-(2**31), 2**31)
_EINSUM_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EINSUM = re.compile(rf"{_EINSUM_TERM}(,{_EINSUM_TERM})*(->{_EINSUM_TERM})?")


def _hazard(node: NodeProto) -> str | None:
    """Why ONNX's inference must not see a node: onnx 1.23.2 crashes or hangs on some.

    Found by mutating node tests: an axis that does not fit 32 bits (LayerNormalization reads out
    of bounds), a character that is no letter in an Einsum (endless loop), a negative ``batch_dims``
    of GatherND (reads out of bounds), fewer ``num_outputs`` of Split than outputs (aborts). Two
    more causes never get there: negative extents are removed from every type, and an operand of
    unknown type has an empty one (EyeLike, LabelEncoder, RegexFullMatch and TreeEnsemble read
    what is not there).
    """
    for attribute in node.attribute:
        if attribute.type == 2 and attribute.i not in _INT32:
            return f"its attribute {attribute.name!r} is out of range"
        match node.op_type, attribute.name:
            case "Einsum", "equation":
                equation = text_of(attribute.s)
                if _EINSUM.fullmatch("".join(equation.split())) is None:
                    return f"{equation!r} is no equation"
            case "GatherND", "batch_dims" if attribute.i < 0:
                return "its batch_dims is negative"
            case "Split", "num_outputs" if attribute.i != len(node.output):
                return f"it has {len(node.output)} outputs and says {attribute.i}"
    return None


def infer(
    schema: OpSchema,
    node: NodeProto,
    types: Mapping[str, bytes],
    data: Mapping[str, bytes],
    opsets: Mapping[str, int],
    ir_version: int,
) -> dict[str, bytes]:
    """Serialised types of the node's outputs, by name. Raises InferenceFailed."""
    if node.attribute and (hazard := _hazard(node)) is not None:
        raise InferenceFailed(hazard)
    # What onnx.shape_inference.infer_node_outputs calls, without its conversions: 8 us, not 40.
    call: Callable[..., dict[str, bytes]] = schema._infer_node_outputs
    try:
        return call(node.SerializeToString(), types, data, {}, opsets, ir_version)
    # The binding raises RuntimeError, ValidationError, InferenceError and more, none with a
    # common base: whatever it refuses is simply not known.
    except Exception as error:
        lines = str(error).strip().splitlines()
        raise InferenceFailed(lines[0] if lines else type(error).__name__) from None
