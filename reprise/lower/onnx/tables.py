"""Every operator's form, and what no ONNX schema says about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reprise.facts.onnx_apply import is_foreign
from reprise.lower.onnx import (
    creation,
    elementwise,
    foreign,
    indexing,
    layers,
    layout,
    quantization,
    reductions,
    sequences,
    windows,
)
from reprise.lower.onnx.call import Call, Form
from reprise.uir.graph import Attribute

FORMS: dict[str, Form] = {
    **elementwise.FORMS,
    **reductions.FORMS,
    **layout.FORMS,
    **indexing.FORMS,
    **creation.FORMS,
    **windows.FORMS,
    **layers.FORMS,
    **sequences.FORMS,
    **quantization.FORMS,
}
"""How each operator is written in ONNX."""


def form_of(op: str) -> Form | None:
    """How an operator is written: one of ONNX's own as it is. None if it is no operator."""
    return foreign.form if is_foreign(op) else FORMS.get(op)


CONTROL = {"if": "If", "loop": "Loop", "scan": "Scan"}
"""Operators that run sub-graphs."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that ONNX cannot say although no schema excludes it: when, and why."""

    holds: Callable[[Call], bool]
    reason: str


def _overhangs(c: Call) -> bool:
    """Whether rounding up counts a window that starts behind the input, which is not one."""
    if not c["ceil_mode"] or c.opset >= 22:
        return False
    spatial = c.rank() - 2
    for i, extent in enumerate(c.shape()[2:]):
        begin, end, stride = c["pads"][i], c["pads"][spatial + i], c["strides"][i]
        span = c["dilations"][i] * (c["kernel"][i] - 1) + 1
        if -(-(extent + begin + end - span) // stride) * stride >= extent + begin:
            return True
    return False


def _mixed_ellipses(c: Call) -> bool:
    """Whether ellipses of one equation stand for different numbers of axes."""
    terms = str(c["equation"]).partition("->")[0].split(",")
    lengths = {
        c.rank(i) - len(term.replace("...", "").strip())
        for i, term in enumerate(terms)
        if "..." in term
    }
    return len(lengths) > 1


def _short_mask(c: Call) -> bool:
    """Whether a mask leaves keys over, which only an operator of its own fills up."""
    if c.get(3) is None or c.takes("Attention"):
        return False
    return c.shape(3)[-1] < c.shape(1)[-2] + (0 if c.get(4) is None else c.shape(4)[-2])


_OVERHANG = Limit(_overhangs, "before opset 22 a window that starts in the padding is counted")
_STASH = Limit(
    lambda c: c["stash_type"] not in (None, 1), "its mean and deviation are in float32: stash_type"
)

_AXES = Limit(lambda c: c["axes"] is None, "how many elements its axes have is not known")

LIMITS: dict[str, tuple[Limit, ...]] = {
    "var": (_AXES,),
    "std": (_AXES,),
    **{f"{pool}_pool{n}d": (_OVERHANG,) for pool in ("max", "avg") for n in (1, 2, 3)},
    "lp_pool": (_OVERHANG,),
    **dict.fromkeys(("rms_norm", "group_norm"), (_STASH,)),
    "einsum": (Limit(_mixed_ellipses, "every ellipsis must stand for as many axes"),),
    "one_hot": (
        Limit(lambda c: c.get(2) is None and c["dtype"] == "string", "its values are strings"),
    ),
    "attention": (
        Limit(
            lambda c: c["q_num_heads"] is not None or c["kv_num_heads"] is not None,
            "heads are an axis of their own, not a number",
        ),
        Limit(
            lambda c: c.opset >= 23 and (c["scale"] or 0) < 0,
            "ONNX takes the square root of the scale",
        ),
        Limit(
            lambda c: (
                c.opset < 23 and (c.get(6) is not None or c["qk_matmul_output_mode"] in (1, 2))
            ),
            "before opset 23 there are no lengths, and scores only raw or as probabilities",
        ),
        Limit(_short_mask, "before opset 23 a mask is as wide as there are keys"),
    ),
}
"""By operator; what ``unsupported`` looks at before the schemas."""

OLD_MEANING: dict[tuple[str, str], Attribute] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
}
"""What an ONNX operator did before it had an attribute, where that is not today's default."""
