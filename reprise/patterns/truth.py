"""Three-valued reading of a rule's body: yes, no, or cannot tell (design §5).

The engine derives what is certain. This module asks about *one* place in a graph: with some
variables bound, do these literals hold? A look-up of something that the model leaves open (a
dynamic extent, a value known only at run time, an unnamed instruction set) gives :data:`UNKNOWN`,
and a comparison with it is neither true nor false (Kleene's logic). The answer carries the facts
that were met, and the first literal that failed: so one mechanism says *yes, and why*, *possibly,
because*, and *no, because*.

Law (tested): with nothing unknown, the answer is YES exactly when the engine derives the head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from reprise.datalog.accumulate import total
from reprise.datalog.arithmetic import apply, compare
from reprise.datalog.values import box, identical
from reprise.lang import core


class Truth(Enum):
    """Kleene's three values."""

    YES = "yes"
    UNKNOWN = "possible"
    NO = "no"


class Unknown:
    """The value of something that the model does not say; :data:`UNKNOWN` is the only one."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()
Known = core.Value | Unknown
Bindings = dict[str, Known]


class View(Protocol):
    """What the solver needs of a database."""

    def match(self, relation: str, pattern: Sequence[core.Value | None]) -> Sequence[core.Row]:
        """Rows of ``relation`` that agree with ``pattern`` (None: any value)."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A literal that was examined, what it said, and the row that met it (for atoms)."""

    literal: core.Literal
    truth: Truth
    row: tuple[Known, ...] | None = None
    left: Known | None = None
    right: Known | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The best way found to satisfy the literals: all steps taken, the last one failed if NO."""

    truth: Truth
    bindings: Bindings
    steps: tuple[Step, ...]

    @property
    def failed(self) -> Step | None:
        """The step that failed, if the answer is NO."""
        return self.steps[-1] if self.truth is Truth.NO and self.steps else None

    @property
    def open_steps(self) -> tuple[Step, ...]:
        """The steps that nothing in the model decides."""
        return tuple(s for s in self.steps if s.truth is Truth.UNKNOWN)


_RANK = {Truth.YES: 2, Truth.UNKNOWN: 1, Truth.NO: 0}
MAX_BRANCHES = 10_000
"""Ways to satisfy a body that are tried before the search settles for the best so far."""


class Solver:
    """Answers questions about one database under one program."""

    def __init__(self, program: core.Program, view: View) -> None:
        self._program = program
        self._view = view
        self._rules: dict[str, list[core.Rule]] = {}
        for rule in program.rules:
            self._rules.setdefault(rule.head.relation, []).append(rule)
        self._open: dict[str, bool] = {}
        self._branches = 0
        self._depth: tuple[str, ...] = ()

    def ask(self, literals: Sequence[core.Literal], bindings: Bindings) -> Answer:
        """The best answer: YES if some way satisfies all, else UNKNOWN, else the NO that got
        furthest."""
        self._branches = 0
        ordered = order(literals, bindings)
        best: Answer | None = None
        for answer in self._search(ordered, dict(bindings), ()):
            if best is None or _better(answer, best):
                best = answer
            if best.truth is Truth.YES or self._branches > MAX_BRANCHES:
                break
        return best if best is not None else Answer(Truth.NO, dict(bindings), ())

    def solutions(self, literals: Sequence[core.Literal], bindings: Bindings) -> Iterator[Bindings]:
        """Every way to satisfy all literals for certain (at most MAX_BRANCHES are tried)."""
        self._branches = 0
        for answer in self._search(order(literals, bindings), dict(bindings), ()):
            if answer.truth is Truth.YES:
                yield answer.bindings
            if self._branches > MAX_BRANCHES:
                return

    # --- search -------------------------------------------------------------------------------

    def _search(
        self, literals: Sequence[core.Literal], bindings: Bindings, steps: tuple[Step, ...]
    ) -> Iterator[Answer]:
        self._branches += 1
        if not literals:
            unknown = any(s.truth is Truth.UNKNOWN for s in steps)
            yield Answer(Truth.UNKNOWN if unknown else Truth.YES, bindings, steps)
            return
        literal, rest = literals[0], literals[1:]
        for step, bound in self._examine(literal, bindings):
            if step.truth is Truth.NO:
                yield Answer(Truth.NO, bindings, (*steps, step))
            else:
                yield from self._search(rest, {**bindings, **bound}, (*steps, step))

    def _examine(
        self, literal: core.Literal, bindings: Bindings
    ) -> Iterator[tuple[Step, Bindings]]:
        match literal:
            case core.Atom(negated=False):
                yield from self._atom(literal, bindings)
            case core.Atom():
                yield self._negated(literal, bindings), {}
            case core.Compare():
                yield self._compare(literal, bindings)
            case core.Member():
                yield from self._member(literal, bindings)
            case core.Aggregate():
                yield self._aggregate(literal, bindings)

    def _atom(self, atom: core.Atom, bindings: Bindings) -> Iterator[tuple[Step, Bindings]]:
        values = [self._value(t, bindings) for t in atom.terms]
        unbound = [v is None for v in values]
        if any(v is UNKNOWN for v in values):
            yield self._with_unknown_argument(atom, values)
            return
        pattern = [None if isinstance(v, Unknown) else v for v in values]
        found = False
        for row in self._view.match(atom.relation, pattern):
            bound: Bindings = {}
            if self._unify(atom.terms, row, unbound, bound):
                found = True
                yield Step(atom, Truth.YES, row), bound
        if found and not self._may_have_more(atom.relation, pattern):
            return
        open_rows = self._open_rows(atom.relation, pattern)
        if open_rows is not None:
            for row_open in open_rows:
                bound = {}
                if self._unify(atom.terms, row_open, unbound, bound):
                    found = True
                    yield Step(atom, Truth.UNKNOWN, row_open), bound
            if found:
                return
        elif self._unknown_row(atom.relation, pattern):
            row_unknown = tuple(UNKNOWN if v is None else v for v in values)
            names = [
                t.name
                for t, free in zip(atom.terms, unbound, strict=True)
                if free and isinstance(t, core.Var)
            ]
            yield Step(atom, Truth.UNKNOWN, row_unknown), dict.fromkeys(names, UNKNOWN)
            return
        if found:
            return
        shown: tuple[Known, ...] = tuple(UNKNOWN if v is None else v for v in values)
        keyed = self._keyed_value(atom, pattern)
        yield Step(atom, Truth.NO, shown, right=keyed), {}

    def _open_rows(
        self, name: str, pattern: Sequence[core.Value | None]
    ) -> list[tuple[Known, ...]] | None:
        """The rows of a base relation that the model leaves open, as far as guards say which: an
        extent that is not known is that of one axis. None for a derived relation."""
        relation = self._program.relations.get(name)
        if relation is None or name in self._rules:
            return None
        rest = tuple(UNKNOWN if value is None else value for value in pattern)
        rows: list[tuple[Known, ...]] = []
        for guard in relation.unknown:
            if guard == "always":
                rows.append(rest)
            elif (declared := self._program.relations.get(guard)) is not None:
                said = self._view.match(guard, pattern[: declared.arity])
                rows += [(*row, *rest[declared.arity :]) for row in said]
        return rows

    def _may_have_more(self, name: str, pattern: Sequence[core.Value | None]) -> bool:
        """Whether the rows found need not be all: part of the key was left free."""
        relation = self._program.relations.get(name)
        if relation is None:
            return False
        keys = [p for c, p in zip(relation.columns, pattern, strict=True) if c.key]
        return any(p is None for p in (keys or pattern))

    def _keyed_value(
        self, atom: core.Atom, pattern: Sequence[core.Value | None]
    ) -> core.Value | None:
        """What a keyed relation holds where the atom wanted another value."""
        relation = self._program.relations.get(atom.relation)
        if relation is None or not relation.columns or relation.columns[-1].key:
            return None
        if any(not c.key for c in relation.columns[:-1]) or any(v is None for v in pattern[:-1]):
            return None
        rows = self._view.match(atom.relation, [*pattern[:-1], None])
        return rows[0][-1] if rows else None

    def _unify(
        self,
        terms: Sequence[core.Expr],
        row: Sequence[Known],
        unbound: Sequence[bool],
        bound: Bindings,
    ) -> bool:
        for term, value, free in zip(terms, row, unbound, strict=True):
            if not free or not isinstance(term, core.Var):
                continue
            if not _same(bound.setdefault(term.name, value), value):
                return False
        return True

    def _with_unknown_argument(
        self, atom: core.Atom, values: Sequence[Known | None]
    ) -> tuple[Step, Bindings]:
        """A look-up at an unknown place: unknown, unless no row at all could meet it."""
        pattern = [None if isinstance(v, Unknown) else v for v in values]
        free = [
            t.name
            for t, v in zip(atom.terms, values, strict=True)
            if v is None and isinstance(t, core.Var)
        ]
        row: tuple[Known, ...] = tuple(UNKNOWN if v is None else v for v in values)
        some = bool(self._view.match(atom.relation, pattern)) or self._unknown_row(
            atom.relation, pattern
        )
        truth = Truth.UNKNOWN if some else Truth.NO
        return Step(atom, truth, row), dict.fromkeys(free, UNKNOWN)

    def _negated(self, atom: core.Atom, bindings: Bindings) -> Step:
        values = [self._value(t, bindings) for t in atom.terms]
        pattern = [None if isinstance(v, Unknown) else v for v in values]
        row: tuple[Known, ...] = tuple(UNKNOWN if v is None else v for v in values)
        if any(v is UNKNOWN for v in values):
            some = bool(self._view.match(atom.relation, pattern))
            return Step(atom, Truth.UNKNOWN if some else Truth.YES, row)
        if self._view.match(atom.relation, pattern):
            return Step(atom, Truth.NO, row)
        unknown = self._unknown_row(atom.relation, pattern)
        return Step(atom, Truth.UNKNOWN if unknown else Truth.YES, row)

    def _unknown_row(self, name: str, pattern: Sequence[core.Value | None]) -> bool:
        """Whether the absence of a row only means that the model does not say."""
        if name not in self._program.relations:
            return False
        open_rows = self._open_rows(name, pattern)
        if open_rows is not None:
            return bool(open_rows)
        if not self._is_open(name) or name in self._depth:
            return False
        outer, self._depth = self._depth, (*self._depth, name)
        branches = self._branches
        try:
            return any(self._rule_unknown(rule, pattern) for rule in self._rules[name])
        finally:
            self._depth, self._branches = outer, branches

    def _rule_unknown(self, rule: core.Rule, pattern: Sequence[core.Value | None]) -> bool:
        bindings: Bindings = {}
        for term, value in zip(rule.head.terms, pattern, strict=True):
            if value is None:
                continue
            if isinstance(term, core.Var):
                if not _same(bindings.setdefault(term.name, value), value):
                    return False
            elif isinstance(term, core.Const) and not compare("==", term.value, value):
                return False
        return self.ask(rule.body, bindings).truth is Truth.UNKNOWN

    def _is_open(self, name: str) -> bool:
        """Whether a derived relation depends on something that models may leave open."""
        if name not in self._open:
            part = self._program.restricted_to([name])
            self._open[name] = any(r.unknown for r in part.relations.values())
        return self._open[name]

    def _compare(self, literal: core.Compare, bindings: Bindings) -> tuple[Step, Bindings]:
        left = self._value(literal.left, bindings)
        right = self._value(literal.right, bindings)
        if literal.op == "==":
            if left is None and isinstance(literal.left, core.Var) and right is not None:
                return Step(literal, Truth.YES, None, right, right), {literal.left.name: right}
            if right is None and isinstance(literal.right, core.Var) and left is not None:
                return Step(literal, Truth.YES, None, left, left), {literal.right.name: left}
        if left is None or right is None:
            return Step(literal, Truth.NO, None, left, right), {}
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Step(literal, Truth.UNKNOWN, None, left, right), {}
        truth = Truth.YES if compare(literal.op, left, right) else Truth.NO
        return Step(literal, truth, None, left, right), {}

    def _member(self, literal: core.Member, bindings: Bindings) -> Iterator[tuple[Step, Bindings]]:
        value = self._value(literal.expr, bindings)
        if value is None:
            if isinstance(literal.expr, core.Var) and not literal.negated:
                for option in literal.values:
                    yield Step(literal, Truth.YES, None, option), {literal.expr.name: option}
            else:
                yield Step(literal, Truth.NO), {}
            return
        if isinstance(value, Unknown):
            yield Step(literal, Truth.UNKNOWN, None, value), {}
            return
        inside = any(compare("==", value, v) or _same(value, v) for v in literal.values)
        truth = Truth.YES if inside != literal.negated else Truth.NO
        yield Step(literal, truth, None, value), {}

    def _aggregate(self, literal: core.Aggregate, bindings: Bindings) -> tuple[Step, Bindings]:
        result = self._total(literal, bindings)
        name = literal.result.name
        if result is None:
            return Step(literal, Truth.NO), {}
        known = bindings.get(name)
        if known is not None:
            if isinstance(known, Unknown) or isinstance(result, Unknown):
                return Step(literal, Truth.UNKNOWN, None, known, result), {}
            truth = Truth.YES if compare("==", known, result) else Truth.NO
            return Step(literal, truth, None, known, result), {}
        truth = Truth.UNKNOWN if isinstance(result, Unknown) else Truth.YES
        return Step(literal, truth, None, None, result), {name: result}

    def _total(self, literal: core.Aggregate, bindings: Bindings) -> Known | None:
        solutions: dict[tuple[tuple[str, Any], ...], Known | None] = {}
        for answer in self._search(order(literal.body, bindings), dict(bindings), ()):
            if answer.truth is Truth.UNKNOWN:
                return UNKNOWN
            if answer.truth is Truth.YES:
                # boxed: 0 and 0.0 are two solutions
                key = tuple(
                    (k, v if isinstance(v, Unknown) else box(v))
                    for k, v in sorted(answer.bindings.items(), key=_name)
                )
                value = 1 if literal.value is None else self._value(literal.value, answer.bindings)
                if isinstance(value, Unknown):
                    return UNKNOWN
                solutions[key] = value
        values = [v for v in solutions.values() if v is not None and not isinstance(v, Unknown)]
        if literal.kind == "count" and literal.value is not None:
            return len(set(map(box, values)))
        return total(literal.kind, values)

    # --- values -------------------------------------------------------------------------------

    def _value(self, expr: core.Expr, bindings: Bindings) -> Known | None:
        """The value of an expression; None if a variable is unbound or the arithmetic has none."""
        match expr:
            case core.Const(value):
                return value
            case core.Var(name):
                return bindings.get(name)
            case core.Arith(op, args):
                values = [self._value(a, bindings) for a in args]
                if any(v is None for v in values):
                    return None
                if any(isinstance(v, Unknown) for v in values):
                    return UNKNOWN
                return apply(op, [v for v in values if not isinstance(v, Unknown)])


def _name(item: tuple[str, Known]) -> str:
    return item[0]


def _same(left: Known, right: Known) -> bool:
    """Whether two values are one to a join: 1 and 1.0 are two, NaN is itself."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left is right
    return identical(box(left), box(right))


def order(literals: Sequence[core.Literal], bindings: Bindings) -> list[core.Literal]:
    """The literals in an order in which each is ready when its turn comes: as written, except
    that what only tests waits until its variables are bound."""
    pending = list(literals)
    bound = {name for name, value in bindings.items() if value is not None}
    outside: dict[int, set[str]] = {}
    for i, literal in enumerate(literals):
        if isinstance(literal, core.Aggregate):
            others = {
                v for j, other in enumerate(literals) if j != i for v in core.variables(other)
            }
            inner = {v for part in literal.body for v in core.variables(part)}
            outside[id(literal)] = inner & (others | bound)
    placed: list[core.Literal] = []
    while pending:
        ready = next((x for x in pending if _ready(x, bound, outside, pending)), pending[0])
        pending.remove(ready)
        placed.append(ready)
        if isinstance(ready, core.Aggregate):
            bound.add(ready.result.name)
        else:
            bound.update(core.variables(ready))
    return placed


def _ready(
    literal: core.Literal,
    bound: set[str],
    outside: dict[int, set[str]],
    pending: Sequence[core.Literal],
) -> bool:
    match literal:
        case core.Atom(negated=False):
            names = [t.name for t in literal.terms if isinstance(t, core.Var)]
            constants = any(isinstance(t, core.Const) for t in literal.terms)
            return not names or constants or any(n in bound for n in names)
        case core.Atom():
            return all(n in bound or n.startswith("_") for n in core.variables(literal))
        case core.Compare(op, left, right):
            missing = {n for n in core.variables(literal) if n not in bound}
            if not missing:
                return True
            assigns = op == "==" and len(missing) == 1
            return assigns and any(
                isinstance(side, core.Var)
                and side.name in missing
                and side.name not in set(core.variables(other))
                for side, other in ((left, right), (right, left))
            )
        case core.Member():
            missing = {n for n in core.variables(literal) if n not in bound}
            if not missing:
                return True
            return not literal.negated and not any(
                isinstance(x, core.Atom) and not x.negated and missing & set(core.variables(x))
                for x in pending
            )
        case core.Aggregate():
            return outside[id(literal)] <= bound


def _better(answer: Answer, best: Answer) -> bool:
    a, b = _RANK[answer.truth], _RANK[best.truth]
    if a != b:
        return a > b
    return answer.truth is Truth.NO and len(answer.steps) > len(best.steps)
