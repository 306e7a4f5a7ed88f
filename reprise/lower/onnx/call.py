"""One UIR node on its way to ONNX: a :class:`Call` collects the ONNX nodes that stand for it.

A *form* is a function that takes a Call and returns a :class:`Ref` for each result. It adds ONNX
nodes with :meth:`Call.add`; their results are Refs, which get their names only when the whole form
is known: the results those of the UIR tensors, the others numbers under the node's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lang.dtypes import DTYPES
from reprise.lower.onnx.spec import spec, takes
from reprise.uir.graph import Array, Attribute, TensorType
from reprise.uir.types import numpy_dtype


class Ref:
    """A value in the ONNX graph. ``name`` is empty until it is known; ``spare`` is the name that
    it gets if it must have one; ``read``: whether a node of the same form reads it."""

    __slots__ = ("array", "dtype", "name", "read", "spare")

    def __init__(self, name: str = "", dtype: str = "", array: Array | None = None) -> None:
        self.name = name
        self.spare = ""
        self.dtype = dtype
        self.array = array
        self.read = False


class OnnxNode(NamedTuple):
    """An ONNX node before it has names. Attributes that are None are absent."""

    op: str
    inputs: list[Ref | None]
    outputs: list[Ref]
    attributes: dict[str, Any]


class Text(NamedTuple):
    """An attribute that is a graph or a tensor, as text, and the operands that a graph reads, by
    number (``reprise.facts.onnx_text``)."""

    text: str
    outer: Mapping[int, Ref | None]

    def name_of(self, i: int) -> str | None:
        """The name of operand ``i``, or None if it is absent."""
        ref = self.outer.get(i)
        return None if ref is None else ref.name


class Call:
    """An application of a UIR operator. ``types`` and ``operands`` are as long as the operator has
    operands in this application; ``attributes`` are completed; ``results`` says how many results
    are wanted of an operator that may have any number."""

    __slots__ = ("attributes", "constants", "nodes", "op", "operands", "opset", "results", "types")

    def __init__(
        self,
        op: str,
        types: Sequence[TensorType | None],
        operands: list[Ref | None],
        attributes: Mapping[str, Attribute],
        opset: int,
        results: int = 1,
    ) -> None:
        self.op = op
        self.types = types
        self.operands = operands
        self.attributes = attributes
        self.opset = opset
        self.results = results
        self.nodes: list[OnnxNode] = []
        self.constants: list[Ref] = []

    # --- what is asked for ---------------------------------------------------------------------

    @property
    def x(self) -> Ref:
        """The first operand."""
        return self.operand(0)

    def operand(self, i: int) -> Ref:
        """Operand ``i``, which is present."""
        found = self.operands[i]
        assert found is not None
        return found

    def get(self, i: int) -> Ref | None:
        """Operand ``i``, or None if it is absent."""
        return self.operands[i] if i < len(self.operands) else None

    def dtype(self, i: int = 0) -> str:
        """The element type of operand ``i``."""
        found = self.types[i] if i < len(self.types) else None
        return "" if found is None else found.dtype or ""

    def shape(self, i: int = 0) -> tuple[int, ...]:
        """The shape of operand ``i``, which is known."""
        found = self.types[i]
        assert found is not None and found.shape is not None
        return cast("tuple[int, ...]", found.shape)

    def rank(self, i: int = 0) -> int:
        """The rank of operand ``i``, which is known."""
        return len(self.shape(i))

    def __getitem__(self, name: str) -> Any:
        """An attribute, or None if it is absent."""
        return self.attributes.get(name)

    def takes(self, op: str, dtype: str | None = None, operand: int = 0) -> bool:
        """Whether ONNX's ``op`` exists here and takes that type (default: the first operand's)."""
        return takes(op, self.dtype() if dtype is None else dtype, self.opset, operand)

    def has(self, op: str, attribute: str) -> bool:
        """Whether ONNX's ``op`` has an attribute at this opset."""
        found = spec(op, self.opset)
        return found is not None and attribute in found.attributes

    # --- what is made --------------------------------------------------------------------------

    def add(self, op: str, *inputs: Ref | None, **attributes: Any) -> Ref:
        """Add a node of one result."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, count: int, *inputs: Ref | None, **attributes: Any) -> list[Ref]:
        """Add a node of ``count`` results."""
        read = list(inputs)
        while read and read[-1] is None:
            read.pop()
        for ref in read:
            if ref is not None:
                ref.read = True
        outputs = [Ref() for _ in range(count)]
        self.nodes.append(OnnxNode(op, read, outputs, attributes))
        return outputs

    def constant(self, label: str, array: Array, dtype: str) -> Ref:
        """A constant called after ``label``."""
        ref = Ref("", dtype, array)
        ref.spare = label
        self.constants.append(ref)
        return ref

    def ints(self, label: str, values: Iterable[int]) -> Ref:
        """A list of int64."""
        return self.constant(label, np.array(tuple(values), np.int64), "int64")

    def int(self, label: str, value: int) -> Ref:
        """One int64, of rank 0."""
        return self.constant(label, np.array(value, np.int64), "int64")

    def number(self, value: float, dtype: str | None = None, label: str = "") -> Ref:
        """One number of rank 0 (default: of the first operand's element type)."""
        wanted = self.dtype() if dtype is None else dtype
        return self.constant(label or "value", array_of(value, wanted), wanted)

    def cast(self, ref: Ref, dtype: str, source: str | None = None) -> Ref:
        """``ref`` converted; itself if it has that type already (default: the first operand's)."""
        if dtype == (self.dtype() if source is None else source):
            return ref
        return self.add("Cast", ref, to=CODE_OF_DTYPE[dtype])


Form = Callable[[Call], "Sequence[Ref] | Ref"]


def array_of(value: float | str | bool, dtype: str, shape: tuple[int, ...] = ()) -> Array:
    """``value`` as an element type holds it: integers are cut towards 0 and wrap around, what is
    no finite number is their extreme (NaN: 0)."""
    kind = DTYPES[dtype].kind
    if kind == "string":
        return np.full(shape, str(value), object)
    if kind in ("int", "uint"):
        bits = DTYPES[dtype].bits
        if isinstance(value, float) and not math.isfinite(value):
            top = 2 ** (bits - (kind == "int")) - 1
            bottom = -top - 1 if kind == "int" else 0
            whole = 0 if math.isnan(value) else top if value > 0 else bottom
        else:
            whole = int(value) % 2**bits
            if kind == "int" and whole >= 2 ** (bits - 1):
                whole -= 2**bits
        return np.full(shape, np.array(whole, numpy_dtype(dtype)))
    with np.errstate(over="ignore"):
        return np.full(shape, np.array(value).astype(numpy_dtype(dtype)))


def clamped(value: float, dtype: str) -> float:
    """``value`` within the range of an integer type."""
    kind, bits = DTYPES[dtype].kind, DTYPES[dtype].bits
    if kind not in ("int", "uint") or math.isnan(value):
        return value
    bottom = -(2 ** (bits - 1)) if kind == "int" else 0
    top = 2 ** (bits - (kind == "int")) - 1
    if value <= bottom:
        return bottom
    return top if value >= top else int(value)
