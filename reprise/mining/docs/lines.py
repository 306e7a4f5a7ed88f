"""Lines of operator documentation, read with a Lark grammar.

Comes in: ``grammars/onnx_markdown.lark`` or ``onnx_pages.lark`` and one line. Goes out: what the
line says, as a small dataclass, or a :class:`Misread` with the column and what was expected
there. Both grammars name their rules alike, so that one set of functions turns their trees into
the same dataclasses.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from reprise.data import data_path
from reprise.mining.docs.model import UNBOUNDED, Arity, Form, Value

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node = Tree[Token]

GRAMMARS = {Form.MARKDOWN: "onnx_markdown", Form.PAGES: "onnx_pages"}

_RULES = {
    Form.MARKDOWN: ("operator", "version", "section", "attribute", "parameter", "constraint"),
    Form.PAGES: (
        *("operator", "property", "since", "state", "section"),
        *("arity", "attribute", "parameter", "constraint"),
    ),
}
_SHOWN = {
    "NAME": "a name",
    "ITEM": "a name",
    "WORD": "a name",
    "QUALIFIED": "an operator's name",
    "OPERATOR": "an operator's name",
    "INT": "a number",
    "ATTRIBUTE_TYPE": "an attribute's type",
    "DEFAULT": "a default and `)`",
    "ANCHOR": '`<a name="…">`',
    "TITLE": "a section's title",
    "UNTIL": "`until the next …`",
    "VALUE": "a value",
    "KEY": "a property's name",
    "BARE": "an item",
    "QUOTED": "an item in quotes",
    "TEXT": "a text",
    "ADDRESS": "an address",
    "DOMAIN": "a domain",
    "FLAG": "`optional`, `variadic` or another label",
    "DEPRECATED": "`(deprecated)`",
    "$END": "the end of the line",
}
"""Terminals that are not words of the layout itself, for messages."""


_DOMAIN = r"[a-z][A-Za-z0-9_]*(\.[a-z][A-Za-z0-9_]*)*"


class Misread(Exception):
    """A line that its rule does not read: the 1-based ``column`` and what was ``expected``."""

    def __init__(self, column: int, expected: tuple[str, ...]) -> None:
        super().__init__(f"expected {' or '.join(expected) or 'something else'}")
        self.column = column
        self.expected = expected


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """The heading of an entry; ``since`` None where the version stands elsewhere."""

    domain: str
    name: str
    since: int | None
    deprecated: bool
    experimental: bool


@dataclass(frozen=True, slots=True)
class VersionLine:
    """What is said about the version; None: not on this line."""

    since: int | None = None
    deprecated: bool | None = None
    experimental: bool | None = None
    function: bool | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class SectionLine:
    """A section's heading and, in Markdown, how many parameters an operator may have."""

    title: str
    arity: Arity | None


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """An input or output and the labels in its parentheses."""

    name: str
    flags: tuple[str, ...]
    type: str


@dataclass(frozen=True, slots=True)
class ConstraintLine:
    """A type variable and what it may stand for."""

    name: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttributeLine:
    """An attribute; ``default`` is its text. ``type`` as AttributeProto spells it."""

    name: str
    type: str
    required: bool
    default: str | None


@cache
def grammar(form: Form) -> Lark:
    """The grammar of a form, ready to parse any of its lines."""
    from lark import Lark

    path = data_path(f"grammars/{GRAMMARS[form]}.lark")
    starts = [*_RULES[form], "values"]
    return Lark.open(str(path), parser="lalr", start=starts, maybe_placeholders=False)


def _parse(form: Form, rule: str, line: str) -> Node:
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput

    lark = grammar(form)
    try:
        return lark.parse(line, start=rule)
    except UnexpectedInput as error:
        if isinstance(error, UnexpectedCharacters):
            names = error.allowed
        else:
            names = set(getattr(error, "expected", ()))
        ended = getattr(getattr(error, "token", None), "type", "") == "$END"
        at = error.column if error.column > 0 and not ended else len(line) + 1
        terminals = {t.name: t for t in lark.terminals}
        shown = (_shown(name, terminals.get(name)) for name in sorted(names or ()))
        raise Misread(at, tuple(dict.fromkeys(shown))) from None


def _shown(name: str, terminal: object) -> str:
    pattern = getattr(terminal, "pattern", None)
    if name in _SHOWN or pattern is None:
        return _SHOWN.get(name.rpartition("__")[2], name)
    if pattern.type == "str":
        return f"'{pattern.value}'" if "`" in pattern.value else f"`{pattern.value}`"
    return _SHOWN.get(name.rpartition("__")[2], f"one of {pattern.value}")


def _tokens(tree: Node, kind: str) -> Iterator[str]:
    from lark import Token

    for child in tree.children:
        if isinstance(child, Token) and child.type.rpartition("__")[2] == kind:
            yield str(child)


def _token(tree: Node, kind: str) -> str | None:
    return next(_tokens(tree, kind), None)


def _trees(tree: Node, rule: str) -> Iterator[Node]:
    from lark import Tree

    for child in tree.children:
        if isinstance(child, Tree) and str(child.data).rpartition("__")[2] == rule:
            yield child


def operator(form: Form, line: str) -> OperatorLine:
    """An entry's heading. Raises Misread."""
    tree = _parse(form, "operator", line)
    number = _token(tree, "INT")
    if form is Form.PAGES:
        domain, name = _token(tree, "DOMAIN") or "", _token(tree, "OPERATOR") or ""
    else:
        domain, _, name = (_token(tree, "QUALIFIED") or "").rpartition(".")
    return OperatorLine(
        domain,
        name,
        None if number is None else int(number),
        _token(tree, "DEPRECATED") is not None,
        _token(tree, "EXPERIMENTAL") is not None,
    )


def version(form: Form, line: str) -> VersionLine:
    """A line of the section on an operator's version. Raises Misread."""
    if form is Form.MARKDOWN:
        return _version(_parse(form, "version", line))
    if line.startswith("- "):
        return _property(_parse(form, "property", line))
    if line.startswith("**"):
        tree = _parse(form, "since", line)
        return VersionLine(since=int(_token(tree, "INT") or 0), domain=_token(tree, "DOMAIN"))
    tree = _parse(form, "state", line)
    if tree.data == "unversioned":
        return VersionLine(experimental=True)
    return VersionLine(deprecated=_token(tree, "STATE") == "deprecated")


def _version(tree: Node) -> VersionLine:
    number = _token(tree, "INT")
    if number is None:
        return VersionLine(experimental=True)
    domains = [_token(found, "DOMAIN") or "" for found in _trees(tree, "domain")]
    return VersionLine(
        since=int(number),
        deprecated=_token(tree, "STATE") == "deprecated",
        domain=domains[0] if domains else None,
    )


def _property(tree: Node) -> VersionLine:
    value = _token(tree, "VALUE") or ""
    match _token(tree, "KEY"):
        case "function":
            return VersionLine(function=value == "True")
        case "since_version" if re.fullmatch("[0-9]{1,10}", value):
            return VersionLine(since=int(value))
        case "support_level":
            return VersionLine(experimental=value.endswith("EXPERIMENTAL"))
        case "domain":
            if not re.fullmatch(_DOMAIN, value):
                raise Misread(1, ("a domain",))
            return VersionLine(domain="" if value == "main" else value)
        case _:
            return VersionLine()


def section(form: Form, line: str) -> SectionLine:
    """A section's heading. Raises Misread."""
    tree = _parse(form, "section", line)
    arities = [_arity(found) for found in _trees(tree, "arity")]
    return SectionLine(_token(tree, "TITLE") or "", arities[0] if arities else None)


def arity(form: Form, line: str) -> Arity:
    """``Between 1 and 3 inputs.`` Raises Misread."""
    return _arity(_parse(form, "arity", line))


def _arity(tree: Node) -> Arity:
    numbers = [int(text) for text in _tokens(tree, "INT")]
    return Arity(numbers[0], numbers[1] if len(numbers) > 1 else UNBOUNDED)


def parameter(form: Form, line: str) -> ParameterLine:
    """An input or output. Raises Misread."""
    tree = _parse(form, "parameter", line)
    name = _token(tree, "NAME") or _token(tree, "ITEM") or ""
    types = [_type(found) for found in _trees(tree, "type")]
    return ParameterLine(name.strip(), tuple(_tokens(tree, "FLAG")), types[0])


def constraint(form: Form, line: str) -> ConstraintLine:
    """A type variable's types. Raises Misread."""
    tree = _parse(form, "constraint", line)
    name = _token(tree, "NAME") or _token(tree, "ITEM") or ""
    lists = [*_trees(tree, "types"), *_trees(tree, "allowed")]
    types = tuple(_type(found) for one in lists for found in _trees(one, "type"))
    return ConstraintLine(name.strip(), types)


MAX_DEPTH = 20
"""How deep types may nest; ONNX's go to three."""


def _type(tree: Node, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        raise Misread(1, (f"types nested at most {MAX_DEPTH} deep",))
    inner = ", ".join(_type(found, depth + 1) for found in _trees(tree, "type"))
    word = _token(tree, "WORD") or ""
    return f"{word}({inner})" if inner else word


def attribute(form: Form, line: str) -> AttributeLine:
    """An attribute. Raises Misread."""
    tree = _parse(form, "attribute", line)
    name = (_token(tree, "NAME") or "").strip().removesuffix(" -")
    spelled = _token(tree, "ATTRIBUTE_TYPE") or ""
    type_ = spelled.removeprefix("list of ").upper()
    required = _token(tree, "REQUIRED") is not None or any(_trees(tree, "required"))
    default = _token(tree, "DEFAULT")
    for found in _trees(tree, "default"):
        default = _token(found, "DEFAULT")
    if default is not None:
        default = html.unescape(default.strip().removesuffix(")").removesuffix("`"))
    return AttributeLine(name, type_, required, default)


def value(form: Form, type_: str, text: str) -> Value | None:
    """The default ``text`` of an attribute of ``type_``; None if the type has no literals.

    Raises:
        Misread: it is not a value of that type.
    """
    try:
        match type_:
            case "INT":
                return int(text)
            case "FLOAT":
                return float(text.strip("()"))
            case "STRING":
                return text
            case "INTS":
                return tuple(int(item) for item in _items(form, text))
            case "FLOATS":
                return tuple(float(item.strip("()")) for item in _items(form, text))
            case "STRINGS":
                return tuple(_items(form, text))
            case _:
                return None
    except ValueError:
        raise Misread(1, (f"a value of type {type_}",)) from None


def _items(form: Form, text: str) -> Iterator[str]:
    for item in _trees(_parse(form, "values", text), "item"):
        yield (_token(item, "QUOTED") or _token(item, "BARE") or "").strip().strip("'")
