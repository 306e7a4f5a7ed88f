"""Random valid applications of a signature: operand types and attributes, without a solver.

Comes in: a :class:`~reprise.solve.signatures.Signature` and a random generator. Goes out:
:class:`Instance` values that the signature accepts. Everything follows from the signature itself:
dtype variables from their sets, extents from a small range, attributes from their domains, and
where a shape function relates two things (``broadcast(A, B)``, ``permute(D, P)``) one from the
other. What is drawn is then checked, and drawn again if the signature refuses it. Same generator
state, same instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.solve.plan import AttributePlan, Normalise, variables, walk
from reprise.solve.reading import NATIVE, Absent, Scope, evaluate, holds
from reprise.solve.shapes import ShapeError
from reprise.solve.signatures import Signature
from reprise.uir.graph import Attribute, TensorType

EXTENTS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8)
"""What extents are drawn from; small ones, and 1 in particular, meet more special cases."""

RANKS = (0, 1, 2, 2, 3, 3, 4)
"""What the ranks of tensors of any rank are drawn from."""

_USUAL_DTYPES = ("float32", "float64", "int32", "int64", "bool")
_MISSING = object()
_LOOKS = 12
"""How often a value is drawn again because a condition that it decides is false."""


class _Astray(Exception):
    """Nothing that could be drawn next would fit."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Operand types and attributes that a signature accepts."""

    operands: tuple[TensorType | None, ...]
    attributes: dict[str, Attribute]


class Sampler:
    """Draws instances of one signature."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        plan = signature.plan
        self.plan = plan
        self.attributes = {a.variable: a for a in plan.attributes}
        self.axes = {s.variable: s for s in plan.steps if isinstance(s, Normalise)}
        self.conditions = [part for c in plan.decl.where for part in _conjuncts(c)]
        self.about: dict[str, list[ast.Condition]] = {}
        for condition in self.conditions:
            if not isinstance(condition, ast.AtomCond):
                for name in {v.name for v in variables(condition)}:
                    self.about.setdefault(name, []).append(condition)
        self.calls = list(_calls(plan.decl))
        self.dtypes = {name: self._dtypes(name) for name in sorted(plan.dtypes)}

    def draw(self, rng: Random, *, tries: int = 200) -> Instance | None:
        """One instance, or None if ``tries`` proposals were all refused."""
        for _ in range(tries):
            instance = self.propose(rng)
            if instance is None:
                continue
            if self.signature.attempt(instance.operands, instance.attributes) is not None:
                return instance
        return None

    def propose(self, rng: Random) -> Instance | None:
        """One draw, which the signature may still refuse; None if it went astray on the way."""
        try:
            return _Draw(self, rng).instance()
        except (_Astray, Absent, ShapeError, IndexError, ZeroDivisionError):
            return None

    def _dtypes(self, variable: str) -> list[str]:
        """The element types that the conditions on this variable alone leave."""
        alone = [
            condition
            for condition in self.about.get(variable, ())
            if all(v.name == variable for v in variables(condition))
        ]
        fit = []
        for name in DTYPES:
            scope = Scope({variable: name}, {}, self.plan.sets, self.plan.symbols)
            if all(_may_hold(condition, scope) for condition in alone):
                fit.append(name)
        return list(_USUAL_DTYPES) if len(fit) == len(DTYPES) else fit


class _Draw:
    """One draw: values of variables, made when something first asks for them."""

    def __init__(self, sampler: Sampler, rng: Random) -> None:
        self.sampler = sampler
        self.plan = sampler.plan
        self.rng = rng
        self.values: dict[str, Any] = {}
        self.attributes: dict[str, Attribute] = {}
        self.busy: set[str] = set()
        self.by_variable = sampler.attributes
        self.axes = sampler.axes
        self.operands: dict[str, TensorType | None] = {}
        self.scope = Scope(self.values, self.operands, self.plan.sets, self.plan.symbols)
        self.conditions = sampler.conditions
        self.calls = sampler.calls

    def instance(self) -> Instance:
        made: dict[str, Any] = {}
        for port in self.plan.decl.params:
            if not port.optional:
                made[port.name.text] = self._operand(port)
        for attribute in self.plan.attributes:
            self._attribute(attribute)
        runtime = {attribute.name for attribute in self.plan.attributes}
        for port in self.plan.decl.params:
            if port.optional:
                wanted = port.name.text not in runtime and self.rng.random() < 0.5
                made[port.name.text] = self._operand(port) if wanted else None
        operands: list[TensorType | None] = []
        for port in self.plan.decl.params:
            one = made[port.name.text]
            operands += one if port.variadic else [one]
        while operands and operands[-1] is None:
            operands.pop()
        return Instance(tuple(operands), self.attributes)

    # --- operands --------------------------------------------------------------------------------

    def _operand(self, port: ast.Param) -> Any:
        dtype = self._dtype(port.type.dtype)
        if port.variadic:
            (splat,) = port.type.shape or ()
            assert isinstance(splat, ast.Splat) and isinstance(splat.expr, ast.Variable)
            shapes = self._variable(splat.expr.name, self._group)
            operands = [TensorType(dtype, shape) for shape in shapes]
            self.operands[port.name.text] = operands[0]
            return operands
        shape: list[Any] = []
        for dim in port.type.shape or ():
            if isinstance(dim, ast.Splat):
                assert isinstance(dim.expr, ast.Variable)
                shape += self._variable(dim.expr.name, partial(self._extents, dim.expr.name))
            elif isinstance(dim, ast.Variable):
                shape.append(self._variable(dim.name, self._extent))
            elif isinstance(dim, ast.Wildcard):
                shape.append(self._extent())
            else:
                shape.append(self._expression(dim))
        operand = TensorType(dtype, tuple(shape))
        self.operands[port.name.text] = operand
        return operand

    def _dtype(self, dtype: ast.Variable | ast.Name) -> str:
        if isinstance(dtype, ast.Name):
            return dtype.text
        drawn: str = self._variable(dtype.name, partial(self._any_dtype, dtype.name))
        return drawn

    def _any_dtype(self, variable: str) -> str:
        """One of the element types that the conditions which can be decided leave a variable."""
        choices = self.sampler.dtypes[variable]
        for name in self.rng.sample(choices, len(choices)):
            if self._fits(variable, name):
                return name
        raise _Astray

    def _extent(self) -> int:
        return self.rng.choice(EXTENTS)

    def _extents(self, name: str) -> tuple[int, ...]:
        return tuple(self._extent() for _ in range(self._rank(name)))

    def _rank(self, name: str) -> int:
        """A rank that the conditions on ``rank(V)`` or on the operand's rank, one by one, allow."""
        low, high = 0, 4
        for condition in self.conditions:
            match condition:
                case ast.Comparison((subject, ast.Number(int(bound))), (op,)):
                    extra = self._rank_offset(subject, name)
                    if extra is None:
                        continue
                    bound -= extra
                    if op in ("==", ">=", ">"):
                        low = max(low, bound + (op == ">"))
                    if op in ("==", "<=", "<"):
                        high = min(high, bound - (op == "<"))
        choices = [rank for rank in RANKS if low <= rank <= high]
        return self.rng.choice(choices) if choices else low

    def _rank_offset(self, subject: ast.Expr, name: str) -> int | None:
        """By how much ``subject`` exceeds the rank of splat ``name``, if it is about that."""
        splat = ast.Splat(ast.Variable(name))
        match subject:
            case ast.CallExpr(ast.Ident("rank"), (ast.Variable(variable),)) if variable == name:
                return 0
            case ast.Member(ast.Name(operand), ast.Ident("rank")):
                for port in self.plan.decl.params:
                    dims = port.type.shape or ()
                    if port.name.text == operand and splat in dims:
                        return len(dims) - 1
        return None

    def _group(self) -> tuple[tuple[int, ...], ...]:
        return (self._extents(""),) * self.rng.randint(1, 4)

    # --- variables -------------------------------------------------------------------------------

    def _variable(self, name: str, otherwise: Callable[[], Any]) -> Any:
        """The variable's value: as drawn before, as its attribute draws it, as an equation or a
        shape function suggests, or ``otherwise``; if conditions can be decided, one that fits."""
        if name in self.by_variable:
            self._attribute(self.by_variable[name])
        if name not in self.values:
            self.busy.add(name)
            for _ in range(_LOOKS):
                suggested = self._suggest(name)
                value = otherwise() if suggested is _MISSING else suggested
                if self._fits(name, value):
                    break
            self.values[name] = value
            self.busy.discard(name)
        return self.values[name]

    def _expression(self, expr: ast.Expr) -> Any:
        """The value of an expression, drawing what it mentions first."""
        for variable in variables(expr):
            self._variable(variable.name, self._extent)
        return evaluate(expr, self.scope, NATIVE)

    def _fits(self, variable: str, value: Any) -> bool:
        """Whether no condition that this value decides is false."""
        before = self.values.get(variable, _MISSING)
        self.values[variable] = value
        try:
            about = self.sampler.about.get(variable, ())
            return all(_may_hold(condition, self.scope) for condition in about)
        finally:
            del self.values[variable]
            if before is not _MISSING:
                self.values[variable] = before

    def _suggest(self, name: str) -> Any:
        """A value for a variable from an equation or a shape function that relates it to what is
        drawn already."""
        for condition in self.conditions:
            choices = condition.parts if isinstance(condition, ast.Or) else (condition,)
            match choices[0]:
                case ast.Comparison((ast.Variable(left), expr), ("==",)) if left == name:
                    value = self._argument(expr)
                    if value is not _MISSING and (len(choices) == 1 or self.rng.random() < 0.8):
                        return value
        for call in self.calls:
            suggest = SUGGESTIONS.get(call.function.text)
            mine = [i for i, arg in enumerate(call.args) if arg == ast.Variable(name)]
            if suggest is None or not mine:
                continue
            args = [_MISSING if i in mine else self._argument(a) for i, a in enumerate(call.args)]
            value = suggest(self.rng, args, mine[0])
            if value is not _MISSING:
                return value
        return _MISSING

    def _argument(self, expr: ast.Expr) -> Any:
        """The value of an expression if it can be had, drawing attributes on the way: but only
        axes and words, since most other attributes are themselves suggested by shapes."""
        for variable in variables(expr):
            attribute = self.by_variable.get(variable.name)
            if variable.name in self.values or attribute is None:
                continue
            if attribute.variable in self.axes or attribute.type in ("bool", "sym"):
                self._attribute(attribute)
        try:
            return evaluate(expr, self.scope, NATIVE)
        except (Absent, ShapeError):
            return _MISSING

    # --- attributes ------------------------------------------------------------------------------

    def _attribute(self, attribute: AttributePlan) -> None:
        """Draw an attribute, or leave it to its default."""
        name = attribute.variable
        if name in self.values or name in self.busy:
            return
        self.busy.add(name)
        try:
            if attribute.required or self.rng.random() < 0.6:
                self._choose(attribute)
            else:
                self._default(attribute)
        except Absent:
            pass  # it counts in something that is not drawn yet; asked for again later
        self.busy.discard(name)

    def _choose(self, attribute: AttributePlan) -> None:
        for _ in range(_LOOKS):
            value = self._draw_attribute(attribute)
            if value is _MISSING:
                return
            resolved = self._resolved(attribute.variable, value)
            if self._fits(attribute.variable, resolved):
                self.attributes[attribute.name] = value
                self.values[attribute.variable] = resolved
                return

    def _default(self, attribute: AttributePlan) -> None:
        if attribute.default is None or attribute.optional:
            return
        value = evaluate(attribute.default, self.scope, NATIVE)
        self.values[attribute.variable] = self._resolved(attribute.variable, value)

    def _resolved(self, variable: str, value: Any) -> Any:
        """An axis, or a list of axes, with negative ones resolved."""
        step = self.axes.get(variable)
        if step is None:
            return value
        rank = self._axis_rank(step, value)
        if isinstance(value, tuple):
            return tuple(axis + rank if axis < 0 else axis for axis in value)
        return value + rank if value < 0 else value

    def _axis_rank(self, step: Normalise, value: Any) -> int:
        """The rank that axes count in; where it depends on how many there are, use ``value``."""
        self.values[step.variable] = value
        try:
            rank: int = evaluate(step.rank, self.scope, NATIVE)
        finally:
            del self.values[step.variable]
        return rank

    def _draw_attribute(self, attribute: AttributePlan) -> Any:
        rng = self.rng
        suggested = self._suggest(attribute.variable)
        many = attribute.type.endswith("s")
        if suggested is not _MISSING and isinstance(suggested, tuple) is many:
            return suggested
        if attribute.variable in self.axes:
            return self._axes(self.axes[attribute.variable])
        match attribute.type:
            case "bool":
                return rng.random() < 0.5
            case "dtype":
                return self._any_dtype(attribute.variable)
            case "sym":
                return rng.choice(self._members(attribute)) if attribute.domain else _MISSING
            case "syms":
                return _MISSING
            case "int" | "float":
                return self._number(attribute)
        length = self._length(attribute)
        if rng.random() < 0.5:
            return (self._number(attribute),) * length
        return tuple(self._number(attribute) for _ in range(length))

    def _length(self, attribute: AttributePlan) -> int:
        """How many items: as a condition on ``len(V)`` or the default says, else a few."""
        for condition in self.conditions:
            match condition:
                case ast.Comparison(
                    (ast.CallExpr(ast.Ident("len"), (ast.Variable(name),)), expr), ("==",)
                ) if name == attribute.variable:
                    length = self._argument(expr)
                    if isinstance(length, int):
                        return length
        if isinstance(attribute.default, ast.ListExpr):
            return len(attribute.default.items)
        return self.rng.choice((0, 1, 2, 3, 4))

    def _number(self, attribute: AttributePlan) -> Any:
        if attribute.type.startswith("float"):
            choices = [0.5, 1.0, 2.0, 0.25, 0.0, -1.0]
            if isinstance(attribute.domain, ast.RangeDomain):
                low = evaluate(attribute.domain.low, self.scope, NATIVE)
                high = evaluate(attribute.domain.high, self.scope, NATIVE)
                choices = [c for c in choices if low <= c <= high]
            return self.rng.choice(choices)
        if attribute.domain is None:
            return self.rng.randint(-2, 3)
        members = self._members(attribute)
        return self.rng.choice(members[:2] if self.rng.random() < 0.6 else members)

    def _members(self, attribute: AttributePlan) -> list[Any]:
        """The values of a domain; of a wide range, the first few."""
        match attribute.domain:
            case ast.SetDomain(items):
                return [evaluate(item, self.scope, NATIVE) for item in items]
            case ast.NamedDomain(name):
                return sorted(self.plan.sets[name.text], key=str)
            case ast.RangeDomain(low, high):
                least = evaluate(low, self.scope, NATIVE)
                most = evaluate(high, self.scope, NATIVE)
                return list(range(least, int(min(most, least + 4)) + 1))
            case None:
                raise ValueError(attribute.name)

    def _axes(self, step: Normalise) -> Any:
        rank = self._axis_rank(step, ())
        count = rank + (step.word == "axis_or_end")
        if rank + count == 0:
            raise _Astray
        if step.word in ("axis", "axis_or_end"):
            return self.rng.randrange(-rank, count)
        chosen = self.rng.sample(range(rank), self.rng.randint(1, rank))
        return tuple(axis - rank if self.rng.random() < 0.3 else axis for axis in chosen)


def _conjuncts(condition: ast.Condition) -> Iterator[ast.Condition]:
    if isinstance(condition, ast.And):
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _may_hold(condition: ast.Condition, scope: Scope) -> bool:
    try:
        return holds(condition, scope, NATIVE) is not False
    except (Absent, ShapeError, IndexError, ZeroDivisionError):
        return True


def _calls(decl: ast.OpDecl) -> Iterator[ast.CallExpr]:
    """The function calls of a signature, those in conditions first."""
    trees: list[ast.Expr | ast.Condition] = [*decl.where]
    for _, type_ in decl.results:
        trees += [d.expr if isinstance(d, ast.Splat) else d for d in type_.shape or ()]
    for tree in trees:
        for part in walk(tree):
            if isinstance(part, ast.CallExpr):
                yield part


# --- what shape functions suggest ----------------------------------------------------------------

Suggest = Callable[[Random, list[Any], int], Any]
"""``suggest(rng, arguments, i)``: a value for argument i; arguments not drawn yet are missing."""


def _like(rng: Random, args: list[Any], i: int) -> Any:
    """A shape that broadcasts with the shapes drawn so far."""
    shapes = [a for j, a in enumerate(args) if j != i and isinstance(a, tuple)]
    if not shapes:
        return _MISSING
    shape: list[int] = list(max(shapes, key=lambda known: len(tuple(known))))
    cut = rng.choice([0, 0, 1, len(shape)])
    kept = shape[cut:]
    kept = [1 if rng.random() < 0.25 else extent for extent in kept]
    if i == 1 and len(args) == 2 and not cut and rng.random() < 0.2:
        kept = [rng.choice(EXTENTS) if extent == 1 else extent for extent in kept]
    return tuple(kept)


def _group_that_broadcasts(rng: Random, args: list[Any], i: int) -> Any:
    shape = tuple(rng.choice(EXTENTS) for _ in range(rng.choice(RANKS)))
    return (shape, *(_like(rng, [shape, _MISSING], 1) for _ in range(rng.randint(0, 3))))


def _group_that_joins(rng: Random, args: list[Any], i: int) -> Any:
    if i == 1:
        shapes = args[0]
        if shapes is _MISSING:
            return _MISSING
        rank = len(shapes[0])
        apart = [a for a in range(rank) if len({shape[a] for shape in shapes}) > 1]
        axis = apart[0] if apart else rng.randrange(rank)
        return axis - rank if rng.random() < 0.3 else axis
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice((1, 2, 3, 4)))]
    axis = rng.randrange(len(shape))
    group = []
    for _ in range(rng.randint(1, 4)):
        group.append((*shape[:axis], rng.choice(EXTENTS), *shape[axis + 1 :]))
    return tuple(group)


def _group_alike(rng: Random, args: list[Any], i: int) -> Any:
    shape = tuple(rng.choice(EXTENTS) for _ in range(rng.choice(RANKS)))
    return (shape,) * rng.randint(1, 4)


def _permutation(rng: Random, args: list[Any], i: int) -> Any:
    if i != 1 or args[0] is _MISSING:
        return _MISSING
    order = list(range(len(args[0])))
    rng.shuffle(order)
    return tuple(order)


def _new_shape(rng: Random, args: list[Any], i: int) -> Any:
    """The elements of a shape dealt out again; sometimes one extent is -1, or 0 for a copy."""
    if i != 1 or args[0] is _MISSING:
        return _MISSING
    factors: list[int] = []
    rest = math.prod(args[0])
    for prime in (2, 3, 5, 7):
        while rest and rest % prime == 0:
            factors.append(prime)
            rest //= prime
    if rest > 1:
        factors.append(rest)
    shape = [1] * rng.choice((1, 2, 2, 3, 4))
    for factor in factors:
        shape[rng.randrange(len(shape))] *= factor
    for axis in range(min(len(shape), len(args[0]))):
        if args[2] is not True and shape[axis] == args[0][axis] and rng.random() < 0.5:
            shape[axis] = 0
    if rng.random() < 0.4:
        shape[rng.randrange(len(shape))] = -1
    return tuple(shape)


def _new_axes(rng: Random, args: list[Any], i: int) -> Any:
    if i != 1 or args[0] is _MISSING:
        return _MISSING
    count = rng.choice((1, 1, 2))
    rank = len(args[0]) + count
    chosen = rng.sample(range(rank), count)
    return tuple(axis - rank if rng.random() < 0.3 else axis for axis in chosen)


def _pieces(rng: Random, args: list[Any], i: int) -> Any:
    if i != 2 or args[0] is _MISSING or args[1] is _MISSING:
        return _MISSING
    rest = args[0][args[1]]
    sizes: list[int] = []
    while rest and len(sizes) < 3:
        sizes.append(rng.randint(1, rest))
        rest -= sizes[-1]
    return (*sizes, rest) if rest or not sizes else tuple(sizes)


def _bounds(rng: Random, args: list[Any], i: int) -> Any:
    if args[0] is _MISSING:
        return _MISSING
    rank = len(args[0])
    known = next((len(a) for a in args[1:] if isinstance(a, tuple)), None)
    count = rng.randint(1, rank) if known is None and rank else known or 0
    match i:
        case 1:
            return tuple(rng.choice((0, 0, 1, -1, -2, 2, 9)) for _ in range(count))
        case 2:
            return tuple(rng.choice((1, 2, 3, -1, 2**31 - 1, 2**63 - 1)) for _ in range(count))
        case 3:
            return tuple(rng.sample(range(rank), min(count, rank)))
        case _:
            return tuple(rng.choice((1, 1, 1, 2, 3, -1)) for _ in range(count))


def _for_each_axis(*choices: Any, per_axis: int = 1) -> Suggest:
    """A list with one random choice (or ``per_axis``) for each extent of the first argument."""

    def suggest(rng: Random, args: list[Any], i: int) -> Any:
        if i == 0 or args[0] is _MISSING:
            return _MISSING
        return tuple(rng.choice(choices) for _ in range(per_axis * len(args[0])))

    return suggest


def _windows(rng: Random, args: list[Any], i: int) -> Any:
    if i not in (1, 2, 3, 4) or args[0] is _MISSING:
        return _MISSING
    count = len(args[0]) * (2 if i == 3 else 1)
    choices = {1: (1, 2, 2, 3), 2: (1, 1, 2, 3), 3: (0, 0, 1), 4: (1, 1, 2)}[i]
    return tuple(rng.choice(choices) for _ in range(count))


def _matrix(rng: Random, args: list[Any], i: int) -> Any:
    if i == 0:
        return tuple(rng.choice(EXTENTS) for _ in range(rng.choice((1, 2, 2, 3, 4))))
    left = args[0]
    if left is _MISSING:
        return _MISSING
    if rng.random() < 0.2:
        return (left[-1],)
    batch = _like(rng, [left[:-2], _MISSING], 1) if rng.random() < 0.7 else ()
    return (*batch, left[-1], rng.choice(EXTENTS))


def _index_tuples(rng: Random, args: list[Any], i: int) -> Any:
    if i != 1 or args[0] is _MISSING:
        return _MISSING
    shape, batch = args[0], args[2] if isinstance(args[2], int) else 0
    middle = tuple(rng.choice(EXTENTS) for _ in range(rng.choice((0, 1, 2))))
    return (*shape[:batch], *middle, rng.randint(1, max(len(shape) - batch, 1)))


def _smaller(rng: Random, args: list[Any], i: int) -> Any:
    if i != 1 or args[0] is _MISSING:
        return _MISSING
    return tuple(rng.randint(1, extent) for extent in args[0])


_EQUATIONS = (
    "ij,jk->ik",
    "i,i->",
    "ii->i",
    "bij,bjk->bik",
    "ij->ji",
    "ij,j->i",
    "i,j->ij",
    "...ij,...jk->...ik",
    "ij,jk",
    "ijk->k",
)


def _equation(rng: Random, args: list[Any], i: int) -> Any:
    if i == 1:
        return rng.choice(_EQUATIONS)
    extents: dict[str, int] = {}
    shapes = []
    batch = (rng.choice(EXTENTS),)
    for term in args[1].partition("->")[0].split(","):
        shape: list[int] = []
        if term.startswith("..."):
            shape += batch
        for letter in term.removeprefix("..."):
            shape.append(extents.setdefault(letter, rng.choice(EXTENTS)))
        shapes.append(tuple(shape))
    return tuple(shapes)


SUGGESTIONS: dict[str, Suggest] = {
    "broadcast": _like,
    "broadcast_all": _group_that_broadcasts,
    "concat_dims": _group_that_joins,
    "common": _group_alike,
    "permute": _permutation,
    "reshape_dims": _new_shape,
    "insert": _new_axes,
    "split_dims": _pieces,
    "slice_dims": _bounds,
    "pad_dims": _for_each_axis(0, 0, 1, 2, per_axis=2),
    "tile_dims": _for_each_axis(1, 1, 2, 3),
    "scale_dims": _for_each_axis(1.0, 2.0, 0.5, 1.5),
    "sized_dims": _for_each_axis(1, 2, 3, 5),
    "windows": _windows,
    "unwindows": _windows,
    "matmul_dims": _matrix,
    "gather_nd_dims": _index_tuples,
    "room": _smaller,
    "einsum_dims": _equation,
}
