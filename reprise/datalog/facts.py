"""Facts as callers give them, and bundles of changed rows as the engine passes them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprise.datalog.errors import RowError
from reprise.lang.core import Row

Delta = dict[str, list[Row]]
"""Stored rows by relation or view."""

Facts = Mapping[str, Iterable[Sequence[Any]]] | Iterable[tuple[str, Sequence[Any]]]
"""Rows by relation, or (relation, row) pairs."""


def rereadable(facts: Facts) -> Facts:
    """The same facts, copied if they can be read only once."""
    if isinstance(facts, Mapping):
        if any(iter(_rows(name, rows)) is rows for name, rows in facts.items()):
            return {name: list(rows) for name, rows in facts.items()}
        return facts
    if not isinstance(facts, Iterable):
        raise RowError(f"facts are pairs of a relation and a row, but got {facts!r}")
    return list(facts) if iter(facts) is facts else facts


def grouped(facts: Facts) -> dict[str, list[Sequence[Any]]]:
    """Facts by relation. Raises :class:`RowError` for what is not a relation's name and a row."""
    if isinstance(facts, Mapping):
        return {name: list(_rows(name, rows)) for name, rows in facts.items()}
    found: dict[str, list[Sequence[Any]]] = {}
    fact: Any = None
    try:
        for fact in facts:
            name, row = fact
            rows = found.get(name)
            if rows is None:
                found[name] = [row]
            else:
                rows.append(row)
    except (TypeError, ValueError):
        raise RowError(f"a fact is a pair of a relation and a row, but got {fact!r}") from None
    return found


def _rows(name: str, rows: Iterable[Sequence[Any]]) -> Iterable[Sequence[Any]]:
    if not isinstance(rows, Iterable):
        raise RowError(f"expected rows of `{name}`, but got {rows!r}")
    return rows


def cancel(plus: Delta, minus: Delta) -> None:
    """Drop rows that were deleted and added again: they have not changed."""
    for name in list(minus):
        added = plus.get(name)
        if added is None:
            continue
        both = set(added).intersection(minus[name])
        if both:
            for delta in (plus, minus):
                rest = [row for row in delta[name] if row not in both]
                if rest:
                    delta[name] = rest
                else:
                    del delta[name]
