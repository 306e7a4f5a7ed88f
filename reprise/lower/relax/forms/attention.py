"""Attention and rotary embedding, written out."""

from __future__ import annotations

from math import inf

import numpy as np

from reprise.lower.relax.application import Application, Form, Shape, number


def _attention(n: Application) -> list[str]:
    kind = n.dtype
    q, k, v = n[0], n[1], n[2]
    queries, keys = n.shape, n.shape_of(1)
    past = 0
    if n.has(4) and n.has(5):
        past = n.shape_of(4)[-2]
        axis = len(keys) - 2
        k = n.let(f"R.concat([{n[4]}, {k}], axis={axis})", "keys")
        v = n.let(f"R.concat([{n[5]}, {v}], axis={axis})", "values")
        keys = (*keys[:-2], keys[-2] + past, keys[-1])
    present = [k, v]
    if len(queries) == 4 and queries[1] != keys[1]:
        times = queries[1] // keys[1]
        k, v = (n.let(f"R.repeat({x}, {times}, axis=1)", "shared") for x in (k, v))
    scale = n.attr("scale")
    factor = 1 / np.sqrt(max(queries[-1], 1)) if scale is None else scale
    swapped = [*range(len(keys) - 2), len(keys) - 1, len(keys) - 2]
    scaled = f"R.multiply({q}, {n.const(float(factor))})"
    scores = n.let(f"R.matmul({scaled}, R.permute_dims({k}, {swapped}))", "scores")
    capped = scores
    cap = n.attr("softcap")
    if cap > 0:
        small = f"R.tanh(R.divide({scores}, {n.const(cap)}))"
        capped = n.let(f"R.multiply({n.const(cap)}, {small})", "capped")
    bias = _bias(n, queries, keys[-2], past)
    biased = capped if bias is None else n.let(f"R.add({capped}, {bias})", "biased")
    weights = f"R.nn.softmax({biased}, axis={len(queries) - 1})"
    if bias is not None:
        alone = f"R.equal(R.max({bias}, axis=[-1], keepdims=True), {n.const(-inf)})"
        weights = f"R.where({alone}, {n.const(0.0)}, {weights})"
    weights = n.let(weights, "weights")
    same = n.type(2).dtype == kind
    product = f"R.matmul({weights if same else n.cast(weights, n.type(2).dtype or '')}, {v})"
    if not same:
        product = n.cast(product, kind)
    shown = (scores, capped, biased, weights)[n.attr("qk_matmul_output_mode")]
    return [product, *present, shown]


def _bias(n: Application, queries: Shape, keys: int, past: int) -> str | None:
    """What is added to the scores: 0 or the mask where a query may attend, else -inf."""
    rank, length = len(queries), queries[-2]
    bias = None
    if n.has(3):
        bias = _mask(n, keys)
    left, right = n.attr("left_window_size"), n.attr("right_window_size")
    causal = bool(n.attr("is_causal"))
    if not (causal or left >= 0 or right >= 0 or n.has(6)):
        return None if bias is None else n.let(bias, "bias")
    if n.has(6):
        allowed = _allowed_by_lengths(n, rank, length, keys, causal, left, right)
    else:
        distance = np.arange(length)[:, None] + past - np.arange(keys)[None, :]
        table = np.ones((length, keys), bool)
        if causal:
            table &= distance >= 0
        if left >= 0:
            table &= distance <= left
        if right >= 0:
            table &= -distance <= right
        allowed = n.array(table, "allowed", "bool")
    base = n.const(0.0) if bias is None else bias
    return n.let(f"R.where({allowed}, {base}, {n.const(-inf)})", "bias")


def _mask(n: Application, keys: int) -> str:
    """The mask as something to add; a short one leaves the last keys out."""
    shape, dtype = n.shape_of(3), n.type(3).dtype or ""
    mask = n[3] if shape else f"R.reshape({n[3]}, (1,))"
    if dtype == "bool":
        mask = f"R.where({mask}, {n.const(0.0)}, {n.const(-inf)})"
    elif dtype != n.dtype:
        mask = n.cast(mask, n.dtype)
    short = keys - shape[-1] if shape else 0
    if short > 0:
        widths = [*([0] * (2 * len(shape) - 1)), short]
        mask = f'R.nn.pad({n.let(mask, "mask")}, {widths}, "constant", {number(-inf)})'
    return n.let(mask, "mask")


def _allowed_by_lengths(
    n: Application, rank: int, length: int, keys: int, causal: bool, left: int, right: int
) -> str:
    """Which keys count, where each sequence has its own number of them."""
    apart = (n.shape_of(6)[0], *(1 for _ in range(rank - 1)))
    lengths = n.let(f"R.reshape({n[6]}, {apart})", "lengths")
    columns = n.array(np.arange(keys), "columns")
    allowed = f"R.less({columns}, {lengths})"
    if causal or left >= 0 or right >= 0:
        table = n.array(np.arange(length)[:, None] - np.arange(keys)[None, :] - length, "apart")
        distance = n.let(f"R.add({table}, {lengths})", "distance")
        for wanted, bound, function in (
            (causal, 0, "greater_equal"),
            (left >= 0, left, "less_equal"),
            (right >= 0, -right, "greater_equal"),
        ):
            if wanted:
                test = f"R.{function}({distance}, {n.const(bound, 'int64')})"
                allowed = f"R.logical_and({allowed}, {test})"
    return n.let(allowed, "allowed")


def _rotary(n: Application) -> str:
    """Pairs of features turned by an angle; what is beyond ``rotary_embedding_dim`` stays."""
    shape = n.shape
    heads: Shape
    if len(shape) == 4:
        x = n.let(f"R.permute_dims({n[0]}, [0, 2, 1, 3])", "heads")
        heads = (shape[0], shape[2], shape[1], shape[3])
    else:
        count = n.attr("num_heads")
        heads = (shape[0], shape[1], count, shape[2] // count)
        x = n.let(f"R.reshape({n[0]}, {heads})", "heads")
    turned = n.attr("rotary_embedding_dim") or heads[3]
    moving = x if turned == heads[3] else n.let(_features(x, 0, turned), "moving")
    cos, sin = n[1], n[2]
    if n.has(3):
        cos, sin = (f"R.take({each}, {n[3]}, axis=0)" for each in (cos, sin))
    cos, sin = (n.let(f"R.expand_dims({each}, [2])", "angle") for each in (cos, sin))
    half = turned // 2
    if n.attr("interleaved"):
        one, other = (_features(moving, i, turned, 2) for i in (0, 1))
    else:
        one, other = _features(moving, 0, half), _features(moving, half, turned)
    one, other = n.let(one, "one"), n.let(other, "other")
    first = f"R.subtract(R.multiply({cos}, {one}), R.multiply({sin}, {other}))"
    second = f"R.add(R.multiply({sin}, {one}), R.multiply({cos}, {other}))"
    if n.attr("interleaved"):
        made = f"R.reshape(R.stack([{first}, {second}], axis=4), {(*heads[:3], turned)})"
    else:
        made = f"R.concat([{first}, {second}], axis=3)"
    if turned != heads[3]:
        made = f"R.concat([{made}, {_features(x, turned, heads[3])}], axis=3)"
    if len(shape) == 4:
        return f"R.permute_dims({made}, [0, 2, 1, 3])"
    return f"R.reshape({made}, {shape})"


def _features(x: str, begin: int, end: int, step: int = 1) -> str:
    return f"R.strided_slice({x}, [3], [{begin}], [{end}], [{step}])"


FORMS: dict[str, Form] = {"attention": _attention, "rotary_embedding": _rotary}
