"""Layers over sequences: recurrence, attention, rotary embedding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lower.onnx.call import Call, Form, Ref
from reprise.lower.onnx.forms import either, same


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
    total, value_size = c.shape(1)[-2], c.shape(2)[-1]
    if past_key is not None:
        total += c.shape(4)[-2]
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
    if past_key is not None:
        results[1], results[2] = made[1], made[2]
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
    """A mask of two axes at least, with batches as the operands have them."""
    shape = c.shape(3)
    wanted: tuple[int, ...] = (*((1,) * (2 - len(shape))), *shape)
    flat = len(wanted) > 2 and len(batch) != 2
    if flat:
        wanted = (*batch, *wanted[-2:])
    if wanted != shape:
        mask = c.add("Expand", mask, c.ints("mask_shape", wanted))
    if not flat:
        return mask
    heads = c.ints("mask_heads", (math.prod(batch), 1, *wanted[-2:]))
    return c.add("Reshape", mask, heads, allowzero=_allow_zero(heads))


def _allow_zero(shape: Ref) -> bool | None:
    """Whether Reshape must be told to read a 0 as 0."""
    assert shape.array is not None
    return True if 0 in shape.array else None


def _attention_apart(c: Call) -> Sequence[Ref]:
    """Before opset 23: the products written out, over any batch axes."""
    k, v, batch = c.operand(1), c.operand(2), c.shape()[:-2]
    (length, size), total, rank = c.shape()[-2:], c.shape(1)[-2], c.rank()
    past_key, past_value = c.get(4), c.get(5)
    past = 0
    if past_key is not None:
        past = c.shape(4)[-2]
        total += past
        k, v = (
            c.add("Concat", old, new, axis=rank - 2)
            for old, new in ((past_key, k), (past_value, v))
        )
    present = (k, v)
    if batch != c.shape(1)[:-2]:
        sizes = (size, c.shape(2)[-1])
        k, v = (_every_head(c, x, total, s) for x, s in zip((k, v), sizes, strict=True))
    flipped = (*range(rank - 2), rank - 1, rank - 2)
    scale = max(size, 1) ** -0.5 if c["scale"] is None else c["scale"]
    raw = c.add("MatMul", c.x, c.add("Transpose", k, perm=flipped))
    raw = scores = c.add("Mul", raw, c.number(scale, label="scale"))
    if c["softcap"]:
        cap = c.number(c["softcap"], label="cap")
        scores = c.add("Mul", c.add("Tanh", c.add("Div", scores, cap)), cap)
    scores = _masked_scores(c, scores, length, total, past)
    precision = c["softmax_precision"] or c.dtype()
    likely = c.add("Softmax", c.cast(scores, precision), axis=rank - 1)
    likely = c.cast(likely, c.dtype(), precision)
    y = c.add("MatMul", c.cast(likely, c.dtype(2)), v)
    y = c.cast(y, c.dtype(), c.dtype(2))
    return (y, *present, likely if c["qk_matmul_output_mode"] == 3 else raw)


def _every_head(c: Call, x: Ref, total: int, size: int) -> Ref:
    """Keys or values with each head repeated for the queries that share it."""
    batch, heads = c.shape(1)[:2]
    group = c.shape()[1] // heads
    x = c.add("Unsqueeze", x, c.ints("group", (2,)))
    x = c.add("Expand", x, c.ints("groups", (batch, heads, group, total, size)))
    shape = c.ints("heads", (batch, heads * group, total, size))
    return c.add("Reshape", x, shape, allowzero=_allow_zero(shape))


def _masked_scores(c: Call, scores: Ref, length: int, total: int, past: int) -> Ref:
    """Scores with the mask, and what lies in the future or outside the window, at -inf."""
    mask = c.get(3)
    never = c.number(-math.inf, label="never")
    if mask is not None and c.dtype(3) == "bool":
        scores = c.add("Where", mask, scores, never)
    elif mask is not None:
        scores = c.add("Add", scores, c.cast(mask, c.dtype(), c.dtype(3)))
    ahead = np.arange(total)[None, :] - np.arange(length)[:, None] - past
    seen = np.ones_like(ahead, dtype=bool)
    if c["is_causal"]:
        seen &= ahead <= 0
    left, right = c["left_window_size"], c["right_window_size"]
    if left is not None and left >= 0:
        seen &= -ahead <= left
    if right is not None and right >= 0:
        seen &= ahead <= right
    return scores if seen.all() else c.add("Where", c.constant("seen", seen, "bool"), scores, never)


def _rotary_apart(c: Call) -> Ref:
    """Before opset 23: pairs of features times cosines and sines."""
    shape, x, axis = c.shape(), c.x, 1
    if len(shape) == 3:
        heads = c["num_heads"]
        shape, axis = (*shape[:2], heads, shape[2] // heads), 2
        x = _reshaped(c, x, shape)
    size = shape[3]
    turned = c["rotary_embedding_dim"] or size
    cos, sin = (_turn(c, c.operand(i), axis) for i in (1, 2))
    first, second, rest = _pairs(c, x, turned, size)
    real = c.add("Sub", c.add("Mul", cos, first), c.add("Mul", sin, second))
    imaginary = c.add("Add", c.add("Mul", sin, first), c.add("Mul", cos, second))
    if c["interleaved"]:
        last = c.ints("last", (4,))
        pairs = c.add(
            "Concat", c.add("Unsqueeze", real, last), c.add("Unsqueeze", imaginary, last), axis=4
        )
        y = _reshaped(c, pairs, (*shape[:3], turned))
    else:
        y = c.add("Concat", real, imaginary, axis=3)
    if rest is not None:
        y = c.add("Concat", y, rest, axis=3)
    return y if c.rank() == 4 else _reshaped(c, y, c.shape())


def _turn(c: Call, table: Ref, axis: int) -> Ref:
    """Cosines or sines for each position, the same for all heads."""
    positions = c.get(3)
    if positions is not None:
        table = c.add("Gather", table, positions, axis=0)
    return c.add("Unsqueeze", table, c.ints("heads", (axis,)))


def _pairs(c: Call, x: Ref, turned: int, size: int) -> tuple[Ref, Ref, Ref | None]:
    """The two features of each pair, and those that are not turned."""
    last = c.ints("axis", (3,))

    def part(start: int, end: int, step: int = 1) -> Ref:
        bounds = (c.ints(name, (value,)) for name, value in (("start", start), ("end", end)))
        return c.add("Slice", x, *bounds, last, c.ints("step", (step,)))

    rest = part(turned, size) if turned < size else None
    if c["interleaved"]:
        return part(0, turned, 2), part(1, turned, 2), rest
    return part(0, turned // 2), part(turned // 2, turned), rest


def _reshaped(c: Call, x: Ref, shape: Sequence[int]) -> Ref:
    wanted = c.ints("shape", shape)
    return c.add("Reshape", x, wanted, allowzero=_allow_zero(wanted))


FORMS: dict[str, Form] = {
    "rnn": _recurrent("RNN", 2),
    "gru": _recurrent("GRU", 2, "linear_before_reset"),
    "lstm": _recurrent("LSTM", 3, "input_forget"),
    "attention": either("Attention", _attention, _attention_apart),
    "rotary_embedding": either(
        "RotaryEmbedding",
        same("RotaryEmbedding", "interleaved", "num_heads", "rotary_embedding_dim"),
        _rotary_apart,
    ),
}
"""The form of each of these operators."""
