"""What torch's CPU kernels lack: element types, by operator (torch 2.13.0).

Measured by running every operator with every element type that its signature allows; a test does so
again. The kernel's name is the one in torch's message: ``"add_stub" not implemented for 'UInt16'``.
"""

from __future__ import annotations

from collections.abc import Iterator

from reprise.lower.torch.call import Call

NO_TYPE = frozenset({"string", "int2", "int4", "uint2", "uint4", "float4e2m1", "float8e8m0"})
"""Element types that torch has not, or cannot compute with."""

WIDE_UNSIGNED = frozenset({"uint16", "uint32", "uint64"})
HALF = frozenset({"float16", "bfloat16"})
COMPLEX = frozenset({"complex64", "complex128"})

_OF_WIDE_UNSIGNED = {
    "abs": "abs_cpu",
    "add": "add_stub",
    "arange": "arange_cpu",
    "argmax": "argmax_cpu",
    "argmin": "argmin_cpu",
    "bit_shift": "lshift_cpu",
    "bitwise_not": "bitwise_not_cpu",
    "bmm": "bmm",
    "clip": "clamp_scalar_cpu",
    "cumprod": "cumprod_out_cpu",
    "cumsum": "cumsum_out_cpu",
    "div": "div_trunc_cpu",
    "einsum": "bmm",
    "eye_like": "eye",
    "flip": "flip_cpu",
    "floor_div": "div_floor_cpu",
    "gather_elements": "scatter_gather_tensor_cpu",
    "gemm": "addmm_impl_cpu_",
    "greater": "gt_cpu",
    "greater_equal": "ge_cpu",
    "l1_norm": "abs_cpu",
    "less": "lt_cpu",
    "less_equal": "le_cpu",
    "masked_fill": "masked_fill",
    "matmul": "addmm_impl_cpu_",
    "max": "max_values_cpu",
    "max_n": "maximum_cpu",
    "maximum": "maximum_cpu",
    "min": "min_values_cpu",
    "min_n": "minimum_cpu",
    "minimum": "minimum_cpu",
    "mod": "remainder_cpu",
    "mul": "mul_cpu",
    "non_zero": "nonzero_count_cpu",
    "pow": "pow",
    "prelu": "ge_cpu",
    "prod": "prod_out_cpu",
    "remainder": "remainder_cpu",
    "reverse_sequence": "scatter_gather_tensor_cpu",
    "scatter_elements": "scatter_gather_tensor_cpu",
    "scatter_nd": "scatter_gather_tensor_cpu",
    "shrink": "lt_cpu",
    "sign": "sign_cpu",
    "square": "pow",
    "sub": "add_stub",
    "sum": "sum_cpu",
    "sum_square": "pow",
    "topk": "topk_cpu",
    "trilu": "triu",
}

_LACKING: dict[str, tuple[frozenset[str], str]] = {
    **{op: (WIDE_UNSIGNED, kernel) for op, kernel in _OF_WIDE_UNSIGNED.items()},
    "det": (HALF, "lu_cpu"),
    "unique": (COMPLEX, "unique"),
}

_AXES = (1, 2, 3)
_NOT_EMPTY = frozenset(
    {f"conv{n}d" for n in _AXES}
    | {f"conv_transpose{n}d" for n in _AXES}
    | {f"{kind}_pool{n}d" for kind in ("avg", "max") for n in _AXES}
    | {f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in _AXES}
    | {"lp_pool", "global_avg_pool", "global_max_pool", "global_lp_pool", "max_unpool"}
    | {"instance_norm", "lrn", "resize", "roi_align", "grid_sample", "conv_integer", "qlinear_conv"}
)
"""Operators over space, which torch (2.13) refuses for various empty tensors, each in its words."""

_DTYPE_ATTRIBUTES = ("dtype", "to", "output_dtype", "precision", "softmax_precision")


def lacking(call: Call) -> str | None:
    """The element type or kernel that torch has not for this application, in words, or None."""
    types, kernel = _LACKING.get(call.op, (frozenset(), ""))
    for name in _element_types(call):
        if name in NO_TYPE:
            return f"torch does not compute with {name}"
        if name in types:
            return f'"{kernel}" not implemented for {name}'
    if call.op in _NOT_EMPTY and any(o is not None and o.elements == 0 for o in call.operands):
        return f"torch has no {call.op} of nothing"
    return None


def _element_types(call: Call) -> Iterator[str]:
    for operand in call.operands:
        if operand is not None and operand.dtype is not None:
            yield operand.dtype
    for name in _DTYPE_ATTRIBUTES:
        if name in call.attributes:
            yield call.attributes[name]
