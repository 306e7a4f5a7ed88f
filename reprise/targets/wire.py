"""Frames on the connection between a campaign and a worker: a JSON message and numpy arrays.

A frame is a head (magic, lengths, a checksum of the head and one of the body), the message, and
the arrays' raw bytes, each aligned to 64. Nothing in it is ever executed or unpickled, and whoever
reads one believes none of it: what is no frame is a :class:`WireError`.

Used by both sides. A worker loads this file by its path, in an interpreter that need not have
Reprise: standard library and numpy only, Python 3.9 or later.
"""

from __future__ import annotations

import functools
import json
import socket
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_BYTES = 1 << 32
"""No frame is longer; what claims to be is garbage."""

_HEAD = struct.Struct("<4sIQII")  # magic, message length, body length, body sum, head sum
_MAGIC = b"RPR\x01"
_SUM = struct.Struct("<I")
_ALIGNMENT = 64
_PADDING = bytes(_ALIGNMENT)
_SMALL = 1 << 16
"""Up to so many bytes, copying is cheaper than one more system call."""
_NUMPY_KINDS = "biufcSU"
_TINY_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_TINY = ("float8_e8m0fnu", "float4_e2m1fn", "int2", "int4", "uint2", "uint4")
_EXTENSIONS = frozenset(["bfloat16", *_TINY_FLOATS, *_TINY])
"""Element types that ml_dtypes adds to numpy."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


class WireError(Exception):
    """What was read is no frame, or what should be sent cannot be."""


class Frame:
    """A message and its arrays by name, in order. The arrays may be written to."""

    def __init__(self, message: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.message = message
        self.arrays = arrays


def pack(message: dict[str, Any], arrays: Sequence[tuple[str, Any]]) -> list[bytes | memoryview]:
    """The frame's bytes: one piece if it is small. Arrays of objects are text and become numpy's
    own kind of it. Raises WireError for arrays that have no raw bytes."""
    described = []
    pieces: list[bytes | memoryview] = [b"", b""]  # the head and the message, later
    length = 0
    for name, array in arrays:
        if array.dtype.kind == "O":
            array = _text(array)
        described.append((name, _dtype_name(array.dtype), array.shape))
        size = array.nbytes
        pieces.append(array.tobytes() if size <= _SMALL else _raw(np.ascontiguousarray(array)))
        length += size
        if size % _ALIGNMENT:
            pieces.append(_PADDING[size % _ALIGNMENT :])
            length += -size % _ALIGNMENT
    text = _encode({**message, "arrays": described}).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    length += len(text)
    if length > MOST_BYTES:
        raise WireError(f"a frame of {length} bytes is too long")
    pieces[1] = text
    if length <= _SMALL:
        pieces = [b"", b"".join(pieces)]
    check = 0
    for piece in pieces:
        check = zlib.crc32(piece, check)
    head = _HEAD.pack(_MAGIC, len(text), length, check, 0)[:-4]
    pieces[0] = head + _SUM.pack(zlib.crc32(head))
    return [b"".join(pieces)] if length <= _SMALL else pieces


class Reader:
    """Reads frames from a socket, blocking or not."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._begin()

    def read(self) -> Frame | None:
        """The next frame; None if a socket that does not block has no more bytes yet.

        Raises EOFError where the stream ends, WireError for garbage, OSError of the socket.
        """
        while self._filled < len(self._buffer):
            try:
                count = self._source.recv_into(self._buffer[self._filled :])
            except BlockingIOError:
                return None
            if count == 0:
                raise EOFError
            self._filled += count
            if self._filled == len(self._buffer) and self._head is None:
                self._start_body()
        assert self._head is not None
        frame = _unpack(self._head, self._buffer)
        self._begin()
        return frame

    def _begin(self) -> None:
        self._buffer = memoryview(bytearray(_HEAD.size))
        self._filled = 0
        self._head: tuple[int, int] | None = None

    def _start_body(self) -> None:
        raw = bytes(self._buffer)
        magic, text, length, check, own = _HEAD.unpack(raw)
        if magic != _MAGIC or own != zlib.crc32(raw[:-4]) or not 0 < text <= length <= MOST_BYTES:
            raise WireError(f"not a frame: {raw[:16]!r}...")
        self._head = (text, check)
        self._buffer = _raw(np.empty(length, np.uint8))
        self._filled = 0


def _unpack(head: tuple[int, int], body: memoryview) -> Frame:
    length, check = head
    if zlib.crc32(body) != check:
        raise WireError("wrong checksum")
    try:
        message = json.loads(str(body[:length], "ascii"))
        arrays = {}
        at = length
        for name, dtype, shape in message.pop("arrays"):
            if min(shape, default=0) < 0:
                raise WireError("a negative extent")
            array: Any = np.ndarray(shape, _dtype(dtype), body, at)
            arrays[str(name)] = array
            at += array.nbytes + -array.nbytes % _ALIGNMENT
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, WireError) as error:
        raise WireError(f"malformed frame: {error}") from error
    return Frame(message, arrays)


def _text(array: Any) -> Any:
    """An array of ``str`` objects as numpy's text. Raises WireError for other objects."""
    if not all(isinstance(item, str) for item in array.flat):
        raise WireError("arrays of objects cannot be passed on")
    return array.astype(np.str_)


def _raw(data: Any) -> memoryview:
    """The bytes of a contiguous array that has some."""
    return memoryview(data.reshape(-1).view(np.uint8))


@functools.lru_cache(maxsize=256)
def _dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.name in _EXTENSIONS:  # first: some claim a kind of numpy's
        return dtype.name
    if dtype.kind in _NUMPY_KINDS:
        return dtype.str
    raise WireError(f"arrays of {dtype} cannot be passed on")


@functools.lru_cache(maxsize=256)
def _dtype(name: str) -> np.dtype[Any]:
    if name in _EXTENSIONS:
        import ml_dtypes

        extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extension
    dtype: np.dtype[Any] = np.dtype(str(name))  # None would be float64
    if dtype.kind not in _NUMPY_KINDS:
        raise WireError(f"no such element type: {name!r}")
    return dtype
