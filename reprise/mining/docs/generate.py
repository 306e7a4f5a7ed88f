"""The documentation of the installed ``onnx`` package, which its wheel does not hold.

Goes out: documents by name, in the two layouts in which ONNX publishes them: ``Operators.md`` and
``Changelog.md`` (and their ``-ml`` twins), or one page for each operator as on onnx.ai. Everything
that states a fact is laid out as ONNX's own scripts do, their quirks included: defaults are rounded
to five digits, pages put the label "heterogeneous" where it does not apply, deprecated operators
have no sections in Markdown. Examples, tables of contents and function bodies are left out.
"""

from __future__ import annotations

import html
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reprise.mining.docs.model import UNBOUNDED, Form

if TYPE_CHECKING:
    from onnx.defs import OpSchema

_ML = "ai.onnx.ml"
_LONG = 10
"""Digits from which on a default is written with an exponent."""


def documents(form: Form) -> Mapping[str, str]:
    """The installed package's documentation: the text of each document, by its file name."""
    import onnx

    schemas = onnx.defs.get_all_schemas_with_history()
    folder = f"onnx-{onnx.__version__}"
    made = _pages(schemas) if form is Form.PAGES else _markdown(schemas)
    return {f"{folder}/{name}": text for name, text in made}


# --- what both forms share -----------------------------------------------------------------------


def _default(value: object) -> str:
    """A default as ONNX writes it: rounded, and with an exponent where it would be long."""
    match value:
        case float():
            text = str(round(value, 5))
            return f"({value:e})" if len(text) > _LONG else text
        case bytes():
            return value.decode("utf-8")
        case _:
            return str(value)


def has_function(schema: OpSchema) -> bool:
    """Whether ONNX defines the operator by a function of others."""
    # The stubs of onnx do not know these two.
    names = ("has_function", "has_context_dependent_function")
    return any(bool(getattr(schema, name)) for name in names)


def _default_of(attribute: OpSchema.Attribute) -> Any:
    """The default of an attribute; None if it has none."""
    from onnx import helper

    proto = attribute.default_value
    return helper.get_attribute_value(proto) if proto.name else None


def _word(enumerator: object) -> str:
    """``INTS`` of ``AttrType.INTS``."""
    return str(enumerator).rpartition(".")[2]


def _families(schemas: Iterable[OpSchema]) -> dict[tuple[str, str], list[OpSchema]]:
    """The versions of each operator, oldest first, by domain and name."""
    families: dict[tuple[str, str], list[OpSchema]] = defaultdict(list)
    for schema in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        families[schema.domain, schema.name].append(schema)
    return families


# --- Markdown ------------------------------------------------------------------------------------


def _markdown(schemas: Sequence[OpSchema]) -> Iterator[tuple[str, str]]:
    for suffix in ("-ml", ""):
        part = [s for s in schemas if (s.domain == _ML) == bool(suffix)]
        yield f"Changelog{suffix}.md", _changelog(part)
        yield f"Operators{suffix}.md", _operators(part)


def _changelog(schemas: Sequence[OpSchema]) -> str:
    """Every version of every operator, by domain and version."""
    ordered = sorted(schemas, key=lambda s: (s.domain, s.since_version, s.name))
    lines = ["## Operator Changelog", ""]
    domain, version = None, None
    for schema in ordered:
        if schema.domain != domain:
            lines.append(f"# {schema.domain or 'ai.onnx (default)'}")
            domain, version = schema.domain, None
        if schema.since_version != version:
            version = schema.since_version
            lines.append(f"## Version {version} of {_operator_set(domain)}")
        name = f"{_qualified(schema)}-{version}"
        deprecated = " (deprecated)" if schema.deprecated else ""
        lines.append(f'### <a name="{name}"></a>**{name}**{deprecated}</a>')
        lines += [*_entry(schema), ""]
    return "\n".join(lines) + "\n"


def _operators(schemas: Sequence[OpSchema]) -> str:
    """The newest version of every operator, by domain and name."""
    lines = ["## Operator Schemas", ""]
    domain = None
    for (_, name), versions in sorted(
        _families(schemas).items(),
        key=lambda item: (item[0][0], _experimental(item[1][-1]), item[0][1]),
    ):
        newest = versions[-1]
        if newest.domain != domain:
            domain = newest.domain
            lines.append(f"## {domain or 'ai.onnx (default)'}")
        prefix = f"{domain}." if domain else ""
        experimental = "<sub>experimental</sub> " if _experimental(newest) else ""
        deprecated = " (deprecated)" if newest.deprecated else ""
        lines.append(
            f'### {experimental}<a name="{prefix}{name}"></a><a name="{prefix}{name.lower()}">'
            f"**{prefix}{name}**{deprecated}</a>"
        )
        lines += [*_entry(newest), "", ""]
    return "\n".join(lines) + "\n"


def _qualified(schema: OpSchema) -> str:
    return f"{schema.domain}.{schema.name}" if schema.domain else schema.name


def _operator_set(domain: str) -> str:
    return f"the '{domain}' operator set" if domain else "the default ONNX operator set"


def _experimental(schema: OpSchema) -> bool:
    return _word(schema.support_level) == "EXPERIMENTAL"


def _entry(schema: OpSchema) -> Iterator[str]:
    if schema.doc:
        yield ""
        yield from (f"  {line}".rstrip() for line in schema.doc.lstrip().splitlines())
    yield from ("", "#### Version", "")
    if _experimental(schema):
        yield "No versioning maintained for experimental ops."
    else:
        state = "deprecated" if schema.deprecated else "available"
        yield (
            f"This version of the operator has been {state} since version "
            f"{schema.since_version} of {_operator_set(schema.domain)}."
        )
    if schema.deprecated:
        return
    if schema.attributes:
        attributes = sorted(schema.attributes.items())
        yield from ("", "#### Attributes", "")
        yield from _list((_attribute(a), a.description) for _, a in attributes)
    for title, parameters, least, most in (
        ("Inputs", schema.inputs, schema.min_input, schema.max_input),
        ("Outputs", schema.outputs, schema.min_output, schema.max_output),
    ):
        limit = "&#8734;" if most == UNBOUNDED else most
        yield from ("", f"#### {title}" + (f" ({least} - {limit})" if least != most else ""), "")
        yield from _list((_parameter(p), p.description) for p in parameters)
    yield from ("", "#### Type Constraints", "")
    yield from _list(
        (f"<tt>{t.type_param_str}</tt> : {', '.join(t.allowed_type_strs)}", t.description)
        for t in schema.type_constraints
    )


def _list(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A definition list; nothing for no items."""
    found = list(items)
    if found:
        yield "<dl>"
        for item, description in found:
            yield f"<dt>{item}</dt>"
            yield f"<dd>{description}</dd>"
        yield "</dl>"


def _attribute(attribute: OpSchema.Attribute) -> str:
    type_ = _word(attribute.type).lower()
    if type_.endswith("s"):
        type_ = f"list of {type_}"
    value = _default_of(attribute)
    presence = ""
    if attribute.required:
        presence = " (required)"
    elif value is not None:
        text = [_default(v) for v in value] if isinstance(value, list) else _default(value)
        presence = f" (default is {text}{attribute.default_value.doc_string})"
    return f"<tt>{attribute.name}</tt> : {type_}{presence}"


def _parameter(parameter: OpSchema.FormalParameter) -> str:
    option, labels = _word(parameter.option), []
    if option == "Optional":
        labels = ["optional"]
    elif option == "Variadic":
        labels = ["variadic"] if parameter.is_homogeneous else ["variadic", "heterogeneous"]
    match _word(parameter.differentiation_category):
        case "Differentiable":
            labels.append("differentiable")
        case "NonDifferentiable":
            labels.append("non-differentiable")
    shown = f" ({', '.join(labels)})" if labels else ""
    return f"<tt>{parameter.name}</tt>{shown} : {parameter.type_str}"


# --- pages ---------------------------------------------------------------------------------------


def _pages(schemas: Sequence[OpSchema]) -> Iterator[tuple[str, str]]:
    for (domain, name), versions in sorted(_families(schemas).items()):
        title = f"{domain} - {name}" if domain else name
        lines = [f"# {title}", ""]
        for schema in reversed(versions):
            lines += _page(schema)
        yield f"onnx_{domain.replace('.', '')}_{name}.md", "\n".join(lines) + "\n"


def _page(schema: OpSchema) -> Iterator[str]:
    """One version on its operator's page; text is escaped as on the site."""
    domain = f" ({schema.domain})" if schema.domain else ""
    yield from (f"## {schema.name} - {schema.since_version}{domain}", "", "### Version", "")
    yield from (
        f"- **name**: [{schema.name} (GitHub)](https://github.com/onnx/onnx/blob/main/docs/"
        f"Operators{'-ml' if 'ml' in schema.domain else ''}.md#{_qualified(schema)})",
        f"- **domain**: `{schema.domain or 'main'}`",
        f"- **since_version**: `{schema.since_version}`",
        f"- **function**: `{has_function(schema)}`",
        f"- **support_level**: `{schema.support_level}`",
        f"- **shape inference**: `{schema.has_type_and_shape_inference_function}`",
        "",
    )
    if _experimental(schema):
        yield "No versioning maintained for experimental ops."
    else:
        state = "deprecated" if schema.deprecated else "available"
        within = f" of domain {schema.domain}" if schema.domain else ""
        yield f"This version of the operator has been {state}"
        yield f"**since version {schema.since_version}{within}**."
    yield from ("", "### Summary", "", html.escape(textwrap.dedent(schema.doc or "")).strip(), "")
    if schema.attributes:
        yield from ("### Attributes", "")
        for _, attribute in sorted(schema.attributes.items()):
            yield from _page_item(f"* {_page_attribute(attribute)}:", attribute.description)
    for title, parameters, least, most in (
        ("Inputs", schema.inputs, schema.min_input, schema.max_input),
        ("Outputs", schema.outputs, schema.min_output, schema.max_output),
    ):
        if not parameters:
            continue
        yield from (f"### {title}", "")
        if least != most:
            yield from (f"Between {least} and {most} {title.lower()}.", "")
        for place, parameter in enumerate(parameters):
            yield from _page_item(f"- {_page_parameter(parameter, place)}:", parameter.description)
    if schema.type_constraints:
        yield from ("### Type Constraints", "")
        for constraint in schema.type_constraints:
            types = ", ".join(f"`{t}`" for t in sorted(constraint.allowed_type_strs))
            text = f"* **{constraint.type_param_str}** in ( {types} ):"
            yield from _page_item(text, constraint.description)


def _page_item(item: str, description: str) -> Iterator[str]:
    yield from (item, "", textwrap.indent(html.escape(description), "  "), "")


def _page_attribute(attribute: OpSchema.Attribute) -> str:
    value = _default_of(attribute)
    shown = ""
    if value is not None:
        listed = isinstance(value, list)
        text = f"[{', '.join(_default(v) for v in value)}]" if listed else _default(value)
        shown = html.escape(f"(default is `{text}`)")
    required = " (required)" if attribute.required else ""
    return f"**{attribute.name} - {_word(attribute.type)}**{required} {shown}"


def _page_parameter(parameter: OpSchema.FormalParameter, place: int) -> str:
    option = _word(parameter.option)
    labels = [option.lower()] if option in ("Optional", "Variadic") else []
    if parameter.is_homogeneous:
        labels.append("heterogeneous")  # sic: see the module's docstring
    shown = f" ({', '.join(labels)})" if labels else ""
    return f"**{parameter.name or place}**{shown} - **{parameter.type_str}**"
