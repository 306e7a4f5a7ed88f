"""Initializers in torch source: small arrays as literals, larger ones as bytes, bit for bit.

What a literal would not give back exactly (a NaN with a payload, say) is written as bytes too.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator

import numpy as np

from reprise.lang.dtypes import DTYPES
from reprise.lower.torch.call import dtype as spelled_dtype
from reprise.lower.torch.call import literal, shape
from reprise.uir.graph import Array

LITERAL_ELEMENTS = 32
"""Arrays of more elements than this are written as bytes, unless one value fills them."""

_WIDTH = 100
_LITERAL_KINDS = ("float", "int", "uint", "bool")


def scalar(array: Array, dtype: str) -> str | None:
    """A scalar as a plain number, or None if that would not be exactly it."""
    return _number(array.reshape(-1)[0], dtype) if DTYPES[dtype].bits >= 8 else None


def tensor(array: Array, dtype: str) -> str | None:
    """The array as a torch expression, or None if it must be written as bytes."""
    if array.size == 0:
        return f"torch.empty({shape(array.shape)}, dtype={spelled_dtype(dtype)})"
    if DTYPES[dtype].kind not in _LITERAL_KINDS or DTYPES[dtype].bits < 8:
        return None
    items = array.ravel()
    first = _number(items[0], dtype)
    if first is not None and array.ndim and len(set(_bits(array))) == 1:
        return f"torch.full({shape(array.shape)}, {first}, dtype={spelled_dtype(dtype)})"
    if array.size > LITERAL_ELEMENTS:
        return None
    numbers = [_number(item, dtype) for item in items]
    if any(number is None for number in numbers):
        return None
    nested = _nested([n for n in numbers if n is not None], array.shape)
    return f"torch.tensor({nested}, dtype={spelled_dtype(dtype)})"


def encoded(array: Array) -> list[str]:
    """The array's bytes (little-endian, C order), compressed, in lines of base64."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    text = base64.b64encode(zlib.compress(little.tobytes(), 9)).decode()
    return [text[i : i + _WIDTH] for i in range(0, len(text), _WIDTH)]


def _bits(array: Array) -> Iterator[bytes]:
    data, width = np.ascontiguousarray(array).tobytes(), array.dtype.itemsize
    return (data[i : i + width] for i in range(0, len(data), width))


def _number(item: np.generic, dtype: str) -> str | None:
    """The shortest decimal that torch reads back as exactly this number, or None."""
    if DTYPES[dtype].kind != "float":
        value = item.item()
        fits = isinstance(value, bool) or -(2**63) <= value < 2**63
        return repr(value) if fits else None
    text = str(item)
    with np.errstate(all="ignore"):
        back = np.array(float(text)).astype(item.dtype)
    return literal(float(text)) if back.tobytes() == item.tobytes() else None


def _nested(numbers: list[str], extents: tuple[int, ...]) -> str:
    if not extents:
        return numbers[0]
    step = len(numbers) // extents[0]
    parts = [numbers[i * step : (i + 1) * step] for i in range(extents[0])]
    return "[" + ", ".join(_nested(part, extents[1:]) for part in parts) + "]"
