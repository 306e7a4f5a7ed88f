"""What is lowered to one ONNX node comes back from the importer as it was."""

from __future__ import annotations

import numpy as np
import pytest

from reprise.lower.onnx.spec import NEWEST
from reprise.lower.onnx.tables import FORMS
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.types import numpy_dtype
from tests.lower.onnx_models import imported, lowered, signatures
from tests.solve.crosscheck import agree

ALIASES = {
    "adaptive_avg_pool1d": {"avg_pool1d", "global_avg_pool"},
    "adaptive_avg_pool2d": {"avg_pool2d", "global_avg_pool"},
    "adaptive_avg_pool3d": {"avg_pool3d", "global_avg_pool"},
    "adaptive_max_pool1d": {"max_pool1d", "global_max_pool"},
    "adaptive_max_pool2d": {"max_pool2d", "global_max_pool"},
    "adaptive_max_pool3d": {"max_pool3d", "global_max_pool"},
    "arange": {"range"},
    "argsort": {"topk"},
    "bmm": {"matmul"},
    "chunk": {"split"},
    "cumprod": {"identity"},
    "embedding": {"gather"},
    "exp2": {"pow"},
    "flip": {"slice"},
    "floor_div": {"div"},
    "full": {"constant_of_shape"},
    "hard_tanh": {"clip"},
    "l1_norm": {"abs"},
    "l2_norm": {"abs"},
    "linear": {"gemm"},
    "log_sum": {"log"},
    "log_sum_exp": {"identity"},
    "masked_fill": {"where"},
    "max": {"identity"},
    "max_n": {"maximum"},
    "mean": {"identity"},
    "mean_variance_norm": {"mul"},
    "min": {"identity"},
    "min_n": {"minimum"},
    "narrow": {"slice"},
    "prod": {"identity"},
    "random_normal": {"random_normal_like"},
    "random_uniform": {"random_uniform_like"},
    "reduce_all": {"min", "identity"},
    "reduce_any": {"max", "identity"},
    "relu6": {"clip"},
    "remainder": {"mod"},
    "roll": {"identity"},
    "select": {"gather"},
    "slice": {"identity"},
    "sort": {"topk"},
    "square": {"mul"},
    "squeeze": {"identity"},
    "sum": {"identity"},
    "sum_n": {"add"},
    "sum_square": {"mul"},
    "unsqueeze": {"identity"},
}
"""Operators that share their ONNX operator with another one of ours, which the importer prefers."""

SILENT = {
    "cast": {"saturate"},  # says something about 8-bit floats only
    "cumprod": {"dtype"},  # the operand's own
    "cumsum": {"dtype"},
    "conv_transpose1d": {"output_shape"},  # follows from the pads, which are given
    "conv_transpose2d": {"output_shape"},
    "conv_transpose3d": {"output_shape"},
    "group_norm": {"stash_type"},  # the default
    "layer_norm": {"stash_type"},
    "one_hot": {"depth", "on_value", "off_value", "dtype"},  # operands to the importer
    "pad": {"pad"},  # short for the pads
    "quantize_linear": {"saturate"},
    "resize": {"roi", "keep_aspect_ratio_policy"},  # without a crop; without sizes
    "rms_norm": {"stash_type"},
    "rnn": {"activations"},  # the default
    **{
        reduction: {"dtype", "noop_with_empty_axes"}  # the operand's own; only without axes
        for reduction in (
            "sum", "mean", "prod", "max", "min", "l1_norm", "l2_norm", "log_sum", "log_sum_exp",
            "sum_square",
        )
    },
}  # fmt: skip
"""Attributes that say nothing in these applications, so that the model does not have them."""


def alike(ours: Attribute | None, theirs: Attribute | None, dtype: str) -> bool:
    """Equal in float32, or as elements of ``dtype``."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(alike(a, b, dtype) for a, b in pairs)
    if isinstance(ours, float) and isinstance(theirs, bool | int | float):
        if np.float32(ours) == np.float32(theirs):
            return True
        wanted = numpy_dtype(dtype)
        if wanted.kind not in "iub":
            return False
        held = np.array(int(ours)).astype(wanted) if wanted.kind != "b" else np.array(ours != 0)
        return float(held) == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


def _numeric(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Truth values as numbers where the signature has a number: a bool tensor's fill value."""
    value = attributes.get("value")
    return {**attributes, "value": float(value)} if isinstance(value, bool) else attributes


def in_range(op: str, attributes: dict[str, Attribute], operands: list[TensorType | None]):
    """Attributes as the importer writes them: axes from the front, bounds within the rank."""
    found, first = dict(attributes), operands[0] if operands else None
    rank = None if first is None else first.rank
    if op == "shape" and rank is not None:
        for name in ("start", "end"):
            axis = int(found[name])
            found[name] = min(max(axis + rank if axis < 0 else axis, 0), rank)
    if op == "pad" and "axes" in found and rank is not None:
        axes, pads = found.pop("axes"), found["pads"]
        found.pop("axis", None)
        every = [0] * (2 * rank)
        for i, axis in enumerate(axes):
            every[axis], every[rank + axis] = pads[i], pads[i + len(axes)]
        found["pads"] = tuple(every)
    if op in ("quantize_linear", "dequantize_linear") and rank and -rank <= int(found["axis"]) < 0:
        found["axis"] = int(found["axis"]) + rank
    return found


def element_type(op: str, attributes: dict[str, Attribute], operands: list[TensorType | None]):
    """The type in which the operator's numbers are held."""
    named = attributes.get("dtype")
    if op == "constant_of_shape" and isinstance(named, str):
        return named
    first = next((o for o in operands if o is not None), None)
    return "float32" if first is None or first.dtype is None else first.dtype


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(FORMS))
def test_a_single_node_is_imported_as_the_operator_it_was(op):
    for instance, typing, model in lowered(op, 25, NEWEST, "imported "):
        if len(model.graph.node) != 1:
            continue
        operands = list(instance.operands)
        if op == "pad" and element_type(op, {}, operands).startswith(("complex", "string")):
            continue  # its fill value is no number
        (node,) = imported(model).nodes
        if node.op != op:
            assert node.op in ALIASES[op]
            continue
        for tensor, type in zip(node.outputs, typing.outputs, strict=True):
            assert tensor is not None
            assert agree(type, tensor.type)
        types = [None if t is None else t.type for t in node.inputs]
        theirs = dict(signatures().check(op, types, _numeric(node.attributes)).attributes)
        ours = in_range(op, typing.attributes, operands)
        dtype = element_type(op, typing.attributes, operands)
        names = (ours.keys() | theirs.keys()) - SILENT.get(op, set())
        if op == "clip" and numpy_dtype(dtype).kind in "iu":
            continue  # its bounds are brought into the range of the type
        different = {
            name: (ours.get(name), theirs.get(name))
            for name in names
            if not alike(ours.get(name), theirs.get(name), dtype)
        }
        assert not different, instance
