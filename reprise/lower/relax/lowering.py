"""The lowering to Relax: a graph to the text of a Python module with a function ``build``.

The module defines ``INPUTS``, the graph's inputs by name in the order of ``main``'s parameters,
and ``build()``, which returns an ``IRModule``. ``main`` returns a tensor, or a tuple of tensors if
the graph has several outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.lower.payload import Names, encoded, literal
from reprise.lower.relax.application import Application, dtype_name
from reprise.lower.relax.forms import FORMS
from reprise.lower.relax.limits import limit
from reprise.uir.graph import Array, Attribute, Graph, Node, Role, Tensor, TensorType
from reprise.uir.types import numpy_dtype

_RESERVED = frozenset(
    {"np", "tvm", "relax", "R", "bb", "build", "tensor_type", "stored", "base64", "outputs"}
    | {"INPUTS", "DATA", "reshape"}
)

_HEAD = '''"""{title}, for TVM 0.25 to 0.27."""

{imports}import numpy as np
import tvm
from tvm import relax
from tvm.relax import op as R

tensor_type = getattr(relax, "TensorStructInfo", None) or relax.TensorType

INPUTS = {inputs!r}


def build() -> tvm.IRModule:
    bb = relax.BlockBuilder()
'''

_RESHAPE = '''

def reshape(x: relax.Expr, shape: tuple[int, ...]) -> relax.Expr:
    """As R.reshape, which takes an extent of 0 for the operand's extent at that place."""
    if 0 not in shape:
        return R.reshape(x, shape)
    x = relax.BlockBuilder.current().normalize(x)
    return R.zeros(shape, (getattr(x, "struct_info", None) or x.ty).dtype)
'''

_STORED = '''

def stored(name: str) -> relax.Expr:
    """A constant out of the table below: element type, shape, bytes in base64."""
    dtype, shape, data = DATA[name]
    array = np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape)
    return relax.const(array, dtype)


DATA = {
'''


class RelaxLowering:
    """See :class:`reprise.lower.lowering.Lowering`."""

    name = "relax"

    def at(self, opset: int) -> RelaxLowering:
        """Itself: opsets are ONNX's."""
        return self

    def unsupported(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> str | None:
        return limit(op, operands, attributes)

    def lower(self, graph: Graph) -> bytes:
        return _Writer(graph).text().encode()


class _Writer:
    """The text of one module."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = Names(_RESERVED)
        self.name: dict[int, str] = {}
        self.lines: list[str] = []
        self.data: list[str] = []
        self.empty = False
        self.reshapes = False

    def text(self) -> str:
        inputs = [t for t in self.graph.tensors if t.role is Role.INPUT]
        for tensor in self.graph.tensors:
            self.name[tensor.id] = self.names.take(tensor.name, f"t{tensor.id}")
        for tensor in inputs:
            kind = f'tensor_type({tensor.type.shape!r}, "{dtype_name(tensor.type.dtype)}")'
            self._line(f'{self.name[tensor.id]} = relax.Var("{self.name[tensor.id]}", {kind})')
        for tensor in self.graph.tensors:
            if tensor.role is Role.INITIALIZER:
                self._line(f"{self.name[tensor.id]} = {self._constant(tensor)}")
        parameters = ", ".join(self.name[t.id] for t in inputs)
        self._line(f'with bb.function("main", [{parameters}]):')
        self._line("    with bb.dataflow():")
        for node in self.graph.nodes:
            self._node(node)
        results = [self.name[t.id] for t in self.graph.outputs]
        result = results[0] if len(results) == 1 else f"relax.Tuple([{', '.join(results)}])"
        self._line(f"        outputs = bb.emit_output({result})")
        self._line("    bb.emit_func_output(outputs)")
        self._line("return bb.get()")
        head = _HEAD.format(
            title=_plain(self.graph.name) or "A program",
            imports="import base64\n\n" if self.data else "",
            inputs=tuple(t.name for t in inputs),
        )
        body = "".join(f"    {line}\n" for line in self.lines)
        table = _STORED + "".join(f"    {row},\n" for row in self.data) + "}\n"
        return head + body + (_RESHAPE if self.reshapes else "") + (table if self.data else "")

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _constant(self, tensor: Tensor) -> str:
        if tensor.value is None:
            raise ValueError(f"the initializer {tensor.name!r} has no value")
        return self._written(tensor.value, tensor.type.dtype or "", self.name[tensor.id])

    def _written(self, value: Array, dtype: str, name: str) -> str:
        """A constant: a literal, or a row of the table ``DATA`` called ``name``."""
        short = literal(value)
        if short is not None:
            return f'relax.const({short}, "{dtype_name(dtype)}")'
        row = f'"{name}": ("{dtype_name(dtype)}", {value.shape}, "{encoded(value)}")'
        self.data.append(row)
        return f'stored("{name}")'

    def _store(self, array: Array, dtype: str, hint: str) -> str:
        """A constant that a form needs."""
        return self._written(array.astype(numpy_dtype(dtype)), dtype, self.names.take(hint, "c"))

    def _node(self, node: Node) -> None:
        """Write a node: one line for each result, after those of its helper variables."""
        made = [t for t in node.outputs if t is not None]
        self.empty = any(t is not None and t.type.elements == 0 for t in (*node.inputs, *made))
        application = Application(
            op=node.op,
            names=tuple(None if t is None else self.name[t.id] for t in node.inputs),
            types=tuple(None if t is None else t.type for t in node.inputs),
            results=tuple(TensorType(None, None) if t is None else t.type for t in node.outputs),
            attributes=node.attributes,
            values=tuple(None if t is None else t.value for t in node.inputs),
            wanted=tuple(t is not None for t in node.outputs),
            store=self._store,
            hint=self.name[made[0].id] if made else "t",
            bind=self._bind,
        )
        written = FORMS[node.op](application)
        expressions = [written] if isinstance(written, str) else list(written)
        for tensor, expression in zip(node.outputs, expressions, strict=False):
            if tensor is not None:
                self._emit(self.name[tensor.id], expression)

    def _bind(self, expression: str, hint: str) -> str:
        name = self.names.take(hint, "t")
        self._emit(name, expression)
        return name

    def _emit(self, name: str, expression: str) -> None:
        if self.empty and "R.reshape(" in expression:
            self.reshapes = True
            expression = expression.replace("R.reshape(", "reshape(")
        self._line(f'        {name} = bb.emit({expression}, "{name}")')


def _plain(text: str) -> str:
    """A graph's name in a docstring: nothing that could end it."""
    return "".join(c for c in text if c.isprintable() and c not in '"\\').strip()
