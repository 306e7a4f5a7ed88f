"""UIR as text: ``.uir`` programs and the programs inside rule tests, to graphs and back.

Comes in: parsed lines (``x: float32[4, 17]``, ``s = softmax(x, axis=1)``, ``output s``). Goes out:
a :class:`Graph` whose types, where the text leaves them out, follow from the operators'
signatures. Every mistake is a diagnostic with its place; all of them are collected. A tensor that
nobody reads is an output of the graph, besides those that ``output`` names.

Printing is the inverse: reading what :func:`print_uir` wrote gives the same graph, up to node
names and names that are no identifiers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn, Protocol

import numpy as np

from reprise.lang import ast
from reprise.lang.core import Row, Value
from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from reprise.lang.dtypes import DTYPES
from reprise.lang.spelling import operator_hint
from reprise.lang.symbols import suggest
from reprise.uir.graph import (
    Array,
    Attribute,
    Extent,
    Graph,
    Node,
    Role,
    Scalar,
    Tensor,
    TensorType,
)
from reprise.uir.inference import Inference, SignatureError
from reprise.uir.types import numpy_dtype

MAX_ELEMENTS = 1 << 24
MAX_RANK = 32
"""Constants with more elements or axes are given a type but no value."""


def parse_uir(text: str, path: str, signatures: Inference) -> Graph:
    """Read a ``.uir`` program. Raises RulesError with everything that is wrong with it."""
    from reprise.lang.parse import parse_program

    return read_graph(parse_program(text, path), signatures)


def read_graph(lines: Sequence[ast.Line], signatures: Inference) -> Graph:
    """Build the graph that ``lines`` describe. Raises RulesError."""
    return _Reader(signatures).read(lines)


def read_givens(lines: Iterable[ast.Line]) -> tuple[tuple[str, Row], ...]:
    """The facts that ``lines`` take as given, as (relation, row), but for ``opset``, which is part
    of the graph. Raises RulesError for an argument that is no value."""
    rows = []
    problems: list[Diagnostic] = []
    for line in lines:
        if not isinstance(line, ast.Given) or line.fact.relation.text == "opset":
            continue
        row: list[Value] = []
        for argument in line.fact.args:
            value = _literal(argument)
            if value is None or isinstance(value, tuple):
                problems.append(_problem("bad-fact", "a given fact holds values only", argument))
            else:
                row.append(str(value).lower() if isinstance(value, bool) else value)
        rows.append((line.fact.relation.text, tuple(row)))
    if problems:
        raise RulesError(problems)
    return tuple(rows)


# --- reading -----------------------------------------------------------------------------------


class _Spanned(Protocol):
    @property
    def span(self) -> Span: ...


class _Skip(Exception):
    """The line is wrong, which has been reported; go on with the next."""


class _Reader:
    def __init__(self, signatures: Inference) -> None:
        self.signatures = signatures
        self.graph = Graph()
        self.scope: dict[str, Tensor] = {}
        self.results: dict[str, Node] = {}
        self.broken: set[str] = set()
        self.indexed: dict[str, int] = {}
        self.taken: set[str] = set()
        self.problems: list[Diagnostic] = []

    def read(self, lines: Sequence[ast.Line]) -> Graph:
        self._note_names(lines)
        outputs: list[Tensor] = []
        for line in lines:
            try:
                match line:
                    case ast.InputLine():
                        self._input(line)
                    case ast.Bind():
                        self._bind(line)
                    case ast.OutputLine(name):
                        outputs.append(self._tensor(name))
                    case ast.Given():
                        self._opset(line.fact)
            except _Skip:
                pass
        if self.problems:
            raise RulesError(self.problems)
        self._finish(outputs)
        return self.graph

    def _note_names(self, lines: Sequence[ast.Line]) -> None:
        """The names that the text takes, and how many results each needs: ``t[1]`` asks for two."""

        def visit(operand: ast.Operand) -> None:
            match operand:
                case ast.TensorRef(name, int(output)):
                    self.indexed[name.text] = max(output + 1, self.indexed.get(name.text, 0))
                case ast.Call():
                    for inner in operand.operands:
                        visit(inner)

        for line in lines:
            match line:
                case ast.InputLine(name):
                    self.taken.add(name.text)
                case ast.Bind():
                    self.taken.update(name.text for name in line.names if name.text != "_")
                    for call in line.calls:
                        visit(call)

    def _finish(self, outputs: list[Tensor]) -> None:
        read = {t for node in self.graph.nodes for t in node.inputs if t is not None}
        named = set(outputs)
        unread = [t for t in self.graph.tensors if t not in read and t not in named]
        computed = [t for t in unread if t.role is Role.COMPUTED and not self._is_spare(t)]
        self.graph.outputs = list(dict.fromkeys([*outputs, *computed]))

    def _is_spare(self, tensor: Tensor) -> bool:
        """A further result that was made only because a later one was asked for."""
        return tensor.name not in self.scope

    # --- lines ---------------------------------------------------------------------------------

    def _input(self, line: ast.InputLine) -> None:
        name = line.name.text
        self._claim(line.name)
        try:
            type_ = self._type(line.type)
            value = self._constant(line, type_) if line.constant else None
        except _Skip:
            self.broken.add(name)
            raise
        if line.constant:
            self.scope[name] = self.graph.add_initializer(name, type_, value)
        else:
            self.scope[name] = self.graph.add_input(name, type_)

    def _bind(self, line: ast.Bind) -> None:
        asked = [name for name in line.names if name.text != "_"]
        for name in asked:
            self._claim(name)
        try:
            if len(line.calls) != 1:
                self._fail("pattern-form", "a program has one call a line", line)
            if not asked:
                self._fail("pattern-form", "a line names at least one result", line)
            types = [None if t is None else self._type(t) for t in line.types]
            names = [None if name.text == "_" else name.text for name in line.names]
            first = asked[0].text
            for extra in range(len(names), self.indexed.get(first, 0)):
                names.append(self._fresh(f"{first}_{extra}"))
            node = self._call(line.calls[0], names, types)
        except _Skip:
            self.broken.update(name.text for name in asked)
            raise
        for name, tensor in zip(line.names, node.outputs, strict=False):
            if tensor is not None:
                self.scope[name.text] = tensor
        self.results[first] = node

    def _call(
        self, call: ast.Call, names: Sequence[str | None], types: Sequence[TensorType | None]
    ) -> Node:
        if len(call.ops) != 1 or call.unordered:
            self._fail("pattern-form", "a program names one operator, operands in order", call)
        op = call.ops[0].text
        if op not in self.signatures and "." not in op:
            hint = operator_hint(op, self.signatures) or suggest(op, self.signatures)
            self._fail("unknown-operator", f"there is no operator `{op}`", call.ops[0], hint)
        operands = [self._operand(operand) for operand in call.operands]
        given = self._attributes(call.attributes)
        attributes, inferred = self._apply(call, operands, given, len(names))
        made: list[tuple[str, TensorType] | None] = []
        for number, name in enumerate(names):
            if name is None:
                made.append(None)
                continue
            type_ = inferred[number] if number < len(inferred) else TensorType(None, None)
            stated = types[number] if number < len(types) else None
            if stated is not None:
                type_ = self._merge(type_, stated, call)
            made.append((name, type_))
        return self.graph.add_node(
            op,
            operands,
            made,
            attributes,
            name=next(name for name in names if name is not None),
            given=frozenset(given),
        )

    def _apply(
        self,
        call: ast.Call,
        operands: list[Tensor | None],
        given: dict[str, Attribute],
        wanted: int,
    ) -> tuple[dict[str, Attribute], list[TensorType]]:
        """Completed attributes and result types: of a foreign operator, nothing is known, and
        where even the number of results is not, there are no types."""
        op = call.ops[0]
        if op.text not in self.signatures and "." in op.text:
            return given, []
        try:
            types = [None if tensor is None else tensor.type for tensor in operands]
            typing = self.signatures.check(op.text, types, given)
        except SignatureError as error:
            self._refuse(call, error)
        if wanted > len(typing.outputs) > 0:
            self._fail(
                "result-count",
                f"`{op}` has {len(typing.outputs)} result{'s' * (len(typing.outputs) != 1)}, "
                f"not {wanted}",
                call,
            )
        return typing.attributes, typing.outputs

    def _refuse(self, call: ast.Call, error: SignatureError) -> NoReturn:
        span = call.span
        for argument in call.attributes:
            if argument.name.text == error.subject:
                span = argument.span
        message = f"{error.op}: {error.message}"
        self.problems.append(Diagnostic(error.code, message, span, error.hint))
        raise _Skip

    def _opset(self, fact: ast.AtomCond) -> None:
        if fact.relation.text != "opset":
            return
        match [_literal(argument) for argument in fact.args]:
            case [str(domain), int(version)]:
                self.graph.opsets["" if domain == "ai.onnx" else domain] = version
            case _:
                self._fail("bad-fact", 'write `opset("ai.onnx", 17)`', fact)

    # --- operands and attributes ---------------------------------------------------------------

    def _operand(self, operand: ast.Operand) -> Tensor | None:
        match operand:
            case ast.TensorRef(name, None):
                return self._tensor(name)
            case ast.TensorRef(name, int(number)):
                return self._result(name, number)
            case ast.AbsentOperand():
                return None
            case ast.Call():
                node = self._call(operand, [self._fresh(operand.ops[0].text.lower())], [])
                (result,) = node.outputs
                return result
            case _:
                self._fail("pattern-form", "only a pattern leaves operands open", operand)

    def _tensor(self, name: ast.Ident) -> Tensor:
        if name.text in self.broken:
            raise _Skip
        tensor = self.scope.get(name.text)
        if tensor is None:
            self._fail(
                "unknown-tensor",
                f"there is no tensor `{name}` above",
                name,
                suggest(name.text, self.scope),
            )
        return tensor

    def _result(self, name: ast.Ident, number: int) -> Tensor:
        tensor = self._tensor(name)
        node = self.results.get(name.text)
        if node is None:
            if number == 0:
                return tensor
            self._fail("result-count", f"`{name}` is one tensor", name)
        result = node.outputs[number] if number < len(node.outputs) else None
        if result is None:
            self._fail("result-count", f"`{name}` has {len(node.outputs)} results", name)
        self.scope.setdefault(result.name, result)
        return result

    def _attributes(self, arguments: Sequence[ast.AttributeArg]) -> dict[str, Attribute]:
        given: dict[str, Attribute] = {}
        for argument in arguments:
            name = argument.name.text
            if isinstance(argument.value, ast.Name) and argument.value.text == "absent":
                continue
            if isinstance(argument.value, ast.SetDomain | ast.RangeDomain | ast.NamedDomain):
                self._fail("pattern-form", "only a pattern leaves an attribute open", argument)
            value = _literal(argument.value)
            if value is None:
                self._fail("bad-attribute", f"`{name}` needs a value", argument)
            if name in given:
                self._fail("duplicate-attribute", f"`{name}` is given twice", argument)
            given[name] = value
        return given

    # --- types and values ------------------------------------------------------------------------

    def _type(self, expr: ast.TypeExpr) -> TensorType:
        dtype: str | None = None
        if isinstance(expr.dtype, ast.Name):
            dtype = expr.dtype.text
            if dtype not in DTYPES:
                self._fail(
                    "unknown-dtype", f"`{dtype}` is no dtype", expr.dtype, suggest(dtype, DTYPES)
                )
        if expr.shape is None:
            return TensorType(dtype, None)
        return TensorType(dtype, tuple(self._extent(dim) for dim in expr.shape))

    def _extent(self, dim: ast.Expr | ast.Splat) -> Extent:
        match dim:
            case ast.Number(int(value)) if value >= 0:
                return value
            case ast.Number():
                self._fail("bad-extent", "an extent is an integer, 0 or more", dim)
            case ast.Variable(name) | ast.Name(name) | ast.String(name):
                return name
            case ast.Wildcard():
                return None
            case _:
                self._fail("bad-extent", "an extent is a number, a name or `?`", dim)

    def _merge(self, inferred: TensorType, stated: TensorType, call: ast.Call) -> TensorType:
        """What the signature and the text say together. The text may know more, not otherwise."""
        dtype = stated.dtype or inferred.dtype
        shape = stated.shape if stated.shape is not None else inferred.shape
        fits = inferred.dtype in (None, dtype)
        if inferred.shape is not None and stated.shape is not None:
            fits &= len(inferred.shape) == len(stated.shape)
            for a, b in zip(inferred.shape, stated.shape, strict=False):
                fits &= a == b or not (isinstance(a, int) and isinstance(b, int))
        if not fits:
            self._fail(
                "type-mismatch", f"`{call.ops[0]}` gives {inferred} here, not {stated}", call
            )
        if inferred.shape is not None and stated.shape is not None:
            shape = tuple(
                a if b is None or (isinstance(a, int) and not isinstance(b, int)) else b
                for a, b in zip(inferred.shape, stated.shape, strict=True)
            )
        return TensorType(dtype, shape)

    def _constant(self, line: ast.InputLine, type_: TensorType) -> Array | None:
        elements = type_.elements
        if line.value is None or type_.dtype is None:
            return None
        if elements is None:
            self._fail("bad-constant", "a constant with a value needs a known shape", line)
        value = _literal(line.value)
        if value is None:
            self._fail("bad-constant", "a constant is a number, a word or a list of them", line)
        if elements > MAX_ELEMENTS or len(type_.shape or ()) > MAX_RANK:
            return None
        items = _flat(value)
        if isinstance(value, tuple) and len(items) != elements:
            self._fail("bad-constant", f"{len(items)} elements do not fill {type_}", line)
        if bad := [item for item in items if not _fits(item, type_.dtype)]:
            self._fail("bad-constant", f"{_scalar(bad[0])} is no {type_.dtype}", line)
        shape = [extent for extent in type_.shape or () if isinstance(extent, int)]
        with np.errstate(over="ignore"):  # a number too large for the type is an infinity
            data: Array = np.array(items, dtype=object).astype(numpy_dtype(type_.dtype))
        return (
            data.reshape(shape)
            if isinstance(value, tuple)
            else np.full(shape, data[0], dtype=data.dtype)
        )

    # --- names and problems ----------------------------------------------------------------------

    def _claim(self, name: ast.Ident) -> None:
        if name.text in self.scope or name.text in self.broken:
            self._fail("duplicate-name", f"`{name}` is already defined", name)

    def _fresh(self, stem: str) -> str:
        name = _unused(stem.rpartition(".")[2], self.taken)
        self.taken.add(name)
        return name

    def _fail(self, code: str, message: str, part: _Spanned, hint: str | None = None) -> NoReturn:
        self.problems.append(Diagnostic(code, message, part.span, hint))
        raise _Skip


def _literal(expr: ast.Expr) -> Attribute | None:
    """The value of a literal expression, lists as (possibly nested) tuples; None for anything
    else."""
    match expr:
        case ast.Number(value) | ast.Boolean(value) | ast.String(value) | ast.Name(value):
            return value
        case ast.Negate(ast.Number(value)):
            return -value
        case ast.ListExpr(items):
            values = tuple(_literal(item) for item in items)
            return None if None in values else values  # type: ignore[return-value]
        case _:
            return None


def _flat(value: Attribute) -> list[Scalar]:
    if not isinstance(value, tuple):
        return [value]
    return [scalar for item in value for scalar in _flat(item)]


def _fits(item: Scalar, dtype: str) -> bool:
    match DTYPES[dtype].kind:
        case "bool":
            return isinstance(item, bool)
        case "string":
            return isinstance(item, str)
        case "int" | "uint":
            signed = DTYPES[dtype].kind == "int"
            width = DTYPES[dtype].bits - signed
            low = -(1 << width) if signed else 0
            return isinstance(item, int) and not isinstance(item, bool) and low <= item < 1 << width
        case _:
            if isinstance(item, int) and not isinstance(item, bool):
                return abs(item) < 1 << 1023
            return isinstance(item, float)


# --- printing ----------------------------------------------------------------------------------


def print_uir(graph: Graph, *, limit: int | None = None) -> str:
    """``graph`` as a ``.uir`` program.

    Names that are no identifiers are replaced; sub-graphs of control flow, and the values of
    initializers that the caller may replace, are left out. With ``limit``, constants of more
    elements than that are printed without their values.
    """
    names = _printed_names(graph)
    lines = [
        f'opset("{domain or "ai.onnx"}", {version})' for domain, version in graph.opsets.items()
    ]
    for entity in graph.entities():
        if entity.body != 0:
            continue
        if isinstance(entity, Tensor):
            lines.append(_source_line(entity, names, limit))
        else:
            lines.append(_node_line(entity, names))
    read = {t for node in graph.nodes for t in node.inputs if t is not None}
    lines += [f"output {names[t]}" for t in graph.outputs if t in read or t.producer is None]
    return "\n".join(lines) + "\n" if lines else ""


def _source_line(tensor: Tensor, names: dict[Tensor, str], limit: int | None) -> str:
    text = f"{names[tensor]}: {_printed_type(tensor.type)}"
    if tensor.role is not Role.INITIALIZER:
        return text
    if tensor.overridable:
        return f"{text}  // an input with a value of its own, which is left out"
    value = tensor.value
    if value is None or (limit is not None and value.size > limit) or value.dtype.kind == "c":
        return f"const {text}"
    items = value.reshape(-1).tolist()
    uniform = len(items) > 1 and all(_scalar(item) == _scalar(items[0]) for item in items)
    if uniform or (items and not value.shape):
        return f"const {text} = {_scalar(items[0])}"
    return f"const {text} = [{', '.join(map(_scalar, items))}]"


def _node_line(node: Node, names: dict[Tensor, str]) -> str:
    targets = [
        "_" if output is None else f"{names[output]}: {_printed_type(output.type)}"
        for output in node.outputs
    ]
    arguments = ["none" if operand is None else names[operand] for operand in node.inputs]
    shown = (
        node.attributes
        if "." in node.op
        else {name: value for name, value in node.attributes.items() if name in node.given}
    )
    arguments += [f"{name}={_printed_value(value)}" for name, value in shown.items()]
    note = f"  // sub-graphs left out: {', '.join(node.bodies)}" if node.bodies else ""
    return f"{', '.join(targets)} = {node.op}({', '.join(arguments)}){note}"


def _printed_names(graph: Graph) -> dict[Tensor, str]:
    """A different identifier for every tensor: its own name where that is one."""
    names: dict[Tensor, str] = {}
    taken: set[str] = set()
    unfit = []
    for tensor in graph.tensors:
        fits = _IDENTIFIER.fullmatch(tensor.name) and tensor.name not in _KEYWORDS
        if fits and tensor.name not in taken:
            names[tensor] = tensor.name
            taken.add(tensor.name)
        else:
            unfit.append(tensor)
    for tensor in unfit:
        stem = re.sub(r"[^A-Za-z0-9]+", "_", tensor.name).strip("_").lower()
        name = _unused(stem if stem[:1].isalpha() else f"t_{stem}".rstrip("_"), taken)
        names[tensor] = name
        taken.add(name)
    return names


_IDENTIFIER = re.compile(r"[a-z][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"none", "via", "const", "output", "true", "false", "inf", "nan", "absent"})


def _unused(stem: str, taken: set[str]) -> str:
    if stem not in taken and stem not in _KEYWORDS:
        return stem
    number = 1
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _printed_type(type_: TensorType) -> str:
    if type_.shape is None:
        return f"{type_.dtype or 'T'}[...]"
    return f"{type_.dtype or 'T'}[{', '.join(map(_printed_extent, type_.shape))}]"


def _printed_extent(extent: Extent) -> str:
    if extent is None:
        return "?"
    if isinstance(extent, int) or re.fullmatch(r"[A-Z][A-Za-z0-9_]*", extent):
        return str(extent)
    return _quoted(extent)


def _printed_value(value: Attribute) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_printed_value, value)) + "]"
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value) and value not in _KEYWORDS:
        return value
    return _scalar(value)


def _scalar(item: object) -> str:
    match item:
        case bool():
            return "true" if item else "false"
        case str():
            return _quoted(item)
        case int():
            return str(item)
        case _:
            number = float(item)  # type: ignore[arg-type]
            if math.isfinite(number):
                text = repr(number)
                return text if "." in text or "e" in text else f"{text}.0"
            return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _problem(code: str, message: str, part: _Spanned) -> Diagnostic:
    return Diagnostic(code, message, part.span)
