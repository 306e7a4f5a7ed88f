"""One application of an operator, as the emitters see it, and the pieces of source they share.

An emitter takes a :class:`Call` and returns what to write: see :data:`Emitted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Array, Attribute, TensorType


@dataclass(frozen=True, slots=True)
class Many:
    """An expression for a tuple of ``results`` values, every result of the operator; None: of as
    many as the node has."""

    text: str
    results: int | None


Emitted = str | tuple[str, ...] | Many
"""What an emitter writes: an expression for the first result; one for each result, in order; or
one for a tuple of them all."""


@dataclass(frozen=True, slots=True)
class Call:
    """An application: operand types (None: absent), completed attributes, and for an emitter also
    the operands' names in the source, the result types, and whether each result is ``used``.
    ``values`` has the data of operands that are initializers."""

    op: str
    operands: Sequence[TensorType | None]
    attributes: Mapping[str, Any]
    names: Sequence[str | None] = ()
    outputs: Sequence[TensorType | None] = ()
    used: Sequence[bool] = ()
    values: Mapping[int, Array] = field(default_factory=dict)

    def has(self, operand: int) -> bool:
        """Whether the operand is there."""
        return operand < len(self.operands) and self.operands[operand] is not None

    def type(self, operand: int = 0) -> TensorType:
        found = self.operands[operand]
        assert found is not None
        return found

    def dtype(self, operand: int = 0) -> str:
        found = self.type(operand).dtype
        assert found is not None
        return found

    def shape(self, operand: int = 0) -> tuple[int, ...]:
        return _known(self.type(operand))

    def rank(self, operand: int = 0) -> int:
        return len(self.shape(operand))

    def result(self, number: int = 0) -> TensorType:
        found = self.outputs[number]
        assert found is not None
        return found

    def result_dtype(self, number: int = 0) -> str:
        found = self.result(number).dtype
        assert found is not None
        return found

    def result_shape(self, number: int = 0) -> tuple[int, ...]:
        return _known(self.result(number))

    def name(self, operand: int = 0) -> str:
        found = self.names[operand]
        assert found is not None
        return found

    @property
    def present(self) -> list[str]:
        """The names of the operands that are there."""
        return [name for name in self.names if name is not None]

    def optional(self, operand: int) -> str:
        """The operand's name, or ``None`` as it is spelt in the source."""
        return self.name(operand) if self.has(operand) else "None"

    def listed(self, names: Sequence[int]) -> str:
        """Operands as arguments; absent ones at the end are left out."""
        return ", ".join(self.optional(n) for n in names)

    def wants(self, number: int) -> bool:
        """Whether anything reads the result."""
        return number < len(self.used) and self.used[number]


Emit = Callable[[Call], Emitted]
Refuse = Callable[[Call], str | None]


@dataclass(frozen=True, slots=True)
class Form:
    """How an operator is written, and what of it cannot be: ``refuse`` looks at the operand types
    and attributes alone, and gives the reason or None."""

    emit: Emit
    refuse: Refuse | None = None


def form(template: str, refuse: Refuse | None = None) -> Form:
    """An operator that is one expression: ``{0}``, ``{1}`` stand for operands, ``{all}`` for those
    that are there, ``{axis}`` for an attribute."""

    def emit(call: Call) -> str:
        spelled = {name: literal(value) for name, value in call.attributes.items()}
        return template.format(*call.names, all=", ".join(call.present), **spelled)

    return Form(emit, refuse)


def either(*reasons: Refuse) -> Refuse:
    """The first reason that there is."""

    def refuse(call: Call) -> str | None:
        return next((why for reason in reasons if (why := reason(call)) is not None), None)

    return refuse


def _known(type_: TensorType) -> tuple[int, ...]:
    assert type_.shape is not None
    return tuple(extent for extent in type_.shape if isinstance(extent, int))


# --- how values are spelt ------------------------------------------------------------------------


def literal(value: Attribute | None) -> str:
    """An attribute as Python writes it; infinities and NaN as ``float("inf")``."""
    if isinstance(value, tuple):
        inner = ", ".join(map(literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return '"' + repr(value)[1:-1].replace('"', '\\"') + '"'
    return repr(value)


def shape(extents: Sequence[int]) -> str:
    """A shape: ``(2, 3)``."""
    return literal(tuple(extents))


def dtype(name: str) -> str:
    """An element type: ``torch.float32``."""
    return f"torch.{TORCH_NAMES.get(name, name)}"


TORCH_NAMES = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
"""Element types that torch spells otherwise."""


def number(value: float, dtype: str, *, saturate: bool = False) -> str:
    """A number as a literal of the element type: what a float attribute means for it. For integers
    a fraction is cut, and the range saturates or wraps around (infinities and NaN always saturate
    or are 0)."""
    kind, bits = DTYPES[dtype].kind, DTYPES[dtype].bits
    if kind == "bool":
        return str(bool(value))
    if kind not in ("int", "uint"):
        return literal(float(value))
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "int" else (0, (1 << bits) - 1)
    if value != value:
        return "0"
    if saturate or value in (float("inf"), float("-inf")):
        return str(int(min(max(value, low), high)))
    return str((int(value) - low) % (1 << bits) + low)


def is_float(dtype: str) -> bool:
    """Whether the element type is a floating-point one."""
    return DTYPES[dtype].kind == "float"


def is_integer(dtype: str) -> bool:
    """Whether the element type is an integer one (bool is none)."""
    return DTYPES[dtype].kind in ("int", "uint")


def index(at: Mapping[int, str]) -> str:
    """An index expression, ``[:, 1:3]``: ``at`` says what stands at which axis."""
    last = max(at)
    return "[" + ", ".join(at.get(axis, ":") for axis in range(last + 1)) + "]"
