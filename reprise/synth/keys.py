"""Semantic keys, derived from patterns: what of a node a pattern looks at (first paper, §3.3).

A pattern's body is a conjunction. For each of its nodes, the *local* literals are those about that
node, its operands and its results alone; local and remaining literals share some variables, which
the node *exports*: the tensors by which it hangs together with the pattern's other nodes, and the
values that it is compared with there. The key of a candidate at that position is the set of
exported bindings for which all local literals hold.

So two candidates with the same operator and key are indistinguishable to the pattern: the body is
a join of the local literals with the rest, and a join sees of its one side only the projection on
the shared variables. A range, a membership or a fixed attribute decides whether there is a binding
at all: one bit. Conditions on the graph around (reachability, fan-out, what is an output) are not
local, and contribute nothing.

Two kinds of key: ``exact`` is as above, and names the very tensors that are shared. ``paper`` names
of a shared tensor only the operator that makes it, and of a shared value nothing, which excludes
more than what was rejected (``floor`` after *any* sum).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reprise.datalog import Database
from reprise.lang import core
from reprise.lang.declared import Pattern
from reprise.patterns.truth import Bindings, Solver, Unknown

Key = frozenset[tuple[core.Value, ...]]

_LOCAL = frozenset(
    {
        *("node", "arity", "input", "results", "output", "in_body"),
        *("attr", "attr_len", "attr_at", "attr_given"),
        *("tensor", "kind", "dtype", "unknown_dtype", "rank", "unknown_rank", "dim", "unknown_dim"),
        *("symbol", "elems", "shape", "initializer", "graph_input", "overridable"),
        *("value_all", "value_at", "value_min", "value_max", "value_nan", "value_inf"),
        *("value_negzero", "value_integral", "unknown_value"),
    }
)
"""Relations that say something of one node or tensor and are there when it is."""


@dataclass(frozen=True, slots=True)
class Position:
    """A node of one of a pattern's alternatives: the literals about it and what it exports."""

    pattern: str
    node: str
    literals: tuple[core.Literal, ...]
    tensors: tuple[str, ...]
    values: tuple[str, ...]


def positions(pattern: Pattern) -> dict[str, tuple[Position, ...]]:
    """For each of the pattern's nodes, its position in each alternative."""
    return {
        node: tuple(
            _position(pattern.name, node, (*a.structure, *a.conditions))
            for a in pattern.alternatives
        )
        for node in pattern.nodes
    }


def _position(pattern: str, node: str, body: Sequence[core.Literal]) -> Position:
    mine = {f"N_{node}"}
    tensors = {
        term.name
        for literal in body
        if isinstance(literal, core.Atom)
        and literal.relation in ("input", "output")
        and literal.terms[0] == core.Var(f"N_{node}")
        and isinstance(term := literal.terms[2], core.Var)
    }
    known = mine | tensors
    local: list[core.Literal] = []
    bound = set(known)
    grown = True
    pending = [literal for literal in body if not isinstance(literal, core.Aggregate)]
    while grown:
        grown = False
        for literal in list(pending):
            names = set(core.variables(literal))
            if _is_about(literal, known) or (
                not isinstance(literal, core.Atom) and names and names <= bound
            ):
                local.append(literal)
                pending.remove(literal)
                bound |= names
                grown = True
    elsewhere = [x for x in body if not any(x is y for y in local)]
    shared = {v for x in elsewhere for v in core.variables(x)} & bound
    return Position(
        pattern,
        node,
        tuple(local),
        tuple(sorted(shared & tensors)),
        tuple(sorted(shared - tensors - mine)),
    )


def _is_about(literal: core.Literal, known: set[str]) -> bool:
    """Whether an atom states a fact of an entity in ``known``, which may bind values."""
    if not isinstance(literal, core.Atom) or literal.relation not in _LOCAL or not literal.terms:
        return False
    owner = literal.terms[0]
    entities = {n for n in core.variables(literal) if n.startswith(("N_", "T_"))}
    return isinstance(owner, core.Var) and owner.name in known and entities <= known


class Keys:
    """Keys of candidates, for a set of patterns over one growing database."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        program: core.Program,
        database: Database,
        *,
        exact: bool = True,
    ) -> None:
        self._patterns = {p.name: p for p in patterns}
        self._positions: dict[str, dict[str, tuple[Position, ...]]] = {}
        self._solver = Solver(program, database)
        self._exact = exact

    def learn(self, patterns: Iterable[Pattern]) -> None:
        """Answer for these patterns too."""
        self._patterns.update({p.name: p for p in patterns})

    def of(
        self, pattern: str, node: str, candidate: int, makers: Mapping[int, str]
    ) -> tuple[Key, ...]:
        """The keys of node ``candidate`` (whose facts are in the database) at the position that
        the pattern calls ``node``, one for each alternative. ``makers`` has the operator that
        makes each tensor, for keys of the paper's kind."""
        found = self._positions.get(pattern)
        if found is None:
            found = self._positions[pattern] = positions(self._patterns[pattern])
        return tuple(
            frozenset(self._bindings(position, candidate, makers)) for position in found[node]
        )

    def _bindings(
        self, position: Position, candidate: int, makers: Mapping[int, str]
    ) -> Iterator[tuple[core.Value, ...]]:
        start: Bindings = {f"N_{position.node}": candidate}
        for bindings in self._solver.solutions(position.literals, start):
            row: list[core.Value] = []
            for name in position.tensors:
                tensor = bindings.get(name)
                if isinstance(tensor, int) and tensor < candidate:
                    row.append(tensor if self._exact else makers.get(tensor, ""))
                else:
                    row.append(-1)  # one of its own results
            if self._exact:
                for name in position.values:
                    value = bindings.get(name)
                    row.append("?" if value is None or isinstance(value, Unknown) else value)
            yield tuple(row)
