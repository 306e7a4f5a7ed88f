"""Tensors out of nothing, out of shapes, or at random."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lower.onnx.call import Call, Form, Ref, array_of
from reprise.lower.onnx.forms import same
from reprise.lower.onnx.spec import spec


def _filled(c: Call, shape: Ref) -> Ref:
    """ConstantOfShape where it makes the type, else one element expanded."""
    dtype, value = c["dtype"], c["value"]
    found = spec("ConstantOfShape", c.opset)
    if found is not None and dtype in found.results[0].dtypes:
        proto = TensorProto(
            dims=[1],
            data_type=CODE_OF_DTYPE[dtype],
            raw_data=array_of(value, dtype, (1,)).tobytes(),
        )
        return c.add("ConstantOfShape", shape, value=proto)
    return c.add("Expand", c.number(value, dtype), shape)


def _full(c: Call) -> Ref:
    return _filled(c, c.ints("shape", c["shape"]))


def _constant_of_shape(c: Call) -> Ref:
    return _filled(c, c.x)


_RANGED = ("float32", "float64", "int16", "int32", "int64")


def _arange(c: Call) -> Ref:
    """Range in the type itself if it is one of Range's and counts as many elements there as exact
    arithmetic does; otherwise whole numbers, scaled and converted."""
    start, end, step = c["start"], c["end"], c["step"]
    dtype = c["dtype"]
    count = max(math.ceil((end - start) / step), 0)
    if dtype in _RANGED and _counts(start, end, step, dtype, count):
        names = ("start", "end", "step")
        return c.add("Range", *(c.number(c[name], dtype, label=name) for name in names))
    bounds = zip(("first", "count", "one"), (0, count, 1), strict=True)
    numbers = c.add("Range", *(c.int(name, value) for name, value in bounds))
    exact = "int64" if start == int(start) and step == int(step) else "float64"
    if exact == "float64":
        numbers = c.add("Cast", numbers, to=CODE_OF_DTYPE[exact])
    scaled = c.add("Mul", numbers, c.number(step, exact, label="step"))
    return c.cast(c.add("Add", scaled, c.number(start, exact, label="start")), dtype, exact)


def _counts(start: float, end: float, step: float, dtype: str, count: int) -> bool:
    if dtype not in ("float32", "float64"):
        limit = 2 ** (int(dtype.removeprefix("int")) - 1)
        return all(-limit <= bound < limit for bound in (start, end, step))
    a, b, s = (np.array(bound, dtype) for bound in (start, end, step))
    return bool(s != 0) and max(math.ceil(float((b - a) / s)), 0) == count


def _shape(c: Call) -> Ref:
    """``start`` and ``end`` came with opset 15."""
    start, end, rank = c["start"], c["end"], c.rank()
    if c.has("Shape", "start"):
        return c.add("Shape", c.x, start=start, end=None if end == rank else end)
    whole = c.add("Shape", c.x)
    if start == 0 and end == rank:
        return whole
    return c.add("Slice", whole, c.ints("starts", (start,)), c.ints("ends", (end,)))


def _eye_like(c: Call) -> Ref:
    return c.add("EyeLike", c.x, k=c["k"], dtype=_code(c))


def _code(c: Call) -> int | None:
    return None if c["dtype"] is None else CODE_OF_DTYPE[c["dtype"]]


def _random(op: str, *names: str) -> Form:
    """A scalar has no shape that an attribute could state: it is made like another one."""

    def form(c: Call) -> Ref:
        attributes = {name: c[name] for name in (*names, "seed")}
        if not c["shape"]:
            like = c.number(0.0, "float32", label="like")
            return c.add(f"{op}Like", like, dtype=_code(c), **attributes)
        return c.add(op, shape=c["shape"], dtype=_code(c), **attributes)

    return form


def _random_like(op: str, *names: str) -> Form:
    def form(c: Call) -> Ref:
        return c.add(op, c.x, dtype=_code(c), **{name: c[name] for name in (*names, "seed")})

    return form


_DROPOUT_RATIO = 0.5
"""ONNX's default: left out, as its users do, for the sake of optimisers that look for it."""


def _dropout(c: Call) -> list[Ref]:
    ratio, training = c.get(1), c.get(2)
    if ratio is None and c["ratio"] != _DROPOUT_RATIO:
        ratio = c.number(c["ratio"], "float32", label="ratio")
    if training is None and c["training"]:
        training = c.constant("training", np.array(True), "bool")
    return c.add_many("Dropout", 2, c.x, ratio, training, seed=c["seed"])


FORMS: dict[str, Form] = {
    "full": _full,
    "constant_of_shape": _constant_of_shape,
    "arange": _arange,
    "range": same("Range"),
    "eye_like": _eye_like,
    "shape": _shape,
    "size": same("Size"),
    "random_normal": _random("RandomNormal", "mean", "scale"),
    "random_uniform": _random("RandomUniform", "low", "high"),
    "random_normal_like": _random_like("RandomNormalLike", "mean", "scale"),
    "random_uniform_like": _random_like("RandomUniformLike", "low", "high"),
    "bernoulli": _random_like("Bernoulli"),
    "multinomial": _random_like("Multinomial", "sample_size"),
    "dropout": _dropout,
}
"""The form of each of these operators."""
