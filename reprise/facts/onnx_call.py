"""One ONNX node on its way to a UIR node, and the vocabulary in which the table describes how.

A :class:`Call` is what the importer knows about an ONNX node: operands, types, attributes with
the defaults of its opset. An :class:`Entry` says, as data, what becomes of it: the UIR operator,
its attributes (:class:`Attr`) and the few steps that no data can describe. :func:`apply` runs an
entry; whatever does not fit raises :class:`Misfit`, and the node keeps its ONNX name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

import numpy as np

from reprise.facts.onnx_values import CODE_OF_LEGACY_NAME, DTYPE_OF_CODE, scalars_of
from reprise.uir.graph import Array, Attribute, Extent, Role, Tensor, TensorType


class Misfit(Exception):
    """A node that has no faithful UIR form; the text says why."""


@dataclass(slots=True)
class Call:
    """An ONNX node with what is known about it. Attributes have ONNX's names and meaning."""

    op: str
    version: int  # of the operator's definition, not of the model's opset
    inputs: list[Tensor | None]
    outputs: list[TensorType]
    attributes: dict[str, Attribute]
    given: set[str]

    def type(self, i: int) -> TensorType:
        """The type of operand ``i``; all unknown if it is absent."""
        operand = self.inputs[i] if i < len(self.inputs) else None
        return _UNKNOWN if operand is None else operand.type

    def has(self, i: int) -> bool:
        """Whether operand ``i`` is present."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def constant(self, i: int) -> Array | None:
        """The value of operand ``i`` if the model fixes it, else None."""
        operand = self.inputs[i] if i < len(self.inputs) else None
        return None if operand is None else constant_of(operand)


def constant_of(tensor: Tensor) -> Array | None:
    """The value of ``tensor`` if the model fixes it and it was loaded, else None."""
    if tensor.role is Role.INITIALIZER and not tensor.overridable:
        return tensor.value
    if tensor.type.elements == 0:
        return np.zeros(0, np.int64)  # it has no element, so it is known
    return None


_UNKNOWN = TensorType(None, None)


class Kind(Enum):
    """How an attribute's value is read."""

    PLAIN = "as it is"
    FLAG = "0 or 1: a boolean"
    DTYPE = "a TensorProto.DataType: its name"
    AXIS = "an axis of operand 0: made non-negative"
    AXES = "axes of operand 0: made non-negative and sorted"
    INT = "one integer"
    INTS = "integers"
    FLOATS = "numbers"
    NUMBER = "one number, of the operand's element type"
    DROP = "of no meaning in UIR"


_MISSING = "\0missing"


@dataclass(frozen=True, slots=True)
class Attr:
    """One UIR attribute and where it comes from.

    ``source`` is the ONNX attribute; ``operand`` the input that holds it in other opsets, moved
    to an attribute if the model fixes its value. ``default`` is what an opset without the
    attribute means; ``hide`` a value at which the attribute is left out.
    """

    source: str
    name: str = ""
    kind: Kind = Kind.PLAIN
    operand: int | None = None
    default: Attribute = _MISSING
    hide: Attribute = _MISSING

    @property
    def target(self) -> str:
        return self.name or self.source


@dataclass(slots=True)
class Draft:
    """A UIR node in the making."""

    op: str
    call: Call
    inputs: list[Tensor | None]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def put(self, name: str, value: Attribute, because: str | None = None) -> None:
        """Set an attribute; it counts as given if ``because`` (default: its own name) does."""
        self.attributes[name] = value
        if because is not None and because in self.given:
            self.given.add(name)

    def take(self, name: str) -> Attribute | None:
        """Remove an attribute and return it."""
        return self.attributes.pop(name, None)

    def ints(self, name: str) -> tuple[int, ...] | None:
        """A list attribute whose items are integers, or None if it is not there."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, tuple) or not all(type(item) is int for item in value):
            raise Misfit(f"{name} is not a list of integers")
        return cast("tuple[int, ...]", value)

    def int(self, name: str) -> int | None:
        """An integer attribute, or None if it is not there."""
        value = self.attributes.get(name)
        if value is not None and type(value) is not int:
            raise Misfit(f"{name} is not an integer")
        return value


Step = Callable[[Draft], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """What becomes of one ONNX operator: UIR name, attributes, and steps for the rest."""

    op: str
    attrs: tuple[Attr, ...] = ()
    steps: tuple[Step, ...] = ()


_LEGACY = "consumed_inputs"
"""An optimisation hint of opset 1, without meaning."""


def apply(entry: Entry, call: Call) -> Draft:
    """The UIR form of ``call``. Raises Misfit if it has none."""
    draft = Draft(entry.op, call, list(call.inputs))
    for attr in entry.attrs:
        _convey(attr, draft)
    for name, value in call.attributes.items():  # what no entry names is kept as it is
        if name != _LEGACY and not any(name == attr.source for attr in entry.attrs):
            draft.attributes[name] = value
            if name in call.given:
                draft.given.add(name)
    for step in entry.steps:
        step(draft)
    return draft


def _convey(attr: Attr, draft: Draft) -> None:
    """Give ``draft`` the attribute that ``attr`` describes, if the call has it."""
    call = draft.call
    value = call.attributes.get(attr.source)
    given = attr.source in call.given
    if value is None and attr.operand is not None and call.has(attr.operand):
        constant = call.constant(attr.operand)
        if constant is None:
            return
        operand = call.inputs[attr.operand]
        value = _from_array(attr, constant, None if operand is None else operand.type.dtype)
        draft.inputs[attr.operand] = None
        given = True
    if attr.kind is Kind.DROP:
        return
    if value is None:
        if attr.default is _MISSING:
            return
        value = attr.default
    elif (value := _read(attr, value, draft)) is None:
        return
    if value == attr.hide and type(value) is type(attr.hide):
        return
    draft.attributes[attr.target] = value
    if given:
        draft.given.add(attr.target)


def _from_array(attr: Attr, array: Array, dtype: str | None) -> Attribute:
    if attr.kind in (Kind.AXES, Kind.INTS, Kind.FLOATS):
        return scalars_of(array, dtype)
    if array.size != 1:
        raise Misfit(f"{attr.source} has {array.size} elements, not one")
    return scalars_of(array, dtype)[0]


def _read(attr: Attr, value: Attribute, draft: Draft) -> Attribute | None:
    """The value as UIR writes it, or None if it stands for an absent one."""
    match attr.kind:
        case Kind.FLAG:
            if type(value) is bool:
                return value
            if type(value) is not int:
                raise Misfit(f"{attr.source} is not a flag")
            return value != 0
        case Kind.DTYPE:
            return dtype_name(value)
        case Kind.AXIS:
            if type(value) is not int:
                raise Misfit(f"{attr.source} is not an integer")
            return axis_of(value, draft.call.type(0).rank)
        case Kind.AXES:
            return tuple(sorted(axes_of(whole(value, attr.source), draft.call.type(0).rank)))
        case Kind.INT:
            if type(value) is not int:
                raise Misfit(f"{attr.source} is not an integer")
            return value
        case Kind.INTS:
            return whole(value, attr.source)
        case Kind.FLOATS:
            if not isinstance(value, tuple):
                raise Misfit(f"{attr.source} is not a list")
            return value
        case _:
            return value


def dtype_name(value: Attribute) -> str | None:
    """The name of a ``TensorProto.DataType``, or of the names that the first opsets wrote."""
    code = CODE_OF_LEGACY_NAME.get(value.upper()) if isinstance(value, str) else value
    if code == 0:
        return None
    if type(code) is not int or code not in DTYPE_OF_CODE:
        raise Misfit(f"{value!r} is no element type that Reprise knows")
    return DTYPE_OF_CODE[code]


def whole(value: Attribute, name: str) -> tuple[int, ...]:
    """``value`` if it is a list of integers."""
    if not isinstance(value, tuple) or not all(type(item) is int for item in value):
        raise Misfit(f"{name} is not a list of integers")
    return cast("tuple[int, ...]", value)


def axis_of(axis: int, rank: int | None, end: int = 0) -> int:
    """``axis`` counted from the front if the rank is known. ``end``: 1 if the rank itself is
    allowed (a position between axes)."""
    if rank is None:
        return axis
    if not -rank <= axis < rank + end:
        raise Misfit(f"axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def axes_of(axes: Sequence[int], rank: int | None) -> tuple[int, ...]:
    """:func:`axis_of` for several axes, which must be different."""
    resolved = tuple(axis_of(axis, rank) for axis in axes)
    if len(set(resolved)) != len(resolved):
        raise Misfit(f"axes {list(axes)} repeat")
    return resolved


def extents_of(type: TensorType) -> tuple[Extent, ...]:
    """The shape; raises Misfit if not even the rank is known."""
    if type.shape is None:
        raise Misfit("its rank is not known")
    return type.shape


def known(extent: Extent) -> int | None:
    """A known extent, else None."""
    return extent if isinstance(extent, int) else None
