"""Loaders: generated functions that check and store base rows.

A loader checks column types, refuses a second row with the same key, maintains the indexes that
exist, notes how the rows bear on the commit's :class:`~reprise.datalog.growth.Mode` (the globals
``LOW``, ``TOP``, ``MODE`` and ``OWNER``), and enters each row, if it is new, into ``GIVEN``, the
commit's new base rows by relation. There is one for each relation, for many rows at once, and one
*ingest* for all that arrive together with a node, where calls would cost more than the work.
Invariant: a row is in ``GIVEN`` exactly if this commit put it into the primary and all indexes,
also when a loader stops with an error; the other globals are right only if it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from reprise.datalog.errors import KeyConflictError, RowError
from reprise.datalog.growth import Mode, Ownership
from reprise.datalog.layout import Layout, Shape
from reprise.datalog.store import Store
from reprise.datalog.values import coerce, is_entity, plain
from reprise.lang.core import Relation, Row

_WRONG_TYPE = {
    "sym": "type({0}) is not str",
    "bool": "{0} != 'true' and {0} != 'false'",
    "int": "type({0}) is not int",
    "float": "type({0}) is not float or {0} != {0}",
    "any": "type({0}) is not str and type({0}) is not int",
}
_WRONG_ENTITY = "type({0}) is not int or {0} < 0"


@dataclass(frozen=True, slots=True)
class Loader:
    """What a loader has to know of a relation: its layout, what its rows promise, its indexes."""

    layout: Layout
    owned: Ownership | None
    indexes: tuple[tuple[int, ...], ...]


def adapt(relation: Relation, row: Sequence[Any]) -> Row:
    """``row`` as the relation stores it; :class:`RowError` if it cannot."""
    if not isinstance(row, (tuple, list)) or len(row) != relation.arity:
        raise RowError(f"`{relation.name}` has {relation.arity} column(s), but got {row!r}")
    values = []
    for value, column in zip(row, relation.columns, strict=True):
        stored = coerce(value, column.type)
        if stored is None:
            raise RowError(
                f"`{relation.name}` holds {column.type} in column `{column.name}`, "
                f"but got {value!r} in {tuple(row)!r}"
            )
        values.append(stored)
    return tuple(values)


def conflict(store: Store, old: Row, new: Row) -> NoReturn:
    """Refuse ``new``, whose key ``old`` already has."""
    raise KeyConflictError(store.name, tuple(map(plain, old)), tuple(map(plain, new)))


def loader_source(loader: Loader) -> str:
    """The text of ``load_<relation>(rows)``."""
    given = f"GIVEN.get({loader.layout.relation.name!r})"
    lines = [
        *_PROLOGUE,
        f"{_given(loader)} = {given}",
        "for row in rows:",
        *(f"    {line}" for line in _row_lines(loader)),
        _EPILOGUE,
    ]
    return _function(f"load_{loader.layout.name}", "rows", lines)


def ingest_source(loaders: Sequence[Loader]) -> str:
    """The text of ``ingest(facts)``, for (relation, row) pairs of a commit's beginning.

    Rows of relations other than those of ``loaders`` are handed to ``load_other(name, row)``.
    """
    lines = [*_PROLOGUE, f"{' = '.join(map(_given, loaders))} = None", "for name, row in facts:"]
    for i, loader in enumerate(loaders):
        lines.append(f"    {'elif' if i else 'if'} name == {loader.layout.relation.name!r}:")
        lines += (f"        {line}" for line in _row_lines(loader))
    lines += [
        "    else:",
        f"        {_EPILOGUE}",
        "        load_other(name, row)",
        "        top, mode, owner = TOP, MODE, OWNER",
        _EPILOGUE,
    ]
    return _function("ingest", "facts", lines)


_PROLOGUE = (
    "global TOP, MODE, OWNER",
    "low, top, mode, owner, given = LOW, TOP, MODE, OWNER, GIVEN",
)
_EPILOGUE = "TOP, MODE, OWNER = top, mode, owner"


def _function(name: str, parameter: str, lines: Iterable[str]) -> str:
    return "\n".join([f"def {name}({parameter}):", *(f"    {line}" for line in lines)]) + "\n"


def _given(loader: Loader) -> str:
    """The local variable that holds the commit's new rows of the relation."""
    return f"{loader.layout.name}_given"


def _row_lines(loader: Loader) -> list[str]:
    """What is done with one row, in a loop over rows."""
    layout, owned = loader.layout, loader.owned
    columns = layout.relation.columns
    names = [f"c{i}" for i in range(len(columns))]
    unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = row"] if names else []
    wrong = [
        (_WRONG_ENTITY if is_entity(column.type) else _WRONG_TYPE[column.type]).format(name)
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
        if owned is None or i != owned.owner
    ]
    wrong.append("type(row) is not tuple" if names else "row != ()")
    adapted = [f"row = adapt({layout.store}.layout.relation, row)", *unpack]
    given = _given(loader)
    return [
        *unpack,
        f"if {' or '.join(f'({w})' if ' and ' in w else w for w in wrong)}:",
        *(f"    {line}" for line in adapted),
        *(_mode_lines(owned, adapted) if owned is not None else []),
        *_store_lines(layout),
        *(line for index in loader.indexes for line in _index_lines(layout, index)),
        f"if {given} is None: given[{layout.relation.name!r}] = {given} = [row]",
        f"else: {given}.append(row)",
    ]


def _mode_lines(owned: Ownership, adapted: list[str]) -> list[str]:
    """Note what the row breaks, and the largest entity id that it mentions."""
    number = f"c{owned.owner}"
    lines = [
        # Facts mostly arrive owner by owner: look closer only when the owner changes.
        f"if {number} is not owner:",
        f"    if {_WRONG_ENTITY.format(number)}:",
        *(f"        {line}" for line in adapted),
        f"    if {number} > top: top = {number}",
        f"    elif {number} <= low: mode = {int(Mode.EDIT)}",
        f"    owner = {number}",
    ]
    for column in owned.older:
        lines += [
            f"if c{column} > low:",
            f"    if c{column} >= {number}:",
            f"        mode = {int(Mode.EDIT)}",
            f"        if c{column} > top: top = c{column}",
            f"    elif mode == {int(Mode.GROWTH)}: mode = {int(Mode.BATCH)}",
        ]
    for column in owned.same:
        lines += [
            f"if c{column} > top: top = c{column}",
            f"elif c{column} <= low: mode = {int(Mode.EDIT)}",
        ]
    return lines


def _store_lines(layout: Layout) -> list[str]:
    """Put the row into the primary, unless it is there."""
    rows = layout.rows
    if layout.shape is Shape.KEYED:
        key = f"c{layout.key[0]}"
        return [
            f"found = {rows}.setdefault({key}, row)",
            "if found is not row:",
            "    if found == row: continue",
            f"    conflict({layout.store}, found, row)",
        ]
    if layout.shape is Shape.NESTED:
        first, *rest = (f"c{i}" for i in layout.key)
        key = rest[0] if len(rest) == 1 else f"({', '.join(rest)})"
        return [
            f"inner = {rows}.get({first})",
            "if inner is None:",
            f"    {rows}[{first}] = {{{key}: row}}",
            f"elif {key} in inner:",
            f"    if inner[{key}] == row: continue",
            f"    conflict({layout.store}, inner[{key}], row)",
            f"else: inner[{key}] = row",
        ]
    return [f"if row in {rows}: continue", f"{rows}[row] = None"]


def _index_lines(layout: Layout, columns: tuple[int, ...]) -> list[str]:
    names = [f"c{i}" for i in columns]
    key = names[0] if len(names) == 1 else f"({', '.join(names)})"
    index = layout.index(columns)
    return [
        f"key = {key}",
        f"bucket = {index}.get(key)",
        f"if bucket is None: {index}[key] = {{row: None}}",
        "else: bucket[row] = None",
    ]
