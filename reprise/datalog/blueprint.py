"""What follows from a program before any fact is seen: its levels, and what each commit mode runs.

In come clauses; out go relations and views, *levels* (all strata that depend on earlier levels
only), and for each :class:`~reprise.datalog.growth.Mode` the :class:`Task` of every relation whose
changes a level has to join. All of it is plain data, and so is the code that was compiled for it
(:attr:`Blueprint.functions`): :mod:`reprise.datalog.kept` stores it between runs. Clauses are then
made only if something that was not compiled before is needed.
Invariant: a blueprint depends on its clauses alone, never on facts; clauses are named by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reprise.datalog.clauses import AggregateView, Clause, Clauses, Lookup
from reprise.datalog.growth import Growth, Mode
from reprise.datalog.layout import dispatchable
from reprise.datalog.values import constant
from reprise.datalog.variants import Growing, Purpose
from reprise.lang.core import Atom, Column, Const, Member, Relation, Value
from reprise.lang.stratify import components

Place = tuple[int, int]
"""A clause's number, and a position in its body."""

FunctionKey = tuple[Any, ...]
"""What a generated function is for: its name's stem, and all that its text depends on."""

_DISPATCH_FROM = 3
"""Fewer variants with a constant than this are cheaper to test one by one than to look up."""


@dataclass(frozen=True, slots=True)
class Level:
    """Relations that are computed together, the numbers of their clauses, and what these read.

    ``linear``: no clause reads two relations of the level, so what one round derives never joins
    with what another does.
    """

    number: int
    relations: frozenset[str]
    clauses: tuple[int, ...]
    reads: frozenset[str]
    linear: bool

    @property
    def growing(self) -> Growing:
        """What changes while the level is evaluated."""
        return Growing(self.relations, self.relations & self.reads)


@dataclass(frozen=True, slots=True)
class Task:
    """The variants that changed rows of ``relation`` need in a level, for one purpose.

    ``negated``: the literals are negated ones. Variants in ``table`` want one of its values in
    ``column``; those ``everywhere`` concern any row. ``guards`` are derived relations of which each
    variant joins with one, None if some variant joins with none: while they are empty, there is
    nothing to find.
    """

    purpose: Purpose
    negated: bool
    relation: str
    column: int | None
    everywhere: tuple[Place, ...]
    table: Mapping[Value, tuple[Place, ...]]
    guards: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Function:
    """A generated function as it is kept: its name and text, its code, and the indexes that it
    uses, by relation and columns."""

    name: str
    source: str
    code: bytes
    indexes: tuple[tuple[str, tuple[int, ...]], ...]


class Blueprint:
    """The levels and tasks of some clauses, and functions that were compiled for them.

    ``clauses`` are given, or made when first needed.
    """

    def __init__(self, clauses: Clauses) -> None:
        self._clauses: Clauses | None = clauses
        self._make: Callable[[], Clauses] = lambda: clauses
        self.relations: Mapping[str, Relation] = clauses.relations
        self.views: Mapping[str, AggregateView] = clauses.views
        self.derived = clauses.derived()
        self.levels = tuple(levels_of(clauses))
        self._tasks: dict[Mode, tuple[tuple[Task, ...], ...]] = {}
        self._growth: Growth | None = None
        self.functions: dict[FunctionKey, Function] = {}

    @property
    def clauses(self) -> Clauses:
        """The clauses themselves."""
        if self._clauses is None:
            self._clauses = self._make()
        return self._clauses

    def tasks(self, mode: Mode) -> tuple[tuple[Task, ...], ...]:
        """What commits of this mode have to run, level by level."""
        found = self._tasks.get(mode)
        if found is None:
            if self._growth is None:
                depth = {name: level.number for level in self.levels for name in level.relations}
                self._growth = Growth(self.clauses, depth)
            found = tuple(
                tuple(_level_tasks(self.clauses, level, mode, self._growth))
                for level in self.levels
            )
            self._tasks[mode] = found
        return found

    # --- as plain data ---

    def extent(self) -> int:
        """How much has been worked out so far; it only grows."""
        return len(self._tasks) + len(self.functions)

    def data(self) -> Any:
        """All of it but the clauses, as tuples, dictionaries, strings and numbers."""
        hidden = [_relation_data(r) for r in self.relations.values() if "$" in r.name]
        views = [
            (v.name, v.kind, v.solutions, v.group, _relation_data(v.relation), v.default)
            for v in self.views.values()
        ]
        levels = [
            (level.number, tuple(level.relations), level.clauses, tuple(level.reads), level.linear)
            for level in self.levels
        ]
        tasks = {
            int(mode): tuple(tuple(map(_task_data, tasks)) for tasks in found)
            for mode, found in self._tasks.items()
        }
        functions = {
            key: (f.name, f.source, f.code, f.indexes) for key, f in self.functions.items()
        }
        return (hidden, views, tuple(self.derived), levels, tasks, functions)

    @classmethod
    def of_data(
        cls, data: Any, relations: Mapping[str, Relation], make: Callable[[], Clauses]
    ) -> Blueprint:
        """The blueprint that :meth:`data` describes, of a program with these ``relations``."""
        hidden, views, derived, levels, tasks, functions = data
        self = cls.__new__(cls)
        self._clauses = None
        self._make = make
        declared = {**Clauses().relations, **relations}
        self.relations = declared | {name: _relation(name, cs) for name, cs in hidden}
        self.views = {
            name: AggregateView(name, kind, solutions, group, _relation(*relation), default)
            for name, kind, solutions, group, relation, default in views
        }
        self.derived = frozenset(derived)
        self.levels = tuple(
            Level(number, frozenset(names), clauses, frozenset(reads), linear)
            for number, names, clauses, reads, linear in levels
        )
        self._tasks = {
            Mode(mode): tuple(
                tuple(Task(Purpose(purpose), *rest) for purpose, *rest in tasks) for tasks in found
            )
            for mode, found in tasks.items()
        }
        self._growth = None
        self.functions = {key: Function(*found) for key, found in functions.items()}
        return self


def _relation_data(relation: Relation) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A hidden relation; those have no keys and promise nothing."""
    return relation.name, tuple((column.name, column.type) for column in relation.columns)


def _relation(name: str, columns: tuple[tuple[str, str], ...]) -> Relation:
    return Relation(name, tuple(Column(*column) for column in columns))


def _task_data(task: Task) -> tuple[Any, ...]:
    return (
        task.purpose.value,
        task.negated,
        task.relation,
        task.column,
        task.everywhere,
        dict(task.table),
        task.guards,
    )


# --- levels ---


def levels_of(clauses: Clauses) -> list[Level]:
    """The derived relations in levels: each depends on itself and on smaller numbers only."""
    derived = clauses.derived()
    reads: dict[str, set[str]] = {name: set() for name in derived}
    for clause in clauses.clauses:
        for name, _ in clause.reads():
            view = clauses.views.get(name)
            reads[clause.head.relation].add(name if view is None else view.solutions)
    graph = {name: sorted(reads[name] & derived) for name in sorted(derived)}
    depth: dict[str, int] = {}
    for component in components(graph):
        below = {depth[name] for head in component for name in graph[head] if name in depth}
        for head in component:
            depth[head] = max(below, default=-1) + 1
    count = max(depth.values(), default=-1) + 1
    members: list[set[str]] = [set() for _ in range(count)]
    for name, number in depth.items():
        members[number].add(name)
    own: list[list[int]] = [[] for _ in members]
    for number, clause in enumerate(clauses.clauses):
        own[depth[clause.head.relation]].append(number)
    return [
        _level(i, frozenset(names), tuple(numbers), clauses)
        for i, (names, numbers) in enumerate(zip(members, own, strict=True))
    ]


def _level(number: int, names: frozenset[str], own: tuple[int, ...], clauses: Clauses) -> Level:
    found = [tuple(clauses.clauses[i].reads()) for i in own]
    linear = all(
        sum(name in names for name, complete in reads if not complete) <= 1 for reads in found
    )
    return Level(number, names, own, frozenset(n for reads in found for n, _ in reads), linear)


# --- tasks ---


def _level_tasks(clauses: Clauses, level: Level, mode: Mode, growth: Growth) -> list[Task]:
    """The variants that a level needs: by purpose, whether negated, and relation."""
    groups: dict[tuple[str, bool, str], list[Place]] = {}
    derived = clauses.derived()
    for number in level.clauses:
        clause = clauses.clauses[number]
        needs = growth.needs(clause, mode)
        for purpose, positions in (
            (Purpose.INSERT, needs.insertions),
            (Purpose.DELETE, needs.deletions),
        ):
            for position in positions:
                literal = clause.body[position]
                assert isinstance(literal, Atom | Lookup)
                negated = isinstance(literal, Atom) and literal.negated
                name = literal.view if isinstance(literal, Lookup) else literal.relation
                groups.setdefault((purpose.value, negated, name), []).append((number, position))
    return [
        _task(clauses, derived, Purpose(purpose), negated, name, groups[purpose, negated, name])
        for purpose, negated, name in sorted(groups)
    ]


def _task(
    clauses: Clauses,
    derived: frozenset[str],
    purpose: Purpose,
    negated: bool,
    name: str,
    places: list[Place],
) -> Task:
    relation = clauses.schema(name)
    wanted: dict[int, list[list[Value] | None]] = {
        column: [
            _dispatch_values(clauses.clauses[number], position, column, relation)
            for number, position in places
        ]
        for column in range(relation.arity)
        if len(places) >= _DISPATCH_FROM and dispatchable(relation, column)
    }
    counts = {column: sum(v is not None for v in values) for column, values in wanted.items()}
    best = max(counts, key=lambda column: (counts[column], -column), default=None)
    guards = _guards(clauses, derived, places)
    if best is None or counts[best] < _DISPATCH_FROM:
        return Task(purpose, negated, name, None, tuple(places), {}, guards)
    everywhere = []
    table: dict[Value, list[Place]] = {}
    for place, values in zip(places, wanted[best], strict=True):
        if values is None:
            everywhere.append(place)
        for value in values or ():
            table.setdefault(value, []).append(place)
    found = {value: tuple(places) for value, places in table.items()}
    return Task(purpose, negated, name, best, tuple(everywhere), found, guards)


def _guards(
    clauses: Clauses, derived: frozenset[str], places: list[Place]
) -> tuple[str, ...] | None:
    """For each variant, a derived relation that it joins with; None if one joins with none."""
    found: dict[str, None] = {}
    for number, position in places:
        names = (
            literal.relation
            for i, literal in enumerate(clauses.clauses[number].body)
            if isinstance(literal, Atom) and not literal.negated and i != position
        )
        guard = next((name for name in names if name in derived), None)
        if guard is None:
            return None
        found[guard] = None
    return tuple(found)


def _dispatch_values(
    clause: Clause, position: int, column: int, relation: Relation
) -> list[Value] | None:
    """The values of ``column`` to which a variant is restricted, ``None`` if to none."""
    literal = clause.body[position]
    terms = literal.terms if isinstance(literal, Atom) else ()
    if column >= len(terms):
        return None
    term = terms[column]
    if isinstance(term, Const):
        return [constant(term.value, relation.columns[column].type)]
    for other in clause.body:
        if isinstance(other, Member) and other.expr == term and not other.negated:
            return list(dict.fromkeys(other.values))
    return None
