"""How two results differ, in the words of the rules' symptoms. Needs numpy only: the scripts that
run inside other interpreters use it too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FILLS = ("188", "255")
"""Values of ``MALLOC_PERTURB_`` that fill new memory with 0x43 and with 0: a result that is not set
is wrong with one of them."""
ABSOLUTE, RELATIVE = 1e-3, 1e-2
"""A wrong result is beyond both."""


def difference(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
    """The first symptom among the outputs, or None. The sign of zero does not count."""
    for a, b in zip(map(np.asarray, got), map(np.asarray, wanted), strict=True):
        if a.shape != b.shape:
            return "wrong_shape"
        if a.dtype != b.dtype:
            return "wrong_dtype"
        if _differ(a, b):
            return "wrong_result"
    return None


def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind not in "fc":
        return bool((a != b).any())
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        close = np.abs(x - y) <= np.maximum(ABSOLUTE, RELATIVE * np.abs(y))
    same = (x == y) | (np.isnan(x) & np.isnan(y)) | (close & np.isfinite(x) & np.isfinite(y))
    return not bool(same.all())
