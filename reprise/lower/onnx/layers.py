"""Matrix products and normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lower.onnx.call import Call, Form, Ref
from reprise.lower.onnx.forms import either, reduce, same
from reprise.uir.types import numpy_dtype


def _linear(c: Call) -> Ref:
    weight, bias = c.operand(1), c.get(2)
    if c.rank() == 2:
        return c.add("Gemm", c.x, weight, bias, transB=1)
    product = c.add("MatMul", c.x, c.add("Transpose", weight, perm=(1, 0)))
    return product if bias is None else c.add("Add", product, bias)


# --- normalisation ---------------------------------------------------------------------------


def _batch_norm(c: Call) -> Sequence[Ref]:
    """Only in training are there new means and variances; else they stay what they are."""
    training = c["training"]
    attributes = {name: c[name] for name in ("epsilon", "momentum")}
    if training:
        made = c.add_many("BatchNormalization", 3, *c.operands, training_mode=True, **attributes)
        for statistic in made[1:]:
            statistic.read = True  # optional in the schema, but shape inference wants all three
        return made
    y = c.add("BatchNormalization", *c.operands, **attributes)
    return y, c.operand(3), c.operand(4)


def _scale(c: Call) -> Ref:
    """The scale, or ones where there is none (LayerNormalization's is not optional)."""
    given = c.get(1)
    if given is not None:
        return given
    ones = np.ones(c.shape()[c["axis"] :], numpy_dtype(c.dtype()))
    return c.constant("scale", ones, c.dtype())


def _layer_norm(c: Call) -> Sequence[Ref]:
    names = ("axis", "epsilon", "stash_type")
    attributes = {name: c[name] for name in names}
    return c.add_many("LayerNormalization", 3, c.x, _scale(c), c.get(2), **attributes)


def _layer_norm_apart(c: Call) -> Sequence[Ref]:
    """Before opset 17: in float32, as LayerNormalization itself computes."""
    x = c.cast(c.x, "float32")
    axes = range(c["axis"], c.rank())
    mean = reduce(c, "ReduceMean", x, axes, True)
    distance = c.add("Sub", x, mean)
    variance = reduce(c, "ReduceMean", c.add("Mul", distance, distance), axes, True)
    epsilon = c.number(c["epsilon"], "float32", label="epsilon")
    inverse = c.add("Reciprocal", c.add("Sqrt", c.add("Add", variance, epsilon)))
    y = _narrowed(c, c.add("Mul", distance, inverse))
    if c.get(1) is not None:
        y = c.add("Mul", y, c.get(1))
    if c.get(2) is not None:
        y = c.add("Add", y, c.get(2))
    return y, mean, inverse


def _narrowed(c: Call, x: Ref) -> Ref:
    """A float32 value in the first operand's type."""
    return x if c.dtype() == "float32" else c.add("Cast", x, to=CODE_OF_DTYPE[c.dtype()])


def _rms_norm_apart(c: Call) -> Ref:
    """Before opset 23: in float32, as RMSNormalization itself computes."""
    x = c.cast(c.x, "float32")
    axes = range(c["axis"], c.rank())
    mean = reduce(c, "ReduceMean", c.add("Mul", x, x), axes, True)
    epsilon = c.number(c["epsilon"], "float32", label="epsilon")
    root = c.add("Sqrt", c.add("Add", mean, epsilon))
    return c.add("Mul", _narrowed(c, c.add("Div", x, root)), c.operand(1))


def _group_norm(c: Call) -> Ref:
    """Before opset 21 the scale belonged to groups, not channels."""
    attributes = {"epsilon": c["epsilon"], "num_groups": c["groups"]}
    if c.opset >= 21:
        return c.add("GroupNormalization", *c.operands, stash_type=c["stash_type"], **attributes)
    n, channels, *extents = c.shape()
    groups, zeros = c["groups"], {"allowzero": True} if 0 in c.shape() else {}
    size = channels // groups
    for extent in extents:
        size *= extent
    x = c.add("Reshape", c.cast(c.x, "float32"), c.ints("groups", (n, groups, size)), **zeros)
    mean = reduce(c, "ReduceMean", x, (2,), True)
    distance = c.add("Sub", x, mean)
    variance = reduce(c, "ReduceMean", c.add("Mul", distance, distance), (2,), True)
    epsilon = c.number(c["epsilon"], "float32", label="epsilon")
    y = c.add("Div", distance, c.add("Sqrt", c.add("Add", variance, epsilon)))
    y = _narrowed(c, c.add("Reshape", y, c.ints("shape", c.shape()), **zeros))
    row = c.ints("channels", (channels, *(1 for _ in extents)))
    y = c.add("Mul", y, c.add("Reshape", c.operand(1), row, **zeros))
    return c.add("Add", y, c.add("Reshape", c.operand(2), row, **zeros))


def _mean_variance_norm(c: Call) -> Ref:
    """The body that ONNX defines MeanVarianceNormalization by adds a float32 constant."""
    if not c["axes"]:
        return c.add("Mul", c.x, c.number(0.0, label="zero"))
    if c.dtype() == "float32":
        return c.add("MeanVarianceNormalization", c.x, axes=c["axes"])
    distance = c.add("Sub", c.x, reduce(c, "ReduceMean", c.x, c["axes"], True))
    squares = c.add("Mul", distance, distance)
    deviation = c.add("Sqrt", reduce(c, "ReduceMean", squares, c["axes"], True))
    return c.add("Div", distance, c.add("Add", deviation, c.number(1e-9, label="epsilon")))


FORMS: dict[str, Form] = {
    "matmul": same("MatMul"),
    "bmm": same("MatMul"),
    "gemm": same("Gemm", "alpha", "beta", trans_a="transA", trans_b="transB"),
    "linear": _linear,
    "einsum": same("Einsum", "equation"),
    "det": same("Det"),
    "batch_norm": _batch_norm,
    "layer_norm": either("LayerNormalization", _layer_norm, _layer_norm_apart),
    "rms_norm": either(
        "RMSNormalization",
        same("RMSNormalization", "axis", "epsilon", "stash_type"),
        _rms_norm_apart,
    ),
    "instance_norm": same("InstanceNormalization", "epsilon"),
    "group_norm": _group_norm,
    "mean_variance_norm": _mean_variance_norm,
    "lrn": same("LRN", "size", "alpha", "beta", "bias"),
    "lp_normalize": same("LpNormalization", "axis", "p"),
}
"""The form of each of these operators."""
