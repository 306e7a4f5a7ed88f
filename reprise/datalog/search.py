"""Solving a clause's body one binding at a time, without generated code: for explanations.

Slow and simple where the engine is fast and compiled; both read a body the same way. Invariant:
every binding that is yielded makes all literals hold in the current state of the database, and
every such binding that extends the given one is yielded, in an order that depends on the rows
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reprise.datalog.arithmetic import compare, evaluate
from reprise.datalog.clauses import BodyLiteral, Clause, Lookup
from reprise.datalog.runtime import Runtime
from reprise.datalog.values import (
    as_float,
    box,
    coerce,
    constant,
    identical,
    is_entity,
    plain,
    row_order,
)
from reprise.lang.core import Atom, Compare, Const, Expr, Member, Row, Value, Var, variables
from reprise.lang.safety import expression_type

Bindings = Mapping[str, Value]
Progress = Callable[[Sequence[BodyLiteral], Sequence[BodyLiteral], Bindings], None]
"""Called with the literals that hold so far, those that remain, and the bindings."""


def solve(
    clause: Clause,
    runtime: Runtime,
    bindings: Bindings,
    progress: Progress = lambda done, left, bindings: None,
) -> Iterator[Bindings]:
    """All bindings of the clause's variables that extend ``bindings`` and satisfy its body."""
    yield from _Search(clause, runtime, progress).run((), list(clause.body), bindings)


def unify_head(clause: Clause, runtime: Runtime, row: Sequence[Value | None]) -> Bindings | None:
    """The bindings under which the head could be ``row``, where that is not ``None``.

    Head expressions are not inverted: compare the result with :func:`head_row` afterwards.
    """
    columns = runtime.layouts[clause.head.relation].relation.columns
    found: dict[str, Value] = {}
    for term, value, column in zip(clause.head.terms, row, columns, strict=True):
        if value is None:
            continue
        match term:
            case Const(known) if not identical(constant(known, column.type), value):
                return None
            case Var(name):
                admitted = _admit(value, column.type, clause.types[name])
                if admitted is None or not identical(found.get(name, admitted), admitted):
                    return None
                found[name] = admitted
    return found


def head_row(clause: Clause, runtime: Runtime, bindings: Bindings) -> Row | None:
    """The head row under complete bindings, or ``None`` if an expression has no value."""
    columns = runtime.layouts[clause.head.relation].relation.columns
    values = []
    for term, column in zip(clause.head.terms, columns, strict=True):
        value = evaluate(term, bindings)
        computed = expression_type(term, clause.types)
        stored = None if value is None else _stored(value, computed, column.type)
        if stored is None:
            return None
        values.append(stored)
    return tuple(values)


class _Search:
    def __init__(self, clause: Clause, runtime: Runtime, progress: Progress) -> None:
        self._clause = clause
        self._types = clause.types
        self._runtime = runtime
        self._progress = progress

    def run(
        self, done: tuple[BodyLiteral, ...], left: list[BodyLiteral], bindings: Bindings
    ) -> Iterator[Bindings]:
        if not left:
            yield bindings
            return
        literal = next((item for item in left if self._ready(item, bindings)), left[0])
        rest = [item for item in left if item is not literal]
        self._progress(done, [literal, *rest], bindings)
        for extended in self._extend(literal, bindings):
            yield from self.run((*done, literal), rest, extended)

    def _ready(self, literal: BodyLiteral, bindings: Bindings) -> bool:
        """Whether a literal can be decided or enumerated now. Positive atoms always can."""
        match literal:
            case Atom(negated=True):
                return all(n in bindings for n in variables(literal) if self._bound_elsewhere(n))
            case Atom():
                return True
            case Compare("==", left, right):
                unbound = [e for e in (left, right) if not self._known(e, bindings)]
                return not unbound or (len(unbound) == 1 and isinstance(unbound[0], Var))
            case Compare(_, left, right):
                return self._known(left, bindings) and self._known(right, bindings)
            case Member(expr, _, negated):
                return self._known(expr, bindings) or (isinstance(expr, Var) and not negated)
            case Lookup(_, group):
                return all(var.name in bindings for var in group)

    def _bound_elsewhere(self, name: str) -> bool:
        return any(
            name in _names(other)
            for other in self._clause.body
            if not (isinstance(other, Atom) and other.negated)
        )

    def _known(self, expr: Expr, bindings: Bindings) -> bool:
        return all(name in bindings for name in variables(expr))

    def _extend(self, literal: BodyLiteral, bindings: Bindings) -> Iterator[Bindings]:
        match literal:
            case Atom(negated=True):
                if next(self._rows(literal, bindings), None) is None:
                    yield bindings
            case Atom():
                yield from self._rows(literal, bindings)
            case Compare():
                yield from self._compare(literal, bindings)
            case Member():
                yield from self._member(literal, bindings)
            case Lookup(view, group, result):
                value = self._runtime.views[view].value(tuple(bindings[v.name] for v in group))
                if value is not None:
                    type_ = self._runtime.layouts[view].relation.columns[-1].type
                    yield from self._assign(result.name, value, type_, bindings)

    def _rows(self, atom: Atom, bindings: Bindings) -> Iterator[Bindings]:
        layout = self._runtime.layouts[atom.relation]
        columns = layout.relation.columns
        wanted = {}
        for i, term in enumerate(atom.terms):
            value = self._wanted(term, columns[i].type, bindings)
            if value is not None:
                wanted[i] = value
        rows = sorted(self._runtime.matching(atom.relation, wanted), key=row_order)
        for row in rows:
            extended = self._bind_row(atom, row, bindings)
            if extended is not None:
                yield extended

    def _wanted(self, term: Expr, column_type: str, bindings: Bindings) -> Value | None:
        """The stored value that a term stands for, if it is known."""
        if isinstance(term, Const):
            return constant(term.value, column_type)
        assert isinstance(term, Var)
        value = bindings.get(term.name)
        return box(value) if value is not None and column_type == "any" else value

    def _bind_row(self, atom: Atom, row: Row, bindings: Bindings) -> Bindings | None:
        extended = dict(bindings)
        columns = self._runtime.layouts[atom.relation].relation.columns
        for term, value, column in zip(atom.terms, row, columns, strict=True):
            if not isinstance(term, Var):
                continue
            admitted = _admit(value, column.type, self._types[term.name])
            if admitted is None or not identical(extended.get(term.name, admitted), admitted):
                return None
            extended[term.name] = admitted
        return extended

    def _compare(self, literal: Compare, bindings: Bindings) -> Iterator[Bindings]:
        for var, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(var, Var) and var.name not in bindings:
                value = evaluate(other, bindings)
                if value is not None:
                    type_ = expression_type(other, self._types)
                    yield from self._assign(var.name, value, type_, bindings)
                return
        left, right = evaluate(literal.left, bindings), evaluate(literal.right, bindings)
        if compare(literal.op, left, right):
            yield bindings

    def _member(self, literal: Member, bindings: Bindings) -> Iterator[Bindings]:
        if not self._known(literal.expr, bindings):
            assert isinstance(literal.expr, Var)
            type_ = self._types[literal.expr.name]
            for value in literal.values:
                yield from self._assign(literal.expr.name, value, type_, bindings)
            return
        found = evaluate(literal.expr, bindings)
        if found is not None and (plain(found) in literal.values) != literal.negated:
            yield bindings

    def _assign(
        self, name: str, value: Value, computed: str, bindings: Bindings
    ) -> Iterator[Bindings]:
        if name in bindings:
            if compare("==", bindings[name], value):
                yield bindings
            return
        stored = _stored(value, computed, self._types[name])
        if stored is not None:
            yield {**bindings, name: stored}


def _names(literal: BodyLiteral) -> list[str]:
    if isinstance(literal, Lookup):
        return [*(var.name for var in literal.group), literal.result.name]
    return list(variables(literal))


def _stored(value: Value, computed: str, type_: str) -> Value | None:
    """A computed value as a variable or column of ``type_`` holds it, or ``None``."""
    return as_float(value) if (computed, type_) == ("any", "float") else coerce(value, type_)


def _admit(value: Value, column_type: str, variable_type: str) -> Value | None:
    """A column's value as a variable of another type holds it, or ``None``."""
    if column_type != "any" or variable_type == "any":
        return value
    if variable_type == "float":
        return plain(value) if isinstance(value, float) else None
    return coerce(value, "int" if is_entity(variable_type) else variable_type)
