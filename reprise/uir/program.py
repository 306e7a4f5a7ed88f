"""A test program: a graph together with a value for each of its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from reprise.uir.graph import Array, Graph


@dataclass(slots=True, eq=False)
class Program:
    """What a target is given. ``inputs`` has an array for each graph input, by name, of the
    input's dtype and shape; every extent of ``graph`` is known and every initializer has its
    value. ``name`` tells programs of a run apart (``s42-000017``: seed and number).
    """

    graph: Graph
    inputs: dict[str, Array] = field(default_factory=dict)
    name: str = ""
