"""Operators that ONNX lacks, written with those that it has, give torch's values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.reference
import pytest

from reprise.lower.onnx import OnnxLowering, to_onnx
from reprise.uir.graph import TensorType
from reprise.uir.types import numpy_dtype
from tests.lower.onnx_models import graph_of, lowered, run, signatures

torch = pytest.importorskip("torch")

SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-4, -1e-4, 1e-30, 3.0, 88.0, -88.0, 1e20, -1e20,
    math.inf, -math.inf, math.nan, math.pi,
)  # fmt: skip

ONE: dict[str, Callable[..., Any]] = {
    "relu6": torch.nn.functional.relu6,
    "hard_tanh": torch.nn.functional.hardtanh,
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "hard_swish": torch.nn.functional.hardswish,
    "swish": torch.nn.functional.silu,
    "mish": torch.nn.functional.mish,
    "gelu": torch.nn.functional.gelu,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "rsqrt": torch.rsqrt,
    "trunc": torch.trunc,
    "square": torch.square,
    "is_finite": torch.isfinite,
    "is_inf": torch.isinf,
    "is_nan": torch.isnan,
}
TWO: dict[str, Callable[..., Any]] = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "remainder": torch.remainder,
    "not_equal": torch.ne,
}

BEYOND = {
    "hard_swish": {math.inf, -math.inf, 1e20, -1e20},  # x * 0 is no number for infinite x
    "swish": {-math.inf},  # as is x * sigmoid(x)
    "mish": {-math.inf},
    "gelu": {math.inf, -math.inf},
    "hypot": {math.inf, -math.inf},  # with NaN: torch says inf, ONNX NaN
    "remainder": {math.inf, -math.inf, 1e20, -1e20, 1e-30},  # of wildly different sizes
    "log_sigmoid": {math.inf, 1e20},  # -0, where torch says 0
}
"""Operands for which the formula in the operator's documentation, which is what is lowered, and
torch's function differ."""


SELECTING = {"trunc", "log1p", "atan2", "hypot", "logaddexp", "remainder"}
"""Operators written with Where, of which ONNX Runtime 1.27 makes 0 from -0."""


def outcome(op: str, opset: int, *arrays: np.ndarray, **attributes: Any) -> list[np.ndarray]:
    """What ONNX Runtime, unoptimised, makes of the lowered operator; ``by_reference``: what ONNX's
    reference implementation does."""
    by_reference = attributes.pop("by_reference", False)
    operands = tuple(TensorType(str(a.dtype), a.shape) for a in arrays)
    typing = signatures().check(op, operands, attributes)
    assert OnnxLowering(opset).unsupported(op, operands, typing.attributes) is None
    model = to_onnx(graph_of(op, operands, typing), opset=opset)
    inputs = {f"x{i}": a for i, a in enumerate(arrays)}
    if by_reference:
        return onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    return run(model, inputs)


def assert_same(
    ours: np.ndarray, theirs: Any, what: str, tolerance: float = 2e-6, *, signs: bool = True
) -> None:
    """Equal up to rounding, NaN for NaN, and zeros with the same ``signs``."""
    expected = theirs.numpy() if isinstance(theirs, torch.Tensor) else np.asarray(theirs)
    assert ours.dtype == expected.dtype and ours.shape == expected.shape, what
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=1e-36, err_msg=what)
    if signs and ours.dtype.kind == "f":
        zero = (ours == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(ours)[zero], np.signbit(expected)[zero], what)


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("op", sorted(ONE))
def test_functions_of_one_operand(op, opset):
    kept = [v for v in SPECIAL if v not in BEYOND.get(op, set())]
    x = np.array(kept, np.float32)
    expected = ONE[op](torch.from_numpy(x))
    with np.errstate(all="ignore"):
        (exact,) = outcome(op, opset, x, by_reference=True)
    assert_same(exact, expected, op, 2e-5)
    assert_same(outcome(op, opset, x)[0], expected, op, 2e-5, signs=op not in SELECTING)


@pytest.mark.parametrize("op", sorted(TWO))
def test_functions_of_two_operands(op):
    kept = [v for v in SPECIAL if v not in BEYOND.get(op, set())]
    pairs = np.array([(a, b) for a in kept for b in kept], np.float32)
    a, b = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    expected = TWO[op](torch.from_numpy(a), torch.from_numpy(b))
    with np.errstate(all="ignore"):
        (exact,) = outcome(op, 21, a, b, by_reference=True)
    assert_same(exact, expected, op, 2e-5)
    assert_same(outcome(op, 21, a, b)[0], expected, op, 2e-5, signs=op not in SELECTING)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integer_division_rounds_down_and_its_rest_has_the_sign_of_the_divisor(dtype):
    values = [-128, -7, -3, -1, 0, 1, 2, 6, 127] if dtype[0] == "i" else [0, 1, 2, 3, 7, 255]
    divisors = [v for v in values if v not in (0, -1)]
    pairs = np.array([(a, b) for a in values for b in divisors]).astype(dtype)
    a, b = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    assert_same(outcome("floor_div", 21, a, b)[0], a // b, "floor_div")
    assert_same(outcome("remainder", 21, a, b)[0], a % b, "remainder")


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_shifts_of_signed_integers(dtype):
    values = [-128, -7, -1, 0, 1, 5, 127] if dtype[0] == "i" else [0, 1, 5, 255]
    pairs = np.array([(a, b) for a in values for b in (0, 1, 3, 7)]).astype(dtype)
    a, b = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    if dtype != "int8":  # ORT has no Where for it
        assert_same(outcome("bit_shift", 21, a, b, direction="RIGHT")[0], a >> b, "right")
    assert_same(outcome("bit_shift", 21, a, b, direction="LEFT")[0], a << b, "left")


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("name", ["int8", "int32", "bool", "float32"])
def test_sums_and_extremes_of_narrow_types(name, opset):
    x = np.array([[100, 100, 100], [-100, 0, 1]]).astype(numpy_dtype(name))
    if name != "bool":
        assert_same(outcome("sum", opset, x, axes=(1,))[0], x.sum(1, dtype=x.dtype), name)
        assert_same(outcome("prod", opset, x, axes=(0,))[0], x.prod(0, dtype=x.dtype), name)
        assert_same(outcome("cumsum", opset, x, axis=1)[0], x.cumsum(1, dtype=x.dtype), name)
    assert_same(outcome("max", opset, x, axes=(0, 1), keepdims=True)[0], x.max(keepdims=True), name)
    assert_same(outcome("min", opset, x, axes=(1,))[0], x.min(1), name)
    assert_same(outcome("argmax", opset, x, axis=1)[0], x.argmax(1), name)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_truth_of_any_and_all_also_of_nothing(opset):
    x = np.array([[True, False], [False, False], [True, True]])
    assert_same(outcome("reduce_any", opset, x, axes=(1,))[0], x.any(1), "any")
    assert_same(outcome("reduce_all", opset, x, axes=(1,))[0], x.all(1), "all")
    if opset < 20:  # later it is one node, and what that makes of nothing is the compiler's affair
        nothing = np.zeros((2, 0), bool)
        assert_same(outcome("reduce_any", opset, nothing, axes=(1,))[0], nothing.any(1), "any")
        assert_same(outcome("reduce_all", opset, nothing, axes=(1,))[0], nothing.all(1), "all")


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("correction", [0, 1, 5])
def test_variance(opset, correction):
    x = np.random.default_rng(1).normal(3.0, 2.0, (3, 4, 5)).astype(np.float32)
    for axes in ((1,), (0, 2), (0, 1, 2), ()):
        arguments = {"correction": correction, "keepdim": True}
        expected = torch.from_numpy(x)
        if axes:
            with warnings.catch_warnings(action="ignore"):  # nothing is left after the correction
                expected = torch.var(expected, dim=axes, **arguments)
        else:  # torch reduces everything
            expected = torch.zeros(3, 4, 5) / max(1 - correction, 0)
        ours = {"axes": axes, "correction": correction, "keepdims": True}
        assert_same(outcome("var", opset, x, **ours)[0], expected, f"{axes}", 1e-5)
        assert_same(outcome("std", opset, x, **ours)[0], torch.sqrt(expected), f"{axes}", 1e-5)


@pytest.mark.parametrize("opset", [13, 21, 26])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products(opset, exclusive, reverse):
    x = np.random.default_rng(2).normal(0.0, 1.0, (2, 4, 3)).astype(np.float32)
    flipped = np.flip(x, 1) if reverse else x
    if exclusive:
        flipped = np.concatenate([np.ones((2, 1, 3), np.float32), flipped[:, :-1]], 1)
    expected = np.cumprod(flipped, 1)
    expected = np.flip(expected, 1) if reverse else expected
    attributes = {"axis": 1, "exclusive": exclusive, "reverse": reverse}
    assert_same(outcome("cumprod", opset, x, **attributes)[0], expected, "cumprod")


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 2), (5, 4), (4, 6), (7, 9)])
def test_adaptive_pools(sizes):
    x = np.random.default_rng(3).normal(0.0, 1.0, (2, 3, 4, 6)).astype(np.float32)
    x[0, 0, 0, 0], x[1, 2, 3, 5] = np.nan, np.inf
    attributes = {"output_size": sizes}
    functional, tensor = torch.nn.functional, torch.from_numpy(x)
    average = functional.adaptive_avg_pool2d(tensor, sizes)
    assert_same(outcome("adaptive_avg_pool2d", 21, x, **attributes)[0], average, "mean", 1e-5)
    x[0, 0, 0, 0] = 0.0
    greatest = functional.adaptive_max_pool2d(torch.from_numpy(x), sizes)
    assert_same(outcome("adaptive_max_pool2d", 21, x, **attributes)[0], greatest, "max")


def test_moves():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = torch.from_numpy(x)
    rolled = torch.roll(tensor, (5, -1), (2, 0))
    assert_same(outcome("roll", 21, x, axes=(2, 0), shifts=(5, -1))[0], rolled, "roll")
    assert_same(outcome("flip", 21, x, axes=(0, 2))[0], tensor.flip(0, 2), "flip")
    assert_same(outcome("glu", 21, x, axis=2)[0], torch.nn.functional.glu(tensor, 2), "glu")
    stacked = torch.stack([tensor, tensor + 1], 1)
    assert_same(outcome("stack", 21, x, x + 1, axis=1)[0], stacked, "stack")
    pieces = outcome("chunk", 21, x, axis=2, chunks=3)
    for ours, theirs in zip(pieces, torch.chunk(tensor, 3, 2), strict=True):
        assert_same(ours, theirs, "chunk")
    assert_same(outcome("select", 21, x, axis=1, index=-1)[0], tensor[:, -1], "select")
    assert_same(outcome("narrow", 21, x, axis=2, start=1, length=2)[0], tensor[..., 1:3], "narrow")
    for upper in (True, False):
        expected = torch.triu(tensor, -1) if upper else torch.tril(tensor, -1)
        for opset in (13, 21):
            assert_same(outcome("trilu", opset, x, upper=upper, k=-1)[0], expected, "trilu")
    mask = x % 2 == 0
    filled = tensor.masked_fill(torch.from_numpy(mask), -3.0)
    assert_same(outcome("masked_fill", 21, x, mask, value=-3.0)[0], filled, "masked_fill")


@pytest.mark.parametrize("values", [(0.0, 1.0, 0.1), (0, 10, 3), (1, -5, -2), (-1.5, 2.0, 0.25)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_sequences_of_numbers(values, dtype):
    start, end, step = values
    if dtype not in ("float32", "float64") and (min(values) < 0 or 0.1 in values):
        return
    attributes = {"start": float(start), "end": float(end), "step": float(step), "dtype": dtype}
    expected = (start + step * np.arange(math.ceil((end - start) / step))).astype(dtype)
    np.testing.assert_allclose(
        outcome("arange", 21, **attributes)[0], expected, rtol=1e-5, atol=1e-6
    )


def test_linear_layers():
    rng = np.random.default_rng(4)
    w, b = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    for shape in ((4,), (3, 4), (2, 3, 4)):
        x = rng.normal(size=shape).astype(np.float32)
        expected = torch.nn.functional.linear(*map(torch.from_numpy, (x, w, b)))
        assert_same(outcome("linear", 21, x, w, b)[0], expected, str(shape), 1e-4)


NORMS = {
    "layer_norm": ((2, 3, 4), (3, 4), {"axis": 1}),
    "rms_norm": ((2, 3, 4), (3, 4), {"axis": 1}),
    "group_norm": ((2, 6, 4), (6,), {"groups": 3}),
}


@pytest.mark.parametrize("op", sorted(NORMS))
def test_normalisation_is_the_same_written_out_and_as_one_node(op):
    rng, (shape, parameters, attributes) = np.random.default_rng(5), NORMS[op]
    arrays = [rng.normal(1.0, 2.0, s).astype(np.float32) for s in (shape, parameters)]
    if op != "rms_norm":
        arrays.append(rng.normal(size=parameters).astype(np.float32))
    tensors = [torch.from_numpy(a) for a in arrays]
    functional = torch.nn.functional
    if op == "layer_norm":
        expected = functional.layer_norm(tensors[0], parameters, *tensors[1:], eps=1e-5)
    elif op == "rms_norm":
        expected = functional.rms_norm(tensors[0], parameters, tensors[1], eps=1e-5)
    else:
        expected = functional.group_norm(tensors[0], 3, *tensors[1:], eps=1e-5)
    for opset in (13, 17, 23):
        assert_same(outcome(op, opset, *arrays, **attributes)[0], expected, f"{opset}", 2e-4)


ATTENTION = [
    ((2, 4, 3, 8), (2, 4, 5, 8), None, {}),
    ((2, 3, 8), (2, 5, 8), (3, 5), {"scale": 0.5}),
    ((2, 4, 3, 8), (2, 2, 5, 8), None, {"is_causal": True}),
    ((1, 2, 2, 3, 8), (1, 2, 2, 3, 8), (2, 1, 3), {}),
]


@pytest.mark.parametrize(("q", "k", "mask", "attributes"), ATTENTION)
def test_attention_written_out_gives_torchs_values(q, k, mask, attributes):
    rng = np.random.default_rng(6)
    arrays = [rng.normal(size=s).astype(np.float32) for s in (q, k, k)]
    tensors = [torch.from_numpy(a) for a in arrays]
    options = {"scale": attributes.get("scale"), "is_causal": attributes.get("is_causal", False)}
    if mask is not None:
        arrays.append(rng.normal(size=mask).astype(np.float32))
        options["attn_mask"] = torch.from_numpy(arrays[3])
    if q[:-2] != k[:-2]:
        options["enable_gqa"] = True
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, **options)
    y, *_ = outcome("attention", 21, *arrays, **attributes)
    assert_same(y, expected, "attention", 1e-4)


REWRITTEN = ("attention", "cumprod", "rotary_embedding", "space_to_depth", "swish")
"""Operators that newer opsets have and older ones must do without."""


@pytest.mark.slow
@pytest.mark.parametrize("op", REWRITTEN)
def test_one_node_and_the_nodes_that_stand_for_it_mean_the_same(op):
    old_lowering, compared = OnnxLowering(18), 0
    for instance, typing, new in lowered(op, 200, 28, "reference "):
        attributes = typing.attributes
        if {t.dtype for t in instance.operands if t is not None} - EXACT_ENOUGH:
            continue
        if old_lowering.unsupported(op, instance.operands, attributes) is not None:
            continue
        if op == "attention" and not _plain(attributes):
            continue
        old = to_onnx(graph_of(op, instance.operands, typing), opset=18)
        rng = np.random.default_rng(7)
        inputs = {f"x{i}": _values(t, rng) for i, t in enumerate(instance.operands) if t}
        expected = onnx.reference.ReferenceEvaluator(new).run(None, inputs)
        found = onnx.reference.ReferenceEvaluator(old).run(None, inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2, err_msg=str(instance))
        compared += 1
    assert compared >= 3


EXACT_ENOUGH = {"float16", "float32", "float64", "int64", "bool"}


def _values(type: TensorType, rng: np.random.Generator) -> np.ndarray:
    if type.dtype == "bool":
        return np.ones(type.shape, bool)
    if type.dtype == "int64":
        return np.asarray(rng.integers(0, 1, type.shape))  # a row that every table has
    return np.asarray(rng.normal(size=type.shape)).astype(numpy_dtype(type.dtype))


def _plain(attributes: dict[str, Any]) -> bool:
    """Whether every query has a key to look at (softmax of nothing is NaN to some, 0 to others),
    and the scores are given after the softmax if at all: before it, the order of scale, cap and
    mask differs between ONNX's versions."""
    windows = {attributes.get(f"{side}_window_size", -1) for side in ("left", "right")}
    return windows == {-1} and not attributes.get("softcap")
