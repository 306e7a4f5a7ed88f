"""One operator, written for different opsets, is one UIR node."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs

from reprise.facts.onnx_schema import definition
from reprise.facts.onnx_table import TABLE
from reprise.uir.graph import Graph, Role
from tests.facts.onnx_text import imported, one_node

X = ("float", (2, 3, 8, 8))


def form(graph: Graph) -> tuple[str, list[bool], dict[str, Any]]:
    """The only node without names: operator, which operands are present, attributes."""
    (node,) = graph.nodes
    typed = {name: (type(value), value) for name, value in sorted(node.attributes.items())}
    return node.op, [operand is not None for operand in node.inputs], typed


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


VARIANTS: dict[str, list[Graph]] = {
    "sum: axes as attribute, then operand, negative": [
        one_node("ReduceSum", [X], 11, axes=[1, 3], keepdims=0),
        one_node("ReduceSum", [X], 11, axes=[-1, 1], keepdims=0),
        one_node("ReduceSum", [X, ints(1, -1)], 13, keepdims=0),
    ],
    "max over all axes": [
        one_node("ReduceMax", [X], 11, axes=[0, 1, 2, 3]),
        one_node("ReduceMax", [X], 12),
        one_node("ReduceMax", [X, ints()], 18),
        one_node("ReduceMax", [X, ("int64", (0,))], 20),
    ],
    "squeeze": [
        one_node("Squeeze", [("float", (2, 1, 3))], 11, axes=[-2]),
        one_node("Squeeze", [("float", (2, 1, 3)), ints(1)], 13),
        one_node("Squeeze", [("float", (2, 1, 3))], 21),
    ],
    "unsqueeze": [
        one_node("Unsqueeze", [("float", (2, 3))], 11, axes=[0, 3]),
        one_node("Unsqueeze", [("float", (2, 3)), ints(-1, 0)], 13),
    ],
    "clip": [
        one_node("Clip", [X], 6, min=0.0, max=6.0),
        one_node("Clip", [X, floats(0).reshape(()), floats(6).reshape(())], 11),
        one_node("Clip", [X, floats(0).reshape(()), floats(6).reshape(())], 13),
    ],
    "clip without a maximum": [
        one_node("Clip", [X], 6, min=-1.5),
        one_node("Clip", [X, floats(-1.5).reshape(())], 12),
    ],
    "slice": [
        one_node("Slice", [X], 9, starts=[1, 0], ends=[5, -1], axes=[-1, 1]),
        one_node("Slice", [X, ints(1, 0), ints(5, -1), ints(3, 1)], 10),
        one_node("Slice", [X, ints(1, 0), ints(5, -1), ints(3, 1), ints(1, 1)], 13),
    ],
    "pad": [
        one_node("Pad", [X], 1, paddings=[0, 0, 1, 1, 0, 0, 2, 2], value=1.0),
        one_node("Pad", [X], 2, pads=[0, 0, 1, 1, 0, 0, 2, 2], value=1.0),
        one_node("Pad", [X, ints(0, 0, 1, 1, 0, 0, 2, 2), floats(1).reshape(())], 11),
        one_node("Pad", [X, ints(1, 1, 2, 2), floats(1).reshape(()), ints(-2, 3)], 18),
    ],
    "pad with zeros": [
        one_node("Pad", [X], 2, pads=[0, 0, 1, 1, 0, 0, 1, 1]),
        one_node("Pad", [X, ints(0, 0, 1, 1, 0, 0, 1, 1)], 13),
        one_node("Pad", [X, ints(1, 1, 1, 1), None, ints(2, 3)], 19),
    ],
    "softmax over the last axis": [
        one_node("Softmax", [("float", (4, 5))], 1),
        one_node("Softmax", [("float", (4, 5))], 11, axis=-1),
        one_node("Softmax", [("float", (4, 5))], 13),
        one_node("Softmax", [("float", (4, 5))], 13, axis=1),
    ],
    "softmax over what only looks like several axes": [
        one_node("LogSoftmax", [("float", (4, 5, 1, 1))], 9),
        one_node("LogSoftmax", [("float", (4, 5, 1, 1))], 13, axis=1),
    ],
    "dropout that drops nothing": [
        one_node("Dropout", [X], 1, is_test=1, consumed_inputs=[0]),
        one_node("Dropout", [X], 6, is_test=1),
        one_node("Dropout", [X], 7),
        one_node("Dropout", [X], 10),
        one_node("Dropout", [X, floats(0.5).reshape(())], 12),
        one_node("Dropout", [X, None, np.array(False)], 13),
    ],
    "batch normalisation at inference": [
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 6, is_test=1),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 7, spatial=1),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 9),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 14),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 15, training_mode=0),
    ],
    "batch normalisation in training": [
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 6, outputs=5),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 9, outputs=5),
        one_node("BatchNormalization", [X, *[("float", (3,))] * 4], 15, 3, training_mode=1),
    ],
    "upsampling by nearest": [
        one_node("Upsample", [X], 1, height_scale=2.0, width_scale=3.0),
        one_node("Upsample", [X], 7, scales=[1.0, 1.0, 2.0, 3.0]),
        one_node("Upsample", [X, floats(1, 1, 2, 3)], 9, mode="nearest"),
        one_node("Resize", [X, floats(1, 1, 2, 3)], 10),
        one_node(
            "Resize",
            [X, floats(), floats(1, 1, 2, 3)],
            11,
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        one_node(
            "Resize",
            [X, None, floats(2, 3)],
            18,
            axes=[2, -1],
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
    ],
    "resizing to sizes": [
        one_node("Resize", [X, floats(), floats(), ints(2, 3, 4, 4)], 11, mode="linear"),
        one_node("Resize", [X, None, None, ints(2, 3, 4, 4)], 13, mode="linear"),
        one_node("Resize", [X, None, None, ints(4, 4)], 18, axes=[2, 3], mode="linear"),
    ],
    "splitting": [
        one_node("Split", [X], 2, outputs=2, axis=2),
        one_node("Split", [X], 11, outputs=2, axis=-2, split=[4, 4]),
        one_node("Split", [X, ints(4, 4)], 13, outputs=2, axis=2),
        one_node("Split", [X], 18, outputs=2, axis=2, num_outputs=2),
    ],
    "the greatest three": [
        one_node("TopK", [X], 1, outputs=2, k=3, axis=3),
        one_node("TopK", [X, ints(3)], 10, outputs=2),
        one_node("TopK", [X, ints(3)], 11, outputs=2, largest=1, sorted=1),
        one_node("TopK", [X, ints(3)], 24, outputs=2),
    ],
    "cast": [
        one_node("Cast", [X], 5, to="INT32"),
        one_node("Cast", [X], 6, to=6),
        one_node("Cast", [X], 13, to=6),
        one_node("Cast", [X], 19, to=6, saturate=1),
        one_node("Cast", [X], 24, to=6, round_mode="up"),
    ],
    "reshape": [
        one_node("Reshape", [X], 1, shape=[2, -1]),
        one_node("Reshape", [X, ints(2, -1)], 5),
        one_node("Reshape", [X, ints(2, -1)], 14, allowzero=0),
    ],
    "add": [
        one_node("Add", [X, X], 1),
        one_node("Add", [X, ("float", (8,))], 6, broadcast=1),
        one_node("Add", [X, ("float", (8, 8))], 6, broadcast=1, axis=2),
        one_node("Add", [X, ("float", (8,))], 7),
        one_node("Sum", [X, X], 8),
    ],
    "gemm": [
        one_node("Gemm", [("float", (2, 3)), ("float", (3, 4)), ("float", (4,))], 6, broadcast=1),
        one_node("Gemm", [("float", (2, 3)), ("float", (3, 4)), ("float", (4,))], 13, transB=0),
    ],
    "convolution with the same extents": [
        one_node("Conv", [X, ("float", (4, 3, 3, 3))], 1, pads=[1, 1, 1, 1]),
        one_node("Conv", [X, ("float", (4, 3, 3, 3))], 11, auto_pad="SAME_UPPER"),
        one_node("Conv", [("float", None), ("float", (4, 3, 3, 3))], 11, auto_pad="SAME_LOWER"),
    ],
    "pooling, each stride beyond the end": [
        one_node("MaxPool", [X], 1, kernel_shape=[2, 2], strides=[2, 2]),
        one_node("MaxPool", [X], 10, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        one_node("MaxPool", [X], 12, kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID"),
    ],
    "scattering": [
        one_node("Scatter", [X, ("int64", X[1]), X], 9, axis=-1),
        one_node("ScatterElements", [X, ("int64", X[1]), X], 11, axis=3),
        one_node("ScatterElements", [X, ("int64", X[1]), X], 18, axis=3, reduction="none"),
    ],
    "quantisation": [
        one_node("QuantizeLinear", [X, ("float", ()), ("uint8", ())], 10),
        one_node("QuantizeLinear", [X, ("float", ()), ("uint8", ())], 13, axis=-3),
        one_node("QuantizeLinear", [X, ("float", ()), ("uint8", ())], 21),
    ],
    "sampling": [
        one_node("GridSample", [X, ("float", (2, 4, 4, 2))], 16, mode="bilinear"),
        one_node("GridSample", [X, ("float", (2, 4, 4, 2))], 20, mode="linear"),
    ],
    "group normalisation by channel": [
        one_node("GroupNormalization", [X, ("float", (3,)), ("float", (3,))], 18, num_groups=3),
        one_node("GroupNormalization", [X, ("float", (3,)), ("float", (3,))], 21, num_groups=3),
    ],
    "transposition": [
        one_node("Transpose", [("float", (2, 3))], 1),
        one_node("Transpose", [("float", (2, 3))], 13, perm=[1, 0]),
    ],
    "shape": [
        one_node("Shape", [X], 1),
        one_node("Shape", [X], 15, start=-4),
        one_node("Shape", [X], 15, start=0, end=7),
    ],
    "first gru": [
        one_node("GRU", [("float", (1, 2, 3)), ("float", (1, 9, 3)), ("float", (1, 9, 3))], v)
        for v in (3, 7, 14)
    ],
}


@pytest.mark.parametrize("variants", VARIANTS.values(), ids=VARIANTS.keys())
def test_variants_of_an_operator_are_equal(variants: list[Graph]) -> None:
    forms = [form(graph) for graph in variants]
    assert "." not in forms[0][0], variants[0].notes
    for other in forms[1:]:
        assert other == forms[0]


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (one_node("Softmax", [X], 11, axis=1), "normalises all axes from 1 on together"),
        (one_node("Add", [X, ("float", (3,))], 6, broadcast=1, axis=1), "from axis 1 of 4"),
        (one_node("PRelu", [X, ("float", (3,))], 6), "its slope belongs to axis 1"),
        (
            one_node("BatchNormalization", [X, *[("float", (192,))] * 4], 7, spatial=0),
            "normalises each position by itself",
        ),
        (
            one_node("GroupNormalization", [X, ("float", (1,)), ("float", (1,))], 18, num_groups=1),
            "per group",
        ),
        (one_node("Resize", [X, floats(1, 1, 0.5, 0.5)], 10), "how it rounds"),
        (one_node("Softmax", [X], 13, axis=4), "axis 4 is out of range for rank 4"),
        (one_node("MaxPool", [("float", None)], 13, kernel_shape=[2] * 4), "4 spatial axes"),
    ],
)
def test_what_means_something_else_keeps_its_onnx_form(graph: Graph, why: str) -> None:
    (node,) = graph.nodes
    assert node.op.startswith("onnx.")
    assert any(why in note for note in graph.notes)


def test_an_operand_that_the_model_does_not_fix_stays_an_operand() -> None:
    graph = one_node("Clip", [X, floats(0).reshape(()), ("float", ())], 13)
    (node,) = graph.nodes
    assert node.attributes == {"min": 0.0}
    assert node.given == {"min"}
    assert [operand and operand.name for operand in node.inputs] == ["x0", None, "x2"]


def test_an_initializer_that_the_caller_may_replace_fixes_nothing() -> None:
    text = "g (float[2] x, float lo = {0}) => (float[2] y) { y = Clip(x, lo) }"
    (node,) = imported(text, ir_version=8).nodes
    assert node.attributes == {}
    assert len(node.inputs) == 2
    (node,) = imported(text, ir_version=3).nodes  # then, every initializer had to be listed
    assert node.attributes == {"min": 0.0}


def test_given_names_what_the_source_wrote() -> None:
    (node,) = one_node("Conv", [X, ("float", (4, 3, 3, 3))], 11, strides=[2, 2]).nodes
    assert node.op == "conv2d"
    assert node.given == {"strides", "stride"}
    assert node.attributes["stride"] == 2
    assert node.attributes["pad"] == 0
    assert node.attributes["kernel"] == (3, 3)
    assert node.attributes["groups"] == 1


def test_floats_are_what_their_author_wrote() -> None:
    (node,) = one_node("LeakyRelu", [X], 16, alpha=0.1).nodes
    assert node.attributes == {"alpha": 0.1}
    (node,) = one_node("LeakyRelu", [X], 16).nodes
    assert node.attributes == {"alpha": 0.01}


def test_odd_padding_goes_to_the_side_that_auto_pad_says() -> None:
    weights = ("float", (4, 3, 4, 4))
    for mode, pads in (("SAME_UPPER", (1, 1, 2, 2)), ("SAME_LOWER", (2, 2, 1, 1))):
        (node,) = one_node("Conv", [X, weights], 11, auto_pad=mode).nodes
        assert node.attributes["pads"] == pads
        assert "pad" not in node.attributes
        assert "auto_pad" not in node.attributes


def test_auto_pad_stays_where_extents_are_needed_and_not_known() -> None:
    unknown = ("float", ("N", 3, None, None))
    graph = one_node(
        "Conv", [unknown, ("float", (4, 3, 3, 3))], 11, auto_pad="SAME_UPPER", strides=[2, 2]
    )
    (node,) = graph.nodes
    assert node.attributes["auto_pad"] == "SAME_UPPER"
    assert "pads" not in node.attributes


def test_output_shape_of_a_transposed_convolution_becomes_pads_and_stays() -> None:
    graph = one_node(
        "ConvTranspose",
        [("float", (1, 1, 3, 3)), ("float", (1, 2, 3, 3))],
        11,
        strides=[3, 2],
        output_shape=[10, 8],
        output_padding=[1, 1],
    )
    (node,) = graph.nodes
    assert node.op == "conv_transpose2d"
    assert node.attributes["output_shape"] == (10, 8)
    assert node.attributes["pads"] == (0, 0, 0, 0)
    assert graph.outputs[0].type.shape == (1, 2, 10, 8)


def test_a_larger_output_shape_than_there_is_becomes_output_padding() -> None:
    graph = one_node(
        "ConvTranspose",
        [("float", (1, 1, 3, 3)), ("float", (1, 2, 3, 3))],
        11,
        strides=[3, 2],
        output_shape=[10, 6],
    )
    (node,) = graph.nodes
    assert node.attributes["pads"] == (0, 1, 0, 0)
    assert node.attributes["output_padding"] == (1, 0)
    assert graph.outputs[0].type.shape == (1, 2, 10, 6)


def test_reducing_no_axes_is_the_identity_or_what_remains_of_the_operator() -> None:
    (node,) = one_node("ReduceSum", [X], 13, noop_with_empty_axes=1).nodes
    assert (node.op, node.attributes) == ("identity", {})
    (node,) = one_node("ReduceSumSquare", [X], 18, noop_with_empty_axes=1).nodes
    assert (node.op, node.attributes["axes"]) == ("sum_square", ())


def test_axis_is_there_exactly_if_one_axis_is_reduced() -> None:
    (one,) = one_node("ReduceMean", [X], 13, axes=[-2]).nodes
    assert (one.attributes["axes"], one.attributes["axis"]) == ((2,), 2)
    (two,) = one_node("ReduceMean", [X], 13, axes=[2, 1]).nodes
    assert two.attributes["axes"] == (1, 2)
    assert "axis" not in two.attributes


def test_negative_axes_stay_where_the_rank_is_not_known() -> None:
    (node,) = one_node("Softmax", [("float", None)], 13).nodes
    assert (node.op, node.attributes) == ("softmax", {"axis": -1})


def test_the_number_of_operands_decides_between_binary_and_variadic() -> None:
    assert [one_node("Max", [X] * n, 13).nodes[0].op for n in (1, 2, 3)] == [
        "max_n",
        "maximum",
        "max_n",
    ]
    assert one_node("Mean", [X, X], 13).nodes[0].op == "mean_n"


@pytest.mark.parametrize(
    ("attribute", "type_", "value"),
    [
        ("value = float[2] {1, 2}", "float32[2]", [1.0, 2.0]),
        ("value_float = 1.5", "float32[]", 1.5),
        ("value_floats = [1.5, 2.5]", "float32[2]", [1.5, 2.5]),
        ("value_int = 3", "int64[]", 3),
        ("value_ints = [3, 4]", "int64[2]", [3, 4]),
        ('value_string = "a"', "string[]", "a"),
        ('value_strings = ["a", "b"]', "string[2]", ["a", "b"]),
    ],
)
def test_constants_of_every_kind_are_initializers(attribute: str, type_: str, value: Any) -> None:
    graph = imported(f"g () => (y) {{ y = Constant <{attribute}> () }}")
    assert graph.nodes == []
    (tensor,) = graph.outputs
    assert tensor.role is Role.INITIALIZER
    assert str(tensor.type) == type_
    assert tensor.value is not None
    assert tensor.value.tolist() == value


def test_sparse_constants_have_a_type_and_no_value() -> None:
    values = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.0])
    indices = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [5])
    sparse = onnx.helper.make_sparse_tensor(values, indices, [3, 4])
    (tensor,) = one_node("Constant", [], 13, sparse_value=sparse).outputs
    assert str(tensor.type) == "float32[3, 4]"
    assert tensor.value is None


def test_other_domains_keep_their_names() -> None:
    graph = imported(
        """<ir_version: 10, opset_import: ["" : 17, "my.ops" : 2, "ai.onnx.ml" : 1]>
        g (float[2] x) => (y, z) {
            y = my.ops.Twist <turns = 3, names = ["a", "b"], exact = 1.5> (x)
            z = ai.onnx.ml.Normalizer <norm = "L2"> (x)
        }"""
    )
    twist, normalizer = graph.nodes
    assert twist.op == "my.ops.Twist"
    assert twist.attributes == {"turns": 3, "names": ("a", "b"), "exact": 1.5}
    assert twist.given == {"turns", "names", "exact"}
    assert (normalizer.op, normalizer.attributes) == ("ai.onnx.ml.Normalizer", {"norm": "L2"})
    assert graph.opsets == {"": 17, "my.ops": 2, "ai.onnx.ml": 1}


def test_no_attribute_of_any_opset_is_forgotten() -> None:
    """An entry names every attribute that some version of its operator has."""
    legacy = {"consumed_inputs"}
    bodies = {"then_branch", "else_branch", "body", "directions"}
    for schema in defs.get_all_schemas_with_history():
        entry = TABLE.get(schema.name) if schema.domain == "" else None
        if entry is not None:
            named = {attr.source for attr in entry.attrs}
            missing = set(schema.attributes) - named - legacy - bodies
            assert not missing, (schema.name, schema.since_version, missing)


def test_every_entry_is_an_operator_and_every_name_is_snake_case() -> None:
    for name, entry in TABLE.items():
        assert definition("", name, 28) is not None, name
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", entry.op), entry.op
        for attr in entry.attrs:
            assert (
                re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", attr.target)
                or attr.kind.name == "DROP"
            )


def test_shipped_defaults_are_those_of_the_opset() -> None:
    assert onnx.defs.onnx_opset_version() >= 28
    old, new = (one_node("Softmax", [("float", (2, 3))], v).nodes[0] for v in (12, 13))
    assert old.attributes == new.attributes == {"axis": 1}
    assert old.given == new.given == set()


def test_what_a_mined_operator_is_told_is_an_attribute_too() -> None:
    """As in programs, where `shape=[2, 3]` is written as a stored operand."""
    graph = one_node("CenterCropPad", [("float", (4, 5)), ints(2, 3)], 21, axes=[0, 1])
    (node,) = graph.nodes
    assert node.attributes == {"shape": (2, 3), "axes": (0, 1)}
    assert len(node.inputs) == 2
    (node,) = one_node("BlackmanWindow", [ints(5).reshape(())], 21, output_datatype=11).nodes
    assert node.attributes == {"size": 5, "periodic": 1, "output_datatype": "float64"}
    unknown = one_node("CenterCropPad", [("float", (4, 5)), ("int64", (2,))], 21)
    assert "shape" not in unknown.nodes[0].attributes
