"""Which nodes can complete something: a look at a node before the engine is asked.

Most nodes of a growing graph complete no pattern and could not, by their operator, attributes and
operands alone. :class:`Triggers` says so without an engine, so that facts need only be made and
joined where something may come of it. In go a program and its roots (patterns, and relations whose
rows make a graph invalid); out comes, for a node that was just added, an :class:`Alarm`.

Why nothing is missed. Take a rule of a root, and of its body the literals that base relations of
entities decide: they say which nodes and tensors stand where. Facts of an entity arrive with it and
never change, so these literals come to hold when the youngest of those nodes arrives. For each
node variable that can be the youngest there is a *probe*: code that walks from that node up to its
operands and their makers, and tests what the literals say of them. A literal that cannot be tested
is left out, so a probe may say yes too often, but never no where the rule would match.

The other literals look at the graph around. Those that are settled when their entities arrive
(``reprise.datalog.growth``) need no more; nor does ``not graph_output(t)``, which only ceases to
hold, or a fan-out of 1 of a tensor that the rule reads. A rule with any others can match later,
when nodes arrive that are none of its own: its alarm *lasts*.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import count
from typing import Any

from reprise.datalog.blueprint import levels_of
from reprise.datalog.clauses import Clauses, renamed
from reprise.datalog.growth import Growth
from reprise.facts.facts import LISTED_ITEMS, list_text, value_of, value_rows
from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
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
    variables,
)
from reprise.uir.graph import Node, Tensor

_NEVER = frozenset({"body", "body_input", "body_output", "body_link", "captures", "in_body"})
"""Relations without rows: a generated graph has no sub-graphs."""
_GIVEN = frozenset({"env", "opset"})
"""Base relations of no entity, whose rows are there before the first node."""
_UNFOLDED = 32
"""A rule that cannot be probed as it is becomes at most so many by unfolding what it uses."""
_DOUBTS = (TypeError, IndexError, OverflowError)
"""What a probe raises where it meets values that its rule's types do not foresee."""


class Alarm(IntEnum):
    """What a node can complete: ``NONE``; ``ONCE``: something, with this node; ``LASTS``:
    something, with this node or with others after it."""

    NONE = 0
    ONCE = 1
    LASTS = 2


Probe = Callable[[Node, Set[str]], bool]
"""Whether the youngest node may complete a rule, given the operators that the graph has."""


@dataclass(frozen=True, slots=True)
class _Probing:
    """What a probe is made from: a rule's body and the node in it that is the youngest; the
    operators of that node (None: any), and whether its alarm lasts."""

    body: tuple[Literal, ...]
    node: str
    ops: frozenset[Value] | None
    lasts: bool


Given = Mapping[str, Sequence[Row]]
"""All rows of relations of no entity, which are there before the first node."""


class Triggers:
    """Probes for the roots of some programs. ``unprobed``: roots that anything might complete.
    ``given``: what is known of ``env`` and ``opset``; rules that ask for anything else are left
    out."""

    def __init__(self, given: Given | None = None) -> None:
        self._given = given or {}
        self.unprobed: set[str] = set()
        self._relations: dict[str, Relation] = {}
        self._by_op: defaultdict[str, list[_Probing]] = defaultdict(list)
        self._of_any: list[_Probing] = []
        self._ready: dict[str, tuple[tuple[Probe, Alarm], ...]] = {}

    def learn(self, program: Program, roots: Iterable[str]) -> None:
        """Look for what completes these relations of a program, too."""
        analysis = _Analysis(program, frozenset(roots), self._given)
        self._relations.update(analysis.relations)
        self._ready.clear()
        for rule in analysis.rules():
            probings = analysis.probings(rule)
            if probings is None:
                self.unprobed.add(rule.head.relation)
                continue
            for probing in probings:
                if probing.ops is None:
                    self._of_any.append(probing)
                for op in probing.ops or ():
                    self._by_op[str(op)].append(probing)

    def alarm(self, node: Node, present: Set[str]) -> Alarm:
        """What a node may complete that was added last; ``present``: the graph's operators."""
        probes = self._ready.get(node.op)
        if probes is None:
            probes = self._ready[node.op] = self._prepare(node.op)
        if self.unprobed:
            return Alarm.LASTS
        found = Alarm.NONE
        for probe, alarm in probes:
            if alarm > found and probe(node, present):
                found = alarm
        return found

    def _prepare(self, op: str) -> tuple[tuple[Probe, Alarm], ...]:
        """The probes of an operator, compiled; those whose alarm lasts come first."""
        worst: dict[str, bool] = {}
        for probing in (*self._by_op.get(op, ()), *self._of_any):
            source = _Text(self._relations, probing.body, probing.node).source()
            worst[source] = worst.get(source, False) or probing.lasts
        made = [
            (_compiled(source), Alarm.LASTS if lasts else Alarm.ONCE)
            for source, lasts in worst.items()
        ]
        return tuple(sorted(made, key=lambda pair: -pair[1]))


class _Analysis:
    """The rules of the roots, and what is known of the relations in them."""

    def __init__(self, program: Program, roots: frozenset[str], given: Given) -> None:
        self._given = {
            name: [tuple(map(Const, row)) for row in rows] for name, rows in given.items()
        }
        program = program.restricted_to(roots)
        rules = [r for r in program.rules if not any(_is_never(x) for x in r.body)]
        self._roots = roots
        self.relations = program.relations
        self._derived = program.derived()
        self._by_head: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            self._by_head[rule.head.relation].append(rule)
        clauses = Clauses()
        clauses.add(Program(program.relations, tuple(rules)))
        depth = {name: level.number for level in levels_of(clauses) for name in level.relations}
        self._growth = Growth(clauses, depth)
        self._fresh = count()

    def rules(self) -> Iterator[Rule]:
        """The roots' rules, with tables of constants spelt out; unfolded where nothing in them says
        which node they are about."""
        for name in sorted(self._roots):
            for rule in self._by_head[name]:
                yield from self._unfolded(rule)

    def _with_tables(self, rule: Rule) -> Rule | None:
        """A rule with what relations that hold constants alone say of its variables; None if no row
        of one is what the rule asks for."""
        more: list[Literal] = []
        for atom in _positive(rule.body):
            rows = self._table(atom.relation)
            if rows is None:
                continue
            allowed = [_values(rule.body, term) for term in atom.terms]
            fits = [
                row
                for row in rows
                if all(v is None or c.value in v for v, c in zip(allowed, row, strict=True))
            ]
            if not fits:
                return None
            for i, term in enumerate(atom.terms):
                if isinstance(term, Var):
                    more.append(Member(term, tuple(dict.fromkeys(row[i].value for row in fits))))
        return replace(rule, body=(*rule.body, *more)) if more else rule

    def _table(self, relation: str) -> list[tuple[Const, ...]] | None:
        """The rows of a relation that facts alone define, or that are given."""
        if relation in self._given:
            return self._given[relation]
        rows = []
        for rule in self._by_head.get(relation, ()):
            terms = tuple(t for t in rule.head.terms if isinstance(t, Const))
            if rule.body or len(terms) < len(rule.head.terms):
                return None
            rows.append(terms)
        return rows or None

    def _unfolded(self, rule: Rule) -> list[Rule]:
        """The rule, or rules that say the same and can be probed."""
        done: list[Rule] = []
        pending = [rule]
        while pending:
            if len(done) + len(pending) > _UNFOLDED:
                return [rule]
            current = self._with_tables(pending.pop())
            if current is None:
                continue
            atom = None if self._is_telling(current.body) else self._to_unfold(current)
            if atom is None:
                done.append(current)
            else:
                pending += self._replaced(current, atom)
        return done

    def _is_telling(self, body: Sequence[Literal]) -> bool:
        """Whether a body says which nodes can be the youngest, and their operators."""
        youngest = self._youngest(body)
        return bool(youngest) and all(_choices(body, node) is not None for node in youngest)

    def _to_unfold(self, rule: Rule) -> Atom | None:
        return next(
            (
                atom
                for atom in _positive(rule.body)
                if atom.relation in self._derived
                and atom.relation not in self._roots
                and self._table(atom.relation) is None
            ),
            None,
        )

    def _replaced(self, rule: Rule, atom: Atom) -> Iterator[Rule]:
        """The rule with an atom replaced by the bodies that define it."""
        for definition in self._by_head[atom.relation]:
            number = next(self._fresh)
            names: dict[str, Expr] = {
                v: Var(f"{v} {number}") for x in definition.body for v in variables(x)
            }
            tests: list[Literal] = []
            for given, term in zip(atom.terms, definition.head.terms, strict=True):
                if isinstance(term, Var) and names.get(term.name) == Var(f"{term.name} {number}"):
                    names[term.name] = given
                else:
                    again = renamed(Compare("==", given, term), names)
                    tests.append(again)
            body = [renamed(x, names) for x in definition.body]
            rest = [x for x in rule.body if x is not atom]
            yield replace(rule, body=(*body, *tests, *rest))

    # --- what a body says ------------------------------------------------------------------------

    def _is_about(self, atom: Atom, sort: str) -> bool:
        """Whether an atom states a fact of an entity of that sort."""
        relation = self.relations[atom.relation]
        return relation.entity and bool(atom.terms) and relation.columns[0].type == sort

    def _youngest(self, body: Sequence[Literal]) -> list[str]:
        """Node variables that can be the youngest of all entities in a body: no other node reads
        what they make. None if a tensor's place is unknown, or anything else's."""
        facts = [a for a in _positive(body) if self.relations[a.relation].entity]
        nodes: dict[str, None] = {}
        made: dict[str, set[str]] = defaultdict(set)
        read: set[str] = set()
        tensors: set[str] = set()
        for atom in facts:
            owner = atom.terms[0] if atom.terms else None
            if not isinstance(owner, Var):
                return []
            if self._is_about(atom, "node"):
                nodes[owner.name] = None
                if atom.relation in ("input", "output") and isinstance(atom.terms[2], Var):
                    tensor = atom.terms[2].name
                    if atom.relation == "input":
                        read.add(tensor)
                    else:
                        made[owner.name].add(tensor)
            elif self._is_about(atom, "tensor"):
                tensors.add(owner.name)
            else:
                return []
        if not tensors <= read.union(*made.values()):
            return []
        return [node for node in nodes if not made[node] & read]

    def _lasts(self, body: Sequence[Literal]) -> bool:
        """Whether a literal can come to hold after all entities of the body are there."""
        entities = {
            name
            for atom in _positive(body)
            if self.relations[atom.relation].entity
            for name in variables(atom)
        }
        return not all(self._stays(literal, body, entities) for literal in body)

    def _stays(self, literal: Literal, body: Sequence[Literal], entities: set[str]) -> bool:
        if isinstance(literal, Aggregate):
            return False
        if not isinstance(literal, Atom):
            return True
        relation = self.relations[literal.relation]
        if literal.relation in _GIVEN or self._table(literal.relation) is not None:
            return True
        if literal.relation not in self._derived:
            return relation.entity or literal.negated
        if literal.relation == "fanout" and not literal.negated:
            return _is_read_once(literal, body)
        return any(
            isinstance(term, Var) and term.name in entities
            for term in (literal.terms[i] for i in self._growth.settled(literal.relation))
        )

    def probings(self, rule: Rule) -> list[_Probing] | None:
        """The probes of a rule, one for each node that can be the youngest; None if it is not
        known which can."""
        youngest = self._youngest(rule.body)
        if not youngest:
            return None
        lasts = self._lasts(rule.body)
        made = []
        for node in youngest:
            body = (*rule.body, *self._spelt_out(rule.body))
            made.append(_Probing(body, node, _choices(rule.body, node), lasts))
        return made

    def _spelt_out(self, body: Sequence[Literal]) -> Iterator[Literal]:
        """What derived atoms say that stand for facts about their own arguments alone."""
        for atom in _positive(body):
            if atom.relation not in self._derived or len(self._by_head[atom.relation]) != 1:
                continue
            (definition,) = self._by_head[atom.relation]
            head = definition.head.terms
            names = {
                t.name: given
                for t, given in zip(head, atom.terms, strict=True)
                if isinstance(t, Var)
            }
            if len(names) < len(head):
                continue
            for literal in definition.body:
                if variables(literal) and names.keys() >= set(variables(literal)):
                    yield renamed(literal, names)


def _positive(body: Iterable[Literal]) -> Iterator[Atom]:
    return (x for x in body if isinstance(x, Atom) and not x.negated)


def _is_never(literal: Literal) -> bool:
    return isinstance(literal, Atom) and not literal.negated and literal.relation in _NEVER


def _is_read_once(fanout: Atom, body: Sequence[Literal]) -> bool:
    """Whether ``fanout(t, n)`` asks whether a tensor that the body reads has no other reader: the
    number of readers only grows."""
    tensor, number = fanout.terms
    read = any(a.relation == "input" and a.terms[2] == tensor for a in _positive(body))
    return read and (
        number == Const(1) or any(isinstance(x, Compare) and _says_one(x, number) for x in body)
    )


def _says_one(literal: Compare, number: Expr) -> bool:
    sides = (literal.left, literal.right)
    return literal.op == "==" and sides in ((number, Const(1)), (Const(1), number))


def _nodes(body: Sequence[Literal]) -> Iterator[str]:
    """The nodes of which a body names the operator."""
    for atom in _positive(body):
        if atom.relation == "node" and isinstance(atom.terms[0], Var):
            yield atom.terms[0].name


def _choices(body: Sequence[Literal], node: str) -> frozenset[Value] | None:
    """The operators that a body leaves a node; None if it says nothing."""
    found: frozenset[Value] | None = None
    for atom in _positive(body):
        if atom.relation == "node" and atom.terms[0] == Var(node):
            found = _both(found, _values(body, atom.terms[1]))
    return found


def _values(body: Sequence[Literal], term: Expr) -> frozenset[Value] | None:
    """The values that a body leaves a term; None if it says nothing."""
    found = frozenset((term.value,)) if isinstance(term, Const) else None
    for x in body:
        if isinstance(x, Member) and x.expr == term and not x.negated:
            found = _both(found, frozenset(x.values))
        if isinstance(x, Compare) and x.op == "==" and term in (x.left, x.right):
            other = x.right if x.left == term else x.left
            if isinstance(other, Const):
                found = _both(found, frozenset((other.value,)))
    return found


def _both(one: frozenset[Value] | None, other: frozenset[Value] | None) -> frozenset[Value] | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


# --- probes as Python text -----------------------------------------------------------------------


class _Text:
    """A probe's text: statements that return False as soon as a literal does not hold.

    ``names``: what is known of a body's variables, as Python expressions.
    """

    def __init__(
        self, relations: Mapping[str, Relation], body: Sequence[Literal], node: str
    ) -> None:
        self._relations = relations
        self._lines: list[str] = []
        self._names = {node: "node"}
        self._number = count()
        self._uses: defaultdict[str, int] = defaultdict(int)
        for other in dict.fromkeys(_nodes(body)):
            ops = None if other == node else _choices(body, other)
            if ops is not None:
                self._lines.append(f"if present.isdisjoint({sorted(map(str, ops))}): return False")
        for literal in body:
            for name in variables(literal):
                self._uses[name] += 1
        pending = list(body)
        while True:
            left = [x for x in pending if not self._write(x)]
            if len(left) == len(pending):
                break
            pending = left
        self._some_items(pending)

    def source(self) -> str:
        """The function, called ``probe``."""
        lines = "".join(f"        {line}\n" for line in self._lines)
        return (
            f"def probe(node, present):\n    try:\n{lines}        return True\n"
            "    except doubts:\n        return True\n"
        )

    def _write(self, literal: Literal) -> bool:
        """Write what tests a literal; False if that is not possible, or not yet."""
        match literal:
            case Atom(negated=False):
                return self._atom(literal)
            case Compare():
                return self._compare(literal)
            case Member():
                return self._test(literal)
        return False

    def _atom(self, atom: Atom) -> bool:
        owner = atom.terms[0] if atom.terms else None
        if not isinstance(owner, Var) or not self._relations[atom.relation].entity:
            return False
        if atom.relation == "output" and owner.name not in self._names:
            return self._maker(owner, *atom.terms[1:])
        known = self._names.get(owner.name)
        if known is None:
            return False
        texts = [self._text(term) for term in atom.terms]
        match atom.relation:
            case "node":
                self._equal(atom.terms[1], f"{known}.op")
            case "arity":
                self._equal(atom.terms[1], f"len({known}.inputs)")
            case "results":
                self._equal(atom.terms[1], f"len({known}.outputs)")
            case "input" | "output" if texts[1] is not None:
                self._same(atom.terms[2], f"item({known}.{atom.relation}s, {texts[1]})")
            case "attr" if texts[1] is not None:
                self._equal(atom.terms[2], f"attribute({known}, {texts[1]})", absent=True)
            case "attr_given" if texts[1] is not None:
                self._lines.append(f"if {texts[1]} not in {known}.given: return False")
            case "attr_len" if texts[1] is not None:
                self._equal(atom.terms[2], f"length({known}, {texts[1]})", absent=True)
            case "attr_at" if texts[1] is not None and texts[2] is not None:
                value = f"item(items({known}, {texts[1]}), {texts[2]})"
                self._equal(atom.terms[3], value, absent=True)
            case "dtype":
                self._equal(atom.terms[1], f"{known}.type.dtype")
            case "rank":
                self._equal(atom.terms[1], f"len({known}.type.shape)")
            case "elems":
                self._equal(atom.terms[1], f"prod({known}.type.shape)")
            case "dim" if texts[1] is not None:
                self._equal(atom.terms[2], f"extent({known}, {texts[1]})", absent=True)
            case "dim" if texts[2] is not None:
                self._lines.append(f"if {texts[2]} not in {known}.type.shape: return False")
                return False  # once the axis is known there is more to test
            case "value_all" | "value_min" | "value_max":
                value = f"value_row({known}, {atom.relation!r})"
                self._equal(atom.terms[1], value, absent=True)
            case "value_nan" | "value_inf" | "value_negzero" | "value_integral":
                value = f"value_row({known}, {atom.relation!r})"
                self._lines.append(f"if {value} is None: return False")
            case "initializer" | "value_at":
                self._lines.append(f"if {known}.value is None: return False")
            case "graph_input":
                self._lines.append(
                    f"if {known}.producer is not None or {known}.value is not None: return False"
                )
            case _:
                return False
        return True

    def _maker(self, node: Var, number: Expr, tensor: Expr) -> bool:
        """Go from a tensor to the node that makes it."""
        known = self._text(tensor)
        if known is None:
            return False
        name = self._bind(node, f"{known}.producer")
        self._lines.append(f"if {name} is None: return False")
        place = self._text(number)
        if place is not None:
            self._lines.append(f"if item({name}.outputs, {place}) is not {known}: return False")
        return True

    def _some_items(self, pending: Sequence[Literal]) -> None:
        """Atoms about items of list attributes at a place that nothing else says: is there a place
        where all holds that is said of the items? One test for each such place."""
        by_place: defaultdict[tuple[str, str], list[tuple[str, Expr]]] = defaultdict(list)
        for atom in _positive(pending):
            if atom.relation == "attr_at":
                owner, key, place, item = atom.terms
                node, name = self._text(owner), self._text(key)
                if node and name and isinstance(place, Var):
                    by_place[node, place.name].append((f"items({node}, {name})", item))
        for lists in by_place.values():
            tests = []
            known = dict(self._names)
            for number, (_, item) in enumerate(lists):
                if (text := self._text(item)) is not None:
                    tests.append(f"i{number} == {text}")
                elif isinstance(item, Var):
                    self._names[item.name] = f"i{number}"
            fresh = self._names.keys() - known.keys()
            for x in pending:
                if isinstance(x, Compare | Member) and not fresh.isdisjoint(variables(x)):
                    tests += [text for text in [self._condition(x)] if text is not None]
            self._names = known
            if tests:
                targets = "".join(f"i{number}, " for number in range(len(lists)))
                places = f"zip({', '.join(values for values, _ in lists)})"
                some = f"any({' and '.join(tests)} for {targets} in {places})"
                self._lines.append(f"if not {some}: return False")

    def _condition(self, literal: Compare | Member) -> str | None:
        """A literal as a Python expression; None if something in it is not known."""
        if isinstance(literal, Compare):
            left, right = self._text(literal.left), self._text(literal.right)
            return None if left is None or right is None else f"{left} {literal.op} {right}"
        text = self._text(literal.expr)
        # Python does not tell 1 from 1.0: of what is *not* in a set it would say too much
        if text is None or (
            literal.negated and not all(isinstance(v, str) for v in literal.values)
        ):
            return None
        listed = "".join(f"{_constant(value)}, " for value in literal.values)
        return f"{text} {'not in' if literal.negated else 'in'} ({listed})"

    def _compare(self, literal: Compare) -> bool:
        left, right = self._text(literal.left), self._text(literal.right)
        if literal.op == "==":
            for one, other in ((literal.left, right), (literal.right, left)):
                if isinstance(one, Var) and one.name not in self._names and other is not None:
                    self._bind(one, other)
                    return True
        return self._test(literal)

    def _test(self, literal: Compare | Member) -> bool:
        text = self._condition(literal)
        if text is not None:
            self._lines.append(f"if not ({text}): return False")
        return text is not None

    def _equal(self, term: Expr, value: str, *, absent: bool = False) -> None:
        """A value is the term's; where there may be none, one is wanted."""
        known = self._text(term)
        if known is not None:
            self._lines.append(f"if {value} != {known}: return False")
        elif isinstance(term, Var) and self._uses[term.name] > 1:
            name = self._bind(term, value)
            if absent:
                self._lines.append(f"if {name} is None: return False")
        elif absent:
            self._lines.append(f"if {value} is None: return False")

    def _same(self, term: Expr, entity: str) -> None:
        """An entity is there, and is the term's."""
        known = self._text(term)
        if known is not None:
            self._lines.append(f"if {entity} is not {known}: return False")
        elif isinstance(term, Var):
            name = self._bind(term, entity)
            self._lines.append(f"if {name} is None: return False")

    def _bind(self, variable: Var, value: str) -> str:
        name = self._names[variable.name] = f"v{next(self._number)}"
        self._lines.append(f"{name} = {value}")
        return name

    def _text(self, expr: Expr) -> str | None:
        """An expression over what is known; None if something in it is not."""
        match expr:
            case Var(name):
                return self._names.get(name)
            case Const(value):
                return _constant(value)
            case Arith("+" | "-" | "*" as op, (left, right)):
                first, second = self._text(left), self._text(right)
                return None if first is None or second is None else f"({first} {op} {second})"
            case Arith("neg", (operand,)):
                text = self._text(operand)
                return None if text is None else f"(-{text})"
        return None


def _constant(value: Value) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


# --- what probes call ----------------------------------------------------------------------------


def _item(items: Sequence[Any], place: int) -> Any:
    return items[place] if 0 <= place < len(items) else None


def _attribute(node: Node, name: str) -> Value | None:
    """The value that the fact about an attribute has; None if there is no fact."""
    value = node.attributes.get(name)
    if value is None:
        return None
    if isinstance(value, tuple):
        return None if len(value) > LISTED_ITEMS else list_text(value)
    return value_of(value)


def _length(node: Node, name: str) -> int | None:
    value = node.attributes.get(name)
    return len(value) if isinstance(value, tuple) else None


def _items(node: Node, name: str) -> list[Value | None]:
    value = node.attributes.get(name)
    if not isinstance(value, tuple) or len(value) > LISTED_ITEMS:
        return []
    return [value_of(item) for item in value]


def _value_row(tensor: Tensor, relation: str) -> Value | None:
    """What a fact says of a stored value, ``"true"`` if it has no column more; None if there is no
    such fact."""
    if tensor.value is None:
        return None
    rows = (rest for name, rest in value_rows(tensor) if name == relation)
    row = next(rows, None)
    return row if row is None else (row[0] if row else "true")


def _extent(tensor: Any, axis: int) -> Any:
    shape = tensor.type.shape
    return shape[axis] if 0 <= axis < len(shape) else None


_ENVIRONMENT: dict[str, Any] = {
    "item": _item,
    "attribute": _attribute,
    "length": _length,
    "items": _items,
    "value_row": _value_row,
    "extent": _extent,
    "prod": math.prod,
    "doubts": _DOUBTS,
}


@cache
def _compiled(source: str) -> Probe:
    made: dict[str, Probe] = {}
    exec(source, _ENVIRONMENT, made)
    return made["probe"]
