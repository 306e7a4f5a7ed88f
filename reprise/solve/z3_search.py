"""Operands for required results by z3: where numbers hang together in ways that cannot be undone
one at a time (strides that must divide, several conditions on one extent, extents in the billions).

A :class:`Structure` fixes what z3 does not decide: ranks, lengths of lists, axes, words, which
optional operands there are. Its numbers, and its element types, are z3's to find, near values that
were drawn at random, so that answers vary as those do: a preference that clashes with the rest is
dropped. Every answer is checked by the signature itself.

If every structure is tried and none has a solution, that is a proof (as far as ranks go), and the
conditions in the way are named. Effort is bounded by z3's own count of steps, not by a clock, so
that the same question has the same answer on any machine.

Where there are more structures than can be tried (lists whose lengths nothing fixes, as in
``slice``; several operands of any rank, as in ``qlinear_matmul``; conditions on floating-point
numbers, as in ``arange``; equations as words, as in ``einsum``), there is no proof, and an answer
only if one of a random few has one: these operators are better inverted natively.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from random import Random
from typing import Any

import z3

from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.lang.z3_solver import new_solver
from reprise.solve.answers import Clash, Verdict
from reprise.solve.emit import UNDECIDED
from reprise.solve.inversion import Inverter
from reprise.solve.plan import ABSENT, variables
from reprise.solve.sampling import Instance, PreparedAttribute
from reprise.solve.signatures import Signature
from reprise.solve.z3_encoding import Constraint, encode
from reprise.solve.z3_reading import NeedsValue, Symbolic, Unread
from reprise.uir.graph import Attribute, TensorType

RANK = 4
"""The greatest rank of what a splat stands for in the structures that are tried."""
_MOST = 400
"""How many structures are tried, if there are no more: otherwise a random few."""
_FEW = 48
STEPS = 400_000
"""z3's ``rlimit`` for one question about one structure: some 50 ms."""
_PATIENCE = 10_000
"""Milliseconds after which z3 is stopped all the same: a last resort, far above what steps take."""
_SEEN = 1 << 6
"""An extent that z3 may choose freely is at most this if it can be."""


@dataclass(slots=True)
class Structure:
    """An instance whose numbers are still to be found: those in it are what was drawn. ``open``
    names the attributes that z3 may change; operands in ``kept`` stay as they are, those in
    ``typed`` keep their element types."""

    operands: list[TensorType | None]
    attributes: dict[str, Any]
    open: frozenset[str]
    kept: frozenset[int]
    typed: frozenset[int]


@dataclass(slots=True)
class _Slot:
    """A number that z3 chooses: the term, and what is preferred."""

    term: Any
    drawn: int
    extent: bool


def new_context() -> z3.Context:
    """A context of its own for a question: what z3 finds may depend on what a context has seen."""
    return z3.Context()


def solve(
    signature: Signature,
    structure: Structure,
    results: Mapping[int, TensorType],
    rng: Random,
    context: z3.Context,
    steps: int = STEPS,
) -> Verdict:
    """Numbers for a structure such that the signature has these results."""
    pinned: set[str] = set()
    while True:
        try:
            return _Attempt(signature, structure, results, rng, context, steps, pinned).run()
        except NeedsValue as error:
            pinned |= {str(term) for term in _constants(error.term)} - pinned
        except Unread:
            return Verdict()


def _constants(term: Any) -> Iterator[Any]:
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        yield term
    for child in term.children():
        yield from _constants(child)


class _Attempt:
    def __init__(
        self,
        signature: Signature,
        structure: Structure,
        results: Mapping[int, TensorType],
        rng: Random,
        context: z3.Context,
        steps: int,
        pinned: set[str],
    ) -> None:
        self.signature = signature
        self.structure = structure
        self.results = results
        self.rng = rng
        self.pinned = pinned
        self.context = context
        self.reading = Symbolic(self.context)
        for name in DTYPES:
            self.reading.word(name)
        self.solver = new_solver(_PATIENCE, self.context)
        self.solver.set("rlimit", steps)
        self.slots: list[_Slot] = []
        self.dtypes: dict[str, Any] = {}

    def run(self) -> Verdict:
        operands = [
            None if o is None else self._operand(i, o)
            for i, o in enumerate(self.structure.operands)
        ]
        attributes = {
            name: self._attribute(name, value) for name, value in self.structure.attributes.items()
        }
        encoding = encode(self.signature.plan, operands, attributes, self.reading)
        constraints = [*encoding.constraints, *self._required(encoding.results)]
        decided = [c for c in constraints if c.truth is False]
        if decided:
            return Verdict(clashes=_clashes(decided), proof=not self.pinned, decided=True)
        named = {}
        for number, constraint in enumerate(constraints):
            literal = z3.Bool(f"c{number}", self.context)
            self.solver.add(z3.Implies(literal, constraint.truth))
            named[literal.get_id()] = literal, constraint
        model = self._search(named)
        if isinstance(model, Verdict):
            return model
        return Verdict(Instance(*self._read(model, operands, attributes)))

    # --- terms -----------------------------------------------------------------------------------

    def _number(self, name: str, drawn: int, *, extent: bool) -> Any:
        if name in self.pinned:
            return drawn
        term = z3.Int(name, self.context)
        if extent:
            self.solver.add(term >= 0)
        self.slots.append(_Slot(term, drawn, extent))
        return term

    def _operand(self, number: int, operand: TensorType) -> TensorType:
        if number in self.structure.kept:
            return operand
        assert operand.shape is not None and operand.dtype is not None
        shape = tuple(
            self._number(f"{number}.{axis}", int(extent or 0), extent=True)
            for axis, extent in enumerate(operand.shape)
        )
        dtype: Any = operand.dtype
        if number not in self.structure.typed:
            dtype = self._dtype(f"{number}.dtype", dtype)
        return TensorType(dtype, shape)

    def _dtype(self, name: str, drawn: str) -> Any:
        term = z3.Int(name, self.context)
        self.solver.add(term >= 0, term < len(DTYPES))
        self.slots.append(_Slot(term, self.reading.word(drawn), False))
        self.dtypes[name] = term
        return term

    def _attribute(self, name: str, value: Any) -> Any:
        if name not in self.structure.open:
            return value
        if isinstance(value, str):
            return self._dtype(name, value)
        if isinstance(value, tuple):
            return tuple(
                self._number(f"{name}.{i}", item, extent=False) for i, item in enumerate(value)
            )
        return self._number(name, value, extent=False)

    def _required(self, found: Sequence[TensorType]) -> Iterator[Constraint]:
        declared = self.signature.plan.decl.results
        many = "many_results" in self.signature.plan.flags
        if many and len(found) != len(self.results):
            yield Constraint(False, f"there are {len(self.results)} results", declared[0][1].span)
            return
        for number, wanted in sorted(self.results.items()):
            span = declared[0 if many else number][1].span
            text = f"result {number} is {wanted}"
            if number >= len(found):
                yield Constraint(False, text, span)
                continue
            result = found[number]
            same = [self.reading.compare("==", result.dtype, wanted.dtype, True)]
            if result.shape is not None and wanted.shape is not None:
                if len(result.shape) != len(wanted.shape):
                    same.append(False)
                else:
                    for have, want in zip(result.shape, wanted.shape, strict=True):
                        if (have is None) is not (want is None):
                            same.append(False)
                        elif have is not None:
                            same.append(self.reading.compare("==", have, want, False))
            yield Constraint(self.reading.every(same), text, span)

    # --- searching -------------------------------------------------------------------------------

    def _search(self, named: Mapping[int, tuple[Any, Constraint]]) -> Any:
        """A model near what was drawn, or the verdict that there is none."""
        must = [literal for literal, _ in named.values()]
        wishes: dict[int, tuple[Any, _Slot, bool]] = {}

        def wish(slot: _Slot, truth: Any, last: bool) -> None:
            literal = z3.Bool(f"w{len(wishes)}{last}{slot.term}", self.context)
            self.solver.add(z3.Implies(literal, truth))
            wishes[literal.get_id()] = literal, slot, last

        for slot in self.slots:
            wish(slot, slot.term == slot.drawn, False)
        while True:
            outcome = self.solver.check(*must, *(w[0] for w in wishes.values()))
            if outcome == z3.sat:
                return self.solver.model()
            if outcome == z3.unknown:
                if not wishes:
                    return Verdict()
                for key in list(wishes)[::2]:
                    del wishes[key]
                continue
            core = [literal.get_id() for literal in self.solver.unsat_core()]
            blamed = [key for key in core if key in wishes]
            if not blamed:
                clashes = _clashes(named[key][1] for key in self._least(must, core))
                return Verdict(clashes=clashes, proof=not self.pinned)
            for key in blamed if self.rng.random() < 0.5 else [self.rng.choice(blamed)]:
                _, slot, last = wishes.pop(key)
                if not last:
                    low = 1 if slot.extent else -_SEEN
                    wish(slot, z3.And(slot.term >= low, slot.term <= _SEEN), True)

    def _least(self, must: Sequence[Any], core: list[int]) -> list[int]:
        """A core of which nothing can be left out, if z3 finds one."""
        self.solver.set("core.minimize", True)
        if (
            self.solver.check(*(literal for literal in must if literal.get_id() in core))
            != z3.unsat
        ):
            return core
        return [literal.get_id() for literal in self.solver.unsat_core()]

    def _read(
        self, model: Any, operands: Sequence[TensorType | None], attributes: Mapping[str, Any]
    ) -> tuple[tuple[TensorType | None, ...], dict[str, Attribute]]:
        def value(term: Any) -> Any:
            if isinstance(term, tuple):
                return tuple(map(value, term))
            if not isinstance(term, z3.ExprRef):
                return term
            return model.eval(term, model_completion=True).as_long()

        def dtype(term: Any) -> Any:
            return self.reading.spelled(value(term)) if isinstance(term, z3.ExprRef) else term

        made = tuple(
            None if o is None else TensorType(dtype(o.dtype), value(o.shape)) for o in operands
        )
        found = {
            name: dtype(v) if name in self.dtypes else value(v) for name, v in attributes.items()
        }
        return made, found


def _clashes(constraints: Any) -> tuple[Clash, ...]:
    """Each condition once, in the order in which they are written."""
    found = dict.fromkeys(Clash(c.text, c.span) for c in constraints)
    return tuple(
        sorted(found, key=lambda c: (0, 0) if c.span is None else (c.span.line, c.span.column))
    )


# --- structures --------------------------------------------------------------------------------


class Structures:
    """The structures that an instance can have, in random order.

    ``complete``: they are all there are, up to the rank ``most`` and with no list in attributes
    longer than ``longest`` (two items for each axis, or one for each result); ``ranks``: whether
    there was a choice of ranks.
    """

    def __init__(
        self,
        inverter: Inverter,
        rng: Random,
        fixed: Mapping[str, Any],
        bound: Mapping[int, TensorType],
        given: Mapping[str, Attribute],
        most: int = RANK,
        longest: int = 2 * RANK,
    ) -> None:
        self.most = most
        self.longest = longest
        self.inverter = inverter
        self.rng = rng
        self.fixed = fixed
        self.bound = bound
        self.given = given
        self.complete = True
        self.ranks = False
        self.mentioned = _mentioned(inverter)

    def all(self) -> list[Structure]:
        """All, or if there are too many a random few."""
        choices = dict(self._choices())
        total = math.prod(len(options) for options in choices.values())
        if total <= _MOST:
            picked: Sequence[int] = self.rng.sample(range(total), total)
        else:
            self.complete = False
            picked = [self.rng.randrange(total) for _ in range(_FEW)]
        made = []
        for number in picked:
            choice = {}
            for name, options in choices.items():
                number, index = divmod(number, len(options))
                choice[name] = options[index]
            made.append(self._structure(choice))
        return made

    # --- what is to be chosen --------------------------------------------------------------------

    def _choices(self) -> Iterator[tuple[str, Sequence[Any]]]:
        for number, port in enumerate(self.inverter.ports):
            if port.optional and number not in self.bound:
                runtime = port.at_run_time
                yield f"port {number}", (False,) if runtime else (False, True)
            if port.variadic:
                self.complete = False
                self.ranks = True
                yield f"port {number}", (1, 2, 3)
        splats = {
            port.dims[port.splat].expr.name  # type: ignore[union-attr]
            for number, port in enumerate(self.inverter.ports)
            if port.splat is not None
        }
        for name in sorted(splats):
            if not isinstance(self.fixed.get(name), tuple):
                low, high = self.inverter.rank_bounds(name, self.most)
                self.ranks = self.ranks or low < high
                yield f"rank {name}", tuple(range(low, max(low, high) + 1))
        for attribute in self.inverter.attributes.values():
            options = self._options(attribute)
            if options:
                yield attribute.plan.name, options

    def _options(self, attribute: PreparedAttribute) -> Sequence[Any]:
        """Values of an attribute: those that are not open to z3, or lists of each length. None:
        left out."""
        plan = attribute.plan
        name = plan.name
        if name in self.given:
            return (self.given[name],)
        if plan.variable in self.fixed:
            return (self.fixed[plan.variable],)
        if plan.variable not in self.mentioned and not plan.required:
            return ()
        absent = (None,) if plan.optional else ()
        match plan.type:
            case "bool":
                return (*absent, False, True)
            case "sym":
                members = attribute.members or ()
                self.complete = self.complete and bool(members)
                return (*absent, *members)
            case "dtype":
                return (
                    *absent,
                    self.rng.choice(self.inverter.dtypes[plan.variable] or ["float32"]),
                )
            case "int" if attribute.axes is not None:
                return (*absent, *range(self.most + 1))
            case "int":
                return (*absent, self._drawn(attribute))
            case "ints" if attribute.axes is not None:
                axes = range(self.most)
                subsets = chain.from_iterable(combinations(axes, n) for n in range(self.most + 1))
                return (*absent, *subsets)
            case "ints":
                return (*absent, *self._lists(attribute))
            case "float" if plan.required or plan.variable in self.mentioned:
                self.complete = False
                return (1.0,) if plan.required else ()
            case _:
                self.complete = False
                return ()

    def _drawn(self, attribute: PreparedAttribute) -> int:
        members = attribute.members
        return int(self.rng.choice(members[:3])) if members else self.rng.randint(-2, 3)

    def _lists(self, attribute: PreparedAttribute) -> Sequence[Any]:
        """A list of drawn numbers for each length that is possible."""
        for argument in self.inverter.lengths(attribute):
            try:
                length = argument.value(self.fixed, {})
            except UNDECIDED:
                continue
            if isinstance(length, int):
                return (self._list(attribute, length),)
        default = attribute.plan.default
        if isinstance(default, ast.ListExpr):
            return (self._list(attribute, len(default.items)),)
        if default is not None and not attribute.plan.optional:
            self.complete = False  # as long as its default, whatever that comes to
            return (None,)
        self.ranks = True
        return [self._list(attribute, length) for length in range(self.longest + 1)]

    def _list(self, attribute: PreparedAttribute, length: int) -> tuple[int, ...]:
        return tuple([self._drawn(attribute) for _ in range(length)])

    # --- one structure ---------------------------------------------------------------------------

    def _structure(self, choice: Mapping[str, Any]) -> Structure:
        inverter, rng = self.inverter, self.rng
        values: dict[str, Any] = dict(self.fixed)
        dtypes: dict[str, str] = {}
        operands: list[TensorType | None] = []
        typed: set[int] = set()
        for number, port in enumerate(inverter.ports):
            if number in self.bound and not port.variadic:
                operands.append(self.bound[number])
                continue
            count = choice.get(f"port {number}", 1)
            if not count:
                operands.append(None)
                continue
            if isinstance(port.dtype, ast.Name):
                dtype = port.dtype.text
            elif isinstance(self.fixed.get(port.dtype.name), str):
                dtype = self.fixed[port.dtype.name]
            else:
                possible = inverter.dtypes[port.dtype.name] or ("float32",)
                dtype = dtypes.setdefault(port.dtype.name, rng.choice(possible))
            if isinstance(port.dtype, ast.Name) or port.dtype.name in self.fixed:
                typed |= set(range(number, number + count))
            for copy in range(count):
                if copy == 0 and number in self.bound:
                    operands.append(self.bound[number])
                    continue
                shape: list[int] = []
                for dim in port.dims:
                    match dim:
                        case ast.Splat(ast.Variable(name)):
                            known = values.get(name)
                            if not isinstance(known, tuple):
                                known = inverter.shapes.shape(rng, choice[f"rank {name}"])
                                values[name] = known
                            shape += known
                        case ast.Variable(name):
                            shape.append(values.setdefault(name, inverter.shapes.extent(rng)))
                        case ast.Number(extent):
                            shape.append(int(extent))
                        case _:
                            shape.append(inverter.shapes.extent(rng))
                operands.append(TensorType(dtype, tuple(shape)))
        while operands and operands[-1] is None:
            operands.pop()
        attributes, open_ = dict(self.given), set()
        for attribute in inverter.attributes.values():
            plan = attribute.plan
            value = choice.get(plan.name)
            if value is None or plan.name in self.given:
                continue
            attributes[plan.name] = value
            numbers = plan.type in ("int", "ints") and attribute.axes is None
            if (numbers or plan.type == "dtype") and plan.variable not in self.fixed:
                open_.add(plan.name)
        kept = frozenset(self.bound)
        return Structure(operands, attributes, frozenset(open_), kept, frozenset(typed))


def _mentioned(inverter: Inverter) -> frozenset[str]:
    """The variables on which operands, conditions or results depend."""
    decl = inverter.plan.decl
    names = {v.name for condition in decl.where for v in variables(condition)}
    for type_ in [*(p.type for p in decl.params), *(t for _, t in decl.results)]:
        for dim in type_.shape or ():
            names |= {v.name for v in variables(dim.expr if isinstance(dim, ast.Splat) else dim)}
        if isinstance(type_.dtype, ast.Variable):
            names.add(type_.dtype.name)
    for attribute in decl.attributes:
        if attribute.default is not None and attribute.default != ast.Name(ABSENT):
            names |= {v.name for v in variables(attribute.default)}
        if isinstance(attribute.domain, ast.RangeDomain):
            for end in (attribute.domain.low, attribute.domain.high):
                names |= {v.name for v in variables(end)}
    return frozenset(names)
