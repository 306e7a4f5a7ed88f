"""The operators that a generator uses, prepared: weights, samplers, kinds of operand positions.

Comes in: signatures, options, what the target supports, and the value rules. Goes out: a
:class:`Vocabulary`. Operand positions that take the same element types and ranks are of one *kind*;
the engine keeps for each kind the tensors that it accepts (``rules/std/synthesis.rules``).
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from random import Random

from reprise.datalog import Database
from reprise.lang.core import Row
from reprise.lang.ruleset import RuleSet
from reprise.lang.symbols import suggest
from reprise.solve.backward import Backward, Producers
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signature, Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth.options import ON_REQUEST, Options, OptionsError
from reprise.uir.inference import Typing

WhyNot = Callable[[str, Sequence[str | None]], str | None]
"""``why_not(op, operand dtypes)``: why a target does not do it, or None
(``reprise.targets.support``)."""

LEFT_OUT = frozenset({"random", "data_dependent", "untyped"})
"""Flags of operators that are not generated, unless asked for: results that differ from run to run,
extents that depend on values; and never: sub-graphs."""

_EXTENTS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 16, 17, 20, 32)
"""1 and the powers of two meet special cases, what is just above them the remainders of loops."""

_RANK_WEIGHTS = {0: 1, 1: 3, 2: 5, 3: 4, 4: 5, 5: 1}


@dataclass(frozen=True, slots=True)
class Policy:
    """The rows of ``rules/std/values.rules`` about one operator, by operand: kinds of values.
    ``operands``: how many of them the generator gives it at most."""

    prefers: dict[int, str] = field(default_factory=dict)
    demands: dict[int, str] = field(default_factory=dict)
    demands_integers: dict[int, str] = field(default_factory=dict)
    operands: int | None = None

    def demanded(self, position: int, dtype: str | None) -> str | None:
        """The kind of values that the operand must have, if any."""
        demand = self.demands.get(position)
        if demand is None and dtype is not None and dtype.startswith(("int", "uint")):
            return self.demands_integers.get(position)
        return demand

    def kind(self, position: int, dtype: str | None) -> str | None:
        """The kind of values that a source has which feeds the operand, if not any."""
        return self.demanded(position, dtype) or self.prefers.get(position)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that may be applied. ``ports`` are the operand positions that a tensor of the
    graph may be put to (all its dimensions are variables), each with its kind; ``policy`` says what
    values its sources have."""

    name: str
    signature: Signature
    sampler: Sampler
    ports: tuple[tuple[int, int], ...]
    policy: Policy

    def trimmed(self, drawn: tuple[Instance, Typing] | None) -> tuple[Instance, Typing] | None:
        """What the sampler drew, without operands beyond those that it takes (results can depend
        on them); None if the signature wants them."""
        if drawn is None or self.policy.operands is None:
            return drawn
        operands = drawn[0].operands[: self.policy.operands]
        if operands == drawn[0].operands:
            return drawn
        instance = Instance(operands, drawn[0].attributes)
        typing = self.signature.attempt(operands, instance.attributes)
        return None if typing is None else (instance, typing)


class Vocabulary:
    """What may be generated. Raises OptionsError if that is nothing."""

    def __init__(
        self,
        rules: RuleSet,
        signatures: Signatures,
        options: Options,
        why_not: WhyNot | None = None,
    ) -> None:
        self.options = options
        self.signatures = signatures
        self._why_not = why_not
        self._supported: dict[tuple[str, tuple[str | None, ...]], bool] = {}
        self._check_names(signatures)
        policies = read_policies(rules)
        self.shapes = _shapes(options, empty=False)
        self.shapes_with_empty = _shapes(options, empty=True)
        self.dtypes = tuple(d for d, count in options.dtypes.items() for _ in range(count))
        self._kinds: dict[tuple[frozenset[str], frozenset[int]], int] = {}
        self.operators: list[Operator] = []
        weights: list[float] = []
        for name in sorted(signatures):
            weight = self._weight(signatures[name])
            if weight > 0:
                operator = self._operator(signatures[name], policies[name])
                if operator is not None:
                    self.operators.append(operator)
                    weights.append(weight)
        if not self.operators:
            raise OptionsError(
                f"no operator is left that these options and the target allow{self._left_out()}"
            )
        self._cumulative = list(accumulate(weights))
        self.by_name = {operator.name: operator for operator in self.operators}

    @cached_property
    def producers(self) -> Producers:
        """The operators by what they can make."""
        shapes, dtypes = self.shapes, self.dtypes
        return Producers([Backward(o.signature, shapes, dtypes) for o in self.operators])

    def choose(self, rng: Random) -> Operator:
        """An operator, by weight."""
        total = self._cumulative[-1]
        return self.operators[bisect(self._cumulative, rng.random() * total)]

    def takes(self) -> list[Row]:
        """The facts ``takes(kind, dtype, rank)``."""
        usual = self.options.dtypes
        return [
            (kind, dtype, rank)
            for (dtypes, ranks), kind in self._kinds.items()
            for dtype in sorted(dtypes)
            if usual.get(dtype, 0) > 0 or (dtype in usual and len(dtypes) == 1)
            for rank in sorted(ranks)
        ]

    def supports(self, op: str, dtypes: tuple[str | None, ...]) -> bool:
        """Whether the target does the operator on operands of these types."""
        if self._why_not is None:
            return True
        key = (op, dtypes)
        known = self._supported.get(key)
        if known is None:
            known = self._supported[key] = self._why_not(op, dtypes) is None
        return known

    def _check_names(self, signatures: Signatures) -> None:
        known = set(signatures) | {signatures[name].category for name in signatures}
        options = self.options
        unknown = sorted((options.include | options.exclude | options.weights.keys()) - known)
        if unknown:
            hints = {name: _hint(name, known) for name in unknown}
            words = [name + (f" ({hint})" if (hint := hints[name]) else "") for name in unknown]
            raise OptionsError(f"no such operator or category: {', '.join(words)}")

    def _left_out(self) -> str:
        """What would bring back operators that were named, if they wait for being asked for."""
        named = sorted(self.options.include & set(self.signatures))
        flags = sorted({f for name in named for f in self.signatures[name].flags & ON_REQUEST})
        return f" (--also {','.join(flags)}?)" if flags and not self.options.also else ""

    def _weight(self, signature: Signature) -> float:
        options, names = self.options, {signature.name, signature.category}
        if options.include and not names & options.include:
            return 0.0
        if names & options.exclude or signature.flags & (LEFT_OUT - options.also):
            return 0.0
        if signature.name in options.weights:
            return options.weights[signature.name]
        return options.weights.get(signature.category, 1.0)

    def _operator(self, signature: Signature, policy: Policy) -> Operator | None:
        sampler = Sampler(signature, self.shapes, self.dtypes)
        if any(not choices for choices in sampler.dtypes.values()):
            return None
        ports = []
        for i, port in enumerate(sampler.ports):
            plain = port.dims and all(_is_plain(dim) for dim in port.dims)
            if plain and not port.optional and i not in policy.demands:
                taken = sampler.port_dtypes(i), sampler.port_ranks(i, self.options.max_rank)
                ports.append((i, self._kinds.setdefault(taken, len(self._kinds))))
        return Operator(signature.name, signature, sampler, tuple(ports), policy)


def _hint(word: str, known: Iterable[str]) -> str | None:
    """What may have been meant by a word that is no operator: one of ONNX's without its domain, or
    by ONNX's name though UIR has another for it."""
    from reprise.facts.onnx_apply import is_foreign, named, parts
    from reprise.facts.onnx_table import TABLE

    entry = TABLE.get(word)
    if entry is not None and entry.op in known:
        return f"`{entry.op}` here"
    if is_foreign(word):
        return named(parts(word)[1], known) or "operators of ONNX come from a file: --signatures"
    return named(word, known) or suggest(word, known)


def _is_plain(dim: object) -> bool:
    from reprise.lang import ast

    return isinstance(dim.expr if isinstance(dim, ast.Splat) else dim, ast.Variable)


def _shapes(options: Options, *, empty: bool) -> Shapes:
    extents = tuple(e for e in _EXTENTS if e <= options.max_extent)
    if empty:
        extents = (0, 0, 0, *extents)
    ranks = tuple(
        rank
        for rank, count in _RANK_WEIGHTS.items()
        if options.min_rank <= rank <= options.max_rank
        for _ in range(count)
    )
    return Shapes(extents, ranks)


def read_policies(rules: RuleSet) -> Mapping[str, Policy]:
    """The value rules of a rule set, by operator; one that they say nothing about is there too."""
    tables = ("prefers", "demands", "demands_integers")
    database = Database(rules.program.restricted_to((*tables, "leaves_out")))
    policies: defaultdict[str, Policy] = defaultdict(Policy)
    for table in tables:
        for op, operand, kind in database.rows(table):
            getattr(policies[str(op)], table)[int(operand)] = str(kind)
    for op, operand in database.rows("leaves_out"):
        policies[str(op)] = replace(policies[str(op)], operands=int(operand))
    return policies
