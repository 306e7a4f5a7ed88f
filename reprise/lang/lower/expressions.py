"""Expressions of the language as core expressions, with the look-ups that they need."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from reprise.lang import ast, core
from reprise.lang.diagnostics import Span
from reprise.lang.dtypes import DTYPES
from reprise.lang.lower.auxiliary import Auxiliary, Ops
from reprise.lang.lower.choices import Choices
from reprise.lang.lower.variables import Variables
from reprise.lang.normal import disjuncts
from reprise.lang.symbols import (
    TENSOR_FIELDS,
    TENSOR_LISTS,
    Operator,
    Report,
    Symbols,
    suggest,
)

BUILTINS = {"bits": 1, "abs": 1, "min": 2, "max": 2, "len": 1}
"""Functions of the expression language and their least number of arguments."""

NUMERIC = frozenset({"int", "float", "any"})
SYMBOLIC = frozenset({"sym", "op", "dtype", "bool", "any", "list"})


@dataclass(slots=True)
class Scope:
    """Local names: nodes (with their possible operators), further outputs, outside tensors."""

    nodes: dict[str, core.Var] = field(default_factory=dict)
    ops: dict[str, Ops] = field(default_factory=dict)
    outputs: dict[str, tuple[str, int]] = field(default_factory=dict)
    tensors: dict[str, core.Var] = field(default_factory=dict)

    def copy(self) -> Scope:
        return Scope(dict(self.nodes), dict(self.ops), dict(self.outputs), dict(self.tensors))

    def __contains__(self, name: str) -> bool:
        return name in self.nodes or name in self.outputs or name in self.tensors

    def names(self) -> list[str]:
        return [*self.nodes, *self.outputs, *self.tensors]


@dataclass(slots=True)
class NodeSpec:
    """A node of the pattern after lowering: its variable, operators and operands' variables."""

    var: core.Var
    ops: Ops
    reads: list[core.Var] = field(default_factory=list)


class Expressions(ABC):
    """The conjunction under construction, and how expressions add to it."""

    def __init__(
        self,
        symbols: Symbols,
        report: Report,
        auxiliary: Auxiliary,
        owner: str,
        choices: Choices,
        variables: Variables,
    ) -> None:
        self.symbols = symbols
        self.report = report
        self.auxiliary = auxiliary
        self.owner = owner
        self.choices = choices
        self.variables = variables
        self.scope = Scope()
        self.literals: list[core.Literal] = []
        self.structural: list[bool] = []  # per literal: nodes and flow, or a condition
        self.specs: list[NodeSpec] = []
        self._in_structure = False
        self._found: dict[tuple[object, ...], core.Var] = {}
        self._late: list[tuple[ast.Exists, Span]] = []
        self._types: dict[str, str] = {}
        self._renamed: dict[str, str] = {}
        self._counter = itertools.count(1)

    def fresh(self, stem: str = "_") -> core.Var:
        """A variable that nothing else uses."""
        return core.Var(self._unused(stem))

    def _unused(self, stem: str, end: str = "") -> str:
        """``stem``, a number and ``end``, as no variable is written in the declaration."""
        while (name := f"{stem}{next(self._counter)}{end}") in self.variables.written:
            pass
        return name

    def emit(self, literal: core.Literal, structural: bool | None = None) -> None:
        """Add a literal; ``structural`` overrides what is being lowered just now."""
        self.literals.append(literal)
        self.structural.append(self._in_structure if structural is None else structural)

    def lookup(self, relation: str, key: Sequence[core.Expr], stem: str, span: Span) -> core.Var:
        """The value of a keyed relation, looked up once however often it is read."""
        found = self._found.get((relation, *key))
        if found is None:
            found = self.fresh(stem)
            self._found[(relation, *key)] = found
            self.emit(core.Atom(relation, (*[self.flat(k) for k in key], found), span=span))
        return found

    def flat(self, expr: core.Expr, span: Span | None = None) -> core.Expr:
        """``expr`` as a term: an arithmetic expression gets a variable of its own."""
        if not isinstance(expr, core.Arith):
            return expr
        var = self._found.get(("=", expr))
        if var is None:
            var = self._found[("=", expr)] = self.fresh("E")
            self.emit(core.Compare("==", var, expr, span))
        return var

    def node_of(self, name: str) -> core.Var | None:
        """The node variable of a local name (the producer, for one of its further outputs)."""
        if name in self.scope.outputs:
            name = self.scope.outputs[name][0]
        return self.scope.nodes.get(name)

    def tensor_of(self, name: str, span: Span, output: int | None = None) -> core.Var:
        """The tensor variable of a local name: an outside tensor, or an output of its node."""
        if name in self.scope.tensors:
            if output:
                self.report.error(
                    "not-a-node", f"`{name}` is a tensor, not a node: it has no outputs", span
                )
            return self.scope.tensors[name]
        index = 0
        if name in self.scope.outputs:
            name, index = self.scope.outputs[name]
        node = self.scope.nodes[name]
        index = index if output is None else output
        key = ("output", node, core.Const(index))
        stem = f"T_{name}" if index == 0 else f"T_{index}_{name}"  # names begin with letters
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = core.Var(stem)
            self.emit(core.Atom("output", (node, core.Const(index), found), span=span), True)
        return found

    def _variable(self, variable: ast.Variable) -> core.Var:
        """A value variable; one that lives only inside an aggregate or sub-pattern is renamed."""
        if variable.name in self.variables.shared:
            return core.Var(variable.name)
        if variable.name not in self._renamed:
            self._renamed[variable.name] = self._unused(
                f"{variable.name}x", f"_{len(self._renamed)}"
            )
        return core.Var(self._renamed[variable.name])

    def _note_type(self, variable: ast.Variable, kind: str) -> None:
        if kind != "any":
            self._types.setdefault(variable.name, kind)

    def expr(self, expr: ast.Expr, expected: str = "any") -> tuple[core.Expr, str]:
        """Lower an expression; returns it with its type (a scalar, ``list``, or an entity sort).

        ``expected`` helps to resolve a bare name: ``x.dtype == float32``.
        """
        match expr:
            case ast.Variable(name):
                return self._variable(expr), self._types.get(name, "any")
            case ast.Wildcard():
                return self.fresh(), "any"
            case ast.Number(value):
                return core.Const(value), "float" if isinstance(value, float) else "int"
            case ast.String(value):
                return core.Const(value), "sym"
            case ast.Boolean(value):
                return core.Const("true" if value else "false"), "bool"
            case ast.Name():
                return self._name(expr, expected)
            case ast.Member():
                return self._member(expr)
            case ast.Index():
                return self._index(expr)
            case ast.CallExpr():
                return self._function(expr)
            case ast.Binary(op, left, right):
                args = tuple(self._number(side) for side in (left, right))
                return core.Arith(op, args), "int"
            case ast.Negate(operand):
                return core.Arith("neg", (self._number(operand),)), "int"
            case ast.ListExpr():
                if not constant_list(expr):
                    self.report.error(
                        "bad-list", "a list compared as a whole holds constants only", expr.span
                    )
                return core.Const(list_text(expr)), "list"
            case ast.AggregateExpr():
                return self._aggregate(expr), "int"

    def _number(self, expr: ast.Expr) -> core.Expr:
        lowered, kind = self.expr(expr)
        if kind not in NUMERIC:
            self.report.error(
                "type-mismatch", f"arithmetic needs a number, this is a {noun(kind)}", expr.span
            )
        return lowered

    def _name(self, name: ast.Name, expected: str) -> tuple[core.Expr, str]:
        text = name.text
        if text in self.scope:
            if expected == "node":
                node = self.node_of(text)
                if node is None:
                    self.report.error(
                        "type-mismatch", f"`{text}` is a tensor; a node is needed here", name.span
                    )
                return node or core.Const(0), "node"
            return self.tensor_of(text, name.span), "tensor"
        if expected == "word":
            return core.Const(text), "word"
        kind = self.symbols.kind_of_symbol(text)
        wanted = {"dtype": "dtype", "op": "op"}.get(expected)
        if kind is not None and (wanted is None or kind == wanted):
            return core.Const(text), {"dtype": "dtype", "op": "op"}.get(kind, "sym")
        if wanted is not None:
            known: list[str] = list(DTYPES) if wanted == "dtype" else list(self.symbols.operators)
            message = f"no {'dtype' if wanted == 'dtype' else 'operator'} is called `{text}`"
            self.report.error("unknown-name", message, name.span, suggest(text, known))
        else:
            known = [*self.scope.names(), *self.symbols.known_symbols(), *self.symbols.sets]
            self.report.error(
                "unknown-name",
                f"`{text}` is no node or tensor here, nor an operator, dtype or set",
                name.span,
                suggest(text, known) or f'write "{text}" if you mean the symbol itself',
            )
        return core.Const(text), expected

    def _subject(self, base: ast.Expr) -> tuple[core.Expr | None, core.Expr | None, Ops | None]:
        """The (tensor, node, operators) that a member access may read from; lazily, as needed."""
        match base:
            case ast.Name(text) if text in self.scope:
                owner = self.scope.outputs.get(text, (text, 0))[0]
                return None, self.node_of(text), self.scope.ops.get(owner)
            case ast.Variable():
                var = self._variable(base)
                return var, var, None
            case _:
                return None, None, None

    def _tensor(self, base: ast.Expr) -> core.Expr | None:
        if isinstance(base, ast.Name) and base.text in self.scope:
            return self.tensor_of(base.text, base.span)
        if isinstance(base, ast.Variable):
            return self._variable(base)
        return None

    def _unknown_base(self, base: ast.Expr) -> tuple[core.Expr, str]:
        text = base.text if isinstance(base, ast.Name) else "this"
        self.report.error(
            "unknown-name",
            f"`{text}` is no node or tensor here",
            base.span,
            suggest(text, self.scope.names()) or "define it by a line, or use it as an operand",
        )
        return core.Const(0), "any"

    def _member(self, expr: ast.Member) -> tuple[core.Expr, str]:
        field_name = expr.name.text
        base = expr.base
        if isinstance(base, ast.Member) and base.name.text == "attr":
            return self._attribute_value(base.base, expr.name, expr.span)
        if field_name in TENSOR_FIELDS or field_name == "bytes":
            tensor = self._tensor(base)
            if tensor is None:
                return self._unknown_base(base)
            if field_name == "bytes":
                count = self.lookup("elems", (tensor,), "E", expr.span)
                dtype = self.lookup("dtype", (tensor,), "D", expr.span)
                width = core.Arith("bits", (dtype,))
                return core.Arith("/", (core.Arith("*", (count, width)), core.Const(8))), "int"
            relation, kind = TENSOR_FIELDS[field_name]
            return self.lookup(relation, (tensor,), field_name[0].upper(), expr.span), kind
        if field_name in TENSOR_LISTS:
            self.report.error(
                "missing-index",
                f"`.{field_name}` needs a position",
                expr.span,
                f"write `.{field_name}[0]`",
            )
            return core.Const(0), "int"
        return self._attribute_value(base, expr.name, expr.span)

    def _attribute_value(
        self, base: ast.Expr, name: ast.Ident, span: Span
    ) -> tuple[core.Expr, str]:
        _, node, ops = self._subject(base)
        if node is None:
            if isinstance(base, ast.Name) and base.text in self.scope:
                known = [*TENSOR_FIELDS, *TENSOR_LISTS, "bytes"]
                self.report.error(
                    "unknown-field",
                    f"`{base.text}` is a tensor: it has no `{name.text}`",
                    name.span,
                    suggest(name.text, known) or f"tensors have: {', '.join(known)}",
                )
                return core.Const(0), "any"
            return self._unknown_base(base)
        kind = "any" if ops is None else self._attribute_type(ops, name.text, name.span)
        value = self.lookup("attr", (node, core.Const(name.text)), "A", span)
        return value, "list" if kind in ("ints", "floats", "syms") else plain(kind)

    def _index(self, expr: ast.Index) -> tuple[core.Expr, str]:
        base = expr.base
        if not isinstance(base, ast.Member):
            self.report.error("bad-index", "only fields such as `x.dim` have positions", expr.span)
            return core.Const(0), "any"
        field_name = base.name.text
        if field_name in TENSOR_LISTS:
            tensor = self._tensor(base.base)
            if tensor is None:
                return self._unknown_base(base.base)
            index = self._number(expr.index)
            if isinstance(index, core.Const) and isinstance(index.value, int) and index.value < 0:
                counted = "rank" if field_name == "dim" else "elems"
                size = self.lookup(counted, (tensor,), "R", expr.span)
                index = core.Arith("-", (size, core.Const(-index.value)))
            kind = "int" if field_name == "dim" else "any"
            return self.lookup(TENSOR_LISTS[field_name], (tensor, index), "D", expr.span), kind
        owner = base.base
        if isinstance(owner, ast.Member) and owner.name.text == "attr":
            owner = owner.base
        _, node, ops = self._subject(owner)
        if node is None:
            return self._unknown_base(owner)
        if ops is not None:
            self._attribute_type(ops, field_name, base.name.span)
        name = core.Const(field_name)
        index = self._number(expr.index)
        if isinstance(index, core.Const) and isinstance(index.value, int) and index.value < 0:
            size = self.lookup("attr_len", (node, name), "L", expr.span)
            index = core.Arith("-", (size, core.Const(-index.value)))
        return self.lookup("attr_at", (node, name, index), "A", expr.span), "any"

    def _function(self, call: ast.CallExpr) -> tuple[core.Expr, str]:
        name = call.function.text
        if name in BUILTINS:
            if len(call.args) < BUILTINS[name] or (
                name in ("bits", "abs", "len") and len(call.args) != 1
            ):
                self.report.error(
                    "wrong-arity", f"`{name}` takes {BUILTINS[name]} argument(s)", call.span
                )
                return core.Const(0), "int"
            if name == "len":
                return self._length(call)
            if name == "bits":
                return core.Arith("bits", (self.expr(call.args[0], "dtype")[0],)), "int"
            return core.Arith(name, tuple(self._number(a) for a in call.args)), "int"
        relation = self.symbols.relations.get(name)
        if relation is None:
            known = [*BUILTINS, *self.symbols.relations]
            self.report.error(
                "unknown-function",
                f"`{name}` is no function, nor a keyed relation",
                call.function.span,
                suggest(name, known),
            )
            return core.Const(0), "any"
        keys = [c for c in relation.columns if c.key]
        if len(keys) != relation.arity - 1 or len(call.args) != len(keys):
            self.report.error(
                "wrong-arity",
                f"`{name}` is used as a function of {len(call.args)} argument(s); "
                f"it has {len(keys)} key column(s) of {relation.arity}",
                call.span,
            )
            return core.Const(0), "any"
        types = self.symbols.column_types.get(name, tuple(c.type for c in relation.columns))
        args = [self.term(a, t) for a, t in zip(call.args, types, strict=False)]
        return self.lookup(name, args, "V", call.span), types[-1]

    def _length(self, call: ast.CallExpr) -> tuple[core.Expr, str]:
        (argument,) = call.args
        if not isinstance(argument, ast.Member):
            self.report.error(
                "type-mismatch", "`len` takes a list attribute: `len(s.perm)`", call.span
            )
            return core.Const(0), "int"
        base = argument.base
        if isinstance(base, ast.Member) and base.name.text == "attr":
            base = base.base
        _, node, ops = self._subject(base)
        if node is None:
            return self._unknown_base(base)
        if ops is not None:
            self._attribute_type(ops, argument.name.text, argument.name.span)
        return self.lookup(
            "attr_len", (node, core.Const(argument.name.text)), "L", call.span
        ), "int"

    def term(self, expr: ast.Expr, expected: str) -> core.Expr:
        """An argument of an atom whose column has type ``expected``, as a term."""
        if isinstance(expr, ast.Variable):
            self._note_type(expr, expected)
            return self._variable(expr)
        if isinstance(expr, ast.Wildcard):
            return self.fresh()
        lowered, kind = self.expr(expr, expected)
        fits = kind == expected or "any" in (kind, expected)
        fits = fits or (expected == "float" and kind == "int")
        fits = fits or (expected in ("sym", "word") and kind in SYMBOLIC)
        fits = fits or (expected in ("op", "dtype", "bool") and kind == "sym")
        if not fits:
            self.report.error(
                "type-mismatch",
                f"expected {article(expected)}, this is {article(kind)}",
                expr.span,
            )
        if (
            expected == "float"
            and isinstance(lowered, core.Const)
            and isinstance(lowered.value, int)
        ):
            lowered = core.Const(float(lowered.value))
        return self.flat(lowered, expr.span)

    def _aggregate(self, aggregate: ast.AggregateExpr) -> core.Expr:
        inner = self._inner()
        ways = disjuncts(aggregate.body)
        if len(ways) != 1:
            self.report.error(
                "or-in-aggregate",
                "an aggregate's body holds no `or`",
                aggregate.span,
                "give the alternatives a relation of their own",
            )
        inner.conjunction(ways[0])
        value = None if aggregate.value is None else inner.expr(aggregate.value)[0]
        inner.finish()
        if value is None and aggregate.kind != "count":
            self.report.error(
                "missing-value",
                f"`{aggregate.kind}` needs a value: `{aggregate.kind}{{ N : … }}`",
                aggregate.span,
            )
            value = core.Const(0)
        result = self.fresh("K")
        self.emit(
            core.Aggregate(result, aggregate.kind, value, tuple(inner.literals), aggregate.span)
        )
        return result

    @abstractmethod
    def conjunction(self, conditions: Sequence[ast.Condition]) -> None:
        """Add conditions that are already literals (see ``reprise.lang.normal``)."""

    @abstractmethod
    def finish(self) -> None:
        """Add what needs the whole conjunction first."""

    def _inner(self) -> Self:
        """A body inside this one: it sees the names, and shares the variables, of this one."""
        inner = type(self)(
            self.symbols, self.report, self.auxiliary, self.owner, self.choices, self.variables
        )
        inner.scope = self.scope.copy()
        inner._counter = self._counter
        inner._types = self._types
        inner._renamed = dict(self._renamed)
        return inner

    def _attribute_type(self, ops: Ops, name: str, span: Span) -> str:
        """The declared type of an attribute; ``any`` if the operators are not all known."""
        signatures = self._signatures(ops)
        if ops.any or len(signatures) < len(ops.values) or not signatures:
            return "any"
        types = {s.attributes[name] for s in signatures if name in s.attributes}
        if not types:
            known = {a for s in signatures for a in s.attributes}
            self.report.error(
                "unknown-attribute",
                f"`{signatures[0].name}` has no attribute `{name}`",
                span,
                suggest(name, known)
                or (f"it has: {', '.join(sorted(known))}" if known else "it has no attributes"),
            )
        return types.pop() if len(types) == 1 else "any"

    def _signatures(self, ops: Ops) -> list[Operator]:
        known = self.symbols.operators
        return [known[op] for op in ops.values if isinstance(op, str) and op in known]

    def _comparable(self, a: str, b: str, op: str, span: Span, what: str) -> None:
        order = op not in ("==", "!=")
        numbers = a in NUMERIC and b in NUMERIC
        symbols = a in SYMBOLIC and b in SYMBOLIC
        same_sort = a == b or "any" in (a, b)
        if numbers or (not order and (symbols or same_sort)):
            pair = {a, b}
            if "dtype" in pair and pair & {"op", "bool", "list"}:
                self.report.error("type-mismatch", f"a {noun(a)} is never a {noun(b)}", span)
            return
        if order:
            self.report.error(
                "type-mismatch", f"`{op}` compares numbers, not {article(a)} and {article(b)}", span
            )
        else:
            self.report.error(
                "type-mismatch", f"{what} is {article(a)}, which never equals {article(b)}", span
            )


def list_text(expr: ast.ListExpr) -> str:
    """A list attribute as the facts spell it: ``[1, 0]``."""
    return "[" + ", ".join(_item_text(i) for i in expr.items) + "]"


def _item_text(item: ast.Expr) -> str:
    match item:
        case ast.Number(value):
            return str(value)
        case ast.String(value):
            return value
        case ast.Boolean(value):
            return "true" if value else "false"
        case ast.Name(text):
            return text
        case _:
            return "?"


def constant_list(expr: ast.ListExpr) -> bool:
    """Whether every item is a constant, so that the list can be compared as a whole."""
    return all(isinstance(i, ast.Number | ast.String | ast.Boolean | ast.Name) for i in expr.items)


def plain(kind: str) -> str:
    """An attribute's declared type as an expression type: every list is a ``list``."""
    return {"ints": "list", "floats": "list", "syms": "list"}.get(kind, kind)


def noun(kind: str) -> str:
    """A type, for messages."""
    return {
        "int": "number",
        "float": "number",
        "sym": "symbol",
        "op": "operator",
        "any": "value",
        "bool": "boolean",
    }.get(kind, kind)


def article(kind: str) -> str:
    """A type with its article, for messages."""
    word = noun(kind)
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
