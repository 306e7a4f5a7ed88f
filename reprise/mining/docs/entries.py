"""Entries of operator documentation, from what their lines said to what they say as a whole.

Comes in: a :class:`Draft`, filled line by line. Goes out: an entry. Facts that an entry states
twice (how many parameters there are, and the parameters) are held against each other, so that a
line lost without a trace is noticed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reprise.lang.diagnostics import Diagnostic, Severity, Span
from reprise.mining.docs.lines import (
    AttributeLine,
    Misread,
    OperatorLine,
    ParameterLine,
    VersionLine,
    value,
)
from reprise.mining.docs.model import (
    Arity,
    DocAttribute,
    Entry,
    Form,
    Option,
    Parameter,
    Part,
    Place,
    TypeConstraint,
)

_ORDER = list(Part)


def warning(code: str, message: str, place: Place, hint: str | None = None) -> Diagnostic:
    """A warning about a whole line."""
    span = Span(place.file, place.line, 1, place.line, 1)
    return Diagnostic(code, message, span, hint, Severity.WARNING)


@dataclass(slots=True)
class Draft:
    """An entry while it is being read."""

    heading: OperatorLine
    place: Place
    version: VersionLine = field(default_factory=VersionLine)
    parts: set[Part] = field(default_factory=set)
    damaged: set[Part] = field(default_factory=set)
    arities: dict[Part, Arity] = field(default_factory=dict)
    parameters: dict[Part, list[tuple[ParameterLine, Place]]] = field(
        default_factory=lambda: {Part.INPUTS: [], Part.OUTPUTS: []}
    )
    types: list[TypeConstraint] = field(default_factory=list)
    attributes: list[tuple[AttributeLine, list[str], Place]] = field(default_factory=list)

    @property
    def deprecated(self) -> bool:
        """Whether the heading or the section on the version says so."""
        return self.heading.deprecated or bool(self.version.deprecated)


def check(draft: Draft, form: Form, place: Place, end: bool, report: list[Diagnostic]) -> None:
    """Hold against each other what the entry says twice, and notice what is missing.

    ``place`` is where the entry ends; ``end``: the document ends there, too.
    """
    if draft.deprecated and form is Form.MARKDOWN:
        return
    expected = {Part.VERSION, Part.OUTPUTS}
    if form is Form.MARKDOWN:
        expected |= {Part.INPUTS, Part.TYPES}
    missing = [part for part in Part if part in expected - draft.parts]
    if missing:
        names = ", ".join(f"`{part.value}`" for part in missing)
        # Sections have a fixed order. What follows the gap may be missing, too, and what
        # comes before it may have lost its last lines, or hold those of the one that is not.
        first = _ORDER.index(missing[0])
        before = [part for part in _ORDER[:first] if part in draft.parts]
        draft.damaged |= set(_ORDER[_ORDER.index(before[-1]) if before else 0 :])
        report.append(
            warning(
                "truncated-entry" if end else "missing-section",
                f"the entry of {draft.heading.name} ends without {names}",
                place if end else draft.place,
            )
        )
    for part in (Part.INPUTS, Part.OUTPUTS):
        _check_arity(draft, part, report)
    named = {t.name for t in draft.types}
    for part in (Part.INPUTS, Part.OUTPUTS):
        for parameter, at in draft.parameters[part]:
            if parameter.type not in named and "(" not in parameter.type:
                if Part.TYPES not in draft.damaged:
                    report.append(
                        warning(
                            "unknown-type",
                            f"nothing says what `{parameter.type}` may be",
                            at,
                        )
                    )
                draft.damaged.add(Part.TYPES)


def _check_arity(draft: Draft, part: Part, report: list[Diagnostic]) -> None:
    arity = draft.arities.get(part)
    found = draft.parameters[part]
    if part in draft.damaged or part not in draft.parts:
        return
    if arity is None:
        # Optional parameters alone prove nothing: GRU-1 has one, and always two outputs.
        told = "a variadic one" if any("variadic" in p.flags for p, _ in found) else ""
        if part is Part.OUTPUTS and not found:
            told = "nothing"  # every operator has a result
    elif any("variadic" in p.flags for p, _ in found):
        told = ""
    else:
        most = len(found)
        told = f"{most} parameter{'' if most == 1 else 's'}" if most != arity.most else ""
    if told:
        draft.damaged.add(part)
        says = "no range" if arity is None else f"at most {arity.most}"
        report.append(
            warning(
                "count-mismatch",
                f"{draft.heading.name}: `{part.value}` announces {says} and lists {told}",
                draft.place,
            )
        )


def finished(
    draft: Draft, since: int, experimental: bool, form: Form, report: list[Diagnostic]
) -> Entry:
    """The draft as an entry."""
    heading, version = draft.heading, draft.version
    silent = draft.deprecated and form is Form.MARKDOWN and Part.INPUTS not in draft.parts
    attributes = tuple(_attribute(a, form, draft, report) for a in draft.attributes)
    inverted = _inverted(draft, form)
    inputs, outputs = (
        _parameters(draft.parameters[part], inverted) for part in (Part.INPUTS, Part.OUTPUTS)
    )
    return Entry(
        heading.domain or (version.domain or ""),
        heading.name,
        since,
        draft.deprecated,
        experimental,
        version.function,
        inputs,
        outputs,
        None if silent else draft.arities.get(Part.INPUTS, Arity(len(inputs), len(inputs))),
        None if silent else draft.arities.get(Part.OUTPUTS, Arity(len(outputs), len(outputs))),
        tuple(draft.types),
        attributes,
        frozenset(draft.damaged),
        form,
        draft.place,
    )


def _parameters(
    found: Sequence[tuple[ParameterLine, Place]], inverted: bool
) -> tuple[Parameter, ...]:
    return tuple(_parameter(line, place, inverted) for line, place in found)


def _inverted(draft: Draft, form: Form) -> bool:
    """Whether "heterogeneous" means its opposite, as it does on the pages of today. The label has
    no meaning where a parameter is not variadic: if it stands there, it is the wrong way round."""
    lines = [line for found in draft.parameters.values() for line, _ in found]
    plain = [line for line in lines if "variadic" not in line.flags]
    if form is Form.MARKDOWN or not plain:
        return form is Form.PAGES
    return any("heterogeneous" in line.flags for line in plain)


def _parameter(line: ParameterLine, place: Place, inverted: bool) -> Parameter:
    flags = set(line.flags)
    option = Option.SINGLE
    if "optional" in flags:
        option = Option.OPTIONAL
    elif "variadic" in flags:
        option = Option.VARIADIC
    differentiable = None
    if "differentiable" in flags:
        differentiable = True
    elif "non-differentiable" in flags:
        differentiable = False
    homogeneous = ("heterogeneous" in flags) is inverted
    return Parameter(line.name, line.type, option, homogeneous, differentiable, place)


def _attribute(
    found: tuple[AttributeLine, list[str], Place],
    form: Form,
    draft: Draft,
    report: list[Diagnostic],
) -> DocAttribute:
    line, description, place = found
    default = None
    if line.default is not None:
        try:
            default = value(form, line.type, line.default)
        except Misread as error:
            draft.damaged.add(Part.ATTRIBUTES)
            report.append(
                warning(
                    "unread-default",
                    f"`{line.default}` is no default of this type",
                    place,
                    str(error),
                )
            )
    return DocAttribute(
        line.name, line.type, line.required, default, line.default, " ".join(description), place
    )
