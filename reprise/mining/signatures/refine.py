"""Hold a hypothesis against ONNX, and make it stricter where ONNX refuses what it allows.

Applications are drawn as the generator will draw them, by a sampler of the signature itself; so
what is measured here is what the signature is good for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2
from random import Random

from reprise.data import data_path
from reprise.lang.parse import parse_file, parse_text
from reprise.mining.signatures.fit import conditions
from reprise.mining.signatures.hypothesis import Condition, Hypothesis, Values, variable
from reprise.mining.signatures.trial import Oracle, Trial
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.suggestions import Shapes
from reprise.uir.graph import TensorType

_SHAPES = Shapes((1, 1, 2, 2, 3, 4, 5, 6), (0, 1, 1, 2, 2, 3, 3, 4, 4))
_DTYPES = ("float32", "int64", "int32", "float64", "bool", "uint8", "int8", "float16")
ENOUGH = 0.98
"""A share of accepted applications that needs no more conditions: the generator asks ONNX of each
again."""
_ROUNDS = 8
_DRAWN = 150
_LEAST = 5
_LEAST_TIED = 40
"""Where several conditions are missing at once, a handful of lucky draws tells nothing."""
_GAIN = 0.05
_CHOICES = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn application, the values of the signature's variables, and ONNX's word on it."""

    trial: Trial
    values: Values
    accepted: bool
    results: tuple[TensorType, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """How many of the drawn applications ONNX accepted; ``tries``: how many draws that took."""

    samples: tuple[Sample, ...]

    @property
    def accepted(self) -> int:
        return sum(s.accepted for s in self.samples)

    @property
    def share(self) -> float:
        return self.accepted / len(self.samples) if self.samples else 0.0


def refine(
    made: Hypothesis, oracle: Oracle, known: Sequence[Values], seed: str
) -> tuple[Hypothesis, Measured]:
    """The hypothesis with the conditions that it lacked, and how good it is in the end."""
    measured = measure(made, oracle, f"{seed}/0", _DRAWN)
    for number in range(1, _ROUNDS):
        if measured.share >= ENOUGH:
            break
        best: tuple[Hypothesis, Measured] | None = None
        for choice, better in enumerate(_stricter(made, measured, known)):
            tried = measure(better, oracle, f"{seed}/{number}/{choice}", _DRAWN)
            if len(tried.samples) >= 20 and tried.share > (best[1] if best else measured).share:
                best = better, tried
            if tried.share >= ENOUGH:
                break
        if best is None:
            break
        made, measured = best
    return _pruned(made, measured, oracle, f"{seed}/pruned")


def _pruned(
    made: Hypothesis, measured: Measured, oracle: Oracle, seed: str
) -> tuple[Hypothesis, Measured]:
    """Without the conditions that make no difference."""
    for condition in reversed(made.conditions):
        rest = [c for c in made.conditions if c is not condition]
        looser = replace(made, conditions=rest)
        tried = measure(looser, oracle, f"{seed}/{condition.text}", _DRAWN)
        if tried.share >= min(ENOUGH, measured.share) and len(tried.samples) >= 20:
            made, measured = looser, tried
    return made, measured


def measure(made: Hypothesis, oracle: Oracle, seed: str, count: int) -> Measured:
    """Draw ``count`` applications and ask ONNX of each."""
    sampler = _sampler(made)
    rng = Random(seed)
    samples = []
    for _ in range(count):
        instance = sampler.draw(rng, tries=60)
        if instance is None:
            continue
        trial = trial_of(made, instance)
        results = oracle.results_with(trial, made.kinds)
        values = made.values(trial)
        if values is not None:
            samples.append(Sample(trial, values, results is not None, tuple(results or ())))
    return Measured(tuple(samples))


def _sampler(made: Hypothesis) -> Sampler:
    text = made.text().partition("\ndemands(")[0]
    parsed = parse_text(text, "<mined>")
    signatures = Signatures.of([parse_file(data_path("rules/std/dtypes.rules")), parsed])
    return Sampler(signatures[made.raw.name], _SHAPES, _DTYPES)


def trial_of(made: Hypothesis, instance: Instance) -> Trial:
    """A sampler's instance as a trial."""
    raw = made.raw
    types = [*instance.operands, *([None] * (len(raw.operands) - len(instance.operands)))]
    shapes = tuple(
        None if t is None else tuple(e for e in t.shape or () if isinstance(e, int)) for t in types
    )
    dtypes = {
        o.dtype: t.dtype
        for o, t in zip(raw.operands, types, strict=True)
        if t is not None and t.dtype is not None and o.dtype in raw.dtypes
    }
    return Trial(shapes, tuple(sorted(dtypes.items())), tuple(sorted(instance.attributes.items())))


# --- what is missing -----------------------------------------------------------------------------


def _stricter(made: Hypothesis, measured: Measured, known: Sequence[Values]) -> list[Hypothesis]:
    """With the condition, or without the part, that best tells accepted from refused: the few best
    ones, the best first."""
    good = [s.values for s in measured.samples if s.accepted]
    bad = [s.values for s in measured.samples if not s.accepted]
    if len(good) < (_LEAST_TIED if made.tied else _LEAST):
        # Too few to learn from: those of the search stand in for them.
        wanted = max(20, len(bad) // 2)
        # Of what began with examples, the first few are all like these.
        step = max(1, len(known) // wanted) if made.tied else 1
        good = [*good, *known[::step][:wanted]]
    if not good:
        return []
    base = len(good) / (len(good) + len(bad))
    found: list[tuple[float, Hypothesis]] = []
    for changed, holds in _changes(made):
        kept = sum(map(holds, good))
        spoiled = sum(map(holds, bad))
        if kept < _LEAST:
            continue
        precision = kept / (kept + spoiled)
        if precision < base + _GAIN:
            continue
        gain = kept * (log2(precision) - log2(base))  # as in FOIL
        found.append((gain, changed(precision, kept, kept + spoiled)))
    found.sort(key=lambda entry: -entry[0])
    return [better for _, better in found[:_CHOICES]]


def _changes(made: Hypothesis) -> Iterator[tuple]:  # type: ignore[type-arg]
    there = {c.text for c in made.conditions}
    for condition in conditions(made):
        if condition.text not in there:
            yield _with(made, condition), condition.is_certain
    for name in list(made.attributes):
        if name not in made.required:
            default = next((a.default for a in made.raw.attributes if a.name == name), None)
            yield _without(made, name), _is_absent(variable(name), default)
        if name not in made.required:
            yield _needing(made, name), lambda v, name=name: variable(name) in v
    for i, layout in made.layouts.items():
        if made.raw.operands[i].optional:
            yield (
                _without_operand(made, i),
                _is_absent(layout.variables[0] if layout.variables else "", None),
            )


def _with(made: Hypothesis, condition: Condition):  # type: ignore[no-untyped-def]
    def changed(precision: float, kept: int, of: int) -> Hypothesis:
        evidence = f"{kept} of {of}"
        return replace(made, conditions=[*made.conditions, replace(condition, evidence=evidence)])

    return changed


def _needing(made: Hypothesis, name: str):  # type: ignore[no-untyped-def]
    def changed(precision: float, kept: int, of: int) -> Hypothesis:
        return replace(made, required={*made.required, name})

    return changed


def _without(made: Hypothesis, name: str):  # type: ignore[no-untyped-def]
    def changed(precision: float, kept: int, of: int) -> Hypothesis:
        attributes = {k: v for k, v in made.attributes.items() if k != name}
        stored = {k: v for k, v in made.stored.items() if k != name}
        why = f"without it {kept} of {of} are accepted"
        mentioned = variable(name)
        conditions = [c for c in made.conditions if mentioned not in _words(c.text)]
        return replace(
            made,
            attributes=attributes,
            stored=stored,
            conditions=conditions,
            left_out={**made.left_out, name: why},
        )

    return changed


def _without_operand(made: Hypothesis, i: int):  # type: ignore[no-untyped-def]
    def changed(precision: float, kept: int, of: int) -> Hypothesis:
        gone = set(made.layouts[i].variables)
        layouts = {k: v for k, v in made.layouts.items() if k != i}
        conditions = [c for c in made.conditions if not gone & _words(c.text)]
        why = f"without it {kept} of {of} are accepted"
        left_out = {**made.left_out, made.raw.operands[i].name: why}
        return replace(made, layouts=layouts, conditions=conditions, left_out=left_out)

    return changed


def _words(text: str) -> set[str]:
    import re

    return set(re.findall(r"\w+", text))


def _is_absent(name: str, default: object):  # type: ignore[no-untyped-def]
    return lambda values: values.get(name, default) == default
