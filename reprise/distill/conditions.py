"""What can be said of one place of a graph: terms, and conditions on them.

A *place* gives the names of a pattern to nodes and tensors of a concrete program. A *term* is
something that can be read there (an extent, an attribute, how often a tensor is read); a
*condition* says something of one or two terms. All are values: hashable, equal by content, sorted
by their text, and each can be evaluated by itself. The text of a condition is one of the rule
language's, and evaluates to the same there (the tests compare the two).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeGuard

from reprise.facts.facts import entity_facts, shape_text
from reprise.lang.core import Value
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Attribute, Graph, Node, Role, Tensor

Number: TypeAlias = int | float


class Surroundings:
    """What conditions ask of a graph as a whole: who reads what, what is constant, what is near.

    As ``rules/std/flow.rules`` defines it, for graphs without bodies and random operators.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs = {tensor.id for tensor in graph.outputs}
        self.readers: dict[int, list[Node]] = {tensor.id: [] for tensor in graph.tensors}
        self.varies: set[int] = set()
        for tensor in graph.tensors:
            if tensor.role in (Role.INPUT, Role.BODY_INPUT) or tensor.overridable:
                self.varies.add(tensor.id)
        for node in graph.nodes:
            operands = [t for t in node.inputs if t is not None]
            for tensor in operands:
                self.readers[tensor.id].append(node)
            if any(t.id in self.varies for t in operands):
                self.varies.update(t.id for t in node.outputs if t is not None)
        self._upstream: dict[int, frozenset[str]] = {}
        self._downstream: dict[int, frozenset[str]] = {}
        self._values: dict[int, dict[str, Value]] = {}

    def near(self, where: str, tensor: Tensor) -> frozenset[str]:
        """The operators that are ``where`` (user, producer, downstream, upstream) of a tensor."""
        match where:
            case "user":
                return frozenset(node.op for node in self.readers[tensor.id])
            case "producer":
                return frozenset(() if tensor.producer is None else (tensor.producer.op,))
            case "downstream":
                return self._reached(tensor, True)
            case "upstream":
                return self._reached(tensor, False)
            case _:
                raise ValueError(where)

    def values(self, tensor: Tensor) -> Mapping[str, Value]:
        """What is known of the elements of a stored tensor: ``value_min`` … as ``facts`` has them;
        ``value_at`` of the flattened elements as ``value_at 3``."""
        known = self._values.get(tensor.id)
        if known is None:
            known = self._values[tensor.id] = {}
            if tensor.role is Role.INITIALIZER:
                for relation, row in entity_facts(tensor):
                    if relation == "value_at":
                        known[f"{relation} {row[1]}"] = row[2]
                    elif relation.startswith("value_"):
                        known[relation] = row[1] if len(row) > 1 else "true"
        return known

    def _reached(self, tensor: Tensor, forward: bool) -> frozenset[str]:
        known = self._downstream if forward else self._upstream
        found = known.get(tensor.id)
        if found is None:
            ops: set[str] = set()
            maker = [] if tensor.producer is None else [tensor.producer]
            for node in self.readers[tensor.id] if forward else maker:
                ops.add(node.op)
                for further in node.outputs if forward else node.inputs:
                    if further is not None:
                        ops |= self._reached(further, forward)
            found = known[tensor.id] = frozenset(ops)
        return found


@dataclass(frozen=True)
class Place:
    """A pattern's names, given to nodes and tensors of a graph. The name of a node is that of its
    first result too."""

    around: Surroundings = field(repr=False, compare=False)
    nodes: Mapping[str, Node]
    tensors: Mapping[str, Tensor]

    @property
    def graph(self) -> Graph:
        return self.around.graph

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ids of the nodes, by name: what ``reprise.patterns`` calls a finding's nodes."""
        return {name: node.id for name, node in self.nodes.items()}


@dataclass(frozen=True, slots=True)
class Term:
    """Something to be read at a place.

    ======== ======== ======================= ======================================
    kind     ``of``   ``key``, ``index``
    ======== ======== ======================= ======================================
    dtype    a tensor
    rank     a tensor
    dim      a tensor ``index``: the axis, also from the end
    axis     a tensor ``key``: ``n.axis``     the extent of the axis that an attribute names
    numel    a tensor
    shape    a tensor                         as text: "2x3"; to compare
    fanout   a tensor
    value    a tensor                         of all its elements, if they are equal
    min, max a tensor                         of its elements
    at       a tensor ``index``: the element
    attr     a node   ``key``: its name
    item     a node   ``key``, ``index``      of a list attribute
    len      a node   ``key``                 of a list attribute
    opset    (empty)                          of ONNX's own domain
    ======== ======== ======================= ======================================
    """

    kind: str
    of: str = ""
    key: str = ""
    index: int = 0

    def __str__(self) -> str:
        match self.kind:
            case "dim" | "at":
                return f"{self.of}.{self.kind}[{self.index}]"
            case "axis":
                return f"{self.of}.dim[{self.key}]"
            case "fanout":
                return f"fanout({self.of})"
            case "attr":
                return f"{self.of}.{self.key}"
            case "item":
                return f"{self.of}.{self.key}[{self.index}]"
            case "len":
                return f"len({self.of}.{self.key})"
            case "opset":
                return 'opset("")'
            case _:
                return f"{self.of}.{self.kind}"

    def read(self, place: Place) -> Attribute | None:
        """Its value; None where there is none, or it is not known before the program runs."""
        if self.kind == "opset":
            return place.graph.opsets.get("", place.graph.opsets.get("ai.onnx"))
        if self.kind in ("attr", "item", "len"):
            node = place.nodes.get(self.of)
            return None if node is None else self._of_node(node)
        tensor = place.tensors.get(self.of)
        if tensor is None:
            return None
        if self.kind == "axis":
            line, _, attribute = self.key.partition(".")
            axis = Term("attr", line, attribute).read(place)
            if not isinstance(axis, int) or isinstance(axis, bool):
                return None
            return Term("dim", self.of, "", axis).read(place)
        return self._of_tensor(tensor, place.around)

    def _of_node(self, node: Node) -> Attribute | None:
        value = node.attributes.get(self.key)
        if self.kind == "attr" or value is None:
            return value
        if not isinstance(value, tuple):
            return None
        if self.kind == "len":
            return len(value)
        return value[self.index] if -len(value) <= self.index < len(value) else None

    def _of_tensor(self, tensor: Tensor, around: Surroundings) -> Attribute | None:
        type = tensor.type
        match self.kind:
            case "dtype":
                return type.dtype
            case "rank":
                return type.rank
            case "numel":
                return type.elements
            case "shape":
                return shape_text(type)
            case "dim":
                if type.shape is None or not -len(type.shape) <= self.index < len(type.shape):
                    return None
                extent = type.shape[self.index]
                return extent if isinstance(extent, int) else None
            case "fanout":
                return len(around.readers[tensor.id])
            case "value":
                return around.values(tensor).get("value_all")
            case "min" | "max":
                return around.values(tensor).get(f"value_{self.kind}")
            case "at":
                return around.values(tensor).get(f"value_at {self.index}")
            case _:
                raise ValueError(self.kind)


@dataclass(frozen=True, slots=True)
class Within:
    """A number within bounds, both included; None: no bound. Equal bounds ask for that number."""

    term: Term
    low: Number | None
    high: Number | None

    def __str__(self) -> str:
        low, high = self.low, self.high
        if low is not None and high is not None:
            if same(low, high):
                return f"{self.term} == {literal(low)}"
            return f"{literal(low)} <= {self.term} <= {literal(high)}"
        if low is not None:
            return f"{self.term} >= {literal(low)}"
        assert high is not None, "a range without bounds says nothing"
        return f"{self.term} <= {literal(high)}"

    def holds(self, place: Place) -> bool:
        value = self.term.read(place)
        return is_number(value) and self.admits(value)

    def admits(self, value: Number) -> bool:
        if self.low is not None and self.high is not None and same(self.low, self.high):
            return same(value, self.low)
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.term.of,))


@dataclass(frozen=True, slots=True)
class Among:
    """A value that is one of some, or (``negated``) none of them. ``label``: the set of the rule
    library that they are, printed in their place."""

    term: Term
    values: tuple[Attribute, ...]
    negated: bool = False
    label: str = ""

    def __str__(self) -> str:
        if self.label:
            return f"{self.term} {'not in' if self.negated else 'in'} {self.label}"
        if len(self.values) == 1:
            return f"{self.term} {'!=' if self.negated else '=='} {literal(self.values[0])}"
        members = ", ".join(literal(value) for value in self.values)
        return f"{self.term} {'not in' if self.negated else 'in'} {{{members}}}"

    def holds(self, place: Place) -> bool:
        value = self.term.read(place)
        return value is not None and self.admits(value)

    def admits(self, value: Attribute) -> bool:
        return any(same(value, member) for member in self.values) != self.negated

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.term.of,))


@dataclass(frozen=True, slots=True)
class Related:
    """``left op right + offset``; ``op`` is one of ``== != < <= > >=``."""

    left: Term
    op: str
    right: Term
    offset: int = 0

    def __str__(self) -> str:
        more = "" if self.offset == 0 else f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        return f"{self.left} {self.op} {self.right}{more}"

    def holds(self, place: Place) -> bool:
        left, right = self.left.read(place), self.right.read(place)
        if left is None or right is None:
            return False
        if self.offset and isinstance(right, int | float):
            right = right + self.offset
        if self.op in ("==", "!="):
            return same(left, right) == (self.op == "==")
        if not (is_number(left) and is_number(right)):
            return False
        match self.op:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case _:
                return left >= right

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.left.of, self.right.of))


@dataclass(frozen=True, slots=True)
class Divisible:
    """A multiple of ``by``, or (``negated``) none."""

    term: Term
    by: int
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.term} % {self.by} {'!=' if self.negated else '=='} 0"

    def holds(self, place: Place) -> bool:
        value = self.term.read(place)
        return isinstance(value, int) and (value % self.by == 0) != self.negated

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.term.of,))


@dataclass(frozen=True, slots=True)
class Holds:
    """A relation of the library about a tensor (``initializer``, ``constant``,
    ``derived_constant``, ``graph_input``, ``varies``, ``graph_output``, ``has_nan``, ``has_inf``,
    ``has_negzero``, ``integral``), about a node's attribute ``key`` (``attr``: it is there;
    ``identity``: it is the list 0, 1, 2, …), or about its result number ``key`` (``output``: it is
    asked for)."""

    relation: str
    of: str
    key: str = ""
    negated: bool = False

    def __str__(self) -> str:
        start = "not " if self.negated else ""
        if self.relation in ("attr", "output"):
            return f"{start}{self.relation}({self.of}, {self.key}, _)"
        return f"{start}{self.relation}({self.of}{f', {self.key}' if self.key else ''})"

    def holds(self, place: Place) -> bool:
        if self.key:
            node = place.nodes.get(self.of)
            return node is not None and self._of_node(node) != self.negated
        tensor = place.tensors.get(self.of)
        if tensor is None:
            return False
        if self.relation in VALUE_RELATIONS and tensor.role is not Role.INITIALIZER:
            return False  # not known, whichever way one asks
        return self._of_tensor(tensor, place.around) != self.negated

    def _of_node(self, node: Node) -> bool:
        if self.relation == "output":
            number = int(self.key)
            return number < len(node.outputs) and node.outputs[number] is not None
        value = node.attributes.get(self.key)
        if self.relation == "attr":
            return value is not None
        return isinstance(value, tuple) and all(
            same(item, number) for number, item in enumerate(value)
        )

    def _of_tensor(self, tensor: Tensor, around: Surroundings) -> bool:
        varies = tensor.id in around.varies
        match self.relation:
            case "initializer":
                return tensor.role is Role.INITIALIZER
            case "graph_input":
                return tensor.role is Role.INPUT
            case "varies":
                return varies
            case "constant":
                return not varies
            case "derived_constant":
                return not varies and tensor.role is not Role.INITIALIZER
            case "graph_output":
                return tensor.id in around.outputs
            case _:
                return VALUE_RELATIONS[self.relation] in around.values(tensor)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.of,))


VALUE_RELATIONS = {
    "has_nan": "value_nan",
    "has_inf": "value_inf",
    "has_negzero": "value_negzero",
    "integral": "value_integral",
}
"""Relations about the elements of a stored tensor, and the facts behind them."""


@dataclass(frozen=True, slots=True)
class Near:
    """Some operator that is ``where`` (``user``, ``producer``, ``downstream``, ``upstream``) of a
    tensor is one of ``ops``; or (``negated``) none is. ``label``: as in :class:`Among`."""

    where: str
    of: str
    ops: tuple[str, ...]
    negated: bool = False
    label: str = ""

    def __str__(self) -> str:
        start = "not " if self.negated else ""
        ops = self.label or "{" + ", ".join(self.ops) + "}"
        return f"{start}{self.where}({self.of}) in {ops}"

    def holds(self, place: Place) -> bool:
        tensor = place.tensors.get(self.of)
        if tensor is None:
            return False
        return (not place.around.near(self.where, tensor).isdisjoint(self.ops)) != self.negated

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.of,))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Two names stand for different tensors."""

    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} != {self.right}"

    def holds(self, place: Place) -> bool:
        left, right = place.tensors.get(self.left), place.tensors.get(self.right)
        return left is not None and right is not None and left is not right

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.left, self.right))


Condition: TypeAlias = Within | Among | Related | Divisible | Holds | Near | Distinct


def holds_all(conditions: Iterable[Condition], place: Place) -> bool:
    """Whether all of them hold."""
    return all(condition.holds(place) for condition in conditions)


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is an int or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(left: Attribute, right: Attribute) -> bool:
    """Equality as conditions have it: 1 and 1.0 are the same number, and true is none."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if is_number(left) and is_number(right):
        return left == right
    return type(left) is type(right) and left == right


def literal(value: Attribute) -> str:
    """A value as source text."""
    match value:
        case tuple():
            return "[" + ", ".join(map(literal, value)) + "]"
        case bool():
            return "true" if value else "false"
        case str() if value in DTYPES:
            return value
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case float():
            text = repr(value)
            return text if "." in text or "e" in text or "n" in text else f"{text}.0"
        case _:
            return str(value)
