"""What ONNX itself says about an operator at an opset: defaults, attribute types, arities.

A thin, cached view of ``onnx.defs``; everything is looked up once per operator and opset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from reprise.facts.onnx_values import shortest, text_of
from reprise.lang.dtypes import DTYPES
from reprise.lang.overloads import ANY, Overload
from reprise.lang.spelling import onnx_names
from reprise.uir.graph import Attribute

if TYPE_CHECKING:
    from onnx import AttributeProto
    from onnx.defs import OpSchema


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of an operator. ``types`` are AttributeProto's types by attribute name."""

    schema: OpSchema
    since: int
    defaults: dict[str, Attribute]
    types: dict[str, int]
    required: frozenset[str]
    infers: bool
    like: tuple[int | str | None, ...]
    """For each output, the input that has the same element type, or that type's name."""

    def result_dtype(self, i: int, operands: Sequence[str | None]) -> str | None:
        """The element type of output ``i`` by signature alone, given the operands' types."""
        like = self.like[min(i, len(self.like) - 1)] if self.like else None
        if isinstance(like, int):
            return operands[like] if like < len(operands) else None
        return like


@lru_cache(maxsize=4096)
def definition(domain: str, op: str, opset: int) -> Definition | None:
    """The operator's definition in force at ``opset``, or None if there is none."""
    from onnx import defs

    try:
        # The C++ side takes a 32-bit version.
        schema = defs.get_schema(op, max(1, min(opset, 2**31 - 1)), domain)
    except defs.SchemaError:
        return None
    defaults: dict[str, Attribute] = {}
    types: dict[str, int] = {}
    required: set[str] = set()
    for name, attribute in schema.attributes.items():
        types[name] = int(attribute.type.value)  # type: ignore[attr-defined]
        if attribute.required:
            required.add(name)
        value = _default(attribute.default_value)
        if value is not None:
            defaults[name] = value
    return Definition(
        schema,
        schema.since_version,
        defaults,
        types,
        frozenset(required),
        bool(schema.has_type_and_shape_inference_function),
        tuple(_like(output.type_str, schema) for output in schema.outputs),
    )


def _like(type_: str, schema: OpSchema) -> int | str | None:
    """What fixes the element type ``type_``, a type variable or ``tensor(…)``."""
    for i, formal in enumerate(schema.inputs):
        if formal.type_str == type_ and not type_.startswith("seq"):
            return i
    return _dtype(type_)


def _dtype(type_: str) -> str | None:
    """The element type of ``tensor(…)``; None for what is no tensor, or of a type unknown here."""
    concrete = re.fullmatch(r"tensor\((\w+)\)", type_)
    if concrete is None:
        return None
    name = {"float": "float32", "double": "float64"}.get(concrete[1], concrete[1])
    return name if name in DTYPES else None


def _default(attribute: AttributeProto) -> Attribute | None:
    match attribute.type:
        case 1:
            return shortest(attribute.f)
        case 2:
            return int(attribute.i)
        case 3:
            return text_of(attribute.s)
        case 6:
            return tuple(shortest(value) for value in attribute.floats)
        case 7:
            return tuple(attribute.ints)
        case 8:
            return tuple(text_of(value) for value in attribute.strings)
        case _:
            return None


def overloads(op: str, signature: Overload) -> tuple[Overload, ...]:
    """How ONNX types the operators that become UIR's ``op``, one overload for each version of each;
    attributes tied to a port in the ``signature`` are tied to it here, too."""
    names = onnx_names(op)
    return tuple(
        _overload(schema, signature)
        for schema in (_history() if names else ())
        if schema.name in names
    )


@lru_cache(maxsize=1)
def _history() -> list[OpSchema]:
    """Every version of every operator of ONNX's own domain."""
    from onnx import defs

    return [schema for schema in defs.get_all_schemas_with_history() if not schema.domain]


def _overload(schema: OpSchema, signature: Overload) -> Overload:
    types: dict[str, frozenset[str]] = {}
    for constraint in schema.type_constraints:
        types[constraint.type_param_str] = _dtypes(constraint.allowed_type_strs)

    def variable(type_: str, alike: bool) -> str | None:
        types.setdefault(type_, _dtypes([type_]))
        return type_ if alike else None

    inputs = tuple(variable(port.type_str, port.is_homogeneous) for port in schema.inputs)
    outputs = tuple(variable(port.type_str, port.is_homogeneous) for port in schema.outputs)
    tied = {
        theirs: mine
        for theirs, mine in (
            *zip(signature.inputs, inputs, strict=False),
            *zip(signature.outputs, outputs, strict=False),
        )
        if mine is not None
    }
    attributes = {
        name: tied[theirs] for name, theirs in signature.attributes.items() if theirs in tied
    }
    several = schema.FormalParameterOption.Variadic
    variadic = any(port.option == several for port in schema.inputs)
    return Overload(inputs, outputs, types, attributes, (), variadic)


def _dtypes(types: Sequence[str]) -> frozenset[str]:
    """The element types of tensors among ONNX's types; of what is no tensor nothing is known."""
    found = frozenset(filter(None, map(_dtype, types)))
    return found or ANY
