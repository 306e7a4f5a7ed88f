"""When two results of an operator agree."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TOLERANCE = {
    "float64": (1e-9, 1e-11),
    "float32": (2e-4, 2e-5),
    "float16": (1e-2, 1e-2),
    "bfloat16": (6e-2, 6e-2),
}
"""Relative and absolute: what a few roundings in the type may amount to, where the other side
rounds after each step and we round once."""


def difference(ours: Array, theirs: Array, dtype: str | None = None) -> str | None:
    """How two arrays differ, or None if they agree: NaN with NaN, infinities exactly, floats within
    the tolerance of their type (or of ``dtype``), everything else exactly."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype.kind in "OUS" or theirs.dtype.kind in "OUS":
        same = [str(a) == str(b) for a, b in zip(ours.ravel(), theirs.ravel(), strict=True)]
        return None if all(same) else f"{ours!r}, not {theirs!r}"
    name = dtype or str(ours.dtype)
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    if ours.dtype.kind == "c":
        return None if np.allclose(ours, theirs, equal_nan=True) else "complex values"
    if ours.dtype.kind in "iub":
        return _first(ours, theirs, ours == theirs)
    relative, absolute = TOLERANCE.get(name, (0.0, 0.0))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= absolute + relative * np.abs(b)
    return _first(ours, theirs, close | (a == b) | (np.isnan(a) & np.isnan(b)))


def _first(ours: Array, theirs: Array, same: Array) -> str | None:
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0]) if same.ndim else ()
    return f"{ours[place]!r}, not {theirs[place]!r}, at {place} ({(~same).sum()} of {same.size})"
