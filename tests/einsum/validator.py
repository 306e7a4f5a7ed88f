"""When a JSON kernel is valid, written again: over plain documents, without rules and without any
code of Reprise. A kernel is valid if this returns an empty list."""

from __future__ import annotations

from collections import Counter
from typing import Any

COO = {"nonunique", "singleton"}


def problems(document: dict[str, Any], allowed: frozenset[str], most_indices: int) -> list[str]:
    """What is wrong with a kernel that may have what ``allowed`` names."""
    found: list[str] = []
    extents: dict[str, int] = document["extents"]
    output: list[str] = document["output"]["indices"]
    terms: list[list[dict[str, Any]]] = document["terms"]
    operands = [factor for term in terms for factor in term]

    def need(condition: bool, what: str) -> None:
        if not condition:
            found.append(what)

    need(len(set(output)) == len(output), "an index twice in the output")
    need(len(output) <= most_indices, "too many indices in the output")
    need(bool(output) or "scalars" in allowed, "a scalar output")
    need(len(terms) == 1 or "sums" in allowed, "several terms")
    everywhere = {index for operand in operands for index in operand["indices"]}
    need(set(output) <= everywhere, "an index of the output that is nowhere else")
    need(set(extents) == everywhere | set(output), "extents for other indices")
    for term in terms:
        count = Counter(i for factor in term for i in set(factor["indices"]))
        for index, times in count.items():
            lonely = index not in output and times < 2
            need(not lonely or "reductions" in allowed, f"{index} is summed over alone")
        if "broadcasts" not in allowed:
            need(set(output) <= set(count), "a term without an index of the output")
        for factor in term:
            indices = factor["indices"]
            need(len(indices) <= most_indices, "too many indices")
            need(bool(indices) or "scalars" in allowed, "a scalar")
            need(len(set(indices)) == len(indices) or "diagonals" in allowed, "a diagonal")
            others = {i for other in term if other is not factor for i in other["indices"]}
            outer = len(term) > 1 and indices and not set(indices) & others
            need(not outer or "outer_products" in allowed, "an outer product")
    for index, extent in extents.items():
        need(extent != 0 or "empty" in allowed, f"{index} is empty")
        need(extent != 1 or "units" in allowed, f"{index} is 1")
        need(extent >= 0, f"{index} is negative")
    shapes: dict[str, list[int]] = {}
    for operand in operands:
        shape = [extents[i] for i in operand["indices"]]
        if operand["tensor"] in shapes:
            need("repeated_tensors" in allowed, "a tensor twice")
            need(shapes[operand["tensor"]] == shape, "a tensor with two shapes")
        shapes[operand["tensor"]] = shape
    need(document["output"]["tensor"] not in shapes, "the output is read")
    ranks = {name: len(shape) for name, shape in shapes.items()}
    ranks[document["output"]["tensor"]] = len(output)
    for tensor in document["tensors"]:
        levels, order = tensor["levels"], tensor["order"]
        need(len(levels) == ranks[tensor["name"]], "as many levels as indices")
        need(sorted(order) == list(range(len(levels))), "an order of all levels")
        for outside, inside in zip([None, *levels], levels, strict=False):
            need(inside != "singleton" or outside in COO, "a singleton alone")
            need(outside != "nonunique" or inside == "singleton", "repeats for nothing")
    return found
