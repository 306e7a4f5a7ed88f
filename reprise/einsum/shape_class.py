"""The class of a kernel: its formats and the roles of its indices, whatever their names."""

from __future__ import annotations

from itertools import permutations, product

from reprise.einsum.kernel import Access, Kernel

_MOST_ORDERS = 720
"""Orders of factors that are tried to find the least text; of more, the first."""


def shape_class(kernel: Kernel) -> str:
    """``ab:dd = ac:ds * cb:ds``: the same for kernels that differ in names, data, extents or in the
    order of their factors and terms. Indices are named in the order of their use, the output's
    first; of all orders of terms and factors, the one that gives the least text."""
    orders = [list(permutations(term.factors)) for term in kernel.terms]
    count = 1
    for some in orders:
        count *= len(some)
    if count * len(kernel.terms) > _MOST_ORDERS:
        return _text(kernel, [term.factors for term in kernel.terms])
    return min(
        _text(kernel, list(chosen)) for terms in permutations(orders) for chosen in product(*terms)
    )


def _text(kernel: Kernel, terms: list[tuple[Access, ...]]) -> str:
    names: dict[str, str] = {}

    def access(one: Access) -> str:
        letters = "".join(names.setdefault(i, chr(ord("a") + len(names))) for i in one.indices)
        stored = str(kernel.tensor(one.tensor).format)
        return f"{letters}:{stored}" if letters else "scalar"

    output = access(kernel.output)
    products = [" * ".join(map(access, factors)) for factors in terms]
    return f"{output} = {' + '.join(products)}"
