"""Hypothesis strategies: stratified programs over a growing graph, facts, and ways to load them.

Relations d0 … d5 are derived, two to a stratum: a rule may negate or aggregate relations of lower
strata only, and is otherwise free to recurse. Every variable's type is in its name (N node,
T tensor, I int, S symbol), so that rules are well-typed by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Column,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Row,
    Rule,
    Value,
    Var,
)
from tests.datalog.coretext_reader import read

BASE = read("""
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation out(n: node key, i: int key, t: tensor) @entity @same(t)
relation use(n: node key, i: int key, t: tensor) @entity @older(t)
relation dim(t: tensor key, axis: int key, extent: int) @entity
relation attr(v: node key, name: sym key, value: any) @entity
relation tag(v: node, s: sym)
relation num(a: int, b: int)
""").relations

_LETTER = {"node": "N", "tensor": "T", "int": "I", "sym": "S"}
_SYMBOLS = ("a", "b")
Fact = tuple[str, Row]


@dataclass
class _Draft:
    """A rule in the making: which variables are bound so far."""

    bound: dict[str, str]
    body: list[Literal]
    wildcards: int = 0

    def of_type(self, type_: str) -> list[str]:
        return sorted(name for name, found in self.bound.items() if found == type_)


@st.composite
def programs(draw: st.DrawFn, products: bool = False, aggregates: bool = True) -> Program:
    """A program of three strata with two derived relations each."""
    relations = dict(BASE)
    for i in range(6):
        types = draw(st.lists(st.sampled_from(sorted(_LETTER)), min_size=0 if i else 1, max_size=2))
        columns = tuple(Column(f"c{n}", type_) for n, type_ in enumerate(types))
        relations[f"d{i}"] = Relation(f"d{i}", columns)
    kinds = ["count", "sum", "min", "max", *(["prod"] if products else [])]
    rules = [
        draw(_rules(relations, i, kinds if aggregates else []))
        for i in range(6)
        for _ in range(draw(st.integers(1, 2)))
    ]
    return Program(relations, tuple(rules))


@st.composite
def _rules(draw: st.DrawFn, relations: dict[str, Relation], head: int, kinds: list[str]) -> Rule:
    stratum = head // 2
    lower = [*BASE, *(f"d{i}" for i in range(2 * stratum))]
    readable = [*lower, *(f"d{i}" for i in range(2 * stratum, 2 * stratum + 2))]
    draft = _Draft({}, [])
    for _ in range(draw(st.sampled_from((1, 2, 2, 3)))):
        draft.body.append(draw(_positive(relations[draw(st.sampled_from(readable))], draft)))
    if draw(st.booleans()):
        draft.body.append(draw(_negated(relations[draw(st.sampled_from(lower))], draft)))
    if draw(st.integers(0, 3)) == 0:
        extra = draw(_comparison(draft))
        if extra is not None:
            draft.body.append(extra)
    if kinds and draw(st.integers(0, 4)) == 0:
        draft.body.append(draw(_aggregate(relations, lower, kinds, draft)))
    terms = [
        draw(_head_term(column.type, draft, relations)) for column in relations[f"d{head}"].columns
    ]
    body = draw(st.permutations(draft.body))
    return Rule(Atom(f"d{head}", tuple(terms)), tuple(body), f"rule for d{head}")


def _constants(type_: str) -> st.SearchStrategy[Value]:
    if type_ == "sym":
        return st.sampled_from(_SYMBOLS)
    if type_ == "any":
        return st.sampled_from((0, 1, 1.0, "a", "b"))
    return st.integers(0, 3)


@st.composite
def _positive(draw: st.DrawFn, relation: Relation, draft: _Draft) -> Atom:
    terms: list[Expr] = []
    for column in relation.columns:
        choice = draw(st.integers(0, 19))
        type_ = column.type
        if type_ == "any":
            type_ = draw(st.sampled_from(("any", "int", "sym")))
        if choice == 0 and type_ in ("int", "sym", "any"):
            terms.append(Const(draw(_constants(type_))))
        elif choice <= 4 or type_ == "any":
            draft.wildcards += 1
            terms.append(Var(f"_{draft.wildcards}"))
        else:
            name = f"{_LETTER[type_]}{draw(st.integers(1, 3))}"
            draft.bound[name] = type_
            terms.append(Var(name))
    return Atom(relation.name, tuple(terms))


@st.composite
def _negated(draw: st.DrawFn, relation: Relation, draft: _Draft) -> Atom:
    terms: list[Expr] = []
    for column in relation.columns:
        names = draft.of_type(column.type)
        if names and draw(st.integers(0, 3)):
            terms.append(Var(draw(st.sampled_from(names))))
        else:
            draft.wildcards += 1
            terms.append(Var(f"_{draft.wildcards}"))
    return Atom(relation.name, tuple(terms), negated=True)


@st.composite
def _comparison(draw: st.DrawFn, draft: _Draft) -> Literal | None:
    symbols, numbers = draft.of_type("sym"), draft.of_type("int")
    nodes = draft.of_type("node")
    if symbols and draw(st.booleans()):
        var = Var(draw(st.sampled_from(symbols)))
        values = draw(st.lists(st.sampled_from(_SYMBOLS), min_size=1, max_size=2, unique=True))
        return Member(var, tuple(values), draw(st.booleans()))
    if numbers:
        var = Var(draw(st.sampled_from(numbers)))
        other: Expr = Const(draw(st.integers(-1, 3)))
        if draw(st.booleans()):
            divisor = Var(draw(st.sampled_from(numbers)))
            other = Arith(draw(st.sampled_from("+-*/%")), (other, divisor))
        if draw(st.integers(0, 3)) == 0:
            draft.bound["I9"] = "int"
            return Compare("==", Var("I9"), Arith("%", (other, Const(4))))
        op = draw(st.sampled_from(("==", "!=", "<", "<=", ">", ">=")))
        return Compare(op, var, other)
    if len(nodes) > 1:
        return Compare(draw(st.sampled_from(("!=", "<"))), Var(nodes[0]), Var(nodes[1]))
    return None


@st.composite
def _aggregate(
    draw: st.DrawFn,
    relations: dict[str, Relation],
    lower: Sequence[str],
    kinds: list[str],
    draft: _Draft,
) -> Aggregate:
    inner = _Draft({}, [], draft.wildcards + 100)
    body = []
    for _ in range(draw(st.integers(1, 2))):
        atom = draw(_positive(relations[draw(st.sampled_from(list(lower)))], inner))
        body.append(_localised(atom, draft, draw(st.booleans())))
    inside = [
        term.name
        for atom in body
        for term in atom.terms
        if isinstance(term, Var) and term.name.startswith("I")
    ]
    kind = draw(st.sampled_from(kinds))
    value = Var(draw(st.sampled_from(inside))) if inside else None
    if value is None:
        kind = "count"
    result = "I8"
    draft.bound[result] = "int"
    return Aggregate(Var(result), kind, value, tuple(body))


def _localised(atom: Atom, draft: _Draft, shared: bool) -> Atom:
    """The atom with variables that the outer rule binds (if ``shared``), others renamed."""
    terms = [
        Var(f"{term.name}_in")
        if isinstance(term, Var)
        and not term.name.startswith("_")
        and not (shared and term.name in draft.bound)
        else term
        for term in atom.terms
    ]
    return Atom(atom.relation, tuple(terms))


@st.composite
def _head_term(draw: st.DrawFn, type_: str, draft: _Draft, relations: dict[str, Relation]) -> Expr:
    names = draft.of_type(type_)
    if not names:
        if type_ in ("int", "sym"):
            return Const(draw(_constants(type_)))
        name = f"{_LETTER[type_]}7"
        source = "node" if type_ == "node" else "dim"
        rest = tuple(Var(f"_h{i}{name}") for i in range(relations[source].arity - 1))
        draft.body.append(Atom(source, (Var(name), *rest)))
        draft.bound[name] = type_
        return Var(name)
    var = Var(draw(st.sampled_from(names)))
    if type_ == "int" and draw(st.integers(0, 4)) == 0:
        return Arith("%", (Arith("+", (var, Const(1))), Const(3)))
    return var


@st.composite
def entity_facts(draw: st.DrawFn, number: int) -> list[Fact]:
    """Everything about the ``number``-th node and its output tensor."""
    node, tensor = 2 * number, 2 * number + 1
    facts: list[Fact] = [("node", (node, draw(st.sampled_from(_SYMBOLS))))]
    older = list(range(number))
    for position in range(draw(st.integers(1, 2)) if older else 0):
        source = draw(st.sampled_from(older))
        facts.append(("edge", (2 * source, node, position)))
        if draw(st.booleans()):
            facts.append(("use", (node, position, 2 * source + 1)))
    if draw(st.booleans()):
        facts.append(("out", (node, 0, tensor)))
        for axis in range(draw(st.integers(0, 2))):
            facts.append(("dim", (tensor, axis, draw(st.integers(0, 2)))))
    if draw(st.booleans()):
        facts.append(("attr", (node, draw(st.sampled_from(_SYMBOLS)), draw(_constants("any")))))
    return facts


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 6) -> list[list[Fact]]:
    """Facts by entity, oldest first."""
    return [draw(entity_facts(i)) for i in range(draw(st.integers(2, max_nodes)))]


@st.composite
def loose_facts(draw: st.DrawFn, nodes: int) -> list[Fact]:
    """Facts that no entity owns."""
    facts: list[Fact] = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            node = 2 * draw(st.integers(0, nodes))
            facts.append(("tag", (node, draw(st.sampled_from(_SYMBOLS)))))
        else:
            facts.append(("num", (draw(st.integers(0, 3)), draw(st.integers(0, 3)))))
    return facts


@st.composite
def chunks(draw: st.DrawFn, graph: list[list[Fact]]) -> list[list[Fact]]:
    """The facts of a graph in commits: by entity, several entities at once, or in any order."""
    loose = draw(loose_facts(len(graph)))
    how = draw(st.sampled_from(("entities", "batches", "any order")))
    if how == "any order":
        facts = draw(st.permutations([*loose, *(fact for owned in graph for fact in owned)]))
        size = draw(st.integers(1, 6))
        return [list(facts[i : i + size]) for i in range(0, len(facts), size)]
    size = 1 if how == "entities" else draw(st.integers(2, 4))
    groups = [
        [fact for owned in graph[i : i + size] for fact in owned]
        for i in range(0, len(graph), size)
    ]
    for fact in loose:
        groups[draw(st.integers(0, len(groups) - 1))].append(fact)
    return groups
