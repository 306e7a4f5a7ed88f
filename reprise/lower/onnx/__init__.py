"""UIR to ONNX.

``LOWERING.lower(graph)`` and :func:`to_onnx` write any graph of UIR operators as an ONNX model, at
any opset from 13 on. An operator is one ONNX node where ONNX has one that means the same, otherwise
a few nodes (a table for each category of operators: ``elementwise.py``, ``layout.py`` and so on).
``LOWERING.unsupported`` says beforehand what an opset lacks, from ONNX's own schemas and a table of
what these do not say (``tables.py``).

The model is written as protobuf messages. Through onnx-ir, a program of 11 nodes takes 1.0 ms and
the import 0.3 s; written directly, 0.17 ms.

What ONNX cannot keep: float attributes have 32 bits; which NaN is the greater in TopK (``sort``)
and what Max makes of one NaN (``hypot``, ``logaddexp``) is for the compiler to say; attention of a
query that may see no key is NaN where it is written out, and 0 in the operator of opset 23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reprise.lower.onnx import support
from reprise.lower.onnx.model import Writer
from reprise.lower.onnx.spec import NEWEST, OLDEST
from reprise.uir.graph import Attribute, Graph, TensorType

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_OPSET = 21
"""Of the opsets that ONNX Runtime 1.27 reads (to 26), it has the most kernels for this one: from 22
on it lacks the random operators, RoiAlign and GlobalLpPool."""


@dataclass(frozen=True, slots=True)
class OnnxLowering:
    """The lowering to ONNX at one opset."""

    opset: int = DEFAULT_OPSET
    name: str = "onnx"

    def at(self, opset: int) -> OnnxLowering:
        """The same, at another opset."""
        return replace(self, opset=opset)

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
