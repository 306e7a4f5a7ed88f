"""One commit's consequences, level by level: over-delete, re-derive, insert.

In come the base rows that appeared and disappeared, already stored or removed; out goes the same
for every derived relation and view. Each level runs *DRed* (Gupta, Mumick & Subrahmanian, SIGMOD
1993): mark every row that some lost row or some newly violated ``not`` helped to derive, in the
state before the commit; remove the marked rows; put back those that have another derivation; then
insert semi-naively. Most commits only add, and reach the last part directly.

Invariants: when a level starts, all levels below are final, and this level holds its state of
before the commit. When it ends, its stores hold exactly the consequences of the levels below.
Every physical change is on the log as ``(inverse, argument)`` before or as it happens, so running
the log backwards restores the state of before, also from the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reprise.datalog.clauses import Clause, Clauses
from reprise.datalog.growth import Growth, Mode
from reprise.datalog.runtime import Runtime
from reprise.datalog.schedule import Compiler, Handlers, Level, levels_of
from reprise.datalog.store import Store
from reprise.lang.core import Row

Delta = dict[str, list[Row]]
"""Rows by relation or view."""

LogEntry = tuple[Callable[[Any], None], Any]


class Evaluation:
    """The levels of a set of clauses, and how to bring them up to date.

    Built anew whenever clauses are added; holds no rows itself.
    """

    def __init__(self, clauses: Clauses, runtime: Runtime, log: list[LogEntry]) -> None:
        self._runtime = runtime
        self._log = log
        self._levels = levels_of(clauses)
        self._compiler = Compiler(clauses, runtime)
        self._checks: dict[str, Callable[[Row], bool]] = {}
        depth = {name: level.number for level in self._levels for name in level.relations}
        self._growth = Growth(clauses, depth)
        self._handlers: dict[Mode, list[tuple[Level, Handlers]]] = {}
        self._views = {
            level.number: [
                view for view in runtime.views.values() if view.spec.solutions in level.relations
            ]
            for level in self._levels
        }

    def run(self, plus: Delta, minus: Delta, mode: Mode, fresh: tuple[Clause, ...] = ()) -> None:
        """Bring all levels up to date, and add what changes in them to ``plus`` and ``minus``.

        ``fresh`` clauses have never run: they are evaluated on everything that is stored.
        """
        touched = self._runtime.touched
        doomed = self._runtime.doomed
        for level, handlers in self._schedule(mode):
            lost = [name for name in minus if name in level.reads] if minus else []
            if not lost:
                for name, run in handlers.deleting_negated.items():
                    rows = plus.get(name)
                    if rows:
                        run(rows)
            if lost or doomed:
                self._level_with_deletions(level, handlers, lost, plus, minus, fresh)
            else:
                for name, run in handlers.inserting.items():
                    rows = plus.get(name)
                    if rows:
                        run(rows)
                if fresh:
                    self._run_fresh(level, fresh)
                if touched:
                    self._settle(level, handlers, plus)
            if self._views[level.number]:
                self._update_views(level, plus, minus)

    def _schedule(self, mode: Mode) -> list[tuple[Level, Handlers]]:
        found = self._handlers.get(mode)
        if found is None:
            found = self._handlers[mode] = [
                (level, Handlers(self._compiler, level, mode, self._growth))
                for level in self._levels
            ]
        return found

    def _run_fresh(self, level: Level, fresh: tuple[Clause, ...]) -> None:
        for clause in fresh:
            if clause.head.relation in level.relations:
                self._compiler.full(clause, level)

    # --- insertion ---

    def _settle(self, level: Level, handlers: Handlers, plus: Delta) -> None:
        """Publish what the rules derived, and join it within the level until nothing is new."""
        runtime = self._runtime
        touched = runtime.touched
        log = self._log
        recursive = handlers.inserting
        copied: set[str] = set()
        while touched:
            found = []
            for store in touched:
                rows = store.new[:]
                store.new.clear()
                log.append((store.remove, rows))
                store.publish(rows)
                runtime.spend(store, len(rows))
                found.append((store.name, rows))
            touched.clear()
            for name, rows in found:
                known = plus.get(name)
                if known is None:
                    plus[name] = rows
                elif name in copied:
                    known.extend(rows)
                else:
                    # The first list is on the log, too, and must stay as it is.
                    plus[name] = [*known, *rows]
                    copied.add(name)
                run = recursive.get(name)
                if run is not None:
                    run(rows)

    # --- deletion ---

    def _level_with_deletions(
        self,
        level: Level,
        handlers: Handlers,
        lost: list[str],
        plus: Delta,
        minus: Delta,
        fresh: tuple[Clause, ...],
    ) -> None:
        """The whole of DRed. Without ``lost`` rows below, the marking has already begun."""
        self._rewind(lost, plus, minus)
        try:
            dead = self._mark(handlers, lost, plus, minus)
        finally:
            self._rewind(lost, minus, plus)
        self._bury(dead)
        inserted: Delta = {}
        self._rederive(dead, handlers, inserted)
        for name, run in handlers.inserting.items():
            rows = plus.get(name)
            if rows:
                run(rows)
        for name, run in handlers.inserting_negated.items():
            rows = minus.get(name)
            if rows:
                run(rows)
        self._run_fresh(level, fresh)
        self._settle(level, handlers, inserted)
        self._report(dead, inserted, plus, minus)

    def _rewind(self, names: list[str], out: Delta, back: Delta) -> None:
        """Exchange rows of lower relations, so that they are as before the commit, or after."""
        for name in names:
            holder = self._runtime.views.get(name) or self._runtime.stores[name]
            holder.remove(out.get(name, []))
            holder.insert(back.get(name, []))

    def _mark(self, handlers: Handlers, lost: list[str], plus: Delta, minus: Delta) -> list[Store]:
        """Mark what the changes below helped to derive, transitively within the level."""
        doomed = self._runtime.doomed
        for name in lost:
            run = handlers.deleting.get(name)
            if run is not None:
                run(minus[name])
        if lost:
            for name, run in handlers.deleting_negated.items():
                rows = plus.get(name)
                if rows:
                    run(rows)
        marked: dict[Store, None] = {}
        while doomed:
            store = doomed.pop()
            marked[store] = None
            rows = store.dying[:]
            store.dying.clear()
            again = handlers.deleting.get(store.name)
            if again is not None:
                again(rows)
        return list(marked)

    def _bury(self, stores: list[Store]) -> None:
        """Remove all marked rows."""
        for store in stores:
            rows = list(store.dead)
            store.remove(rows)
            self._log.append((store.insert, rows))

    def _rederive(self, dead: list[Store], handlers: Handlers, inserted: Delta) -> None:
        """Put back marked rows that still have a derivation, and join them within the level."""
        found = []
        for store in dead:
            check = self._check(store.name)
            rows = [row for row in store.dead if check(row)]
            if rows:
                store.insert(rows)
                self._log.append((store.remove, rows))
                inserted[store.name] = rows
                found.append((handlers.inserting.get(store.name), rows))
        for run, rows in found:
            if run is not None:
                run(rows)

    def _check(self, relation: str) -> Callable[[Row], bool]:
        found = self._checks.get(relation)
        if found is None:
            found = self._checks[relation] = self._compiler.check(relation)
        return found

    def _report(self, dead: list[Store], inserted: Delta, plus: Delta, minus: Delta) -> None:
        """Net changes of the level: rows that were removed and came back have not changed."""
        removed = {store.name: store.dead.copy() for store in dead}
        for store in dead:
            gone = [row for row in store.dead if row not in store.rows]
            if gone:
                minus[store.name] = gone
            store.dead.clear()
        for name, rows in inserted.items():
            before = removed.get(name)
            new = rows if before is None else [row for row in rows if row not in before]
            if new:
                plus[name] = new

    # --- aggregates ---

    def _update_views(self, level: Level, plus: Delta, minus: Delta) -> None:
        for view in self._views[level.number]:
            solutions = (plus.get(view.spec.solutions, []), minus.get(view.spec.solutions, []))
            if not solutions[0] and not solutions[1]:
                continue
            appeared, gone = view.change(*solutions)
            self._log.append((view.revert, solutions))
            if appeared:
                plus[view.name] = appeared
            if gone:
                minus[view.name] = gone
