"""What was mined, held against what ONNX itself says: ``onnx.defs``.

Comes in: documentation. Goes out: :class:`Agreement`, for each kind of fact how many the documents
state, how many of these are what the installed ``onnx`` package says, and every difference with its
place and, where there is one, its explanation. What documents do not state (the parameters of a
deprecated operator in Markdown) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from reprise.mining.docs.generate import has_function
from reprise.mining.docs.model import (
    Arity,
    DocAttribute,
    Documentation,
    Entry,
    Form,
    Option,
    Parameter,
    Part,
    Place,
    Value,
)

if TYPE_CHECKING:
    from onnx.defs import OpSchema


class Kind(Enum):
    """A kind of fact."""

    SINCE = "version"
    DEPRECATED = "deprecated"
    COUNT = "number of parameters"
    ARITY = "arity"
    NAME = "parameter's name"
    FLAGS = "parameter's flags"
    TYPE = "parameter's type"
    TYPES = "types of a variable"
    ATTRIBUTES = "attributes' names"
    ATTRIBUTE_TYPE = "attribute's type"
    REQUIRED = "attribute required"
    DEFAULT = "attribute's default"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that the documents state otherwise than ``onnx.defs``."""

    kind: Kind
    subject: str
    documented: str
    actual: str
    place: Place
    explanation: str | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """The comparison. ``absent``: versions that the installed package has and the documents lack;
    ``unread``: facts that were not compared because their section could not be read whole."""

    onnx: str
    stated: dict[Kind, int]
    agreeing: dict[Kind, int]
    differences: tuple[Difference, ...]
    absent: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        return tuple(d for d in self.differences if d.explanation is None)


@dataclass(frozen=True, slots=True)
class _Fact:
    kind: Kind
    subject: str
    documented: object
    actual: object
    place: Place


def compare(documentation: Documentation) -> Agreement:
    """Hold the documentation against the installed ``onnx`` package."""
    import onnx

    schemas = _schemas()
    stated = dict.fromkeys(Kind, 0)
    agreeing = dict.fromkeys(Kind, 0)
    differences: list[Difference] = []
    unread: list[str] = []
    for entry in documentation.entries:
        schema = schemas.get(entry.key)
        if entry.damaged:
            parts = ", ".join(sorted(part.value for part in entry.damaged))
            unread.append(f"{entry.place}: {entry.title}: {parts}")
        for fact in _facts(entry, schema):
            stated[fact.kind] += 1
            if fact.documented == fact.actual:
                agreeing[fact.kind] += 1
            else:
                differences.append(_difference(fact, entry))
    known = {entry.key for entry in documentation.entries}
    absent = sorted(
        f"{f'{d}.' if d else ''}{name}-{since}" for d, name, since in schemas.keys() - known
    )
    return Agreement(
        onnx.__version__, stated, agreeing, tuple(differences), tuple(absent), tuple(unread)
    )


@cache
def _schemas() -> dict[tuple[str, str, int], OpSchema]:
    from onnx import defs

    return {(s.domain, s.name, s.since_version): s for s in defs.get_all_schemas_with_history()}


def _difference(fact: _Fact, entry: Entry) -> Difference:
    explanation = None
    if fact.kind is Kind.SINCE:
        domains = {domain for domain, _, _ in _schemas()}
        explanation = (
            "the documents are of another release than the installed package"
            if entry.domain in domains
            else "the onnx package has no such domain"
        )
    elif fact.kind is Kind.DEFAULT:
        explanation = _rounded(fact.documented, fact.actual)
    return Difference(
        fact.kind,
        f"{entry.title}{f' {fact.subject}' if fact.subject else ''}",
        _shown(fact.documented),
        _shown(fact.actual),
        fact.place,
        explanation,
    )


def _shown(value: object) -> str:
    match value:
        case tuple():
            return ", ".join(_shown(item) for item in value) or "none"
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case _:
            return str(value)


def _rounded(documented: object, actual: object) -> str | None:
    """Why a float reads otherwise: the documents round."""
    if not isinstance(documented, float) or not isinstance(actual, float):
        return None
    if round(actual, 5) == documented:
        return "the documents round defaults to 5 digits after the point"
    if float(f"{actual:e}") == documented:
        return "the documents write long defaults with 7 digits"
    return None


# --- the facts of an entry -----------------------------------------------------------------------


def _facts(entry: Entry, schema: OpSchema | None) -> Iterator[_Fact]:
    """Every fact that the entry states, with what the schema says."""
    place = entry.place
    yield _Fact(Kind.SINCE, "", True, schema is not None, place)
    if schema is None:
        return
    yield _Fact(Kind.DEPRECATED, "", entry.deprecated, bool(schema.deprecated), place)
    if entry.function is not None:
        yield _Fact(Kind.FUNCTION, "", entry.function, has_function(schema), place)
    if entry.input_arity is not None and Part.INPUTS not in entry.damaged:
        arity = Arity(schema.min_input, schema.max_input)
        yield _Fact(Kind.ARITY, "inputs", entry.input_arity, arity, place)
        yield from _parameters(entry, "input", entry.inputs, schema.inputs)
    if entry.output_arity is not None and Part.OUTPUTS not in entry.damaged:
        arity = Arity(schema.min_output, schema.max_output)
        yield _Fact(Kind.ARITY, "outputs", entry.output_arity, arity, place)
        yield from _parameters(entry, "output", entry.outputs, schema.outputs)
    if entry.input_arity is None:
        return  # a deprecated operator, of which nothing else is said
    if Part.TYPES not in entry.damaged:
        yield from _types(entry, schema)
    if Part.ATTRIBUTES not in entry.damaged:
        yield from _attributes(entry, schema)


def _parameters(
    entry: Entry,
    word: str,
    documented: Sequence[Parameter],
    actual: Sequence[OpSchema.FormalParameter],
) -> Iterator[_Fact]:
    yield _Fact(Kind.COUNT, f"{word}s", len(documented), len(actual), entry.place)
    for said, true in zip(documented, actual, strict=False):
        subject = f"{word} {said.name}"
        yield _Fact(Kind.NAME, subject, said.name, true.name, said.place)
        flags, truly = _flags(entry.form, said), _true_flags(entry.form, true)
        yield _Fact(Kind.FLAGS, subject, flags, truly, said.place)
        yield _Fact(Kind.TYPE, subject, said.type, true.type_str, said.place)


_OPTIONS = (Option.SINGLE, Option.OPTIONAL, Option.VARIADIC)
_DIFFERENTIABLE = (None, True, False)  # DifferentiationCategory: unknown, yes, no


def _flags(form: Form, said: Parameter) -> tuple[object, ...]:
    homogeneous = said.homogeneous if said.option is Option.VARIADIC else True
    return (
        said.option,
        "homogeneous" if homogeneous else "heterogeneous",
        *((_grade(said.differentiable),) if form is Form.MARKDOWN else ()),
    )


def _true_flags(form: Form, true: OpSchema.FormalParameter) -> tuple[object, ...]:
    option = _OPTIONS[int(true.option.value)]  # type: ignore[attr-defined]
    homogeneous = true.is_homogeneous if option is Option.VARIADIC else True
    category = int(true.differentiation_category.value)  # type: ignore[attr-defined]
    return (
        option,
        "homogeneous" if homogeneous else "heterogeneous",
        *((_grade(_DIFFERENTIABLE[category]),) if form is Form.MARKDOWN else ()),
    )


def _grade(differentiable: bool | None) -> str:
    return {None: "undefined", True: "differentiable", False: "not differentiable"}[differentiable]


def _types(entry: Entry, schema: OpSchema) -> Iterator[_Fact]:
    actual = {t.type_param_str: tuple(t.allowed_type_strs) for t in schema.type_constraints}
    said = {t.name: t for t in entry.types}
    for name in [*said, *(actual.keys() - said.keys())]:
        constraint = said.get(name)
        types = None if constraint is None else constraint.types
        truly = actual.get(name)
        if entry.form is Form.PAGES and truly is not None:
            truly = tuple(sorted(truly))  # the pages sort them
        place = entry.place if constraint is None else constraint.place
        yield _Fact(Kind.TYPES, name, types, truly, place)


def _attributes(entry: Entry, schema: OpSchema) -> Iterator[_Fact]:
    names = tuple(sorted(a.name for a in entry.attributes))
    yield _Fact(Kind.ATTRIBUTES, "", names, tuple(sorted(schema.attributes)), entry.place)
    for said in entry.attributes:
        true = schema.attributes.get(said.name)
        if true is None:
            continue
        type_ = str(true.type).rpartition(".")[2]
        yield _Fact(Kind.ATTRIBUTE_TYPE, said.name, said.type, type_, said.place)
        yield _Fact(Kind.REQUIRED, said.name, said.required, bool(true.required), said.place)
        yield _Fact(Kind.DEFAULT, said.name, _said_default(said), true_default(true), said.place)


def _said_default(said: DocAttribute) -> object:
    return said.text if said.default is None else said.default


def true_default(attribute: OpSchema.Attribute) -> Value | str | None:
    """An attribute's default; None if there is none, text where the language has no value."""
    from onnx import helper

    from reprise.facts.onnx_values import shortest

    proto = attribute.default_value
    if not proto.name:
        return None
    value = helper.get_attribute_value(proto)
    listed = isinstance(value, list)
    read = [
        item.decode("utf-8")
        if isinstance(item, bytes)
        else shortest(item)
        if isinstance(item, float)
        else item
        for item in (value if listed else [value])
    ]
    if all(isinstance(item, int | float | str) for item in read):
        return tuple(read) if listed else read[0]
    return str(value)
