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
from itertools import islice
from typing import Any

from reprise.datalog.blueprint import Blueprint, Level
from reprise.datalog.clauses import Clause
from reprise.datalog.facts import Delta
from reprise.datalog.growth import Mode
from reprise.datalog.runtime import Runtime
from reprise.datalog.schedule import Compiler, Handler, Stage
from reprise.datalog.store import Store
from reprise.lang.core import Row

_CHUNK = 64
"""Rows handed to a handler between two looks at the limits."""

LogEntry = tuple[Callable[[Any], None] | Store | None, Any]
"""An inverse and its argument; a store and rows that were inserted into it; or None and the base
rows that a commit loaded, by relation, after the largest entity id before it."""


_AGENDAS = 1_000
"""How many agendas are kept; orders of the same relations count, and there are a few dozen."""

Agenda = list[tuple[list[tuple[str, Handler]], list[Handler]]]
"""For each stage the changed relations with their handlers, and the handlers that mark what must
go: those of changed relations that are negated there."""


class Evaluation:
    """The levels of a blueprint, and how to bring them up to date.

    Built anew whenever clauses are added; holds no rows itself.
    """

    def __init__(self, blueprint: Blueprint, runtime: Runtime, log: list[LogEntry]) -> None:
        self._runtime = runtime
        self._log = log
        self._blueprint = blueprint
        self.compiler = Compiler(blueprint, runtime)
        self._checks: dict[str, Callable[[Row], bool]] = {}
        self._stages: list[list[Stage] | None] = [None] * len(Mode)
        self._agendas: list[dict[tuple[str, ...], Agenda]] = [{} for _ in Mode]

    def run(self, plus: Delta, minus: Delta, mode: int, fresh: tuple[Clause, ...] = ()) -> None:
        """Bring all levels up to date, and add what changes in them to ``plus`` and ``minus``.

        ``fresh`` clauses have never run: they are evaluated on everything that is stored.
        """
        self._runtime.begin_derivation()
        stages = self._stages[mode] or self._plan_stages(Mode(mode))
        start = 0 if minus or fresh else self._grow(stages, mode, plus, minus)
        for stage in stages[start:] if start else stages:
            reads = stage.level.reads
            if reads.isdisjoint(plus) and not fresh and (not minus or reads.isdisjoint(minus)):
                continue
            self._run_stage(stage, plus, minus, fresh)

    def _grow(self, stages: list[Stage], mode: int, plus: Delta, minus: Delta) -> int:
        """Run the stages that have something to do, as long as nothing disappears; how far it got.

        In most commits most stages are not even looked at: the agenda says which handlers the
        changed relations concern, and a handler's guards whether all that it joins with is empty.
        Commits that change the same relations have the same agenda.
        """
        agendas, touched = self._agendas[mode], self._runtime.touched
        known = -1
        agenda: Agenda = []
        for number, stage in enumerate(stages):
            if len(plus) != known:
                known = len(plus)
                changed = tuple(plus)
                agenda = agendas.get(changed) or self._agenda(mode, changed)
            entries, negated = agenda[number]
            if negated and any(not handler.is_idle() for handler in negated):
                self._run_stage(stage, plus, minus, ())
            elif entries:
                for name, handler in entries:
                    guards = handler.guards
                    if guards is not None:
                        for guard in guards:
                            if guard:
                                break
                        else:
                            continue
                    rows = plus[name]
                    if len(rows) <= _CHUNK:
                        handler.run(rows)
                    else:
                        self._feed(handler, rows)
                if touched:
                    self._settle(stage, plus)
                    if stage.views:
                        self._update_views(stage, plus, minus)
            if minus:
                return number + 1
        return len(stages)

    def _agenda(self, mode: int, changed: tuple[str, ...]) -> Agenda:
        """What the stages have to do when rows appeared in some relations."""
        found: Agenda = []
        for stage in self._stages[mode] or ():
            entries = [(n, stage.inserting[n]) for n in changed if n in stage.inserting]
            negated = [handler for name, handler in stage.deleting_negated if name in changed]
            found.append((entries, negated))
        agendas = self._agendas[mode]
        if len(agendas) >= _AGENDAS:
            agendas.clear()
        agendas[changed] = found
        return found

    def _run_stage(
        self, stage: Stage, plus: Delta, minus: Delta, fresh: tuple[Clause, ...]
    ) -> None:
        """One stage, whatever has changed below."""
        if (minus or fresh or stage.deleting_negated) and self._retract(stage, plus, minus, fresh):
            return
        for handler, rows in stage.inserting_now(plus):
            self._feed(handler, rows)
        if self._runtime.touched:
            self._settle(stage, plus)
            if stage.views:
                self._update_views(stage, plus, minus)

    def _retract(self, stage: Stage, plus: Delta, minus: Delta, fresh: tuple[Clause, ...]) -> bool:
        """Do the whole stage with deletions, if the changes below may call for any."""
        lost = [name for name in minus if name in stage.level.reads]
        if not lost:
            for name, handler in stage.deleting_negated:
                if name in plus and not handler.is_idle():
                    self._feed(handler, plus[name])
        if not (lost or fresh or self._runtime.doomed):
            return False
        self._level_with_deletions(stage, lost, plus, minus, fresh)
        self._update_views(stage, plus, minus)
        return True

    def _plan_stages(self, mode: Mode) -> list[Stage]:
        stages = [
            Stage(self.compiler, level, tasks)
            for level, tasks in zip(
                self._blueprint.levels, self._blueprint.tasks(mode), strict=True
            )
        ]
        self._stages[mode] = stages
        return stages

    def compile(self, mode: Mode) -> None:
        """Compile all that commits of this mode may run."""
        for stage in self._stages[mode] or self._plan_stages(mode):
            for handler in stage.handlers():
                handler.compile()

    def _run_fresh(self, level: Level, fresh: tuple[Clause, ...]) -> None:
        for clause in fresh:
            if clause.head.relation in level.relations:
                self.compiler.full(clause, level)

    # --- insertion ---

    def _feed(self, handler: Handler, rows: list[Row]) -> None:
        """Hand rows to a handler, and count in between what it finds."""
        if len(rows) <= _CHUNK:
            handler.run(rows)
            return
        for start in range(0, len(rows), _CHUNK):
            handler.run(rows[start : start + _CHUNK])
            self._runtime.look()

    def _settle(self, stage: Stage, plus: Delta) -> None:
        """Join what the rules derived within the level until nothing is new; then publish it."""
        runtime = self._runtime
        touched, environment, log = runtime.touched, runtime.environment, self._log
        recursive = stage.recursive_stores
        if recursive:
            if not stage.linear:
                self._recur_by_rounds(stage)
            elif len(recursive) > 1:
                self._recur_linear(stage)
            elif recursive[0][0].new:
                self._follow(*recursive[0], 0)
        count = 0
        for store in touched:
            name, rows = store.name, store.new
            store.new = environment[store.new_name] = []
            log.append((store, rows))
            store.published = True
            if store.indexes and stage.linear:
                store.publish(rows)
            plus[name] = [*plus[name], *rows] if name in plus else rows
            count += len(rows)
        if count > runtime.room[0]:
            runtime.overflow(touched[-1])
        runtime.room[0] -= count
        touched.clear()

    def _recur_linear(self, stage: Stage) -> None:
        """No handler sees the level's own relations, so rows can be joined as they are found."""
        done = dict.fromkeys(stage.recursive, 0)
        progress = True
        while progress:
            progress = False
            for store, handler in stage.recursive_stores:
                end = self._follow(store, handler, done[store.name])
                progress |= end > done[store.name]
                done[store.name] = end

    def _follow(self, store: Store, handler: Handler, start: int) -> int:
        """Hand new rows to a handler until it has had all; how many there are.

        A live handler follows the list of new rows while it grows.
        """
        rows = store.new
        if handler.live:
            following: Any = iter(rows)
            if start:
                following.__setstate__(start)
            while start < len(rows):
                if start:
                    self._runtime.look()
                handler.run(islice(following, _CHUNK))
                start += _CHUNK
            return len(rows)
        while start < len(rows):
            batch = rows[start : start + _CHUNK]
            handler.run(batch)
            start += len(batch)
            if len(rows) > _CHUNK:
                self._runtime.look()
        return start

    def _recur_by_rounds(self, stage: Stage) -> None:
        """Semi-naive rounds: publish what the last one found, then join it with everything."""
        done: dict[Store, int] = {}
        pending = True
        while pending:
            pending = False
            for store in self._runtime.touched:
                batch = store.new[done.get(store, 0) :]
                if batch:
                    done[store] = len(store.new)
                    store.publish(batch)
                    handler = stage.recursive.get(store.name)
                    if handler is not None:
                        self._feed(handler, batch)
                        pending = True

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
        for handler, rows in stage.inserting_now(plus):
            self._feed(handler, rows)
        for name, handler in stage.inserting_negated:
            if name in minus:
                self._feed(handler, minus[name])
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
                self._feed(handler, minus[name])
        if lost:
            for name, handler in stage.deleting_negated:
                if name in plus:
                    self._feed(handler, plus[name])
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
                self._log.append((store, rows))
                inserted[store.name] = rows
        for name, rows in inserted.items():
            handler = stage.recursive.get(name)
            if handler is not None:
                handler.run(rows)

    def _check(self, relation: str) -> Callable[[Row], bool]:
        found = self._checks.get(relation)
        if found is None:
            found = self._checks[relation] = self.compiler.check(relation)
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

    def _update_views(self, stage: Stage, plus: Delta, minus: Delta) -> None:
        for view in stage.views:
            solutions = (plus.get(view.spec.solutions, []), minus.get(view.spec.solutions, []))
            if not solutions[0] and not solutions[1]:
                continue
            appeared, gone = view.change(*solutions)
            self._log.append((view.revert, solutions))
            if appeared:
                plus[view.name] = appeared
            if gone:
                minus[view.name] = gone
