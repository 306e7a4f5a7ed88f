"""Values for the inputs of a program that came without any.

A wrong result shows on some values only: a lost sign of zero on negative zeros, a reduction that
starts from zero on rows that are all negative. So a program is run on several kinds of values.
Positions with a demand (an index into an axis; ``rules/std/values.rules``) get what they demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np

from reprise.lang.dtypes import DTYPES
from reprise.synth import values
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import Policy
from reprise.uir.graph import Array, Graph, Role, Tensor
from reprise.uir.types import numpy_dtype

KINDS = (
    *("ordinary", "extremes", "positive", "negative", "negative zero", "zero"),
    *("infinite", "minus infinity"),
)
"""In this order: what shows most defects first. "infinite": infinities of either sign, and NaN."""

_EXTREMES = (0.0, -0.0, 1e-9, -1e-9, 6e-8, -3e-8, 0.5, -0.5, 1.5, -2.5, 1e4, -1e4)
_INFINITE = (-np.inf, np.inf, np.nan, 1.0)


def input_sets(
    graph: Graph, policies: Mapping[str, Policy], rng: Random, runs: int
) -> Iterator[tuple[str, dict[str, Array]]]:
    """Values for all inputs, of up to ``runs`` kinds, with the kind's name. A graph without inputs
    has one set, the empty one. Kinds that do not fit (an index into nothing) are left out."""
    sources = [t for t in graph.tensors if t.role is Role.INPUT]
    for number in range(runs):
        kind = KINDS[number] if number < len(KINDS) else f"ordinary {number}"
        try:
            found = {t.name: value_of(graph, t, policies, rng, kind) for t in sources}
        except NoValue:
            continue
        yield kind, found
        if not sources:
            return


def fill_constants(graph: Graph, policies: Mapping[str, Policy], rng: Random) -> None:
    """Give ordinary values to the initializers whose values a text leaves open. Raises NoValue."""
    for tensor in graph.tensors:
        if tensor.role is Role.INITIALIZER and tensor.value is None:
            tensor.value = value_of(graph, tensor, policies, rng, "ordinary")


def value_of(
    graph: Graph, tensor: Tensor, policies: Mapping[str, Policy], rng: Random, kind: str
) -> Array:
    """Values for one source. Raises NoValue where its reader demands what cannot be had."""
    for node in graph.nodes:
        for position, operand in enumerate(node.inputs):
            if operand is not tensor or node.op not in policies:
                continue
            policy = policies[node.op]
            ask = policy.kind if kind.startswith("ordinary") else policy.demanded
            asked = ask(position, tensor.type.dtype)
            first, second = (*node.inputs, None, None)[:2]
            result = next((t for t in node.outputs if t is not None), None)
            if asked is not None and first is not None and result is not None:
                use = Use(
                    first.type,
                    node.attributes,
                    result.type,
                    None if second is None else second.type,
                )
                return values.of_kind(asked, rng, tensor.type, use)
    return _of_kind(tensor, rng, kind)


def _of_kind(tensor: Tensor, rng: Random, kind: str) -> Array:
    dtype = tensor.type.dtype or ""
    shape = tuple(e for e in tensor.type.shape or () if isinstance(e, int))
    to, family = numpy_dtype(dtype), DTYPES[dtype].kind
    if family == "string":
        return np.full(shape, "a", dtype=object)
    count = int(np.prod(shape, dtype=np.int64))
    if kind.startswith("ordinary"):
        return values.ordinary(rng, tensor.type)
    if family == "bool":
        return np.full(shape, kind in ("positive", "negative zero", "infinite"))
    match kind:
        case "extremes":
            drawn = [rng.choice(_EXTREMES) for _ in range(count)]
        case "infinite":
            drawn = [rng.choice(_INFINITE) for _ in range(count)]
        case "minus infinity":
            drawn = [-np.inf] * count
        case "positive" | "negative":
            sign = 1 if kind == "positive" else -1
            drawn = [sign * rng.uniform(1, 100) for _ in range(count)]
        case _:
            drawn = [-0.0 if kind == "negative zero" else 0.0] * count
    with np.errstate(all="ignore"):
        array = np.array(drawn, np.float64).reshape(shape)
        if family in ("int", "uint"):
            array = np.nan_to_num(array, nan=0.0, posinf=100.0, neginf=-100.0).clip(-100, 100)
            array = np.abs(array) if family == "uint" else array
        return array.astype(to)
