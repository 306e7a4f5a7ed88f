"""The growing-graph workload of the engine benchmark: facts, patterns, and the core program.

A graph of N nodes arrives node by node, about eight facts each. P patterns look for two to four
nodes with given operators, flow, attributes and sizes; 20 % of them also need an operator of some
class downstream, 15 % one anywhere, and 10 % an input that is constant by derivation. Everything
is drawn from a seed, so every engine sees the same graph and the same patterns.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from reprise.lang.core import (
    Atom,
    Column,
    Compare,
    Const,
    Literal,
    Member,
    Program,
    Relation,
    Row,
    Rule,
    Value,
    Var,
)

OPS = tuple(f"op{i:02}" for i in range(38))
SOURCES = ("input", "const")
CLASSES = {f"class{i}": tuple(OPS[(5 * i + j) % len(OPS)] for j in range(4)) for i in range(12)}
DTYPES = ("float32", "float16", "int32", "int64")
Fact = tuple[str, Row]


@dataclass(frozen=True)
class Pattern:
    """A pattern in a form that each engine's translation can read.

    ``nodes`` are operators, the sink last; ``edges`` (source, target, position) by node number;
    ``attributes`` (node, name, value), ``equal`` (node, node) share their ``axis``; ``large``
    (node, least number of elements); ``downstream``, ``present``: a class, or empty; ``constant``:
    a node number whose first input must be constant, or −1.
    """

    name: str
    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int, int], ...]
    attributes: tuple[tuple[int, str, int], ...]
    equal: tuple[tuple[int, int], ...]
    large: tuple[tuple[int, int], ...]
    downstream: str
    present: str
    constant: int


def graph(nodes: int, seed: int = 7) -> list[list[Fact]]:
    """The facts of each node, in the order in which they arrive."""
    rng = random.Random(seed)
    return [_node(rng, v) for v in range(nodes)]


def _node(rng: random.Random, v: int) -> list[Fact]:
    op = rng.choice(SOURCES) if v < 2 or rng.random() < 0.08 else rng.choice(OPS)
    facts: list[Fact] = [("node", (v, op))]
    if op not in SOURCES:
        for position in range(rng.choice((1, 2))):
            recent = rng.random() < 0.8
            source = rng.randrange(max(0, v - 12), v) if recent else rng.randrange(v)
            facts.append(("edge", (source, v, position)))
    if rng.random() < 0.6:
        facts.append(("attr", (v, "axis", rng.randrange(3))))
    if rng.random() < 0.2:
        facts.append(("attr", (v, "keepdims", rng.randrange(2))))
    rank = rng.choice((1, 2, 2, 3))
    numel = 1
    for axis in range(rank):
        extent = rng.choice((1, 2, 8, 17, 64, 256))
        numel *= extent
        facts.append(("dim", (v, axis, extent)))
    facts += [("dtype", (v, rng.choice(DTYPES))), ("rank", (v, rank)), ("numel", (v, numel))]
    return facts


def patterns(count: int, seed: int = 11) -> list[Pattern]:
    """The first ``count`` patterns of an endless list."""
    rng = random.Random(seed)
    return [_pattern(rng, i) for i in range(count)]


def _pattern(rng: random.Random, number: int) -> Pattern:
    size = rng.choice((2, 3, 3, 4))
    nodes = tuple(rng.choice(OPS) for _ in range(size))
    edges = [(i, i + 1, 0) for i in range(size - 1)]
    if size > 2 and rng.random() < 0.3:
        edges.append((rng.randrange(size - 2), size - 1, 1))
    attributes = ((rng.randrange(size), "axis", rng.randrange(3)),) if rng.random() < 0.4 else ()
    equal = ((size - 2, size - 1),) if rng.random() < 0.3 else ()
    large = ((rng.randrange(size), rng.choice((8, 64, 1024))),) if rng.random() < 0.5 else ()
    kind = number % 20  # 4 of 20 look downstream, 3 elsewhere, 2 for a constant
    some_class = rng.choice(sorted(CLASSES))
    return Pattern(
        f"m{number}",
        nodes,
        tuple(edges),
        attributes,
        equal,
        large,
        some_class if kind in (1, 6, 11, 16) else "",
        some_class if kind in (3, 8, 13) else "",
        0 if kind in (4, 14) else -1,
    )


def program(found: list[Pattern]) -> Program:
    """The core program: shared relations, and one relation of matches per pattern."""
    relations = {relation.name: relation for relation in _relations()}
    rules = _shared_rules()
    for pattern in found:
        columns = tuple(Column(f"v{i}", "node") for i in range(len(pattern.nodes)))
        relations[pattern.name] = Relation(pattern.name, columns)
        rules.append(_pattern_rule(pattern))
    return Program(relations, tuple(rules))


def _relations() -> list[Relation]:
    def entity(name: str, *columns: Column, older: tuple[str, ...] = ()) -> Relation:
        return Relation(name, columns, entity=True, older=older)

    v = Column("v", "node", key=True)
    return [
        entity("node", v, Column("op", "sym")),
        entity(
            "edge",
            Column("src", "node"),
            Column("dst", "node", key=True),
            Column("pos", "int", key=True),
            older=("src",),
        ),
        entity("attr", v, Column("name", "sym", key=True), Column("value", "any")),
        entity("dim", v, Column("axis", "int", key=True), Column("extent", "int")),
        entity("dtype", v, Column("d", "sym")),
        entity("rank", v, Column("r", "int")),
        entity("numel", v, Column("n", "int")),
        Relation("hasdown", (Column("v", "node"), Column("class", "sym"))),
        Relation("present", (Column("class", "sym"),)),
        Relation("nonconst", (Column("v", "node"),)),
        Relation("isconst", (Column("v", "node"),)),
    ]


def _atom(relation: str, *terms: str | int, negated: bool = False) -> Atom:
    """An atom whose uppercase and ``_`` terms are variables."""
    parts = tuple(
        Var(term)
        if isinstance(term, str) and (term[0].isupper() or term[0] == "_")
        else Const(term)
        for term in terms
    )
    return Atom(relation, parts, negated)


def _shared_rules() -> list[Rule]:
    edge = _atom("edge", "V", "W", "_1")
    rules = [
        Rule(_atom("hasdown", "V", "C"), (edge, _atom("hasdown", "W", "C")), "hasdown"),
        Rule(_atom("nonconst", "V"), (_atom("node", "V", "input"),), "nonconst"),
        Rule(_atom("nonconst", "W"), (edge, _atom("nonconst", "V")), "nonconst"),
        Rule(
            _atom("isconst", "V"),
            (_atom("node", "V", "_1"), _atom("nonconst", "V", negated=True)),
            "isconst",
        ),
    ]
    for name, members in CLASSES.items():
        values: tuple[Value, ...] = members
        some = Member(Var("O"), values)
        rules.append(Rule(_atom("hasdown", "V", name), (edge, _atom("node", "W", "O"), some)))
        rules.append(Rule(_atom("present", name), (_atom("node", "_1", "O"), some)))
    return rules


def _pattern_rule(pattern: Pattern) -> Rule:
    size = len(pattern.nodes)
    body: list[Literal] = [_atom("node", f"V{i}", op) for i, op in enumerate(pattern.nodes)]
    body += [_atom("edge", f"V{a}", f"V{b}", pos) for a, b, pos in pattern.edges]
    body += [_atom("attr", f"V{v}", name, value) for v, name, value in pattern.attributes]
    for i, (a, b) in enumerate(pattern.equal):
        body += [_atom("attr", f"V{a}", "axis", f"A{i}"), _atom("attr", f"V{b}", "axis", f"A{i}")]
    for i, (v, least) in enumerate(pattern.large):
        body += [_atom("numel", f"V{v}", f"N{i}"), Compare(">=", Var(f"N{i}"), Const(least))]
    if pattern.downstream:
        body.append(_atom("hasdown", f"V{size - 1}", pattern.downstream))
    if pattern.present:
        body.append(_atom("present", pattern.present))
    if pattern.constant >= 0:
        body += [_atom("edge", "C", f"V{pattern.constant}", 0), _atom("isconst", "C")]
    head = _atom(pattern.name, *(f"V{i}" for i in range(size)))
    return Rule(head, tuple(body), pattern.name)


def closure_program() -> Program:
    """Transitive closure, for the batch comparison."""
    columns = (Column("a", "int"), Column("b", "int"))
    path = _atom("path", "X", "Z")
    return Program(
        {"arc": Relation("arc", columns), "path": Relation("path", columns)},
        (
            Rule(path, (_atom("arc", "X", "Z"),)),
            Rule(path, (_atom("path", "X", "Y"), _atom("arc", "Y", "Z"))),
        ),
    )


def closure_arcs(nodes: int = 1000, arcs: int = 3000, seed: int = 5) -> list[Row]:
    """The arcs of a random acyclic graph."""
    rng = random.Random(seed)
    found: set[Row] = set()
    while len(found) < arcs:
        a, b = sorted((rng.randrange(nodes), rng.randrange(nodes)))
        if a < b:
            found.add((a, b))
    return sorted(found)
