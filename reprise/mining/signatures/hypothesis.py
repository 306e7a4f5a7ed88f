"""What is believed of an operator: the parts of a signature, and the signature as text.

An operand has either one rank, and a variable for each extent, or several, and one variable for
the whole shape. Everything else is an equation ``V == term`` or a bound ``V <= term`` over these
variables and over attributes. A :class:`Term` is at once text of the rule language and a function
of an application's values, so what is believed can be compared with what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reprise.lang.format import format_text
from reprise.mining.signatures.reading import Raw, RawAttribute
from reprise.mining.signatures.trial import Trial
from reprise.uir.graph import Attribute

MOST_RANK = 5
"""The largest rank that is probed: an upper bound on ranks that is no bound of the operator."""

Values = Mapping[str, Any]
"""Values of variables in one application; what is absent is not there."""


@dataclass(frozen=True, slots=True)
class Term:
    """An expression. ``size``: how simple it is; ``value`` raises KeyError, IndexError or
    ZeroDivisionError where it has none."""

    text: str
    size: int
    value: Callable[[Values], Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the signature. ``evidence``: how it came to be believed."""

    text: str
    holds: Callable[[Values], bool]
    evidence: str = ""
    of: str = ""
    size: int = 1

    def may_hold(self, values: Values) -> bool:
        """Whether it holds, or is about something absent."""
        try:
            return self.holds(values)
        except (KeyError, IndexError, ZeroDivisionError, TypeError):
            return True

    def is_certain(self, values: Values) -> bool:
        """Whether it holds, and is about nothing absent."""
        try:
            return self.holds(values)
        except (KeyError, IndexError, ZeroDivisionError, TypeError):
            return False


@dataclass(frozen=True, slots=True)
class Layout:
    """How an operand's shape is written: one variable for all of it (``splat``), or one an axis."""

    variables: tuple[str, ...]
    splat: bool

    def bind(self, shape: tuple[int, ...]) -> dict[str, Any] | None:
        """The variables' values, or None if the rank is another."""
        if self.splat:
            return {self.variables[0]: shape}
        if len(shape) != len(self.variables):
            return None
        return dict(zip(self.variables, shape, strict=True))


@dataclass(frozen=True, slots=True)
class Domain:
    """What an attribute may be. ``text``: after ``in``, or empty; ``values``: if it lists them."""

    text: str = ""
    axis: str = ""


@dataclass(slots=True)
class Hypothesis:
    """A signature in the making. ``left_out``: attributes and optional operands that it does
    without, and why; ``kinds``: what values integer operands demand; ``tied``: look for what ties
    extents to each other by products, quotients and words, too, which takes longer."""

    raw: Raw
    layouts: dict[int, Layout] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Domain] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    evidence: str = ""
    results: list[str] | None = None
    tied: bool = False

    # --- values ----------------------------------------------------------------------------------

    def values(self, trial: Trial) -> dict[str, Any] | None:
        """The variables' values in an application; None if it is none of this form."""
        found: dict[str, Any] = {}
        # No variable is bound twice: equal ones are only written alike, in `text`.
        for i, shape in enumerate(trial.shapes):
            if shape is None:
                continue
            layout = self.layouts.get(i)
            bound = None if layout is None else layout.bind(shape)
            if bound is None:
                return None
            found |= bound
        for attribute in self.raw.attributes:
            value = trial.attribute(attribute.name)
            if value is None:
                value = attribute.default
            elif attribute.name not in self.attributes:
                return None
            if value is not None:
                found[variable(attribute.name)] = value
        for operand in self.raw.operands:
            value = trial.attribute(operand.name)
            if value is not None:
                if operand.name not in self.stored:
                    return None
                found[variable(operand.name)] = value
        return found

    # --- text ------------------------------------------------------------------------------------

    def text(self, notes: tuple[str, ...] = ()) -> str:
        """The declaration, and facts about values, in the rule language."""
        raw = self.raw
        same = self._same()

        def plain(text: str) -> str:
            return re.sub(r"\b[A-Z]\w*\b", lambda m: same.get(m[0], m[0]), text)

        lines = [f"/// {line}" for line in (*raw.decl.doc, *notes)]
        operands = ", ".join(self._operand(i, same) for i in range(len(raw.operands)))
        results = ", ".join(map(plain, self._results()))
        lines.append(f"op {raw.name}({operands}) -> {results} {{")
        lines.append("category mined")
        for name, type in self.stored.items():
            lines.append(self._attribute(name, type, name not in self.required, ""))
        for attribute in raw.attributes:
            if attribute.name in self.attributes:
                optional = attribute.name not in self.required
                lines.append(self._attribute(attribute.name, attribute.type, optional, attribute))
        said = [c for c in self.conditions if c.of not in same]
        where = [*self._dtypes(), *self._axes(), *dict.fromkeys(plain(c.text) for c in said)]
        where += [
            f"not present({o.name})"
            for i, o in enumerate(raw.operands)
            if o.optional and i not in self.layouts and o.name not in self.stored
        ]
        if where:
            lines.append(f"where {', '.join(where)}")
        lines.append("}")
        for i, kind in sorted(self.kinds.items()):
            lines.append(f'demands({raw.name}, {i}, "{kind}").')
        return format_text("\n".join(lines) + "\n")

    def _same(self) -> dict[str, str]:
        """Variables of shapes that an equation makes superfluous, and what stands for each: an
        earlier variable of the same sort, or a number."""
        sorts = {v: layout.splat for layout in self.layouts.values() for v in layout.variables}
        same: dict[str, str] = {}
        for condition in self.conditions:
            name, _, text = condition.text.partition(" == ")
            text = same.get(text, text)
            number = text.isdecimal() and not sorts.get(name, True)
            if name in sorts and name not in same and (number or sorts.get(text) is sorts[name]):
                same[name] = text
        return same

    def _operand(self, i: int, same: Mapping[str, str]) -> str:
        operand = self.raw.operands[i]
        layout = self.layouts.get(i)
        if layout is None:
            stored = self.stored.get(operand.name)
            shape = "*" + variable(operand.name) + "Shape" if stored is None else ""
            if stored is not None and stored.endswith("s"):
                shape = variable(operand.name) + "Length"
        else:
            names = [same.get(v, v) for v in layout.variables]
            shape = ", ".join(f"*{v}" if layout.splat else v for v in names)
        optional = operand.optional or operand.name in self.stored
        return f"{operand.name}{'?' * optional}: {operand.dtype}[{shape}]"

    def _results(self) -> Iterator[str]:
        for i, (name, type_) in enumerate(self.raw.decl.results):
            dtype = type_.dtype.name if hasattr(type_.dtype, "name") else type_.dtype.text
            shape = "..." if self.results is None else self.results[i]
            yield f"{f'{name}: ' if name is not None else ''}{dtype}[{shape}]"

    def _attribute(self, name: str, type: str, optional: bool, raw: RawAttribute | str) -> str:
        domain = self.attributes.get(name, Domain())
        text = f" in {domain.text}" if domain.text else ""
        default = None if isinstance(raw, str) else raw.default
        written = "" if not optional else " = absent"
        if default is not None:
            written = f" = {spelled(default, type)}"
        sets = "" if isinstance(raw, str) else raw.variable
        return f"attr {name} as {sets or variable(name)}: {type}{text}{written}"

    def _dtypes(self) -> Iterator[str]:
        used = {o.dtype for o in self.raw.operands}
        for name, choices in self.raw.dtypes.items():
            if name in used:
                yield f"{name} in {{{', '.join(choices)}}}"

    def _axes(self) -> Iterator[str]:
        for name, domain in self.attributes.items():
            if domain.axis:
                yield f"{domain.axis.format(variable(name))}"


def variable(name: str) -> str:
    """The variable of an attribute or stored operand: ``output_datatype`` is ``OutputDatatype``."""
    return "".join(part.capitalize() for part in name.split("_") if part)


def spelled(value: Attribute, type: str) -> str:
    """A value in the rule language."""
    if isinstance(value, tuple):
        return f"[{', '.join(spelled(item, type.removesuffix('s')) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if type == "dtype" else f'"{value}"'
    return repr(value)
