"""The most specific draft: all that can be said of the program that one begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reprise.distill.conditions import Among, Condition, Holds, Place, Term, Within, is_number
from reprise.distill.draft import Draft, DraftNode
from reprise.uir.graph import Attribute, Role


def specific(
    draft: Draft, place: Place, results_of: Callable[[str], int] = lambda op: 1
) -> list[Condition]:
    """What a draft of a program says of it to begin with: each thing once, as exactly as it can.
    ``results_of``: how many results an operator has."""
    found: list[Condition] = []
    for line in draft.nodes:
        for key, value in _declared(place, line):
            term = Term("attr", line.name, key)
            exact = Within(term, value, value) if is_number(value) else Among(term, (value,))
            found.append(exact)
        node = place.nodes[line.name]
        for number in range(1, results_of(line.ops[0])):
            there = number < len(node.outputs) and node.outputs[number] is not None
            found.append(Holds("output", line.name, str(number), negated=not there))
    for tensor in draft.sources:
        found += source_conditions(tensor, place)
    for tensor in draft.tensors:
        at = place.tensors[tensor]
        count = len(place.around.readers[at.id])
        found.append(Within(Term("fanout", tensor), count, count))
        if at.role is Role.COMPUTED:
            found.append(Holds("graph_output", tensor, negated=at.id not in place.around.outputs))
    found += (Within(rank, 0, 0) for rank in scalar_ranks(draft, place))
    opset = Term("opset").read(place)
    if isinstance(opset, int):
        found.append(Within(Term("opset"), opset, opset))
    return found


def scalar_ranks(draft: Draft, place: Place) -> list[Term]:
    """The ranks of results that are scalars though what they are made from is not: said of a
    reduction, it stands for as many axes as its operand happens to have."""
    return [
        Term("rank", line.name)
        for line in draft.nodes
        if place.tensors[line.name].type.rank == 0
        and any(place.tensors[name].type.rank for name in line.reads)
    ]


def _declared(place: Place, line: DraftNode) -> Iterator[tuple[str, Attribute]]:
    """A node's attributes that are no other spelling of another one."""
    node = place.nodes[line.name]
    both = {"axis": "axes", "stride": "strides", "pad": "pads", "dilation": "dilations"}
    both |= {"kernel_size": "kernel"}
    for key, value in sorted(node.attributes.items()):
        if both.get(key) not in node.attributes:
            yield key, value


def source_conditions(tensor: str, place: Place) -> list[Condition]:
    """Element type, rank, extents, where the value comes from, and the value if it is stored."""
    at = place.tensors[tensor]
    found: list[Condition] = []
    if at.type.dtype is not None:
        found.append(Among(Term("dtype", tensor), (at.type.dtype,)))
    if at.type.shape is not None:
        found.append(Within(Term("rank", tensor), len(at.type.shape), len(at.type.shape)))
        for axis, extent in enumerate(at.type.shape):
            if isinstance(extent, int):
                found.append(Within(Term("dim", tensor, "", axis), extent, extent))
    if at.role is Role.INITIALIZER:
        found.append(Holds("initializer", tensor))
        for kind in ("value", "min", "max"):
            value = Term(kind, tensor).read(place)
            if value is not None:
                term = Term(kind, tensor)
                found.append(
                    Within(term, value, value) if is_number(value) else Among(term, (value,))
                )
                if kind == "value":
                    break
    elif at.role is Role.INPUT:
        found.append(Holds("graph_input", tensor))
    return found
