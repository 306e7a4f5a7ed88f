"""Kernels on NaN, infinities, signed zeros, denormals, extremes of integers, and empty tensors:
they never raise or warn, and keep to their signatures. Conventions are torch's too."""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import pytest

from reprise.solve.sampling import Instance
from reprise.uir.graph import TensorType
from reprise.uir.semantics import KERNELS, UndefinedError, apply, causes
from tests.solve.crosscheck import instances
from tests.uir.semantics.drawing import draw, operands, repair

POSITIONS = {
    "gather": 1, "gather_elements": 1, "gather_nd": 1, "scatter_elements": 1, "scatter_nd": 1,
    "embedding": 1, "one_hot": 0, "reverse_sequence": 1, "max_unpool": 1, "rotary_embedding": 3,
    "roi_align": 2,
}  # fmt: skip
"""Operators with an operand of positions, here mostly far outside."""

SHAPES = {"constant_of_shape", "range"}
"""Operators whose operands decide how large the result is."""


def special(rng, value):
    """Some of the elements replaced by special ones of their type."""
    if value is None or value.dtype.kind in "Ob" or not value.size:
        return value
    kind = np.dtype(value.dtype).kind
    if kind in "iu":
        limits = np.iinfo(value.dtype)
        choices = [limits.min, limits.max, 0, 1]
        if kind == "i":
            choices.append(-1)
    elif kind in "fV" and value.dtype.itemsize >= 2:
        tiny = np.finfo(np.float16 if value.dtype.itemsize == 2 else value.dtype)
        choices = [np.nan, np.inf, -np.inf, 0.0, -0.0, float(tiny.smallest_subnormal)]
        choices += [float(tiny.max), float(tiny.min), 0.5, -0.5, 1.0]
    else:
        return value
    with np.errstate(all="ignore"):
        drawn = np.array(choices).astype(value.dtype)[rng.integers(0, len(choices), value.shape)]
    return np.where(rng.random(value.shape) < 0.4, drawn, value)


@pytest.mark.parametrize("op", sorted(KERNELS.keys() - SHAPES))
def test_special_values_are_computed_without_complaint(signatures, op):
    rng = np.random.default_rng(7)
    done = 0
    for instance, _ in islice(instances(signatures, op), 25):
        instance = repair(rng, op, instance)
        typing = signatures.check(op, instance.operands, instance.attributes)
        values = operands(rng, op, instance, typing.attributes)
        values = [special(rng, value) for value in values]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                results = apply(op, values, typing.attributes, typing.outputs)
            except UndefinedError:
                continue
            causes(op, values, typing.attributes)
        assert len(results) == len(typing.outputs)
        done += 1
    assert done >= 5


def emptied(rng, type_, extent):
    """The type with every extent ``extent`` replaced by 0."""
    if type_ is None:
        return None
    return TensorType(type_.dtype, tuple(0 if e == extent else e for e in type_.shape))


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_empty_tensors_are_computed_without_complaint(signatures, op):
    rng = np.random.default_rng(7)
    for instance, _ in islice(instances(signatures, op), 40):
        instance = repair(rng, op, instance)
        extents = [e for t in instance.operands if t is not None for e in t.shape]
        if not extents:
            continue
        extent = int(rng.choice(extents))
        types = tuple(emptied(rng, t, extent) for t in instance.operands)
        instance = repair(rng, op, Instance(types, instance.attributes))
        typing = signatures[op].attempt(instance.operands, instance.attributes)
        if typing is None:
            continue
        values = [None if t is None else draw(rng, t) for t in instance.operands]
        place = POSITIONS.get(op, len(values))
        if place < len(values) and values[place] is not None:
            values[place] = np.zeros_like(values[place])
        if op == "range":
            continue
        if op == "constant_of_shape":
            values = [np.abs(values[0])]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                apply(op, values, typing.attributes, typing.outputs)
                causes(op, values, typing.attributes)
            except UndefinedError:
                continue


ELEMENTWISE = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh", "ceil", "floor",
    "round", "trunc", "reciprocal", "abs", "neg", "square", "erf", "sigmoid", "relu", "relu6",
    "log_sigmoid", "softplus", "softsign", "is_nan", "is_inf", "is_finite", "hard_tanh",
)  # fmt: skip
PAIRS = (
    "add", "sub", "mul", "div", "pow", "atan2", "hypot", "logaddexp", "maximum", "minimum", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "remainder", "floor_div", "mod",
)  # fmt: skip
VALUES = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1e-310,
    5e-324,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    1e300,
    -3.0,
]


def attributes_of(signatures, op, types, attributes=None):
    return signatures.check(op, types, attributes or {})


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_special_numbers_have_torchs_values(signatures, op):
    pytest.importorskip("torch")
    from tests.uir.semantics import torch_values
    from tests.uir.semantics.agreement import difference

    x = np.array(VALUES)
    typing = attributes_of(signatures, op, [TensorType("float64", x.shape)])
    (ours,) = apply(op, [x], typing.attributes, typing.outputs)
    (theirs,) = torch_values.apply(op, [x], dict(typing.attributes))
    assert difference(ours, theirs, "float64") is None
    if ours.dtype.kind == "f" and op not in ("relu", "relu6"):  # max(-0, 0) is either
        exact = (ours == 0) & (theirs == 0)
        assert (np.signbit(ours) == np.signbit(theirs))[exact].all()


@pytest.mark.parametrize("op", PAIRS)
def test_special_pairs_have_torchs_values(signatures, op):
    pytest.importorskip("torch")
    from tests.uir.semantics import torch_values
    from tests.uir.semantics.agreement import difference

    a, b = np.array(VALUES)[:, None], np.array(VALUES)[None, :]
    types = [TensorType("float64", a.shape), TensorType("float64", b.shape)]
    typing = attributes_of(signatures, op, types, {"fmod": True} if op == "mod" else {})
    (ours,) = apply(op, [a, b], typing.attributes, typing.outputs)
    (theirs,) = torch_values.apply(op, [a, b], dict(typing.attributes))
    if op in ("mod", "remainder", "floor_div"):
        judged = [[not causes(op, [x, y], typing.attributes) for y in b.ravel()] for x in a.ravel()]
        assert 100 < np.count_nonzero(judged) < 196
        ours, theirs = ours[np.array(judged)], theirs[np.array(judged)]
    assert difference(ours, theirs, "float64") is None


@pytest.mark.parametrize(
    "op", ["sum", "prod", "mean", "max", "min", "log_sum_exp", "argmax", "argmin"]
)
@pytest.mark.parametrize("row", [[np.nan, 1.0], [np.inf, -np.inf], [-np.inf, -np.inf], [1.0, 2.0]])
def test_reductions_of_special_numbers_have_torchs_values(signatures, op, row):
    pytest.importorskip("torch")
    from tests.uir.semantics import torch_values
    from tests.uir.semantics.agreement import difference

    x = np.array([row])
    given = {"axis": 1} if op.startswith("arg") else {"axes": (1,)}
    typing = attributes_of(signatures, op, [TensorType("float64", x.shape)], given)
    (ours,) = apply(op, [x], typing.attributes, typing.outputs)
    (theirs,) = torch_values.apply(op, [x], dict(typing.attributes))
    if op.startswith("arg") and row[0] == row[1]:
        assert 0 in causes(op, [x], typing.attributes)
        return
    assert difference(ours, theirs, "float64") is None
