"""Matrix products. Integers wrap around; 16-bit floats accumulate in ``float32``.

``gemm`` scales integers by whole factors in their type, by others in double precision, rounded
towards 0.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

import numpy as np

from reprise.uir.semantics.registry import FLOAT64, Values, kernel

kernel("matmul", "bmm")(np.matmul)


@kernel("gemm", mixed=True)
def gemm(
    a: Values,
    b: Values,
    c: Values | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Values:
    product = np.matmul(a.T if trans_a else a, b.T if trans_b else b)
    made = _scaled(product, alpha)
    return made if c is None else made + _scaled(c, beta)


def _scaled(x: Values, factor: float) -> Values:
    if factor == 1:
        return x
    if x.dtype.kind == "f":
        return factor * x
    if factor.is_integer() and abs(factor) < 2.0**63:
        return x * np.array(int(factor)).astype(x.dtype)
    return factor * x.astype(FLOAT64)


@kernel("linear")
def linear(x: Values, w: Values, b: Values | None = None) -> Values:
    made = np.matmul(x, w.T)
    return made if b is None else made + b


@kernel("einsum")
def einsum(*xs: Values, equation: str) -> Values:
    return np.einsum(equation, *xs, dtype=xs[0].dtype)


@kernel("det")
def det(x: Values) -> Values:
    return np.linalg.det(x)
