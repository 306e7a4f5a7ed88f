"""The kernel form of the published TENSURE artifact (github.com/KabilanMA/TenSure), both ways.

A document describes every tensor, the output first, and one or more computations in TACO's
notation::

    {"computations": [{"expression": "A(i,k) = B(i,j) * C(j,k)"}],
     "tensors": [{"name": "A", "str_repr": "A(i,k)", "idxs": [105, 107], "shape": [3, 2],
                  "storageFormat": ["Dense", "Sparse"], "dataFile": "-"}, ...]}

``idxs`` are character codes. Values lie in files beside it, in FROSTT's ``.tns`` form: one entry on
a line, coordinates from 1, the value last. The artifact has one letter for a name and for an index,
two kinds of levels, no order of modes but the given one, and float64: what it cannot say,
:func:`write` refuses.
"""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

from reprise.cache import naming
from reprise.einsum.data import Stored, materialise
from reprise.einsum.fitting import fitted
from reprise.einsum.json_form import decoded
from reprise.einsum.kernel import (
    Computed,
    Data,
    Entries,
    Format,
    Kernel,
    KernelError,
    Level,
    assemble,
)
from reprise.einsum.text import KernelSyntaxError, parse

_LEVELS = {"Dense": Level.DENSE, "Sparse": Level.COMPRESSED}
_NAMES = {level: name for name, level in _LEVELS.items()}
_KEYS = ("name", "shape", "storageFormat")


def read(path: Path) -> list[Kernel]:
    """The kernels of a file, one for each computation, with the data that lie beside it.

    A later computation may read the output of an earlier one. Raises KernelError.
    """
    try:
        document = decoded(path.read_text(encoding="utf-8-sig"))
        return from_document(document, path.parent)
    except (KernelError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: {error}") from error


def from_document(document: Any, folder: Path) -> list[Kernel]:
    """The same from a document whose data files are looked for in ``folder``."""
    tensors = _tensors(document)
    expressions = [_expression(c) for c in _items(document, "computations")]
    kernels: list[Kernel] = []
    for number, expression in enumerate(expressions):
        where = f"computations[{number}]"
        try:
            source = parse(expression)
        except KernelSyntaxError as error:
            raise KernelError(f"{where}: {error}") from error
        if source.extents or source.tensors or source.dtype != "float64":
            raise KernelError(f"{where}: `where` is not of the artifact: 'tensors' says the rest")
        extents: dict[str, int] = {}
        formats: dict[str, Format] = {}
        data: dict[str, Data] = {}
        earlier = {kernel.output.tensor for kernel in kernels}
        for written in (source.output, *source.operands):
            name, indices = written.access.tensor, written.access.indices
            if name not in tensors:
                raise KernelError(f"{where}: tensor {name} is not described")
            tensor = tensors[name]
            if len(tensor["shape"]) != len(indices):
                raise KernelError(
                    f"{where}: {written.access} has {len(indices)} indices, "
                    f"its shape {len(tensor['shape'])}"
                )
            for index, extent in zip(indices, tensor["shape"], strict=True):
                if extents.setdefault(index, extent) != extent:
                    raise KernelError(f"{where}: index {index} has extents {extents[index]} "
                                      f"and {extent}")  # fmt: skip
            formats[name] = _format(tensor)
            if name in earlier:
                data[name] = Computed(name)
            elif name != source.output.access.tensor:
                data[name] = _data(tensor, folder)
        try:
            kernel = assemble(source.output.access, source.products, extents, formats, data)
            kernels.append(fitted(kernel))
        except KernelError as error:
            raise KernelError(f"{where}: {error}") from error
    return kernels


def write(kernel: Kernel, path: Path, where: str = "") -> list[Path]:
    """Write a kernel and its data files (``B.tns`` for ``B``) into the folder of ``path``, which is
    made.

    Returns what was written. Raises KernelError for what the form cannot say, which tells ``where``
    the kernel stands.
    """
    try:
        document = to_document(kernel)
    except KernelError as error:
        raise KernelError(f"{where}: {error}" if where else str(error)) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = materialise(kernel)
    written = []
    for tensor in kernel.operands:
        file = path.with_name(f"{tensor.name}.tns")
        with naming(file):
            file.write_text(_tns(stored[tensor.name]), encoding="ascii")
        written.append(file)
    with naming(path):
        path.write_text(json.dumps(document, indent=4) + "\n", encoding="utf-8")
    return [path, *written]


def to_document(kernel: Kernel) -> dict[str, Any]:
    """The document for a kernel. Raises KernelError for what the form cannot say."""
    if kernel.dtype != "float64":
        raise KernelError(f"the artifact has float64 only, not {kernel.dtype}")
    accesses = {a.tensor: a for a in (*reversed(kernel.accesses), kernel.output)}
    shapes = kernel.shapes
    tensors = []
    for tensor in kernel.tensors:
        access = accesses[tensor.name]
        for name in (tensor.name, *access.indices):
            if len(name) != 1:
                raise KernelError(f"the artifact has names of one letter, not {name}")
        if not tensor.format.is_ordered:
            raise KernelError(f"tensor {tensor.name}: the artifact has no order of modes")
        other = [level for level in tensor.format.levels if level not in _NAMES]
        if other:
            raise KernelError(f"tensor {tensor.name}: the artifact has no level {other[0]}")
        tensors.append(
            {
                "name": tensor.name,
                "str_repr": str(access),
                "idxs": [ord(index) for index in access.indices],
                "shape": list(shapes[tensor.name]),
                "storageFormat": [_NAMES[level] for level in tensor.format.levels],
                "dataFile": "-" if tensor.data is None else f"{tensor.name}.tns",
            }
        )
    return {"computations": [{"expression": kernel.statement}], "tensors": tensors}


def _items(document: Any, key: str) -> list[Any]:
    found = document.get(key) if isinstance(document, dict) else None
    if not isinstance(found, list) or not found:
        raise KernelError(f"there are no {key!r}: this is no kernel of TENSURE's artifact")
    return found


def _expression(computation: Any) -> str:
    found = computation.get("expression") if isinstance(computation, dict) else computation
    if not isinstance(found, str):
        raise KernelError("a computation has no 'expression'")
    return found


def _tensors(document: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, tensor in enumerate(_items(document, "tensors")):
        where = f"tensors[{number}]"
        if not isinstance(tensor, dict):
            raise KernelError(f"{where}: expected an object")
        for key in _KEYS:
            if key not in tensor:
                raise KernelError(f"{where}: there is no {key!r}")
        extents = tensor["shape"]
        if not isinstance(extents, list) or not all(type(n) is int and n >= 0 for n in extents):
            raise KernelError(f"{where}: 'shape' is no list of extents")
        if not isinstance(tensor["name"], str) or tensor["name"] in found:
            raise KernelError(f"{where}: 'name' is no name, or is there twice")
        found[tensor["name"]] = tensor
    return found


def _format(tensor: dict[str, Any]) -> Format:
    words = tensor["storageFormat"]
    if not isinstance(words, list) or any(word not in list(_LEVELS) for word in words):
        raise KernelError(
            f"tensor {tensor['name']}: 'storageFormat' is no list of {', '.join(_LEVELS)}"
        )
    return Format(tuple(_LEVELS[word] for word in words), tuple(range(len(words))))


def _data(tensor: dict[str, Any], folder: Path) -> Data:
    """The data of an operand's file; a tensor without one has no entries."""
    name = tensor.get("dataFile", "")
    if not isinstance(name, str) or not name.isprintable():
        raise KernelError(f"tensor {tensor['name']}: 'dataFile' is no name of a file")
    if name in ("", "-"):
        return Entries((), ())
    file = folder / name
    if not _is_there(file):  # the artifact writes the path as it was on the machine that made it
        file = folder / Path(name).name
    if file.suffix not in (".tns", ".ttx"):
        raise KernelError(f"tensor {tensor['name']}: {name} is neither .tns nor .ttx")
    try:
        # What is not ASCII is read as what no number has.
        lines = file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise KernelError(f"tensor {tensor['name']}: {file}: {error.strerror}") from error
    return _entries(lines, tensor["shape"], file)


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a name that is too long
        return False


def _entries(lines: list[str], shape: list[int], file: Path) -> Entries:
    coordinates, values = [], []
    header = file.suffix == ".ttx"
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith(("%", "#")):
            continue
        if header:  # extents, and how many entries follow
            header = False
            continue
        try:
            coordinate = tuple(int(word) - 1 for word in words[:-1])
            value = float(words[-1])
        except ValueError as error:
            shown = line if len(line) <= 60 else f"{line[:57]}..."
            raise KernelError(f"{file}:{number}: this is no entry: {shown!r}") from error
        if len(coordinate) != len(shape):
            raise KernelError(
                f"{file}:{number}: {len(coordinate)} coordinates instead of {len(shape)}"
            )
        if not all(0 <= c < extent for c, extent in zip(coordinate, shape, strict=True)):
            raise KernelError(f"{file}:{number}: this is outside of shape {tuple(shape)}: {line!r}")
        if not isfinite(value):
            raise KernelError(f"{file}:{number}: {words[-1]} is no value")
        coordinates.append(coordinate)
        values.append(value)
    return Entries(tuple(coordinates), tuple(values))


def _tns(stored: Stored) -> str:
    lines = []
    for coordinate, value in zip(stored.coordinates, stored.values, strict=True):
        lines.append(" ".join([*(str(int(c) + 1) for c in coordinate), repr(float(value))]))
    return "".join(f"{line}\n" for line in lines)
