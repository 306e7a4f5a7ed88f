"""Random valid applications of a signature: operand types and attributes, without a solver.

Comes in: a :class:`~reprise.solve.signatures.Signature`, a random generator and, if wanted, the
types that some operands must have. Goes out: :class:`Instance` values that the signature accepts.
Everything follows from the signature itself: dtype variables from their sets, extents from a
:class:`~reprise.solve.suggestions.Shapes`, attributes from their domains, and where a shape
function relates two things one from the other. What is drawn is then checked, and drawn again if
the signature refuses it. Same generator state, same instances.

A sampler is made once and drawn from often, so all that depends on the signature alone (compiled
conditions, domains, what is suggested by what) is prepared when the sampler is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.solve.emit import UNDECIDED, Partial, compile_partial
from reprise.solve.plan import AttributePlan, Normalise, needed, variables, walk
from reprise.solve.signatures import Signature
from reprise.solve.suggestions import MISSING, SUGGESTIONS, Request, Shapes, Suggest
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.inference import Typing

_USUAL_DTYPES = ("float32", "float64", "int32", "int64", "bool")
_LOOKS = 12
"""How often a value is drawn again because a condition that it decides is false."""
_LIKELY = 0.6
"""How likely an attribute is drawn rather than left to its default, and how likely one of the
first two members of its domain is taken."""


class Astray(Exception):
    """Nothing that could be drawn next would fit."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Operand types and attributes that a signature accepts."""

    operands: tuple[TensorType | None, ...]
    attributes: dict[str, Attribute]


Bound = Mapping[int, TensorType]
"""Types that operands must have, by operand number."""
_UNBOUND: Bound = {}
_NOTHING: Mapping[str, Attribute] = {}
DRAWN = "<drawn>"
"""Among given attributes: one that is drawn, but not left to its default."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """An expression, and the attributes in it that are drawn before it is evaluated: single ones
    only, since lists are themselves suggested by shapes."""

    value: Partial
    attributes: tuple[PreparedAttribute, ...]


@dataclass(frozen=True, slots=True, eq=False)
class About:
    """A condition, compiled, and the variables that it mentions: ``doubts`` are what it cannot do
    without and may be absent, ``doubtful`` all that may be; ``asks``: about who is present."""

    holds: Partial
    names: frozenset[str]
    doubts: tuple[str, ...]
    doubtful: tuple[str, ...]
    asks: bool


@dataclass(frozen=True, slots=True)
class _Equation:
    """A condition ``V == expr``, or one with several such alternatives; ``alone``: and no other."""

    arguments: tuple[_Argument, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a shape function that mentions a variable as its argument ``position``."""

    suggest: Suggest
    arguments: tuple[_Argument | None, ...]
    position: int


@dataclass(slots=True, eq=False)
class PreparedAttribute:
    """An attribute, prepared. ``members``: its domain, if that depends on nothing."""

    plan: AttributePlan
    axes: Normalise | None
    default: Partial | None
    members: list[Any] | None = None
    lengths: tuple[_Argument, ...] = ()
    rank: Partial | None = None


@dataclass(frozen=True, slots=True)
class _Port:
    """An operand: a dtype variable or name, and its dimensions with the place of the splat."""

    name: str
    dtype: ast.Variable | ast.Name
    dims: tuple[ast.Expr | ast.Splat, ...]
    splat: int | None
    optional: bool
    variadic: bool
    at_run_time: bool


class Sampler:
    """Draws instances of one signature.

    ``shapes`` is what extents and ranks are drawn from; ``dtypes``, if given, what element types
    are drawn from wherever the signature leaves a choice (repeated ones are likelier).
    """

    def __init__(
        self,
        signature: Signature,
        shapes: Shapes | None = None,
        dtypes: Sequence[str] | None = None,
    ) -> None:
        self.signature = signature
        self.shapes = shapes or Shapes()
        plan = self.plan = signature.plan
        self._preferred = dtypes
        self._conditions = [part for c in plan.decl.where for part in _conjuncts(c)]
        optional = {p.name.text for p in plan.decl.params if p.optional}
        self._presence = [
            compile_partial(plan, condition)
            for condition in self._conditions
            if any(
                isinstance(part, ast.AtomCond)
                and isinstance(part.args[0], ast.Name)
                and part.args[0].text in optional
                for part in walk(condition)
            )
        ]
        self._about: dict[str, list[About]] = {}
        for condition in self._conditions:
            if not isinstance(condition, ast.AtomCond):
                mentioned = frozenset(v.name for v in variables(condition))
                about = About(
                    compile_partial(plan, condition),
                    mentioned,
                    tuple(n for n in needed(condition) if n in plan.doubtful),
                    tuple(sorted(mentioned & plan.doubtful)),
                    any(isinstance(part, ast.AtomCond) for part in walk(condition)),
                )
                for name in sorted(mentioned):
                    self._about.setdefault(name, []).append(about)
        axes = {s.variable: s for s in plan.steps if isinstance(s, Normalise)}
        self.attributes = {
            a.variable: PreparedAttribute(
                a,
                axes.get(a.variable),
                None if a.default is None or a.optional else compile_partial(plan, a.default),
            )
            for a in plan.attributes
        }
        for attribute in self.attributes.values():
            self._prepare(attribute)
        runtime = {a.name for a in plan.attributes}
        self.ports = [_port(p, runtime) for p in plan.decl.params]
        self._calls = list(_calls(plan.decl))
        self._equations: dict[str, list[_Equation]] = {}
        self._called: dict[str, list[_Call]] = {}
        self._expressions: dict[int, tuple[Partial, tuple[str, ...]]] = {}
        for port in self.ports:
            for dim in port.dims:
                if not isinstance(dim, ast.Splat | ast.Variable | ast.Wildcard):
                    names = tuple(v.name for v in variables(dim))
                    self._expressions[id(dim)] = compile_partial(plan, dim), names
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._decided: dict[frozenset[str], tuple[Partial, ...]] = {}

    def draw(self, rng: Random, bound: Bound = _UNBOUND, *, tries: int = 200) -> Instance | None:
        """One instance, or None if ``tries`` proposals were all refused."""
        found = self.typed(rng, bound, tries=tries)
        return None if found is None else found[0]

    def typed(
        self,
        rng: Random,
        bound: Bound = _UNBOUND,
        *,
        tries: int = 200,
        shapes: Shapes | None = None,
        given: Mapping[str, Attribute] = _NOTHING,
    ) -> tuple[Instance, Typing] | None:
        """One instance and what the signature says of it. ``shapes``: other than the sampler's;
        ``given``: attributes that are not drawn."""
        for _ in range(tries):
            instance = self.propose(rng, bound, shapes, given)
            if instance is None:
                continue
            typing = self.signature.attempt(instance.operands, instance.attributes)
            if typing is not None:
                return instance, typing
        return None

    def propose(
        self,
        rng: Random,
        bound: Bound = _UNBOUND,
        shapes: Shapes | None = None,
        given: Mapping[str, Attribute] = _NOTHING,
    ) -> Instance | None:
        """One draw, which the signature may still refuse; None if it went astray on the way."""
        try:
            return Draw(self, rng, bound, shapes or self.shapes).instance(given)
        except (Astray, *UNDECIDED):
            return None

    @cached_property
    def dtypes(self) -> dict[str, list[str]]:
        """For each dtype variable, the element types that the conditions on it alone leave."""
        return {name: self._dtypes(name) for name in sorted(self.plan.dtypes)}

    def accepts(self, port: int, type: TensorType) -> bool:
        """Whether an operand of this type can fit the port, as far as its own dtype, rank and the
        conditions on them say: what a generator indexes tensors by."""
        return type.dtype in self.port_dtypes(port) and type.rank in self.port_ranks(port)

    def port_dtypes(self, port: int) -> frozenset[str]:
        """The element types that an operand may have."""
        dtype = self.ports[port].dtype
        if isinstance(dtype, ast.Name):
            return frozenset({dtype.text})
        return frozenset(self.possible(dtype.name))

    def port_ranks(self, port: int, most: int = 8) -> frozenset[int]:
        """The ranks, up to ``most``, that an operand may have."""
        taken = self.ports[port]
        fixed = len(taken.dims) - (taken.splat is not None)
        if taken.splat is None:
            return frozenset({fixed})
        if taken.variadic:
            return frozenset(range(most + 1))
        splat = taken.dims[taken.splat]
        assert isinstance(splat, ast.Splat)
        low, high = 0, most
        if isinstance(splat.expr, ast.Variable):
            low, high = self.rank_bounds(splat.expr.name, most)
        return frozenset(range(low + fixed, min(high + fixed, most) + 1))

    # --- preparation -----------------------------------------------------------------------------

    def _prepare(self, attribute: PreparedAttribute) -> None:
        plan = attribute.plan
        if attribute.axes is not None:
            attribute.rank = compile_partial(self.plan, attribute.axes.rank)
        match plan.domain:
            case ast.SetDomain(items):
                if not any(True for item in items for _ in variables(item)):
                    attribute.members = [compile_partial(self.plan, item)({}, {}) for item in items]
            case ast.NamedDomain(name):
                attribute.members = sorted(self.plan.sets[name.text], key=str)
            case ast.RangeDomain(low, high):
                if not any(True for end in (low, high) for _ in variables(end)):
                    attribute.members = self._range(low, high, {})
            case _:
                pass

    def _range(self, low: ast.Expr, high: ast.Expr, values: Mapping[str, Any]) -> list[Any]:
        """The members of a range; of a wide one, the first few. Of floats, its ends."""
        least = compile_partial(self.plan, low)(values, {})
        most = compile_partial(self.plan, high)(values, {})
        if isinstance(least, float) or (isinstance(most, float) and most != float("inf")):
            return [least, most]
        return list(range(least, int(min(most, least + 4)) + 1))

    def _argument(self, expr: ast.Expr) -> _Argument:
        drawn = []
        for variable in variables(expr):
            attribute = self.attributes.get(variable.name)
            if attribute is not None and (
                attribute.axes is not None or attribute.plan.type in ("bool", "int", "sym")
            ):
                drawn.append(attribute)
        return _Argument(compile_partial(self.plan, expr), tuple(drawn))

    def _suggesting(self, name: str) -> tuple[list[_Equation], list[_Call]]:
        """The equations and calls that may suggest a value for a variable."""
        equations = self._equations.get(name)
        if equations is None:
            equations = self._equations[name] = []
            for condition in self._conditions:
                choices = condition.parts if isinstance(condition, ast.Or) else (condition,)
                found = tuple(
                    self._argument(choice.operands[1])
                    for choice in choices
                    if isinstance(choice, ast.Comparison)
                    and choice.ops == ("==",)
                    and choice.operands[0] == ast.Variable(name)
                )
                if found:
                    equations.append(_Equation(found, len(choices) == 1))
            calls = self._called[name] = []
            for call in self._calls:
                suggest = SUGGESTIONS.get(call.function.text)
                mine = [i for i, arg in enumerate(call.args) if arg == ast.Variable(name)]
                if suggest is not None and mine:
                    arguments = tuple(
                        None if i in mine else self._argument(a) for i, a in enumerate(call.args)
                    )
                    calls.append(_Call(suggest, arguments, mine[0]))
        return equations, self._called[name]

    def lengths(self, attribute: PreparedAttribute) -> tuple[_Argument, ...]:
        """What conditions on ``len(V)`` say of a list attribute's length."""
        if not attribute.lengths:
            attribute.lengths = tuple(
                self._argument(condition.operands[1])
                for condition in self._conditions
                if isinstance(condition, ast.Comparison)
                and condition.ops == ("==",)
                and condition.operands[0]
                == ast.CallExpr(ast.Ident("len"), (ast.Variable(attribute.plan.variable),))
            )
        return attribute.lengths

    def possible(self, variable: str) -> list[str]:
        """The element types that the conditions on a variable alone allow."""
        alone = [a.holds for a in self._about.get(variable, ()) if a.names == {variable}]
        return [name for name in DTYPES if all(_may(p, {variable: name}, {}) for p in alone)]

    def _dtypes(self, variable: str) -> list[str]:
        fit = self.possible(variable)
        if self._preferred is not None:
            return [name for name in self._preferred if name in fit]
        return list(_USUAL_DTYPES) if len(fit) == len(DTYPES) else fit

    def _decided_by(self, names: frozenset[str]) -> tuple[Partial, ...]:
        """The conditions on these variables alone."""
        found = self._decided.get(names)
        if found is None:
            about = {a: None for name in sorted(names) for a in self._about.get(name, ())}
            found = self._decided[names] = tuple(a.holds for a in about if a.names <= names)
        return found

    def _rank_choices(self, name: str) -> tuple[int, ...]:
        """The ranks that the conditions on a splat's rank, one by one, allow."""
        choices = self._ranks.get(name)
        if choices is None:
            low, high = self.rank_bounds(name, max(self.shapes.ranks))
            choices = tuple(r for r in self.shapes.ranks if low <= r <= high) or (low,)
            self._ranks[name] = choices
        return choices

    def rank_bounds(self, name: str, high: int) -> tuple[int, int]:
        low = 0
        for condition in self._conditions:
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
        return low, high

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


class Draw:
    """One draw: values of variables, made when something first asks for them."""

    def __init__(self, sampler: Sampler, rng: Random, bound: Bound, shapes: Shapes) -> None:
        self.sampler = sampler
        self.shapes = shapes
        self.rng = rng
        self.bound = bound
        self.values: dict[str, Any] = {}
        self.given: dict[str, Attribute] = {}
        self.busy: set[str] = set()
        self.left: set[str] = set()  # attributes that stay absent
        self.operands: dict[str, TensorType | None] = {}
        self.first: tuple[int, ...] | None = None
        self.forced: Set[str] = frozenset()

    def instance(self, given: Mapping[str, Attribute]) -> Instance:
        sampler, bound = self.sampler, self.bound
        ports = sampler.ports
        made: list[Any] = [None] * len(ports)
        if bound:
            for number, port in enumerate(ports):
                if number in bound:
                    made[number] = bound[number]
                    self._unify(port, bound[number])
            self._check_bound()
        if given:
            self._preset(given)
        self.prepare()
        for number, port in enumerate(ports):
            if not port.optional and (made[number] is None or port.variadic):
                made[number] = self._operand(port)
        for attribute in sampler.attributes.values():
            self._attribute(attribute)
        for number in self._wanted([i for i, type in enumerate(made) if type is None]):
            made[number] = self._operand(ports[number])
        operands: list[TensorType | None] = []
        for number, port in enumerate(ports):
            operands += made[number] if port.variadic else [made[number]]
        while operands and operands[-1] is None:
            operands.pop()
        return Instance(tuple(operands), self.given)

    def prepare(self) -> None:
        """Find values before anything is drawn: for those who know more than operands."""

    def wants(self, port: int) -> bool:
        """Whether an optional operand is to be there."""
        return self.rng.random() < 0.5

    def _wanted(self, missing: Sequence[int]) -> list[int]:
        """Which of the operands that are missing are to be there, as far as conditions on who is
        present let them."""
        if not missing:
            return []
        ports, conditions = self.sampler.ports, self.sampler._presence
        missing = [i for i in missing if not ports[i].at_run_time]
        wanted: list[int] = []
        for _ in range(_LOOKS if missing else 0):
            wanted = [i for i in missing if self.wants(i)]
            there = {ports[i].name: i in wanted or None for i in missing}
            operands = {port.name: None for port in ports} | self.operands | there
            if all(_may(condition, self.values, operands) for condition in conditions):
                break
        return wanted

    def _preset(self, given: Mapping[str, Attribute]) -> None:
        """Take attributes as given. Axes can be given where the rank is known."""
        fixed = {name: value for name, value in given.items() if value != DRAWN}
        self.given |= fixed
        self.forced = given.keys() - fixed.keys()
        for attribute in self.sampler.attributes.values():
            if attribute.plan.name in given:
                self._attribute(attribute)

    # --- operands that are given -----------------------------------------------------------------

    def _unify(self, port: _Port, type: TensorType) -> None:
        """Bind the port's variables to what the given type says."""
        shape: Any = type.shape
        dtype = port.dtype
        if isinstance(dtype, ast.Name):
            if dtype.text != type.dtype:
                raise Astray
        else:
            self._bind(dtype.name, type.dtype)
        self.operands[port.name] = type
        if port.variadic:
            self.first = shape
            return
        splat, dims = port.splat, port.dims
        fixed = len(dims) - (splat is not None)
        if len(shape) < fixed or (splat is None and len(shape) != fixed):
            raise Astray
        for i, dim in enumerate(dims):
            place = i if splat is None or i <= splat else i - len(dims)
            match dim:
                case ast.Variable(name):
                    self._bind(name, shape[place])
                case ast.Splat(ast.Variable(name)):
                    stop = i + 1 - len(dims)
                    self._bind(name, shape[i:stop] if stop else shape[i:])
                case ast.Number(value):
                    if shape[place] != value:
                        raise Astray

    def _bind(self, name: str, value: Any) -> None:
        if self.values.setdefault(name, value) != value:
            raise Astray

    def _check_bound(self) -> None:
        """Go astray at once if what is given cannot fit."""
        values, operands = self.values, self.operands
        for holds in self.sampler._decided_by(frozenset(values)):
            try:
                if not holds(values, operands):
                    raise Astray
            except UNDECIDED:
                pass

    # --- operands --------------------------------------------------------------------------------

    def _operand(self, port: _Port) -> Any:
        dtype = self._dtype(port.dtype)
        if port.variadic:
            splat = port.dims[0]
            assert isinstance(splat, ast.Splat) and isinstance(splat.expr, ast.Variable)
            shapes = self._variable(splat.expr.name, self._group)
            if self.first is not None and shapes[0] != self.first:
                raise Astray
            operands = [TensorType(dtype, shape) for shape in shapes]
            self.operands[port.name] = operands[0]
            return operands
        shape: list[Any] = []
        for dim in port.dims:
            match dim:
                case ast.Splat(ast.Variable(name)):
                    shape += self._variable(name, self._extents)
                case ast.Variable(name):
                    shape.append(self._variable(name, self._extent))
                case ast.Wildcard():
                    shape.append(self._extent(""))
                case _:
                    partial, names = self.sampler._expressions[id(dim)]
                    for name in names:
                        self._variable(name, self._extent)
                    shape.append(partial(self.values, self.operands))
        operand = TensorType(dtype, tuple(shape))
        self.operands[port.name] = operand
        return operand

    def _dtype(self, dtype: ast.Variable | ast.Name) -> str:
        if isinstance(dtype, ast.Name):
            return dtype.text
        drawn: str = self._variable(dtype.name, self._any_dtype)
        return drawn

    def _any_dtype(self, variable: str) -> str:
        """One of the element types that the conditions which can be decided leave a variable."""
        choices = self.sampler.dtypes[variable]
        if not choices:
            raise Astray
        name = choices[int(self.rng.random() * len(choices))]
        if self._fits(variable, name):
            return name
        for name in self.rng.sample(choices, len(choices)):
            if self._fits(variable, name):
                return name
        raise Astray

    def _extent(self, name: str) -> int:
        return self.shapes.extent(self.rng)

    def _extents(self, name: str) -> tuple[int, ...]:
        choices = self.sampler._rank_choices(name)
        rank = choices[int(self.rng.random() * len(choices))]
        return self.shapes.shape(self.rng, rank)

    def _group(self, name: str) -> tuple[tuple[int, ...], ...]:
        shape = self.shapes.shape(self.rng) if self.first is None else self.first
        return (shape,) * self.rng.randint(1, 4)

    # --- variables -------------------------------------------------------------------------------

    def _variable(self, name: str, otherwise: Callable[[str], Any]) -> Any:
        """The variable's value: as drawn before, as its attribute draws it, as an equation or a
        shape function suggests, or ``otherwise``; if conditions can be decided, one that fits."""
        values = self.values
        if name in values:
            return values[name]
        attribute = self.sampler.attributes.get(name)
        if attribute is not None:
            self._attribute(attribute)
        if name not in values:
            self.busy.add(name)
            for _ in range(_LOOKS):
                suggested = self._suggest(name)
                value = otherwise(name) if suggested is MISSING else suggested
                if self._fits(name, value):
                    break
            values[name] = value
            self.busy.discard(name)
        return values[name]

    def _fits(self, variable: str, value: Any) -> bool:
        """Whether no condition that this value decides is false."""
        about = self.sampler._about.get(variable)
        if about is None:
            return True
        values, operands = self.values, self.operands
        before = values.get(variable, MISSING)
        values[variable] = value
        try:
            for a in about:
                if a.doubts and self.is_open(a):
                    continue
                try:
                    if not a.holds(values, operands):
                        return False
                except UNDECIDED:
                    pass
            return True
        finally:
            if before is MISSING:
                del values[variable]
            else:
                values[variable] = before

    def is_open(self, about: About) -> bool:
        """Whether a condition cannot be judged, since something in it may be absent."""
        return bool(about.doubts) and not all(
            name in self.values
            or (about.asks and name in self.left)
            or self.operands.get(name) is not None
            for name in about.doubts
        )

    def _suggest(self, name: str) -> Any:
        """A value for a variable from an equation or a shape function that relates it to what is
        drawn already."""
        equations, calls = self.sampler._suggesting(name)
        for equation in equations:
            if not equation.alone and self.rng.random() >= 0.8:
                continue
            value = self._argument(self.rng.choice(equation.arguments))
            if value is not MISSING:
                return value
        for call in calls:
            args = [MISSING if a is None else self._argument(a) for a in call.arguments]
            request = Request(self.rng, args, call.position, self.shapes, self.first)
            value = call.suggest(request)
            if value is not MISSING:
                return value
        return MISSING

    def _argument(self, argument: _Argument) -> Any:
        """The value of an expression if it can be had; None is no value."""
        for attribute in argument.attributes:
            if attribute.plan.variable not in self.values:
                self._attribute(attribute)
        try:
            value = argument.value(self.values, self.operands)
        except UNDECIDED:
            return MISSING
        return MISSING if value is None else value

    # --- attributes ------------------------------------------------------------------------------

    def _attribute(self, attribute: PreparedAttribute) -> None:
        """Draw an attribute, or leave it to its default."""
        name = attribute.plan.variable
        if name in self.busy or name in self.values or name in self.left:
            return
        self.busy.add(name)
        try:
            if attribute.plan.name in self.given:
                given = self.given[attribute.plan.name]
                self.values[name] = self._resolved(attribute, given)
            elif (
                attribute.plan.required
                or attribute.plan.name in self.forced
                or self.rng.random() < _LIKELY
            ):
                self._choose(attribute)
            elif attribute.default is not None:
                value = attribute.default(self.values, self.operands)
                if value is not None:
                    self.values[name] = self._resolved(attribute, value)
            else:
                self.left.add(name)
        except UNDECIDED:
            pass  # it counts in something that is not drawn yet; asked for again later
        self.busy.discard(name)

    def _choose(self, attribute: PreparedAttribute) -> None:
        for _ in range(_LOOKS):
            value = self._draw_attribute(attribute)
            if value is MISSING:
                return
            resolved = self._resolved(attribute, value)
            if self._fits(attribute.plan.variable, resolved):
                self.given[attribute.plan.name] = value
                self.values[attribute.plan.variable] = resolved
                return
        if attribute.plan.optional:
            self.left.add(attribute.plan.variable)

    def _resolved(self, attribute: PreparedAttribute, value: Any) -> Any:
        """An axis, or a list of axes, with negative ones resolved."""
        if attribute.rank is None:
            return value
        rank = self._axis_rank(attribute, value)
        if isinstance(value, tuple):
            return tuple([axis + rank if axis < 0 else axis for axis in value])
        return value + rank if value < 0 else value

    def _axis_rank(self, attribute: PreparedAttribute, value: Any) -> int:
        """The rank that axes count in; where it depends on how many there are, use ``value``."""
        assert attribute.rank is not None
        name = attribute.plan.variable
        self.values[name] = value
        try:
            rank: int = attribute.rank(self.values, self.operands)
        finally:
            del self.values[name]
        return rank

    def _draw_attribute(self, attribute: PreparedAttribute) -> Any:
        rng, plan = self.rng, attribute.plan
        suggested = self._suggest(plan.variable)
        if suggested is not MISSING and isinstance(suggested, tuple) is plan.type.endswith("s"):
            return suggested
        if attribute.axes is not None:
            return self._axes(attribute)
        match plan.type:
            case "bool":
                return rng.random() < 0.5
            case "dtype":
                return self._any_dtype(plan.variable)
            case "sym":
                members = self._members(attribute)
                return rng.choice(members) if members else MISSING
            case "syms":
                return MISSING
            case "int" | "float":
                return self._number(attribute)
        length = self._length(attribute)
        if rng.random() < 0.5:
            return (self._number(attribute),) * length
        return tuple([self._number(attribute) for _ in range(length)])

    def _length(self, attribute: PreparedAttribute) -> int:
        """How many items: as a condition on ``len(V)`` or the default says, else a few."""
        for argument in self.sampler.lengths(attribute):
            length = self._argument(argument)
            if isinstance(length, int):
                return length
        if isinstance(attribute.plan.default, ast.ListExpr):
            return len(attribute.plan.default.items)
        return self.rng.choice((0, 1, 2, 3, 4))

    def _number(self, attribute: PreparedAttribute) -> Any:
        rng, plan = self.rng, attribute.plan
        if plan.type.startswith("float"):
            choices = [0.5, 1.0, 2.0, 0.25, 0.0, -1.0]
            members = self._members(attribute)
            if members:
                choices = [c for c in choices if members[0] <= c <= members[-1]]
            return rng.choice(choices or members)
        members = self._members(attribute)
        if not members:
            return rng.randint(-2, 3)
        likely = members[:2] if rng.random() < _LIKELY else members
        return likely[int(rng.random() * len(likely))]

    def _members(self, attribute: PreparedAttribute) -> list[Any]:
        """The values of a domain; of a wide range, the first few; none if there is no domain."""
        if attribute.members is not None:
            return attribute.members
        match attribute.plan.domain:
            case ast.SetDomain(items):
                plan = self.sampler.plan
                return [compile_partial(plan, i)(self.values, self.operands) for i in items]
            case ast.RangeDomain(low, high):
                return self.sampler._range(low, high, self.values)
        return []

    def _axes(self, attribute: PreparedAttribute) -> Any:
        assert attribute.axes is not None
        rng, word = self.rng, attribute.axes.word
        rank = self._axis_rank(attribute, ())
        count = rank + (word == "axis_or_end")
        if rank + count == 0:
            raise Astray
        if word in ("axis", "axis_or_end"):
            return rng.randrange(-rank, count)
        chosen = rng.sample(range(rank), rng.randint(1, rank))
        return tuple([axis - rank if rng.random() < 0.3 else axis for axis in chosen])


def _may(partial: Partial, values: Mapping[str, Any], operands: Mapping[str, Any]) -> bool:
    """Whether a condition holds, or may still."""
    try:
        return bool(partial(values, operands))
    except UNDECIDED:
        return True


def _port(port: ast.Param, runtime: set[str]) -> _Port:
    dims = port.type.shape or ()
    splat = next((i for i, dim in enumerate(dims) if isinstance(dim, ast.Splat)), None)
    name = port.name.text
    return _Port(name, port.type.dtype, dims, splat, port.optional, port.variadic, name in runtime)


def _conjuncts(condition: ast.Condition) -> Iterator[ast.Condition]:
    if isinstance(condition, ast.And):
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _calls(decl: ast.OpDecl) -> Iterator[ast.CallExpr]:
    """The function calls of a signature, those in conditions first."""
    trees: list[ast.Expr | ast.Condition] = [*decl.where]
    for _, type_ in decl.results:
        trees += [d.expr if isinstance(d, ast.Splat) else d for d in type_.shape or ()]
    for tree in trees:
        for part in walk(tree):
            if isinstance(part, ast.CallExpr):
                yield part
