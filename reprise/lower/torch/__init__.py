"""UIR to torch: the source of an ``nn.Module``, written as a person would write it.

``LOWERING.lower(graph)`` gives UTF-8 text that imports torch alone and defines ``class Model``:

- ``Model.inputs``: the graph's inputs, name to type ("float32[2, 3]"), in the order of
  ``forward``'s arguments (which are the same names, made identifiers);
- ``Model()`` takes no arguments; large initializers are its buffers;
- ``forward`` has a line for each small initializer (so that they are constants to a compiler, which
  folds them; buffers it does not), then one for each node, and returns the tuple of the outputs.

So a worker runs a program by ``exec`` of the text, then
``Model()(*[inputs[name] for name in Model.inputs])``.
Initializers are exact, bit for bit: small ones, and those of one repeated value, are literals;
others are bytes (little-endian, compressed, base64) in a table at the end of the text. What torch
has no call for is a function copied from ``library`` into the text. Nothing in ``forward`` looks at
data, so ``torch.compile`` takes it as one graph.

An operator's form is in one of the modules that ``table`` lists; ``kernels`` says which element
types torch has no kernels for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.lower.lowering import Lowering
from reprise.lower.torch.call import Call
from reprise.lower.torch.kernels import lacking
from reprise.lower.torch.source import write
from reprise.lower.torch.table import FORMS
from reprise.uir.graph import Attribute, Graph, TensorType


class TorchLowering:
    """The torch lowering; see :class:`reprise.lower.lowering.Lowering`."""

    name = "torch"

    def at(self, opset: int) -> TorchLowering:
        """Itself: opsets are ONNX's."""
        return self

    def unsupported(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> str | None:
        """Why torch has no such application of the operator, or None if it has."""
        form = FORMS.get(op)
        if form is None:
            return f"torch has no form of {op}"
        for operand in operands:
            if operand is not None and (operand.dtype is None or operand.elements is None):
                return f"a type that is not fully known: {operand}"
        call = Call(op, operands, attributes)
        return lacking(call) or (form.refuse(call) if form.refuse else None)

    def lower(self, graph: Graph) -> bytes:
        """The module's source, UTF-8. Raises ValueError for an initializer without data."""
        return write(graph).encode()


LOWERING: Lowering = TorchLowering()
