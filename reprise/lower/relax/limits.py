"""What Relax (or TVM behind it) has no form for: a declared table, asked before lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reprise.lower.relax.forms import FORMS
from reprise.lower.relax.forms.linear import LARGEST_DETERMINANT
from reprise.lower.relax.forms.recurrent import ACTIVATIONS
from reprise.uir.graph import Attribute, TensorType

NO_DTYPE = {
    "string": "TVM has no strings",
    "complex64": "TVM has no complex numbers",
    "complex128": "TVM has no complex numbers",
    "float8e4m3fn": "TVM converts it wrongly (0 to 2**-7)",
    "float8e4m3fnuz": "TVM takes it for float8e4m3fn",
    "float8e5m2fnuz": "TVM takes it for float8e5m2",
    "float8e8m0": "TVM's CPU code has no float8e8m0",
    "float4e2m1": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "int4": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "uint4": "TVM packs 4-bit numbers, which arrays of the runtime do not",
    "int2": "TVM has no 2-bit numbers",
    "uint2": "TVM has no 2-bit numbers",
}
"""Element types that no operator takes or gives."""

_DATA_DEPENDENT = "its result's extents are only known at run time"
_RANDOM = "Relax has no random numbers"

NO_OPERATOR = {
    **dict.fromkeys(("if", "loop", "scan"), "sub-graphs are not lowered to Relax"),
    **dict.fromkeys(("constant_of_shape", "range", "compress", "unique"), _DATA_DEPENDENT),
    **dict.fromkeys(("non_zero", "non_max_suppression"), _DATA_DEPENDENT),
    **dict.fromkeys(("random_normal", "random_uniform", "random_normal_like"), _RANDOM),
    **dict.fromkeys(("random_uniform_like", "bernoulli", "multinomial"), _RANDOM),
}
"""Operators that are never lowered."""

AT_RUN_TIME = {
    **dict.fromkeys(("cumsum", "cumprod"), (1,)),
    **dict.fromkeys(("topk", "reshape", "squeeze", "unsqueeze", "expand", "tile"), (1,)),
    **dict.fromkeys(("split", "trilu", "one_hot"), (1,)),
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "l1_norm", "l2_norm"), (1,)),
    **dict.fromkeys(("log_sum", "log_sum_exp", "sum_square", "var", "std"), (1,)),
    **dict.fromkeys(("reduce_any", "reduce_all"), (1,)),
    "slice": (1, 2, 3, 4),
    "pad": (1, 3),
    "resize": (1, 2, 3),
    "dropout": (1, 2),
    "max_unpool": (2,),
}
"""Operands that stand for an attribute: Relax takes it as an attribute only."""


MOST_STEPS = 16
"""Steps of a recurrent layer, in all directions together: an LSTM's take TVM 0.1 s each."""

Special = Callable[[Sequence[TensorType | None], Mapping[str, Attribute]], str | None]


def _training(operands: Sequence[TensorType | None], a: Mapping[str, Attribute]) -> str | None:
    return _RANDOM if a.get("training") and a.get("ratio") != 0.0 else None


def _large_determinant(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    (matrix,) = operands
    extent = matrix.shape[-1] if matrix is not None and matrix.shape else 0
    if isinstance(extent, int) and extent > LARGEST_DETERMINANT:
        return f"Relax has no determinants; written out up to {LARGEST_DETERMINANT} rows"
    return None


def _scalar_scatter(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    data = operands[0]
    return "Relax scatters into one axis or more" if data is not None and not data.rank else None


def _spatial(limit: int, what: str) -> Special:
    def special(operands: Sequence[TensorType | None], a: Mapping[str, Attribute]) -> str | None:
        rank = operands[0].rank if operands[0] is not None else None
        return f"Relax has no {what} over {rank - 2} axes" if rank and rank - 2 > limit else None

    return special


def _unusual_resize(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    if a.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return "cropping to a region is not lowered to Relax"
    if a.get("sizes") is not None and a.get("keep_aspect_ratio_policy") != "stretch":
        return "its result's extents follow from a policy"
    return None


def _unusual_regions(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    if a.get("mode") == "max":
        return "Relax takes the greatest sample, ONNX the greatest weighted corner of one"
    return "no region has a size" if not a.get("spatial_scale") else None


def _unknown_activation(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    names = a.get("activations")
    for name in names if isinstance(names, tuple) else ():
        if str(name).lower() not in ACTIVATIONS:
            return f"no activation is called {name}"
    return None


def _many_samples(operands: Sequence[TensorType | None], a: Mapping[str, Attribute]) -> str | None:
    """Each sample's neighbours are written out: TVM takes a minute for the 16 of a cubic one."""
    rank = operands[0].rank if operands[0] is not None else None
    if a["mode"] == "cubic" or (a["mode"] == "linear" and rank == 5):
        return "grid_sample is written out, for four neighbours at most"
    return None


def _many_steps(operands: Sequence[TensorType | None], a: Mapping[str, Attribute]) -> str | None:
    steps = _extents(operands[0])[0] * _extents(operands[1])[0]
    if steps > MOST_STEPS:
        return f"recurrent layers are unrolled, for {MOST_STEPS} steps at most"
    return None


def _extents(type_: TensorType | None) -> tuple[int, ...]:
    """A shape whose extents are known (``limit`` has seen to that)."""
    shape = type_.shape if type_ is not None and type_.shape is not None else ()
    return tuple(extent for extent in shape if isinstance(extent, int))


def _both(*specials: Special) -> Special:
    """The first reason of several."""

    def special(operands: Sequence[TensorType | None], a: Mapping[str, Attribute]) -> str | None:
        reasons = (one(operands, a) for one in specials)
        return next((reason for reason in reasons if reason is not None), None)

    return special


def _unusual_attention(
    operands: Sequence[TensorType | None], a: Mapping[str, Attribute]
) -> str | None:
    queries = _extents(operands[0])
    if len(queries) == 3 and a.get("q_num_heads") and a.get("kv_num_heads"):
        return "heads that are packed into the features are not lowered to Relax"
    return None


SPECIAL: dict[str, Special] = {
    "attention": _unusual_attention,
    "conv_integer": _spatial(3, "convolution"),
    "qlinear_conv": _spatial(3, "convolution"),
    "resize": _unusual_resize,
    "roi_align": _unusual_regions,
    "grid_sample": _many_samples,
    **dict.fromkeys(("rnn", "gru", "lstm"), _both(_unknown_activation, _many_steps)),
    "dropout": _training,
    "det": _large_determinant,
    "scatter_elements": _scalar_scatter,
}
"""Applications that have no form though others of the operator have."""


def limit(
    op: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Attribute]
) -> str | None:
    """Why this application has no form in Relax, or None if it has one."""
    if op in NO_OPERATOR:
        return NO_OPERATOR[op]
    if op not in FORMS:
        return f"Relax has no form of {op}"
    dtypes = [operand.dtype for operand in operands if operand is not None]
    dtypes += [value for value in attributes.values() if isinstance(value, str)]
    for dtype in dtypes:
        if dtype in NO_DTYPE:
            return NO_DTYPE[dtype]
    for operand in operands:
        if operand is not None and (operand.dtype is None or operand.elements is None):
            return "an operand's type is not known"
    for position in AT_RUN_TIME.get(op, ()):
        if position < len(operands) and operands[position] is not None:
            return f"operand {position} is only known at run time, Relax wants an attribute"
    special = SPECIAL.get(op)
    return None if special is None else special(operands, attributes)
