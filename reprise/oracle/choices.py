"""Indices with ties: no verdict on which of equal elements was chosen, but one on whether it is
one of them.

`argmax([5, 5, 2])` may be 0 or 1, and is never 2. Inductor's `argmin` of booleans gives a position
that holds no minimum (pytorch#184893): with two values only, almost every row has ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reprise.oracle.compare import Mask, is_float, mismatches
from reprise.oracle.tolerance import PAPER
from reprise.uir.graph import Array, Graph, Node

_CHOOSERS = {"argmax": 0, "argmin": 0, "argsort": 0, "sort": 1, "topk": 1}
"""Operators whose result is indices along ``axis``, and which of their outputs it is."""


def inadmissible(
    graph: Graph, output: int, chosen: Array, values: Mapping[int, Array]
) -> Mask | None:
    """Where the indices ``chosen`` point at another value than the reference's do, outside the
    axis, or at one element twice. None if the output is not directly such indices, or if NaN is
    among what was chosen from. ``values``: every tensor's, by id, in native precision."""
    tensor = graph.outputs[output]
    while tensor.producer is not None and tensor.producer.op == "identity":
        inner = tensor.producer.inputs[0]
        if inner is None:
            return None
        tensor = inner
    node = tensor.producer
    if node is None or _CHOOSERS.get(node.op) != node.outputs.index(tensor):
        return None
    source = node.inputs[0]
    if source is None or chosen.dtype.kind not in "iu":
        return None
    data, wanted = values[source.id], values[tensor.id]
    if chosen.shape != wanted.shape or (is_float(data.dtype) and np.isnan(data).any()):
        return None
    axis = _axis(node, data.ndim)
    if data.ndim == 0:
        return np.asarray(chosen != 0)
    dropped = wanted.ndim < data.ndim
    extent = data.shape[axis]
    ours, theirs = (
        np.asarray(np.expand_dims(a, axis) if dropped else a).astype(np.int64)
        for a in (wanted, chosen)
    )
    outside = (theirs < 0) | (theirs >= extent)
    there = np.take_along_axis(data, np.where(outside, 0, theirs), axis)
    here = np.take_along_axis(data, ours, axis)
    if is_float(data.dtype) and source.producer is not None:  # rounding may have reordered them
        bad = outside | mismatches(here, there, PAPER.bounds(data.dtype))
    else:
        bad = outside | np.asarray(here != there)
    if not dropped and theirs.shape[axis] > 1:
        ordered = np.sort(theirs, axis)
        twice = (np.diff(ordered, axis=axis) == 0).any(axis, keepdims=True)
        bad = bad | np.broadcast_to(twice, bad.shape)
    return np.asarray(np.squeeze(bad, axis) if dropped else bad)


def _axis(node: Node, rank: int) -> int:
    default: Any = 0 if node.op.startswith("argm") else -1
    axis: Any = node.attributes.get("axis", default)
    return int(axis) % max(rank, 1)
