"""What a model computes from shapes is known to type inference, entry by entry."""

from __future__ import annotations

import pytest

from tests.facts.onnx_text import imported

N3 = "g (float[N, 3, 8, 8] x, int64[1] any, int64 one)"


def result(body: str, opset: int = 17) -> str:
    """The type of ``y`` after the statements of ``body``."""
    return str(imported(f"{N3} => (y) {{ {body} }}", opset=opset).outputs[0].type)


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        # the flattening of every exported classifier
        (
            """s = Shape(x) i = Constant <value_int = 0> () n = Gather(s, i)
            zero = Constant <value_ints = [0]> () u = Unsqueeze(n, zero)
            rest = Constant <value_ints = [-1]> () t = Concat <axis = 0> (u, rest)
            y = Reshape(x, t)""",
            "float32[N, 192]",
        ),
        ("t = Constant <value_ints = [0, -1]> () y = Reshape(x, t)", "float32[N, 192]"),
        ("t = Constant <value_ints = [-1, 8]> () y = Reshape(x, t)", "float32[?, 8]"),
        ("t = Constant <value_ints = [-1, 3, 64]> () y = Reshape(x, t)", "float32[N, 3, 64]"),
        ("t = Concat <axis = 0> (any, any) y = Reshape(x, t)", "float32[?, ?]"),
        # sizes by arithmetic
        (
            """s = Shape <start = 2> (x) two = Constant <value_ints = [2]> ()
            d = Mul(s, two) y = ConstantOfShape(d)""",
            "float32[16, 16]",
        ),
        (
            """s = Shape <start = 2> (x) three = Constant <value_ints = [3]> ()
            d = Div(s, three) e = Sub(d, three) f = Add(e, three) y = ConstantOfShape(f)""",
            "float32[2, 2]",
        ),
        ("s = Shape <end = 2> (x) y = ConstantOfShape(s)", "float32[N, 3]"),
        ("s = Shape(x) y = Expand(one, s)", "int64[N, 3, 8, 8]"),
        (
            """s = Shape(x) a = Constant <value_ints = [-1]> () b = Constant <value_ints = [-9]> ()
            z = Constant <value_ints = [0]> () r = Slice(s, a, b, z, a) y = ConstantOfShape(r)""",
            "float32[8, 8, 3, N]",
        ),
        (
            """t = Shape <start = 1, end = 2> (x) q = Squeeze(t) c = Cast <to = 7> (q)
            o = Constant <value_ints = [-1]> () r = Reshape(c, o) y = ConstantOfShape(r)""",
            "float32[3]",
        ),
        (
            "s = Shape <start = 1> (x) p = ReduceProd <keepdims = 1> (s) y = ConstantOfShape(p)",
            "float32[192]",
        ),
        (
            """s = Shape <start = 1, end = 2> (x) three = Constant <value_ints = [3]> ()
            c = Equal(s, three) five = Constant <value_ints = [5]> () w = Where(c, five, s)
            y = ConstantOfShape(w)""",
            "float32[5]",
        ),
    ],
)
def test_computed_shapes_are_followed(body: str, type_: str) -> None:
    assert result(body) == type_


def test_a_computed_value_stays_an_operand() -> None:
    graph = imported("g (float[2, 3] x, float[3, 2] z) => (y) { s = Shape(z) y = Reshape(x, s) }")
    reshape = graph.nodes[-1]
    assert len(reshape.inputs) == 2
    assert "shape" not in reshape.attributes
    assert str(graph.outputs[0].type) == "float32[3, 2]"


def test_a_zero_copies_an_extent_unless_zeros_are_meant() -> None:
    text = """g (float[0, 3] x) => (y) {{
        t = Constant <value_ints = [0, 3]> () y = Reshape <allowzero = {}> (x, t)
    }}"""
    assert str(imported(text.format(1)).outputs[0].type) == "float32[0, 3]"
    text = text.replace("[0, 3] x", "[4, 3] x")
    assert str(imported(text.format(0)).outputs[0].type) == "float32[4, 3]"


def test_absurd_extents_do_not_overflow() -> None:
    huge = 2**62
    text = f"""g (float[{huge}, {huge}, {huge}] x) => (y) {{
        t = Constant <value_ints = [-1, {huge}]> () y = Reshape(x, t)
    }}"""
    assert str(imported(text).outputs[0].type) == f"float32[?, {huge}]"
