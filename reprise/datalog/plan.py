"""From a clause and an anchor to the steps of a nested-loop join.

A :class:`Variant` says where evaluation starts: at the changed rows of one body literal, or at a
head row that is to be checked. The planner then orders the rest greedily, bound things first:
tests as soon as their variables have values, look-ups by key, index buckets, and scans last.
Invariants: a step uses only rows that earlier steps bound; a step's text depends on nothing but
the steps before it, so that variants that begin alike have equal steps and can share them
(:mod:`reprise.datalog.emit`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from reprise.datalog.arithmetic import (
    Code,
    comparison_text,
    constant_text,
    expression_code,
)
from reprise.datalog.clauses import (
    AggregateView,
    BodyLiteral,
    Clause,
    Lookup,
    body_variables,
)
from reprise.datalog.layout import Layout, Shape
from reprise.datalog.values import constant, is_entity
from reprise.lang.core import Atom, Compare, Const, Expr, Member, Value, Var, variables

ANCHOR = "r0"
"""The name of the row that a variant starts from."""


class Purpose(Enum):
    """What is done with a head row that a variant finds.

    ``INSERT`` adds it. ``DELETE`` marks it as possibly underivable; negated literals are left out
    of such a variant, because it may find too much but never too little. ``CHECK`` starts from
    the head row and reports that the clause derives it.
    """

    INSERT = "insert"
    DELETE = "delete"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Variant:
    """A clause evaluated from one place: a body position, or ``None`` for the head."""

    clause: Clause
    position: int | None
    purpose: Purpose


class StepKind(Enum):
    """``TEST``: a condition. ``EACH``: a loop header. ``DO``: statements, always the last step."""

    TEST = "if"
    EACH = "for"
    DO = "do"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a plan, as Python text without its indentation and colon."""

    kind: StepKind
    text: str


@dataclass(frozen=True)
class Catalog:
    """What the planner knows of the database: layouts, views, and sizes to break ties with.

    ``index`` names the index of a relation on some columns, and so announces its use.
    """

    layouts: Mapping[str, Layout]
    views: Mapping[str, AggregateView]
    size: Callable[[str], int]
    index: Callable[[str, tuple[int, ...]], str]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The anchor's column that selected this variant, and the constant that it selected."""

    column: int
    value: Value


def plan(
    variant: Variant, catalog: Catalog, growing: Growing, dispatch: Dispatch | None = None
) -> tuple[Step, ...]:
    """The steps of ``variant``, the last of them its ``DO``."""
    planner = _Planner(variant, catalog, growing)
    planner.start(dispatch)
    planner.join()
    planner.finish()
    return tuple(planner.steps)


@dataclass(frozen=True, slots=True)
class Growing:
    """Relations that may gain rows while a plan runs, and those of them that are recursive.

    Scans of the former copy first; the latter are expected to gain many.
    """

    relations: frozenset[str] = frozenset()
    recursive: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Access:
    """One way to continue a plan: a literal, its cost (smaller first), and how to reach it."""

    cost: tuple[int, int, str]
    literal: BodyLiteral
    kind: str
    text: str
    covered: frozenset[int] = frozenset()


class _Planner:
    def __init__(self, variant: Variant, catalog: Catalog, growing: Growing) -> None:
        self._variant = variant
        self._clause = variant.clause
        self._catalog = catalog
        self._growing = growing.relations
        self._recursive = growing.recursive
        self._types = variant.clause.types
        self._mentions: dict[int, tuple[str, ...]] = {}
        self._needed: tuple[int, Counter[str]] = (-1, Counter())
        self._weighed: dict[int, tuple[int, _Access]] = {}
        self._left = [
            literal
            for i, literal in enumerate(self._clause.body)
            if i != variant.position and not self._ignored(literal)
        ]
        self._where: dict[str, str] = {}
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
                    self._test(self._equal(text, columns[i].type, term))
                case Var(name) if name in self._where:
                    self._test(self._equal(text, columns[i].type, term))
                case Var(name):
                    test, self._where[name] = _admit(text, columns[i].type, self._types[name])
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
                test, self._where[term.name] = _admit(text, columns[i].type, self._types[term.name])
                if test is not None:
                    tests.append(test)
            else:
                tests.append(self._equal(text, columns[i].type, term))
        for test in sorted(tests):
            self._test(test)

    def _equal(self, text: str, column_type: str, term: Expr) -> str:
        """A test that a column's value is the known value of ``term``."""
        if isinstance(term, Const):
            known, type_ = constant_text(constant(term.value, column_type)), column_type
            if column_type == "any":
                type_ = {int: "int", float: "float"}.get(type(term.value), "sym")
        else:
            assert isinstance(term, Var)
            known, type_ = self._where[term.name], self._types[term.name]
        test = _identical(text, known, type_)
        if column_type == "any" and type_ == "float":
            return f"isinstance({text}, float) and {test}"
        return test

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
                return f"not {self._exists(literal)}"
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
        key = _key_text([self._where[var.name] for var in lookup.group])
        default = "" if view.default is None else f", {constant_text(view.default)}"
        return f"{self._layout(lookup.view).rows}.get({key}{default})"

    def _bind_value(self, name: str, code: Code) -> None:
        self._where[name] = self._stored(code, self._types[name])

    def _stored(self, code: Code, type_: str) -> str:
        """``code``'s value as a variable or column of ``type_`` holds it, tested to be one."""
        if code.total and (code.type == type_ or _both_integers(code.type, type_)):
            if code.text[0] not in "(-":
                return code.text
            name = self._name("x")
            self._test(f"({name} := {code.text}) is not None")
            return name
        name = self._name("x")
        if type_ == "any":
            self._test(f"({name} := {code.text}) is not None")
            return f"box({name})"
        test = f"({name} := coerce_{_coercion(code.type, type_)}({code.text})) is not None"
        self._test(test)
        return name

    # --- access to atoms ---

    def _accesses(self, literal: BodyLiteral) -> Iterator[_Access]:
        if isinstance(literal, Member) and isinstance(literal.expr, Var) and not literal.negated:
            values = "".join(f"{constant_text(value)}, " for value in self._choices(literal))
            yield _Access((3, len(literal.values), values), literal, "choice", f"({values})")
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

    def _atom_access(self, atom: Atom) -> _Access:
        layout = self._layout(atom.relation)
        known = frozenset(i for i, term in enumerate(atom.terms) if self._usable(layout, i, term))
        size = self._catalog.size(atom.relation).bit_length() // 4
        if layout.shape is Shape.ROWS and len(known) == len(atom.terms):
            text = f"{_row_text(self._terms(atom, layout, known))} in {layout.rows}"
            return _Access((0, 0, text), atom, "test", text, known)
        if layout.key and known.issuperset(layout.key):
            text = self._by_key(atom, layout)
            promise = self._promise(atom, layout, known)
            return _Access((1, -promise, text), atom, "fetch", text, frozenset(layout.key))
        bucket, covered = self._bucket(atom, layout, known)
        if known == covered and self._only_existence(atom, known):
            return _Access((2, 0, bucket), atom, "test", self._truth(atom, layout, known), known)
        cost = (4, size * 8 - len(covered), bucket) if known else (6, size, bucket)
        return _Access(cost, atom, "each", self._iterable(atom, layout, covered), covered)

    def _promise(self, atom: Atom, layout: Layout, known: frozenset[int]) -> int:
        """How much a look-up by key helps: tests that it allows at once, then ones it enables.

        A test against a symbol comes first: it tells operators apart.
        """
        tested = known.difference(layout.key)
        symbols = sum(isinstance(atom.terms[i], Const) and layout.dispatchable(i) for i in tested)
        fresh = {
            term.name
            for i, term in enumerate(atom.terms)
            if i not in known and isinstance(term, Var)
        }
        enabled = sum(
            not fresh.isdisjoint(self._variables(literal))
            for literal in self._left
            if literal is not atom
        )
        return symbols * 10_000 + len(tested) * 100 + enabled

    def _usable(self, layout: Layout, column: int, term: Expr) -> bool:
        """Whether a term's value is known in the form in which the column stores it."""
        if isinstance(term, Const):
            return layout.by_value(column) or not isinstance(term.value, float)
        assert isinstance(term, Var)
        if term.name not in self._where:
            return False
        return layout.by_value(column) or self._types[term.name] != "float"

    def _terms(self, atom: Atom, layout: Layout, columns: frozenset[int]) -> list[str]:
        texts = []
        for i in sorted(columns):
            term = atom.terms[i]
            if isinstance(term, Const):
                type_ = layout.relation.columns[i].type
                texts.append(constant_text(constant(term.value, type_)))
            else:
                assert isinstance(term, Var)
                texts.append(self._where[term.name])
        return texts

    def _by_key(self, atom: Atom, layout: Layout) -> str:
        first, *rest = (self._terms(atom, layout, frozenset((i,)))[0] for i in layout.key)
        if layout.shape is Shape.KEYED:
            return f"{layout.rows}.get({first})"
        return f"{layout.rows}.get({first}, EMPTY).get({_key_text(rest)})"

    def _bucket(
        self, atom: Atom, layout: Layout, known: frozenset[int]
    ) -> tuple[str, frozenset[int]]:
        """The rows that agree with the known columns, and the columns that this accounts for."""
        if not known:
            return layout.rows, known
        if layout.shape is Shape.NESTED and layout.key[0] in known:
            first = frozenset((layout.key[0],))
            return f"{layout.rows}.get({self._terms(atom, layout, first)[0]}", first
        columns = tuple(sorted(known))
        key = _key_text(self._terms(atom, layout, known))
        return f"{self._catalog.index(atom.relation, columns)}.get({key}", known

    def _truth(self, atom: Atom, layout: Layout, known: frozenset[int]) -> str:
        """A test for any row with the known columns."""
        bucket, _ = self._bucket(atom, layout, known)
        return f"{bucket})" if known else bucket

    def _iterable(self, atom: Atom, layout: Layout, covered: frozenset[int]) -> str:
        if not covered:
            if layout.shape is Shape.ROWS:
                copied = atom.relation in self._growing
                return f"list({layout.rows})" if copied else layout.rows
            return f"{layout.scan}()"
        bucket, _ = self._bucket(atom, layout, covered)
        nested = layout.shape is Shape.NESTED and covered == {layout.key[0]}
        values = ".values()" if nested else ""
        return f"{bucket}, EMPTY){values}"

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

    def _only_existence(self, atom: Atom, known: frozenset[int]) -> bool:
        """Whether it only matters that there is a matching row, not which."""
        layout = self._layout(atom.relation)
        needed = self._still_needed()
        for i, term in enumerate(atom.terms):
            if i in known:
                continue
            if not isinstance(term, Var) or needed[term.name] > 1 or term.name in self._where:
                return False
            if _admit("", layout.relation.columns[i].type, self._types[term.name])[0] is not None:
                return False
        return True

    def _exists(self, atom: Atom) -> str:
        """An expression that holds if some row matches a (negated) atom's bound terms."""
        layout = self._layout(atom.relation)
        known = frozenset(i for i, term in enumerate(atom.terms) if self._usable(layout, i, term))
        if layout.shape is Shape.ROWS and len(known) == len(atom.terms):
            return f"({_row_text(self._terms(atom, layout, known))} in {layout.rows})"
        row = self._name("n")
        if layout.key and known.issuperset(layout.key):
            covered = frozenset(layout.key)
            tests = self._row_tests(atom, layout, row, covered)
            found = f"({row} := {self._by_key(atom, layout)}) is not None"
            return f"({' and '.join((found, *tests))})"
        _, covered = self._bucket(atom, layout, known)
        tests = self._row_tests(atom, layout, row, covered)
        if not tests:
            return f"({self._truth(atom, layout, covered)})"
        rows = self._iterable(atom, layout, covered)
        return f"any({' and '.join(tests)} for {row} in {rows})"

    def _row_tests(
        self, atom: Atom, layout: Layout, row: str, covered: frozenset[int]
    ) -> list[str]:
        """Tests of a negated atom's row beyond the columns that were looked up."""
        tests = []
        local: dict[str, str] = {}
        for i, term in enumerate(atom.terms):
            text, type_ = f"{row}[{i}]", layout.relation.columns[i].type
            if i in covered:
                continue
            if isinstance(term, Const) or (isinstance(term, Var) and term.name in self._where):
                tests.append(self._equal(text, type_, term))
            elif isinstance(term, Var):
                if term.name in local:
                    tests.append(_identical(text, local[term.name], type_))
                local.setdefault(term.name, text)
        return tests

    def _follow(self, access: _Access) -> None:
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
                    self._test(_identical(f"{ANCHOR}[{i}]", text, columns[i].type))
            self.steps.append(Step(StepKind.DO, "return True"))
            return
        texts = []
        for term, column in zip(head.terms, columns, strict=True):
            if isinstance(term, Const):
                texts.append(constant_text(constant(term.value, column.type)))
            else:
                texts.append(self._stored(self._code(term), column.type))
        row = _row_text(texts)
        if self._variant.purpose is Purpose.DELETE:
            self.steps.append(Step(StepKind.DO, _deletion(layout, row)))
            return
        loops = sum(step.kind is StepKind.EACH for step in self.steps)
        self.steps.append(Step(StepKind.DO, _insertion(layout, row, self._often(), loops > 1)))

    def _often(self) -> bool:
        """Whether head rows are likely to be found so often that a call for each would tell."""
        return self._clause.head.relation in self._recursive or len(self._clause.body) <= 3


def _insertion(layout: Layout, row: str, often: bool, unbounded: bool) -> str:
    """Add a head row: in line, or by a call where that is rare.

    Two loops or more may find any number of rows before the evaluator counts them, so there the
    limit is checked row by row.
    """
    if not often and not unbounded:
        return f"found({layout.store}, {row})"
    check = f"    if len({layout.new}) > ROOM[0]: overflow({layout.store})" if unbounded else ""
    return (
        f"row = {row}\n"
        f"if row not in {layout.rows}:\n"
        f"    {layout.rows}[row] = None\n"
        f"    if not {layout.new}: touched.append({layout.store})\n"
        f"    {layout.new}.append(row)\n"
        f"{check}"
    ).rstrip("\n")


def _deletion(layout: Layout, row: str) -> str:
    return f"row = {row}\nif row in {layout.rows}:\n    doom({layout.store}, row)"


def _identical(left: str, right: str, type_: str) -> str:
    """A test that two stored values are the same; NaN is itself, as it is to dictionaries."""
    if type_ not in ("float", "any") or right[0] in "-'\"0123456789":
        return f"{left} == {right}"
    return f"({left} == {right} or {left} is {right})"


def _admit(text: str, column_type: str, variable_type: str) -> tuple[str | None, str]:
    """How a column's value becomes a variable's: a run-time type test, and the value's text."""
    if column_type != "any" or variable_type == "any":
        return None, text
    match variable_type:
        case "float":
            return f"isinstance({text}, float)", f"float({text})"
        case "sym":
            return f"type({text}) is str", text
        case "bool":
            return f"{text} in ('true', 'false')", text
        case _:
            return f"type({text}) is int", text


def _coercion(from_type: str, to_type: str) -> str:
    """The run-time conversion of a computed value for a typed column."""
    if to_type == "float":
        return "float" if from_type == "any" else "number"
    return "int" if to_type == "int" or is_entity(to_type) else to_type


def _both_integers(left: str, right: str) -> bool:
    return left in ("int", right) and (right == "int" or is_entity(right))


def _key_text(texts: list[str]) -> str:
    """A dictionary key of some values: the value itself if there is one."""
    return texts[0] if len(texts) == 1 else _row_text(texts)


def _row_text(texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
