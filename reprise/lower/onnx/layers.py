"""Matrix products, normalisation, recurrence, attention."""

from __future__ import annotations

import math
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
        return c.add_many("BatchNormalization", 3, *c.operands, training_mode=True, **attributes)
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


# --- recurrence and attention ----------------------------------------------------------------


def _recurrent(op: str, results: int, *names: str) -> Form:
    return same(
        op,
        "hidden_size",
        "direction",
        "activations",
        "activation_alpha",
        "activation_beta",
        "clip",
        "layout",
        *names,
        results=results,
    )


_ATTENTION = (
    "is_causal",
    "scale",
    "softcap",
    "q_num_heads",
    "kv_num_heads",
    "qk_matmul_output_mode",
    "left_window_size",
    "right_window_size",
)


def _attention(c: Call) -> Sequence[Ref]:
    """ONNX's has two batch axes, the batch and the heads. Any others become one, with one head."""
    q, k, v, mask, past_key, past_value, lengths = (c.get(i) for i in range(7))
    batch, (length, _) = c.shape()[:-2], c.shape()[-2:]
    if mask is not None:
        mask = _mask(c, mask, batch)
    operands = [q, k, v, mask, past_key, past_value, lengths]
    flat = len(batch) != 2
    if flat:
        for i in (0, 1, 2, 4, 5):
            operands[i] = _flattened(c, i)
    attributes = {name: c[name] for name in _ATTENTION}
    if c["softmax_precision"] is not None:
        attributes["softmax_precision"] = CODE_OF_DTYPE[c["softmax_precision"]]
    made = c.add_many("Attention", 4, *operands, **attributes)
    # Without a past, the present is what is given.
    results = [made[0], k or c.x, v or c.x, made[3]]
    total, value_size = c.shape(1)[-2], c.shape(2)[-1]
    if past_key is not None:
        results[1], results[2] = made[1], made[2]
        total += c.shape(4)[-2]
    if flat:
        ends = [(length, value_size), (total, c.shape(1)[-1]), (total, value_size)]
        for i, end in enumerate([*ends, (length, total)]):
            if results[i] is made[i]:
                shape = c.ints("batches", (*batch, *end))
                results[i] = c.add("Reshape", made[i], shape, allowzero=_allow_zero(shape))
    return results


def _flattened(c: Call, i: int) -> Ref | None:
    ref = c.get(i)
    if ref is None:
        return None
    shape = c.shape(i)
    whole = c.ints("heads", (math.prod(shape[:-2]), 1, *shape[-2:]))
    return c.add("Reshape", ref, whole, allowzero=_allow_zero(whole))


def _mask(c: Call, mask: Ref, batch: Sequence[int]) -> Ref:
    """A mask of two axes at least, and batches as the operands have them."""
    shape = (*((1,) * (2 - c.rank(3))), *c.shape(3))
    if c.rank(3) < 2:
        mask = c.add("Unsqueeze", mask, c.ints("axes", range(2 - c.rank(3))))
    if len(shape) == 2 or len(batch) == 2:
        return mask
    mask = c.add("Expand", mask, c.ints("batches", (*batch, *shape[-2:])))
    flat = c.ints("heads", (math.prod(batch), 1, *shape[-2:]))
    return c.add("Reshape", mask, flat, allowzero=_allow_zero(flat))


def _allow_zero(shape: Ref) -> bool | None:
    """Whether Reshape must be told to read a 0 as 0."""
    assert shape.array is not None
    return True if 0 in shape.array else None


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
    "rnn": _recurrent("RNN", 2),
    "gru": _recurrent("GRU", 2, "linear_before_reset"),
    "lstm": _recurrent("LSTM", 3, "input_forget"),
    "attention": _attention,
    "rotary_embedding": same("RotaryEmbedding", "interleaved", "num_heads", "rotary_embedding_dim"),
}
"""The form of each of these operators."""
