"""The literals of a plan that are still to be placed.

Invariants: ``mentions`` counts, for each variable, the head's and the pending literals' uses of it;
a literal is *concerned* once when it is new and again whenever one of its variables is bound, so
that the planner looks at no literal twice without reason (long bodies would cost cubic time).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from reprise.datalog.clauses import BodyLiteral, body_variables
from reprise.datalog.variants import Purpose, Variant
from reprise.lang.core import Atom, variables


class Pending:
    """The body of a variant without its anchor, by body position.

    A ``DELETE`` variant leaves negated atoms out.
    """

    def __init__(self, variant: Variant) -> None:
        self.literals: dict[int, BodyLiteral] = {}
        self.mentions = Counter(variables(variant.clause.head))
        self._names: dict[int, tuple[str, ...]] = {}
        self._users: dict[str, list[int]] = defaultdict(list)
        self._concerned: dict[int, None] = {}
        deleting = variant.purpose is Purpose.DELETE
        for place, literal in enumerate(variant.clause.body):
            negated = isinstance(literal, Atom) and literal.negated
            if place != variant.position and not (negated and deleting):
                self.add(place, literal)

    def add(self, place: int, literal: BodyLiteral) -> None:
        """One more literal to place."""
        names = tuple(body_variables(literal))
        self.literals[place] = literal
        self.mentions.update(names)
        self._names[place] = names
        self._concerned[place] = None
        for name in dict.fromkeys(names):
            self._users[name].append(place)

    def take(self, place: int) -> None:
        """A literal has been placed."""
        del self.literals[place]
        self._concerned.pop(place, None)
        self.mentions.subtract(self._names[place])

    def bind(self, name: str) -> list[int]:
        """A variable has been bound; the places of the pending literals that mention it."""
        places = [place for place in self._users.get(name, ()) if place in self.literals]
        self._concerned.update(dict.fromkeys(places))
        return places

    def concerned(self) -> list[tuple[int, BodyLiteral]]:
        """The literals to look at again, in body order; they are not concerned any more."""
        places = sorted(self._concerned)
        self._concerned.clear()
        return [(place, self.literals[place]) for place in places]

    def concerns(self, place: int, names: Iterable[str]) -> int:
        """How many pending literals other than the one at ``place`` mention one of ``names``."""
        users = {user for name in names for user in self._users.get(name, ())}
        users.discard(place)
        return len(users & self.literals.keys())
