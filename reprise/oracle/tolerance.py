"""How far apart two results may be before it counts: by dtype and by how much was summed.

A difference counts when it exceeds the absolute *and* the relative bound (first paper, §4: 1e-3
and 1 %). Both bounds grow where the dtype cannot keep them: the rounding error of a sum of
``length`` terms is of the order of ``eps * sqrt(length)`` (:func:`rounding`), and bfloat16 alone
has an ``eps`` of 0.8 %.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import prod, sqrt

import ml_dtypes
import numpy as np

from reprise.uir.graph import Array, Graph, Node, Tensor


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The bounds for one output. ``strict_zero``: +0 and -0 are different values."""

    absolute: float = 0.0
    relative: float = 0.0
    strict_zero: bool = False

    def __str__(self) -> str:
        return f"{self.absolute:.3g} absolute and {self.relative:.3g} relative"


@dataclass(frozen=True, slots=True)
class Tolerances:
    """A policy: the paper's bounds, but never under ``steps`` units in the last place times what
    the sums behind the output add (:func:`rounding`)."""

    absolute: float = 1e-3
    relative: float = 1e-2
    steps: float = 4.0
    strict_zero: bool = False

    def bounds(self, dtype: np.dtype[np.generic], length: int = 1) -> Tolerance:
        """The tolerance for values of ``dtype`` that sum ``length`` terms. Integers, booleans and
        strings have none."""
        eps = epsilon(dtype)
        if eps == 0.0:
            return Tolerance(strict_zero=self.strict_zero)
        least = self.steps * rounding(eps, length)
        return Tolerance(max(self.absolute, least), max(self.relative, least), self.strict_zero)


PAPER = Tolerances()
TIGHT = Tolerances(absolute=0.0, relative=0.0, steps=64.0)
"""For precision bugs: a float64 result computed in float32 passes the paper's bounds, not these."""


def rounding(eps: float, length: int) -> float:
    """The relative error of a sum of ``length`` terms, in a dtype of this ``eps``. In half
    precision it grows up to 64 terms only: whoever adds more accumulates in single precision."""
    longest = 64 if eps > _HALF else length
    return eps * sqrt(min(max(length, 1), max(longest, 1)))


_HALF = 1e-4
"""Between the ``eps`` of the half and the single precisions."""


@cache
def epsilon(dtype: np.dtype[np.generic]) -> float:
    """The distance from 1 to the next value of ``dtype``; 0 for what is not floating-point."""
    try:
        return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, KeyError):
        return 0.0


def reduction_length(output: Tensor) -> int:
    """The most terms that one node upstream of ``output`` adds up into an element."""
    return max((terms(node) for node in upstream([output])), default=1)


def upstream(outputs: Iterable[Tensor]) -> list[Node]:
    """The nodes that ``outputs`` depend on, oldest first."""
    found: dict[int, Node] = {}
    pending = [t.producer for t in outputs]
    while pending:
        node = pending.pop()
        if node is None or node.id in found:
            continue
        found[node.id] = node
        pending += [t.producer for t in node.inputs if t is not None]
    return [found[key] for key in sorted(found)]


def terms(node: Node) -> int:
    """How many terms the node adds up into one element; 1 for what adds up none."""
    shapes = [_shape(t) for t in node.inputs]
    if "keepdims" in node.attributes:  # a reduction
        results = [prod(_shape(t)) for t in node.outputs if t is not None]
        return max(prod(shapes[0]) // max(results[0], 1), 1)
    match node.op:
        case "matmul" | "bmm" | "linear":
            return max(shapes[0][-1:], default=1)
        case "gemm":
            return max(shapes[0][0 if node.attributes.get("trans_a") else -1], 1)
        case "einsum" | "det":
            return max(max(map(prod, shapes), default=1), 1)
        case op if op.startswith("conv"):
            return max(prod(shapes[1][1:]), 1)
        case op if op.endswith(("softmax", "_norm")) or op.startswith("cum"):
            return max(max(shapes[0], default=1), 1)
        case op if "_pool" in op or op in ("lstm", "gru", "rnn", "attention"):
            return max(max(map(max, filter(None, shapes)), default=1), 1)
    return 1


def _shape(tensor: Tensor | None) -> tuple[int, ...]:
    shape = None if tensor is None else tensor.type.shape
    return tuple(e for e in shape if isinstance(e, int)) if shape else ()


def lengths(graph: Graph) -> tuple[int, ...]:
    """:func:`reduction_length` of each of the graph's outputs."""
    return tuple(reduction_length(output) for output in graph.outputs)


def tolerances_for(
    graph: Graph, outputs: Iterable[Array], policy: Tolerances = PAPER
) -> tuple[Tolerance, ...]:
    """A tolerance for each output of the graph."""
    pairs = zip(lengths(graph), outputs, strict=True)
    return tuple(policy.bounds(array.dtype, length) for length, array in pairs)
