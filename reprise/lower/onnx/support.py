"""Why ONNX has no such application of an operator: read off the schemas, plus a declared table.

The form of the operator is run on types alone, and every ONNX node that it makes is held against
the definition in force at the opset: the node must exist, have the attributes, take the element
types. What no schema says is in :data:`LIMITS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.facts.onnx_apply import opset_of
from reprise.facts.onnx_text import BadText, check_text
from reprise.facts.onnx_values import DTYPE_OF_CODE
from reprise.lower.onnx.call import Call, OnnxNode, Ref, Text
from reprise.lower.onnx.spec import (
    Formal,
    Spec,
    first_opset,
    knows_word,
    newest_default,
    spec,
)
from reprise.lower.onnx.tables import CONTROL, LIMITS, OLD_MEANING, form_of
from reprise.uir.graph import Attribute, TensorType

_STRING = 3
_FREE_TEXT = frozenset({"delimiter", "equation", "locale", "pattern"})


def unsupported(
    op: str,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Attribute],
    opset: int,
) -> str | None:
    """The reason, or None if the application can be lowered. One of ONNX's own operators raises the
    opset of the model that it is in, if it is younger."""
    if op in CONTROL:
        return None
    opset = opset_of([op], opset)
    form = form_of(op)
    if form is None:
        return f"{op} is no operator that can be written in ONNX"
    if any(type is not None and type.dtype is None for type in operands):
        return "an operand's element type is not known"
    refs = [None if t is None else Ref(str(i), t.dtype or "") for i, t in enumerate(operands)]
    call = Call(op, operands, refs, attributes, opset)
    try:
        for limit in LIMITS.get(op, ()):
            if limit.holds(call):
                return limit.reason
        form(call)
    except (AssertionError, TypeError):  # arithmetic on an extent that is None or a name
        if all(type is None or type.elements is not None for type in operands):
            raise
        return "an operand's extents are not known"
    for node in call.nodes:
        if (reason := _refused(node, opset)) is not None:
            return reason
    return None


def _refused(node: OnnxNode, opset: int) -> str | None:
    """Why the opset has no such node; if it has, its results get their element types."""
    found = spec(node.op, opset)
    if found is None:
        since = first_opset(node.op)
        return f"ONNX has {node.op} from opset {since} on" if since else f"ONNX has no {node.op}"
    return (
        _refused_attribute(node, found, opset)
        or _refused_operand(node, found, opset)
        or _refused_result(node, found, opset)
    )


def _refused_attribute(node: OnnxNode, found: Spec, opset: int) -> str | None:
    for name, value in node.attributes.items():
        if value is None:
            continue
        kind = found.attributes.get(name)
        if isinstance(value, Text) and kind is not None:
            if missing := [i for i, ref in value.outer.items() if ref is None]:
                return f"{node.op} has no operand x{missing[0]}, which its {name} reads"
            try:
                check_text(name, kind, value.text)
            except BadText as error:
                return f"{node.op}: {error}"
        elif kind is None:
            meant = OLD_MEANING.get((node.op, name), newest_default(node.op, name))
            if value != meant:
                return f"{node.op} has {name} from opset {first_opset(node.op, name)} on"
        elif kind == _STRING and not (
            name in _FREE_TEXT or knows_word(node.op, name, value, opset)
        ):
            return f"{node.op} has no {name}={value} at opset {opset}"
    return None


def _refused_operand(node: OnnxNode, found: Spec, opset: int) -> str | None:
    bound: dict[str, str] = {}
    for i, ref in enumerate(node.inputs):
        if ref is None:
            continue
        formal = found.operand(i)
        if formal is None:
            return f"{node.op} has no operand {i + 1} at opset {opset}"
        if not ref.dtype:
            continue
        if ref.dtype not in formal.dtypes:
            return _wrong_type(node.op, i, formal, ref.dtype, opset)
        if found.heterogeneous and i >= len(found.operands) - 1:
            continue
        known = bound.setdefault(formal.variable, ref.dtype)
        if known != ref.dtype:
            return f"{node.op} mixes {known} and {ref.dtype} at opset {opset}"
    _type_results(node, found, bound)
    return None


def _wrong_type(op: str, i: int, formal: Formal, dtype: str, opset: int) -> str:
    since = first_opset(op, "", i, dtype)
    when = f"before opset {since}" if since is not None and since > opset else f"at opset {opset}"
    return f"{op} takes no {dtype} as {formal.name} {when}"


def _type_results(node: OnnxNode, found: Spec, bound: dict[str, str]) -> None:
    """Give each result its element type: an operand's, the only one, or an attribute's."""
    names = ("to", "dtype", "output_dtype")
    named = next((node.attributes[n] for n in names if node.attributes.get(n)), None)
    for i, ref in enumerate(node.outputs):
        formal = found.result(i)
        if formal is None or not formal.dtypes:  # a sequence or an optional has none
            continue
        if formal.variable in bound:
            ref.dtype = bound[formal.variable]
        elif len(formal.dtypes) == 1:
            (ref.dtype,) = formal.dtypes
        elif i == 0 and named is not None:
            ref.dtype = DTYPE_OF_CODE[named]
        elif i == 0 and "value" in node.attributes:
            ref.dtype = DTYPE_OF_CODE[node.attributes["value"].data_type]


def _refused_result(node: OnnxNode, found: Spec, opset: int) -> str | None:
    for i, ref in enumerate(node.outputs):
        formal = found.result(i)
        if formal is None:
            return f"{node.op} has no result {i + 1} at opset {opset}"
        if ref.dtype and ref.dtype not in formal.dtypes:
            return f"{node.op} gives no {ref.dtype} at opset {opset}"
    return None
