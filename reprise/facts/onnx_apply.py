"""One application of an ONNX operator: how it is written, and what ONNX says of its results.

Comes in: an operator by the name that it has where no UIR operator means the same (``onnx.Col2Im``,
``ai.onnx.ml.Binarizer``), operand types and attributes. An attribute that has the name of an
operand *is* that operand, known before the program runs: ``shape=[2, 3]`` of ``onnx.CenterCropPad``
is written as a stored tensor. ``onnx.SplitToSequence_SequenceAt`` is a *chain*: two nodes, of which
the second reads as its first operand what the first makes; so what is no tensor stays inside. An
attribute that is a graph or a tensor is text (``onnx_text``). Goes out: a model of that node or
chain, and :class:`OnnxResults`, which asks ONNX's strict inference for the types of the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reprise.facts.onnx_schema import Definition, definition
from reprise.facts.onnx_text import BadText, attribute_of, captured, is_text
from reprise.facts.onnx_types import encode, type_of
from reprise.facts.onnx_values import CODE_OF_DTYPE, GRAPH
from reprise.lang.dtypes import DTYPES
from reprise.uir.graph import Array, Attribute, TensorType
from reprise.uir.inference import SignatureError
from reprise.uir.types import numpy_dtype

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto
    from onnx.defs import OpSchema

USUAL_OPSET = 21
"""At which an operator is applied that exists there: what ``reprise.lower.onnx`` writes unless it
is told otherwise."""

_PREFERRED = ("int64", "float32", "int32", "float64", "string", "bool")
_OPTIONAL = 1  # OpSchema.FormalParameterOption.Optional
_VARIADIC = 2  # OpSchema.FormalParameterOption.Variadic
_SPELLED = {"float": "float32", "double": "float64"}
_CHAINED = ("onnx", "ai.onnx.ml")
_FLAG_TYPES = (6, 7, 8)  # AttributeProto: FLOATS, INTS, STRINGS


def is_foreign(op: str) -> bool:
    """Whether ``op`` is an operator by ONNX's own name."""
    return "." in op


@cache
def parts(op: str) -> tuple[str, str]:
    """Domain and ONNX's name: ``onnx.Foo`` is ``("", "Foo")``, plain ``Foo`` too."""
    domain, _, name = op.rpartition(".")
    return ("" if domain == "onnx" else domain), name


def named(word: str, ops: Iterable[str]) -> str | None:
    """A hint for whoever leaves out the domain: ``HannWindow`` is ``onnx.HannWindow`` among
    ``ops``. None if none of them is called so."""
    same = sorted(op for op in ops if is_foreign(op) and parts(op)[1].lower() == word.lower())
    return f"did you mean `{same[0]}`?" if same else None


@cache
def links(op: str) -> tuple[str, ...]:
    """The operators of a chain, in order: those of ``onnx.SplitToSequence_SequenceAt`` are
    ``onnx.SplitToSequence`` and ``onnx.SequenceAt``. Of any other operator, itself."""
    domain, _, name = op.rpartition(".")
    names = name.split("_")  # no operator of ONNX has one in its name
    if domain not in _CHAINED or not all(word[:1].isupper() for word in names):
        return (op,)
    return tuple(f"{domain}.{word}" for word in names)


@cache
def since(op: str) -> int | None:
    """The opset (of the operator's own domain) from which on it exists, or None if it never did
    or does no longer."""
    domain, name = parts(op)
    newest = definition(domain, name, 2**31 - 1)
    if newest is None or newest.schema.deprecated:
        return None
    from onnx import defs

    history = defs.get_all_schemas_with_history()
    return min(s.since_version for s in history if (s.domain, s.name) == (domain, name))


@cache
def runs_graphs(op: str) -> bool:
    """Whether an attribute of the operator, or of one in its chain, is a graph."""
    found = [definition(*parts(link), 2**31 - 1) for link in links(op)]
    return any(GRAPH in known.types.values() for known in found if known is not None)


@cache
def domain_version(domain: str) -> int:
    """The newest version of a domain other than ONNX's main one; 1 of somebody's own."""
    from onnx import defs

    schemas = defs.get_all_schemas_with_history()
    return max((s.since_version for s in schemas if s.domain == domain), default=1)


def opset_of(ops: Sequence[str], usual: int = USUAL_OPSET) -> int:
    """The opset at which all of ``ops`` can be applied: ``usual``, or the least above it."""
    every = [link for op in ops if is_foreign(op) for link in links(op)]
    needed = [since(op) or 0 for op in every if not parts(op)[0]]
    return max([usual, *needed])


@cache
def versions_of(op: str, usual: int = USUAL_OPSET) -> tuple[int, ...]:
    """The opset at which an operator is applied, and those above it that define it anew: another
    node may raise the opset of the model that both are in."""
    names = {parts(link) for link in links(op)}
    first = opset_of([op], usual)
    if any(domain for domain, _ in names):
        return (first,)
    from onnx import defs

    history = defs.get_all_schemas_with_history()
    later = {s.since_version for s in history if (s.domain, s.name) in names}
    return (first, *sorted(v for v in later if v > first))


def definition_of(op: str, opset: int) -> Definition | None:
    """The definition in force at an opset of the main domain; other domains are taken as they
    are newest."""
    domain, name = parts(op)
    return definition(domain, name, domain_version(domain) if domain else opset)


@cache
def formal_dtypes(types: frozenset[str]) -> tuple[str, ...]:
    """The element types that a formal parameter may have, the usual ones first."""
    names = {text[len("tensor(") : -1] for text in types if text.startswith("tensor(")}
    names = {_SPELLED.get(name, name) for name in names} & DTYPES.keys()
    return (*(n for n in _PREFERRED if n in names), *sorted(names - set(_PREFERRED)))


@dataclass(frozen=True, slots=True)
class Stored:
    """An operand that is written as a stored tensor."""

    name: str
    value: Array
    dtype: str


def operands_of(
    schema: OpSchema, count: int, attributes: Mapping[str, Attribute]
) -> Iterator[int | Stored | None]:
    """The node's operands in ONNX's order: the number of one of the application's ``count``
    operands, or what an attribute says in its place; None where there may be none. Attributes
    that are operands are exactly those that bear the name of one."""
    formals = schema.inputs
    for i in range(max(count, len(formals))):
        formal = formals[i] if i < len(formals) else None
        # In signatures a name in capitals would be a variable.
        value = None if formal is None else attributes.get(formal.name.lower())
        if formal is not None and value is not None and formal.name not in schema.attributes:
            dtype = formal_dtypes(frozenset(formal.types))[0]
            yield Stored(formal.name.lower(), np.array(value, numpy_dtype(dtype)), dtype)
        else:
            yield i if i < count else None


def own_attributes(schema: OpSchema, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The attributes that are written as such: those that are no operands. An element type is
    written by ONNX's number for it."""
    own: dict[str, Attribute] = {}
    for name, value in attributes.items():
        if name not in schema.attributes:
            continue
        kind = int(schema.attributes[name].type.value)  # type: ignore[attr-defined]
        if kind == 2 and isinstance(value, str):
            value = CODE_OF_DTYPE[value]
        if kind in _FLAG_TYPES and not isinstance(value, tuple):
            continue  # the one-number spelling of a list
        own[name] = int(value) if kind == 2 else value  # type: ignore[arg-type]
    return own


BEFORE = -1
"""Among the operands of a step: what the step before it made."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node of an application: its operator, its operands (the number of one of the application's,
    a stored one, :data:`BEFORE`, or None) and its attributes. ``captured``: the numbers of the
    application's operands that its graphs read."""

    op: str
    found: Definition
    operands: tuple[int | Stored | None, ...]
    attributes: dict[str, Attribute]
    captured: frozenset[int] = frozenset()

    def results(self, asked: int) -> int:
        """How many results it has, if ``asked`` are asked of the application."""
        outputs = self.found.schema.outputs
        variadic = bool(outputs) and int(outputs[-1].option.value) == _VARIADIC  # type: ignore[attr-defined]
        return max(len(outputs), asked) if variadic else len(outputs)


def steps_of(
    op: str, count: int, attributes: Mapping[str, Attribute], opset: int
) -> list[Step] | None:
    """The nodes of an application with ``count`` operands: one, or those of a chain, whose last
    operands are what its later operators ask for besides. What graphs capture is no operand of a
    node. None if ONNX has one of them not."""
    found = [(link, definition_of(link, opset)) for link in links(op)]
    inner = [
        frozenset[int]() if known is None else captured(known.types, attributes)
        for _, known in found
    ]
    free = [i for i in range(count) if not any(i in numbers for numbers in inner)]
    steps: list[Step] = []
    for place in reversed(range(len(found))):
        link, known = found[place]
        if known is None or known.schema.deprecated:
            return None
        schema = known.schema
        operands: list[int | Stored | None]
        if place == 0:
            operands = [
                free[o] if isinstance(o, int) else o
                for o in operands_of(schema, len(free), attributes)
            ]
        else:
            operands = list(operands_of(schema, 0, attributes))
            operands[0] = BEFORE
            wanted = [i for i in range(schema.min_input) if operands[i] is None]
            for number, i in zip(free[len(free) - len(wanted) :], wanted, strict=False):
                operands[i] = number
            del free[len(free) - len(wanted) :]
        own = own_attributes(schema, attributes)
        steps.append(Step(link, known, tuple(operands), own, inner[place]))
    return steps[::-1]


def model_of(
    op: str,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Attribute],
    opset: int,
    results: Sequence[TensorType] | None = None,
) -> ModelProto | None:
    """A model of this node or chain, with inputs ``x0``, ``x1`` … and outputs ``y0`` …, whose types
    are stated if ``results`` says them; None if ONNX has no such operator at the opset. Raises
    Refused for an attribute whose text cannot be read."""
    from onnx import ModelProto, helper

    steps = steps_of(op, len(operands), attributes, opset)
    if steps is None:
        return None
    model = ModelProto(ir_version=_ir_version(opset), producer_name="reprise")
    model.opset_import.add(version=opset)
    if domain := parts(steps[0].op)[0]:
        model.opset_import.add(domain=domain, version=domain_version(domain))
    graph = model.graph
    graph.name = parts(op)[1]
    outputs: list[str] = []

    def name_of(i: int) -> str | None:
        """The input that is operand ``i``, which is there from then on."""
        operand = operands[i] if i < len(operands) else None
        if operand is None:
            return None
        if all(info.name != f"x{i}" for info in graph.input):
            graph.input.add(name=f"x{i}").type.ParseFromString(encode(operand))
        return f"x{i}"

    for number, step in enumerate(steps):
        inputs: list[str] = []
        for operand in step.operands:
            if isinstance(operand, Stored):
                inputs.append(operand.name if number == 0 else f"{operand.name}{number}")
                fill_stored(graph.initializer.add(), operand)
                graph.initializer[-1].name = inputs[-1]
            elif operand == BEFORE:
                inputs.append(outputs[0])
            else:
                inputs.append("" if operand is None else name_of(operand) or "")
        while inputs and not inputs[-1]:
            inputs.pop()
        if step is steps[-1]:
            made = step.results(1) if results is None else len(results)
            outputs = [f"y{i}" for i in range(made)]
        else:
            outputs = [f"s{number}"]
        domain, name = parts(step.op)
        node = helper.make_node(name, inputs, outputs, domain=domain)
        for key, value in step.attributes.items():
            kind = step.found.types[key]  # an empty list does not say what it is a list of
            if is_text(kind, value):
                try:
                    made_of = attribute_of(key, kind, str(value), name_of, f"n{number}")
                except BadText as error:
                    raise Refused(str(error)) from None
                node.attribute.append(made_of)
            else:
                node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        graph.node.append(node)
    for i, output in enumerate(outputs):
        info = graph.output.add(name=output)
        if results is not None:
            info.type.ParseFromString(encode(results[i]))
    return model


def fill_stored(proto: TensorProto, stored: Stored) -> None:
    """Write a stored operand into an empty TensorProto."""
    from onnx import numpy_helper

    if stored.dtype == "string":
        proto.dims.extend(stored.value.shape)
        proto.data_type = CODE_OF_DTYPE["string"]
        proto.string_data.extend(str(text).encode() for text in stored.value.reshape(-1))
    else:
        proto.CopyFrom(numpy_helper.from_array(stored.value))
    proto.name = stored.name


@cache
def _ir_version(opset: int) -> int:
    from onnx import helper

    versions = {
        version: ir
        for (domain, version), ir in helper.OP_SET_ID_VERSION_MAP.items()
        if domain == "ai.onnx"
    }
    return versions[opset]


class Refused(Exception):
    """ONNX does not take an application; the text says why, in one line."""


def infer_results(model: ModelProto) -> list[TensorType]:
    """The types of the model's outputs by ONNX's strict inference, with element types checked and
    values of small constants followed. Raises Refused."""
    from onnx import ModelProto, shape_inference

    # The bindings raise several classes of exceptions without a common base.
    try:
        made = shape_inference.infer_shapes(model.SerializeToString(), True, True, True)
    except Exception as error:
        raise Refused(_line(error)) from None
    typed = made if isinstance(made, ModelProto) else ModelProto.FromString(made)
    return [type_of(output.type)[0] for output in typed.graph.output]


def check_model(model: ModelProto) -> None:
    """Hold the model against ONNX's checker. Raises Refused."""
    from onnx import checker

    try:
        checker.check_model(model.SerializeToString(), full_check=True)
    except Exception as error:
        raise Refused(_line(error)) from None


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


class OnnxResults:
    """Result types of ONNX's own operators, asked of ONNX and kept: the same question is answered
    from memory. An answer with an unknown extent is no answer, nor is one that a later version of
    the operator does not give too."""

    def __init__(self, opset: int = USUAL_OPSET, most: int = 1 << 14) -> None:
        self.opset = opset
        self._most = most
        self._kept: dict[Any, list[TensorType] | str] = {}

    def __call__(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> list[TensorType] | None:
        if not is_foreign(op):
            return None
        key = op, tuple(operands), tuple(sorted(attributes.items()))
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            kept = self._kept[key] = self._ask(op, operands, attributes)
        if isinstance(kept, str):
            raise SignatureError(op, "shape", kept)
        return kept

    def _ask(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> list[TensorType] | str:
        answer: list[TensorType] | None = None
        for opset in versions_of(op, self.opset):
            try:
                model = model_of(op, operands, attributes, opset)
                if model is None:
                    return "ONNX has no such operator"
                types = infer_results(model)
            except Refused as error:
                return str(error)
            if any(type.dtype is None or type.elements is None for type in types):
                return "the results do not follow from types alone"
            if answer is not None and answer != types:
                return f"its results are others from opset {opset} on"
            answer = types
        return answer or []
