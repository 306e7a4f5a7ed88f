"""What ONNX's reference evaluator computes for an application of a UIR operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from reprise.solve.sampling import Instance
from reprise.uir.inference import Typing
from tests.solve import onnx_forms
from tests.solve.onnx_forms import Form, NotExpressible

Array = np.ndarray[Any, Any]


def _one_hot(instance: Instance, given: dict[str, Any]) -> Form:
    """The form for shapes leaves the values out."""
    form = onnx_forms.FORMS["one_hot"](instance, given)
    if not isinstance(form.inputs[2], int):
        values = [given["off_value"], given["on_value"]]
        form.inputs[2] = np.array(values).astype(form.inputs[2].dtype)  # type: ignore[union-attr]
    return form


def _resize(instance: Instance, given: dict[str, Any]) -> Form:
    """The form for shapes leaves out what decides values only."""
    roi = np.array(given["roi"], np.float32) if "roi" in given else None
    shape = {**given, "coordinate_transformation_mode": "half_pixel"}
    form = onnx_forms.FORMS["resize"](instance, shape)
    form.inputs[1] = roi
    mode = given["coordinate_transformation_mode"]
    if mode == "tf_half_pixel_for_nn":
        raise NotExpressible("no longer a mode")
    form.attributes["coordinate_transformation_mode"] = mode
    names = ("cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias")
    for name in names:
        form.attributes[name] = given[name]
    form.attributes["exclude_outside"] = int(given["exclude_outside"])
    form.attributes["antialias"] = int(given["antialias"])
    return form


def _attention(instance: Instance, given: dict[str, Any]) -> Form:
    form = onnx_forms.FORMS["attention"](instance, given)
    names = ("left_window_size", "right_window_size", "qk_matmul_output_mode")
    form.attributes |= {name: given[name] for name in names}
    form.outputs = 4
    return form


FORMS = {
    **onnx_forms.FORMS,
    "attention": _attention,
    "one_hot": _one_hot,
    "resize": _resize,
    "space_to_depth": onnx_forms.same("SpaceToDepth", "mode", block="blocksize"),
}


def apply(op: str, operands: list[Any], instance: Instance, typing: Typing) -> list[Array]:
    """The results. Raises NotExpressible, or whatever the evaluator raises."""
    form = FORMS[op](instance, dict(typing.attributes))
    model = onnx_forms.model(form, instance.operands, len(typing.outputs))
    evaluator = ReferenceEvaluator(model)
    feeds = {f"i{i}": operands[o] for i, o in enumerate(form.inputs) if isinstance(o, int)}
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in evaluator.run(None, feeds)]


__all__ = ["FORMS", "NotExpressible", "apply"]
