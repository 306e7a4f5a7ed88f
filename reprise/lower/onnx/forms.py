"""Forms that many operators share: renaming, alternatives, wider element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lang.dtypes import DTYPES
from reprise.lower.onnx.call import Call, Form, Ref
from reprise.lower.onnx.spec import takes
from reprise.uir.graph import TensorType


def same(op: str, *names: str, results: int = 1, **renamed: str) -> Form:
    """One ONNX node: all operands in order; the attributes ``names`` as they are, others under
    another name (ours = ``theirs``)."""
    if not names and not renamed and results == 1:
        return lambda c: c.add(op, *c.operands)
    pairs = [*((name, name) for name in names), *renamed.items()]

    def form(c: Call) -> Sequence[Ref]:
        attributes = {theirs: c.attributes.get(ours) for ours, theirs in pairs}
        return c.add_many(op, results, *c.operands, **attributes)

    return form


def either(op: str, form: Form, otherwise: Form) -> Form:
    """``form`` where ONNX's ``op`` exists and takes the first operand's type, else
    ``otherwise``."""
    return lambda c: form(c) if c.takes(op) else otherwise(c)


_WIDER = {
    "bool": ("uint8", "int32"),
    "int8": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint8": ("int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
}
"""Types that hold every value of another."""


def widened(op: str, form: Form, results: Sequence[int] = (0,)) -> Form:
    """``form``, in a wider integer type where ONNX's ``op`` lacks the first operand's; the
    ``results`` named are narrowed again. Right where the operator does not care how many bits there
    are above (modular arithmetic, order)."""

    def wide(c: Call) -> Sequence[Ref] | Ref:
        narrow = c.dtype()
        if c.takes(op):
            return form(c)
        wider = next((t for t in _WIDER.get(narrow, ()) if takes(op, t, c.opset)), None)
        if wider is None:
            return form(c)
        for i, type in enumerate(c.types):
            ref = c.operands[i]
            if ref is not None and type is not None and type.dtype == narrow:
                c.operands[i] = c.add("Cast", ref, to=CODE_OF_DTYPE[wider])
        c.types = [
            None if t is None else replace(t, dtype=wider) if t.dtype == narrow else t
            for t in c.types
        ]
        made = form(c)
        refs = [made] if isinstance(made, Ref) else list(made)
        for i in results:
            refs[i] = c.add("Cast", refs[i], to=CODE_OF_DTYPE[narrow])
        return refs

    return wide


def with_dtype(form: Form, attribute: str = "dtype") -> Form:
    """``form`` of the first operand converted to the type that an attribute names, if it does."""

    def converted(c: Call) -> Sequence[Ref] | Ref:
        wanted = c[attribute]
        if wanted is not None and wanted != c.dtype():
            c.operands[0] = c.add("Cast", c.x, to=CODE_OF_DTYPE[wanted])
            first = c.types[0]
            assert first is not None
            c.types = [TensorType(wanted, first.shape), *c.types[1:]]
        return form(c)

    return converted


def is_float(dtype: str) -> bool:
    """Whether it is a floating-point type."""
    return DTYPES[dtype].kind == "float"


def reduce(
    c: Call, op: str, x: Ref, axes: Sequence[int], keepdims: bool, *, noop: bool = False
) -> Ref:
    """A reduction over ``axes``, of which there is at least one unless ``noop``; they are an
    attribute in older opsets, an operand in newer ones."""
    if c.has(op, "axes"):
        return c.add(op, x, axes=tuple(axes), keepdims=keepdims)
    return c.add(op, x, c.ints("axes", axes), keepdims=keepdims, noop_with_empty_axes=noop or None)
