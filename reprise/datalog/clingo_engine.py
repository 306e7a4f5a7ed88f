"""clingo behind the engine interface: re-solves from scratch whenever it is asked.

Needs the ``clingo`` package, which is imported with this module and not before. Invariant: no
state but the base facts is kept, so an answer cannot depend on how the facts came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import clingo

from reprise.datalog.errors import UnsupportedError
from reprise.datalog.export import predicate, to_clingo
from reprise.datalog.facts import Facts
from reprise.datalog.load import adapt
from reprise.datalog.values import plain_rows
from reprise.lang.core import Program, Row, Value


class ClingoEngine:
    """Base facts, and clingo's model of a program over them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._facts: dict[str, dict[Row, None]] = {}
        self._model: dict[str, list[Row]] | None = None

    def add(self, relation: str, *row: Any) -> None:
        """Add one base fact."""
        self.commit([(relation, row)])

    def commit(self, adds: Facts = (), deletes: Facts = ()) -> None:
        """Delete, then add base facts."""
        for relation, row in _pairs(deletes):
            self._facts.get(relation, {}).pop(self._adapted(relation, row), None)
        for relation, row in _pairs(adds):
            self._facts.setdefault(relation, {})[self._adapted(relation, row)] = None
        self._model = None

    def _adapted(self, relation: str, row: Sequence[Any]) -> Row:
        return adapt(self._program.relations[relation], row)

    def rows(self, relation: str) -> list[Row]:
        """All rows of a relation, sorted."""
        if self._model is None:
            self._model = self._solve()
        return plain_rows(self._program.relations[relation], self._model.get(relation, ()))

    def count(self, relation: str) -> int:
        """How many rows a relation has."""
        return len(self.rows(relation))

    def _solve(self) -> dict[str, list[Row]]:
        # Undefined arithmetic is meant to make a literal false; clingo would report it.
        control = clingo.Control(["--warn=none"], logger=lambda code, message: None)
        control.add("base", [], to_clingo(self._program, self._facts))
        control.ground([("base", [])])
        names = {predicate(name): name for name in self._program.relations}
        found: dict[str, list[Row]] = {}
        with control.solve(yield_=True) as handle:
            model = handle.model()
            if model is None:
                raise UnsupportedError("clingo found no model: the program is not stratified")
            for symbol in model.symbols(atoms=True):
                name = names[symbol.name]
                found.setdefault(name, []).append(tuple(map(_value, symbol.arguments)))
        return found


def _value(symbol: clingo.Symbol) -> Value:
    if symbol.type == clingo.SymbolType.Number:
        return symbol.number
    if symbol.type == clingo.SymbolType.String:
        return symbol.string
    return float(symbol.arguments[0].string)


def _pairs(facts: Facts) -> list[tuple[str, Sequence[Any]]]:
    if isinstance(facts, Mapping):
        return [(name, row) for name, rows in facts.items() for row in rows]
    return list(facts)
