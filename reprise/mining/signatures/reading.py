"""Mined signatures as they are read: operands, element types and attributes of one operator.

Comes in: an ``op`` declaration whose operands and results have no shapes (``T[...]``), as
``reprise mine docs`` writes them. Goes out: a :class:`Raw`, together with ONNX's schema of the
operator; or the reason why such an operator cannot be probed (:class:`Unusable`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reprise.facts.onnx_apply import definition_of, is_foreign, opset_of, parts
from reprise.facts.onnx_table import TABLE
from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Attribute

if TYPE_CHECKING:
    from onnx.defs import OpSchema

PROBED = ("float32", "int64", "int32", "float64", "bool", "uint8", "int8", "float16")
"""Element types that operators are probed with, the first of them that is allowed."""


class Unusable(Exception):
    """Why a signature cannot be completed, in words."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: its element type, or the variable that stands for it."""

    name: str
    dtype: str
    optional: bool


@dataclass(frozen=True, slots=True)
class RawAttribute:
    """An attribute. ``choices``: what a text or an element type may be, as far as documented;
    ``sure``: those that the documentation marks as values; ``variable``: of an element type, the
    dtype variable that it sets."""

    name: str
    type: str
    required: bool
    default: Attribute | None
    choices: tuple[str, ...] = ()
    sure: tuple[str, ...] = ()
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """One operator's mined signature. ``dtypes``: what each dtype variable may be."""

    decl: ast.OpDecl
    operands: tuple[Operand, ...]
    attributes: tuple[RawAttribute, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    schema: OpSchema
    opset: int

    @property
    def name(self) -> str:
        return self.decl.name.text

    def dtype_choices(self, operand: Operand) -> tuple[str, ...]:
        """The element types that an operand may have."""
        return self.dtypes.get(operand.dtype, (operand.dtype,))


def in_uir(op: str) -> str | None:
    """The UIR operator that an ONNX operator is read as, if there is one."""
    domain, name = parts(op)
    entry = None if domain else TABLE.get(name)
    return None if entry is None else entry.op


def read(decl: ast.OpDecl) -> Raw:
    """The declaration in the form that is probed. Raises Unusable."""
    op = decl.name.text
    if not is_foreign(op):
        raise Unusable("it is no operator of ONNX's: the name has no domain")
    opset = opset_of([op])
    found = definition_of(op, opset)
    if found is None or found.schema.deprecated:
        raise Unusable("the installed onnx package has no such operator")
    if any(flag.text == "many_results" for flag in decl.flags) or any(
        p.variadic for p in decl.params
    ):
        raise Unusable("it takes any number of operands")
    dtypes = _dtypes(decl)
    operands = tuple(Operand(p.name.text, _name(p.type.dtype), p.optional) for p in decl.params)
    raw = Raw(
        decl,
        operands,
        tuple(_attributes(decl, dtypes, found.schema)),
        dtypes,
        found.schema,
        opset,
    )
    for operand in operands:
        if not any(d in PROBED for d in raw.dtype_choices(operand)):
            kinds = ", ".join(raw.dtype_choices(operand))
            raise Unusable(f"`{operand.name}` holds {kinds}, which is not generated")
    for _, type_ in decl.results:
        dtype = _name(type_.dtype)
        if "string" in dtypes.get(dtype, (dtype,)) and dtype not in {o.dtype for o in operands}:
            raise Unusable("its result holds text")
    return raw


def _name(dtype: ast.Variable | ast.Name) -> str:
    return dtype.name if isinstance(dtype, ast.Variable) else dtype.text


def _dtypes(decl: ast.OpDecl) -> dict[str, tuple[str, ...]]:
    """The sets that the conditions give dtype variables, in the order of :data:`PROBED`."""
    found: dict[str, tuple[str, ...]] = {}
    for condition in decl.where:
        match condition:
            case ast.Membership(ast.Variable(name), ast.SetDomain(items), False):
                names = [item.text for item in items if isinstance(item, ast.Name)]
                usual = [n for n in PROBED if n in names]
                found[name] = (*usual, *(n for n in names if n in DTYPES and n not in usual))
    return found


def _attributes(
    decl: ast.OpDecl, dtypes: Mapping[str, tuple[str, ...]], schema: OpSchema
) -> Iterator[RawAttribute]:
    for attribute in decl.attributes:
        name, type = attribute.name.text, attribute.type.text
        choices: tuple[str, ...] = ()
        sure: tuple[str, ...] = ()
        if type == "dtype":
            choices = tuple(d for d in dtypes.get(attribute.variable or "", ()) if d in PROBED)
        elif type == "sym":
            choices, sure = _words(schema, name, attribute)
        default = _value(attribute.default)
        sets = (attribute.variable or "") if type == "dtype" else ""
        yield RawAttribute(name, type, attribute.default is None, default, choices, sure, sets)


def _value(default: ast.Expr | None) -> Any:
    """A default as a plain value; None for ``absent``, and where there is none."""
    match default:
        case ast.Number(value) | ast.String(value) | ast.Boolean(value):
            return value
        case ast.Negate(ast.Number(value)):
            return -value
        case ast.Name(text) if text in DTYPES:
            return text
        case ast.ListExpr(items):
            return tuple(map(_value, items))
        case _:
            return None


def _words(
    schema: OpSchema, name: str, attribute: ast.AttrDecl
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a text attribute may be: as declared, else the words of its documentation; and those
    of them that are marked as values: quoted, or the default."""
    match attribute.domain:
        case ast.SetDomain(items):
            declared = tuple(item.value for item in items if isinstance(item, ast.String))
            return declared, declared
    if name not in schema.attributes:
        return (), ()
    text = schema.attributes[name].description
    quoted = re.findall(r"['\"`]([A-Za-z_][A-Za-z0-9_]*)['\"`]", text)
    plain = re.findall(r"\b[A-Za-z_][A-Za-z0-9_]{2,}\b", text)
    default = _value(attribute.default)
    first = [default] if isinstance(default, str) else []
    sure = tuple(dict.fromkeys([*first, *quoted]))
    return tuple(dict.fromkeys([*sure, *plain])), sure
