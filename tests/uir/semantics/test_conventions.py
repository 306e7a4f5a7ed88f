"""The conventions that ``docs/semantics.md`` states, one by one, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from reprise.uir.graph import TensorType
from reprise.uir.semantics import apply

INF, NAN = float("inf"), float("nan")


@pytest.fixture
def run(signatures):
    """Apply an operator to arrays: the first result, as a list."""

    def call(op, *operands, output=0, **attributes):
        arrays = [None if o is None else np.asarray(o) for o in operands]
        types = [None if a is None else TensorType(str(a.dtype), a.shape) for a in arrays]
        typing = signatures.check(op, types, attributes)
        return apply(op, arrays, typing.attributes, typing.outputs)[output].tolist()

    return call


def ints(*values, dtype="int32"):
    return np.array(values, dtype)


def floats(*values, dtype="float32"):
    return np.array(values, dtype)


def test_division_of_integers_truncates_and_floor_div_rounds_down(run):
    a, b = ints(7, -7, 7, -7), ints(2, 2, -2, -2)
    assert run("div", a, b) == [3, -3, -3, 3]
    assert run("floor_div", a, b) == [3, -4, -4, 3]


def test_mod_has_the_sign_of_the_divisor_and_fmod_that_of_the_dividend(run):
    a, b = ints(7, -7, 7, -7), ints(3, 3, -3, -3)
    assert run("mod", a, b) == run("remainder", a, b) == [1, 2, -2, -1]
    assert run("mod", a, b, fmod=True) == [1, -1, 1, -1]
    assert run("remainder", floats(-7.5), floats(2)) == [0.5]
    assert run("mod", floats(-7.5), floats(2), fmod=True) == [-1.5]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_undefined_integer_divisions_have_a_value(run, dtype):
    least = np.iinfo(dtype).min
    a, b = ints(5, -5, 0, least, dtype=dtype), ints(0, 0, 0, -1, dtype=dtype)
    assert run("div", a, b) == run("floor_div", a, b) == [0, 0, 0, least]
    assert run("mod", a, b) == run("remainder", a, b) == [0, 0, 0, 0]


def test_integers_wrap_around(run):
    assert run("add", ints(127, dtype="int8"), ints(1, dtype="int8")) == [-128]
    assert run("mul", ints(16, dtype="uint8"), ints(17, dtype="uint8")) == [16]
    assert run("abs", ints(-128, dtype="int8")) == run("neg", ints(-128, dtype="int8")) == [-128]
    assert run("sum", ints(100, 100, dtype="int8")) == -56


def test_gemm_scales_integers_by_whole_factors_without_rounding(run):
    a, b, c = (np.array([[v]]) for v in (2**62, 2, -(2**63) + 1))
    assert run("gemm", a, b, c, beta=-1.0) == [[-1]]
    assert run("gemm", a // 2, b // 2, c, alpha=3.0, beta=0.0) == [[3 * 2**61]]
    assert run("gemm", b, b, alpha=0.5) == [[2]]


def test_integer_powers_are_exact_and_truncated(run):
    assert run("pow", ints(3, -2, 2), ints(4, 3, 0)) == [81, -8, 1]
    assert run("pow", ints(1, -1, -1, 2, 0), ints(-5, -2, -3, -1, -1)) == [1, 1, -1, 0, 0]
    assert run("pow", ints(9, 2), floats(0.5, 1.5)) == [3, 2]


def test_shifts_by_the_width_or_more_leave_the_sign(run):
    assert run("bit_shift", ints(1, -8), ints(40, 40), direction="LEFT") == [0, 0]
    assert run("bit_shift", ints(8, -8), ints(40, 40), direction="RIGHT") == [0, -1]


def test_halves_round_to_even(run):
    assert run("round", floats(0.5, 1.5, 2.5, -0.5, -1.5)) == [0, 2, 2, 0, -2]
    x, scale = floats(0.5, 1.5, 2.5, 300), np.float32(1)
    assert run("quantize_linear", x, scale) == [0, 2, 2, 255]


def test_the_upper_bound_wins_where_bounds_cross(run):
    assert run("clip", floats(-5, 0, 5), min=2.0, max=1.0) == [1, 1, 1]
    assert run("clip", ints(0, 9), max=3.7) == [0, 3]


def test_nan_survives_maximum_relu_and_clip(run):
    x = floats(NAN)
    for made in (
        run("relu", x),
        run("relu6", x),
        run("clip", x, min=0.0, max=1.0),
        run("maximum", x, floats(1)),
        run("minimum", floats(1), x),
        [run("max", floats(NAN, 1))],
        [run("min", floats(1, NAN))],
    ):
        assert np.isnan(made).all()
    assert run("argmax", floats(1, NAN, 2), axis=0) == run("argmin", floats(1, NAN, 2), axis=0) == 1


def test_comparisons_with_nan_are_false_and_thresholds_let_none_through(run):
    assert run("less", floats(NAN), floats(1)) == run("equal", floats(NAN), floats(NAN)) == [False]
    assert run("not_equal", floats(NAN), floats(NAN)) == [True]
    assert run("thresholded_relu", floats(NAN)) == run("shrink", floats(NAN)) == [0]


def test_reductions_over_nothing_give_the_neutral_element(run):
    x = np.zeros((2, 0), np.float32)
    assert run("sum", x, axes=(1,)) == [0, 0]
    assert run("prod", x, axes=(1,)) == [1, 1]
    assert run("log_sum_exp", x, axes=(1,)) == run("log_sum", x, axes=(1,)) == [-INF, -INF]
    assert run("l2_norm", x, axes=(1,)) == [0, 0]
    assert np.isnan(run("var", x, axes=(1,))).all()
    assert run("reduce_any", x.astype(bool), axes=(1,)) == [False, False]
    assert run("reduce_all", x.astype(bool), axes=(1,)) == [True, True]


def test_axes_that_are_known_only_at_run_time_may_be_none(signatures):
    x, none = floats(1, 2), np.zeros(0, np.int64)
    result = [TensorType("float32", None)]
    given = {"keepdims": False}
    assert apply("sum", [x, none], {**given, "noop_with_empty_axes": False}, result)[0] == 3
    kept = apply("sum", [x, none], {**given, "noop_with_empty_axes": True}, result)[0]
    assert kept.tolist() == [1, 2]
    assert apply("sum", [x, np.array([-1])], given, result)[0] == 3


def test_halves_accumulate_in_single_precision(run):
    x = np.full(4096, 1.0, np.float16)
    assert run("sum", x) == 4096  # in float16, adding 1 to 2048 changes nothing
    assert run("mean", np.full(10, 60000, np.float16)) == 60000
    assert run("matmul", np.full((1, 4096), 1, np.float16), np.full((4096, 1), 1, np.float16)) == [
        [4096]
    ]


def test_argmax_takes_the_first_of_equals_or_the_last(run):
    x = ints(1, 3, 3, 0)
    assert run("argmax", x, axis=0) == 1
    assert run("argmax", x, axis=0, select_last_index=True) == 2


def test_orders_are_stable_and_put_nan_last(run):
    x = floats(2, NAN, 1, 2)
    assert run("argsort", x, axis=0) == [2, 0, 3, 1]
    assert run("argsort", x, axis=0, descending=True) == [1, 0, 3, 2]
    assert run("topk", floats(1, 3, 3, 2), k=3, axis=0, output=1) == [1, 2, 3]


def test_casts_cut_fractions_and_make_nan_true(run):
    assert run("cast", floats(1.9, -1.9), to="int32") == [1, -1]
    assert run("cast", floats(NAN, -0.0, 0.1), to="bool") == [True, False, True]
    assert run("cast", np.array([True, False]), to="float16") == [1, 0]
    assert run("cast", floats(1e6, INF), to="float8e4m3fn") == [448, 448]
    assert np.isnan(run("cast", floats(1e6), to="float8e4m3fn", saturate=False)).all()


def test_a_bitcast_keeps_the_bits(run):
    assert run("bitcast", floats(1.0), to="int32") == [0x3F800000]


def test_indices_outside_read_the_nearest_and_write_nothing(run):
    x = floats(1, 2, 3)
    assert run("gather", x, ints(-1, 0, 7, -9)) == [3, 1, 3, 1]
    assert run("scatter_elements", x, ints(1, 5), floats(9, 9)) == [1, 9, 3]
    assert run("one_hot", ints(1, -1, 5), depth=2) == [[0, 1], [0, 1], [0, 0]]


def test_pooling_indices_count_through_the_whole_operand(run):
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    assert run("max_pool1d", x, kernel=(2,), strides=(2,), output=1) == [[[1, 3], [5, 7]]]


def test_pooled_means_do_not_count_what_hangs_over_the_end(run):
    x = np.ones((1, 1, 3), np.float32)
    given = {"kernel": (2,), "strides": (2,), "ceil_mode": True}
    assert run("avg_pool1d", x, **given) == [[[1, 1]]]
    assert run("avg_pool1d", x, **given, count_include_pad=True) == [[[1, 1]]]
    assert run("avg_pool1d", x, kernel=(2,), pads=(1, 0), count_include_pad=True) == [[[0.5, 1, 1]]]


def test_global_norms_are_norms_over_the_whole_window(run):
    x = np.array([[[3, -4], [1, 0]]], np.float32)
    assert run("global_lp_pool", x, p=2) == [[[5], [1]]]
    assert run("global_lp_pool", x, p=1) == run("lp_pool", x, kernel=(2,), p=1) == [[[7], [1]]]


def test_softmax_of_large_numbers_does_not_overflow(run):
    assert run("softmax", floats(1000, 1000), axis=0) == [0.5, 0.5]
    assert np.isnan(run("softmax", floats(-INF, -INF), axis=0)).all()
    assert run("log_softmax", floats(-1000, 0), axis=0) == [-1000, 0]


def test_a_query_without_keys_attends_to_nothing(run):
    q = np.ones((1, 1, 1, 2), np.float32)
    mask = np.array([[False]])
    assert run("attention", q, q, q, mask) == [[[[0, 0]]]]


def test_batch_norm_in_training_keeps_the_populations_variance(run):
    x = np.array([[1.0], [3.0]], np.float32)
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    made = run("batch_norm", x, one, zero, zero, one, training=True, momentum=0.5, output=2)
    assert made == [1.0]  # 0.5 * 1 + 0.5 * 1; the sample's variance would be 2


def test_floor_division_of_floats_is_exact(run):
    assert run("floor_div", floats(1, dtype="float64"), floats(0.1, dtype="float64")) == [9]


def test_a_mask_zeroes_sequences_after_their_ends(run):
    x, w, r = np.ones((3, 2, 1)), np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    given = {"hidden_size": 1}
    y = np.array(run("rnn", x, w, r, None, ints(1, 3), **given))
    assert y[:, 0, 0, 0].tolist() == [pytest.approx(np.tanh(1)), 0, 0]
    last = run("rnn", x, w, r, None, ints(1, 3), output=1, **given)
    assert np.allclose(last, np.tanh(1))
