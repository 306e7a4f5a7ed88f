"""A file that cannot be used gives one ModelError of one line; one that can be, loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from reprise.facts.errors import ModelError, one_line
from reprise.facts.facts import facts_of
from reprise.facts.onnx_import import Limits, load_onnx
from reprise.uir.graph import Graph
from tests.facts.onnx_text import onnx_model

RELU = onnx_model("g (float[2] x) => (float[2] y) { y = Relu(x) }")


def load(folder: Path, content: bytes | onnx.ModelProto, **limits: int) -> Graph:
    path = folder / "m.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return load_onnx(path, limits=Limits(**limits))


def refusal(folder: Path, content: bytes | onnx.ModelProto, **limits: int) -> str:
    """The message of the error that loading gives."""
    with pytest.raises(ModelError) as caught:
        load(folder, content, **limits)
    error = caught.value
    assert error.path == str(folder / "m.onnx")
    assert "\n" not in str(error)
    return error.message


def reads_initializer(tensor: TensorProto) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Identity", [tensor.name], ["y"])],
        "g",
        [],
        [onnx.ValueInfoProto(name="y")],
        [tensor],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (RELU.SerializeToString()[:-5], "truncated or damaged"),
        (RELU.SerializeToString()[:7], "truncated or damaged"),
        (np.random.default_rng(0).bytes(4096), "not an ONNX model"),
        (b"\x00", "not an ONNX model"),
        (b'{"graph": {}}', "it looks like text"),
        (b"PK\x03\x04" + b"\x00" * 60, "another framework's file"),
        (b"\x08\x07", "it holds no graph"),
        (TensorProto(name="w", raw_data=b"1234").SerializeToString(), "not an ONNX model"),
        (RELU.SerializeToString().replace(b"Relu", b"Rel\xff"), "not UTF-8"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in refusal(tmp_path, content)


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path, "is a directory"),
        (tmp_path / "none.onnx", "No such file"),
        (tmp_path / "a\0b.onnx", "not a usable file name"),
        (tmp_path / ("x" * 300), "File name too long"),
    ]:
        with pytest.raises(ModelError, match=message):
            load_onnx(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(RELU.SerializeToString())
    path.chmod(0)
    with pytest.raises(ModelError, match="Permission denied"):
        load_onnx(path)


def test_files_beyond_protobufs_limit_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(3 * 2**30)  # sparse
    with pytest.raises(ModelError, match=r"3,221,225,472 bytes") as caught:
        load_onnx(path)
    assert caught.value.hint is not None
    assert "external data" in caught.value.hint


def nested(depth: int) -> bytes:
    """A model of ``depth`` nested Ifs, as bytes: protobuf would not build it."""

    def field(number: int, payload: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(payload)) + payload

    def varint(value: int) -> bytes:
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    graph = field(1, field(2, b"y0") + field(4, b"Constant")) + field(2, b"g")
    for i in range(1, depth):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        node = field(1, b"c") + field(2, b"y%d" % i) + field(4, b"If") + field(5, attribute)
        graph = field(1, node) + field(2, b"g")
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")


@pytest.mark.parametrize("depth", [40, 10_000])
def test_deeply_nested_bodies_are_refused(tmp_path: Path, depth: int) -> None:
    assert "nested too deeply" in refusal(tmp_path, nested(depth))


# --- graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a = Add(x, b) b = Relu(a) y = Abs(b)", "cycle through node 'a' (Add)"),
        ("y = Abs(a) a = Add(x, b) b = Relu(a)", "cycle through node 'a' (Add)"),
        ("y = Add(x, y)", "cycle through node 'y' (Add)"),
        ("y = Add(x, zz)", "node 'y' (Add) reads 'zz', which nothing defines"),
        ("a = Relu(x)", "the graph's output reads 'y', which nothing defines"),
        ("y = Relu(x) y = Abs(x)", "'y' is defined twice"),
        ("y, y = Split(x)", "'y' is defined twice"),
        ("x = Relu(x) y = Abs(x)", "cycle"),
        ("y = Constant()", "node 'y' (Constant) has no value"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(tmp_path: Path, body: str, message: str) -> None:
    model = onnx_model(f"g (float[2] x) => (float[2] y) {{ {body} }}")
    assert message in refusal(tmp_path, model)


def test_nodes_in_the_wrong_order_are_sorted(tmp_path: Path) -> None:
    graph = load(
        tmp_path, onnx_model("g (float[2] x) => (y) { y = Abs(b) a = Relu(x) b = Add(a, a) }")
    )
    assert [node.op for node in graph.nodes] == ["relu", "add", "abs"]
    assert graph.notes == ["the nodes were not in the order of data flow; they have been sorted"]


def test_operators_without_an_opset_are_refused(tmp_path: Path) -> None:
    model = onnx_model(
        '<ir_version: 10, opset_import: ["other" : 1]> g (float[2] x) => (y) { y = Relu(x) }'
    )
    assert "the model states no ONNX opset" in refusal(tmp_path, model)


@pytest.mark.parametrize("opset", [-5, 999, 2**62])
def test_absurd_opsets_load(tmp_path: Path, opset: int) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(RELU)
    model.opset_import[0].version = opset
    assert [node.op for node in load(tmp_path, model).nodes] == ["relu"]


@pytest.mark.parametrize(
    ("body", "op", "note"),
    [
        ("y = Softmax <axis = 99> (x)", "onnx.Softmax", "axis 99 is out of range"),
        ('y = LeakyRelu <alpha = "a"> (x)', "onnx.LeakyRelu", "'alpha' has the wrong type"),
        ("y = Gelu (x)", "onnx.Gelu", "opset 17 has no operator Gelu"),
        ("y = Concat (x, x)", "onnx.Concat", "lacks attribute 'axis'"),
        ("y = Relu (x, x)", "onnx.Relu", "has 2 operands"),
        ("y = Transpose <perm = [0, 0]> (x)", "onnx.Transpose", "no permutation"),
        ('y = Einsum <equation = "i.j->i"> (x)', "einsum", "is no equation"),
        ("y = LayerNormalization <axis = 4294967296> (x, x)", "onnx.LayerNormalization", "range"),
        ("y = GatherND <batch_dims = -9> (x, x)", "gather_nd", "batch_dims is negative"),
    ],
)
def test_nodes_that_make_no_sense_load_with_a_note(
    tmp_path: Path, body: str, op: str, note: str
) -> None:
    graph = load(tmp_path, onnx_model(f"g (float[2, 3] x) => (y) {{ {body} }}"))
    assert [node.op for node in graph.nodes] == [op]
    assert any(note in line for line in graph.notes), graph.notes


def test_operands_of_unknown_type_do_not_crash(tmp_path: Path) -> None:
    """onnx 1.23.2 reads a type that is not there for these four."""
    text = """<ir_version: 10, opset_import: ["" : 22, "ai.onnx.ml" : 5, "my" : 1]>
    g (float[2, 3] x) => (a, b, c) {
        t = my.Twist(x)
        a = EyeLike(t)
        b = RegexFullMatch <pattern = "a*"> (t)
        c = ai.onnx.ml.LabelEncoder <keys_int64s = [1], values_int64s = [2]> (t)
    }"""
    graph = load(tmp_path, onnx_model(text))
    assert [node.op for node in graph.nodes][1:3] == ["eye_like", "onnx.RegexFullMatch"]


def test_more_outputs_than_a_split_promises_do_not_crash(tmp_path: Path) -> None:
    """onnx 1.23.2 aborts the process on this one; inference never sees it."""
    text = "g (float[6] x) => (a, b, c) { a, b, c = Split <num_outputs = 1> (x) }"
    load(tmp_path, onnx_model(text, opset=18))


# --- types and stored values -----------------------------------------------------------------


def test_negative_extents_are_unknown_and_huge_ones_are_kept(tmp_path: Path) -> None:
    model = onnx_model(f"g (float[2, {2**62}, {2**62}] x) => (y) {{ y = Relu(x) }}")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert load(tmp_path, model).outputs[0].type.shape == (None, 2**62, 2**62)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (TensorProto(name="w", data_type=1, dims=[-2, 3]), "has a negative extent"),
        (TensorProto(name="w", data_type=1, dims=[2], raw_data=b"abc"), "holds 3 bytes"),
        (TensorProto(name="w", data_type=1, dims=[2**62] * 3), "holds no data"),
        (TensorProto(name="w", data_type=22, dims=[2**40], raw_data=b"a"), "holds 1 bytes"),
        (TensorProto(name="w", data_type=7, dims=[2], int64_data=[1]), "1 numbers in int64_data"),
        (TensorProto(name="w", data_type=7, dims=[2], float_data=[1, 2]), "2 numbers in float"),
        (TensorProto(name="w", data_type=8, dims=[2], raw_data=b"ab"), "holds 2 bytes"),
    ],
)
def test_stored_data_of_the_wrong_size_is_refused(
    tmp_path: Path, tensor: TensorProto, message: str
) -> None:
    assert message in refusal(tmp_path, reads_initializer(tensor))


@pytest.mark.parametrize("code", [0, 99, 27])
def test_element_types_without_a_name_are_unknown(tmp_path: Path, code: int) -> None:
    tensor = TensorProto(name="w", dims=[2], raw_data=b"abcd")
    tensor.data_type = code
    graph = load(tmp_path, reads_initializer(tensor))
    assert str(graph.tensors[0].type) == "?[2]"
    assert graph.notes


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(name="w", data_type=8, dims=[2], string_data=[b"\xff\xfe", b"ok"]),
        TensorProto(name="w", data_type=16, dims=[2], int32_data=[-1, 2**31 - 1]),
        TensorProto(name="w", data_type=2, dims=[2], int32_data=[-1, 1000]),
        TensorProto(name="w", data_type=9, dims=[2], raw_data=b"\x02\xff"),
        TensorProto(name="w", data_type=1, dims=[0, 2**62, 2**62]),
        TensorProto(name="w", data_type=1, dims=[1] * 100, float_data=[1.0]),
    ],
)
def test_odd_but_complete_data_loads(tmp_path: Path, tensor: TensorProto) -> None:
    assert list(facts_of(load(tmp_path, reads_initializer(tensor))))


# --- external data ---------------------------------------------------------------------------


def external(location: str, dims: tuple[int, ...] = (4,), **more: str) -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=7, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return reads_initializer(tensor)


def test_small_external_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(5, dtype=np.int64).tobytes())
    graph = load(tmp_path, external("w.bin", offset="8", length="32"))
    value = graph.tensors[0].value
    assert value is not None
    assert value.tolist() == [1, 2, 3, 4]
    assert load(tmp_path, external("w.bin"), external_bytes=16).tensors[0].value is None
    assert load(tmp_path, external("w.bin"), external_total=31).tensors[0].value is None


@pytest.mark.parametrize(
    ("location", "more", "note"),
    [
        ("gone.bin", {}, "is missing"),
        ("", {}, "is missing"),
        ("../outside.bin", {}, "outside the model's folder"),
        ("/etc/passwd", {}, "outside the model's folder"),
        ("link.bin", {}, "outside the model's folder"),
        ("fifo", {}, "is missing"),
        ("a\0b", {}, "cannot be read"),
        ("w.bin", {"offset": "24"}, "ends early"),
        ("w.bin", {"offset": "-8"}, "bytes at -8"),
        ("w.bin", {"offset": "x"}, "unreadable offset"),
        ("w.bin", {"offset": str(10**30)}, "cannot be read"),
        ("w.bin", {"length": "31"}, "has 31 bytes"),
    ],
)
def test_external_data_that_cannot_be_had_is_unknown(
    tmp_path: Path, location: str, more: dict[str, str], note: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(32))
    (folder / "w.bin").write_bytes(bytes(32))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    os.mkfifo(folder / "fifo")
    graph = load(folder, external(location, **more))
    weights = graph.tensors[0]
    assert weights.value is None
    assert ("unknown_value", (weights.id,)) in list(facts_of(graph))
    assert any(note in line for line in graph.notes), graph.notes


def test_ten_gigabytes_of_external_weights_cost_little_memory(tmp_path: Path) -> None:
    layers = 100
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(layers * 100 * 2**20)  # sparse
    nodes, tensors, last = [], [], "x"
    for i in range(layers):
        tensor = TensorProto(
            name=f"w{i}", data_type=1, dims=[5120, 5120], data_location=TensorProto.EXTERNAL
        )
        offset = str(i * 100 * 2**20)
        for key, value in {"location": "weights.bin", "offset": offset}.items():
            tensor.external_data.add(key=key, value=value)
        tensors.append(tensor)
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"h{i}"]))
        last = f"h{i}"
    x = helper.make_tensor_value_info("x", 1, ["N", 5120])
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name=last)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    assert sum(5120 * 5120 * 4 for _ in tensors) > 10**10

    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())

    code = (
        "import re; from reprise.facts.onnx_import import load_onnx; "
        f"graph = load_onnx({str(tmp_path / 'm.onnx')!r}); "
        # not ru_maxrss, which a process takes over from the one that started it
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()); "
        "print(graph.outputs[0].type, int(peak[1]) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    type_, megabytes = done.stdout.rsplit(maxsplit=1)
    assert type_ == "float32[N, 5120]"
    assert int(megabytes) < 250  # onnx and numpy alone take some 100


# --- the cost of being there -----------------------------------------------------------------


def test_importing_the_importer_does_not_import_onnx() -> None:
    """A command that reads no model must not pay for onnx (0.1 s) or sympy (0.3 s)."""
    code = (
        "import sys; import reprise.facts.onnx_import, reprise.facts.facts; "
        "print(sorted({'onnx', 'onnx_ir', 'google', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_a_model_does_not_import_onnx_ir(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(RELU.SerializeToString())
    code = (
        "import sys; from reprise.facts.onnx_import import load_onnx; "
        f"load_onnx({str(tmp_path / 'm.onnx')!r}); "
        "print(sorted({'onnx_ir', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_messages_are_one_short_line() -> None:
    assert one_line("a\n\tb\x00c") == "a b\\x00c"
    assert len(one_line("x" * 1000)) == 300
