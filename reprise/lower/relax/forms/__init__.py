"""How each operator is written in Relax: one table a family of operators."""

from __future__ import annotations

from reprise.lower.relax.application import Form
from reprise.lower.relax.forms import (
    activation,
    attention,
    axis,
    binary,
    convolution,
    creation,
    elementwise,
    indexing,
    layout,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resampling,
)

_FAMILIES = (
    activation,
    attention,
    axis,
    binary,
    convolution,
    creation,
    elementwise,
    indexing,
    layout,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resampling,
)

FORMS: dict[str, Form] = {op: form for family in _FAMILIES for op, form in family.FORMS.items()}
