"""One application on trial, and who decides whether it is valid.

The judge is ONNX: its strict shape inference, and its reference evaluator, which must run the
application and give results of the types that were inferred; if asked, also the function of other
operators by which ONNX defines it. None is written by us.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from reprise.facts.onnx_apply import Refused, infer_results, model_of
from reprise.lang.dtypes import DTYPES
from reprise.mining.signatures.reading import Raw
from reprise.uir.graph import Array, Attribute, TensorType
from reprise.uir.types import numpy_dtype

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """Shapes by operand (None: absent, or stored), the dtype of each variable, and attributes:
    those that have the name of an operand are stored operands."""

    shapes: tuple[Shape | None, ...]
    dtypes: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        return dict(self.attributes).get(name)

    def with_attribute(self, name: str, value: Attribute | None) -> Trial:
        """With that attribute, or without it."""
        rest = {k: v for k, v in self.attributes if k != name}
        if value is not None:
            rest[name] = value
        return Trial(self.shapes, self.dtypes, tuple(sorted(rest.items())))

    def with_shape(self, operand: int, shape: Shape | None) -> Trial:
        shapes = (*self.shapes[:operand], shape, *self.shapes[operand + 1 :])
        return Trial(shapes, self.dtypes, self.attributes)

    def operands(self, raw: Raw) -> tuple[TensorType | None, ...]:
        """The operands' types."""
        dtypes = dict(self.dtypes)
        types = [
            None if shape is None else TensorType(dtypes.get(o.dtype, o.dtype), shape)
            for o, shape in zip(raw.operands, self.shapes, strict=True)
        ]
        while types and types[-1] is None:
            types.pop()
        return tuple(types)


KINDS: Mapping[str, Callable[[Trial], int | None]] = {
    "zero": lambda trial: 1,
    "batch_index": lambda trial: _extent(trial, 0),
    "channel_index": lambda trial: _extent(trial, 1),
    "last_index": lambda trial: _extent(trial, -1),
    "index": lambda trial: _extent(trial, _axis(trial)),
}
"""Kinds of integer values that an operand may demand (``rules/std/values.rules``): what they are
less than. Tried in this order, after ordinary values."""
ORDINARY, POSITIVE = "ordinary", "positive"


def _axis(trial: Trial) -> int:
    axis = trial.attribute("axis")
    return axis if isinstance(axis, int) else 0


def _extent(trial: Trial, axis: int) -> int | None:
    first = trial.shapes[0] if trial.shapes else None
    if first is None or not -len(first) <= axis < len(first):
        return None
    return first[axis]


class Oracle:
    """ONNX on trials of one operator. ``asked`` and ``accepted`` count; answers are kept.

    ``runs``: whether the reference evaluator knows the operator at all; ``inferred``: the ranks of
    operands that inference, at least, has accepted; ``asks_function``: whether to hold a trial
    against the function that defines the operator, too; ``expected``: if given, what results must
    look like besides.
    """

    def __init__(self, raw: Raw, seed: int) -> None:
        self.raw = raw
        self.seed = seed
        self.infers = bool(raw.schema.has_type_and_shape_inference_function)
        self.kinds: dict[int, str] = {}
        self.runs = True
        self.asks_function = False
        self.expected: Callable[[Trial, Sequence[TensorType]], bool] | None = None
        self.asked = 0
        self.inferred: set[tuple[int | None, ...]] = set()
        self._kept: dict[Trial, list[TensorType] | None] = {}

    def results(self, trial: Trial) -> list[TensorType] | None:
        """The types of the results, or None if the trial is refused."""
        if trial not in self._kept:
            self.asked += 1
            self._kept[trial] = self._judge(trial, self.kinds)
        return self._kept[trial]

    def results_with(self, trial: Trial, kinds: Mapping[int, str]) -> list[TensorType] | None:
        """As :meth:`results`, with integer operands that hold values of these kinds; ordinary
        ones, where nothing is said."""
        every = {i: kinds.get(i, ORDINARY) for i in range(len(self.raw.operands))}
        return self._judge(trial, every)

    def accepts_values(self, trial: Trial, kinds: Mapping[int, str]) -> bool:
        """Whether it is accepted too if integer operands hold values of these kinds."""
        return self._judge(trial, kinds) is not None

    def _judge(self, trial: Trial, kinds: Mapping[int, str]) -> list[TensorType] | None:
        raw = self.raw
        operands = trial.operands(raw)
        if any(extent < 0 for shape in trial.shapes for extent in shape or ()):
            return None  # a difference of extents may come to less than nothing
        try:
            model = model_of(raw.name, operands, dict(trial.attributes), raw.opset)
            if model is None:
                return None
            types = infer_results(model)
        except (Refused, ValueError, TypeError, OverflowError):
            return None
        if self.infers and any(t.dtype is None or t.elements is None for t in types):
            return None
        if any((t.elements or 0) > 1 << 16 for t in types):
            return None
        self.inferred.add(tuple(None if s is None else len(s) for s in trial.shapes))
        arrays = self._run(trial, operands, model, kinds) if self.runs else None
        if arrays is None:
            return types if not self.runs and self.infers else None
        made = [TensorType(_dtype(a), a.shape) for a in arrays]
        if not self.infers:
            types = made
        agree = [t.shape == m.shape for t, m in zip(types, made, strict=True)]
        agree.append(self._function_agrees(trial, operands, types, kinds))
        if self.expected is not None and not self.expected(trial, types):
            return None
        return types if all(agree) else None

    def _run(
        self, trial: Trial, operands: Any, model: Any, kinds: Mapping[int, str]
    ) -> list[Array] | None:
        """What the reference evaluator gives on values of these kinds; None if it raises."""
        from onnx.reference import ReferenceEvaluator

        inputs = self._inputs(trial, operands, kinds)
        if inputs is None:
            return None
        # The reference is numpy written for clarity: it raises whatever comes.
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                arrays = ReferenceEvaluator(model).run(None, inputs)
        except Exception as error:
            self.runs = self.runs and "No registered implementation" not in str(error)
            return None
        if not all(isinstance(a, np.ndarray | np.generic) for a in arrays):
            return None
        return [np.asarray(a) for a in arrays]

    def _inputs(
        self, trial: Trial, operands: Any, kinds: Mapping[int, str]
    ) -> dict[str, Array] | None:
        """Values for the operands; None if some operand can have none of its kind."""
        rng = Random(f"{self.seed}/{trial}")
        inputs: dict[str, Array] = {}
        for i, type in enumerate(operands):
            if type is not None:
                value = _values(rng, type, kinds.get(i, "zero"), trial)
                if value is None:
                    return None
                inputs[f"x{i}"] = value
        return inputs

    def _function_agrees(
        self, trial: Trial, operands: Any, types: Sequence[TensorType], kinds: Mapping[int, str]
    ) -> bool:
        """Whether the function that defines the operator, if one does, gives these types as well:
        some kernels of the reference broadcast what the definition does not."""
        from onnx import inliner

        schema, raw = self.raw.schema, self.raw
        defined = schema.has_function or schema.has_context_dependent_function  # type: ignore[attr-defined]
        if not (self.asks_function and defined):
            return True
        model = model_of(raw.name, operands, dict(trial.attributes), raw.opset, types)
        assert model is not None
        wanted = [(schema.domain, schema.name)]
        try:
            expanded = inliner.inline_selected_functions(
                model, wanted, exclude=False, inline_schema_functions=True
            )
        except Exception:  # the bindings raise several classes without a common base
            return True
        if any(node.op_type == schema.name for node in expanded.graph.node):
            return True  # no function for these types
        arrays = self._run(trial, operands, expanded, kinds)
        return arrays is not None and [a.shape for a in arrays] == [t.shape for t in types]


def _dtype(array: Array) -> str | None:
    name = array.dtype.name
    return name if name in DTYPES else None


def _values(rng: Random, type: TensorType, kind: str, trial: Trial) -> Array | None:
    """Values for one operand: floats within ±1; integers of a kind; None if there are none."""
    shape = tuple(e for e in type.shape or () if isinstance(e, int))
    info = DTYPES[type.dtype or ""]
    count = int(np.prod(shape, dtype=np.int64))
    to = numpy_dtype(type.dtype or "")
    if info.kind == "float":
        return np.array([rng.uniform(-1, 1) for _ in range(count)]).astype(to).reshape(shape)
    if info.kind == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], np.bool_).reshape(shape)
    if info.kind not in ("int", "uint"):
        return None
    if kind == ORDINARY:
        low, high = (-8 if info.kind == "int" else 0), 8
    elif kind == POSITIVE:
        low, high = 1, 2
    else:
        bound = KINDS[kind](trial)
        if bound is None or bound <= 0:
            return None
        low, high = 0, bound - 1
    return np.array([rng.randint(low, high) for _ in range(count)]).astype(to).reshape(shape)
