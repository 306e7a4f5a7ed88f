"""Algorithm 1 of the first paper: a program, node by node, around what is known to be broken.

    for each position:                      # 1-2
        B := {}                             # 3
        for attempt in 1..R:                # 4
            propose v with (p, Op(v), Key_p(v)) not in B      # 5
            match v                         # 6
            if v completes no pattern, or attempt = R: accept # 7-9
            else B := B + (p, Op(v), Key_p(v))                # 10-11

A candidate is a node with the sources (inputs and initializers) that it needs besides tensors of
the graph. Where it can be applied is read off the engine's ``accepts`` relation; what the other
operands and attributes are, its sampler draws; whether it completes a known bug, the engine
says after its facts are committed, and a rejected candidate is taken back exactly.

Program ``index`` of seed ``seed`` depends on these two numbers, the rules and the options alone.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from reprise.lang.core import Row
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet
from reprise.solve.sampling import Instance
from reprise.solve.signatures import Signatures
from reprise.synth import values
from reprise.synth.guide import Completed, Effect, Guide
from reprise.synth.interface import Synthesis
from reprise.synth.keys import Key, Keys
from reprise.synth.options import Options
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import Operator, Vocabulary, WhyNot
from reprise.uir.graph import Array, Attribute, Graph, Node, Role, Scalar, Tensor, TensorType
from reprise.uir.inference import Typing
from reprise.uir.program import Program

_PROPOSALS = 400
"""Proposals in a row that come to nothing before a position is left empty."""
_YOUNG = 3
_DRAWS = 3
"""How often a sampler draws for one choice of operands."""

Unsupported = Callable[[str, Sequence[TensorType | None], Mapping[str, Attribute]], str | None]
"""``unsupported(op, operands, attributes)``: why it cannot be lowered, or None."""

Excluded = tuple[str, str, str, int, Key]
"""A member of B: pattern, operator, and the key at one of the pattern's nodes, by the node's name
and the number of the alternative."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step of the algorithm, for those who want to watch: ``step`` is ``propose``, ``excluded``
    (its key is in B), ``invalid``, ``reject``, ``accept`` or ``reset``; ``excludes``: how many
    members B has."""

    step: str
    position: int
    attempt: int
    node: str = ""
    completed: tuple[str, ...] = ()
    excludes: int = 0


class Generator:
    """The programs of one run.

    ``patterns``: what to steer away from (none: unguided). ``why_not``, ``unsupported`` and
    ``forbidden`` say what the target does not do: by operator and dtypes, by operator, operand
    types and attributes, and as names of relations whose rows make a program invalid. Raises
    OptionsError if nothing can be generated.
    """

    def __init__(
        self,
        rules: RuleSet,
        signatures: Signatures,
        options: Options,
        seed: int,
        *,
        patterns: Sequence[Pattern] = (),
        why_not: WhyNot | None = None,
        unsupported: Unsupported | None = None,
        forbidden: Sequence[str] = (),
        environment: Mapping[str, Scalar] | None = None,
        opset: int | None = None,
    ) -> None:
        self.options = options
        self.seed = seed
        self.unsupported = unsupported
        self.vocabulary = Vocabulary(rules, signatures, options, why_not)
        self.guide = Guide(
            rules,
            patterns,
            self.vocabulary.takes(),
            forbidden=forbidden,
            environment=environment,
            opset=opset,
        )
        self.keys = Keys(
            patterns, self.guide.program, self.guide.database, exact=options.key == "exact"
        )

    def program(self, index: int) -> Synthesis:
        """Program number ``index``. A program is a net of objects that refer to each other, all of
        them needed until it is done: meanwhile there is no garbage worth looking for."""
        paused = gc.isenabled()
        gc.disable()
        try:
            return self._growth(index).run()
        finally:
            if paused:
                gc.enable()

    def learn(self, rules: RuleSet, patterns: Sequence[Pattern]) -> None:
        """Steer around these patterns too, from the next program on: the engine takes their rules
        as it stands. ``rules``: where they are declared."""
        self.guide.learn(rules, patterns)
        self.keys.learn(patterns)

    def watch(self, index: int) -> Iterator[Event]:
        """The steps by which program number ``index`` comes about."""
        events: list[Event] = []
        self._growth(index, events).run()
        yield from events

    def _growth(self, index: int, events: list[Event] | None = None) -> Growth:
        rng = Random(f"{self.seed}/{index}")
        return Growth(self, rng, f"s{self.seed}-{index:06d}", events)


_Application = tuple[Operator, dict[int, Tensor], Instance, Typing]
"""An operator with the tensors that are bound to its operands, and what was drawn for the rest."""


@dataclass(slots=True)
class _Candidate:
    """A node on trial: where the graph and the engine stood before it, and what it brought.
    ``pending``: the application that it was made for."""

    node: Node
    graph_mark: int
    accepts: list[Row]
    effect: Effect
    pending: _Application | None = None


class Growth:
    """One program in the making."""

    def __init__(
        self, generator: Generator, rng: Random, name: str, events: list[Event] | None = None
    ) -> None:
        self.options = generator.options
        self.vocabulary = generator.vocabulary
        self.guide = generator.guide
        self.keys = generator.keys
        self.unsupported = generator.unsupported
        self.rng = rng
        self.graph = Graph(name)
        self.events = events
        self.by_id: dict[int, Tensor] = {}
        self.by_type: dict[TensorType, list[Tensor]] = {}
        self.values: dict[int, Array] = {}
        self.read: set[int] = set()
        self.sources = 0
        self.pending: _Application | None = None
        self.rejected: Counter[str] = Counter()
        self.completed: dict[str, None] = {}
        self.constant_only = rng.random() < self.options.no_inputs
        self.may_be_empty = rng.random() < self.options.empty
        vocabulary = self.vocabulary
        self.shapes = vocabulary.shapes_with_empty if self.may_be_empty else vocabulary.shapes

    def run(self) -> Synthesis:
        """Grow the graph and finish it."""
        self.guide.begin()
        for position in range(self.options.nodes):  # lines 1-2
            self.grow(position)
        return self._finish()

    def grow(self, position: int) -> None:
        """Fill one position, if any candidate can."""
        attempts = self.options.attempts
        excluded: set[Excluded] = set()  # line 3
        self._tell("reset", position, 0)
        for attempt in range(1, attempts + 1):
            candidate = self._propose_allowed(position, attempt, excluded)  # line 5
            if candidate is None:
                return
            completed = candidate.effect.completed  # line 6
            if not completed or attempt == attempts:  # line 7
                self._accept(candidate)  # line 8
                self._tell("accept", position, attempt, candidate, len(excluded))
                return
            excluded.update(self._exclusions(candidate))  # line 11
            self.rejected.update({c.pattern.name for c in completed})
            self._take_back(candidate)
            self._tell("reject", position, attempt, candidate, len(excluded))

    # --- proposing -------------------------------------------------------------------------------

    def _propose_allowed(
        self, position: int, attempt: int, excluded: set[Excluded]
    ) -> _Candidate | None:
        """A valid candidate whose key is not excluded, its facts committed; None if there seems
        to be none."""
        for _ in range(_PROPOSALS):
            candidate = self._propose()
            if candidate is None:
                continue
            self._tell("propose", position, attempt, candidate, len(excluded))
            if candidate.effect.forbidden:
                self._tell("invalid", position, attempt, candidate, len(excluded))
                self._take_back(candidate)
            elif excluded and self._is_excluded(candidate, excluded):
                self._tell("excluded", position, attempt, candidate, len(excluded))
                self._take_back(candidate)
            else:
                return candidate
        return None

    def _propose(self) -> _Candidate | None:
        """A node on tensors of the graph and, where needed, new sources; sometimes backwards: the
        node that makes an operand for another node, which is proposed next."""
        if self.pending is not None:
            pending, self.pending = self.pending, None
            return self._build(*pending)
        operator = self.vocabulary.choose(self.rng)
        bound = self._bind(operator)
        if bound is None:
            return None
        drawn = self._draw(operator, bound)
        if drawn is None:
            return None
        bound, instance, typing = drawn
        if not self._is_allowed(operator, instance, typing):
            return None
        if self.rng.random() < self.options.backward and self.by_id:
            candidate = self._produce(operator, bound, instance, typing)
            if candidate is not None:
                return candidate
        return self._build(operator, bound, instance, typing)

    def _produce(
        self,
        operator: Operator,
        bound: dict[int, Tensor],
        instance: Instance,
        typing: Typing,
    ) -> _Candidate | None:
        """Backward insertion: a node whose result is just what an operand of the drawn application
        must be. The application itself waits for it."""
        rng = self.rng
        missing = [
            i
            for i, type in enumerate(instance.operands)
            if type is not None
            and i not in bound
            and operator.policy.demanded(i, type.dtype) is None
        ]
        if not missing:
            return None
        i = missing[int(rng.random() * len(missing))]
        required = instance.operands[i]
        assert required is not None
        makers = self.vocabulary.producers.of(required)
        if not makers:
            return None
        maker = makers[int(rng.random() * len(makers))]
        young = list(self.by_id.values())[-_YOUNG:]
        production = maker.producer(rng, required, [t.type for t in young])
        if production is None:
            return None
        producer = self.vocabulary.by_name[maker.signature.name]
        made_of = producer.trimmed((production.instance, production.typing))
        if made_of is None or made_of[1].outputs[production.output] != required:
            return None
        if not self._is_allowed(producer, *made_of):
            return None
        given = {port: young[number] for port, number in production.bound.items()}
        if any(producer.policy.demanded(p, t.type.dtype) is not None for p, t in given.items()):
            return None
        candidate = self._build(producer, given, *made_of, production.output)
        if candidate is not None:
            made = candidate.node.outputs[production.output]
            assert made is not None
            candidate.pending = operator, {**bound, i: made}, instance, typing
        return candidate

    def _bind(self, operator: Operator) -> dict[int, Tensor] | None:
        """Tensors of the graph for one operand, or some; nothing if the graph is empty or the
        operator takes none; None if no tensor fits."""
        rng, ports = self.rng, operator.ports
        if not ports or not self.by_id:
            return {}
        i, kind = ports[0] if rng.random() < 0.75 else ports[int(rng.random() * len(ports))]
        accepted = self.guide.accepted(kind)
        if not accepted:
            return None
        tensor = self._pick(accepted)
        if operator.policy.demanded(i, tensor.type.dtype) is not None:
            return None
        bound = {i: tensor}
        for other, kind in ports:
            if other != i and rng.random() < self.options.join:
                accepted = self.guide.accepted(kind)
                if accepted:
                    tensor = self._pick(accepted)
                    if operator.policy.demanded(other, tensor.type.dtype) is None:
                        bound[other] = tensor
        return bound

    def _pick(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """One of the tensors in some groups, often one of the three youngest."""
        rng = self.rng
        if rng.random() < self.options.recent:
            if len(groups) == 1:
                young = groups[0][-_YOUNG:]
            else:
                young = sorted([id for group in groups for id in group[-_YOUNG:]])[-_YOUNG:]
            return self.by_id[young[int(rng.random() * len(young))]]
        place = int(rng.random() * sum(map(len, groups)))
        for group in groups:
            if place < len(group):
                return self.by_id[group[place]]
            place -= len(group)
        raise AssertionError("no group is empty")

    def _draw(
        self, operator: Operator, bound: dict[int, Tensor]
    ) -> tuple[dict[int, Tensor], Instance, Typing] | None:
        """An instance with the bound operands, or with the first of them only."""
        sampler = operator.sampler
        while True:
            types = {i: tensor.type for i, tensor in bound.items()}
            tries = 1 if len(bound) > 1 else _DRAWS
            found = operator.trimmed(
                sampler.typed(self.rng, types, tries=tries, shapes=self.shapes)
            )
            if found is not None:
                return bound, *found
            if len(bound) <= 1:
                return None
            i = next(iter(bound))
            bound = {i: bound[i]}

    def _is_allowed(self, operator: Operator, instance: Instance, typing: Typing) -> bool:
        """Whether budgets and the target admit the application."""
        options = self.options
        results: Sequence[TensorType] = typing.outputs
        if "data_dependent" in operator.signature.flags:
            results = [type for type in results if type.elements is not None]
        for type in (*instance.operands, *results):
            if type is None:
                continue
            if type.dtype not in options.dtypes:
                return False
            if type.shape is None or len(type.shape) > options.max_rank:
                return False
            count = 1
            for extent in type.shape:
                if extent.__class__ is not int or not 0 <= extent <= options.max_extent:
                    return False
                count *= extent
            if count > options.max_elements or (count == 0 and not self.may_be_empty):
                return False
        dtypes = tuple([None if o is None else o.dtype for o in instance.operands])
        if not self.vocabulary.supports(operator.name, dtypes):
            return False
        if self.unsupported is None:
            return True
        return self.unsupported(operator.name, instance.operands, typing.attributes) is None

    def _build(
        self,
        operator: Operator,
        bound: dict[int, Tensor],
        instance: Instance,
        typing: Typing,
        output: int = 0,
    ) -> _Candidate | None:
        """Put the candidate into the graph and its facts into the engine. Result ``output`` is
        asked for, besides the first."""
        graph_mark = self.graph.mark()
        self.guide.try_out()
        sources, accepts = self.sources, list[Row]()
        operands: list[Tensor | None] = []
        try:
            for i, type in enumerate(instance.operands):
                if type is None:
                    operands.append(None)
                    continue
                tensor = bound.get(i)
                if tensor is None:
                    tensor = self._reuse(operator, i, type)
                if tensor is None:
                    tensor = self._source(operator, i, type, instance, typing)
                    accepts += self.guide.add_source(tensor)
                operands.append(tensor)
        except NoValue:
            self.sources = sources
            self.graph.take_back(graph_mark)
            self.guide.take_back()
            return None
        number = len(self.graph.nodes)
        outputs = typing.outputs
        results: list[tuple[str, TensorType] | None]
        if len(outputs) == 1:
            results = [(f"v{number}", outputs[0])]
        else:  # the first result is always asked for, and every piece of what is cut up
            cut = "many_results" in operator.signature.flags
            asked = 1.0 if cut else self.options.results
            results = [
                (f"v{number}_{j}", type) if j in (0, output) or self.rng.random() < asked else None
                for j, type in enumerate(outputs)
            ]
        node = self.graph.add_node(
            operator.name,
            operands,
            results,
            typing.attributes,
            name=f"n{number}",
            given=frozenset(instance.attributes),
        )
        effect = self.guide.add(node)
        accepts += effect.accepts
        return _Candidate(node, graph_mark, accepts, effect)

    def _reuse(self, operator: Operator, position: int, type: TensorType) -> Tensor | None:
        """A tensor of just this type that is there already, if the operand may be any."""
        if operator.policy.demanded(position, type.dtype) is not None:
            return None
        same = self.by_type.get(type)
        if not same or self.rng.random() >= self.options.join:
            return None
        return same[int(self.rng.random() * len(same))]

    def _source(
        self,
        operator: Operator,
        position: int,
        type: TensorType,
        instance: Instance,
        typing: Typing,
    ) -> Tensor:
        """A new input or initializer. Raises NoValue if no values are as demanded."""
        rng, options = self.rng, self.options
        kind = operator.policy.kind(position, type.dtype)
        number = self.sources
        self.sources += 1
        first, second = (*instance.operands, None, None)[:2]
        if kind:
            assert first is not None
            use = Use(first, typing.attributes, typing.outputs[0], second)
            value = values.of_kind(kind, rng, type, use)
        elif rng.random() < options.special:
            value = values.special(rng, type)
        else:
            value = values.ordinary(rng, type)
        if self.constant_only or rng.random() < options.initializers:
            return self.graph.add_initializer(f"w{number}", type, value)
        tensor = self.graph.add_input(f"x{number}", type)
        self.values[tensor.id] = value
        return tensor

    # --- deciding --------------------------------------------------------------------------------

    def _keys_of(self, candidate: _Candidate, completed: Completed) -> Iterator[Excluded]:
        node, makers = candidate.node, self._makers()
        for name, id in zip(completed.pattern.nodes, completed.nodes, strict=True):
            if id == node.id:
                for number, key in enumerate(
                    self.keys.of(completed.pattern.name, name, node.id, makers)
                ):
                    if key:
                        yield completed.pattern.name, node.op, name, number, key

    def _exclusions(self, candidate: _Candidate) -> set[Excluded]:
        """What the rejection of a candidate excludes: (p, Op(v), Key_p(v)) of each pattern."""
        return {
            excluded
            for completed in candidate.effect.completed
            for excluded in self._keys_of(candidate, completed)
        }

    def _is_excluded(self, candidate: _Candidate, excluded: set[Excluded]) -> bool:
        node, makers = candidate.node, self._makers()
        return any(
            op == node.op and self.keys.of(pattern, name, node.id, makers)[number] == key
            for pattern, op, name, number, key in excluded
        )

    def _makers(self) -> dict[int, str]:
        """The operator that makes each tensor; the empty string for sources."""
        return {t.id: "" if t.producer is None else t.producer.op for t in self.graph.tensors}

    def _accept(self, candidate: _Candidate) -> None:
        fresh = [t for t in self.graph.tensors if t.id >= candidate.graph_mark]
        self.guide.keep(candidate.accepts, fresh)
        for tensor in fresh:
            if tensor.type.elements is None:
                continue  # its extents depend on values: nothing can be known to take it
            self.by_id[tensor.id] = tensor
            self.by_type.setdefault(tensor.type, []).append(tensor)
        for operand in candidate.node.inputs:
            if operand is not None:
                self.read.add(operand.id)
        for completed in candidate.effect.completed:
            self.completed[completed.pattern.name] = None
        self.pending = candidate.pending

    def _take_back(self, candidate: _Candidate) -> None:
        self.guide.take_back()
        for tensor in self.graph.tensors:
            if tensor.id >= candidate.graph_mark and tensor.role is not Role.COMPUTED:
                self.sources -= 1
                self.values.pop(tensor.id, None)
        self.graph.take_back(candidate.graph_mark)

    # --- the end ---------------------------------------------------------------------------------

    def _finish(self) -> Synthesis:
        """Name the outputs: what nobody reads, and a few of the others."""
        graph, rng = self.graph, self.rng
        for tensor in graph.tensors:
            if tensor.role is Role.COMPUTED:
                unread = tensor.id not in self.read
                if unread or rng.random() < self.options.expose:
                    graph.outputs.append(tensor)
        for completed in self.guide.finish(graph.outputs):
            self.completed[completed.pattern.name] = None
        inputs = {
            tensor.name: self.values[tensor.id]
            for tensor in graph.tensors
            if tensor.role is Role.INPUT
        }
        program = Program(graph, inputs, graph.name)
        return Synthesis(program, self.rejected, tuple(self.completed))

    def _tell(
        self,
        step: str,
        position: int,
        attempt: int,
        candidate: _Candidate | None = None,
        excludes: int = 0,
    ) -> None:
        if self.events is None:
            return
        if candidate is None:
            self.events.append(Event(step, position, attempt))
            return
        node = candidate.node
        operands = ", ".join("_" if o is None else o.name for o in node.inputs)
        names = tuple(dict.fromkeys(c.pattern.name for c in candidate.effect.completed))
        shown = f"{node.op}({operands})"
        self.events.append(Event(step, position, attempt, shown, names, excludes))
