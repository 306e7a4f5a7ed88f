"""ONNX files as graphs: :func:`load_onnx`.

The importer walks the model's nodes once, in the order of data flow. For each it finds the
operands in scope, infers the outputs' types, brings the node to its UIR form by the table in
``onnx_table`` and appends it to the graph. Sub-graphs are walked before the node that owns them;
a call of a local function is walked in place of the call. The walk never guesses: what is not
known stays None, what had to be put right is a note, and what cannot be used is a ModelError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reprise.facts.errors import ModelError, one_line
from reprise.facts.onnx_call import Call, Draft, Misfit, apply
from reprise.facts.onnx_control import (
    formal_types,
    result_types,
    source_of_formal,
    source_of_result,
)
from reprise.facts.onnx_extents import Extents, follow, shaped, stored
from reprise.facts.onnx_order import BadOrder, in_order, label
from reprise.facts.onnx_parameters import parameters
from reprise.facts.onnx_read import Limits, read_model
from reprise.facts.onnx_schema import Definition, definition
from reprise.facts.onnx_table import TABLE
from reprise.facts.onnx_types import (
    UNKNOWN,
    InferenceFailed,
    cleaned,
    encode,
    infer,
    refine,
    type_of,
)
from reprise.facts.onnx_values import (
    CODE_OF_DTYPE,
    DTYPE_OF_CODE,
    GRAPH,
    Storage,
    attribute_type,
    attribute_value,
)
from reprise.uir.graph import Array, Attribute, Body, Graph, Role, Tensor, TensorType

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

__all__ = ["Limits", "ModelError", "load_onnx"]


def load_onnx(path: str | Path, *, limits: Limits | None = None) -> Graph:
    """The model in an ONNX file as a graph. Raises ModelError, and nothing else, if it is unusable.

    External data is not read unless it is small. Values of large initializers are not loaded
    (see :class:`Limits`); their types are known all the same.
    """
    where = Path(path)
    bounds = limits or Limits()
    return import_model(read_model(where, bounds), where, bounds)


def import_model(model: ModelProto, path: Path, limits: Limits) -> Graph:
    """The graph of a model that has been read. ``path`` is used in messages and to find data."""
    return _Importer(model, path, limits).run()


@dataclass(slots=True)
class _Scope:
    """The names that a graph or function can see.

    ``parent`` is the enclosing graph's scope (a function has none). ``attributes`` are the values
    of the enclosing function's attribute parameters.
    """

    parent: _Scope | None
    body: int
    opsets: dict[str, int]
    prefix: str = ""
    names: dict[str, Tensor] = field(default_factory=dict)
    declared: dict[str, TensorType] = field(default_factory=dict)
    attributes: dict[str, AttributeProto] | None = None

    def find(self, name: str) -> Tensor | None:
        """The tensor called ``name`` here or in an enclosing graph."""
        scope: _Scope | None = self
        while scope is not None:
            if (tensor := scope.names.get(name)) is not None:
                return tensor
            scope = scope.parent
        return None


@dataclass(frozen=True, slots=True)
class _Result:
    """What is known of a value before it becomes a tensor. ``proto``: its serialised TypeProto."""

    type: TensorType = UNKNOWN
    kind: str = "tensor"
    proto: bytes = b""


_NOTHING = _Result()
_KEPT_NOTES = 200
_DATA_ELEMENTS = 1024


class _Importer:
    """One import: the graph as far as it is built, and what inference needs to go on."""

    def __init__(self, model: ModelProto, path: Path, limits: Limits) -> None:
        self.model = model
        self.path = path
        self.limits = limits
        self.graph = Graph(name=one_line(model.graph.name) or path.stem)
        self.storage = Storage(path, limits, self.note)
        self.protos: dict[int, bytes] = {}
        self.data: dict[int, bytes] = {}
        self.extents: dict[int, Extents] = {}
        self.results: dict[bytes, _Result] = {}
        self.functions = {(_domain(f.domain), f.name, f.overload): f for f in model.functions}

    def run(self) -> Graph:
        model = self.model
        opsets = {_domain(o.domain): int(o.version) for o in model.opset_import}
        if not opsets:
            if model.ir_version >= 3:
                self.note("the model states no opset; 1 is assumed")
            opsets = {"": 1}
        self.graph.opsets = opsets
        self._check_size()
        scope = _Scope(None, 0, opsets)
        self._read_declared(model.graph, scope)
        self._main_sources(model.graph, scope)
        self._initializers(model.graph, scope)
        self._walk(model.graph.node, scope)
        for output in model.graph.output:
            self.graph.outputs.append(self._find(output.name, scope, "the graph's output"))
        return self.graph

    def _check_size(self) -> None:
        """Refuse local functions that call themselves, nest deeply or multiply without bound."""
        sizes: dict[tuple[str, str, str], int] = {}
        active: list[tuple[str, str, str]] = []

        def size_of(nodes: Iterable[NodeProto]) -> int:
            total = 0
            for node in nodes:
                total += 1
                key = (_domain(node.domain), node.op_type, node.overload)
                if key in self.functions:
                    total += size_of_function(key)
                for attribute in node.attribute:
                    if attribute_type(attribute) == GRAPH:
                        total += size_of(attribute.g.node)
            return total

        def size_of_function(key: tuple[str, str, str]) -> int:
            if key in active:
                raise self.fail(f"local function {key[0]}.{key[1]} calls itself")
            if len(active) >= self.limits.calls:
                raise self.fail(f"local functions call each other {self.limits.calls} deep")
            if key not in sizes:
                active.append(key)
                sizes[key] = size_of(self.functions[key].node)
                active.pop()
            return sizes[key]

        if self.functions and (total := size_of(self.model.graph.node)) > self.limits.nodes:
            raise self.fail(
                f"the model has {total:,} nodes once its local functions are inlined; "
                f"the limit is {self.limits.nodes:,}"
            )

    # --- messages ----------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        notes = self.graph.notes
        line = one_line(text)
        if len(notes) < _KEPT_NOTES and line not in notes:
            notes.append(line)

    def fail(self, message: str, hint: str | None = None) -> ModelError:
        return ModelError(self.path, message, hint)

    # --- sources -----------------------------------------------------------------------------

    def _read_declared(self, graph: GraphProto, scope: _Scope) -> None:
        """Types that the file states for intermediate values and outputs."""
        for info in (*graph.value_info, *graph.output):
            type, kind = type_of(info.type)
            if kind == "tensor" and type != UNKNOWN:
                scope.declared[info.name] = type

    def _main_sources(self, graph: GraphProto, scope: _Scope) -> None:
        stored = {tensor.name for tensor in graph.initializer}
        for info in graph.input:
            if info.name in stored:  # becomes an initializer, below
                continue
            type, kind = type_of(info.type)
            tensor = self.graph.add_input(info.name, type)
            self._define(scope, info.name, tensor)
            self._describe(tensor, _Result(type, kind, cleaned(info.type)))

    def _initializers(self, graph: GraphProto, scope: _Scope) -> None:
        listed = {info.name for info in graph.input}
        latest = {tensor.name: tensor for tensor in graph.initializer}
        if len(latest) < len(graph.initializer):
            self.note("some initializers have the same name; the last of them counts")
        for name, proto in latest.items():
            if scope.body and name in scope.names:
                self.note(f"{name!r} is both a formal input and an initializer of a sub-graph")
                continue
            array = self.storage.array(proto)
            tensor = self._initializer(scope, name, proto, array)
            # Before IR version 4 every initializer had to be listed, so that it says nothing.
            tensor.overridable = not scope.body and name in listed and self.model.ir_version >= 4
            if not tensor.overridable:
                self._keep_data(tensor)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            dtype = DTYPE_OF_CODE.get(sparse.values.data_type)
            type = TensorType(dtype, tuple(max(0, d) for d in sparse.dims))
            tensor = self.graph.add_initializer(name, type, None, scope.body)
            self._define(scope, name, tensor)
            self._describe(tensor, _Result(type, "tensor"))

    def _initializer(
        self, scope: _Scope, name: str, proto: TensorProto, array: Array | None
    ) -> Tensor:
        type = TensorType(DTYPE_OF_CODE.get(proto.data_type), tuple(proto.dims))
        tensor = self.graph.add_initializer(name, type, array, scope.body)
        self._define(scope, name, tensor)
        self._describe(tensor, _Result(type))
        return tensor

    def _keep_data(self, tensor: Tensor) -> None:
        """Remember a small constant in the form in which inference reads it."""
        if (extents := stored(tensor)) is not None:
            self.extents[tensor.id] = extents
        array, dtype = tensor.value, tensor.type.dtype
        if array is None or dtype is None or array.size > _DATA_ELEMENTS or array.dtype == object:
            return
        if dtype in ("int4", "uint4", "int2", "uint2", "float4e2m1"):
            return
        from onnx import TensorProto

        proto = TensorProto(
            dims=array.shape, data_type=CODE_OF_DTYPE[dtype], raw_data=array.tobytes()
        )
        self.data[tensor.id] = proto.SerializeToString()

    # --- names -------------------------------------------------------------------------------

    def _define(self, scope: _Scope, name: str, tensor: Tensor) -> None:
        if not name:
            raise self.fail("a value has no name")
        if name in scope.names:
            raise self.fail(
                f"{name!r} is defined twice", "every value of an ONNX graph has one definition"
            )
        scope.names[name] = tensor
        if scope.prefix:
            tensor.name = f"{scope.prefix}{name}"

    def _find(self, name: str, scope: _Scope, reader: str) -> Tensor:
        tensor = scope.find(name)
        if tensor is None:
            raise self.fail(
                f"{reader} reads {name!r}, which nothing defines", "onnx.checker says more"
            )
        return tensor

    def _describe(self, tensor: Tensor, result: _Result) -> None:
        tensor.kind = result.kind
        if result.proto:
            self.protos[tensor.id] = result.proto
        elif result.kind == "tensor" and result.type != UNKNOWN:
            self.protos[tensor.id] = encode(result.type)

    # --- the walk ----------------------------------------------------------------------------

    def _walk(self, nodes: Sequence[NodeProto], scope: _Scope) -> None:
        try:
            ordered = in_order(nodes)
        except BadOrder as error:
            raise self.fail(error.message, error.hint) from None
        if ordered is not nodes:
            self.note("the nodes were not in the order of data flow; they have been sorted")
        for node in ordered:
            self._node(node, scope)

    def _node(self, node: NodeProto, scope: _Scope) -> None:
        if any(a.ref_attr_name for a in node.attribute):
            node = self._resolved(node, scope)
        domain = _domain(node.domain)
        key = (domain, node.op_type, node.overload)
        if (function := self.functions.get(key)) is not None:
            self._inline(node, function, scope)
        elif domain == "" and node.op_type == "Constant":
            self._constant(node, scope)
        else:
            self._operation(node, domain, scope)

    def _resolved(self, node: NodeProto, scope: _Scope) -> NodeProto:
        """``node`` with references to the function's attributes replaced by their values."""
        from onnx import NodeProto as Proto

        resolved = Proto()
        resolved.CopyFrom(node)
        del resolved.attribute[:]
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                resolved.attribute.add().CopyFrom(attribute)
                continue
            actual = (scope.attributes or {}).get(attribute.ref_attr_name)
            if actual is not None:  # absent: the operator's own default holds
                copy = resolved.attribute.add()
                copy.CopyFrom(actual)
                copy.name = attribute.name
        return resolved

    def _inline(self, node: NodeProto, function: FunctionProto, scope: _Scope) -> None:
        """Walk the body of a local function in place of a call of it."""
        inner = _Scope(
            None,
            scope.body,
            {**scope.opsets, **{_domain(o.domain): int(o.version) for o in function.opset_import}},
            prefix=f"{scope.prefix}{node.name or next(iter(node.output), '') or function.name}/",
            attributes={a.name: a for a in (*function.attribute_proto, *node.attribute)},
        )
        for formal, actual in zip(function.input, node.input, strict=False):
            if actual:
                inner.names[formal] = self._find(actual, scope, label(node))
        absent = {formal for formal in function.input if formal not in inner.names}
        for info in function.value_info:
            type, kind = type_of(info.type)
            if kind == "tensor" and type != UNKNOWN:
                inner.declared[info.name] = type
        self._walk([_without(n, absent) for n in function.node], inner)
        for formal, actual in zip(function.output, node.output, strict=False):
            if actual:
                if actual in scope.names:
                    raise self.fail(f"{actual!r} is defined twice")
                scope.names[actual] = self._find(formal, inner, f"function {function.name}")

    def _constant(self, node: NodeProto, scope: _Scope) -> None:
        """A Constant node becomes an initializer."""
        from onnx import TensorProto, helper

        name = next(iter(node.output), "")
        proto = TensorProto()
        for attribute in node.attribute:
            match attribute.name:
                case "value":
                    proto = attribute.t
                case "sparse_value":
                    sparse = attribute.sparse_tensor
                    proto = TensorProto(dims=sparse.dims, data_type=sparse.values.data_type)
                    self._initializer(scope, name, proto, None)
                    return
                case "value_float":
                    proto = helper.make_tensor("", 1, [], [attribute.f])
                case "value_floats":
                    proto = helper.make_tensor("", 1, [len(attribute.floats)], attribute.floats)
                case "value_int":
                    proto = helper.make_tensor("", 7, [], [attribute.i])
                case "value_ints":
                    proto = helper.make_tensor("", 7, [len(attribute.ints)], attribute.ints)
                case "value_string":
                    proto = helper.make_tensor("", 8, [], [attribute.s])
                case "value_strings":
                    proto = helper.make_tensor("", 8, [len(attribute.strings)], attribute.strings)
                case _:
                    self.note(f"{label(node)}: attribute {attribute.name!r} is not known")
        if not proto.data_type:
            raise self.fail(f"{label(node)} has no value")
        self._keep_data(self._initializer(scope, name, proto, self.storage.array(proto)))

    def _operation(self, node: NodeProto, domain: str, scope: _Scope) -> None:
        """Any other node: its sub-graphs first, then the node in its UIR form."""
        inputs = [self._find(name, scope, label(node)) if name else None for name in node.input]
        attributes = {
            attribute.name: value
            for attribute in node.attribute
            if (value := attribute_value(attribute, self.storage)) is not None
        }
        known = self._definition(node, domain, scope)
        control = node.op_type if domain == "" and known is not None else ""
        if control not in _CONTROL or (control == "Scan" and known is not None and known.since < 9):
            control = ""
        bodies = {
            attribute.name: self._body(attribute.g, control, node, inputs, attributes, scope)
            for attribute in node.attribute
            if attribute_type(attribute) == GRAPH
        }
        if bodies and control:
            results = self._control_results(control, node, inputs, attributes, bodies)
        else:
            results = self._inferred(node, known, inputs, scope)
        results = [self._declared(node, i, result, scope) for i, result in enumerate(results)]
        draft = self._normal(node, domain, known, inputs, attributes, results)
        values = [None if t is None else self.extents.get(t.id) for t in draft.inputs]
        self._reshape(draft, values, results)
        made = self.graph.add_node(
            draft.op,
            draft.inputs,
            [
                (name, result.type) if name else None
                for name, result in zip(node.output, results, strict=True)
            ],
            draft.attributes,
            name=f"{scope.prefix}{node.name}",
            given=frozenset(draft.given),
            body=scope.body,
        )
        made.bodies = bodies
        for tensor, result in zip(made.outputs, results, strict=True):
            if tensor is not None:
                self._define(scope, tensor.name, tensor)
                self._describe(tensor, result)
        if made.outputs and made.outputs[0] is not None:
            self._keep_extents(
                made.outputs[0], follow(draft.op, draft.attributes, draft.inputs, values)
            )

    # --- normalisation -----------------------------------------------------------------------

    def _definition(self, node: NodeProto, domain: str, scope: _Scope) -> Definition | None:
        """ONNX's definition of the node's operator, if it has one and the node fits it."""
        opset = scope.opsets.get(domain)
        if opset is None:
            if domain == "":
                raise self.fail(
                    f"{label(node)} is an ONNX operator, but the model states no ONNX opset"
                )
            return None
        known = definition(domain, node.op_type, opset)
        if known is None:
            if domain == "":
                self.note(f"opset {opset} has no operator {node.op_type}")
            return None
        for attribute in node.attribute:
            wanted = known.types.get(attribute.name)
            if wanted is not None and attribute_type(attribute) != wanted:
                self.note(f"{label(node)}: attribute {attribute.name!r} has the wrong type")
                return None
        if missing := known.required - {a.name for a in node.attribute} - {"consumed_inputs"}:
            self.note(f"{label(node)} lacks attribute {min(missing)!r}")
            return None
        if not known.schema.min_input <= len(node.input) <= known.schema.max_input:
            self.note(f"{label(node)} has {len(node.input)} operands")
            return None
        return known

    def _normal(
        self,
        node: NodeProto,
        domain: str,
        known: Definition | None,
        inputs: list[Tensor | None],
        attributes: dict[str, Attribute],
        results: Sequence[_Result],
    ) -> Draft:
        """The node's UIR form; its own name and attributes where there is none."""
        given = set(attributes)
        version = 0
        if known is not None:
            attributes = {**known.defaults, **attributes}
            version = known.since
        call = Call(
            node.op_type, version, inputs, [result.type for result in results], attributes, given
        )
        entry = TABLE.get(node.op_type) if domain == "" and known is not None else None
        if entry is not None:
            try:
                return apply(entry, call)
            except Misfit as misfit:
                self.note(f"{label(node)} keeps its ONNX form: {misfit}")
        name = f"{domain or 'onnx'}.{node.op_type}"
        if known is not None:
            told = parameters(known.schema, inputs, attributes)
            attributes = {**attributes, **told}
            given |= told.keys() - known.defaults.keys()
        return Draft(one_line(name), call, list(inputs), dict(attributes), given)

    # --- types -------------------------------------------------------------------------------

    def _declared(self, node: NodeProto, i: int, result: _Result, scope: _Scope) -> _Result:
        """``result`` joined with what the file states about output ``i``."""
        declared = scope.declared.get(node.output[i])
        if declared is None or result.kind != "tensor":
            return result
        type, clash = refine(result.type, declared)
        if clash:
            self.note(
                f"the file declares {node.output[i]!r} as {declared}, but it is {result.type}"
            )
        return result if type == result.type else _Result(type)

    def _inferred(
        self,
        node: NodeProto,
        known: Definition | None,
        inputs: Sequence[Tensor | None],
        scope: _Scope,
    ) -> list[_Result]:
        """What ONNX's inference finds for a node without sub-graphs."""
        unknown = [_Result() for _ in node.output]
        if known is None:
            return unknown
        if not known.infers:
            return self._like_first(node, inputs, unknown)
        types: dict[str, bytes] = {}
        data: dict[str, bytes] = {}
        for name, tensor in zip(node.input, inputs, strict=True):
            if tensor is None:
                continue
            # An empty type where nothing is known: some operators crash on one that is missing.
            types[name] = self.protos.get(tensor.id, b"")
            if (value := self.data.get(tensor.id)) is not None:
                data[name] = value
        try:
            inferred = infer(known.schema, node, types, data, scope.opsets, self.model.ir_version)
        except InferenceFailed as failure:
            if all(t is None or t.id in self.protos for t in inputs):
                self.note(f"{label(node)}: its type cannot be inferred: {failure}")
            dtypes = [None if t is None else t.type.dtype for t in inputs]
            return [
                _Result(TensorType(known.result_dtype(i, dtypes), None))
                for i in range(len(node.output))
            ]
        return [self._result(inferred.get(name, b"")) for name in node.output]

    def _like_first(
        self, node: NodeProto, inputs: Sequence[Tensor | None], unknown: list[_Result]
    ) -> list[_Result]:
        """Two normalisations have no inference in ONNX; their result is like their operand."""
        first = inputs[0] if inputs else None
        if first is not None and node.op_type in _LIKE_FIRST and not node.domain:
            unknown[0] = _Result(first.type, first.kind, self.protos.get(first.id, b""))
        return unknown

    def _reshape(self, draft: Draft, values: list[Extents | None], results: list[_Result]) -> None:
        """Improve a result's type by a target shape that is known in part."""
        if not results or results[0].kind != "tensor":
            return
        shape = shaped(draft.op, draft.attributes, draft.inputs, values)
        if shape is not None:
            type, _ = refine(results[0].type, TensorType(None, shape))
            if type != results[0].type:
                results[0] = _Result(type)

    def _keep_extents(self, tensor: Tensor, extents: Extents | None) -> None:
        """Remember a small vector of extents, and its value for inference if it is all numbers."""
        if extents is None:
            return
        self.extents[tensor.id] = extents
        numbers, dtype = extents.numbers, tensor.type.dtype
        if numbers is None or dtype not in ("int64", "int32") or tensor.id in self.data:
            return
        from onnx import TensorProto

        try:
            raw = np.array(numbers, dtype).tobytes()
        except OverflowError:
            return
        proto = TensorProto(
            dims=[] if extents.scalar else [len(numbers)],
            data_type=CODE_OF_DTYPE[dtype],
            raw_data=raw,
        )
        self.data[tensor.id] = proto.SerializeToString()

    def _result(self, encoded: bytes) -> _Result:
        from onnx import TypeProto

        if not encoded:
            return _NOTHING
        known = self.results.get(encoded)  # most types of a model occur many times
        if known is None:
            proto = TypeProto.FromString(encoded)
            type, kind = type_of(proto)
            known = self.results[encoded] = _Result(type, kind, cleaned(proto))
        return known

    # --- sub-graphs --------------------------------------------------------------------------

    def _body(
        self,
        proto: GraphProto,
        control: str,
        node: NodeProto,
        inputs: Sequence[Tensor | None],
        attributes: dict[str, Attribute],
        scope: _Scope,
    ) -> Body:
        """Walk a sub-graph: everything in it is older than the node that runs it."""
        body = self.graph.new_body()
        inner = _Scope(
            scope,
            body.id,
            scope.opsets,
            scope.prefix,
            attributes=scope.attributes,
        )
        self._read_declared(proto, inner)
        formals = formal_types(control, inputs, attributes, len(proto.input))
        made: list[Tensor] = []
        for i, (info, passed) in enumerate(zip(proto.input, formals, strict=True)):
            source = source_of_formal(control, inputs, attributes, i)
            if source is not None and source.kind != "tensor":
                result = _Result(UNKNOWN, source.kind, self.protos.get(source.id, b""))
            else:
                declared, kind = type_of(info.type)
                if kind == "tensor":
                    result = _Result(refine(passed, declared)[0])
                else:
                    result = _Result(declared, kind, cleaned(info.type))
            tensor = self.graph.add_input(info.name, result.type, Role.BODY_INPUT, body.id)
            self._define(inner, info.name, tensor)
            self._describe(tensor, result)
            made.append(tensor)
        body.inputs = tuple(made)
        self._initializers(proto, inner)
        self._walk(proto.node, inner)
        body.outputs = tuple(
            self._find(output.name, inner, f"a result of {label(node)}") if output.name else None
            for output in proto.output
        )
        return body

    def _control_results(
        self,
        control: str,
        node: NodeProto,
        inputs: Sequence[Tensor | None],
        attributes: dict[str, Attribute],
        bodies: dict[str, Body],
    ) -> list[_Result]:
        types = result_types(control, inputs, attributes, bodies, len(node.output))
        results: list[_Result] = []
        for i, type in enumerate(types):
            source = source_of_result(control, inputs, bodies, i)
            if source is not None and source.kind != "tensor":
                results.append(_Result(UNKNOWN, source.kind, self.protos.get(source.id, b"")))
            else:
                results.append(_Result(type))
        return results


_CONTROL = frozenset({"If", "Loop", "Scan"})
_LIKE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization"})


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _without(node: NodeProto, absent: set[str]) -> NodeProto:
    """``node`` with operands that a call left out made absent."""
    if not absent or not any(name in absent for name in node.input):
        return node
    from onnx import NodeProto as Proto

    copy = Proto()
    copy.CopyFrom(node)
    copy.input[:] = ["" if name in absent else name for name in node.input]
    return copy
