"""Values for the operands of an application: random, of the right type, and within the domain that
the operator has (indices inside their axes, lengths that fit, shapes that are small)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reprise.solve.sampling import Instance
from reprise.uir.graph import TensorType
from reprise.uir.types import numpy_dtype

Array = np.ndarray[Any, Any]


def draw(rng: np.random.Generator, type_: TensorType) -> Array:
    """Values of an element type: floats about 0, some of them whole; small integers."""
    assert type_.dtype is not None and type_.shape is not None
    shape = tuple(int(e) for e in type_.shape)  # type: ignore[arg-type]
    dtype = numpy_dtype(type_.dtype)
    name = type_.dtype
    if name == "bool":
        return rng.random(shape) < 0.5
    if name == "string":
        return rng.choice(np.array(["", "a", "b", "ab", "ä"], dtype=object), shape).reshape(shape)
    if name.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if name.startswith("uint"):
        return rng.integers(
            0, 4 if name.endswith(("2", "4")) and len(name) == 5 else 9, shape
        ).astype(dtype)
    if name.startswith("int"):
        low, high = (-2, 2) if name == "int2" else (-6, 7)
        return rng.integers(low, high, shape).astype(dtype)
    values = rng.normal(size=shape) * 2
    whole = rng.random(shape) < 0.15
    return np.where(whole, np.rint(values), values).astype(dtype)


def operands(
    rng: np.random.Generator, op: str, instance: Instance, attributes: dict[str, Any]
) -> list[Any]:
    """A value for each operand that is present."""
    made: list[Any] = [None if t is None else draw(rng, t) for t in instance.operands]
    special = SPECIAL.get(op)
    if special is not None:
        special(rng, made, attributes)
    return made


def _indices(
    rng: np.random.Generator, like: Array, extent: int, unique_axis: int | None = None
) -> Array:
    if extent == 0:
        return np.zeros_like(like)
    return rng.integers(-extent, extent, like.shape).astype(like.dtype)


def _gather(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[1] = _indices(rng, made[1], made[0].shape[a["axis"]])


def _scatter(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    """Distinct positions along the axis."""
    extent, axis = made[0].shape[a["axis"]], a["axis"]
    order = np.argsort(
        rng.random((*made[1].shape[:axis], extent, *made[1].shape[axis + 1 :])), axis
    )
    made[1] = np.take(order, range(made[1].shape[axis]), axis).astype(made[1].dtype)


def _embedding(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[1] = _indices(rng, made[1], made[0].shape[0])


def _tuples(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    batch = a.get("batch_dims", 0)
    for i in range(made[1].shape[-1]):
        made[1][..., i] = _indices(rng, made[1][..., i], made[0].shape[batch + i])


def _one_hot(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    depth = a["depth"]
    low = 0 if made[0].dtype.kind == "u" else -depth
    made[0] = rng.integers(low, depth, made[0].shape).astype(made[0].dtype)


def _lengths(place: int, axis: str) -> Any:
    def special(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
        time = a[axis] if axis else 0
        made[place] = rng.integers(1, made[0].shape[time] + 1, made[place].shape).astype(
            made[place].dtype
        )

    return special


def _constant_of_shape(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[0] = rng.integers(0, 4, made[0].shape).astype(np.int64)


def _range(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    dtype = made[0].dtype
    first, step = int(rng.integers(-5, 6)), int(rng.choice([-3, -2, -1, 1, 2, 3]))
    last = first + step * int(rng.integers(-1, 6)) + int(rng.integers(0, 2))
    made[:] = [np.array(v).astype(dtype) for v in (first, last, step)]


def _scales(*places: int) -> Any:
    """Scales are positive."""

    def special(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
        for place in places:
            scale = rng.uniform(0.05, 0.5, made[place].shape)
            if made[place].dtype.kind == "i":
                scale = rng.integers(1, 4, made[place].shape)
            made[place] = scale.astype(made[place].dtype)

    return special


def _variance(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[4] = np.abs(made[4].astype(np.float64)).astype(made[4].dtype)


def _attention(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    if len(made) > 6 and made[6] is not None:
        keys = made[1].shape[-2]
        made[6] = rng.integers(1, keys + 1, made[6].shape)


def _rotary(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    if len(made) > 3 and made[3] is not None:
        made[3] = rng.integers(0, made[1].shape[0], made[3].shape)


def _recurrent(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    if len(made) > 4 and made[4] is not None:
        made[4] = rng.integers(1, made[0].shape[0] + 1, made[4].shape).astype(np.int32)


def _shift(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[1] = rng.integers(0, 7, made[1].shape).astype(made[1].dtype)


def _divisor(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[1] = np.where(made[1] == 0, np.array(1, made[1].dtype), made[1])


def _power(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    if made[0].dtype.kind in "iu" and made[1].dtype.kind in "i":
        made[1] = np.abs(made[1])


def _unpool(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    rank = made[0].ndim - 2
    implied = 1
    for i in range(rank):
        size = (made[0].shape[2 + i] - 1) * a["strides"][i] + a["kernel"][i]
        implied *= max(size - a["pads"][i] - a["pads"][rank + i], 0)
    total = implied * made[0].shape[0] * made[0].shape[1]
    if total >= made[1].size:
        made[1] = rng.permutation(total)[: made[1].size].reshape(made[1].shape)
    else:
        made[1] = rng.integers(0, max(total, 1), made[1].shape)


def _boxes(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[0] = rng.uniform(0, 4, made[0].shape).astype(np.float32)
    for place, value in ((2, int(rng.integers(0, 4))), (3, 0.3), (4, 0.0)):
        if len(made) > place and made[place] is not None:
            made[place] = np.full(made[place].shape, value, made[place].dtype)


def _regions(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    corners = np.sort(rng.uniform(0, 6, (*made[1].shape[:1], 2, 2)), 1)
    made[1] = corners.reshape(made[1].shape).astype(made[1].dtype)
    made[2] = rng.integers(0, made[0].shape[0], made[2].shape)


def _grid(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    made[1] = rng.uniform(-1.4, 1.4, made[1].shape).astype(made[1].dtype)


def _bias_of_quantised(rng: Any, made: list[Any], a: dict[str, Any]) -> None:
    _scales(1, 4, 6)(rng, made, a)


SPECIAL: dict[str, Any] = {
    "gather": _gather,
    "gather_elements": _gather,
    "embedding": _embedding,
    "gather_nd": _tuples,
    "scatter_nd": _tuples,
    "scatter_elements": _scatter,
    "one_hot": _one_hot,
    "reverse_sequence": _lengths(1, "time_axis"),
    "constant_of_shape": _constant_of_shape,
    "range": _range,
    "quantize_linear": _scales(1),
    "dequantize_linear": _scales(1),
    "qlinear_matmul": _scales(1, 4, 6),
    "qlinear_conv": _bias_of_quantised,
    "batch_norm": _variance,
    "attention": _attention,
    "rotary_embedding": _rotary,
    "rnn": _recurrent,
    "gru": _recurrent,
    "lstm": _recurrent,
    "bit_shift": _shift,
    "div": _divisor,
    "mod": _divisor,
    "floor_div": _divisor,
    "remainder": _divisor,
    "pow": _power,
    "max_unpool": _unpool,
    "non_max_suppression": _boxes,
    "roi_align": _regions,
    "grid_sample": _grid,
}
"""Operators whose operands' values have a domain."""


# --- what signatures leave open ------------------------------------------------------------------


def repair(rng: np.random.Generator, op: str, instance: Instance) -> Instance:
    """The instance, with what the signature leaves open chosen so that it means something: operands
    that must be there, and attributes that hardly anything has gone."""
    mend = REPAIRS.get(op)
    return instance if mend is None else mend(rng, instance)


def _with(instance: Instance, operands: list[TensorType | None], *without: str) -> Instance:
    while operands and operands[-1] is None:
        operands.pop()
    kept = {k: v for k, v in instance.attributes.items() if k not in without}
    return Instance(tuple(operands), kept)


def _full_precision(rng: Any, instance: Instance) -> Instance:
    return _with(instance, list(instance.operands), "precision")


def _plain_attention(rng: Any, instance: Instance) -> Instance:
    """Often without what older versions do not have."""
    names = ("softcap", "left_window_size", "right_window_size")
    without = [name for name in names if rng.random() < 0.5]
    return _with(instance, list(instance.operands), *without)


def _unpool_shape(rng: Any, instance: Instance) -> Instance:
    return _with(instance, list(instance.operands), "output_shape", "pads")


def _region(rng: Any, instance: Instance) -> Instance:
    """A region of interest for every axis."""
    attributes = dict(instance.attributes)
    attributes.pop("roi", None)
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        rank = len(instance.operands[0].shape)  # type: ignore
        starts = rng.uniform(0, 0.4, rank).round(2).tolist()
        attributes["roi"] = (*starts, *rng.uniform(0.5, 1.1, rank).round(2).tolist())
    if attributes.get("mode") == "nearest":
        attributes.pop("antialias", None)
    return replace(instance, attributes=attributes)


def _limits(rng: Any, instance: Instance) -> Instance:
    boxes, scores = instance.operands[:2]
    one = (1,)
    floats = TensorType("float32", one)
    return Instance((boxes, scores, TensorType("int64", one), floats, floats), instance.attributes)


def _plain_layer(rng: Any, instance: Instance) -> Instance:
    """Mostly without what others do not have."""
    if rng.random() < 0.3:
        return instance
    operands = list(instance.operands)
    for place in (4, 7):
        if len(operands) > place:
            operands[place] = None
    names = ("activation_alpha", "activation_beta", "clip", "input_forget")
    return _with(instance, operands, *names)


REPAIRS: dict[str, Any] = {
    "quantize_linear": _full_precision,
    "attention": _plain_attention,
    "max_unpool": _unpool_shape,
    "resize": _region,
    "non_max_suppression": _limits,
    "rnn": _plain_layer,
    "gru": _plain_layer,
    "lstm": _plain_layer,
}
"""Operators whose signatures leave something open (the comparison could not do without it)."""
