"""Operators backwards: operands and attributes for results that are required.

Comes in: a signature and the types that its results must have, all of them or some. Goes out: an
instance with exactly these results, or that there is none and which conditions clash, or that none
was found::

    >>> from random import Random
    >>> from reprise.solve.signatures import Signatures
    >>> from reprise.uir.graph import TensorType
    >>> signatures = Signatures.load()
    >>> flat = TensorType("float32", (1, 1024))
    >>> instance, typing = Backward(signatures["reshape"]).inputs_for(Random(5), {0: flat})
    >>> instance.operands[0].elements, typing.outputs == [flat]
    (1024, True)

Operands may be given, and then the rest is found around them; so may attributes::

    >>> image = TensorType("float32", (1, 32, 32))
    >>> backward = Backward(signatures["reshape"])
    >>> instance, typing = backward.inputs_for(Random(0), {0: flat}, bound={0: image})
    >>> instance.operands == (image,), typing.outputs == [flat]
    (True, True)
    >>> print(backward.inputs_for(Random(0), {0: flat}, bound={0: TensorType("float32", (3, 5))}))
    reshape: nothing has this result: -> T[*reshape_dims(D, S, Z)], \
result 0 is float32[1, 1024] (with operands of rank 4 at most)

What a growing graph asks is which operators could make a tensor of some type from those it has::

    >>> producers = Producers([Backward(signatures[op]) for op in ("reshape", "concat", "equal")])
    >>> [backward.signature.name for backward in producers.of(flat)]
    ['reshape', 'concat']
    >>> production = producers.of(flat)[0].producer(Random(1), flat, [flat, image])
    >>> production.bound in ({0: 0}, {0: 1}), production.output
    (True, 0)

Three stages, each for what the one before leaves. Results bind variables, equations with one known
side are inverted (:mod:`reprise.solve.inversion`), and what is then free is drawn: some 0.1 ms.
Where that comes to nothing in a few tries, z3 is asked about one structure after another
(:mod:`reprise.solve.z3_search`): some 20 ms. Where it refutes them all, that is the answer.

A question to z3 is asked in one of a few *phases*, drawn from the generator, each of which has one
answer that is kept: answers vary, are paid for once, and do not depend on what was asked before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any

from reprise.lang import ast
from reprise.solve.answers import Answer, Clash, Production, Unknown, Unsatisfiable, Verdict
from reprise.solve.emit import UNDECIDED
from reprise.solve.inversion import Inversion, Inverter
from reprise.solve.sampling import Astray, Instance
from reprise.solve.signatures import Signature
from reprise.solve.suggestions import Shapes
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.inference import Typing

_PHASES = 6
"""How many different answers of z3's a question can have."""
_KEPT = 4096
"""How many answers of z3's are kept."""
_QUESTIONS = 40
"""How many structures z3 is asked about whose numbers it must find."""
_NOTHING: Mapping[Any, Any] = {}


class Backward:
    """One operator, backwards. ``shapes`` and ``dtypes`` are what free extents and element types
    are drawn from (see :class:`~reprise.solve.sampling.Sampler`).

    ``counts`` says how questions were answered: ``native``, ``z3``, ``unsatisfiable``, ``unknown``,
    and ``refused`` for answers of z3's that the signature did not accept (a defect of ours).
    """

    def __init__(
        self,
        signature: Signature,
        shapes: Shapes | None = None,
        dtypes: Sequence[str] | None = None,
    ) -> None:
        self.signature = signature
        self.counts: Counter[str] = Counter()
        self._drawn_from = shapes, dtypes
        self._kept: dict[Any, Answer] = {}
        self._many = "many_results" in signature.flags
        self._typed = "untyped" not in signature.flags

    @cached_property
    def inverter(self) -> Inverter:
        """The opened signature, made when it is first needed (2 ms)."""
        return Inverter(self.signature, *self._drawn_from)

    @property
    def _results(self) -> tuple[tuple[ast.Ident | None, ast.TypeExpr], ...]:
        return self.inverter.plan.decl.results

    def inputs_for(
        self,
        rng: Random,
        results: Mapping[int, TensorType],
        bound: Mapping[int, TensorType] = _NOTHING,
        given: Mapping[str, Attribute] = _NOTHING,
        *,
        tries: int = 8,
        solver: bool = True,
    ) -> Answer:
        """An instance whose results, by number, are exactly those required.

        ``bound``: types of operands, by number; ``given``: attributes. Results are known types;
        an extent is None where it depends on values, and only there. Of an operator that cuts a
        tensor into many, all pieces are required. ``tries``: native draws before z3 is asked, if
        it may be (``solver``).
        """
        found = self._native(rng, results, bound, given, tries)
        if found is not None:
            self.counts["native"] += 1
            return found
        if not solver or not self._typed:
            self.counts["unknown"] += 1
            return Unknown(self.signature.name)
        return self._phased(rng, results, bound, given)

    def producer(
        self,
        rng: Random,
        required: TensorType,
        available: Sequence[TensorType] = (),
        *,
        tries: int = 2,
        most: int = 8,
        solver: bool = False,
    ) -> Production | None:
        """A node with a result of the required type, made from one of the available types if that
        is possible; the earlier in the list the better, and of those that an operand may be the
        first ``most`` are tried. None if none is found."""
        outputs = [i for i in range(len(self._results)) if self._may_be(i, required)]
        rng.shuffle(outputs)
        for output in outputs:
            results = self._results_with(rng, output, required)
            left = most
            for number, type in enumerate(available):
                ports = self._ports_for(rng, type) if left else []
                left -= bool(ports)
                for port in ports:
                    found = self._native(rng, results, {port: type}, _NOTHING, tries)
                    if found is not None:
                        self.counts["native"] += 1
                        return Production(*found, output, {port: number})
        for output in outputs:
            results = self._results_with(rng, output, required)
            answer = self.inputs_for(rng, results, solver=solver)
            if isinstance(answer, tuple):
                return Production(*answer, output, {})
        return None

    def may_produce(self, required: TensorType) -> bool:
        """Whether, as far as element type and rank say, some result can be of this type."""
        results = self.signature.plan.decl.results
        return any(self._may_be(i, required) for i in range(len(results)))

    # --- native ----------------------------------------------------------------------------------

    def _native(
        self,
        rng: Random,
        results: Mapping[int, TensorType],
        bound: Mapping[int, TensorType],
        given: Mapping[str, Attribute],
        tries: int,
    ) -> tuple[Instance, Typing] | None:
        try:
            fixed = self._fixed(results)
        except Astray:
            return None
        inverter = self.inverter
        for _ in range(tries):
            try:
                instance = Inversion(inverter, rng, bound, inverter.shapes, fixed).instance(given)
            except (Astray, *UNDECIDED):
                continue
            typing = self._checked(instance, results, bound)
            if typing is not None:
                return instance, typing
        return None

    def _checked(
        self,
        instance: Instance,
        results: Mapping[int, TensorType],
        bound: Mapping[int, TensorType],
    ) -> Typing | None:
        """What the signature says of an instance, if it is as required."""
        typing = self.signature.attempt(instance.operands, instance.attributes)
        if typing is None or (self._many and len(typing.outputs) != len(results)):
            return None
        for number, wanted in results.items():
            if number >= len(typing.outputs) or typing.outputs[number] != wanted:
                return None
        for number, type in bound.items():
            if instance.operands[number] != type:
                return None
        return typing

    def _fixed(self, results: Mapping[int, TensorType]) -> dict[str, Any]:
        """The variables that the results bind. Raises Astray where they cannot be of these
        types."""
        fixed: dict[str, Any] = {}

        def bind(name: str, value: Any) -> None:
            if fixed.setdefault(name, value) != value:
                raise Astray

        if self._many:
            ((_, declared),) = self._results
            for type in results.values():
                _bind_dtype(declared, type, bind)
            (splat,) = declared.shape or ()
            bind(_name(splat), tuple(results[i].shape for i in sorted(results)))
            return fixed
        for number, type in results.items():
            if number >= len(self._results):
                raise Astray
            declared = self._results[number][1]
            _bind_dtype(declared, type, bind)
            for dim, value in _matched(declared, type.shape or ()):
                if isinstance(dim, ast.Number):
                    if dim.value != value:
                        raise Astray
                elif value is not None and not isinstance(dim, ast.Wildcard):
                    bind(_name(dim), value)
        return fixed

    # --- z3 --------------------------------------------------------------------------------------

    def _phased(
        self,
        rng: Random,
        results: Mapping[int, TensorType],
        bound: Mapping[int, TensorType],
        given: Mapping[str, Attribute],
    ) -> Answer:
        question = (
            tuple(sorted(results.items())),
            tuple(sorted(bound.items())),
            tuple(sorted(given.items())),
            rng.randrange(_PHASES),
        )
        answer = self._kept.get(question)
        if answer is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            phase = Random(f"{self.signature.name} {question}")
            answer = self._kept[question] = self._solved(phase, results, bound, given)
        match answer:
            case Unsatisfiable():
                self.counts["unsatisfiable"] += 1
            case Unknown():
                self.counts["unknown"] += 1
            case instance, typing:
                self.counts["z3"] += 1
                copy = Instance(instance.operands, dict(instance.attributes))
                return copy, Typing(list(typing.outputs), dict(typing.attributes), typing.certain)
        return answer

    def _solved(
        self,
        rng: Random,
        results: Mapping[int, TensorType],
        bound: Mapping[int, TensorType],
        given: Mapping[str, Attribute],
    ) -> Answer:
        from reprise.solve.z3_search import RANK, Structures, new_context, solve

        try:
            fixed = self._fixed(results)
        except Astray:
            fixed = {}
        types = [*results.values(), *bound.values()]
        most = max([RANK, *(len(type.shape or ()) + 1 for type in types)])
        longest = max(2 * most, len(results))
        structures = Structures(self.inverter, rng, fixed, bound, given, most, longest)
        refuted: list[Verdict] = []
        asked, proof, context = 0, True, new_context()
        for structure in structures.all():
            verdict = solve(self.signature, structure, results, rng, context)
            if verdict.instance is not None:
                typing = self._checked(verdict.instance, results, bound)
                if typing is not None:
                    return verdict.instance, typing
                self.counts["refused"] += 1
            proof = proof and verdict.proof
            refuted.append(verdict)
            asked += not verdict.decided
            if asked >= _QUESTIONS:
                proof = False
                break
        clashes = _closest(refuted)
        if proof and structures.complete and refuted:
            rank = most if structures.ranks else None
            return Unsatisfiable(self.signature.name, clashes, rank)
        return Unknown(self.signature.name, clashes)

    # --- producing -------------------------------------------------------------------------------

    def _may_be(self, output: int, type: TensorType) -> bool:
        declared = self.signature.plan.decl.results[output][1]
        if not self._typed or type.shape is None or None in type.shape:
            return False
        if isinstance(declared.dtype, ast.Name) and declared.dtype.text != type.dtype:
            return False
        dims = declared.shape or ()
        splats = sum(isinstance(dim, ast.Splat) for dim in dims)
        rank, least = len(type.shape), len(dims) - splats
        if self._many:
            least = 1
        if rank < least or (rank > least and not splats):
            return False
        if any(isinstance(dim, ast.Wildcard) for dim in dims):
            return False
        if isinstance(declared.dtype, ast.Name):
            return True
        return type.dtype in self.inverter.possible(declared.dtype.name)

    def _results_with(
        self, rng: Random, output: int, required: TensorType
    ) -> Mapping[int, TensorType]:
        """Results of which one is as required; of a cut, the other pieces are like it."""
        if self._many:
            return dict.fromkeys(range(rng.choice((1, 2, 2, 3))), required)
        return {output: required}

    def _ports_for(self, rng: Random, type: TensorType) -> list[int]:
        """Operands that an available tensor may be."""
        ports = self.inverter.ports
        fitting = [
            i for i, p in enumerate(ports) if not p.optional and self.inverter.accepts(i, type)
        ]
        rng.shuffle(fitting)
        return fitting


class Producers:
    """Operators, indexed by what they can make."""

    def __init__(self, operators: Sequence[Backward]) -> None:
        self._operators = tuple(operators)
        self._fitting: dict[tuple[str | None, int | None], tuple[Backward, ...]] = {}

    def of(self, required: TensorType) -> tuple[Backward, ...]:
        """The operators that may have a result of this type, in the order given."""
        key = required.dtype, required.rank
        fitting = self._fitting.get(key)
        if fitting is None:
            fitting = tuple(b for b in self._operators if b.may_produce(required))
            self._fitting[key] = fitting
        return fitting


def _bind_dtype(declared: ast.TypeExpr, type: TensorType, bind: Any) -> None:
    if isinstance(declared.dtype, ast.Variable):
        bind(declared.dtype.name, type.dtype)
    elif declared.dtype.text != type.dtype:
        raise Astray


def _matched(
    declared: ast.TypeExpr, shape: tuple[Any, ...]
) -> Iterator[tuple[ast.Expr | ast.Splat, Any]]:
    """Each declared dimension with its extent, or extents. Raises Astray if the rank differs."""
    dims = declared.shape or ()
    splat = next((i for i, dim in enumerate(dims) if isinstance(dim, ast.Splat)), None)
    spare = len(shape) - len(dims) + (splat is not None)
    if spare < 0 or (splat is None and spare):
        raise Astray
    place = 0
    for number, dim in enumerate(dims):
        if number == splat:
            yield dim, shape[place : place + spare]
            place += spare
        else:
            yield dim, shape[place]
            place += 1


def _name(dim: ast.Expr | ast.Splat) -> str:
    """The variable of a dimension of an opened signature."""
    expr = dim.expr if isinstance(dim, ast.Splat) else dim
    assert isinstance(expr, ast.Variable)
    return expr.name


def _closest(refuted: Sequence[Verdict]) -> tuple[Clash, ...]:
    """The clash to tell: one about numbers if there is one, and the shortest."""
    if not refuted:
        return ()

    def distance(verdict: Verdict) -> tuple[bool, bool, int, str]:
        text = " ".join(map(str, verdict.clashes))
        return not verdict.clashes, verdict.decided, len(verdict.clashes), text

    return min(refuted, key=distance).clashes
