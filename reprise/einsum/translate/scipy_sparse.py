"""Kernels for scipy.sparse: products and sums of matrices in CSR, CSC, COO, DOK, BSR and LIL."""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Kernel, Tensor
from reprise.einsum.translate.matrices import helpers as _unravelled
from reprise.einsum.translate.matrices import kind_of, matrix_of, plan, sides_of, unravelling
from reprise.einsum.translate.script import Untranslatable, array, axes_of, values_of

imports = "import scipy.sparse"
helpers = (
    _unravelled
    + '''

def entries(result, *sides):
    """Coordinates and values of a matrix, as those of the tensor that it stands for."""
    if not scipy.sparse.issparse(result):
        result = np.asarray(result)
        result = result.reshape(int(np.prod(sides[0])), int(np.prod(sides[1])))
    coo = scipy.sparse.coo_array(result)
    coo.sum_duplicates()
    coo.eliminate_zeros()  # blocks store zeros, also between what different batches stand for
    return unravelled(coo.row, coo.col, coo.data, *sides)
'''
)

_FORMATS = {
    "rows": "csr",
    "columns": "csc",
    "entries": "coo",
    "table": "dok",
    "blocks": "bsr",
    "column blocks": "lil",
}


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = scipy.sparse.coo_array((values, (rows, columns)), shape=(3, 4)).tocsr()``."""
    sides, access = sides_of(kernel, tensor)
    matrix = matrix_of(kernel, access, sides, stored)
    kind = kind_of(tensor.format)
    if kind == "dense":
        return [f"{tensor.name} = {array(matrix, kernel.dtype)}"]
    rows, columns = axes_of(matrix)
    values = f"np.array({values_of(matrix)}, '{kernel.dtype}')"
    indices = f"(np.array({rows}, 'int32'), np.array({columns}, 'int32'))"
    made = f"scipy.sparse.coo_array(({values}, {indices}), shape={matrix.shape})"
    name = _FORMATS[kind]
    return [f"{tensor.name} = {made}{'' if name == 'coo' else f'.to{name}()'}"]


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """Raises Untranslatable: a matrix of one product is none of another."""
    raise Untranslatable("a result is read again")


def compute(kernel: Kernel) -> list[str]:
    """``A = B @ C``, ``A = B.multiply(C).sum(axis=1)``, ``A = B + C``."""
    planned = plan(kernel)
    output, names = kernel.output.tensor, [a.tensor for a in kernel.accesses]
    match planned.how:
        case "sum":
            return [f"{output} = {' + '.join(names)}"]
        case "product":
            return [f"{output} = {names[0]} @ {names[1]}"]
    sparse = [n for n in names if kind_of(kernel.tensor(n).format) != "dense"]
    if not sparse:
        text = f"{names[0]} * {names[1]}"
    else:
        first = sparse[0]
        text = f"{first}.multiply({names[1] if first == names[0] else names[0]})"
    return [f"{output} = ({text}).sum(axis=1)"]


def result(kernel: Kernel) -> str:
    """The entries of the output."""
    return f"entries({kernel.output.tensor}, {unravelling(kernel, plan(kernel).result)})"
