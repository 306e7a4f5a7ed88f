"""A signature put in order: what to bind, to define and to check, and when.

Comes in: an ``op`` declaration. Goes out: a :class:`Plan`, a sequence of steps in which every
variable is bound before it is read, whatever the order in which the author wrote the conditions.
Both the interpreter (``reprise.solve.interpret``) and the code writer (``reprise.solve.emit``)
follow the same plan. A signature that cannot be ordered (a variable that nothing binds, a
function that does not exist) is a diagnostic, here and never later.

How variables get their values, in this order: operands bind dtype variables, extents and splats;
attributes that are given bind theirs; an attribute that is not given takes the value that an
operand bound, or else its default; a condition ``V == expr`` defines a ``V`` that nothing else
binds. A variable that only an absent optional operand or attribute would bind is itself *absent*,
and what mentions it is void. An operand and an attribute of the same name are two ways of giving
one value: where the operand is present, the attribute is unknown (it is there only at run time).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reprise.lang import ast
from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.symbols import SINGULAR, suggest
from reprise.solve.arithmetic import Value
from reprise.solve.shapes import FUNCTIONS

ABSENT = "absent"
"""The default ``= absent`` of an attribute that may be missing altogether."""

PROPERTIES = ("rank", "dtype", "numel", "shape", "dim")
"""What may be asked of an operand: ``x.rank``, ``x.dim[1]``, …"""

NORMALISERS = ("axis", "axis_or_end", "axes", "axis_set")
"""Conditions that also resolve negative axes: ``axis(A, n)`` says that A is an axis of a tensor of
rank n, ``axis_or_end(A, n)`` that it is one or n itself (a place between axes), ``axes(A, n)`` that
A lists different ones; ``axis_set(A, n)`` also sorts them."""

ATTRIBUTE_TYPES = ("int", "float", "bool", "sym", "dtype", "ints", "floats", "syms")
OPERATOR_FLAGS = ("commutative", "random", "data_dependent", "many_results", "untyped")
"""``random``: the result differs from run to run. ``data_dependent``: an extent of the result
depends on values. ``many_results``: the one declared result stands for a list, whose shape is a
list of shapes. ``untyped``: operands and results have any types (control flow)."""


@dataclass(frozen=True, slots=True)
class AttributePlan:
    """An attribute: ``short`` is the name of its one-number spelling (``axis`` for ``axes``),
    which stands for a list of ``length`` equal items. ``default`` None: required."""

    name: str
    variable: str
    type: str
    domain: ast.Domain | None
    default: ast.Expr | None
    short: str | None = None
    length: int | None = None

    @property
    def required(self) -> bool:
        return self.default is None

    @property
    def optional(self) -> bool:
        """Whether it may be missing even when defaults are filled in."""
        return isinstance(self.default, ast.Name) and self.default.text == ABSENT


@dataclass(frozen=True, slots=True)
class TakeAttribute:
    """Read, default and check an attribute."""

    attribute: AttributePlan


@dataclass(frozen=True, slots=True)
class Normalise:
    """Resolve the negative axes of ``variable`` against a rank."""

    variable: str
    rank: ast.Expr
    word: str  # of NORMALISERS


@dataclass(frozen=True, slots=True)
class Define:
    """Bind ``variable`` to the value of an expression."""

    variable: str
    expr: ast.Expr


@dataclass(frozen=True, slots=True)
class Check:
    """Evaluate a condition; void if something in ``doubtful`` is absent."""

    condition: ast.Condition
    doubtful: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckDim:
    """Compare an operand's extent with an expression, once its variables are bound."""

    port: int
    index: int  # from the end if negative
    expr: ast.Expr
    doubtful: tuple[str, ...]


Step = TakeAttribute | Normalise | Define | Check | CheckDim


@dataclass(frozen=True, slots=True)
class Plan:
    """An operator's steps and what they need to know.

    ``doubtful`` are the variables and optional operands that may be absent; ``symbols`` the
    variables that stand for words; ``dtypes`` those that stand for element types.
    """

    decl: ast.OpDecl
    attributes: tuple[AttributePlan, ...]
    steps: tuple[Step, ...]
    doubtful: frozenset[str]
    symbols: frozenset[str]
    dtypes: frozenset[str]
    sets: Mapping[str, frozenset[Value]]

    @property
    def name(self) -> str:
        return self.decl.name.text

    @property
    def flags(self) -> frozenset[str]:
        return frozenset(flag.text for flag in self.decl.flags)


def make_plan(
    decl: ast.OpDecl, sets: Mapping[str, frozenset[Value]], report: list[Diagnostic]
) -> Plan | None:
    """Order the signature; None (and diagnostics) if that is impossible."""
    before = len(report)
    planner = _Planner(decl, sets, report)
    plan = planner.plan()
    return plan if len(report) == before else None


class _Planner:
    def __init__(
        self, decl: ast.OpDecl, sets: Mapping[str, frozenset[Value]], report: list[Diagnostic]
    ) -> None:
        self.decl = decl
        self.sets = sets
        self.report = report
        self.ports = {p.name.text: p for p in decl.params}
        self.bound: set[str] = set()
        self.doubtful = {p.name.text for p in decl.params if p.optional}
        self.dtypes = {
            type_.dtype.name
            for type_ in [*(p.type for p in decl.params), *(t for _, t in decl.results)]
            if isinstance(type_.dtype, ast.Variable)
        }
        self.steps: list[Step] = []

    def plan(self) -> Plan:
        untyped = any(flag.text == "untyped" for flag in self.decl.flags)
        deferred = [] if untyped else self._bind_operands()
        attributes = self._attributes()
        self.symbols = self.dtypes | {
            a.variable for a in attributes if a.type in ("sym", "dtype", "syms", "bool")
        }
        self._check_names()
        if not untyped:
            self._order(list(attributes), deferred)
            self._check_results()
        return Plan(
            self.decl,
            attributes,
            tuple(self.steps),
            frozenset(self.doubtful),
            frozenset(self.symbols),
            frozenset(self.dtypes),
            self.sets,
        )

    # --- binding -----------------------------------------------------------------------------

    def _bind_operands(self) -> list[CheckDim]:
        """Bind what operands bind (required ones first); returns the extents to check later."""
        deferred = []
        for optional in (False, True):
            for number, port in enumerate(self.decl.params):
                if port.optional is optional:
                    deferred += self._bind_port(number, port)
        return deferred

    def _bind_port(self, number: int, port: ast.Param) -> list[CheckDim]:
        if isinstance(port.type.dtype, ast.Variable):
            self._bind(port.type.dtype.name, port.optional)
        dims = port.type.shape
        splats = [i for i, d in enumerate(dims or ()) if isinstance(d, ast.Splat)]
        if len(splats) > 1:
            self._error("ambiguous-shape", "an operand's shape may hold one `*` only", port.span)
        if port.variadic and (dims is None or len(dims) != 1 or not splats):
            self._error(
                "variadic-shape",
                f"the shape of the variadic `{port.name}` must be one splat such as `*D`",
                port.span,
            )
        deferred = []
        for index, dim in enumerate(dims or ()):
            if splats and index > splats[0]:
                index -= len(dims or ())
            match dim:
                case ast.Variable(name) | ast.Splat(ast.Variable(name)):
                    self._bind(name, port.optional)
                case ast.Splat():
                    self._error("computed-splat", "an operand's `*` takes a variable", dim.span)
                case ast.Number() | ast.Wildcard():
                    pass
                case _:
                    doubtful = (port.name.text,) if port.optional else ()
                    deferred.append(CheckDim(number, index, dim, doubtful))
        return deferred

    def _bind(self, variable: str, doubtful: bool) -> None:
        if variable not in self.bound:
            self.bound.add(variable)
            if doubtful:
                self.doubtful.add(variable)

    def _attributes(self) -> tuple[AttributePlan, ...]:
        made = []
        for decl in self.decl.attributes:
            if decl.type.text not in ATTRIBUTE_TYPES:
                self._error(
                    "unknown-type",
                    f"`{decl.type}` is no attribute type",
                    decl.type.span,
                    suggest(decl.type.text, ATTRIBUTE_TYPES),
                )
            variable = decl.variable or f"attribute {decl.name}"
            if decl.type.text == "dtype":
                self.dtypes.add(variable)
            name = decl.name.text
            short = SINGULAR.get(name) if decl.type.text == "ints" else None
            length = self._length(decl, variable) if short else None
            made.append(
                AttributePlan(
                    name, variable, decl.type.text, _domain(decl), decl.default, short, length
                )
            )
        return tuple(made)

    def _length(self, decl: ast.AttrDecl, variable: str) -> int | None:
        """How many items the one-number spelling of a list attribute stands for."""
        if decl.name.text == "axes":
            return 1
        if isinstance(decl.default, ast.ListExpr):
            return len(decl.default.items)
        for condition in self.decl.where:
            match condition:
                case ast.Comparison(
                    (ast.CallExpr(ast.Ident("len"), (ast.Variable(name),)), ast.Number(int(count))),
                    ("==",),
                ) if name == variable:
                    return count
        return None

    # --- ordering ----------------------------------------------------------------------------

    def _order(self, attributes: list[AttributePlan], deferred: list[CheckDim]) -> None:
        """Repeatedly take the first thing that is ready: attributes and the resolution of their
        axes before everything else, then conditions as written, then extents."""
        waiting = list(self.decl.where)
        owned = {a.variable for a in attributes}
        while True:
            if self._take_attribute(attributes, waiting):
                continue
            if self._take_condition(waiting, owned, {a.variable for a in attributes}):
                continue
            break
        for check in deferred:
            if self._ready(check.expr):
                doubts = (*check.doubtful, *self._doubts(check.expr))
                self.steps.append(CheckDim(check.port, check.index, check.expr, doubts))
            else:
                self._unbound(check.expr)
        for attribute in attributes:
            assert attribute.default is not None
            self._unbound(attribute.default)
        for condition in waiting:
            self._unbound(condition)

    def _take_attribute(
        self, attributes: list[AttributePlan], waiting: list[ast.Condition]
    ) -> bool:
        for attribute in attributes:
            default = attribute.default
            optional = attribute.optional
            if default is None or optional or self._ready(default):
                attributes.remove(attribute)
                self.steps.append(TakeAttribute(attribute))
                doubts = () if default is None or optional else self._doubts(default)
                self._bind(attribute.variable, optional or bool(doubts))
                if not optional and not doubts:
                    self.doubtful.discard(attribute.variable)
                self._normalise(waiting)
                return True
        return False

    def _normalise(self, waiting: list[ast.Condition]) -> None:
        for condition in list(waiting):
            match condition:
                case ast.AtomCond(ast.Ident(word), (ast.Variable(name), rank)) if (
                    word in NORMALISERS and name in self.bound and self._ready(rank)
                ):
                    waiting.remove(condition)
                    self.steps.append(Normalise(name, rank, word))

    def _take_condition(
        self, waiting: list[ast.Condition], owned: set[str], pending: set[str]
    ) -> bool:
        for condition in waiting:
            match condition:
                case ast.Comparison((ast.Variable(name), expr), ("==",)) if (
                    name not in self.bound and name not in owned and self._ready(expr)
                ):
                    self._define(name, expr)
                case ast.Comparison((expr, ast.Variable(name)), ("==",)) if (
                    name not in self.bound and name not in owned and self._ready(expr)
                ):
                    self._define(name, expr)
                case ast.AtomCond(ast.Ident(word)) if word in NORMALISERS:
                    self._normalise(waiting)
                    if condition in waiting:
                        continue
                    return True
                case _ if self._ready(condition):
                    doubts = () if _asks_presence(condition) else self._doubts(condition)
                    self.steps.append(Check(condition, doubts))
                case _:
                    continue
            waiting.remove(condition)
            return True
        return False

    def _define(self, name: str, expr: ast.Expr) -> None:
        doubtful = bool(self._doubts(expr))
        self.steps.append(Define(name, expr))
        self._bind(name, doubtful)
        if isinstance(expr, ast.Variable) and expr.name in self.dtypes:
            self.dtypes.add(name)

    def _ready(self, tree: ast.Expr | ast.Condition) -> bool:
        return all(v.name in self.bound for v in variables(tree))

    def _doubts(self, tree: ast.Expr | ast.Condition) -> tuple[str, ...]:
        """What in ``tree`` may be absent, so that ``tree`` as a whole is void."""
        return tuple(dict.fromkeys(n for n in needed(tree) if n in self.doubtful))

    # --- checking the declaration --------------------------------------------------------------

    def _check_names(self) -> None:
        for flag in self.decl.flags:
            if flag.text not in OPERATOR_FLAGS:
                self._error(
                    "unknown-flag",
                    f"`{flag}` is no flag of operators",
                    flag.span,
                    suggest(flag.text, OPERATOR_FLAGS),
                )
            elif flag.text == "many_results" and not self._has_list_of_shapes():
                self._error(
                    "one-result-for-many",
                    "`flag many_results` asks for one result with a list of shapes",
                    flag.span,
                    "such as `-> T[*Shapes]`, where Shapes is a list of shapes",
                )
        trees: list[ast.Expr | ast.Condition] = [*self.decl.where]
        for attribute in self.decl.attributes:
            if attribute.default is not None:
                trees.append(attribute.default)
            if attribute.domain is not None:
                trees.append(ast.Membership(ast.Number(0), attribute.domain, span=attribute.span))
        types = [p.type for p in self.decl.params] + [t for _, t in self.decl.results]
        for type_ in types:
            for dim in type_.shape or ():
                trees.append(dim.expr if isinstance(dim, ast.Splat) else dim)
        for tree in trees:
            for part in walk(tree):
                self._check_part(part)

    def _has_list_of_shapes(self) -> bool:
        """Whether there is one result, whose type is ``T[*SHAPES]``."""
        if len(self.decl.results) != 1:
            return False
        shape = self.decl.results[0][1].shape
        return shape is not None and len(shape) == 1 and isinstance(shape[0], ast.Splat)

    def _check_part(self, part: ast.Expr | ast.Condition) -> None:
        match part:
            case ast.CallExpr(function, args):
                self._check_call(function, len(args))
            case ast.Member(ast.Name(text), name):
                if text not in self.ports:
                    self._error(
                        "unknown-operand",
                        f"`{text}` is no operand",
                        part.span,
                        suggest(text, self.ports),
                    )
                if name.text not in PROPERTIES:
                    self._error(
                        "unknown-property",
                        f"an operand has no `{name}`",
                        name.span,
                        suggest(name.text, PROPERTIES),
                    )
            case ast.Membership(domain=ast.NamedDomain(name)):
                if name.text not in self.sets:
                    self._error(
                        "unknown-set",
                        f"`{name}` is no set",
                        name.span,
                        suggest(name.text, self.sets),
                    )
            case ast.AtomCond(relation, args):
                known = (*NORMALISERS, "present")
                if relation.text not in known:
                    self._error(
                        "unknown-condition",
                        f"`{relation}` is no condition of signatures",
                        relation.span,
                        suggest(relation.text, known),
                    )
                elif len(args) != (1 if relation.text == "present" else 2):
                    self._error("arity", f"`{relation}` takes another number", relation.span)
            case ast.Context() | ast.Exists() | ast.AggregateExpr():
                self._error("no-signature-condition", "not in a signature", part.span)
            case _:
                pass

    def _check_call(self, function: ast.Ident, count: int) -> None:
        known = FUNCTIONS.get(function.text)
        if function.text == "or_else":
            if count != 2:
                self._error("arity", "`or_else` takes 2 arguments", function.span)
        elif known is None:
            self._error(
                "unknown-function",
                f"`{function}` is no shape function",
                function.span,
                suggest(function.text, FUNCTIONS),
            )
        elif count < known.least or (known.most is not None and count > known.most):
            self._error(
                "arity", f"`{function}` takes {known.least} arguments, not {count}", function.span
            )

    def _check_results(self) -> None:
        for _, type_ in self.decl.results:
            if isinstance(type_.dtype, ast.Variable) and type_.dtype.name not in self.bound:
                self._unbound(type_.dtype)
            for dim in type_.shape or ():
                tree = dim.expr if isinstance(dim, ast.Splat) else dim
                if not self._ready(tree):
                    self._unbound(tree)

    def _unbound(self, tree: ast.Expr | ast.Condition) -> None:
        for variable in variables(tree):
            if variable.name not in self.bound:
                self._error(
                    "unbound-variable",
                    f"nothing binds `{variable.name}`",
                    variable.span,
                    "bind it by an operand's shape, an attribute (`as`) or an equation",
                )

    def _error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.report.append(Diagnostic(code, f"{self.decl.name}: {message}", span, hint))


def _domain(decl: ast.AttrDecl) -> ast.Domain | None:
    """The declared domain. Before a default's ``=``, ``inf`` reads as a name, like every keyword
    there."""
    match decl.domain:
        case ast.RangeDomain(low, ast.Name("inf", span), whole):
            return ast.RangeDomain(low, ast.Number(math.inf, span), whole)
        case domain:
            return domain


def walk(tree: ast.Expr | ast.Condition) -> Iterator[ast.Expr | ast.Condition]:
    """``tree`` and every expression and condition inside it."""
    yield tree
    for inner in _children(tree):
        yield from walk(inner)


def variables(tree: ast.Expr | ast.Condition) -> Iterator[ast.Variable]:
    """The value variables that ``tree`` mentions."""
    return (part for part in walk(tree) if isinstance(part, ast.Variable))


def _children(tree: ast.Expr | ast.Condition) -> tuple[ast.Expr | ast.Condition, ...]:
    match tree:
        case ast.Member(base):
            return (base,)
        case ast.Index(base, index):
            return (base, index)
        case ast.CallExpr(_, args) | ast.AtomCond(_, args):
            return args
        case ast.Binary(_, left, right):
            return (left, right)
        case ast.Negate(operand):
            return (operand,)
        case ast.ListExpr(items):
            return items
        case ast.Comparison(operands):
            return operands
        case ast.Membership(expr, domain):
            return (expr, *_domain_parts(domain))
        case ast.Not(inner):
            return (inner,)
        case ast.And(parts) | ast.Or(parts):
            return parts
        case _:
            return ()


def _domain_parts(domain: ast.Domain) -> tuple[ast.Expr, ...]:
    match domain:
        case ast.SetDomain(items):
            return items
        case ast.RangeDomain(low, high):
            return (low, high)
        case _:
            return ()


def needed(tree: ast.Expr | ast.Condition) -> Iterator[str]:
    """The variables and operands that ``tree`` cannot do without: of ``or_else(a, b)``, those
    that both need."""
    match tree:
        case ast.Variable(name) | ast.Member(ast.Name(name)):
            yield name
        case ast.CallExpr(ast.Ident("or_else"), (preferred, fallback)):
            both = set(needed(preferred)) & set(needed(fallback))
            yield from sorted(both)
            return
    for inner in _children(tree):
        yield from needed(inner)


def _asks_presence(condition: ast.Condition) -> bool:
    return any(
        isinstance(p, ast.AtomCond) and p.relation.text == "present" for p in walk(condition)
    )
