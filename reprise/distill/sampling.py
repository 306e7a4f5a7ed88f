"""Programs that match a draft, made by changing one that does.

Comes in: a :class:`~reprise.distill.draft.Draft`, a program that matches it (the *seed*), and
:class:`Wish` values: what the sample must have. Goes out: a :class:`Sample`. The lines are built in
the order of data flow. Each takes its operator, operand types and attributes from the seed, from
the wishes, or, for what the draft leaves open, from a random draw; where these do not fit together,
the operator's sampler draws the rest. What is built is checked against the draft, so a sample
always matches. It costs about a millisecond. A witness made from the pattern's text
(``reprise.synth.witness``) knows nothing of the seed and costs twenty: it is what the final check
uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from reprise.distill.conditions import (
    Among,
    Place,
    Surroundings,
    Term,
    Within,
    holds_all,
    same,
)
from reprise.distill.draft import ANYTHING, Draft, DraftNode, maker
from reprise.lang.dtypes import DTYPES
from reprise.solve.sampling import DRAWN, Astray, Draw, Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth import values
from reprise.synth.generator import Unsupported
from reprise.synth.options import DTYPE_WEIGHTS
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import LEFT_OUT, Policy, WhyNot
from reprise.synth.witness import OPSETS
from reprise.uir.graph import Array, Attribute, Graph, Node, Role, Tensor, TensorType
from reprise.uir.inference import Typing
from reprise.uir.program import Program
from reprise.uir.types import numpy_dtype

_TRIES = 60
"""How often a sample is tried before there is said to be none."""
_STRICT = 4
"""For so many tries all sources keep the seed's types, but for what is wished for."""
_EXTENTS = (1, 1, 2, 2, 3, 4, 5, 7, 8, 16)
_MOST_ELEMENTS = 1 << 20
_TELLING = ("neg", "tanh", "sigmoid", "atan", "abs")
"""Neighbours that pass on nearly every difference between values, and take nearly every value: most
are of these, so that a wrong result is not hidden by what reads it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a sample must have, about a line or a tensor of the draft.

    ======== ======== ============================================================
    kind     ``of``   ``value``
    ======== ======== ============================================================
    op       a line   the operator
    attr     a line   of attribute ``key``; DRAWN: any; None: left out
    operand  a line   at position ``key``: a tensor's name, or None: left out
    swap     a line   its operands ``key`` and ``key`` + 1 change places
    dtype    a source the element type
    rank     a source the rank
    dim      a source the extent of axis ``key``
    result   a line   whether its result ``key`` is asked for
    role     a source ``input``, ``stored``, ``computed`` (at run time) or ``folded``
    values   a source a number for all elements, or a kind of values
    reader   a tensor true, or an operator: it is read once more, besides the lines
    output   a tensor whether it is a graph output
    opset             the version of ONNX's operator set
    ======== ======== ============================================================
    """

    kind: str
    of: str
    key: str | int = ""
    value: Attribute | None = None

    def __str__(self) -> str:
        key = "" if self.key == "" else f".{self.key}"
        return f"{self.kind} {self.of}{key} = {self.value}"


ROLES = ("input", "stored", "computed", "folded")


@dataclass(frozen=True)
class Sample:
    """A program, and where in it the draft matches."""

    program: Program
    place: Place
    uses: Mapping[str, tuple[str | None, Use]] = field(default_factory=dict, repr=False)


class _Steered(Draw):
    """A draw that knows which optional operands and attributes are to be there."""

    wanted: frozenset[int] = frozenset()

    def wants(self, port: int) -> bool:
        return port in self.wanted


class Sampling:
    """Makes samples. ``why_not`` and ``unsupported`` keep to what the target does."""

    def __init__(
        self,
        signatures: Signatures,
        policies: Mapping[str, Policy],
        why_not: WhyNot | None = None,
        unsupported: Unsupported | None = None,
        dtypes: Sequence[str] = tuple(DTYPE_WEIGHTS),
    ) -> None:
        self.signatures = signatures
        self.policies = policies
        self.why_not = why_not
        self.unsupported = unsupported
        self.dtypes = tuple(dtypes)
        self.shapes = Shapes(_EXTENTS, (0, 1, 2, 2, 3, 3, 4, 4))
        self._samplers: dict[str, Sampler] = {}
        self._unary: dict[str, tuple[str, ...]] = {}

    def sample(
        self,
        draft: Draft,
        seed: Place,
        rng: Random,
        wishes: Iterable[Wish] = (),
        *,
        inputs: Mapping[str, Array] | None = None,
        stray: float = 0.3,
        accept: Callable[[Place], bool] | None = None,
        tries: int = _TRIES,
    ) -> Sample | None:
        """A program that matches ``draft`` and has what is wished for, or None if ``tries``
        attempts made none.

        ``inputs``: values of the seed's inputs. ``stray``: how likely each thing that the draft
        leaves open differs from the seed's. ``accept``: what must hold of the sample besides.
        """
        wanted = tuple(wishes)
        for number in range(tries):
            share = stray * 0.85**number
            build = _Build(self, draft, seed, rng, wanted, inputs or {}, share, number >= _STRICT)
            try:
                made = build.run()
            except (_Failed, NoValue):
                continue
            if accept is None or accept(made.place):
                return made
        return None

    def redrawn(self, sample: Sample, rng: Random) -> Program:
        """The same program with other input values: ordinary ones, or special."""
        program = sample.program
        given: dict[str, Array] = {}
        for tensor in program.graph.tensors:
            if tensor.role is Role.INPUT:
                kind, use = sample.uses.get(tensor.name, (None, None))
                given[tensor.name] = _drawn(rng, tensor.type, kind, use)
        return Program(program.graph, given, program.name)

    def sampler(self, op: str) -> Sampler:
        sampler = self._samplers.get(op)
        if sampler is None:
            sampler = self._samplers[op] = Sampler(self.signatures[op], self.shapes, self.dtypes)
        return sampler

    def supports(
        self, op: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Attribute]
    ) -> bool:
        """Whether the target does this, as far as its table and its lowering say."""
        dtypes = tuple(None if o is None else o.dtype for o in operands)
        if self.why_not is not None and self.why_not(op, dtypes) is not None:
            return False
        return self.unsupported is None or self.unsupported(op, operands, attributes) is None

    def unary(self, type: TensorType) -> tuple[str, ...]:
        """Operators of one operand, without required attributes, that take a tensor of any shape of
        this element type and give one of the same shape: what a neighbour can be."""
        dtype = type.dtype or ""
        found = self._unary.get(dtype)
        if found is None:
            example = TensorType(dtype, (2, 3))
            found = tuple(
                op
                for op in sorted(self.signatures)
                if not self.signatures[op].flags & LEFT_OUT
                and self.signatures[op].ports == 1
                and not self.signatures[op].variadic
                and (typing := self.signatures[op].attempt((example,), {})) is not None
                and len(typing.outputs) == 1
                and typing.outputs[0].shape == example.shape
                and self.supports(op, (example,), typing.attributes)
            )
            self._unary[dtype] = found
        return found

    def draw(
        self,
        op: str,
        rng: Random,
        bound: Mapping[int, TensorType],
        given: Mapping[str, Attribute],
        wanted: frozenset[int],
        shapes: Shapes,
    ) -> tuple[Instance, Typing] | None:
        """An application of ``op`` with these operands and attributes among others."""
        sampler = self.sampler(op)
        for _ in range(4):
            draw = _Steered(sampler, rng, bound, shapes)
            draw.wanted = wanted
            try:
                instance = draw.instance(given)
            except (Astray, ArithmeticError, KeyError, IndexError, TypeError, ValueError):
                continue
            typing = sampler.signature.attempt(instance.operands, instance.attributes)
            if typing is not None:
                return instance, typing
        return None


class _Failed(Exception):
    """What was wished for and what was drawn do not fit together."""


class _Build:
    """One attempt at a sample."""

    def __init__(
        self,
        sampling: Sampling,
        draft: Draft,
        seed: Place,
        rng: Random,
        wishes: tuple[Wish, ...],
        inputs: Mapping[str, Array],
        stray: float,
        loose: bool,
    ) -> None:
        self.sampling = sampling
        self.draft = draft
        self.seed = seed
        self.rng = rng
        self.given = inputs
        self.stray = stray
        self.loose = loose
        self.wishes: dict[tuple[str, str, str | int], Attribute | None] = {
            (w.kind, w.of, w.key): w.value for w in wishes
        }
        self.graph = Graph("distilled")
        self.graph.opsets.update(seed.graph.opsets or {"": OPSETS[0]})
        self.tensors: dict[str, Tensor] = {}
        self.nodes: dict[str, Node] = {}
        self.values: dict[str, Array] = {}
        self.uses: dict[str, tuple[str | None, Use]] = {}
        self.suggested: dict[str, TensorType] = {}
        self.limits: dict[Term, list[Within | Among]] = {}
        for condition in draft.conditions:
            if isinstance(condition, Within | Among):
                self.limits.setdefault(condition.term, []).append(condition)

    def run(self) -> Sample:
        self._opset()
        self._suggest()
        for line in self.draft.nodes:
            self._line(line)
        self._neighbours()
        self._outputs()
        place = Place(Surroundings(self.graph), self.nodes, self.tensors)
        if not holds_all(self.draft.conditions, place) or not self._granted(place):
            raise _Failed
        program = Program(self.graph, self.values, self.graph.name)
        return Sample(program, place, self.uses)

    def _opset(self) -> None:
        wished = self.wishes.get(("opset", "", ""))
        if isinstance(wished, int):
            self.graph.opsets[""] = wished
        elif self.rng.random() < self.stray and not self._is_fixed(Term("opset")):
            self.graph.opsets[""] = self.rng.choice(OPSETS)

    # --- types of sources ------------------------------------------------------------------------

    def _suggest(self) -> None:
        """A type for each source: the seed's, with what is wished for and, to keep the whole
        consistent, other extents and element types that were equal changed alike, now and then."""
        rng = self.rng
        sources = [t for t in self.draft.sources if t in self.seed.tensors]
        types = {t: self.seed.tensors[t].type for t in sources}
        wishes = {
            key: value
            for key, value in self.wishes.items()
            if key[0] in ("dtype", "rank", "dim") and key[1] in types
        }
        for key in self._strays(sources, types):
            wishes.setdefault(key, None)
        ranks = [(k, v) for k, v in wishes.items() if k[0] == "rank"]
        dims = [(k, v) for k, v in wishes.items() if k[0] == "dim"]
        for (_, of, _), value in [(k, v) for k, v in wishes.items() if k[0] == "dtype"]:
            self._change_dtype(types, of, value)
        for (_, of, _), value in ranks:
            self._change_rank(types, of, value)
        for (_, of, axis), value in dims:
            self._change_extent(types, of, axis, value)
        if self.loose and rng.random() < 0.4:  # leave it to the operators' samplers
            for name in sources:
                if rng.random() < 0.3 and not any(k[1] == name for k in wishes):
                    del types[name]
        self.suggested = types

    def _strays(
        self, sources: Sequence[str], types: Mapping[str, TensorType]
    ) -> Iterator[tuple[str, str, str | int]]:
        """What may be changed just so: it is checked in the end."""
        rng, stray = self.rng, self.stray
        for name in sources:
            if rng.random() < stray * 0.3 and not self._is_fixed(Term("dtype", name)):
                yield "dtype", name, ""
            if rng.random() < stray * 0.3 and not self._is_fixed(Term("rank", name)):
                yield "rank", name, ""
            for axis in range(types[name].rank or 0):
                if rng.random() < stray and not self._is_fixed(Term("dim", name, "", axis)):
                    yield "dim", name, axis

    def _is_fixed(self, term: Term) -> bool:
        """Whether the draft leaves one value only."""
        return any(
            len(c.values) == 1 and not c.negated
            if isinstance(c, Among)
            else c.low is not None and c.low == c.high
            for c in self.limits.get(term, ())
        )

    def _one_of(self, term: Term, choices: Sequence[Attribute]) -> Attribute:
        """One of some values, of those that the draft allows if there are any."""
        limits = self.limits.get(term, ())
        fit = [v for v in choices if all(c.admits(v) for c in limits)]  # type: ignore[arg-type]
        return self.rng.choice(fit or choices)

    def _change_dtype(self, types: dict[str, TensorType], of: str, value: Attribute | None) -> None:
        old = types[of].dtype
        known = Term("dtype", of)
        new = str(value) if value is not None else str(self._one_of(known, self.sampling.dtypes))
        alike = self.rng.random() < 0.7
        for name, type in types.items():
            if name == of or (
                alike and type.dtype == old and ("dtype", name, "") not in self.wishes
            ):
                types[name] = TensorType(new, type.shape)

    def _change_rank(self, types: dict[str, TensorType], of: str, value: Attribute | None) -> None:
        rng = self.rng
        rank = types[of].rank or 0
        near = [r for r in (rank - 1, rank + 1) if r >= 0]
        new = value if isinstance(value, int) else self._one_of(Term("rank", of), near)
        assert isinstance(new, int)
        front = rng.random() < 0.5
        alike = rng.random() < 0.5
        for name, type in types.items():
            if name != of and not (alike and type.rank == rank):
                continue
            shape = list(type.shape or ())
            while len(shape) < new:
                shape.insert(0 if front else len(shape), rng.choice(_EXTENTS))
            while len(shape) > new:
                shape.pop(0 if front else -1)
            types[name] = TensorType(type.dtype, tuple(shape))

    def _change_extent(
        self,
        types: dict[str, TensorType],
        of: str,
        axis: str | int,
        value: Attribute | None,
    ) -> None:
        rng = self.rng
        shape = types[of].shape or ()
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            return
        old = shape[axis]
        known = Term("dim", of, "", axis)
        new = value if isinstance(value, int) else self._one_of(known, _EXTENTS)
        assert isinstance(new, int)
        linked = rng.choice((0.0, 0.5, 1.0))
        for name, type in types.items():
            changed = list(type.shape or ())
            for i, extent in enumerate(changed):
                own = name == of and i == axis % len(shape)
                if own or (
                    extent == old and ("dim", name, i) not in self.wishes and rng.random() < linked
                ):
                    changed[i] = new
            types[name] = TensorType(type.dtype, tuple(changed))

    # --- lines -----------------------------------------------------------------------------------

    def _line(self, line: DraftNode) -> None:
        rng, sampling = self.rng, self.sampling
        original = self.seed.nodes.get(line.name)
        op = self._operator(line, original)
        if op not in sampling.signatures:
            raise _Failed
        places = self._operands(line)
        types: list[TensorType | None] = []
        for name in places:
            tensor = None if name is None else self.tensors.get(name)
            types.append(
                tensor.type if tensor else None if name is None else self.suggested.get(name)
            )
        attributes = self._attributes(line, op, original)
        exact = all(t is not None or name is None for t, name in zip(types, places, strict=True))
        typing = None
        instance = Instance(tuple(types), dict(attributes))
        if exact and DRAWN not in attributes.values() and attributes.keys() >= self._required(op):
            typing = sampling.signatures[op].attempt(instance.operands, attributes)
        if typing is None:
            drawn = self._drawn(line, op, places, types, attributes)
            if drawn is None:
                raise _Failed
            instance, typing = drawn
        operands = list(instance.operands)
        while operands and operands[-1] is None:
            operands.pop()
        wanted = [i for i, name in enumerate(places) if name is not None]
        if any(i >= len(operands) or operands[i] is None for i in wanted):
            raise _Failed
        if not sampling.supports(op, operands, typing.attributes):
            raise _Failed
        if any((o.elements or 0) > _MOST_ELEMENTS for o in (*operands, *typing.outputs) if o):
            raise _Failed
        inputs: list[Tensor | None] = []
        for i, type in enumerate(operands):
            name = places[i] if i < len(places) else None
            if type is None:
                inputs.append(None)
                continue
            known = None if name is None else self.tensors.get(name)
            if known is not None and known.type != type:
                raise _Failed
            inputs.append(known or self._source(name, type, (op, i, operands, typing)))
        results = original.outputs if original is not None else (None,)
        read = {t for other in self.draft.nodes for t in other.reads}
        kept: list[tuple[str, TensorType] | None] = []
        for j, type in enumerate(typing.outputs):
            name = f"{line.name}_{j}" if j else line.name
            usual = j < len(results) and results[j] is not None
            asked = (usual and (j == 0 or rng.random() >= self.stray * 0.5)) or (
                not usual and rng.random() < self.stray * 0.5
            )
            asked = bool(self.wishes.get(("result", line.name, j), asked))
            kept.append((name, type) if asked or name in read else None)
        if all(one is None for one in kept):
            kept[0] = (line.name, typing.outputs[0])
        node = self.graph.add_node(
            op,
            inputs,
            kept,
            typing.attributes,
            name=line.name,
            given=frozenset(instance.attributes),
        )
        self.nodes[line.name] = node
        for j, tensor in enumerate(node.outputs):
            if tensor is not None:
                self.tensors[f"{line.name}_{j}" if j else line.name] = tensor

    def _operator(self, line: DraftNode, original: Node | None) -> str:
        wished = self.wishes.get(("op", line.name, ""))
        if wished is not None:
            return str(wished)
        choices = line.ops or tuple(sorted(self.sampling.signatures))
        if original is not None and (len(choices) == 1 or self.rng.random() >= self.stray * 2):
            return original.op
        return self.rng.choice(choices)

    def _operands(self, line: DraftNode) -> list[str | None]:
        """The names of the operands, in the order in which this sample has them."""
        places: list[str | None] = [None if t == ANYTHING else t for t in line.operands]
        if line.unordered and self.rng.random() < self.stray:
            places[:2] = places[1::-1]
        for (kind, of, key), value in self.wishes.items():
            if of != line.name or not isinstance(key, int):
                continue
            if kind == "operand":
                places += [None] * (key + 1 - len(places))
                places[key] = None if value is None else str(value)
            elif kind == "swap" and key + 1 < len(places):
                places[key], places[key + 1] = places[key + 1], places[key]
        while places and places[-1] is None:
            places.pop()
        return places

    def _required(self, op: str) -> set[str]:
        plan = self.sampling.signatures[op].plan
        return {a.name for a in plan.attributes if a.required}

    def _attributes(self, line: DraftNode, op: str, original: Node | None) -> dict[str, Attribute]:
        """The attributes: the seed's, what is wished for, and some drawn anew."""
        plan = self.sampling.signatures[op].plan
        chosen: dict[str, Attribute] = {}
        for attribute in plan.attributes:
            key = ("attr", line.name, attribute.name)
            if key in self.wishes:
                value = self.wishes[key]
                if value is not None:
                    chosen[attribute.name] = value
                continue
            if original is None or attribute.name not in original.attributes:
                continue
            term = Term("attr", line.name, attribute.name)
            if self.rng.random() < self.stray * 0.7 and not self._is_fixed(term):
                if self.rng.random() < 0.8:
                    chosen[attribute.name] = DRAWN
            else:
                chosen[attribute.name] = original.attributes[attribute.name]
        return chosen

    def _drawn(
        self,
        line: DraftNode,
        op: str,
        places: Sequence[str | None],
        types: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> tuple[Instance, Typing] | None:
        """Let the operator's sampler find what is missing, or does not fit."""
        rng, sampling = self.rng, self.sampling
        wished = {key[1] for key in self.wishes}
        ports = sampling.signatures[op].ports
        bound = {
            i: type
            for i, (name, type) in enumerate(zip(places, types, strict=True))
            if type is not None
            and i < ports
            and (name in self.tensors or name in wished or rng.random() < 0.4)
        }
        fixed = {
            name: value
            for name, value in attributes.items()
            if ("attr", line.name, name) in self.wishes or value == DRAWN or rng.random() < 0.6
        }
        wanted = frozenset(i for i, name in enumerate(places) if name is not None)
        known = [t for t in (*types, *self.suggested.values()) if t is not None]
        extents = tuple(e for t in known for e in t.shape or () if isinstance(e, int) and e)
        shapes = Shapes((*_EXTENTS, *extents, *extents))
        return sampling.draw(op, rng, bound, fixed, wanted, shapes)

    # --- sources ---------------------------------------------------------------------------------

    def _source(
        self,
        name: str | None,
        type: TensorType,
        at: tuple[str, int, Sequence[TensorType | None], Typing],
    ) -> Tensor:
        op, position, operands, typing = at
        role = self._role(name)
        policy = self.sampling.policies.get(op) or Policy()
        first, second = (*operands, None, None)[:2]
        use = Use(first or type, typing.attributes, typing.outputs[0], second)
        kind = policy.kind(position, type.dtype)
        demanded = policy.demanded(position, type.dtype)
        if demanded is not None and role in ("computed", "folded"):
            raise _Failed  # its values would be arbitrary
        value = self._value(name, type, kind, demanded is not None, use)
        label = name or f"y{len(self.graph.tensors)}"
        tensor = self._made(role, label, type, value)
        if role == "input":
            self.uses[tensor.name] = (kind, use)
        if name is not None:
            self.tensors[name] = tensor
        return tensor

    def _made(self, role: str, label: str, type: TensorType, value: Array) -> Tensor:
        if role == "stored":
            return self.graph.add_initializer(label, type, value)
        if role == "input":
            tensor = self.graph.add_input(label, type)
            self.values[tensor.name] = value
            return tensor
        op = self._neighbour(type)
        typing = self.sampling.signatures[op].attempt((type,), {})
        if typing is None or typing.outputs[0] != type:
            raise _Failed
        base = self._made("input" if role == "computed" else "stored", f"{label}_0", type, value)
        node = self.graph.add_node(
            op, [base], [(label, type)], typing.attributes, name=f"{label}_1"
        )
        made = node.outputs[0]
        assert made is not None
        return made

    def _neighbour(self, type: TensorType) -> str:
        """An operator to put before or behind a tensor."""
        ops = self.sampling.unary(type)
        if not ops:
            raise _Failed
        # a second node like one of the lines is merged with it: no oftener than by chance
        lines = {op for line in self.draft.nodes for op in line.ops}
        telling = [op for op in _TELLING if op in ops and op not in lines]
        return self.rng.choice(telling if telling and self.rng.random() < 0.75 else list(ops))

    def _role(self, name: str | None) -> str:
        rng = self.rng
        wished = None if name is None else self.wishes.get(("role", name, ""))
        if wished is not None:
            return str(wished)
        seed = None if name is None else self.seed.tensors.get(name)
        if seed is None or rng.random() < self.stray * 0.7:
            return rng.choice(("input", "input", "stored", "computed", "folded"))
        return "stored" if seed.role is Role.INITIALIZER else "input"

    def _value(
        self, name: str | None, type: TensorType, kind: str | None, demanded: bool, use: Use
    ) -> Array:
        rng = self.rng
        wished = None if name is None else self.wishes.get(("values", name, ""))
        if wished is not None and not isinstance(wished, tuple):
            if isinstance(wished, str) and wished not in ("true", "false"):
                return (
                    values.special(rng, type)
                    if wished == "special"
                    else _drawn(rng, type, kind, use)
                )
            return _full(type, float(wished == "true" or wished) if wished != "false" else 0.0)
        seed = None if name is None else self._seed_value(name)
        if seed is not None:
            tensor = self.seed.tensors[name or ""]
            same_type = tensor.type == type
            if (same_type and demanded) or (not demanded and rng.random() >= self.stray):
                return _resized(seed, type)
        return _drawn(rng, type, kind, use)

    def _seed_value(self, name: str) -> Array | None:
        tensor = self.seed.tensors.get(name)
        if tensor is None or tensor.role is Role.COMPUTED:
            return None
        return tensor.value if tensor.role is Role.INITIALIZER else self.given.get(tensor.name)

    # --- surroundings ----------------------------------------------------------------------------

    def _neighbours(self) -> None:
        """Readers besides the lines: as wished, and now and then where nothing is said of it."""
        rng = self.rng
        read = {t for line in self.draft.nodes for t in line.reads}
        for name, tensor in list(self.tensors.items()):
            wished = self.wishes.get(("reader", name, ""))
            likely = self.stray * (0.25 if name in read else 0.5)
            if wished is None and rng.random() >= likely:
                continue
            op = wished if isinstance(wished, str) else self._neighbour(tensor.type)
            typing = self.sampling.signatures[op].attempt((tensor.type,), {})
            if typing is None:
                raise _Failed
            made: list[tuple[str, TensorType] | None] = [
                (f"{name}_r" if j == 0 else f"{name}_r{j}", type)
                for j, type in enumerate(typing.outputs)
            ]
            self.graph.add_node(op, [tensor], made, typing.attributes, name=f"{name}_reader")

    def _outputs(self) -> None:
        rng = self.rng
        graph = self.graph
        read = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        names = {t.id: name for name, t in self.tensors.items()}
        for tensor in graph.tensors:
            if tensor.role is not Role.COMPUTED:
                continue
            name = names.get(tensor.id, "")
            wished = self.wishes.get(("output", name, ""))
            seed = self.seed.tensors.get(name)
            if tensor.id not in read:
                shown = True
            elif isinstance(wished, bool):
                shown = wished
            elif (
                seed is not None and maker(name) in self.nodes and rng.random() >= self.stray * 0.5
            ):
                inner = bool(self.seed.around.readers[seed.id])
                shown = inner and seed.id in self.seed.around.outputs
            else:
                shown = rng.random() < self.stray * 0.3
            if shown:
                graph.outputs.append(tensor)

    def _granted(self, place: Place) -> bool:
        """Whether what was wished for came true."""
        return all(self._is_granted(*key, value, place) for key, value in self.wishes.items())

    def _is_granted(
        self, kind: str, of: str, key: str | int, value: Attribute | None, place: Place
    ) -> bool:
        match kind:
            case "attr":
                found = place.nodes[of].attributes.get(str(key))
                return value == DRAWN or (
                    found is None if value is None else found is not None and same(found, value)
                )
            case "dtype":
                return place.tensors[of].type.dtype == value
            case "rank":
                return place.tensors[of].type.rank == value
            case "dim":
                shape = place.tensors[of].type.shape or ()
                axis = int(key)
                return -len(shape) <= axis < len(shape) and (value is None or shape[axis] == value)
            case "output":
                return (place.tensors[of].id in place.around.outputs) == value
            case _:
                return True


def _full(type: TensorType, number: float) -> Array:
    shape = tuple(e for e in type.shape or () if isinstance(e, int))
    with np.errstate(all="ignore"):
        return np.full(shape, number, np.float64).astype(numpy_dtype(type.dtype or ""))


def _drawn(rng: Random, type: TensorType, kind: str | None, use: Use | None) -> Array:
    if kind is not None and use is not None:
        return values.of_kind(kind, rng, type, use)
    if rng.random() < 0.1:
        return values.special(rng, type)
    return values.ordinary(rng, type)


def _resized(value: Array, type: TensorType) -> Array:
    """The seed's value in another shape and element type: its elements again and again."""
    shape = tuple(e for e in type.shape or () if isinstance(e, int))
    dtype = numpy_dtype(type.dtype or "")
    info = DTYPES[type.dtype or ""]
    if value.size == 0:
        return np.zeros(shape, dtype)
    flat = np.resize(value.reshape(-1), shape)
    if flat.dtype == dtype:
        return flat
    with np.errstate(all="ignore"):
        if info.kind in ("int", "uint"):
            numbers = np.nan_to_num(flat.astype(np.float64), posinf=8.0, neginf=-8.0)
            low = -(1 << (info.bits - 1)) if info.kind == "int" else 0
            high = (1 << (info.bits - (info.kind == "int"))) - 1
            return np.clip(np.round(numbers), max(low, -(2**53)), min(high, 2**53)).astype(dtype)
        return flat.astype(dtype)
