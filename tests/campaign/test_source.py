"""Which known bugs a run steers around: those of its target, by the target's own name."""

from __future__ import annotations

import pytest

from reprise.campaign.source import known_bugs
from reprise.data import data_path
from reprise.lang.ruleset import load_rules

RULES = load_rules([data_path("rules/bugs")])


def targets_of(target: str, version: str | None = None) -> set[str]:
    return {t for p in known_bugs(RULES, target, version) for t in p.meta["target"]}


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("tvm", "tvm"),
        ("tvm-cuda-compile", "tvm_cuda"),
        ("onnxruntime", "onnxruntime"),
        ("inductor", "inductor"),
    ],
)
def test_a_run_knows_the_bugs_of_its_own_target_alone(target, named):
    assert all(named in p.meta["target"] for p in known_bugs(RULES, target))
    own = {n for n, p in RULES.patterns.items() if named in p.meta["target"]}
    assert {p.name for p in known_bugs(RULES, target)} == own


def test_a_run_without_a_target_knows_all():
    assert len(known_bugs(RULES, None)) == len(RULES.patterns)


def test_bugs_of_other_versions_are_not_known():
    assert len(known_bugs(RULES, "inductor", "99.0")) < len(known_bugs(RULES, "inductor"))


def test_bugs_of_an_importer_concern_only_programs_that_are_imported():
    def names(form: str | None) -> set[str]:
        return {p.name for p in known_bugs(RULES, "tvm", None, form)}

    assert "tvm_is_inf" in names("onnx") & names(None)
    assert "tvm_is_inf" not in names("relax")
    assert "tvm_bool_equal" in names("relax")
