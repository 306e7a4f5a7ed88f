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

from reprise.datalog.accumulate import View
from reprise.datalog.clauses import Clause, Clauses
from reprise.datalog.growth import Growth, Mode
from reprise.datalog.runtime import Runtime
from reprise.datalog.schedule import Compiler, Level, Stage, levels_of
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
        self._stages: list[list[Stage] | None] = [None] * len(Mode)
        self._views: dict[int, list[View]] = {}
        for view in runtime.views.values():
            if view.spec.solutions in depth:
                self._views.setdefault(depth[view.spec.solutions], []).append(view)

    def run(self, plus: Delta, minus: Delta, mode: int, fresh: tuple[Clause, ...] = ()) -> None:
        """Bring all levels up to date, and add what changes in them to ``plus`` and ``minus``.

        ``fresh`` clauses have never run: they are evaluated on everything that is stored.
        """
        touched = self._runtime.touched
        doomed = self._runtime.doomed
        for stage in self._stages[mode] or self._plan_stages(Mode(mode)):
            lost = [name for name in minus if name in stage.level.reads] if minus else None
            if not lost:
                for name, handler in stage.deleting_negated:
                    if name in plus:
                        handler.run(plus[name])
            if lost or doomed:
                self._level_with_deletions(stage, lost or [], plus, minus, fresh)
            else:
                for name, handler in stage.inserting:
                    if name in plus:
                        handler.run(plus[name])
                if fresh:
                    self._run_fresh(stage.level, fresh)
                if touched:
                    self._settle(stage, plus)
            if stage.level.number in self._views:
                self._update_views(stage.level, plus, minus)

    def _plan_stages(self, mode: Mode) -> list[Stage]:
        stages = [Stage(self._compiler, level, mode, self._growth) for level in self._levels]
        self._stages[mode] = stages
        return stages

    def _run_fresh(self, level: Level, fresh: tuple[Clause, ...]) -> None:
        for clause in fresh:
            if clause.head.relation in level.relations:
                self._compiler.full(clause, level)

    # --- insertion ---

    def _settle(self, stage: Stage, plus: Delta) -> None:
        """Join what the rules derived within the level until nothing is new; then publish it."""
        touched = self._runtime.touched
        if stage.recursive:
            self._recur(stage, touched)
        by_round = bool(stage.recursive) and not stage.linear
        for store in touched:
            if not by_round:
                store.publish(store.new)
            rows = self._runtime.flush(store)
            self._log.append((store.remove, rows))
            known = plus.get(store.name)
            plus[store.name] = rows if known is None else [*known, *rows]
        touched.clear()

    def _recur(self, stage: Stage, touched: list[Store]) -> None:
        """Semi-naive rounds. ``touched`` and each store's ``new`` grow meanwhile.

        In a linear level the handlers do not see the level's own relations, so a round need not
        wait for the previous one to be indexed, and may run into the next.
        """
        done: dict[Store, int] = {}
        pending = True
        while pending:
            pending = False
            for store in touched:
                rows = store.new
                start, end = done.get(store, 0), len(rows)
                if start == end:
                    continue
                handler = stage.recursive.get(store.name)
                live = stage.linear and start == 0 and handler is not None and handler.live
                batch = rows if live else rows[start:]
                if not stage.linear:
                    store.publish(batch)
                if handler is not None:
                    handler.run(batch)
                    pending = True
                done[store] = len(rows) if live else end

    # --- deletion ---

    def _level_with_deletions(
        self,
        stage: Stage,
        lost: list[str],
        plus: Delta,
        minus: Delta,
        fresh: tuple[Clause, ...],
    ) -> None:
        """The whole of DRed. Without ``lost`` rows below, the marking has already begun."""
        self._rewind(lost, plus, minus)
        try:
            dead = self._mark(stage, lost, plus, minus)
        finally:
            self._rewind(lost, minus, plus)
        self._bury(dead)
        inserted: Delta = {}
        self._rederive(dead, stage, inserted)
        for name, handler in stage.inserting:
            if name in plus:
                handler.run(plus[name])
        for name, handler in stage.inserting_negated:
            if name in minus:
                handler.run(minus[name])
        self._run_fresh(stage.level, fresh)
        self._settle(stage, inserted)
        self._report(dead, inserted, plus, minus)

    def _rewind(self, names: list[str], out: Delta, back: Delta) -> None:
        """Exchange rows of lower relations, so that they are as before the commit, or after."""
        for name in names:
            holder = self._runtime.views.get(name) or self._runtime.stores[name]
            holder.remove(out.get(name, []))
            holder.insert(back.get(name, []))

    def _mark(self, stage: Stage, lost: list[str], plus: Delta, minus: Delta) -> list[Store]:
        """Mark what the changes below helped to derive, transitively within the level."""
        doomed = self._runtime.doomed
        for name in lost:
            handler = stage.deleting.get(name)
            if handler is not None:
                handler.run(minus[name])
        if lost:
            for name, handler in stage.deleting_negated:
                if name in plus:
                    handler.run(plus[name])
        marked: dict[Store, None] = {}
        while doomed:
            store = doomed.pop()
            marked[store] = None
            rows = store.dying[:]
            store.dying.clear()
            again = stage.deleting.get(store.name)
            if again is not None:
                again.run(rows)
        return list(marked)

    def _bury(self, stores: list[Store]) -> None:
        """Remove all marked rows."""
        for store in stores:
            rows = list(store.dead)
            store.remove(rows)
            self._log.append((store.insert, rows))

    def _rederive(self, dead: list[Store], stage: Stage, inserted: Delta) -> None:
        """Put back marked rows that still have a derivation, and join them within the level."""
        for store in dead:
            check = self._check(store.name)
            rows = [row for row in store.dead if check(row)]
            if rows:
                store.insert(rows)
                self._log.append((store.remove, rows))
                inserted[store.name] = rows
        for name, rows in inserted.items():
            handler = stage.recursive.get(name)
            if handler is not None:
                handler.run(rows)

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
