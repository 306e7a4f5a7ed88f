"""Find out what a target does not do: each operator with each choice of element types, in programs
of one node.

Comes in: a target, signatures, a seed. Goes out: a :class:`Report` with the support table and
what a person should look at. Same seed, same programs. Programs run in the target's last mode,
the least optimised: what only an optimiser refuses is a defect, and stays out of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from reprise.data import data_path
from reprise.facts.facts import entity_facts
from reprise.facts.onnx_apply import OnnxResults
from reprise.lang import ast
from reprise.lang.dtypes import DTYPES
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import Lowering, lowering
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.synth import values
from reprise.synth.guide import Guide
from reprise.synth.options import Options
from reprise.synth.values import NoValue, Use
from reprise.synth.vocabulary import Operator, Vocabulary
from reprise.targets.discover import Target
from reprise.targets.interface import Ended, Job, Outcome
from reprise.targets.process import Limits, WorkerPool
from reprise.targets.support import REST, Key, Support, forbidden, table_key, target_rules
from reprise.uir.graph import Graph, Tensor
from reprise.uir.inference import Typing
from reprise.uir.program import Program

PROBED = tuple(
    d.name for d in DTYPES.values() if d.kind in ("float", "int", "uint", "bool") and d.bits >= 8
)
"""The element types that are tried: those that occupy whole bytes."""

_SHAPES = Shapes((1, 2, 2, 3, 3, 4, 5, 6, 8), (0, 1, 1, 2, 2, 3, 3, 4, 4))
_RESULT_TYPES = 4
"""How many times as many instances there are where an attribute chooses the element type."""


@dataclass(frozen=True, slots=True)
class Case:
    """One program, and what the target said of it; ``reason`` is None if it ran. ``forbidden``: a
    rule of the target says that it does not."""

    application: str
    unsupported: bool
    reason: str | None
    forbidden: bool


@dataclass(slots=True)
class Group:
    """All cases of one operator on operands of the same element types. ``required``: those of the
    operands that must be there; ``open``: whether others may follow."""

    key: Key
    required: tuple[str | None, ...]
    open: bool
    cases: list[Case] = field(default_factory=list)

    @property
    def declined(self) -> bool:
        """Whether the target declines all of it, of what no rule forbids if there is any."""
        allowed = [case for case in self.cases if not case.forbidden] or self.cases
        return all(case.unsupported for case in allowed)

    @property
    def reason(self) -> str:
        """The target's words, where it declines."""
        return next((case.reason or "" for case in self.cases if case.unsupported), "")

    @property
    def failing(self) -> list[Case]:
        """The cases that did not run, and that no rule foresees."""
        return [case for case in self.cases if case.reason is not None and not case.forbidden]


@dataclass(frozen=True, slots=True)
class Report:
    """What a probe found. ``unlowered``: how many applications the lowering excludes."""

    target: Target
    versions: dict[str, str]
    mode: str
    seed: int
    instances: int
    groups: list[Group]
    unlowered: int

    @property
    def support(self) -> Support:
        """The support table. Optional operands are left open if they made no difference."""
        alike: dict[Key, list[Group]] = {}
        for group in self.groups:
            if group.declined or not all(case.forbidden for case in group.cases):
                alike.setdefault((group.key[0], group.required), []).append(group)
        table: dict[Key, str] = {}
        for (op, required), groups in alike.items():
            reasons = {g.key: g.reason for g in groups if g.declined}
            if groups[0].open and len(reasons) == len(groups):
                table[op, (*required, REST)] = next(iter(reasons.values()))
            else:
                table |= reasons
        measured = (self.versions, self.mode, self.seed, self.instances)
        return Support(self.target.name, *measured, table)

    @property
    def doubtful(self) -> list[Group]:
        """Where some cases fail: the target is broken there, or declines for a reason that is not
        in the element types, or our program is at fault."""
        return [group for group in self.groups if group.failing and not group.declined]

    @property
    def overcautious(self) -> list[Case]:
        """The cases that ran although a rule forbids them."""
        cases = [case for group in self.groups for case in group.cases]
        return [case for case in cases if case.forbidden and case.reason is None]


def probe(
    target: Target,
    ops: Sequence[str] = (),
    *,
    seed: int = 0,
    instances: int = 6,
    jobs: int = 1,
    limits: Limits | None = None,
    progress: Callable[[str], None] = lambda op: None,
    signatures: Sequence[Path] = (),
) -> Report:
    """Try ``ops`` (all, if there are none; those of ``signatures``, if files with operators of
    their own are given). Raises TargetError if the target does not work, RulesError if a file
    cannot be read, and OptionsError for an unknown operator."""
    known = Signatures.load(signatures, OnnxResults())
    if signatures and not ops:
        shipped = set(Signatures.load())
        ops = [op for op in known if op not in shipped]
    options = Options(include=frozenset(ops), dtypes=dict.fromkeys(PROBED, 1))
    files = target_rules(target.name)
    rules = load_rules([data_path("rules/std"), *files, *signatures])
    names = forbidden(rules, files)
    vocabulary = Vocabulary(rules, known, options)
    mode = target.modes[-1]
    lower = lowering(target.lowering)
    with WorkerPool(target, jobs, limits or Limits(seconds=120)) as pool:
        versions = pool.start()

        def examine(operator: Operator) -> tuple[list[Group], int]:
            guide = Guide(rules, (), (), forbidden=names)
            signature = operator.signature
            is_open = signature.ports > signature.least
            groups: dict[Key, Group] = {}
            unlowered = 0
            for instance, typing in _instances(operator, seed, instances):
                attributes = typing.attributes
                if lower.unsupported(operator.name, instance.operands, attributes) is not None:
                    unlowered += 1
                    continue
                program = _program(operator, instance, typing, Random(f"{seed}/{instance}"))
                if program is not None:
                    case = _case(pool, lower, program, mode, _is_forbidden(guide, program))
                    dtypes = [None if o is None else o.dtype for o in instance.operands]
                    key = table_key(operator.name, dtypes)
                    required = tuple(dtypes[: signature.least])
                    group = groups.setdefault(key, Group(key, required, is_open))
                    group.cases.append(case)
            progress(operator.name)
            return list(groups.values()), unlowered

        with ThreadPoolExecutor(jobs) as threads:
            found = list(threads.map(examine, vocabulary.operators))
    every = [group for groups, _ in found for group in groups]
    unlowered = sum(count for _, count in found)
    return Report(target, versions, mode, seed, instances, every, unlowered)


def _instances(operator: Operator, seed: int, wanted: int) -> Iterator[tuple[Instance, Typing]]:
    """Instances of an operator: ``wanted`` for each choice of its operands' element types, more
    where an attribute chooses the result's."""
    sampler = Sampler(operator.signature, _SHAPES, PROBED)
    domains = dict(sampler.dtypes)
    if any(attribute.plan.type == "dtype" for attribute in sampler.attributes.values()):
        wanted *= _RESULT_TYPES
    for choice in _choices(sampler):
        sampler.dtypes = domains | {name: [dtype] for name, dtype in choice.items()}
        rng = Random(f"{seed}/{operator.name}/{sorted(choice.items())}")
        for _ in range(wanted):
            drawn = sampler.typed(rng)
            if drawn is None:
                break
            drawn = operator.trimmed(drawn)
            if drawn is not None:
                yield drawn


def _choices(sampler: Sampler) -> Iterator[dict[str, str]]:
    """Every choice of element types for the dtype variables of an operator's operands."""
    names = {p.dtype.name for p in sampler.ports if isinstance(p.dtype, ast.Variable)}
    domains = [[(name, dtype) for dtype in sampler.dtypes[name]] for name in sorted(names)]
    return (dict(choice) for choice in product(*domains))


def _program(operator: Operator, instance: Instance, typing: Typing, rng: Random) -> Program | None:
    """The program of one node, on inputs; None if its operands can have no values."""
    graph = Graph(operator.name)
    inputs = {}
    operands: list[Tensor | None] = []
    first, second = (*instance.operands, None, None)[:2]
    for i, type in enumerate(instance.operands):
        if type is None:
            operands.append(None)
            continue
        kind = operator.policy.kind(i, type.dtype)
        try:
            if kind is None or first is None:
                value = values.ordinary(rng, type)
            else:
                use = Use(first, typing.attributes, typing.outputs[0], second)
                value = values.of_kind(kind, rng, type, use)
        except NoValue:
            return None
        operands.append(graph.add_input(f"x{i}", type))
        inputs[f"x{i}"] = value
    results = [(f"y{i}", type) for i, type in enumerate(typing.outputs)]
    node = graph.add_node(operator.name, operands, results, typing.attributes, name="n")
    graph.outputs += [tensor for tensor in node.outputs if tensor is not None]
    return Program(graph, inputs, operator.name)


def _is_forbidden(guide: Guide, program: Program) -> bool:
    guide.begin()
    effects = [guide.commit(entity_facts(entity)) for entity in program.graph.entities()]
    effects.append(guide.commit([("graph_output", (t.id,)) for t in program.graph.outputs]))
    return any(effect.forbidden for effect in effects)


def _case(
    pool: WorkerPool, lower: Lowering, program: Program, mode: str, is_forbidden: bool
) -> Case:
    (node,) = program.graph.nodes
    operands = ", ".join("_" if tensor is None else str(tensor.type) for tensor in node.inputs)
    attributes = "".join(f", {name}={value}" for name, value in sorted(node.attributes.items()))
    application = f"{node.op}({operands}{attributes})"
    outcome = pool.run(Job(lower.lower(program.graph), program.inputs, (mode,)))
    return Case(application, *_said(outcome, mode), is_forbidden)


def _said(outcome: Outcome, mode: str) -> tuple[bool, str | None]:
    """Whether the target declined, and its words if it did not run."""
    if outcome.ended is not Ended.ANSWERED:
        how = f" ({outcome.signal})" if outcome.signal else ""
        return False, f"{outcome.ended.value}{how}"
    failure = outcome.results[mode].failure
    if failure is None:
        return False, None
    return failure.unsupported, f"{failure.type}: {_brief(failure.message)}"


def _brief(message: str) -> str:
    """A message on one line, its middle left out if it is long: how it ends often says why."""
    text = " ".join(message.split())
    return text if len(text) <= 400 else f"{text[:160]} [...] {text[-220:]}"
