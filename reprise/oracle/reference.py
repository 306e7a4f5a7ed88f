"""The numpy reference in three readings: native precision, float64, and float64 with noise.

The noisy reading stands for what any honest compiler may do: each operation that rounds is
disturbed by about one unit in the last place of the tensor's *own* dtype (more for sums), each
input and initializer that is not whole by one. Where the noisy readings scatter, the program
amplifies rounding: it is ill-conditioned there, or a discrete operator (floor, a comparison,
argmax, a cast) sits on its step. No table of discrete operators is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from reprise.oracle.compare import is_float, widened
from reprise.oracle.tolerance import epsilon, rounding, terms, upstream
from reprise.uir.graph import Array, Graph, Node, Role, Tensor, TensorType
from reprise.uir.semantics import (
    KERNELS,
    WIDENED,
    Cause,
    SemanticsError,
    UndefinedError,
    apply,
    evaluate_all,
    fragile_nodes,
)
from reprise.uir.types import numpy_dtype


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_EXACT = names(
    "abs neg relu relu6 maximum minimum max_n min_n max min clip hard_tanh floor ceil round trunc "
    "sign thresholded_relu max_pool1d max_pool2d max_pool3d full constant_of_shape"
)
"""Operators that choose or move values; those whose kernel ``moves`` elements besides."""
_CHOOSES_ZEROS = names("maximum minimum max_n min_n max min clip")
"""Either zero may come out where both compare equal."""
_EXACT_IF_REPRESENTABLE = names(
    "add sub mul square sum sum_n matmul bmm linear gemm einsum cumsum cast conv1d conv2d conv3d "
    "sqrt pad"
)
"""Sums and products of whole numbers come out the same in any order. Not so division (compilers
multiply by the reciprocal) or ``pow`` and ``exp`` (libraries differ)."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Where the noisy readings of one output went. ``radius``: the farthest from the float64
    reading, for each element; infinite where NaN or an infinity came or went. For integers and
    booleans any movement counts as infinite."""

    radius: npt.NDArray[np.float64]

    @property
    def unstable(self) -> npt.NDArray[np.bool_]:
        return ~np.isfinite(self.radius)


class Reference:
    """One program's reference results. Nothing is computed before it is asked for.

    The properties raise SemanticsError if some operator has no reference semantics.
    """

    def __init__(self, graph: Graph, inputs: Mapping[str, Array]) -> None:
        self.graph = graph
        self.inputs = inputs

    @cached_property
    def native_values(self) -> dict[int, Array]:
        """Every tensor's value in its own precision."""
        return evaluate_all(self.graph, self.inputs)

    @cached_property
    def wide_values(self) -> dict[int, Array]:
        """Every tensor's value, floats in float64."""
        return evaluate_all(self.graph, self.inputs, widen=True)

    @property
    def native(self) -> tuple[Array, ...]:
        return tuple(self.native_values[t.id] for t in self.graph.outputs)

    @property
    def wide(self) -> tuple[Array, ...]:
        return tuple(self.wide_values[t.id] for t in self.graph.outputs)

    @cached_property
    def causes(self) -> dict[int, dict[int, Cause]]:
        """What is implementation-defined, in either reading: by node and output, why."""
        found = fragile_nodes(self.graph, self.wide_values)
        for node, causes in fragile_nodes(self.graph, self.native_values).items():
            found[node] = {**found.get(node, {}), **causes}
        return found

    @cached_property
    def undefined(self) -> dict[int, Cause]:
        """Tensors that hold, or depend on, implementation-defined values; by id, and why. Not the
        signs of zeros: the noisy readings flip those where either may come out."""
        tainted: dict[int, Cause] = {}
        for node in self.graph.nodes:
            own = self.causes.get(node.id, {})
            inherited = next(
                (tainted[t.id] for t in node.inputs if t is not None and t.id in tainted), None
            )
            for position, tensor in enumerate(node.outputs):
                cause = own.get(position)
                reason = inherited if cause is None or cause is Cause.SIGNED_ZERO else cause
                if tensor is not None and reason is not None:
                    tainted[tensor.id] = reason
        return tainted

    def undefined_outputs(self) -> dict[int, Cause]:
        """Graph outputs by number that no oracle should judge, and why."""
        outputs = enumerate(self.graph.outputs)
        return {i: self.undefined[t.id] for i, t in outputs if t.id in self.undefined}

    def scatter(self, samples: int, random: np.random.Generator) -> tuple[Scatter, ...]:
        """How far ``samples`` noisy readings are from the float64 reading. Every other one has the
        noise fourfold, to find steps that are a little farther away; what moves in proportion to
        the noise is scaled back."""
        centre = self.wide
        radii = [np.zeros(value.shape) for value in centre]
        for number in range(samples):
            scale = 4.0 if number % 2 else 1.0
            noisy = noisy_values(self.graph, self.inputs, random, scale)
            for i, tensor in enumerate(self.graph.outputs):
                radii[i] = np.maximum(radii[i], distance(noisy[tensor.id], centre[i]) / scale)
        return tuple(Scatter(radius) for radius in radii)


def distance(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """Element by element: 0 for equal values (NaN and NaN, infinities of one sign), infinite if
    one is not finite, for integers and everything exact if they differ at all."""
    if a.shape != b.shape:
        return np.full(b.shape, np.inf)
    if not (is_float(a.dtype) and is_float(b.dtype)):
        return np.asarray(np.where(a == b, 0.0, np.inf))
    x, y = widened(a), widened(b)
    with np.errstate(all="ignore"):
        gap = np.asarray(np.abs(x - y), np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.asarray(np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap)))


def in_range(value: Array, dtype: np.dtype[Any]) -> Array:
    """A float64 reading as a tensor of ``dtype`` would hold it, but not rounded: what overflows
    there is infinite."""
    if not is_float(value.dtype) or not is_float(dtype) or dtype.kind == "c":
        return value
    with np.errstate(all="ignore"):
        narrow = widened(value.astype(dtype))
    return np.asarray(np.where(np.isfinite(narrow), value, narrow))


def perturbed(values: Array, random: np.random.Generator) -> Array:
    """Each finite, non-integral value moved to one of its neighbours. Whole numbers are taken to
    be meant: a floor of exactly 3 is 3 in every implementation."""
    eps = epsilon(values.dtype)
    if eps == 0.0 or values.dtype.kind == "c":
        return values
    direction = random.integers(0, 2, values.shape) * 2.0 - 1.0
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        towards = (wide + direction * np.abs(wide)).astype(values.dtype)
        moved = np.nextafter(values, towards)
        keep = ~np.isfinite(wide) | (wide == np.rint(wide)) | ~np.isfinite(widened(moved))
    return np.asarray(np.where(keep, values, moved).astype(values.dtype))


def perturbed_inputs(inputs: Mapping[str, Array], random: np.random.Generator) -> dict[str, Array]:
    """All inputs by :func:`perturbed`."""
    return {name: perturbed(value, random) for name, value in inputs.items()}


def noisy_values(
    graph: Graph, inputs: Mapping[str, Array], random: np.random.Generator, scale: float = 1.0
) -> dict[int, Array]:
    """Every tensor's value, computed in float64, disturbed by ``scale`` rounding errors of its own
    dtype, and rounded to it."""
    values: dict[int, Array] = {}
    for tensor in graph.tensors:
        if tensor.producer is None and tensor.role is not Role.BODY_INPUT:
            value = tensor.value
            if tensor.role is Role.INPUT or tensor.overridable:
                value = inputs.get(tensor.name, value)
            if value is None:
                raise SemanticsError("input", f"{tensor.name!r} has no value")
            value = perturbed(np.asarray(value), random)
            values[tensor.id] = value.astype(np.float64) if _widens(tensor) else value
    for node in graph.nodes:
        if node.body:
            continue
        for tensor, result in _results(node, values):
            values[tensor.id] = _disturbed(node, tensor, result, random, scale)
    return values


def _results(node: Node, values: Mapping[int, Array]) -> Iterator[tuple[Tensor, Array]]:
    """The node's outputs from widened operands (`bitcast` and text need the declared types)."""
    if node.op not in KERNELS:
        raise UndefinedError(node.op, "no reference semantics")
    made = [t.type for t in node.outputs if t is not None]
    literal = node.op == "bitcast" or any(t.dtype == "string" for t in made)
    operands = [None if t is None else values[t.id] for t in node.inputs]
    if literal:
        operands = [
            o if t is None or o is None else o.astype(numpy_dtype(t.type.dtype or "float64"))
            for t, o in zip(node.inputs, operands, strict=True)
        ]
    types = [
        TensorType(None, None)
        if t is None
        else TensorType("float64" if _widens(t) and not literal else t.type.dtype, t.type.shape)
        for t in node.outputs
    ]
    for tensor, result in zip(
        node.outputs, apply(node.op, operands, node.attributes, types), strict=True
    ):
        if tensor is not None:
            yield tensor, result.astype(np.float64) if _widens(tensor) else result


def _widens(tensor: Tensor) -> bool:
    return tensor.type.dtype in WIDENED


def _disturbed(
    node: Node, tensor: Tensor, result: Array, random: np.random.Generator, scale: float
) -> Array:
    """The value with a rounding error of its declared dtype, where the operator makes one. It is
    then rounded to that dtype: on its grid, values meet (`sum(softmax(x)) == 1`) that in float64
    never do."""
    if not _widens(tensor):
        return result
    value: Any = result
    if node.op in _EXACT or KERNELS[node.op].moves:
        if node.op in _CHOOSES_ZEROS:
            flip = (value == 0) & (random.integers(0, 2, value.shape) == 1)
            return np.asarray(np.where(flip, -value, value))
        return result
    dtype = numpy_dtype(tensor.type.dtype or "float64")
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    size = scale * rounding(float(info.eps), terms(node))
    with np.errstate(all="ignore"):
        noise = size * np.abs(value) * random.uniform(-1, 1, value.shape)
        noise += float(info.smallest_subnormal) * random.uniform(-1, 1, value.shape)
        keep = (value == 0) | ~np.isfinite(value)
        if node.op in _EXACT_IF_REPRESENTABLE:
            keep |= value.astype(dtype).astype(np.float64) == value
        rounded = (value + noise).astype(dtype).astype(np.float64)
        return np.asarray(np.where(keep, value, rounded))


def selects(outputs: Sequence[Tensor]) -> bool:
    """Whether ``outputs`` depend on an operator that chooses positions: rounding then changes an
    order, which has no direction."""
    return any(node.op in _SELECTIONS for node in upstream(outputs))


def steps(outputs: Sequence[Tensor]) -> bool:
    """Whether ``outputs`` depend on an operator that makes a whole step of a rounding error."""
    return any(
        node.op in _STEPS or (node.op == "cast" and not any(map(_widens_any, node.outputs)))
        for node in upstream(outputs)
    )


def _widens_any(tensor: Tensor | None) -> bool:
    return tensor is not None and _widens(tensor)


_SELECTIONS = names(
    "argmax argmin topk sort argsort hardmax unique non_zero compress non_max_suppression"
)
_STEPS = names(
    "floor ceil round trunc sign floor_div remainder mod equal not_equal less less_equal greater "
    "greater_equal quantize_linear dynamic_quantize_linear thresholded_relu shrink"
)
