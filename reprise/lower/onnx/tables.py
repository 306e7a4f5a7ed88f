"""Every operator's form, and what no ONNX schema says about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reprise.lower.onnx import (
    creation,
    elementwise,
    indexing,
    layers,
    layout,
    quantization,
    reductions,
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
    **quantization.FORMS,
}
"""How each operator is written in ONNX."""

CONTROL = {"if": "If", "loop": "Loop", "scan": "Scan"}
"""Operators that run sub-graphs."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that ONNX cannot say although no schema excludes it: when, and why."""

    holds: Callable[[Call], bool]
    reason: str


LIMITS: dict[str, tuple[Limit, ...]] = {}
"""By operator."""

OLD_MEANING: dict[tuple[str, str], Attribute] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
}
"""What an ONNX operator did before it had an attribute, where that is not today's default."""
