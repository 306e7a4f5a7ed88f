"""A signature as Python source: the fast path for operands whose types are fully known.

Comes in: a :class:`~reprise.solve.plan.Plan`. Goes out: the source of a function
``apply(operands, given)`` that follows the plan with plain integer arithmetic and returns the same
:class:`~reprise.uir.inference.Typing` as the interpreter; False where the signature refuses, for
which the interpreter then finds the words; None where anything is out of the ordinary (an unknown
extent, a short spelling of an attribute), which is left to the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from reprise.lang import ast
from reprise.solve.interpret import Operands, as_attribute
from reprise.solve.plan import (
    AttributePlan,
    Check,
    CheckDim,
    Define,
    Normalise,
    Plan,
    TakeAttribute,
    needed,
    walk,
)
from reprise.solve.shapes import FUNCTIONS, ShapeError
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.inference import Typing

Apply = Callable[[Operands, Mapping[str, Attribute]], Typing | Literal[False] | None]


def compile_plan(plan: Plan) -> Apply:
    """The compiled function. It reads nothing but its arguments and is safe to call anywhere."""
    scope = _globals(plan)
    exec(compile(source(plan), f"<signature {plan.name}>", "exec"), scope)
    apply: Apply = scope["apply"]
    return apply


def _globals(plan: Plan) -> dict[str, Any]:
    """What written code may refer to."""
    scope: dict[str, Any] = {
        "inf": math.inf,
        "nan": math.nan,
        "math_prod": math.prod,
        "TensorType": TensorType,
        "Typing": Typing,
        "ShapeError": ShapeError,
        "as_attribute": as_attribute,
    }
    scope |= {f"f_{name}": function.evaluate for name, function in FUNCTIONS.items()}
    scope |= {f"set_{name}": members for name, members in plan.sets.items()}
    return scope


def source(plan: Plan) -> str:
    """The function as readable Python."""
    return "\n".join(_Writer(plan).function()) + "\n"


UNDECIDED = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    IndexError,
    ZeroDivisionError,
    OverflowError,
    ShapeError,
)
"""What a :data:`Partial` raises where it mentions what has no value yet, or no meaning."""

Partial = Callable[[Mapping[str, Any], Mapping[str, "TensorType | None"]], Any]
"""An expression or condition as a function of the variables and operands that have values."""


def compile_partial(plan: Plan, tree: ast.Expr | ast.Condition) -> Partial:
    """``tree`` as a function that a sampler calls while it still looks for values.

    A variable that may be absent is None where it has no value; any other that is missing, and an
    operand that is, raises one of :data:`UNDECIDED`.
    """
    writer = _Writer(plan)
    condition = isinstance(
        tree,
        ast.Comparison | ast.Membership | ast.AtomCond | ast.Not | ast.And | ast.Or,
    )
    text = writer.condition(tree) if condition else writer.expr(tree)  # type: ignore[arg-type]
    lines = ["def partial(values, operands):"]
    for name in dict.fromkeys(part.name for part in walk(tree) if isinstance(part, ast.Variable)):
        read = f"values.get({name!r})" if name in plan.doubtful else f"values[{name!r}]"
        lines.append(f"    {_variable(name)} = {read}")
    for port in plan.decl.params:
        if f"o_{port.name}" in text:
            lines.append(f"    o_{port.name} = operands[{port.name.text!r}]")
    lines.append(f"    return {text}")
    scope = _globals(plan)
    exec(compile("\n".join(lines), f"<partial {plan.name}>", "exec"), scope)
    partial: Partial = scope["partial"]
    return partial


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.bound: set[str] = set()

    def function(self) -> list[str]:
        if "untyped" in self.plan.flags:
            return ["def apply(operands, given): return None"]
        body = [*self._operands(), *self._unbound_yet()]
        for step in self.plan.steps:
            body += self._step(step)
        body += self._results()
        return [
            f"# {self.plan.name}",
            "def apply(operands, given):",
            "    try:",
            *("        " + line for line in body),
            "    except (ShapeError, IndexError, ZeroDivisionError):",
            "        return False",
        ]

    # --- operands --------------------------------------------------------------------------------

    def _operands(self) -> Iterator[str]:
        ports = list(enumerate(self.plan.decl.params))
        if any(port.optional for _, port in ports):
            yield "count = len(operands)"
        for number, port in ports:
            if port.variadic:
                yield from self._variadic(number, port)
            elif not port.optional:
                yield f"o_{port.name} = operands[{number}]"
                yield from self._port(port)
        for number, port in ports:
            if port.optional:
                name = f"o_{port.name}"
                yield f"{name} = operands[{number}] if count > {number} else None"
                fresh = [v for v in _port_variables(port) if v not in self.bound]
                inner = list(self._port(port))
                for variable in fresh:
                    yield f"v_{variable} = None"
                yield f"if {name} is not None:"
                yield from ("    " + line for line in inner)

    def _port(self, port: ast.Param) -> Iterator[str]:
        name = f"o_{port.name}"
        yield f"s = {name}.shape"
        yield f"if s is None or {name}.dtype is None: return None"
        yield "for e in s:"
        yield "    if e.__class__ is not int: return None"
        yield from self._dtype(port, f"{name}.dtype")
        dims = port.type.shape
        if dims is not None:
            yield from self._dims(dims)

    def _dtype(self, port: ast.Param, actual: str) -> Iterator[str]:
        wanted = port.type.dtype
        if isinstance(wanted, ast.Name):
            yield f"if {actual} != {wanted.text!r}: return False"
        else:
            yield from self._bind(wanted.name, actual)

    def _dims(self, dims: tuple[ast.Expr | ast.Splat, ...]) -> Iterator[str]:
        splat = next((i for i, d in enumerate(dims) if isinstance(d, ast.Splat)), None)
        if splat is None:
            yield f"if len(s) != {len(dims)}: return False"
        elif len(dims) > 1:
            yield f"if len(s) < {len(dims) - 1}: return False"
        for i, dim in enumerate(dims):
            if splat is not None and i > splat:
                i -= len(dims)
            match dim:
                case ast.Variable(name):
                    yield from self._bind(name, f"s[{i}]")
                case ast.Splat(ast.Variable(name)):
                    stop = i + 1 - len(dims)
                    whole = "s" if len(dims) == 1 else f"s[{i}:{stop or ''}]"
                    yield from self._bind(name, whole)
                case ast.Number(value):
                    yield f"if s[{i}] != {value}: return False"
                case _:
                    pass

    def _bind(self, variable: str, value: str) -> Iterator[str]:
        if variable not in self.bound:
            self.bound.add(variable)
            yield f"v_{variable} = {value}"
        elif variable in self.plan.doubtful:
            yield f"if v_{variable} is None: v_{variable} = {value}"
            yield f"elif v_{variable} != {value}: return False"
        else:
            yield f"if v_{variable} != {value}: return False"

    def _variadic(self, number: int, port: ast.Param) -> Iterator[str]:
        (splat,) = port.type.shape or ()
        assert isinstance(splat, ast.Splat) and isinstance(splat.expr, ast.Variable)
        self.bound.add(splat.expr.name)
        yield f"group = operands[{number}:]" if number else "group = operands"
        yield f"o_{port.name} = group[0]"
        yield from self._dtype(port, f"o_{port.name}.dtype")
        yield "shapes = []"
        yield "for o in group:"
        yield "    if o is None or o.shape is None or o.dtype is None: return None"
        yield f"    if o.dtype != o_{port.name}.dtype: return False"
        yield "    for e in o.shape:"
        yield "        if e.__class__ is not int: return None"
        yield "    shapes.append(o.shape)"
        yield f"v_{splat.expr.name} = tuple(shapes)"
        yield f"if o_{port.name}.dtype is None: return None"

    def _unbound_yet(self) -> Iterator[str]:
        """Variables that a step may leave absent start so."""
        names = {a.variable for a in self.plan.attributes}
        names |= {step.variable for step in self.plan.steps if isinstance(step, Define)}
        for name in sorted(names - self.bound):
            if name in self.plan.doubtful:
                yield f"{_variable(name)} = None"
        if self.plan.attributes:
            yield "attributes = {}"
            yield "if given:"
            yield "    for name in given:"
            known = ", ".join(repr(a.name) for a in self.plan.attributes)
            yield f"        if name not in {{{known}}}: return None"
        else:
            yield "if given: return None"

    # --- steps -----------------------------------------------------------------------------------

    def _step(self, step: object) -> Iterator[str]:
        match step:
            case TakeAttribute(attribute):
                yield from self._take(attribute)
            case Normalise():
                yield from self._normalise(step)
            case Define(variable, expr):
                guard = self._guard(self._doubts(expr))
                yield f"{guard}{_variable(variable)} = {self.expr(expr)}"
                self.bound.add(variable)
            case Check(condition, doubtful):
                tests = [*self._present(doubtful), f"not {self.condition(condition)}"]
                yield f"if {' and '.join(tests)}: return False"
            case CheckDim(port, index, expr, doubtful):
                actual = f"o_{self.plan.decl.params[port].name}.shape[{index}]"
                test = f"{actual} != {self.expr(expr)}"
                yield f"if {' and '.join([*self._present(doubtful), test])}: return False"

    def _take(self, attribute: AttributePlan) -> Iterator[str]:
        name, variable = attribute.name, _variable(attribute.variable)
        known = attribute.variable in self.bound
        if any(port.name.text == name for port in self.plan.decl.params):
            yield f"if o_{name} is not None: return None  # known only at run time"
        yield f"a = given.get({name!r}) if given else None"
        yield "if a is not None:"
        plain = {"int": "int", "bool": "bool", "sym": "str", "float": "float"}.get(attribute.type)
        if plain is not None:
            yield f"    if a.__class__ is not {plain}:"
            yield f"        a = as_attribute({attribute.type!r}, a)"
        else:
            yield f"    a = as_attribute({attribute.type!r}, a)"
        yield "    if a is None: return False"
        if known:
            yield f"    if {variable} is not None and {variable} != a: return False"
        yield f"    {variable} = a"
        otherwise = f"elif {variable} is None:" if known else "else:"
        if attribute.default is None:
            yield f"{otherwise} return False"
        elif attribute.optional:
            if not known:
                yield f"else: {variable} = None"
        else:
            default = self.expr(attribute.default)
            if attribute.type == "float":
                default = f"float({default})"
            present = self._present(self._doubts(attribute.default))
            if present:
                default = f"{default} if {' and '.join(present)} else None"
            yield f"{otherwise} {variable} = {default}"
        self.bound.add(attribute.variable)
        guard = f"{variable} is not None and " if attribute.variable in self.plan.doubtful else ""
        if attribute.domain is not None:
            many = attribute.type in ("ints", "floats", "syms")
            test = self._inside("i" if many else variable, attribute.domain)
            test = f"all([{test} for i in {variable}])" if many else test
            yield f"if {guard}not ({test}): return False"
        if not any(
            isinstance(s, Normalise) and s.variable == attribute.variable for s in self.plan.steps
        ):
            yield from self._store(attribute)

    def _store(self, attribute: AttributePlan) -> Iterator[str]:
        variable = _variable(attribute.variable)
        indent = ""
        if attribute.variable in self.plan.doubtful:
            yield f"if {variable} is not None:"
            indent = "    "
        yield f"{indent}attributes[{attribute.name!r}] = {variable}"
        if attribute.short is not None:
            if attribute.length == 1:
                test = f"len({variable}) == 1"
            elif attribute.length is not None:
                count = attribute.length
                test = f"len({variable}) == {count} and {variable}.count({variable}[0]) == {count}"
            else:
                test = f"{variable} and {variable}.count({variable}[0]) == len({variable})"
            yield f"{indent}if {test}: attributes[{attribute.short!r}] = {variable}[0]"

    def _normalise(self, step: Normalise) -> Iterator[str]:
        variable, rank = _variable(step.variable), self.expr(step.rank)
        doubts = [step.variable] if step.variable in self.plan.doubtful else []
        indent = ""
        if doubts:
            yield f"if {variable} is not None:"
            indent = "    "
        yield f"{indent}r = {rank}"
        if step.word in ("axis", "axis_or_end"):
            less = "<" if step.word == "axis" else "<="
            yield f"{indent}if not -r <= {variable} {less} r: return False"
            yield f"{indent}if {variable} < 0: {variable} += r"
        else:
            yield f"{indent}for a in {variable}:"
            yield f"{indent}    if not -r <= a < r: return False"
            listed = f"[a % r for a in {variable}]"
            listed = f"sorted({listed})" if step.word == "axis_set" else listed
            yield f"{indent}{variable} = tuple({listed})"
            yield f"{indent}if len(set({variable})) != len({variable}): return False"
        for attribute in self.plan.attributes:
            if attribute.variable == step.variable:
                yield from self._store(attribute)

    def _results(self) -> Iterator[str]:
        attributes = "attributes" if self.plan.attributes else "{}"
        if "many_results" in self.plan.flags:
            ((_, type_),) = self.plan.decl.results
            (splat,) = type_.shape or ()
            assert isinstance(splat, ast.Splat)
            dtype = self._result_dtype(type_.dtype)
            made = f"[TensorType({dtype}, shape) for shape in {self.expr(splat.expr)}]"
            yield f"return Typing({made}, {attributes}, True)"
            return
        results = []
        for number, (_, type_) in enumerate(self.plan.decl.results):
            reused = self._same_as_operand(type_)
            if reused is not None:
                results.append(reused)
                continue
            yield from self._shape(number, type_)
            results.append(f"TensorType({self._result_dtype(type_.dtype)}, shape_{number})")
        yield f"return Typing([{', '.join(results)}], {attributes}, True)"

    def _same_as_operand(self, type_: ast.TypeExpr) -> str | None:
        """The operand whose type is, by its spelling, the result's: types are shared."""
        for port in self.plan.decl.params:
            bare = port.type.shape is not None and all(
                isinstance(d.expr if isinstance(d, ast.Splat) else d, ast.Variable)
                for d in port.type.shape or ()
            )
            if not (port.optional or port.variadic) and bare and port.type == type_:
                return f"o_{port.name}"
        return None

    def _shape(self, number: int, type_: ast.TypeExpr) -> Iterator[str]:
        if type_.shape is None:
            yield f"shape_{number} = None"
            return
        doubts = [d for dim in type_.shape for d in self._doubts(_tree(dim))]
        if len(type_.shape) == 1 and isinstance(type_.shape[0], ast.Splat):
            made = self.expr(type_.shape[0].expr)
        else:
            parts = [
                f"*{self.expr(dim.expr)}" if isinstance(dim, ast.Splat) else self.expr(dim)
                for dim in type_.shape
            ]
            made = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if doubts:
            yield f"if {' or '.join(f'{_variable(d)} is None' for d in doubts)}: return None"
        yield f"shape_{number} = {made}"
        if any(isinstance(_tree(dim), ast.Binary) for dim in type_.shape):
            yield f"if min(shape_{number}) < 0: return False"

    def _result_dtype(self, dtype: ast.Variable | ast.Name) -> str:
        return repr(dtype.text) if isinstance(dtype, ast.Name) else _variable(dtype.name)

    # --- what may be absent ----------------------------------------------------------------------

    def _doubts(self, tree: ast.Expr | ast.Condition) -> list[str]:
        return [name for name in needed(tree) if name in self.plan.doubtful]

    def _present(self, doubtful: tuple[str, ...] | list[str]) -> list[str]:
        operands = {port.name.text for port in self.plan.decl.params}
        return [
            f"{f'o_{name}' if name in operands else _variable(name)} is not None"
            for name in dict.fromkeys(doubtful)
        ]

    def _guard(self, doubtful: list[str]) -> str:
        present = self._present(doubtful)
        return f"if {' and '.join(present)}: " if present else ""

    # --- expressions and conditions --------------------------------------------------------------

    def expr(self, expr: ast.Expr) -> str:
        """An expression as Python over known integers."""
        match expr:
            case ast.Variable(name):
                return _variable(name)
            case ast.Number(value) | ast.Boolean(value) | ast.String(value) | ast.Name(value):
                return repr(value)
            case ast.Wildcard():
                return "None"
            case ast.ListExpr(items):
                inner = ", ".join(map(self.expr, items))
                return f"({inner}{',' if len(items) == 1 else ''})"
            case ast.Negate(operand):
                return f"(-{self.expr(operand)})"
            case ast.Binary(op, left, right):
                return f"({self.expr(left)} {'//' if op == '/' else op} {self.expr(right)})"
            case ast.CallExpr(function, args):
                return self._call(function.text, args)
            case ast.Member(ast.Name(operand), name):
                shape = f"o_{operand}.shape"
                known = {"rank": f"len({shape})", "numel": f"math_prod({shape})", "shape": shape}
                return known.get(name.text, f"o_{operand}.dtype")
            case ast.Index(ast.Member(ast.Name(operand), ast.Ident("dim")), index):
                return f"o_{operand}.shape[{self.expr(index)}]"
            case ast.Index(base, index):
                return f"{self.expr(base)}[{self.expr(index)}]"
            case _:
                raise TypeError(f"no meaning in a signature: {expr!r}")

    def _call(self, function: str, args: tuple[ast.Expr, ...]) -> str:
        written = [self.expr(arg) for arg in args]
        match function:
            case "rank" | "len":
                return f"len({written[0]})"
            case "prod":
                return f"math_prod({written[0]})"
            case "or_else":
                present = " and ".join(self._present(self._doubts(args[0]))) or "True"
                return f"({written[0]} if {present} else {written[1]})"
            case _:
                return f"f_{function}({', '.join(written)})"

    def condition(self, condition: ast.Condition) -> str:
        """A condition as Python over known integers."""
        match condition:
            case ast.Comparison(operands, ops):
                words = [self.expr(operands[0])]
                for op, operand in zip(ops, operands[1:], strict=True):
                    words += [op, self.expr(operand)]
                return f"({' '.join(words)})"
            case ast.Membership(expr, domain, negated):
                inside = self._inside(self.expr(expr), domain)
                return f"(not ({inside}))" if negated else f"({inside})"
            case ast.AtomCond(_, (ast.Name(operand),)):
                return f"(o_{operand} is not None)"
            case ast.AtomCond(_, (ast.Variable(variable),)):
                return f"({_variable(variable)} is not None)"
            case ast.Not(inner):
                return f"(not {self.condition(inner)})"
            case ast.And(parts):
                return f"({' and '.join(map(self.condition, parts))})"
            case ast.Or(parts):
                return f"({' or '.join(map(self.condition, parts))})"
            case _:
                raise TypeError(f"no meaning in a signature: {condition!r}")

    def _inside(self, value: str, domain: ast.Domain) -> str:
        match domain:
            case ast.RangeDomain(low, high):
                if isinstance(high, ast.Number) and high.value == math.inf:
                    return f"{value} >= {self.expr(low)}"
                return f"{self.expr(low)} <= {value} <= {self.expr(high)}"
            case ast.SetDomain(items):
                return f"{value} in {self.expr(ast.ListExpr(items))}"
            case ast.NamedDomain(name):
                return f"{value} in set_{name}"


def _variable(name: str) -> str:
    """The Python name of a variable; an attribute without one has its own name."""
    return f"a_{name.removeprefix('attribute ')}" if " " in name else f"v_{name}"


def _tree(dim: ast.Expr | ast.Splat) -> ast.Expr:
    return dim.expr if isinstance(dim, ast.Splat) else dim


def _port_variables(port: ast.Param) -> list[str]:
    names = [port.type.dtype.name] if isinstance(port.type.dtype, ast.Variable) else []
    for dim in port.type.shape or ():
        names += [part.name for part in walk(_tree(dim)) if isinstance(part, ast.Variable)]
    return names
