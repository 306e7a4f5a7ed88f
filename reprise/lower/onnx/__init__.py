"""UIR to ONNX.

``LOWERING.lower(graph)`` and :func:`to_onnx` write any graph of UIR operators as an ONNX model, at
any opset from 13 on. An operator is one ONNX node where ONNX has one that means the same, otherwise
a few nodes (``reprise/lower/onnx/*.py``, a table for each category). ``LOWERING.unsupported`` says
beforehand what an opset lacks, from ONNX's own schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reprise.lower.onnx import support
from reprise.lower.onnx.model import Writer
from reprise.lower.onnx.spec import NEWEST, OLDEST
from reprise.uir.graph import Attribute, Graph, TensorType

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_OPSET = 21


@dataclass(frozen=True, slots=True)
class OnnxLowering:
    """The lowering to ONNX at one opset."""

    opset: int = DEFAULT_OPSET
    name: str = "onnx"

    def unsupported(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> str | None:
        """Why the opset has no such application of the operator, or None if it has."""
        return support.unsupported(op, operands, attributes, self.opset)

    def lower(self, graph: Graph) -> bytes:
        """The model, serialised."""
        serialised: bytes = to_onnx(graph, opset=self.opset).SerializeToString()
        return serialised


LOWERING = OnnxLowering()


def to_onnx(
    graph: Graph,
    *,
    opset: int | None = None,
    constants_as_nodes: bool = False,
    value_info: bool = False,
) -> ModelProto:
    """``graph`` as a model. ``constants_as_nodes``: Constant nodes in place of initializers.
    ``value_info``: state the types of intermediate tensors.

    Raises ValueError for an opset that is not 13 to 28, and for an initializer without a value.
    """
    wanted = DEFAULT_OPSET if opset is None else opset
    if not OLDEST <= wanted <= NEWEST:
        raise ValueError(f"opset {wanted} is not one of {OLDEST} to {NEWEST}")
    return Writer(graph, wanted, constants_as_nodes, value_info).model()
