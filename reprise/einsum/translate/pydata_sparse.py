"""Kernels for PyData sparse: ``sparse.einsum`` of arrays in COO, GCXS, DOK, or numpy's."""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Kernel, Tensor, Term
from reprise.einsum.translate.matrices import kind_of
from reprise.einsum.translate.script import array, axes_of, values_of

imports = "import sparse"
helpers = '''
def entries(result):
    """Coordinates and values that are stored; none and an array if it is dense, or if what is not
    stored is not zero."""
    if not isinstance(result, sparse.SparseArray):
        return np.zeros(0, "int64"), np.asarray(result)
    if result.fill_value != 0:
        return np.zeros(0, "int64"), result.todense()
    coo = result.asformat("coo")
    return coo.coords.T, coo.data
'''


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """A numpy array if all levels are dense; GCXS compressed along the outermost level if that is
    dense, else along all but the innermost; COO or, out of order, DOK if none is."""
    name, kind = tensor.name, kind_of(tensor.format)
    if kind == "dense" or not stored.shape:
        return [f"{name} = {array(stored, kernel.dtype)}"]
    axes = f"np.array({axes_of(stored)}, 'int64').reshape({len(stored.shape)}, -1)"
    given = f"{axes}, np.array({values_of(stored)}, '{kernel.dtype}'), shape={stored.shape}"
    lines = [f"{name} = sparse.COO({given})"]
    order = tensor.format.order
    if kind == "table":
        lines.append(f"{name} = sparse.DOK.from_coo({name})")
    elif kind != "entries" and len(stored.shape) > 1:
        along = order[:1] if kind in ("rows", "columns") else order[:-1]
        axes_text = f"compressed_axes={tuple(sorted(along))}"
        lines.append(f"{name} = sparse.GCXS.from_coo({name}, {axes_text})")
    return lines


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """An earlier result is read as it is."""
    return []


def compute(kernel: Kernel) -> list[str]:
    """``A = sparse.einsum("ij,jk->ik", B, C) + sparse.einsum("ik->ik", D)``."""
    name = kernel.output.tensor
    lines = [f"{name} = {' + '.join(_term(kernel, term) for term in kernel.terms)}"]
    if kernel.tensors[0].format.is_dense:
        lines.append(
            f"{name} = {name}.todense() if isinstance({name}, sparse.SparseArray) else {name}"
        )
    return lines


def _term(kernel: Kernel, term: Term) -> str:
    inputs = ",".join("".join(factor.indices) for factor in term.factors)
    names = [factor.tensor for factor in term.factors]
    if all(kernel.tensor(name).format.is_dense for name in names):
        # One is made sparse, to try anything at all; not a scalar, which would be all fill value.
        first = next((n for n, f in enumerate(term.factors) if f.indices), 0)
        names[first] = f"sparse.COO.from_numpy({names[first]})"
    text = f"{inputs}->{''.join(kernel.output.indices)}"
    return f'sparse.einsum("{text}", {", ".join(names)})'


def result(kernel: Kernel) -> str:
    """The entries of the output."""
    return f"entries({kernel.output.tensor})"
