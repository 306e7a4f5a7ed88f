"""From a clause and an anchor to the steps of a nested-loop join.

A :class:`~reprise.datalog.variants.Variant` says where evaluation starts: at the changed rows of
one body literal, or at a head row that is to be checked. The planner then orders the rest greedily,
bound things first: tests as soon as their variables have values, look-ups by key, index buckets,
and scans last.
Invariants: a step uses only rows that earlier steps bound; a step's text depends on nothing but
the steps before it, so that variants that begin alike have equal steps and can share them
(:mod:`reprise.datalog.emit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reprise.datalog.access import Access, Reach
from reprise.datalog.arithmetic import (
    Code,
    comparison_text,
    constant_text,
    expression_code,
)
from reprise.datalog.clauses import BodyLiteral, Lookup, body_variables
from reprise.datalog.layout import Layout
from reprise.datalog.pending import Pending
from reprise.datalog.rowcode import (
    admit,
    both_integers,
    coercion,
    deletion,
    identical,
    insertion,
    key_text,
    row_text,
)
from reprise.datalog.values import constant
from reprise.datalog.variants import (
    ANCHOR,
    Catalog,
    Dispatch,
    Growing,
    Purpose,
    Step,
    StepKind,
    Variant,
)
from reprise.lang.core import Atom, Compare, Const, Expr, Member, Value, Var, variables


def plan(
    variant: Variant, catalog: Catalog, growing: Growing, dispatch: Dispatch | None = None
) -> tuple[Step, ...]:
    """The steps of ``variant``, the last of them its ``DO``."""
    planner = _Planner(variant, catalog, growing)
    planner.start(dispatch)
    planner.join()
    planner.finish()
    return tuple(planner.steps)


class _Planner:
    def __init__(self, variant: Variant, catalog: Catalog, growing: Growing) -> None:
        self._variant = variant
        self._clause = variant.clause
        self._catalog = catalog
        self._reach = Reach(variant.clause.types, catalog, growing.relations)
        self._where = self._reach.where
        self._recursive = growing.recursive
        self._types = variant.clause.types
        self._pending = Pending(variant)
        # Positive atoms that share a variable with what is placed: weighed, and to be weighed.
        self._weighed: dict[int, Access] = {}
        self._unweighed: dict[int, None] = {}
        self._fetched: dict[str, str] = {}
        self._names = 0
        self.steps: list[Step] = []

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _test(self, text: str) -> None:
        self.steps.append(Step(StepKind.TEST, text))

    def _bind(self, name: str, text: str) -> None:
        """Let a variable be known as ``text``; what mentions it is looked at again."""
        self._where[name] = text
        for place in self._pending.bind(name):
            self._weighed.pop(place, None)
            self._unweighed[place] = None

    # --- the anchor ---

    def start(self, dispatch: Dispatch | None) -> None:
        """Bind the anchor row's columns."""
        position = self._variant.position
        if position is None:
            self._start_at_head()
            return
        literal = self._clause.body[position]
        if isinstance(literal, Lookup):
            self._bind_terms((*literal.group, literal.result), literal.view, ANCHOR, frozenset())
            return
        assert isinstance(literal, Atom)
        covered: frozenset[int] = frozenset()
        if dispatch is not None:
            covered = frozenset((dispatch.column,))
            self._bind_dispatched(literal.terms[dispatch.column], dispatch)
        if literal.negated:
            self._bind_outer(literal, covered)
            if self._variant.purpose is not Purpose.DELETE:
                self._pending.add(position, literal)
        else:
            self._bind_terms(literal.terms, literal.relation, ANCHOR, covered)

    def _start_at_head(self) -> None:
        head = self._clause.head
        columns = self._layout(head.relation).relation.columns
        for i, term in enumerate(head.terms):
            text = f"{ANCHOR}[{i}]"
            match term:
                case Const():
                    self._test(self._reach.equal(text, columns[i].type, term))
                case Var(name) if name in self._where:
                    self._test(self._reach.equal(text, columns[i].type, term))
                case Var(name):
                    test, known = admit(text, columns[i].type, self._types[name])
                    self._bind(name, known)
                    if test is not None:
                        self._test(test)

    def _bind_dispatched(self, term: Expr, dispatch: Dispatch) -> None:
        """A variable that an ``in`` restricts: the dispatch has established the membership."""
        if isinstance(term, Var):
            self._bind(term.name, f"{ANCHOR}[{dispatch.column}]")
            for place, literal in list(self._pending.literals.items()):
                if (
                    isinstance(literal, Member)
                    and literal.expr == term
                    and not literal.negated
                    and dispatch.value in literal.values
                ):
                    self._pending.take(place)

    def _bind_outer(self, atom: Atom, covered: frozenset[int]) -> None:
        """Bind from a negated atom's row what the rest of the clause knows about, too."""
        outside = {
            name
            for i, literal in enumerate(self._clause.body)
            if i != self._variant.position
            for name in body_variables(literal)
        }
        terms = tuple(
            term if not isinstance(term, Var) or term.name in outside else None
            for term in atom.terms
        )
        self._bind_terms(terms, atom.relation, ANCHOR, covered)

    def _bind_terms(
        self,
        terms: tuple[Expr | None, ...],
        relation: str,
        row: str,
        covered: frozenset[int],
    ) -> None:
        """Names for a row's columns, and tests where a column's value is already known."""
        columns = self._layout(relation).relation.columns
        tests = []
        for i, term in enumerate(terms):
            if term is None or i in covered:
                continue
            text = f"{row}[{i}]"
            if isinstance(term, Var) and term.name not in self._where:
                test, known = admit(text, columns[i].type, self._types[term.name])
                self._bind(term.name, known)
                if test is not None:
                    tests.append(test)
            else:
                tests.append(self._reach.equal(text, columns[i].type, term))
        for test in sorted(tests):
            self._test(test)

    def _layout(self, relation: str) -> Layout:
        return self._catalog.layouts[relation]

    # --- the join ---

    def join(self) -> None:
        """Place every remaining literal, cheapest first."""
        self._unweighed.update(dict.fromkeys(self._constant_keyed()))
        self._place_ready()
        while self._pending.literals:
            place = self._cheapest()
            self._follow(place, self._weighed[place])
            self._place_ready()

    def _cheapest(self) -> int:
        """The literal to go on with. Those that share nothing with what is placed come last."""
        pending = self._pending.literals
        for place in self._unweighed:
            if place in pending:
                self._weigh_atom(place, pending[place])
        self._unweighed.clear()
        if not self._weighed:
            for place, literal in pending.items():
                self._weigh(place, literal)
        weighed = self._weighed
        best = min(weighed, key=lambda place: weighed[place].cost, default=None)
        assert best is not None, f"unsafe clause: {self._clause.rule}"
        return best

    def _constant_keyed(self) -> Iterator[int]:
        """The atoms whose keys are given by constants."""
        for place, literal in self._pending.literals.items():
            if isinstance(literal, Atom):
                terms = literal.terms
                key = self._layout(literal.relation).key or range(len(terms))
                if all(isinstance(terms[i], Const) for i in key):
                    yield place

    def _place_ready(self) -> None:
        """All tests and assignments whose variables are bound, in an order of their texts."""
        placed = True
        while placed:
            placed = False
            tests = []
            concerned = self._pending.concerned()
            for place, literal in concerned:
                text = self._ready_test(literal)
                if text is not None:
                    tests.append(text)
                    self._pending.take(place)
            for text in sorted(tests):
                if text != "True":
                    self._test(text)
            for place, literal in concerned:
                placed |= place in self._pending.literals and self._assign(place, literal)

    def _knows(self, names: Iterator[str]) -> bool:
        return all(name in self._where for name in names)

    def _code(self, expr: Expr) -> Code:
        return expression_code(expr, self._where, self._types)

    def _ready_test(self, literal: BodyLiteral) -> str | None:
        match literal:
            case Atom(negated=True) if self._knows(self._outer_names(literal)):
                return f"not {self._reach.exists(literal, self._name('n'))}"
            case Compare(op, left, right) if self._knows(variables(literal)):
                return comparison_text(op, self._code(left), self._code(right))
            case Member() if self._knows(variables(literal.expr)):
                return self._member_test(literal)
            case Lookup() if self._knows(body_variables(literal)):
                known = Code(self._where[literal.result.name], self._types[literal.result.name])
                view = self._catalog.views[literal.view]
                type_ = view.relation.columns[-1].type
                found = Code(self._lookup_text(literal), type_, view.default is not None)
                return comparison_text("==", found, known)
        return None

    def _outer_names(self, atom: Atom) -> Iterator[str]:
        """Variables of a negated atom that something else in the clause binds."""
        others = {
            name
            for literal in self._clause.body
            if literal is not atom and not (isinstance(literal, Atom) and literal.negated)
            for name in body_variables(literal)
        }
        return (name for name in variables(atom) if name in others)

    def _member_test(self, literal: Member) -> str:
        code = self._code(literal.expr)
        values = "".join(f"{constant_text(value)}, " for value in literal.values)
        word = "not in" if literal.negated else "in"
        if code.total and code.type != "any":
            return f"{code.text} {word} ({values})"
        name = self._name("x")
        return f"({name} := {code.text}) is not None and plain({name}) {word} ({values})"

    def _assign(self, place: int, literal: BodyLiteral) -> bool:
        """Bind a variable that ``literal`` computes from bound ones, if it is such a literal."""
        match literal:
            case Compare("==", Var(name), other) if self._assignable(name, other):
                self._pending.take(place)
                self._bind_value(name, self._code(other))
                return True
            case Compare("==", other, Var(name)) if self._assignable(name, other):
                self._pending.take(place)
                self._bind_value(name, self._code(other))
                return True
            case Lookup(view, group, result) if result.name not in self._where and self._knows(
                var.name for var in group
            ):
                self._pending.take(place)
                type_ = self._catalog.views[view].relation.columns[-1].type
                total = self._catalog.views[view].default is not None
                self._bind_value(result.name, Code(self._lookup_text(literal), type_, total))
                return True
        return False

    def _assignable(self, name: str, other: Expr) -> bool:
        return (
            name not in self._where
            and self._knows(variables(other))
            and not self._compared_by_value(name)
        )

    def _compared_by_value(self, name: str) -> bool:
        """Whether a variable must come from an atom or an aggregate first: an ``any`` column may
        hold 0 or 0.0, which ``== 0`` and ``in {0}`` both mean, but which are different rows."""
        return self._types[name] == "any" and any(
            _gives(literal, name) for literal in self._clause.body
        )

    def _lookup_text(self, lookup: Lookup) -> str:
        view = self._catalog.views[lookup.view]
        key = key_text([self._where[var.name] for var in lookup.group])
        default = "" if view.default is None else f", {constant_text(view.default)}"
        return f"{self._layout(lookup.view).rows}.get({key}{default})"

    def _bind_value(self, name: str, code: Code) -> None:
        self._bind(name, self._stored(code, self._types[name]))

    def _stored(self, code: Code, type_: str) -> str:
        """``code``'s value as a variable or column of ``type_`` holds it, tested to be one."""
        if code.total and (code.type == type_ or both_integers(code.type, type_)):
            if code.text[0] not in "(-":
                return code.text
            name = self._name("x")
            self._test(f"({name} := {code.text}) is not None")
            return name
        name = self._name("x")
        if type_ == "any":
            self._test(f"({name} := {code.text}) is not None")
            return f"box({name})"
        test = f"({name} := coerce_{coercion(code.type, type_)}({code.text})) is not None"
        self._test(test)
        return name

    # --- access to atoms ---

    def _weigh(self, place: int, literal: BodyLiteral) -> None:
        """Note how a literal can be reached, if it is one that yields bindings."""
        match literal:
            case Member(Var(name), _, False) if not self._compared_by_value(name):
                choices = self._choices(literal)
                values = "".join(f"{constant_text(value)}, " for value in choices)
                cost = (3, len(choices), values)
                self._weighed[place] = Access(cost, literal, "choice", f"({values})")
            case Atom():
                self._weigh_atom(place, literal)

    def _weigh_atom(self, place: int, literal: BodyLiteral) -> None:
        if isinstance(literal, Atom) and not literal.negated:
            self._weighed[place] = self._reach.access(
                literal, self._pending.mentions, partial(self._pending.concerns, place)
            )

    def _choices(self, member: Member) -> list[Value]:
        assert isinstance(member.expr, Var)
        type_ = self._types[member.expr.name]
        return list(dict.fromkeys(constant(value, type_) for value in member.values))

    def _follow(self, place: int, access: Access) -> None:
        """Append the steps of an access and bind what it yields."""
        self._pending.take(place)
        del self._weighed[place]
        if access.kind == "choice":
            assert isinstance(access.literal, Member) and isinstance(access.literal.expr, Var)
            name = self._name("x")
            self.steps.append(Step(StepKind.EACH, f"{name} in {access.text}"))
            self._bind(access.literal.expr.name, name)
            return
        assert isinstance(access.literal, Atom)
        if access.kind == "test":
            self._test(access.text)
            return
        row = self._fetched.get(access.text) if access.kind == "fetch" else None
        if row is None:
            row = self._name("r")
            if access.kind == "fetch":
                self._fetched[access.text] = row
                self._test(f"({row} := {access.text}) is not None")
            else:
                self.steps.append(Step(StepKind.EACH, f"{row} in {access.text}"))
        self._bind_terms(access.literal.terms, access.literal.relation, row, access.covered)

    # --- the head ---

    def finish(self) -> None:
        """Compute the head row and act on it."""
        head = self._clause.head
        layout = self._layout(head.relation)
        columns = layout.relation.columns
        if self._variant.purpose is Purpose.CHECK:
            for i, term in enumerate(head.terms):
                if not isinstance(term, Var | Const):
                    text = self._stored(self._code(term), columns[i].type)
                    self._test(identical(f"{ANCHOR}[{i}]", text, columns[i].type))
            self.steps.append(Step(StepKind.DO, "return True"))
            return
        texts = []
        for term, column in zip(head.terms, columns, strict=True):
            if isinstance(term, Const):
                texts.append(constant_text(constant(term.value, column.type)))
            else:
                texts.append(self._stored(self._code(term), column.type))
        row = row_text(texts)
        if self._variant.purpose is Purpose.DELETE:
            self.steps.append(Step(StepKind.DO, deletion(layout, row)))
            return
        loops = sum(step.kind is StepKind.EACH for step in self.steps)
        fixed = all(isinstance(term, Const) for term in head.terms)
        text = insertion(layout, row, fixed, self._often(), loops > 1)
        self.steps.append(Step(StepKind.DO, text))

    def _often(self) -> bool:
        """Whether head rows are likely to be found so often that a call for each would tell."""
        return self._clause.head.relation in self._recursive or len(self._clause.body) <= 3


def _gives(literal: BodyLiteral, name: str) -> bool:
    """Whether a literal holds rows that bind a variable."""
    match literal:
        case Atom():
            return not literal.negated and Var(name) in literal.terms
        case Lookup():
            return literal.result.name == name
        case _:
            return False
