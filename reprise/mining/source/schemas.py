"""The attributes that operators have by their documentation, as facts for ``rules/mining/``.

From the signatures that ``reprise mine docs`` wrote, where they are given; else from the installed
onnx package, the newest version of each operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from reprise.lang import ast
from reprise.lang.format import show
from reprise.lang.ruleset import RuleSet

if TYPE_CHECKING:
    from onnx.defs import OpSchema

Row = tuple[int | str, ...]

ABSENT = "absent"
"""What an attribute means that has no default and is not written."""

REQUIRED = "present"
"""Stands for the default of a required attribute."""


def documented_attributes(files: Iterable[RuleSet]) -> Iterator[tuple[str, Row]]:
    """``in_schema`` and ``schema_attribute`` of the operators ``onnx.Foo`` that files declare."""
    for rules in files:
        for file in rules.files:
            if file.path not in rules.own:
                continue
            for decl in file.decls:
                if isinstance(decl, ast.OpDecl) and decl.name.text.startswith("onnx."):
                    yield from _facts(
                        decl.name.text.removeprefix("onnx."),
                        {
                            a.name.text: REQUIRED if a.default is None else show(a.default)
                            for a in decl.attributes
                        },
                    )


def installed_attributes() -> Iterator[tuple[str, Row]]:
    """The same of the installed onnx package. Only of its default domain."""
    from onnx import defs

    newest: dict[str, defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        known = newest.get(schema.name)
        if schema.domain == "" and (known is None or known.since_version < schema.since_version):
            newest[schema.name] = schema
    for name, schema in sorted(newest.items()):
        if not schema.deprecated:
            yield from _facts(name, {a: _default(schema.attributes[a]) for a in schema.attributes})


def _facts(op: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
    yield "in_schema", (op,)
    for attribute, default in sorted(attributes.items()):
        yield "schema_attribute", (op, attribute, default)


def _default(attribute: OpSchema.Attribute) -> str:
    from reprise.mining.docs.agreement import true_default

    if attribute.required:
        return REQUIRED
    value = true_default(attribute)
    return ABSENT if value is None else _text(value)


def _text(value: object) -> str:
    match value:
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case list() | tuple():
            return "[" + ", ".join(_text(item) for item in value) + "]"
    return repr(value)
