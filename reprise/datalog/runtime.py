"""The live parts of a database: stores, views, and the names under which generated code sees them.

One dictionary, the *environment*, is the global namespace of every generated function; stores and
indexes appear in it under the names that their :class:`~reprise.datalog.layout.Layout` gives.
Invariants: a name in the environment always refers to the same dictionary while the relation
lives, except that an index's name refers to a placeholder until a rule first needs it; the name
of a store's list of new rows refers to the list that the store has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, NoReturn

from reprise.datalog import arithmetic
from reprise.datalog.accumulate import View
from reprise.datalog.clauses import AggregateView
from reprise.datalog.codecache import compiled
from reprise.datalog.errors import LimitError
from reprise.datalog.growth import Mode
from reprise.datalog.layout import Layout, Shape, shape_of, unique_name
from reprise.datalog.load import adapt, conflict
from reprise.datalog.store import Store, make_store
from reprise.datalog.values import as_float, box, coerce, identical
from reprise.lang.core import Relation, Row, Value


@dataclass(frozen=True, slots=True)
class Limits:
    """What one commit may use up before it is stopped with a ``LimitError`` and taken back.

    ``max_seconds`` puts a check of the clock into every generated loop, which slows small commits
    by a few per cent; ``None`` leaves it out.
    """

    max_derived_rows: int = 20_000_000
    max_seconds: float | None = None


class _Unbuilt:
    """Stands for an index that no rule has probed yet; builds it at the first useful probe.

    While the relation has no published rows the answer is "none", and nothing is built: what is
    derived in the current round will be joined as the next round's changes.
    """

    def __init__(self, runtime: Runtime, store: Store, columns: tuple[int, ...]) -> None:
        self._runtime = runtime
        self._store = store
        self._columns = columns

    def get(self, key: object, default: Any = None) -> Any:
        if not self._store.published:
            return default
        return self._runtime.build_index(self._store, self._columns).get(key, default)


class Runtime:
    """Stores and views by relation name, the environment, and the compiler of generated text."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.timed = limits.max_seconds is not None
        self.layouts: dict[str, Layout] = {}
        self.stores: dict[str, Store] = {}
        self.views: dict[str, View] = {}
        self.touched: list[Store] = []
        self.doomed: list[Store] = []
        self.room: list[int] = [limits.max_derived_rows]
        self.deadline: list[float] = [0.0]
        self.sources: dict[str, str] = {}
        self.on_index: Callable[[Store], None] = lambda store: None
        self._names: set[str] = set()
        self._index_names: dict[tuple[str, tuple[int, ...]], str] = {}
        self.environment: dict[str, Any] = {
            **arithmetic.ENVIRONMENT,
            "EMPTY": {},
            "LOW": -1,
            "TOP": -1,
            "MODE": int(Mode.GROWTH),
            "OWNER": None,
            "GIVEN": {},
            "ROOM": self.room,
            "DEADLINE": self.deadline,
            "touched": self.touched,
            "doom": self._doom,
            "found": self._found,
            "overflow": self.overflow,
            "expired": self._expired,
            "clock": time.monotonic,
            "adapt": adapt,
            "conflict": conflict,
            "box": box,
            "coerce_number": _coercion("float"),
            "coerce_float": as_float,
            "coerce_int": _coercion("int"),
            "coerce_sym": _coercion("sym"),
            "coerce_bool": _coercion("bool"),
        }

    # --- relations ---

    def add_relation(self, relation: Relation, derived: bool) -> Store:
        """An empty store for a relation, entered into the environment."""
        layout = self._layout(relation, shape_of(relation, derived))
        store = self.stores[relation.name] = make_store(layout)
        store.published = not derived
        self.environment.update(
            {
                layout.rows: store.rows,
                layout.new: store.new,
                layout.store: store,
                layout.scan: lambda: iter(store),
            }
        )
        return store

    def add_view(self, spec: AggregateView) -> None:
        """An empty view, entered into the environment."""
        layout = self._layout(spec.relation, Shape.VALUES)
        view = self.views[spec.name] = View(spec, layout)
        self.environment[layout.rows] = view.values

    def rename(self, old: str, relation: Relation) -> None:
        """Let the rows of ``old`` belong to ``relation`` from now on."""
        rows = list(self.stores.pop(old))
        del self.layouts[old]
        self._index_names = {k: name for k, name in self._index_names.items() if k[0] != old}
        store = self.add_relation(relation, derived=False)
        store.insert(rows)

    def _layout(self, relation: Relation, shape: Shape) -> Layout:
        layout = Layout(relation, shape, unique_name(relation.name, self._names))
        self.layouts[relation.name] = layout
        return layout

    def build_index(self, store: Store, columns: tuple[int, ...]) -> dict[Any, Any]:
        """The index of ``store`` on ``columns``, built now if need be."""
        if columns not in store.indexes:
            index = store.build(columns)
            self.environment[store.layout.index(columns)] = index.buckets
            self.on_index(store)
        return store.indexes[columns].buckets

    def index_name(self, relation: str, columns: tuple[int, ...]) -> str:
        """The name of an index that some plan wants, bound to a placeholder if it is new."""
        name = self._index_names.get((relation, columns))
        if name is None:
            store = self.stores[relation]
            name = self._index_names[relation, columns] = store.layout.index(columns)
            self.environment.setdefault(name, _Unbuilt(self, store, columns))
        return name

    def matching(self, relation: str, wanted: Mapping[int, Value]) -> Iterator[Row]:
        """The rows with the given values in the given columns, through a key or an index."""
        store = self.stores[relation]
        rows: Iterable[Row] = store
        key = store.layout.key
        if store.layout.shape is Shape.KEYED and key[0] in wanted:
            found = store.rows.get(wanted[key[0]])
            rows = () if found is None else (found,)
        elif store.layout.shape is Shape.NESTED and key[0] in wanted:
            rows = tuple(store.rows.get(wanted[key[0]], {}).values())
        elif wanted:
            columns = tuple(sorted(wanted))
            values = tuple(wanted[i] for i in columns)
            index = self.build_index(store, columns)
            rows = tuple(index.get(values[0] if len(values) == 1 else values, ()))
        return (row for row in rows if all(identical(row[i], value) for i, value in wanted.items()))

    # --- code ---

    def function(self, name: str, source: str, code: CodeType | None = None) -> Callable[..., Any]:
        """The function called ``name`` that ``source`` defines, and ``code``, if it is known."""
        self.sources[name] = source
        defined: dict[str, Callable[..., Any]] = {}
        exec(code or compiled(source, name), self.environment, defined)
        return defined[name]

    def scale(self) -> int:
        """The order of magnitude of what is stored, on which plans may depend."""
        return sum(store.size() for store in self.stores.values()).bit_length() // 4

    # --- what generated code calls ---

    def _doom(self, store: Store, row: Row) -> None:
        if row not in store.dead:
            if not store.dying:
                self.doomed.append(store)
            store.dead[row] = None
            store.dying.append(row)

    def _found(self, store: Store, row: Row) -> None:
        if row not in store.rows:
            store.rows[row] = None
            if not store.new:
                self.touched.append(store)
            store.new.append(row)

    def overflow(self, store: Store) -> NoReturn:
        """Stop the commit: ``store`` has outgrown the allowance."""
        raise LimitError(store.name, "max_derived_rows", self.limits.max_derived_rows)

    def _expired(self) -> NoReturn:
        growing = max(self.touched, key=lambda store: len(store.new), default=None)
        name = growing.name if growing is not None else "…"
        raise LimitError(name, "max_seconds", self.limits.max_seconds or 0.0)

    # --- a commit's progress ---

    def start(self, mode: int, given: dict[str, list[Row]]) -> int:
        """Begin a commit that promises ``mode`` at best; the largest entity id so far.

        Loaders will enter new base rows into ``given``.
        """
        environment = self.environment
        top: int = environment["TOP"]
        environment["LOW"] = top
        environment["OWNER"] = None
        environment["MODE"] = mode
        environment["GIVEN"] = given
        return top

    def set_top(self, top: int) -> None:
        """Return to an earlier largest entity id."""
        self.environment["TOP"] = top

    def mode(self) -> int:
        """The :class:`Mode` that the rows loaded so far allow."""
        mode: int = self.environment["MODE"]
        return mode

    def begin_derivation(self) -> None:
        """Give the commit its full allowance of derived rows and time."""
        self.room[0] = self.limits.max_derived_rows
        if self.timed:
            self.deadline[0] = time.monotonic() + (self.limits.max_seconds or 0.0)

    def look(self) -> None:
        """Stop if what is derived but not settled exceeds the allowance."""
        count = 0
        for store in self.touched:
            count += len(store.new)
            if count > self.room[0]:
                self.overflow(store)

    def withdraw(self) -> None:
        """Forget everything derived but not published, after an error."""
        for store in self.stores.values():
            if store.new or store.dead:
                store.withdraw()
        self.touched.clear()
        self.doomed.clear()


def _coercion(type_: str) -> Callable[[Value], Value | None]:
    return lambda value: coerce(value, type_)
