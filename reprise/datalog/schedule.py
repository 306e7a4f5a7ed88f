"""What to run when a relation changes: compiled handlers, by level, for each commit mode.

A :class:`Handler` serves one relation at one level for one purpose; it dispatches each changed row
on the column in which most of its variants want a constant, so that a new ``node(7, softmax)``
runs the rules about softmax and no others. Invariant: handlers compile lazily, on the first row
that needs them, and calling one has the effect of all its variants on all the rows.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reprise.datalog.accumulate import View
from reprise.datalog.blueprint import Blueprint, Function, FunctionKey, Level, Place, Task
from reprise.datalog.clauses import Clause
from reprise.datalog.codecache import compiled
from reprise.datalog.emit import function_source
from reprise.datalog.facts import Delta
from reprise.datalog.plan import plan
from reprise.datalog.runtime import Runtime
from reprise.datalog.store import Store
from reprise.datalog.variants import Catalog, Dispatch, Growing, Purpose, Step, Variant
from reprise.lang.core import Atom, Row, Value

Run = Callable[[Iterable[Row]], object]


class Handler:
    """What to do with changed rows of one relation; ``run`` replaces itself once compiled.

    ``live``: ``run`` may be given a list that grows while it runs, and handles all of it.
    ``compile`` compiles everything now that ``run`` would compile when needed. ``guards``, if not
    None, are primaries of which each variant joins with one: while all are empty, ``run`` finds
    nothing.
    """

    __slots__ = ("compile", "guards", "live", "run")

    def __init__(self, run: Run, compile: Callable[[], None], live: bool) -> None:
        self.run = run
        self.compile = compile
        self.live = live
        self.guards: tuple[dict[Any, Any], ...] | None = None

    def is_idle(self) -> bool:
        """Whether running it would change nothing, whatever the rows."""
        return self.guards is not None and not any(self.guards)


class Stage:
    """One level in one mode: its handlers, by the relation whose rows they take.

    ``inserting`` and ``inserting_negated`` add head rows, given rows that appeared in a lower
    relation or disappeared from a negated one; ``recursive`` does so for the level's own
    relations. ``deleting`` and ``deleting_negated`` mark head rows, given rows that disappeared
    from a relation or appeared in a negated one.
    """

    def __init__(self, compiler: Compiler, level: Level, tasks: Iterable[Task]) -> None:
        self.level = level
        self.linear = level.linear
        groups: dict[tuple[Purpose, bool], list[tuple[str, Handler]]] = {}
        for task in tasks:
            group = groups.setdefault((task.purpose, task.negated), [])
            handler = compiler.handler(level, task)
            handler.guards = compiler.guards(task)
            group.append((task.relation, handler))
        inserting = groups.get((Purpose.INSERT, False), [])
        self.inserting = {name: run for name, run in inserting if name not in level.relations}
        self.recursive = {name: run for name, run in inserting if name in level.relations}
        self.views = compiler.views(level)
        self.recursive_stores = [
            (compiler.store(name), run) for name, run in self.recursive.items()
        ]
        self.inserting_negated = groups.get((Purpose.INSERT, True), [])
        self.deleting = dict(groups.get((Purpose.DELETE, False), []))
        self.deleting_negated = groups.get((Purpose.DELETE, True), [])

    def inserting_now(self, plus: Delta) -> list[tuple[Handler, list[Row]]]:
        """What to run for rows that appeared in lower relations, and on which rows.

        Of a stage with many rules, most read relations in which nothing appeared.
        """
        found = []
        inserting = self.inserting
        for name in plus if len(plus) < len(inserting) else inserting:
            if name in inserting and name in plus:
                handler = inserting[name]
                if handler.guards is None or any(handler.guards):
                    found.append((handler, plus[name]))
        return found

    def handlers(self) -> Iterator[Handler]:
        """All handlers of the stage."""
        yield from self.inserting.values()
        for _, handler in (*self.inserting_negated, *self.deleting_negated):
            yield handler
        yield from self.recursive.values()
        yield from self.deleting.values()


class Compiler:
    """Makes handlers and checks out of variants, through the planner and the emitter.

    What the blueprint has kept of earlier runs is used as it is; what is compiled is added to it.
    """

    def __init__(self, blueprint: Blueprint, runtime: Runtime) -> None:
        self._runtime = runtime
        self._blueprint = blueprint
        self._catalog = Catalog(runtime.layouts, blueprint.views, self._size, self._index)
        self._wanted: dict[tuple[str, tuple[int, ...]], None] = {}
        self._names = {function.name for function in blueprint.functions.values()}
        # Modes often need the same variants, and so the same text.
        self._made: dict[str, tuple[Function, Callable[..., object]]] = {}

    def store(self, relation: str) -> Store:
        """Where the rows of ``relation`` are."""
        return self._runtime.stores[relation]

    def views(self, level: Level) -> list[View]:
        """The aggregates over relations of ``level``."""
        views = self._runtime.views.values()
        return [view for view in views if view.spec.solutions in level.relations]

    def guards(self, task: Task) -> tuple[dict[Any, Any], ...] | None:
        """The rows of a task's guards."""
        if task.guards is None:
            return None
        return tuple([self._runtime.stores[name].rows for name in task.guards])

    def _size(self, relation: str) -> int:
        return self._runtime.stores[relation].size()

    def _index(self, relation: str, columns: tuple[int, ...]) -> str:
        self._wanted[relation, columns] = None
        return self._runtime.index_name(relation, columns)

    def handler(self, level: Level, task: Task) -> Handler:
        """A handler of changed rows; what it runs is compiled when needed."""
        stem = f"{task.purpose.value}_{level.number}_{self._runtime.layouts[task.relation].name}"
        if task.column is None:
            return self._over_rows(stem, task, level)
        dispatching = self._dispatching(stem, task.column, task, level)
        if not task.everywhere:
            return dispatching
        first = self._over_rows(stem, task, level)

        def run(rows: Iterable[Row]) -> None:
            first.run(rows)
            dispatching.run(rows)

        def compile() -> None:
            first.compile()
            dispatching.compile()

        return Handler(run, compile, live=False)

    def _over_rows(self, stem: str, task: Task, level: Level) -> Handler:
        def plans() -> list[tuple[Step, ...]]:
            return self._plans(task.purpose, task.everywhere, level.growing)

        def compile() -> None:
            handler.run = self._function((stem, task.everywhere), stem, plans, over_rows=True)

        def first_use(rows: Iterable[Row]) -> None:
            compile()
            handler.run(rows)

        handler = Handler(first_use, compile, live=True)
        return handler

    def _dispatching(self, stem: str, column: int, task: Task, level: Level) -> Handler:
        functions: dict[Value, Callable[[Row], object]] = {}

        def compile_one(value: Value) -> None:
            def plans() -> list[tuple[Step, ...]]:
                return self._plans(task.purpose, places, level.growing, Dispatch(column, value))

            places = task.table[value]
            key = (stem, places, column, value)
            functions[value] = self._function(key, f"{stem}_{_label(value)}", plans)

        def first_use(value: Value) -> Callable[[Row], object]:
            def run(row: Row) -> None:
                compile_one(value)
                functions[value](row)

            return run

        functions.update((value, first_use(value)) for value in task.table)
        find = functions.get

        def run(rows: Iterable[Row]) -> None:
            for row in rows:
                function = find(row[column])
                if function is not None:
                    function(row)

        def compile() -> None:
            for value in task.table:
                compile_one(value)

        return Handler(run, compile, live=True)

    def _plans(
        self,
        purpose: Purpose,
        places: tuple[Place, ...],
        growing: Growing,
        dispatch: Dispatch | None = None,
    ) -> list[tuple[Step, ...]]:
        clauses = self._blueprint.clauses.clauses
        return [
            plan(Variant(clauses[number], position, purpose), self._catalog, growing, dispatch)
            for number, position in places
        ]

    def _function(
        self,
        key: FunctionKey,
        stem: str,
        plans: Callable[[], list[tuple[Step, ...]]],
        over_rows: bool = False,
    ) -> Callable[..., object]:
        """The function that carries out some plans: as kept under ``key``, or compiled now."""
        key = (*key, self._runtime.scale())
        kept = self._blueprint.functions.get(key)
        if kept is not None:
            for relation, columns in kept.indexes:
                self._runtime.index_name(relation, columns)
            return self._runtime.function(kept.name, kept.source, marshal.loads(kept.code))
        self._wanted.clear()
        text = function_source(stem, plans(), self._runtime.timed, over_rows)
        made = self._made.get(text)
        if made is None:
            made = self._made[text] = self._compile(stem, text)
        self._blueprint.functions[key] = made[0]
        return made[1]

    def _compile(self, stem: str, text: str) -> tuple[Function, Callable[..., object]]:
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        source = text.replace(f"def {stem}(", f"def {name}(", 1)
        code = compiled(source, name)
        function = Function(name, source, marshal.dumps(code), tuple(self._wanted))
        return function, self._runtime.function(name, source, code)

    def check(self, relation: str) -> Callable[[Row], bool]:
        """A function that says whether some clause derives a row of ``relation``."""

        def plans() -> list[tuple[Step, ...]]:
            return [
                plan(Variant(clause, None, Purpose.CHECK), self._catalog, Growing())
                for clause in self._blueprint.clauses.clauses
                if clause.head.relation == relation
            ]

        stem = f"check_{self._runtime.layouts[relation].name}"
        function = self._function((stem,), stem, plans)
        return lambda row: function(row) is True

    def loader(self, name: str, source: str) -> Callable[..., Any]:
        """The function called ``name`` that ``source`` defines: stores rows of one relation."""
        kept = self._blueprint.functions.get((name, source))
        if kept is None:
            code = compiled(source, name)
            kept = Function(name, source, marshal.dumps(code), ())
            self._blueprint.functions[name, source] = kept
        return self._runtime.function(name, source, marshal.loads(kept.code))

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
        stem = f"full_{self._runtime.layouts[clause.head.relation].name}"
        text = function_source(stem, [steps], self._runtime.timed, over_rows=True)
        self._compile(stem, text)[1](list(stores[start]))


def _label(value: Value) -> str:
    text = "".join(c if c.isalnum() else "_" for c in str(value))
    return text or "_"
