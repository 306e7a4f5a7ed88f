"""The known-bug rules that ship: their own test blocks, their metadata, and the six bugs that they
were first written for."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from reprise.facts.onnx_import import import_model, load_onnx
from reprise.facts.onnx_read import Limits
from reprise.lang.declared import Pattern
from reprise.lang.lint import lint
from reprise.lang.ruleset import load_rules
from reprise.patterns.match import Matcher
from reprise.patterns.testing import CaseResult, run_tests
from reprise.uir.graph import Graph
from tests.bugs.onnx_models import ONNXRUNTIME, TVM, Case, yes
from tests.conftest import ROOT

BUGS = ROOT / "rules" / "bugs"
RULES = load_rules([BUGS])
CASES = [
    f"{test.subject.text}:{case.span.line}"
    for test in RULES.tests
    if test.span.file in RULES.own
    for case in test.cases
]
PATTERNS = {n: p for n, p in RULES.patterns.items() if p.get("target")}
TARGETS = {"onnxruntime", "inductor", "tvm", "tvm_cuda"}
SYMPTOMS = {
    "hang",
    *("wrong_result", "wrong_shape", "wrong_dtype", "not_folded"),
    *("crash_at_load", "crash_at_compile", "crash_at_run"),
}
PUBLISHED = {
    *("pytorch_189803", "pytorch_189787", "pytorch_190421", "tvm_20060", "ort_31162"),
}
"""Those that the first paper spells out (Figure 2, Table 6)."""


@pytest.fixture(scope="module")
def results() -> dict[str, CaseResult]:
    return {f"{result.subject}:{result.line}": result for result in run_tests(RULES)}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, results: dict[str, CaseResult]) -> None:
    assert results[case].ok, results[case].message


@pytest.mark.slow
def test_every_case_was_run(results: dict[str, CaseResult]) -> None:
    assert list(results) == CASES


def test_there_are_no_gaps_left_open(results: dict[str, CaseResult]) -> None:
    assert not [r for r in results.values() if r.kind.startswith("todo")]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=lambda p: p.name)
def test_a_rule_says_what_a_reader_needs(pattern: Pattern) -> None:
    meta = pattern.meta
    assert pattern.doc and pattern.title
    assert meta["bug"] and meta["advice"] and len(meta["verdict"]) == 1
    assert set(meta["target"]) <= TARGETS
    assert set(meta["symptom"]) <= SYMPTOMS
    assert set(meta["verdict"]) <= {"bug", "fixed", "limitation", "not_a_bug"}
    assert set(meta["severity"]) <= {"low", "medium", "high", "critical"}
    affects = SpecifierSet(pattern.get("affects") or "")
    assert len(affects) > 0
    assert not any(version in affects for version in meta.get("fixed", ()))


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=lambda p: p.name)
def test_a_rule_matches_something_and_narrowly_refuses_something(
    pattern: Pattern, results: dict[str, CaseResult]
) -> None:
    kinds = [r.kind for r in results.values() if r.subject == pattern.name]
    assert {"match", "possible"} & set(kinds)
    assert "no_match" in kinds


def test_the_published_patterns_and_many_more_ship() -> None:
    assert set(PATTERNS) >= PUBLISHED
    assert len(PATTERNS) >= 50
    for target in TARGETS:
        assert sum(target in p.meta["target"] for p in PATTERNS.values()) >= 10


@pytest.mark.slow
def test_the_rules_are_clean() -> None:
    assert not lint([BUGS])


# --- the six cases that every fuzzer of these compilers meets ----------------------------------

ATTENTION = (
    "(float[4,4,2,8] q, float[4,4,3,8] k, float[4,4,3,8] v) => (float[4,4,2,8] y) "
    "<float c = {{2.8}}> {{ t = Transpose<perm = [0,1,3,2]>(k) m = MatMul(q, t) "
    "d = Div(m, c) s = Softmax<axis = {axis}>(d) y = MatMul(s, v) }}"
)
NAMED = {case.name: case for case in (*ONNXRUNTIME, *TVM)}
SIX = [
    ("ort_32228", NAMED["identity transpose, square"], NAMED["real transpose"]),
    ("ort_31980", NAMED["layer norm, longer scale"], NAMED["layer norm"]),
    ("ort_24158", NAMED["relu, clip in float64"], NAMED["clip, relu"]),
    (
        "pytorch_196468",
        Case("attention", ATTENTION.format(axis=0), rules=yes("pytorch_196468")),
        Case("attention, last axis", ATTENTION.format(axis=-1)),
    ),
    ("tvm_17768", NAMED["slice (4, 1)"], NAMED["slice (1, 4)"]),
    ("tvm_19500", NAMED["resize 3 by 1.5"], NAMED["resize 3 by 2"]),
]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(RULES, PATTERNS.values())


def certain(matcher: Matcher, graph: Graph, rule: str) -> set[str]:
    """Those that match for certain, of the rules about the same target."""
    targets = set(PATTERNS[rule].meta["target"])
    findings = matcher.run(graph).findings
    return {
        f.pattern.name
        for f in findings
        if f.certainty.value == "yes" and targets & set(f.pattern.meta["target"])
    }


@pytest.mark.parametrize(
    ("rule", "bad", "good"), SIX, ids=lambda v: v if isinstance(v, str) else ""
)
def test_six_bugs_and_their_near_misses(matcher: Matcher, rule: str, bad: Case, good: Case) -> None:
    assert certain(matcher, import_model(bad.model(), Path("bad.onnx"), Limits()), rule) == {rule}
    assert certain(matcher, import_model(good.model(), Path("good.onnx"), Limits()), rule) == set()


HANDED = ROOT.parent / "shared" / "cases"


@pytest.mark.skipif(not HANDED.is_dir(), reason="the reported models are not here")
@pytest.mark.parametrize("rule", [rule for rule, _, _ in SIX])
def test_the_reported_models(matcher: Matcher, rule: str) -> None:
    folder = HANDED / rule.replace("_", "-").replace("pytorch", "pt")
    assert certain(matcher, load_onnx(folder / "model.onnx"), rule) == {rule}
    assert certain(matcher, load_onnx(folder / "near_miss.onnx"), rule) == set()


def test_the_documentation_lists_every_rule() -> None:
    page = (ROOT / "docs" / "bugs.md").read_text(encoding="utf-8")
    for name, pattern in PATTERNS.items():
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), "")
        assert pattern.title in row, f"docs/bugs.md: {name}"
        assert f"`{pattern.get('affects')}`" in row, f"docs/bugs.md: {name}"
    assert f"ships {len(PATTERNS)} rules" in page
