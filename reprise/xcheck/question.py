"""Numbers for a structure: z3 finds extents, element types and attributes for ¬c and all the rest.

A *structure* is a small graph whose nodes, flow and ranks stay while its numbers are found anew.
The conditions come from three places: the rules (the negated constraint holds nowhere its
requirement, every other constraint holds everywhere), the operators' signatures, and the bounds of
what ONNX can write (extents from 0 to 2^63 - 1). Each has a name, so that what cannot be satisfied
says what clashes. Where values were drawn beforehand they are kept as far as they can be: so
answers vary as the drawn values do.

Signatures are firm or *loose*. Loose ones are given up where they are in the way, one at a time:
that is how a model that is invalid on purpose differs from a valid one as little as possible. In
the same way constraints may be given up that the negated one *implies* to be violated: of two that
say nearly the same, neither could be violated otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import z3

from reprise.facts.facts import facts_of
from reprise.lang import core
from reprise.lang.dtypes import DTYPES
from reprise.lang.z3_solver import new_solver
from reprise.solve.answers import Clash
from reprise.solve.reading import Absent
from reprise.solve.shapes import ShapeError
from reprise.solve.signatures import Signatures
from reprise.solve.z3_encoding import encode
from reprise.solve.z3_reading import NeedsValue, Symbolic, Unread
from reprise.solve.z3_search import new_context
from reprise.uir.graph import Attribute, Graph, Node, Tensor, TensorType
from reprise.xcheck.stored import as_signed
from reprise.xcheck.symbolic import Items, Reader, Word

MOST = 2**63 - 1
"""The greatest extent that an ONNX model can state."""
STEPS = 2_000_000
"""z3's ``rlimit`` for one check."""
_SEEN, _NEAR = 32, 16
"""How far an extent, an attribute, may be from what was drawn before it may be anything."""
_PATIENCE = 5_000
"""Milliseconds after which a check is stopped all the same: far above what the steps take."""
_FOUND = frozenset({"dtype", "dim", "elems", "shape"})
_OPEN = frozenset({"attr", "attr_at"})
"""Relations with a column that is found anew: for every tensor, for attributes that are open."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Bodies to be read: ``name`` and ``text`` say in a clash what they come from."""

    name: str
    bodies: tuple[tuple[core.Literal, ...], ...]
    clash: Clash


@dataclass(frozen=True, slots=True)
class Asked:
    """What must be: ``somewhere`` each can be satisfied, ``nowhere`` any."""

    somewhere: tuple[Rule, ...]
    nowhere: tuple[Rule, ...]
    attributes: frozenset[str] = frozenset()
    """Names of attributes that are open: those that the rules speak of."""


@dataclass(slots=True)
class Numbers:
    """An answer: types of tensors by name, attributes by node name. ``given_up``: what was given
    up of the signatures; ``implied``: names of the rules that were."""

    types: dict[str, TensorType]
    attributes: dict[str, dict[str, Attribute]]
    given_up: tuple[Clash, ...] = ()
    implied: frozenset[str] = frozenset()


@dataclass(slots=True)
class Without:
    """No answer: a proof names what clashes, otherwise z3 did not find one."""

    clashes: tuple[Clash, ...] = ()
    proof: bool = False


@dataclass(slots=True)
class _Slot:
    term: Any
    drawn: Any
    kind: str  # "extent", "number", "word"


@dataclass(slots=True)
class Drawn:
    """Preferences, by the names of sources: extents, and element types, the best first."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dtypes: Mapping[str, Sequence[str]] = field(default_factory=dict)


def solve(
    graph: Graph,
    asked: Asked,
    rules: Mapping[str, Sequence[core.Rule]],
    given: Sequence[tuple[str, core.Row]],
    signatures: Signatures,
    rng: Random,
    drawn: Drawn,
    *,
    loose: bool = False,
    implied: bool = False,
    untyped: frozenset[str] = frozenset(),
) -> Numbers | Without:
    """Numbers for ``graph``. ``given``: further facts (of the device); ``loose``: signatures may be
    given up; ``implied``: rules of ``nowhere`` may be; ``untyped``: names of nodes whose signature
    does not apply at all.

    Raises :class:`~reprise.xcheck.symbolic.TooMuch` where the rules have no reading.
    """
    pinned: set[str] = set()
    while True:
        question = _Question(graph, rng, drawn, asked.attributes, pinned, untyped)
        question.state_rules(asked, rules, given)
        if question.is_decided:
            return question.decided()
        try:
            question.state_signatures(signatures)
        except NeedsValue as error:
            names = {str(t) for t in _constants(error.term)} - pinned
            if not names:
                return Without()
            pinned |= names
            continue
        except Unread:
            return Without()
        return question.search(loose, implied)


def _constants(term: Any) -> Iterator[Any]:
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        yield term
    for child in term.children():
        yield from _constants(child)


class _Question:
    def __init__(
        self,
        graph: Graph,
        rng: Random,
        drawn: Drawn,
        attributes: frozenset[str],
        pinned: set[str],
        untyped: frozenset[str],
    ) -> None:
        self.graph = graph
        self.untyped = untyped
        self.rng = rng
        self.drawn = drawn
        self.open = attributes
        self.pinned = pinned
        self.context = new_context()
        self.reading = Symbolic(self.context)
        for name in DTYPES:
            self.reading.word(name)
        self.solver = new_solver(_PATIENCE, self.context)
        self.solver.set("rlimit", STEPS)
        self.slots: list[_Slot] = []
        self.firm: dict[int, tuple[Any, Clash]] = {}
        self.others: dict[int, tuple[Any, Clash]] = {}
        self.signature: dict[int, tuple[Any, Clash]] = {}
        self.names: dict[int, str] = {}
        self.impossible: list[Clash] = []
        self.types = {t.name: self._type(t) for t in graph.tensors}
        self.applied = {node.name: self._attributes(node) for node in graph.nodes}
        self.attributes = {
            name: {k: v for k, v in found.items() if k in attributes}
            for name, found in self.applied.items()
        }

    # --- terms -----------------------------------------------------------------------------------

    def _type(self, tensor: Tensor) -> TensorType:
        """The tensor's type in terms; a stored value keeps the type that it has."""
        known = tensor.type
        if known.dtype is None or tensor.value is not None:
            return known
        maker = tensor.producer
        computed = maker is not None and maker.name not in self.untyped
        shape = self.drawn.shapes.get(tensor.name, known.shape)
        extents = None  # where a signature leaves the result's shape open
        if shape is not None:
            extents = tuple(
                self._number(f"{tensor.name}.{axis}", extent, "extent", preferred=not computed)
                for axis, extent in enumerate(shape)
            )
        dtype = self.drawn.dtypes.get(tensor.name, (known.dtype,))
        word = self._word(f"{tensor.name}.dtype", dtype, preferred=not computed)
        return TensorType(word, extents)

    def _number(self, name: str, drawn: Any, kind: str, *, preferred: bool = True) -> Any:
        if name in self.pinned:
            return drawn
        if isinstance(drawn, float):
            term = z3.Real(name, self.context)
        else:
            term = z3.Int(name, self.context)
            low = 0 if kind == "extent" else -(2**63)
            self.solver.add(term >= low, term <= MOST)
        if preferred and drawn is not None:
            self.slots.append(_Slot(term, drawn, kind))
        return term

    def _word(self, name: str, drawn: Sequence[str], *, preferred: bool = True) -> Any:
        term = z3.Int(name, self.context)
        self.solver.add(term >= 0, term < len(DTYPES))
        if preferred:
            self.slots.append(_Slot(term, drawn, "word"))
        return term

    # --- what must hold --------------------------------------------------------------------------

    def state_signatures(self, signatures: Signatures) -> None:
        """The operators' signatures, node by node. Raises NeedsValue, Unread."""
        for node in self.graph.nodes:
            plan = signatures[node.op].plan if node.op in signatures else None
            if plan is None or node.name in self.untyped:
                continue
            types = {a.name: a.type for a in plan.attributes}
            known = {name: v for name, v in self.applied[node.name].items() if name in types}
            signed, stored = as_signed(node)
            operands = [None if t is None else self.types[t.name] for t in signed]
            known |= stored
            try:
                encoding = encode(plan, operands, known, self.reading)
            except (ShapeError, Absent, IndexError, KeyError, TypeError, AttributeError):
                continue  # the structure was changed so that the signature says nothing of it
            for constraint in encoding.constraints:
                text = f"{node.op}: {constraint.text}"
                self._state(self.signature, constraint.truth, Clash(text, constraint.span))
            self._results(node, encoding.results)

    def _attributes(self, node: Node) -> dict[str, Any]:
        """The attributes that the node states, and the open ones, those in terms."""
        found: dict[str, Any] = {
            name: value
            for name, value in node.attributes.items()
            if name in node.given or name in self.open
        }
        for name in sorted(self.open & found.keys()):
            found[name] = self._attribute(f"{node.name}.{name}", found[name])
        return found

    def _attribute(self, name: str, value: Any) -> Any:
        if isinstance(value, bool | str):
            return value
        if isinstance(value, tuple):
            if any(isinstance(item, bool | str) for item in value):
                return value
            return tuple(
                self._number(f"{name}.{i}", item, "number") for i, item in enumerate(value)
            )
        return self._number(name, value, "number")

    def _results(self, node: Node, results: Sequence[TensorType]) -> None:
        for tensor, result in zip(node.outputs, results, strict=False):
            if tensor is None:
                continue
            stated = self.types[tensor.name]
            where = f"{node.op}: result {tensor.name}"
            same = self.reading.compare("==", stated.dtype, result.dtype, True)
            self._state(self.signature, same, Clash(f"{where}: element type", None))
            if stated.shape is None or result.shape is None:
                continue
            if len(stated.shape) != len(result.shape):
                self._state(self.signature, False, Clash(f"{where}: rank", None))
                continue
            for mine, its in zip(stated.shape, result.shape, strict=True):
                if mine is not None and its is not None:
                    same = self.reading.compare("==", mine, its, False)
                    self._state(self.signature, same, Clash(f"{where}: shape", None))

    def state_rules(
        self,
        asked: Asked,
        rules: Mapping[str, Sequence[core.Rule]],
        given: Sequence[tuple[str, core.Row]],
    ) -> None:
        """The constraints, read over this structure. Raises TooMuch."""
        reader = Reader(rules, self._rows(given), self.reading)
        for rule in asked.somewhere:
            found = reader.holds_somewhere(rule.bodies)
            if found is False:
                self.impossible.append(rule.clash)
            self._state(self.firm, found, rule.clash)
        for rule in asked.nowhere:
            found = reader.holds_somewhere(rule.bodies)
            holds = (not found) if isinstance(found, bool) else z3.Not(found)
            self._state(self.others, holds, rule.clash, rule.name)

    @property
    def is_decided(self) -> bool:
        """Whether no numbers satisfy the rules, as far as one of them alone says."""
        return bool(self.impossible)

    def decided(self) -> Without:
        """The answer then."""
        return Without(tuple(self.impossible), proof=not self.pinned)

    def _state(
        self, table: dict[int, tuple[Any, Clash]], truth: Any, clash: Clash, name: str = ""
    ) -> None:
        if truth is True:
            return
        count = len(self.firm) + len(self.others) + len(self.signature)
        literal = z3.Bool(f"m{count}", self.context)
        self.names[literal.get_id()] = name
        if truth is False:
            truth = z3.BoolVal(False, self.context)
        self.solver.add(z3.Implies(literal, truth))
        table[literal.get_id()] = literal, clash

    def _rows(self, given: Sequence[tuple[str, core.Row]]) -> dict[str, list[tuple[Any, ...]]]:
        """Facts about the graph, open where its numbers are."""
        rows: dict[str, list[tuple[Any, ...]]] = {}
        opened = {
            (node.id, name)
            for node in self.graph.nodes
            for name in self.attributes.get(node.name, ())
        }
        for relation, row in (*facts_of(self.graph), *given):
            if relation in _FOUND or (relation in _OPEN and (row[0], row[1]) in opened):
                continue
            rows.setdefault(relation, []).append(row)
        for tensor in self.graph.tensors:
            self._type_rows(rows, tensor.id, self.types[tensor.name])
        for node in self.graph.nodes:
            for name, value in self.attributes[node.name].items():
                self._attribute_rows(rows, node.id, name, value)
        return rows

    def _type_rows(self, rows: dict[str, list[tuple[Any, ...]]], t: int, type: TensorType) -> None:
        if type.dtype is not None:
            dtype: Any = type.dtype
            rows.setdefault("dtype", []).append(
                (t, dtype if isinstance(dtype, str) else Word(dtype))
            )
        if type.shape is None:
            return
        elements: Any = 1
        for axis, extent in enumerate(type.shape):
            rows.setdefault("dim", []).append((t, axis, extent))
            elements = elements * extent
        rows.setdefault("elems", []).append((t, elements))
        rows.setdefault("shape", []).append((t, Items(tuple(type.shape))))

    def _attribute_rows(
        self, rows: dict[str, list[tuple[Any, ...]]], n: int, name: str, value: Any
    ) -> None:
        if not isinstance(value, tuple):
            plain = {True: "true", False: "false"}[value] if isinstance(value, bool) else value
            rows.setdefault("attr", []).append((n, name, plain))
            return
        rows.setdefault("attr", []).append((n, name, Items(value)))
        for i, item in enumerate(value):
            rows.setdefault("attr_at", []).append((n, name, i, item))

    # --- searching -------------------------------------------------------------------------------

    def search(self, loose: bool, implied: bool) -> Numbers | Without:
        """Numbers near what was drawn; without them, what clashes."""
        signature, others = dict(self.signature), dict(self.others)
        wishes: dict[int, tuple[Any, _Slot, int]] = {}
        given_up: list[Clash] = []

        def wish(slot: _Slot, step: int) -> None:
            truths = self._wishes(slot)
            if step < len(truths):
                literal = z3.Bool(f"w{step}.{slot.term}", self.context)
                self.solver.add(z3.Implies(literal, truths[step]))
                wishes[literal.get_id()] = literal, slot, step

        wished = not loose  # what is wished for must not decide which signatures are in the way
        self.solver.set("core.minimize", loose)
        if wished:
            for slot in self.slots:
                wish(slot, 0)
        while True:
            known = {**self.firm, **others, **signature}
            must = [literal for literal, _ in known.values()]
            outcome = self.solver.check(*must, *(w[0] for w in wishes.values()))
            if outcome == z3.sat and not wished:
                wished = True
                self.solver.set("core.minimize", False)
                for slot in self.slots:
                    wish(slot, 0)
                continue
            if outcome == z3.sat:
                left = frozenset(self.names[key] for key in self.others.keys() - others.keys())
                return self._read(self.solver.model(), tuple(given_up), left)
            if outcome == z3.unknown:
                if not wishes:
                    return Without()
                for key in list(wishes)[::2]:
                    del wishes[key]
                continue
            core_ids = [literal.get_id() for literal in self.solver.unsat_core()]
            blamed = [key for key in core_ids if key in wishes]
            soft = [key for key in core_ids if key in signature]
            words = [key for key in blamed if wishes[key][1].kind == "word"]
            if blamed and not (loose and soft and words and not given_up):
                _, slot, step = wishes.pop(self.rng.choice(blamed))
                wish(slot, step + 1)
                continue
            if loose and soft:
                given_up.append(signature.pop(self.rng.choice(soft))[1])
                continue
            same = [key for key in core_ids if key in others]
            if implied and same:
                del others[self.rng.choice(same)]
                continue
            return Without(self._clashes(known, core_ids), proof=not self.pinned)

    def _wishes(self, slot: _Slot) -> list[Any]:
        """What is wished for a number, each in case that the one before it cannot be had."""
        if slot.kind == "word":
            return [slot.term == self.reading.word(name) for name in slot.drawn]
        exact = slot.term == _value(slot.drawn, self.context)
        if slot.kind == "extent":
            near = z3.And(slot.term >= 1, slot.term <= 2 * max(slot.drawn, _SEEN))
            return [exact, near, slot.term >= 1]
        near = z3.And(slot.term >= slot.drawn - _NEAR, slot.term <= slot.drawn + _NEAR)
        return [exact, near]

    def _clashes(
        self, known: Mapping[int, tuple[Any, Clash]], ids: Sequence[int]
    ) -> tuple[Clash, ...]:
        """What clashes, without anything that need not be there."""
        self.solver.set("core.minimize", True)
        wanted = set(ids)
        if self.solver.check(*(known[key][0] for key in known if key in wanted)) == z3.unsat:
            wanted = {literal.get_id() for literal in self.solver.unsat_core()}
        return tuple(dict.fromkeys(known[key][1] for key in known if key in wanted))

    def _read(self, model: Any, given_up: tuple[Clash, ...], implied: frozenset[str]) -> Numbers:
        def value(term: Any) -> Any:
            if isinstance(term, tuple):
                return tuple(map(value, term))
            if not isinstance(term, z3.ExprRef):
                return term
            found = model.eval(term, model_completion=True)
            if z3.is_rational_value(found):
                return float(found.as_fraction())
            return found.as_long()

        def type_of(type: TensorType) -> TensorType:
            dtype: Any = type.dtype
            if isinstance(dtype, z3.ExprRef):
                dtype = self.reading.spelled(value(dtype))
            return TensorType(dtype, None if type.shape is None else value(type.shape))

        types = {name: type_of(type) for name, type in self.types.items()}
        attributes = {
            node: {name: value(v) for name, v in found.items()}
            for node, found in self.attributes.items()
        }
        return Numbers(types, attributes, given_up, implied)


def _value(drawn: Any, context: Any) -> Any:
    if isinstance(drawn, float):
        from fractions import Fraction

        return z3.RealVal(Fraction(drawn), context)
    return drawn
