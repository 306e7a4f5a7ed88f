"""Models that violate one constraint and keep all others, and models that keep them all.

The witness finder makes a small program in which the constraint's guard matches: nodes, flow,
ranks. Its numbers are then found anew (:mod:`reprise.xcheck.question`): those that were drawn,
where they do, z3's where they do not. What comes out is judged by the engine with Python's
integers; only a model that violates the constraint for certain, and no other unless that is
implied, is handed out.

Three kinds of models, in this order or, where the constraint's class is about what signatures say
too, in turns: *typed*, which every signature accepts (too large for the device, say); *untyped*,
of which some signature is violated on purpose; *reshaped*, whose nodes have other operands or
ranks than any signature allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import combinations, product
from random import Random

from reprise.facts.errors import ModelError
from reprise.lang import ast, core
from reprise.lang.declared import Alternative, Constraint, Pattern
from reprise.lang.dtypes import DTYPES
from reprise.lang.ruleset import RuleSet
from reprise.lower.onnx import OnnxLowering
from reprise.patterns.match import can_fire
from reprise.solve.answers import Clash
from reprise.synth.vocabulary import LEFT_OUT
from reprise.synth.witness import Witness, WitnessFinder
from reprise.uir.graph import Attribute, Graph, Node, Role, Tensor, TensorType
from reprise.uir.inference import SignatureError
from reprise.xcheck.device import Device
from reprise.xcheck.judge import Judge, Judgement
from reprise.xcheck.question import MOST, Asked, Drawn, Numbers, Rule, solve
from reprise.xcheck.signatures import operators_in, signatures_for
from reprise.xcheck.sizes import draw_shape
from reprise.xcheck.stored import as_searched, as_signed, as_written, is_stored_operand
from reprise.xcheck.symbolic import TooMuch
from reprise.xcheck.write import (
    Unwritten,
    onnx_refuses,
    read_model,
    write,
    write_invalid,
)

STRUCTURES = 6
"""Programs that are tried for one model."""
QUESTIONS = 60
"""How often numbers are looked for, for one model."""
_JUDGES = 64
"""Sets of operators whose judges are kept."""
_PROOFS = 2
"""Programs of which it is proved that nothing but the constraint can be violated, before others may
be violated that it implies."""
_ATTEMPTS = 20
"""What the witness finder may draw for one program."""
_FAILURES = 2
"""Programs that are looked for in vain before no other is."""
_TURNS = frozenset({"data_representation", "parameter_bound", "algebraic", "cardinality"})
"""Classes of constraints that signatures speak of too."""
_FLOW = frozenset({"node", "input", "output"})
_SAYS_ATTRIBUTE = ("attr", "attr_at", "attr_len", "attr_given", "given")
_STORED = ("value_", "has_")
_STORED_NAMES = frozenset(
    {"initializer", "constant", "derived_constant", "varies", "graph_input", "integral"}
)


class Kind(Enum):
    """What a model is to its signatures."""

    VALID = "valid"  # violates nothing
    TYPED = "typed"  # violates a constraint, no signature
    UNTYPED = "untyped"  # violates a signature too
    RESHAPED = "reshaped"  # has other operands or ranks than any signature allows


@dataclass(frozen=True, slots=True)
class Made:
    """A model, serialised, with the graph that it was written from. ``violated``: the constraints
    that it violates (none, one, or those that this one implies too); ``possible``: those that it
    may violate, as far as types are left open; ``given_up``: what of signatures it violates;
    ``asked``: names of attributes that the constraint speaks of."""

    model: bytes
    graph: Graph
    kind: Kind
    violated: frozenset[str]
    possible: frozenset[str]
    given_up: tuple[Clash, ...] = ()
    asked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NotMade:
    """No model, and why. ``clashes``: what cannot hold together, if that was proved of every
    program that was tried."""

    reason: str
    clashes: tuple[Clash, ...] = ()

    def __str__(self) -> str:
        shown = "; ".join(map(str, self.clashes))
        return f"{self.reason}: {shown}" if shown else self.reason


class Modeller:
    """Makes models for the constraints of a pool.

    ``constraints`` are those in the pool, ``device`` is what ``device(key)`` is asked of;
    ``typed_only``: every model is one that its signatures accept, since the compiler reads another
    language than ONNX and would be given something else. Answers depend on the arguments alone: the
    same generator state gives the same model.
    """

    def __init__(
        self,
        rules: RuleSet,
        constraints: Mapping[str, Constraint],
        device: Device,
        *,
        typed_only: bool = False,
    ) -> None:
        self.typed_only = typed_only
        self.rules = rules
        self.constraints = dict(constraints)
        self.device = device
        self.given = device.given
        self.signatures = signatures_for(rules, constraints.values())
        lowering = OnnxLowering()
        self.finder = WitnessFinder(rules, self.signatures, unsupported=lowering.unsupported)
        self._judges: dict[frozenset[str], Judge] = {}
        self._relevant: dict[frozenset[str], list[Constraint]] = {}
        self.by_head = rules.program.by_head

    def violating(self, name: str, rng: Random, turn: int = 0) -> Made | NotMade:
        """A model that violates one constraint. ``turn``: which of its kinds comes first."""
        return _Search(self, self.constraints[name], rng, turn).violating()

    def valid(self, name: str, rng: Random) -> Made | NotMade:
        """A model in which the constraint's guard matches, and that violates nothing."""
        return _Search(self, self.constraints[name], rng, 0).valid()

    def judge_for(self, graph: Graph) -> Judge:
        """Who judges a graph by the constraints that can apply to it: of a thousand, a handful is
        about its operators."""
        operators = frozenset(node.op for node in graph.nodes)
        judge = self._judges.get(operators)
        if judge is None:
            if len(self._judges) >= _JUDGES:
                self._judges.pop(next(iter(self._judges)))
            judge = Judge(self.rules, self.relevant(operators), self.given)
            self._judges[operators] = judge
        return judge

    def relevant(self, operators: frozenset[str]) -> list[Constraint]:
        """The constraints that can be violated in a graph of these operators."""
        found = self._relevant.get(operators)
        if found is None:
            filled = set(self.rules.program.relations)
            asked = {name for op in (*operators, None) for name in self._by_operator.get(op, ())}
            found = self._relevant[operators] = [
                constraint
                for name, constraint in self.constraints.items()
                if name in asked and can_fire(self.by_head.get(name, ()), operators, filled)
            ]
        return found

    @cached_property
    def _by_operator(self) -> dict[str | None, set[str]]:
        """Names of constraints by the operators of a node that they ask for; None: of any."""
        found: dict[str | None, set[str]] = {}
        for name in self.constraints:
            for rule in self.by_head.get(name, ()):
                for operator in next(operators_in(rule, rule.body), (None,)):
                    found.setdefault(operator, set()).add(name)
        return found

    def finder_for(self, constraint: Constraint) -> WitnessFinder:
        """The witness finder, with none of the relations that only other constraints need."""
        finder = copy(self.finder)
        program = self.rules.program
        others = tuple(r for r in program.rules if r.head.relation != constraint.guard)
        searched = core.Program(program.relations, (*others, *self.searched(constraint)))
        narrow = searched.restricted_to([*self._common, constraint.guard])
        finder.rules = replace(self.rules, program=narrow)
        return finder

    def searched(self, constraint: Constraint) -> list[core.Rule]:
        """The guard's rules as programs are searched for: what they say of operands that a
        signature has as attributes is said of those."""
        return [
            replace(rule, body=as_searched(rule.body, self.signatures))
            for rule in self.by_head.get(constraint.guard, ())
        ]

    @cached_property
    def _common(self) -> list[str]:
        """The relations that are no constraint's own."""
        constraints = self.rules.constraints.values()
        own = {name for c in constraints for name in (c.name, c.guard)}
        return [n for n in self.rules.program.relations if n.partition("__")[0] not in own]


@dataclass(frozen=True, slots=True)
class _Structure:
    """A program whose numbers are to be found. ``untyped``: nodes that no signature describes."""

    graph: Graph
    valid: Graph
    untyped: frozenset[str] = frozenset()


class _Search:
    def __init__(self, maker: Modeller, constraint: Constraint, rng: Random, turn: int) -> None:
        self.maker = maker
        self.constraint = constraint
        self.rng = rng
        self.turn = turn
        self.clashes: list[tuple[Clash, ...]] = []
        self.unproved = 0
        self.questions = 0
        self.unwritten: dict[str, None] = {}
        self._found: list[Graph] = []
        self._failures = 0
        self._asks_valid = False

    # --- what is asked for -----------------------------------------------------------------------

    def violating(self) -> Made | NotMade:
        if self._unknown:
            return self._unsigned()
        for kind, implied in self._ways():
            refuted = 0
            for structure in self._structures(kind):
                before = len(self.clashes)
                made = self._try(structure, kind, implied)
                if made is not None:
                    return made
                refuted += len(self.clashes) > before
                if not implied and refuted >= _PROOFS:
                    break  # the rest clashes as well: see what is implied
        return self._none()

    def _ways(self) -> Iterator[tuple[Kind, bool]]:
        """Kinds of models in the order in which they are tried, and whether constraints may be
        violated that this one implies to be."""
        typed, untyped, reshaped = Kind.TYPED, Kind.UNTYPED, Kind.RESHAPED
        if self.maker.typed_only:
            yield from ((typed, False), (typed, True))
            return
        strict = [typed, untyped, reshaped]
        if self.constraint.klass == "cardinality":
            strict = [reshaped, typed, untyped]
        elif self.constraint.klass in _TURNS:
            strict = [untyped, reshaped, typed] if self.turn % 2 else strict
        else:  # nothing to do with signatures: try hard to keep them
            yield from ((typed, False), (typed, True))
        yield from ((kind, False) for kind in strict)
        yield from ((kind, True) for kind in strict)

    def valid(self) -> Made | NotMade:
        self._asks_valid = True
        if self._unknown:
            return self._unsigned()
        for structure in self._structures(Kind.VALID):
            made = self._try(structure, Kind.VALID, False)
            if made is not None:
                return made
        return self._none()

    @cached_property
    def _unknown(self) -> list[str]:
        """Operators that the guard asks for, if none of them can be made by its signature."""
        return [] if self._makeable() else sorted(self._operators())

    def _makeable(self) -> list[str]:
        """Operators that the guard asks for and that can be made."""
        signatures = self.maker.signatures
        known = (op for op in sorted(self._operators()) if op in signatures)
        return [op for op in known if not signatures[op].flags & LEFT_OUT]

    def _unsigned(self) -> NotMade:
        names = ", ".join(self._unknown)
        flags = [
            self.maker.signatures[op].flags & LEFT_OUT
            for op in self._unknown
            if op in self.maker.signatures
        ]
        if flags:
            left_out = ", ".join(sorted(frozenset().union(*flags)))
            return NotMade(f"its guard asks for {names}; no model is made of what is {left_out}")
        return NotMade(f"its guard asks for {names}, of which no signature says how to make one")

    def _unheard_of(self) -> list[str]:
        """Attributes that the guard asks for and that no operator has that can be made."""
        operators = self._makeable()
        plans = [self.maker.signatures[op].plan.decl for op in operators]
        had = {attribute.name.text for decl in plans for attribute in decl.attributes}
        asked = self._attributes_in([self.constraint.guard], said=("attr",))
        return sorted(asked - had) if operators else []

    def _none(self) -> NotMade:
        if not self._found:
            if unheard_of := self._unheard_of():
                operators = ", ".join(self._makeable())
                names = ", ".join(unheard_of)
                return NotMade(f"no signature of {operators} has the attribute {names}")
            operators = ", ".join(sorted(self._operators())) or "any"
            return NotMade(f"no program was found that its guard matches (operators: {operators})")
        if self.clashes and not self.unproved and not self.unwritten:
            return self._clash(min(self.clashes, key=len))
        if self.unwritten:
            return NotMade(f"none can be written: {next(iter(self.unwritten))}")
        what = "keeps it and all others" if self._asks_valid else "violates it alone"
        return NotMade(f"nothing was found that {what}")

    def _clash(self, clashes: tuple[Clash, ...]) -> NotMade:
        """What is in the way. The constraint alone clashes with what the operators' signatures fix:
        how many operands and results there are, and what every extent and element type is."""
        own = self.constraint.span
        if len(clashes) == 1 and clashes[0].span == own:
            operators = ", ".join(sorted(self._operators() & set(self.maker.signatures)))
            allowed = f"the signature of {operators} allows and " if operators else ""
            holds = "never holds where it applies" if self._asks_valid else "always holds"
            return NotMade(f"it {holds} in what {allowed}ONNX can state")
        what = "keeps it and all others" if self._asks_valid else "violates it alone"
        return NotMade(f"nothing {what}; these clash", clashes)

    def _operators(self) -> set[str]:
        rules = self.maker.by_head.get(self.constraint.guard, ())
        found = (operators_in(rule, _atoms(rule.body)) for rule in rules)
        return {op for each in found for asked in each for op in asked}

    # --- structures ------------------------------------------------------------------------------

    def _structures(self, kind: Kind) -> Iterator[_Structure]:
        for number in range(STRUCTURES):
            graph = self._program(number)
            if graph is None:
                return
            if kind is not Kind.RESHAPED:
                yield _Structure(graph, graph)
                if kind is Kind.UNTYPED:
                    yield from _retyped(graph)
            else:
                yield from self._reshaped(graph)

    def _program(self, number: int) -> Graph | None:
        """The ``number``-th program in which the guard matches, found when first asked for."""
        if number < len(self._found):
            return self._found[number]
        pattern = self._guard
        if pattern is None or self._failures >= _FAILURES:
            return None
        witness = self._finder.find(pattern, self.rng, attempts=_ATTEMPTS)
        if not isinstance(witness, Witness):
            self._failures += 1
            return None
        graph = as_written(witness.program.graph, self._named)
        self._found.append(_opened(graph, self._about_values))
        return self._found[-1]

    @cached_property
    def _finder(self) -> WitnessFinder:
        return self.maker.finder_for(self.constraint)

    @cached_property
    def _guard(self) -> Pattern | None:
        """Where the constraint applies, as a pattern."""
        constraint = self.constraint
        alternatives = []
        for rule in self.maker.searched(constraint):
            flow = tuple(x for x in rule.body if isinstance(x, core.Atom) and not x.negated)
            flow = tuple(x for x in flow if x.relation in _FLOW)
            rest = tuple(x for x in rule.body if x not in flow)
            alternatives.append(Alternative(flow, rest, ()))
        if not alternatives:
            return None
        return Pattern(
            constraint.guard, "", {}, constraint.nodes, tuple(alternatives), "", constraint.span
        )

    @cached_property
    def _named(self) -> frozenset[str]:
        """The attributes that the constraint names."""
        return self._attributes_in([self.constraint.name, self.constraint.guard], _SAYS_ATTRIBUTE)

    @cached_property
    def _about_values(self) -> bool:
        """Whether the constraint speaks of where values come from, or what they are."""
        bodies = self._bodies(self.constraint.name) + self._bodies(self.constraint.guard)
        relations = {r for body in bodies for r in core.relations_in(body)}
        return any(r.startswith(_STORED) or r in _STORED_NAMES for r in relations)

    def _reshaped(self, graph: Graph) -> Iterator[_Structure]:
        """The program with operands fewer or more, more results, or a source of another rank."""
        changes: list[_Structure] = []
        for node in graph.nodes:
            names = [None if t is None else t.name for t in node.inputs]
            for count in sorted(range(len(names) + 4), key=lambda k: (abs(k - len(names)), k)):
                if count == len(names) or (count > len(names) and not names):
                    continue
                extra = [names[-1]] * (count - len(names)) if count > len(names) else []
                changed = _rebuilt(graph, operands={node.name: [*names[:count], *extra]})
                changes.append(_Structure(changed, graph, frozenset({node.name})))
            results = [t for t in node.outputs if t is not None]
            for more in (1, 2):
                changed = _rebuilt(graph, results={node.name: len(results) + more})
                changes.append(_Structure(changed, graph, frozenset({node.name})))
        arity = len(changes)
        for tensor in graph.tensors:
            shape = tensor.type.shape
            if tensor.producer is not None or tensor.value is not None or shape is None:
                continue
            readers = frozenset(n.name for n in graph.nodes if tensor in n.inputs)
            for other in ((*shape, 2), shape[:-1], (2, 2, *shape)):
                if len(other) != len(shape):
                    type = TensorType(tensor.type.dtype, other)
                    changes.append(
                        _Structure(_rebuilt(graph, types={tensor.name: type}), graph, readers)
                    )
        counts, ranks = changes[:arity], changes[arity:]
        if self.constraint.klass == "cardinality":
            start = self.turn % max(1, len(counts))
            yield from (*counts[start:], *counts[:start])
        else:
            yield from (*ranks, *counts)

    # --- numbers ---------------------------------------------------------------------------------

    def _try(self, structure: _Structure, kind: Kind, implied: bool) -> Made | None:
        """A model of the structure. Its numbers are z3's to find; what is a word or a truth value
        among the attributes is tried in turn."""
        for graph in self._worded(structure.graph):
            made = self._numbered(replace(structure, graph=graph), kind, implied)
            if made is not None:
                return made
        return None

    def _numbered(self, structure: _Structure, kind: Kind, implied: bool) -> Made | None:
        maker, name = self.maker, self.constraint.name
        if self.questions >= QUESTIONS:
            return None
        self.questions += 1
        loose = kind in (Kind.UNTYPED, Kind.RESHAPED)
        try:
            found = solve(
                structure.graph,
                self._asked(structure.graph, kind),
                maker.by_head,
                maker.given,
                maker.signatures,
                self.rng,
                self._drawn(structure.graph, kind),
                loose=loose,
                implied=implied,
                untyped=structure.untyped,
            )
        except TooMuch:
            self.unproved += 1
            return None
        if not isinstance(found, Numbers):
            if found.proof:
                if kind in (Kind.TYPED, Kind.VALID):
                    self.clashes.append(found.clashes)
            else:
                self.unproved += 1
            return None
        if kind is Kind.UNTYPED and not found.given_up and not structure.untyped:
            loose, kind = False, Kind.TYPED
        graph = self._graph(structure, found, typed=not loose)
        if graph is None:
            self.unproved += 1
            return None
        judged = maker.judge_for(graph).judge(graph)
        wanted = frozenset() if kind is Kind.VALID else frozenset({name})
        if not wanted <= judged.violated <= wanted | found.implied:
            self.unproved += 1
            return None
        return self._written(structure, graph, kind, judged, found.given_up)

    def _written(
        self,
        structure: _Structure,
        graph: Graph,
        kind: Kind,
        judged: Judgement,
        given_up: tuple[Clash, ...],
    ) -> Made | None:
        try:
            if kind in (Kind.VALID, Kind.TYPED):
                model = write(graph)
            else:
                model = write_invalid(graph, structure.valid)
        except Unwritten as error:
            self.unwritten[str(error)] = None
            return None
        if kind in (Kind.VALID, Kind.TYPED) and not self._says_the_same(model, kind):
            self.unwritten["ONNX says it with other operators"] = None
            return None
        if kind in (Kind.VALID, Kind.TYPED):  # a signature may say less than ONNX does
            refused = onnx_refuses(model)
            if refused is not None and kind is Kind.VALID:
                self.unwritten[f"ONNX refuses it: {refused}"] = None
                return None
            if refused is not None:
                kind, given_up = Kind.UNTYPED, (Clash(f"ONNX: {refused}", None),)
        asked = self._attributes_in([self.constraint.name])
        return Made(model, graph, kind, judged.violated, judged.possible, given_up, asked)

    def _says_the_same(self, model: bytes, kind: Kind) -> bool:
        """Whether the model as it is read again violates what it was made for: some operators are
        written as several others, of which the constraint may say nothing. (Of what contradicts a
        signature, reading may drop just that: a declared type, a result too many.)"""
        try:
            graph = read_model(model)
            read = self.maker.judge_for(graph).judge(graph)
        except ModelError:
            return False
        if kind is Kind.VALID:
            return not read.violated
        return self.constraint.name in read.violated | read.possible

    def _asked(self, graph: Graph, kind: Kind) -> Asked:
        constraint = self.constraint
        others = [
            Rule(c.name, self._bodies(c.name), Clash(f"`{c.name}` holds", c.span))
            for c in self.maker.relevant(frozenset(node.op for node in graph.nodes))
            if c is not constraint
        ]
        own = self._bodies(constraint.name)
        if kind is Kind.VALID:
            guard = Clash(f"the guard of `{constraint.name}`", constraint.span)
            holds = Clash(f"`{constraint.name}` holds", constraint.span)
            somewhere = (Rule(constraint.guard, self._bodies(constraint.guard), guard),)
            others.append(Rule(constraint.name, own, holds))
        else:
            negated = Clash(f"`{constraint.name}` is violated", constraint.span)
            somewhere = (Rule(constraint.name, own, negated),)
        return Asked(somewhere, tuple(others), self._attributes(graph))

    def _bodies(self, relation: str) -> tuple[tuple[core.Literal, ...], ...]:
        return tuple(rule.body for rule in self.maker.by_head.get(relation, ()))

    def _attributes(self, graph: Graph) -> frozenset[str]:
        """Attributes that constraints on the graph speak of: this one, and those that must hold."""
        relevant = self.maker.relevant(frozenset(node.op for node in graph.nodes))
        return self._attributes_in([self.constraint.name, *(c.name for c in relevant)])

    def _attributes_in(
        self, relations: Iterable[str], said: Collection[str] = ("attr", "attr_at")
    ) -> frozenset[str]:
        return frozenset(
            str(atom.terms[1].value)
            for relation in relations
            for body in self._bodies(relation)
            for atom in _atoms(body)
            if atom.relation in said and isinstance(atom.terms[1], core.Const)
        )

    def _worded(self, graph: Graph) -> Iterator[Graph]:
        """The program, and what it is with other words and truth values in the attributes that
        constraints speak of."""
        yield graph
        places = [
            (node.name, name, others)
            for node in graph.nodes
            for name in sorted(self._attributes(graph) & node.attributes.keys())
            if (others := self._words(node, name))
        ]
        # fewest changes first
        for count in range(1, len(places) + 1):
            for chosen in combinations(places, count):
                for words in product(*(others for _, _, others in chosen)):
                    attributes = {node.name: dict(node.attributes) for node in graph.nodes}
                    for (node_name, name, _), word in zip(chosen, words, strict=True):
                        attributes[node_name][name] = word
                    yield _rebuilt(graph, attributes=attributes)

    def _words(self, node: Node, name: str) -> list[Attribute]:
        """What else an attribute that is no number may be, as its signature says."""
        value = node.attributes[name]
        if isinstance(value, bool):
            return [not value]
        signatures = self.maker.signatures
        if not isinstance(value, str) or node.op not in signatures:
            return []
        plan = next((a for a in signatures[node.op].plan.attributes if a.name == name), None)
        match plan.domain if plan is not None else None:
            case ast.SetDomain(items):
                found = [w for item in items if (w := _spelled(item)) is not None]
            case ast.NamedDomain(named):
                found = sorted(map(str, signatures.symbols.sets[named.text].values))
            case _:
                found = []
        return [word for word in found if word != value]

    @cached_property
    def _asks(self) -> frozenset[str]:
        return frozenset(
            r for body in self._bodies(self.constraint.name) for r in core.relations_in(body)
        )

    def _drawn(self, graph: Graph, kind: Kind) -> Drawn:
        """Extents and element types to stay near to. Sources of one rank get the same extents:
        most operators with several operands want that."""
        sizes = self.constraint.klass == "resource" or bool({"elems", "device"} & self._asks)
        limits = self.maker.device.values.values()
        shapes: dict[str, Sequence[int]] = {}
        dtypes: dict[str, Sequence[str]] = {}
        by_rank: dict[int, Sequence[int]] = {}
        kinds = self.rng.sample(sorted(DTYPES), len(DTYPES))
        for tensor in graph.tensors:
            shape = tensor.type.shape
            if tensor.producer is not None or tensor.value is not None or shape is None:
                continue
            if sizes and kind is Kind.TYPED:
                drawn = by_rank.get(len(shape))
                if drawn is None:
                    drawn = by_rank[len(shape)] = draw_shape(self.rng, len(shape), limits)
                shapes[tensor.name] = drawn
            if "dtype" in self._asks and kind is not Kind.VALID and not sizes:
                dtypes[tensor.name] = kinds
        return Drawn(shapes, dtypes)

    # --- graphs ----------------------------------------------------------------------------------

    def _graph(self, structure: _Structure, found: Numbers, *, typed: bool) -> Graph | None:
        """The program with the numbers that were found; None where a signature disagrees."""
        if not typed:
            return self._declared(structure.graph, found)
        graph = structure.graph
        made = Graph(graph.name, dict(graph.opsets))
        tensors: dict[str, Tensor] = {}
        for source in graph.tensors:
            if source.producer is None:
                tensors[source.name] = _source(made, source, found.types[source.name])
        for node in graph.nodes:
            operands = [None if t is None else tensors[t.name] for t in node.inputs]
            signed, stored = as_signed(node)
            given = {k: v for k, v in node.attributes.items() if k in node.given}
            given |= found.attributes[node.name]
            types = [None if t is None else tensors[t.name].type for t in signed]
            try:
                typing = self.maker.signatures.check(node.op, types, {**given, **stored})
            except SignatureError:
                return None
            if any(
                isinstance(e, int) and e > MOST for type in typing.outputs for e in type.shape or ()
            ):
                return None
            results = [
                None if t is None else (t.name, type)
                for t, type in zip(node.outputs, typing.outputs, strict=False)
            ]
            copy = made.add_node(
                node.op,
                operands,
                results,
                {k: v for k, v in typing.attributes.items() if k not in stored},
                name=node.name,
                given=frozenset(given),
            )
            tensors |= {t.name: t for t in copy.outputs if t is not None}
        made.outputs = [tensors[t.name] for t in graph.outputs]
        return made

    def _declared(self, graph: Graph, found: Numbers) -> Graph:
        """The program with types as found. A result's shape is stated only if the constraint speaks
        of results: otherwise the compiler is left to find it."""
        types: dict[str, TensorType] = {}
        stated = self._about_results
        for tensor in graph.tensors:
            type = found.types[tensor.name]
            if tensor.producer is not None and not stated:
                type = TensorType(type.dtype, None)
            types[tensor.name] = type
        attributes = {
            node.name: {**node.attributes, **found.attributes[node.name]} for node in graph.nodes
        }
        return _rebuilt(graph, types=types, attributes=attributes)

    @cached_property
    def _about_results(self) -> bool:
        """Whether the constraint asks for extents of what a node makes."""
        for body in self._bodies(self.constraint.name):
            atoms = list(_atoms(body))
            made = {a.terms[2] for a in atoms if a.relation == "output"}
            if any(
                a.relation in ("dim", "shape", "elems", "rank") and a.terms[0] in made
                for a in atoms
            ):
                return True
        return False


def missing(rules: RuleSet, constraint: Constraint, device: Device) -> list[str]:
    """What a constraint asks of the device that is not known."""
    asked = {
        str(atom.terms[0].value): None
        for rule in rules.program.rules
        if rule.head.relation == constraint.name
        for atom in _atoms(rule.body)
        if atom.relation == "device" and isinstance(atom.terms[0], core.Const)
    }
    return [key for key in asked if key not in device.values]


def _spelled(item: ast.Expr) -> str | None:
    match item:
        case ast.String(text) | ast.Name(text):
            return text
    return None


# --- programs ----------------------------------------------------------------------------------


def _atoms(body: Iterable[core.Literal]) -> Iterator[core.Atom]:
    for literal in body:
        if isinstance(literal, core.Atom):
            yield literal
        elif isinstance(literal, core.Aggregate):
            yield from _atoms(literal.body)


def _source(graph: Graph, tensor: Tensor, type: TensorType) -> Tensor:
    if tensor.role is Role.INITIALIZER:
        return graph.add_initializer(tensor.name, type, tensor.value)
    return graph.add_input(tensor.name, type)


def _opened(graph: Graph, keep: bool) -> Graph:
    """The program with inputs in place of stored values, whose size would be its model's
    (``keep``: except where the rules speak of them)."""
    made = Graph(graph.name, dict(graph.opsets))
    tensors: dict[str, Tensor] = {}
    for tensor in graph.tensors:
        if tensor.producer is None:
            is_operand = any(is_stored_operand(node, tensor) for node in graph.nodes)
            stored = tensor.role is Role.INITIALIZER and (keep or is_operand)
            tensors[tensor.name] = (
                made.add_initializer(tensor.name, tensor.type, tensor.value)
                if stored
                else made.add_input(tensor.name, tensor.type)
            )
    return _with_nodes(made, graph, tensors)


def _retyped(graph: Graph) -> Iterator[_Structure]:
    """The program with inputs in place of the operands that signatures know as attributes: a
    signature gives those one element type, an input has any. (Of no node if there is none.)"""
    readers = {
        tensor.name: node.name
        for node in graph.nodes
        for tensor in node.inputs
        if tensor is not None and is_stored_operand(node, tensor)
    }
    if not readers:
        return
    made = Graph(graph.name, dict(graph.opsets))
    tensors = {
        tensor.name: made.add_input(tensor.name, tensor.type)
        if tensor.name in readers
        else _source(made, tensor, tensor.type)
        for tensor in graph.tensors
        if tensor.producer is None
    }
    yield _Structure(_with_nodes(made, graph, tensors), graph, frozenset(readers.values()))


def _rebuilt(
    graph: Graph,
    *,
    types: Mapping[str, TensorType] | None = None,
    attributes: Mapping[str, Mapping[str, Attribute]] | None = None,
    operands: Mapping[str, Sequence[str | None]] | None = None,
    results: Mapping[str, int] | None = None,
) -> Graph:
    """The program with other types, attributes, operands or numbers of results, unchecked."""
    made = Graph(graph.name, dict(graph.opsets))
    tensors: dict[str, Tensor] = {}
    for tensor in graph.tensors:
        if tensor.producer is None:
            type = (types or {}).get(tensor.name, tensor.type)
            tensors[tensor.name] = _source(made, tensor, type)
    return _with_nodes(made, graph, tensors, types, attributes, operands, results)


def _with_nodes(
    made: Graph,
    graph: Graph,
    tensors: dict[str, Tensor],
    types: Mapping[str, TensorType] | None = None,
    attributes: Mapping[str, Mapping[str, Attribute]] | None = None,
    operands: Mapping[str, Sequence[str | None]] | None = None,
    results: Mapping[str, int] | None = None,
) -> Graph:
    for node in graph.nodes:
        names = [None if t is None else t.name for t in node.inputs]
        wanted = (operands or {}).get(node.name, names)
        outputs = [
            None if t is None else (t.name, (types or {}).get(t.name, t.type)) for t in node.outputs
        ]
        last = next((t for t in reversed(outputs) if t is not None), None)
        while last is not None and len(outputs) < (results or {}).get(node.name, 0):
            outputs.append((f"{node.name}_more{len(outputs)}", last[1]))
        copy = made.add_node(
            node.op,
            [None if name is None else tensors[name] for name in wanted],
            outputs,
            (attributes or {}).get(node.name, node.attributes),
            name=node.name,
            given=node.given,
        )
        tensors |= {t.name: t for t in copy.outputs if t is not None}
    made.outputs = [tensors[t.name] for t in graph.outputs]
    return made
