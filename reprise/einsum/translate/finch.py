"""Kernels for finch-tensor: ``finch.einsum``, compiled by numba.

It has dense levels and lists of sparse ones, in the order of positions, and gives dense results.
"""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Kernel, Level, Tensor
from reprise.einsum.translate.script import Untranslatable, array, axes_of, values_of

imports = """\
import finch
from finch.tensor import level as levels
from finch.tensor.fiber_tensor import FiberTensor"""
_helpers = '''
finch.set_default_scheduler(SCHEDULER)


def stored(kinds, shape, coordinates, values):
    """A tensor with a level of each kind, from the outside in; its entries are sorted."""
    values = np.array(values)
    count, places = 1, np.zeros(len(values), "int64")  # of the level outside, and of each entry
    made = []
    for kind, extent, along in zip(kinds, shape, np.array(coordinates, "int64")):
        places = places * extent + along
        if kind == "d":
            made.append((kind, extent, None, None))
            count *= extent
        else:
            found, places = np.unique(places, return_inverse=True)
            starts = np.searchsorted(found // extent, np.arange(count + 1))
            made.append((kind, extent, starts.astype("int64"), (found % extent).astype("int64")))
            count = len(found)
    held = np.zeros(count)
    held[places] = values
    index = finch.ftype(np.dtype("int64"))
    leaf = levels.element(
        fill_value=np.float64(0), element_type=finch.ftype(np.dtype("float64")), position_type=index
    )
    level = levels.ElementLevel(_format=leaf, _val=finch.NumpyBuffer(held))
    for kind, extent, starts, found in reversed(made):
        if kind == "d":
            level = levels.DenseLevel(level, dimension=np.int64(extent))
        else:
            level = levels.SparseListLevel(
                level,
                dimension=np.int64(extent),
                ptr=finch.NumpyBuffer(starts),
                idx=finch.NumpyBuffer(found),
            )
    return FiberTensor(level)


def dense(result):
    """None, and the values as an array."""
    return np.zeros(0, "int64"), np.asarray(finch.to_numpy(result))
'''


def helpers_with(scheduler: str) -> str:
    """What a script defines, for one of finch's ways to compile, as an expression."""
    return _helpers.replace("SCHEDULER", scheduler)


helpers = helpers_with("finch.COMPILE_NUMBA")


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = stored("ds", (3, 4), [[0, 2], [1, 0]], [2.0, -1.0])``, or an array if it is dense."""
    if kernel.dtype != "float64":
        raise Untranslatable(f"not tried with {kernel.dtype}")
    if not tensor.format.is_ordered:
        raise Untranslatable("levels are in the order of positions")
    if any(level not in (Level.DENSE, Level.COMPRESSED) for level in tensor.format.levels):
        raise Untranslatable("levels are dense or compressed")
    if tensor.format.is_dense:
        return [f"{tensor.name} = {array(stored, kernel.dtype)}"]
    entries = stored.canonical()
    given = f"{entries.shape}, {axes_of(entries)}, {values_of(entries)}"
    return [f'{tensor.name} = stored("{tensor.format}", {given})']


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """An earlier result is read as it is: dense."""
    return []


def compute(kernel: Kernel) -> list[str]:
    """``A = finch.einsum("ij,jk->ik", B, C)``."""
    if len(kernel.terms) > 1:
        raise Untranslatable("its einsum is one product")
    if not kernel.tensors[0].format.is_dense:
        raise Untranslatable("results are dense")
    names = ", ".join(factor.tensor for factor in kernel.accesses)
    return [f'{kernel.output.tensor} = finch.einsum("{kernel.subscripts}", {names})']


def result(kernel: Kernel) -> str:
    """The output as an array."""
    return f"dense({kernel.output.tensor})"
