"""Implementation-defined values are recognised, and ordinary ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from reprise.uir.semantics import Cause, causes, fragile

FLOAT, INT = np.float32, np.int32


def a(values, dtype=FLOAT):
    return np.array(values, dtype)


FRAGILE = [
    ("div", [a([1], INT), a([0], INT)], {}, {0: Cause.DIVISION}),
    ("floor_div", [a([-(2**31)], INT), a([-1], INT)], {}, {0: Cause.DIVISION}),
    ("remainder", [a([1]), a([0.1])], {}, {0: Cause.ROUNDING}),
    ("pow", [a([0], INT), a([-1], INT)], {}, {0: Cause.OVERFLOW}),
    ("pow", [a([10], INT), a([10], INT)], {}, {0: Cause.OVERFLOW}),
    ("bit_shift", [a([1], INT), a([32], INT)], {"direction": "LEFT"}, {0: Cause.SHIFT}),
    ("maximum", [a([np.nan]), a([1])], {}, {0: Cause.NAN}),
    ("minimum", [a([-0.0]), a([0.0])], {}, {0: Cause.SIGNED_ZERO}),
    ("relu", [a([np.nan])], {}, {0: Cause.NAN}),
    ("cast", [a([3e9])], {"to": "int32"}, {0: Cause.CONVERSION}),
    ("cast", [a([-1.5])], {"to": "uint8"}, {0: Cause.CONVERSION}),
    ("cast", [a([np.nan])], {"to": "int64"}, {0: Cause.CONVERSION}),
    ("cast", [a([2.0**63], np.float64)], {"to": "int64"}, {0: Cause.CONVERSION}),
    ("cast", [a([1.5])], {"to": "string"}, {0: Cause.TEXT}),
    ("sum", [a([1e20])], {"axes": (0,), "dtype": "int32"}, {0: Cause.CONVERSION}),
    ("cumprod", [a([-1.5])], {"axis": 0, "dtype": "uint8"}, {0: Cause.CONVERSION}),
    ("argmax", [a([1, 1])], {"axis": 0}, {0: Cause.TIE}),
    ("argmin", [a([1, np.nan])], {"axis": 0}, {0: Cause.NAN}),
    ("sort", [a([1, 1])], {"axis": 0, "stable": False}, {1: Cause.TIE}),
    ("topk", [a([2, 1])], {"axis": 0, "k": 1, "sorted": False}, {0: Cause.TIE, 1: Cause.TIE}),
    ("gather", [a([1, 2]), a([2], INT)], {"axis": 0}, {0: Cause.INDEX}),
    ("gather_nd", [a([1, 2]), a([[-3]], np.int64)], {}, {0: Cause.INDEX}),
    ("scatter_elements", [a([1, 2]), a([0, -2], INT), a([5, 6])], {"axis": 0},
     {0: Cause.DUPLICATE}),
    ("scatter_nd", [a([1, 2]), a([[0], [0]], np.int64), a([5, 6])], {}, {0: Cause.DUPLICATE}),
    ("max_pool1d", [a([[[1, 1]]])], {"kernel": (2,), "strides": (1,), "pads": (0, 0),
     "dilations": (1,)}, {1: Cause.TIE}),
    ("quantize_linear", [a([0.5]), a(1)], {}, {0: Cause.ROUNDING}),
    ("resize", [a([1, 2, 3])], {"scales": (1.5,), "mode": "linear",
     "coordinate_transformation_mode": "align_corners"}, {0: Cause.FRACTION}),
    ("attention", [a([[[1]]])] * 3 + [a([[False]], bool)], {}, {0: Cause.EMPTY, 3: Cause.EMPTY}),
    ("resize", [a([1, 2, 3])], {"scales": (1.5,), "coordinate_transformation_mode": "asymmetric",
     "nearest_mode": "floor"}, {0: Cause.ROUNDING}),
]  # fmt: skip

SOUND = [
    ("div", [a([1], INT), a([2], INT)], {}),
    ("div", [a([1]), a([0])], {}),
    ("floor_div", [a([7]), a([2])], {}),
    ("pow", [a([2], INT), a([10], INT)], {}),
    ("pow", [a([2]), a([1000])], {}),
    ("bit_shift", [a([1], INT), a([31], INT)], {"direction": "LEFT"}),
    ("maximum", [a([np.inf]), a([1])], {}),
    ("cast", [a([2147483520.0])], {"to": "int32"}),
    ("cast", [a([-0.9])], {"to": "uint8"}),
    ("cast", [a([-(2.0**63)], np.float64)], {"to": "int64"}),
    ("cast", [a([np.nan])], {"to": "float16"}),
    ("cumsum", [a([1.5])], {"axis": 0, "dtype": "uint8"}),
    ("argmax", [a([1, 2])], {"axis": 0}),
    ("sort", [a([1, 1])], {"axis": 0, "stable": True}),
    ("gather", [a([1, 2]), a([-2, 1], INT)], {"axis": 0}),
    ("scatter_elements", [a([1, 2]), a([0, 0], INT), a([5, 6])], {"axis": 0, "reduction": "add"}),
    ("quantize_linear", [a([0.4]), a(1)], {}),
    ("resize", [a([1, 2, 3])], {"scales": (2.0,)}),
    ("attention", [a([[[1]]])] * 3 + [a([[True]], bool)], {}),
    ("add", [a([np.nan]), a([1])], {}),
    ("softmax", [a([np.nan])], {"axis": 0}),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "expected"), FRAGILE)
def test_implementation_defined_values_are_recognised(op, operands, attributes, expected):
    found = causes(op, operands, attributes)
    assert found == expected
    assert fragile(op, operands, attributes)


@pytest.mark.parametrize(("op", "operands", "attributes"), SOUND)
def test_defined_values_are_not_called_fragile(op, operands, attributes):
    assert causes(op, operands, attributes) == {}
    assert not fragile(op, operands, attributes)
