"""Attention, and what stands around it, as ONNX defines them.

A query that may attend to no key at all gets 0. The past comes before the keys that
are given; ``is_causal`` and the windows count from the end of the past, or with ``lengths``, so
that the last query stands at the last key that counts. ``softmax_precision`` is a lower bound here:
nothing is computed in less than ``float32``. A mask whose last axis is too short is filled up with
-inf, even if its extent is 1 and might have been stretched.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.indexing import positions
from reprise.uir.semantics.reduction import add_up, greatest
from reprise.uir.semantics.registry import (
    FLOAT32,
    HALVES,
    Cause,
    Causes,
    Values,
    judge,
    kernel,
)


@kernel("attention", mixed=True)
def attention(
    q: Values,
    k: Values,
    v: Values,
    mask: Values | None = None,
    past_key: Values | None = None,
    past_value: Values | None = None,
    lengths: Values | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> tuple[Values, ...]:
    packed = q.ndim == 3 and q_num_heads is not None and kv_num_heads is not None
    if packed:
        q = _heads(q, q_num_heads)
        k, v = _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], -2), np.concatenate([past_value, v], -2)
    present = (k, v)
    if q.ndim == 4 and q.shape[1] != k.shape[1]:
        shared = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    factor = 1 / np.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    scores = np.matmul(q * q.dtype.type(factor), np.swapaxes(k, -1, -2))
    capped = softcap * np.tanh(scores / softcap) if softcap > 0 else scores
    past = 0 if past_key is None else past_key.shape[-2]
    bias = _bias(q, k, mask, past, lengths, is_causal, left_window_size, right_window_size)
    biased = capped + bias
    weights = _softmax(biased, bias)
    y = np.matmul(weights, v)
    shown = (scores, capped, biased, weights)[qk_matmul_output_mode]
    if packed:
        y = np.swapaxes(y, 1, 2).reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])
    return (y, *present, shown)


def _heads(x: Values, heads: Any) -> Values:
    """[B, L, heads * E] as [B, heads, L, E]."""
    return np.swapaxes(x.reshape(*x.shape[:2], heads, x.shape[2] // heads), 1, 2)


def _bias(
    q: Values,
    k: Values,
    mask: Values | None,
    past: int,
    lengths: Values | None,
    is_causal: bool,
    left: int,
    right: int,
) -> Values:
    """What is added to the scores: 0 or the mask where a query may attend to a key, else -inf."""
    queries, keys = q.shape[-2], k.shape[-2]
    bias: Values = np.zeros((queries, keys), q.dtype)
    if mask is not None:
        short = keys - mask.shape[-1] if mask.ndim else 0
        if short > 0:
            filler: Any = False if mask.dtype == bool else -np.inf
            wide = [(0, 0)] * (mask.ndim - 1) + [(0, short)]
            mask = np.pad(mask, wide, constant_values=filler)
        if mask.dtype == bool:
            mask = np.where(mask, q.dtype.type(0), q.dtype.type(-np.inf))
        bias = bias + mask
    offset: Any = past
    if lengths is not None:
        apart = (-1,) + (1,) * (q.ndim - 1)
        offset = lengths.reshape(apart) - queries
    distance = np.arange(queries)[:, None] + offset - np.arange(keys)[None, :]
    allowed: Any = np.ones((), bool)
    if is_causal:
        allowed = allowed & (distance >= 0)
    if left >= 0:
        allowed = allowed & (distance <= left)
    if right >= 0:
        allowed = allowed & (-distance <= right)
    if lengths is not None:
        allowed = allowed & (np.arange(keys) < lengths.reshape(apart))
    return np.where(allowed, bias, q.dtype.type(-np.inf))


def _softmax(scores: Values, bias: Values) -> Values:
    """Along the last axis; 0 for a query without keys."""
    top = greatest(scores, -1, None, None, True, -np.inf)
    powers = np.exp(scores - np.where(np.isneginf(top), scores.dtype.type(0), top))
    total = add_up(powers, -1, None, None, True)
    weights = powers / np.where(total == 0, scores.dtype.type(1), total)
    alone = np.isneginf(greatest(bias, -1, None, None, True, -np.inf))
    return np.where(alone, scores.dtype.type(0), weights)


@judge("attention")
def judge_attention(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Causes | None:
    """Queries that may attend to no key: ONNX says 0 since opset 25, older versions NaN."""
    q, k = operands[:2]
    heads, shared = attributes.get("q_num_heads"), attributes.get("kv_num_heads")
    if q.ndim == 3 and heads is not None and shared is not None:
        q, k = _heads(q, heads), _heads(k, shared)
    mask, past, lengths = (operands[i] if i < len(operands) else None for i in (3, 4, 6))
    if mask is None and lengths is None and not attributes.get("is_causal"):
        windows = (attributes.get("left_window_size", -1), attributes.get("right_window_size", -1))
        if windows == (-1, -1):
            return None
    if past is not None:
        k = np.concatenate([past, k], -2)
    if mask is not None and mask.dtype.num in HALVES:
        mask = mask.astype(FLOAT32)
    bias = _bias(
        np.zeros(q.shape, FLOAT32),
        k,
        mask,
        0 if past is None else past.shape[-2],
        lengths,
        attributes.get("is_causal", False),
        attributes.get("left_window_size", -1),
        attributes.get("right_window_size", -1),
    )
    alone = np.isneginf(greatest(bias, -1, None, None, False, -np.inf))
    return {0: Cause.EMPTY, 3: Cause.EMPTY} if alone.any() else None


@kernel("rotary_embedding")
def rotary_embedding(
    x: Values,
    cos: Values,
    sin: Values,
    position_ids: Values | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Values:
    if x.ndim == 4:
        heads = np.swapaxes(x, 1, 2)
    else:
        heads = x.reshape(*x.shape[:2], num_heads, x.shape[2] // num_heads)
    rotated = rotary_embedding_dim or heads.shape[-1]
    moving, still = heads[..., :rotated], heads[..., rotated:]
    if position_ids is not None:
        rows = positions(position_ids, cos.shape[0])
        cos, sin = cos[rows], sin[rows]
    cos, sin = cos[:, :, None, :], sin[:, :, None, :]
    if interleaved:
        one, other = moving[..., 0::2], moving[..., 1::2]
    else:
        one, other = np.split(moving, 2, -1)
    pair = (cos * one - sin * other, sin * one + cos * other)
    turned = np.stack(pair, -1).reshape(moving.shape) if interleaved else np.concatenate(pair, -1)
    made = np.concatenate([turned, still], -1)
    return np.swapaxes(made, 1, 2) if x.ndim == 4 else made.reshape(x.shape)
