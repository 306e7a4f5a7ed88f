"""Frames: what goes in comes out bit by bit, and nothing else comes out."""

from __future__ import annotations

import ast
import json
import socket
import struct
import threading
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reprise.targets import wire

BUILT_IN = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
DTYPES = [
    *(np.dtype(name) for name in BUILT_IN),
    *(np.dtype(getattr(ml_dtypes, name)) for name in sorted(wire._EXTENSIONS)),
]


def through(message: dict, arrays: list) -> wire.Frame:
    """Send a frame through a socket, from a thread: it may be larger than the socket's buffer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        data = b"".join(wire.pack(message, arrays))
        sender = threading.Thread(target=theirs.sendall, args=(data,))
        sender.start()
        frame = wire.Reader(ours).read()
        sender.join()
    return frame


def read(data: bytes) -> wire.Frame | None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(data)
        return wire.Reader(ours).read()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape_comes_out_as_it_went_in(dtype: np.dtype, shape: tuple) -> None:
    size = int(np.prod(shape)) * dtype.itemsize
    pattern = np.resize(np.arange(256, dtype=np.uint8), size)
    if dtype == np.bool_:
        pattern &= 1
    array = np.ndarray(shape, dtype, pattern.tobytes())
    out = through({}, [("x", array)]).arrays["x"]
    assert (out.dtype, out.shape) == (dtype, shape)
    assert out.tobytes() == array.tobytes()
    out[...] = array  # writable


def test_nan_payloads_are_kept() -> None:
    bits = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0x80000000], np.uint32)
    out = through({}, [("x", bits.view(np.float32))]).arrays["x"]
    assert out.view(np.uint32).tolist() == bits.tolist()


@pytest.mark.slow
def test_a_million_elements_and_views_in_any_order_of_memory() -> None:
    big = np.random.default_rng(0).standard_normal((1000, 1000))
    frame = through({"n": 1}, [("a", big), ("b", big.T), ("c", big[::2, ::-1]), ("d", big[:0])])
    assert frame.message == {"n": 1}
    for name, array in (("a", big), ("b", big.T), ("c", big[::2, ::-1]), ("d", big[:0])):
        np.testing.assert_array_equal(frame.arrays[name], array)
        assert frame.arrays[name].flags.aligned


@pytest.mark.slow
@given(hnp.arrays(hnp.unicode_string_dtypes(max_len=5), hnp.array_shapes(max_dims=2)))
def test_strings_pass(array: np.ndarray) -> None:
    np.testing.assert_array_equal(through({}, [("s", array)]).arrays["s"], array)


def test_text_arrives_as_text() -> None:
    words = np.array(["", "a b", "\u00e4\u00df", "\u6f22"], object)
    (arrived,) = through({}, [("words", words)]).arrays.values()
    assert arrived.dtype.kind == "U" and arrived.tolist() == words.tolist()


def test_objects_do_not_pass() -> None:
    for array in (np.array([None]), np.array(["2020"], "M8[D]")):
        with pytest.raises(wire.WireError, match="cannot be passed on"):
            wire.pack({}, [("x", array)])


FRAME = b"".join(wire.pack({"kind": "result"}, [("x", np.arange(5.0))]))


@given(st.integers(0, len(FRAME) * 8 - 1))
def test_a_single_wrong_bit_is_noticed(bit: int) -> None:
    data = bytearray(FRAME)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(wire.WireError):
        read(bytes(data))


@given(st.integers(0, len(FRAME) - 1))
def test_a_frame_cut_short_is_an_end_not_a_frame(length: int) -> None:
    with pytest.raises(EOFError):
        read(FRAME[:length])


@pytest.mark.slow
@given(st.binary(min_size=30, max_size=300))
def test_noise_is_no_frame(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        read(data)


def forged(text: bytes, body: bytes = b"") -> bytes:
    """A frame whose sums are right, whatever it says."""
    data = text + body
    head = struct.pack("<4sIQI", b"RPR\x01", len(text), len(data), zlib.crc32(data))
    return head + struct.pack("<I", zlib.crc32(head)) + data


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense",
        b"\xff",
        b"[]",
        b"{}",
        b"3",
        b'{"arrays": 3}',
        b"[" * 100_000,
        *(
            json.dumps({"arrays": [described]}).encode()
            for described in (
                ["x", "<f8", [100]],
                ["x", "<f8", [-1]],
                ["x", "<f8", [2**62, 2**62]],
                ["x", "<f8", "1"],
                ["x", "O", [1]],
                ["x", "nonsense", [1]],
                ["x", ["<f8"], [1]],
                ["x", "<M8[s]", [1]],
                ["x", None, [1]],
                ["x"],
                7,
            )
        ),
    ],
)
def test_a_forged_frame_is_refused(text: bytes) -> None:
    with pytest.raises(wire.WireError):
        read(forged(text, bytes(64)))


def test_a_frame_cannot_claim_more_than_memory_holds() -> None:
    head = struct.pack("<4sIQI", b"RPR\x01", 10, 1 << 60, 0)
    with pytest.raises(wire.WireError):
        read(head + struct.pack("<I", zlib.crc32(head)))


@pytest.mark.parametrize("name", ["wire", "worker", "onnxruntime"])
def test_what_runs_in_a_worker_is_python_3_9_and_needs_no_reprise(name: str) -> None:
    path = Path(wire.__file__).with_name(f"{name}.py")
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    imported = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    ]
    assert not [name for name in imported if name.startswith(("reprise", "onnx."))]
