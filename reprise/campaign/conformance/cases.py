"""Programs of one node, with what they should compute: the questions that all targets are asked.

Comes in: an operator, its main element type, a number. Goes out: a :class:`Case`. Cases go round
in four kinds: ordinary values; zeros of both signs, denormals and the extremes of integers among
them; infinities and NaN too; empty tensors. A case follows from its name alone, so that every
target gets the same ones, whatever the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import ml_dtypes
import numpy as np

from reprise.campaign.conformance.matrix import EMPTY, FINITE, KINDS, NON_FINITE, ORDINARY
from reprise.data import data_path
from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.lang.ruleset import load_rules
from reprise.lang.symbols import suggest
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth import values
from reprise.synth.options import OptionsError
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import read_policies
from reprise.uir.graph import Array, Attribute, Graph, Node, Tensor, TensorType
from reprise.uir.inference import Typing
from reprise.uir.program import Program
from reprise.uir.semantics import KERNELS, Cause, SemanticsError, causes, evaluate

MAIN = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
"""The element types that the matrix has: those that the generator uses."""

_SHAPES = Shapes((1, 2, 2, 3, 3, 4, 5), (0, 1, 1, 2, 2, 3, 3, 4))
_EMPTY = Shapes((0, 0, 1, 2, 3), (1, 1, 2, 2, 3, 3, 4))
_SMALL = Shapes((1, 1, 1, 2), (0, 1, 1, 2, 3))
_SMALL_EMPTY = Shapes((0, 1, 1), (1, 1, 2, 3))
_TRIES = 200
"""How often an instance is drawn until it is empty, means something, and has values."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A program of one node and what it computes by our semantics. ``fragile``: outputs, by number,
    with implementation-defined values; ``broken``: why our semantics have no answer."""

    program: Program
    expected: tuple[Array, ...]
    fragile: Mapping[int, Cause]
    broken: str = ""

    @property
    def node(self) -> Node:
        """The node."""
        return self.program.graph.nodes[0]

    @property
    def operands(self) -> tuple[TensorType | None, ...]:
        """The operands' types."""
        return tuple(None if t is None else t.type for t in self.node.inputs)

    @property
    def size(self) -> int:
        """How many elements the operands have."""
        return sum(array.size for array in self.program.inputs.values())

    @property
    def bytes(self) -> bytes:
        """What tells it from other cases."""
        arrays = (array.tobytes() for array in self.program.inputs.values())
        return b"".join([str(self).encode(), *arrays])

    def __str__(self) -> str:
        parts = ["_" if type is None else str(type) for type in self.operands]
        parts += [f"{k}={_shown(v)}" for k, v in sorted(self.node.attributes.items())]
        text = f"{self.node.op}({', '.join(parts)})"
        if 0 < self.size <= 8:
            shown = ", ".join(str(a.tolist()) for a in self.program.inputs.values())
            text += f" of {shown}"
        return text


class Cases:
    """Draws cases. ``seed``: other cases."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.signatures = Signatures.load()
        self.policies = read_policies(load_rules([data_path("rules/std")]))

    @property
    def operators(self) -> list[str]:
        """Every operator that has reference semantics, sorted."""
        return sorted(name for name in self.signatures if name in KERNELS)

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The operators called ``names`` (operators or categories), or all. Raises OptionsError."""
        if not names:
            return self.operators
        known = self.operators
        categories = {self.signatures[op].category for op in known}
        for name in names:
            if name not in known and name not in categories:
                hint = suggest(name, [*known, *categories]) or "see docs/operators.md"
                raise OptionsError(f"no operator with reference semantics is `{name}`: {hint}")
        wanted = set(names)
        return [op for op in known if {op, self.signatures[op].category} & wanted]

    def of(self, op: str, dtypes: Sequence[str] = MAIN) -> dict[str, Drawing]:
        """What draws an operator's cases, by main element type."""
        drawings = {}
        for dtype in dtypes:
            drawing = Drawing(self, op, dtype)
            if drawing.possible:
                drawings[dtype] = drawing
        return drawings


class Drawing:
    """Draws the cases of one operator in one main element type: that of its first operand that
    leaves a choice, else of its result, else of its first operand."""

    def __init__(self, cases: Cases, op: str, dtype: str) -> None:
        self.op = op
        self.dtype = dtype
        self._cases = cases
        self._signature = cases.signatures[op]
        self._sampler = Sampler(self._signature, _SHAPES, MAIN)
        main, attribute = _main(self._sampler)
        domains = dict(self._sampler.dtypes)
        self._given = {} if attribute is None else {attribute: dtype}
        if main in domains:
            self.possible = dtype in domains[main]
            self._sampler.dtypes = domains | {main: [dtype]}
        else:
            self.possible = dtype == main

    def case(self, number: int, attempt: int = 0, *, small: bool = False) -> Case | None:
        """Case ``number`` (its kind: ``number % KINDS``), or another in its place. None if there is
        none of this kind."""
        name = f"{self._cases.seed}/{self.op}/{self.dtype}/{number}/{attempt}/{small}"
        rng = Random(name)
        kind = number % KINDS
        shapes = (_SMALL_EMPTY if small else _EMPTY) if kind == EMPTY else None
        broken = None
        for _ in range(_TRIES):
            drawn = self._sampler.typed(
                rng, shapes=shapes or (_SMALL if small else None), given=self._given
            )
            if drawn is None:
                break
            instance, typing = self._mended(*drawn)
            if _is_odd(self.op, instance, typing) or (
                kind == EMPTY and not _is_empty(instance, typing)
            ):
                continue
            try:
                case = self._made(instance, typing, kind, rng)
            except NoValue:
                continue
            if not case.broken:
                return case
            broken = broken or case  # it may mean nothing, or draw random numbers
        return broken

    def _mended(self, instance: Instance, typing: Typing) -> tuple[Instance, Typing]:
        """Without operands that the generator leaves out, and what the signature leaves open chosen
        so that it means something: one scale or zero point for the whole operand, for one."""
        operands = instance.operands[: self._cases.policies[self.op].operands]
        without = _LISTS.get(self.op, ())
        attributes = {k: v for k, v in instance.attributes.items() if k not in without}
        if self.op in _PARAMETERS:
            places, shape = _PARAMETERS[self.op]
            operands = tuple(
                TensorType(type.dtype, shape) if type is not None and i in places else type
                for i, type in enumerate(operands)
            )
        found = self._signature.attempt(operands, attributes)
        return (instance, typing) if found is None else (Instance(operands, attributes), found)

    def _made(self, instance: Instance, typing: Typing, kind: int, rng: Random) -> Case:
        inputs: dict[str, Array] = {}
        graph = Graph(self.op)
        operands: list[Tensor | None] = []
        arrays = self._values(instance, typing, kind, rng)
        for i, (type, array) in enumerate(zip(instance.operands, arrays, strict=True)):
            if type is None or array is None:
                operands.append(None)
                continue
            operands.append(graph.add_input(f"x{i}", type))
            inputs[f"x{i}"] = array
        results = [(f"y{i}", type) for i, type in enumerate(typing.outputs)]
        node = graph.add_node(self.op, operands, results, typing.attributes, name="n")
        graph.outputs += [tensor for tensor in node.outputs if tensor is not None]
        program = Program(graph, inputs, self.op)
        try:
            expected = evaluate(program)
        except SemanticsError as error:
            return Case(program, (), {}, str(error))
        return Case(program, expected, causes(self.op, arrays, node.attributes))

    def _values(
        self, instance: Instance, typing: Typing, kind: int, rng: Random
    ) -> list[Array | None]:
        if self.op in _TOGETHER:
            return _TOGETHER[self.op](rng, instance)
        first, second = (*instance.operands, None, None)[:2]
        arrays: list[Array | None] = []
        for i, type in enumerate(instance.operands):
            if type is None or first is None:
                arrays.append(None)
                continue
            policy = self._cases.policies[self.op]
            wanted = (policy.kind if kind == ORDINARY else policy.demanded)(i, type.dtype)
            if (self.op, i) in _SHARES:
                arrays.append(np.full(type.shape or (), rng.random(), type.dtype))  # type: ignore[arg-type]
            elif wanted:
                use = Use(first, typing.attributes, typing.outputs[0], second)
                arrays.append(values.of_kind(wanted, rng, type, use))
            else:
                array = values.ordinary(rng, type)
                if kind in (FINITE, NON_FINITE):
                    array = _salted(rng, array, type.dtype or "", kind == NON_FINITE)
                arrays.append(array)
        return arrays


# --- the parts -----------------------------------------------------------------------------------


def _main(sampler: Sampler) -> tuple[str, str | None]:
    """The dtype variable that decides an operator's main element type, or a fixed type's name; and
    the attribute that it stands for, if it is one."""
    for port in sampler.ports:
        if isinstance(port.dtype, ast.Variable) and not port.at_run_time:
            return port.dtype.name, None
    for variable, attribute in sampler.attributes.items():
        if attribute.plan.type == "dtype":
            return variable, attribute.plan.name
    fixed = sampler.ports[0].dtype
    assert isinstance(fixed, ast.Name)
    return fixed.text, None


def _is_odd(op: str, instance: Instance, typing: Typing) -> bool:
    """Whether it has a window without places, or something out of nothing: no compiler says what
    that means."""
    kernel = typing.attributes.get("kernel", ())
    if isinstance(kernel, tuple) and 0 in kernel:
        return True
    first = instance.operands[0] if instance.operands else None
    if op not in _READERS or first is None:
        return False
    return 0 in (first.shape or ()) and 0 not in (typing.outputs[0].shape or ())


def _is_empty(instance: Instance, typing: Typing) -> bool:
    types = [*instance.operands, *typing.outputs]
    return any(type is not None and 0 in (type.shape or ()) for type in types)


@cache
def _salt(dtype: str, non_finite: bool) -> tuple[float, ...]:
    """Special values of an element type."""
    info = DTYPES[dtype]
    if info.kind in ("int", "uint"):
        limits = np.iinfo(dtype)
        return (int(limits.min), int(limits.max), 0, 1)
    if info.kind != "float":
        return ()
    floats = ml_dtypes.finfo(np.dtype(dtype))  # type: ignore[no-untyped-call]
    denormal, least = float(floats.smallest_subnormal), float(floats.tiny)
    found = (0.0, -0.0, denormal, -denormal, least / 2, 1.0, -1.0, 0.5)
    return (*found, math.inf, -math.inf, math.nan) if non_finite else found


def _salted(rng: Random, array: Array, dtype: str, non_finite: bool) -> Array:
    """Up to a third of the elements, but at least one, replaced by special ones."""
    salt = _salt(dtype, non_finite)
    flat = array.reshape(-1)
    if salt and flat.size:
        for _ in range(rng.randint(1, max(1, flat.size // 3))):
            flat[rng.randrange(flat.size)] = np.asarray(rng.choice(salt)).astype(array.dtype)
    return array


def _shown(value: Attribute) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _extents(rng: Random, instance: Instance) -> list[Array | None]:
    """An operand that is a shape."""
    (type,) = instance.operands
    assert type is not None and type.shape is not None
    return [np.array([rng.randint(0, 3) for _ in range(math.prod(type.shape))], np.int64)]  # type: ignore[arg-type]


def _steps(rng: Random, instance: Instance) -> list[Array | None]:
    """Start, limit and a step that is not 0, for a few elements."""
    first = instance.operands[0]
    assert first is not None
    start, step = rng.randint(-5, 5), rng.choice((-3, -2, -1, 1, 2, 3))
    limit = start + step * rng.randint(-1, 5) + rng.randint(0, 1)
    return [np.array(v).astype(first.dtype) for v in (start, limit, step)]


_PARAMETERS: dict[str, tuple[frozenset[int], tuple[int, ...]]] = {
    "quantize_linear": (frozenset({1, 2}), ()),
    "dequantize_linear": (frozenset({1, 2}), ()),
    "matmul_integer": (frozenset({2, 3}), ()),
    "conv_integer": (frozenset({2, 3}), ()),
    "qlinear_matmul": (frozenset({1, 2, 4, 5, 6, 7}), ()),
    "qlinear_conv": (frozenset({1, 2, 4, 5, 6, 7}), ()),
    "non_max_suppression": (frozenset({2, 3, 4}), (1,)),
}
"""Which operands hold one number (scales, zero points, thresholds), and in which shape."""

_SHARES = frozenset({("non_max_suppression", 3)})
"""Operands between 0 and 1."""

_READERS = frozenset({"resize", "roi_align", "grid_sample"})
"""Operators that interpolate between elements of their first operand."""

_ACTIVATIONS = ("activations", "activation_alpha", "activation_beta")
_LISTS = {
    **dict.fromkeys(("rnn", "gru", "lstm"), _ACTIVATIONS),
    **dict.fromkeys(("quantize_linear", "dequantize_linear"), ("block_size",)),
    "max_unpool": ("output_shape",),
    "resize": ("roi",),
}
"""Attributes whose length or value the signature does not relate to the rest."""

_TOGETHER = {"constant_of_shape": _extents, "range": _steps}
"""Operators whose operands' values decide how large the result is."""
