"""The judge on ONNX Runtime: every model of `tests/bugs/onnx_models.py` gets the verdict that is
known of it, and the pass that its rule's advice names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from reprise.facts.onnx_import import import_model
from reprise.facts.onnx_read import Limits
from reprise.lang.ruleset import load_rules
from reprise.oracle.judge import Judge
from reprise.oracle.verdict import Verdict
from reprise.targets.interface import Ended, Failure, ModeResult, Outcome, Stage
from reprise.uir.program import Program
from tests.bugs.onnx_models import ONNXRUNTIME, Case
from tests.conftest import ROOT

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(
    onnxruntime.__version__ != "1.27.0", reason="measured on ONNX Runtime 1.27.0"
)
MODES = ("optimised", "unoptimised")
RULES = load_rules([ROOT / "rules" / "bugs" / "onnxruntime"])
ADVICE = {
    name: tuple(re.findall(r"'(\w+)'", pattern.get("advice") or ""))
    for name, pattern in RULES.patterns.items()
}
PASSES = tuple(
    sorted(
        {name for names in ADVICE.values() for name in names}
        | {"ConstantFolding", "EliminateDropout", "EliminateIdentity", "MatMulAddFusion"}
    )
)
CASES = [c for c in ONNXRUNTIME if "[N," not in c.body]


class Session:
    """ONNX Runtime in this process."""

    def __init__(self, case: Case) -> None:
        self.model = case.model().SerializeToString()
        self.inputs = case.data()

    def __call__(
        self,
        *,
        inputs: Mapping[str, np.ndarray] | None = None,
        modes: tuple[str, ...] | None = None,
        disabled: tuple[str, ...] = (),
    ) -> Outcome:
        given = self.inputs if inputs is None else dict(inputs)
        results = {m: self.run(m, given, disabled) for m in modes or MODES}
        return Outcome(Ended.ANSWERED, results)

    def run(self, mode: str, given: dict[str, np.ndarray], disabled: tuple[str, ...]) -> ModeResult:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        levels = onnxruntime.GraphOptimizationLevel
        plain = mode == "unoptimised"
        options.graph_optimization_level = (
            levels.ORT_DISABLE_ALL if plain else levels.ORT_ENABLE_ALL
        )
        stage = Stage.COMPILE
        try:
            session = onnxruntime.InferenceSession(
                self.model,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=[] if plain else list(disabled),
            )
            stage = Stage.RUN
            return ModeResult(tuple(session.run(None, given)), None, 0.0)
        except Exception as error:
            return ModeResult(None, Failure(stage, type(error).__name__, str(error)), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_verdict_is_what_is_known_of_the_model(case: Case) -> None:
    graph = import_model(case.model(), Path("model.onnx"), Limits())
    target = Session(case)
    program = Program(graph, target.inputs, case.name)
    found = Judge(MODES, share=1.0).judge(program, target(), target, PASSES)
    if case.symptom is None:
        assert found.verdict is Verdict.OK, found
        return
    crash = case.symptom.startswith("crash")
    assert found.verdict is (Verdict.CRASH if crash else Verdict.WRONG_RESULT), found
    blamed = found.signature.removeprefix("pass:").split("+")
    assert set(blamed) <= {name for rule in case.rules for name in ADVICE[rule]}, found.signature
    if not crash and case.symptom == "wrong_result":
        assert found.evidence["float64_sides_with"] == "baseline"
