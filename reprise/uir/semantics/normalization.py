"""Normalisation: subtract a mean, divide by a deviation. Variances are those of the population,
computed about the mean in a second pass.

``batch_norm`` in training updates the running variance with the population's, as ONNX does (torch:
with the sample's); elsewhere it returns the running values that it was given. ``layer_norm`` and
``rms_norm`` compute ``float64`` in ``float64``, whatever ``stash_type`` says; the mean and the
inverse deviation that they return are ``float32``. ``lp_normalize`` makes 0 of a zero vector.
``lrn``'s window has its shorter half before the channel; torch's is the other way round where
``size`` is even.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from typing import Any

import numpy as np

from reprise.uir.semantics.convolution import along_channels
from reprise.uir.semantics.reduction import add_up
from reprise.uir.semantics.registry import Values, kernel

Ints = tuple[int, ...]


def moments(x: Values, axes: Ints) -> tuple[Values, Values, Values]:
    """Mean, x less its mean, and variance; reduced axes are kept."""
    elements = x.dtype.type(np.prod([x.shape[axis] for axis in axes]))
    mean = add_up(x, axes, None, None, True) / elements
    centred = x - mean
    return mean, centred, add_up(centred * centred, axes, None, None, True) / elements


@kernel("batch_norm", mixed=True)
def batch_norm(
    x: Values,
    scale: Values,
    bias: Values,
    mean: Values,
    var: Values,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training: bool = False,
) -> tuple[Values, Values, Values]:
    rank = x.ndim - 2
    running_mean, running_var = mean, var
    if training:
        batch_mean, _, batch_var = moments(x, (0, *range(2, x.ndim)))
        mean, var = batch_mean.reshape(-1), batch_var.reshape(-1)
        running_mean = running_mean * momentum + mean * (1 - momentum)
        running_var = running_var * momentum + var * (1 - momentum)
    factor = scale / np.sqrt(var + epsilon)
    centred = x - along_channels(mean, rank)
    y = centred * along_channels(factor, rank) + along_channels(bias, rank)
    return y, running_mean, running_var


@kernel("layer_norm", mixed=True)
def layer_norm(
    x: Values,
    scale: Values | None = None,
    bias: Values | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> tuple[Values, Values, Values]:
    mean, centred, variance = moments(x, _from(axis, x.ndim))
    inverse = np.reciprocal(np.sqrt(variance + epsilon))
    y = centred * inverse
    if scale is not None:
        y = y * scale
    if bias is not None:
        y = y + bias
    return y, mean, inverse


def _from(axis: int, rank: int) -> Ints:
    return tuple(range(axis % rank, rank))


@kernel("rms_norm")
def rms_norm(x: Values, scale: Values, *, axis: int = -1, epsilon: float = 1e-5) -> Values:
    axes = _from(axis, x.ndim)
    elements = x.dtype.type(np.prod([x.shape[axis] for axis in axes]))
    square = add_up(x * x, axes, None, None, True) / elements
    return x / np.sqrt(square + epsilon) * scale


@kernel("instance_norm")
def instance_norm(x: Values, scale: Values, bias: Values, *, epsilon: float = 1e-5) -> Values:
    rank = x.ndim - 2
    _, centred, variance = moments(x, tuple(range(2, x.ndim)))
    y = centred / np.sqrt(variance + epsilon)
    return y * along_channels(scale, rank) + along_channels(bias, rank)


@kernel("group_norm")
def group_norm(
    x: Values, scale: Values, bias: Values, *, groups: int, epsilon: float = 1e-5
) -> Values:
    rank = x.ndim - 2
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    _, centred, variance = moments(parts, tuple(range(2, parts.ndim)))
    y = (centred / np.sqrt(variance + epsilon)).reshape(x.shape)
    return y * along_channels(scale, rank) + along_channels(bias, rank)


@kernel("mean_variance_norm")
def mean_variance_norm(x: Values, *, axes: Ints = (0, 2, 3)) -> Values:
    _, centred, variance = moments(x, axes)
    return centred / (np.sqrt(variance) + 1e-9)


@kernel("lrn")
def lrn(
    x: Values, *, size: int, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0
) -> Values:
    before, after = (size - 1) // 2, size // 2
    channels = x.shape[1]
    squares = x * x
    total = np.zeros_like(x)
    for channel in range(channels):
        window = slice(max(channel - before, 0), min(channel + after + 1, channels))
        total[:, channel] = squares[:, window].sum(1)
    return x / np.power(bias + (alpha / size) * total, x.dtype.type(beta))


@kernel("lp_normalize")
def lp_normalize(x: Values, *, axis: int = -1, p: int = 2) -> Values:
    magnitude: Any = np.abs(x) if p == 1 else x * x
    norm = add_up(magnitude, axis, None, None, True)
    if p == 2:
        norm = np.sqrt(norm)
    return np.where(norm == 0, x.dtype.type(0), x / norm)
