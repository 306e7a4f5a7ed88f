"""Every shipped rule has a witness that its target takes: it compiles and runs the program, or
fails in the way that the rule is about; it does not refuse it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import cache
from random import Random

import pytest

from reprise.campaign.source import SourceRequest, open_finder
from reprise.data import data_path
from reprise.lang.ruleset import load_rules
from reprise.lower.lowering import lowering
from reprise.oracle.classify import blame
from reprise.oracle.verdict import Verdict
from reprise.synth.examples import example
from reprise.synth.witness import Witness
from reprise.targets.discover import parse_target
from reprise.targets.interface import Ended, Job
from reprise.targets.process import Limits, TargetProcess
from tests.synth.test_witness import BY_EXAMPLE, NO_PROGRAM

PATTERNS = load_rules([data_path("rules/bugs")]).patterns
TARGETS = {
    "onnxruntime": ("onnxruntime", "", ("onnx",), 10),
    "inductor": ("inductor", "REPRISE_TORCH_PYTHON", ("torch",), 120),
    "tvm": ("tvm", "REPRISE_TVM_PYTHON", ("onnx", "relax"), 120),  # most are its importer's bugs
    "tvm_cuda": ("tvm-cuda-compile", "REPRISE_TVM_PYTHON", ("relax",), 120),
}
"""A target, where its interpreter is given, lowerings, and the seconds after which it hangs."""
RARE = {"ort_30513"}
"""Found in one of a thousand attempts or so: two operands of one type, three shapes that fit."""
ON_CUDA = {"ort_31162"}  # loads everywhere, fails there only


def of(target):
    asked = PATTERNS.keys() - NO_PROGRAM
    return sorted(n for n in asked if target in PATTERNS[n].meta.get("target", ()))


@pytest.fixture(scope="module")
def processes():
    """A process for each target, started when it is first asked for: compilers take seconds to
    import. One that dies is replaced."""
    with ExitStack() as stack:

        @cache
        def process(target):
            spec, variable, _, seconds = TARGETS[target]
            python = os.environ.get(variable, "") if variable else ""
            described = parse_target(f"{spec}@{python}" if python else spec)
            return stack.enter_context(TargetProcess(described, Limits(seconds=seconds)))

        yield process


def taken(process, target, name, way):
    """Whether the target takes a witness that is lowered in this way, and what it said."""
    spec = TARGETS[target][0]
    request = SourceRequest(
        0, target=spec if way == parse_target(spec).lowering else None, lowerings=(way,)
    )
    finder, pattern = open_finder(request, name)
    if name in RARE | BY_EXAMPLE:
        witness = example(finder, pattern, Random(0))
    else:
        witness = finder.find(pattern, Random(0), attempts=300)
    if not isinstance(witness, Witness):
        return False, f"{name}: no witness"
    program = witness.program
    described = process.target
    model = lowering(way).lower(program.graph)
    outcome = process.run(Job(model, program.inputs, described.modes[::-1][:1]))
    if outcome.ended is not Ended.ANSWERED:
        return True, outcome.log
    fault = blame(outcome.results, described.modes[-1], None)
    if fault is None:
        return True, ""
    failure = outcome.results[described.modes[-1]].failure
    refused = {Verdict.INVALID, Verdict.UNSUPPORTED}
    if any(symptom.startswith("crash") for symptom in pattern.meta.get("symptom", ())):
        refused = {Verdict.INVALID}  # the failure may be worded like a refusal: it is the bug
    return fault[0] not in refused, str(failure)


def check(processes, target, name):
    said = []
    for way in TARGETS[target][2]:
        ok, words = taken(processes(target), target, name, way)
        if ok:
            return
        said.append(f"{way}: {words}")
    pytest.fail("\n".join(said))


@pytest.mark.slow
@pytest.mark.parametrize("name", of("onnxruntime"))
def test_onnx_runtime_takes_the_witness(processes, name):
    check(processes, "onnxruntime", name)


@pytest.mark.slow
@pytest.mark.skipif("REPRISE_TORCH_PYTHON" not in os.environ, reason="needs torch")
@pytest.mark.parametrize("name", of("inductor"))
def test_torch_takes_the_witness(processes, name):
    check(processes, "inductor", name)


@pytest.mark.slow
@pytest.mark.skipif("REPRISE_TVM_PYTHON" not in os.environ, reason="needs TVM")
@pytest.mark.parametrize(
    ("target", "name"), [(t, name) for t in ("tvm", "tvm_cuda") for name in of(t)]
)
def test_tvm_takes_the_witness(processes, target, name):
    check(processes, target, name)
