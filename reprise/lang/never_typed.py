"""Rules that can never match because no operator has the element types that they ask for.

Comes in: a rule of the core program, and what types operators' ports may have. The types of tensors
that the rule's conditions allow are narrowed by each node's overloads until nothing changes; where
no type is left for a tensor, the rule asks for what never occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reprise.lang import core
from reprise.lang.ast import NOWHERE
from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.display import listed
from reprise.lang.dtypes import DTYPES
from reprise.lang.never import COMPARE, FLIPPED
from reprise.lang.overloads import ANY, Overload

Overloads = Callable[[str], Sequence[Overload] | None]
"""The overloads of an operator by name; None if nothing is known of its types."""

Cell = str
"""Tensors, variables and constants that must have one element type: the name of one of them."""


def type_clash(rule: core.Rule, overloads: Overloads) -> Diagnostic | None:
    """Why no graph has the element types that a body asks for, or None if some may have."""
    asked = _Asked.of(rule)
    nodes = list(_nodes(rule, overloads, asked))
    if not nodes:
        return None
    found = _narrowed(nodes, asked.types)
    if isinstance(found, _Clash):
        return found.told(rule, asked)
    for first, second, span in asked.differ:
        one = found.get(first, ANY)
        other = found.get(second, ANY)
        if first == second or not any(
            _may_differ(nodes, found, first, second, value, other) for value in one
        ):
            return _never(rule, span, "these element types are never different")
    return None


def _may_differ(
    nodes: Sequence[_Node],
    types: Mapping[Cell, frozenset[str]],
    first: Cell,
    second: Cell,
    value: str,
    other: frozenset[str],
) -> bool:
    chosen = {**types, first: frozenset({value}), second: other - {value}}
    return bool(chosen[second]) and not isinstance(_narrowed(nodes, chosen), _Clash)


# --- what a rule asks ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Asked:
    """What the conditions of a body say of element types: the types that are left for each cell,
    where each was asked about, and pairs that must differ."""

    types: dict[Cell, frozenset[str]] = field(default_factory=dict)
    places: dict[Cell, Span] = field(default_factory=dict)
    differ: list[tuple[Cell, Cell, Span | None]] = field(default_factory=list)
    _parent: dict[Cell, Cell] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: core.Rule) -> _Asked:
        asked = cls()
        for literal in rule.body:
            match literal:
                case core.Atom("dtype", (core.Var(tensor), core.Var() as found), False):
                    asked._join(_tensor(tensor), _value(found))
                case core.Compare("==", core.Var(a), core.Var(b)):
                    asked._join(_value(core.Var(a)), _value(core.Var(b)))
                    asked._join(_tensor(a), _tensor(b))
        for literal in rule.body:
            asked._read(literal)
        return asked

    def cell(self, name: Cell) -> Cell:
        """The cell that ``name`` belongs to."""
        while (parent := self._parent.get(name, name)) != name:
            name = parent
        return name

    def _join(self, a: Cell, b: Cell) -> None:
        self._parent.setdefault(a, a)
        self._parent.setdefault(b, b)
        self._parent[self.cell(a)] = self.cell(b)

    def _restrict(self, name: Cell, allowed: frozenset[str], span: Span | None) -> None:
        cell = self.cell(name)
        self.types[cell] = self.types.get(cell, ANY) & allowed
        if span is not None:
            self.places.setdefault(cell, span)

    def _read(self, literal: core.Literal) -> None:
        match literal:
            case core.Compare(op, core.Var() as var, core.Const(str() as name)) if op in _EQUALITY:
                self._restrict(_value(var), _only({name}, op == "=="), literal.span)
            case core.Compare(op, core.Const(str() as name), core.Var() as var) if op in _EQUALITY:
                self._restrict(_value(var), _only({name}, op == "=="), literal.span)
            case core.Compare("!=", core.Var() as a, core.Var() as b):
                first, second = self.cell(_value(a)), self.cell(_value(b))
                self.differ.append((first, second, literal.span))
            case core.Atom("dtype", (core.Var(tensor), core.Const(str() as name)), False):
                self._restrict(_tensor(tensor), frozenset({name}), literal.span)
            case core.Atom("attr", (_, _, core.Const(str() as name)), False):
                self._restrict(f"={name}", frozenset({name}), literal.span)
            case core.Member(core.Var() as var, values, negated):
                self._restrict(_value(var), _only(values, not negated), literal.span)
            case core.Compare(op, core.Arith("bits", (core.Var() as var,)), core.Const(width)):
                self._restrict(_value(var), _wide(op, width), literal.span)
            case core.Compare(op, core.Const(width), core.Arith("bits", (core.Var() as var,))):
                self._restrict(_value(var), _wide(FLIPPED[op], width), literal.span)


_EQUALITY = ("==", "!=")


def _tensor(name: str) -> Cell:
    return f"tensor {name}"


def _value(term: core.Expr) -> Cell:
    """The cell's name of a variable for a dtype, or of a dtype itself."""
    match term:
        case core.Var(name):
            return f"value {name}"
        case core.Const(value):
            return f"={value}"
    return ""


def _only(values: Sequence[core.Value] | set[str], inside: bool) -> frozenset[str]:
    listed = ANY & {value for value in values if isinstance(value, str)}
    return listed if inside else ANY - listed


def _wide(op: str, width: core.Value) -> frozenset[str]:
    if isinstance(width, str):
        return ANY
    return frozenset(name for name, dtype in DTYPES.items() if COMPARE[op](dtype.bits, width))


# --- what operators have ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Port:
    """An operand, result or attribute of a node that a rule speaks of."""

    side: str
    place: int | str
    cell: Cell
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Node:
    ops: tuple[str, ...]
    overloads: tuple[Overload, ...]
    ports: tuple[_Port, ...]


def _nodes(rule: core.Rule, overloads: Overloads, asked: _Asked) -> Iterator[_Node]:
    """The nodes of a body whose operators are known, with the ports whose types matter."""
    members = {
        literal.expr.name: literal.values
        for literal in rule.body
        if isinstance(literal, core.Member)
        and isinstance(literal.expr, core.Var)
        and not literal.negated
    }
    ports: dict[str, list[_Port]] = {}
    for literal in rule.body:
        match literal:
            case core.Atom(
                "input" | "output" as side,
                (core.Var(node), core.Const(int() as place), core.Var(tensor)),
                False,
            ):
                port = _Port(side, place, asked.cell(_tensor(tensor)), literal.span)
                ports.setdefault(node, []).append(port)
            case core.Atom("attr", (core.Var(node), core.Const(str() as name), value), False):
                port = _Port("attr", name, asked.cell(_value(value)), literal.span)
                ports.setdefault(node, []).append(port)
    for literal in rule.body:
        match literal:
            case core.Atom("node", (core.Var(node), core.Const(op)), False):
                ops: Sequence[core.Value] = (op,)
            case core.Atom("node", (core.Var(node), core.Var(name)), False) if name in members:
                ops = members[name]
            case _:
                continue
        known = [overloads(str(op)) for op in ops]
        if any(several is None for several in known):
            continue
        flat = tuple(one for several in known for one in several or ())
        typed = [p for p in ports.get(node, ()) if any(o.variable(p.side, p.place) for o in flat)]
        if typed:
            yield _Node(tuple(map(str, ops)), flat, tuple(typed))


# --- both together ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clash:
    """No overload of a node has the types that are left for its ports. ``given`` says what another
    node left of a cell."""

    node: _Node
    types: Mapping[Cell, frozenset[str]]
    given: Mapping[Cell, str]

    def told(self, rule: core.Rule, asked: _Asked) -> Diagnostic:
        label = listed([f"`{op}`" for op in self.node.ops[:3]], "or")
        if len(self.node.ops) > 3:
            label = f"any of {len(self.node.ops)} operators such as {label}"
        for port in self.node.ports:
            left, offered = self.types.get(port.cell, ANY), self._offered(port)
            if not left & offered:
                because = self.given.get(port.cell)
                return _never(
                    rule,
                    asked.places.get(port.cell) or port.span,
                    f"{self._named(port)} of {label} is never {_some(left)}"
                    + (f", and that is all that {because} gives" if because else ""),
                    f"it is {_some(offered)}",
                )
        ports = [
            f"{self._named(port)} {_some(left)}"
            for port in self.node.ports
            if (left := self.types.get(port.cell, ANY)) != ANY
        ]
        spans = [s for p in self.node.ports if (s := asked.places.get(p.cell)) is not None]
        return _never(
            rule,
            max(spans, key=lambda span: (span.line, span.column), default=None),
            f"{label} never has these element types together: {listed(ports, 'and')}",
        )

    def _offered(self, port: _Port) -> frozenset[str]:
        found = [_types(overload, port) for overload in self.node.overloads]
        return frozenset().union(*found)

    def _named(self, port: _Port) -> str:
        match port.side, port.place:
            case "attr", name:
                return f"attribute `{name}`"
            case "output", 0:
                return "the result"
            case "output", number:
                return f"result {number}"
        names = {n for o in self.node.overloads for n in o.names[int(port.place) :][:1]}
        return f"operand `{names.pop()}`" if len(names) == 1 else f"operand {port.place}"


def _types(overload: Overload, port: _Port) -> frozenset[str]:
    variable = overload.variable(port.side, port.place)
    return ANY if variable is None else overload.types[variable]


def _narrowed(
    nodes: Sequence[_Node], types: Mapping[Cell, frozenset[str]]
) -> dict[Cell, frozenset[str]] | _Clash:
    """The types that nodes leave for each cell."""
    left = dict(types)
    given: dict[Cell, str] = {}
    changed = True
    while changed:
        changed = False
        for node in nodes:
            offered = _offered_by(node, left)
            if offered is None:
                return _Clash(node, left, given)
            for cell, allowed in offered.items():
                before = left.get(cell, ANY)
                if before & allowed != before:
                    left[cell] = before & allowed
                    given[cell] = listed([f"`{op}`" for op in node.ops[:3]], "or")
                    changed = True
    return left


def _offered_by(
    node: _Node, left: Mapping[Cell, frozenset[str]]
) -> dict[Cell, frozenset[str]] | None:
    """For each cell at a node, the types that some overload can have there; None if none fits."""
    offered: dict[Cell, frozenset[str]] = {}
    fits = False
    for overload in node.overloads:
        types = dict(overload.types)
        own: dict[Cell, frozenset[str]] = {}
        for _ in range(2):  # ports meet in variables, and variables meet in cells
            for port in node.ports:
                variable = overload.variable(port.side, port.place)
                here = own.get(port.cell, left.get(port.cell, ANY))
                if variable is not None:
                    types[variable] = here = here & types[variable]
                own[port.cell] = here
        if not all(own.values()):
            continue
        fits = True
        for cell, allowed in own.items():
            offered[cell] = offered.get(cell, frozenset()) | allowed
    return offered if fits else None


def _never(rule: core.Rule, span: Span | None, message: str, hint: str | None = None) -> Diagnostic:
    name = (rule.name or rule.head.relation).removesuffix("__guard")
    return Diagnostic(
        "never-matches",
        f"`{name}` can never match: {message}",
        span or rule.span or NOWHERE,
        hint or "remove or correct one of the conditions",
    )


def _some(types: frozenset[str]) -> str:
    """Element types in words: `int8 or int32`, `any type but bool`."""
    ordered = [name for name in DTYPES if name in types]
    if len(ordered) > len(DTYPES) // 2:
        rest = [name for name in DTYPES if name not in types]
        return f"any type but {listed(rest, 'and')}" if rest else "of any type"
    return listed(ordered, "or")
