"""How the values that are known at some point of a plan lead to the rows of an atom.

Comes in: the texts under which variables are known so far. Goes out: text for a membership test, a
look-up by key, a loop over an index bucket or a scan, with a cost that says which to prefer.
Invariant: an access yields exactly the rows that agree with the known terms, except for the
columns that it does not claim to have ``covered``, which the planner tests itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reprise.datalog.arithmetic import constant_text
from reprise.datalog.clauses import BodyLiteral
from reprise.datalog.layout import Layout, Shape
from reprise.datalog.rowcode import admit, identical, key_text, row_text
from reprise.datalog.values import constant, is_entity
from reprise.datalog.variants import Catalog
from reprise.lang.core import Atom, Const, Expr, Var

Others = Callable[[Iterable[str]], int]
"""How many other literals mention one of some variables."""


@dataclass(frozen=True, slots=True)
class Access:
    """One way to continue a plan: a literal, its cost (smaller first), and how to reach it.

    ``kind`` is ``test`` (no row is needed), ``fetch`` (one row or none), ``each`` (a loop over
    rows) or ``choice`` (a loop over constants).
    """

    cost: tuple[int, int, str]
    literal: BodyLiteral
    kind: str
    text: str
    covered: frozenset[int] = frozenset()


class Reach:
    """What can be reached from the variables in ``where``, which the planner extends.

    ``growing`` are relations that may gain rows meanwhile: scans of them copy first.
    """

    def __init__(self, types: Mapping[str, str], catalog: Catalog, growing: frozenset[str]) -> None:
        self.where: dict[str, str] = {}
        self.types = types
        self._catalog = catalog
        self._growing = growing

    def _layout(self, relation: str) -> Layout:
        return self._catalog.layouts[relation]

    def equal(self, text: str, column_type: str, term: Expr) -> str:
        """A test that a column's value is the known value of ``term``."""
        if isinstance(term, Const):
            known, type_ = constant_text(constant(term.value, column_type)), column_type
            if column_type == "any":
                type_ = {int: "int", float: "float"}.get(type(term.value), "sym")
        else:
            assert isinstance(term, Var)
            known, type_ = self.where[term.name], self.types[term.name]
        test = identical(text, known, type_)
        if column_type == "any" and type_ == "float":
            return f"isinstance({text}, float) and {test}"
        return test

    def access(self, atom: Atom, needed: Mapping[str, int], left: Others) -> Access:
        """The best way to the rows that match a positive atom.

        ``needed`` counts how often the rest of the clause mentions each variable, this atom
        included; ``left`` knows the other literals to come.
        """
        layout = self._layout(atom.relation)
        known = frozenset(i for i, term in enumerate(atom.terms) if self._usable(layout, i, term))
        size = self._catalog.size(atom.relation).bit_length() // 4
        if layout.shape is Shape.ROWS and len(known) == len(atom.terms):
            text = f"{row_text(self._terms(atom, layout, known))} in {layout.rows}"
            return Access((0, 0, text), atom, "test", text, known)
        if layout.key and known.issuperset(layout.key):
            text = self._by_key(atom, layout)
            promise = self._promise(atom, layout, known, left)
            return Access((1, -promise, text), atom, "fetch", text, frozenset(layout.key))
        bucket, covered = self._bucket(atom, layout, known)
        if known == covered and self._only_existence(atom, known, needed):
            return Access((2, 0, bucket), atom, "test", self._truth(bucket, known), known)
        spread = self._spread(layout, covered) * 1_000 + size * 8 - len(covered)
        cost = (4, spread, bucket) if known else (6, size, bucket)
        return Access(cost, atom, "each", self._iterable(atom, layout, bucket, covered), covered)

    def _promise(self, atom: Atom, layout: Layout, known: frozenset[int], left: Others) -> int:
        """How much a look-up by key helps: tests that it allows at once, then ones it enables.

        A test against a symbol comes first: it tells operators apart.
        """
        tested = known.difference(layout.key)
        symbols = sum(isinstance(atom.terms[i], Const) and layout.dispatchable(i) for i in tested)
        fresh = [
            term.name
            for i, term in enumerate(atom.terms)
            if i not in known and isinstance(term, Var)
        ]
        return symbols * 10_000 + len(tested) * 100 + left(fresh)

    def _spread(self, layout: Layout, columns: frozenset[int]) -> int:
        """How large the buckets of an index on some columns tend to be.

        An entity has few rows; a symbol outside the key (an operator) tells entities apart; parts
        of the key (an attribute's name, a position) do not.
        """
        found = [layout.relation.columns[i] for i in columns]
        if any(is_entity(column.type) for column in found):
            return 0
        return 1 if any(column.type == "sym" and not column.key for column in found) else 2

    def _only_existence(self, atom: Atom, known: frozenset[int], needed: Mapping[str, int]) -> bool:
        """Whether it only matters that there is a matching row, not which."""
        columns = self._layout(atom.relation).relation.columns
        for i, term in enumerate(atom.terms):
            if i in known:
                continue
            if not isinstance(term, Var) or needed[term.name] > 1 or term.name in self.where:
                return False
            if admit("", columns[i].type, self.types[term.name])[0] is not None:
                return False
        return True

    def _usable(self, layout: Layout, column: int, term: Expr) -> bool:
        """Whether a term's value is known in the form in which the column stores it."""
        if isinstance(term, Const):
            return layout.by_value(column) or not isinstance(term.value, float)
        assert isinstance(term, Var)
        if term.name not in self.where:
            return False
        return layout.by_value(column) or self.types[term.name] != "float"

    def _terms(self, atom: Atom, layout: Layout, columns: frozenset[int]) -> list[str]:
        texts = []
        for i in sorted(columns):
            term = atom.terms[i]
            if isinstance(term, Const):
                type_ = layout.relation.columns[i].type
                texts.append(constant_text(constant(term.value, type_)))
            else:
                assert isinstance(term, Var)
                texts.append(self.where[term.name])
        return texts

    def _by_key(self, atom: Atom, layout: Layout) -> str:
        first, *rest = (self._terms(atom, layout, frozenset((i,)))[0] for i in layout.key)
        if layout.shape is Shape.KEYED:
            return f"{layout.rows}.get({first})"
        return f"{layout.rows}.get({first}, EMPTY).get({key_text(rest)})"

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
        key = key_text(self._terms(atom, layout, known))
        return f"{self._catalog.index(atom.relation, columns)}.get({key}", known

    def _truth(self, bucket: str, known: frozenset[int]) -> str:
        """A test for any row in a bucket."""
        return f"{bucket})" if known else bucket

    def _iterable(self, atom: Atom, layout: Layout, bucket: str, covered: frozenset[int]) -> str:
        """What a loop over a bucket's rows iterates."""
        if not covered:
            if layout.shape is Shape.ROWS:
                copied = atom.relation in self._growing
                return f"list({layout.rows})" if copied else layout.rows
            return f"{layout.scan}()"
        nested = layout.shape is Shape.NESTED and covered == {layout.key[0]}
        values = ".values()" if nested else ""
        return f"{bucket}, EMPTY){values}"

    def exists(self, atom: Atom, row: str) -> str:
        """An expression that holds if some row matches a (negated) atom's bound terms.

        ``row`` is a name that it may use.
        """
        layout = self._layout(atom.relation)
        known = frozenset(i for i, term in enumerate(atom.terms) if self._usable(layout, i, term))
        if layout.shape is Shape.ROWS and len(known) == len(atom.terms):
            return f"({row_text(self._terms(atom, layout, known))} in {layout.rows})"
        if layout.key and known.issuperset(layout.key):
            covered = frozenset(layout.key)
            tests = self._row_tests(atom, layout, row, covered)
            found = f"({row} := {self._by_key(atom, layout)}) is not None"
            return f"({' and '.join((found, *tests))})"
        bucket, covered = self._bucket(atom, layout, known)
        tests = self._row_tests(atom, layout, row, covered)
        if not tests:
            return f"({self._truth(bucket, covered)})"
        rows = self._iterable(atom, layout, bucket, covered)
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
            if isinstance(term, Const) or (isinstance(term, Var) and term.name in self.where):
                tests.append(self.equal(text, type_, term))
            elif isinstance(term, Var):
                if term.name in local:
                    tests.append(identical(text, local[term.name], type_))
                local.setdefault(term.name, text)
        return tests
