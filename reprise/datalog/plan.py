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

from collections import Counter
from collections.abc import Iterator

from reprise.datalog.access import Access, Reach
from reprise.datalog.arithmetic import (
    Code,
    comparison_text,
    constant_text,
    expression_code,
)
from reprise.datalog.clauses import BodyLiteral, Lookup, body_variables
from reprise.datalog.layout import Layout
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
        self._mentions: dict[int, tuple[str, ...]] = {}
        self._needed: tuple[int, Counter[str]] = (-1, Counter())
        self._weighed: dict[int, tuple[int, Access]] = {}
        self._left = [
            literal
            for i, literal in enumerate(self._clause.body)
            if i != variant.position and not self._ignored(literal)
        ]
        self._fetched: dict[str, str] = {}
        self._names = 0
        self.steps: list[Step] = []

    def _ignored(self, literal: BodyLiteral) -> bool:
        negated = isinstance(literal, Atom) and literal.negated
        return negated and self._variant.purpose is Purpose.DELETE

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _test(self, text: str) -> None:
        self.steps.append(Step(StepKind.TEST, text))

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
                self._left.append(literal)
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
                    test, self._where[name] = admit(text, columns[i].type, self._types[name])
                    if test is not None:
                        self._test(test)

    def _bind_dispatched(self, term: Expr, dispatch: Dispatch) -> None:
        """A variable that an ``in`` restricts: the dispatch has established the membership."""
        if isinstance(term, Var):
            self._where[term.name] = f"{ANCHOR}[{dispatch.column}]"
            self._left = [
                literal
                for literal in self._left
                if not (
                    isinstance(literal, Member)
                    and literal.expr == term
                    and not literal.negated
                    and dispatch.value in literal.values
                )
            ]

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
                test, self._where[term.name] = admit(text, columns[i].type, self._types[term.name])
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
        self._needed = (-1, Counter())
        self._weighed.clear()
        self._place_ready()
        while self._left:
            accesses = [a for literal in self._left for a in self._accesses(literal)]
            assert accesses, f"unsafe clause: {self._clause.rule}"
            self._follow(min(accesses, key=lambda access: access.cost))
            self._place_ready()

    def _place_ready(self) -> None:
        """All tests and assignments whose variables are bound, in an order of their texts."""
        placed = True
        while placed:
            tests = []
            for literal in list(self._left):
                text = self._ready_test(literal)
                if text is not None:
                    tests.append(text)
                    self._left.remove(literal)
            for text in sorted(tests):
                if text != "True":
                    self._test(text)
            placed = any(self._assign(literal) for literal in list(self._left))

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

    def _assign(self, literal: BodyLiteral) -> bool:
        """Bind a variable that ``literal`` computes from bound ones, if it is such a literal."""
        match literal:
            case Compare("==", Var(name), other) if self._assignable(name, other):
                self._left.remove(literal)
                self._bind_value(name, self._code(other))
                return True
            case Compare("==", other, Var(name)) if self._assignable(name, other):
                self._left.remove(literal)
                self._bind_value(name, self._code(other))
                return True
            case Lookup(view, group, result) if result.name not in self._where and self._knows(
                var.name for var in group
            ):
                self._left.remove(literal)
                type_ = self._catalog.views[view].relation.columns[-1].type
                total = self._catalog.views[view].default is not None
                self._bind_value(result.name, Code(self._lookup_text(literal), type_, total))
                return True
        return False

    def _assignable(self, name: str, other: Expr) -> bool:
        return name not in self._where and self._knows(variables(other))

    def _lookup_text(self, lookup: Lookup) -> str:
        view = self._catalog.views[lookup.view]
        key = key_text([self._where[var.name] for var in lookup.group])
        default = "" if view.default is None else f", {constant_text(view.default)}"
        return f"{self._layout(lookup.view).rows}.get({key}{default})"

    def _bind_value(self, name: str, code: Code) -> None:
        self._where[name] = self._stored(code, self._types[name])

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

    def _accesses(self, literal: BodyLiteral) -> Iterator[Access]:
        if isinstance(literal, Member) and isinstance(literal.expr, Var) and not literal.negated:
            values = "".join(f"{constant_text(value)}, " for value in self._choices(literal))
            yield Access((3, len(literal.values), values), literal, "choice", f"({values})")
        elif isinstance(literal, Atom) and not literal.negated:
            # Weighed again only when one of its variables has been bound meanwhile: what else
            # changes can only make it look better, and long bodies would cost cubic time.
            bound = sum(name in self._where for name in self._variables(literal))
            kept = self._weighed.get(id(literal))
            if kept is None or kept[0] != bound:
                kept = self._weighed[id(literal)] = bound, self._atom_access(literal)
            yield kept[1]

    def _choices(self, member: Member) -> list[Value]:
        assert isinstance(member.expr, Var)
        type_ = self._types[member.expr.name]
        return list(dict.fromkeys(constant(value, type_) for value in member.values))

    def _atom_access(self, atom: Atom) -> Access:
        left = (self._variables(other) for other in self._left if other is not atom)
        return self._reach.access(atom, self._still_needed(), left)

    def _still_needed(self) -> Counter[str]:
        """How often the head and the literals still to place mention each variable."""
        placed, needed = self._needed
        if placed != len(self._left):
            needed = Counter(variables(self._clause.head))
            for literal in self._left:
                needed.update(self._variables(literal))
            self._needed = len(self._left), needed
        return needed

    def _variables(self, literal: BodyLiteral) -> tuple[str, ...]:
        """A literal's variables, collected once per plan."""
        names = self._mentions.get(id(literal))
        if names is None:
            names = self._mentions[id(literal)] = tuple(body_variables(literal))
        return names

    def _follow(self, access: Access) -> None:
        """Append the steps of an access and bind what it yields."""
        self._left.remove(access.literal)
        if access.kind == "choice":
            assert isinstance(access.literal, Member) and isinstance(access.literal.expr, Var)
            name = self._name("x")
            self.steps.append(Step(StepKind.EACH, f"{name} in {access.text}"))
            self._where[access.literal.expr.name] = name
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
        self.steps.append(Step(StepKind.DO, insertion(layout, row, self._often(), loops > 1)))

    def _often(self) -> bool:
        """Whether head rows are likely to be found so often that a call for each would tell."""
        return self._clause.head.relation in self._recursive or len(self._clause.body) <= 3
