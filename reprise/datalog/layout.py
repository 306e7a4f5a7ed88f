"""How a relation is laid out in memory, and the Python names under which rules reach it.

Every relation's rows are tuples in one dictionary, the *primary*, whose shape follows from the
declaration (:class:`Shape`). Secondary indexes map the values of some columns to the rows that
have them. Generated code refers to all of these by the names given here; one
:class:`Layout` per relation keeps names and shapes consistent between planner, loader and store.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from reprise.datalog.values import is_entity
from reprise.lang.core import Relation


class Shape(Enum):
    """The primary dictionary of a relation.

    - ``ROWS``: the rows; what they map to says nothing. Derived relations and those without a key.
    - ``KEYED``: key → row, for one key column.
    - ``NESTED``: first key column → remaining key columns → row: finds one row by its key and all
      rows of an owner without building a key tuple.
    - ``VALUES``: group → value, of an aggregate.
    """

    ROWS = "rows"
    KEYED = "keyed"
    NESTED = "nested"
    VALUES = "values"


@dataclass(frozen=True)
class Layout:
    """Shape and names of one relation. ``name`` is unique among a database's layouts."""

    relation: Relation
    shape: Shape
    name: str

    @cached_property
    def key(self) -> tuple[int, ...]:
        """The key columns that the primary dictionary uses; none for ``ROWS``."""
        if self.shape not in (Shape.KEYED, Shape.NESTED):
            return ()
        return tuple(i for i, column in enumerate(self.relation.columns) if column.key)

    @cached_property
    def rows(self) -> str:
        """The name of the primary dictionary."""
        return f"{self.name}_{'values' if self.shape is Shape.VALUES else 'rows'}"

    @cached_property
    def new(self) -> str:
        """The name of the list of rows derived in the current round."""
        return f"{self.name}_new"

    @cached_property
    def store(self) -> str:
        """The name of the store object itself."""
        return f"{self.name}_store"

    @cached_property
    def scan(self) -> str:
        """The name of a function that returns an iterable of all rows."""
        return f"{self.name}_scan"

    def index(self, columns: tuple[int, ...]) -> str:
        """The name of the index on some columns: ``edge_by_src_and_pos``."""
        names = [_identifier(self.relation.columns[i].name) for i in columns]
        if any("_and_" in name for name in names):
            names = [str(i) for i in columns]
        return f"{self.name}_by_{'_and_'.join(names)}"

    def by_value(self, column: int) -> bool:
        """Whether a column's values can be looked up by any variable's value as it is.

        Not so for ``any`` columns, which hold floats in their own form.
        """
        return self.relation.columns[column].type != "any"

    def dispatchable(self, column: int) -> bool:
        """Whether a column may be compared with constants by a dictionary look-up."""
        return dispatchable(self.relation, column)


def dispatchable(relation: Relation, column: int) -> bool:
    """Whether a column may be compared with constants by a dictionary look-up."""
    type_ = relation.columns[column].type
    return type_ in ("sym", "int", "bool") or is_entity(type_)


def shape_of(relation: Relation, derived: bool) -> Shape:
    """The primary's shape: keys count for base relations only, where they are enforced."""
    keys = [i for i, column in enumerate(relation.columns) if column.key]
    if derived or not keys:
        return Shape.ROWS
    return Shape.KEYED if len(keys) == 1 else Shape.NESTED


def _identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name)
    return f"_{text}" if text[:1].isdigit() else text


def unique_name(relation: str, taken: set[str]) -> str:
    """A Python identifier for ``relation`` that is not ``taken`` yet (and now is)."""
    stem = _identifier(relation)
    if keyword.iskeyword(stem):
        stem += "_"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name
