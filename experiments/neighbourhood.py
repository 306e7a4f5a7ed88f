"""The neighbourhood of a program: what is left after a few structural changes to it.

Nothing here looks at a rule. A program (a rule's example, one that must not match, or a fresh
witness) is taken apart into sources and steps, a few things about it are changed, and it is put
together again by the operators' signatures, which refuse what is no program. So a rule can be held
against programs that its own conditions did not make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth.inputs import value_of
from reprise.synth.values import NoValue
from reprise.synth.vocabulary import LEFT_OUT, Policy
from reprise.uir.graph import Array, Attribute, Graph, Role, Tensor, TensorType
from reprise.uir.text import print_uir
from reprise.uir.types import numpy_dtype

DTYPES = (
    *("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"),
    *("float32", "float64"),  # these meet most rewrites
)
EXTENTS = (1, 2, 3, 4, 5, 8, 16, 17, 0)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0)
INSERTED = ("identity", "dropout", "neg", "abs", "relu", "cast")
MAX_ELEMENTS = 1 << 15


@dataclass(frozen=True, slots=True)
class Source:
    """An input, or a constant with its value (None: ordinary ones)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    constant: bool
    value: Array | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A node: its operands by name, the attributes that were written, the results asked for."""

    op: str
    operands: tuple[str | None, ...]
    given: Mapping[str, Attribute]
    results: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A program, taken apart. ``exposed``: results that are outputs besides those nobody reads."""

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    exposed: frozenset[str] = frozenset()
    opsets: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, graph: Graph) -> Draft:
        """Takes a graph apart, every extent of which is known."""
        names = {t.id: f"t{t.id}" for t in graph.tensors}
        read = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        sources = []
        for tensor in graph.tensors:
            if tensor.role in (Role.INPUT, Role.INITIALIZER):
                shape = tuple(e for e in tensor.type.shape or () if isinstance(e, int))
                constant = tensor.role is Role.INITIALIZER
                dtype = tensor.type.dtype or ""
                sources.append(Source(names[tensor.id], dtype, shape, constant, tensor.value))
        steps = [
            Step(
                node.op,
                tuple(None if t is None else names[t.id] for t in node.inputs),
                {k: v for k, v in node.attributes.items() if k in node.given},
                tuple(None if t is None else names[t.id] for t in node.outputs),
            )
            for node in graph.nodes
        ]
        exposed = frozenset(names[t.id] for t in graph.outputs if t.id in read)
        return cls(tuple(sources), tuple(steps), exposed, tuple(graph.opsets.items()))


@dataclass
class Neighbourhood:
    """Makes neighbours of programs. The same generator state gives the same ones."""

    signatures: Signatures
    policies: Mapping[str, Policy]
    extents: Sequence[int] = EXTENTS
    _samplers: dict[str, Sampler] = field(default_factory=dict)

    def around(self, seeds: Sequence[Graph], rng: Random, most: int) -> Iterator[Graph]:
        """The seeds themselves, then neighbours of those whose operators have signatures: up to
        ``most`` programs, all different, or fewer where no more turn up."""
        seen: set[str] = set()
        found = 0
        for graph in (*seeds, *self._endless(seeds, rng, 40 * most)):
            if found == most:
                return
            key = print_uir(graph)
            if key not in seen:
                seen.add(key)
                found += 1
                yield graph

    def _endless(self, seeds: Sequence[Graph], rng: Random, tries: int) -> Iterator[Graph]:
        drafts = [
            (Draft.of(graph), graph)
            for graph in seeds
            if all(node.op in self.signatures for node in graph.nodes)
        ]
        for _ in range(tries if drafts else 0):
            draft, graph = rng.choice(drafts)
            for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
                changed = rng.choice(CHANGES)(self, draft, graph, rng)
                built = None if changed is None else self.build(changed, rng)
                if changed is None or built is None:
                    break
                draft, graph = changed, built
            else:
                yield graph

    def build(self, draft: Draft, rng: Random) -> Graph | None:
        """The graph of a draft; None if it is no program."""
        graph = Graph("neighbour", dict(draft.opsets))
        tensors: dict[str, Tensor] = {}
        for source in draft.sources:
            type_ = TensorType(source.dtype, source.shape)
            if (type_.elements or 0) > MAX_ELEMENTS:
                return None
            if source.constant:
                value = fitted(source)
                tensors[source.name] = graph.add_initializer(source.name, type_, value)
            else:
                tensors[source.name] = graph.add_input(source.name, type_)
        for step in draft.steps:
            if any(name is not None and name not in tensors for name in step.operands):
                return None
            operands = [None if name is None else tensors[name] for name in step.operands]
            types = [None if t is None else t.type for t in operands]
            typing = self.signatures[step.op].attempt(types, step.given)
            if typing is None or len(typing.outputs) < len(step.results):
                return None
            made = [
                None if name is None else (name, type_)
                for name, type_ in zip(step.results, typing.outputs, strict=False)
            ]
            if any(t.elements is None or t.elements > MAX_ELEMENTS for t in typing.outputs):
                return None
            node = graph.add_node(
                step.op, operands, made, typing.attributes, given=frozenset(step.given)
            )
            for name, result in zip(step.results, node.outputs, strict=True):
                if name is not None and result is not None:
                    tensors[name] = result
        read = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        graph.outputs = [
            t
            for t in graph.tensors
            if t.role is Role.COMPUTED and (t.id not in read or t.name in draft.exposed)
        ]
        if not graph.outputs:
            return None
        try:
            for tensor in graph.tensors:
                if tensor.role is Role.INITIALIZER and tensor.value is None:
                    tensor.value = value_of(graph, tensor, self.policies, rng, "ordinary")
                elif tensor.role is Role.INPUT:
                    value_of(graph, tensor, self.policies, rng, "ordinary")  # that there are any
        except NoValue:
            return None
        return graph

    def sampler(self, op: str) -> Sampler:
        """The operator's sampler."""
        if op not in self._samplers:
            shapes = Shapes(tuple(self.extents), (0, 1, 2, 2, 3, 4))
            self._samplers[op] = Sampler(self.signatures[op], shapes, DTYPES)
        return self._samplers[op]


def fitted(source: Source) -> Array | None:
    """A constant's value in its type: as it was, or the same number throughout; None where it was
    many numbers and has another shape now."""
    value = source.value
    if value is None:
        return None
    with np.errstate(all="ignore"):
        if value.shape == source.shape:
            return value.astype(numpy_dtype(source.dtype))
        if value.size and (value.reshape(-1)[0] == value).all():
            return np.full(source.shape, value.reshape(-1)[0]).astype(numpy_dtype(source.dtype))
    return None


# --- changes -------------------------------------------------------------------------------------

Change = Callable[[Neighbourhood, Draft, Graph, Random], "Draft | None"]


def _with_source(draft: Draft, number: int, source: Source) -> Draft:
    sources = list(draft.sources)
    sources[number] = source
    return replace(draft, sources=tuple(sources))


def _with_step(draft: Draft, number: int, step: Step) -> Draft:
    steps = list(draft.steps)
    steps[number] = step
    return replace(draft, steps=tuple(steps))


def other_dtype(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Another element type, for all sources that have one type, or for one of them."""
    if not draft.sources:
        return None
    old = rng.choice(draft.sources).dtype
    new = rng.choice([d for d in DTYPES if d != old])
    alone = rng.randrange(len(draft.sources)) if rng.random() < 0.25 else None
    sources = tuple(
        replace(s, dtype=new) if s.dtype == old and alone in (None, n) else s
        for n, s in enumerate(draft.sources)
    )
    steps = tuple(
        replace(step, given={k: new if v == old else v for k, v in step.given.items()})
        if alone is None
        else step
        for step in draft.steps
    )
    return replace(draft, sources=sources, steps=steps)


def other_extent(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Another extent, wherever it occurs, or in one place."""
    extents = sorted({e for s in draft.sources for e in s.shape})
    if not extents:
        return None
    old = rng.choice(extents)
    new = rng.choice([e for e in at.extents if e != old])
    if rng.random() < 0.6:
        sources = tuple(
            replace(s, shape=tuple(new if e == old else e for e in s.shape)) for s in draft.sources
        )
        return replace(draft, sources=sources)
    number = rng.choice([n for n, s in enumerate(draft.sources) if old in s.shape])
    source = draft.sources[number]
    place = rng.choice([i for i, e in enumerate(source.shape) if e == old])
    shape = (*source.shape[:place], new, *source.shape[place + 1 :])
    return _with_source(draft, number, replace(source, shape=shape))


def other_rank(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """One axis more in front, or one less; numbered axes move with the rest, or stay."""
    shift = rng.choice((1, 1, -1))
    extent = rng.choice(at.extents)
    alone = rng.randrange(len(draft.sources)) if rng.random() < 0.3 and draft.sources else None
    sources = []
    for number, source in enumerate(draft.sources):
        if alone not in (None, number) or (not source.shape and (shift < 0 or alone is None)):
            sources.append(source)
        elif shift > 0:
            sources.append(replace(source, shape=(extent, *source.shape)))
        else:
            sources.append(replace(source, shape=source.shape[1:]))
    steps = draft.steps
    if alone is None and rng.random() < 0.7:
        steps = tuple(replace(s, given=_moved(s.given, shift)) for s in steps)
    return replace(draft, sources=tuple(sources), steps=steps)


def _moved(given: Mapping[str, Attribute], shift: int) -> dict[str, Attribute]:
    moved = dict(given)
    for name in ("axis", "axes"):
        value = moved.get(name)
        if isinstance(value, int):
            moved[name] = max(0, value + shift)
        elif isinstance(value, tuple):
            moved[name] = tuple(max(0, int(v) + shift) for v in value)
    if shift > 0 and isinstance(perm := moved.get("perm"), tuple):
        moved["perm"] = (0, *(int(v) + 1 for v in perm))
    return moved


def other_attribute(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Another value of one attribute of one node, drawn from its signature."""
    places = [n for n, s in enumerate(draft.steps) if at.sampler(s.op).attributes]
    if not places:
        return None
    number = rng.choice(places)
    step, node = draft.steps[number], graph.nodes[number]
    sampler = at.sampler(step.op)
    name = rng.choice(sorted(a.plan.name for a in sampler.attributes.values()))
    bound = {i: t.type for i, t in enumerate(node.inputs) if t is not None}
    rest = {k: v for k, v in step.given.items() if k != name}
    drawn = sampler.typed(rng, bound, given=rest, tries=8)
    if drawn is None:
        return None
    value = drawn[0].attributes.get(name)
    given = rest if value is None else {**rest, name: value}
    return _with_step(draft, number, replace(step, given=given))


def other_operator(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Another operator of the same category in its place."""
    if not draft.steps:
        return None
    number = rng.randrange(len(draft.steps))
    step, node = draft.steps[number], graph.nodes[number]
    category = at.signatures[step.op].category
    kin = [
        op
        for op in sorted(at.signatures)
        if at.signatures[op].category == category
        and op != step.op
        and not at.signatures[op].flags & LEFT_OUT
    ]
    if not kin:
        return None
    op = rng.choice(kin)
    sampler = at.sampler(op)
    known = {a.plan.name for a in sampler.attributes.values()}
    given = {k: v for k, v in step.given.items() if k in known}
    bound = {i: t.type for i, t in enumerate(node.inputs) if t is not None}
    if any(i >= len(sampler.ports) and not at.signatures[op].variadic for i in bound):
        return None
    drawn = sampler.typed(rng, bound, given=given, tries=8)
    if drawn is None or len(drawn[0].operands) != len(step.operands):
        return None
    return _with_step(draft, number, replace(step, op=op, given=drawn[0].attributes))


def swapped(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Two operands of a node change places."""
    places = [n for n, s in enumerate(draft.steps) if len(s.operands) >= 2]
    if not places:
        return None
    number = rng.choice(places)
    operands = list(draft.steps[number].operands)
    operands[0], operands[1] = operands[1], operands[0]
    return _with_step(draft, number, replace(draft.steps[number], operands=tuple(operands)))


def inserted(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """A node between a tensor and one that reads it."""
    places = [
        (n, i)
        for n, s in enumerate(draft.steps)
        for i, operand in enumerate(s.operands)
        if operand is not None
    ]
    if not places:
        return None
    number, place = rng.choice(places)
    step = draft.steps[number]
    read = step.operands[place]
    op = rng.choice(INSERTED)
    given: dict[str, Attribute] = {"to": rng.choice(DTYPES)} if op == "cast" else {}
    name = _fresh(draft)
    extra = Step(op, (read,), given, (name,))
    changed = replace(step, operands=(*step.operands[:place], name, *step.operands[place + 1 :]))
    steps = (*draft.steps[:number], extra, changed, *draft.steps[number + 1 :])
    return replace(draft, steps=steps)


def exposed(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """A result in the middle becomes an output too, or none any more."""
    names = [name for step in draft.steps[:-1] for name in step.results if name is not None]
    if not names:
        return None
    return replace(draft, exposed=draft.exposed ^ {rng.choice(names)})


def read_again(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """A result is read by another node too."""
    names = [name for step in draft.steps for name in step.results if name is not None]
    names += [s.name for s in draft.sources]
    if not names:
        return None
    extra = Step(rng.choice(("neg", "abs", "identity")), (rng.choice(names),), {}, (_fresh(draft),))
    return replace(draft, steps=(*draft.steps, extra))


def constness(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """A constant becomes an input, or an input a constant."""
    if not draft.sources:
        return None
    number = rng.randrange(len(draft.sources))
    source = draft.sources[number]
    return _with_source(draft, number, replace(source, constant=not source.constant))


def other_number(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """A constant gets another value: one number throughout, or any."""
    places = [n for n, s in enumerate(draft.sources) if s.constant]
    if not places:
        return None
    number = rng.choice(places)
    source = draft.sources[number]
    value: Array | None = None
    if rng.random() < 0.8:
        with np.errstate(all="ignore"):
            value = np.full(source.shape, rng.choice(NUMBERS)).astype(numpy_dtype(source.dtype))
    return _with_source(draft, number, replace(source, value=value))


def cut_off(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Without the last node."""
    if len(draft.steps) < 2:
        return None
    return replace(draft, steps=draft.steps[:-1])


def passed_by(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """Without a node in the middle: who read it reads what it read."""
    places = [
        n
        for n, s in enumerate(draft.steps)
        if s.operands and s.operands[0] is not None and len(s.results) == 1
    ]
    if len(draft.steps) < 2 or not places:
        return None
    number = rng.choice(places)
    gone = draft.steps[number]
    before, after = gone.operands[0], gone.results[0]
    steps = tuple(
        replace(s, operands=tuple(before if o == after else o for o in s.operands))
        for n, s in enumerate(draft.steps)
        if n != number
    )
    return replace(draft, steps=steps)


def other_opset(at: Neighbourhood, draft: Draft, graph: Graph, rng: Random) -> Draft | None:
    """For another opset of ONNX (of no meaning elsewhere)."""
    return replace(draft, opsets=(("", rng.choice((13, 17, 18, 20, 21))),))


CHANGES: tuple[Change, ...] = (
    *(other_dtype, other_dtype, other_extent, other_extent, other_rank),
    *(other_attribute, other_attribute, other_operator, swapped, inserted, inserted),
    *(exposed, read_again, constness, constness, other_number, cut_off, passed_by, other_opset),
)
"""What may be changed; repeated ones are likelier."""


def _fresh(draft: Draft) -> str:
    taken = {name for step in draft.steps for name in step.results}
    taken |= {s.name for s in draft.sources}
    number = len(taken)
    while f"t{number}" in taken:
        number += 1
    return f"t{number}"
