"""Kernels as JSON, one on a line: the form that any language can read.

The definition is ``rules/einsum/kernel.schema.json``. There is one way to write a kernel:
``dumps(loads(line)) == line`` for every line that :func:`dumps` has written. What is as by default
in a description of data is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reprise.einsum import schema
from reprise.einsum.fitting import fitted
from reprise.einsum.kernel import (
    INTEGERS,
    Access,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Format,
    Kept,
    Kernel,
    KernelError,
    Level,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Structure,
    Tensor,
    Term,
    Transposed,
    Zeros,
    assemble,
)

VERSION = 1


class JsonError(KernelError):
    """A text that is no JSON: from where on, and that line."""

    def __init__(self, why: str, line: int, column: int, text: str) -> None:
        super().__init__(f"this is no JSON: {why}")
        self.line = line
        self.column = column
        self.text = text


def dumps(kernel: Kernel) -> str:
    """The kernel on one line, without the line's end."""
    return json.dumps(to_json(kernel), separators=(",", ":"))


def loads(line: str) -> Kernel:
    """Read what :func:`dumps` writes. Raises KernelError."""
    return from_json(decoded(line))


def decoded(text: str) -> Any:
    """What a JSON text says. Raises JsonError, and KernelError for what is JSON and cannot be
    held."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise JsonError(error.msg, error.lineno, error.colno, line) from error
    except RecursionError as error:
        raise KernelError("this JSON is nested too deeply") from error
    except KernelError:
        raise
    except ValueError as error:  # a number of more than a few thousand digits
        raise KernelError("this JSON has a number of too many digits") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise KernelError(f"this JSON has an object with the key {twice!r} twice")
    return found


def _no_number(constant: str) -> float:
    raise KernelError(f"this is no JSON: {constant} is no number")


def read_lines(lines: Iterable[str]) -> Iterator[tuple[int, Kernel | KernelError]]:
    """The kernels of a file, each with the number of its line; for a line that is none, why.
    Blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, loads(line)
            except KernelError as error:
                yield number, error


def to_json(kernel: Kernel) -> dict[str, Any]:
    """The kernel as a JSON document."""
    return {
        "version": VERSION,
        "dtype": kernel.dtype,
        "extents": dict(kernel.extents),
        "output": _access(kernel.output),
        "terms": [[_access(factor) for factor in term.factors] for term in kernel.terms],
        "tensors": [_tensor(tensor) for tensor in kernel.tensors],
    }


def from_json(document: Any) -> Kernel:
    """Read a JSON document. Raises KernelError if the schema does not allow it, or if the kernel
    does not hang together."""
    schema.check(document)
    output, *operands = document["tensors"]
    kernel = assemble(
        _read_access(document["output"]),
        [Term(tuple(_read_access(f) for f in term)) for term in document["terms"]],
        document["extents"],
        {t["name"]: _read_format(t) for t in document["tensors"]},
        {t["name"]: data_from_json(t["data"]) for t in operands},
        document["dtype"],
    )
    _expect_all(output, operands, document["extents"], kernel)
    return fitted(kernel)


def _expect_all(
    output: dict[str, Any], operands: list[Any], extents: dict[str, int], kernel: Kernel
) -> None:
    """Nothing may be said of what does not occur, nor be left out."""
    if output["name"] != kernel.output.tensor:
        raise KernelError(f"tensors[0]: {output['name']} is not the output")
    said = [t["name"] for t in operands]
    used = [t.name for t in kernel.operands]
    for number, name in enumerate(said):
        if name not in used or name in said[:number]:
            what = "is described twice" if name in used else "occurs in no term"
            raise KernelError(f"tensors[{number + 1}]: {name} {what}")
    missing = [name for name in used if name not in said]
    if missing:
        raise KernelError(f"tensors: {missing[0]} is not described")
    unused = [index for index in extents if index not in kernel.extent]
    if unused:
        raise KernelError(f"extents: index {unused[0]} does not occur")


def _access(access: Access) -> dict[str, Any]:
    return {"tensor": access.tensor, "indices": list(access.indices)}


def _read_access(value: Any) -> Access:
    return Access(value["tensor"], tuple(value["indices"]))


def _tensor(tensor: Tensor) -> dict[str, Any]:
    stored = {
        "name": tensor.name,
        "levels": [level.value for level in tensor.format.levels],
        "order": list(tensor.format.order),
    }
    return stored if tensor.data is None else {**stored, "data": data_to_json(tensor.data)}


def _read_format(value: Any) -> Format:
    return Format(tuple(Level(level) for level in value["levels"]), tuple(value["order"]))


def data_to_json(data: Data) -> dict[str, Any]:
    """A description of data as JSON."""
    match data:
        case Computed(output):
            return {"kind": "computed", "output": output}
        case Entries(coordinates, values, edits):
            written = [list(c) for c in coordinates]
            found: dict[str, Any] = {
                "kind": "entries",
                "coordinates": written,
                "values": list(values),
            }
        case Drawn(structure, density, seed, values_kind, duplicates, zeros, unsorted, edits):
            found = {
                "kind": "drawn",
                "structure": structure.value,
                "density": density,
                "seed": seed,
            }
            if values_kind != INTEGERS:
                found["values"] = values_kind
            if duplicates:
                found["duplicates"] = duplicates
            if zeros:
                found["zeros"] = zeros
            if unsorted:
                found["unsorted"] = True
    if edits:
        found["edits"] = [_edit(edit) for edit in edits]
    return found


def data_from_json(value: Any) -> Data:
    """Read a description of data that the schema allows. Raises KernelError."""
    edits = tuple(_read_edit(edit) for edit in value.get("edits", ()))
    match value["kind"]:
        case "computed":
            return Computed(value["output"])
        case "entries":
            coordinates = tuple(tuple(c) for c in value["coordinates"])
            values = tuple(value["values"])
            if len(coordinates) != len(values):
                raise KernelError(f"{len(coordinates)} coordinates, but {len(values)} values")
            return Entries(coordinates, values, edits)
        case _:
            return Drawn(
                Structure(value["structure"]),
                value["density"],
                value["seed"],
                value.get("values", INTEGERS),
                value.get("duplicates", 0),
                value.get("zeros", 0),
                value.get("unsorted", False),
                edits,
            )


_EDITS: dict[str, tuple[type[Edit], tuple[str, ...]]] = {
    "transposed": (Transposed, ("axes",)),
    "scaled": (Scaled, ("exponent",)),
    "permuted": (Permuted, ("axis", "seed")),
    "zeros": (Zeros, ("count", "seed")),
    "part": (Part, ("number", "of")),
    "kept": (Kept, ("axis", "start", "stop")),
    "reordered": (Reordered, ("seed",)),
}


def _edit(edit: Edit) -> dict[str, Any]:
    for name, (kind, fields) in _EDITS.items():
        if type(edit) is kind:
            values = (getattr(edit, field) for field in fields)
            plain = [list(v) if isinstance(v, tuple) else v for v in values]
            return {"edit": name, **dict(zip(fields, plain, strict=True))}
    raise TypeError(f"{edit!r} is no edit")


def _read_edit(value: Any) -> Edit:
    kind: Any
    kind, fields = _EDITS[value["edit"]]
    values = [value[field] for field in fields]
    edit: Edit = kind(*(tuple(v) if isinstance(v, list) else v for v in values))
    return edit
