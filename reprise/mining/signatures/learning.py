"""``reprise mine signatures``: from mined declarations to signatures that the generator can use.

For each operator: search, hypothesis, refinement, and a last measurement. What comes out is text
of the rule language, with the evidence in its documentation, or the reason why there is none.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from reprise.lang import ast
from reprise.lang.format import format_text
from reprise.lang.parse import parse_file
from reprise.mining.signatures.examples import examples, refused
from reprise.mining.signatures.fit import ResultShape, first_hypothesis, result_shapes
from reprise.mining.signatures.hypothesis import Hypothesis
from reprise.mining.signatures.reading import Raw, Unusable, in_uir, read
from reprise.mining.signatures.refine import Measured, measure, refine
from reprise.mining.signatures.search import Effort, Found, Starts, search
from reprise.mining.signatures.trial import Oracle, Trial
from reprise.uir.graph import TensorType

LEAST = 0.2
"""A signature of which ONNX accepts a smaller share is of no use to a generator."""
_LAST = 200


@dataclass(frozen=True, slots=True)
class Learned:
    """A completed signature: how many of the last applications drawn from it ONNX accepted, how
    many applications were asked about in all."""

    op: str
    text: str
    accepted: int
    drawn: int
    asked: int
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An operator without a usable signature, and why. ``uir``: it has one under that name."""

    op: str
    reason: str
    uir: str | None = None


def learn_all(
    decls: Sequence[ast.OpDecl], *, seed: int = 0, every: bool = False, jobs: int = 1
) -> Iterator[Learned | Skipped]:
    """The operators, in their order, whatever the number of processes. ``every``: also those that
    UIR has."""
    answer = partial(_answer, seed=seed, every=every)
    if jobs <= 1:
        yield from map(answer, decls)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(decls)), mp_context=context) as pool:
        yield from pool.map(answer, decls)


def _answer(decl: ast.OpDecl, seed: int, every: bool) -> Learned | Skipped:
    op = decl.name.text
    uir = None if every else in_uir(op)
    return learn(decl, seed) if uir is None else Skipped(op, f"it is `{uir}` in UIR", uir)


def written(source: str, answers: Sequence[Learned | Skipped]) -> str:
    """The answers as a rule file: signatures, and why there are no others."""
    parts = [
        f"// Signatures of {source}, completed by `reprise mine signatures`: ranks, extents and\n"
        "// attributes are what ONNX's shape inference and reference evaluator accept.\n"
    ]
    parts += [answer.text for answer in answers if isinstance(answer, Learned)]
    without = [a for a in answers if isinstance(a, Skipped) and a.uir is None]
    if without:
        lines = "\n".join(f"// {a.op}: {a.reason}" for a in without)
        parts.append(f"// Without a signature:\n//\n{lines}\n")
    return format_text("\n".join(parts))


def declarations(path: Path) -> list[ast.OpDecl]:
    """The operators that a file declares. Raises RulesError."""
    return [decl for decl in parse_file(path).decls if isinstance(decl, ast.OpDecl)]


def learn(decl: ast.OpDecl, seed: int = 0, effort: Effort | None = None) -> Learned | Skipped:
    """One operator: by a scan; if that is not enough, from ONNX's own examples; then by a longer
    scan. Same seed, same answer."""
    op = decl.name.text
    try:
        raw = read(decl)
    except Unusable as error:
        return Skipped(op, str(error))
    effort, cases = effort or Effort(), examples(raw)
    quick = replace(effort, second=0) if cases else effort
    attempts: list[tuple[Effort, Starts | None]] = [(quick, None)]
    if cases:
        attempts += [(effort, Starts(cases, plain)) for plain in (False, True)] + [(effort, None)]
    answer: Learned | Skipped | None = None
    for how, starts in attempts:
        answer = _learn(raw, seed, how, starts)
        if isinstance(answer, Learned):
            break
    assert answer is not None
    return answer


def _learn(raw: Raw, seed: int, effort: Effort, starts: Starts | None) -> Learned | Skipped:
    """Search, hypothesis, refinement, measurement."""
    op = raw.name
    oracle = Oracle(raw, seed)
    oracle.asks_function = starts is not None
    found = search(raw, oracle, Random(f"{seed}/{op}"), effort, starts)
    if not oracle.runs:
        return Skipped(op, "onnx's reference evaluator does not run it: nothing tells valid values")
    if len(found.accepted) < 20:
        what = f"of {oracle.asked} applications that were tried, {len(found.accepted)} were valid"
        return Skipped(op, what)
    made = first_hypothesis(raw, found, oracle)
    shapes: list[ResultShape] | None = None
    if not oracle.infers:
        shapes = _result_shapes(made, found, oracle)
        if shapes is None:
            return Skipped(op, "nobody says what shapes its results have")
        made = replace(made, results=[shape.text for shape in shapes])
    known = [v for trial in found.accepted if (v := made.values(trial)) is not None]
    made, _ = refine(made, oracle, known, f"{seed}/{op}")
    contradicted = refused(made, examples(raw))
    if contradicted:
        return Skipped(op, f"what was learned refuses all {contradicted} of ONNX's own examples")
    last = measure(made, oracle, f"{seed}/{op}/last", _LAST)
    if last.share < LEAST:
        return Skipped(op, f"of {len(last.samples)} applications drawn, {last.accepted} were valid")
    return Learned(
        op,
        made.text(_notes(made, last, oracle, starts)),
        last.accepted,
        len(last.samples),
        oracle.asked,
        dict(made.left_out),
    )


def _result_shapes(made: Hypothesis, found: Found, oracle: Oracle) -> list[ResultShape] | None:
    """How the results' shapes are written where ONNX has no inference. What was accepted but has
    other shapes is refused from then on."""
    seen = []
    for trial in found.accepted:
        values, results = made.values(trial), oracle.results(trial)
        if values is not None and results is not None:
            seen.append((values, results))
    shapes = result_shapes(made, seen)
    if shapes is None:
        return None

    def expected(trial: Trial, results: Sequence[TensorType]) -> bool:
        values = made.values(trial)
        return values is None or all(
            shape.is_right(values, result.shape)
            for shape, result in zip(shapes, results, strict=False)
        )

    oracle.expected = expected
    found.accepted = [
        t for t in found.accepted if (r := oracle.results(t)) is not None and expected(t, r)
    ]
    return shapes


def _notes(
    made: Hypothesis, last: Measured, oracle: Oracle, starts: Starts | None
) -> tuple[str, ...]:
    """The evidence, as lines of documentation."""
    notes = (
        [] if starts is None else ["Learned from ONNX's own examples: scanning found too little."]
    )
    notes += [
        f"Probed: {oracle.asked} applications asked of ONNX; of {len(last.samples)} drawn from "
        f"this signature, {last.accepted} accepted."
    ]
    notes += [f"`{c.text}`: {c.evidence} accepted." for c in made.conditions if c.evidence]
    notes += [f"Without `{name}`: {why}." for name, why in made.left_out.items()]
    return tuple(notes)
