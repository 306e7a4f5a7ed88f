# ruff: noqa: E501 (one model a line)
"""Small ONNX models, each with what really happens to it: the ground truth behind the bug rules.

A :class:`Case` names the rules that must match its model, with their certainty, and the symptom
that the target shows. Models are written in ONNX's text form, so that they also go the way that a
model of a user goes: through the importer. `test_onnxruntime.py` runs the first table, `test_tvm.py`
the second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

Arrays = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Case:
    """A model and the truth about it. ``symptom``: None if the target treats the model well.
    ``rules``: what must match (name to certainty); every other rule of the target must not match
    for certain. ``low`` to ``high``: the range of random inputs; ``inputs``: given ones.
    ``constants``: values that ONNX's text form cannot write, infinities."""

    name: str
    body: str
    symptom: str | None = None
    rules: dict[str, str] = field(default_factory=dict)
    opset: int = 17
    low: float = -2.0
    high: float = 2.0
    inputs: dict[str, object] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        head = f'<ir_version: 8, opset_import: ["" : {self.opset}]>'
        model = parser.parse_model(f"{head} g {self.body}")
        for tensor in model.graph.initializer:
            if tensor.name in self.constants:
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
                array = np.full(tuple(tensor.dims), self.constants[tensor.name], dtype)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        return model

    def data(self) -> Arrays:
        """Random inputs, always the same, in the model's order."""
        model = self.model()
        stored = {tensor.name for tensor in model.graph.initializer}
        random = np.random.default_rng(0)
        arrays: Arrays = {}
        for value in model.graph.input:
            if value.name in stored:
                continue
            kind = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            shape = [dim.dim_value or 3 for dim in kind.shape.dim]
            if value.name in self.inputs:
                arrays[value.name] = np.asarray(self.inputs[value.name], dtype).reshape(shape)
            elif dtype == np.bool_:
                arrays[value.name] = random.random(shape) > 0.5
            else:
                low = max(self.low, 0) if dtype.kind == "u" else self.low
                arrays[value.name] = np.asarray(random.uniform(low, self.high, shape)).astype(dtype)
        return arrays


def yes(*rules: str) -> dict[str, str]:
    return dict.fromkeys(rules, "yes")


def possible(*rules: str) -> dict[str, str]:
    return dict.fromkeys(rules, "possible")


def layer_norm(
    shape: str = "[2,3]",
    scale: str = "float[3] s = {1.0,2.0,0.5}",
    *,
    out: str = "[?,?]",
    exponent: str = "float e = {2.0}",
    epsilon: str = "float eps = {1e-05}",
    inputs: str = "",
    axis: int = -1,
    keepdims: int = 1,
    mean: bool = True,
    difference: str = "Sub(x, mu)",
    quotient: str = "Div(d, sd)",
    product: str = "Mul(s, n)",
    square: str = "Pow(d, e)",
    bias: bool = False,
    more: str = "",
    more_out: str = "",
) -> str:
    """A layer (or RMS) normalisation written out, with one thing changed."""
    reduce = f"ReduceMean<axes = [{axis}], keepdims = {keepdims}>"
    nodes = [f"mu = {reduce}(x)", f"d = {difference}"] if mean else ["d = Identity(x)"]
    nodes += [f"q = {square}", f"v = {reduce}(q)", "w = Add(v, eps)", "sd = Sqrt(w)"]
    nodes += [f"n = {quotient}", f"{'z' if bias else 'y'} = {product}"]
    nodes += ["y = Add(z, b)"] if bias else []
    nodes += [more] if more else []
    constants = [c for c in (exponent, epsilon, scale) if "=" in c]
    constants += ["float[3] b = {0.5,0.25,1.0}"] if bias else []
    text = f"(float{shape} x{inputs}) => (float{out} y{more_out}) <{', '.join(constants)}> "
    text += "{ " + " ".join(nodes) + " }"
    if not mean:  # the nodes read x itself
        text = text.replace("d = Identity(x) ", "").replace("(d, ", "(x, ")
    return text


def gemm(
    nodes: str, *, x: str = "[3,4]", w: str = "[4,4]", dtype: str = "float", more: str = ""
) -> str:
    return f"({dtype}{x} x, {dtype}{w} w{more}) => ({dtype}[?,?] y) {{ {nodes} }}"


def relu_clip(nodes: str, dtype: str = "double", *, bounds: str = "lo hi", more: str = "") -> str:
    low, high = ("1", "5") if dtype.startswith("int") else ("-1.0", "1.0")
    values = {"lo": low, "hi": high}
    constants = ", ".join(f"{dtype} {name} = {{{values[name]}}}" for name in bounds.split())
    return f"({dtype}[2,3] x{more}) => ({dtype}[2,3] y) <{constants}> {{ {nodes} }}"


def pad_pool(
    nodes: str = "p = Pad(x, pads) y = MaxPool<kernel_shape = [2,2]>(p)",
    *,
    pads: str = "0,0,1,1,0,0,1,1",
    dtype: str = "float",
    out: str = "",
    more: str = "",
) -> str:
    out = out or f"{dtype}[?,?,?,?] y"
    count = len(pads.split(","))
    return f"({dtype}[1,1,4,4] x) => ({out}) <int64[{count}] pads = {{{pads}}}{more}> {{ {nodes} }}"


def div_mul(
    nodes: str, *, dtype: str = "float", one: str = "", out: str = "", more: str = ""
) -> str:
    one = one or f"{dtype} one = {{{'1' if dtype.startswith('int') else '1.0'}}}"
    out = out or f"{dtype}[4] y"
    return f"({dtype}[4] x, {dtype}[4] a{more}) => ({out}) <{one}> {{ {nodes} }}"


NEGATIVE = {"low": -2.0, "high": -0.5}
INTEGERS = {"x": [6, 5, 4, 3], "a": [2, 3, 1, 5]}

ONNXRUNTIME = [
    # --- GemmTransposeFusion
    Case("identity transpose, square", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm(x, t)"), "wrong_result", yes("ort_32228")),
    Case("identity transpose, not square", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm(x, t)", w="[4,5]"), "crash_at_run", yes("ort_32228")),
    Case("identity transpose of A", gemm("t = Transpose<perm = [0,1]>(x) y = Gemm(t, w)", x="[4,4]"), "wrong_result", yes("ort_32228")),
    Case("identity transpose, transB", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm<transB = 1>(x, t)"), "wrong_result", yes("ort_32228")),
    Case("identity transpose, float64, Identity", gemm("t = Transpose<perm = [0,1]>(w) i = Identity(t) y = Gemm(x, i)", dtype="double"), "wrong_result", yes("ort_32228")),
    Case("identity transpose, opset 7", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm(x, t, b)", more=", float[4] b"), "wrong_result", yes("ort_32228"), opset=7),
    Case("identity transpose of a weight", "(float[3,2] x) => (float[?,?] y) <float[2,2] w = {1.0,2.0,3.0,4.0}> { t = Transpose<perm = [0,1]>(w) y = Gemm(x, t) }", "wrong_result", yes("ort_32228")),
    Case("identity transpose, dynamic batch", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm(x, t)", x="[N,4]"), "wrong_result", yes("ort_32228")),
    Case("real transpose", gemm("t = Transpose<perm = [1,0]>(w) y = Gemm(x, t)")),
    Case("identity transpose of one element", gemm("t = Transpose<perm = [0,1]>(w) y = Gemm(x, t)", x="[3,1]", w="[1,1]")),
    Case("identity transpose read elsewhere", "(float[3,4] x, float[4,4] w) => (float[?,?] y, float[?,?] r) { t = Transpose<perm = [0,1]>(w) y = Gemm(x, t) r = Relu(t) }"),
    Case("identity transpose is an output", "(float[3,4] x, float[4,4] w) => (float[?,?] y, float[?,?] t) { t = Transpose<perm = [0,1]>(w) y = Gemm(x, t) }"),
    Case("identity transpose of C", gemm("t = Transpose<perm = [0,1]>(c) y = Gemm(x, w, t)", x="[4,4]", more=", float[4,4] c")),
    Case("identity transpose, MatMul", gemm("t = Transpose<perm = [0,1]>(w) y = MatMul(x, t)")),
    Case("identity transpose, MatMul, Add", gemm("t = Transpose<perm = [0,1]>(w) m = MatMul(x, t) y = Add(m, b)", more=", float[4] b"), "wrong_result", yes("ort_32228_matmul_add")),
    Case("identity transpose, MatMul, Add of [4,1]", gemm("t = Transpose<perm = [0,1]>(x) m = MatMul(t, w) y = Add(b, m)", x="[4,4]", more=", float[4,1] b"), "wrong_result", yes("ort_32228_matmul_add")),
    Case("identity transpose, MatMul of a batch, Add", "(float[2,3,4] x, float[4,4] w, float[4] b) => (float[?,?,?] y) { t = Transpose<perm = [0,1]>(w) m = MatMul(x, t) y = Add(m, b) }", "wrong_result", yes("ort_32228_matmul_add")),
    Case("identity transpose, MatMul, Add of one", gemm("t = Transpose<perm = [0,1]>(w) m = MatMul(x, t) y = Add(m, b)", more=", float[1] b")),
    Case("identity transpose, MatMul, Add, float64", gemm("t = Transpose<perm = [0,1]>(w) m = MatMul(x, t) y = Add(m, b)", dtype="double", more=", double[4] b")),
    Case("identity transpose, MatMul twice read", "(float[3,4] x, float[4,4] w, float[4] b) => (float[?,?] y, float[?,?] r) { t = Transpose<perm = [0,1]>(w) m = MatMul(x, t) y = Add(m, b) r = Relu(m) }"),
    Case("Gemm, identity transpose", gemm("g = Gemm(x, w) y = Transpose<perm = [0,1]>(g)", x="[4,4]"), "wrong_result", yes("ort_32228_output")),
    Case("Gemm, identity transpose, not square", gemm("g = Gemm(x, w) y = Transpose<perm = [0,1]>(g)"), "wrong_shape", yes("ort_32228_output")),
    Case("Gemm with C, identity transpose", gemm("g = Gemm(x, w, b) y = Transpose<perm = [0,1]>(g)", x="[4,4]", more=", float[4] b")),
    Case("Gemm, real transpose", gemm("g = Gemm(x, w) y = Transpose<perm = [1,0]>(g)", x="[4,4]")),
    # --- FuseReluClip
    Case("relu, clip in float64", relu_clip("r = Relu(x) y = Clip(r, lo, hi)"), "crash_at_load", yes("ort_24158")),
    Case("relu, clip from below", relu_clip("r = Relu(x) y = Clip(r, lo)", bounds="lo"), "crash_at_load", yes("ort_24158")),
    Case("relu, clip in int32", relu_clip("r = Relu(x) y = Clip(r, lo, hi)", "int32"), "crash_at_load", yes("ort_24158")),
    Case("relu, identity, clip", relu_clip("r = Relu(x) i = Identity(r) y = Clip(i, lo)", bounds="lo"), "crash_at_load", yes("ort_24158")),
    Case("relu, clip, bound by a Constant node", "(double[2,3] x) => (double[2,3] y) { lo = Constant<value = double {-1.0}>() r = Relu(x) y = Clip(r, lo) }", "crash_at_load", yes("ort_24158")),
    Case("relu, clip, derived bound", "(double[2,3] x) => (double[2,3] y) <double one = {1.0}> { lo = Neg(one) r = Relu(x) y = Clip(r, lo) }", "crash_at_load", yes("ort_24158_derived")),
    Case("relu, clip in float32", relu_clip("r = Relu(x) y = Clip(r, lo, hi)", "float")),
    Case("clip, relu", relu_clip("c = Clip(x, lo, hi) y = Relu(c)")),
    Case("relu, clip from above", relu_clip("r = Relu(x) y = Clip(r, , hi)", bounds="hi")),
    Case("relu, clip, bound at run time", relu_clip("r = Relu(x) y = Clip(r, lo, hi)", bounds="hi", more=", double lo")),
    Case("relu read twice, clip", "(double[2,3] x) => (double[2,3] y, double[2,3] z) <double lo = {-1.0}> { r = Relu(x) y = Clip(r, lo) z = Sigmoid(r) }"),
    Case("relu an output, clip", "(double[2,3] x) => (double[2,3] y, double[2,3] r) <double lo = {-1.0}> { r = Relu(x) y = Clip(r, lo) }"),
    # --- LayerNormFusion, SimplifiedLayerNormFusion
    Case("layer norm", layer_norm()),
    Case("layer norm, bias", layer_norm(bias=True)),
    Case("RMS norm", layer_norm(mean=False)),
    Case("layer norm, longer scale", layer_norm("[1,1]", "float[2] s = {1.0,2.0}"), "crash_at_run", yes("ort_31980")),
    Case("layer norm, longer scale, rank 3", layer_norm("[2,3,1]", "float[2] s = {1.0,2.0}", out="[?,?,?]"), "crash_at_run", yes("ort_31980")),
    Case("RMS norm, longer scale from outside", layer_norm("[4,1]", "", inputs=", float[3] s", mean=False, product="Mul(n, s)"), "crash_at_run", yes("ort_31980")),
    Case("layer norm, longer scale and bias", layer_norm("[4,1]", bias=True, product="Mul(n, s)"), "crash_at_run", yes("ort_31980")),
    Case("layer norm, longer scale, opset 11", layer_norm("[4,1]"), "crash_at_run", yes("ort_31980"), opset=11),
    Case("layer norm, extent 1, scale 1", layer_norm("[4,1]", "float[1] s = {2.0}")),
    Case("layer norm, longer scale, d * d", layer_norm("[4,1]", square="Mul(d, d)")),
    Case("layer norm, longer scale, an intermediate read twice", layer_norm("[4,1]", more="u = Relu(q)", more_out=", float[?,?] u")),
    Case("layer norm, axis 0", layer_norm("[1,3]", axis=0)),
    Case("RMS norm, exponent 4", layer_norm(mean=False, exponent="float e = {4.0}"), "wrong_result", yes("ort_layer_norm_exponent")),
    Case("layer norm, exponent 4, bias", layer_norm(exponent="float e = {4.0}", bias=True), "wrong_result", yes("ort_layer_norm_exponent", "ort_layer_norm_exponent_bias")),
    Case("RMS norm, a vector of exponents", layer_norm(mean=False, exponent="float[3] e = {2.0,3.0,2.0}"), "wrong_result", yes("ort_layer_norm_exponent"), low=0.5),
    Case("RMS norm, exponent at run time", layer_norm(mean=False, exponent="", inputs=", float e"), "wrong_result", possible("ort_layer_norm_exponent"), low=0.5, inputs={"e": 3.0}),
    Case("layer norm, exponent 4, axis 0", layer_norm("[3,3]", exponent="float e = {4.0}", axis=0)),
    Case("layer norm, exponent 4, no scale", layer_norm(exponent="float e = {4.0}", product="Relu(n)")),
    Case("RMS norm without keepdims", layer_norm("[3,3]", keepdims=0, mean=False), "wrong_result", yes("ort_30513")),
    Case("layer norm without keepdims", layer_norm("[3,3]", keepdims=0), "wrong_result", yes("ort_30513")),
    Case("layer norm of one row without keepdims", layer_norm("[1,3]", keepdims=0)),
    Case("RMS norm, vector of epsilons", layer_norm(mean=False, epsilon="float[3] eps = {0.1,0.5,1.0}"), "wrong_result", yes("ort_layer_norm_epsilon")),
    Case("layer norm, epsilons for rows, bias", layer_norm(epsilon="float[2,1] eps = {0.1,0.5}", bias=True), "wrong_result", yes("ort_layer_norm_epsilon")),
    Case("layer norm, epsilon from outside", layer_norm(epsilon="", inputs=", float eps"), "wrong_result", yes("ort_layer_norm_epsilon"), inputs={"eps": 0.5}),
    Case("layer norm, epsilon of one element", layer_norm(epsilon="float[1] eps = {0.5}")),
    Case("layer norm, vector of epsilons, axis 0", layer_norm("[3,3]", epsilon="float[3] eps = {0.1,0.5,1.0}", axis=0)),
    Case("layer norm of mean - x", layer_norm(difference="Sub(mu, x)", bias=True), "wrong_result", yes("ort_layer_norm_reversed_difference")),
    Case("layer norm of mean - x, no bias", layer_norm(difference="Sub(mu, x)")),
    Case("layer norm, deviation / d", layer_norm(quotient="Div(sd, d)", bias=True), "wrong_result", yes("ort_layer_norm_reversed_quotient")),
    Case("layer norm, deviation / d, no bias", layer_norm(quotient="Div(sd, d)")),
    Case("layer norm of a vector", layer_norm("[3]", out="[?]"), "crash_at_load", yes("ort_31147")),
    Case("RMS norm of a vector", layer_norm("[3]", out="[?]", mean=False), "crash_at_load", yes("ort_31147")),
    Case("layer norm of a vector, scale second", layer_norm("[3]", out="[?]", product="Mul(n, s)")),
    # --- Pad_Fusion
    Case("pad, max pool", pad_pool(), "wrong_result", possible("ort_24737"), **NEGATIVE),
    Case("pad, max pool, opset 11", pad_pool(), "wrong_result", possible("ort_24737"), opset=11, **NEGATIVE),
    Case("pad, max pool, attribute of opset 10", "(float[1,1,4,4] x) => (float[?,?,?,?] y) { p = Pad<pads = [0,0,1,1,0,0,1,1]>(x) y = MaxPool<kernel_shape = [2,2]>(p) }", "wrong_result", possible("ort_24737"), opset=10, **NEGATIVE),
    Case("pad one side, identity, max pool in int8", pad_pool("p = Pad(x, pads) i = Identity(p) y = MaxPool<kernel_shape = [3,3]>(i)", pads="0,0,1,0,0,0,0,0", dtype="int8"), "wrong_result", possible("ort_24737"), low=-9, high=-2),
    Case("pad by 0.0 given, max pool", pad_pool("p = Pad(x, pads, zero) y = MaxPool<kernel_shape = [2,2]>(p)", more=", float zero = {0.0}"), "wrong_result", possible("ort_24737"), **NEGATIVE),
    Case("pad by -1, max pool", pad_pool("p = Pad(x, pads, v) y = MaxPool<kernel_shape = [2,2]>(p)", more=", float v = {-1.0}"), **NEGATIVE),
    Case("pad reflecting, max pool", pad_pool('p = Pad<mode = "reflect">(x, pads) y = MaxPool<kernel_shape = [2,2]>(p)'), **NEGATIVE),
    Case("pad channels, max pool", pad_pool(pads="0,1,1,1,0,0,1,1"), **NEGATIVE),
    Case("pad nothing, max pool", pad_pool(pads="0,0,0,0,0,0,0,0"), **NEGATIVE),
    Case("crop, max pool", pad_pool(pads="0,0,-1,0,0,0,0,0"), **NEGATIVE),
    Case("relu, pad, max pool", pad_pool("r = Relu(x) p = Pad(r, pads) y = MaxPool<kernel_shape = [2,2]>(p)"), **NEGATIVE),
    Case("pad in uint8, max pool", pad_pool(dtype="uint8"), low=1, high=9),
    Case("pad read twice, max pool", pad_pool("p = Pad(x, pads) y = MaxPool<kernel_shape = [2,2]>(p) z = Relu(p)", out="float[?,?,?,?] y, float[?,?,?,?] z"), **NEGATIVE),
    Case("pad, max pool with indices", pad_pool("p = Pad(x, pads) y, i = MaxPool<kernel_shape = [2,2]>(p)", out="float[?,?,?,?] y, int64[?,?,?,?] i"), **NEGATIVE),
    Case("pad, max pool with auto_pad", pad_pool('p = Pad(x, pads) y = MaxPool<kernel_shape = [2,2], auto_pad = "SAME_UPPER">(p)'), **NEGATIVE),
    Case("pad, average pool", pad_pool("p = Pad(x, pads) y = AveragePool<kernel_shape = [2,2]>(p)"), **NEGATIVE),
    Case("pad as wide as the kernel, max pool", pad_pool(pads="0,0,2,2,0,0,2,2"), "crash_at_load", {**yes("ort_pad_max_pool_kernel"), **possible("ort_24737")}),
    Case("pad, padded max pool", pad_pool("p = Pad(x, pads) y = MaxPool<kernel_shape = [2,2], pads = [1,1,1,1]>(p)"), "crash_at_load", {**yes("ort_pad_max_pool_kernel"), **possible("ort_24737")}),
    Case("relu, pad as wide as the kernel, max pool", pad_pool("r = Relu(x) p = Pad(r, pads) y = MaxPool<kernel_shape = [2,2]>(p)", pads="0,0,0,2,0,0,0,0"), "crash_at_load", yes("ort_pad_max_pool_kernel")),
    # --- DivMulFusion
    Case("1 / a * identity", div_mul("b = Identity(x) f = Div(one, a) y = Mul(b, f)"), "crash_at_load", yes("ort_32413")),
    Case("dropout * (1 / a)", div_mul("b = Dropout(x) f = Div(one, a) y = Mul(f, b)", one="float[1] one = {1.0}"), "crash_at_load", yes("ort_32413")),
    Case("1 / a * cast to the same type", div_mul("b = Cast<to = 11>(x) f = Div(one, a) y = Mul(b, f)", dtype="double"), "crash_at_load", yes("ort_32413")),
    Case("1 / a * identity of relu", div_mul("r = Relu(x) b = Identity(r) f = Div(one, a) y = Mul(b, f)"), "crash_at_load", yes("ort_32413")),
    Case("1 / a * relu", div_mul("b = Relu(x) f = Div(one, a) y = Mul(b, f)")),
    Case("1 / a * cast", "(double[4] x, float[4] a) => (float[4] y) <float one = {1.0}> { b = Cast<to = 1>(x) f = Div(one, a) y = Mul(b, f) }"),
    Case("1 / a * (x + 0)", "(float[4] x, float[4] a) => (float[4] y) <float one = {1.0}, float z = {0.0}> { b = Add(x, z) f = Div(one, a) y = Mul(b, f) }"),
    Case("2 / a * identity", div_mul("b = Identity(x) f = Div(one, a) y = Mul(b, f)", one="float one = {2.0}")),
    Case("ones / a * identity", div_mul("b = Identity(x) f = Div(one, a) y = Mul(b, f)", one="float[4] one = {1.0,1.0,1.0,1.0}")),
    Case("1 / a * identity that is an output", div_mul("b = Identity(x) f = Div(one, a) y = Mul(b, f)", out="float[4] y, float[4] b")),
    Case("1 / a * identity, quotient read twice", div_mul("b = Identity(x) f = Div(one, a) y = Mul(b, f) z = Relu(f)", out="float[4] y, float[4] z")),
    Case("1 / a * x in int32", div_mul("f = Div(one, a) y = Mul(x, f)", dtype="int32"), "wrong_result", yes("ort_div_mul_integer"), inputs=INTEGERS),
    Case("1 / a * x in int64", div_mul("f = Div(one, a) y = Mul(f, x)", dtype="int64"), "wrong_result", yes("ort_div_mul_integer"), inputs=INTEGERS),
    Case("1 / a * x in float", div_mul("f = Div(one, a) y = Mul(x, f)")),
    Case("2 / a * x in int32", div_mul("f = Div(one, a) y = Mul(x, f)", dtype="int32", one="int32 one = {2}"), inputs=INTEGERS),
    Case("[[1]] / a * x", div_mul("f = Div(one, a) y = Mul(x, f)", one="float[1,1] one = {1.0}", out="float[?,?] y"), "wrong_shape", yes("ort_div_mul_rank")),
]  # fmt: skip


def resize(
    scales: str = "",
    *,
    sizes: str = "",
    shape: str = "[1,1,4,4]",
    mode: str = "linear",
    coordinates: str = "half_pixel",
    more: str = "",
) -> str:
    attributes = f'coordinate_transformation_mode = "{coordinates}", mode = "{mode}"{more}'
    if sizes:
        constant, operands = f"int64[4] k = {{1,1,{sizes}}}", "x, , , k"
    else:
        constant, operands = f"float[4] k = {{1.0,1.0,{scales}}}", "x, , k"
    return (
        f"(float{shape} x) => (float[?,?,?,?] y) <{constant}> "
        f"{{ y = Resize<{attributes}>({operands}) }}"
    )


def cut(start: int, end: int, step: int = 1) -> str:
    return (
        "(float[2,6] x) => (float[?,?] y) "
        f"<int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{1}}, int64[1] t = {{{step}}}> "
        "{ y = Slice(x, s, e, a, t) }"
    )


def deconvolution(attributes: str, x: str = "[1,1,4,4]", w: str = "[1,1,3,3]") -> str:
    return f"(float{x} x, float{w} w) => (float[?,?,?,?] y) {{ y = ConvTranspose<{attributes}>(x, w) }}"


INFINITIES = {"x": [np.inf, -np.inf, np.nan, 1.0]}

TVM = [
    *(
        Case(f"slice {s}", cut(*s), "crash_at_compile", yes("tvm_17768"))
        for s in ((4, 1), (9, 1), (-2, -4), (4, -5), (-1, 2), (5, 4), (1, 4, -1), (0, 5, -1))
    ),
    *(
        Case(f"slice {s}", cut(*s))
        for s in ((1, 4), (4, 4), (0, 0), (7, 9), (9, 7), (4, 1, -1), (5, 0, -2), (-1, -100, -1), (4, -1))
    ),
    Case("resize 3 by 1.5", resize("1.5,1.5", shape="[1,1,3,3]", mode="nearest"), "wrong_result", yes("tvm_19500")),
    Case("resize 3 by 2.5", resize("2.5,2.5", shape="[1,1,3,3]", mode="nearest"), "wrong_result", yes("tvm_19500")),
    Case("resize 4 by 1.3, linear", resize("1.3,1.3"), "wrong_result", yes("tvm_19500")),
    Case("resize 4 by 0.6, cubic, asymmetric", resize("0.6,0.6", mode="cubic", coordinates="asymmetric"), "wrong_result", yes("tvm_19500")),
    Case("resize 3 by 2", resize("2.0,2.0", shape="[1,1,3,3]", mode="nearest")),
    Case("resize 4 by 1.5", resize("1.5,1.5")),
    Case("resize 3 to 4", resize(sizes="4,4", shape="[1,1,3,3]", mode="nearest")),
    Case("resize antialiased", resize("0.5,0.5", more=", antialias = 1"), "wrong_result", yes("tvm_resize_antialias"), opset=18),
    Case("resize antialiased to sizes, cubic", resize(sizes="3,3", mode="cubic", more=", antialias = 1"), "wrong_result", yes("tvm_resize_antialias"), opset=18),
    Case("resize antialiased, larger", resize("2.0,2.0", more=", antialias = 1"), opset=18),
    Case("resize, corners, to one", resize("0.25,0.25", coordinates="align_corners"), "crash_at_compile", yes("tvm_resize_align_corners")),
    Case("resize, corners", resize(sizes="2,2", coordinates="align_corners")),
    Case("resize, not larger", resize(sizes="7,8", more=', keep_aspect_ratio_policy = "not_larger"'), "wrong_shape", yes("tvm_resize_aspect_ratio"), opset=18),
    Case("resize, stretched", resize(sizes="7,8", more=', keep_aspect_ratio_policy = "stretch"'), opset=18),
    Case("is_inf, positive", "(float[4] x) => (bool[4] y) { y = IsInf<detect_negative = 0>(x) }", "wrong_result", yes("tvm_is_inf"), opset=20, inputs=INFINITIES),
    Case("is_inf, negative", "(double[4] x) => (bool[4] y) { y = IsInf<detect_positive = 0>(x) }", "wrong_result", yes("tvm_is_inf"), opset=20, inputs=INFINITIES),
    Case("is_inf", "(float[4] x) => (bool[4] y) { y = IsInf<detect_negative = 1>(x) }", opset=20, inputs=INFINITIES),
    Case("space to depth", "(float[1,2,4,4] x) => (float[?,?,?,?] y) { y = SpaceToDepth<blocksize = 2>(x) }"),
    Case("deconvolution to a shape", deconvolution("strides = [2,2], output_shape = [10,10]"), "wrong_shape", yes("tvm_conv_transpose_output_shape")),
    Case("deconvolution to a shape, uneven", deconvolution("strides = [3,2], output_shape = [10,8]", "[1,1,3,3]", "[1,2,3,3]"), "wrong_shape", yes("tvm_conv_transpose_output_shape")),
    Case("deconvolution to the shape it has", deconvolution("strides = [2,2], output_shape = [9,9]")),
    Case("deconvolution with pads", deconvolution("strides = [2,2], pads = [0,1,1,0]")),
    Case("deconvolution with auto_pad", deconvolution('strides = [2,2], auto_pad = "SAME_UPPER"')),
    Case("layer norm with mean", "(float[2,3,4] x, float[4] s, float[4] b) => (float[?,?,?] y, float[?,?,?] m) { y, m = LayerNormalization(x, s, b) }", "wrong_shape", yes("tvm_layer_norm_outputs")),
    Case("layer norm", "(float[2,3,4] x, float[4] s, float[4] b) => (float[?,?,?] y) { y = LayerNormalization(x, s, b) }"),
    Case("batch norm, training", "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[?,?,?] y) { y, rm, rv = BatchNormalization<training_mode = 1>(x, s, b, m, v) }", "wrong_result", yes("tvm_batch_norm_training"), low=0.1),
    Case("batch norm", "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[?,?,?] y) { y = BatchNormalization(x, s, b, m, v) }", low=0.1),
    Case("max pool with indices", "(float[1,1,4,4] x) => (float[?,?,?,?] y, int64[?,?,?,?] i) { y, i = MaxPool<kernel_shape = [2,2]>(x) }", "crash_at_compile", yes("tvm_max_pool_indices")),
    Case("max pool", "(float[1,1,4,4] x) => (float[?,?,?,?] y) { y = MaxPool<kernel_shape = [2,2]>(x) }"),
    Case("max of booleans", "(bool[2,3] x) => (bool[?,?] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }", "crash_at_compile", yes("tvm_bool_reduction"), opset=20),
    Case("argmax of zeros in uint8", "(uint8[2,3] x) => (int64[?,?] y) { y = ArgMax<axis = 1>(x) }", "wrong_result", possible("tvm_argmax_of_zeros"), inputs={"x": [0] * 6}),
    Case("argmax in uint8", "(uint8[2,3] x) => (int64[?,?] y) { c = Cast<to = 6>(x) y = ArgMax<axis = 1>(c) }", inputs={"x": [0] * 6}),
    Case("argmax of a masked row", "(float[2,3] x, bool[2,3] c) => (int64[?,?] y) <float k = {-1.0}> { w = Where(c, x, k) y = ArgMax<axis = 1>(w) }", "wrong_result", possible("tvm_max_of_minus_infinity"), inputs={"c": [False] * 6}, constants={"k": -np.inf}),
    Case("argmax of a row masked with a finite number", "(float[2,3] x, bool[2,3] c) => (int64[?,?] y) <float k = {-1.0}> { w = Where(c, x, k) y = ArgMax<axis = 1>(w) }", inputs={"c": [False] * 6}),
]  # fmt: skip
