"""What the shipped signatures infer, fill in and refuse, in words."""

from __future__ import annotations

import timeit

import pytest

from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import SignatureError


def T(*shape, dtype="float32"):
    return TensorType(dtype, shape)


def test_there_are_enough_operators_in_enough_categories(signatures):
    categories = {signatures[op].category for op in signatures}
    assert len(signatures) >= 130
    assert "" not in categories
    assert len(categories) >= 18


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "expected"),
    [
        ("relu", [T(2, 3)], {}, [T(2, 3)]),
        ("add", [T(2, 1), T(5)], {}, [T(2, 5)]),
        ("equal", [T(2), T(2)], {}, [T(2, dtype="bool")]),
        ("softmax", [T(4, 17)], {"axis": 1}, [T(4, 17)]),
        ("sum", [T(4, 17)], {"axis": 1}, [T(4)]),
        ("sum", [T(4, 17)], {"axes": (1,), "keepdims": True}, [T(4, 1)]),
        ("sum", [T(4, 17)], {}, [T()]),
        ("sum", [T(4)], {"dtype": "int32"}, [T(dtype="int32")]),
        ("cast", [T(3)], {"to": "float16"}, [T(3, dtype="float16")]),
        ("matmul", [T(7, 2, 3), T(3, 4)], {}, [T(7, 2, 4)]),
        ("matmul", [T(3), T(3)], {}, [T()]),
        ("gemm", [T(3, 2), T(3, 5), T(5)], {"trans_a": True}, [T(2, 5)]),
        ("conv2d", [T(1, 4, 8, 8), T(6, 2, 3, 3)], {"groups": 2, "pad": 1}, [T(1, 6, 8, 8)]),
        ("conv2d", [T(1, 4, 8, 8), T(6, 4, 3, 3)], {"stride": 2}, [T(1, 6, 3, 3)]),
        ("max_pool2d", [T(1, 2, 5, 5)], {"kernel_size": 2, "ceil_mode": True, "stride": 2},
         [T(1, 2, 3, 3), T(1, 2, 3, 3, dtype="int64")]),
        ("reshape", [T(2, 3, 4)], {"shape": (0, -1)}, [T(2, 12)]),
        ("flatten", [T(2, 3, 4)], {"axis": 3}, [T(24, 1)]),
        ("squeeze", [T(1, 3, 1)], {}, [T(3)]),
        ("unsqueeze", [T(3)], {"axes": (0, -1)}, [T(1, 3, 1)]),
        ("transpose", [T(2, 3, 4)], {}, [T(4, 3, 2)]),
        ("concat", [T(2, 3), T(4, 3)], {"axis": 0}, [T(6, 3)]),
        ("stack", [T(2, 3), T(2, 3)], {"axis": -1}, [T(2, 3, 2)]),
        ("split", [T(5, 3)], {"sizes": (2, 3)}, [T(2, 3), T(3, 3)]),
        ("chunk", [T(5)], {"chunks": 4}, [T(2), T(2), T(1)]),
        ("slice", [T(9)], {"starts": (-3,), "ends": (2**63 - 1,)}, [T(3)]),
        ("pad", [T(2, 3)], {"pads": (0, 1, 0, 1)}, [T(2, 5)]),
        ("gather", [T(5, 4), T(2, 3, dtype="int64")], {"axis": 1}, [T(5, 2, 3)]),
        ("one_hot", [T(3, dtype="int64")], {"depth": 7}, [T(3, 7, dtype="int64")]),
        ("topk", [T(3, 9)], {"k": 4}, [T(3, 4), T(3, 4, dtype="int64")]),
        ("argmax", [T(3, 9)], {"axis": -1}, [T(3, dtype="int64")]),
        ("resize", [T(1, 1, 4, 4)], {"scales": (1.0, 1.0, 2.0, 1.5)}, [T(1, 1, 8, 6)]),
        ("einsum", [T(2, 3), T(3, 4)], {"equation": "ij,jk"}, [T(2, 4)]),
        ("arange", [], {"end": 7.0, "step": 2.0}, [T(4, dtype="int64")]),
        ("non_zero", [T(2, 3)], {}, [T(2, None, dtype="int64")]),
        ("full", [], {"shape": (2, 0)}, [T(2, 0)]),
    ],
)  # fmt: skip
def test_result_types_follow(signatures, op, operands, attributes, expected):
    assert signatures.infer(op, operands, attributes) == expected


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "code", "words"),
    [
        ("matmul", [T(2, 4), T(5, 2)], {}, "shape", "matmul: extents 4 and 5 differ (K)"),
        ("bmm", [T(2, 3, 4), T(2, 5, 6)], {}, "extent", "bmm: extents 4 and 5 differ (K)"),
        ("linear", [T(2, 3), T(4, 5)], {}, "extent", "linear: extents 3 and 5 differ (K)"),
        ("softmx", [T(2)], {}, "unknown-operator", "did you mean `softmax`?"),
        ("softmax", [T(2)], {"axs": 0}, "unknown-attribute", "did you mean `axis`?"),
        ("cast", [T(2)], {}, "missing-attribute", "attribute `to` is required"),
        ("cast", [T(2)], {"to": "float23"}, "attribute-type", "did you mean `float32`?"),
        ("pad", [T(2)], {"pads": (0, 1), "mode": "edgy"}, "attribute-domain", "one of constant, "
         "edge, reflect, wrap (did you mean `edge`?)"),
        ("conv2d", [T(1, 4, 8, 8), T(6, 4, 3, 3)], {"stride": 0}, "attribute-domain",
         "attribute `strides` is [0, 0], not at least 1"),
        ("conv2d", [T(1, 4, 8, 8), T(6, 4, 3, 3)], {"stride": 2, "strides": (1, 1)},
         "attribute-conflict", "`strides` is [1, 1] but `stride` is 2"),
        ("conv2d", [T(1, 4, 2, 8), T(6, 4, 3, 3)], {}, "condition",
         "Dl[0] * (R - 1) + 1 <= H + P[0] + P[2] does not hold"),
        ("conv2d", [T(1, 4, 8, 8), T(6, 3, 3, 3)], {}, "extent",
         "`w` has extent 3 where C / G = 4 is needed"),
        ("conv2d", [T(4, 8, 8), T(6, 3, 3, 3)], {}, "rank", "`x` must have rank 4, not 3"),
        ("softmax", [T(2, 3)], {"axis": 2}, "axis", "there is no axis 2 in rank 2"),
        ("sum", [T(2, 3)], {"axes": (1, -1)}, "axis", "axes [1, -1] name one axis twice"),
        ("softmax", [T(2, dtype="int32")], {}, "dtype", "element type int32 is not in floats (T)"),
        ("add", [T(2), T(2, dtype="int32")], {}, "dtype", "float32 and int32 differ (T)"),
        ("add", [T(2), T(3)], {}, "shape", "shapes [2] and [3] do not broadcast"),
        ("logical_not", [T(2)], {}, "dtype", "`x` must be bool, not float32"),
        ("relu", [T(2), T(2)], {}, "operand-count", "takes 1 operand, not 2"),
        ("where", [T(2, dtype="bool"), T(2)], {}, "operand-count", "takes 3 operands, not 2"),
        ("gemm", [None, T(2, 2)], {}, "missing-operand", "operand `a` must be present"),
        ("concat", [], {"axis": 0}, "operand-count", "takes 1 or more operands, not 0"),
        ("concat", [T(2, 3), T(2, 4)], {"axis": 0}, "shape", "differ along another axis"),
        ("reshape", [T(2, 3)], {"shape": (4, 2)}, "shape", "6 elements do not fit"),
        ("reshape", [T(2, 3)], {"shape": (4, -1)}, "shape", "cannot be divided into"),
        ("transpose", [T(2, 3)], {"perm": (0, 0)}, "shape", "[0, 0] is not a permutation"),
        ("squeeze", [T(2, 3)], {"axes": (0,)}, "condition", "prod(pick(D, A)) == 1 does not hold"),
        ("topk", [T(3)], {"k": 4}, "condition", "K <= D[A] does not hold: K = 4"),
        ("reshape", [T(2, 3), T(2, dtype="int64")], {"shape": (6,)}, "attribute-conflict",
         "`shape` is given twice: as an operand and as an attribute"),
    ],
)  # fmt: skip
def test_refusals_say_what_is_wrong(signatures, op, operands, attributes, code, words):
    with pytest.raises(SignatureError) as caught:
        signatures.infer(op, operands, attributes)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_defaults_are_filled_in_and_negative_axes_resolved(signatures):
    assert signatures.complete_attributes("softmax", [T(2, 3, 4)]) == {"axis": 2}
    assert signatures.complete_attributes("sum", [T(2, 3)], {"axes": (-1,)}) == {
        "axes": (1,),
        "axis": 1,
        "keepdims": False,
    }


def test_the_short_spelling_of_a_list_is_there_only_when_it_says_everything(signatures):
    both = signatures.complete_attributes("max", [T(2, 3)])
    assert both["axes"] == (0, 1)
    assert "axis" not in both
    conv = signatures.complete_attributes(
        "conv2d", [T(1, 1, 8, 8), T(1, 1, 3, 3)], {"pads": (1, 1, 1, 0), "stride": 2}
    )
    assert "pad" not in conv
    assert conv["strides"] == (2, 2)
    assert conv["stride"] == 2
    assert conv["kernel"] == (3, 3)
    assert conv["kernel_size"] == 3


def test_attribute_kinds_are_never_confused(signatures):
    completed = signatures.complete_attributes("elu", [T(2)], {"alpha": 1})
    assert completed == {"alpha": 1.0}
    assert type(completed["alpha"]) is float
    for value in (True, "1"):
        with pytest.raises(SignatureError, match="attribute `alpha` is float"):
            signatures.infer("elu", [T(2)], {"alpha": value})
    with pytest.raises(SignatureError, match="attribute `keepdims` is bool, not 1"):
        signatures.infer("sum", [T(2)], {"keepdims": 1})


def test_symbolic_extents_pass_through_and_cancel(signatures):
    assert signatures.infer("relu", [T("N", 3)]) == [T("N", 3)]
    assert signatures.infer("add", [T("N", 1), T("N", 4)]) == [T("N", 4)]
    assert signatures.infer("add", [T("N"), T(4)]) == [T(4)]
    assert signatures.infer("add", [T("N"), T("M")]) == [T(None)]
    assert signatures.infer("reshape", [T("N", 4, 5)], {"shape": (0, -1)}) == [T("N", 20)]
    assert signatures.infer("reshape", [T("N", 4, 5)], {"shape": (-1, 20)}) == [T("N", 20)]
    assert signatures.infer("flatten", [T("N", 2, 3)]) == [T("N", 6)]
    assert signatures.infer("concat", [T("N", 2), T(3, 2)], {"axis": 0}) == [T(None, 2)]
    conv = signatures.infer("conv2d", [T("N", 4, "H", 8), T(6, 4, 1, 3)])
    assert conv == [T("N", 6, "H", 6)]


def test_a_condition_on_an_unknown_is_possible_not_false(signatures):
    assert signatures.check("matmul", [T(2, "K"), T("K", 3)]).certain
    possible = signatures.check("matmul", [T(2, "K"), T(5, 3)])
    assert possible.outputs == [T(2, 3)]
    pooled = signatures.check("max_pool2d", [T(1, 2, "H", 5)], {"kernel": (2, 2)})
    assert pooled.outputs[0] == T(1, 2, None, 4)
    assert not signatures.check("topk", [T("N")], {"k": 4}).certain


def test_unknown_ranks_and_dtypes_stay_unknown(signatures):
    anything = TensorType(None, None)
    assert signatures.infer("relu", [anything]) == [anything]
    assert signatures.infer("cast", [anything], {"to": "int8"}) == [TensorType("int8", None)]
    assert signatures.infer("sum", [TensorType("float32", None)], {"axis": 1}) == [
        TensorType("float32", None)
    ]
    assert signatures.complete_attributes("softmax", [anything], {"axis": -1}) == {"axis": -1}
    assert signatures.infer("transpose", [anything], {"perm": (1, 0)}) == [
        TensorType(None, (None, None))
    ]
    with pytest.raises(SignatureError, match="float32 and int32 differ"):
        signatures.infer("where", [T(2, dtype="bool"), T(2), TensorType("int32", None)])


def test_an_operand_may_hold_what_is_otherwise_an_attribute(signatures):
    typing = signatures.check("reshape", [T(2, 3), T(4, dtype="int64")])
    assert typing.outputs == [TensorType("float32", None)]
    assert "shape" not in typing.attributes
    assert not typing.certain
    kept = signatures.infer("sum", [T(2, 3), T(1, dtype="int64")], {"keepdims": True})
    assert kept == [T(None, None)]
    assert signatures.infer("clip", [T(2, 3), None, T()]) == [T(2, 3)]


def test_attempt_answers_none_where_check_raises(signatures):
    signature = signatures["matmul"]
    assert signature.attempt([T(2, 3), T(4, 5)], {}) is None
    assert signature.attempt([T(2, 3)], {}) is None
    assert signature.attempt([T(2, 3), T(3, 5)], {}).outputs == [T(2, 5)]


def test_simple_inference_is_cheap(signatures):
    """A budget with much room for slow machines: the target is 10 µs, 2 µs is usual."""
    operands = [T(2, 3, 4), T(2, 3, 4)]
    signatures.infer("add", operands)
    best = min(timeit.repeat(lambda: signatures.infer("add", operands), number=500, repeat=5))
    assert best / 500 < 100e-6


@pytest.mark.slow
def test_more_signatures_can_be_loaded(tmp_path):
    path = tmp_path / "mine.rules"
    path.write_text(
        "/// Twice as long\n"
        "op double(x: T[*D, N]) -> T[*D, 2 * N] { category joining where T in floats }\n"
    )
    signatures = Signatures.load([path])
    assert signatures.infer("double", [T(3, 4)]) == [T(3, 8)]


def B(*shape, dtype="int8"):
    return TensorType(dtype, shape)


def attend(q, k, v, *rest, **attributes):
    return "attention", [T(*q), T(*k), T(*v), *rest], attributes


HEADS = {"q_num_heads": 4, "kv_num_heads": 2}


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("conv_integer", [B(1, 2, 4), B(6, 2, 3), B(), B(6)], {}),
        ("matmul_integer", [B(2, 3), B(3, 4), B(2), B(4)], {}),
        ("matmul_integer", [B(5, 2, 3), B(3, 4), B(5, 2, 1)], {}),
        ("quantize_linear", [T(2, 6), T(6), B(6)], {"axis": 1}),
        ("quantize_linear", [T(6), T(2)], {"axis": 0, "block_size": 3}),
        ("quantize_linear", [T(2, 7), T(2, 3)], {"block_size": 3, "precision": "float16"}),
        ("quantize_linear", [T(6), T()], {}),  # the default axis is not there, nor needed
        attend((1, 4, 2, 8), (1, 2, 3, 8), (1, 2, 3, 5), None, None, None, B(1, dtype="int64")),
        attend((1, 2, 32), (1, 3, 16), (1, 3, 10), **HEADS),
        attend((1, 2, 32), (1, 3, 16), (1, 3, 10), T(4, 1, 2), **HEADS),  # a mask that is short
        ("rotary_embedding", [T(2, 3, 5, 8), T(9, 4), T(9, 4), B(2, 5, dtype="int64")], {}),
        ("rotary_embedding", [T(2, 5, 24), T(2, 5, 2), T(2, 5, 2)],
         {"num_heads": 3, "rotary_embedding_dim": 4}),
        ("max_unpool", [T(1, 2, 3), B(1, 2, 3, dtype="int64")],
         {"kernel": (2,), "strides": (2,), "output_shape": (1, 2, 7)}),
        ("resize", [T(2, 3)], {"scales": (1.0, 2.0), "roi": (0.0, 0.0, 1.0, 1.0)}),
        ("lstm", [T(2, 3, 4), T(1, 20, 4), T(1, 20, 5)],
         {"hidden_size": 5, "activations": ("Elu", "Tanh", "Tanh"), "activation_alpha": (0.5,)}),
    ],
)  # fmt: skip
def test_what_fits_is_accepted(signatures, op, operands, attributes):
    signatures.check(op, operands, attributes)


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("conv_integer", [B(1, 2, 4), B(6, 2, 3), B(2)], {}),
        ("conv_integer", [B(1, 2, 4), B(6, 2, 3), B(), B(3)], {}),
        ("matmul_integer", [B(2, 3), B(3, 4), B(3)], {}),
        ("matmul_integer", [B(5, 2, 3), B(3, 4), B(2)], {}),
        ("qlinear_matmul", [B(2, 3), T(), B(), B(3, 4), T(), B(), T(2), B(2)], {}),
        ("quantize_linear", [T(2, 6), T(2)], {"axis": 1}),
        ("quantize_linear", [T(2, 7), T(2, 2)], {"block_size": 3}),
        ("quantize_linear", [T(2, 6), T()], {"precision": "int8"}),
        ("dequantize_linear", [B(6), T(6)], {"axis": 1, "block_size": 1}),
        attend((1, 4, 2, 8), (1, 2, 3, 8), (1, 2, 3, 5), None, None, None, B(4, dtype="int64")),
        attend((4, 2, 8), (4, 3, 8), (4, 3, 5), None, None, None, B(4, dtype="int64")),
        attend((1, 2, 32), (1, 3, 16), (1, 3, 10), q_num_heads=4),
        attend((1, 2, 32), (1, 3, 32), (1, 3, 10), **HEADS),
        attend((1, 2, 8), (1, 3, 8), (1, 3, 5), softmax_precision="int32"),
        ("rotary_embedding", [T(2, 3, 5, 7), T(2, 5, 3), T(2, 5, 3)], {}),
        ("rotary_embedding", [T(2, 3, 5, 8), T(2, 4, 4), T(2, 4, 4)], {}),
        ("rotary_embedding", [T(2, 3, 5, 8), T(9, 4), T(9, 4), B(2, 4, dtype="int64")], {}),
        ("rotary_embedding", [T(2, 5, 24), T(2, 5, 2), T(2, 5, 2)], {"num_heads": 0}),
        ("max_unpool", [T(1, 2, 3), B(1, 2, 3, dtype="int64")],
         {"kernel": (2,), "output_shape": (1, 3, 7)}),
        ("resize", [T(2, 3)], {"scales": (1.0, 2.0), "roi": (0.0, 1.0)}),
        ("resize", [T(2, 3)], {"scales": (1.0,)}),
        ("resize", [T(2, 3)], {"scales": (1.0, 2.0),
                               "coordinate_transformation_mode": "tf_crop_and_resize"}),
        ("rnn", [T(2, 3, 4), T(1, 5, 4), T(1, 5, 5)], {"hidden_size": 5, "clip": 0.0}),
        ("rnn", [T(2, 3, 4), T(1, 5, 4), T(1, 5, 5)],
         {"hidden_size": 5, "activation_beta": (0.5,)}),
        ("layer_norm", [T(2, 3), T(3)], {"stash_type": 7}),
        ("random_uniform", [], {"shape": (2,), "low": 1.0, "high": 0.0}),
        ("random_normal", [], {"shape": (2,), "scale": -1.0}),
        ("dropout", [T(2)], {"ratio": 1.0}),
    ],
)  # fmt: skip
def test_what_nobody_can_run_is_refused(signatures, op, operands, attributes):
    with pytest.raises(SignatureError):
        signatures.check(op, operands, attributes)


def test_packed_heads_come_apart_in_the_present_and_the_scores(signatures):
    op, operands, attributes = attend((1, 2, 32), (1, 3, 16), (1, 3, 10), **HEADS)
    past = [None, T(1, 2, 6, 8), T(1, 2, 6, 5)]
    assert signatures.infer(op, operands + past, attributes) == [
        *(T(1, 2, 20), T(1, 2, 9, 8), T(1, 2, 9, 5), T(1, 4, 2, 9))
    ]
