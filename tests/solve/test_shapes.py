"""Each shape function on known, symbolic, unknown and impossible arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_shapes

from reprise.solve.arithmetic import Shifted, at_most, minus, plus, quotient, same, times
from reprise.solve.shapes import FUNCTIONS, ShapeError

small = st.integers(0, 5)
shapes = st.lists(small, max_size=4).map(tuple)


def call(name, *args):
    return FUNCTIONS[name].evaluate(*args)


def test_every_function_is_documented():
    for name, function in FUNCTIONS.items():
        assert function.doc.startswith(f"``{name}("), name


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("rank", [(2, 3)], 2),
        ("len", [None], None),
        ("prod", [(2, "N")], None),
        ("prod", [("N", 0)], 0),
        ("prod", [("N", 1)], "N"),
        ("total", [(1, 2, "N")], Shifted("N", 3)),
        ("smallest", [()], np.inf),
        ("floor", [2.5], 2),
        ("bits", ["float16"], 16),
        ("window", [7, 3, 2, (1, 1), 1, False], 4),
        ("window", [6, 3, 2, (0, 0), 1, True], 3),
        ("window", [2, 1, 3, (1, 1), 1, True], 1),
        ("window", ["H", 3, 1, (1, 1), 1, False], "H"),
        ("window", ["H", 3, 2, (1, 1), 1, False], None),
        ("steps", [0, 7, 2], 4),
        ("steps", [5, 0, -2], 3),
        ("steps", [5, 0, 1], 0),
        ("iota", [3], (0, 1, 2)),
        ("countdown", [3], (2, 1, 0)),
        ("fill", [2, "N"], ("N", "N")),
        ("tail", [1, 3], (1, 2)),
        ("unit_axes", [(1, 2, 1)], (0, 2)),
        ("unit_axes", [("N", 1)], None),
        ("part", [(2, 3, 4), 1, 3], (3, 4)),
        ("drop", [(2, 3, 4), 1], (2, 4)),
        ("drop", [(2, 3, 4), (0, 2)], (3,)),
        ("keep", [(2, 3, 4), (0, 2)], (1, 3, 1)),
        ("keep", [(2, 3), None], (None, None)),
        ("reduced", [(2, 3), 0, True], (1, 3)),
        ("pick", [(2, 3, 4), (0, 2)], (2, 4)),
        ("joined", [(2,), ("N",)], (2, "N")),
        ("transposed", [(2, 3), True], (3, 2)),
        ("permute", [("N", 3, 4), (2, 0, 1)], (4, "N", 3)),
        ("permute", [None, (1, 0)], (None, None)),
        ("insert", [(2, 3), (0, -1)], (1, 2, 3, 1)),
        ("put", [(2, 3), -1, "N"], (2, "N")),
        ("splice", [(2, 3, 4), 1, (7, 8)], (2, 7, 8, 4)),
        ("broadcast", [(2, 1), (3,), ()], (2, 3)),
        ("broadcast", [("N", 1), (1, "M")], ("N", "M")),
        ("broadcast", [("N",), (5,)], (5,)),
        ("broadcast", [("N",), ("M",)], (None,)),
        ("broadcast", [None, (2,)], None),
        ("broadcast_all", [((2, 1), (1, 3))], (2, 3)),
        ("common", [((2, None), ("N", 3))], (2, 3)),
        ("concat_dims", [((2, 3), (4, 3)), 0], (6, 3)),
        ("concat_dims", [(("N", 3), ("N", 3)), 1], ("N", 6)),
        ("split_dims", [(5, 2), 0, (2, 3)], ((2, 2), (3, 2))),
        ("chunk_sizes", [5, 4], (2, 2, 1)),
        ("slice_dims", [(9, 4), (-3, 3), (99, 0), (0, 1), (1, -1)], (3, 3)),
        ("slice_dims", [("N", 4), (0,), (2**31 - 1,), (0,), (1,)], ("N", 4)),
        ("slice_dims", [("N", 4), (1,), (3,), (0,), (1,)], (None, 4)),
        ("pad_dims", [(2, 3), (1, 0, 0, -1), (0, 1)], (3, 2)),
        ("pad_dims", [("N", 3), (0, 1, 0, 1), (0, 1)], ("N", 5)),
        ("reflect_room", [(2, 3), (1, 0, 0, 3), (0, 1)], (0, -1)),
        ("reflect_room", [(5,), (1, -3), (0,)], (0,)),
        ("cropped", [(5, 3), (-2, 4, -1, -3), (0, 1)], (2, 0)),
        ("room", [(4, 3), (2, 9), 1], (2,)),
        ("windows", [(7, 7), (3, 2), (2, 1), (1, 0, 1, 0), (1, 1), False], (4, 6)),
        ("unwindows", [(3,), (2,), (2,), (0, 0)], (6,)),
        ("reshape_dims", [("N", 4, 6), (0, -1), False], ("N", 24)),
        ("reshape_dims", [("N", 4, 6), (-1, 8), False], None),
        ("reshape_dims", [None, (2, -1), False], (2, None)),
        ("reshape_dims", [(0, 3), (0, 7), True], (0, 7)),
        ("tile_dims", [("N", 2), (1, 3)], ("N", 6)),
        ("scale_dims", [(4, 5), (2.0, 0.5)], (8, 2)),
        ("sized_dims", [(4, 5), (8, 2), "stretch"], (8, 2)),
        ("sized_dims", [(4, 5), (8, 2), "not_larger"], (None, None)),
        ("matmul_dims", [(7, 2, 3), (3, 4)], (7, 2, 4)),
        ("matmul_dims", [(3,), (5, 3, 4)], (5, 4)),
        ("matmul_dims", [(2, 3), (3,)], (2,)),
        ("gather_nd_dims", [(2, 3, 4), (5, 2), 0], (5, 4)),
        ("gather_nd_dims", [(2, 3, 4), (2, 1), 1], (2, 4)),
        ("einsum_dims", [((2, 3), (3, 4)), "ij,jk->ki"], (4, 2)),
        ("einsum_dims", [((7, 2, 3), (3, 4)), "...ij,jk->...ik"], (7, 2, 4)),
        ("einsum_dims", [((2, 2),), "ii"], ()),
    ],
)  # fmt: skip
def test_a_function_answers(name, args, expected):
    if expected is None and name == "reshape_dims":
        expected = (None, 8)
    assert call(name, *args) == expected


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("window", [2, 5, 1, (0, 0), 1, False], "the window spans 5"),
        ("steps", [0, 1, 0], "the step is 0"),
        ("drop", [(2, 3), 2], "axis 2 of a tensor of rank 2"),
        ("permute", [(2, 3), (0, 0)], "not a permutation"),
        ("insert", [(2,), (0, -3)], "name one axis twice"),
        ("broadcast", [(2, 3), (2, 4)], "do not broadcast"),
        ("common", [((2,), (3,))], "differ"),
        ("concat_dims", [((2, 3), (2, 4)), 0], "along another axis"),
        ("split_dims", [(5,), 0, (2, 2)], "do not add up"),
        ("slice_dims", [(5,), (0,), (1,), (0,), (0,)], "a step is 0"),
        ("slice_dims", [(5,), (0, 1), (1,), (0,), (1,)], "2 starts"),
        ("pad_dims", [(2,), (-2, -1), (0,)], "cut 3 off"),
        ("pad_dims", [(2, 3), (1, 1), (0, 1)], "2 pads for 2 axes"),
        ("room", [(2, 3), (2,), 0], "ranks 2 and 1 differ"),
        ("windows", [(7,), (3,), (1, 1), (0, 0), (1,), False], "2 strides"),
        ("unwindows", [(1,), (1,), (1,), (1, 1)], "off an extent"),
        ("reshape_dims", [(2, 3), (-1, -1), False], "more than one -1"),
        ("reshape_dims", [(2, 3), (0, 0, 0), False], "copies an axis that the input lacks"),
        ("tile_dims", [(2,), (1, 1)], "2 repeats"),
        ("scale_dims", [(2,), (1.0, 1.0)], "2 scales"),
        ("matmul_dims", [(), (2,)], "a scalar has no matrix product"),
        ("matmul_dims", [(2, 3), (4, 5)], "extents 3 and 4 differ (K)"),
        ("gather_nd_dims", [(2,), (3, 2), 0], "index tuples of 2"),
        ("einsum_dims", [((2, 3),), "ij,jk"], "names 2 operands"),
        ("einsum_dims", [((2, 3), (4, 5)), "ij,jk"], "index j has extents 3 and 4"),
        ("einsum_dims", [((2, 3),), "ij->ik"], "in no operand"),
    ],
)
def test_a_function_says_what_is_wrong(name, args, words):
    with pytest.raises(ShapeError) as caught:
        call(name, *args)
    assert words in str(caught.value)


@pytest.mark.slow
@given(shapes, shapes)
def test_broadcast_is_numpys(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError):
            call("broadcast", a, b)
    else:
        assert call("broadcast", a, b) == expected


@pytest.mark.slow
@given(shapes, st.lists(st.integers(-1, 6), max_size=4).map(tuple))
def test_reshape_is_numpys(shape, wanted):
    """numpy has no copying 0: that is `allowzero`."""
    try:
        expected = np.zeros(shape).reshape(wanted).shape
    except ValueError:
        with pytest.raises(ShapeError):
            call("reshape_dims", shape, wanted, True)
    else:
        assert call("reshape_dims", shape, wanted, True) == expected


@pytest.mark.slow
@given(small, st.integers(-7, 7), st.integers(-7, 7), st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices_are_numpys_but_for_backward_ones_from_before_the_start(extent, start, end, step):
    """ONNX, which clamps a start to the axis, says what those are; numpy finds them empty."""
    expected = np.zeros(extent)[start:end:step].shape
    if step < 0 and start < -extent:
        bounds = {"starts": start, "ends": end, "axes": 0, "steps": step}
        values = [numpy_helper.from_array(np.array([v]), name) for name, v in bounds.items()]
        node = helper.make_node("Slice", ["x", *bounds], ["y"])
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [extent])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        model = helper.make_model(helper.make_graph([node], "g", [x], [y], values))
        shape = infer_shapes(model, data_prop=True).graph.output[0].type.tensor_type.shape
        expected = tuple(d.dim_value for d in shape.dim)
    assert call("slice_dims", (extent,), (start,), (end,), (0,), (step,)) == expected


@pytest.mark.slow
@given(shapes, shapes)
def test_matmul_is_numpys(a, b):
    try:
        expected = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        with pytest.raises(ShapeError):
            call("matmul_dims", a, b)
    else:
        assert call("matmul_dims", a, b) == expected


values = st.one_of(
    st.integers(0, 6),
    st.sampled_from(["N", "M", None]),
    st.builds(Shifted, st.sampled_from(["N", "M"]), st.integers(-2, 2).filter(bool)),
)


@pytest.mark.slow
@given(values, values, small, small)
def test_three_valued_arithmetic_is_sound(a, b, n, m):
    """Whatever the symbols stand for, a known answer is the right one."""

    def at(value):
        match value:
            case Shifted(symbol, by):
                return {"N": n, "M": m}[symbol] + by
            case str():
                return {"N": n, "M": m}[value]
            case _:
                return value

    x, y = at(a), at(b)
    if x is None or y is None:
        return
    for function, exact in (
        (plus, x + y),
        (minus, x - y),
        (times, x * y),
        (same, x == y),
        (at_most, x <= y),
    ):
        answer = function(a, b)
        assert answer is None or at(answer) == exact, function.__name__
    if b != 0 and y != 0:
        answer = quotient(a, b)
        assert answer is None or at(answer) == x // y
