"""The unified intermediate representation: a typed data-flow graph.

A :class:`Graph` owns tensors and nodes. Both are numbered in one sequence in the order in which
they are created, so a node is always younger than the tensors it reads and its outputs follow it
immediately: the order on ids *is* the order of data flow (first paper, §3.2). What is not known
(a dynamic extent, an unknown rank, a dtype that inference could not find) is ``None``; it is
never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

Extent = int | str | None
"""A known extent, a symbolic one (its name; equal names are equal extents), or an unknown one."""

Scalar = int | float | str | bool
Attribute = Scalar | tuple[Scalar, ...]
Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape; ``None`` for what is unknown (``shape=None``: unknown rank)."""

    dtype: str | None
    shape: tuple[Extent, ...] | None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def elements(self) -> int | None:
        """Number of elements, or None if any extent is not a known number."""
        if self.shape is None:
            return None
        total = 1
        for extent in self.shape:
            if not isinstance(extent, int):
                return None
            total *= extent
        return total

    def __str__(self) -> str:
        extents = [] if self.shape is None else ["?" if e is None else str(e) for e in self.shape]
        dims = "..." if self.shape is None else ", ".join(extents)
        return f"{self.dtype or '?'}[{dims}]"


class Role(Enum):
    """Where a tensor's value comes from."""

    INPUT = "input"  # a graph input: known only at run time
    INITIALIZER = "initializer"  # stored in the model (Constant nodes become these)
    COMPUTED = "computed"  # a node's output
    BODY_INPUT = "body_input"  # a formal input of an If/Loop/Scan body


@dataclass(slots=True, eq=False)
class Tensor:
    """A value in the graph. ``value`` holds an initializer's data if it was loaded.

    ``overridable``: an initializer that is listed as a graph input too, so that the caller may
    replace it. ``kind`` is "tensor", or "sequence", "optional", "map", "sparse", "opaque" for the
    values of ONNX that are none; their type is unknown.
    """

    id: int
    name: str
    type: TensorType
    role: Role
    body: int = 0
    producer: Node | None = None
    value: Array | None = None
    overridable: bool = False
    kind: str = "tensor"


@dataclass(slots=True, eq=False)
class Body:
    """A sub-graph of a control-flow node: its id, formal inputs and outputs."""

    id: int
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor | None, ...] = ()


@dataclass(slots=True, eq=False)
class Node:
    """An operation. ``inputs`` holds None where an optional input is absent; trailing absences are
    dropped. ``given`` names the attributes that the source wrote out (the others hold defaults).
    ``body`` is the id of the (sub-)graph that the node belongs to, 0 for the main one."""

    id: int
    op: str
    name: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    attributes: dict[str, Attribute]
    given: frozenset[str] = frozenset()
    body: int = 0
    bodies: dict[str, Body] = field(default_factory=dict)


@dataclass(eq=False)
class Graph:
    """A program: tensors and nodes in order of creation, and what it was imported from.

    ``opsets`` maps a domain (``""`` is ONNX's own) to its version; empty for programs that do
    not come from ONNX. ``notes`` are an importer's remarks, a line each: what it could not find
    out, or had to put right.
    """

    name: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _next: int = 0
    _bodies: int = 0

    def add_input(
        self, name: str, type: TensorType, role: Role = Role.INPUT, body: int = 0
    ) -> Tensor:
        """Add a graph input (or, with ``role``, a body's formal input)."""
        return self._source(name, type, role, None, body)

    def add_initializer(
        self, name: str, type: TensorType, value: Array | None = None, body: int = 0
    ) -> Tensor:
        """Add a stored constant; ``value`` may be None where the data is not loaded."""
        return self._source(name, type, Role.INITIALIZER, value, body)

    def add_node(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[tuple[str, TensorType] | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        name: str = "",
        given: frozenset[str] = frozenset(),
        body: int = 0,
    ) -> Node:
        """Add a node that reads ``inputs`` and creates ``outputs`` (None: an output not asked for).

        Raises ValueError if an input is not of this graph or younger than the node.
        """
        trimmed = list(inputs)
        while trimmed and trimmed[-1] is None:
            trimmed.pop()
        for tensor in trimmed:
            if tensor is not None and tensor.id >= self._next:
                raise ValueError(f"{op}: input {tensor.name!r} is not older than the node")
        node = Node(self._take(), op, name, tuple(trimmed), (), dict(attributes or {}), given, body)
        made: list[Tensor | None] = []
        for output in outputs:
            if output is None:
                made.append(None)
                continue
            tensor = Tensor(self._take(), output[0], output[1], Role.COMPUTED, body, node)
            self.tensors.append(tensor)
            made.append(tensor)
        node.outputs = tuple(made)
        self.nodes.append(node)
        return node

    def mark(self) -> int:
        """The number that the next entity gets: a point to return to with :meth:`take_back`."""
        return self._next

    def take_back(self, mark: int) -> None:
        """Remove every tensor and node that was added since ``mark``."""
        while self.tensors and self.tensors[-1].id >= mark:
            self.tensors.pop()
        while self.nodes and self.nodes[-1].id >= mark:
            self.nodes.pop()
        self._next = mark

    def new_body(self) -> Body:
        """Reserve the id of a sub-graph; bodies are numbered from 1."""
        self._bodies += 1
        return Body(self._bodies)

    def entities(self) -> Iterator[Tensor | Node]:
        """Source tensors and nodes (each standing for its outputs too), oldest first."""
        sources: list[Tensor | Node] = [t for t in self.tensors if t.producer is None]
        return iter(sorted([*sources, *self.nodes], key=lambda e: e.id))

    def _source(
        self, name: str, type: TensorType, role: Role, value: Array | None, body: int
    ) -> Tensor:
        tensor = Tensor(self._take(), name, type, role, body, None, value)
        self.tensors.append(tensor)
        return tensor

    def _take(self) -> int:
        taken = self._next
        self._next += 1
        return taken
