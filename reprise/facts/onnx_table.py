"""The table that brings ONNX operators to UIR: one entry for each, as data.

An operator that is not here keeps its name and attributes as ``onnx.Foo``. An entry holds for
every opset: where an attribute became an input it names both (``operand=``), where an opset lacks
the attribute it says what that means (``default=``). What renaming cannot express is a step.

To add an operator, add one entry.
"""

from __future__ import annotations

from reprise.facts.onnx_call import Attr, Entry, Kind, Step
from reprise.facts.onnx_steps import (
    axis_after_insertion,
    axis_between,
    axis_if_in_range,
    batch_norm_mode,
    batchless_scan,
    cast_target,
    clip_bounds,
    coerced_softmax,
    concat_axis,
    direction,
    dropout_mode,
    filled_constant,
    group_norm_scale,
    legacy_broadcast,
    padding,
    prelu_slope,
    reduction,
    resizing,
    sampling_mode,
    shape_range,
    slice_bounds,
    split_sizes,
    squeezed_axes,
    transposition,
    unsqueezed_axes,
    variadic,
    windows,
)

_AXIS = Attr("axis", kind=Kind.AXIS)


def _op(name: str, *parts: str | Attr | Step) -> Entry:
    """An entry; a plain string is an attribute that stays as it is."""
    attrs = tuple(Attr(p) if isinstance(p, str) else p for p in parts if isinstance(p, str | Attr))
    steps = tuple(p for p in parts if not isinstance(p, str | Attr))
    return Entry(name, attrs, steps)


def _flag(source: str, name: str = "", *, default: bool | None = None) -> Attr:
    if default is None:
        return Attr(source, name, Kind.FLAG)
    return Attr(source, name, Kind.FLAG, default=default)


def _drop(source: str) -> Attr:
    return Attr(source, kind=Kind.DROP)


def _binary(name: str) -> Entry:
    return _op(name, "broadcast", "axis", legacy_broadcast)


def _reduction(name: str) -> Entry:
    return _op(
        name,
        Attr("axes", kind=Kind.AXES, operand=1),
        _flag("keepdims"),
        _flag("noop_with_empty_axes", default=False),
        reduction,
    )


def _extremum(name: str) -> Entry:
    return _op(name, _AXIS, _flag("keepdims"), _flag("select_last_index", default=False))


_WINDOW = (
    Attr("kernel_shape", "kernel", Kind.INTS),
    Attr("strides", kind=Kind.INTS),
    Attr("pads", kind=Kind.INTS),
    Attr("dilations", kind=Kind.INTS),
    "auto_pad",
)
_CONV = (*_WINDOW, Attr("group", "groups", Kind.INT, default=1))
_POOL = (*_WINDOW, _flag("ceil_mode", default=False))
_DTYPE = Attr("dtype", kind=Kind.DTYPE)
_QUANTISED = (
    Attr("axis", kind=Kind.INT, default=1),
    Attr("block_size", kind=Kind.INT, default=0),
    Attr("output_dtype", kind=Kind.DTYPE),
    axis_if_in_range,
)
_RECURRENT = (
    "hidden_size",
    "direction",
    "activations",
    "activation_alpha",
    "activation_beta",
    "clip",
    Attr("layout", default=0),
    _drop("output_sequence"),
)
_SINGLE_PRECISION = Attr("stash_type", hide=1)

TABLE: dict[str, Entry] = {
    # --- elementwise, one operand
    "Relu": _op("relu"),
    "LeakyRelu": _op("leaky_relu", "alpha"),
    "Elu": _op("elu", "alpha"),
    "Selu": _op("selu", "alpha", "gamma"),
    "Celu": _op("celu", "alpha"),
    "Gelu": _op("gelu", "approximate"),
    "Sigmoid": _op("sigmoid"),
    "HardSigmoid": _op("hard_sigmoid", "alpha", "beta"),
    "HardSwish": _op("hard_swish"),
    "Mish": _op("mish"),
    "Softplus": _op("softplus"),
    "Softsign": _op("softsign"),
    "Swish": _op("swish", "alpha"),
    "ThresholdedRelu": _op("thresholded_relu", "alpha"),
    "PRelu": _op("prelu", prelu_slope),
    "Shrink": _op("shrink", "lambd", "bias"),
    "Sin": _op("sin"),
    "Cos": _op("cos"),
    "Tan": _op("tan"),
    "Asin": _op("asin"),
    "Acos": _op("acos"),
    "Atan": _op("atan"),
    "Sinh": _op("sinh"),
    "Cosh": _op("cosh"),
    "Tanh": _op("tanh"),
    "Asinh": _op("asinh"),
    "Acosh": _op("acosh"),
    "Atanh": _op("atanh"),
    "Exp": _op("exp"),
    "Log": _op("log"),
    "Sqrt": _op("sqrt"),
    "Reciprocal": _op("reciprocal"),
    "Abs": _op("abs"),
    "Neg": _op("neg"),
    "Sign": _op("sign"),
    "Ceil": _op("ceil"),
    "Floor": _op("floor"),
    "Round": _op("round"),
    "Erf": _op("erf"),
    "IsNaN": _op("is_nan"),
    "IsInf": _op("is_inf", _flag("detect_negative"), _flag("detect_positive")),
    "Not": _op("logical_not"),
    "BitwiseNot": _op("bitwise_not"),
    "Identity": _op("identity"),
    "Cast": _op(
        "cast",
        Attr("to", kind=Kind.DTYPE),
        _flag("saturate", default=True),
        Attr("round_mode", hide="up"),
        cast_target,
    ),
    "Clip": _op(
        "clip",
        Attr("min", kind=Kind.NUMBER, operand=1),
        Attr("max", kind=Kind.NUMBER, operand=2),
        clip_bounds,
    ),
    "Dropout": _op(
        "dropout",
        Attr("ratio", kind=Kind.NUMBER, operand=1, default=0.5),
        Attr("training_mode", "training", Kind.FLAG, operand=2, default=False),
        _drop("is_test"),
        "seed",
        dropout_mode,
    ),
    "CumSum": _op(
        "cumsum",
        Attr("axis", kind=Kind.AXIS, operand=1),
        _flag("exclusive"),
        _flag("reverse"),
    ),
    "CumProd": _op(
        "cumprod",
        Attr("axis", kind=Kind.AXIS, operand=1),
        _flag("exclusive"),
        _flag("reverse"),
    ),
    "BitCast": _op("bitcast", Attr("to", kind=Kind.DTYPE), cast_target),
    # --- elementwise, two or more operands
    "Add": _binary("add"),
    "Sub": _binary("sub"),
    "Mul": _binary("mul"),
    "Div": _binary("div"),
    "Pow": _binary("pow"),
    "Mod": _op("mod", _flag("fmod")),
    "Equal": _binary("equal"),
    "Less": _binary("less"),
    "LessOrEqual": _op("less_equal"),
    "Greater": _binary("greater"),
    "GreaterOrEqual": _op("greater_equal"),
    "And": _binary("logical_and"),
    "Or": _binary("logical_or"),
    "Xor": _binary("logical_xor"),
    "BitwiseAnd": _op("bitwise_and"),
    "BitwiseOr": _op("bitwise_or"),
    "BitwiseXor": _op("bitwise_xor"),
    "BitShift": _op("bit_shift", "direction"),
    "Max": _op("maximum", variadic("maximum", "max_n")),
    "Min": _op("minimum", variadic("minimum", "min_n")),
    "Sum": _op("add", variadic("add", "sum_n")),
    "Mean": _op("mean_n", variadic(None, "mean_n")),
    "Where": _op("where"),
    # --- reductions
    "ReduceSum": _reduction("sum"),
    "ReduceMean": _reduction("mean"),
    "ReduceMax": _reduction("max"),
    "ReduceMin": _reduction("min"),
    "ReduceProd": _reduction("prod"),
    "ReduceL1": _reduction("l1_norm"),
    "ReduceL2": _reduction("l2_norm"),
    "ReduceLogSum": _reduction("log_sum"),
    "ReduceLogSumExp": _reduction("log_sum_exp"),
    "ReduceSumSquare": _reduction("sum_square"),
    "ArgMax": _extremum("argmax"),
    "ArgMin": _extremum("argmin"),
    "Softmax": _op("softmax", _AXIS, coerced_softmax),
    "LogSoftmax": _op("log_softmax", _AXIS, coerced_softmax),
    "Hardmax": _op("hardmax", _AXIS, coerced_softmax),
    # --- products
    "MatMul": _op("matmul"),
    "Gemm": _op(
        "gemm",
        "alpha",
        "beta",
        _flag("transA", "trans_a"),
        _flag("transB", "trans_b"),
        _drop("broadcast"),
    ),
    "Einsum": _op("einsum", "equation"),
    "Det": _op("det"),
    # --- convolution and pooling
    "Conv": _op("conv", *_CONV, windows(1)),
    "ConvTranspose": _op(
        "conv_transpose",
        *_CONV,
        Attr("output_padding", kind=Kind.INTS),
        Attr("output_shape", kind=Kind.INTS),
        windows(1, transposed=True),
    ),
    "ConvInteger": _op("conv_integer", *_CONV, windows(1, ranked=False)),
    "QLinearConv": _op("qlinear_conv", *_CONV, windows(3, ranked=False)),
    "MaxPool": _op("max_pool", *_POOL, Attr("storage_order", hide=0), windows(None)),
    "AveragePool": _op(
        "avg_pool", *_POOL, _flag("count_include_pad", default=False), windows(None)
    ),
    "LpPool": _op("lp_pool", *_POOL, "p", windows(None, ranked=False)),
    "MaxUnpool": _op(
        "max_unpool",
        *_WINDOW,
        Attr("output_shape", kind=Kind.INTS, operand=2),
        windows(None, ranked=False),
    ),
    "GlobalAveragePool": _op("global_avg_pool"),
    "GlobalMaxPool": _op("global_max_pool"),
    "GlobalLpPool": _op("global_lp_pool", "p"),
    # --- normalisation layers
    "BatchNormalization": _op(
        "batch_norm",
        "epsilon",
        "momentum",
        _flag("training_mode", "training"),
        _drop("is_test"),
        _drop("spatial"),
        batch_norm_mode,
    ),
    "LayerNormalization": _op("layer_norm", _AXIS, "epsilon", _SINGLE_PRECISION),
    "InstanceNormalization": _op("instance_norm", "epsilon"),
    "GroupNormalization": _op(
        "group_norm",
        Attr("num_groups", "groups", Kind.INT),
        "epsilon",
        _SINGLE_PRECISION,
        group_norm_scale,
    ),
    "RMSNormalization": _op("rms_norm", _AXIS, "epsilon", _SINGLE_PRECISION),
    "LRN": _op("lrn", "alpha", "beta", "bias", "size"),
    "LpNormalization": _op("lp_normalize", _AXIS, "p"),
    "MeanVarianceNormalization": _op("mean_variance_norm", Attr("axes", kind=Kind.AXES)),
    # --- shape and layout
    "Reshape": _op(
        "reshape",
        Attr("shape", kind=Kind.INTS, operand=1),
        _flag("allowzero", default=False),
    ),
    "Flatten": _op("flatten", Attr("axis", kind=Kind.INT), axis_between),
    "Transpose": _op("transpose", Attr("perm", kind=Kind.INTS), transposition),
    "Squeeze": _op("squeeze", Attr("axes", kind=Kind.AXES, operand=1), squeezed_axes),
    "Unsqueeze": _op("unsqueeze", Attr("axes", kind=Kind.INTS, operand=1), unsqueezed_axes),
    "Expand": _op("expand", Attr("shape", kind=Kind.INTS, operand=1)),
    "Tile": _op("tile", Attr("repeats", kind=Kind.INTS, operand=1)),
    "Concat": _op("concat", Attr("axis", kind=Kind.INT), concat_axis),
    "Split": _op(
        "split",
        Attr("split", "sizes", Kind.INTS, operand=1),
        Attr("axis", kind=Kind.AXIS, default=0),
        _drop("num_outputs"),
        split_sizes,
    ),
    "Slice": _op(
        "slice",
        Attr("starts", kind=Kind.INTS, operand=1),
        Attr("ends", kind=Kind.INTS, operand=2),
        Attr("axes", kind=Kind.INTS, operand=3),
        Attr("steps", kind=Kind.INTS, operand=4),
        slice_bounds,
    ),
    "Pad": _op(
        "pad",
        Attr("paddings", "pads", Kind.INTS),
        Attr("pads", kind=Kind.INTS, operand=1),
        Attr("value", kind=Kind.NUMBER),
        Attr("constant_value", "value", Kind.NUMBER, operand=2),
        Attr("axes", kind=Kind.INTS, operand=3),
        "mode",
        padding,
    ),
    "DepthToSpace": _op(
        "depth_to_space", Attr("blocksize", "block", Kind.INT), Attr("mode", default="DCR")
    ),
    "SpaceToDepth": _op(
        "space_to_depth", Attr("blocksize", "block", Kind.INT), Attr("mode", default="DCR")
    ),
    "Shape": _op("shape", Attr("start", default=0), "end", shape_range),
    "Size": _op("size"),
    # --- indexing
    "Gather": _op("gather", _AXIS),
    "GatherElements": _op("gather_elements", _AXIS),
    "GatherND": _op("gather_nd", Attr("batch_dims", default=0)),
    "Scatter": _op("scatter_elements", _AXIS, Attr("reduction", default="none")),
    "ScatterElements": _op("scatter_elements", _AXIS, Attr("reduction", default="none")),
    "ScatterND": _op("scatter_nd", Attr("reduction", default="none")),
    "OneHot": _op("one_hot", Attr("axis", kind=Kind.INT), axis_after_insertion),
    "TopK": _op(
        "topk",
        _AXIS,
        _flag("largest", default=True),
        _flag("sorted", default=True),
        Attr("k", kind=Kind.INT, operand=1),
    ),
    "NonZero": _op("non_zero"),
    "Unique": _op("unique", _AXIS, _flag("sorted")),
    "Trilu": _op("trilu", _flag("upper"), Attr("k", kind=Kind.INT, operand=1, default=0)),
    "NonMaxSuppression": _op("non_max_suppression", "center_point_box"),
    "ReverseSequence": _op("reverse_sequence", "batch_axis", "time_axis"),
    "Compress": _op("compress", _AXIS),
    # --- images
    "Resize": _op(
        "resize",
        "mode",
        "coordinate_transformation_mode",
        "nearest_mode",
        Attr("cubic_coeff_a", default=-0.75),
        _flag("exclude_outside", default=False),
        Attr("extrapolation_value", default=0.0),
        _flag("antialias", default=False),
        Attr("keep_aspect_ratio_policy", default="stretch"),
        Attr("axes", kind=Kind.INTS),
        resizing,
    ),
    "Upsample": _op(
        "resize",
        "mode",
        "scales",
        "height_scale",
        "width_scale",
        Attr("cubic_coeff_a", default=-0.75),
        _flag("exclude_outside", default=False),
        Attr("extrapolation_value", default=0.0),
        _flag("antialias", default=False),
        Attr("keep_aspect_ratio_policy", default="stretch"),
        resizing,
    ),
    "GridSample": _op("grid_sample", "mode", "padding_mode", _flag("align_corners"), sampling_mode),
    "RoiAlign": _op(
        "roi_align",
        Attr("coordinate_transformation_mode", default="output_half_pixel"),
        "mode",
        "output_height",
        "output_width",
        "sampling_ratio",
        "spatial_scale",
    ),
    # --- constants and random numbers
    "ConstantOfShape": _op("constant_of_shape", "value", filled_constant),
    "Range": _op("range", _SINGLE_PRECISION),
    "EyeLike": _op("eye_like", _DTYPE, "k"),
    "RandomNormal": _op("random_normal", _DTYPE, "mean", "scale", "seed", "shape"),
    "RandomNormalLike": _op("random_normal_like", _DTYPE, "mean", "scale", "seed"),
    "RandomUniform": _op("random_uniform", _DTYPE, "low", "high", "seed", "shape"),
    "RandomUniformLike": _op("random_uniform_like", _DTYPE, "low", "high", "seed"),
    "Bernoulli": _op("bernoulli", _DTYPE, "seed"),
    "Multinomial": _op("multinomial", _DTYPE, "sample_size", "seed"),
    # --- quantisation
    "QuantizeLinear": _op(
        "quantize_linear",
        *_QUANTISED,
        _flag("saturate", default=True),
        Attr("precision", kind=Kind.DTYPE),
    ),
    "DequantizeLinear": _op("dequantize_linear", *_QUANTISED),
    "DynamicQuantizeLinear": _op("dynamic_quantize_linear"),
    "QLinearMatMul": _op("qlinear_matmul"),
    "MatMulInteger": _op("matmul_integer"),
    # --- recurrence, attention
    "LSTM": _op("lstm", *_RECURRENT, _flag("input_forget")),
    "GRU": _op("gru", *_RECURRENT, _flag("linear_before_reset", default=False), direction),
    "RNN": _op("rnn", *_RECURRENT),
    "Attention": _op(
        "attention",
        _flag("is_causal"),
        "q_num_heads",
        "kv_num_heads",
        "scale",
        "softcap",
        "qk_matmul_output_mode",
        Attr("softmax_precision", kind=Kind.DTYPE),
        Attr("left_window_size", default=-1),
        Attr("right_window_size", default=-1),
    ),
    "RotaryEmbedding": _op(
        "rotary_embedding", _flag("interleaved"), "num_heads", "rotary_embedding_dim"
    ),
    # --- control flow
    "If": _op("if"),
    "Loop": _op("loop"),
    "Scan": _op(
        "scan",
        "num_scan_inputs",
        "scan_input_axes",
        "scan_input_directions",
        "scan_output_axes",
        "scan_output_directions",
        batchless_scan,
    ),
}
"""Entries for ONNX's own domain, by operator."""
