"""Evaluate a signature step by step, with whatever is known, and say what is wrong in words.

Comes in: a :class:`~reprise.solve.plan.Plan`, operand types and attributes. Goes out: a
:class:`~reprise.uir.inference.Typing` or a :class:`~reprise.uir.inference.SignatureError`. An
extent that does not follow from what is known comes out unknown, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.lang.format import show
from reprise.lang.symbols import suggest
from reprise.solve.arithmetic import Value, same
from reprise.solve.plan import (
    AttributePlan,
    Check,
    CheckDim,
    Define,
    Normalise,
    Plan,
    TakeAttribute,
    variables,
)
from reprise.solve.reading import NATIVE, Absent, Scope, belongs, evaluate, holds
from reprise.solve.shapes import ShapeError
from reprise.solve.spelling import spell
from reprise.uir.graph import Attribute, Extent, TensorType
from reprise.uir.inference import SignatureError, Typing

Operands = Sequence[TensorType | None]


def interpret(plan: Plan, operands: Operands, given: Mapping[str, Attribute]) -> Typing:
    """Apply the signature. ``operands``: one entry a declared port, None where absent, and any
    number for a last, variadic port. Raises SignatureError."""
    return _Interpreter(plan, operands, given).run()


class _Interpreter:
    def __init__(self, plan: Plan, operands: Operands, given: Mapping[str, Attribute]) -> None:
        self.plan = plan
        self.given = dict(given)
        self.attributes: dict[str, Attribute] = {}
        self.certain = True
        self.operands = operands
        self.scope = Scope({}, {}, plan.sets, plan.symbols)

    def run(self) -> Typing:
        if "untyped" in self.plan.flags:
            return Typing([], self.given, False)
        self._reject_unknown_attributes()
        self._bind_operands()
        for step in self.plan.steps:
            match step:
                case TakeAttribute(attribute):
                    self._take(attribute)
                case Normalise():
                    self._normalise(step)
                case Define(variable, expr):
                    self._define(variable, expr)
                case Check(condition, doubtful):
                    if not any(map(self._is_absent, doubtful)):
                        self._check(condition)
                case CheckDim():
                    self._check_dim(step)
        return Typing(self._results(), self.attributes, self.certain)

    # --- operands ------------------------------------------------------------------------------

    def _bind_operands(self) -> None:
        params = self.plan.decl.params
        for optional in (False, True):
            for number, port in enumerate(params):
                if port.optional is not optional:
                    continue
                if port.variadic:
                    self._bind_variadic(port, self.operands[number:])
                    continue
                operand = self.operands[number] if number < len(self.operands) else None
                self.scope.operands[port.name.text] = operand
                if operand is not None:
                    self._bind_dtype(port, operand)
                    self._bind_shape(port, operand.shape)

    def _bind_variadic(self, port: ast.Param, operands: Operands) -> None:
        present = [operand for operand in operands if operand is not None]
        self.scope.operands[port.name.text] = present[0] if present else None
        for operand in present:
            self._bind_dtype(port, operand)
        (splat,) = port.type.shape or ()
        assert isinstance(splat, ast.Splat) and isinstance(splat.expr, ast.Variable)
        self.scope.variables[splat.expr.name] = tuple(operand.shape for operand in present)

    def _bind_dtype(self, port: ast.Param, operand: TensorType) -> None:
        wanted = port.type.dtype
        if isinstance(wanted, ast.Variable):
            bound = self.scope.variables.get(wanted.name)
            if bound is None:
                self.scope.variables[wanted.name] = operand.dtype
            elif operand.dtype is not None and operand.dtype != bound:
                raise self._error(
                    "dtype",
                    f"element types {bound} and {operand.dtype} differ ({wanted.name})",
                    port.name.text,
                )
        elif operand.dtype is None:
            self.certain = False
        elif operand.dtype != wanted.text:
            raise self._error(
                "dtype",
                f"`{port.name}` must be {wanted.text}, not {operand.dtype}",
                port.name.text,
            )

    def _bind_shape(self, port: ast.Param, shape: tuple[Extent, ...] | None) -> None:
        dims = port.type.shape
        if dims is None:
            return
        splat = next((i for i, d in enumerate(dims) if isinstance(d, ast.Splat)), None)
        if shape is None:
            self.certain = self.certain and len(dims) == 1 and splat == 0
            for dim in dims:
                self._bind_dim(dim, None, port)
            return
        least = len(dims) - (splat is not None)
        if len(shape) < least or (splat is None and len(shape) != least):
            bound = f"{least} or more" if splat is not None else str(least)
            raise self._error(
                "rank", f"`{port.name}` must have rank {bound}, not {len(shape)}", port.name.text
            )
        if splat is None:
            items: list[Any] = list(shape)
        else:
            tail = len(shape) - (len(dims) - splat - 1)
            items = [*shape[:splat], shape[splat:tail], *shape[tail:]]
        for dim, item in zip(dims, items, strict=True):
            self._bind_dim(dim, item, port)

    def _bind_dim(self, dim: ast.Expr | ast.Splat, value: Value, port: ast.Param) -> None:
        match dim:
            case ast.Variable(name) | ast.Splat(ast.Variable(name)):
                self._unify(name, value, port)
            case ast.Number(wanted):
                self._agree(value, wanted, str(wanted), port)
            case _:
                pass

    def _unify(self, name: str, value: Value, port: ast.Param) -> None:
        variables = self.scope.variables
        if name not in variables:
            variables[name] = value
            return
        bound = variables[name]
        self._agree(bound, value, name, port)
        variables[name] = _refine(bound, value)

    def _agree(self, bound: Value, value: Value, name: str, port: ast.Param) -> None:
        match same(bound, value):
            case False:
                what = "shapes" if isinstance(value, tuple) else "extents"
                message = f"{what} {spell(bound)} and {spell(value)} differ ({name})"
                raise self._error("extent", message, port.name.text)
            case None:
                self.certain = False

    # --- attributes ----------------------------------------------------------------------------

    def _reject_unknown_attributes(self) -> None:
        known = [a.name for a in self.plan.attributes]
        known += [a.short for a in self.plan.attributes if a.short is not None]
        for name in self.given:
            if name not in known:
                raise self._error(
                    "unknown-attribute",
                    f"there is no attribute `{name}`",
                    name,
                    suggest(name, known),
                )

    def _take(self, attribute: AttributePlan) -> None:
        value = self._given(attribute)
        variables = self.scope.variables
        if self.scope.operands.get(attribute.name) is not None:
            if value is not None:
                raise self._error(
                    "attribute-conflict",
                    f"`{attribute.name}` is given twice: as an operand and as an attribute",
                    attribute.name,
                )
            variables[attribute.variable] = None  # known only at run time
            self.certain = False
            return
        bound = variables.get(attribute.variable)
        if value is None and attribute.variable in variables:
            value = bound
        elif value is None:
            if attribute.optional:
                return
            if attribute.default is None:
                raise self._error(
                    "missing-attribute", f"attribute `{attribute.name}` is required", attribute.name
                )
            value = self._default(attribute)
        elif bound is not None:
            self._confirm(attribute, value, bound)
        variables[attribute.variable] = value
        if value is not None:
            self._check_domain(attribute, value)
            self._store(attribute, value)

    def _confirm(self, attribute: AttributePlan, value: Any, bound: Any) -> None:
        """An attribute that was given must be what the operands say."""
        symbol = attribute.variable in self.plan.symbols
        match NATIVE.compare("==", value, bound, symbol):
            case False:
                message = f"attribute `{attribute.name}` is {spell(value)}, the operands say "
                raise self._error("attribute-conflict", message + spell(bound), attribute.name)
            case None:
                self.certain = False

    def _given(self, attribute: AttributePlan) -> Any:
        """The value that was written, checked for its type; a one-number spelling expanded."""
        value: Any = self.given.get(attribute.name)
        if value is not None:
            value = self._typed(attribute.name, attribute.type, value)
        short = self.given.get(attribute.short) if attribute.short is not None else None
        if short is None:
            return value
        assert attribute.short is not None
        number = self._typed(attribute.short, "int", short)
        length = len(value) if attribute.length is None and value is not None else attribute.length
        if length is None:
            raise self._error(
                "attribute-type", f"write `{attribute.name}` as a list", attribute.short
            )
        expanded = (number,) * length
        if value is not None and value != expanded:
            raise self._error(
                "attribute-conflict",
                f"`{attribute.name}` is {spell(value)} but `{attribute.short}` is {spell(number)}",
                attribute.short,
            )
        return expanded

    def _typed(self, name: str, type: str, value: Any) -> Any:
        typed = as_attribute(type, value)
        if typed is None:
            hint = suggest(value, DTYPES) if type == "dtype" and isinstance(value, str) else None
            raise self._error(
                "attribute-type", f"attribute `{name}` is {type}, not {spell(value)}", name, hint
            )
        return typed

    def _default(self, attribute: AttributePlan) -> Any:
        assert attribute.default is not None
        try:
            value = self._evaluate(attribute.default)
        except Absent:
            return None
        return float(value) if attribute.type == "float" and value is not None else value

    def _check_domain(self, attribute: AttributePlan, value: Any) -> None:
        if attribute.domain is None:
            return
        symbol = attribute.variable in self.plan.symbols
        inside = belongs(value, attribute.domain, self.scope, NATIVE, symbol)
        if inside is False:
            raise self._error(
                "attribute-domain",
                f"attribute `{attribute.name}` is {spell(value)}, not {self._choice(attribute)}",
                attribute.name,
                self._suggestion(attribute, value),
            )

    def _choice(self, attribute: AttributePlan) -> str:
        """What the attribute may be, in words."""
        assert attribute.domain is not None
        match attribute.domain:
            case ast.RangeDomain(low, ast.Number(math.inf)):
                return f"at least {show(low)}"
            case ast.RangeDomain(low, high):
                return f"from {show(low)} to {show(high)}"
            case _:
                members = self._members(attribute.domain)
                few = ", ".join(map(spell, members[:8]))
                return f"one of {few}" + (", …" if len(members) > 8 else "")

    def _suggestion(self, attribute: AttributePlan, value: Any) -> str | None:
        if not isinstance(value, str) or attribute.domain is None:
            return None
        return suggest(value, map(str, self._members(attribute.domain)))

    def _members(self, domain: ast.Domain) -> list[Value]:
        match domain:
            case ast.SetDomain(items):
                return [evaluate(item, self.scope, NATIVE) for item in items]
            case ast.NamedDomain(name):
                return sorted(self.scope.sets[name.text], key=str)
            case _:
                return []

    def _store(self, attribute: AttributePlan, value: Any) -> None:
        if as_attribute(attribute.type, value) is None:
            return  # an operand bound it to something that is not (fully) known
        self.attributes[attribute.name] = value
        if attribute.short is not None:
            self.attributes.pop(attribute.short, None)
            if value and len(value) == (attribute.length or len(value)) and len(set(value)) == 1:
                self.attributes[attribute.short] = value[0]

    def _normalise(self, step: Normalise) -> None:
        variables = self.scope.variables
        value = variables.get(step.variable)
        if value is None:
            return
        try:
            rank = self._evaluate(step.rank)
        except Absent:
            return
        if rank is None:
            self.certain = False
            return
        single = step.word in ("axis", "axis_or_end")
        axes = (value,) if single else value
        for axis in axes:
            if not -rank <= axis < rank + (step.word == "axis_or_end"):
                raise self._error("axis", f"there is no axis {axis} in rank {rank}")
        resolved = tuple(axis + rank if axis < 0 else axis for axis in axes)
        if len(set(resolved)) != len(resolved):
            raise self._error("axis", f"axes {spell(value)} name one axis twice")
        if step.word == "axis_set":
            resolved = tuple(sorted(resolved))
        variables[step.variable] = resolved[0] if single else resolved
        for attribute in self.plan.attributes:
            if attribute.variable == step.variable:
                self._store(attribute, variables[step.variable])

    # --- conditions ------------------------------------------------------------------------------

    def _define(self, variable: str, expr: ast.Expr) -> None:
        with suppress(Absent):
            self.scope.variables[variable] = self._evaluate(expr)

    def _check(self, condition: ast.Condition) -> None:
        try:
            truth = holds(condition, self.scope, NATIVE)
        except Absent:
            return
        except (ShapeError, IndexError, ZeroDivisionError) as error:
            raise self._failure(error, show(condition)) from None
        if truth is False:
            raise self._condition_error(condition)
        if truth is None:
            self.certain = False

    def _is_absent(self, name: str) -> bool:
        if name in self.scope.operands:
            return self.scope.operands[name] is None
        return name not in self.scope.variables

    def _check_dim(self, step: CheckDim) -> None:
        port = self.plan.decl.params[step.port]
        operand = self.scope.operands[port.name.text]
        if operand is None or operand.shape is None:
            return
        try:
            wanted = self._evaluate(step.expr)
        except Absent:
            return
        extent = operand.shape[step.index]
        match same(extent, wanted):
            case False:
                needed = f"{show(step.expr)} = {spell(wanted)}"
                message = f"`{port.name}` has extent {spell(extent)} where {needed} is needed"
                raise self._error("extent", message, port.name.text)
            case None:
                self.certain = False

    def _condition_error(self, condition: ast.Condition) -> SignatureError:
        match condition:
            case ast.Membership(ast.Variable(name), domain, False) if name in self.plan.dtypes:
                dtype = self.scope.variables[name]
                return self._error(
                    "dtype", f"element type {dtype} is not in {show(domain)} ({name})"
                )
        values = {}
        for variable in variables(condition):
            if variable.name in self.scope.variables:
                values[variable.name] = spell(self.scope.variables[variable.name])
        shown = ", ".join(f"{name} = {value}" for name, value in values.items())
        text = f"{show(condition)} does not hold"
        return self._error("condition", f"{text}: {shown}" if shown else text)

    def _evaluate(self, expr: ast.Expr) -> Any:
        try:
            return evaluate(expr, self.scope, NATIVE)
        except (ShapeError, IndexError, ZeroDivisionError) as error:
            raise self._failure(error, show(expr)) from None

    def _failure(self, error: Exception, text: str) -> SignatureError:
        match error:
            case ZeroDivisionError():
                return self._error("condition", f"{text} divides by 0")
            case IndexError():
                return self._error("axis", f"{text}: {error}")
            case _:
                return self._error("shape", str(error))

    # --- results -------------------------------------------------------------------------------

    def _results(self) -> list[TensorType]:
        results: list[TensorType] = []
        for _, type_ in self.plan.decl.results:
            dtype = self._result_dtype(type_.dtype)
            if "many_results" in self.plan.flags:
                (splat,) = type_.shape or ()
                assert isinstance(splat, ast.Splat)
                shapes = self._evaluate(splat.expr)
                return [
                    TensorType(dtype, None if shape is None else tuple(map(_extent, shape)))
                    for shape in shapes or ()
                ]
            results.append(TensorType(dtype, self._result_shape(type_.shape)))
        return results

    def _result_dtype(self, dtype: ast.Variable | ast.Name) -> str | None:
        if isinstance(dtype, ast.Name):
            return dtype.text
        return self.scope.variables.get(dtype.name)

    def _result_shape(
        self, dims: tuple[ast.Expr | ast.Splat, ...] | None
    ) -> tuple[Extent, ...] | None:
        if dims is None:
            return None
        shape: list[Extent] = []
        for dim in dims:
            try:
                value = self._evaluate(dim.expr if isinstance(dim, ast.Splat) else dim)
            except Absent:
                value = None
            if isinstance(dim, ast.Splat):
                if value is None:
                    return None
                shape += value
            else:
                shape.append(value)
        for extent in shape:
            if isinstance(extent, int) and extent < 0:
                raise self._error("shape", f"a result would have the extent {extent}")
        return tuple(_extent(extent) for extent in shape)

    def _error(
        self, code: str, message: str, subject: str | None = None, hint: str | None = None
    ) -> SignatureError:
        return SignatureError(self.plan.name, code, message, subject, hint)


def as_attribute(type: str, value: Any) -> Any:
    """``value`` as an attribute of that declared type, or None if it is of another.

    An ``int`` is accepted where a ``float`` is declared (and becomes one); ``1``, ``1.0`` and
    ``true`` are otherwise never confused.
    """
    match type:
        case "int":
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        case "float":
            if not isinstance(value, int | float) or isinstance(value, bool):
                return None
            return float(value) if isinstance(value, float) or abs(value) < 1 << 1023 else None
        case "bool":
            return value if isinstance(value, bool) else None
        case "sym":
            return value if isinstance(value, str) else None
        case "dtype":
            return value if isinstance(value, str) and value in DTYPES else None
        case _:
            if not isinstance(value, tuple | list):
                return None
            items = tuple(as_attribute(type[:-1], item) for item in value)
            return None if None in items else items


def _extent(value: Any) -> Extent:
    """A computed value as an extent: ``H + 1`` has no name of its own."""
    return value if isinstance(value, int | str) else None


def _refine(bound: Any, value: Any) -> Any:
    """The better known of two values that agree: a number, else a symbol, else unknown."""
    if isinstance(bound, tuple) and isinstance(value, tuple):
        return tuple(_refine(b, v) for b, v in zip(bound, value, strict=True))
    if bound is None or (isinstance(bound, str) and isinstance(value, int)):
        return value
    return bound
