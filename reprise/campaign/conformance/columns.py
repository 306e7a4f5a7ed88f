"""One target's column: put cases to it and compare what comes back with our semantics.

A case counts for a target only if the lowering has it and the target's declared tables
(``rules/targets``) do not rule it out; up to :data:`ATTEMPTS` cases are drawn in place of one that
does not. What runs is the target's last mode, the least optimised.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np

from reprise.campaign.conformance.cases import Case, Drawing
from reprise.campaign.conformance.matrix import EMPTY, FAILURE, KINDS, ZERO, Cell, State
from reprise.data import data_path
from reprise.facts.facts import entity_facts
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.oracle.choices import inadmissible
from reprise.oracle.compare import Difference, Kind, compare
from reprise.oracle.tolerance import Tolerance, Tolerances, epsilon, lengths
from reprise.synth.guide import Guide
from reprise.targets.discover import Target, parse_target
from reprise.targets.interface import Ended, Failure, Job, Outcome
from reprise.targets.process import WorkerPool
from reprise.targets.support import Support, forbidden, target_rules
from reprise.uir.graph import Array, Attribute
from reprise.uir.semantics import Cause, apply, evaluate_all

REFERENCE = "onnx-reference"

ATTEMPTS = 4
"""How many cases are drawn in place of one until the target has it."""
_SMALLER = 5
"""How many small cases are tried once a case differs."""

CLOSE = Tolerances(absolute=0.0, relative=0.0, steps=64.0, strict_zero=True)
"""64 units in the last place, times what a sum of so many terms may lose; in half precision 16.
Signs of zeros count."""
CLOSE_HALF = replace(CLOSE, steps=16.0)
_HALF = 1e-4
_MESSAGE = 240

_GRAVITY = [FAILURE, *(kind.value for kind in Kind)]
"""Kinds of differences; values before signs of zeros."""


def resolve(text: str) -> Target:
    """The target that ``--target`` means here: ``onnx-reference`` is one too. Raises
    TargetError."""
    if text == REFERENCE or text.startswith((f"{REFERENCE}@", f"{REFERENCE}:")):
        file = Path(__file__).with_name("onnx_reference.py")
        return parse_target(f"{file}{text.removeprefix(REFERENCE)}")
    return parse_target(text)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one case."""

    case: Case
    state: State
    kind: str = ""
    text: str = ""
    absolute: float = 0.0
    relative: float = 0.0
    is_slow: bool = False

    @property
    def gravity(self) -> int:
        """The less, the graver."""
        return _GRAVITY.index(self.kind)


class Examiner:
    """Puts cases to one target; may be shared by threads."""

    def __init__(self, target: Target, pool: WorkerPool) -> None:
        self.target = target
        self.mode = target.modes[-1]
        self._pool = pool
        self._lowering = lowering(target.lowering)
        self._support = Support.whole(target.name)
        files = target_rules(target.name)
        rules = load_rules([data_path("rules/std"), *files])
        self._guide = Guide(rules, (), (), forbidden=forbidden(rules, files))
        self._lock = threading.Lock()

    def cell(self, drawing: Drawing, instances: int) -> Cell | None:
        """The cell of one operator and element type; None if there is no case at all."""
        answers, reason, checksum = [], "", 0
        marks = []
        for number in range(instances):
            case, why = self._supported(drawing, number)
            if case is None and not why:
                continue
            if case is None:
                marks.append(State.UNSUPPORTED)
                reason = reason or why
                continue
            checksum = crc32(case.bytes, checksum)
            answer = self.answer(case)
            marks.append(answer.state)
            if answer.state is State.DECLINED:
                reason = reason or answer.text
            answers.append((number, answer))
        if not marks:
            return None
        cell = self._cell(drawing, tuple(marks), answers, reason)
        return replace(cell, drawn=f"{checksum:08x}")

    def _cell(
        self,
        drawing: Drawing,
        marks: tuple[State, ...],
        answers: list[tuple[int, Answer]],
        reason: str,
    ) -> Cell:
        bad = [(number, answer) for number, answer in answers if answer.state.is_bad]
        cell = Cell(marks, reason=reason)
        if not bad:
            return replace(cell, reason="") if State.AGREE in marks else cell
        # What happens on empty tensors must not hide what happens on others.
        full = [(number, answer) for number, answer in bad if number % KINDS != EMPTY]
        number, gravest = min(full or bad, key=lambda b: (b[1].gravity, b[0]))
        alike = [answer for _, answer in full or bad if answer.kind == gravest.kind]
        alike += self._smaller(drawing, number, gravest)
        least = min(alike, key=lambda a: a.case.size)
        return Cell(
            marks,
            gravest.kind,
            f"{least.case}: {least.text}",
            max(answer.absolute for answer in alike),
            max(answer.relative for answer in alike),
        )

    def _smaller(self, drawing: Drawing, number: int, found: Answer) -> Iterator[Answer]:
        """Answers to small cases that differ in the same way."""
        if found.case.broken or found.is_slow:
            return
        for attempt in range(_SMALLER):
            case = drawing.case(number, attempt, small=True)
            if case is not None and not self.why_not(case):
                answer = self.answer(case)
                if answer.kind == found.kind:
                    yield answer

    def _supported(self, drawing: Drawing, number: int) -> tuple[Case | None, str]:
        """Case ``number`` or one in its place that the target has; or why it has none."""
        reason = ""
        for attempt in range(ATTEMPTS):
            case = drawing.case(number, attempt)
            if case is None:
                continue
            why = self.why_not(case)
            if not why:
                return case, ""
            reason = reason or why
        return None, reason

    def why_not(self, case: Case) -> str:
        """Why the target does not have the case, by what is declared; empty if it has."""
        node, operands = case.node, case.operands
        if case.broken:
            return ""
        try:
            why = self._lowering.unsupported(node.op, operands, node.attributes)
        except Exception:
            return ""  # our mistake, which the answer will show
        if why is None:
            dtypes = [None if type is None else type.dtype for type in operands]
            why = self._support.why_not(node.op, dtypes)
        if why is None and self._is_forbidden(case):
            why = f"rules/targets/{self.target.name}.rules"
        return "" if why is None else brief(why)

    def _is_forbidden(self, case: Case) -> bool:
        graph = case.program.graph
        with self._lock:
            self._guide.begin()
            effects = [self._guide.commit(entity_facts(entity)) for entity in graph.entities()]
            effects.append(self._guide.commit([("graph_output", (t.id,)) for t in graph.outputs]))
        return any(effect.forbidden for effect in effects)

    def answer(self, case: Case) -> Answer:
        """Run a case, and compare."""
        if case.broken:
            return Answer(case, State.FAILS, FAILURE, f"our semantics: {brief(case.broken)}")
        try:
            self._lowering.unsupported(case.node.op, case.operands, case.node.attributes)
            model = self._lowering.lower(case.program.graph)
        except Exception as error:
            text = brief(f"our lowering: {type(error).__name__}: {error}")
            return Answer(case, State.FAILS, FAILURE, text)
        # The worker's inputs are its own: ours are compared with later.
        outcome = self._pool.run(Job(model, case.program.inputs, (self.mode,)))
        if outcome.ended is not Ended.ANSWERED:
            slow = outcome.ended is Ended.HANG
            return Answer(case, State.FAILS, FAILURE, _ended(outcome), is_slow=slow)
        result = outcome.results[self.mode]
        if result.failure is not None:
            declined = result.failure.unsupported
            state = State.DECLINED if declined else State.FAILS
            return Answer(case, state, "" if declined else FAILURE, _said(result.failure))
        assert result.outputs is not None
        if set(range(len(case.expected))) <= set(case.fragile) and not _choices(case):
            return Answer(case, State.FRAGILE)
        found = difference(case, case.expected, result.outputs)
        if found is not None and self._lowering.name == "onnx":
            rounded = in_single_precision(case)
            if rounded is not None:
                found = difference(case, rounded, result.outputs)
        if found is None:
            return Answer(case, State.AGREE)
        kind = ZERO if found.kind is Kind.SIGN_OF_ZERO else found.kind.value
        where = f"output {found.output}: " if len(case.expected) > 1 else ""
        return Answer(
            case,
            State.DIFFER,
            kind,
            f"{where}{found}",
            found.max_absolute,
            found.max_relative,
        )


def difference(
    case: Case, expected: tuple[Array, ...], actual: tuple[Array, ...]
) -> Difference | None:
    """The first difference in an output that is not implementation-defined."""
    if len(expected) != len(actual):
        return Difference(Kind.COUNT, str(len(expected)), str(len(actual)))
    long = lengths(case.program.graph)
    for i, (ours, theirs) in enumerate(zip(expected, actual, strict=True)):
        if i in case.fragile:
            found = _wrong_choice(case, i, theirs)
        else:
            found = compare(ours, theirs, bounds(_coarsest(case, ours), long[i]))
        if found is not None:
            return replace(found, output=i)
    return None


def bounds(dtype: np.dtype[np.generic], length: int) -> Tolerance:
    """How far results of a type may be apart that sum ``length`` terms."""
    close = CLOSE_HALF if epsilon(dtype) > _HALF else CLOSE
    return close.bounds(dtype, length)


def _coarsest(case: Case, result: Array) -> np.dtype[np.generic]:
    """The least precise float type of a float result and the operands: somebody has to round to
    it, the question is when."""
    dtypes = [result.dtype]
    if epsilon(result.dtype):
        dtypes += [array.dtype for array in case.program.inputs.values()]
    return max(dtypes, key=epsilon)


def _choices(case: Case) -> bool:
    """Whether the implementation-defined outputs are indices of equal elements, of which it can be
    said whether they are some."""
    return any(cause is Cause.TIE for cause in case.fragile.values())


def _wrong_choice(case: Case, output: int, theirs: Array) -> Difference | None:
    if case.fragile[output] is not Cause.TIE or case.node.attributes.get("sorted") is False:
        return None
    graph = case.program.graph
    values = evaluate_all(graph, case.program.inputs)
    wrong = inadmissible(graph, output, theirs, values)
    if wrong is None or not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    ours = case.expected[output][place]
    count = int(np.count_nonzero(wrong))
    return Difference(
        Kind.VALUES, str(ours), str(theirs[place]), count=count, total=wrong.size, index=place
    )


def in_single_precision(case: Case) -> tuple[Array, ...] | None:
    """What the program computes if float attributes have 32 bits, as they do in ONNX; None if that
    makes no difference."""
    node = case.node
    attributes = {name: _single(value) for name, value in node.attributes.items()}
    if attributes == node.attributes:
        return None
    values = evaluate_all(case.program.graph, case.program.inputs)
    operands = [None if t is None else values[t.id] for t in node.inputs]
    types = [tensor.type for tensor in node.outputs if tensor is not None]
    return apply(node.op, operands, attributes, types)


def _single(value: Attribute) -> Attribute:
    if isinstance(value, float):
        return float(np.float32(value))
    if isinstance(value, tuple):
        return tuple(float(np.float32(v)) if isinstance(v, float) else v for v in value)
    return value


def _ended(outcome: Outcome) -> str:
    how = f" ({outcome.signal})" if outcome.signal else ""
    stage = f" at stage {outcome.stage.value}" if outcome.stage else ""
    return f"{outcome.ended.value}{how}{stage}"


def _said(failure: Failure) -> str:
    return brief(f"{failure.stage.value}: {failure.type}: {failure.message}")


_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}\b")
_FOLDER = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+")


def brief(message: str) -> str:
    """A message on one line, without what varies from run to run, cut to a sensible length."""
    text = _FOLDER.sub("", _ADDRESS.sub("0x...", " ".join(message.split())))
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]}..."
