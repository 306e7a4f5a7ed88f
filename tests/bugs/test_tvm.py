"""The rules about TVM against TVM: the rules own examples as Relax programs (for CUDA compiled
only, which needs no GPU), and ONNX models through the importer.

Needs an interpreter that has TVM, named by ``REPRISE_TVM_PYTHON`` (0.25 to 0.27)."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from reprise.campaign.regress.probe import About, Effect, Probe
from reprise.facts.onnx_import import import_model
from reprise.facts.onnx_read import Limits as ModelLimits
from reprise.lang.ruleset import load_rules
from reprise.patterns.match import Matcher
from reprise.synth.inputs import fill_constants, input_sets
from reprise.synth.vocabulary import read_policies
from reprise.targets.discover import parse_target
from reprise.targets.process import Limits, WorkerPool
from tests.bugs.onnx_models import TVM, Case
from tests.bugs.outcomes import FILLS
from tests.bugs.programs import Example, examples, interpreter, outcomes, program
from tests.conftest import ROOT

PYTHON = interpreter("REPRISE_TVM_PYTHON")
needs_tvm = pytest.mark.skipif(PYTHON is None, reason="REPRISE_TVM_PYTHON names no interpreter")

RULES = load_rules([ROOT / "rules" / "bugs" / "tvm", ROOT / "rules" / "bugs" / "tvm_cuda"])
FOUND = [n for n, p in RULES.patterns.items() if p.get("found_by") == "reprise"]
CUDA = [n for n, p in RULES.patterns.items() if p.get("target") == "tvm_cuda" and n not in FOUND]
LLVM = [n for n, p in RULES.patterns.items() if p.get("target") == "tvm"]
BY_PROGRAM = [
    *("tvm_20015", "tvm_20105", "tvm_adaptive_window", "tvm_bool_reduction"),
    "tvm_argmax_of_zeros",
    *("tvm_max_of_minus_infinity", "tvm_min_of_infinity", "tvm_tanh_negative_zero"),
]
"""The rules for llvm that Relax programs show; the importer's are shown by ONNX models."""

PROGRAMS = [(e, "cuda") for e in examples(RULES, CUDA)]
PROGRAMS += [(e, "llvm") for e in examples(RULES, BY_PROGRAM)]

FORMS = {"tvm": "tvm", "tvm_cuda": "tvm-cuda-compile"}
SHOWN = [
    (e, target) for e in examples(RULES, FOUND) for target in RULES.patterns[e.rule].meta["target"]
]
"""The examples of rules that campaigns found, lowered as in campaigns."""


def expected_outcome(case: Case) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(case.model()).run(None, case.data())


def model_task(case: Case) -> dict[str, object]:
    buffer = io.BytesIO()
    arrays = {f"input{i}": a for i, a in enumerate(case.data().values())}
    arrays |= {f"output{i}": np.asarray(a) for i, a in enumerate(expected_outcome(case))}
    np.savez(buffer, **arrays)
    model = base64.b64encode(case.model().SerializeToString()).decode()
    return {"key": case.name, "model": model, "data": base64.b64encode(buffer.getvalue()).decode()}


@pytest.fixture(scope="module")
def measured() -> tuple[str, dict[str, str]]:
    assert PYTHON is not None
    tasks: list[dict[str, object]] = [
        {"key": e.key, "target": target, "program": program(e.graph)} for e, target in PROGRAMS
    ]
    tasks += [model_task(case) for case in TVM]
    return outcomes(PYTHON, "run_relax.py", tasks)


def affected(rule: str, version: str) -> bool:
    specifiers = SpecifierSet(RULES.patterns[rule].get("affects") or "")
    return specifiers.contains(Version(version), prereleases=True)


@pytest.fixture(scope="module")
def probes() -> Iterator[dict[str, tuple[str, list[Probe]]]]:
    assert PYTHON is not None
    with ExitStack() as stack:
        opened = {}
        for name, target in FORMS.items():
            chosen = parse_target(f"{target}@{PYTHON}")
            found: list[Probe] = []
            for fill in FILLS if name == "tvm" else ("",):
                filled = replace(chosen, environment=(("MALLOC_PERTURB_", fill),))
                pool = stack.enter_context(WorkerPool(filled, 1, Limits()))
                version = pool.start()["apache-tvm"]
                found.append(Probe(filled, pool, chosen.lowering, Event()))
            opened[name] = version, found
        yield opened


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize(("example", "target"), SHOWN, ids=lambda v: getattr(v, "key", v))
def test_an_example_of_a_campaigns_rule(
    example: Example, target: str, probes: dict[str, tuple[str, list[Probe]]]
) -> None:
    version, filled = probes[target]
    about = About.rule(RULES.patterns[example.rule])
    fires = example.kind != "no_match" and affected(example.rule, version)
    policies = read_policies(RULES)
    fill_constants(example.graph, policies, Random(0))
    sets = list(input_sets(example.graph, policies, Random(0), 2))
    for probe in filled:
        seen = probe.observe(example.graph, sets, about, thorough=False)
        if fires and seen.effect is Effect.FIRES:
            break
    assert seen.effect is (Effect.FIRES if fires else Effect.SILENT), seen


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize(("example", "target"), PROGRAMS, ids=lambda v: getattr(v, "key", v))
def test_a_program(example, target, measured) -> None:  # type: ignore[no-untyped-def]
    version, answers = measured
    outcome = answers[example.key]
    pattern = RULES.patterns[example.rule]
    if example.kind != "no_match" and affected(example.rule, version):
        assert outcome in pattern.meta["symptom"]
    else:
        assert outcome == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("case", TVM, ids=lambda c: c.name)
def test_the_rules_that_match_are_those_of_the_case(case: Case) -> None:
    matcher = Matcher(RULES, [RULES.patterns[n] for n in LLVM])
    found = matcher.run(import_model(case.model(), Path("model.onnx"), ModelLimits())).findings
    assert {f.pattern.name: f.certainty.value for f in found} == case.rules


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("case", TVM, ids=lambda c: c.name)
def test_a_model(case: Case, measured: tuple[str, dict[str, str]]) -> None:
    version, answers = measured
    if all(affected(rule, version) for rule in case.rules):
        assert answers[case.name] == (case.symptom or "ok")
