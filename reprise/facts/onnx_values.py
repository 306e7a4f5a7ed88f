"""Values stored in an ONNX file: protobuf tensors and attributes to numpy arrays and scalars.

A tensor's dims and stored size are compared before anything is allocated, so that a file cannot
make us reserve more memory than it has bytes. External data is read only where it is small and
lies inside the model's own folder.

A ``float`` attribute is stored in 32 bits; it becomes the shortest decimal that rounds to the same
32 bits (``0.01``, not ``0.009999999776482582``), which is what its author wrote and what a rule
compares with.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reprise.facts.errors import ModelError
from reprise.facts.onnx_read import Limits
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Array, Attribute, Scalar

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto

DTYPE_OF_CODE: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
"""``TensorProto.DataType`` to Reprise's name. The float6 types of onnx 1.23 have none."""

CODE_OF_DTYPE = {name: code for code, name in DTYPE_OF_CODE.items()}

CODE_OF_LEGACY_NAME = {
    "FLOAT": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "STRING": 8,
    "BOOL": 9,
    "FLOAT16": 10,
    "DOUBLE": 11,
    "UINT32": 12,
    "UINT64": 13,
    "COMPLEX64": 14,
    "COMPLEX128": 15,
}
"""Names that Cast of opsets 1 to 5 writes in its attribute ``to``."""


def shortest(value: float) -> float:
    """The float64 nearest to the shortest decimal that names the float32 ``value``."""
    return float(str(np.float32(value)))


def scalar_of(value: np.generic, dtype: str | None) -> Scalar:
    """A numpy scalar of element type ``dtype`` as int, float, bool or str."""
    if dtype == "float32" or dtype == "float16":
        return float(str(value))
    kind = DTYPES[dtype].kind if dtype in DTYPES else ""
    if kind == "float":
        return float(value)
    if kind in ("int", "uint"):
        return int(value)
    if kind == "bool":
        return bool(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str) else str(plain)


def scalars_of(array: Array, dtype: str | None) -> tuple[Scalar, ...]:
    """The elements of ``array``, flattened."""
    return tuple(scalar_of(item, dtype) for item in array.reshape(-1))


@dataclass(slots=True)
class Storage:
    """Where a model's data may come from: its own folder, within limits; counts what was read."""

    path: Path
    limits: Limits
    note: Callable[[str], None]
    external_read: int = 0
    _folder: str = field(default="", init=False)

    def array(self, tensor: TensorProto) -> Array | None:
        """The value of ``tensor``, or None where its data is not here or not wanted.

        Raises ModelError if what is stored contradicts the tensor's type.
        """
        extents = tuple(tensor.dims)
        label = f"initializer {tensor.name!r}" if tensor.name else "a constant"
        if any(extent < 0 for extent in extents):
            raise ModelError(self.path, f"{label} has a negative extent: {list(extents)}")
        count = 1
        for extent in extents:
            count *= extent
        dtype = DTYPE_OF_CODE.get(tensor.data_type)
        if dtype is None:
            self.note(f"{label} has element type {tensor.data_type}, which has no name here")
            return None
        if tensor.HasField("segment"):
            self.note(f"{label} is stored in segments, which are not read")
            return None
        external = tensor.data_location == 1
        if not external and not _stored_fits(tensor, dtype, count):
            raise ModelError(
                self.path,
                f"{label} ({dtype}{list(extents)}) holds {_stored_size(tensor)}, "
                f"not {count} elements",
                "the file is damaged, or its external data was not linked",
            )
        if count > self.limits.value_elements or not _numpy_shape(extents):
            return None
        if external:
            raw = self._external(tensor, label, (count * max(DTYPES[dtype].bits, 1) + 7) // 8)
            if raw is None:
                return None
            return _decode_raw(tensor, raw)
        return _decode(tensor)

    def _external(self, tensor: TensorProto, label: str, size: int) -> bytes | None:
        """``size`` bytes of external data, if they are small, present and inside the folder."""
        limits = self.limits
        if size > limits.external_bytes or self.external_read + size > limits.external_total:
            return None
        where = {entry.key: entry.value for entry in tensor.external_data}
        location = where.get("location", "")
        try:
            offset = int(where.get("offset") or 0)
            length = int(where.get("length") or size)
        except ValueError:
            self.note(f"{label}: its external data has an unreadable offset or length")
            return None
        if length != size or offset < 0:
            self.note(f"{label}: its external data has {length} bytes at {offset}, not {size}")
            return None
        if not self._folder:
            self._folder = os.path.realpath(self.path.parent)
        try:
            target = os.path.realpath(os.path.join(self._folder, location))
            if os.path.commonpath([self._folder, target]) != self._folder:
                self.note(f"{label}: its external data lies outside the model's folder; not read")
                return None
            if not os.path.isfile(target):
                self.note(f"{label}: its external data file {location!r} is missing")
                return None
            with open(target, "rb") as file:
                file.seek(offset)
                data = file.read(size)
        except (OSError, ValueError, OverflowError):
            self.note(f"{label}: its external data {location!r} cannot be read")
            return None
        if len(data) != size:
            self.note(f"{label}: its external data ends early")
            return None
        self.external_read += size
        return data


def _numpy_shape(extents: tuple[int, ...]) -> bool:
    """Whether numpy can hold the shape: it multiplies all extents but zeros, and takes 64 axes."""
    return math.prod(max(extent, 1) for extent in extents) < 2**48 and len(extents) <= 64


_FIELD_OF_DTYPE = {
    "float32": "float_data",
    "complex64": "float_data",
    "float64": "double_data",
    "complex128": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
    "string": "string_data",
}
"""Typed field that holds a dtype's elements where ``raw_data`` doesn't; else ``int32_data``."""


def _stored_fits(tensor: TensorProto, dtype: str, count: int) -> bool:
    """Whether the data in the file has the size that dims and dtype ask for."""
    if tensor.HasField("raw_data"):
        if dtype == "string":
            return False
        return len(tensor.raw_data) == (count * DTYPES[dtype].bits + 7) // 8
    stored = len(getattr(tensor, _FIELD_OF_DTYPE.get(dtype, "int32_data")))
    if dtype in ("complex64", "complex128"):
        return bool(stored == 2 * count)
    bits = DTYPES[dtype].bits
    if 0 < bits < 8:  # packed, several to a byte
        return bool(stored == (count * bits + 7) // 8)
    return bool(stored == count)


def _stored_size(tensor: TensorProto) -> str:
    if tensor.HasField("raw_data"):
        return f"{len(tensor.raw_data)} bytes"
    for name in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        if stored := len(getattr(tensor, name)):
            return f"{stored} numbers in {name}"
    return "no data" if not tensor.string_data else f"{len(tensor.string_data)} strings"


def _decode(tensor: TensorProto) -> Array:
    """The array in a tensor whose stored size was checked."""
    from onnx import numpy_helper

    if tensor.data_type == 8:
        texts = [text_of(item) for item in tensor.string_data]
        strings: Array = np.array(texts, dtype=object).reshape(tuple(tensor.dims))
        return strings
    decoded: Array = numpy_helper.to_array(tensor)
    return decoded


def _decode_raw(tensor: TensorProto, raw: bytes) -> Array | None:
    from onnx import TensorProto as Proto

    if tensor.data_type == 8:
        return None
    return _decode(Proto(dims=tensor.dims, data_type=tensor.data_type, raw_data=raw))


def text_of(data: bytes | str) -> str:
    """Bytes as text; what is not UTF-8 is written as escapes."""
    return data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")


# AttributeProto.AttributeType
FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 5, 6, 7, 8
TENSORS, GRAPHS, SPARSE_TENSOR, SPARSE_TENSORS, TYPE_PROTO, TYPE_PROTOS = 9, 10, 11, 12, 13, 14

LONG_LIST = 1000
"""Floats in longer lists (tables of tree ensembles) are not made short: no rule compares them."""

TENSOR_ATTRIBUTE_ELEMENTS = 64
"""A tensor in an attribute is written out up to this size; a bigger one by its type only."""


def attribute_type(attribute: AttributeProto) -> int:
    """The attribute's type; files of the first IR versions leave it out, so look at the fields."""
    if attribute.type:
        return int(attribute.type)
    for name, kind in (("f", FLOAT), ("i", INT), ("s", STRING), ("t", TENSOR), ("g", GRAPH)):
        if attribute.HasField(name):
            return kind
    for name, kind in (("floats", FLOATS), ("ints", INTS), ("strings", STRINGS)):
        if len(getattr(attribute, name)):
            return kind
    return 0


def attribute_value(attribute: AttributeProto, storage: Storage) -> Attribute | None:
    """The attribute as a scalar or tuple; None for graphs and for what has no such form."""
    match attribute_type(attribute):
        case 1:
            return shortest(attribute.f)
        case 2:
            return int(attribute.i)
        case 3:
            return text_of(attribute.s)
        case 4:
            return _tensor_attribute(attribute.t, storage)
        case 6:
            if len(attribute.floats) > LONG_LIST:
                return tuple(attribute.floats)
            return tuple(shortest(value) for value in attribute.floats)
        case 7:
            return tuple(attribute.ints)
        case 8:
            return tuple(text_of(value) for value in attribute.strings)
        case _:
            return None


def _tensor_attribute(tensor: TensorProto, storage: Storage) -> Attribute:
    dtype = DTYPE_OF_CODE.get(tensor.data_type)
    count = 1
    for extent in tensor.dims:
        count *= extent
    if 0 <= count <= TENSOR_ATTRIBUTE_ELEMENTS:
        array = storage.array(tensor)
        if array is not None:
            scalars = scalars_of(array, dtype)
            return scalars[0] if not tensor.dims else scalars
    return f"{dtype or '?'}{list(tensor.dims)}"
