"""A program that matches a pattern: the generator's other direction.

A pattern's body, with derived relations unfolded into what defines them, is a conjunction of facts
about nodes and tensors: so a witness is a graph that contains those facts. The nodes are built in
the order of data flow. The operator, the operands and the attributes that the body fixes are
given to the operator's sampler, the rest is drawn; whatever can be decided of the body by then is
asked of the engine, and a node that does not fit is taken back and drawn again. Extents, element
types and values are drawn from the numbers and words that the pattern itself mentions, and their
neighbours.
The finished graph is judged by the same matcher as any other model.
"""

from __future__ import annotations

import ast as python_ast
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

import numpy as np

from reprise.datalog import Database
from reprise.datalog.arithmetic import compare
from reprise.facts.facts import Fact, entity_facts
from reprise.lang import core
from reprise.lang.declared import Alternative, Pattern
from reprise.lang.dtypes import DTYPES
from reprise.lang.ruleset import RuleSet
from reprise.patterns.match import Finding, Match, Matcher
from reprise.patterns.truth import Bindings, Solver, Truth
from reprise.solve.sampling import DRAWN, Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth import values
from reprise.synth.generator import Unsupported
from reprise.synth.options import Options
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import LEFT_OUT, WhyNot, read_policies
from reprise.uir.graph import Array, Attribute, Graph, Node, Role, Scalar, Tensor, TensorType
from reprise.uir.inference import Typing
from reprise.uir.program import Program
from reprise.uir.types import numpy_dtype

OPSETS = (21, 13, 15, 17, 18, 20, 22, 23)
_SAYS_WHERE = {"initializer", "graph_input", "varies", "constant"}
_DRAWS = 40
"""How often a node is drawn before the attempt starts over."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A program that matches the pattern, in ``environment``: for certain, or else as far as a
    graph can say, where the pattern has conditions on data that are known only at run time."""

    pattern: Pattern
    program: Program
    environment: dict[str, Scalar]
    certainty: Truth


@dataclass(frozen=True, slots=True)
class NoWitness:
    """None was found in ``attempts`` attempts. ``nearest`` is the near miss that got furthest,
    with what it was found in."""

    pattern: Pattern
    attempts: int
    nearest: Finding | None = None
    match: Match | None = None


@dataclass
class _Goal:
    """A body to satisfy: node variables in the order of data flow, with what is known of them."""

    literals: tuple[core.Literal, ...]
    nodes: list[str] = field(default_factory=list)
    ops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[str, list[tuple[core.Expr, str]]] = field(default_factory=dict)
    outputs: dict[str, list[tuple[core.Expr, str]]] = field(default_factory=dict)
    entities: frozenset[str] = frozenset()

    def choices(self, term: core.Expr) -> tuple[core.Value, ...]:
        """The values that sets and equations leave a term; none if they say nothing of it."""
        return (term.value,) if isinstance(term, core.Const) else self._choices.get(term, ())

    @cached_property
    def _choices(self) -> dict[core.Expr, tuple[core.Value, ...]]:
        found: dict[core.Expr, tuple[core.Value, ...]] = {}
        for literal in self.literals:
            match literal:
                case core.Member(expr, members, negated=False):
                    found.setdefault(expr, members)
                case core.Compare("==", core.Var() as name, core.Const(value)):
                    found.setdefault(name, (value,))
                case core.Compare("==", core.Const(value), core.Var() as name):
                    found.setdefault(name, (value,))
        return found


class WitnessFinder:
    """Looks for witnesses of the patterns of one rule set.

    ``why_not`` and ``unsupported`` keep to what a target does, as for the generator.
    """

    def __init__(
        self,
        rules: RuleSet,
        signatures: Signatures,
        options: Options | None = None,
        *,
        why_not: WhyNot | None = None,
        unsupported: Unsupported | None = None,
    ) -> None:
        self.rules = rules
        self.signatures = signatures
        self.options = options or Options()
        self.why_not = why_not
        self.unsupported = unsupported
        self.policies = read_policies(rules)
        self.everything = tuple(
            name for name in sorted(signatures) if not signatures[name].flags & LEFT_OUT
        )
        self.by_head: dict[str, list[core.Rule]] = {}
        for rule in rules.program.rules:
            self.by_head.setdefault(rule.head.relation, []).append(rule)

    def find(self, pattern: Pattern, rng: Random, *, attempts: int = 400) -> Witness | NoWitness:
        """A witness of ``pattern``, or what came nearest. Same generator state, same answer."""
        matcher = Matcher(self.rules, [pattern], keep=False)
        hints = _Hints.of(pattern, self.by_head)
        nearest: tuple[int, Finding, Match] | None = None
        alternatives = sorted(pattern.alternatives, key=lambda a: len(a.structure))
        for number in range(attempts):
            alternative = alternatives[min(number // 4, number) % len(alternatives)]
            attempt = _Attempt(self, self._goal(alternative, rng), hints, rng, f"witness-{number}")
            program = attempt.run()
            if program is None:
                continue
            found = matcher.run(program.graph, attempt.environment)
            for finding in found.findings:
                if finding.certainty is Truth.YES or _depends_on_data(finding):
                    return Witness(pattern, program, attempt.environment, finding.certainty)
            missed = matcher.run(program.graph, attempt.environment, near=True)
            for finding in (*missed.findings, *missed.near):
                progress = len(finding.answer.steps)
                if nearest is None or progress > nearest[0]:
                    nearest = progress, finding, missed
        if nearest is None:
            return NoWitness(pattern, attempts)
        return NoWitness(pattern, attempts, nearest[1], nearest[2])

    # --- bodies ----------------------------------------------------------------------------------

    def _goal(self, alternative: Alternative, rng: Random) -> _Goal:
        """The alternative's body, unfolded by some choice of rules, and its nodes in order."""
        body = (*alternative.structure, *alternative.conditions)
        literals = tuple(self._unfold(body, rng, itertools.count(), 4))
        goal = _Goal(literals, entities=frozenset(self._entities(literals)))
        asked: dict[str, tuple[str, ...]] = {}
        for literal in literals:
            if not isinstance(literal, core.Atom) or literal.negated or not literal.terms:
                continue
            owner = literal.terms[0]
            if not isinstance(owner, core.Var):
                continue
            if literal.relation == "node":
                choices = tuple(map(str, goal.choices(literal.terms[1])))
                asked[owner.name] = asked.get(owner.name) or choices
            elif literal.relation in ("input", "output"):
                tensor = literal.terms[2]
                if isinstance(tensor, core.Var):
                    table = goal.inputs if literal.relation == "input" else goal.outputs
                    table.setdefault(owner.name, []).append((literal.terms[1], tensor.name))
                    asked.setdefault(owner.name, ())
        for name, choices in asked.items():
            goal.ops[name] = choices or self.everything
        _derive_constants(goal)
        goal.nodes = _ordered(goal)
        return goal

    def _unfold(
        self,
        body: Iterable[core.Literal],
        rng: Random,
        fresh: Iterator[int],
        depth: int,
    ) -> Iterator[core.Literal]:
        body = list(body)
        made = {a.terms[2] for a in body if isinstance(a, core.Atom) and a.relation == "output"}
        for literal in body:
            rules = self.by_head.get(literal.relation) if isinstance(literal, core.Atom) else None
            if (
                rules is None
                or not isinstance(literal, core.Atom)
                or literal.negated
                # It holds of most results, unless all sources are stored.
                or (literal.relation == "varies" and literal.terms[0] in made)
            ):
                yield literal
                continue
            flat = [r for r in rules if literal.relation not in core.relations_in(r.body)]
            choices = flat if depth <= 0 or (flat and rng.random() < 0.7) else rules
            if not choices or depth < -4:
                yield literal
                continue
            rule = choices[int(rng.random() ** 2 * len(choices))]  # the first are the simplest
            suffix = f"~{next(fresh)}"
            renaming: dict[str, core.Expr] = {}
            equalities: list[core.Literal] = []
            for term, value in zip(rule.head.terms, literal.terms, strict=True):
                if isinstance(term, core.Var) and term.name not in renaming:
                    renaming[term.name] = value
                else:
                    equalities.append(core.Compare("==", _renamed(term, renaming, suffix), value))
            inner = [_rename(part, renaming, suffix) for part in rule.body]
            yield from equalities
            yield from self._unfold(inner, rng, fresh, depth - 1)

    def _entities(self, literals: Iterable[core.Literal]) -> Iterator[str]:
        """Variables that stand for nodes and tensors."""
        for literal in literals:
            if isinstance(literal, core.Atom):
                relation = self.rules.program.relations.get(literal.relation)
                if relation is None:
                    continue
                for term, column in zip(literal.terms, relation.columns, strict=True):
                    if isinstance(term, core.Var) and column.type in ("node", "tensor"):
                        yield term.name


def _depends_on_data(finding: Finding) -> bool:
    """Whether a possible match is open only for what the values at run time are."""
    return finding.certainty is Truth.UNKNOWN and all(
        isinstance(step.literal, core.Compare | core.Member)
        or (isinstance(step.literal, core.Atom) and _is_about_data(step.literal.relation))
        for step in finding.answer.open_steps
    )


def _is_about_data(relation: str) -> bool:
    return relation.startswith(("value_", "has_")) or relation == "integral"


def _derive_constants(goal: _Goal) -> None:
    """Let an identity make each tensor that must be constant without being stored."""
    never: dict[str, set[str]] = {}
    for literal in goal.literals:
        if isinstance(literal, core.Atom) and literal.negated and literal.terms:
            owner = literal.terms[0]
            if isinstance(owner, core.Var):
                never.setdefault(owner.name, set()).add(literal.relation)
    made = {t for results in goal.outputs.values() for _, t in results}
    for name, relations in never.items():
        if {"initializer", "varies"} <= relations and name not in made:
            node, stored = f"N_of_{name}", f"T_of_{name}"
            goal.ops[node] = ("identity",)
            goal.inputs[node] = [(core.Const(0), stored)]
            goal.outputs[node] = [(core.Const(0), name)]
            constant = core.Atom("initializer", (core.Var(stored),))
            goal.literals = (*goal.literals, constant)
            goal.entities |= {node, stored}


def _ordered(goal: _Goal) -> list[str]:
    """The goal's nodes, each after those whose results it reads."""
    maker = {t: n for n, made in goal.outputs.items() for _, t in made}
    order: list[str] = []
    pending = list(goal.ops)
    while pending:
        ready = next(
            (
                n
                for n in pending
                if all(maker.get(t) in (None, n, *order) for _, t in goal.inputs.get(n, ()))
            ),
            pending[0],
        )
        pending.remove(ready)
        order.append(ready)
    return order


def _renamed(expr: core.Expr, renaming: Mapping[str, core.Expr], suffix: str) -> core.Expr:
    match expr:
        case core.Var(name):
            return renaming.get(name, core.Var(name + suffix))
        case core.Arith(op, args):
            return core.Arith(op, tuple(_renamed(a, renaming, suffix) for a in args))
        case _:
            return expr


def _rename(literal: core.Literal, renaming: Mapping[str, core.Expr], suffix: str) -> core.Literal:
    def new(expr: core.Expr) -> core.Expr:
        return _renamed(expr, renaming, suffix)

    match literal:
        case core.Atom():
            return replace(literal, terms=tuple(map(new, literal.terms)))
        case core.Compare():
            return replace(literal, left=new(literal.left), right=new(literal.right))
        case core.Member():
            return replace(literal, expr=new(literal.expr))
        case core.Aggregate():
            result = new(literal.result)
            assert isinstance(result, core.Var)
            return replace(
                literal,
                result=result,
                value=None if literal.value is None else new(literal.value),
                body=tuple(_rename(part, renaming, suffix) for part in literal.body),
            )


_SIZES = ("elems", "dim")


@dataclass(frozen=True, slots=True)
class _Hints:
    """The numbers and words that a pattern mentions: where its boundaries are."""

    extents: tuple[int, ...]
    numbers: tuple[float, ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, pattern: Pattern, by_head: Mapping[str, list[core.Rule]]) -> _Hints:
        bodies = [(*a.structure, *a.conditions) for a in pattern.alternatives]
        seen: set[str] = set()
        pending = [r for body in bodies for r in core.relations_in(body)]
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                for rule in by_head.get(name, ()):
                    if rule.name == pattern.name or name.startswith(pattern.name):
                        bodies.append(rule.body)
                    pending += core.relations_in(rule.body)
        constants = {c for body in bodies for literal in body for c in _constants(literal)}
        numbers = sorted({float(c) for c in constants if not isinstance(c, str)})
        extents = {1, 2, 3, 4, 8, 16}
        for number in numbers:
            if 0 <= number <= 1 << 20 and number == int(number):
                whole = int(number)
                for near in (whole - 1, whole, whole + 1, math.isqrt(whole) + 1):
                    if 1 <= near <= 1 << 14:
                        extents.add(near)
        if any(_asks_for_nothing(body) for body in bodies):
            extents.add(0)
        dtypes = tuple(sorted(str(c) for c in constants if c in DTYPES))
        return cls(tuple(sorted(extents)), tuple(numbers), dtypes)


def _asks_for_nothing(body: Sequence[core.Literal]) -> bool:
    """Whether an extent, or a number of elements, must be 0."""
    sizes = {a.terms[-1] for a in body if isinstance(a, core.Atom) and a.relation in _SIZES}
    zero = core.Const(0)
    return zero in sizes or any(
        isinstance(c, core.Compare)
        and c.op == "=="
        and ((c.left in sizes and c.right == zero) or (c.right in sizes and c.left == zero))
        for c in body
    )


def _constants(literal: core.Literal) -> Iterator[core.Value]:
    match literal:
        case core.Atom(_, terms):
            for term in terms:
                if isinstance(term, core.Const):
                    yield term.value
        case core.Compare(_, left, right):
            for side in (left, right):
                yield from _constants_of(side)
        case core.Member(_, members):
            yield from members
        case core.Aggregate():
            for part in literal.body:
                yield from _constants(part)


def _constants_of(expr: core.Expr) -> Iterator[core.Value]:
    match expr:
        case core.Const(value):
            yield value
        case core.Arith(_, args):
            for arg in args:
                yield from _constants_of(arg)


class _Attempt:
    """One graph, built towards one goal."""

    def __init__(
        self, finder: WitnessFinder, goal: _Goal, hints: _Hints, rng: Random, name: str
    ) -> None:
        self.finder = finder
        self.goal = goal
        self.hints = hints
        self.rng = rng
        self.graph = Graph(name)
        self.graph.opsets[""] = OPSETS[0] if rng.random() < 0.6 else rng.choice(OPSETS)
        self.bound: dict[str, int] = {}
        self.tensors: dict[str, Tensor] = {}
        self.inputs: dict[str, Array] = {}
        self.sources = 0
        relations = finder.rules.program.relations
        self.database = Database(core.Program(dict(relations), ()))
        self.solver = Solver(core.Program(dict(relations), ()), self.database)
        self.environment = self._environment()
        # small extents most of the time: only some conditions ask for large ones
        small = tuple(e for e in hints.extents if e <= 64)
        self.shapes = Shapes(small * 2 + hints.extents, (0, 1, 2, 2, 3, 3, 4, 4))
        usual = tuple(d for d, n in finder.options.dtypes.items() for _ in range(n))
        self.dtypes = hints.dtypes * 8 + usual
        self.samplers: dict[str, Sampler] = {}

    def run(self) -> Program | None:
        """The graph, if every node found its place."""
        for name in self.goal.nodes:
            if not any(self._place(name) for _ in range(_DRAWS)):
                return None
        return self._finish()

    def _environment(self) -> dict[str, Scalar]:
        """What ``env(name)`` should answer, as far as the body names it."""
        environment: dict[str, Scalar] = {}
        for literal in self.goal.literals:
            if isinstance(literal, core.Atom) and literal.relation == "env":
                name, value = literal.terms
                if literal.negated or not isinstance(name, core.Const):
                    continue
                choices = self.goal.choices(value)
                if choices:
                    environment[str(name.value)] = self.rng.choice(choices)
                elif self.hints.numbers:
                    environment[str(name.value)] = int(self.rng.choice(self.hints.numbers))
        return environment

    # --- one node --------------------------------------------------------------------------------

    def _place(self, name: str) -> bool:
        """Draw node ``name`` and keep it if what is known of the body allows it."""
        rng, goal, graph = self.rng, self.goal, self.graph
        mark, bound, tensors = graph.mark(), dict(self.bound), dict(self.tensors)
        sources, inputs = self.sources, dict(self.inputs)
        database_mark = self.database.mark()
        op = rng.choice(goal.ops[name])
        node = self._build(name, op) if op in self.finder.signatures else None
        if node is not None and self._fits():
            self.database.release(database_mark)
            return True
        self.database.undo(database_mark)
        self.database.release(database_mark)
        graph.take_back(mark)
        self.bound, self.tensors, self.sources, self.inputs = bound, tensors, sources, inputs
        return False

    def _build(self, name: str, op: str) -> Node | None:
        sampler = self._sampler(op)
        places = self._places(name, len(sampler.ports))
        if places is None:
            return None
        types = {i: self.tensors[t].type for i, t in places.items() if t in self.tensors}
        given = self._given(name, sampler)
        hinted = dict(types)
        for i, tensor in places.items():
            if i in types or i >= len(sampler.ports):
                continue
            if sampler.ports[i].optional or self.rng.random() < 0.85:
                hint = self._hinted(tensor, sampler, i)
                if hint is not None:
                    hinted[i] = hint
        drawn = sampler.typed(self.rng, hinted, given=given, tries=6)
        if drawn is None and len(hinted) > len(types):
            drawn = sampler.typed(self.rng, types, given=given, tries=6)
        twice = {t: [i for i in places if places[i] == t] for t in places.values()}
        if drawn is not None and any(
            len(at) > 1 and t not in self.tensors for t, at in twice.items()
        ):
            for at in twice.values():
                if len(at) > 1 and at[0] < len(drawn[0].operands):
                    type = drawn[0].operands[at[0]]
                    if type is not None:
                        types |= dict.fromkeys(at, type)
            drawn = sampler.typed(self.rng, types, given=given, tries=6)
        if drawn is None:
            return None
        instance, typing = drawn
        if any(i >= len(instance.operands) or instance.operands[i] is None for i in places):
            return None
        if not self._is_allowed(op, instance.operands, typing):
            return None
        operands: list[Tensor | None] = []
        try:
            for i, type in enumerate(instance.operands):
                operands.append(
                    None
                    if type is None
                    else self._operand(op, i, type, places.get(i), instance.operands, typing)
                )
        except NoValue:
            return None
        number = len(self.graph.nodes)
        results = typing.outputs
        names = (
            [f"v{number}"] if len(results) == 1 else [f"v{number}_{j}" for j in range(len(results))]
        )
        asked = {p.value for p, _ in self.goal.outputs.get(name, ()) if isinstance(p, core.Const)}
        free = any(not isinstance(p, core.Const) for p, _ in self.goal.outputs.get(name, ()))
        made = [
            (text, type) if j == 0 or j in asked or free or self.rng.random() < 0.3 else None
            for j, (text, type) in enumerate(zip(names, results, strict=True))
        ]
        node = self.graph.add_node(
            op,
            operands,
            made,
            typing.attributes,
            name=f"n{number}",
            given=frozenset(instance.attributes),
        )
        self.bound[name] = node.id
        for place, tensor_name in self.goal.outputs.get(name, ()):
            j = self.rng.randrange(max(len(node.outputs), 1))
            if isinstance(place, core.Const) and isinstance(place.value, int):
                j = place.value
            result = node.outputs[j] if j < len(node.outputs) else None
            if result is None:
                return None
            self.tensors[tensor_name] = result
            self.bound[tensor_name] = result.id
        self._commit(entity_facts(node))
        return node

    def _hinted(self, tensor: str, sampler: Sampler, port: int) -> TensorType | None:
        """A type for a source that meets the conditions on its own dtype, rank and extents."""
        rng, about = self.rng, self._about(tensor)
        if not about and not sampler.ports[port].optional:
            return None
        taken = sampler.port_dtypes(port)
        dtypes = [d for d in self.dtypes if d in taken and _meets(d, about.get("dtype", ()))]
        ranks = [
            r
            for r in sorted(sampler.port_ranks(port, 5))
            if _meets(r, about.get("rank", ()))
            and all(axis < r for axis in about if isinstance(axis, int))
        ]
        if not dtypes or not ranks:
            return None
        shape = []
        for axis in range(rng.choice(ranks)):
            fit = [e for e in self.shapes.extents if _meets(e, about.get(axis, ()))]
            if not fit:
                return None
            shape.append(rng.choice(fit))
        return TensorType(rng.choice(dtypes), tuple(shape))

    def _about(self, tensor: str) -> dict[str | int, list[core.Literal | core.Const]]:
        """What the body says of a tensor's dtype, rank and the extents of numbered axes, each for
        itself: constants, or literals whose only variable is the value."""
        about: dict[str | int, list[core.Literal | core.Const]] = {}
        for literal in self.goal.literals:
            if (
                not isinstance(literal, core.Atom)
                or literal.negated
                or literal.relation not in ("dtype", "rank", "dim")
                or literal.terms[0] != core.Var(tensor)
            ):
                continue
            what: str | int = literal.relation
            if literal.relation == "dim":
                axis = literal.terms[1]
                if not isinstance(axis, core.Const) or not isinstance(axis.value, int):
                    continue
                what = axis.value
            value = literal.terms[-1]
            found = about.setdefault(what, [])
            if isinstance(value, core.Const):
                found.append(value)
            elif isinstance(value, core.Var):
                found += [
                    other
                    for other in self.goal.literals
                    if isinstance(other, core.Compare | core.Member)
                    and set(core.variables(other)) == {value.name}
                ]
        return about

    def _sampler(self, op: str) -> Sampler:
        sampler = self.samplers.get(op)
        if sampler is None:
            sampler = Sampler(self.finder.signatures[op], self.shapes, self.dtypes)
            self.samplers[op] = sampler
        return sampler

    def _places(self, name: str, ports: int) -> dict[int, str] | None:
        """Which tensor variable goes to which operand position."""
        places: dict[int, str] = {}
        free: list[str] = []
        for place, tensor in self.goal.inputs.get(name, ()):
            if isinstance(place, core.Const) and isinstance(place.value, int):
                # of two names for one operand, the one that is there already
                if place.value not in places or tensor in self.tensors:
                    places[place.value] = tensor
            else:
                free.append(tensor)
        for tensor in free:
            if tensor in places.values():
                continue
            open_ones = [i for i in range(max(ports, 2)) if i not in places]
            if not open_ones:
                return None
            places[self.rng.choice(open_ones)] = tensor
        return places

    def _given(self, name: str, sampler: Sampler) -> dict[str, Attribute]:
        """Attributes that the body fixes."""
        types = {a.plan.name: a.plan.type for a in sampler.attributes.values()}
        given: dict[str, Attribute] = {}
        for literal in self.goal.literals:
            if (
                not isinstance(literal, core.Atom)
                or literal.negated
                or literal.relation not in ("attr", "attr_given")
                or literal.terms[0] != core.Var(name)
                or not isinstance(literal.terms[1], core.Const)
            ):
                continue
            attribute = str(literal.terms[1].value)
            if attribute not in types:
                continue
            if literal.relation == "attr_given":
                given.setdefault(attribute, DRAWN)
                continue
            choices = self.goal.choices(literal.terms[2])
            if choices and given.get(attribute, DRAWN) == DRAWN:
                read = _attribute(self.rng.choice(choices), types[attribute])
                if read is not None:
                    given[attribute] = read
        return given

    def _is_allowed(self, op: str, operands: Sequence[TensorType | None], typing: Typing) -> bool:
        for type in (*operands, *typing.outputs):  # a result's extents may be unknown
            if type is not None and (type.elements or 0) > 1 << 20:
                return False
        finder = self.finder
        dtypes = tuple(None if o is None else o.dtype for o in operands)
        if finder.why_not is not None and finder.why_not(op, dtypes) is not None:
            return False
        if finder.unsupported is None:
            return True
        return finder.unsupported(op, operands, typing.attributes) is None

    # --- operands --------------------------------------------------------------------------------

    def _operand(
        self,
        op: str,
        position: int,
        type: TensorType,
        name: str | None,
        operands: Sequence[TensorType | None],
        typing: Typing,
    ) -> Tensor:
        if name is not None and name in self.tensors:
            return self.tensors[name]
        tensor = self._source(op, position, type, name, operands, typing)
        if name is not None:
            self.tensors[name] = tensor
            self.bound[name] = tensor.id
        self._commit(entity_facts(tensor))
        return tensor

    def _source(
        self,
        op: str,
        position: int,
        type: TensorType,
        name: str | None,
        operands: Sequence[TensorType | None],
        typing: Typing,
    ) -> Tensor:
        rng = self.rng
        policy = self.finder.policies[op]
        kind = (policy.kind if name is None else policy.demanded)(position, type.dtype)
        value: Array
        if kind:
            first, second = (*operands, None, None)[:2]
            assert first is not None
            use = Use(first, typing.attributes, typing.outputs[0], second)
            value = values.of_kind(kind, rng, type, use)
        else:
            value = self._value(type, name)
        number = self.sources
        self.sources += 1
        if self._is_stored(name):
            return self.graph.add_initializer(f"w{number}", type, value)
        tensor = self.graph.add_input(f"x{number}", type)
        self.inputs[tensor.name] = value
        return tensor

    def _is_stored(self, name: str | None) -> bool:
        for literal in self.goal.literals:
            if (
                isinstance(literal, core.Atom)
                and name is not None
                and literal.terms[:1] == (core.Var(name),)
                and (literal.relation in _SAYS_WHERE or literal.relation.startswith("value_"))
            ):
                return (literal.relation not in ("graph_input", "varies")) != literal.negated
        return self.rng.random() < 0.4

    def _value(self, type: TensorType, name: str | None) -> Array:
        """Ordinary values, or a number that the pattern mentions throughout, or special ones."""
        rng = self.rng
        asked = [
            literal.terms[1]
            for literal in self.goal.literals
            if name is not None
            and isinstance(literal, core.Atom)
            and literal.relation.startswith("value_")
            and literal.terms[0] == core.Var(name)
            and len(literal.terms) > 1
        ]
        exact = [t.value for t in asked if isinstance(t, core.Const)]
        style = rng.random()
        assert type.dtype is not None and type.shape is not None
        if exact or (asked and style < 0.7) or style < 0.15:
            pool = exact or [*self.hints.numbers, 0.0, 1.0, -1.0, math.inf, -math.inf]
            number = rng.choice(pool)
            if isinstance(number, str):
                number = float(number == "true")
            shape = tuple(e for e in type.shape if isinstance(e, int))
            with np.errstate(all="ignore"):
                return np.full(shape, number, np.float64).astype(numpy_dtype(type.dtype))
        if style < 0.3:
            return values.special(rng, type)
        return values.ordinary(rng, type)

    # --- what holds ------------------------------------------------------------------------------

    def _commit(self, facts: Iterable[Fact]) -> None:
        self.database.commit(list(facts))

    def _fits(self) -> bool:
        """Whether what can be decided of the body by now can be satisfied."""
        bound = self.bound
        stored = self.finder.by_head
        decidable: list[core.Literal] = []
        known = {
            v
            for literal in self.goal.literals
            if isinstance(literal, core.Atom) and self._is_decidable(literal, stored)
            for v in core.variables(literal)
        }
        for literal in self.goal.literals:
            match literal:
                case core.Atom():
                    if self._is_decidable(literal, stored):
                        decidable.append(literal)
                case core.Compare() | core.Member():
                    if set(core.variables(literal)) <= known:
                        decidable.append(literal)
        start: Bindings = dict(bound)
        return next(iter(self.solver.solutions(decidable, start)), None) is not None

    def _is_decidable(self, literal: core.Atom, derived: Mapping[str, object]) -> bool:
        if literal.negated or literal.relation in derived:
            return False
        if literal.relation in ("env", "opset", "graph_output", "device", "param", "observed"):
            return False
        if literal.relation.startswith("value_"):  # of a tensor that is not stored: unknown
            owner = literal.terms[0]
            tensor = self.tensors.get(owner.name) if isinstance(owner, core.Var) else None
            if tensor is None or tensor.role is not Role.INITIALIZER:
                return False
        names = {v for v in core.variables(literal) if v in self.goal.entities}
        return names <= self.bound.keys()

    def _finish(self) -> Program:
        graph = self.graph
        read = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        wanted = {
            self.bound[literal.terms[0].name]
            for literal in self.goal.literals
            if isinstance(literal, core.Atom)
            and literal.relation == "graph_output"
            and not literal.negated
            and isinstance(literal.terms[0], core.Var)
            and literal.terms[0].name in self.bound
        }
        for tensor in graph.tensors:
            if tensor.role is Role.COMPUTED and (tensor.id not in read or tensor.id in wanted):
                graph.outputs.append(tensor)
        return Program(graph, dict(self.inputs), graph.name)


def _meets(value: core.Value, conditions: Iterable[core.Literal | core.Const]) -> bool:
    """Whether a value is the constant, and in the ranges and sets, that are asked for."""
    for condition in conditions:
        match condition:
            case core.Const(wanted):
                if value != wanted:
                    return False
            case core.Member(core.Var(), members, negated):
                if (value in members) == negated:
                    return False
            case core.Compare(op, core.Var(), core.Const(bound)):
                if not compare(op, value, bound):
                    return False
            case core.Compare(op, core.Const(bound), core.Var()):
                if not compare(op, bound, value):
                    return False
    return True


def _attribute(value: core.Value, type: str) -> Attribute | None:
    """A fact's value as an attribute of the given type; None if it is none."""
    if type == "bool":
        return value == "true"
    if type.endswith("s"):
        if not isinstance(value, str) or not value.startswith("["):
            return None
        items = value[1:-1].split(", ") if len(value) > 2 else []
        try:
            return tuple(python_ast.literal_eval(item) for item in items)
        except (ValueError, SyntaxError):
            return tuple(items)
    if type == "float":
        return None if isinstance(value, str) else float(value)
    return value
