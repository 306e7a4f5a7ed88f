"""The rules about operators beyond UIR's reference, against ONNX Runtime: each match shows a
symptom of its rule, what does not match shows none. ONNX's reference says what is right."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.oracle.chance import random_outputs
from reprise.solve.signatures import Signatures
from reprise.synth.inputs import fill_constants
from reprise.targets.discover import parse_target
from reprise.targets.interface import Ended, Job
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.text import read_graph
from tests.bugs.test_onnxruntime_kernels import (
    FOLDER,
    RUNS,
    inputs_of,
    pytestmark,
    symptoms_of,
)

__all__ = ["pytestmark"]
RULES = load_rules([FOLDER / "mined_operators.rules", FOLDER / "half_cast.rules"])
OURS = [name for name in RULES.patterns if name != "ort_half_cast"]
MODELS_ONLY = {"ort_split_to_sequence", "ort_binarizer_nan"}
"""A sequence is no tensor that a program has; that a result is NaN, the operands decide."""
SIGNATURES = Signatures.of_symbols(RULES.symbols)
CASES = [
    (test.subject.text, case)
    for test in RULES.tests
    if test.subject.text in OURS and test.subject.text not in MODELS_ONLY
    for case in test.cases
]


@pytest.fixture(scope="module")
def process() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target("onnxruntime"), Limits(seconds=4)) as one:
        one.start()
        yield one


@pytest.mark.parametrize(
    ("name", "case"), CASES, ids=[f"{name}-{case.kind}-{case.title}" for name, case in CASES]
)
def test_an_example_does_what_its_rule_says(name: str, case, process: TargetProcess) -> None:
    graph = read_graph(case.lines, SIGNATURES)
    fill_constants(graph, {}, Random(0))
    inputs = inputs_of(graph)
    job = Job(lowering("onnx").lower(graph), inputs, process.target.modes)
    wanted = set(RULES.patterns[name].meta["symptom"])
    matches = case.kind == "match"
    found: set[str] = set()
    for _ in range(RUNS if matches and "wrong_result" in wanted else 1):
        outcome = process.run(job)
        failed = all(result.failure is not None for result in outcome.results.values())
        if failed or outcome.ended is not Ended.ANSWERED:  # nothing to compare
            found |= symptoms_of(outcome, [])
        elif not random_outputs(graph):
            with np.errstate(all="ignore"):
                reference = ReferenceEvaluator(onnx.load_from_string(job.model))
                expected = [np.asarray(value) for value in reference.run(None, inputs)]
            found |= symptoms_of(outcome, expected)
    assert bool(found & wanted) == matches, found
