"""What to run when a relation changes: compiled handlers, by level, for each commit mode.

Relations are grouped into *levels*: all strata that depend on earlier levels only. A
:class:`Handler` serves one relation at one level for one purpose; it dispatches each changed row
on the column in which most of its variants want a constant, so that a new ``node(7, softmax)``
runs the rules about softmax and no others. Invariant: handlers compile lazily, on the first row
that needs them, and calling one has the effect of all its variants on all the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from reprise.datalog.accumulate import View
from reprise.datalog.clauses import Clause, Clauses, Lookup
from reprise.datalog.emit import function_source
from reprise.datalog.growth import Growth, Mode
from reprise.datalog.layout import Layout
from reprise.datalog.plan import plan
from reprise.datalog.runtime import Runtime
from reprise.datalog.store import Store
from reprise.datalog.values import constant
from reprise.datalog.variants import Catalog, Dispatch, Growing, Purpose, Step, Variant
from reprise.lang.core import Atom, Const, Expr, Member, Row, Value
from reprise.lang.stratify import components

Run = Callable[[Iterable[Row]], object]
_DISPATCH_FROM = 3
"""Fewer variants with a constant than this are cheaper to test one by one than to look up."""


@dataclass
class Level:
    """Relations that are computed together, their clauses, and what the clauses read."""

    number: int
    relations: frozenset[str]
    clauses: list[Clause] = field(default_factory=list)
    reads: frozenset[str] = frozenset()

    @property
    def growing(self) -> Growing:
        """What changes while the level is evaluated."""
        return Growing(self.relations, self.relations & self.reads)


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
    members = [frozenset(n for n, d in depth.items() if d == i) for i in range(count)]
    levels = [Level(i, names) for i, names in enumerate(members)]
    for clause in clauses.clauses:
        levels[depth[clause.head.relation]].clauses.append(clause)
    for level in levels:
        level.reads = frozenset(name for clause in level.clauses for name, _ in clause.reads())
    return levels


class Handler:
    """What to do with changed rows of one relation; ``run`` replaces itself once compiled.

    ``live``: ``run`` may be given a list that grows while it runs, and handles all of it.
    ``compile`` compiles everything now that ``run`` would compile when needed.
    """

    __slots__ = ("compile", "live", "run")

    def __init__(self, run: Run, compile: Callable[[], None], live: bool) -> None:
        self.run = run
        self.compile = compile
        self.live = live


class Stage:
    """One level in one mode: its handlers, by the relation whose rows they take.

    ``inserting`` and ``inserting_negated`` add head rows, given rows that appeared in a lower
    relation or disappeared from a negated one; ``recursive`` does so for the level's own
    relations. ``deleting`` and ``deleting_negated`` mark head rows, given rows that disappeared
    from a relation or appeared in a negated one. ``linear``: no clause reads two relations of the
    level, so what one round derives never joins with what another does.
    """

    def __init__(self, compiler: Compiler, level: Level, mode: Mode, growth: Growth) -> None:
        self.level = level
        self.linear = all(
            sum(name in level.relations for name, complete in clause.reads() if not complete) <= 1
            for clause in level.clauses
        )
        variants = _variants(level, mode, growth)
        groups = {
            key: [(name, compiler.handler(level, name, own)) for name, own in sorted(found.items())]
            for key, found in variants.items()
        }
        inserting = groups.get((Purpose.INSERT, False), [])
        self.inserting = [item for item in inserting if item[0] not in level.relations]
        self.recursive = {name: run for name, run in inserting if name in level.relations}
        self.views = compiler.views(level)
        self.recursive_stores = [
            (compiler.store(name), run) for name, run in self.recursive.items()
        ]
        self.inserting_negated = groups.get((Purpose.INSERT, True), [])
        self.deleting = dict(groups.get((Purpose.DELETE, False), []))
        self.deleting_negated = groups.get((Purpose.DELETE, True), [])

    def handlers(self) -> Iterator[Handler]:
        """All handlers of the stage."""
        for _, handler in (*self.inserting, *self.inserting_negated, *self.deleting_negated):
            yield handler
        yield from self.recursive.values()
        yield from self.deleting.values()


def _variants(
    level: Level, mode: Mode, growth: Growth
) -> dict[tuple[Purpose, bool], dict[str, list[Variant]]]:
    """The variants that a level needs: by purpose, whether negated, and relation."""
    variants: dict[tuple[Purpose, bool], dict[str, list[Variant]]] = {}
    for clause in level.clauses:
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
                group = variants.setdefault((purpose, negated), {})
                group.setdefault(name, []).append(Variant(clause, position, purpose))
    return variants


class Compiler:
    """Makes handlers and checks out of variants, through the planner and the emitter."""

    def __init__(self, clauses: Clauses, runtime: Runtime) -> None:
        self._runtime = runtime
        self._clauses = clauses
        self._catalog = Catalog(runtime.layouts, clauses.views, self._size, runtime.index_name)
        self._serial: Counter[str] = Counter()
        # Modes often need the same variants, and so the same text.
        self._functions: dict[str, Callable[..., object]] = {}

    def store(self, relation: str) -> Store:
        """Where the rows of ``relation`` are."""
        return self._runtime.stores[relation]

    def views(self, level: Level) -> list[View]:
        """The aggregates over relations of ``level``."""
        views = self._runtime.views.values()
        return [view for view in views if view.spec.solutions in level.relations]

    def _size(self, relation: str) -> int:
        return len(self._runtime.stores[relation])

    def handler(self, level: Level, relation: str, variants: list[Variant]) -> Handler:
        """A handler of changed rows of ``relation``; what it runs is compiled when needed."""
        layout = self._runtime.layouts[relation]
        column = _dispatch_column(layout, variants)
        everywhere: list[Variant] = []
        table: dict[Value, list[Variant]] = {}
        for variant in variants:
            values = None if column is None else _dispatch_values(variant, column, layout)
            if values is None:
                everywhere.append(variant)
            for value in values or ():
                table.setdefault(value, []).append(variant)
        purpose = variants[0].purpose
        stem = f"{purpose.value}_{level.number}_{layout.name}"
        if column is None:
            return self._over_rows(stem, everywhere, level)
        dispatching = self._dispatching(stem, column, table, level)
        if not everywhere:
            return dispatching
        first = self._over_rows(stem, everywhere, level)

        def run(rows: Iterable[Row]) -> None:
            first.run(rows)
            dispatching.run(rows)

        def compile() -> None:
            first.compile()
            dispatching.compile()

        return Handler(run, compile, live=False)

    def _over_rows(self, stem: str, variants: list[Variant], level: Level) -> Handler:
        def compile() -> None:
            plans = [plan(variant, self._catalog, level.growing) for variant in variants]
            handler.run = self._compile(stem, plans, over_rows=True)

        def first_use(rows: Iterable[Row]) -> None:
            compile()
            handler.run(rows)

        handler = Handler(first_use, compile, live=True)
        return handler

    def _dispatching(
        self, stem: str, column: int, table: dict[Value, list[Variant]], level: Level
    ) -> Handler:
        functions: dict[Value, Callable[[Row], object]] = {}

        def compile_one(value: Value) -> None:
            dispatch = Dispatch(column, value)
            plans = [
                plan(variant, self._catalog, level.growing, dispatch) for variant in table[value]
            ]
            functions[value] = self._compile(f"{stem}_{_label(value)}", plans)

        def first_use(value: Value) -> Callable[[Row], object]:
            def run(row: Row) -> None:
                compile_one(value)
                functions[value](row)

            return run

        functions.update((value, first_use(value)) for value in table)
        find = functions.get

        def run(rows: Iterable[Row]) -> None:
            for row in rows:
                function = find(row[column])
                if function is not None:
                    function(row)

        def compile() -> None:
            for value in table:
                compile_one(value)

        return Handler(run, compile, live=True)

    def _compile(
        self, stem: str, plans: list[tuple[Step, ...]], over_rows: bool = False
    ) -> Callable[..., object]:
        text = function_source(stem, plans, self._runtime.timed, over_rows)
        function = self._functions.get(text)
        if function is None:
            self._serial[stem] += 1
            number = self._serial[stem]
            name = stem if number == 1 else f"{stem}_{number}"
            source = text.replace(f"def {stem}(", f"def {name}(", 1)
            function = self._functions[text] = self._runtime.function(name, source)
        return function

    def check(self, relation: str) -> Callable[[Row], bool]:
        """A function that says whether some clause derives a row of ``relation``."""
        variants = [
            Variant(clause, None, Purpose.CHECK)
            for clause in self._clauses.clauses
            if clause.head.relation == relation
        ]
        plans = [plan(variant, self._catalog, Growing()) for variant in variants]
        function = self._compile(f"check_{self._runtime.layouts[relation].name}", plans)
        return lambda row: function(row) is True

    def full(self, clause: Clause, level: Level) -> None:
        """Run ``clause`` over everything that is stored: what a new rule is owed."""
        stores = {
            i: self._runtime.stores[literal.relation]
            for i, literal in enumerate(clause.body)
            if isinstance(literal, Atom) and not literal.negated
        }
        if any(not len(store) for store in stores.values()):
            return
        start = min(stores, key=lambda i: (len(stores[i]), i))
        steps = plan(Variant(clause, start, Purpose.INSERT), self._catalog, level.growing)
        name = f"full_{self._runtime.layouts[clause.head.relation].name}"
        self._compile(name, [steps], over_rows=True)(list(stores[start]))


def _anchor_terms(variant: Variant) -> tuple[Expr, ...]:
    assert variant.position is not None
    literal = variant.clause.body[variant.position]
    return literal.terms if isinstance(literal, Atom) else ()


def _dispatch_column(layout: Layout, variants: list[Variant]) -> int | None:
    """The column in which most variants want constants, if it is worth a table."""
    columns = [i for i in range(layout.relation.arity) if layout.dispatchable(i)]
    if len(variants) < _DISPATCH_FROM or not columns:
        return None
    wanted = {
        column: sum(_dispatch_values(variant, column, layout) is not None for variant in variants)
        for column in columns
    }
    best = max(columns, key=lambda column: (wanted[column], -column))
    return best if wanted[best] >= _DISPATCH_FROM else None


def _dispatch_values(variant: Variant, column: int, layout: Layout) -> list[Value] | None:
    """The values of ``column`` to which the variant is restricted, ``None`` if to none."""
    terms = _anchor_terms(variant)
    if column >= len(terms):
        return None
    term = terms[column]
    type_ = layout.relation.columns[column].type
    if isinstance(term, Const):
        return [constant(term.value, type_)]
    for literal in variant.clause.body:
        if isinstance(literal, Member) and literal.expr == term and not literal.negated:
            return list(dict.fromkeys(literal.values))
    return None


def _label(value: Value) -> str:
    text = "".join(c if c.isalnum() else "_" for c in str(value))
    return text or "_"
