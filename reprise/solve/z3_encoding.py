"""A signature as constraints over z3 terms: what it asks of operands, attributes and results.

Comes in: a plan, operand types whose extents (and element types) are numbers or terms, attributes
whose numbers may be terms. Goes out: an :class:`Encoding`: constraints, each with the text and the
place of the rule that it comes from, and the result types over the same terms. It follows the plan
step by step as :mod:`reprise.solve.interpret` does; where that raises, a constraint is false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from reprise.lang import ast
from reprise.lang.diagnostics import Span
from reprise.lang.format import show
from reprise.solve.interpret import as_attribute
from reprise.solve.plan import (
    AttributePlan,
    Check,
    CheckDim,
    Define,
    Normalise,
    Plan,
    TakeAttribute,
)
from reprise.solve.reading import Absent, Scope, belongs, evaluate, holds
from reprise.solve.shapes import ShapeError
from reprise.solve.z3_reading import NeedsValue, Symbolic, first_term, is_open
from reprise.uir.graph import TensorType

_MEANINGLESS = (ShapeError, IndexError, ZeroDivisionError)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Something that must hold: a z3 term, or what is already decided; and where it is written."""

    truth: Any
    text: str
    span: Span | None


@dataclass(slots=True)
class Encoding:
    """The constraints of an application, and its results over the same terms."""

    constraints: list[Constraint] = field(default_factory=list)
    results: list[TensorType] = field(default_factory=list)


def encode(
    plan: Plan,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Any],
    reading: Symbolic,
) -> Encoding:
    """Raises NeedsValue and Unread (see :mod:`reprise.solve.z3_reading`)."""
    return _Encoder(plan, operands, attributes, reading).run()


class _Encoder:
    def __init__(
        self,
        plan: Plan,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Any],
        reading: Symbolic,
    ) -> None:
        self.plan = plan
        self.operands = operands
        self.attributes = attributes
        self.reading = reading
        self.scope = Scope({}, {}, plan.sets, plan.symbols)
        self.found = Encoding()

    def run(self) -> Encoding:
        self._bind_operands()
        for step in self.plan.steps:
            match step:
                case TakeAttribute(attribute):
                    self._take(attribute)
                case Normalise():
                    self._normalise(step)
                case Define(variable, expr):
                    text = f"{variable} == {show(expr)}"
                    value = self._value(expr, text, expr.span)
                    if value is not _NOTHING:
                        self.scope.variables[variable] = self._named(variable, value, text, expr)
                case Check(condition, doubtful):
                    if not any(map(self._is_absent, doubtful)):
                        self._check(condition)
                case CheckDim():
                    self._check_dim(step)
        self._results()
        return self.found

    def _require(self, truth: Any, text: str, span: Span | None) -> None:
        for demand in self.reading.taken():
            self.found.constraints.append(Constraint(demand, text, span))
        if truth is not True:
            self.found.constraints.append(Constraint(truth, text, span))

    def _value(self, expr: ast.Expr, text: str, span: Span | None) -> Any:
        """The value of an expression; nothing if it is void or (with a false constraint) has
        none."""
        try:
            value = evaluate(expr, self.scope, self.reading)
        except Absent:
            return _NOTHING
        except _MEANINGLESS:
            self._require(False, text, span)
            return _NOTHING
        self._require(True, text, span)
        return value

    def _named(self, name: str, value: Any, text: str, expr: ast.Expr) -> Any:
        """A term of its own for what is defined, so that a clash can name the definition."""
        if isinstance(value, tuple):
            return tuple(
                self._named(f"{name}.{i}", item, text, expr) for i, item in enumerate(value)
            )
        if not is_open(value):
            return value
        term = z3.Int(f"defined {name}", self.reading.context)
        self._require(term == value, text, expr.span)
        return term

    # --- operands --------------------------------------------------------------------------------

    def _bind_operands(self) -> None:
        params = self.plan.decl.params
        for optional in (False, True):
            for number, port in enumerate(params):
                if port.optional is not optional:
                    continue
                if port.variadic:
                    self._bind_variadic(port, [o for o in self.operands[number:] if o is not None])
                    continue
                operand = self.operands[number] if number < len(self.operands) else None
                self.scope.operands[port.name.text] = operand
                if operand is not None:
                    self._bind_dtype(port, operand.dtype)
                    self._bind_shape(port, operand.shape or ())

    def _bind_variadic(self, port: ast.Param, present: Sequence[TensorType]) -> None:
        self.scope.operands[port.name.text] = present[0] if present else None
        for operand in present:
            self._bind_dtype(port, operand.dtype)
        (splat,) = port.type.shape or ()
        assert isinstance(splat, ast.Splat) and isinstance(splat.expr, ast.Variable)
        self.scope.variables[splat.expr.name] = tuple(operand.shape for operand in present)

    def _bind_dtype(self, port: ast.Param, dtype: Any) -> None:
        wanted = port.type.dtype
        text = f"{port.name}: {show(wanted)}"
        if isinstance(wanted, ast.Variable):
            bound = self.scope.variables.setdefault(wanted.name, dtype)
            if bound is not dtype:
                self._require(self.reading.compare("==", bound, dtype, True), text, port.span)
        else:
            self._require(self.reading.compare("==", dtype, wanted.text, True), text, port.span)

    def _bind_shape(self, port: ast.Param, shape: tuple[Any, ...]) -> None:
        dims = port.type.shape
        if dims is None:
            return
        splat = next((i for i, d in enumerate(dims) if isinstance(d, ast.Splat)), None)
        least = len(dims) - (splat is not None)
        text = f"{port.name}: {show(port.type)}"
        if len(shape) < least or (splat is None and len(shape) != least):
            self._require(False, text, port.span)
            return
        tail = len(shape) - (len(dims) - (splat or 0) - 1)
        items: list[Any] = list(shape)
        if splat is not None:
            items = [*shape[:splat], shape[splat:tail], *shape[tail:]]
        for dim, item in zip(dims, items, strict=True):
            match dim:
                case ast.Variable(name) | ast.Splat(ast.Variable(name)):
                    bound = self.scope.variables.setdefault(name, item)
                    if bound is not item:
                        same = self.reading.compare("==", bound, item, False)
                        self._require(same, text, port.span)
                case ast.Number(wanted):
                    same = self.reading.compare("==", item, wanted, False)
                    self._require(same, text, port.span)
                case _:
                    pass

    # --- attributes ------------------------------------------------------------------------------

    def _take(self, attribute: AttributePlan) -> None:
        variables, name = self.scope.variables, attribute.variable
        decl = next(a for a in self.plan.decl.attributes if a.name.text == attribute.name)
        text = f"attribute {attribute.name}"
        value = self.attributes.get(attribute.name)
        if value is not None and not is_open(value):
            value = as_attribute(attribute.type, value)
            if value is None:
                return self._require(False, text, decl.span)
        bound = variables.get(name)
        if value is None:
            value = bound
            if value is None and attribute.default is None:
                return self._require(False, text, decl.span)
            if value is None and not attribute.optional:
                assert attribute.default is not None
                value = self._value(attribute.default, text, decl.span)
                if value is _NOTHING:
                    return None
                if attribute.type == "float" and isinstance(value, int):
                    value = float(value)
            if value is None:
                return None
        elif bound is not None:
            symbol = name in self.plan.symbols
            self._require(self.reading.compare("==", value, bound, symbol), text, decl.span)
        variables[name] = value
        if attribute.domain is not None:
            symbol = name in self.plan.symbols
            inside = belongs(value, attribute.domain, self.scope, self.reading, symbol)
            text = f"{attribute.name} in {show(attribute.domain)}"
            self._require(inside, text, decl.span)
        return None

    def _normalise(self, step: Normalise) -> None:
        value = self.scope.variables.get(step.variable)
        condition = next(
            c
            for c in self.plan.decl.where
            for c in _conjuncts(c)
            if isinstance(c, ast.AtomCond)
            and c.relation.text == step.word
            and c.args[0] == ast.Variable(step.variable)
        )
        text, span = show(condition), condition.span
        if value is None:
            return
        if is_open(value):
            raise NeedsValue(first_term(value))
        rank = self._value(step.rank, text, span)
        if rank is _NOTHING or rank is None:
            return
        single = step.word in ("axis", "axis_or_end")
        axes = (value,) if single else value
        if any(not -rank <= a < rank + (step.word == "axis_or_end") for a in axes):
            return self._require(False, text, span)
        resolved = tuple(a + rank if a < 0 else a for a in axes)
        self._require(len(set(resolved)) == len(resolved), text, span)
        if step.word == "axis_set":
            resolved = tuple(sorted(resolved))
        self.scope.variables[step.variable] = resolved[0] if single else resolved

    # --- conditions and results ------------------------------------------------------------------

    def _check(self, condition: ast.Condition) -> None:
        try:
            truth = holds(condition, self.scope, self.reading)
        except Absent:
            self.reading.taken()
            return
        except _MEANINGLESS:
            truth = False
        self._require(truth, show(condition), condition.span)

    def _is_absent(self, name: str) -> bool:
        if name in self.scope.operands:
            return self.scope.operands[name] is None
        return name not in self.scope.variables

    def _check_dim(self, step: CheckDim) -> None:
        port = self.plan.decl.params[step.port]
        operand = self.scope.operands[port.name.text]
        if operand is None or operand.shape is None or any(map(self._is_absent, step.doubtful)):
            return
        text = f"{port.name}: {show(port.type)}"
        wanted = self._value(step.expr, text, port.span)
        if wanted is _NOTHING or not -len(operand.shape) <= step.index < len(operand.shape):
            return
        same = self.reading.compare("==", operand.shape[step.index], wanted, False)
        self._require(same, text, port.span)

    def _results(self) -> None:
        for _, type_ in self.plan.decl.results:
            dtype: Any = type_.dtype
            dtype = (
                dtype.text if isinstance(dtype, ast.Name) else self.scope.variables.get(dtype.name)
            )
            if "many_results" in self.plan.flags:
                (splat,) = type_.shape or ()
                assert isinstance(splat, ast.Splat)
                shapes = self._value(splat.expr, f"-> {show(type_)}", type_.span)
                if shapes is not _NOTHING:
                    self.found.results = [TensorType(dtype, shape) for shape in shapes]
                return
            self.found.results.append(TensorType(dtype, self._result_shape(type_)))

    def _result_shape(self, type_: ast.TypeExpr) -> tuple[Any, ...] | None:
        if type_.shape is None:  # left open: whatever shape it is
            return None
        text = f"-> {show(type_)}"
        shape: list[Any] = []
        for dim in type_.shape:
            if isinstance(dim, ast.Splat):
                value = self._value(dim.expr, text, type_.span)
                shape += () if value is _NOTHING or value is None else value
                continue
            value = self._value(dim, text, type_.span)
            shape.append(None if value is _NOTHING else value)
        for extent in shape:
            if extent is not None:
                self._require(self.reading.compare(">=", extent, 0, False), text, type_.span)
        return tuple(shape)


class _Nothing:
    """No value: what was asked for is void, or has none."""


_NOTHING: Any = _Nothing()


def _conjuncts(condition: ast.Condition) -> Sequence[ast.Condition]:
    if isinstance(condition, ast.And):
        return [part for c in condition.parts for part in _conjuncts(c)]
    return [condition]
