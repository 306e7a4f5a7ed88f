"""What ONNX says about an operator at an opset, in the form that lowering asks for.

Everything is read from ``onnx.defs``, once per operator and opset: which element types an operand
may have, which attributes there are and what they default to, which results are optional, which
words a text attribute may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from onnx import defs

from reprise.facts.onnx_apply import definition_of
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Attribute

OLDEST, NEWEST = 13, 28
"""The opsets that can be asked for."""

_OPTIONAL = defs.OpSchema.FormalParameterOption.Optional
_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic


@dataclass(frozen=True, slots=True)
class Formal:
    """An operand or result: its name, the type variable that it shares with others (or its only
    type), the element types that it may have."""

    name: str
    variable: str
    dtypes: frozenset[str]
    optional: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """One version of an operator. ``attributes`` are AttributeProto's types by name; ``operands``
    and ``results`` end in the variadic one if ``variadic``."""

    op: str
    since: int
    attributes: dict[str, int]
    defaults: dict[str, Attribute]
    operands: tuple[Formal, ...]
    results: tuple[Formal, ...]
    variadic: bool
    heterogeneous: bool

    def operand(self, i: int) -> Formal | None:
        """The formal parameter that operand ``i`` fills, or None if there is none."""
        if i < len(self.operands):
            return self.operands[i]
        return self.operands[-1] if self.variadic and self.operands else None

    def result(self, i: int) -> Formal | None:
        """The formal parameter that result ``i`` fills, or None if there is none."""
        return self.results[i] if i < len(self.results) else self.results[-1]


@cache
def spec(op: str, opset: int) -> Spec | None:
    """The definition of ``op`` in force at ``opset``, or None if there is none."""
    found = definition_of(op, opset)
    if found is None or found.schema.deprecated:
        return None
    schema = found.schema
    last = schema.inputs[-1] if schema.inputs else None
    return Spec(
        op,
        found.since,
        found.types,
        found.defaults,
        tuple(_formal(f) for f in schema.inputs),
        tuple(_formal(f) for f in schema.outputs),
        last is not None and last.option == _VARIADIC,
        last is not None and not last.is_homogeneous,
    )


def _formal(formal: defs.OpSchema.FormalParameter) -> Formal:
    return Formal(
        formal.name, formal.type_str, _dtypes(frozenset(formal.types)), formal.option == _OPTIONAL
    )


@cache
def _dtypes(types: frozenset[str]) -> frozenset[str]:
    """``tensor(float)`` and the like as Reprise's names; what is no tensor is left out."""
    names = set()
    for text in types:
        if (found := re.fullmatch(r"tensor\((\w+)\)", text)) is not None:
            name = {"float": "float32", "double": "float64"}.get(found[1], found[1])
            names.add(name)
    return frozenset(names & DTYPES.keys())


@cache
def takes(op: str, dtype: str, opset: int, operand: int = 0) -> bool:
    """Whether the operator exists at ``opset`` and its operand may have that element type."""
    found = spec(op, opset)
    formal = None if found is None else found.operand(operand)
    return formal is not None and dtype in formal.dtypes


@cache
def first_opset(op: str, attribute: str = "", operand: int = 0, dtype: str = "") -> int | None:
    """The first opset at which the operator exists (has the attribute; takes the type)."""
    for opset in range(OLDEST, NEWEST + 1):
        found = spec(op, opset)
        if found is None or (attribute and attribute not in found.attributes):
            continue
        if not dtype or takes(op, dtype, opset, operand):
            return opset
    return None


@cache
def newest_default(op: str, attribute: str) -> Attribute | None:
    """What an attribute defaults to in the newest opset."""
    found = spec(op, NEWEST)
    return None if found is None else found.defaults.get(attribute)


@cache
def knows_word(op: str, attribute: str, word: str, opset: int) -> bool:
    """Whether ``word`` is a value of a text attribute. ONNX lists them in prose only."""
    found = definition_of(op, opset)
    if found is None or attribute not in found.schema.attributes:
        return False
    described = found.schema.attributes[attribute].description
    default = found.defaults.get(attribute)
    if default is not None and not _mentions(described, str(default)):
        described += found.schema.doc or ""
    return word == default or _mentions(described, word)


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None
