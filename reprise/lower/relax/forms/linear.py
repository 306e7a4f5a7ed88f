"""Matrix products."""

from __future__ import annotations

from itertools import permutations

from reprise.lower.relax.application import Application, Form

LARGEST_DETERMINANT = 3
"""Determinants are written out as sums of products (Leibniz) up to this extent."""


def _scaled(n: Application, text: str, factor: float) -> str:
    """``text`` times a factor; of integers, in double precision, rounded towards 0."""
    if factor == 1.0:
        return text
    if "float" in n.dtype or factor == int(factor):
        return f"R.multiply({text}, {n.const(factor)})"
    return n.cast(f"R.multiply({n.cast(text, 'float64')}, {n.const(factor, 'float64')})", n.dtype)


def _gemm(n: Application) -> str:
    a = f"R.permute_dims({n[0]}, [1, 0])" if n.attr("trans_a") else n[0]
    b = f"R.permute_dims({n[1]}, [1, 0])" if n.attr("trans_b") else n[1]
    product = _scaled(n, f"R.matmul({a}, {b})", n.attr("alpha"))
    if not n.has(2):
        return product
    return f"R.add({product}, {_scaled(n, n[2], n.attr('beta'))})"


def _linear(n: Application) -> str:
    return f"R.linear({', '.join(name for name in n.names if name is not None)})"


def _einsum(n: Application) -> str:
    names = ", ".join(name for name in n.names if name is not None)
    return f'R.einsum(({names},), "{n.attr("equation").replace(" ", "")}")'


def _determinant(n: Application) -> str:
    """The sum over permutations of signed products."""
    extent, rank = n.shape[-1], len(n.shape)

    def element(row: int, column: int) -> str:
        at = f"[{row}, {column}], [{row + 1}, {column + 1}]"
        cut = f"R.strided_slice({n[0]}, [{rank - 2}, {rank - 1}], {at})"
        return n.let(f"R.squeeze({cut}, [{rank - 2}, {rank - 1}])", f"{row}{column}")

    if extent == 0:
        return f'R.ones({n.shape[:-2]}, "{n.dtype}")'
    at = {(i, j): element(i, j) for i in range(extent) for j in range(extent)}
    total = ""
    for order in permutations(range(extent)):
        odd = sum(order[i] > order[j] for i in range(extent) for j in range(i, extent)) % 2
        term = at[0, order[0]]
        for row in range(1, extent):
            term = f"R.multiply({term}, {at[row, order[row]]})"
        total = f"R.{'subtract' if odd else 'add'}({total}, {term})" if total else term
    return total


FORMS: dict[str, Form] = {
    "matmul": lambda n: f"R.matmul({n[0]}, {n[1]})",
    "bmm": lambda n: f"R.matmul({n[0]}, {n[1]})",
    "gemm": _gemm,
    "linear": _linear,
    "einsum": _einsum,
    "det": _determinant,
}
