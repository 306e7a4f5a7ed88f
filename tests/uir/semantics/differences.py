"""Every known difference between the kernels and those they are compared with, and its reason.

An entry says of which applications it holds: ``when(attributes, operands)``. Everything else must
agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

When = Callable[[dict[str, Any], list[Any]], bool]


@dataclass(frozen=True)
class Difference:
    """``loose``: compare all the same, within the tolerance of this type."""

    reason: str
    when: When = lambda a, x: True
    loose: str | None = None


def _ignored_by_the_reference(a: dict[str, Any], x: list[Any]) -> bool:
    lengths = len(x) > 4 and x[4] is not None
    named = "activation_alpha" in a or "activation_beta" in a or "activations" in a
    return lengths or named or a.get("clip", 0) > 0 or bool(a.get("input_forget"))


_OUTSIDE = Difference(
    "a bound outside the type cannot be written there",
    lambda a, x: (
        x[0].dtype.kind in "iu"
        and any(
            not np.iinfo(x[0].dtype).min <= a[name] <= np.iinfo(x[0].dtype).max
            for name in ("min", "max")
            if name in a
        )
    ),
)
_COARSE = Difference(
    "the reference accumulates in the type",
    lambda a, x: x[0].dtype.itemsize == 2 and x[0].size > 64,
)
_RECURRENT = Difference(
    "the reference ignores lengths, clip, input_forget and the activations' parameters",
    _ignored_by_the_reference,
)
_BODY = Difference("the function's body holds constants in single precision", loose="float32")

_INDEX = Difference(
    "where nothing is skipped, the reference's index is that within the window",
    lambda a, x: set(a["strides"]) == set(a["dilations"]) == {1},
)

ONNX: dict[str, list[Difference]] = {
    "*": [
        Difference(
            "attributes are in single precision",
            lambda a, x: any(
                isinstance(v, float) and v != float(np.float32(v)) for v in a.values()
            ),
            loose="float32",
        )
    ],
    "l1_norm": [_COARSE],
    "l2_norm": [_COARSE],
    "sum": [_COARSE],
    "sum_square": [_COARSE],
    "log_sum": [_COARSE],
    "attention": [
        Difference("the reference takes the root of the scale", lambda a, x: a.get("scale", 1) < 0),
        Difference(
            "the reference applies a causal mask to the mask's own, broadcast shape",
            lambda a, x: (
                a["is_causal"]
                and len(x) > 3
                and x[3] is not None
                and (x[3].ndim < 2 or x[3].shape[-2] != x[0].shape[-2])
            ),
        ),
        Difference(
            "the reference caps the raw product too, against the schema's text",
            lambda a, x: a["softcap"] > 0 and a["qk_matmul_output_mode"] == 0,
        ),
    ],
    "clip": [_OUTSIDE],
    **{
        f"conv_transpose{n}d": [
            Difference("the reference mixes up groups", lambda a, x: a["groups"] > 1)
        ]
        for n in (1, 2, 3)
    },
    "resize": [
        Difference(
            "the reference excludes a nearest neighbour outside, and nothing is left",
            lambda a, x: a["mode"] == "nearest" and a["exclude_outside"],
        ),
        Difference("the reference keeps scales in float32", loose="float32"),
    ],
    "conv_integer": [
        Difference(
            "the reference's zero points by channel are for four axes only",
            lambda a, x: x[0].ndim != 4 and len(x) > 3 and x[3] is not None and x[3].ndim > 0,
        )
    ],
    "lp_pool": [
        Difference("the reference scales a mean by the whole window", lambda a, x: a["ceil_mode"])
    ],
    "pad": [Difference("the reference fills strings with 0", lambda a, x: x[0].dtype == object)],
    "unique": [
        Difference(
            "the reference's unsorted elements are taken along axis 0",
            lambda a, x: "axis" in a and not a["sorted"],
        )
    ],
    "erf": [Difference("the reference approximates it to 1e-7", loose="float32")],
    "gelu": [_BODY],
    "hard_swish": [_BODY],
    "group_norm": [
        Difference("the body's variance is E[x²] - E[x]², which cancels", loose="float16")
    ],
    "selu": [_BODY],
    "mean_variance_norm": [
        Difference("the variance is E[x²] - E[x]², which cancels", loose="float16")
    ],
    "global_max_pool": [
        Difference("the reference reduces axes 0 and up", lambda a, x: x[0].ndim != 4)
    ],
    "lp_normalize": [
        Difference("the reference takes no magnitudes", lambda a, x: a["p"] == 1),
    ],
    "lrn": [
        Difference("the reference knows four axes only", lambda a, x: x[0].ndim != 4),
        Difference(
            "the reference loops over the batch instead of the channels",
            lambda a, x: x[0].shape[0] < x[0].shape[1],
        ),
    ],
    "max_pool1d": [_INDEX],
    "max_pool2d": [_INDEX],
    "max_pool3d": [_INDEX],
    "grid_sample": [
        Difference(
            "the reference computes coordinates in the grid's type",
            lambda a, x: x[1].dtype.itemsize == 2,
        ),
        Difference("the reference keeps coordinates in float32", loose="float32"),
    ],
    "rnn": [_RECURRENT],
    "gru": [_RECURRENT],
    "lstm": [_RECURRENT],
    "dequantize_linear": [
        Difference(
            "the reference takes zero points of small floats for 0",
            lambda a, x: len(x) > 2 and x[2] is not None and "float" in str(x[0].dtype),
        )
    ],
    "qlinear_matmul": [
        Difference(
            "a product of vectors takes the shape of its scale",
            lambda a, x: x[0].ndim == x[3].ndim == 1 and x[6].ndim == 1,
        )
    ],
    "qlinear_conv": [
        Difference(
            "the reference's scales by channel are for four axes only",
            lambda a, x: x[0].ndim != 4 and x[4].size > 1,
        )
    ],
    "trilu": [Difference("the reference fills strings with 0", lambda a, x: x[0].dtype == object)],
}
"""From ``onnx.reference``."""


def _slices_backwards_from_outside(a: dict[str, Any], x: list[Any]) -> bool:
    given = zip(a["starts"], a["ends"], a["axes"], a["steps"], strict=True)
    return any(
        step < 0 and (start < -x[0].shape[axis] or end >= 2**31 - 1)
        for start, end, axis, step in given
    )


ORT: dict[str, list[Difference]] = {
    "slice": [
        Difference(
            "backwards from before the beginning: ORT starts at element 0, numpy and the "
            "signature nowhere; the greatest integer means the end of the axis in ORT, the "
            "beginning if backwards",
            _slices_backwards_from_outside,
        )
    ],
    "gelu": [_BODY],
    "hard_swish": [_BODY],
    "group_norm": [_BODY],
    "mean_variance_norm": [
        Difference("the variance is E[x²] - E[x]², which cancels, below 0 even", lambda a, x: True)
    ],
    "quantize_linear": [
        Difference(
            "ORT 1.27 cuts float16 quotients instead of rounding them",
            lambda a, x: x[0].dtype == np.float16,
        )
    ],
}
"""From ONNX Runtime without optimisations."""

TORCH: dict[str, list[Difference]] = {
    "clip": [_OUTSIDE],
    "selu": [Difference("ONNX's alpha is the single-precision number", loose="float32")],
    "lp_normalize": [
        Difference(
            "torch's epsilon of 1e-12 is 0 in float16, and 0 / 0 is NaN",
            lambda a, x: x[0].dtype == np.float16,
        )
    ],
    "batch_norm": [
        Difference(
            "torch folds mean and variance into a factor and a term: inf - inf is NaN",
            lambda a, x: bool((x[4].astype(np.float64) + a["epsilon"] == 0).any()),
        )
    ],
    "conv3d": [
        Difference(
            "torch 2.13 on CPU disagrees with its own float32 for bfloat16 with strides",
            lambda a, x: str(x[0].dtype) == "bfloat16" and set(a["strides"]) != {1},
        )
    ],
}
"""From torch eager."""


def find(
    table: dict[str, list[Difference]], op: str, a: dict[str, Any], x: list[Any]
) -> Difference | None:
    """The difference that holds of this application, if there is one."""
    return next((d for d in (*table.get(op, ()), *table.get("*", ())) if d.when(a, x)), None)
