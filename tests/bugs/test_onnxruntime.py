"""The rules about ONNX Runtime against ONNX Runtime: what matches really fails, with the symptom
that the rule names, and its advice helps; what does not match runs well.

Any release from 1.26 on will do: what a rule says of versions is tested too. To try another than
the installed one, put it first: `PYTHONPATH=… pytest tests/bugs/test_onnxruntime.py`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from packaging.specifiers import SpecifierSet

from reprise.facts.onnx_import import import_model
from reprise.facts.onnx_read import Limits
from reprise.lang.ruleset import load_rules
from reprise.patterns.match import Matcher
from tests.bugs.onnx_models import ONNXRUNTIME, Arrays, Case
from tests.bugs.outcomes import difference
from tests.bugs.test_onnxruntime_kernels import OURS as KERNELS
from tests.bugs.test_onnxruntime_mined import OURS as MINED
from tests.conftest import ROOT

onnxruntime = pytest.importorskip("onnxruntime")
RULES = load_rules([ROOT / "rules" / "bugs" / "onnxruntime"])
PATTERNS = {n: p for n, p in RULES.patterns.items() if p.get("target") == "onnxruntime"}
MATCHER = Matcher(RULES, PATTERNS.values())
VERSION = onnxruntime.__version__
measured = pytest.mark.skipif(
    VERSION not in SpecifierSet(">=1.26,<=1.32.0"), reason=f"not measured on {VERSION}"
)


def affects(name: str) -> SpecifierSet:
    return SpecifierSet(PATTERNS[name].get("affects") or "")


def run(case: Case, inputs: Arrays, *, optimised: bool, without: tuple[str, ...] = ()):
    """What a session gives, or the symptom."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    try:
        session = onnxruntime.InferenceSession(
            case.model().SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(without),
        )
    except Exception:
        return "crash_at_load"
    try:
        return session.run(None, inputs)
    except Exception:
        return "crash_at_run"


@pytest.mark.slow
@pytest.mark.parametrize("case", ONNXRUNTIME, ids=lambda c: c.name)
def test_the_rules_that_match_are_those_of_the_case(case: Case) -> None:
    found = MATCHER.run(import_model(case.model(), Path("model.onnx"), Limits())).findings
    assert {f.pattern.name: f.certainty.value for f in found} == case.rules


@measured
@pytest.mark.parametrize("case", ONNXRUNTIME, ids=lambda c: c.name)
def test_the_symptom_is_that_of_the_rule(case: Case) -> None:
    inputs = case.data()
    plain = run(case, inputs, optimised=False)
    assert not isinstance(plain, str), f"without optimisation: {plain}"
    optimised = run(case, inputs, optimised=True)
    symptom = optimised if isinstance(optimised, str) else difference(optimised, plain)
    affecting = [PATTERNS[n] for n in case.rules if VERSION in affects(n)]
    if affecting:
        assert any(symptom in p.meta["symptom"] for p in affecting)
        assert symptom == case.symptom or VERSION != "1.27.0"
    else:
        assert symptom is None


@measured
@pytest.mark.parametrize("case", [c for c in ONNXRUNTIME if c.symptom], ids=lambda c: c.name)
def test_the_advice_helps(case: Case) -> None:
    """Disabling the optimisers that the advice names cures the model."""
    inputs = case.data()
    plain = run(case, inputs, optimised=False)
    for name in case.rules:
        disabled = re.findall(r"'(\w+)'", PATTERNS[name].get("advice") or "")
        assert disabled, f"{name}: no optimiser to disable"
        cured = run(case, inputs, optimised=True, without=tuple(disabled))
        assert not isinstance(cured, str), cured
        assert difference(cured, plain) is None


def test_every_rule_that_runs_on_a_cpu_has_a_case_that_fails() -> None:
    shown = {name for case in ONNXRUNTIME if case.symptom for name in case.rules} | {
        *KERNELS,
        *MINED,
    }
    assert set(PATTERNS) - shown == {"ort_31162"}  # needs CUDA


def test_a_constant_zero_keeps_its_sign_on_the_cpu() -> None:
    """ort_31162 is CUDA's: the CPU's constant folding gives abs(+0.0) its sign."""
    case = Case(
        "abs",
        "(float[4] x) => (float[4] y) <float[4] z = {0.0,-0.0,0.0,-0.0}> "
        "{ a = Abs(z) y = Div(x, a) }",
    )
    inputs: Arrays = {"x": np.ones(4, np.float32)}
    assert np.isposinf(run(case, inputs, optimised=True)[0]).all()
