"""What operator documentation says, as data: operators with their parameters, types, attributes.

Comes in: what :mod:`reprise.mining.docs.reading` has read. Goes out: :class:`Documentation`, which
everything else here works on. Every item knows the line on which it stands. What the documents do
not say (the differentiability of a parameter, the sections of a deprecated operator) is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from reprise.lang.diagnostics import Diagnostic

Value = int | float | str | tuple["int | float | str", ...]
"""An attribute's default."""

UNBOUNDED = 2**31 - 1
"""How many operands a variadic parameter takes at most: ONNX's own number for "no limit"."""


class Form(Enum):
    """How documentation is laid out."""

    MARKDOWN = "markdown"  # Operators.md, Changelog.md
    PAGES = "pages"  # one page an operator, as on onnx.ai


class Part(Enum):
    """A section of an operator's entry that holds facts."""

    VERSION = "Version"
    ATTRIBUTES = "Attributes"
    INPUTS = "Inputs"
    OUTPUTS = "Outputs"
    TYPES = "Type Constraints"


class Option(Enum):
    """How often a parameter may occur."""

    SINGLE = "single"
    OPTIONAL = "optional"
    VARIADIC = "variadic"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a document, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input or output. ``type`` is a type variable or a type, ``seq(tensor(float))``.

    ``homogeneous``: all tensors of a variadic parameter have one type. ``differentiable`` None:
    undefined, or the documents do not say.
    """

    name: str
    type: str
    option: Option
    homogeneous: bool
    differentiable: bool | None
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeConstraint:
    """The types that a type variable may stand for, in the order of the document."""

    name: str
    types: tuple[str, ...]
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class DocAttribute:
    """An attribute. ``type`` as AttributeProto spells it, ``"INTS"``; ``default`` None: none, or
    (``text`` not None) one that its type gives no reading for."""

    name: str
    type: str
    required: bool
    default: Value | None
    text: str | None
    """The default as the document has it."""
    description: str = field(compare=False)
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class Arity:
    """How many inputs or outputs an operator has: at least, at most."""

    least: int
    most: int

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} to {'any' if self.most == UNBOUNDED else self.most}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of an operator. The empty ``domain`` is ONNX's own.

    ``damaged`` are the sections of which a line could not be read, or that are missing: what the
    entry says of them may be incomplete. ``function`` None: the documents do not say.
    """

    domain: str
    name: str
    since: int
    deprecated: bool
    experimental: bool
    function: bool | None
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    input_arity: Arity | None
    output_arity: Arity | None
    types: tuple[TypeConstraint, ...]
    attributes: tuple[DocAttribute, ...]
    damaged: frozenset[Part]
    form: Form = field(compare=False)
    place: Place = field(compare=False)

    @property
    def key(self) -> tuple[str, str, int]:
        """Domain, name and version: what tells entries apart."""
        return self.domain, self.name, self.since

    @property
    def qualified(self) -> str:
        """``Abs``, ``ai.onnx.ml.Scaler``."""
        return f"{self.domain}.{self.name}" if self.domain else self.name

    @property
    def title(self) -> str:
        """``Abs-13``, ``ai.onnx.ml.Scaler-1``."""
        return f"{self.qualified}-{self.since}"

    def constraint(self, variable: str) -> TypeConstraint | None:
        """The constraint of a type variable; None if ``variable`` is a type itself."""
        return next((t for t in self.types if t.name == variable), None)

    def allowed(self, parameter: Parameter) -> tuple[str, ...]:
        """The types that ``parameter`` may have."""
        constraint = self.constraint(parameter.type)
        return (parameter.type,) if constraint is None else constraint.types


@dataclass(frozen=True, slots=True)
class Documentation:
    """What some documents say: each version of an operator once, with the places that say the
    same again, and what was wrong on the way."""

    entries: tuple[Entry, ...]
    again: dict[tuple[str, str, int], tuple[Place, ...]]
    diagnostics: tuple[Diagnostic, ...]
    files: int
    seconds: float = 0.0
    folders: tuple[str, ...] = ()
    """The folders that were read, as they were named."""

    def cite(self, place: Place) -> str:
        """A place as rules state it: ``docs/Changelog.md:124``, from the folder that was read on,
        or the document's own name."""
        path = Path(place.file.encode("utf-8", "replace").decode("utf-8"))
        for folder in map(Path, self.folders):
            if path.is_relative_to(folder):
                root = folder.resolve().name
                return f"{root}/{path.relative_to(folder).as_posix()}:{place.line}"
        return f"{path.name}:{place.line}"
