"""How an application of a UIR operator is written in ONNX: the table behind the cross-check of
signatures against ONNX's own shape inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from reprise.facts.onnx_values import CODE_OF_DTYPE, DTYPE_OF_CODE
from reprise.solve.sampling import Instance
from reprise.uir.graph import TensorType
from reprise.uir.inference import Typing
from reprise.uir.types import numpy_dtype


class NotExpressible(Exception):
    """ONNX has the operator, but not this application of it."""


@dataclass
class Form:
    """An ONNX node: an operand is the number of a UIR operand, a constant, or None (absent)."""

    op: str
    inputs: list[int | np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int | None = None


Build = Callable[[Instance, dict[str, Any]], Form]


def ints(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def scalar(value: float, operand: TensorType | None) -> np.ndarray:
    assert operand is not None and operand.dtype is not None
    return np.array(value).astype(numpy_dtype(operand.dtype))


def all_operands(instance: Instance) -> list[Any]:
    return [None if o is None else i for i, o in enumerate(instance.operands)]


def same(op: str, *names: str, **renamed: str) -> Build:
    """All operands in order; the attributes ``names`` as they are, others under another name."""

    def build(instance: Instance, attributes: dict[str, Any]) -> Form:
        kept = {name: attributes[name] for name in names if name in attributes}
        kept |= {new: attributes[old] for old, new in renamed.items() if old in attributes}
        return Form(op, all_operands(instance), kept)

    return build


def with_ints(op: str, *lists: str, attributes: tuple[str, ...] = ()) -> Build:
    """List attributes that ONNX takes as operands."""

    def build(instance: Instance, given: dict[str, Any]) -> Form:
        operands: list[Any] = [0, *(ints(given[name]) for name in lists)]
        return Form(op, operands, {name: given[name] for name in attributes})

    return build


def reduction(op: str) -> Build:
    def build(instance: Instance, given: dict[str, Any]) -> Form:
        (x,) = instance.operands
        assert x is not None
        if given.get("dtype", x.dtype) != x.dtype:
            raise NotExpressible("ONNX has no dtype here")
        noop = not given["axes"]
        attributes = {"keepdims": int(given["keepdims"]), "noop_with_empty_axes": int(noop)}
        return Form(op, [0, ints(given["axes"])], attributes)

    return build


def convolution(op: str) -> Build:
    def build(instance: Instance, given: dict[str, Any]) -> Form:
        names = ("strides", "pads", "dilations", "output_padding")
        attributes = {name: given[name] for name in names if name in given}
        attributes |= {"group": given["groups"], "kernel_shape": given["kernel"]}
        return Form(op, all_operands(instance), attributes)

    return build


def pooling(op: str, *extra: str) -> Build:
    def build(instance: Instance, given: dict[str, Any]) -> Form:
        attributes = {name: given[name] for name in ("strides", "pads", "dilations", *extra)}
        attributes["kernel_shape"] = given["kernel"]
        if "ceil_mode" in given:
            attributes["ceil_mode"] = int(given["ceil_mode"])
        return Form(op, [0], attributes)

    return build


def flags(build: Build) -> Build:
    """Booleans as ONNX writes them: 0 and 1."""

    def with_flags(instance: Instance, given: dict[str, Any]) -> Form:
        form = build(instance, given)
        form.attributes = {
            name: int(value) if isinstance(value, bool) else value
            for name, value in form.attributes.items()
        }
        return form

    return with_flags


def typed(build: Build, name: str = "dtype", onnx_name: str = "dtype") -> Build:
    """A dtype attribute by its number."""

    def with_dtype(instance: Instance, given: dict[str, Any]) -> Form:
        form = build(instance, given)
        if name in given:
            form.attributes[onnx_name] = CODE_OF_DTYPE[given[name]]
        return form

    return with_dtype


def _clip(instance: Instance, given: dict[str, Any]) -> Form:
    bounds = [
        scalar(given[name], instance.operands[0]) if name in given else None
        for name in ("min", "max")
    ]
    return Form("Clip", [0, *bounds])


def _cumulative(op: str) -> Build:
    def build(instance: Instance, given: dict[str, Any]) -> Form:
        (x,) = instance.operands
        if given.get("dtype", x.dtype) != x.dtype:  # type: ignore[union-attr]
            raise NotExpressible("ONNX has no dtype here")
        if not x.shape:  # type: ignore[union-attr]
            raise NotExpressible("ONNX wants an axis; torch does without")
        attributes = {name: int(given[name]) for name in ("exclusive", "reverse")}
        return Form(op, [0, np.array(given["axis"], dtype=np.int64)], attributes)

    return build


def _one_hot(instance: Instance, given: dict[str, Any]) -> Form:
    values: Any = 2
    if len(instance.operands) < 3:
        if given["dtype"] == "string":
            raise NotExpressible("the values are strings")
        values = np.zeros(2).astype(numpy_dtype(given["dtype"]))
    return Form("OneHot", [0, ints(given["depth"]), values], {"axis": given["axis"]})


def _pad(instance: Instance, given: dict[str, Any]) -> Form:
    value = None
    if instance.operands[0].dtype not in ("string",):  # type: ignore[union-attr]
        value = scalar(given["value"], instance.operands[0])
    operands: list[Any] = [0, ints(given["pads"]), value]
    if "axes" in given:
        operands.append(ints(given["axes"]))
    return Form("Pad", operands, {"mode": given["mode"]})


def _resize(instance: Instance, given: dict[str, Any]) -> Form:
    names = ("mode", "coordinate_transformation_mode", "nearest_mode")
    attributes = {name: given[name] for name in names}
    attributes["keep_aspect_ratio_policy"] = given["keep_aspect_ratio_policy"]
    scales = np.array(given["scales"], dtype=np.float32) if "scales" in given else None
    sizes = ints(given["sizes"]) if "sizes" in given else None
    if sizes is None:
        del attributes["keep_aspect_ratio_policy"]
    roi = None
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        raise NotExpressible("needs a region of interest")
    return Form("Resize", [0, roi, scales, sizes], attributes)


def _constant_of_shape(instance: Instance, given: dict[str, Any]) -> Form:
    value = np.array([given["value"]]).astype(numpy_dtype(given["dtype"]))
    return Form("ConstantOfShape", [0], {"value": numpy_helper.from_array(value)})


def _full(instance: Instance, given: dict[str, Any]) -> Form:
    value = np.array([given["value"]]).astype(numpy_dtype(given["dtype"]))
    operand = ints(given["shape"])
    return Form("ConstantOfShape", [operand], {"value": numpy_helper.from_array(value)})


def _split(instance: Instance, given: dict[str, Any]) -> Form:
    sizes = given["sizes"]
    return Form("Split", [0, ints(sizes)], {"axis": given["axis"]}, outputs=len(sizes))


def _arange(instance: Instance, given: dict[str, Any]) -> Form:
    dtype = numpy_dtype(given["dtype"])
    bounds = [np.array(given[name]) for name in ("start", "end", "step")]
    if given["dtype"] not in ("float32", "float64", "int16", "int32", "int64"):
        raise NotExpressible("Range has fewer types")
    if "int" in given["dtype"] and any(float(b) != int(b) for b in bounds):
        raise NotExpressible("a fraction of an integer")
    return Form("Range", [b.astype(dtype) for b in bounds])


def _dropout(instance: Instance, given: dict[str, Any]) -> Form:
    ratio = np.array(given["ratio"], dtype=np.float32)
    return Form("Dropout", [0, ratio, np.array(given["training"])])


def _slice(instance: Instance, given: dict[str, Any]) -> Form:
    return Form("Slice", [0, *(ints(given[n]) for n in ("starts", "ends", "axes", "steps"))])


def _batch_norm(instance: Instance, given: dict[str, Any]) -> Form:
    training = given["training"]
    attributes = {"epsilon": given["epsilon"], "momentum": given["momentum"]}
    attributes["training_mode"] = int(training)
    return Form("BatchNormalization", [0, 1, 2, 3, 4], attributes, outputs=3 if training else 1)


def _layer_norm(instance: Instance, given: dict[str, Any]) -> Form:
    if len(instance.operands) < 2:
        raise NotExpressible("the scale is not optional")
    attributes = {"axis": given["axis"], "epsilon": given["epsilon"]}
    return Form("LayerNormalization", all_operands(instance), attributes, 3)


def _mean_variance_norm(instance: Instance, given: dict[str, Any]) -> Form:
    if instance.operands[0].dtype != "float32":  # type: ignore[union-attr]
        raise NotExpressible("its function body adds a float32 constant")
    return Form("MeanVarianceNormalization", [0], {"axes": given["axes"]})


def _attention(instance: Instance, given: dict[str, Any]) -> Form:
    if instance.operands[0].rank != 4 and "q_num_heads" not in given:  # type: ignore[union-attr]
        raise NotExpressible("four axes, or three and a number of heads")
    names = ("is_causal", "scale", "softcap", "q_num_heads", "kv_num_heads")
    form = flags(same("Attention", *names))(instance, given)
    form.outputs = 4 if len(instance.operands) > 5 and instance.operands[4] else 1
    return form


def _with_shape(build: Build) -> Build:
    def with_shape(instance: Instance, given: dict[str, Any]) -> Form:
        if not given["shape"]:
            raise NotExpressible("an attribute that is an empty list")
        return build(instance, given)

    return with_shape


def _einsum(instance: Instance, given: dict[str, Any]) -> Form:
    if "..." in given["equation"] and len({o.rank for o in instance.operands if o}) > 1:
        raise NotExpressible("every ellipsis stands for as many axes")
    return Form("Einsum", all_operands(instance), given)


def _recurrent(op: str, *names: str) -> Build:
    return flags(same(op, "hidden_size", "direction", "layout", "clip", *names))


def _simple_elementwise() -> dict[str, Build]:
    names = {
        "relu": "Relu", "sigmoid": "Sigmoid", "hard_swish": "HardSwish", "mish": "Mish",
        "softplus": "Softplus", "softsign": "Softsign", "tanh": "Tanh", "exp": "Exp", "log": "Log",
        "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
        "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
        "atanh": "Atanh", "ceil": "Ceil", "floor": "Floor", "round": "Round",
        "reciprocal": "Reciprocal", "abs": "Abs", "neg": "Neg", "sign": "Sign", "erf": "Erf",
        "is_nan": "IsNaN", "logical_not": "Not", "bitwise_not": "BitwiseNot",
        "identity": "Identity", "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div",
        "pow": "Pow", "max_n": "Max", "min_n": "Min", "sum_n": "Sum", "mean_n": "Mean",
        "maximum": "Max", "minimum": "Min", "equal": "Equal", "less": "Less",
        "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
        "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
        "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
        "where": "Where", "prelu": "PRelu", "matmul": "MatMul", "det": "Det",
        "global_avg_pool": "GlobalAveragePool", "global_max_pool": "GlobalMaxPool",
        "size": "Size", "non_zero": "NonZero", "range": "Range",
        "dynamic_quantize_linear": "DynamicQuantizeLinear",
        "qlinear_matmul": "QLinearMatMul", "matmul_integer": "MatMulInteger",
    }  # fmt: skip
    return {ours: same(theirs) for ours, theirs in names.items()}


FORMS: dict[str, Build] = {
    **_simple_elementwise(),
    "leaky_relu": same("LeakyRelu", "alpha"),
    "thresholded_relu": same("ThresholdedRelu", "alpha"),
    "elu": same("Elu", "alpha"),
    "selu": same("Selu", "alpha", "gamma"),
    "celu": same("Celu", "alpha"),
    "gelu": same("Gelu", "approximate"),
    "hard_sigmoid": same("HardSigmoid", "alpha", "beta"),
    "swish": same("Swish", "alpha"),
    "shrink": same("Shrink", "lambd", "bias"),
    "is_inf": flags(same("IsInf", "detect_negative", "detect_positive")),
    "mod": flags(same("Mod", "fmod")),
    "bit_shift": lambda i, a: Form("BitShift", [0, 1], {"direction": a["direction"]}),
    "clip": _clip,
    "sum": reduction("ReduceSum"),
    "mean": reduction("ReduceMean"),
    "prod": reduction("ReduceProd"),
    "max": reduction("ReduceMax"),
    "min": reduction("ReduceMin"),
    "l1_norm": reduction("ReduceL1"),
    "l2_norm": reduction("ReduceL2"),
    "log_sum": reduction("ReduceLogSum"),
    "log_sum_exp": reduction("ReduceLogSumExp"),
    "sum_square": reduction("ReduceSumSquare"),
    "argmax": flags(same("ArgMax", "axis", "keepdims", "select_last_index")),
    "argmin": flags(same("ArgMin", "axis", "keepdims", "select_last_index")),
    "softmax": same("Softmax", "axis"),
    "log_softmax": same("LogSoftmax", "axis"),
    "hardmax": same("Hardmax", "axis"),
    "cumsum": _cumulative("CumSum"),
    "cumprod": _cumulative("CumProd"),
    "topk": lambda i, a: Form(
        "TopK",
        [0, ints([a["k"]])],
        {"axis": a["axis"], "largest": int(a["largest"]), "sorted": int(a["sorted"])},
        2,
    ),
    "gemm": flags(same("Gemm", "alpha", "beta", trans_a="transA", trans_b="transB")),
    "einsum": _einsum,
    **{f"conv{n}d": convolution("Conv") for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": convolution("ConvTranspose") for n in (1, 2, 3)},
    **{f"max_pool{n}d": pooling("MaxPool") for n in (1, 2, 3)},
    **{f"avg_pool{n}d": flags(pooling("AveragePool", "count_include_pad")) for n in (1, 2, 3)},
    "lp_pool": pooling("LpPool", "p"),
    "global_lp_pool": same("GlobalLpPool", "p"),
    "max_unpool": lambda i, a: Form(
        "MaxUnpool",
        [0, 1, ints(a["output_shape"]) if "output_shape" in a else None],
        {"kernel_shape": a["kernel"], "strides": a["strides"], "pads": a["pads"]},
    ),
    "conv_integer": convolution("ConvInteger"),
    "qlinear_conv": convolution("QLinearConv"),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "rms_norm": same("RMSNormalization", "axis", "epsilon"),
    "instance_norm": same("InstanceNormalization", "epsilon"),
    "group_norm": same("GroupNormalization", "epsilon", groups="num_groups"),
    "mean_variance_norm": _mean_variance_norm,
    "lrn": same("LRN", "size", "alpha", "beta", "bias"),
    "lp_normalize": same("LpNormalization", "axis", "p"),
    "reshape": lambda i, a: Form(
        "Reshape", [0, ints(a["shape"])], {"allowzero": int(a["allowzero"])}
    ),
    "flatten": same("Flatten", "axis"),
    "squeeze": with_ints("Squeeze", "axes"),
    "unsqueeze": with_ints("Unsqueeze", "axes"),
    "transpose": lambda i, a: Form("Transpose", [0], {"perm": a["perm"]} if a["perm"] else {}),
    "depth_to_space": same("DepthToSpace", "mode", block="blocksize"),
    "space_to_depth": same("SpaceToDepth", block="blocksize"),
    "reverse_sequence": same("ReverseSequence", "batch_axis", "time_axis"),
    "expand": with_ints("Expand", "shape"),
    "tile": with_ints("Tile", "repeats"),
    "concat": same("Concat", "axis"),
    "split": _split,
    "slice": _slice,
    "pad": _pad,
    "trilu": lambda i, a: Form("Trilu", [0, ints(a["k"])], {"upper": int(a["upper"])}),
    "resize": _resize,
    "grid_sample": flags(same("GridSample", "mode", "padding_mode", "align_corners")),
    "roi_align": same(
        "RoiAlign",
        "coordinate_transformation_mode",
        "mode",
        "output_height",
        "output_width",
        "sampling_ratio",
        "spatial_scale",
    ),
    "gather": same("Gather", "axis"),
    "gather_elements": same("GatherElements", "axis"),
    "gather_nd": same("GatherND", "batch_dims"),
    "scatter_elements": same("ScatterElements", "axis", "reduction"),
    "scatter_nd": same("ScatterND", "reduction"),
    "one_hot": _one_hot,
    "compress": same("Compress", "axis"),
    "unique": lambda i, a: Form(
        "Unique", [0], {k: int(v) for k, v in a.items() if k in ("axis", "sorted")}, 4
    ),
    "non_max_suppression": same("NonMaxSuppression", "center_point_box"),
    "full": _full,
    "constant_of_shape": _constant_of_shape,
    "arange": _arange,
    "eye_like": typed(same("EyeLike", "k")),
    "shape": same("Shape", "start", "end"),
    "random_normal": typed(_with_shape(same("RandomNormal", "shape", "mean", "scale"))),
    "random_uniform": typed(_with_shape(same("RandomUniform", "shape", "low", "high"))),
    "random_normal_like": typed(same("RandomNormalLike", "mean", "scale")),
    "random_uniform_like": typed(same("RandomUniformLike", "low", "high")),
    "bernoulli": typed(same("Bernoulli")),
    "multinomial": typed(same("Multinomial", "sample_size")),
    "dropout": _dropout,
    "cast": typed(same("Cast"), "to", "to"),
    "bitcast": typed(same("BitCast"), "to", "to"),
    "quantize_linear": typed(
        flags(same("QuantizeLinear", "axis", "block_size", "saturate")),
        "output_dtype",
        "output_dtype",
    ),
    "dequantize_linear": typed(
        same("DequantizeLinear", "axis", "block_size"), "output_dtype", "output_dtype"
    ),
    "rnn": _recurrent("RNN"),
    "gru": _recurrent("GRU", "linear_before_reset"),
    "lstm": _recurrent("LSTM", "input_forget"),
    "attention": _attention,
    "rotary_embedding": flags(
        same("RotaryEmbedding", "interleaved", "num_heads", "rotary_embedding_dim")
    ),
}


def model(form: Form, operands: tuple[TensorType | None, ...], results: int) -> onnx.ModelProto:
    """A model of one node, whose constants are initializers and whose results have no type."""
    names, values, initializers = [], [], []
    for i, operand in enumerate(form.inputs):
        name = f"i{i}"
        if operand is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(operand, int):
            type_ = operands[operand]
            assert type_ is not None
            values.append(
                helper.make_tensor_value_info(name, CODE_OF_DTYPE[type_.dtype or ""], type_.shape)
            )
        else:
            initializers.append(numpy_helper.from_array(operand, name))
    count = form.outputs or results
    outputs = [f"o{i}" for i in range(count)]
    node = helper.make_node(form.op, names, outputs, **form.attributes)
    graph = helper.make_graph(
        [node],
        "g",
        values,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        initializers,
    )
    opset = helper.make_opsetid("", onnx.defs.onnx_opset_version())
    return helper.make_model(graph, opset_imports=[opset])


def infer(form: Form, operands: tuple[TensorType | None, ...], results: int) -> list[TensorType]:
    """What ONNX's strict inference says of the node. Raises if it refuses it."""
    inferred = onnx.shape_inference.infer_shapes(
        model(form, operands, results), check_type=True, strict_mode=True, data_prop=True
    )
    return [_type_of(value) for value in inferred.graph.output]


def _type_of(value: onnx.ValueInfoProto) -> TensorType:
    tensor = value.type.tensor_type
    if tensor.elem_type == TensorProto.UNDEFINED:
        return TensorType(None, None)
    dtype = DTYPE_OF_CODE.get(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TensorType(dtype, None)
    shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    return TensorType(dtype, shape)


def apply(build: Build, instance: Instance, typing: Typing) -> list[TensorType]:
    form = build(instance, dict(typing.attributes))
    return infer(form, instance.operands, len(typing.outputs))
