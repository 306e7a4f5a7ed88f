"""Kernels for MLIR's sparsifier: a ``linalg.generic`` over tensors with sparse encodings.

Operands come in as dense arrays and are converted inside. A sparse output is read as the buffers of
its levels, never by converting it to a dense tensor: that shows memory that was not set.
"""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Access, Kernel, Level, Tensor
from reprise.einsum.translate.script import Untranslatable, array

imports = """\
import ctypes
from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.passmanager import PassManager
from torch_mlir.runtime import (
    get_ranked_memref_descriptor,
    make_nd_memref_descriptor,
    ranked_memref_to_numpy,
)"""
helpers = '''
PIPELINE = "builtin.module(sparsifier{enable-runtime-library=false})"


def run(text, arrays, results):
    """Compile and run a module; ``results``: the rank and element type of each array that its
    function returns. The arrays that are given stay alive until the results are copied."""
    with ir.Context():
        module = ir.Module.parse(text)
        PassManager.parse(PIPELINE).run(module.operation)
        engine = ExecutionEngine(module, opt_level=1, shared_libs=[])
        kinds = {"i": ctypes.c_int64, "f": ctypes.c_double}

        class Results(ctypes.Structure):
            _fields_ = [
                (f"r{n}", make_nd_memref_descriptor(rank, kinds[kind]))
                for n, (rank, kind) in enumerate(results)
            ]

        returned = Results()
        held = [get_ranked_memref_descriptor(array) for array in arrays]
        pointers = [ctypes.pointer(ctypes.pointer(one)) for one in (returned, *held)]
        engine.invoke("main", *pointers)
        fields = [getattr(returned, name) for name, _ in Results._fields_]
        return [np.array(ranked_memref_to_numpy(ctypes.pointer(one))) for one in fields]


def entries(buffers, shape, levels, order):
    """Coordinates and values of a sparse tensor, from the buffers of its levels; none and an array
    if it is dense."""
    if "s" not in levels:
        return np.zeros(0, "int64"), buffers[0].reshape(shape)
    found, buffers = [((), 0)], list(buffers)
    for kind, position in zip(levels, order):
        if kind == "d":
            extent = shape[position]
            found = [((*c, i), p * extent + i) for c, p in found for i in range(extent)]
        else:
            starts, along = buffers.pop(0), buffers.pop(0)
            found = [
                ((*c, int(along[q])), q)
                for c, p in found
                for q in range(int(starts[p]), int(starts[p + 1]))
            ]
    places = [list(order).index(position) for position in range(len(order))]
    coordinates = [[c[place] for place in places] for c, _ in found]
    values = [buffers[0][p] for _, p in found]
    return np.array(coordinates, "int64").reshape(len(found), len(order)), np.array(values)


def dense(coordinates, values, shape):
    """An earlier result as an array."""
    if coordinates.ndim != 2:
        return np.ascontiguousarray(values)
    array = np.zeros(shape)
    np.add.at(array, tuple(coordinates.T), values)
    return array
'''


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = np.array([[...]], "float64")``."""
    return [f"{tensor.name} = {array(stored, 'float64')}"]


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """``B = dense(*B, (3, 4))``."""
    return [f"{tensor.name} = dense(*{tensor.name}, {kernel.shapes[tensor.name]})"]


def compute(kernel: Kernel) -> list[str]:
    """``A = entries(run(MODULE, [B, C], ...), (3, 2), "ds", (0, 1))``."""
    output = kernel.tensors[0]
    shape, stored = kernel.shapes[output.name], output.format
    names = ", ".join(t.name for t in kernel.operands)
    sparse = sum(level is not Level.DENSE for level in stored.levels)
    results = [(1, "i")] * (2 * sparse) + [(1, "f")] if sparse else [(len(shape), "f")]
    levels = "".join(level.letter for level in stored.levels)
    lines = module(kernel).splitlines()
    return [
        'text = """',
        *(f"    {line}" for line in lines),
        '"""',
        f"buffers = run(text, [{names}], {results})",
        f'{output.name} = entries(buffers, {shape}, "{levels}", {stored.order})',
    ]


def result(kernel: Kernel) -> str:
    """The entries of the output."""
    return kernel.output.tensor


def module(kernel: Kernel) -> str:
    """The module that computes the kernel. Raises Untranslatable."""
    output = kernel.tensors[0]
    if kernel.dtype != "float64":
        raise Untranslatable(f"not tried with {kernel.dtype}")
    if not kernel.is_product:
        raise Untranslatable("a sum of terms is no one linalg.generic")
    if output.format.is_dense and not output.format.is_ordered:
        raise Untranslatable("a dense output with an encoding holds what its memory held")
    shapes = kernel.shapes
    lines = [
        f"#{t.name} = #sparse_tensor.encoding<{{ map = {_map(t)} }}>"
        for t in kernel.tensors
        if _is_encoded(t)
    ]
    types = {t.name: _type(t, shapes[t.name]) for t in kernel.tensors}
    plain = {t.name: _plain(shapes[t.name]) for t in kernel.tensors}
    parameters = ", ".join(f"%{t.name}_in: {plain[t.name]}" for t in kernel.operands)
    sparse = [n for n, level in enumerate(output.format.levels) if level is not Level.DENSE]
    returned = [types[output.name]]
    if sparse:
        returned = ["memref<?xindex>"] * (2 * len(sparse)) + ["memref<?xf64>"]
    lines.append(
        f"func.func @main({parameters}) -> ({', '.join(returned)}) "
        "attributes { llvm.emit_c_interface } {"
    )
    for tensor in kernel.operands:
        name = tensor.name
        if _is_encoded(tensor):
            lines.append(
                f"  %{name} = sparse_tensor.convert %{name}_in : {plain[name]} to {types[name]}"
            )
    out_type = types[output.name]
    if sparse:
        lines.append(f"  %start = tensor.empty() : {out_type}")
    else:
        lines += [
            "  %zero = arith.constant 0.0 : f64",
            f"  %space = tensor.empty() : {out_type}",
            f"  %start = linalg.fill ins(%zero : f64) outs(%space : {out_type}) -> {out_type}",
        ]
    lines += _generic(kernel, types)
    if not sparse:
        return "\n".join([*lines, f"  return %result : {out_type}", "}"])
    values: list[str] = []
    for level in sparse:
        for what in ("positions", "coordinates"):
            values.append(f"%{what[0]}{level}")
            lines.append(
                f"  {values[-1]} = sparse_tensor.{what} %result {{ level = {level} : index }} "
                f": {out_type} to memref<?xindex>"
            )
    values.append("%v")
    lines.append(f"  %v = sparse_tensor.values %result : {out_type} to memref<?xf64>")
    return "\n".join([*lines, f"  return {', '.join(values)} : {', '.join(returned)}", "}"])


def _generic(kernel: Kernel, types: dict[str, str]) -> list[str]:
    (term,) = kernel.terms
    indices = [index for index, _ in kernel.extents]
    loops = ", ".join(f"d{n}" for n in range(len(indices)))

    def affine(access: Access) -> str:
        places = ", ".join(f"d{indices.index(i)}" for i in access.indices)
        return f"affine_map<({loops}) -> ({places})>"

    factors = term.factors
    kinds = ", ".join(
        '"parallel"' if i in kernel.output.indices else '"reduction"' for i in indices
    )
    values = ", ".join(
        f"%{f.tensor}" if types[f.tensor].find("#") >= 0 else f"%{f.tensor}_in" for f in factors
    )
    names = [f"%x{n}" for n in range(len(factors))]
    out_type = types[kernel.output.tensor]
    lines = [
        "  %result = linalg.generic {",
        f"    indexing_maps = [{', '.join(map(affine, (*factors, kernel.output)))}],",
        f"    iterator_types = [{kinds}]",
        f"  }} ins({values} : {', '.join(types[f.tensor] for f in factors)})",
        f"    outs(%start : {out_type}) {{",
        f"    ^bb0({', '.join(f'{n}: f64' for n in names)}, %sum: f64):",
    ]
    last = names[0]
    for n, name in enumerate(names[1:]):
        lines.append(f"      %m{n} = arith.mulf {last}, {name} : f64")
        last = f"%m{n}"
    return [
        *lines,
        f"      %added = arith.addf %sum, {last} : f64",
        "      linalg.yield %added : f64",
        f"  }} -> {out_type}",
    ]


def _is_encoded(tensor: Tensor) -> bool:
    """Dense tensors in the order of positions are tensors like any other."""
    return not (tensor.format.is_dense and tensor.format.is_ordered)


def _map(tensor: Tensor) -> str:
    """``(d0, d1) -> (d1 : dense, d0 : compressed)``."""
    stored = tensor.format
    for level in stored.levels:
        if level not in (Level.DENSE, Level.COMPRESSED):
            raise Untranslatable(f"not tried with {level} levels")
    places = ", ".join(f"d{n}" for n in range(stored.rank))
    levels = ", ".join(
        f"d{position} : {level.value}"
        for position, level in zip(stored.order, stored.levels, strict=True)
    )
    return f"({places}) -> ({levels})"


def _type(tensor: Tensor, shape: tuple[int, ...]) -> str:
    plain = _plain(shape)
    return f"{plain[:-1]}, #{tensor.name}>" if _is_encoded(tensor) else plain


def _plain(shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}f64>"
