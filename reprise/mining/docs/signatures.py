"""Operator signatures from documentation, for the generator and the type checker.

Comes in: entries. Goes out: ``op`` declarations as text, and for each operator without one the
reason. The documents state types, counts and attributes, not shapes: every operand and result is
of unknown rank, ``T[...]``. What the language has no words for is left out and said: operators on
sequences, optionals and maps, required attributes that hold graphs or tensors, results whose
element type nothing fixes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reprise.lang.display import printable
from reprise.mining.docs.model import DocAttribute, Entry, Option, Parameter, Place, Value
from reprise.mining.docs.naming import (
    dtype_of,
    dtypes_of,
    is_attribute_name,
    nameless,
    operator_name,
    variable_name,
    written_name,
)

_TYPES = {
    "INT": "int",
    "FLOAT": "float",
    "STRING": "sym",
    "INTS": "ints",
    "FLOATS": "floats",
    "STRINGS": "syms",
}
"""Attribute types of ONNX that the rule language has."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature: the declaration's text and the entry behind it."""

    entry: Entry
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An operator without a signature, and why."""

    entry: Entry
    reason: str


class _NoSignatureError(Exception):
    """The language has no words for this operator; the text says which."""


def signature(
    entry: Entry, cite: Callable[[Place], str] = str, notes: Sequence[str] = ()
) -> Signed | LeftOut:
    """The entry's signature. ``cite``: how to state a place; ``notes`` are further lines of
    documentation."""
    doc = [f"ONNX's {entry.title}: {cite(entry.place)}", *notes]
    try:
        return Signed(entry, _Writer(entry).text(doc))
    except _NoSignatureError as reason:
        return LeftOut(entry, str(reason))


class _Writer:
    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.notes: list[str] = []
        self.names: set[str] = {a.name for a in entry.attributes}
        self.bound: set[str] = set()
        self.conditions: dict[str, tuple[str, ...]] = {}
        self.dtype_attributes: dict[str, str] = {}
        self.equations: list[str] = []

    def text(self, doc: Sequence[str]) -> str:
        entry = self.entry
        if entry.deprecated:
            raise _NoSignatureError("it is deprecated")
        if entry.damaged:
            parts = ", ".join(sorted(f"`{part.value}`" for part in entry.damaged))
            raise _NoSignatureError(f"not all of {parts} could be read")
        for names in (
            [variable_name(t.name) for t in entry.types],
            [a.name for a in entry.attributes],
        ):
            if len(set(names)) < len(names):
                raise _NoSignatureError("two of its type variables or attributes have one name")
        if any(p.option is Option.VARIADIC for p in entry.inputs[:-1]):
            raise _NoSignatureError("an operand follows a variadic one")
        params = [self._parameter(p) for p in entry.inputs]
        results = [self._result(p) for p in entry.outputs]
        attributes = list(self._attributes())
        where = [
            *self.equations,
            *(f"{name} in {{{', '.join(types)}}}" for name, types in self.conditions.items()),
        ]
        lines = [f"/// {printable(line)}" for line in (*doc, *self.notes)]
        lines.append(f"op {operator_name(entry)}({', '.join(params)}) -> {', '.join(results)} {{")
        lines.append("    category mined")
        lines += [f"    {line}" for line in attributes]
        if where:
            lines.append(f"    where {', '.join(where)}")
        lines.append("}")
        return "\n".join(lines)

    def _parameter(self, parameter: Parameter) -> str:
        dtype = self._dtype(parameter, binds=True)
        name = written_name(parameter.name, self.names)
        match parameter.option:
            case Option.VARIADIC:
                if not parameter.homogeneous:
                    self.notes.append(f"Each of `{parameter.name}` may have a type of its own.")
                return f"{name}...: {dtype}[*{self._shapes()}]"
            case Option.OPTIONAL:
                return f"{name}?: {dtype}[...]"
            case _:
                return f"{name}: {dtype}[...]"

    def _shapes(self) -> str:
        """A variable for the shapes of a variadic operand, which the language has no `...` for."""
        taken = {variable_name(t.name) for t in self.entry.types}
        return "Shapes" if "Shapes" not in taken else "Shapes_"

    def _result(self, parameter: Parameter) -> str:
        if parameter.option is Option.VARIADIC:
            raise _NoSignatureError(f"there may be any number of `{parameter.name}`")
        dtype = self._dtype(parameter, binds=False)
        name = written_name(parameter.name, self.names)
        return f"{name}: {dtype}[...]" if len(self.entry.outputs) > 1 else f"{dtype}[...]"

    def _dtype(self, parameter: Parameter, binds: bool) -> str:
        """A dtype or dtype variable; what the variable may be becomes a condition."""
        constraint = self.entry.constraint(parameter.type)
        if constraint is None:
            literal = dtype_of(parameter.type)
            if literal is None:
                raise _NoSignatureError(f"`{parameter.name}` is {parameter.type}, not a tensor")
            return literal
        allowed = dtypes_of(constraint.types)
        if not allowed:
            raise _NoSignatureError(f"`{parameter.name}` is {constraint.types[0]}, not a tensor")
        variable = variable_name(constraint.name)
        if binds:
            self.bound.add(variable)
        elif variable not in self.bound:
            if len(allowed) == 1:
                return allowed[0]
            self._bind_by_attribute(parameter, variable)
        if variable not in self.conditions:
            self.conditions[variable] = allowed
            unnamed = nameless(constraint.types)
            if unnamed:
                self.notes.append(f"{variable} may also be {', '.join(unnamed)}.")
            if len(allowed) + len(unnamed) < len(constraint.types):
                self.notes.append(f"{variable} may also be something else than a tensor.")
        return variable

    def _bind_by_attribute(self, parameter: Parameter, variable: str) -> None:
        """Let the attribute that holds an element type say which; there must be just one."""
        holders = [a for a in self.entry.attributes if _holds_dtype(a)]
        if len(holders) != 1 or holders[0].name in self.dtype_attributes:
            raise _NoSignatureError(f"nothing fixes the element type of `{parameter.name}`")
        self.dtype_attributes[holders[0].name] = variable
        self.bound.add(variable)

    def _attributes(self) -> Iterator[str]:
        for attribute in self.entry.attributes:
            if not is_attribute_name(attribute.name):
                raise _NoSignatureError(f"rules cannot write an attribute `{attribute.name}`")
            if attribute.name in self.dtype_attributes:
                yield self._dtype_attribute(attribute)
                continue
            kind = _TYPES.get(attribute.type)
            if kind is None:
                if attribute.required:
                    raise _NoSignatureError(
                        f"the attribute `{attribute.name}` is required and holds "
                        f"a {attribute.type.lower()}"
                    )
                self.notes.append(
                    f"Without the attribute `{attribute.name}`, a {attribute.type.lower()}."
                )
                continue
            if attribute.default is not None:
                default = f" = {_literal(attribute.default)}"
            else:
                default = "" if attribute.required else " = absent"
            yield f"attr {attribute.name}: {kind}{default}"

    def _dtype_attribute(self, attribute: DocAttribute) -> str:
        from reprise.facts.onnx_values import DTYPE_OF_CODE

        variable = self.dtype_attributes[attribute.name]
        known = DTYPE_OF_CODE.get(attribute.default) if type(attribute.default) is int else None
        if known is not None or attribute.required:
            default = "" if known is None else f" = {known}"
            return f"attr {attribute.name} as {variable}: dtype{default}"
        operands = {p.type for p in self.entry.inputs}
        if "data type of the input" not in attribute.description or len(operands) != 1:
            raise _NoSignatureError(
                f"the element type of a result is `{attribute.name}` only where that is given"
            )
        # "If not specified, the data type of the input tensor is used."
        self.equations.append(f"{variable} == or_else(Given, {variable_name(operands.pop())})")
        return f"attr {attribute.name} as Given: dtype = absent"


def _holds_dtype(attribute: DocAttribute) -> bool:
    """Whether an attribute's description says that it is a TensorProto.DataType."""
    text = attribute.description.lower()
    return attribute.type == "INT" and ("data type" in text or "datatype" in text)


def _literal(value: Value) -> str:
    match value:
        case tuple():
            return f"[{', '.join(_literal(item) for item in value)}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case _:
            return repr(value)
