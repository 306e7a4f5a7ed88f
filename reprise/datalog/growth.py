"""Which delta variants a clause needs, given how the facts of a commit arrive.

Semi-naive evaluation runs a clause once per body literal whose relation changed. Most of those
variants are dead when a graph only *grows*: facts about an entity arrive together, in the commit
that creates it, and refer to older entities only. This module proves, clause by clause, which
variants may be left out in which :class:`Mode`; the database establishes the mode of each commit
from the rows themselves, so a wrong guess costs time and never a match.

**What a commit establishes.** Let *low* be the largest entity id that any ``@entity`` row held
before the commit (in its owner, ``older`` or ``same`` columns), and call larger ids *new*.

- GROWTH: nothing is deleted; every new ``@entity`` row has a new owner, new values in ``same``
  columns, and old (not new) values in ``older`` columns.
- BATCH: the same, but an ``older`` value may be new, if it is smaller than its owner.
- EDIT: anything else.

Outside EDIT, a stored row and its owner are hence new together, and so are the owner and its
``same`` values; and if an ``older`` value is new, so is the owner.

**Classes.** In a clause, ``same`` makes variables one class and ``older`` orders classes. By the
above, "is new" is one property of a class and passes upward; so a match that involves any new
entity involves a new *maximal* class, whose entity atoms are all new rows. Since every lower
relation is complete when the clause runs, one variant per maximal class, anchored at any one of
its atoms, finds the match.

**Settled columns.** A derived relation is *settled* at column c if outside EDIT every new row has
a new entity in c. That holds if in each of its clauses the head variable at c belongs to the only
maximal class, and every other body literal is itself timely: an entity atom, a settled atom whose
settled variable has a class, or a negated atom or aggregate over such. (Induction on derivations:
a new derivation uses a new row, hence a new class, hence the maximal one.) Such atoms need no
variant: their rows arrive with an entity that an anchor already covers. The greatest fixed point
handles recursion; but within its own stratum a row may be derived *after* the anchor ran, so
there a settled atom keeps its variant, except in GROWTH for a variable below a maximal class:
that entity is old, and what is known of it does not change.

**Past columns.** A derived relation is *past* at column c if all its clauses put a variable there
that lies strictly below another class. In GROWTH such a row never mentions a new entity, so an
anchor whose class meets a past column cannot match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from reprise.datalog.clauses import BodyLiteral, Clause, Clauses, Lookup
from reprise.datalog.values import is_entity
from reprise.lang.core import Atom, Const, Expr, Member, Relation, Value, Var

_Member = str | Expr
"""A variable's name, or a constant."""


class Mode(IntEnum):
    """How a commit's facts arrive; see the module's text. A larger mode promises less."""

    GROWTH = 0
    BATCH = 1
    EDIT = 2


@dataclass(frozen=True, slots=True)
class Ownership:
    """Column numbers of an ``@entity`` base relation that carry its promises."""

    owner: int
    older: tuple[int, ...]
    same: tuple[int, ...]


def ownership(relation: Relation) -> Ownership | None:
    """Who owns the rows of ``relation``, or ``None`` if it promises nothing."""
    if not relation.entity:
        return None
    candidates = [i for i, column in enumerate(relation.columns) if is_entity(column.type)]
    keyed = [i for i in candidates if relation.columns[i].key]
    if not candidates:
        return None
    places = {column.name: i for i, column in enumerate(relation.columns)}
    return Ownership(
        (keyed or candidates)[0],
        tuple(places[name] for name in relation.older),
        tuple(places[name] for name in relation.same),
    )


@dataclass(frozen=True, slots=True)
class Needs:
    """Body positions of a clause that need a variant, for insertions and for deletions.

    A variant of a positive atom or a lookup is anchored at the rows that appeared (insertion) or
    disappeared (deletion); one of a negated atom the other way round.
    """

    insertions: tuple[int, ...]
    deletions: tuple[int, ...]


class Growth:
    """The analysis of a set of clauses: settled and past columns, and each clause's needs."""

    def __init__(self, clauses: Clauses, level: Mapping[str, int]) -> None:
        self._clauses = clauses
        self._level = level
        derived = clauses.derived()
        self._owned = {
            name: owned
            for name, relation in clauses.relations.items()
            if name not in derived and (owned := ownership(relation)) is not None
        }
        self._orders: dict[int, _Order] = {}
        self._constants = _constants(clauses)
        # Both are greatest fixed points: assume every column, drop those that fail, repeat.
        self._settled = _entity_columns(clauses)
        self._settled_now: dict[str, frozenset[int]] = {}
        while self._drop(self._settled, self._is_settled):
            self._orders.clear()
            self._settled_now.clear()
        self._past = _entity_columns(clauses)
        while self._drop(self._past, self._is_past):
            pass

    def _drop(
        self, columns: dict[str, set[int]], holds: Callable[[Clause, int, _Order], bool]
    ) -> bool:
        """Remove the columns at which some clause fails; say whether there were any."""
        dropped = False
        for clause in self._clauses.clauses:
            kept = columns[clause.head.relation]
            for column in sorted(kept):
                if not holds(clause, column, self._order(clause)):
                    kept.discard(column)
                    dropped = True
        return dropped

    def settled(self, name: str) -> frozenset[int]:
        """Columns at which every new row has a new entity, outside EDIT commits."""
        found = self._settled_now.get(name)
        if found is None:
            found = self._settled_now[name] = self._find_settled(name)
        return found

    def _find_settled(self, name: str) -> frozenset[int]:
        view = self._clauses.views.get(name)
        if view is not None:
            columns = self._settled.get(view.solutions, set())
            return frozenset(column for column in columns if column < view.group)
        owned = self._owned.get(name)
        if owned is not None:
            return frozenset((owned.owner, *owned.same))
        return frozenset(self._settled.get(name, ()))

    def needs(self, clause: Clause, mode: Mode) -> Needs:
        """The variants of ``clause`` that commits of this mode have to run."""
        everything = tuple(
            i for i, literal in enumerate(clause.body) if isinstance(literal, Atom | Lookup)
        )
        if mode is Mode.EDIT:
            return Needs(everything, everything)
        order = self._order(clause)
        anchors = self._anchors(clause, order, mode)
        insertions = []
        deletions = []
        for i in everything:
            literal = clause.body[i]
            timely = self._timely(literal, order)
            if i in anchors or not timely or self._late(clause, literal, order, mode):
                insertions.append(i)
            if not timely:
                deletions.append(i)
        return Needs(tuple(insertions), tuple(deletions))

    def _order(self, clause: Clause) -> _Order:
        found = self._orders.get(id(clause))
        if found is None:
            found = self._orders[id(clause)] = self._build_order(clause)
        return found

    def _build_order(self, clause: Clause) -> _Order:
        order = _Order()
        for literal in clause.body:
            if not isinstance(literal, Atom) or literal.negated:
                continue
            settled = sorted(self.settled(literal.relation))
            for column in settled:
                order.join(literal.terms[settled[0]], literal.terms[column])
            owned = self._owned.get(literal.relation)
            if owned is not None:
                for column in owned.older:
                    order.put_below(literal.terms[column], literal.terms[owned.owner])
        return order

    def _timely(self, literal: BodyLiteral, order: _Order) -> bool:
        """Whether the literal's rows change only together with an entity of a known class."""
        match literal:
            case Atom(name, terms):
                return any(order.knows(terms[column]) for column in self.settled(name))
            case Lookup(name, group):
                return any(order.knows(group[column]) for column in self.settled(name))
        return True

    def _late(self, clause: Clause, literal: BodyLiteral, order: _Order, mode: Mode) -> bool:
        """Whether a settled atom's row may be derived after the clause's anchors have run."""
        if not isinstance(literal, Atom) or literal.negated:
            return False
        level = self._level.get(literal.relation)
        if level is None or level != self._level[clause.head.relation]:
            return False
        if mode is Mode.BATCH:
            return True
        return any(order.is_top(literal.terms[c]) for c in self.settled(literal.relation))

    def _anchors(self, clause: Clause, order: _Order, mode: Mode) -> set[int]:
        """One body position for each maximal class that can be new."""
        anchors = set()
        for top in order.tops():
            if mode is Mode.GROWTH and self._meets_past(clause, order, top):
                continue
            candidates = [
                i
                for i, literal in enumerate(clause.body)
                if isinstance(literal, Atom)
                and not literal.negated
                and any(order.find(literal.terms[c]) == top for c in self.settled(literal.relation))
            ]
            anchors.add(max(candidates, key=lambda i: self._worth(clause, i)))
        return anchors

    def _worth(self, clause: Clause, position: int) -> tuple[int, ...]:
        """How selective an anchor an atom is.

        A constant in a column outside the key tells entities apart (``node(V, softmax)``), the
        better the more constants the program tells apart there; one in a key column only picks
        one of an entity's rows (``attr(V, axis, A)``).
        """
        atom = clause.body[position]
        assert isinstance(atom, Atom)
        telling = [
            len(self._constants[atom.relation, i])
            for i in _telling(self._clauses.relations[atom.relation])
            if _choices(clause, atom.terms[i])
        ]
        constants = sum(isinstance(term, Const) for term in atom.terms)
        return (max(telling, default=0), constants, atom.relation in self._owned, -position)

    def _meets_past(self, clause: Clause, order: _Order, top: _Member) -> bool:
        for literal in clause.body:
            if isinstance(literal, Atom) and not literal.negated:
                for column in self._past.get(literal.relation, ()):
                    term = literal.terms[column]
                    if order.knows(term) and order.find(term) == top:
                        return True
        return False

    def _is_settled(self, clause: Clause, column: int, order: _Order) -> bool:
        term = clause.head.terms[column]
        tops = order.tops()
        return (
            isinstance(term, Var)
            and order.knows(term)
            and tops == [order.find(term)]
            and all(self._timely(literal, order) for literal in clause.body)
        )

    def _is_past(self, clause: Clause, column: int, order: _Order) -> bool:
        term = clause.head.terms[column]
        if not isinstance(term, Var):
            return False
        if order.knows(term) and not order.is_top(term):
            return True
        return any(
            literal.terms[c] == term
            for literal in clause.body
            if isinstance(literal, Atom) and not literal.negated
            for c in self._past.get(literal.relation, ())
        )


class _Order:
    """The entity classes of one clause: a union-find over its terms, and "older than" between.

    A variable goes by its name: strings are cheaper to look up than terms.
    """

    def __init__(self) -> None:
        self._parent: dict[_Member, _Member] = {}
        self._above: list[tuple[_Member, _Member]] = []
        self._tops: list[_Member] | None = None

    def knows(self, term: Expr) -> bool:
        return (term.name if type(term) is Var else term) in self._parent

    def find(self, term: Expr) -> _Member:
        """The representative of the term's class; a new term is a class of its own."""
        return self._find(term.name if type(term) is Var else term)

    def _find(self, member: _Member) -> _Member:
        parents = self._parent
        parent = parents.setdefault(member, member)
        while parent is not member:
            member = parent
            parent = parents[member]
        return member

    def join(self, left: Expr, right: Expr) -> None:
        self._parent[self.find(left)] = self.find(right)

    def put_below(self, older: Expr, younger: Expr) -> None:
        self._above.append((self.find(older), self.find(younger)))

    def tops(self) -> list[_Member]:
        """The representatives of the maximal classes, once the order is complete."""
        if self._tops is None:
            low = {self._find(older) for older, _ in self._above}
            roots = dict.fromkeys(self._find(member) for member in list(self._parent))
            self._tops = [root for root in roots if root not in low]
        return self._tops

    def is_top(self, term: Expr) -> bool:
        return self.find(term) in self.tops()


def _choices(clause: Clause, term: Expr) -> tuple[Value, ...]:
    """The constants to which a clause restricts a term by itself or by ``in``."""
    if isinstance(term, Const):
        return (term.value,)
    for literal in clause.body:
        if isinstance(literal, Member) and literal.expr == term and not literal.negated:
            return literal.values
    return ()


def _telling(relation: Relation) -> list[int]:
    """Columns outside the key that hold symbols: constants there tell entities apart."""
    return [
        i for i, column in enumerate(relation.columns) if not column.key and column.type == "sym"
    ]


def _constants(clauses: Clauses) -> dict[tuple[str, int], set[Value]]:
    """By relation and telling column, the constants that positive atoms ask for."""
    telling = {name: _telling(relation) for name, relation in clauses.relations.items()}
    found: dict[tuple[str, int], set[Value]] = defaultdict(set)
    for clause in clauses.clauses:
        for literal in clause.body:
            if isinstance(literal, Atom) and not literal.negated:
                for i in telling[literal.relation]:
                    found[literal.relation, i].update(_choices(clause, literal.terms[i]))
    return found


def _entity_columns(clauses: Clauses) -> dict[str, set[int]]:
    """Every entity column of every derived relation: where both fixed points start."""
    return {
        name: {
            i for i, column in enumerate(clauses.relations[name].columns) if is_entity(column.type)
        }
        for name in clauses.derived()
    }
