"""What each template makes of a few lines, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.mining.source.conftest import Mine, assertions, monitors, rules

SETTINGS = """
target = "small"
languages = ["python", "cpp"]
include = ["**"]
[keywords]
assert = ["CHECK"]
pad_factor = ["lcm"]
pad = ["round_up"]
pad_amount = ["missing_to"]
ceiling = ["ceildiv"]
tile = ["tile", "block_m"]
schedule_split = ["split"]
schedule = ["sch"]
unroll_factor = ["unroll"]
unroll_size = ["choose_unroll"]
fusion_table = ["seq"]
fusion_operator = ["is_op"]
fusion_call = ["CallFunction"]
memory = ["capacity"]
[values]
split = {extent = "before {receiver}.get({0}).extent"}
missing_to = {padded = "{0} + {variable}"}
choose_unroll = {extent = "{1} - {0}"}
[device]
warp_size = "device(warp)"
[operators]
multiply = "mul"
Conv = "conv2d"
"""


def of(mined: Mine, text: str, name: str = "a.py") -> list[str]:
    return assertions(mined({name: text}, settings=SETTINGS))


@pytest.mark.parametrize(
    "code",
    [
        "p = (n + f - 1) // f * f",
        "p = -(-n // f) * f",
        "p = -1 * (n // (-1 * f)) * f",
        "p = n + (f - n) % f",
        "p = ceildiv(n, f) * f",
        "p = math.round_up(n, f)",
    ],
)
def test_each_way_to_round_up_is_known(mined: Mine, code: str) -> None:
    assert 'value("p") % value("f") == 0' in of(mined, code)
    assert 'value("p") >= value("n")' in of(mined, code)


@pytest.mark.parametrize(
    "code",
    ["p = (n + f - 1) / f * f;", "p = ceildiv(n, f) * f;", "int p = x::round_up(n, f);"],
)
def test_so_it_is_in_cpp(mined: Mine, code: str) -> None:
    assert 'value("p") % value("f") == 0' in of(mined, f"void g() {{ {code} }}\n", "a.cc")


def test_what_a_variable_held_before_is_told_from_what_it_holds(mined: Mine) -> None:
    assert of(mined, "n = (n + f - 1) // f * f\nk = lcm(k, m)\n") == [
        'value("n") % value("f") == 0',
        'value("n") >= before("n")',
        'value("k") % before("k") == 0',
        'value("k") % value("m") == 0',
    ]


def test_an_amount_to_add_is_added(mined: Mine) -> None:
    assert 'value("a.shape[1] + more") % value("align(a)") == 0' in of(
        mined, "more = missing_to(a.shape[1], align(a))\n"
    )
    assert 'value("n + more") % value("f") == 0' in of(mined, "more = f - n % f\n")


def test_a_division_by_a_tile_should_leave_nothing(mined: Mine) -> None:
    found = mined({"a.py": "count = extent // tile\n"}, settings=SETTINGS)
    assert assertions(found) == ['value("extent") % value("tile") == 0']
    assert monitors(found)["small_tiling_a_1"].meta["confidence"] == ("medium",)


@pytest.mark.parametrize(
    "code", ["c = (m + block_m - 1) // block_m", "c = m // width", "c = m // 4", "c = m / tile"]
)
def test_a_division_that_need_not_be_exact_is_left_alone(mined: Mine, code: str) -> None:
    assert of(mined, code) == []


def test_rounding_down_gives_a_multiple(mined: Mine) -> None:
    assert of(mined, "k = extent // tile * tile\n") == ['value("k") % value("tile") == 0']


@pytest.mark.slow
def test_a_split_divides_what_the_loop_was_before(mined: Mine) -> None:
    code = "a, b, c = sch.split(loop, factors=[None, width, 1])\n"
    assert of(mined, code) == ['before("sch.get(loop).extent") % value("width") == 0']


def test_a_split_of_something_else_is_none(mined: Mine) -> None:
    assert of(mined, "a = numpy.split(x, [2, 4])\nb = text.split(sep)\n") == []


@pytest.mark.slow
def test_an_unrolled_loop_has_no_rest(mined: Mine) -> None:
    assert of(mined, "for i in range(0, trips, unroll):\n    pass\n") == [
        'value("trips") % value("unroll") == 0'
    ]
    text = "void g() { int u = choose_unroll(lo, hi); for (int i = 0; i < n; i += unroll) {} }\n"
    lines = of(mined, text, "a.cc")
    assert 'value("hi - lo") % value("u") == 0' in lines
    assert 'value("n") % value("unroll") == 0' in lines


def test_a_fused_operator_does_not_broadcast(mined: Mine) -> None:
    table = "x = {'seq': ['Conv', 'Add', 'Relu']}\n"
    found = rules(mined({"a.py": table}, settings=SETTINGS)).constraints
    assert sorted(found) == ["small_fusion_add_relu_shape", "small_fusion_conv2d_add_shape"]
    assert found["small_fusion_add_relu_shape"].klass == "topology"


def test_a_pattern_is_followed_through_variables(mined: Mine) -> None:
    code = """
def table():
    out = is_op("relax.nn.conv2d")(data, weight)
    out = is_op("relax.add")(out, bias)
    return is_op("relax.multiply")(is_op("relax.nn.relu")(out), scale)
"""
    found = rules(mined({"a.py": code}, settings=SETTINGS)).constraints
    assert sorted(found) == [
        "small_fusion_add_relu_shape",
        "small_fusion_conv2d_add_shape",
        "small_fusion_relu_mul_shape",
    ]


def test_a_second_operand_may_be_broadcast(mined: Mine) -> None:
    code = 'out = is_op("relax.add")(x, is_op("relax.reshape")(bias, shape))\n'
    found = mined({"a.py": code}, settings=SETTINGS)
    assert rules(found).constraints == {}
    assert [u.why for u in found.derived.unused] == [
        "may be broadcast to the shape of the operand before it"
    ]


def test_element_types_agree_only_where_the_signature_says_so(mined: Mine) -> None:
    code = """
a = CallFunction(aten.where, CallFunction(aten.logical_not, x), y, z)
b = CallFunction(aten.matmul, CallFunction(aten.exp, x), y)
"""
    found = rules(mined({"a.py": code}, settings=SETTINGS)).constraints
    assert sorted(found) == ["small_fusion_exp_matmul_dtype"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("assert a % b == 0", 'value("a") % value("b") == 0'),
        ("if a % b != 0:\n    raise ValueError()", 'value("a") % value("b") == 0'),
        ("if a % b:\n    raise ValueError()", 'value("a") % value("b") == 0'),
        ("def f():\n    if a % b != 0:\n        return False", 'value("a") % value("b") == 0'),
        ("assert not (a < 2 or b > c.d)", 'value("a") >= 2'),
        ("assert isinstance(a, int) and a >> 1 <= 1 << 4", 'value("a") / 2 <= 16'),
        ("assert a in (1, 2)", None),
        ("assert len(a) == len(b)", 'value("len(a)") == value("len(b)")'),
        ("assert 0 <= a < b", '0 <= value("a") < value("b")'),
    ],
)
def test_a_guard_holds_where_the_code_goes_on(mined: Mine, code: str, expected: str | None) -> None:
    lines = of(mined, code)
    assert expected in lines if expected else lines == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("CHECK(a % b == 0) << m;", 'value("a") % value("b") == 0'),
        ("CHECK_EQ(a % b, 0);", 'value("a") % value("b") == 0'),
        ("CHECK_LE(a->n, 64L);", 'value("a->n") <= 64'),
        ('CHECK(a % b == 0 && "no multiple");', 'value("a") % value("b") == 0'),
        ("if (a % b) return false;", 'value("a") % value("b") == 0'),
        ("if (a > b) { throw x; }", 'value("a") <= value("b")'),
        ("if (a > b) return op.emitOpError();", 'value("a") <= value("b")'),
        ("CHECK(static_cast<int>(a) < 0x10u);", 'value("a") < 16'),
    ],
)
def test_so_it_does_in_cpp(mined: Mine, code: str, expected: str) -> None:
    assert expected in of(mined, f"int g() {{ {code} return 1; }}\n", "a.cc")


def test_nothing_is_read_through_a_pointer_that_was_not_checked(mined: Mine) -> None:
    code = (
        "CHECK(p && p->n > 1); CHECK(n < 4 && a[n] > 2); CHECK(n == 0 || v.back() > 3);"
        "CHECK(p->n > 5);"
    )
    found = mined({"a.cc": f"void g() {{ {code} }}\n"}, settings=SETTINGS)
    assert assertions(found) == ['value("n") < 4', 'value("p->n") > 5']
    reasons = [u.why for u in found.derived.unused]
    assert reasons.count("read only where a condition before it holds") == 3


def test_what_cannot_be_said_is_listed_with_the_reason(mined: Mine) -> None:
    code = "assert check(a)\nassert a / b == 2\nassert stream.read(4) == 4\n"
    found = mined({"a.py": code}, settings=SETTINGS)
    assert assertions(found) == []
    assert [(u.place.line, u.why) for u in found.derived.unused] == [
        (3, "`read` may change something"),
        (1, "the truth of a value"),
        (2, "division that does not round"),
    ]


def test_a_call_lowers_the_confidence_unless_it_only_answers(mined: Mine) -> None:
    found = monitors(mined({"a.py": "assert f(a) > 1\nassert len(a) > 1\n"}, settings=SETTINGS))
    assert [m.meta["confidence"] for m in found.values()] == [("medium",), ("high",)]


def test_classes_follow_what_a_guard_is_about(mined: Mine) -> None:
    code = "assert a % b == 0\nassert n <= capacity\nassert n > 1\nassert n <= warp_size\n"
    found = monitors(mined({"a.py": code}, settings=SETTINGS))
    assert [m.klass for m in found.values()] == [
        "hardware_feasibility",
        "resource_safety",
        "execution_safety",
        "hardware_feasibility",
    ]


def test_what_is_proved_holds_and_what_is_not_proved_may(mined: Mine) -> None:
    settings = SETTINGS.replace(
        "[values]", 'proves = ["can_prove"]\nproves_equal = ["same"]\n[values]'
    )
    code = """
if not analyzer.can_prove(a % b == 0):
    raise ValueError()
assert same(c % d, 0)
if analyzer.can_prove(e % f == 0):
    raise ValueError()
"""
    assert assertions(mined({"a.py": code}, settings=settings)) == [
        'value("a") % value("b") == 0',
        'value("c") % value("d") == 0',
    ]
