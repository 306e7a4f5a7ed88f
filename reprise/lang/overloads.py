"""Which element types an operator's operands, results and attributes may have.

An :class:`Overload` is one way to type an operator: ports that share a variable have the same type.
Comes in: a signature, or (from elsewhere) what another system says of the operator. Only what
conditions say of one variable alone is kept, so that an overload allows too much rather than too
little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.lang.symbols import Symbols

ANY: frozenset[str] = frozenset(DTYPES)
"""Every element type."""


@dataclass(frozen=True, slots=True)
class Overload:
    """The type variable of each input and output, in order, and of attributes that hold a dtype
    (None: nothing is known of that port); the types that each variable may stand for.

    ``names`` are the inputs' names. ``repeats``: the last input may occur again.
    """

    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    types: Mapping[str, frozenset[str]]
    attributes: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    repeats: bool = False

    def variable(self, side: str, port: int | str) -> str | None:
        """The variable of an ``input``, ``output`` (by number) or ``attr`` (by name), or None if
        nothing is known of that port."""
        if isinstance(port, str):
            return self.attributes.get(port)
        ports = self.inputs if side == "input" else self.outputs
        if self.repeats and side == "input":
            port = min(port, len(ports) - 1)
        return ports[port] if 0 <= port < len(ports) else None


def of_signature(decl: ast.OpDecl, symbols: Symbols) -> Overload | None:
    """The overload that a signature is, or None if it says that types are stated elsewhere."""
    if any(flag.text == "untyped" for flag in decl.flags):
        return None
    types: dict[str, frozenset[str]] = {}

    def variable(type_: ast.TypeExpr) -> str:
        if isinstance(type_.dtype, ast.Variable):
            types.setdefault(type_.dtype.name, ANY)
            return type_.dtype.name
        types[type_.dtype.text] = frozenset({type_.dtype.text})
        return type_.dtype.text

    inputs = tuple(variable(param.type) for param in decl.params)
    outputs = tuple(variable(type_) for _, type_ in decl.results)
    attributes = {}
    for attribute in decl.attributes:
        if attribute.type.text == "dtype" and attribute.variable is not None:
            types.setdefault(attribute.variable, ANY)
            attributes[attribute.name.text] = attribute.variable
    for condition in decl.where:
        match condition:
            case ast.Membership(ast.Variable(name), domain, negated) if name in types:
                members = _members(domain, symbols)
                types[name] = types[name] - members if negated else types[name] & members
    if any(flag.text == "many_results" for flag in decl.flags):
        outputs *= _MOST_RESULTS
    names = tuple(param.name.text for param in decl.params)
    repeats = any(param.variadic for param in decl.params)
    return Overload(inputs, outputs, types, attributes, names, repeats)


_MOST_RESULTS = 64
"""As many results as anybody's pattern names of an operator that has any number of them."""


def _members(domain: ast.Domain, symbols: Symbols) -> frozenset[str]:
    """The element types in a set; those of a domain that is none are all (it is refused
    elsewhere)."""
    match domain:
        case ast.NamedDomain(name):
            return _named(name.text, symbols)
        case ast.SetDomain(items):
            found = [_named(item.text, symbols) for item in items if isinstance(item, ast.Name)]
            return frozenset().union(*found)
    return ANY


def _named(name: str, symbols: Symbols) -> frozenset[str]:
    named = symbols.members(name)
    return frozenset({name}) if named is None else frozenset(map(str, named.values))
