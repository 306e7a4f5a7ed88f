"""What programs compute: reference semantics in numpy, one small kernel for each operator.

``evaluate`` runs a program, ``evaluate_all`` keeps every tensor, ``apply`` runs one operator.
Kernels never warn and never raise on special values (NaN, infinities, empty tensors); results are
of exactly the dtype and shape that the operator's signature says. Where a value is
implementation-defined, ``causes`` (and, yes or no, ``fragile``) says so. Where ONNX, torch and TVM
differ, the meaning is ONNX's; ``docs/semantics.md`` lists the differences.
"""

from __future__ import annotations

from reprise.uir.semantics import (  # noqa: F401
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
from reprise.uir.semantics.evaluate import (
    WIDENED,
    apply,
    causes,
    evaluate,
    evaluate_all,
    fragile,
    fragile_nodes,
)
from reprise.uir.semantics.registry import (
    KERNELS,
    RANDOM,
    UNDEFINED,
    Cause,
    SemanticsError,
    UndefinedError,
)

__all__ = [
    "KERNELS",
    "RANDOM",
    "UNDEFINED",
    "WIDENED",
    "Cause",
    "SemanticsError",
    "UndefinedError",
    "apply",
    "causes",
    "evaluate",
    "evaluate_all",
    "fragile",
    "fragile_nodes",
]
