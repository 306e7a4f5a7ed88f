"""One application of an operator, as the forms see it: names in the source, types, attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reprise.uir.graph import Array, Attribute, TensorType

Shape = tuple[int, ...]

DTYPES = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}
"""Element types that TVM and ``ml_dtypes`` spell otherwise than the rule language."""


def dtype_name(dtype: str | None) -> str:
    """What TVM calls an element type."""
    return DTYPES.get(dtype or "", dtype or "")


def are_counted(values: Array | None) -> bool:
    """Whether these are known to be positions from the start: none is negative."""
    return values is not None and bool((np.asarray(values, np.int64) >= 0).all())


def number(value: float | bool) -> str:
    """A Python expression for a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


@dataclass(slots=True)
class Application:
    """``names`` are the operands' in the source, ``types`` their types (None: absent), ``results``
    the result types, ``values`` what operands that are initializers hold; ``wanted`` says which
    results the graph has. ``bind`` writes a line that gives an expression a name, ``store`` puts an
    array in the source and returns its expression."""

    op: str
    names: tuple[str | None, ...]
    types: tuple[TensorType | None, ...]
    results: tuple[TensorType, ...]
    attributes: Mapping[str, Attribute]
    values: tuple[Array | None, ...] = ()
    wanted: tuple[bool, ...] = ()
    hint: str = "t"
    bind: Callable[[str, str], str] = field(default=lambda expression, hint: expression)
    store: Callable[[Array, str, str], str] = field(default=lambda array, dtype, hint: hint)

    def __getitem__(self, position: int) -> str:
        """The name of an operand that is present."""
        name = self.names[position]
        assert name is not None
        return name

    def has(self, position: int) -> bool:
        """Whether the operand is present."""
        return position < len(self.names) and self.names[position] is not None

    def type(self, position: int = 0) -> TensorType:
        """The type of an operand that is present."""
        type_ = self.types[position]
        assert type_ is not None
        return type_

    @property
    def dtype(self) -> str:
        """The first operand's element type, in the rule language's spelling."""
        return self.type().dtype or ""

    @property
    def shape(self) -> Shape:
        """The first operand's shape."""
        return self.shape_of(0)

    def shape_of(self, position: int) -> Shape:
        return self.type(position).shape or ()  # type: ignore[return-value]

    def result_shape(self, position: int = 0) -> Shape:
        return self.results[position].shape or ()  # type: ignore[return-value]

    def attr(self, name: str) -> Any:
        """An attribute's value, or None where it is absent."""
        return self.attributes.get(name)

    def const(self, value: float | bool, dtype: str | None = None) -> str:
        """A constant of rank 0, of the first operand's element type unless another is given."""
        kind = dtype or self.dtype
        if kind == "bool":
            value = bool(value)
        elif "int" in kind:
            value = int(np.array(int(value)).astype(kind))  # wraps around
        return f'relax.const({number(value)}, "{dtype_name(kind)}")'

    def array(self, array: Any, what: str, dtype: str = "int64") -> str:
        """A constant array, as an expression."""
        return self.store(np.asarray(array), dtype, f"{self.hint}_{what}")

    def let(self, expression: str, what: str = "") -> str:
        """The name of a helper variable that holds ``expression``."""
        return self.bind(expression, f"{self.hint}_{what}" if what else self.hint)

    def is_wanted(self, position: int) -> bool:
        """Whether the graph has this result."""
        return position >= len(self.wanted) or self.wanted[position]

    def cast(self, expression: str, dtype: str) -> str:
        """``expression`` converted to ``dtype``."""
        return f'R.astype({expression}, "{dtype_name(dtype)}")'


Form = Callable[[Application], "str | Sequence[str]"]
"""Writes an application: one expression a result."""


def widened(form: Form, *dtypes: str) -> Form:
    """The form with operands of ``dtypes`` converted to float32 and results back: TVM has no code
    for the operator in these types."""

    def wide(n: Application) -> str | Sequence[str]:
        if n.dtype not in dtypes:
            return form(n)
        names = list(n.names)
        types = list(n.types)
        for position, type_ in enumerate(types):
            if type_ is not None and type_.dtype in dtypes:
                names[position] = n.let(n.cast(n[position], "float32"), "wide")
                types[position] = TensorType("float32", type_.shape)
        written = form(replace(n, names=tuple(names), types=tuple(types)))
        several = [written] if isinstance(written, str) else list(written)
        narrow = [
            n.cast(text, type_.dtype) if type_.dtype in dtypes else text
            for text, type_ in zip(several, n.results, strict=False)
        ]
        return narrow[0] if isinstance(written, str) else narrow

    return wide
