"""Reading and writing at positions that are data; sizes that only a run tells."""

from __future__ import annotations

import numpy as np

from reprise.lower.onnx.call import Call, Form, Ref, array_of
from reprise.lower.onnx.forms import same
from reprise.uir.types import numpy_dtype


def _embedding(c: Call) -> Ref:
    return c.add("Gather", c.x, c.operand(1))


def _one_hot(c: Call) -> Ref:
    depth, values = c.get(1), c.get(2)
    if depth is None:
        depth = c.int("depth", c["depth"])
    if values is None:
        dtype = c["dtype"]
        pair = np.empty(2, numpy_dtype(dtype))
        pair[0], pair[1] = array_of(c["off_value"], dtype), array_of(c["on_value"], dtype)
        values = c.constant("values", pair, dtype)
    return c.add("OneHot", c.x, depth, values, axis=c["axis"])


FORMS: dict[str, Form] = {
    "gather": same("Gather", "axis"),
    "gather_elements": same("GatherElements", "axis"),
    "gather_nd": same("GatherND", "batch_dims"),
    "embedding": _embedding,
    "scatter_elements": same("ScatterElements", "axis", "reduction"),
    "scatter_nd": same("ScatterND", "reduction"),
    "one_hot": _one_hot,
    "non_zero": same("NonZero"),
    "compress": same("Compress", "axis"),
    "unique": same("Unique", "axis", "sorted", results=4),
    "non_max_suppression": same("NonMaxSuppression", "center_point_box"),
}
"""The form of each of these operators."""
