"""Facts as callers give them, and bundles of changed rows as the engine passes them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprise.lang.core import Row

Delta = dict[str, list[Row]]
"""Stored rows by relation or view."""

Facts = Mapping[str, Iterable[Sequence[Any]]] | Iterable[tuple[str, Sequence[Any]]]
"""Rows by relation, or (relation, row) pairs."""


def rereadable(facts: Facts) -> Facts:
    """The same facts, copied if they can be read only once."""
    if isinstance(facts, Mapping):
        if any(iter(rows) is rows for rows in facts.values()):
            return {name: list(rows) for name, rows in facts.items()}
        return facts
    return list(facts) if iter(facts) is facts else facts


def grouped(facts: Facts) -> dict[str, list[Sequence[Any]]]:
    """Facts by relation."""
    if isinstance(facts, Mapping):
        return {name: list(rows) for name, rows in facts.items()}
    found: dict[str, list[Sequence[Any]]] = {}
    for name, row in facts:
        found.setdefault(name, []).append(row)
    return found


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
