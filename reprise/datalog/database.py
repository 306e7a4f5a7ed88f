"""The incremental database: facts in, consequences maintained, every step reversible.

A :class:`Database` holds base facts and everything that a program derives from them. Each commit
brings the consequences up to date before it returns; each can be taken back exactly. Invariant:
between calls, the contents of every derived relation are those that evaluating the program from
scratch on the base facts would give, whatever sequence of commits, deletions, proposals and undos
led there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from reprise.datalog.blueprint import Blueprint
from reprise.datalog.changes import Changes, Proposal
from reprise.datalog.clauses import UNIT, Clause, Clauses
from reprise.datalog.errors import DatalogError, MarkError, RowError
from reprise.datalog.evaluate import Evaluation, LogEntry
from reprise.datalog.facts import Delta, Facts, cancel, grouped, rereadable
from reprise.datalog.growth import Mode, ownership
from reprise.datalog.load import Loader, adapt, ingest_source, loader_source
from reprise.datalog.runtime import Limits, Runtime
from reprise.datalog.store import Store
from reprise.datalog.values import box, plain_rows
from reprise.lang.core import Atom, Program, Relation, Row, Rule, Value, Var
from reprise.lang.diagnostics import RulesError, Severity
from reprise.lang.safety import check_rule
from reprise.lang.stratify import stratify

if TYPE_CHECKING:
    from pathlib import Path

    from reprise.datalog.explain import Derivation, NearMiss
    from reprise.datalog.kept import Kept

_GROWTH, _EDIT = int(Mode.GROWTH), int(Mode.EDIT)
_FEW = 100
"""Facts in a commit that are loaded one by one; of more, those of one relation go together."""
_ALIKE = 4
"""Commits with the same relations and indexes, after which a function is made to load them all."""
_MOST_INGESTED = 16
"""Relations that this function tells apart itself, one after the other."""
_GIVEN = "$given"
"""Marks the hidden relation of the facts that are given for a derived relation."""


class Database:
    """Facts and their consequences under a program.

    ``cache`` names a directory where :meth:`save` keeps what was compiled. Raises
    :class:`~reprise.lang.diagnostics.RulesError` if a rule is unsafe, ill-typed or not stratified;
    ``checked`` says that all of this is known to be well, as it is of rules from a loaded file.
    """

    def __init__(
        self,
        program: Program,
        *,
        limits: Limits | None = None,
        cache: Path | None = None,
        checked: bool = False,
    ) -> None:
        _check_program(program)
        self._runtime = Runtime(limits or Limits())
        self._runtime.on_index = self._forget_loader
        self._relations: dict[str, Relation] = dict(program.relations)
        self._rules: tuple[Rule, ...] = tuple(program.rules)
        self._log: list[LogEntry] = []
        self._marks: list[int] = []
        self._proposing = False
        self._loaders = _Loaders(self._make_loader)
        self._ingest: Callable[[Any], None] | None = None
        self._loads_alike = 0
        self._runtime.environment["load_other"] = self._load_other
        self._asserted: dict[str, str] = {}
        self._kept: Kept | None = None
        self._blueprint = self._first_blueprint(program, cache, checked)
        self._rebuild()
        self._start()

    def _first_blueprint(self, program: Program, cache: Path | None, checked: bool) -> Blueprint:
        """From the cache, else worked out."""

        def make() -> Clauses:
            clauses = Clauses()
            clauses.add(program)
            return clauses

        if cache is not None:
            from reprise.datalog.kept import Kept

            self._kept = Kept(cache, program, self._runtime.timed)
            found = self._kept.read(make)
            if found is not None:
                return found
        if not checked:
            _check(program.rules, program)
        return Blueprint(make())

    def _start(self) -> None:
        """Derive what holds before any fact is given."""
        if any(UNIT.name in level.reads for level in self._blueprint.levels):
            self._transact({UNIT.name: [()]}, {})
            self._log.clear()
        else:
            self._runtime.stores[UNIT.name].insert([()])

    def save(self) -> None:
        """Keep in the cache what was compiled so far, for the next database with these rules.

        Does nothing without a cache, or once rules were added.
        """
        if self._kept is not None:
            self._kept.write(self._blueprint)

    # --- the program ---

    @property
    def program(self) -> Program:
        """All relations and rules, in the order in which they were added."""
        return Program(dict(self._relations), self._rules)

    def relation(self, name: str) -> Relation:
        """The schema of a relation; :class:`RowError` if there is none of that name."""
        found = self._relations.get(name) if _named(name) else None
        if found is None:
            raise RowError(f"no relation is called {_quoted(name)}")
        return found

    def extend(self, program: Program) -> Changes:
        """Add relations and rules, and derive at once what the rules give on the stored facts.

        Relations declared before may be repeated. Marks set earlier can no longer be returned to.
        """
        self._forbid_in_proposal("extend")
        _check_program(program)
        combined = Program({**self._relations, **program.relations}, (*self._rules, *program.rules))
        for name, relation in program.relations.items():
            if self._relations.get(name, relation) != relation:
                raise RowError(f"`{name}` is already declared with other columns")
        _check(program.rules, combined)
        self._log.clear()
        self._marks.clear()
        for name in sorted(program.derived() - self._derived):
            if name in self._runtime.stores:
                self._let_assert(name)
        before = self._relations, self._rules, self._blueprint
        self._relations, self._rules = combined.relations, combined.rules
        try:
            fresh = self._add_clauses(program)
            if not any(store.rows for store in self._runtime.stores.values()):
                return Changes(self.relation, {}, {})
            return Changes(self.relation, *self._guarded({}, {}, tuple(fresh)))
        except BaseException:
            self._relations, self._rules, self._blueprint = before
            self._rebuild()
            raise

    def _add_clauses(self, program: Program) -> list[Clause]:
        """Add clauses for more rules, which are returned, and plan the evaluation anew."""
        self._kept = None
        clauses = self._blueprint.clauses.copy()
        fresh = clauses.add(program)
        self._blueprint = Blueprint(clauses)
        self._rebuild()
        return fresh

    def _rebuild(self) -> None:
        """Give new relations and views their stores, and start with an empty evaluation."""
        self._derived = self._blueprint.derived
        for name, relation in self._blueprint.relations.items():
            if name not in self._runtime.stores:
                self._runtime.add_relation(relation, name in self._derived)
        for name, view in self._blueprint.views.items():
            if name not in self._runtime.views:
                self._runtime.add_view(view)
        self._loaders.clear()
        self._ingest = None
        self._loads_alike = 0
        self._evaluation = Evaluation(self._blueprint, self._runtime, self._log)

    def _let_assert(self, name: str) -> None:
        """Let facts be given for a derived relation: a hidden base relation and a copying rule.

        Rows that the relation has from its time as a base relation become such facts.
        """
        relation = self._relations[name]
        base = Relation(f"{name}{_GIVEN}", relation.columns)
        self._asserted[name] = base.name
        if name not in self._derived:
            self._runtime.rename(name, base)
        terms = tuple(Var(f"X{i}") for i in range(relation.arity))
        copy = Rule(Atom(name, terms), (Atom(base.name, terms),), "given facts")
        fresh = self._add_clauses(Program({name: relation, base.name: base}, (copy,)))
        self._guarded({}, {}, tuple(fresh))

    def source(self) -> str:
        """The generated Python: all that the growth of a graph runs, and what else was needed.

        Rules are otherwise compiled when they are first needed.
        """
        for name in self._relations:
            if name not in self._derived:
                self._loaders[name]
        self._evaluation.compile(Mode.GROWTH)
        return "\n".join(self._runtime.sources.values())

    # --- changes ---

    def add(self, relation: str, *row: Any) -> Changes:
        """Commit one fact."""
        return self.commit([(relation, row)])

    def delete(self, facts: Facts) -> Changes:
        """Commit the deletion of base facts; those that are not there are ignored."""
        return self.commit((), facts)

    def commit(self, adds: Facts = (), deletes: Facts = ()) -> Changes:
        """Delete, then add base facts, and bring all derived relations up to date.

        Raises :class:`RowError`, :class:`KeyConflictError` or :class:`LimitError`; the database is
        then as before.
        """
        self._forbid_in_proposal("commit")
        plus, minus = self._transact(adds, deletes)
        if not self._marks:
            self._log.clear()
        return Changes(self.relation, plus, minus)

    def propose(self, adds: Facts, deletes: Facts = ()) -> Proposal:
        """Commit provisionally: ``with db.propose(facts) as p: …; p.accept()``.

        The facts and their consequences are there inside the block. They are taken back when it
        ends without :meth:`Proposal.accept`, and when an error leaves it.
        """
        if self._proposing:
            self._forbid_in_proposal("propose")
        mark = len(self._log)
        plus, minus = self._transact(adds, deletes)
        self._proposing = True
        return Proposal(self.relation, plus, minus, mark, self._end_proposal)

    def _end_proposal(self, mark: int, accepted: bool) -> None:
        self._proposing = False
        if not accepted:
            self._unwind(mark)
        elif not self._marks:
            self._log.clear()

    def _forbid_in_proposal(self, call: str) -> None:
        if self._proposing:
            raise MarkError(f"`{call}` is not possible while a proposal is open")

    def mark(self) -> int:
        """A point to which :meth:`undo` can return. The log grows while there are marks."""
        self._forbid_in_proposal("mark")
        self._marks.append(len(self._log))
        return len(self._marks) - 1

    def undo(self, mark: int) -> None:
        """Return to ``mark``; later marks are forgotten, this one stays.

        Raises :class:`MarkError` if the mark was forgotten or released, or rules were added since.
        """
        self._forbid_in_proposal("undo")
        self._unwind(self._position(mark))
        del self._marks[mark + 1 :]

    def release(self, mark: int) -> None:
        """Forget ``mark`` and later ones, and keep what was committed since."""
        self._position(mark)
        del self._marks[mark:]
        if not self._marks and not self._proposing:
            self._log.clear()

    def _position(self, mark: int) -> int:
        if type(mark) is not int or not 0 <= mark < len(self._marks):
            raise MarkError("this mark was released, or rules were added since it was set")
        return self._marks[mark]

    def _unwind(self, position: int) -> None:
        """Run the log backwards. Rows that leave the same store leave it together, as long as
        nothing but such removals is undone: that is all there is in a log of growth."""
        log = self._log
        leaving: dict[Store, list[list[Row]]] = {}
        while len(log) > position:
            undo, argument = log.pop()
            if isinstance(undo, Store):
                leaving.setdefault(undo, []).append(argument)
            elif undo is None:
                top, given = argument
                for name, rows in given.items():
                    leaving.setdefault(self._runtime.stores[name], []).append(rows)
                self._runtime.set_top(top)
            else:
                _remove(leaving)
                undo(argument)
        _remove(leaving)

    def _transact(self, adds: Facts, deletes: Facts) -> tuple[Delta, Delta]:
        """A commit, begun again whenever it turns out to give facts for a derived relation."""
        if type(adds) is not list:
            adds = rereadable(adds)
        if deletes:
            deletes = rereadable(deletes)
        while True:
            try:
                return self._guarded(adds, deletes, ())
            except _GivenError as given:
                self._let_assert(given.relation)

    def _guarded(
        self, adds: Facts, deletes: Facts, fresh: tuple[Clause, ...]
    ) -> tuple[Delta, Delta]:
        """Store, evaluate, and take everything back if either fails."""
        runtime = self._runtime
        log = self._log
        start = len(log)
        given: Delta = {}
        top = runtime.start(_EDIT if fresh or deletes else _GROWTH, given)
        minus: Delta = {}
        try:
            if deletes:
                self._unload(deletes, minus)
            log.append((None, (top, given)))
            self._load(adds)
            plus = given.copy()
            if minus:
                cancel(plus, minus)
            self._evaluation.run(plus, minus, runtime.mode(), fresh)
        except BaseException:
            runtime.withdraw()
            self._unwind(start)
            raise
        return plus, minus

    def _load(self, adds: Facts) -> None:
        """Store base rows; the loaders note which are new."""
        try:
            if type(adds) is list and len(adds) <= _FEW and self._ingest is not None:
                self._ingest(adds)
                return
            for name, rows in grouped(adds).items():
                self._loaders[name](rows)
            self._prepare_ingest()
        except (TypeError, ValueError):
            for name, rows in grouped(
                adds
            ).items():  # a row that is none is what a loader trips over
                for row in rows:
                    adapt(self._base_store(name).layout.relation, row)
            raise

    def _prepare_ingest(self) -> None:
        """Have all relations that have got facts loaded by one function, once they are known."""
        self._loads_alike += 1
        if self._loads_alike < _ALIKE or not self._loaders:
            return
        names = sorted(self._loaders, key=lambda name: -len(self._base_store(name)))
        source = ingest_source([self._loader(name) for name in names[:_MOST_INGESTED]])
        self._ingest = self._evaluation.compiler.loader("ingest", source)

    def _load_other(self, name: str, row: Any) -> None:
        """Store a row of a relation that ``ingest`` does not know."""
        self._loaders[name]((row,))

    def _loader(self, name: str) -> Loader:
        store = self._base_store(name)
        return Loader(store.layout, ownership(store.layout.relation), tuple(store.indexes))

    def _make_loader(self, name: str) -> Any:
        """The loader of a relation's rows, or of those given for it if it is derived."""
        store = self._base_store(name)
        if name in self._derived and name not in self._asserted:
            raise _GivenError(name)
        self._forget_loader(store)
        source = loader_source(self._loader(name))
        return self._evaluation.compiler.loader(f"load_{store.layout.name}", source)

    def _base_store(self, name: str) -> Store:
        store = self._runtime.stores.get(self._asserted.get(name, name)) if _named(name) else None
        if store is None:
            raise RowError(f"no relation is called {_quoted(name)}")
        return store

    def _forget_loader(self, store: Store) -> None:
        self._loaders.pop(store.name.removesuffix(_GIVEN), None)
        self._ingest = None
        self._loads_alike = 0

    def _unload(self, deletes: Facts, minus: Delta) -> None:
        """Remove base rows, as far as they are there."""
        for name, rows in grouped(deletes).items():
            store = self._base_store(name)
            if name in self._derived and name not in self._asserted:
                continue
            relation = store.layout.relation
            found = dict.fromkeys(row for given in rows if (row := adapt(relation, given)) in store)
            if found:
                gone = list(found)
                store.remove(gone)
                self._log.append((store.insert, gone))
                minus[store.name] = gone

    # --- contents ---

    def rows(self, relation: str) -> list[Row]:
        """All rows of a relation, sorted."""
        schema = self.relation(relation)
        return plain_rows(schema, self._runtime.stores[relation])

    def count(self, relation: str) -> int:
        """How many rows a relation has."""
        self.relation(relation)
        return len(self._runtime.stores[relation])

    def contains(self, relation: str, *row: Any) -> bool:
        """Whether a relation has a row."""
        return adapt(self.relation(relation), row) in self._runtime.stores[relation]

    def match(self, relation: str, pattern: Sequence[Value | None]) -> list[Row]:
        """The rows that agree with ``pattern`` where it is not ``None``, sorted.

        Look-ups by key and by the first key column are direct; others build an index once.
        """
        schema = self.relation(relation)
        _check_pattern(schema, pattern)
        wanted = {
            i: box(value) if schema.columns[i].type == "any" else value
            for i, value in enumerate(pattern)
            if value is not None
        }
        return plain_rows(schema, self._runtime.matching(relation, wanted))

    # --- explanations ---

    def why(self, relation: str, *row: Any) -> Derivation:
        """How a row is derived. Raises :class:`RowError` if it is not there."""
        from reprise.datalog import explain

        stored = adapt(self.relation(relation), row)
        if stored not in self._runtime.stores[relation]:
            raise RowError(f"`{relation}` has no row {row!r}; ask `why_not`")
        return explain.why(self._blueprint.clauses, self._runtime, relation, stored)

    def why_not(self, relation: str, *row: Any) -> list[NearMiss]:
        """For each rule, how far it gets towards ``row``; the closest first.

        ``None`` stands for any value. A row that is there raises :class:`RowError`.
        """
        from reprise.datalog import explain

        schema = self.relation(relation)
        _check_pattern(schema, row)
        if None not in row and self.contains(relation, *row):
            raise RowError(f"`{relation}` has the row {row!r}; ask `why`")
        return explain.why_not(self._blueprint.clauses, self._runtime, relation, row)


def _check(rules: Iterable[Rule], program: Program) -> None:
    """Refuse ``rules`` that are unsafe or ill-typed, and a ``program`` that is not stratified."""
    problems = [
        problem
        for rule in rules
        for problem in check_rule(rule, program.relations)
        if problem.severity is Severity.ERROR
    ]
    if problems:
        raise RulesError(problems)
    stratify(program)


def _check_program(program: object) -> None:
    if not isinstance(program, Program):
        raise DatalogError(f"expected a core program, but got {program!r}")


def _check_pattern(relation: Relation, pattern: Sequence[Value | None]) -> None:
    """Refuse what cannot be a pattern of rows: values, and ``None`` for any value."""
    if not isinstance(pattern, (tuple, list)) or len(pattern) != relation.arity:
        raise RowError(f"`{relation.name}` has {relation.arity} column(s), but got {pattern!r}")
    for value in pattern:
        if value is not None and not isinstance(value, (int, float, str)):
            raise RowError(f"`{relation.name}` cannot hold {value!r}")


def _named(name: object) -> bool:
    return isinstance(name, str)


def _quoted(name: object) -> str:
    return f"`{name}`" if isinstance(name, str) else repr(name)


class _GivenError(Exception):
    """Facts are given for a derived relation that is not prepared for them yet."""

    def __init__(self, relation: str) -> None:
        super().__init__(relation)
        self.relation = relation


def _remove(leaving: dict[Store, list[list[Row]]]) -> None:
    """Remove rows from their stores, and forget them."""
    for store, parts in leaving.items():
        store.remove(parts[0] if len(parts) == 1 else [row for rows in parts for row in rows])
    leaving.clear()


class _Loaders(dict[str, Any]):
    """Loaders by relation, each made when first used."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        loader = self[name] = self._make(name)
        return loader
