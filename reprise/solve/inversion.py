"""One draw of a signature with its results given: from what is required back to operands.

Comes in: an *opened* signature, in which every computed extent has a variable of its own, and
values for the variables that results and given operands fix. Goes out: a proposal that the
signature may still refuse. Equations are used from the side that is known: unary functions and
arithmetic are inverted along the expression, shape functions by
:data:`~reprise.solve.inverses.INVERSES`. What no equation decides is drawn forwards, as by
:class:`~reprise.solve.sampling.Sampler`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from reprise.lang import ast
from reprise.solve.emit import UNDECIDED, Partial, compile_partial
from reprise.solve.inverses import INVERSES, Wanted, divisors
from reprise.solve.plan import make_plan, needed, variables, walk
from reprise.solve.sampling import (
    About,
    Astray,
    Bound,
    Draw,
    PreparedAttribute,
    Sampler,
)
from reprise.solve.signatures import Signature
from reprise.solve.suggestions import MISSING, Shapes
from reprise.uir.graph import TensorType

_LONGEST = 64
"""No list that is made up gets longer: nobody wants so many axes, or operands."""
_SMALL = (1, 1, 1, 2, 2, 3)
"""What an extent is drawn from that only helps another equation: a kernel's, most often."""

_NO_CHOICE, _DIVISORS, _DRAWING = range(3)
"""What solving an equation may do besides following it."""


class _Postponed(Exception):
    """An equation that is left until others have said what they can."""


def opened(signature: Signature) -> Signature:
    """The same signature with a variable for every computed extent: ``-> T[*drop(D, A)]`` becomes
    ``-> T[*R]`` where ``R == drop(D, A)``, so that results and operands bind variables only."""
    decl = signature.plan.decl
    where = list(decl.where)

    def name(type_: ast.TypeExpr, place: str, whole: bool) -> ast.TypeExpr:
        dims: list[ast.Expr | ast.Splat] = []
        for number, dim in enumerate(type_.shape or ()):
            expr = dim.expr if isinstance(dim, ast.Splat) else dim
            if isinstance(expr, ast.Variable | ast.Number | ast.Wildcard):
                dims.append(dim)
                continue
            variable = ast.Variable(f"_{place}_{number}", expr.span)
            where.append(ast.Comparison((variable, expr), ("==",), expr.span))
            dims.append(ast.Splat(variable, dim.span) if isinstance(dim, ast.Splat) else variable)
        return type_ if type_.shape is None else replace(type_, shape=tuple(dims))

    params = tuple(
        p if p.variadic else replace(p, type=name(p.type, f"p{i}", False))
        for i, p in enumerate(decl.params)
    )
    results = tuple((n, name(t, f"r{i}", True)) for i, (n, t) in enumerate(decl.results))
    decl = replace(decl, params=params, results=results, where=tuple(where))
    plan = make_plan(decl, signature.plan.sets, [])
    assert plan is not None, "opening a signature keeps it in order"
    return Signature(plan)


@dataclass(frozen=True, slots=True)
class Side:
    """An expression, prepared: its value, its variables, and how to take it apart."""

    tree: ast.Expr
    value: Partial
    names: tuple[str, ...]
    parts: tuple[Side, ...]
    doubts: tuple[str, ...]
    """What it cannot do without and may be absent."""


@dataclass(frozen=True, slots=True)
class Equation:
    """``left == right``, which holds in every instance (where nothing in ``doubts`` is absent)."""

    left: Side
    right: Side
    doubts: tuple[str, ...]


class Inverter(Sampler):
    """A sampler of an opened signature, with its equations prepared."""

    def __init__(
        self, signature: Signature, shapes: Shapes | None, dtypes: Sequence[str] | None
    ) -> None:
        super().__init__(opened(signature), shapes, dtypes)
        self.optional: dict[str, int] = {}
        """Variable -> the optional port that binds it."""
        self.owners: dict[str, list[str]] = {}
        """Shape variable -> the operands whose shapes mention it."""
        for number, port in enumerate(self.ports):
            for variable in _bound_by(port.dims, port.dtype):
                if port.optional and variable in self.plan.doubtful:
                    self.optional.setdefault(variable, number)
            for variable in _bound_by(port.dims, None):
                self.owners.setdefault(variable, []).append(port.name)
        self.by_port = {port.name: port for port in self.ports}
        self.scalars = {
            dim.name for port in self.ports for dim in port.dims if isinstance(dim, ast.Variable)
        }
        self.equations = sorted(
            self._equations_of(self._conditions),
            key=lambda e: (
                not (isinstance(e.left.tree, ast.Variable) and e.left.tree.name[0] == "_")
            ),
        )
        self.alternatives = [
            equations
            for condition in self._conditions
            if isinstance(condition, ast.Or)
            and len(equations := tuple(self._equations_of(condition.parts))) == len(condition.parts)
        ]
        """Equations of which one must hold."""
        self.reach: dict[str, int] = {}
        """List -> how long it must be for the items that conditions name."""
        for condition in self._conditions:
            for part in walk(condition):
                match part:
                    case ast.Index(ast.Variable(name), ast.Number(int(index))):
                        self.reach[name] = max(self.reach.get(name, 0), index + 1)
        self.splat_of = {
            port.name: port.dims[port.splat].expr.name  # type: ignore[union-attr]
            for port in self.ports
            if port.splat is not None
        }

    def _equations_of(self, conditions: Sequence[ast.Condition]) -> Iterator[Equation]:
        for condition in conditions:
            if isinstance(condition, ast.Comparison) and set(condition.ops) == {"=="}:
                for left, right in zip(condition.operands, condition.operands[1:], strict=False):
                    doubts = tuple(n for n in needed(condition) if n in self.plan.doubtful)
                    yield Equation(self.side(left), self.side(right), doubts)

    def side(self, tree: ast.Expr) -> Side:
        match tree:
            case ast.Binary(_, left, right):
                inner: tuple[ast.Expr, ...] = (left, right)
            case ast.CallExpr(_, args):
                inner = args
            case ast.ListExpr(items):
                inner = items
            case ast.Index(base, index):
                inner = (base, index)
            case _:
                inner = ()
        names = tuple(dict.fromkeys(v.name for v in variables(tree)))
        doubts = tuple(n for n in needed(tree) if n in self.plan.doubtful)
        return Side(
            tree, compile_partial(self.plan, tree), names, tuple(map(self.side, inner)), doubts
        )


class Inversion(Draw):
    """One draw. ``fixed``: values of variables that results fix."""

    sampler: Inverter

    def __init__(
        self,
        sampler: Inverter,
        rng: Random,
        bound: Bound,
        shapes: Shapes,
        fixed: Mapping[str, Any],
    ) -> None:
        super().__init__(sampler, rng, bound, shapes)
        self.values.update(fixed)
        self.absent: set[str] = set()
        """Attributes that are left out, by variable."""
        self.present: dict[int, bool] = {}
        """Optional ports whose presence is decided."""
        self.items: dict[str, dict[int, Any]] = {}
        """Lists of which only some items are known."""
        self.pending: list[Equation] = []
        self.freedom = _DRAWING
        self.lengths: dict[str, int] = {}
        """Lists of which only the length is known."""

    def prepare(self) -> None:
        self._check_bound()
        for name, attribute in self.sampler.attributes.items():
            if name in self.values and attribute.plan.name not in self.given:
                self.given[attribute.plan.name] = self._as_attribute(attribute, self.values[name])
        for name in list(self.values):
            self._notice(name)
        chosen = [self.rng.choice(equations) for equations in self.sampler.alternatives]
        pending = self._propagate([*self.sampler.equations, *chosen])
        while pending:
            # something is still open: attributes that are words first, then lists that are half
            # known, then extents that only help an equation
            if not self._open_one(pending):
                break
            pending = self._propagate(pending)

    def wants(self, port: int) -> bool:
        decided = self.present.get(port)
        return super().wants(port) if decided is None else decided

    # --- equations -------------------------------------------------------------------------------

    def _propagate(self, equations: Sequence[Equation]) -> list[Equation]:
        """Solve equations with one known side until nothing moves; returns those left over. What
        needs no choice goes first, then divisors, then what needs other things drawn."""
        left = self.pending = list(equations)
        self.freedom = _NO_CHOICE
        while left:
            used = [self._use(equation, left) for equation in list(left)]
            if any(used):
                self.freedom = _NO_CHOICE
            elif self.freedom < _DRAWING:
                self.freedom += 1
                for equation in list(left):
                    if self._use(equation, left):
                        self.freedom = _NO_CHOICE
                        break
            else:
                break
        self.freedom = _DRAWING
        return left

    def _use(self, equation: Equation, pending: list[Equation]) -> bool:
        """Solve an equation if one side is known; whether it is used up."""
        doubts = equation.doubts
        if doubts:
            if self._is_void(doubts):
                pending.remove(equation)
                return True
            if not self._is_there(doubts):
                return False
        left, right = self._peek(equation.left), self._peek(equation.right)
        if left is MISSING and right is MISSING:
            return False
        try:
            if left is MISSING:
                self._solve(equation.left, right)
            elif right is MISSING:
                self._solve(equation.right, left)
            elif left != right:
                raise Astray
        except _Postponed:
            return False
        pending.remove(equation)
        return True

    def _open_one(self, pending: Sequence[Equation]) -> bool:
        """Draw a value for something that a pending equation waits for, if there is any."""
        for equation in pending:
            for name in (*equation.left.names, *equation.right.names):
                if name in self.values:
                    continue
                if name in self.items or name in self.lengths:
                    self._close(name)
                    return True
        for equation in pending:
            if not self._is_there(equation.doubts):
                continue
            for side in (equation.left, equation.right):
                if not isinstance(side.tree, ast.Variable):
                    continue
                name = side.tree.name
                known = name in self.sampler.attributes or name in self.sampler.owners
                if not known and name not in self.values:
                    other = equation.right if side is equation.left else equation.left
                    if isinstance(other.tree, ast.Index):
                        self._bind(name, self.shapes.extent(self.rng))
                        return True
        return False

    def _is_void(self, doubts: Sequence[str]) -> bool:
        """Whether something is certainly absent."""
        for name in doubts:
            if name in self.absent:
                return True
            port = self._optional_port(name)
            if port is not None and self.present.get(port) is False and name not in self.values:
                return True
        return False

    def _is_there(self, doubts: Sequence[str]) -> bool:
        """Whether all of them are certainly present."""
        for name in doubts:
            if name not in self.values and self.operands.get(name) is None:
                port = self._optional_port(name)
                if port is None or not self.present.get(port):
                    return False
        return True

    def _optional_port(self, name: str) -> int | None:
        number = self.sampler.optional.get(name)
        if number is None:
            for i, port in enumerate(self.sampler.ports):
                if port.name == name and port.optional:
                    return i
        return number

    def _peek(self, side: Side) -> Any:
        """The value of an expression if it can be had without drawing anything."""
        values = self.values
        tree = side.tree
        if isinstance(tree, ast.Variable):
            return values.get(tree.name, MISSING)
        if isinstance(tree, ast.CallExpr) and tree.function.text == "or_else":
            return self._peek_alternative(side)
        for name in side.names:
            if name not in values:
                return MISSING
        try:
            value = side.value(values, self.operands)
        except UNDECIDED:
            return MISSING
        return MISSING if value is None and not isinstance(tree, ast.Wildcard) else value

    def _peek_alternative(self, side: Side) -> Any:
        preferred, fallback = side.parts
        if self._is_void(preferred.doubts):
            return self._peek(fallback)
        return self._peek(preferred) if self._is_there(preferred.doubts) else MISSING

    def _solve(self, side: Side, target: Any) -> None:
        """Choose values such that ``side`` equals ``target``. Raises Astray."""
        known = self._peek(side)
        if known is not MISSING:
            if not _agrees(known, target):
                raise Astray
            return
        match side.tree:
            case ast.Variable(name):
                self._assign(name, target)
            case ast.CallExpr(ast.Ident("or_else")):
                self._solve_alternative(side, target)
            case ast.CallExpr(function):
                self._invert(function.text, side, target)
            case ast.Binary(op):
                self._solve_arithmetic(op, side, target)
            case ast.ListExpr():
                if not isinstance(target, tuple) or len(target) != len(side.parts):
                    raise Astray
                for part, item in zip(side.parts, target, strict=True):
                    self._solve(part, item)
            case ast.Index(ast.Variable(name), _):
                index = self._demand(side.parts[1])
                if target is not None:
                    self._note(name, index, target)
            case ast.Index(ast.Member(ast.Name(operand), _), _):
                index = self._demand(side.parts[1])
                if target is not None:
                    self._note(self._whole(operand), index, target)
            case ast.Member(ast.Name(operand), ast.Ident("rank")):
                port = self.sampler.by_port[operand]
                self._measure(self._splat(operand), target - len(port.dims) + 1)
            case ast.Member(ast.Name(operand), ast.Ident("dtype")):
                dtype = self.sampler.by_port[operand].dtype
                if isinstance(dtype, ast.Variable):
                    self._assign(dtype.name, target)
            case ast.Wildcard():
                pass
            case _:
                raise Astray

    def _solve_arithmetic(self, op: str, side: Side, target: Any) -> None:
        if not isinstance(target, int | float):
            if target is None:
                return
            raise Astray
        left, right = side.parts
        args = [self._peek(left), self._peek(right)]
        if args == [MISSING, MISSING] and op == "*" and isinstance(right.tree, ast.Variable):
            args[1] = self._divisor(right.tree.name, side, target)
            self._assign(right.tree.name, args[1])
            args[0] = self._peek(left)
        elif args == [MISSING, MISSING]:
            args[1] = self._demand(right)
            args[0] = self._peek(left)
            if args[0] is not MISSING:
                return self._solve(side, target)
        found = INVERSES[op](Wanted(self.rng, target, args, self.shapes))
        if found is None:
            raise Astray
        for part, arg, value in zip((right, left), args[::-1], found[::-1], strict=True):
            if arg is MISSING:
                self._solve(part, value)

    def _divisor(self, name: str, side: Side, target: Any) -> int:
        """A value for a factor that divides what all products with it are known to be."""
        if self.freedom < _DIVISORS:
            raise _Postponed
        products = [(side, target)]
        for equation in self.pending:
            for product, other in (
                (equation.left, equation.right),
                (equation.right, equation.left),
            ):
                value = self._peek(other)
                if isinstance(value, int) and name in product.names:
                    products.append((product, value))
        fitting = divisors(target)
        for product, value in products:
            count = _factors(product.tree).count(name)
            if count and value:
                fitting = [d for d in fitting if value % d**count == 0]
        return self.rng.choice(fitting)

    def _invert(self, function: str, side: Side, target: Any) -> None:
        inverse = INVERSES.get(function)
        if inverse is None or target is None:
            return
        args = [self._argument_of(part) for part in side.parts]
        if function == "joined" and isinstance(side.parts[1].tree, ast.ListExpr):
            cut = len(target) - len(side.parts[1].parts)
            if cut < 0:
                raise Astray
            self._solve(side.parts[0], target[:cut])
            return self._solve(side.parts[1], target[cut:])
        if function in ("window",):
            args[1:] = [self._demand(part) for part in side.parts[1:]]
        if function in ("rank", "len") and isinstance(side.parts[0].tree, ast.Variable):
            return self._measure(side.parts[0].tree.name, target)
        group = next((p.tree.name for p in side.parts[:1] if isinstance(p.tree, ast.Variable)), "")
        count = self.lengths.get(group)
        one = any(self._is_one_axis(part) for part in side.parts)
        found = inverse(Wanted(self.rng, target, args, self.shapes, self.first, count, one))
        if found is None:
            raise Astray
        open_ = [
            (part, value)
            for part, arg, value in zip(side.parts, args, found, strict=True)
            if arg is MISSING and value is not MISSING
        ]
        if len(open_) > 1:
            open_.sort(key=lambda o: (isinstance(o[1], tuple) and None in o[1], bool(o[0].parts)))
        for part, value in open_:
            self._solve_part(function, part, value, side)

    def _is_one_axis(self, side: Side) -> bool:
        if not isinstance(side.tree, ast.Variable):
            return False
        attribute = self.sampler.attributes.get(side.tree.name)
        return attribute is not None and attribute.axes is not None and attribute.plan.type == "int"

    def _solve_part(self, function: str, part: Side, value: Any, side: Side) -> None:
        """Use what an inverse says of an argument; a part of a list only bounds the list."""
        if function == "part" and part is side.parts[0]:
            if not isinstance(part.tree, ast.Variable):
                raise Astray
            start = self._peek(side.parts[1])
            for place, item in enumerate(value):
                if item is not None:
                    self._note(part.tree.name, start + place, item)
            return
        self._solve(part, value)

    def _argument_of(self, side: Side) -> Any:
        """The value of an argument; words that nothing has decided are drawn."""
        value = self._peek(side)
        if value is MISSING and isinstance(side.tree, ast.Variable):
            attribute = self.sampler.attributes.get(side.tree.name)
            if attribute is not None and attribute.axes is None and attribute.plan.type == "bool":
                self._attribute(attribute)
                value = self._peek(side)
        return value

    def _solve_alternative(self, side: Side, target: Any) -> None:
        """Decide between ``or_else``'s sides: what the first needs is present, or it is not."""
        preferred, fallback = side.parts
        if self._is_void(preferred.doubts):
            return self._solve(fallback, target)
        if self._is_there(preferred.doubts):
            return self._solve(preferred, target)
        open_ = [name for name in preferred.doubts if name not in self.values]
        if self.rng.random() < 0.5:
            for name in open_:
                port = self._optional_port(name)
                if port is not None:
                    self.present[port] = True
            return self._solve(preferred, target)
        for name in open_:
            if name in self.sampler.attributes:
                self.absent.add(name)
            port = self._optional_port(name)
            if port is not None:
                self._leave_out(name)
        self._solve(fallback, target)

    def _leave_out(self, name: str) -> None:
        """Decide that no optional operand binds the variable."""
        for number, port in enumerate(self.sampler.ports):
            if port.optional and name in _bound_by(port.dims, port.dtype):
                if number in self.bound or self.present.get(number):
                    raise Astray
                self.present[number] = False

    def _demand(self, side: Side) -> Any:
        """The value of an expression; what it mentions is drawn if need be. Raises Astray."""
        value = self._peek(side)
        if value is not MISSING:
            return value
        if self.freedom < _DRAWING:
            raise _Postponed
        for name in side.names:
            if name not in self.values and name not in self.absent:
                if name in self.items or name in self.lengths:
                    self._close(name)
                else:
                    self._assign(name, self._variable(name, self._small), drawn=True)
        for part in walk(side.tree):
            match part:
                case ast.Member(ast.Name(operand), _) if operand not in self.operands:
                    raise Astray
        value = self._peek(side)
        if value is MISSING:
            raise Astray
        return value

    def _small(self, name: str) -> Any:
        """A value for what an equation needs: an extent that leaves room, or a shape."""
        if name in self.sampler.scalars:
            return self.rng.choice(_SMALL)
        if name in self.sampler.plan.dtypes:
            return self._any_dtype(name)
        return self._extents(name)

    # --- bindings --------------------------------------------------------------------------------

    def _assign(self, name: str, value: Any, *, drawn: bool = False) -> None:
        """Bind a variable, if its attribute's domain and the conditions on it allow the value."""
        if value is None and name not in self.sampler.plan.symbols:
            return  # the result says nothing
        if isinstance(value, tuple):
            value = self._filled(name, value)
        attribute = self.sampler.attributes.get(name)
        if attribute is not None and not drawn:
            value = self._as_attribute(attribute, value)
        if name in self.values:
            if self.values[name] != value:
                raise Astray
        elif not self._fits(name, value):
            raise Astray
        self.values[name] = value
        if attribute is not None and not drawn:
            self.given[attribute.plan.name] = value
        self._notice(name)

    def _as_attribute(self, attribute: PreparedAttribute, value: Any) -> Any:
        """The value as the attribute's type. Raises Astray if it is of another, or unwanted."""
        plan = attribute.plan
        if attribute.plan.name in self.given and self.values.get(plan.variable) != value:
            raise Astray
        many = plan.type.endswith("s")
        if many is not isinstance(value, tuple):
            if many and isinstance(value, int):
                value = (value,)
            else:
                raise Astray
        if plan.type == "float":
            value = float(value)
        if plan.type in ("bool", "int") and type(value).__name__ != plan.type:
            raise Astray
        return value

    def _filled(self, name: str, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """A list with its holes filled in by what is noted, or else at random."""
        notes = self.items.pop(name, {})
        length = self.lengths.pop(name, len(value))
        if length != len(value):
            raise Astray
        notes = {i % length if -length <= i < length else i: item for i, item in notes.items()}
        made = list(value)
        for place, item in notes.items():
            if place >= length or made[place] not in (None, item):
                raise Astray
            made[place] = item
        if None not in made:
            return tuple(made)
        holes = [place for place, item in enumerate(made) if item is None]
        attribute = self.sampler.attributes.get(name)
        for _ in range(16):
            for place in holes:
                made[place] = (
                    self._hole(value, place) if attribute is None else self._number(attribute)
                )
            if self._fits(name, tuple(made)):
                break
        return tuple(made)

    def _hole(self, value: tuple[Any, ...], place: int) -> int:
        """An extent along an axis that the result does not show."""
        return 1 if self.rng.random() < 0.25 else self.shapes.extent(self.rng)

    def _note(self, name: str, index: int, item: Any) -> None:
        """Remember one item of a list."""
        known = self.values.get(name)
        if known is not None:
            if not -len(known) <= index < len(known) or known[index] != item:
                raise Astray
            return
        notes = self.items.setdefault(name, {})
        if notes.setdefault(index, item) != item:
            raise Astray

    def _measure(self, name: str, length: int) -> None:
        """Remember the length of a list."""
        known = self.values.get(name)
        if not 0 <= length <= _LONGEST or (known is not None and len(known) != length):
            raise Astray
        if known is None and self.lengths.setdefault(name, length) != length:
            raise Astray
        if known is None and len(self.items.get(name, ())) == length:
            self._close(name)

    def _close(self, name: str) -> None:
        """Complete a list of which items or the length are known."""
        notes = self.items.get(name, {})
        length = self.lengths.get(name)
        attribute = self.sampler.attributes.get(name)
        if length is None and attribute is not None:
            known = [self._argument(argument) for argument in self.sampler.lengths(attribute)]
            if not notes or any(isinstance(value, int) for value in known):
                length = self._length(attribute)
        if length is None:
            length = max(max(notes, default=-1) + 1, self.sampler.reach.get(name, 0))
        if name in self.sampler.owners and self._is_group(name):
            self.lengths[name] = length  # how many operands; their shapes are still open
            value = self._variable(name, self._group)
            self.lengths.pop(name, None)
            self._assign(name, value)
            return
        self._assign(name, (None,) * length)

    def _is_group(self, name: str) -> bool:
        return any(self.sampler.by_port[p].variadic for p in self.sampler.owners[name])

    def _splat(self, operand: str) -> str:
        name = self.sampler.splat_of.get(operand)
        if name is None:
            raise Astray
        return name

    def _whole(self, operand: str) -> str:
        """The variable that is all of the operand's shape."""
        if len(self.sampler.by_port[operand].dims) != 1:
            raise Astray
        return self._splat(operand)

    def _notice(self, name: str) -> None:
        """Now that a variable has a value, some operand's shape may be known."""
        for operand in self.sampler.owners.get(name, ()):
            if operand in self.operands:
                continue
            port = self.sampler.by_port[operand]
            if port.optional or port.variadic:
                if port.variadic:
                    self.operands[operand] = TensorType(None, self.values[name][0])
                continue
            shape: list[Any] = []
            for dim in port.dims:
                match dim:
                    case ast.Variable(inner) if inner in self.values:
                        shape.append(self.values[inner])
                    case ast.Splat(ast.Variable(inner)) if inner in self.values:
                        shape += self.values[inner]
                    case ast.Number(extent):
                        shape.append(extent)
                    case _:
                        break
            else:
                self.operands[operand] = TensorType(None, tuple(shape))

    def is_open(self, about: About) -> bool:
        if not about.doubtful:
            return False
        for name in about.doubtful:
            if name not in self.values and not self._is_void((name,)):
                return True
        return not about.asks and self._is_void(about.doubts)

    # --- drawing forwards ------------------------------------------------------------------------

    def _attribute(self, attribute: PreparedAttribute) -> None:
        name = attribute.plan.variable
        if name in self.absent or name in self.busy or name in self.values:
            return
        if name in self.items or name in self.lengths:
            self._close(name)
            return
        super()._attribute(attribute)
        value = self.values.get(name, MISSING)
        if value is MISSING:
            return
        if attribute.plan.name not in self.given and not self._fits(name, value):
            del self.values[name]  # the default does not fit: look for something that does
            self.busy.add(name)
            with suppress(*UNDECIDED):
                self._choose(attribute)
            self.busy.discard(name)
        if name in self.values:
            self._notice(name)

    def _variable(self, name: str, otherwise: Callable[[str], Any]) -> Any:
        half_known = name in self.items or name in self.lengths
        group = name in self.sampler.owners and self._is_group(name)
        if half_known and not group and name not in self.values:
            self._close(name)
        return super()._variable(name, otherwise)


def _agrees(known: Any, target: Any) -> bool:
    """Whether a value is as wanted; a hole wants nothing."""
    if target is None:
        return True
    if isinstance(known, tuple) and isinstance(target, tuple) and None in target:
        return len(known) == len(target) and all(map(_agrees, known, target))
    return bool(known == target)


def _factors(tree: ast.Expr) -> list[str]:
    """The variables that are factors of a product."""
    match tree:
        case ast.Variable(name):
            return [name]
        case ast.Binary("*", left, right):
            return _factors(left) + _factors(right)
        case _:
            return []


def _bound_by(
    dims: Sequence[ast.Expr | ast.Splat], dtype: ast.Variable | ast.Name | None
) -> Iterator[str]:
    if isinstance(dtype, ast.Variable):
        yield dtype.name
    for dim in dims:
        expr = dim.expr if isinstance(dim, ast.Splat) else dim
        if isinstance(expr, ast.Variable):
            yield expr.name
