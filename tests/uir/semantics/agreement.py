"""When two results of an operator agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reprise.uir.graph import TensorType

Array = np.ndarray[Any, Any]

TOLERANCE = {
    "float64": (1e-9, 1e-10),
    "float32": (2e-4, 2e-5),
    "float16": (1e-2, 1e-2),
    "bfloat16": (6e-2, 6e-2),
}
"""Relative, and absolute for results of magnitude 1: what a few roundings in the type may amount
to, where the other side rounds after each step and we round once."""

_COARSE_FIRST = ("bfloat16", "float16", "float32", "float64")


def coarsest(types: Iterable[TensorType | None]) -> str:
    """The least precise float type among operands and results."""
    present = {t.dtype for t in types if t is not None}
    return next((name for name in _COARSE_FIRST if name in present), "float64")


def difference(ours: Array, theirs: Array, precision: str) -> str | None:
    """How two arrays differ, or None if they agree: NaN with NaN, infinities exactly, finite floats
    within the tolerance of ``precision`` (relative, and relative to the result's greatest), and
    everything else exactly. The other side may use another type for the same numbers."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype.kind in "OUS" or theirs.dtype.kind in "OUS":
        pairs = zip(ours.ravel(), theirs.ravel(), strict=True)
        return None if all(str(a) == str(b) for a, b in pairs) else f"{ours!r}, not {theirs!r}"
    if ours.dtype.kind == "c":
        return None if np.allclose(ours, theirs, equal_nan=True) else f"{ours!r}, not {theirs!r}"
    if ours.dtype.kind in "iub":
        return _first(ours, theirs, ours == theirs.astype(ours.dtype))
    relative, absolute = TOLERANCE[precision]
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if str(ours.dtype).startswith(("float8", "float4", "int", "uint")):
        relative = absolute = 0.0
    with np.errstate(all="ignore"):
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        close = np.abs(a - b) <= absolute * scale + relative * np.abs(b)
    return _first(ours, theirs, close | (a == b) | (np.isnan(a) & np.isnan(b)))


def _first(ours: Array, theirs: Array, same: Array) -> str | None:
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0]) if same.ndim else ()
    return f"{ours[place]!r}, not {theirs[place]!r}, at {place} ({(~same).sum()} of {same.size})"
