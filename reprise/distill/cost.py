"""Which of two programs is simpler. The order is total on costs and well-founded, so a reduction
that only ever goes down ends.

A cost is a tuple, compared from the left: nodes, outputs, sources, elements, empty extents, ranks,
attributes that are not at their default, attributes that are written out, their size, element
types, stored constants, values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from reprise.distill.flow import Flow, Source
from reprise.distill.forms import typed_steps, types_of
from reprise.distill.spelled import off_default, plain_given
from reprise.lang.dtypes import DTYPES
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Attribute, Scalar, TensorType

Cost = tuple[float, ...]

SIMPLE_DTYPES = ("float32", "int64", "bool", "int32", "float64", "float16", "int8", "uint8")
"""Element types, the simplest first; all others come after them."""

_VALUES = 4096
"""Of larger arrays, only so many elements count: nothing is gained by looking at all of them."""


def model_cost(flow: Flow) -> Cost:
    """The cost of a model with operators that are not known: only what its sources are counts."""
    types = {source.name: TensorType(source.dtype, source.shape) for source in flow.sources}
    return (*_structure_cost(flow, types), *_source_cost(flow))


def _source_cost(flow: Flow) -> Cost:
    """How many sources are stored, and how odd the values are."""
    stored = sum(1 for source in flow.sources if source.stored)
    return (stored, sum(value_cost(source) for source in flow.sources))


def _structure_cost(flow: Flow, types: Mapping[str, TensorType]) -> Cost:
    """The size of the graph, and of the tensors whose types are given."""
    empty, elements, ranks = 0, 0, 0
    for type in types.values():
        extents = [e for e in type.shape or () if isinstance(e, int)]
        empty += extents.count(0)
        # Nothing is odder than one or two of something.
        elements += math.prod(e or 2 for e in extents)
        ranks += len(extents)
    return (len(flow.steps), len(flow.outputs), len(flow.sources), elements, empty, ranks)


def uir_cost(flow: Flow, signatures: Signatures) -> Cost | None:
    """The whole cost of a program in UIR; None if it is no program."""
    typed = typed_steps(flow, signatures)
    if typed is None:
        return None
    types = types_of(flow, typed)
    off, given, size = 0, 0, 0.0
    for step, typing in zip(flow.steps, typed, strict=True):
        operands = [None if name is None else types[name] for name in step.inputs]
        signature = signatures[step.op]
        off += len(off_default(signature, operands, typing.attributes))
        given += len(plain_given(signature, step.given))
        size += sum(_size(value) for value in typing.attributes.values())
    kinds = sum(dtype_rank(type.dtype) for type in types.values())
    return (*_structure_cost(flow, types), off, given, size, kinds, *_source_cost(flow))


def dtype_rank(dtype: str | None) -> int:
    """How far an element type is from the simplest."""
    if dtype in SIMPLE_DTYPES:
        return SIMPLE_DTYPES.index(dtype)
    return len(SIMPLE_DTYPES) + list(DTYPES).index(dtype or "string")


def value_cost(source: Source) -> float:
    """How odd a source's values are: zeros are nothing, ones little, whole numbers more, fractions
    and what is no number most; different ones count besides."""
    flat = source.value.reshape(-1)[:_VALUES]
    if flat.dtype.kind in "OUS":
        return float(sum(len(str(item)) for item in flat))
    if flat.dtype.kind == "c":
        return float(4 * np.count_nonzero(flat)) + len(np.unique(flat))
    with np.errstate(all="ignore"):
        numbers = flat.astype(np.float64)
    finite = np.isfinite(numbers)
    whole = finite & (numbers == np.round(numbers))
    weights = np.full(numbers.shape, 8.0)
    weights[finite] = 6.0
    weights[whole] = 3.0 + np.log2(np.maximum(np.abs(numbers[whole]), 1.0)) / 32
    weights[numbers == 1] = 1.0
    weights[(numbers == 0) & ~np.signbit(numbers)] = 0.0
    weights[numbers < 0] += 1.0
    return float(weights.sum()) + len(np.unique(numbers.view(np.int64)))


def _size(value: Attribute) -> float:
    if isinstance(value, tuple):
        return 1 + sum(_size(item) for item in value)
    return _scalar_size(value)


def _scalar_size(value: Scalar) -> float:
    match value:
        case bool():
            return float(value)
        case str():
            return 0.0
        case _ if not math.isfinite(value):
            return 1e6
        case _:
            return min(abs(float(value)), 1e6) + (value < 0) + (0.5 if value != int(value) else 0)
