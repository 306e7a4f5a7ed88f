"""Kernels for torch.sparse: products and sums of matrices in COO, CSR, CSC, BSR and BSC."""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Kernel, Tensor
from reprise.einsum.translate.matrices import helpers as _unravelled
from reprise.einsum.translate.matrices import kind_of, matrix_of, plan, sides_of, unravelling
from reprise.einsum.translate.script import Untranslatable, array, axes_of, values_of

imports = "import torch"
helpers = (
    _unravelled
    + '''

def entries(result, *sides):
    """Coordinates and values of a matrix, as those of the tensor that it stands for."""
    dense = np.asarray(result).reshape(int(np.prod(sides[0])), int(np.prod(sides[1])))
    rows, columns = np.nonzero(dense)
    return unravelled(rows, columns, dense[rows, columns], *sides)
'''
)

_FORMATS = {
    "rows": ".to_sparse_csr()",
    "columns": ".to_sparse_csc()",
    "entries": "",
    "table": ".coalesce()",
    "blocks": ".to_sparse_bsr((1, 1))",
    "column blocks": ".to_sparse_bsc((1, 1))",
}


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = torch.sparse_coo_tensor([rows, columns], values, (3, 4)).to_sparse_csr()``."""
    sides, access = sides_of(kernel, tensor)
    matrix = matrix_of(kernel, access, sides, stored)
    kind = kind_of(tensor.format)
    if kind == "dense":
        return [f"{tensor.name} = torch.from_numpy({array(matrix, kernel.dtype)})"]
    indices = f"torch.tensor({axes_of(matrix)}, dtype=torch.int64).reshape(2, -1)"
    values = f"torch.tensor({values_of(matrix)}, dtype=torch.{kernel.dtype})"
    made = f"torch.sparse_coo_tensor({indices}, {values}, {matrix.shape})"
    return [f"{tensor.name} = {made}{_FORMATS[kind]}"]


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """Raises Untranslatable: a matrix of one product is none of another."""
    raise Untranslatable("a result is read again")


def compute(kernel: Kernel) -> list[str]:
    """``A = B @ C``, or ``torch.sparse.mm(B, C)`` where the output is to be sparse;
    ``A = (B * C).to_dense().sum(1)``; ``A = B + C``."""
    planned = plan(kernel)
    output, names = kernel.output.tensor, [a.tensor for a in kernel.accesses]
    match planned.how:
        case "sum":
            return [f"{output} = {' + '.join(names)}"]
        case "product" if kernel.tensors[0].format.is_dense:
            return [f"{output} = {names[0]} @ {names[1]}"]
        case "product":
            return [f"{output} = torch.sparse.mm({names[0]}, {names[1]})"]
    return [f"{output} = ({names[0]} * {names[1]}).to_dense().sum(1)"]


def result(kernel: Kernel) -> str:
    """The entries of the output, which torch makes dense."""
    return f"entries({kernel.output.tensor}.to_dense(), {unravelling(kernel, plan(kernel).result)})"
