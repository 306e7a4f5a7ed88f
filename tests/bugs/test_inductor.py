"""The rules about Inductor against Inductor: every example of every rule, eager and compiled.

Needs an interpreter that has torch 2.13.0 (the CPU build will do) and a C++ compiler, named by
``REPRISE_TORCH_PYTHON``. Compiling all the examples takes a few minutes."""

from __future__ import annotations

import pytest

from reprise.lang.ruleset import load_rules
from tests.bugs.programs import Example, examples, interpreter, outcomes, program
from tests.conftest import ROOT

PYTHON = interpreter("REPRISE_TORCH_PYTHON")
RULES = load_rules([ROOT / "rules" / "bugs" / "inductor"])
NAMES = [n for n, p in RULES.patterns.items() if p.get("target") == "inductor"]
EXAMPLES = [
    e
    for e in examples(RULES, NAMES)
    if e.graph.nodes and all(t.type.dtype != "bfloat16" for t in e.graph.tensors)
]
TOO_SMALL_TO_COUNT = {"pytorch_189803"}
"""Below 1 % relative (see the rule): no oracle that asks for both an absolute and a relative
difference sees it."""


@pytest.fixture(scope="module")
def measured() -> tuple[str, dict[str, str]]:
    assert PYTHON is not None
    return outcomes(
        PYTHON,
        "run_inductor.py",
        [{"key": e.key, "program": program(e.graph)} for e in EXAMPLES],
    )


@pytest.mark.skipif(PYTHON is None, reason="REPRISE_TORCH_PYTHON names no interpreter")
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.key)
def test_an_example(example: Example, measured: tuple[str, dict[str, str]]) -> None:
    version, answers = measured
    if version != "2.13.0":
        pytest.skip("measured on 2.13.0")
    outcome = answers[example.key]
    if example.kind == "no_match" or example.rule in TOO_SMALL_TO_COUNT:
        assert outcome == "ok"
    else:
        assert outcome in RULES.patterns[example.rule].meta["symptom"]
